//! The three-wise sparse store with clustering: bins that fit the second-level cache, solved one after the
//! other or side by side.
//!
//! Source: Raghuraman, Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE" (2022/320), sections
//! 3 and 4: weight three, dense coefficients in GF(2^128), clustering. A hash of the key picks a bin and in
//! each third of the bin's sparse slots one slot. The key itself, as r in GF(2^128), is the coefficient of
//! the dense slots: a key's value is the sum of its three sparse slots and Σ r^(2^k)·d_k over the bin's
//! dense slots d_k.
//!
//! **Solving.** A slot that one key alone picks is settled by that key last, so the key is taken off; and so
//! on, until no key is left. When every slot left is picked twice or more, a key is set aside (a *gap*) and
//! the rest goes on. The key set aside is, slots taken off being expressed by their keys, an equation in
//! free slots and dense ones: its dense coefficients are s^(2^k), s the sum of the keys in it. As many
//! equations as gaps are solved, then all slots are filled in backwards. Linear time.
//!
//! **Failure.** [`failure_log2`](Store::failure_log2) adds up the bounds of four events:
//! - A bin gets more keys than it has room for: Bernstein's inequality, below 2^-42 over all bins.
//! - A few keys pick the same slots and leave more gaps than the bin has dense slots. The commonest pattern
//!   is a pair of keys with the same three slots, of which there are μ = 27·n²/2m³ on average in n keys and
//!   m slots; more than g gaps have probability below μ^(g+1) by every measurement.
//! - Peeling gets stuck in a core that is a fraction of the bin. Above the threshold m/n = 1.222 that is a
//!   large deviation for which no proven bound is of use. As the paper does, we measure at few bits and
//!   extrapolate along a line, below the law of finite-length scaling, in which bits grow with the square of
//!   the excess: `docs/notes/psi.md` has the data, [`fitted_bits`] the line.
//! - The dense equations depend on each other. s_i^(2^k) is a Moore matrix, singular only where some of the
//!   s_i add up to zero: 2^(g − 128).
//!
//! A failure depends on keys alone, which are hashes under the session's salt.
//!
//! **Side channels.** As in [`paxos`](super::paxos): values take the same time whatever they are, addresses
//! depend on keys.

mod scatter;

pub(crate) use scatter::{Bin, PIECE, Piece};

use super::{BATCH, MAX_KEYS, Store, dense, unsolvable};
use crate::{Error, Result};
use std::ops::Range;
use tacit_crypto::{Block, Buffer, Indices, Prg, gf128, hash};
use zeroize::Zeroizing;

/// Keys of a bin, on average, at most; more keys take more bins.
const BIN: usize = 1 << 16;
/// The same above 2^24 keys, where the share of fuller bins would else grow.
const LARGE_BIN: usize = 1 << 17;
/// More keys left over than this, and a core is no accident of a few keys.
const LARGEST_CORE: usize = 4096;
/// Slots that are peeled together.
const PEELED: usize = 32;

/// Sparse slots a key in hundred-thousandths for a bin of 2^i keys, so that peeling gets stuck with
/// probability 2^-44 by [`fitted_bits`].
const RATIO: [u64; 18] = [
    117_5973, 839_490, 610_461, 454_570, 348_462, 276_239, 227_080, 193_619, 170_844, 155_342, 144_790,
    137_608, 132_720, 129_393, 127_128, 125_586, 124_537, 123_823,
];
/// Hundred-thousandths more for each doubling of bins, every one of which must not fail.
const RATIO_A_DOUBLING: u64 = 43;
/// Where [`fitted_bits`] begins to rise, in hundred-thousandths, and how far RATIO has it rise, in tenths of
/// a bit: to 44 from -9.2.
const THRESHOLD: u64 = 122_300;
const FITTED_TENTHS: u64 = 532;
/// Bits that must be left for bins that overflow, before the number of bins is counted.
const LOAD_BITS: u64 = 42;
/// The same for the room that [`Binned`] sets aside, so that nothing fails there first. A receiver that looks for a
/// salt which crowds a bin of the sender's finds none: that the sender ends would tell it of the sender's set.
const ROOM_BITS: u64 = 128;
/// The most keys of a table with one slot a key.
const MAX_DENSE: usize = 1 << 16;
/// ln 2 in thousandths, rounded up.
const LN_2: u64 = 694;

