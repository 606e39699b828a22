//! Silent VOLE over GF(2^128) with u in the whole field (BCGIKRS19, sections 4 and 6).
//!
//! - **Realises** w = v + u·Δ with random u and v and a random Δ of the sender's, whose lowest bit is 1,
//!   against semi-honest or malicious parties, in the random-oracle and ideal-permutation models, under dual
//!   LPN over GF(2^128) with regular noise and, for malicious security, static leakage.
//! - **Messages** of a request, whatever its size: t·(ℓ + 128) base correlations of the same Δ by
//!   [SoftSpoken](crate::extension::softspoken) (4.3 bytes each), 16 bytes a level and a tree, and with
//!   malicious security a check of 64 bytes: 0.3 MB for a run.
//!
//! [`subfield`](super::subfield) carried to the whole field: half-trees (2022/1431) whose leaves are
//! hashed, a random value y for each tree, the parties' shares of y·Δ from 128 correlations a tree (one a
//! bit of y), one correction a tree, and the check of `spcot` with its weights times y. A receiver's bits
//! may differ from those of a y for no bit: any 128 choice bits are a y.
//!
//! A receiver that chose y could choose one for which Δ ↦ σ(Δ) + y·Δ has rank 64 (X^64), and find Δ by 2^64
//! decryptions from the leaf's hash. So the sender adds a public random shift to every tree's value, of the seed
//! that it sends once all choices are fixed.
//!
//! What differs is the code: [`ScaledAccumulate`], as no binary matrix withstands noise of so many bits.
//! t = 424 noisy positions: with random values a linear test that meets the fraction 0.20 of all positions
//! has bias 0.8^424 < 2^-136. Projections to GF(2) do not make the noise lighter here, as a projection of
//! the result is none of the noise.

use super::hashed::{self, Run};
use crate::extension::softspoken::Groups;
use crate::extension::{SoftReceiver, SoftSender};
use crate::silent::code::ScaledAccumulate;
use crate::silent::engine::sink::{Halves, Memory, Sink};
use crate::silent::engine::{Engine, Stream};
use crate::silent::noise::Noise;
use crate::silent::tree::opening::{CheckMessage, DIGEST, fold_powers};
use crate::silent::tree::spcot;
use crate::{BaseOt, CotReceiver, CotSender, Result, Security, VoleReceiver, VoleSender};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, Prg, gf128};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// The name in errors.
pub const NAME: &str = "silent vole over GF(2^128)";
/// Elements of the field, as far as its size matters for the noise.
const FIELD: usize = usize::MAX;
/// Bits of a value.
const BITS: usize = 128;
/// The most correlations of one run; larger requests are cut into equal ones, for memory's sake. About 130
/// bytes each are at work.
pub const LARGEST_RUN: usize = 7 << 16;

/// The runs that a request of `count` is cut into: this many correlations each, the last one fewer.
pub fn run_size(count: usize) -> usize {
    count.div_ceil(count.div_ceil(LARGEST_RUN).max(1)).max(1)
}

/// Bytes that a receiver holds while it serves a request of `count`, beside what it fills; a sender half of
/// them.
pub fn memory(count: usize) -> usize {
    4 * Noise::of_field(FIELD, run_size(count)).positions() * size_of::<Block>()
}

/// Base correlations that a request of `count` takes, run by run.
pub fn base_cots(count: usize, security: Security) -> impl Iterator<Item = usize> {
    runs(count).map(move |run| hashed::cots(security, Noise::of_field(FIELD, run), BITS).iter().sum())
}

/// Bytes of both directions for a request of `count`, beside the base correlations.
pub fn bytes(count: usize, security: Security) -> usize {
    // The check's seed, its masked weights, and a digest.
    let check = if security == Security::Malicious { CheckMessage::BYTES + DIGEST } else { 0 };
    let run = |run| {
        let shape = Noise::of_field(FIELD, run).shape;
        // The roots' seed, the trees, and a correction a tree.
        size_of::<Block>() * (1 + shape.tiles * tacit_crypto::ggm::LANES) + shape.bytes() + check
    };
    runs(count).map(run).sum()
}

