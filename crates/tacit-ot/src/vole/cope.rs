//! VOLE over prime fields for few inputs of the receiver's choice, malicious: correlated products from base
//! OTs with a check (Keller–Orsini–Scholl, MASCOT, 2016/505, figure 3; the check of Weng–Yang–Katz–Wang,
//! 2020/925, figure 15).
//!
//! The sender's bits of Δ are its choices in one base OT each, so Δ is fixed for good. The receiver could use
//! another u for some of the bits: a random combination of all correlations, hidden by one more that is given
//! up, shows it, unless the sender's bits there are as it guesses. A receiver so learns bits of Δ, and is
//! caught when one guess is wrong. An element of 16 bytes a bit and a correlation from the receiver; then 16
//! and 32 bytes for each check. Two values of Δ that a combination does not tell apart have probability 1/p; a
//! guess that is right with probability g leaves 1/(2·g²) pairs, so over 2^61 − 1 one combination gives 2^-30 (see
//! [`prime`](super::prime)). There are two there, and 2^-60; one over 2^128 − 159, and 2^-63.

use crate::{BaseOt, Error, Result};
use subtle::{Choice, ConstantTimeEq};
use tacit_crypto::field::Field;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The sender, who holds Δ.
pub(crate) struct CopeSender<F: Field> {
    delta: Zeroizing<F>,
    bits: Zeroizing<Vec<bool>>,
    keys: Vec<Prg>,
}

/// The receiver, who chooses u.
pub(crate) struct CopeReceiver {
    keys: Vec<[Prg; 2]>,
}

/// Σ 2^i·x_i, from the highest bit down.
fn gather<F: Field>(sum: &mut [F], next: impl Iterator<Item = F>) {
    for (sum, next) in sum.iter_mut().zip(next) {
        *sum = *sum + *sum + next;
    }
}

/// Random elements of a key's stream.
fn stream<F: Field>(prg: &mut Prg, n: usize) -> Zeroizing<Vec<F>> {
    let mut blocks = Zeroizing::new(vec![Block::ZERO; n]);
    prg.fill_blocks(&mut blocks);
    Zeroizing::new(blocks.iter().map(|block| F::from_block(*block)).collect())
}

/// How many times a check over the field is made, with weights of its own each time.
pub(super) const fn checks<F: Field>() -> usize {
    if F::BITS < 100 { 2 } else { 1 }
}

/// Σ χ_h·x_h + x_last for each check, which has one of the last x, for the public seed of all χ.
fn combine<F: Field>(seed: Block, x: &[F]) -> Zeroizing<Vec<F>> {
    let (rest, masks) = x.split_at(x.len().saturating_sub(checks::<F>()));
    let mut prg = Prg::from_seed(seed);
    let sum = |mask: &F| {
        let chi = stream::<F>(&mut prg, rest.len());
        rest.iter().zip(chi.iter()).fold(*mask, |sum, (x, chi)| sum + *x * *chi)
    };
    Zeroizing::new(masks.iter().map(sum).collect())
}

pub(super) fn element<F: Field>(protocol: &'static str, block: Block) -> Result<F> {
    F::from_canonical(block).ok_or(Error::Malformed { protocol, what: "a number beyond the field" })
}

impl<F: Field> CopeSender<F> {
    /// Sets up from a malicious base OT, in which this side receives one a bit.
    pub(crate) fn setup(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg, delta: F) -> Result<Self> {
        let bits: Zeroizing<Vec<bool>> =
            Zeroizing::new((0..F::BITS).map(|i| delta.to_block().bit(i)).collect());
        let mut keys = Zeroizing::new(vec![Block::ZERO; F::BITS]);
        base.receive(channel, prg, &BitVec::from_bools(&bits), &mut keys)?;
        let keys = keys.iter().map(|key| Prg::from_seed(*key)).collect();
        Ok(CopeSender { delta: Zeroizing::new(delta), bits, keys })
    }

