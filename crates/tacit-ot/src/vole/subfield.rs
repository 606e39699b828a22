//! Silent subfield VOLE over GF(2^128) with u in GF(4), GF(16) or GF(256) (BCGIKRS19, sections 4 and 6 with p = 2^k).
//!
//! - **Realises** w = v + u·Δ with random u in the subfield, v and Δ in GF(2^128), against semi-honest or malicious parties, in
//!   the random-oracle and ideal-permutation models, under dual LPN over the subfield with regular noise and, for malicious
//!   security, static leakage. [`bcgikrs19`](crate::silent::bcgikrs19) is the case k = 1.
//! - **Messages** of a request, whatever its size: t·(ℓ + k) base correlations of the same Δ by KOS or IKNP, 16 bytes a level
//!   and a tree, and with malicious security a check of 64 bytes.
//!
//! Half-trees (2022/1431) whose leaves are hashed, since a noisy leaf must differ by y·Δ with the y of its tree and not by Δ: the
//! parties' shares of y·Δ come from k correlations a tree, and one correction a tree puts them in place. The check is that of
//! `spcot`, its weights times y. The code is that of [`Code::Linear`](crate::silent::bcgikrs19::Code::Linear); its matrix is binary, so its
//! distance is that of the binary code, and there are more noisy positions than for k = 1: see
//! [`linear_weight`](crate::silent::bcgikrs19::linear_weight).
//!
//! An element of the subfield is a byte of k coordinates in the basis 1, g, g², … of a generator g.

use crate::extension::Setup;
use crate::silent::bcgikrs19::{LARGEST_RUN, Noise};
use crate::silent::code::{BlockAccumulate, LinearCode};
use crate::silent::engine::seeds::Seeds;
use crate::silent::engine::source::{self, SourceReceiver, SourceSender};
use crate::silent::ferret::Spent;
use crate::silent::tree::half::{GroupKeys, HalfTrees};
use crate::silent::tree::spcot::{self, CheckMessage, Shape, Trees, Weights};
use crate::{BaseOt, CotReceiver, CotSender, Error, Result, Security, VoleReceiver, VoleSender};
use tacit_crypto::ggm::{LANES, ccr_keyed_into};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, KAPPA, Prg, gf128};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The name in errors.
pub const NAME: &str = "silent subfield vole";

/// A subfield of GF(2^128).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subfield {
    basis: [Block; 8],
    degree: usize,
}

fn power(base: Block, mut exponent: u128) -> Block {
    let (mut square, mut out) = (base, Block::ONE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            out = gf128::mul(out, square);
        }
        square = gf128::mul(square, square);
        exponent >>= 1;
    }
    out
}

impl Subfield {
    /// The field of 2^`degree` elements; `None` unless `degree` is 1, 2, 4 or 8.
    pub fn new(degree: usize) -> Option<Self> {
        if ![1, 2, 4, 8].contains(&degree) {
            return None;
        }
        let order = (1u128 << degree) - 1;
        // The subfield's units are the powers of this exponent; g must lie in no smaller subfield.
        let element = |base: u128| power(Block::new(base), u128::MAX / order);
        let generates = |g: &Block| degree == 1 || power(*g, (1 << (degree / 2)) - 1) != Block::ONE;
        let g = (2..).map(element).find(generates)?;
        let mut basis = [Block::ZERO; 8];
        for (i, element) in basis.iter_mut().enumerate().take(degree) {
            *element = power(g, i as u128);
        }
        Some(Subfield { basis, degree })
    }

    /// k, the bits of an element.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        1 << self.degree
    }

    /// The element of GF(2^128) that a byte of coordinates stands for; higher bits are ignored.
    pub fn embed(&self, element: u8) -> Block {
        self.combine((0..self.degree).map(|b| Block::mask(element >> b & 1 == 1) & Block::ONE))
    }

    /// Σ g^b·x_b.
    fn combine(&self, x: impl Iterator<Item = Block>) -> Block {
        self.basis.iter().zip(x).fold(Block::ZERO, |sum, (g, x)| sum ^ gf128::mul(*g, x))
    }
}

/// What both parties do alike.
struct Core {
    field: Subfield,
    security: Security,
    context: Transcript,
    seeds: Seeds,
    run: u64,
    spent: Spent,
}

/// What a run consists of, once its seed is known.
struct Run {
    context: Transcript,
    expander: HalfTrees,
    leaf: GroupKeys,
    code: BlockAccumulate,
}

