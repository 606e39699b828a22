//! Parsers of this crate that are not public, as functions of bytes that panic if an invariant of
//! what was read is violated: for `tacit-fuzz`.

use crate::handshake::{self, Agreement};
use crate::link::{Arrival, Interest, Link};
use crate::{
    Channel, Error, Identity, Limits, Party, PublicKeys, Result, SessionId, invite, meeting, proxy,
    rendezvous,
};
use std::io::{IoSlice, IoSliceMut, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A link whose peer sends these bytes in pieces and hangs up; everything written to it is discarded.
struct Said {
    bytes: Vec<u8>,
    at: usize,
    most: usize,
}

impl Link for Said {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        Ok(slices.iter().map(|slice| slice.len()).sum())
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        let mut left = self.most.min(self.bytes.len() - self.at);
        if left == 0 {
            return Ok(Arrival::End);
        }
        let before = self.at;
        for slice in slices {
            let now = left.min(slice.len());
            slice[..now].copy_from_slice(&self.bytes[self.at..self.at + now]);
            (self.at, left) = (self.at + now, left - now);
        }
        Ok(Arrival::Bytes(self.at - before))
    }

    fn wait(&mut self, _: Interest, _: Duration) -> Result<bool> {
        Ok(true)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A channel on which the peer says `bytes`, at most `most` at a time, and leaves.
pub fn hearing(bytes: &[u8], most: usize) -> Channel {
    let link = Said { bytes: bytes.to_vec(), at: 0, most: most.max(1) };
    let limits = Limits { read: Duration::from_secs(1), idle: Duration::from_secs(1), ..Limits::default() };
    Channel::with_limits(Box::new(link), Party::First, SessionId([7; 32]), limits)
}

/// A greeting as it comes from a stranger, with its frame; and its terms, which are written as they are read.
pub fn greeting(bytes: &[u8]) {
    let ours = Agreement::new("psi", "receiver", "sender").with("reveal", "rows").with("version", 3);
    let _ = handshake::hear(&mut hearing(bytes, 1 << 10), &ours);
    let _ = handshake::open(&mut hearing(bytes, 7), &ours, b"");
    terms(bytes);
}

/// The terms of a greeting, behind what every greeting begins with.
pub fn terms(bytes: &[u8]) {
    let Ok(agreement) = Agreement::decode(bytes) else { return };
    let nonce = bytes[..32].try_into().expect("a nonce was read");
    // A greeting has room for fewer bytes than are given here.
    if let Ok(written) = agreement.encode(handshake::RELEASE, nonce) {
        assert!(written.ends_with(bytes), "terms are written otherwise than they were read");
    }
    let ours = Agreement::new("psi", "receiver", "sender").with("reveal", "rows");
    let differs = ours.check(&agreement).err();
    assert!(differs.is_some() || agreement.parameters() == ours.parameters());
    if let Some(Error::Mismatch { differences }) = &differs {
        assert!(!differences.is_empty());
    }
    let _ = differs.map(|error| assert!(!error.to_string().contains('\n'), "an error of two lines"));
}

/// A public key file: its first line is written as it was read, and what it says of successors is signed.
pub fn public_keys(text: &str) {
    let Ok(keys) = PublicKeys::parse(text) else { return };
    let line = keys.first().line("");
    assert!(text.split_whitespace().nth(1) == line.split(' ').nth(1), "a key is written otherwise than read");
    for (key, _) in keys.all() {
        assert!(keys.contains(&key));
    }
    assert!(PublicKeys::parse(text).is_ok_and(|again| again == keys));
}

fn two_ends() -> Option<(TcpStream, TcpStream)> {
    let (ours, theirs) = UnixStream::pair().ok()?;
    Some((TcpStream::from(OwnedFd::from(ours)), TcpStream::from(OwnedFd::from(theirs))))
}

/// One end of a connection on which the other side says `bytes` and leaves.
fn told(bytes: &[u8]) -> Option<(TcpStream, TcpStream)> {
    let (ours, mut theirs) = two_ends()?;
    // What a socket holds is more than any of these protocols says.
    theirs.write_all(&bytes[..bytes.len().min(1 << 15)]).ok()?;
    theirs.shutdown(Shutdown::Write).ok()?;
    Some((ours, theirs))
}

/// What a proxy answers.
pub fn proxy(bytes: &[u8]) {
    let Some((mut ours, _theirs)) = told(bytes) else { return };
    let named = proxy::Proxy::new("proxy.example:3128");
    match proxy::open(&named, &mut ours, "alice.example:7700", Instant::now() + Duration::from_secs(1)) {
        Ok(proxy::Answer::Open) => assert!(bytes.starts_with(b"HTTP/1.") && bytes.get(9) == Some(&b'2')),
        Ok(proxy::Answer::Later(why) | proxy::Answer::Never(why)) => assert!(!why.contains('\n')),
        Err(_) => {}
    }
}

/// What a relay says to who calls it.
pub fn relay(bytes: &[u8]) {
    let Some((mut ours, _theirs)) = told(bytes) else { return };
    if let Err(error) = meeting::Route::fuzzed(&somebody(), &mut ours) {
        assert!(!error.to_string().contains('\n'), "an error of two lines");
    }
}

/// What a caller says to a relay: without a signature over the relay's challenge it is refused.
pub fn call(bytes: &[u8]) {
    thread_local! {
        static DOOR: Option<TcpListener> = TcpListener::bind("127.0.0.1:0").ok();
    }
    DOOR.with(|door| {
        let Some(door) = door else { return };
        let Ok(mut theirs) = door.local_addr().and_then(TcpStream::connect) else { return };
        // Ports are few: a connection that is reset leaves its own at once.
        let _ = rustix::net::sockopt::set_socket_linger(&theirs, Some(Duration::ZERO));
        let Ok((ours, _)) = door.accept() else { return };
        let _ = rustix::net::sockopt::set_socket_linger(&ours, Some(Duration::ZERO));
        let said = theirs.write_all(&bytes[..bytes.len().min(1 << 15)]);
        if said.and_then(|()| theirs.shutdown(Shutdown::Write)).is_ok() {
            assert!(!rendezvous::fuzzed(ours), "a call passes that nobody has signed");
        }
    });
}

/// What the other side of an invitation says: as it comes, and sealed by somebody who has the code.
pub fn invitation(bytes: &[u8]) {
    let Some(introduced) = invite::fuzzed(bytes) else { return };
    assert_eq!(&introduced.key.to_bytes(), &bytes[..32], "a key that was not sent");
    assert!(!introduced.comment.contains('\n'));
}

fn somebody() -> Identity {
    Identity::of_secret("tacit 1 fuzzing", &[7; 32]).expect("a seed is a key")
}

/// Whole messages of honest parties, by the names of the functions above.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let ours = Agreement::new("psi", "sender", "receiver").with("reveal", "rows").with("version", 3);
    let hello = ours.encode(handshake::RELEASE, &[5; 32]).unwrap_or_default();
    let older = ours.encode("0.0.9", &[5; 32]).unwrap_or_default();
    let from = handshake::preamble(handshake::RELEASE, handshake::OPENING).len();
    let framed = |hello: &[u8]| [&[0xa7, hello.len() as u8, 0, 0][..], hello].concat();
    vec![
        ("greeting", framed(&hello)),
        ("greeting", framed(&older)),
        ("greeting", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec()),
        ("greeting", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("terms", hello[from..].to_vec()),
        ("invitation", invite::said(&somebody(), "alice of example").unwrap_or_default()),
    ]
}
