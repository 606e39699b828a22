//! How a database is reached: its address, the environment, the service file and the password file, as libpq
//! has them.
//!
//! What the address says wins over the service (`service=` or `PGSERVICE`, in `~/.pg_service.conf`), that
//! over the environment (`PGHOST`, `PGUSER`, `PGPASSWORD` …), and a password that none of them gives is
//! looked for in `~/.pgpass`. A server beyond this machine is spoken to under TLS alone, its certificate and
//! name verified, whatever `sslmode` says; on this machine TLS is used where `sslmode` asks for it.

use crate::profile;
use postgres::Config;
use postgres::config::{SslMode, TargetSessionAttrs};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tacit_crypto::near::one_of;
use zeroize::Zeroizing;

/// The settings that are known, and the variable of each.
const KNOWN: [(&str, &str); 14] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("dbname", "PGDATABASE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("service", "PGSERVICE"),
];

/// Where services are named for the whole machine, unless `PGSYSCONFDIR` says where.
const SYSTEM: &str = "/etc/postgresql-common";
/// Where a server on this machine has its socket.
const SOCKETS: &str = "/var/run/postgresql";
const PORT: &str = "5432";

/// How to reach a database.
pub(super) struct Settings {
    pub(super) config: Config,
    /// The file of the authorities that are trusted, or the system's; nothing without TLS.
    pub(super) tls: Option<Option<PathBuf>>,
}

type Values = BTreeMap<String, Zeroizing<String>>;

impl Settings {
    /// Of an address without its query. Errors say what is wrong, and never a value.
    pub(super) fn of(address: &str) -> Result<Self, String> {
        Self::within(address, &profile::variable)
    }

    fn within(address: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut values = of_address(address)?;
        let service = values.get("service").map(|name| name.to_string()).or_else(|| variable("PGSERVICE"));
        if let Some(service) = service {
            for (name, value) in of_service(&service, variable)? {
                values.entry(known(&name)?.to_owned()).or_insert(Zeroizing::new(value));
            }
        }
        for (name, of_it) in KNOWN {
            if let (false, Some(value)) = (values.contains_key(name), variable(of_it)) {
                values.insert(name.to_owned(), Zeroizing::new(value));
            }
        }
        let get = |name: &str| values.get(name).map(|value| value.as_str()).filter(|value| !value.is_empty());

        let mut config = Config::new();
        let hosts = match (get("host"), get("hostaddr")) {
            (Some(hosts), _) => hosts,
            (None, Some(_)) => "",
            (None, None) if Path::new(SOCKETS).is_dir() => SOCKETS,
            (None, None) => "localhost",
        };
        let hosts: Vec<&str> = hosts.split(',').filter(|host| !host.is_empty()).collect();
        hosts.iter().for_each(|host| _ = config.host(host));
        let mut addresses = Vec::new();
        for address in get("hostaddr").into_iter().flat_map(|list| list.split(',')) {
            let address: IpAddr = address.parse().map_err(|_| "`hostaddr` is not a valid address")?;
            config.hostaddr(address);
            addresses.push(address);
        }
        let ports = get("port").unwrap_or(PORT);
        for port in ports.split(',') {
            config.port(port.parse().map_err(|_| "the port is not a number up to 65535")?);
        }
        let own = variable("USER").or_else(|| variable("LOGNAME"));
        let user = get("user")
            .or(own.as_deref())
            .ok_or("no user is named; write postgresql://USER@HOST/DATABASE")?;
        let database = get("dbname").unwrap_or(user);
        config.user(user).dbname(database);
        config.application_name(get("application_name").unwrap_or("tacit"));
        if let Some(options) = get("options") {
            config.options(options);
        }
        let seconds = get("connect_timeout")
            .map_or(Ok(30), str::parse)
            .map_err(|_| "`connect_timeout` is not a number")?;
        config.connect_timeout(Duration::from_secs(seconds));
        config.keepalives_idle(Duration::from_secs(60)).keepalives_interval(Duration::from_secs(15));
        config.target_session_attrs(match get("target_session_attrs").unwrap_or("any") {
            "any" | "prefer-standby" => TargetSessionAttrs::Any,
            "read-write" | "primary" => TargetSessionAttrs::ReadWrite,
            "read-only" | "standby" => TargetSessionAttrs::ReadOnly,
            _ => return Err("`target_session_attrs` has a value that is not known".into()),
        });
        let is_here = match addresses.as_slice() {
            [] => hosts.iter().all(|host| is_here(host)),
            some => some.iter().all(IpAddr::is_loopback),
        };
        let tls = of_tls(get("sslmode"), get("sslrootcert"), is_here, variable)?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        let first = |list: &str| list.split(',').next().unwrap_or("").to_owned();
        let kept = match get("password") {
            Some(_) => None,
            None => {
                let host = hosts.first().map_or_else(|| addresses[0].to_string(), |host| (*host).to_owned());
                let host = if host.starts_with('/') { "localhost".to_owned() } else { host };
                of_password_file(get("passfile"), [&host, &first(ports), database, user], variable)?
            }
        };
        if let Some(password) = get("password").or(kept.as_ref().map(|kept| kept.as_str())) {
            config.password(password);
        }
        Ok(Settings { config, tls })
    }
}

