//! What a PostgreSQL server answers to a query.
//!
//! The query is asked once, by `COPY … TO STDOUT` in a read-only transaction of one snapshot, and what comes
//! is kept in a nameless encrypted file, as Arrow batches, so that it can be read again without the server:
//! memory holds one batch. Booleans, integers, floats, dates, timestamps, `bytea` and `numeric` of a given
//! precision have their types; every other column is the text that PostgreSQL writes. Of a `numeric` of any
//! precision the text is marked, so that as a key it is a decimal like any other.

mod cells;
mod settings;
mod tls;

use crate::fault::{Error, Result};
use crate::kept::Kept;
use crate::place::shown;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use cells::Column;
use postgres::{Client, IsolationLevel, NoTls, Statement};
use settings::Settings;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a batch.
const BATCH: usize = 8192;
/// Bytes of a batch's cells after which it ends earlier.
const BATCH_BYTES: usize = 8 << 20;

/// How cells are to be written: alike on every server.
const FORMS: &str = "SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = 'iso_8601'; \
                     SET LOCAL timezone = 'UTC'; SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3";

/// The answer to the query in `path`, as an Arrow file, and a digest of it.
///
/// Errors: an address that is none, and whatever the server refuses.
pub(crate) fn read(path: &Path) -> Result<(Kept, [u8; 32])> {
    let address = path.to_str().unwrap_or("");
    let asked = Asked { path: shown(path) };
    let Some((server, query)) = address.split_once('#') else {
        return Err(asked
            .wrong("write the query after a #, as in postgresql://HOST/DATABASE#select mail from people"));
    };
    let query = query.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    if query.is_empty() {
        return Err(asked.wrong("there is no query after the #"));
    }
    let settings = Settings::of(server).map_err(|what| asked.wrong(what))?;
    let mut client = asked.connect(&settings)?;
    asked.ask(&mut client, query)
}

/// A query under way, for what goes wrong with it.
struct Asked {
    path: PathBuf,
}

impl Asked {
    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Address { path: self.path.clone(), what: what.into() }
    }

    fn remote(&self, what: impl Into<String>) -> Error {
        Error::Remote { path: self.path.clone(), what: what.into() }
    }

    fn failed(&self, error: &postgres::Error) -> Error {
        self.remote(explain(error))
    }

    fn unkept(&self, error: &dyn std::fmt::Display) -> Error {
        self.remote(format!("the result cannot be stored in {}: {error}", std::env::temp_dir().display()))
    }

    fn connect(&self, settings: &Settings) -> Result<Client> {
        let connected = match &settings.tls {
            None => settings.config.connect(NoTls),
            Some(roots) => {
                let connector = tls::Connector::new(roots.as_deref()).map_err(|what| self.remote(what))?;
                settings.config.connect(connector)
            }
        };
        connected.map_err(|error| self.failed(&error))
    }

    fn ask(&self, client: &mut Client, query: &str) -> Result<(Kept, [u8; 32])> {
        let failed = |error: postgres::Error| self.failed(&error);
        let begun =
            client.build_transaction().read_only(true).isolation_level(IsolationLevel::RepeatableRead);
        let mut transaction = begun.start().map_err(failed)?;
        transaction.batch_execute(FORMS).map_err(failed)?;
        // By itself first: one statement alone, which stands without what is put around it.
        let statement = transaction.prepare(query).map_err(failed)?;
        if !statement.params().is_empty() {
            return Err(self.wrong("the query has parameters ($1), which have no values here"));
        }
        if statement.columns().is_empty() {
            return Err(self.wrong("the query returns no columns; use select, table, values or with"));
        }
        let mut answer = Answer::new(self, &statement)?;
        // On lines of its own: its last one may be a comment.
        let mut rows = transaction.copy_out(&format!("COPY (\n{query}\n) TO STDOUT")).map_err(failed)?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = rows.read_until(b'\n', &mut line).map_err(|error| self.lost(error))?;
            if read == 0 {
                break;
            }
            answer.row(&mut line)?;
        }
        answer.finish()
    }

    /// What ended the answer before its end.
    fn lost(&self, error: std::io::Error) -> Error {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
            Some(inner) => self.failed(inner),
            None => self.remote(error.to_string()),
        }
    }
}