/// How many slots a store has: bins, each of three thirds and dense slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    keys: usize,
    bins: u32,
    third: u32,
    dense: u32,
    /// log2 of the stores that share the bound.
    stores_log2: u32,
    threads: usize,
}

/// How a bin's keys are taken off.
#[derive(Default)]
struct Order {
    /// Keys with the slot that each settles, first taken off first.
    steps: Zeroizing<Vec<(u32, u32)>>,
    /// Keys set aside.
    gaps: Zeroizing<Vec<u32>>,
}

impl Shape {
    /// The shape that both parties use for `keys` keys.
    pub fn for_keys(keys: usize) -> Result<Self> {
        Self::one_of(keys, 0)
    }

    /// The shape for `keys` keys where 2^`stores_log2` stores of that size together fail with the probability
    /// with which [`for_keys`](Self::for_keys) lets one fail: a bin more or a store more weighs the same.
    pub fn one_of(keys: usize, stores_log2: u32) -> Result<Self> {
        if keys > MAX_KEYS {
            return Err(Error::TooManyElements { count: keys as u64, allowed: MAX_KEYS as u64 });
        }
        let bin = if keys <= 1 << 24 { BIN } else { LARGE_BIN };
        let bins = keys.div_ceil(bin).max(1);
        let stores = u64::from(stores_log2);
        let bin_doublings = bins.next_power_of_two().ilog2() as u64;
        let doublings = bin_doublings + stores;
        let room =
            if bins == 1 { keys as u64 } else { fullest(keys as u64, bins as u64, LOAD_BITS + doublings) };
        let ratio = ratio(room);
        // A bit more costs its share of the excess over the threshold, which gives RATIO its bits.
        let more = ((ratio - THRESHOLD) * stores * 10).div_ceil(FITTED_TENTHS);
        let ratio = ratio + RATIO_A_DOUBLING * bin_doublings + more;
        let third = (room * ratio).div_ceil(300_000).max(1);
        // Pairs of keys with the same slots: each costs log2 of the slots, and two more dense slots cover
        // the thirds' factor.
        let bits = LOAD_BITS + doublings;
        let dense = (bits / (3 * third).max(2).ilog2() as u64 + 2).min(room.max(1));
        let [bins, third, dense] = [bins as u32, third as u32, dense as u32];
        Ok(Shape { keys, bins, third, dense, stores_log2, threads: 1 })
    }

    /// The shape of one slot a key and no other: a polynomial, for sets of a thousand keys or so. Every set of
    /// distinct keys has its table.
    pub fn dense_for(keys: usize) -> Result<Self> {
        // proof: vole-psi 5.1
        if keys > MAX_DENSE {
            return Err(Error::TooManyElements { count: keys as u64, allowed: MAX_DENSE as u64 });
        }
        Ok(Shape { keys, bins: 1, third: 0, dense: keys as u32, stores_log2: 0, threads: 1 })
    }

    /// Whether the table is a polynomial's.
    pub fn is_dense(&self) -> bool {
        self.third == 0
    }

    /// A shape of the caller's choice, for experiments: `bins` of three times `third` sparse and `dense`
    /// dense slots.
    pub fn custom(keys: usize, bins: u32, third: u32, dense: u32) -> Result<Self> {
        if keys > MAX_KEYS || bins == 0 || third == 0 || bins as u64 * third as u64 > 1 << 30 || dense > 64 {
            return Err(Error::Usage(
                "a store has bins, slots in every third, and 64 dense slots a bin at most",
            ));
        }
        Ok(Shape { keys, bins, third, dense, stores_log2: 0, threads: 1 })
    }

    /// The same shape, encoding and decoding on so many threads.
    pub fn on_threads(self, threads: usize) -> Self {
        Shape { threads: threads.max(1), ..self }
    }

    /// Bins.
    pub fn bins(&self) -> usize {
        self.bins as usize
    }

