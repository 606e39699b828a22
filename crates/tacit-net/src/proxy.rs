//! A tunnel through an HTTP proxy: the method CONNECT of RFC 9110, section 9.3.6, with user and password as RFC 7617
//! has them.

use crate::error::printable;
use crate::{Error, Result, keys};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Longest head of an answer.
const LONGEST_HEAD: usize = 8 << 10;

/// An HTTP proxy: `HOST:PORT`, or `http://USER:PASSWORD@HOST:PORT`, in which each part may be left out but the host.
///
/// The password is never shown, by [`Debug`](fmt::Debug) and errors neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    text: Zeroizing<String>,
    /// The variable of the environment that named it.
    by: Option<&'static str>,
}

impl Proxy {
    /// The proxy that `text` names; whether it serves shows when it is used.
    pub fn new(text: &str) -> Self {
        Proxy { text: Zeroizing::new(text.to_owned()), by: None }
    }

    /// The proxy that the environment names for a connection to `target`, `HOST:PORT`: in `HTTPS_PROXY` or
    /// `https_proxy`, unless `NO_PROXY` or `no_proxy` has the target, or the target is this machine.
    pub fn from_environment(target: &str) -> Option<Self> {
        Self::from_variables(target, |name| std::env::var(name).ok())
    }

    fn from_variables(target: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, variable(name).filter(|value| !value.is_empty())?)))
        };
        let (by, text) = first(["HTTPS_PROXY", "https_proxy"])?;
        let (host, port) = target.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let is_here =
            host.parse::<IpAddr>().map_or(host == "localhost", |ip| ip.to_canonical().is_loopback());
        let excepted = first(["NO_PROXY", "no_proxy"]).is_some_and(|(_, list)| {
            list.split([',', ' ', '\t', '\r', '\n']).any(|one| is_excepted(one, &host, port))
        });
        (!is_here && !excepted).then(|| Proxy { text: Zeroizing::new(text), by: Some(by) })
    }

    /// User and password, if there are any, and where the proxy is, of `scheme://USER:PASSWORD@HOST:PORT/…`.
    fn parts(&self) -> (Option<&str>, &str) {
        let rest = self.text.split_once("://").map_or(&**self.text, |(_, rest)| rest);
        // What a path or a query has is no part of it: an @ there names no host.
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        authority.rsplit_once('@').map_or((None, authority), |(user, place)| (Some(user), place))
    }

    /// `HOST:PORT` of the proxy.
    pub(crate) fn address(&self) -> Result<String> {
        let unfit = |what: &str| Error::Address {
            address: self.to_string(),
            reason: format!("{what}; give HOST:PORT, or http://USER:PASSWORD@HOST:PORT"),
        };
        let scheme = self.text.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case("http")) {
            return Err(unfit("only http:// proxies are supported"));
        }
        let (_, place) = self.parts();
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port || scheme.is_none() { place.to_owned() } else { format!("{place}:80") };
        check(&address).map_err(|_| unfit("not the address of a proxy"))?;
        Ok(address)
    }

    /// The password of a text as `new` takes it, as it stands there; `None` where it has none. Of a text that is no
    /// address, all that may be one.
    pub fn password(text: &str) -> Option<&str> {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (_, password) = rest.rsplit_once('@')?.0.split_once(':')?;
        Some(password).filter(|password| !password.is_empty())
    }

    /// The line of a request that says who asks, with its end; empty where nobody is named.
    fn authorization(&self) -> Zeroizing<String> {
        let (Some(user), _) = self.parts() else { return Zeroizing::default() };
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let room = user.len() + 1 + password.len();
        let mut both = Zeroizing::new(Vec::with_capacity(room));
        both.extend(percent_decode_str(user).chain([b':']).chain(percent_decode_str(password)));
        Zeroizing::new(format!("Proxy-Authorization: Basic {}\r\n", keys::encode(&both).as_str()))
    }
}

/// Where it is, without user and password, and who named it. What is no address is not shown: it may be a password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, place) = self.parts();
        let is_place = check(place).is_ok() || check(&format!("{place}:80")).is_ok();
        f.write_str(&if is_place { crate::shown(place) } else { "[not shown]".to_owned() })?;
        self.by.map_or(Ok(()), |by| write!(f, " (from {by})"))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Whether an entry of `NO_PROXY` has the host: its name, a name that it ends in, its address, each with a port if it
/// is meant alone, a range of addresses such as `10.0.0.0/8`, or `*`.
fn is_excepted(entry: &str, host: &str, port: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(range) = entry.parse::<IpNet>() {
        return host.parse::<IpAddr>().is_ok_and(|ip| range.contains(&ip.to_canonical()));
    }
    if let (Ok(one), Ok(other)) = (entry.parse::<IpAddr>(), host.parse::<IpAddr>()) {
        return one.to_canonical() == other.to_canonical();
    }
    let entry = entry.to_ascii_lowercase();
    let is_address = entry.parse::<IpAddr>().is_ok();
    let (name, of_port) = match entry.rsplit_once(':') {
        Some((name, digits)) if !is_address && digits.parse::<u16>().is_ok() => {
            (name.to_owned(), Some(digits.to_owned()))
        }
        _ => (entry, None),
    };
    let name =
        name.trim_start_matches('[').trim_end_matches(']').trim_start_matches('*').trim_start_matches('.');
    // No address ends in another.
    let is_below = host.parse::<IpAddr>().is_err()
        && host.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
    let is_name = !name.is_empty() && (host == name || is_below);
    is_name && of_port.is_none_or(|digits| digits == port)
}

