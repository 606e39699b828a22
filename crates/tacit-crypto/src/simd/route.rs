//! Steps of an oblivious routing: an item moves over a fixed distance or stays, by the place that it must get
//! to.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;
use crate::Block;
use zeroize::Zeroize;

const VECTOR: usize = 8;

/// Slots in a row, each empty or with an item of a place, counted from 1, and a value. Wiped on drop.
///
/// Places and values are secret: every operation takes the same steps whatever they are. They stand in arrays
/// of their own, and an empty slot holds zeros.
pub struct Slots {
    /// Empty slots in front, as many as the longest step.
    lead: usize,
    places: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.places.zeroize();
        self.low.zeroize();
        self.high.zeroize();
    }
}

/// All ones where a < b, both below 2^63.
#[inline(always)]
fn less(a: u64, b: u64) -> u64 {
    (a.wrapping_sub(b) >> 63).wrapping_neg()
}

impl Slots {
    /// `len` empty slots or a few more, for steps up to `longest`.
    pub fn new(len: usize, longest: usize) -> Self {
        let zeros = || vec![0; longest + len.next_multiple_of(VECTOR)];
        Slots { lead: longest, places: zeros(), low: zeros(), high: zeros() }
    }

    fn arrays(&mut self) -> [&mut [u64]; 3] {
        [&mut self.places, &mut self.low, &mut self.high].map(|array| &mut array[self.lead..])
    }

    /// Empties all slots.
    pub fn clear(&mut self) {
        self.arrays().into_iter().for_each(|array| array.fill(0));
    }

    /// Puts an item into slot `at`; the place 0 is none.
    pub fn set(&mut self, at: usize, place: u32, value: Block) {
        let [places, low, high] = self.arrays();
        (places[at], low[at], high[at]) = (place.into(), value.low(), value.high());
    }

    /// A step of `distance` where the items before `end` stand in the first `width` slots of each two
    /// distances, and no wider than one: no item is overtaken.
    pub fn step_apart(&mut self, backend: Backend, distance: usize, width: usize, end: usize) {
        assert!(width <= distance, "items would meet");
        let [places, low, high] = self.arrays();
        for from in (0..end).step_by(2 * distance) {
            let to = from + distance;
            let halves = |array| cut(array, from, to, width);
            let arrays = (halves(&mut *places), halves(&mut *low), halves(&mut *high));
            match backend.level() {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: this level exists only where AVX-512 was detected.
                Level::Avx512 => unsafe { x86::apart_512(to, arrays.0, arrays.1, arrays.2) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: this level exists only where AVX2 was detected.
                Level::Avx2 => unsafe { x86::apart_256(to, arrays.0, arrays.1, arrays.2) },
                _ => apart(to, arrays.0, arrays.1, arrays.2),
            }
        }
    }

    /// A step of `distance` into `out`, of the same shape, wherever items stand. Two items must not meet.
    pub fn step(&self, backend: Backend, distance: usize, out: &mut Slots) {
        assert!(
            distance <= self.lead && self.lead == out.lead && self.places.len() == out.places.len(),
            "shapes"
        );
        match backend.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level exists only where AVX-512 was detected; the shapes were asserted above.
            Level::Avx512 => unsafe { x86::step(self, distance, out) },
            _ => step(self, distance, out),
        }
    }

    /// Puts the values over `nodes`, the first slot's over the first; where a slot is empty the node stays.
    pub fn merge(&self, nodes: &mut [Block]) {
        let slots = self.places[self.lead..].iter().zip(&self.low[self.lead..]).zip(&self.high[self.lead..]);
        for (node, ((place, low), high)) in nodes.iter_mut().zip(slots) {
            let (empty, kept) = (!less(0, *place), *node);
            let [low, high] = [low | kept.low() & empty, high | kept.high() & empty];
            *node = Block::new((high as u128) << 64 | low as u128);
        }
    }
}

fn cut(array: &mut [u64], from: usize, to: usize, width: usize) -> [&mut [u64]; 2] {
    let (lower, upper) = array.split_at_mut(to);
    let here = width.min(upper.len());
    [&mut lower[from..from + here], &mut upper[..here]]
}

type Halves<'a> = [&'a mut [u64]; 2];