impl Core {
    fn agree<S>(
        channel: &mut Channel,
        field: Subfield,
        security: Security,
        source: Setup<S>,
        prg: &mut Prg,
        sends: bool,
    ) -> Result<(Self, S)> {
        let mut context = Transcript::new("tacit silent subfield vole v4");
        context.append("session", &channel.session_id().0);
        context.append_u64("instance", channel.next_instance());
        context.append_u64("degree", field.degree as u64);
        context.append_u64("malicious", (security == Security::Malicious) as u64);
        let (source, seeds) = source::agree(channel, source, &context, prg, sends, NAME)?;
        Ok((Core { field, security, context, seeds, run: 0, spent: Spent::default() }, source))
    }

    /// The noise of the next run; opens this party's seed.
    fn begin(&mut self, channel: &mut Channel, count: usize) -> Result<Noise> {
        self.run += 1;
        self.seeds.open(channel)?;
        Ok(Noise::of_field(self.field.size(), count))
    }

    /// The rest, for which the first run receives the peer's seed.
    fn join(&mut self, channel: &mut Channel, layout: Noise, count: usize) -> Result<Run> {
        let mut context = self.context.clone();
        context.append_u64("run", self.run);
        context.append_u64("count", count as u64);
        self.seeds.join(channel, &mut context)?;
        Ok(Run {
            expander: HalfTrees::new(layout.shape.depth, context.challenge_block("tree")),
            leaf: GroupKeys::new(context.challenge_block("leaf")),
            code: BlockAccumulate::new(context.challenge_block("code"), layout.positions()),
            context,
        })
    }

    /// Correlations of a run: for the levels, for the values, for the check.
    fn cots(&self, shape: Shape) -> [usize; 3] {
        let check = if self.security == Security::Malicious { KAPPA } else { 0 };
        [shape.cots(), self.field.degree * shape.tiles * LANES, check]
    }

    fn digest(&self, context: &Transcript, value: Block) -> [u8; 32] {
        spcot::check_digest(context, self.run, value)
    }
}

fn split(cots: &[Block], lens: [usize; 3]) -> [&[Block]; 3] {
    let (levels, rest) = cots.split_at(lens[0]);
    let (values, check) = rest.split_at(lens[1]);
    [levels, values, check]
}

fn encode(code: &BlockAccumulate, mut noise: Buffer, count: usize, mut each: impl FnMut(usize, &[Block])) {
    code.absorb(&mut Block::ZERO.clone(), &mut noise);
    let mut at = 0;
    code.encode(noise, count, &mut |piece| {
        each(at, piece);
        at += piece.len();
    });
}

fn add_lanes(sums: &mut [Block], blocks: &[Block]) {
    for line in blocks.chunks_exact(LANES) {
        for (sum, block) in sums.iter_mut().zip(line) {
            *sum ^= *block;
        }
    }
}

/// The sender, who holds Δ.
pub struct SubfieldSender {
    core: Core,
    source: SourceSender,
    prg: Prg,
}

/// The receiver, who gets random u.
pub struct SubfieldReceiver {
    core: Core,
    source: SourceReceiver,
    prg: Prg,
}