/// Why a connection failed, to the proxy or through it if there is one.
pub(crate) fn failed(proxy: Option<&Proxy>, error: &std::io::Error) -> String {
    let Some(proxy) = proxy else { return error.to_string() };
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("the proxy {proxy} did not answer in time"),
        _ => format!("the proxy {proxy}: {error}"),
    }
}

/// What a proxy said.
pub(crate) enum Answer {
    /// The tunnel is open.
    Open,
    /// It cannot reach the listener just now; why, safe to print.
    Later(String),
    /// It will not; why, safe to print.
    Never(String),
}

/// Refuses an address that is no `HOST:PORT` which a request's line can hold.
pub(crate) fn check(address: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    match address.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty()
                && port.parse::<u16>().is_ok()
                && address.chars().all(plain)
                && (!host.contains(':') || host.starts_with('[') && host.ends_with(']')) =>
        {
            Ok(())
        }
        _ => Err(Error::Address {
            address: crate::shown(address),
            reason: "give HOST:PORT, such as alice.example:7700".to_owned(),
        }),
    }
}

/// Asks the `proxy` at the other end of `stream` for a tunnel to `address`, until `deadline`.
///
/// Reads not a byte beyond the head of its answer: what follows is the listener's.
pub(crate) fn open(
    proxy: &Proxy,
    stream: &mut TcpStream,
    address: &str,
    deadline: Instant,
) -> std::io::Result<Answer> {
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left()))?;
    let who = proxy.authorization();
    let asked =
        Zeroizing::new(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{}\r\n", who.as_str()));
    stream.write_all(asked.as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD || Instant::now() >= deadline {
            let words = if who.is_empty() { &head[..] } else { &[] };
            return Ok(Answer::Later(format!("the proxy {proxy} did not answer: {}", printable(words))));
        }
        stream.set_read_timeout(Some(left()))?;
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Ok(Answer::Later(format!("the proxy {proxy} closed the connection"))),
            Ok(_) => head.extend_from_slice(&byte),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let status = line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
    // It may say our password again, in whatever form.
    let words = if who.is_empty() { line } else { status.unwrap_or_default() };
    let said = format!("the proxy {proxy} answered {}", printable(words));
    Ok(match status.and_then(<[u8]>::first) {
        _ if status == Some(b"407") && who.is_empty() => {
            Answer::Never(format!("{said}: it requires a user and a password"))
        }
        _ if status == Some(b"407") => {
            Answer::Never(format!("{said}: it does not accept the user and password"))
        }
        Some(b'2') => Answer::Open,
        Some(b'5') => Answer::Later(said),
        _ => Answer::Never(said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What `open` makes of a proxy that answers `said`, and what is left to read after it.
    fn answered(said: &'static [u8]) -> (std::io::Result<Answer>, Vec<u8>) {
        answered_as("p.test:3128", "", said)
    }

    fn answered_as(named: &str, who: &str, said: &'static [u8]) -> (std::io::Result<Answer>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                asked.extend_from_slice(&byte);
            }
            stream.write_all(said).unwrap();
            asked
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let answer = open(&Proxy::new(named), &mut stream, "alice.test:7700", deadline);
        let asked = proxy.join().unwrap();
        let wanted = format!("CONNECT alice.test:7700 HTTP/1.1\r\nHost: alice.test:7700\r\n{who}\r\n");
        assert_eq!(String::from_utf8(asked).unwrap(), wanted);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        (answer, rest)
    }

    #[test]
    fn a_tunnel_is_open_when_the_proxy_says_so_and_nothing_of_it_is_read() {
        let (answer, rest) = answered(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\ntunnel");
        assert!(matches!(answer, Ok(Answer::Open)) && rest == b"tunnel", "{rest:?}");
        let (answer, _) = answered(b"HTTP/1.0 407 Who are you\x1b[2J\r\n\r\n");
        assert!(matches!(answer, Ok(Answer::Never(said)) if said.contains("407") && !said.contains('\x1b')));
        assert!(matches!(answered(b"HTTP/1.1 503 Not now\r\n\r\n").0, Ok(Answer::Later(_))));
        assert!(matches!(answered(b"SSH-2.0-x\r\n\r\n").0, Ok(Answer::Never(_))));
        assert!(matches!(answered(b"HTTP/1.1 200").0, Ok(Answer::Later(_))));
    }

    #[test]
    fn a_user_and_a_password_are_sent_and_never_shown() {
        // The example of RFC 7617, section 2, and one that a URL has to write otherwise.
        let who = "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        for named in ["http://Aladdin:open%20sesame@p.test:3128", "Aladdin:open sesame@p.test:3128"] {
            let (answer, _) = answered_as(named, who, b"HTTP/1.1 200 yes\r\n\r\n");
            assert!(matches!(answer, Ok(Answer::Open)));
            // One that says again what it was told.
            let (answer, _) =
                answered_as(named, who, b"HTTP/1.1 407 QWxhZGRpbjpvcGVuIHNlc2FtZQ== sesame\r\n\r\n");
            let Ok(Answer::Never(why)) = answer else { panic!("taken") };
            assert!(why.contains("p.test:3128") && why.contains("does not accept the user"), "{why}");
            let proxy = Proxy::new(named);
            for shown in [why, format!("{proxy:?} {proxy}")] {
                assert!(
                    !shown.contains("sesame") && !shown.contains("Aladdin") && !shown.contains("QWx"),
                    "{shown}"
                );
            }
        }
        let (answer, _) = answered(b"HTTP/1.1 407 who\r\n\r\n");
        assert!(matches!(answer, Ok(Answer::Never(why)) if why.contains("requires a user and a password")));
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(keys::encode(text.as_bytes()).as_str(), encoded);
        }
        assert_eq!(Proxy::password("http://a:b@c:1"), Some("b"));
        assert_eq!((Proxy::password("c:1"), Proxy::password("a@c:1")), (None, None));
    }

    #[test]
    fn a_proxy_is_named_in_either_form() {
        let address = |text: &str| Proxy::new(text).address();
        for text in ["p.test:3128", "http://p.test:3128/", "http://u:p@p.test:3128", "u:p:q@p.test:3128"] {
            assert_eq!(address(text).unwrap(), "p.test:3128", "{text}");
        }
        assert_eq!(address("http://p.test").unwrap(), "p.test:80");
        // An @ behind the place names no other place, which would get the password.
        for text in
            ["http://u:p@p.test:1/x@y.test", "http://u:p@p.test:1?x=@y.test", "HTTP://u:p@p.test:1#@y"]
        {
            assert_eq!(address(text).unwrap(), "p.test:1", "{text}");
        }
        let odd = ["http://u:secret@p test:1", "http://u:secret:1", "u:secret:1", "http://u:sec/secret@p:1"];
        for text in ["p.test", "https://p.test:1", "socks5://p.test:1", ""].into_iter().chain(odd) {
            let error = address(text).unwrap_err().to_string();
            assert!(error.contains("http://USER:PASSWORD@HOST:PORT") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_environment_names_a_proxy_and_exceptions() {
        let found = |target: &str, none: &str| {
            Proxy::from_variables(target, |name| match name {
                "HTTPS_PROXY" => Some("http://p.test:3128".to_owned()),
                "no_proxy" => Some(none.to_owned()),
                _ => None,
            })
        };
        let proxy = found("alice.test:7700", "").unwrap();
        assert_eq!(proxy.to_string(), "p.test:3128 (from HTTPS_PROXY)");
        for (target, none, is_used) in [
            ("localhost:1", "", false),
            ("127.0.0.1:1", "", false),
            ("[::1]:1", "", false),
            ("alice.test:1", "*", false),
            ("alice.test:1", "other.test, alice.test", false),
            ("Alice.Test:1", "alice.test", false),
            ("in.alice.test:1", ".alice.test", false),
            ("in.alice.test:1", "alice.test", false),
            ("malice.test:1", "alice.test", true),
            ("alice.test:1", "alice.test:1", false),
            ("alice.test:2", "alice.test:1", true),
            ("192.0.2.1:1", "192.0.2.1", false),
            ("[2001:db8::1]:1", "2001:db8::1", false),
            ("192.0.2.1:1", "192.0.2.2", true),
            ("10.1.2.3:1", "3", true),
            ("10.1.2.3:1", "192.0.2.0/24,10.0.0.0/8", false),
            ("11.1.2.3:1", "10.0.0.0/8", true),
            ("[2001:db8::5]:1", "2001:db8:0:0::5", false),
            ("[::ffff:10.9.9.9]:1", "10.9.9.9", false),
            ("10.9.9.9:1", "a.test,\t10.9.9.9\n", false),
            ("[2001:db8::1]:1", "2001:db8::/32", false),
            ("alice.test:1", "0.0.0.0/0", true),
            ("in.alice.test:1", "*.alice.test other.test", false),
        ] {
            assert_eq!(found(target, none).is_some(), is_used, "{target} {none}");
        }
        assert!(Proxy::from_variables("alice.test:1", |_| None).is_none());
        assert!(Proxy::from_variables("alice.test:1", |_| Some(String::new())).is_none());
    }

    #[test]
    fn an_address_cannot_carry_a_second_line() {
        for fine in ["alice.example:7700", "[::1]:7700", "192.0.2.1:1"] {
            check(fine).unwrap();
        }
        for odd in ["alice", ":1", "a:b", "a:1\r\nX: y:1", "a b:1", "a:70000"] {
            assert!(check(odd).is_err(), "{odd}");
        }
    }
}
