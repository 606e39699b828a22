//! What the name of a table leads to: a file, a query of a database, or an object in a store.
//!
//! `postgresql://[USER@]HOST[:PORT]/DATABASE#QUERY` is what a PostgreSQL server answers to the query behind
//! the first `#`, taken as it is; `adbc:DRIVER?OPTIONS#QUERY` is what a database answers through a driver;
//! `s3://BUCKET/KEY` is an object in a store that speaks S3, and `https://` what a server gives. Every other name
//! is one of the file system. A password in such an address is never shown: [`shown`] is what errors, records
//! and results have in its place.

use std::net::{IpAddr, Ipv4Addr};
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
    of_queried(rest)
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

/// One spelling of a query of a server: of what is behind the scheme, without who logs in.
fn of_queried(rest: &str) -> String {
    let (address, query) = rest.split_once('#').unwrap_or((rest, ""));
    let server = server(rest);
    let options = address.split_once('?').filter(|_| server.is_some()).map_or("", |(_, options)| options);
    // Options of the address go before its parts, and the last one counts.
    let option = |name: &str| {
        let mut values = options.split('&').filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        values.rfind(|value| !value.is_empty()).map(decoded)
    };
    let server = server.unwrap_or_else(|| "[redacted]".into());
    let (hosts, database) = server.split_once('/').unwrap_or((&server, ""));
    let hosts = hosts.rsplit('@').next().unwrap_or_default();
    let (mut names, mut ports): (Vec<_>, Vec<_>) =
        hosts.split(',').map(name_and_port).map(|(name, port)| (name.to_owned(), port.to_owned())).unzip();
    let listed = |list: String| list.split(',').map(str::to_owned).collect();
    if let Some(list) = option("hostaddr").or_else(|| option("host")) {
        names = listed(list);
    }
    if let Some(list) = option("port") {
        ports = listed(list);
    }
    // One port is that of all hosts.
    let port = |at: usize| ports.get(if ports.len() == 1 { 0 } else { at }).map_or("", String::as_str);
    let hosts: Vec<String> =
        names.iter().enumerate().map(|(at, name)| one_host(name, port(at), 5432)).collect();
    let database = option("dbname").unwrap_or_else(|| decoded(database));
    let words: Vec<&str> = query.trim().trim_end_matches(';').split_whitespace().collect();
    let digest = blake3::hash(words.join(" ").as_bytes());
    format!("postgresql://{}/{database}#{}", hosts.join(","), digest.to_hex())
}

/// Name and port of a host, each of them possibly empty.
fn name_and_port(host: &str) -> (&str, &str) {
    match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
        None => host.split_once(':').unwrap_or((host, "")),
    }
}

/// One spelling of a host and its port: the port is a number, or left out where it is the `usual` one; an IP address
/// is its numbers, and any other name in lower case, in ASCII, and without the dot of the root.
fn one_host(name: &str, port: &str, usual: u16) -> String {
    let name = decoded(name).to_lowercase();
    let name = name.trim_end_matches('.');
    let address = name.parse().ok().or_else(|| ipv4(name).map(IpAddr::V4));
    let host = match address.map(|address| address.to_canonical()) {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        None => in_ascii(name),
    };
    match port.trim_start_matches('0') {
        _ if port.is_empty() => host,
        port if port == usual.to_string() => host,
        port => format!("{host}:{port}"),
    }
}

/// An IPv4 address as resolvers read it: one to four numbers, decimal, octal or hexadecimal, of which the last one fills
/// what is left.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u32::from_str_radix(digits, 16).ok()
        }
        _ if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) => None,
        _ if part.len() > 1 && part.starts_with('0') => u32::from_str_radix(part, 8).ok(),
        _ => part.parse().ok(),
    };
    let numbers: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last().filter(|_| numbers.len() <= 4)?;
    let fits = first.iter().all(|number| *number < 256) && u64::from(*last) < 1 << (8 * (4 - first.len()));
    let high = first.iter().fold(0u32, |high, number| high << 8 | number);
    fits.then(|| Ipv4Addr::from_bits((u64::from(high) << (8 * (4 - first.len()))) as u32 | last))
}

/// A host's name as it is looked up, where it has other letters.
#[cfg(feature = "s3")]
fn in_ascii(name: &str) -> String {
    let address = if name.is_ascii() { None } else { reqwest::Url::parse(&format!("https://{name}/")).ok() };
    address.and_then(|address| address.host_str().map(str::to_owned)).unwrap_or_else(|| name.to_owned())
}

