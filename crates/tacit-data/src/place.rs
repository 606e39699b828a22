//! What the name of a table leads to: a file, a query of a database, or an object in a store.
//!
//! `postgresql://[USER@]HOST[:PORT]/DATABASE#QUERY` is what a PostgreSQL server answers to the query behind
//! the first `#`, taken as it is; `adbc:DRIVER?OPTIONS#QUERY` is what a database answers through a driver;
//! `s3://BUCKET/KEY` is an object in a store that speaks S3, and `https://` what a server gives. Every other name
//! is one of the file system. A password in such an address is never shown: [`shown`] is what errors, records
//! and results have in its place.

use std::path::{Path, PathBuf};

/// What a table's name leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place<'a> {
    /// A file or a stream.
    Local,
    /// What a database answers.
    Query,
    /// What a database answers through a driver of ADBC.
    Driver,
    /// What a server gives.
    Web,
    /// An object in a store.
    Object {
        /// The bucket.
        bucket: &'a str,
        /// The object's key in it.
        key: &'a str,
    },
}

const DATABASES: [&str; 2] = ["postgresql://", "postgres://"];
const STORE: &str = "s3://";
const DRIVER: &str = "adbc:";
const WEB: [&str; 2] = ["https://", "http://"];

impl<'a> Place<'a> {
    /// What `path` leads to, or what is wrong with it.
    pub fn of(path: &'a Path) -> Result<Self, &'static str> {
        let Some(text) = path.to_str() else { return Ok(Place::Local) };
        if of_database(text).is_some() {
            return Ok(Place::Query);
        }
        if text.starts_with(DRIVER) {
            return Ok(Place::Driver);
        }
        if of_web(text).is_some() {
            return Ok(Place::Web);
        }
        let Some(rest) = text.strip_prefix(STORE) else { return Ok(Place::Local) };
        match rest.split_once('/') {
            Some((bucket, key)) if is_bucket(bucket) && !key.is_empty() => Ok(Place::Object { bucket, key }),
            _ => Err("an object is named s3://BUCKET/KEY; credentials come from the environment"),
        }
    }
}

/// Whether the name leads to another machine, by its form alone.
pub fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(|text| {
        of_database(text).is_some()
            || of_web(text).is_some()
            || text.starts_with(STORE)
            || text.starts_with(DRIVER)
    })
}

/// The path of a table that is seen from `folder`, unless it lies on another machine.
pub fn seen_from(folder: &Path, path: &str) -> PathBuf {
    let own = Path::new(path);
    if is_remote(own) { own.to_owned() } else { folder.join(own) }
}

/// The name as it may be shown: of a database without password, options and query.
pub fn shown(path: &Path) -> PathBuf {
    let Some(text) = path.to_str() else { return path.to_owned() };
    if let Some((scheme, rest)) = of_database(text) {
        return format!("{scheme}{}", server(rest).unwrap_or_else(|| "[redacted]".into())).into();
    }
    if let Some(rest) = text.strip_prefix(DRIVER) {
        return format!("{DRIVER}{}", rest.split(['?', '#']).next().unwrap_or_default()).into();
    }
    if let Some((scheme, rest)) = of_web(text) {
        return format!("{scheme}{}", page(rest).unwrap_or_else(|| "[redacted]".into())).into();
    }
    match text.strip_prefix(STORE) {
        Some(rest) if !is_bucket(rest.split('/').next().unwrap_or(rest)) => {
            format!("{STORE}[redacted]").into()
        }
        _ => path.to_owned(),
    }
}

/// The password in an address of a database, wherever in `text` that stands, if it has one.
pub fn password(text: &str) -> Option<&str> {
    if let Some((_, address)) = text.split_once(DRIVER) {
        let options = address.split('#').next()?.split_once('?')?.1.split('&');
        let found = options.filter_map(|option| option.strip_prefix("password=")).next();
        return found.or_else(|| password(address)).filter(|password| !password.is_empty());
    }
    let schemes = DATABASES.iter().chain(&WEB);
    let rest = schemes.filter_map(|scheme| text.split_once(scheme)).map(|(_, rest)| rest).next()?;
    let address = rest.split_once('#').map_or(rest, |(address, _)| address);
    let (_, password) = address.rsplit_once('@')?.0.split_once(':')?;
    Some(password).filter(|password| !password.is_empty())
}