fn known(name: &str) -> Result<&'static str, String> {
    let found = KNOWN.iter().find(|(known, _)| *known == name);
    found.map(|(known, _)| *known).ok_or_else(|| {
        let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        format!("there is no setting `{name}`; {}", one_of(&name, KNOWN.map(|(known, _)| known)))
    })
}

/// `[USER[:PASSWORD]@][HOST[:PORT],…][/DATABASE][?NAME=VALUE&…]` behind the scheme, percent-encoded.
fn of_address(address: &str) -> Result<Values, String> {
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    let (rest, more) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let mut values = Values::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            values.insert(name.to_owned(), decoded(value)?);
        }
        Ok::<(), String>(())
    };
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    put("user", user)?;
    put("password", password)?;
    put("dbname", database)?;
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',').filter(|host| !host.is_empty()) {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(name);
        ports.push(if port.is_empty() { PORT } else { port });
    }
    put("host", &names.join(","))?;
    if ports.iter().any(|port| *port != PORT) {
        put("port", &ports.join(","))?;
    }
    for pair in more.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("an option of the address has no value")?;
        let name = known(name)?;
        put(name, value)?;
    }
    Ok(values)
}

fn decoded(text: &str) -> Result<Zeroizing<String>, String> {
    if !text.contains('%') {
        return Ok(Zeroizing::new(text.to_owned()));
    }
    let wrong = || "the address has a % that no two hex digits follow; write % itself as %25".to_owned();
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or("").as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "the address is not UTF-8 when decoded")?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// The settings of a service, out of the first file that has it.
fn of_service(
    service: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, String> {
    let own = variable("PGSERVICEFILE")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&variable("HOME")?).join(".pg_service.conf")));
    let folder = variable("PGSYSCONFDIR").unwrap_or_else(|| SYSTEM.into());
    let files = own.into_iter().chain([Path::new(&folder).join("pg_service.conf")]);
    let mut texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    let found = texts.find_map(|text| profile::section(&text, service));
    found.ok_or_else(|| "the named service is not in any pg_service.conf".into())
}

fn is_here(host: &str) -> bool {
    host.starts_with('/')
        || host == "localhost"
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn of_tls(
    mode: Option<&str>,
    roots: Option<&str>,
    is_here: bool,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Option<PathBuf>>, String> {
    let wanted = match mode {
        Some("disable" | "allow") if !is_here => {
            return Err("connections to other machines always use TLS; leave `sslmode` out".into());
        }
        None | Some("disable" | "allow" | "prefer") => false,
        Some("require" | "verify-ca" | "verify-full") => true,
        Some(_) => return Err("`sslmode` has a value that is not known".into()),
    };
    if is_here && !wanted {
        return Ok(None);
    }
    Ok(Some(match roots {
        Some("system") => None,
        Some(file) => Some(file.into()),
        None => variable("HOME")
            .map(|home| Path::new(&home).join(".postgresql/root.crt"))
            .filter(|file| file.is_file()),
    }))
}

/// The password for a host, port, database and user.
fn of_password_file(
    named: Option<&str>,
    wanted: [&str; 4],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Zeroizing<String>>, String> {
    let usual = || Some(Path::new(&variable("HOME")?).join(".pgpass"));
    let Some(file) = named.map(PathBuf::from).or_else(usual) else { return Ok(None) };
    let Ok(about) = std::fs::metadata(&file) else { return Ok(None) };
    if !about.is_file() {
        return Ok(None);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(format!("the password file {} can be read by others; chmod 600 it", file.display()));
        }
    }
    let text = std::fs::read_to_string(&file).map(Zeroizing::new);
    let text =
        text.map_err(|error| format!("the password file {} cannot be read: {error}", file.display()))?;
    Ok(password(&text, wanted))
}

/// The password of the first line `HOST:PORT:DATABASE:USER:PASSWORD` that fits, where `*` fits all, and a
/// backslash stands before a colon or a backslash of a value.
fn password(text: &str, wanted: [&str; 4]) -> Option<Zeroizing<String>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [of @ .., password] = fields.as_slice() else { return None };
        let fits = of.len() == 4
            && of.iter().zip(wanted).all(|(field, value)| field.as_ref() == "*" || field.as_ref() == value);
        fits.then(|| Zeroizing::new(password.to_string()))
    })
}

