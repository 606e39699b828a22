//! Bits of what a protocol says, changed on the way.

use crate::Result;
use crate::channel::Kind;
use crate::link::{Arrival, Interest, Link};
use rustix::fd::BorrowedFd;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Flips bits of what a protocol writes to a link, and counts its bytes: what is in frames of data, their
/// heads left out. Remains usable while the link is at work.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<Wire>>);

#[derive(Clone, Default)]
struct Wire {
    /// Offset and mask.
    flips: Vec<(usize, u8)>,
    passed: usize,
    /// The frame's head as far as it has come, and what is left of its payload.
    head: Vec<u8>,
    left: usize,
}

impl Tap {
    fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `link`, from now on tapped.
    pub fn of(&self, link: Box<dyn Link>) -> Box<dyn Link> {
        Box::new(Tapped { link, tap: self.clone() })
    }

    /// Flips the bits of `mask` in the protocol's byte number `at`, which has not passed yet.
    pub fn flip(&self, at: usize, mask: u8) {
        self.lock().flips.push((at, mask));
    }

    /// Bytes of the protocol that have passed.
    pub fn passed(&self) -> usize {
        self.lock().passed
    }
}

impl Wire {
    fn pass(&mut self, byte: u8) -> u8 {
        if self.left == 0 {
            self.head.push(byte);
            if let [_, a, b, c] = self.head[..] {
                self.left = u32::from_le_bytes([a, b, c, 0]) as usize;
                if self.left == 0 {
                    self.head.clear();
                }
            }
            return byte;
        }
        self.left -= 1;
        let mut mask = 0;
        if self.head[0] == Kind::Data as u8 {
            mask =
                self.flips.iter().filter(|(at, _)| *at == self.passed).fold(0, |sum, (_, mask)| sum ^ mask);
            self.passed += 1;
        }
        if self.left == 0 {
            self.head.clear();
        }
        byte ^ mask
    }
}

struct Tapped {
    link: Box<dyn Link>,
    tap: Tap,
}

impl Link for Tapped {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let said: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let mut wire = self.tap.lock();
        let mut after = wire.clone();
        let changed: Vec<u8> = said.iter().map(|byte| after.pass(*byte)).collect();
        let n = self.link.try_write(&[IoSlice::new(&changed)])?;
        // The rest comes again.
        said.iter().take(n).for_each(|byte| _ = wire.pass(*byte));
        Ok(n)
    }

    fn try_flush(&mut self) -> Result<bool> {
        self.link.try_flush()
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        self.link.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.descriptor()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channel, LinkModel, Party, SessionId, memory};

    #[test]
    fn the_named_bits_change_and_no_others() {
        let (tap, (a, b)) = (Tap::default(), memory::links(LinkModel::LOOPBACK));
        tap.flip(0, 0x80);
        tap.flip(70_001, 3);
        let id = SessionId([1; 32]);
        let (first, second) = (Channel::new(tap.of(a), Party::First, id), Channel::new(b, Party::Second, id));
        let sent = vec![0x55; 100_000];
        let (counts, got) = memory::join(
            first,
            second,
            |channel| {
                channel.send(&sent[..3]).unwrap();
                channel.flush().unwrap();
                let before = tap.passed();
                channel.send(&sent[3..]).unwrap();
                channel.flush().unwrap();
                (before, tap.passed())
            },
            |channel| {
                let mut got = vec![0; 100_000];
                channel.recv(&mut got).map(|()| got)
            },
        );
        let got = got.unwrap();
        let changed: Vec<_> = (0..sent.len()).filter(|i| got[*i] != sent[*i]).collect();
        assert_eq!((counts, changed), ((3, 100_000), vec![0, 70_001]));
        assert_eq!((got[0], got[70_001]), (0x55 ^ 0x80, 0x55 ^ 3));
    }
}