fn runs(count: usize) -> impl Iterator<Item = usize> {
    let size = run_size(count);
    (0..count).step_by(size).map(move |start| size.min(count - start))
}

/// All that the parties must agree on.
fn context(channel: &mut Channel, security: Security) -> Transcript {
    let mut context = Transcript::new("tacit silent vole gf128 v4");
    context.append("session", &channel.session_id().0);
    context.append_u64("malicious", (security == Security::Malicious) as u64);
    context.append_u64("instance", channel.next_instance());
    context
}

/// Large memory that runs share: asked for once and wiped once.
#[derive(Default)]
struct Space(Vec<Buffer>);

impl Space {
    /// `N` pieces of the lengths given, which hold whatever they held.
    fn pieces<const N: usize>(&mut self, lens: [usize; N]) -> [&mut [Block]; N] {
        self.0.resize_with(N, || Buffer::zeros(0));
        for (buffer, len) in self.0.iter_mut().zip(lens) {
            if buffer.len() < len {
                *buffer = Buffer::zeros(len);
            }
        }
        let mut pieces = self.0.iter_mut().zip(lens).map(|(buffer, len)| &mut buffer[..len]);
        core::array::from_fn(|_| pieces.next().unwrap_or_default())
    }
}

/// The sender, who holds Δ.
pub struct Gf128Sender {
    engine: Engine,
    security: Security,
    source: SoftSender,
    space: Space,
    prg: Prg,
}

/// The receiver, who gets random u.
pub struct Gf128Receiver {
    engine: Engine,
    security: Security,
    source: SoftReceiver,
    space: Space,
    prg: Prg,
}

impl Gf128Sender {
    /// Sets up from a base OT, in which this side receives 128.
    ///
    /// Errors: those of the link and the base OT; `Malformed` when the peer uses another security.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Self> {
        let source = SoftSender::begin(channel, base, prg, security, Groups::default())?;
        let context = context(channel, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, true)?;
        Ok(Gf128Sender { engine, security, source, space: Space::default(), prg: prg.fork() })
    }

    /// One run; `change` sees the corrections of the leaves.
    fn make(
        &mut self,
        channel: &mut Channel,
        out: &mut [Block],
        change: impl FnOnce(&mut [Block]),
    ) -> Result<()> {
        let layout = hashed::begin(&mut self.engine, channel, FIELD, out.len())?;
        let mut run = Run::join(&mut self.engine, channel, layout, out.len())?;
        let (shape, delta) = (layout.shape, self.source.delta());
        let lens = hashed::cots(self.security, layout, BITS);
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        // proof: vole 2.2
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = hashed::split(&cots, lens);
        let trees = spcot::send(channel, &mut self.prg, &mut run.expander, delta, shape, levels)?;
        let n = layout.positions();
        let [noise, scratch] = self.space.pieces([n, n]);
        // c = Σ leaves + our share of y·Δ, y being shifted.
        // proof: vole 2.4, 4.3
        let mut corrections = run.leaves(&trees, noise);
        for ((c, values), shift) in corrections.iter_mut().zip(values.chunks_exact(BITS)).zip(trees.shifts())
        {
            *c ^= fold_powers(values) ^ gf128::mul(shift, delta);
        }
        change(&mut corrections);
        channel.send_blocks(&corrections)?;
        channel.flush()?;
        if self.security == Security::Malicious {
            run.answer(channel, delta, noise, check)?;
        }
        // proof: vole 2.9
        ScaledAccumulate::new(run.code, n).encode(noise, scratch, out);
        Ok(())
    }
}

