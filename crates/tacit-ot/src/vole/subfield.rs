//! Silent subfield VOLE over GF(2^128) with u in GF(4), GF(16) or GF(256) (BCGIKRS19, sections 4 and 6 with p
//! = 2^k).
//!
//! - **Realises** w = v + u·Δ with random u in the subfield, v and Δ in GF(2^128), against semi-honest or
//!   malicious parties, in the random-oracle and ideal-permutation models, under dual LPN over the subfield
//!   with regular noise and, for malicious security, static leakage. [`bcgikrs19`](crate::silent::bcgikrs19)
//!   is the case k = 1.
//! - **Messages** of a request, whatever its size: t·(ℓ + k) base correlations of the same Δ by KOS or IKNP,
//!   16 bytes a level and a tree, and with malicious security a check of 64 bytes.
//!
//! Half-trees (2022/1431) whose leaves are hashed, since a noisy leaf must differ by y·Δ with the y of its
//! tree and not by Δ: the parties' shares of y·Δ come from k correlations a tree, and one correction a tree
//! puts them in place. The check is that of `spcot`, its weights times y. The code is that of
//! [`Code::Linear`](crate::silent::bcgikrs19::Code::Linear); its matrix is binary, so its distance is that of
//! the binary code, and there are more noisy positions than for k = 1: see
//! [`linear_weight`](crate::silent::bcgikrs19::linear_weight).
//!
//! An element of the subfield is a byte of k coordinates in the basis 1, g, g², … of a generator g.

use super::hashed::{self, Run};
use crate::silent::bcgikrs19::LARGEST_RUN;
use crate::silent::code::{BlockAccumulate, LinearCode};
use crate::silent::engine::sink::{Halves, Memory, Sink};
use crate::silent::engine::source::{SourceReceiver, SourceSender};
use crate::silent::engine::{Engine, Stream};
use crate::silent::noise::Noise;
use crate::silent::tree::opening::{CheckMessage, DIGEST};
use crate::silent::tree::spcot;
use crate::{BaseOt, CotReceiver, CotSender, Result, Security, VoleReceiver, VoleSender};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Buffer, Prg, gf128};
use tacit_net::Channel;
use zeroize::Zeroizing;

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

/// Base correlations that a request of `count` over `field` takes, run by run: by KOS, or by IKNP for semi-honest
/// security.
pub fn base_cots(count: usize, field: Subfield, security: Security) -> impl Iterator<Item = usize> {
    let of = move |run| hashed::cots(security, Noise::of_field(field.size(), run), field.degree);
    runs(count).map(move |run| of(run).iter().sum())
}

/// Bytes of both directions for a request of `count`, beside the base correlations and a stream's setup.
pub fn bytes(count: usize, field: Subfield, security: Security) -> usize {
    // The check's seed, its masked weights, and a digest.
    let check = if security == Security::Malicious { CheckMessage::BYTES + DIGEST } else { 0 };
    let run = |run| {
        let layout = Noise::of_field(field.size(), run);
        // The roots' seed, the trees, a correction a tree, and the bits of the values.
        let values = size_of::<Block>() * layout.trees() + (field.degree * layout.trees()).div_ceil(8);
        size_of::<Block>() + layout.shape.bytes() + values + check
    };
    runs(count).map(run).sum()
}

fn runs(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(LARGEST_RUN).map(move |start| LARGEST_RUN.min(count - start))
}

/// What both parties do alike.
struct Core {
    field: Subfield,
    security: Security,
    engine: Engine,
}

/// All that the parties must agree on.
fn context(channel: &mut Channel, field: Subfield, security: Security) -> Transcript {
    let mut context = Transcript::new("tacit silent subfield vole v4");
    context.append("session", &channel.session_id().0);
    context.append_u64("instance", channel.next_instance());
    context.append_u64("degree", field.degree as u64);
    context.append_u64("malicious", (security == Security::Malicious) as u64);
    context
}

