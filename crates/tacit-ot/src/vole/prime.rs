//! Silent VOLE over a prime field (BCGIKRS19, sections 4 and 5: figures 3, 6 and 9).
//!
//! - **Realises** w = v + u·Δ with u, v random and Δ of the sender's choice, against semi-honest or malicious
//!   parties, in the random-oracle and ideal-permutation models, under dual LPN over the field with regular
//!   noise; for malicious security with static leakage. A malicious receiver may guess bits of Δ and is
//!   caught when one guess is wrong.
//! - **Traffic**: KOS or IKNP for the random OTs; 32 bytes a level and 16 a tree for the trees, 16 a bit of a
//!   tree's value for the reverse VOLE, whatever the number of correlations; with malicious security some 200
//!   bytes more.
//! - **Statistical security** of the checks: 2^-56 over 2^61 − 1, where every check is made twice, and 2^-61 over
//!   2^128 − 159. Weights of degree d make two points that a cheating sender does not tell apart with
//!   probability ε = d/p for each of the r weights that a check takes, (d/p)^r. A guess that is right with
//!   probability g leaves at most 1/(2·g²) pairs of points, and none of them may look alike: whoever guesses g
//!   gets more than its guess with probability min(2·g, ε/g), whose maximum is √(2·ε). With d < 24 that is 2^-28
//!   for one weight over 2^61 − 1, 2^-56 for two, and 2^-61 for one over 2^128 − 159.
//!
//! The noise has a random nonzero value at one leaf of each tree. Deviations from figures 9 and 16: the OTs
//! come from KOS or IKNP instead of a base OT each, which takes more messages and far fewer public-key
//! operations; malicious reverse VOLE is that of `cope` in place of homomorphic encryption with proofs; one
//! check of all trees in the manner of Weng–Yang–Katz–Wang (2020/925, figure 7), with a correlation of `cope`
//! given up, stands for the hash of right leaves and figure 16's combination. The check compares two values
//! of which the receiver's alone may be told: the sender commits to its own first.

use super::cope::{CopeReceiver, CopeSender, checks, element};
use super::reverse;
use crate::convert::{CotToRot, chosen_messages, chosen_pairs};
use crate::silent::bcgikrs19::LARGEST_RUN;
use crate::silent::code::FieldAccumulate;
use crate::silent::engine::sink::{Halves, Memory, Sink};
use crate::silent::engine::source::{SourceReceiver, SourceSender};
use crate::silent::engine::{Engine, Stream};
use crate::silent::noise::Noise;
use crate::silent::tree::ggm::{Ggm, Line, equal};
use crate::{BaseOt, Error, Result, Security, VoleReceiver, VoleSender};
use core::marker::PhantomData;
use subtle::ConstantTimeEq;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::field::Field;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "silent vole";

/// Random OTs that a semi-honest request of `count` takes, by IKNP: those of the values, then those of the trees, run
/// by run.
pub fn ots<F: Field>(count: usize) -> impl Iterator<Item = [usize; 2]> {
    runs(count).map(|run| {
        let shape = Noise::of_field(usize::MAX, run).shape;
        [shape.tiles * LANES * F::BITS, shape.cots()]
    })
}

/// Bytes of both directions for a semi-honest request of `count`, beside its OTs and the setup.
pub fn bytes<F: Field>(count: usize) -> usize {
    // Of an OT a bit that is chosen; a block a bit of a value, two a level of a tree, and one a tree.
    let run = |[values, levels]: [usize; 2]| {
        values.div_ceil(8)
            + levels.div_ceil(8)
            + size_of::<Block>() * (values + 2 * levels + values / F::BITS)
    };
    ots::<F>(count).map(run).sum()
}

fn runs(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(LARGEST_RUN).map(move |start| LARGEST_RUN.min(count - start))
}

/// What a run consists of.
struct Run<F> {
    layout: Noise,
    ggm: Ggm,
    code: FieldAccumulate<F>,
    context: Transcript,
}

