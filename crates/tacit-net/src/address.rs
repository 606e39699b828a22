//! Addresses, `HOST:PORT`: their form is checked at once; a name is looked up until it is found or time is
//! over.

use crate::{Error, Result};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest wait for one answer of the name service.
const LOOK_UP: Duration = Duration::from_secs(10);
/// Shortest and longest pause between two look-ups.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The addresses that `address` stands for, none of them empty.
///
/// A name is looked up at least once, and again until `patience` is over; `failed` hears of each failure.
/// `Error::Address` when the form is wrong, `Error::Unresolved` when the name was not found.
pub(crate) fn resolve(
    address: &str,
    patience: Duration,
    failed: &mut dyn FnMut(&str),
) -> Result<Vec<SocketAddr>> {
    if let Ok(found) = address.parse() {
        return Ok(vec![found]);
    }
    let (host, port) = split(address)?;
    let start = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let reason = match look_up(host, port, left.clamp(Duration::from_secs(1), LOOK_UP)) {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(wrong(address, "not an IPv4 address; it has four numbers from 0 to 255"));
        }
        if start.elapsed() + pause >= patience {
            return Err(Error::Unresolved { address: address.to_owned(), after: patience, reason });
        }
        failed(&reason);
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Checks the form of an address, `HOST:PORT`, and looks nothing up.
pub fn address_of(address: &str) -> Result<()> {
    if address.parse::<SocketAddr>().is_ok() { Ok(()) } else { split(address).map(|_| ()) }
}

/// Host and port of an address whose form is right.
fn split(address: &str) -> Result<(&str, u16)> {
    let form = "give HOST:PORT, such as 127.0.0.1:7700, or 0.0.0.0:7710 for a relay";
    let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong(address, form))?;
    let port = port.parse().map_err(|_| wrong(address, "the port is a number from 0 to 65535"))?;
    if host.contains([':', '[', ']']) {
        return Err(wrong(address, "not an IPv6 address; write it in brackets, such as [::1]:7000"));
    }
    // Names beyond ASCII and underscores are the name service's to judge.
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if host.is_empty() || host.len() > 253 || !host.chars().all(plain) {
        return Err(wrong(address, form));
    }
    Ok((host, port))
}

fn wrong(address: &str, reason: &str) -> Error {
    Error::Address { address: address.to_owned(), reason: reason.to_owned() }
}

/// Asks the name service once. It may take longer than anybody waits, so a thread of its own asks.
fn look_up(host: &str, port: u16, patience: Duration) -> std::result::Result<Vec<SocketAddr>, String> {
    let (answer, answered) = mpsc::channel();
    let host = host.to_owned();
    let asking = std::thread::Builder::new().name("tacit-name".to_owned()).spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // Nobody waits any more when it took too long.
        let _ = answer.send(found);
    });
    asking.map_err(|error| error.to_string())?;
    match answered.recv_timeout(patience) {
        Ok(Ok(found)) if found.is_empty() => Err("the name has no address".to_owned()),
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the name service did not answer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_checked_before_anything_is_looked_up() {
        let start = Instant::now();
        for text in [
            "nonsense",
            ":7000",
            "host:",
            "host:65536",
            "host:-1",
            "[::1",
            "[::1]",
            "::1:7000",
            "a b:1",
            "a\n:1",
            "300.1.1.1:7000",
            "host:http",
            "http://host:80",
            "ho[st:1",
            &format!("{}:1", "a".repeat(254)),
        ] {
            let error = resolve(text, Duration::from_secs(60), &mut |_| ()).unwrap_err();
            assert!(matches!(error, Error::Address { .. }), "{text}: {error}");
        }
        assert!(start.elapsed() < Duration::from_secs(20));
        for (text, found) in [("127.0.0.1:7", "127.0.0.1:7"), ("[::1]:7", "[::1]:7")] {
            let expected: Vec<SocketAddr> = vec![found.parse().unwrap()];
            assert_eq!(resolve(text, Duration::ZERO, &mut |_| ()).unwrap(), expected);
        }
        let found = resolve("localhost:7", Duration::ZERO, &mut |_| ()).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 7), "{found:?}");
    }

    #[test]
    fn a_name_that_is_not_found_is_tried_again_until_time_is_over() {
        // RFC 6761: names under `invalid` never exist.
        let start = Instant::now();
        let mut tries = 0;
        let error =
            resolve("no-such-host.invalid:7", Duration::from_secs(2), &mut |_| tries += 1).unwrap_err();
        assert!(matches!(error, Error::Unresolved { .. }) && error.is_peer_fault(), "{error}");
        assert!(tries >= 1 && start.elapsed() < Duration::from_secs(15), "{tries} {:?}", start.elapsed());
    }
}