fn encode(code: &BlockAccumulate, mut noise: Buffer, count: usize, mut each: impl FnMut(usize, &[Block])) {
    code.absorb(&mut Block::ZERO.clone(), &mut noise);
    let mut at = 0;
    code.encode(noise, count, &mut |piece| {
        each(at, piece);
        at += piece.len();
    });
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
        let context = context(channel, field, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, true)?;
        Ok(SubfieldSender { core: Core { field, security, engine }, source, prg: prg.fork() })
    }

    /// One run; `change` sees the corrections of the leaves.
    fn make(
        &mut self,
        channel: &mut Channel,
        out: &mut [Block],
        change: impl FnOnce(&mut [Block]),
    ) -> Result<()> {
        let Core { field, security, ref mut engine } = self.core;
        let layout = hashed::begin(engine, channel, field.size(), out.len())?;
        let mut run = Run::join(engine, channel, layout, out.len())?;
        let (shape, delta) = (layout.shape, self.source.delta());
        let lens = hashed::cots(security, layout, field.degree);
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = hashed::split(&cots, lens);
        let trees = spcot::send(channel, &mut self.prg, &mut run.expander, delta, shape, levels)?;
        let mut bits = vec![0u8; values.len().div_ceil(8)];
        channel.recv(&mut bits)?;
        let bits = BitVec::from_bytes(&bits, values.len());
        let mut noise = Buffer::zeros(layout.positions());
        // c = Σ leaves + our share of y·Δ.
        let mut corrections = run.leaves(&trees, &mut noise);
        for (tree, (c, v)) in corrections.iter_mut().zip(values.chunks(field.degree)).enumerate() {
            let flipped =
                |(b, v): (usize, &Block)| *v ^ (delta & Block::mask(bits.get(tree * field.degree + b)));
            *c ^= field.combine(v.iter().enumerate().map(flipped));
        }
        change(&mut corrections);
        channel.send_blocks(&corrections)?;
        channel.flush()?;
        if security == Security::Malicious {
            run.answer(channel, delta, &noise, check)?;
        }
        let code = BlockAccumulate::new(run.code, layout.positions());
        encode(&code, noise, out.len(), |at, piece| out[at..at + piece.len()].copy_from_slice(piece));
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
        let context = context(channel, field, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, false)?;
        Ok(SubfieldReceiver { core: Core { field, security, engine }, source, prg: prg.fork() })
    }

    fn make(&mut self, channel: &mut Channel, u: &mut [u8], w: &mut [Block]) -> Result<()> {
        let Core { field, security, ref mut engine } = self.core;
        let layout = hashed::begin(engine, channel, field.size(), w.len())?;
        let lens = hashed::cots(security, layout, field.degree);
        let mut cots = Zeroizing::new(vec![Block::ZERO; lens.iter().sum()]);
        self.source.extend(channel, &mut cots)?;
        let [levels, values, check] = hashed::split(&cots, lens);
        let points = layout.points(&mut self.prg);
        let mut trees = spcot::choose_points(channel, points, layout.shape, levels)?;
        // A nonzero value for each tree; the correlations' choice bits become its coordinates.
        let value = |_| 1 + self.prg.below(field.size() as u64 - 1) as u8;
        let y: Zeroizing<Vec<u8>> = Zeroizing::new((0..layout.trees()).map(value).collect());
        let mut bits = BitVec::from_lsbs(values);
        for i in 0..bits.len() {
            bits.set(i, bits.get(i) ^ (y[i / field.degree] >> (i % field.degree) & 1 == 1));
        }
        channel.send(bits.as_bytes())?;
        channel.flush()?;
        let mut run = Run::join(engine, channel, layout, w.len())?;
        trees.receive(channel, levels)?;
        let mut corrections = Zeroizing::new(vec![Block::ZERO; y.len()]);
        channel.recv_blocks(&mut corrections)?;
        for (c, w) in corrections.iter_mut().zip(values.chunks(field.degree)) {
            *c ^= field.combine(w.iter().copied());
        }
        let (mut noise, mut sparse) = (Buffer::zeros(layout.positions()), Buffer::zeros(layout.positions()));
        let coordinates = Zeroizing::new(y.iter().map(|y| Block::new((*y).into())).collect::<Vec<_>>());
        let noisy = run.punctured_leaves(&trees, &mut corrections, &mut noise);
        run.sparse(&noisy, &coordinates, 0, &mut sparse);
        if security == Security::Malicious {
            let values = y.iter().map(|y| field.embed(*y));
            run.check(channel, engine, &mut self.prg, &trees, values, &noise, check)?;
        }
        let (count, code) = (w.len(), BlockAccumulate::new(run.code, layout.positions()));
        encode(&code, noise, count, |at, piece| w[at..at + piece.len()].copy_from_slice(piece));
        encode(&code, sparse, count, |at, piece| {
            for (u, block) in u[at..].iter_mut().zip(piece) {
                *u = block.low() as u8;
            }
        });
        Ok(())
    }
}