/// All that the parties must agree on.
fn context<F: Field>(channel: &mut Channel, security: Security) -> Transcript {
    let mut context = Transcript::new("tacit silent vole v6");
    context.append("session", &channel.session_id().0);
    context.append_u64("instance", channel.next_instance());
    context.append("field", F::NAME.as_bytes());
    context.append_u64("malicious", (security == Security::Malicious) as u64);
    context
}

/// The public parts of the next run; the first one opens both parties' seeds.
fn begin<F: Field>(engine: &mut Engine, channel: &mut Channel, count: usize) -> Result<Run<F>> {
    engine.next();
    engine.open(channel)?;
    let layout = Noise::of_field(usize::MAX, count);
    let mut context = engine.of_run("run");
    engine.join(channel, &mut context)?;
    let code = FieldAccumulate::new(context.challenge_block("code"), layout.positions());
    Ok(Run { layout, ggm: Ggm::new(&context, layout.shape.depth), code, context })
}

/// The weights of the consistency check, all from one public seed: the monomials of few random elements,
/// times one of each tile.
struct Weights<F> {
    variables: Vec<F>,
    tiles: Vec<F>,
    tile_len: usize,
}

impl<F: Field> Weights<F> {
    /// Those of each of the checks that one seed is good for.
    fn of_seed(seed: Block, layout: Noise) -> Vec<Self> {
        let mut prg = Prg::from_seed(seed);
        (0..checks::<F>()).map(|_| Self::draw(&mut prg, layout)).collect()
    }

    fn draw(prg: &mut Prg, layout: Noise) -> Self {
        let mut draw = |n| (0..n).map(|_| F::from_block(prg.block())).collect();
        let variables = draw(layout.shape.depth + LANES.ilog2() as usize);
        Weights { variables, tiles: draw(layout.shape.tiles), tile_len: layout.tile_len() }
    }

    /// Σ χ·x over all positions.
    fn sum(&self, x: &[F]) -> F {
        let mut tile = Zeroizing::new(vec![F::ZERO; 1 << self.variables.len()]);
        let mut sum = F::ZERO;
        for (x, weight) in x.chunks(self.tile_len).zip(&self.tiles) {
            let (positions, rest) = tile.split_at_mut(self.tile_len);
            positions.copy_from_slice(x);
            rest.fill(F::ZERO);
            let mut half = tile.len();
            for variable in self.variables.iter().rev() {
                half /= 2;
                let (low, high) = tile.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    *low = *low + *variable * *high;
                }
            }
            sum = sum + tile[0] * *weight;
        }
        sum
    }
}

/// What the commitment of the check is bound to.
fn binding(context: &Transcript, opened: &[Block]) -> [u8; 32] {
    let mut transcript = context.clone();
    transcript.append_blocks("check", opened);
    let mut out = [0; 32];
    transcript.challenge_bytes("commitment", &mut out);
    out
}

const DISAGREE: Error = Error::Cheated { protocol: NAME, what: "the trees do not fit Δ" };

/// The sender, who holds Δ.
pub struct SilentVoleSender<F: Field> {
    engine: Engine,
    delta: Zeroizing<F>,
    rot: CotToRot<SourceSender>,
    /// With malicious security.
    cope: Option<CopeSender<F>>,
    prg: Prg,
}

/// The receiver, who gets random u.
pub struct SilentVoleReceiver<F> {
    engine: Engine,
    field: PhantomData<F>,
    rot: CotToRot<SourceReceiver>,
    cope: Option<CopeReceiver>,
    prg: Prg,
}

