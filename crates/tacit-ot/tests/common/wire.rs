//! Records what two parties write, for the tests of digests.

use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tacit_net::link::{Arrival, Interest};
use tacit_net::{Channel, Link, LinkModel, Party, SessionId, memory};
use tacit_ot::Result;

/// Keeps all that is written to a link.
struct Recorder {
    inner: Box<dyn Link>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Link for Recorder {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
        let n = self.inner.try_write(slices)?;
        let mut written = self.written.lock().unwrap();
        written.extend(slices.iter().flat_map(|slice| slice.iter()).take(n));
        Ok(n)
    }
    fn try_flush(&mut self) -> tacit_net::Result<bool> {
        self.inner.try_flush()
    }
    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
        self.inner.try_read(slices)
    }
    fn wait(&mut self, interest: Interest, timeout: Duration) -> tacit_net::Result<bool> {
        self.inner.wait(interest, timeout)
    }
    fn wire_bytes(&self) -> (u64, u64) {
        self.inner.wire_bytes()
    }
    fn finish(&mut self) {
        self.inner.finish();
    }
}

/// The payloads of the data frames.
fn payload(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let [kind, a, b, c, rest @ ..] = bytes {
        let (frame, after) = rest.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        if *kind == 0xD7 {
            out.extend_from_slice(frame);
        }
        bytes = after;
    }
    out
}

/// Runs a protocol and describes it in one line: bytes each way, digest of the wire and of the outputs.
pub fn line(
    name: &str,
    first: impl FnOnce(&mut Channel) -> Result<Vec<u8>> + Send,
    second: impl FnOnce(&mut Channel) -> Result<Vec<u8>> + Send,
) -> String {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let written = [0, 1].map(|_| Arc::new(Mutex::new(Vec::new())));
    let party = |inner, party, w: &Arc<Mutex<Vec<u8>>>| {
        Channel::new(Box::new(Recorder { inner, written: w.clone() }), party, SessionId([3; 32]))
    };
    let mut one = party(a, Party::First, &written[0]);
    let mut two = party(b, Party::Second, &written[1]);
    let outputs = std::thread::scope(|scope| {
        let other = scope.spawn(move || second(&mut two).unwrap());
        let mine = first(&mut one).unwrap();
        drop(one);
        [mine, other.join().unwrap()]
    });
    let wire = written.map(|w| payload(&w.lock().unwrap()));
    let mut hasher = blake3::Hasher::new();
    for part in wire.iter().chain(&outputs) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    format!("{name} {}+{} {}\n", wire[0].len(), wire[1].len(), hasher.finalize().to_hex())
}