/// A server's refusal. Its words are told where they can hold no cell: about the query, the role and the
/// connection.
fn explain(error: &postgres::Error) -> String {
    if let Some(refused) = error.as_db_error() {
        let code = refused.code().code();
        let telling = ["08", "0A", "25", "26", "28", "3D", "3F", "42", "53", "54", "55", "57", "58"];
        return match telling.iter().any(|class| code.starts_with(class)) {
            true => format!("the server refuses: {} (SQLSTATE {code})", refused.message()),
            false => format!(
                "the query failed (SQLSTATE {code}); its message may contain data and is not \
                              shown"
            ),
        };
    }
    if error.is_closed() {
        return "the connection to the server was lost; run again".into();
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(below) = deepest.source() {
        deepest = below;
    }
    match deepest.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset) => {
            "the connection to the server was lost; run again".into()
        }
        _ => format!("the server cannot be reached: {deepest}"),
    }
}

/// An answer on its way to the file.
struct Answer<'a> {
    asked: &'a Asked,
    schema: SchemaRef,
    columns: Vec<Column>,
    writer: arrow_ipc::writer::FileWriter<Kept>,
    digest: blake3::Hasher,
    /// Rows of the batch that grows, and bytes of its cells.
    waiting: (usize, usize),
    rows: u64,
}

impl<'a> Answer<'a> {
    fn new(asked: &'a Asked, statement: &Statement) -> Result<Self> {
        let mut digest = blake3::Hasher::new_derive_key("tacit rows of a query v1");
        let mut columns = Vec::new();
        for column in statement.columns() {
            for text in [column.name(), column.type_().name()] {
                digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
            }
            columns.push(Column::of(column));
        }
        let schema =
            Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()));
        let kept = Kept::new().map_err(|error| asked.unkept(&error))?;
        let writer = arrow_ipc::writer::FileWriter::try_new(kept, &schema);
        let writer = writer.map_err(|error| asked.unkept(&error))?;
        Ok(Answer { asked, schema, columns, writer, digest, waiting: (0, 0), rows: 0 })
    }

    /// Takes a row in the text form of `COPY`: cells between tabs, a null as `\N`.
    fn row(&mut self, line: &mut Vec<u8>) -> Result<()> {
        self.digest.update(line);
        self.rows += 1;
        let bytes = line.len();
        if line.pop() != Some(b'\n') {
            return Err(self.asked.remote("the server sent an incomplete row"));
        }
        let mut cells = line.split_mut(|byte| *byte == b'\t');
        for (at, column) in self.columns.iter_mut().enumerate() {
            let taken = match cells.next() {
                Some(cell) => column.take(cell),
                None => Err("is missing"),
            };
            taken.map_err(|what| {
                self.asked.remote(format!("row {}, column {}: a cell {what}", self.rows, at + 1))
            })?;
        }
        if cells.next().is_some() {
            return Err(self
                .asked
                .remote(format!("row {} has more cells than there are columns", self.rows)));
        }
        self.waiting = (self.waiting.0 + 1, self.waiting.1 + bytes);
        if self.waiting.0 == BATCH || self.waiting.1 >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.waiting = (0, 0);
        let arrays = self.columns.iter_mut().map(Column::finish).collect::<std::result::Result<Vec<_>, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        let written = batch.and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| self.asked.unkept(&error))
    }

    fn finish(mut self) -> Result<(Kept, [u8; 32])> {
        if self.waiting.0 > 0 {
            self.flush()?;
        }
        let kept = self.writer.into_inner().map_err(|error| self.asked.unkept(&error));
        let mut kept = kept?;
        kept.flush().map_err(|error| self.asked.unkept(&error))?;
        Ok((kept, *self.digest.finalize().as_bytes()))
    }
}
