//! A party's link as its peer sees it: when it takes which byte, and when it sends, in a virtual time that its
//! work moves on. What a peer can time must not depend on what it should not know.

use crate::link::{Arrival, Interest, Link};
use crate::{Channel, LinkModel, Party, Result, SessionId, memory};
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whether a byte was taken or sent, how many were before it in that direction, and the time.
pub type Note = (bool, u64, u64);

#[derive(Clone, Default)]
struct Pace(Arc<Mutex<Vec<Note>>>);

struct Paced {
    link: Box<dyn Link>,
    pace: Pace,
    moved: [u64; 2],
    clock: fn() -> u64,
}

impl Paced {
    /// Notes where the bytes of a direction stand, if time has passed since the last note.
    fn note(&mut self, taken: bool, bytes: usize) {
        let mut notes = self.pace.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, time) = (self.moved[usize::from(taken)], (self.clock)());
        if notes.last().is_none_or(|&(_, _, last)| last != time) {
            notes.push((taken, at, time));
        }
        self.moved[usize::from(taken)] += bytes as u64;
    }
}

impl Link for Paced {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let n = self.link.try_write(slices)?;
        self.note(false, n);
        Ok(n)
    }

    /// A byte at a time: the peer paces them as finely as can be.
    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<Arrival> {
        let Some(slice) = slices.iter_mut().find(|slice| !slice.is_empty()) else {
            return Ok(Arrival::Nothing);
        };
        let arrival = self.link.try_read(&mut [IoSliceMut::new(&mut slice[..1])])?;
        if matches!(arrival, Arrival::Bytes(_)) {
            self.note(true, 1);
        }
        Ok(arrival)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn try_flush(&mut self) -> Result<bool> {
        self.link.try_flush()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

/// Runs both parties; returns what each one's peer sees of its pace as well, up to when it is done. `clock`
/// tells the time of the party on its thread.
///
/// What a party's channel still says when it is dropped, and whether the peer's last word came before that, is
/// the machine's pace and not the party's.
pub fn paced<A: Send, B: Send>(
    clock: fn() -> u64,
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, [Vec<Note>; 2]) {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let paces: [Pace; 2] = Default::default();
    let [one, two] =
        [(a, Party::First, &paces[0]), (b, Party::Second, &paces[1])].map(|(link, party, pace)| {
            let link = Box::new(Paced { link, pace: pace.clone(), moved: [0; 2], clock });
            Channel::new(link, party, SessionId([5; 32]))
        });
    let notes = |pace: &Pace| {
        let mut notes = std::mem::take(&mut *pace.0.lock().unwrap_or_else(PoisonError::into_inner));
        notes.push((false, u64::MAX, clock()));
        notes
    };
    let ((a, of_a), (b, of_b)) = memory::join(
        one,
        two,
        |channel| (first(channel), notes(&paces[0])),
        |channel| (second(channel), notes(&paces[1])),
    );
    (a, b, [of_a, of_b])
}
