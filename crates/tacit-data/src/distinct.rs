//! Which of many digests are equal: the number that each had when it was first seen.
//!
//! A table of all keys lies in main memory, so that a look-up waits for it. Digests therefore come many at a
//! time, and the places of all of them are asked for before any is looked at. A place holds the first bits of
//! its digest beside the digest's number, so that the digest itself is fetched for a key that repeats, and
//! hardly ever for a new one. Places ascend with these bits: a larger table is filled from the first place to
//! the last.

use std::ops::Range;
use tacit_crypto::{Digests, Indices};

/// Digests that are looked up together.
const BATCH: usize = 256;
/// Places for as many digests, of four quarters three.
const FULL: [usize; 2] = [3, 4];
/// Growth at once, at most.
const STEP: usize = 8;
/// Places at first.
const FIRST: usize = 1 << 10;

/// Distinct digests in the order in which they came, and where each is found.
#[derive(Default)]
pub(crate) struct Distinct {
    digests: Digests,
    places: Places,
}

impl Distinct {
    /// The digests.
    pub(crate) fn digests(&self) -> &[[u8; 32]] {
        &self.digests
    }

    /// The number of one digest; of several, [`number`](Self::number) is faster.
    pub(crate) fn number_one(&mut self, digest: &[u8; 32], of: [u64; 2]) -> u32 {
        self.make_room(1, of);
        self.find(digest)
    }

    /// Tells the number of each digest to `each`, in their order; new ones get the next numbers. `seen` digests of
    /// `expected`, about, came before: that is how much room a larger table gets.
    pub(crate) fn number(
        &mut self,
        digests: &[Option<[u8; 32]>],
        [seen, expected]: [u64; 2],
        mut each: impl FnMut(Option<u32>),
    ) {
        let mut known = [0; BATCH];
        for digests in digests.chunks(BATCH) {
            self.make_room(digests.len(), [seen, expected]);
            // Each look is independent of every other, so the machine waits for many at once.
            for (known, digest) in known.iter_mut().zip(digests) {
                *known = digest.as_ref().map_or(0, |digest| self.places.first(digest));
            }
            for (known, digest) in known.iter_mut().zip(digests).filter(|(known, _)| **known > 0) {
                let is_equal = Some(&self.digests[*known as usize - 1]) == digest.as_ref();
                *known *= u32::from(is_equal);
            }
            for (known, digest) in known.iter().zip(digests) {
                each(match (digest, *known) {
                    (None, _) => None,
                    (Some(digest), 0) => Some(self.find(digest)),
                    (Some(_), known) => Some(known - 1),
                });
            }
        }
    }

    /// The number of a digest, which may be new.
    fn find(&mut self, digest: &[u8; 32]) -> u32 {
        let (digests, places) = (&mut self.digests, &mut self.places);
        let (at, number) = places.find(digest, |number| digests[number as usize] == *digest);
        number.unwrap_or_else(|| {
            let number = digests.len() as u32;
            digests.push(digest);
            places.put(at, digest, number);
            number
        })
    }

    /// Room for `more` digests; `[seen, expected]` as [`number`](Self::number) has them.
    fn make_room(&mut self, more: usize, of: [u64; 2]) {
        if let Some(room) = self.wanted(more, of) {
            self.grow(room);
        }
    }

    /// Makes room for so many digests in all, which takes [`bytes`](Self::bytes).
    pub(crate) fn grow(&mut self, room: usize) {
        self.places.grow(room);
        self.digests.reserve(self.places.room());
    }

    /// Bytes of a room for so many digests.
    pub(crate) fn bytes(room: usize) -> usize {
        room.saturating_mul(32 + 8 * FULL[1] / FULL[0] + 8)
    }

    /// Rooms that would do for `more` digests, the best first; `None` where there is room.
    pub(crate) fn rooms(&self, more: usize, [seen, expected]: [u64; 2]) -> Option<[usize; 3]> {
        let needed = self.digests.len() + more;
        Some([self.wanted(more, [seen, expected])?, self.wanted(more, [seen, 0])?, needed + needed / 16])
    }

    /// How many digests there is to be room for, if more than there is.
    fn wanted(&self, more: usize, [seen, expected]: [u64; 2]) -> Option<usize> {
        let needed = self.digests.len() + more;
        if needed <= self.places.room() {
            return None;
        }
        // As many as there will be if what comes is like what came, and a little more.
        let expected = u128::from(expected) * self.digests.len() as u128 / u128::from(seen.max(1));
        let expected = usize::try_from(expected + expected / 32).unwrap_or(usize::MAX);
        let least = if expected > needed { needed + needed / 4 } else { 2 * needed };
        // By steps that end at what is expected: the last one moves the fewest.
        let mut room = expected;
        while room > STEP.saturating_mul(needed) {
            room = room.div_ceil(STEP);
        }
        Some(room.max(least).max(FIRST))
    }
}