    /// Sparse slots of a third of a bin.
    pub fn third(&self) -> usize {
        self.third as usize
    }

    /// Dense slots of a bin.
    pub fn dense(&self) -> usize {
        self.dense as usize
    }

    /// Slots of a bin.
    pub(crate) fn bin_slots(&self) -> usize {
        3 * self.third() + self.dense()
    }

    /// The bin of a hashed key.
    #[inline(always)]
    fn bin(&self, hashed: Block) -> usize {
        (((hashed.low() & 0xffff_ffff) * self.bins as u64) >> 32) as usize
    }

    /// A hashed key's sparse slots within its bin.
    #[inline(always)]
    fn places(&self, hashed: Block) -> [u32; 3] {
        let third = self.third as u64;
        let scale = |word: u64| (((word & 0xffff_ffff) * third) >> 32) as u32;
        let [low, high] = [hashed.low(), hashed.high()];
        [scale(low >> 32), scale(high) + self.third, scale(high >> 32) + 2 * self.third]
    }

    /// The most gaps of any bin; `None` when peeling gets stuck in a large core. For experiments: an
    /// encoding fails where there are more of them than dense slots.
    pub fn gaps(&self, keys: &[Block]) -> Option<usize> {
        if self.is_dense() {
            return Some(0);
        }
        let (order, starts) = self.by_bin(keys);
        let mut scratch = Scratch::default();
        let mut most = 0;
        for bin in 0..self.bins() {
            let members = order[starts[bin]..starts[bin + 1]].iter();
            scratch.load(self, &Zeroizing::new(members.map(|key| keys[*key as usize]).collect::<Vec<_>>()));
            most = most.max(scratch.peel(self)?.gaps.len());
        }
        Some(most)
    }

    /// The keys' indices bin by bin, and where each bin starts.
    fn by_bin(&self, keys: &[Block]) -> (Zeroizing<Vec<u32>>, Zeroizing<Vec<usize>>) {
        let mut starts = Zeroizing::new(vec![0usize; self.bins() + 1]);
        if self.bins == 1 {
            starts[1] = keys.len();
            return (Zeroizing::new((0..keys.len() as u32).collect()), starts);
        }
        let mut hashed = Zeroizing::new(vec![Block::ZERO; BATCH]);
        let mut of = Zeroizing::new(Vec::with_capacity(keys.len()));
        for keys in keys.chunks(BATCH) {
            let hashed = &mut hashed[..keys.len()];
            hash::ccr_into(keys, hashed);
            of.extend(hashed.iter().map(|hashed| self.bin(*hashed) as u16));
        }
        of.iter().for_each(|bin| starts[*bin as usize + 1] += 1);
        (0..self.bins()).for_each(|bin| starts[bin + 1] += starts[bin]);
        let mut next = starts.clone();
        let mut order = Zeroizing::new(vec![0; keys.len()]);
        for (key, bin) in of.iter().enumerate() {
            let at = &mut next[*bin as usize];
            order[*at] = key as u32;
            *at += 1;
        }
        (order, starts)
    }

    /// The most keys that a bin gets of `count` keys that are hashes under the session's salt.
    pub fn room(&self, count: usize) -> usize {
        let bits = ROOM_BITS + self.bins.next_power_of_two().ilog2() as u64;
        match self.bins() {
            1 => count,
            bins => count.min(fullest(count as u64, bins as u64, bits) as usize),
        }
    }

    /// Room for `count` keys that are hashes under the session's salt, in the bins of this shape.
    pub(crate) fn binned(&self, count: usize) -> Binned {
        let room = self.room(count);
        Binned {
            keys: Buffer::zeros(self.bins() * room),
            values: Buffer::zeros(self.bins() * room),
            elements: Indices::zeros(self.bins() * room),
            lens: vec![0; self.bins()],
            room,
        }
    }