impl Gf128Receiver {
    /// Sets up from a base OT, in which this side sends 128.
    ///
    /// Errors: as for [`Gf128Sender::setup`].
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Self> {
        let source = SoftReceiver::begin(channel, base, prg, security, Groups::default())?;
        let context = context(channel, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, false)?;
        Ok(Gf128Receiver { engine, security, source, space: Space::default(), prg: prg.fork() })
    }

    fn make(&mut self, channel: &mut Channel, u: &mut [Block], w: &mut [Block]) -> Result<()> {
        let layout = hashed::begin(&mut self.engine, channel, FIELD, w.len())?;
        let lens = hashed::cots(self.security, layout, BITS);
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = hashed::split(&cots, lens);
        let points = layout.points(&mut self.prg);
        let mut trees = spcot::choose_points(channel, points, layout.shape, levels)?;
        let mut run = Run::join(&mut self.engine, channel, layout, w.len())?;
        trees.receive(channel, levels)?;
        // The choice bits are random, so they are the bits of y; w = v + bit·Δ adds up to the share of y·Δ.
        let mut y = Zeroizing::new(BitVec::from_lsbs(values).blocks().to_vec());
        y.iter_mut().zip(trees.shifts()).for_each(|(y, shift)| *y ^= shift);
        let mut corrections = Zeroizing::new(vec![Block::ZERO; y.len()]);
        channel.recv_blocks(&mut corrections)?;
        for (c, values) in corrections.iter_mut().zip(values.chunks_exact(BITS)) {
            *c ^= fold_powers(values);
        }
        let n = layout.positions();
        let [first, second] = self.space.pieces([2 * n, 2 * n]);
        let noise = &mut second[..n];
        let noisy = run.punctured_leaves(&trees, &mut corrections, noise);
        if self.security == Security::Malicious {
            run.check(channel, &self.engine, &mut self.prg, &trees, y.iter().copied(), noise, check)?;
        }
        let sparse = |start: usize, piece: &mut [Block]| run.sparse(&noisy, &y, start, piece);
        ScaledAccumulate::new(run.code, n).encode_both(sparse, first, second, [u, w]);
        Ok(())
    }
}

impl Stream for Gf128Sender {
    type Sink<'a> = Memory<'a, Block>;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        let n = sink.left().min(run_size(sink.wanted()));
        self.make(channel, &mut sink.rest()[..n], |_| ())?;
        sink.advance(n);
        Ok(())
    }
}

impl Stream for Gf128Receiver {
    type Sink<'a> = Halves<'a, Block, Block>;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Halves<'_, Block, Block>) -> Result<()> {
        let n = sink.left().min(run_size(sink.w.wanted()));
        self.make(channel, &mut sink.u.rest()[..n], &mut sink.w.rest()[..n])?;
        sink.advance(n);
        Ok(())
    }
}

impl VoleSender<Block> for Gf128Sender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Memory::new(out))
    }
}

