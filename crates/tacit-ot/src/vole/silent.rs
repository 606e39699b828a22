//! Silent VOLE over a prime field (BCGIKRS19, sections 4 and 5: figures 3, 6 and 9).
//!
//! - **Realises** w = v + u·Δ with u, v random and Δ of the sender's choice, against semi-honest parties, in the
//!   random-oracle and ideal-permutation models, under dual LPN over the field with regular noise.
//! - **Traffic**: KOS for the random OTs; 32 bytes a level and 16 a tree for the trees, 16 a bit of a tree's value for the
//!   reverse VOLE, whatever the number of correlations.
//!
//! The noise has a random nonzero value at one leaf of each tree. Deviation from figure 9: the OTs come from KOS instead of a
//! base OT each, which takes more messages and far fewer public-key operations.

use super::reverse::{self, chosen_messages, chosen_pairs};
use crate::convert::CotToRot;
use crate::extension::{KosReceiver, KosSender};
use crate::silent::bcgikrs19::{Code, LARGEST_RUN, positions};
use crate::silent::code::FieldAccumulate;
use crate::silent::pprf::{Ggm, Leaves, Line, Punctured, equal};
use crate::silent::spcot::Shape;
use crate::{BaseOt, Error, Result, VoleReceiver, VoleSender};
use core::marker::PhantomData;
use tacit_crypto::field::Field;
use tacit_crypto::ggm::LANES;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "silent vole";

/// What both parties do alike.
struct Core<F> {
    context: Transcript,
    run: u64,
    field: PhantomData<F>,
}

impl<F: Field> Core<F> {
    fn agree(channel: &mut Channel, prg: &mut Prg, sends: bool) -> Result<Self> {
        let mut context = Transcript::new("tacit silent vole v1");
        context.append("session", &channel.session_id().0);
        context.append("field", F::NAME.as_bytes());
        let digest = context.clone().challenge_block("parameters");
        let mine = prg.block();
        channel.send_blocks(&[digest, mine])?;
        let mut theirs = [Block::ZERO; 2];
        channel.recv_blocks(&mut theirs)?;
        if theirs[0] != digest {
            return Err(Error::Malformed { protocol: NAME, what: "the peer uses another field" });
        }
        context.append_blocks("seeds", &if sends { [mine, theirs[1]] } else { [theirs[1], mine] });
        Ok(Core { context, run: 0, field: PhantomData })
    }

    fn begin(&mut self, count: usize) -> (Shape, Ggm, FieldAccumulate<F>) {
        self.run += 1;
        let shape = Code::Linear.shape(count);
        let mut context = self.context.clone();
        context.append_u64("run", self.run);
        let code = FieldAccumulate::new(context.challenge_block("code"), positions(shape));
        (shape, Ggm::new(&context, shape.depth), code)
    }
}

/// The sender, who holds Δ.
pub struct SilentVoleSender<F> {
    core: Core<F>,
    delta: F,
    rot: CotToRot<KosSender>,
    prg: Prg,
}

/// The receiver, who gets random u.
pub struct SilentVoleReceiver<F> {
    core: Core<F>,
    rot: CotToRot<KosReceiver>,
    prg: Prg,
}

