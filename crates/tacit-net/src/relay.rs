//! Joins two links: what comes from one goes to the other, whatever it means.
//!
//! One thread for both directions. Of each direction [`BUFFER`] bytes at most are held, and an end that takes
//! nothing stops the other from being read: so a relay holds what it holds, whatever the two send.

use crate::link::{Arrival, Link};
use crate::tcp::poll_until;
use crate::{Error, Result};
use rustix::event::{PollFd, PollFlags};
use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

/// Bytes of one direction that are held at most, beside what had come before.
pub const BUFFER: usize = 1 << 17;
/// How often `halt` is asked while nothing moves.
const LOOK: Duration = Duration::from_millis(100);
/// Pause where the operating system says that something is ready and nothing is.
const NAP: Duration = Duration::from_millis(1);

/// One direction: what was read and not written yet.
struct Flow {
    bytes: Vec<u8>,
    start: usize,
    /// No more bytes will come.
    ended: bool,
    /// The other end knows that.
    told: bool,
    flushed: bool,
}

impl Flow {
    fn new(come: Vec<u8>) -> Self {
        Flow { bytes: come, start: 0, ended: false, told: false, flushed: true }
    }

    fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    /// Moves what can be moved; true if anything was.
    fn step(
        &mut self,
        from: &mut dyn Link,
        to: &mut dyn Link,
        passed: &mut dyn FnMut(usize),
    ) -> Result<bool> {
        let mut moved = false;
        if self.is_empty() && !self.ended {
            self.bytes.resize(BUFFER, 0);
            self.start = 0;
            let come = from.try_read(&mut [IoSliceMut::new(&mut self.bytes)]);
            self.bytes.truncate(match &come {
                Ok(Arrival::Bytes(n)) => *n,
                _ => 0,
            });
            match come? {
                Arrival::Bytes(n) => {
                    passed(n);
                    moved = true;
                }
                Arrival::Nothing => {}
                Arrival::End => (self.ended, moved) = (true, true),
            }
        }
        while !self.is_empty() {
            let n = to.try_write(&[IoSlice::new(&self.bytes[self.start..])])?;
            if n == 0 {
                break;
            }
            (self.start, self.flushed, moved) = (self.start + n, false, true);
        }
        if !self.flushed {
            self.flushed = to.try_flush()?;
        }
        if self.ended && self.is_empty() && self.flushed && !self.told {
            to.finish();
            (self.told, moved) = (true, true);
        }
        Ok(moved)
    }
}

/// Passes bytes between two links until both have said that no more follow; each comes with what was read
/// from it already. `passed` is told how many bytes came at a time, and `halt` is asked after each move, and
/// now and then, whether to give up, which is [`Error::Cancelled`].
///
/// Errors: a link that breaks, one that the operating system cannot wait for, and no byte for `idle`, or for
/// `half` once one of the two has said that no more follows from it.
pub fn relay(
    [(mut one, one_came), (mut two, two_came)]: [(Box<dyn Link>, Vec<u8>); 2],
    idle: Duration,
    half: Duration,
    passed: &mut dyn FnMut(usize),
    halt: &mut dyn FnMut() -> bool,
) -> Result<()> {
    let (mut there, mut back) = (Flow::new(one_came), Flow::new(two_came));
    let mut last = Instant::now();
    let mut in_vain = false;
    loop {
        let moved = there.step(&mut *one, &mut *two, passed)? | back.step(&mut *two, &mut *one, passed)?;
        if there.told && back.told {
            return Ok(());
        }
        // Two that never rest are asked as well.
        if halt() {
            return Err(Error::Cancelled);
        }
        if moved {
            (last, in_vain) = (Instant::now(), false);
            continue;
        }
        let patience = if there.told || back.told { half.min(idle) } else { idle };
        let left = patience.saturating_sub(last.elapsed());
        if left.is_zero() {
            return Err(Error::Timeout { after: patience, awaited: "bytes to pass on".to_owned() });
        }
        if in_vain {
            std::thread::sleep(NAP);
        }
        in_vain = wait([(&*one, &there, &back), (&*two, &back, &there)], left.min(LOOK))?;
    }
}

