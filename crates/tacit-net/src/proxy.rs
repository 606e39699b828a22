//! A tunnel through an HTTP proxy: the method CONNECT of RFC 9110, section 9.3.6.

use crate::error::printable;
use crate::{Error, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest head of an answer.
const LONGEST_HEAD: usize = 8 << 10;

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
            if !host.is_empty() && port.parse::<u16>().is_ok() && address.chars().all(plain) =>
        {
            Ok(())
        }
        _ => Err(Error::Address {
            address: crate::shown(address),
            reason: "give HOST:PORT, such as alice.example:7700".to_owned(),
        }),
    }
}

/// Asks the proxy at the other end of `stream` for a tunnel to `address`, until `deadline`.
///
/// Reads not a byte beyond the head of its answer: what follows is the listener's.
pub(crate) fn open(stream: &mut TcpStream, address: &str, deadline: Instant) -> std::io::Result<Answer> {
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left()))?;
    stream.write_all(format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD || Instant::now() >= deadline {
            return Ok(Answer::Later(format!("the proxy gave no answer: {}", printable(&head))));
        }
        stream.set_read_timeout(Some(left()))?;
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Ok(Answer::Later("the proxy closed the connection".to_owned())),
            Ok(_) => head.extend_from_slice(&byte),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let said = format!("the proxy says {}", printable(line));
    Ok(match line.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2)) {
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
        let answer = open(&mut stream, "alice.test:7700", deadline);
        let asked = proxy.join().unwrap();
        assert_eq!(asked, b"CONNECT alice.test:7700 HTTP/1.1\r\nHost: alice.test:7700\r\n\r\n");
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
    fn an_address_cannot_carry_a_second_line() {
        for fine in ["alice.example:7700", "[::1]:7700", "192.0.2.1:1"] {
            check(fine).unwrap();
        }
        for odd in ["alice", ":1", "a:b", "a:1\r\nX: y:1", "a b:1", "a:70000"] {
            assert!(check(odd).is_err(), "{odd}");
        }
    }
}