impl Stream for SubfieldSender {
    type Sink<'a> = Memory<'a, Block>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
        let n = sink.left().min(LARGEST_RUN);
        self.make(channel, &mut sink.rest()[..n], |_| ())?;
        sink.advance(n);
        Ok(())
    }
}

impl Stream for SubfieldReceiver {
    type Sink<'a> = Halves<'a, u8, Block>;

    fn engine(&self) -> &Engine {
        &self.core.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Halves<'_, u8, Block>) -> Result<()> {
        let n = sink.left().min(LARGEST_RUN);
        self.make(channel, &mut sink.u.rest()[..n], &mut sink.w.rest()[..n])?;
        sink.advance(n);
        Ok(())
    }
}

impl VoleSender<Block> for SubfieldSender {
    fn delta(&self) -> Block {
        self.source.delta()
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.fill(channel, Memory::new(out))
    }
}

impl VoleReceiver<u8, Block> for SubfieldReceiver {
    fn extend(&mut self, channel: &mut Channel, u: &mut [u8], w: &mut [Block]) -> Result<()> {
        self.fill(channel, Halves::new(NAME, u, w)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, base};
    use tacit_crypto::hash::sigma;
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

    /// The rank of a linear map over GF(2).
    fn rank(map: impl Fn(Block) -> Block) -> usize {
        let mut basis: Vec<u128> = Vec::new();
        for i in 0..128 {
            let image = map(Block::new(1 << i)).to_u128();
            let rest = basis.iter().fold(image, |rest, b| rest.min(rest ^ b));
            if rest != 0 {
                basis.push(rest);
                basis.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        basis.len()
    }

    /// A receiver chooses the value y of a tree and has the leaf's hash plus y·Δ. For no y of a subfield does
    /// σ(Δ) + y·Δ tell much less than Δ; for X^64, which is in none, it has half of the bits.
    ///
    /// proof: vole 4.4
    #[test]
    fn no_value_of_a_subfield_hides_half_of_delta() {
        let rank_of = |y: Block| rank(|delta| sigma(delta) ^ gf128::mul(delta, y));
        let field = Subfield::new(8).unwrap();
        let least = (0..=255).map(|y| rank_of(field.embed(y))).min();
        assert_eq!(least, Some(126));
        assert_eq!(rank_of(Block::new(1 << 64)), 64);
    }

    /// proof: vole 2.8
    #[test]
    fn a_value_of_another_delta_is_caught_and_nothing_comes_out() {
        let field = Subfield::new(4).unwrap();
        for tree in [None, Some(0), Some(77)] {
            let seed = |n: u128| Prg::from_seed(Block::new(n));
            let (_, result) = memory::run(
                |ch| {
                    let (base, malicious) = (base::default(), Security::Malicious);
                    let mut s = SubfieldSender::setup(ch, &*base, &mut seed(1), field, malicious)?;
                    s.make(ch, &mut [Block::ZERO; 9], |c| {
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