/// What tells tables apart whose names are [`shown`] alike: the same with a digest of the query.
pub fn account(path: &Path) -> String {
    let name = shown(path).to_string_lossy().into_owned();
    let is_query = |text: &&str| of_database(text).is_some() || text.starts_with(DRIVER);
    let query = path.to_str().filter(is_query).and_then(|text| text.split_once('#'));
    match query {
        Some((_, query)) => format!("{name}#{}", blake3::hash(query.trim().as_bytes()).to_hex()),
        None => name,
    }
}

/// What is the same for all spellings of one table: of a file its path without links, of a database its hosts,
/// its name and a digest of the query, whoever logs in; an object's address is its only spelling.
pub fn canonical(path: &Path) -> String {
    if let Some(address) = path.to_str().and_then(|text| text.strip_prefix(DRIVER)) {
        return of_driver(address);
    }
    let Some((_, rest)) = path.to_str().and_then(of_database) else {
        return match is_remote(path) {
            true => of_server(&shown(path).to_string_lossy()),
            false => match sheet(path) {
                (file, Some(part)) => format!("{}#{part}", without_links(file).to_string_lossy()),
                (file, None) => without_links(file).to_string_lossy().into_owned(),
            },
        };
    };
    let (_, query) = rest.split_once('#').unwrap_or((rest, ""));
    let server = server(rest).unwrap_or_else(|| "[redacted]".into());
    let (hosts, database) = server.split_once('/').unwrap_or((&server, ""));
    let hosts = hosts.rsplit('@').next().unwrap_or_default().to_lowercase();
    let hosts: Vec<&str> = hosts.split(',').map(|host| host.strip_suffix(":5432").unwrap_or(host)).collect();
    let words: Vec<&str> = query.trim().trim_end_matches(';').split_whitespace().collect();
    let digest = blake3::hash(words.join(" ").as_bytes());
    format!("postgresql://{}/{database}#{}", hosts.join(","), digest.to_hex())
}

/// A file, and the part of it that a workbook's name has behind a `#`; a file that is called so is itself.
pub(crate) fn sheet(path: &Path) -> (&Path, Option<&str>) {
    let Some(text) = path.to_str() else { return (path, None) };
    match text.split_once('#') {
        Some((file, part)) if of_web(text).is_some() || !path.exists() && Path::new(file).is_file() => {
            (Path::new(file), Some(part))
        }
        _ => (path, None),
    }
}

/// One spelling of a query through a driver: without who logs in, whatever the order of options.
fn of_driver(address: &str) -> String {
    let (server, query) = address.split_once('#').unwrap_or((address, ""));
    let (driver, options) = server.split_once('?').unwrap_or((server, ""));
    let of_user = |option: &&str| {
        ["user", "password", "token", "secret", "key"].iter().any(|word| option.to_lowercase().contains(word))
    };
    let plain = |option: &str| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decoded(value);
        match value.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
            Some((scheme, rest)) => format!("{name}={scheme}://{rest}"),
            None => format!("{name}={value}"),
        }
    };
    let mut options: Vec<String> = options
        .split('&')
        .filter(|option| !of_user(option) || option.starts_with("uri="))
        .map(plain)
        .collect();
    options.sort_unstable();
    let words: Vec<&str> = query.trim().trim_end_matches(';').split_whitespace().collect();
    let said = format!("{}\n{}", options.join("&"), words.join(" "));
    format!("{DRIVER}{driver}#{}", blake3::hash(said.as_bytes()).to_hex())
}

/// A text of an address without its percent signs.
pub(crate) fn decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn of_web(text: &str) -> Option<(&str, &str)> {
    let scheme = WEB.iter().find(|scheme| text.starts_with(**scheme))?;
    Some(text.split_at(scheme.len()))
}

/// One spelling of a shown address of the web: whatever the scheme, the case of the host, a port that goes without
/// saying, steps that lead nowhere and signs that need no percent.
fn of_server(shown: &str) -> String {
    let Some((scheme, rest)) = of_web(shown) else { return shown.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.to_lowercase();
    let usual = if scheme == WEB[0] { ":443" } else { ":80" };
    let host = host.strip_suffix(usual).unwrap_or(&host).trim_end_matches('.');
    let mut steps = Vec::new();
    for step in path.split('/').map(decoded) {
        match step.as_str() {
            "" | "." => {}
            ".." => _ = steps.pop(),
            _ => steps.push(step),
        }
    }
    format!("{}{host}/{}", WEB[0], steps.join("/"))
}

/// Host, port and path out of what is behind `https://`; nothing where it is not clear which part is a password.
fn page(rest: &str) -> Option<String> {
    let (authority, more) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
        None => host.split_once(':').unwrap_or((host, "")),
    };
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || "-._:".contains(c));
    let is_torn = !authority.contains('@') && authority.contains(':') && more.contains('@');
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    let path = more.split(['?', '#']).next().unwrap_or_default();
    (is_plain && is_port && !is_torn && authority.matches('@').count() < 2).then(|| format!("{host}{path}"))
}