impl<F: Field> SilentVoleSender<F> {
    /// Sets up with the correlation `delta` from a base OT, in which this side receives 128, and one a bit of
    /// `delta` more with malicious security.
    ///
    /// Errors: those of the link and the base OT; `Malformed` when the peer uses another field or security.
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        delta: F,
        security: Security,
    ) -> Result<Self> {
        let source = SourceSender::begin(channel, base, prg, security)?;
        let context = context::<F>(channel, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, true)?;
        let cope = match security {
            Security::SemiHonest => None,
            Security::Malicious => Some(CopeSender::setup(channel, base, prg, delta)?),
        };
        let (delta, rot) = (Zeroizing::new(delta), CotToRot::new(source));
        Ok(SilentVoleSender { engine, delta, rot, cope, prg: prg.fork() })
    }

    /// Reverse VOLE of the receiver's inputs y: fills `b` with random elements; the receiver gets Δ·y − b.
    pub fn reverse(&mut self, channel: &mut Channel, b: &mut [F]) -> Result<()> {
        self.extend(channel, b)?;
        let mut differences = vec![Block::ZERO; b.len()];
        channel.recv_blocks(&mut differences).inspect_err(|_| b.zeroize())?;
        for (b, d) in b.iter_mut().zip(differences) {
            // w = v + u·Δ and d = y − u, so w + (d·Δ − v) = y·Δ.
            *b = F::from_block(d) * *self.delta - *b;
        }
        Ok(())
    }

    /// One run; `change` sees the sender's message to the trees.
    fn make(
        &mut self,
        channel: &mut Channel,
        out: &mut [F],
        change: impl FnOnce(&mut [Block]),
    ) -> Result<()> {
        let Run { layout, mut ggm, code, context } = begin(&mut self.engine, channel, out.len())?;
        let shape = layout.shape;
        let trees = shape.tiles * LANES;
        let mut shares = Zeroizing::new(vec![F::ZERO; trees + checks::<F>()]);
        match &mut self.cope {
            Some(cope) => {
                cope.extend(channel, NAME, &mut self.prg, &mut shares)?;
                // w = v + y·Δ there, b + c = y·Δ here.
                for share in &mut shares[..trees] {
                    *share = -*share;
                }
            }
            None => reverse::send(channel, &mut self.rot, *self.delta, &mut shares[..trees])?,
        }
        let (shares, masks) = shares.split_at(trees);
        let (pads, _) = chosen_pairs(channel, &mut self.rot, shape.cots())?;
        let mut noise = vec![F::ZERO; layout.positions()];
        let mut message = Vec::with_capacity(2 * shape.cots() + shares.len());
        let mut sums = vec![[Line::default(); 2]; shape.depth];
        let mut roots = Line::default();
        let mut corrections = Vec::with_capacity(shares.len());
        let tiles = noise.chunks_mut(layout.tile_len()).zip(pads.chunks(LANES * shape.depth));
        for ((noise, pads), shares) in tiles.zip(shares.chunks(LANES)) {
            self.prg.fill_blocks(&mut roots);
            let mut totals = [F::ZERO; LANES];
            ggm.expand_w(&roots, &mut sums, |start, w| {
                let Some(place) = noise.get_mut(start..) else { return };
                for (i, (place, w)) in place.iter_mut().zip(w).enumerate() {
                    let leaf = F::from_block(*w);
                    totals[i % LANES] = totals[i % LANES] + leaf;
                    // v is what w has apart from u·Δ, so the leaves count negative.
                    *place = -leaf;
                }
            });
            for (i, pad) in pads.iter().enumerate() {
                let [left, right] = &sums[i / LANES];
                message.extend([left[i % LANES] ^ pad[0], right[i % LANES] ^ pad[1]]);
            }
            // Fig. 6, step 2: c = β − the sum of all leaves.
            corrections.extend(shares.iter().zip(totals).map(|(b, total)| (*b - total).to_block()));
        }
        roots.zeroize();
        sums.as_flattened_mut().as_flattened_mut().zeroize();
        message.extend(corrections);
        change(&mut message);
        channel.send_blocks(&message)?;
        channel.flush()?;
        if self.cope.is_some() {
            self.answer(channel, layout, &context, &noise, masks)?;
        }
        out.copy_from_slice(&Zeroizing::new(code.encode(noise, out.len())));
        Ok(())
    }
}