/// Waits until a link has bytes that there is room for, or room for bytes that there are; whether that is so.
fn wait(ends: [(&dyn Link, &Flow, &Flow); 2], patience: Duration) -> Result<bool> {
    let mut fds = Vec::with_capacity(2);
    for (link, out_of, into) in &ends {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, out_of.is_empty() && !out_of.ended);
        flags.set(PollFlags::OUT, !into.is_empty() || !into.flushed);
        // One that says nothing more and takes nothing more would only wake us.
        if flags.is_empty() {
            continue;
        }
        let descriptor = link.descriptor().ok_or(Error::Malformed("a link that nobody can wait for"))?;
        fds.push(PollFd::from_borrowed_fd(descriptor, flags));
    }
    poll_until(&mut fds, patience)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpLink;
    use crate::{Channel, Party, SessionId};
    use std::net::{TcpListener, TcpStream};

    const FOR_LONG: Duration = Duration::from_secs(20);

    fn pair() -> (TcpStream, TcpStream) {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port");
        let one = TcpStream::connect(port.local_addr().expect("its address")).expect("a connection");
        (one, port.accept().expect("its other end").0)
    }

    fn link(stream: TcpStream) -> Box<dyn Link> {
        Box::new(TcpLink::new(stream).expect("a link"))
    }

    #[test]
    fn what_two_channels_say_passes_both_ways_and_so_does_their_end() {
        let ((a, near), (far, b)) = (pair(), pair());
        let passed = std::thread::spawn(move || {
            let mut bytes = 0;
            let ends = [(link(near), Vec::new()), (link(far), Vec::new())];
            relay(ends, FOR_LONG, FOR_LONG, &mut |n| bytes += n, &mut || false).map(|()| bytes)
        });
        let talk = |stream, party, own: u8| {
            std::thread::spawn(move || {
                let mut channel = Channel::new(link(stream), party, SessionId([1; 32]));
                // Both send first, and more than any buffer on the way holds.
                channel.send(&vec![own; 20 << 20]).expect("sent");
                let mut theirs = vec![0; 20 << 20];
                channel.recv(&mut theirs).expect("received");
                theirs[0]
            })
        };
        let (one, two) = (talk(a, Party::First, 1), talk(b, Party::Second, 2));
        assert_eq!((one.join().expect("one"), two.join().expect("two")), (2, 1));
        assert!(passed.join().expect("relayed").expect("to the end") > 40 << 20);
    }

    #[test]
    fn a_relay_ends_when_nothing_moves_and_when_it_is_told_to() {
        for told in [false, true] {
            let ((_a, near), (far, _b)) = (pair(), pair());
            let ends = [(link(near), Vec::new()), (link(far), Vec::new())];
            let start = Instant::now();
            let ended = relay(ends, Duration::from_millis(300), FOR_LONG, &mut |_| (), &mut || told);
            assert!(start.elapsed() < Duration::from_secs(5));
            match (told, ended) {
                (true, Err(Error::Cancelled)) | (false, Err(Error::Timeout { .. })) => {}
                (_, other) => panic!("{other:?}"),
            }
        }
    }

    /// A link that always has bytes, until it has given so many pieces, and always takes some.
    struct Restless(u32);

    impl Link for Restless {
        fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
            Ok(slices[0].len())
        }

        fn try_read(&mut self, _: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
            self.0 -= u32::from(self.0 > 0);
            Ok(if self.0 > 0 { Arrival::Bytes(1000) } else { Arrival::End })
        }

        fn wait(&mut self, _: crate::link::Interest, _: Duration) -> Result<bool> {
            Ok(true)
        }

        fn wire_bytes(&self) -> (u64, u64) {
            (0, 0)
        }
    }

    #[test]
    fn two_that_never_rest_are_ended_too() {
        let bytes = std::cell::Cell::new(0);
        let ends = [(Box::new(Restless(100)) as _, Vec::new()), (Box::new(Restless(100)) as _, Vec::new())];
        let passed = &mut |count: usize| bytes.set(bytes.get() + count);
        let ended = relay(ends, FOR_LONG, FOR_LONG, passed, &mut || bytes.get() > 10_000);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        assert!(bytes.get() < 20_000);
    }

    #[test]
    fn an_end_that_is_gone_is_the_end_of_the_other() {
        let ((a, near), (far, b)) = (pair(), pair());
        let relayed = std::thread::spawn(move || {
            let ends = [(link(near), Vec::new()), (link(far), Vec::new())];
            relay(ends, FOR_LONG, FOR_LONG, &mut |_| (), &mut || false)
        });
        let mut channel = Channel::new(link(b), Party::Second, SessionId([1; 32]));
        drop(a);
        assert!(matches!(channel.recv(&mut [0]), Err(Error::Lost { .. })));
        drop(channel);
        relayed.join().expect("relayed").expect("both ended");
    }

    /// One end is gone, and the other waits without a word.
    #[test]
    fn after_one_end_has_gone_the_other_has_less_time() {
        let ((ours, one), (theirs, two)) = (pair(), pair());
        drop(ours);
        let ends = [one, two].map(|end| {
            let link: Box<dyn Link> = Box::new(TcpLink::new(end).expect("a link"));
            (link, Vec::new())
        });
        let start = Instant::now();
        let ended = relay(ends, FOR_LONG, Duration::from_millis(300), &mut |_| (), &mut || false);
        assert!(matches!(ended, Err(Error::Timeout { .. })), "{ended:?}");
        assert!((300..5_000).contains(&start.elapsed().as_millis()));
        drop(theirs);
    }
}