impl SubfieldSender {
    /// Sets up from a base OT, in which this side receives 128.
    ///
    /// Errors: those of the link and the base OT; `Malformed` when the peer uses another field or security.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        field: Subfield,
        security: Security,
    ) -> Result<Self> {
        let source = SourceSender::begin(channel, base, prg, security)?;
        let (core, source) = Core::agree(channel, field, security, source, prg, true)?;
        Ok(SubfieldSender { core, source, prg: prg.fork() })
    }

    /// One run; `change` sees the corrections of the leaves.
    fn run(
        &mut self,
        channel: &mut Channel,
        out: &mut [Block],
        change: impl FnOnce(&mut [Block]),
    ) -> Result<()> {
        let layout = self.core.begin(channel, out.len())?;
        let Run { context, mut expander, leaf, code } = self.core.join(channel, layout, out.len())?;
        let (shape, tile_len) = (layout.shape, layout.tile_len());
        let (field, delta, lens) = (self.core.field, self.source.delta(), self.core.cots(shape));
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = split(&cots, lens);
        let trees = spcot::send(channel, &mut self.prg, &mut expander, delta, shape, levels)?;
        let mut bits = vec![0u8; values.len().div_ceil(8)];
        channel.recv(&mut bits)?;
        let bits = BitVec::from_bytes(&bits, values.len());
        let mut noise = Buffer::zeros(layout.positions());
        let mut corrections = vec![Block::ZERO; shape.tiles * LANES];
        for group in 0..shape.groups() {
            let leaf = leaf.cipher(group);
            trees.expand(&mut expander, group, &mut |tile, leaves| {
                let place = &mut noise[tile * tile_len..][..tile_len];
                ccr_keyed_into(&leaf, &leaves[..tile_len], place);
                add_lanes(&mut corrections[tile * LANES..][..LANES], place);
            });
        }
        // c = Σ leaves + our share of y·Δ; a leaf that is no position has no part.
        for (tree, (c, v)) in corrections.iter_mut().zip(values.chunks(field.degree)).enumerate() {
            let flipped =
                |(b, v): (usize, &Block)| *v ^ (delta & Block::mask(bits.get(tree * field.degree + b)));
            *c ^= field.combine(v.iter().enumerate().map(flipped));
        }
        change(&mut corrections);
        channel.send_blocks(&corrections)?;
        channel.flush()?;
        if self.core.security == Security::Malicious {
            let message = CheckMessage::receive(channel)?;
            let weights = Weights::new(message.seed, shape);
            let tiles = noise.chunks(tile_len).enumerate();
            let sum = tiles.fold(Block::ZERO, |sum, (tile, leaves)| sum ^ weights.sum(tile, leaves));
            channel.send(&self.core.digest(&context, sum ^ message.sender_mask(delta, check)))?;
            channel.flush()?;
        }
        let count = out.len();
        encode(&code, noise, count, |at, piece| out[at..at + piece.len()].copy_from_slice(piece));
        Ok(())
    }
}

impl SubfieldReceiver {
    /// Sets up from a base OT, in which this side sends 128.
    ///
    /// Errors: as for [`SubfieldSender::setup`].
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        field: Subfield,
        security: Security,
    ) -> Result<Self> {
        let source = SourceReceiver::begin(channel, base, prg, security)?;
        let (core, source) = Core::agree(channel, field, security, source, prg, false)?;
        Ok(SubfieldReceiver { core, source, prg: prg.fork() })
    }

    fn run(&mut self, channel: &mut Channel, u: &mut [u8], w: &mut [Block]) -> Result<()> {
        let layout = self.core.begin(channel, w.len())?;
        let (shape, tile_len) = (layout.shape, layout.tile_len());
        let (field, lens) = (self.core.field, self.core.cots(shape));
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = split(&cots, lens);
        let points = layout.points(&mut self.prg);
        let mut trees = spcot::choose_points(channel, points, shape, levels)?;
        // A nonzero value for each tree; the correlations' choice bits become its coordinates.
        let y: Zeroizing<Vec<u8>> = Zeroizing::new(
            (0..shape.tiles * LANES).map(|_| 1 + self.prg.below(field.size() as u64 - 1) as u8).collect(),
        );
        let mut bits = BitVec::from_lsbs(values);
        for i in 0..bits.len() {
            bits.set(i, bits.get(i) ^ (y[i / field.degree] >> (i % field.degree) & 1 == 1));
        }
        channel.send(bits.as_bytes())?;
        channel.flush()?;
        let Run { context, mut expander, leaf, code } = self.core.join(channel, layout, w.len())?;
        trees.receive(channel, levels)?;
        let mut corrections = vec![Block::ZERO; y.len()];
        channel.recv_blocks(&mut corrections)?;
        for (c, w) in corrections.iter_mut().zip(values.chunks(field.degree)) {
            *c ^= field.combine(w.iter().copied());
        }
        let (mut noise, mut sparse) = (Buffer::zeros(layout.positions()), Buffer::zeros(layout.positions()));
        for group in 0..shape.groups() {
            let leaf = leaf.cipher(group);
            trees.expand(&mut expander, group, &mut |tile, leaves| {
                let (leaves, place) = (&leaves[..tile_len], &mut noise[tile * tile_len..][..tile_len]);
                ccr_keyed_into(&leaf, leaves, place);
                // The lowest bit of a half-tree's leaf tells the noisy one.
                for (place, leaf) in place.iter_mut().zip(leaves) {
                    *place &= !Block::mask(leaf.lsb());
                }
                let lanes = tile * LANES..(tile + 1) * LANES;
                add_lanes(&mut corrections[lanes.clone()], place);
                let (z, y) = (&corrections[lanes.clone()], &y[lanes]);
                let sparse = &mut sparse[tile * tile_len..][..tile_len];
                for (i, leaf) in leaves.iter().enumerate() {
                    let on = Block::mask(leaf.lsb());
                    place[i] ^= z[i % LANES] & on;
                    sparse[i] = Block::new(y[i % LANES].into()) & on;
                }
            });
        }
        corrections.zeroize();
        if self.core.security == Security::Malicious {
            let seed = self.prg.block();
            let weights = Weights::new(seed, shape);
            let phi = weights.of_values(&trees, y.iter().map(|y| field.embed(*y)));
            CheckMessage::send(channel, seed, phi, check)?;
            channel.flush()?;
            let tiles = noise.chunks(tile_len).enumerate();
            let sum = tiles.fold(Block::ZERO, |sum, (tile, leaves)| sum ^ weights.sum(tile, leaves));
            let expected = self.core.digest(&context, sum ^ spcot::fold_powers(check));
            spcot::receive_digest(channel, NAME, &expected)?;
        }
        let count = w.len();
        encode(&code, noise, count, |at, piece| w[at..at + piece.len()].copy_from_slice(piece));
        encode(&code, sparse, count, |at, piece| {
            for (u, block) in u[at..].iter_mut().zip(piece) {
                *u = block.low() as u8;
            }
        });
        Ok(())
    }
}