    /// Solves every bin by `solve`, on the shape's threads.
    fn solve_bins(
        &self,
        table: &mut [Block],
        solve: &(dyn Fn(usize, &mut Scratch, &mut [Block]) -> bool + Sync),
    ) -> bool {
        let bins = self.bins();
        let share = bins.div_ceil(self.threads.min(bins));
        let part = |first: usize, tables: &mut [Block]| {
            let mut scratch = Scratch::default();
            let mut tables = tables.chunks_mut(self.bin_slots()).enumerate();
            tables.all(|(i, table)| solve(first + i, &mut scratch, table))
        };
        if share == bins {
            return part(0, table);
        }
        std::thread::scope(|scope| {
            let parts = table.chunks_mut(share * self.bin_slots()).enumerate();
            let workers: Vec<_> =
                parts.map(|(i, tables)| scope.spawn(move || part(i * share, tables))).collect();
            // A worker that panicked has solved nothing; the scope waits for the others.
            workers.into_iter().all(|worker| worker.join().unwrap_or(false))
        })
    }

    /// What the `slots` of one bin give to keys that pick it. Panics where lengths do not fit.
    pub(crate) fn decode_bin(&self, slots: &[Block], keys: &[Block], out: &mut [Block]) {
        if self.is_dense() {
            assert!(slots.len() == self.dense(), "a bin's slots");
            return dense::evaluate(slots, keys, out);
        }
        let (sparse, dense) = slots.split_at(3 * self.third());
        assert!(dense.len() == self.dense() && keys.len() == out.len(), "a bin's slots, one value a key");
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let hashed = &mut hashed[..keys.len()];
            hash::ccr_into(keys, hashed);
            for (out, hashed) in out.iter_mut().zip(hashed.iter()) {
                let [a, b, c] = self.places(*hashed);
                *out = sparse[a as usize] ^ sparse[b as usize] ^ sparse[c as usize];
            }
            dense_sums(keys, dense, out);
        }
    }

    /// Puts in the place of `values` what the `slots` of a bin give to their keys; with `factor`, plus the values
    /// times it. Panics where the slots are not as many as the shape says.
    fn sum(&self, slots: &[Block], keys: &[Block], values: &mut [Block], factor: Option<Block>) {
        let mut sums = Zeroizing::new([Block::ZERO; BATCH]);
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            let sums = &mut sums[..keys.len()];
            self.decode_bin(slots, keys, sums);
            if let Some(factor) = factor {
                gf128::multiply_add(sums, values, factor);
            }
            values.copy_from_slice(sums);
        }
    }

    /// Decodes on one thread.
    fn decode_part(&self, table: &[Block], keys: &[Block], out: &mut [Block]) {
        if self.is_dense() {
            return dense::evaluate(table, keys, out);
        }
        let (third, dense) = (3 * self.third(), self.dense());
        let mut hashed = Zeroizing::new(vec![Block::ZERO; BATCH]);
        let mut powers = Zeroizing::new(vec![Block::ZERO; BATCH]);
        let mut squares = Zeroizing::new(vec![Block::ZERO; BATCH]);
        let mut factors = Zeroizing::new(vec![Block::ZERO; BATCH]);
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            let n = keys.len();
            let (hashed, powers) = (&mut hashed[..n], &mut powers[..n]);
            let (squares, factors) = (&mut squares[..n], &mut factors[..n]);
            hash::ccr_into(keys, hashed);
            for (out, hashed) in out.iter_mut().zip(hashed.iter()) {
                let bin = &table[self.bin(*hashed) * self.bin_slots()..][..third];
                let [a, b, c] = self.places(*hashed);
                *out = bin[a as usize] ^ bin[b as usize] ^ bin[c as usize];
            }
            powers.copy_from_slice(keys);
            for k in 0..dense {
                if k > 0 {
                    squares.copy_from_slice(powers);
                    gf128::multiply_each(powers, squares);
                }
                for (factor, hashed) in factors.iter_mut().zip(hashed.iter()) {
                    *factor = table[self.bin(*hashed) * self.bin_slots() + third + k];
                }
                gf128::multiply_each(factors, powers);
                out.iter_mut().zip(factors.iter()).for_each(|(out, term)| *out ^= *term);
            }
        }
    }
}