    /// Fills `v`: the receiver gets w = v + u·Δ.
    ///
    /// Nothing is left in `v` on an error. `Cheated` when the receiver's inputs are not the same for all
    /// bits.
    pub(crate) fn extend(
        &mut self,
        channel: &mut Channel,
        protocol: &'static str,
        prg: &mut Prg,
        v: &mut [F],
    ) -> Result<()> {
        let n = v.len() + checks::<F>();
        let mut all = Zeroizing::new(vec![F::ZERO; n]);
        let mut differences = vec![Block::ZERO; n];
        for (i, key) in self.keys.iter_mut().enumerate().rev() {
            channel.recv_blocks(&mut differences)?;
            let bit = Block::mask(self.bits[i]);
            let mut row = stream::<F>(key, n);
            for (x, difference) in row.iter_mut().zip(&differences) {
                *x = *x + element::<F>(protocol, *difference)?.masked(bit);
            }
            // v = −Σ 2^i·(a_i + Δ_i·u) and w = −Σ 2^i·a_i.
            gather(&mut all, row.iter().map(|x| -*x));
        }
        let seed = prg.block();
        channel.send_block(seed)?;
        channel.flush()?;
        let mut answer = vec![Block::ZERO; 2 * checks::<F>()];
        channel.recv_blocks(&mut answer)?;
        let mut same = Choice::from(1);
        for (sum, [x, z]) in combine(seed, &all).iter().zip(answer.as_chunks().0) {
            let [x, z] = [element::<F>(protocol, *x)?, element::<F>(protocol, *z)?];
            same &= z.to_block().ct_eq(&(*sum + x * *self.delta).to_block());
        }
        if !bool::from(same) {
            return Err(Error::Cheated { protocol, what: "the inputs differ from bit to bit of Δ" });
        }
        v.copy_from_slice(&all[..v.len()]);
        Ok(())
    }
}

impl CopeReceiver {
    /// Sets up from a malicious base OT, in which this side sends one a bit.
    pub(crate) fn setup<F: Field>(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Self> {
        let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; F::BITS]);
        base.send(channel, prg, &mut pairs)?;
        Ok(CopeReceiver { keys: pairs.iter().map(|pair| pair.map(Prg::from_seed)).collect() })
    }

    /// Fills `w` for the inputs `u`, as many.
    pub(crate) fn extend<F: Field>(
        &mut self,
        channel: &mut Channel,
        prg: &mut Prg,
        u: &[F],
        w: &mut [F],
    ) -> Result<()> {
        self.extend_with(channel, prg, u, w, |_, _| ())
    }

    /// [`extend`](Self::extend); `change` sees what goes out for each bit of Δ.
    pub(crate) fn extend_with<F: Field>(
        &mut self,
        channel: &mut Channel,
        prg: &mut Prg,
        u: &[F],
        w: &mut [F],
        change: impl Fn(usize, &mut [F]),
    ) -> Result<()> {
        let n = u.len() + checks::<F>();
        let mut inputs = Zeroizing::new(Vec::with_capacity(n));
        inputs.extend_from_slice(u);
        inputs.extend((0..checks::<F>()).map(|_| F::from_block(prg.block())));
        let mut all = Zeroizing::new(vec![F::ZERO; n]);
        for (i, [zero, one]) in self.keys.iter_mut().enumerate().rev() {
            let (zero, one) = (stream::<F>(zero, n), stream::<F>(one, n));
            let rows = zero.iter().zip(one.iter()).zip(inputs.iter());
            // a − b + u: the sender's row becomes a + Δ_i·u.
            let mut row: Zeroizing<Vec<F>> = Zeroizing::new(rows.map(|((a, b), u)| *a - *b + *u).collect());
            change(i, &mut row);
            let message: Vec<Block> = row.iter().map(|x| x.to_block()).collect();
            channel.send_blocks(&message)?;
            gather(&mut all, zero.iter().map(|x| -*x));
        }
        channel.flush()?;
        let seed = channel.recv_block()?;
        for (x, z) in combine(seed, &inputs).iter().zip(combine(seed, &all).iter()) {
            channel.send_blocks(&[x.to_block(), z.to_block()])?;
        }
        channel.flush()?;
        w.copy_from_slice(&all[..u.len()]);
        all.zeroize();
        Ok(())
    }
}