impl<F: Field> SilentVoleSender<F> {
    /// The check of a run's `noise`: commits to its values, and shows them once the receiver has shown the same.
    fn answer(
        &mut self,
        channel: &mut Channel,
        layout: Noise,
        context: &Transcript,
        noise: &[F],
        masks: &[F],
    ) -> Result<()> {
        let mut opened = vec![Block::ZERO; 1 + masks.len()];
        channel.recv_blocks(&mut opened)?;
        let mut mine = Zeroizing::new(Vec::with_capacity(masks.len()));
        let weights = Weights::of_seed(opened[0], layout);
        for ((weights, mask), masked) in weights.iter().zip(masks).zip(&opened[1..]) {
            let masked: F = element(NAME, *masked)?;
            mine.push((weights.sum(noise) + *mask + *self.delta * masked).to_block());
        }
        let mine = Block::as_bytes(&mine);
        let (commitment, opening) = commit(&binding(context, &opened), mine, &mut self.prg);
        channel.send(&commitment.0)?;
        channel.flush()?;
        let mut theirs = vec![0; mine.len()];
        channel.recv(&mut theirs)?;
        self.engine.settle(|| if bool::from(theirs.ct_eq(mine)) { Ok(()) } else { Err(DISAGREE) })?;
        channel.send(&opening.0)?;
        Ok(channel.flush()?)
    }
}