/// Keys with their values and elements, each in the bin that it picks.
///
/// What follows from keys and values bin by bin takes their place: the sums of a table's slots that of the
/// values, and whatever the caller makes of both that of the keys.
pub(crate) struct Binned {
    keys: Buffer,
    values: Buffer,
    elements: Indices,
    /// Keys that each bin has.
    lens: Vec<usize>,
    /// Keys that each bin has room for.
    room: usize,
}

impl Binned {
    /// Puts keys, with their values, where `shape` wants them; they are the elements from `first` on. `false`
    /// when a bin has no room for them, which hashes of distinct elements do once in 2^128.
    pub(crate) fn push(&mut self, shape: &Shape, keys: &[Block], values: &[Block], first: u32) -> bool {
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        let mut element = first;
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks(BATCH)) {
            let hashed = &mut hashed[..keys.len()];
            hash::ccr_into(keys, hashed);
            for ((key, value), hashed) in keys.iter().zip(values).zip(hashed.iter()) {
                let bin = shape.bin(*hashed);
                // proof: vole-psi 3.6
                if self.lens[bin] == self.room {
                    return false;
                }
                let at = bin * self.room + self.lens[bin];
                self.lens[bin] += 1;
                (self.keys[at], self.values[at], self.elements[at]) = (*key, *value, element);
                element += 1;
            }
        }
        true
    }

    /// Keys in all.
    pub(crate) fn len(&self) -> usize {
        self.lens.iter().sum()
    }

    /// Where a bin's keys are.
    pub(crate) fn bin(&self, bin: usize) -> Range<usize> {
        bin * self.room..bin * self.room + self.lens[bin]
    }

    /// Keys, where [`bin`](Self::bin) says.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> &[Block] {
        &self.keys
    }

    /// Values, or what took their place, where [`bin`](Self::bin) says.
    #[cfg(test)]
    pub(crate) fn values(&self) -> &[Block] {
        &self.values
    }

    /// Gives the memory of values back.
    pub(crate) fn drop_values(&mut self) {
        self.values = Buffer::zeros(0);
    }
}

impl Store<Block> for Shape {
    fn keys(&self) -> usize {
        self.keys
    }

    fn slots(&self) -> usize {
        self.bins() * self.bin_slots()
    }

    fn failure_log2(&self) -> f64 {
        // proof: vole-psi 5.2
        if self.is_dense() {
            return f64::NEG_INFINITY;
        }
        let bins = self.bins as f64;
        let room = if self.bins == 1 {
            self.keys as f64
        } else {
            let doublings = self.bins.next_power_of_two().ilog2() + self.stores_log2;
            let bits = LOAD_BITS + u64::from(doublings);
            fullest(self.keys as u64, self.bins as u64, bits) as f64
        };
        let overflow =
            if self.bins == 1 { 0.0 } else { 2f64.powi(-(LOAD_BITS as i32 + self.stores_log2 as i32)) };
        let slots = 3.0 * self.third as f64;
        let pairs = 27.0 * room * room / (2.0 * slots.powi(3));
        // As many dense slots as keys suffice whatever the sparse ones do.
        let (stuck, many) = match self.keys <= self.dense() {
            true => (0.0, 0.0),
            false => ((-fitted_bits(room, slots / room)).exp2(), pairs.powi(self.dense as i32 + 1)),
        };
        (overflow + bins * (stuck + many + 2f64.powi(self.dense as i32 - 128))).log2()
    }

    fn encode_into(
        &self,
        keys: &[Block],
        value: &(dyn Fn(usize) -> Block + Sync),
        prg: &mut Prg,
        table: &mut [Block],
    ) -> Result<()> {
        if keys.len() != self.keys {
            return Err(Error::Usage("the store's shape is for another number of keys"));
        }
        if table.len() != self.slots() {
            return Err(Error::Usage("the table's length does not fit the store's shape"));
        }
        prg.fill_blocks(table);
        let (order, starts) = self.by_bin(keys);
        let solved = self.solve_bins(table, &|bin, scratch, table| {
            let members = &order[starts[bin]..starts[bin + 1]];
            let keys = members.iter().map(|key| keys[*key as usize]);
            let values = members.iter().map(|key| value(*key as usize));
            let (keys, values) =
                (Zeroizing::new(keys.collect::<Vec<_>>()), Zeroizing::new(values.collect::<Vec<_>>()));
            scratch.solve(self, &keys, &values, table)
        });
        if solved { Ok(()) } else { Err(unsolvable(keys)) }
    }