/// Five fields at most: of a password, a colon is no end.
fn fields(line: &str) -> Vec<Cow<'_, str>> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        let at = fields.len() - 1;
        match sign {
            '\\' => fields[at].extend(signs.next()),
            ':' if at < 4 => fields.push(String::new()),
            other => fields[at].push(other),
        }
    }
    fields.into_iter().map(Cow::Owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(address: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::within(address, &get)
    }

    fn fault(address: &str) -> String {
        settings(address, &[("USER", "ann")]).err().expect("a fault")
    }

    #[test]
    fn an_address_wins_over_the_environment() {
        let variables =
            [("PGUSER", "bob"), ("PGPASSWORD", "hunter2"), ("PGPORT", "6000"), ("PGDATABASE", "x")];
        let of = settings("postgresql://ann:p%40ss@127.0.0.1:5433/crm", &variables).unwrap().config;
        assert_eq!((of.get_user(), of.get_password()), (Some("ann"), Some(b"p@ss".as_slice())));
        assert_eq!((of.get_dbname(), of.get_ports()), (Some("crm"), [5433].as_slice()));
        let of = settings("postgresql://localhost", &variables).unwrap().config;
        assert_eq!((of.get_user(), of.get_password()), (Some("bob"), Some(b"hunter2".as_slice())));
        assert_eq!((of.get_dbname(), of.get_ports()), (Some("x"), [6000].as_slice()));
        let of = settings("postgresql://?host=/tmp&user=a@b&connect_timeout=3", &[]).unwrap().config;
        assert_eq!((of.get_user(), of.get_connect_timeout()), (Some("a@b"), Some(&Duration::from_secs(3))));
    }

    #[test]
    fn beyond_this_machine_there_is_tls_or_nothing() {
        let tls = |address| settings(address, &[("USER", "ann")]).unwrap().tls.is_some();
        for here in [
            "postgresql://localhost",
            "postgresql://[::1]/x",
            "postgresql://?host=/run/x",
            "postgresql://h/?hostaddr=127.0.0.1",
        ] {
            assert!(!tls(here), "{here}");
        }
        for safe in [
            "postgresql://db.example",
            "postgresql://10.0.0.1/x?sslmode=prefer",
            "postgresql://localhost,db.example/",
            "postgresql://localhost/?sslmode=require",
            "postgresql://localhost/?hostaddr=10.0.0.1",
        ] {
            assert!(tls(safe), "{safe}");
        }
        assert!(fault("postgresql://db.example/?sslmode=disable").contains("always use TLS"));
        assert!(fault("postgresql://db.example/?sslmode=maybe").contains("sslmode"));
    }

    #[test]
    fn faults_name_no_value() {
        for address in [
            "postgresql://ann:hunter2%@h/x",
            "postgresql://ann:hunter2%zz@h/x",
            "postgresql://ann:hunter2@h:port/x",
            "postgresql://ann:hunter2@h/x?sslpassword=hunter2",
            "postgresql://ann:hunter2@h/x?hunter2",
            "postgresql://ann@h/x?connect_timeout=hunter2",
            "postgresql://ann@h/x?hostaddr=hunter2",
        ] {
            assert!(!fault(address).contains("hunter2"), "{}", fault(address));
        }
    }

    #[test]
    fn a_service_and_a_password_file_are_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("services"), "[crm]\nhost=127.0.0.1\nport=5999\nuser=carl\ndbname=crm\n").unwrap();
        std::fs::write(at("pass"), "# none\nother:*:*:*:no\n127.0.0.1:5999:*:carl:a\\:b:c\n").unwrap();
        let allow =
            |mode| std::fs::set_permissions(at("pass"), std::fs::Permissions::from_mode(mode)).unwrap();
        let (services, pass) = (at("services"), at("pass"));
        let variables =
            [("PGSERVICEFILE", services.as_str()), ("PGPASSFILE", pass.as_str()), ("PGUSER", "no")];
        allow(0o600);
        let of = settings("postgresql://?service=crm", &variables).unwrap().config;
        assert_eq!((of.get_user(), of.get_password()), (Some("carl"), Some(b"a:b:c".as_slice())));
        assert_eq!(of.get_ports(), [5999]);
        allow(0o644);
        assert!(settings("postgresql://?service=crm", &variables).err().unwrap().contains("chmod 600"));
        assert!(settings("postgresql://?service=none", &variables).is_err());
    }
}