/// Two numbers a place: a digest's first bits, and its number and one; two zeros where there is none.
struct Places(Indices);

impl Default for Places {
    fn default() -> Self {
        Places(Indices::zeros(0))
    }
}

fn first_bits(digest: &[u8; 32]) -> u32 {
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

impl Places {
    fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Digests that there is room for.
    fn room(&self) -> usize {
        self.len() / FULL[1] * FULL[0]
    }

    /// The place of digests with these first bits; the next ones if it is taken.
    #[inline(always)]
    fn of(&self, bits: u32) -> usize {
        ((u128::from(bits) * self.len() as u128) >> 32) as usize
    }

    #[inline(always)]
    fn at(&self, place: usize) -> Range<usize> {
        2 * place..2 * place + 2
    }

    /// The number and one of the digest in a digest's own place, if their first bits are equal; else 0.
    #[inline(always)]
    fn first(&self, digest: &[u8; 32]) -> u32 {
        let bits = first_bits(digest);
        let place = &self.0[self.at(self.of(bits))];
        if place[0] == bits { place[1] } else { 0 }
    }

    /// Where a digest is, and its number, or where it belongs. `is_equal` compares it with the one of a number.
    #[inline(always)]
    fn find(&self, digest: &[u8; 32], mut is_equal: impl FnMut(u32) -> bool) -> (usize, Option<u32>) {
        let bits = first_bits(digest);
        let mut place = self.of(bits);
        loop {
            let [found, number] = [self.0[2 * place], self.0[2 * place + 1]];
            if number == 0 {
                return (place, None);
            }
            if found == bits && is_equal(number - 1) {
                return (place, Some(number - 1));
            }
            place += 1;
            if place == self.len() {
                place = 0;
            }
        }
    }

    fn put(&mut self, place: usize, digest: &[u8; 32], number: u32) {
        let at = self.at(place);
        self.0[at].copy_from_slice(&[first_bits(digest), number + 1]);
    }

    /// Moves to a table with room for `count` digests.
    fn grow(&mut self, count: usize) {
        let len = count.div_ceil(FULL[0]) * FULL[1];
        let larger = Places(Indices::zeros(2 * len));
        let smaller = std::mem::replace(self, larger);
        for entry in smaller.0.chunks_exact(2).filter(|entry| entry[1] > 0) {
            let mut place = self.of(entry[0]);
            while self.0[2 * place + 1] > 0 {
                place = if place + 1 == len { 0 } else { place + 1 };
            }
            let at = self.at(place);
            self.0[at].copy_from_slice(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Of as many digests as were expected the last step moves an eighth, whatever their number.
    #[test]
    fn the_last_step_comes_early() {
        for expected in (1usize << 17..1 << 22).step_by(1 << 17) {
            let mut found = Distinct::default();
            let mut steps = vec![0];
            for row in 0..expected as u64 {
                let room = found.places.room();
                found.number_one(blake3::hash(&row.to_le_bytes()).as_bytes(), [row, expected as u64]);
                if found.places.room() > room {
                    steps.push(row as usize);
                }
            }
            assert!(steps.iter().all(|step| step * 7 < expected), "{expected}: {steps:?}");
        }
    }

    /// Whatever sizes, repetitions and expectations: the numbers of a map.
    #[test]
    fn numbers_are_those_of_a_map() {
        for (rows, distinct, expected, same) in
            [(0u64, 1, 0, 0), (1, 1, 1, 0), (5000, 5000, 0, 0), (5000, 40, 1 << 40, 1), (9000, 6000, 9000, 4)]
        {
            let digest = |row: u64| {
                let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) % distinct;
                let mut digest = *blake3::hash(&key.to_le_bytes()).as_bytes();
                // Digests that begin alike, and some that end the table.
                digest[..same].fill(if key.is_multiple_of(3) { 0xff } else { 0 });
                (!key.is_multiple_of(17)).then_some(digest)
            };
            let digests: Vec<Option<[u8; 32]>> = (0..rows).map(digest).collect();
            let (mut found, mut map, mut order) = (Distinct::default(), HashMap::new(), Vec::new());
            let mut numbers = Vec::new();
            for (piece, digests) in digests.chunks(300).enumerate() {
                found.number(digests, [300 * piece as u64, expected], |number| numbers.push(number));
            }
            for (digest, number) in digests.iter().zip(&numbers) {
                let expected = digest.map(|digest| {
                    *map.entry(digest).or_insert_with(|| {
                        order.push(digest);
                        order.len() as u32 - 1
                    })
                });
                assert_eq!(*number, expected);
            }
            assert!(numbers.len() == digests.len() && found.digests() == order);
            let mut alone = Distinct::default();
            let one = |digest: &Option<[u8; 32]>| digest.map(|digest| alone.number_one(&digest, [0, 0]));
            assert!(digests.iter().map(one).eq(numbers));
        }
    }
}