    fn decode(&self, table: &[Block], keys: &[Block], out: &mut [Block]) -> Result<()> {
        if table.len() != self.slots() {
            return Err(Error::Usage("the table's length does not fit the store's shape"));
        }
        if keys.len() != out.len() {
            return Err(Error::Usage("one value a key"));
        }
        let share = keys.len().div_ceil(self.threads).max(BATCH);
        if keys.len() <= share {
            self.decode_part(table, keys, out);
            return Ok(());
        }
        std::thread::scope(|scope| {
            for (keys, out) in keys.chunks(share).zip(out.chunks_mut(share)) {
                scope.spawn(move || self.decode_part(table, keys, out));
            }
        });
        Ok(())
    }
}

/// Makes a store's table bin by bin; its memory serves all bins.
#[derive(Default)]
pub(crate) struct BinEncoder(Scratch);

impl BinEncoder {
    /// The part of the table that holds a bin's keys and values, into `table`, which is random on entry, as
    /// [`encode_into`](Store::encode_into) makes it of all: bins one after the other are the table. Errors as
    /// there; `table` has no meaning then.
    pub(crate) fn encode_bin(
        &mut self,
        shape: &Shape,
        binned: &Binned,
        bin: usize,
        table: &mut [Block],
    ) -> Result<()> {
        if binned.len() != shape.keys || table.len() != shape.bin_slots() {
            return Err(Error::Usage(
                "the keys' number, or the table's length, does not fit the store's shape",
            ));
        }
        let at = binned.bin(bin);
        let keys = &binned.keys[at.clone()];
        if self.0.solve(shape, keys, &binned.values[at], table) { Ok(()) } else { Err(unsolvable(keys)) }
    }
}

/// What one bin is solved with, reused from bin to bin.
#[derive(Default)]
struct Scratch {
    places: Zeroizing<Vec<[u32; 3]>>,
    /// Of each slot: how many keys left pick it, and the XOR of their indices.
    slots: Zeroizing<Vec<(u32, u32)>>,
}

impl Scratch {
    /// Fills a bin's table, random on entry; `false` when there is none for these keys.
    fn solve(&mut self, shape: &Shape, keys: &[Block], values: &[Block], table: &mut [Block]) -> bool {
        if shape.is_dense() {
            return dense::interpolate(keys, values, table);
        }
        self.load(shape, keys);
        let Some(order) = self.peel(shape) else { return false };
        self.fill(shape, [keys, values], &order, table)
    }

    fn load(&mut self, shape: &Shape, keys: &[Block]) {
        self.places.clear();
        let mut hashed = Zeroizing::new([Block::ZERO; BATCH]);
        for keys in keys.chunks(BATCH) {
            let hashed = &mut hashed[..keys.len()];
            hash::ccr_into(keys, hashed);
            self.places.extend(hashed.iter().map(|hashed| shape.places(*hashed)));
        }
    }