/// The path from the root, with links followed as far as there is anything.
fn without_links(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    let mut there = absolute.as_path();
    loop {
        if let Ok(real) = std::fs::canonicalize(there) {
            return missing.iter().rev().fold(real, |path, part| path.join(part));
        }
        match (there.parent(), there.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                there = parent;
            }
            _ => return absolute,
        }
    }
}

/// The scheme and what is behind it.
fn of_database(text: &str) -> Option<(&str, &str)> {
    let scheme = DATABASES.iter().find(|scheme| text.starts_with(**scheme))?;
    Some(text.split_at(scheme.len()))
}

fn is_bucket(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// User, host, port and database out of what is behind the scheme; nothing where it is not clear which part
/// is the password.
fn server(rest: &str) -> Option<String> {
    let (address, query) = rest.split_once('#').unwrap_or((rest, ""));
    let end = address.find(['/', '?']).unwrap_or(address.len());
    let (authority, more) = address.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (user.split(':').next().unwrap_or(""), hosts),
        None => ("", authority),
    };
    // A password that holds one of the signs that end it.
    let is_torn = |part: &str| part.contains('@');
    let torn = authority.matches('@').count() > 1
        || is_torn(more)
        || (!authority.contains('@') && authority.contains(':') && is_torn(query));
    let database = more.strip_prefix('/').unwrap_or("").split('?').next().unwrap_or("");
    let plain = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "-._%~".contains(c));
    let port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let host = |text: &str| match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((address, rest)) => {
            address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.%".contains(&byte))
                && (rest.is_empty() || rest.strip_prefix(':').is_some_and(port))
        }
        None => match text.split_once(':') {
            Some((name, number)) => plain(name) && port(number),
            None => plain(text),
        },
    };
    if torn || !plain(user) || !plain(database) || !hosts.split(',').all(host) {
        return None;
    }
    let at = if user.is_empty() { "" } else { "@" };
    let slash = if database.is_empty() { "" } else { "/" };
    Some(format!("{user}{at}{hosts}{slash}{database}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let addresses = [
            "postgresql://ann:hunter2@db.example/crm#select mail from people",
            "postgres://ann:hunter2@db.example:5433/crm?sslmode=require#table people",
            "postgresql://db.example/crm?user=ann&password=hunter2#table people",
            "postgresql://ann:hunt@er2@db.example/crm#table people",
            "postgresql://ann:x/hunter2@db.example/crm#table people",
            "postgresql://ann:x?hunter2@db.example/crm#table people",
            "postgresql://ann:x#hunter2@db.example/crm#table people",
            "postgresql://ann:7#hunter2@db.example/crm#table people",
            "postgresql://ann:hunter2#table people",
            "postgresql://:hunter2@[::1]:5432/crm",
            "postgresql://ann:hunter2@a:1,b:2/crm",
            "s3://AKIA:hunter2@bucket/key",
            "https://ann:hunter2@host.example/a.csv?sig=hunter2#people",
            "https://ann:hunt/er2@host.example/people",
            "https://ann:x@er2@host.example/a.csv",
            "https://host.example/a.csv?token=hunter2&b=people",
            "adbc:adbc_driver_postgresql?uri=postgresql://ann:hunter2@db/crm#select mail from people",
            "adbc:adbc_driver_snowflake?username=ann&password=hunter2#table people",
        ];
        for address in addresses {
            let name = shown(Path::new(address)).to_string_lossy().into_owned();
            assert!(!name.contains("hunter") && !name.contains("er2") && !name.contains("7"), "{name}");
            assert!(!name.contains("people") && !account(Path::new(address)).contains("hunter"), "{name}");
            assert!(is_remote(Path::new(address)));
        }
        let plain = |address| shown(Path::new(address)).to_string_lossy().into_owned();
        assert_eq!(plain(addresses[0]), "postgresql://ann@db.example/crm");
        assert_eq!(plain(addresses[1]), "postgres://ann@db.example:5433/crm");
        assert_eq!(plain("postgresql://#table a@b"), "postgresql://");
        assert_eq!(plain("s3://bucket/a/b@c.csv"), "s3://bucket/a/b@c.csv");
        assert_eq!(plain("./a:b@c"), "./a:b@c");
        assert_eq!(plain("https://ann:x@host.example:8443/a/b.csv?c=d"), "https://host.example:8443/a/b.csv");
        assert_eq!(plain("adbc:adbc_driver_sqlite?uri=a.db#table t"), "adbc:adbc_driver_sqlite");
    }

    #[test]
    fn a_password_is_found_to_be_left_out() {
        assert_eq!(password("--input=postgresql://ann:a:b@h/x#select '@'"), Some("a:b"));
        assert_eq!(password("adbc:d?username=ann&password=x#select 1"), Some("x"));
        assert_eq!(password("https://ann:x@h/a.csv"), Some("x"));
        for none in ["postgresql://ann@h/x#a:b@c", "postgresql://h:5432/x", "ann:b@h", "postgres://ann:@h"] {
            assert_eq!(password(none), None, "{none}");
        }
    }

    #[test]
    fn queries_of_one_database_are_told_apart() {
        let [one, other] = ["postgresql://db/crm#table a", "postgresql://db/crm#table b"].map(Path::new);
        assert_eq!(shown(one), shown(other));
        assert_ne!(account(one), account(other));
        assert_eq!(account(Path::new("a.csv")), "a.csv");
    }

    #[test]
    fn spellings_of_one_table_are_one_and_tables_are_told_apart() {
        let of = |text: &str| canonical(Path::new(text));
        let one = "postgresql://db.example/crm#select a from t";
        for same in [
            "postgres://db.example/crm#select a from t",
            "postgresql://DB.example:5432/crm#select a\n  from t;",
            "postgresql://ann:secret@db.example/crm?sslmode=require# select a from t ",
            "postgresql://eve@db.example/crm#select a from t",
        ] {
            assert_eq!(of(same), of(one));
        }
        for other in [
            "postgresql://db.example/crm#select b from t",
            "postgresql://db.example/erp#select a from t",
            "postgresql://other.example/crm#select a from t",
            "postgresql://db.example:5433/crm#select a from t",
        ] {
            assert_ne!(of(other), of(one));
        }
        let one = "adbc:d?uri=s://ann:p@h/x&a=1#table  t;";
        for same in
            ["adbc:d?a=1&uri=s://eve:q@h/x#table t", "adbc:d?uri=s%3A%2F%2Fh/x&password=9&a=1#table t"]
        {
            assert_eq!(of(same).replace("s://h/x", ""), of(one).replace("s://h/x", ""), "{same}");
        }
        assert_ne!(of("adbc:d?uri=s://h/y&a=1#table t"), of(one));
        assert_eq!(of("https://ann:p@h/x.csv?sig=1"), of("https://h/x.csv?sig=2"));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/t.csv"), "x").unwrap();
        let one = canonical(&at("a/t.csv"));
        assert_eq!(canonical(&at("a/../a/./t.csv")), one);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("a"), at("b")).unwrap();
            assert_eq!(canonical(&at("b/t.csv")), one);
            // A file that is not there yet has its name all the same.
            assert_eq!(canonical(&at("b/u.csv")), canonical(&at("a/u.csv")));
        }
        assert_ne!(canonical(&at("a/u.csv")), one);
        let web = |address: &str| canonical(Path::new(address));
        for other in [
            "https://HOST.example:443/a.csv",
            "http://host.example:80/a.csv",
            "https://ann:secret@host.example./b/..//./%61.csv?signature=1",
        ] {
            assert_eq!(web(other), web("https://host.example/a.csv"), "{other}");
        }
        for other in ["https://host.example:8443/a.csv", "https://host.example/A.csv"] {
            assert_ne!(web(other), web("https://host.example/a.csv"), "{other}");
        }
    }

    #[test]
    fn an_object_has_a_bucket_and_a_key() {
        let of = |text: &'static str| Place::of(Path::new(text));
        assert_eq!(of("s3://b/a/c.csv").unwrap(), Place::Object { bucket: "b", key: "a/c.csv" });
        for wrong in ["s3://", "s3://b", "s3://b/", "s3:///k", "s3://k:s@b/k"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(of("s3:/b/k").unwrap(), Place::Local);
        assert_eq!(seen_from(Path::new("/f"), "s3://b/k"), Path::new("s3://b/k"));
        assert_eq!(seen_from(Path::new("/f"), "b/k"), Path::new("/f/b/k"));
    }
}