impl VoleReceiver<Block, Block> for Gf128Receiver {
    fn extend(&mut self, channel: &mut Channel, u: &mut [Block], w: &mut [Block]) -> Result<()> {
        self.fill(channel, Halves::new(NAME, u, w)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silent::tree::half::GroupKeys;
    use crate::silent::tree::spcot::Trees;
    use crate::{ChosenCotReceiver, Error, base};
    use tacit_crypto::ggm::{LANES, ccr_keyed};
    use tacit_crypto::hash::sigma;
    use tacit_net::memory;

    const BOTH: [Security; 2] = [Security::SemiHonest, Security::Malicious];

    fn prg(seed: u128) -> Prg {
        Prg::from_seed(Block::new(seed))
    }

    fn sender(channel: &mut Channel, seed: u128, security: Security) -> Result<Gf128Sender> {
        Gf128Sender::setup(channel, &*base::default(), &mut prg(2 * seed), security)
    }

    fn receiver(channel: &mut Channel, seed: u128, security: Security) -> Result<Gf128Receiver> {
        Gf128Receiver::setup(channel, &*base::default(), &mut prg(2 * seed + 1), security)
    }

    #[test]
    fn correlations_hold_and_look_random() {
        for security in BOTH {
            for (seed, count) in [1usize, 2, 100, 5000].into_iter().enumerate() {
                let ((delta, v), (u, w)) = memory::run(
                    |channel| {
                        let mut s = sender(channel, seed as u128, security).unwrap();
                        let mut v = vec![[Block::ZERO; 2]; count];
                        for run in 0..2 {
                            let mut out = vec![Block::ZERO; count];
                            s.extend(channel, &mut out).unwrap();
                            v.iter_mut().zip(out).for_each(|(v, out)| v[run] = out);
                        }
                        (s.delta(), v)
                    },
                    |channel| {
                        let mut r = receiver(channel, seed as u128, security).unwrap();
                        let (mut u, mut w) = (vec![[Block::ZERO; 2]; count], vec![[Block::ZERO; 2]; count]);
                        for run in 0..2 {
                            let (mut a, mut b) = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
                            r.extend(channel, &mut a, &mut b).unwrap();
                            u.iter_mut().zip(a).for_each(|(u, a)| u[run] = a);
                            w.iter_mut().zip(b).for_each(|(w, b)| w[run] = b);
                        }
                        (u, w)
                    },
                );
                let mut ones = 0;
                let mut seen = std::collections::HashSet::new();
                for ((u, v), w) in u.as_flattened().iter().zip(v.as_flattened()).zip(w.as_flattened()) {
                    assert!(*w == *v ^ gf128::mul(*u, delta));
                    assert!(seen.insert(*u) && seen.insert(*v), "a value twice");
                    ones += u.to_u128().count_ones() as i64 + v.to_u128().count_ones() as i64;
                }
                // 512·count bits; seven standard deviations.
                let bits = 512.0 * count as f64;
                assert!((ones as f64 - bits / 2.0).abs() < 3.5 * bits.sqrt(), "{ones} ones of {bits}");
            }
        }
    }

    #[test]
    fn large_requests_are_cut_evenly() {
        assert_eq!((run_size(0), run_size(1), run_size(LARGEST_RUN)), (1, 1, LARGEST_RUN));
        assert_eq!(run_size(LARGEST_RUN + 1), LARGEST_RUN / 2 + 1);
        for count in [5 << 20, (1 << 24) + 3] {
            assert!(
                run_size(count) <= LARGEST_RUN
                    && count.div_ceil(run_size(count)) == count.div_ceil(LARGEST_RUN)
            );
        }
    }

    /// Whether a receiver catches what `change` makes of the corrections; nothing comes out then, and
    /// nothing later.
    fn caught(seed: u128, change: impl FnOnce(&mut [Block]) + Send) -> bool {
        let (_, result) = memory::run(
            |channel| {
                sender(channel, seed, Security::Malicious)?.make(channel, &mut [Block::ZERO; 9], change)
            },
            |channel| {
                let mut r = receiver(channel, seed, Security::Malicious)?;
                let (mut u, mut w) = ([Block::ONE; 9], [Block::ONE; 9]);
                let result = r.extend(channel, &mut u, &mut w);
                if result.is_err() {
                    assert!(u == [Block::ZERO; 9] && w == [Block::ZERO; 9]);
                    assert!(matches!(r.extend(channel, &mut u, &mut w), Err(Error::Spent(_))));
                }
                result
            },
        );
        match result {
            Ok(()) => false,
            Err(Error::Cheated { protocol: NAME, .. }) => true,
            Err(other) => panic!("{other}"),
        }
    }

    /// proof: vole 2.8
    #[test]
    fn a_value_of_another_delta_is_caught_in_every_tree() {
        assert!(!caught(1, |_| ()));
        for tree in [0, 1, 77, 399] {
            assert!(caught(2 + tree as u128, |c| c[tree] ^= Block::new(1 << (tree % 128))), "tree {tree}");
        }
        // Two wrong corrections that would cancel in a plain sum.
        assert!(caught(500, |c| c[3..5].iter_mut().for_each(|c| *c ^= Block::ONE)));
    }

    /// What a receiver that chooses the bits of every tree's value has of the noisy leaves: the leaf less Δ, what
    /// stands at the leaf, and the shift; and the keys that leaves are hashed under.
    fn chosen(channel: &mut Channel, value: u128) -> (Vec<[Block; 3]>, GroupKeys) {
        let mut r = receiver(channel, 3, Security::Malicious).unwrap();
        let layout = hashed::begin(&mut r.engine, channel, FIELD, 9).unwrap();
        let lens = hashed::cots(Security::Malicious, layout, BITS);
        let mut bits = BitVec::random(lens.iter().sum(), &mut prg(8));
        (0..lens[1]).for_each(|i| bits.set(lens[0] + i, value >> (i % BITS) & 1 == 1));
        let mut cots = vec![Block::ZERO; bits.len()];
        r.source.extend_chosen(channel, &bits, &mut cots).unwrap();
        let [levels, values, _] = hashed::split(&cots, lens);
        let points = layout.points(&mut prg(9));
        let mut trees = spcot::choose_points(channel, points.clone(), layout.shape, levels).unwrap();
        let mut run = Run::join(&mut r.engine, channel, layout, 9).unwrap();
        trees.receive(channel, levels).unwrap();
        let mut corrections = vec![Block::ZERO; layout.trees()];
        channel.recv_blocks(&mut corrections).unwrap();
        for (c, values) in corrections.iter_mut().zip(values.chunks_exact(BITS)) {
            *c ^= fold_powers(values);
        }
        let mut noise = vec![Block::ZERO; layout.positions()];
        run.punctured_leaves(&trees, &mut corrections, &mut noise);
        let (shifts, mut found) = (trees.shifts(), Vec::new());
        for group in 0..layout.shape.groups() {
            trees.expand(&mut run.expander, group, &mut |tile, leaves| {
                for lane in 0..LANES {
                    let tree = tile * LANES + lane;
                    let at = points[tree] as usize * LANES + lane;
                    found.push([leaves[at], noise[tile * layout.tile_len() + at], shifts[tree]]);
                }
            });
        }
        (found, run.leaf)
    }

    /// For y = X^64 the sum σ(Δ) + y·Δ depends on half of Δ alone, and for each value of that half one decryption
    /// of what stands at a noisy leaf gives a Δ to try. It must not be what stands there.
    ///
    /// proof: vole 4.3
    #[test]
    fn no_tree_has_a_value_of_the_receivers_choice() {
        let value = 1 << 64;
        let (delta, (found, keys)) = memory::run(
            |channel| {
                let mut s = sender(channel, 3, Security::Malicious).unwrap();
                // The receiver leaves before the check.
                assert!(s.make(channel, &mut [Block::ZERO; 9], |_| ()).is_err());
                s.source.delta()
            },
            |channel| chosen(channel, value),
        );
        let half = Block::new(delta.to_u128() >> 64 << 64);
        let map = |delta: Block| sigma(delta) ^ gf128::mul(delta, Block::new(value));
        assert!(map(half) == map(delta), "the map has rank 64");
        let mut shifts = std::collections::HashSet::new();
        for (tree, [less, stands, shift]) in found.into_iter().enumerate() {
            let (cipher, leaf) = (keys.cipher(tree / (8 * LANES)), less ^ delta);
            let hashed = ccr_keyed(&cipher, leaf);
            assert!(stands != hashed ^ gf128::mul(delta, Block::new(value)), "tree {tree}");
            assert!(hashed ^ sigma(leaf) != stands ^ sigma(less) ^ map(half), "tree {tree}");
            // It is the value with the sender's shift.
            assert!(stands == hashed ^ gf128::mul(delta, shift ^ Block::new(value)), "tree {tree}");
            assert!(shifts.insert(shift));
        }
    }
}