    /// Takes the bin's keys off; `None` when a large core is left over.
    fn peel(&mut self, shape: &Shape) -> Option<Order> {
        let Scratch { places, slots, .. } = self;
        slots.clear();
        slots.resize(3 * shape.third(), (0, 0));
        for (key, places) in places.iter().enumerate() {
            for slot in places {
                let (count, keys) = &mut slots[*slot as usize];
                *count += 1;
                *keys ^= key as u32;
            }
        }
        let mut order = Order::default();
        order.steps.reserve(places.len());
        let mut single = Queue::new(slots.len());
        (0..slots.len() as u32).for_each(|slot| single.push_if(slots[slot as usize].0 == 1, slot));
        let mut left: Option<Zeroizing<Vec<bool>>> = None;
        let mut batch = Zeroizing::new([(0, 0, [0; 3]); PEELED]);
        loop {
            loop {
                // What a few slots lead to is fetched for all of them before any is taken off.
                let few = single.pop(PEELED);
                if few.is_empty() {
                    break;
                }
                let batch = &mut batch[..few.len()];
                for ((at, key, _), slot) in batch.iter_mut().zip(few) {
                    (*at, *key) = (*slot, slots[*slot as usize].1);
                }
                batch.iter_mut().for_each(|(_, key, at)| *at = places[*key as usize]);
                for (slot, key, at) in batch {
                    // By now another may have taken its key off, and its slots.
                    if slots[*slot as usize].0 == 1 {
                        order.steps.push((*key, *slot));
                        take_off(*key, at, slots, &mut single);
                    }
                }
            }
            let gone = order.steps.len() + order.gaps.len();
            if gone == places.len() {
                return Some(order);
            }
            if places.len() - gone > LARGEST_CORE || order.gaps.len() > shape.dense() + 64 {
                return None;
            }
            let left = left.get_or_insert_with(|| Zeroizing::new(vec![true; places.len()]));
            order.steps.iter().for_each(|(key, _)| left[*key as usize] = false);
            // The key that most often leaves a slot to one other.
            let pairs =
                |key: &u32| places[*key as usize].iter().filter(|slot| slots[**slot as usize].0 == 2).count();
            let gap = (0..places.len() as u32).filter(|key| left[*key as usize]).max_by_key(pairs)?;
            left[gap as usize] = false;
            order.gaps.push(gap);
            take_off(gap, &places[gap as usize], slots, &mut single);
        }
    }

    /// Fills in what [`peel`](Self::peel) has ordered; `false` when the dense slots do not suffice.
    fn fill(&self, shape: &Shape, of: [&[Block]; 2], order: &Order, table: &mut [Block]) -> bool {
        let (sparse, dense) = table.split_at_mut(3 * shape.third());
        if order.gaps.len() > dense.len() || !self.solve_gaps(of, order, sparse, dense) {
            return false;
        }
        let [keys, values] = of;
        let mut rest = Zeroizing::new(values.to_vec());
        dense_sums(keys, dense, &mut rest);
        for &(key, slot) in order.steps.iter().rev() {
            let places = &self.places[key as usize];
            let all = places.iter().fold(Block::ZERO, |sum, place| sum ^ sparse[*place as usize]);
            let others = all ^ sparse[slot as usize];
            sparse[slot as usize] = others ^ rest[key as usize];
        }
        true
    }

    /// Settles the dense slots for the keys set aside.
    fn solve_gaps(
        &self,
        [keys, values]: [&[Block]; 2],
        order: &Order,
        sparse: &[Block],
        dense: &mut [Block],
    ) -> bool {
        let mut odd = Zeroizing::new(vec![false; if order.gaps.is_empty() { 0 } else { sparse.len() }]);
        // Rows of the Moore matrix, with the sum of the dense part behind them.
        let mut rows: Zeroizing<Vec<Vec<Block>>> = Zeroizing::new(Vec::new());
        for &gap in order.gaps.iter() {
            let [mut s, mut sum] = [Block::ZERO; 2];
            odd.fill(false);
            let mut add = |key: u32, odd: &mut [bool]| {
                s ^= keys[key as usize];
                sum ^= values[key as usize];
                self.places[key as usize].iter().for_each(|slot| odd[*slot as usize] ^= true);
            };
            add(gap, &mut odd);
            for &(key, slot) in order.steps.iter() {
                if odd[slot as usize] {
                    add(key, &mut odd);
                }
            }
            // Free slots keep their fill.
            odd.iter().zip(sparse).filter(|(odd, _)| **odd).for_each(|(_, slot)| sum ^= *slot);
            let mut row = Vec::with_capacity(dense.len() + 1);
            for _ in 0..dense.len() {
                row.push(s);
                s = gf128::mul(s, s);
            }
            row.push(sum);
            rows.push(row);
        }
        solve(&mut rows, dense)
    }
}

/// Slots that wait for their turn, each once at most.
struct Queue {
    slots: Zeroizing<Vec<u32>>,
    head: usize,
    tail: usize,
}

impl Queue {
    fn new(slots: usize) -> Self {
        Queue { slots: Zeroizing::new(vec![0; slots + 1]), head: 0, tail: 0 }
    }

