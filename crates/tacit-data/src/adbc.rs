//! What a database answers to a query, by a driver of ADBC, Arrow's own interface to databases.
//!
//! `adbc:DRIVER?NAME=VALUE&…#QUERY`: DRIVER is the name of a driver that is installed, such as
//! `adbc_driver_sqlite`, or the path of its library; options are the driver's own, `uri` among them, and
//! `entrypoint` is the function that a library begins with, if it is not the usual one. A driver runs in this
//! process: it is trusted as this program is.
//!
//! The query is asked once, and what comes is kept in a nameless encrypted file, as Arrow batches.

use crate::fault::{Error, Result};
use crate::kept::Kept;
use crate::place::{decoded, shown};
use adbc_core::options::{AdbcVersion, OptionConnection, OptionDatabase, OptionValue};
use adbc_core::{Connection, Database, Driver, LOAD_FLAG_DEFAULT, Optionable, Statement};
use adbc_driver_manager::ManagedDriver;
use arrow_ipc::writer::FileWriter;
use std::io::{Read, Write};
use std::path::Path;

/// The answer to the query in `path`, as an Arrow file, and a digest of it.
///
/// Errors: an address that is none, and whatever driver and database refuse.
pub(crate) fn read(path: &Path) -> Result<(Kept, [u8; 32])> {
    let asked = Asked::of(path)?;
    asked.ask()
}

/// A query under way.
struct Asked<'a> {
    path: &'a Path,
    driver: &'a str,
    options: Vec<(String, String)>,
    query: &'a str,
}

impl<'a> Asked<'a> {
    fn of(path: &'a Path) -> Result<Self> {
        let wrong = |what: &str| Err(Error::address(path, what));
        let address = path.to_str().and_then(|text| text.strip_prefix("adbc:")).unwrap_or("");
        let Some((server, query)) = address.split_once('#') else {
            return wrong(
                "write the query after a #, as in adbc:adbc_driver_sqlite?uri=FILE#select mail from people",
            );
        };
        let query = query.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace());
        let (driver, options) = server.split_once('?').unwrap_or((server, ""));
        if query.is_empty() {
            return wrong("there is no query after the #");
        }
        if driver.is_empty() {
            return wrong("it names no driver; an address is adbc:DRIVER?uri=…#QUERY");
        }
        let mut named = Vec::new();
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let Some((name, value)) = option.split_once('=') else {
                return wrong("an option is written NAME=VALUE");
            };
            named.push((decoded(name), decoded(value)));
        }
        Ok(Asked { path, driver, options: named, query })
    }

    fn remote(&self, what: impl Into<String>) -> Error {
        Error::Remote { path: shown(self.path), what: what.into() }
    }

    /// What a driver said before it saw a row, without what may be a secret.
    fn refused(&self, error: &adbc_core::error::Error) -> Error {
        let mut words = error.message.clone();
        for (_, value) in &self.options {
            let password = value.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
            let password = password.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
            for secret in [Some(value.as_str()), password].into_iter().flatten() {
                for form in [secret.to_owned(), decoded(secret)] {
                    if !form.is_empty() {
                        words = words.replace(&form, "[redacted]");
                    }
                }
            }
        }
        let words: String = words.lines().next().unwrap_or("").chars().take(300).collect();
        self.remote(format!("the driver refuses: {words} ({:?})", error.status))
    }

    /// What a driver said of rows: its words may hold data.
    fn failed(&self, status: &str) -> Error {
        self.remote(format!(
            "the query failed ({status}); the driver's message may contain data and is not shown"
        ))
    }

    fn unkept(&self, error: &dyn std::fmt::Display) -> Error {
        self.remote(format!("the result cannot be stored in {}: {error}", std::env::temp_dir().display()))
    }

    fn ask(&self) -> Result<(Kept, [u8; 32])> {
        let refused = |error: adbc_core::error::Error| self.refused(&error);
        let entry =
            self.options.iter().find(|(name, _)| name == "entrypoint").map(|(_, value)| value.as_bytes());
        let (version, flags) = (AdbcVersion::V110, LOAD_FLAG_DEFAULT);
        let mut driver =
            ManagedDriver::load_from_name(self.driver, entry, version, flags, None).map_err(refused)?;
        let options =
            self.options.iter().filter(|(name, _)| name != "entrypoint").map(|(name, value)| {
                (OptionDatabase::from(name.as_str()), OptionValue::String(value.clone()))
            });
        let database = driver.new_database_with_opts(options).map_err(refused)?;
        let mut connection = database.new_connection().map_err(refused)?;
        // Not every driver can promise it.
        let _ = connection.set_option(OptionConnection::ReadOnly, OptionValue::String("true".into()));
        let mut statement = connection.new_statement().map_err(refused)?;
        statement.set_sql_query(self.query).map_err(refused)?;
        // Where a driver can, what is wrong with the query itself shows before it runs.
        if let Err(error) = statement.prepare()
            && error.status != adbc_core::error::Status::NotImplemented
        {
            return Err(self.refused(&error));
        }
        let batches = statement.execute().map_err(|error| self.failed(&format!("{:?}", error.status)))?;
        let schema = batches.schema();
        if schema.fields().is_empty() {
            return Err(Error::address(self.path, "the query returns no columns; use select"));
        }
        let kept = Kept::new().map_err(|error| self.unkept(&error))?;
        let mut writer = FileWriter::try_new(kept, &schema).map_err(|error| self.unkept(&error))?;
        for batch in batches {
            let batch = batch.map_err(|_| self.failed("while rows came"))?;
            writer.write(&batch).map_err(|error| self.unkept(&error))?;
        }
        let mut kept = writer.into_inner().map_err(|error| self.unkept(&error))?;
        kept.flush().map_err(|error| self.unkept(&error))?;
        let digest = self.digest(&kept)?;
        Ok((kept, digest))
    }

    fn digest(&self, kept: &Kept) -> Result<[u8; 32]> {
        let mut digest = blake3::Hasher::new_derive_key(crate::ANSWER_DIGEST);
        let mut reader = kept.reader().map_err(|error| self.unkept(&error))?;
        let mut piece = zeroize::Zeroizing::new(vec![0; 1 << 16]);
        loop {
            match reader.read(&mut piece).map_err(|error| self.unkept(&error))? {
                0 => return Ok(*digest.finalize().as_bytes()),
                read => _ = digest.update(&piece[..read]),
            }
        }
    }
}