#[cfg(not(feature = "s3"))]
fn in_ascii(name: &str) -> String {
    name.to_owned()
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
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn of_web(text: &str) -> Option<(&str, &str)> {
    let scheme = WEB.iter().find(|scheme| text.starts_with(**scheme))?;
    Some(text.split_at(scheme.len()))
}

/// One spelling of a shown address of the web: whatever the scheme, the spelling of host and port, steps that lead
/// nowhere and signs that need no percent.
fn of_server(shown: &str) -> String {
    let Some((scheme, rest)) = of_web(shown) else { return shown.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (name, port) = name_and_port(host);
    let host = one_host(name, port, if scheme == WEB[0] { 443 } else { 80 });
    // Whole: what is behind a percent sign may be what parts steps.
    let path = decoded(path);
    let mut steps = Vec::new();
    for step in path.split(['/', '\\']) {
        match step {
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
    let (name, port) = name_and_port(host);
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
    fn an_address_of_the_web_or_of_a_database_is_one_however_it_is_spelt() {
        let of = |text: &str| canonical(Path::new(text));
        let web = [
            ("https://h.example/u.csv", "https://h.example:0443/u.csv"),
            ("https://h.example/u.csv", "https://h.example:/u.csv"),
            ("https://h.example/u.csv", "http://H.EXAMPLE.:00080/u.csv"),
            ("https://h.example:8443/u.csv", "https://h.example.:8443/u.csv"),
            ("https://h.example:8443/u.csv", "https://ann:pw@h.example:0008443/./u.csv?v=2"),
            ("https://h.example/u.csv", "https://h.example/sub%2f..%2fu.csv"),
            ("https://h.example/u.csv", "https://h.example/sub/%2E%2e/%75.csv"),
            ("https://h.example/u.csv", "https://h.example/sub\\..\\u.csv"),
            ("https://[::1]/u.csv", "https://[0:0:0:0:0:0:0:1]:443/u.csv"),
            ("https://[2001:db8::a]:1/u.csv", "https://[2001:DB8:0::000A]:01/u.csv"),
            ("http://127.0.0.1:18480/u.csv", "http://127.1:18480/u.csv"),
            ("http://127.0.0.1:18480/u.csv", "http://[::ffff:127.0.0.1]:018480/u.csv"),
            ("http://127.0.0.1:18480/u.csv", "http://[::ffff:7f00:1]:18480/u.csv"),
            ("http://127.0.0.1/u.csv", "http://0x7f.0.0.1/u.csv"),
            ("http://127.0.0.1/u.csv", "http://0177.0.1./u.csv"),
            ("http://127.0.0.1/u.csv", "http://2130706433/u.csv"),
            #[cfg(feature = "s3")]
            ("https://xn--bcher-kva.example/u.csv", "https://BÜCHER.example/u.csv"),
            #[cfg(feature = "s3")]
            ("https://127.0.0.1/u.csv", "https://１２７.0.0.1/u.csv"),
        ];
        let databases = [
            ("postgresql://h/b#table t", "postgresql://h:05432/b#table t"),
            ("postgresql://h/b#table t", "postgres://ann:pw@H.:/%62#table t"),
            ("postgresql://h:1/b#table t", "postgresql://h.:01/b?sslmode=require#table t"),
            ("postgresql://[::1]/b#table t", "postgresql://[0::1]:5432/b#table t"),
            ("postgresql://127.0.0.1/b#table t", "postgresql://[::ffff:127.0.0.1]/b#table t"),
            ("postgresql://127.0.0.1,h:2/b#table t", "postgresql://127.1:5432,H:02/b#table t"),
            ("postgresql://h:2/b#table t", "postgresql:///?host=h&port=02&dbname=b#table t"),
            ("postgresql://h:2/b#table t", "postgresql://x:2/y?host=h&dbname=%62#table t"),
        ];
        for (one, other) in web.into_iter().chain(databases) {
            assert_eq!(of(other), of(one), "{other}");
        }
        for (one, other) in [
            ("https://h.example/u.csv", "https://h.example:1443/u.csv"),
            ("https://h.example/u.csv", "https://h.example:80/u.csv"),
            ("https://h.example/u.csv", "https://h.example/sub%252f..%252fu.csv"),
            ("http://127.0.0.1/u.csv", "http://127.0.0.2/u.csv"),
            ("http://127.0.0.1/u.csv", "http://127.0.0.1.example/u.csv"),
            ("http://[::1]/u.csv", "http://[::2]/u.csv"),
            ("postgresql://h/b#table t", "postgresql://h/B#table t"),
            ("postgresql://h/b#table t", "postgresql://h/b?dbname=c#table t"),
            ("postgresql://h/b#table t", "postgresql://h/b?port=1#table t"),
            ("postgresql://h:1,i:2/b#table t", "postgresql://h:2,i:1/b#table t"),
        ] {
            assert_ne!(of(other), of(one), "{other}");
        }
        let address = |text: &str| ipv4(text).map(|address| address.to_string());
        for (text, is) in
            [("1.2.3", "1.2.0.3"), ("1.0xffffff", "1.255.255.255"), ("4294967295", "255.255.255.255")]
        {
            assert_eq!(address(text).as_deref(), Some(is));
        }
        for none in ["", "1.", "256.1", "1.2.3.256", "1.2.3.4.5", "4294967296", "08", "+1", "h", "0xg"] {
            assert_eq!(address(none), None, "{none}");
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