/// The twin that compilers turn into the vectors of each level.
#[inline(always)]
fn apart(first: usize, [p, to_p]: Halves<'_>, [l, to_l]: Halves<'_>, [h, to_h]: Halves<'_>) {
    let n = p.len();
    let (l, h, to_p, to_l, to_h) = (&mut l[..n], &mut h[..n], &mut to_p[..n], &mut to_l[..n], &mut to_h[..n]);
    for i in 0..n {
        let moves = less((first + i) as u64, p[i]);
        (to_p[i], to_l[i], to_h[i]) = (p[i] & moves, l[i] & moves, h[i] & moves);
        (p[i], l[i], h[i]) = (p[i] & !moves, l[i] & !moves, h[i] & !moves);
    }
}

/// Slot `i` keeps what stays and takes what comes from `i - distance`.
fn step(from: &Slots, distance: usize, to: &mut Slots) {
    let lead = from.lead;
    for i in lead..from.places.len() {
        let (at, back) = ((i - lead) as u64, i - distance);
        let stays = !less(at + distance as u64, from.places[i]);
        let comes = less(at, from.places[back]);
        to.places[i] = from.places[i] & stays | from.places[back] & comes;
        to.low[i] = from.low[i] & stays | from.low[back] & comes;
        to.high[i] = from.high[i] & stays | from.high[back] & comes;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use core::arch::x86_64::*;

    /// Eight slots at a time.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn step(from: &Slots, distance: usize, to: &mut Slots) {
        let lead = from.lead;
        // SAFETY: all six arrays have the same length, `lead` and a multiple of eight; `distance` is at most
        // `lead`.
        unsafe {
            let load = |array: &[u64], i: usize| _mm512_loadu_si512(array.as_ptr().add(i).cast());
            let eight = _mm512_set1_epi64(VECTOR as i64);
            let ahead = _mm512_set1_epi64(distance as i64);
            let mut at = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
            for i in (lead..from.places.len()).step_by(VECTOR) {
                let (here, back) = (load(&from.places, i), load(&from.places, i - distance));
                let stays = _mm512_cmpge_epu64_mask(_mm512_add_epi64(at, ahead), here);
                let comes = _mm512_cmplt_epu64_mask(at, back);
                let pick = |array: &[u64]| {
                    let stay = _mm512_maskz_mov_epi64(stays, load(array, i));
                    _mm512_mask_or_epi64(stay, comes, stay, load(array, i - distance))
                };
                for (array, out) in
                    [(&from.places, &mut to.places), (&from.low, &mut to.low), (&from.high, &mut to.high)]
                {
                    _mm512_storeu_si512(out.as_mut_ptr().add(i).cast(), pick(array));
                }
                at = _mm512_add_epi64(at, eight);
            }
        }
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512dq")]
    pub(super) fn apart_512(first: usize, p: Halves<'_>, l: Halves<'_>, h: Halves<'_>) {
        apart(first, p, l, h);
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn apart_256(first: usize, p: Halves<'_>, l: Halves<'_>, h: Halves<'_>) {
        apart(first, p, l, h);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use std::collections::BTreeSet;

    #[test]
    fn every_backend_routes_items_to_their_places() {
        let mut prg = Prg::from_seed(Block::new(3));
        for (block, items) in [(64, 1), (64, 64), (64, 20), (512, 33), (512, 300), (1024, 7)] {
            let places: BTreeSet<u32> = (0..items).map(|_| 1 + prg.below(block) as u32).collect();
            let (block, c) = (block as usize, items as usize);
            for backend in Backend::available() {
                let longest = c.next_power_of_two();
                let (mut now, mut next) = (Slots::new(block + c, longest), Slots::new(block + c, longest));
                for (at, &place) in places.iter().enumerate() {
                    now.set(at, place, Block::new((place as u128) << 100 | 5));
                }
                for log in (0..block.ilog2()).rev() {
                    if 1 << log >= c {
                        now.step_apart(backend, 1 << log, c, block);
                    } else {
                        now.step(backend, 1 << log, &mut next);
                        core::mem::swap(&mut now, &mut next);
                    }
                }
                let mut nodes = vec![Block::ONES; block];
                now.merge(&mut nodes);
                for (i, node) in nodes.into_iter().enumerate() {
                    let place = i as u32 + 1;
                    let expected = if places.contains(&place) {
                        Block::new((place as u128) << 100 | 5)
                    } else {
                        Block::ONES
                    };
                    assert!(node == expected, "{items} in {block}, slot {i}, {}", backend.name());
                }
                now.clear();
                assert!(now.places.iter().chain(&now.low).chain(&now.high).all(|x| *x == 0));
            }
        }
    }
}