impl<F: Field> SilentVoleReceiver<F> {
    /// Sets up from a base OT, in which this side sends.
    ///
    /// Errors: as for [`SilentVoleSender::setup`].
    pub fn setup(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Self> {
        let source = SourceReceiver::begin(channel, base, prg, security)?;
        let context = context::<F>(channel, security);
        let (engine, source) = Engine::agree(channel, NAME, context, source, prg, false)?;
        let cope = match security {
            Security::SemiHonest => None,
            Security::Malicious => Some(CopeReceiver::setup::<F>(channel, base, prg)?),
        };
        let rot = CotToRot::new(source);
        Ok(SilentVoleReceiver { engine, field: PhantomData, rot, cope, prg: prg.fork() })
    }

    /// Reverse VOLE with the inputs `y`: fills `c` with Δ·y − b.
    pub fn reverse(&mut self, channel: &mut Channel, y: &[F], c: &mut [F]) -> Result<()> {
        if y.len() != c.len() {
            return Err(Error::Usage { protocol: NAME, what: "as many inputs as outputs" });
        }
        let mut u = Zeroizing::new(vec![F::ZERO; y.len()]);
        self.extend(channel, &mut u, c)?;
        let differences: Vec<Block> = y.iter().zip(u.iter()).map(|(y, u)| (*y - *u).to_block()).collect();
        channel.send_blocks(&differences).and_then(|()| channel.flush()).inspect_err(|_| c.zeroize())?;
        Ok(())
    }

    /// A tree's point and its nonzero value, for every tree, and a mask for each check.
    fn noise(&mut self, layout: Noise) -> (Zeroizing<Vec<u32>>, Zeroizing<Vec<F>>) {
        let alpha = Zeroizing::new(layout.points(&mut self.prg));
        let nonzero = |_: &u32| loop {
            let y = F::from_block(self.prg.block());
            if y != F::ZERO {
                return y;
            }
        };
        let mut values: Zeroizing<Vec<F>> = Zeroizing::new(alpha.iter().map(nonzero).collect());
        values.extend((0..checks::<F>()).map(|_| F::from_block(self.prg.block())));
        (alpha, values)
    }

    fn make(&mut self, channel: &mut Channel, u: &mut [F], w: &mut [F]) -> Result<()> {
        let Run { layout, mut ggm, code, context } = begin(&mut self.engine, channel, w.len())?;
        let (shape, tile_len) = (layout.shape, layout.tile_len());
        let (alpha, values) = self.noise(layout);
        let trees = alpha.len();
        let mut shares = Zeroizing::new(vec![F::ZERO; values.len()]);
        match &mut self.cope {
            Some(cope) => cope.extend(channel, &mut self.prg, &values, &mut shares)?,
            None => reverse::receive(channel, &mut self.rot, &values[..trees], &mut shares[..trees])?,
        }
        let (values, masks) = values.split_at(trees);
        let (shares, masked) = shares.split_at(trees);
        let mut choices = BitVec::zeros(shape.cots());
        let place = |i: usize| (i / LANES / shape.depth * LANES + i % LANES, i / LANES % shape.depth);
        for i in 0..shape.cots() {
            let (tree, level) = place(i);
            choices.set(i, alpha[tree] >> level & 1 == 0);
        }
        let (pads, _) = chosen_messages(channel, &mut self.rot, &choices)?;
        let mut message = vec![Block::ZERO; 2 * shape.cots() + values.len()];
        channel.recv_blocks(&mut message)?;
        let (pairs, corrections) = message.split_at(2 * shape.cots());
        let mut keys = Zeroizing::new(vec![Line::default(); shape.tiles * shape.depth]);
        for (i, (pair, pad)) in pairs.as_chunks::<2>().0.iter().zip(pads.iter()).enumerate() {
            let away = Block::mask(choices.get(i));
            keys[i / LANES][i % LANES] = (pair[0] & !away | pair[1] & away) ^ *pad;
        }
        let mut noise = vec![F::ZERO; layout.positions()];
        let mut sparse = vec![F::ZERO; layout.positions()];
        for tile in 0..shape.tiles {
            let trees = tile * LANES..(tile + 1) * LANES;
            let mut points = [0; LANES];
            points.copy_from_slice(&alpha[trees.clone()]);
            let keys = &keys[tile * shape.depth..][..shape.depth];
            let noise = &mut noise[tile * tile_len..][..tile_len];
            let mut others = [F::ZERO; LANES];
            ggm.expand_punctured_w(&points, keys, |start, w| {
                add_leaves(start, w, &points, noise, &mut others)
            });
            // Fig. 6 and 9: z = c + the sum of the other leaves + the share of x·y.
            let mut z = [F::ZERO; LANES];
            for (p, z) in z.iter_mut().enumerate() {
                let tree = tile * LANES + p;
                let correction: F = element(NAME, corrections[tree])?;
                *z = correction + others[p] + shares[tree];
            }
            let sparse = &mut sparse[tile * tile_len..][..tile_len];
            for (i, (noise, sparse)) in noise.iter_mut().zip(sparse).enumerate() {
                let (p, on) = (i % LANES, equal(points[i % LANES], (i / LANES) as u32));
                *noise = *noise + z[p].masked(on);
                *sparse = values[tile * LANES + p].masked(on);
            }
        }
        if self.cope.is_some() {
            let seed = self.prg.block();
            let weights = Weights::of_seed(seed, layout);
            let weigh = |x: &[F], masks: &[F]| -> Vec<Block> {
                weights.iter().zip(masks).map(|(weights, mask)| (weights.sum(x) + *mask).to_block()).collect()
            };
            let mut opened = vec![seed];
            opened.extend(weigh(&sparse, masks));
            channel.send_blocks(&opened)?;
            channel.flush()?;
            let mine = Zeroizing::new(weigh(&noise, masked));
            let mut theirs = (Commitment([0; 32]), Opening([0; 32]));
            channel.recv(&mut theirs.0.0)?;
            channel.send_blocks(&mine)?;
            channel.flush()?;
            channel.recv(&mut theirs.1.0)?;
            let binding = binding(&context, &opened);
            self.engine.settle(|| match verify(&binding, Block::as_bytes(&mine), &theirs.0, &theirs.1) {
                true => Ok(()),
                false => Err(DISAGREE),
            })?;
        }
        u.copy_from_slice(&Zeroizing::new(code.encode(sparse, u.len())));
        w.copy_from_slice(&Zeroizing::new(code.encode(noise, w.len())));
        Ok(())
    }
}

/// Stores the negative of all leaves that are positions but the punctured ones, which count as zero, and sums
/// them.
fn add_leaves<F: Field>(
    start: usize,
    w: &[Block],
    points: &[u32; LANES],
    noise: &mut [F],
    sums: &mut [F; LANES],
) {
    let Some(place) = noise.get_mut(start..) else { return };
    for (i, (place, w)) in place.iter_mut().zip(w).enumerate() {
        let at = start + i;
        let leaf = F::from_block(*w).masked(!equal(points[at % LANES], (at / LANES) as u32));
        sums[at % LANES] = sums[at % LANES] + leaf;
        *place = -leaf;
    }
}

impl<F: Field> Stream for SilentVoleSender<F> {
    type Sink<'a> = Memory<'a, F>;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Memory<'_, F>) -> Result<()> {
        let n = sink.left().min(LARGEST_RUN);
        self.make(channel, &mut sink.rest()[..n], |_| ())?;
        sink.advance(n);
        Ok(())
    }
}