impl<F: Field> SilentVoleSender<F> {
    /// Sets up with the correlation `delta` from a malicious base OT, in which this side receives 128.
    ///
    /// Errors: those of the link and the base OT; `Malformed` when the peer uses another field.
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, delta: F) -> Result<Self> {
        let rot = CotToRot::new(KosSender::setup(channel, base, prg)?, prg);
        Ok(SilentVoleSender { core: Core::agree(channel, prg, true)?, delta, rot, prg: prg.fork() })
    }

    /// Reverse VOLE of the receiver's inputs y: fills `b` with random elements; the receiver gets Δ·y − b.
    pub fn reverse(&mut self, channel: &mut Channel, b: &mut [F]) -> Result<()> {
        self.extend(channel, b)?;
        let mut differences = vec![Block::ZERO; b.len()];
        channel.recv_blocks(&mut differences).inspect_err(|_| b.zeroize())?;
        for (b, d) in b.iter_mut().zip(differences) {
            // w = v + u·Δ and d = y − u, so w + (d·Δ − v) = y·Δ.
            *b = F::from_block(d) * self.delta - *b;
        }
        Ok(())
    }

    fn run(&mut self, channel: &mut Channel, out: &mut [F]) -> Result<()> {
        let (shape, mut ggm, code) = self.core.begin(out.len());
        let mut shares = Zeroizing::new(vec![F::ZERO; shape.tiles * LANES]);
        reverse::send(channel, &mut self.rot, self.delta, &mut shares)?;
        let pads = chosen_pairs(channel, &mut self.rot, shape.cots())?;
        let mut noise = vec![F::ZERO; positions(shape)];
        let mut message = Vec::with_capacity(2 * shape.cots() + shares.len());
        let mut sums = vec![[Line::default(); 2]; shape.depth];
        let mut roots = Line::default();
        let mut corrections = Vec::with_capacity(shares.len());
        let tiles = noise.chunks_mut(LANES << shape.depth).zip(pads.chunks(LANES * shape.depth));
        for ((noise, pads), shares) in tiles.zip(shares.chunks(LANES)) {
            self.prg.fill_blocks(&mut roots);
            let mut totals = [F::ZERO; LANES];
            ggm.expand(&roots, &mut sums, |leaves| {
                for (i, w) in leaves.w.iter().enumerate() {
                    let leaf = F::from_block(*w);
                    totals[i % LANES] = totals[i % LANES] + leaf;
                    // v is what w has apart from u·Δ, so the leaves count negative.
                    noise[leaves.start + i] = -leaf;
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
        channel.send_blocks(&message)?;
        channel.flush()?;
        out.copy_from_slice(&Zeroizing::new(code.encode(noise, out.len())));
        Ok(())
    }
}

impl<F: Field> SilentVoleReceiver<F> {
    /// Sets up from a malicious base OT, in which this side sends 128.
    ///
    /// Errors: as for [`SilentVoleSender::setup`].
    pub fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        let rot = CotToRot::new(KosReceiver::setup(channel, base, prg)?, prg);
        Ok(SilentVoleReceiver { core: Core::agree(channel, prg, false)?, rot, prg: prg.fork() })
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

    /// A tree's point and its nonzero value, for every tree.
    fn noise(&mut self, shape: Shape) -> (Zeroizing<Vec<u32>>, Zeroizing<Vec<F>>) {
        let trees = shape.tiles * LANES;
        let mask = (1u64 << shape.depth) - 1;
        let alpha = (0..trees).map(|_| (self.prg.u64() & mask) as u32).collect();
        let nonzero = |_| loop {
            let y = F::from_block(self.prg.block());
            if y != F::ZERO {
                return y;
            }
        };
        (Zeroizing::new(alpha), Zeroizing::new((0..trees).map(nonzero).collect()))
    }

    fn run(&mut self, channel: &mut Channel, u: &mut [F], w: &mut [F]) -> Result<()> {
        let (shape, mut ggm, code) = self.core.begin(w.len());
        let (alpha, values) = self.noise(shape);
        let mut shares = Zeroizing::new(vec![F::ZERO; values.len()]);
        reverse::receive(channel, &mut self.rot, &values, &mut shares)?;
        let mut choices = BitVec::zeros(shape.cots());
        let place = |i: usize| (i / LANES / shape.depth * LANES + i % LANES, i / LANES % shape.depth);
        for i in 0..shape.cots() {
            let (tree, level) = place(i);
            choices.set(i, alpha[tree] >> level & 1 == 0);
        }
        let pads = chosen_messages(channel, &mut self.rot, &choices)?;
        let mut message = vec![Block::ZERO; 2 * shape.cots() + values.len()];
        channel.recv_blocks(&mut message)?;
        let (pairs, corrections) = message.split_at(2 * shape.cots());
        let mut keys = Zeroizing::new(vec![Line::default(); shape.tiles * shape.depth]);
        for (i, (pair, pad)) in pairs.as_chunks::<2>().0.iter().zip(pads.iter()).enumerate() {
            let away = Block::mask(choices.get(i));
            keys[i / LANES][i % LANES] = (pair[0] & !away | pair[1] & away) ^ *pad;
        }
        let mut noise = vec![F::ZERO; positions(shape)];
        let mut sparse = vec![F::ZERO; positions(shape)];
        let tile_len = LANES << shape.depth;
        for tile in 0..shape.tiles {
            let trees = tile * LANES..(tile + 1) * LANES;
            let mut points = [0; LANES];
            points.copy_from_slice(&alpha[trees.clone()]);
            let keys = keys[tile * shape.depth..][..shape.depth].to_vec();
            let key =
                Punctured { alpha: points, keys, correction: Default::default(), gamma: Default::default() };
            let noise = &mut noise[tile * tile_len..][..tile_len];
            let mut others = [F::ZERO; LANES];
            ggm.expand_punctured(&key, |leaves| add_leaves(&leaves, &points, noise, &mut others));
            // Fig. 6 and 9: z = c + the sum of the other leaves + the share of x·y.
            let mut z = [F::ZERO; LANES];
            for (p, z) in z.iter_mut().enumerate() {
                let tree = tile * LANES + p;
                let correction = F::from_canonical(corrections[tree])
                    .ok_or(Error::Malformed { protocol: NAME, what: "a number beyond the field" })?;
                *z = correction + others[p] + shares[tree];
            }
            let sparse = &mut sparse[tile * tile_len..][..tile_len];
            for (i, (noise, sparse)) in noise.iter_mut().zip(sparse).enumerate() {
                let (p, on) = (i % LANES, equal(points[i % LANES], (i / LANES) as u32));
                *noise = *noise + z[p].masked(on);
                *sparse = values[tile * LANES + p].masked(on);
            }
        }
        u.copy_from_slice(&Zeroizing::new(code.encode(sparse, u.len())));
        w.copy_from_slice(&Zeroizing::new(code.encode(noise, w.len())));
        Ok(())
    }
}

/// Stores the negative of all leaves but the punctured ones, which count as zero, and sums them.
fn add_leaves<F: Field>(leaves: &Leaves<'_>, points: &[u32; LANES], noise: &mut [F], sums: &mut [F; LANES]) {
    for (i, w) in leaves.w.iter().enumerate() {
        let at = leaves.start + i;
        let leaf = F::from_block(*w).masked(!equal(points[at % LANES], (at / LANES) as u32));
        sums[at % LANES] = sums[at % LANES] + leaf;
        noise[at] = -leaf;
    }
}

impl<F: Field> VoleSender<F> for SilentVoleSender<F> {
    fn delta(&self) -> F {
        self.delta
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [F]) -> Result<()> {
        let mut done = Ok(());
        for piece in out.chunks_mut(LARGEST_RUN) {
            done = done.and_then(|()| self.run(channel, piece));
        }
        done.inspect_err(|_| out.zeroize())
    }
}

impl<F: Field> VoleReceiver<F, F> for SilentVoleReceiver<F> {
    fn extend(&mut self, channel: &mut Channel, u: &mut [F], w: &mut [F]) -> Result<()> {
        if u.len() != w.len() {
            return Err(Error::Usage { protocol: NAME, what: "as many u as w" });
        }
        let mut done = Ok(());
        for (u, w) in u.chunks_mut(LARGEST_RUN).zip(w.chunks_mut(LARGEST_RUN)) {
            done = done.and_then(|()| self.run(channel, u, w));
        }
        done.inspect_err(|_| {
            u.zeroize();
            w.zeroize();
        })
    }
}