impl VoleSender<Block> for SubfieldSender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.core.spent.check(NAME)?;
        let mut done = Ok(());
        for piece in out.chunks_mut(LARGEST_RUN) {
            done = done.and_then(|()| self.run(channel, piece, |_| ()));
        }
        done.inspect_err(|_| {
            self.core.spent.set();
            out.zeroize();
        })
    }
}

impl VoleReceiver<u8, Block> for SubfieldReceiver {
    fn extend(&mut self, channel: &mut Channel, u: &mut [u8], w: &mut [Block]) -> Result<()> {
        if u.len() != w.len() {
            return Err(Error::Usage { protocol: NAME, what: "as many u as w" });
        }
        self.core.spent.check(NAME)?;
        let mut done = Ok(());
        for (u, w) in u.chunks_mut(LARGEST_RUN).zip(w.chunks_mut(LARGEST_RUN)) {
            done = done.and_then(|()| self.run(channel, u, w));
        }
        done.inspect_err(|_| {
            self.core.spent.set();
            u.zeroize();
            w.zeroize();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base;
    use tacit_net::memory;

    #[test]
    fn subfields_are_closed_and_as_large_as_said() {
        for degree in [1, 2, 4, 8] {
            let field = Subfield::new(degree).unwrap();
            let all: Vec<Block> = (0..field.size()).map(|x| field.embed(x as u8)).collect();
            assert!(all[0] == Block::ZERO && all[1] == Block::ONE);
            for a in &all {
                // Exactly the roots of x^q = x.
                assert!(power(*a, field.size() as u128) == *a);
                assert!(all.iter().filter(|b| *b == a).count() == 1);
            }
        }
        assert!(Subfield::new(3).is_none() && Subfield::new(16).is_none());
    }

    #[test]
    fn a_value_of_another_delta_is_caught_and_nothing_comes_out() {
        let field = Subfield::new(4).unwrap();
        for tree in [None, Some(0), Some(77)] {
            let seed = |n: u128| Prg::from_seed(Block::new(n));
            let (_, result) = memory::run(
                |ch| {
                    let (base, malicious) = (base::default(), Security::Malicious);
                    let mut s = SubfieldSender::setup(ch, &*base, &mut seed(1), field, malicious)?;
                    s.run(ch, &mut [Block::ZERO; 9], |c| {
                        if let Some(tree) = tree {
                            c[tree] ^= Block::ONE;
                        }
                    })
                },
                |ch| {
                    let (base, malicious) = (base::default(), Security::Malicious);
                    let mut r = SubfieldReceiver::setup(ch, &*base, &mut seed(2), field, malicious)?;
                    let (mut u, mut w) = ([1; 9], [Block::ONE; 9]);
                    let result = r.extend(ch, &mut u, &mut w);
                    if result.is_err() {
                        assert!(u == [0; 9] && w == [Block::ZERO; 9]);
                        assert!(matches!(r.extend(ch, &mut u, &mut w), Err(Error::Spent(_))));
                    }
                    result
                },
            );
            match (tree, result) {
                (None, Ok(())) | (Some(_), Err(Error::Cheated { protocol: NAME, .. })) => {}
                (tree, result) => panic!("{tree:?}: {result:?}"),
            }
        }
    }
}