impl<F: Field> Stream for SilentVoleReceiver<F> {
    type Sink<'a> = Halves<'a, F, F>;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn run(&mut self, channel: &mut Channel, sink: &mut Halves<'_, F, F>) -> Result<()> {
        let n = sink.left().min(LARGEST_RUN);
        self.make(channel, &mut sink.u.rest()[..n], &mut sink.w.rest()[..n])?;
        sink.advance(n);
        Ok(())
    }
}

impl<F: Field> VoleSender<F> for SilentVoleSender<F> {
    fn delta(&self) -> F {
        *self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [F]) -> Result<()> {
        self.fill(channel, Memory::new(out))
    }
}

impl<F: Field> VoleReceiver<F, F> for SilentVoleReceiver<F> {
    fn extend(&mut self, channel: &mut Channel, u: &mut [F], w: &mut [F]) -> Result<()> {
        self.fill(channel, Halves::new(NAME, u, w)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base;
    use tacit_crypto::field::{F61, F128};
    use tacit_net::memory;

    fn prg(seed: u128) -> Prg {
        Prg::from_seed(Block::new(seed))
    }

    fn delta<F: Field>(seed: u128) -> F {
        F::from_block(prg(seed).block())
    }

    fn sender<F: Field>(ch: &mut Channel, seed: u128) -> Result<SilentVoleSender<F>> {
        SilentVoleSender::setup(ch, &*base::default(), &mut prg(seed + 1), delta(seed), Security::Malicious)
    }

    fn receiver<F: Field>(ch: &mut Channel, seed: u128) -> Result<SilentVoleReceiver<F>> {
        SilentVoleReceiver::setup(ch, &*base::default(), &mut prg(seed + 2), Security::Malicious)
    }

    fn cheated<T>(result: Result<T>) -> bool {
        match result {
            Ok(_) => false,
            Err(Error::Cheated { protocol: NAME, .. }) => true,
            Err(other) => panic!("{other}"),
        }
    }

    /// Whether a sender's changed message is caught; nothing comes out then, and nothing later.
    fn caught<F: Field>(seed: u128, change: impl FnOnce(&mut [Block]) + Send) -> bool {
        let (sent, result) = memory::run(
            |ch| sender::<F>(ch, seed)?.make(ch, &mut [F::ZERO; 5], change),
            |ch| {
                let mut r = receiver::<F>(ch, seed)?;
                let (mut u, mut w) = ([F::ONE; 5], [F::ONE; 5]);
                let result = VoleReceiver::extend(&mut r, ch, &mut u, &mut w);
                if result.is_err() {
                    assert!(u == [F::ZERO; 5] && w == [F::ZERO; 5]);
                    assert!(matches!(VoleReceiver::extend(&mut r, ch, &mut u, &mut w), Err(Error::Spent(_))));
                }
                result
            },
        );
        // Of a comparison that fails, the sender may see it first, and close the link.
        match result {
            Err(Error::Net(_)) => cheated(sent),
            other => cheated(other),
        }
    }

    #[test]
    fn a_sender_that_guesses_a_bit_of_a_position_is_right_half_of_the_time() {
        let trials = 100;
        let passed = (0..trials)
            .filter(|i| !caught::<F61>(10 * *i as u128, |m| m[i * 67 % 3000] ^= Block::new(2)))
            .count();
        // 50 expected, with a standard deviation of 5.
        assert!((30..=70).contains(&passed), "{passed} of {trials} guesses were right");
    }

    #[test]
    fn a_sender_with_another_delta_in_one_tree_is_caught() {
        for i in 1..8 {
            let spoil = |m: &mut [Block]| {
                let at = m.len() - 50 * i;
                m[at] = (F128::from_block(m[at]) + F128::ONE).to_block();
            };
            assert!(caught::<F128>(1000 + i as u128, spoil), "tree {i}");
        }
        assert!(!caught::<F128>(1000, |_| ()) && !caught::<F61>(1000, |_| ()), "honest");
    }

    /// A check over the small field is two, with weights of their own: whoever meets one by chance is caught by
    /// the other.
    #[test]
    fn a_small_field_is_checked_twice() {
        assert_eq!((checks::<F61>(), checks::<F128>()), (2, 1));
        let layout = Noise::of_field(usize::MAX, 5);
        let noise: Vec<F61> =
            (0..layout.positions()).map(|i| F61::from_block(prg(i as u128).block())).collect();
        let sums = |seed| -> Vec<F61> {
            Weights::of_seed(Block::new(seed), layout).iter().map(|weights| weights.sum(&noise)).collect()
        };
        let (one, other) = (sums(1), sums(2));
        assert!(one.len() == 2 && one[0] != one[1] && one[0] != other[0] && one[1] != other[1]);
        assert_eq!(sums(1), one);
        // Two runs of one session on one channel have contexts of their own.
        let (mut a, _b) = memory::pair();
        let drawn = [(); 2].map(|()| context::<F61>(&mut a, Security::Malicious).challenge_block("test"));
        assert!(drawn[0] != drawn[1]);
    }

    #[test]
    fn a_receiver_that_guesses_a_bit_of_delta_is_caught_when_wrong() {
        let trials = 40;
        let mut passed = 0;
        for trial in 0..trials as u128 {
            let bit = trial as usize * 7 % F61::BITS;
            let (s, _) = memory::run(
                |ch| {
                    let mut cope =
                        CopeSender::setup(ch, &*base::default(), &mut prg(1), delta::<F61>(trial))?;
                    let mut v = [F61::ONE; 9];
                    let result = cope.extend(ch, NAME, &mut prg(2), &mut v);
                    assert!(result.is_ok() || v == [F61::ONE; 9]);
                    result
                },
                |ch| {
                    let mut cope = CopeReceiver::setup::<F61>(ch, &*base::default(), &mut prg(3))?;
                    let spoil = |i: usize, row: &mut [F61]| {
                        if i == bit {
                            row[4] = row[4] + F61::ONE;
                        }
                    };
                    cope.extend_with(ch, &mut prg(4), &[F61::ONE; 9], &mut [F61::ZERO; 9], spoil)
                },
            );
            // Who has a 0 there does not see it.
            assert_eq!(cheated(s), delta::<F61>(trial).to_block().bit(bit), "trial {trial}");
            passed += !delta::<F61>(trial).to_block().bit(bit) as usize;
        }
        assert!((8..=32).contains(&passed), "{passed} of {trials} guesses were right");
    }

    /// Setups on one channel share no hash, of whatever else they agree.
    #[test]
    fn each_setup_of_a_channel_has_a_context_of_its_own() {
        let (mut channel, _peer) = tacit_net::memory::pair_with(tacit_net::SessionId([7; 32]));
        let mut drawn =
            || context::<F61>(&mut channel, Security::Malicious).challenge_block("test").to_u128();
        assert_ne!(drawn(), drawn());
    }
}