    /// Puts `slot` behind the others if it is `wanted`, without a branch that nobody could foresee.
    #[inline(always)]
    fn push_if(&mut self, wanted: bool, slot: u32) {
        self.slots[self.tail] = slot;
        self.tail += wanted as usize;
    }

    /// The first `most`, or as many as there are.
    fn pop(&mut self, most: usize) -> &[u32] {
        let from = self.head;
        self.head = self.tail.min(from + most);
        &self.slots[from..self.head]
    }
}

/// Takes a key off its slots, and notes the slots that one key is left at.
#[inline(always)]
fn take_off(key: u32, places: &[u32; 3], slots: &mut [(u32, u32)], single: &mut Queue) {
    for place in places {
        let (count, keys) = &mut slots[*place as usize];
        *count -= 1;
        *keys ^= key;
        single.push_if(*count == 1, *place);
    }
}

/// Adds Σ r^(2^k)·dense\[k\] for every key r.
fn dense_sums(keys: &[Block], dense: &[Block], out: &mut [Block]) {
    let mut powers = Zeroizing::new([Block::ZERO; BATCH]);
    let mut squares = Zeroizing::new([Block::ZERO; BATCH]);
    for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        let (powers, squares) = (&mut powers[..keys.len()], &mut squares[..keys.len()]);
        powers.copy_from_slice(keys);
        for (k, slot) in dense.iter().enumerate() {
            if k > 0 {
                squares.copy_from_slice(powers);
                gf128::multiply_each(powers, squares);
            }
            gf128::multiply_add(out, powers, *slot);
        }
    }
}

/// Solves rows of coefficients with their sums for `x`, whose free entries keep their values; `false` when
/// rows depend on each other.
fn solve(rows: &mut [Vec<Block>], x: &mut [Block]) -> bool {
    let mut pivots = Vec::with_capacity(rows.len());
    for i in 0..rows.len() {
        let Some(pivot) = rows[i][..x.len()].iter().position(|entry| *entry != Block::ZERO) else {
            return false;
        };
        let inverse = gf128::inverse(rows[i][pivot]);
        gf128::scale(&mut rows[i], inverse);
        let row = Zeroizing::new(rows[i].clone());
        for (_, other) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[pivot];
            gf128::multiply_add(other, &row, factor);
        }
        pivots.push(pivot);
    }
    // Every pivot's column is zero in all rows but its own.
    for (row, pivot) in rows.iter().zip(&pivots) {
        let free = |j: &usize| !pivots.contains(j);
        let known = (0..x.len()).filter(free).fold(row[x.len()], |sum, j| sum ^ gf128::mul(row[j], x[j]));
        x[*pivot] = known;
    }
    true
}

/// More keys than this a bin does not get, but for 2^-`bits`: Bernstein's inequality δ² = 2L·(n/b + δ/3) with
/// L = `bits`·ln 2.
fn fullest(keys: u64, bins: u64, bits: u64) -> u64 {
    // Hashes of 32 bits favour a bin by 2^-32 at most.
    let mean = keys.div_ceil(bins) + 1;
    let l = (bits * LN_2).div_ceil(1000);
    mean + l.div_ceil(3) + (l * l / 9 + 2 * l * mean).isqrt() + 1
}

/// Sparse slots a key in hundred-thousandths for a bin of `room` keys: on the chord between the powers of
/// two, above the curve.
fn ratio(room: u64) -> u64 {
    let log = room.max(1).ilog2() as usize;
    let Some([low, high]) = RATIO.get(log..log + 2).map(|pair| [pair[0], pair[1]]) else {
        return RATIO[RATIO.len() - 1];
    };
    low - (((low - high) * (room.max(1) - (1 << log))) >> log)
}

/// −log2 of the probability that peeling `n` keys with `ratio` sparse slots a key gets stuck: the line of
/// 2022/320, section 4, for weight three, which our own measurements confirm.
pub fn fitted_bits(n: f64, ratio: f64) -> f64 {
    2f64.powf(0.555 * n.log2() + 2.336) * (ratio - 1.223) - 9.2
}
