//! Shared by the tests of OT extension: a dealer in place of the base OT, and two parties in two threads.
#![allow(dead_code)]

use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{BaseOt, Result, Security};

/// Insecure, for tests: both sides draw the sender's messages from one public seed. Says it is malicious, so
/// that the protocols under test take it.
pub(crate) struct Dealer(pub u128);

impl BaseOt for Dealer {
    fn name(&self) -> &'static str {
        "dealer"
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn send(&self, _: &mut Channel, _: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        Prg::from_seed(Block::new(self.0)).fill_blocks(out.as_flattened_mut());
        Ok(())
    }

    fn receive(&self, _: &mut Channel, _: &mut Prg, choices: &BitVec, out: &mut [Block]) -> Result<()> {
        let mut pairs = vec![[Block::ZERO; 2]; out.len()];
        Prg::from_seed(Block::new(self.0)).fill_blocks(pairs.as_flattened_mut());
        for (j, slot) in out.iter_mut().enumerate() {
            *slot = pairs[j][choices.get(j) as usize];
        }
        Ok(())
    }
}

/// A seeded generator.
pub(crate) fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

/// Runs two parties and unwraps both results.
pub(crate) fn run<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> Result<A> + Send,
    second: impl FnOnce(&mut Channel) -> Result<B> + Send,
) -> (A, B) {
    let (a, b) = tacit_net::memory::run(first, second);
    (a.expect("first party"), b.expect("second party"))
}

/// w = v ⊕ u·Δ with u in the lowest bits, for every correlation.
pub(crate) fn assert_correlated(delta: Block, v: &[Block], w: &[Block]) {
    assert!(delta.lsb(), "Δ's lowest bit is 1");
    assert_eq!(v.len(), w.len());
    for (j, (v, w)) in v.iter().zip(w).enumerate() {
        assert!(!v.lsb(), "the sender's lowest bit is 0 at {j}");
        assert!(*w == *v ^ (delta & Block::mask(w.lsb())), "wrong correlation at {j}");
    }
}

/// The choice bits, which are the lowest of `w`: balance of them, and of their sums with neighbours and at
/// strides. For ten thousand or more.
pub(crate) fn assert_random_choices(w: &[Block]) {
    if w.len() < 10_000 {
        return;
    }
    let bits = BitVec::from_lsbs(w);
    for stride in [0, 1, 2, 3, 64, 1024] {
        let n = w.len() - stride;
        let ones = (0..n).filter(|&i| bits.get(i) ^ (stride > 0 && bits.get(i + stride))).count();
        let deviation = (ones as f64 - n as f64 / 2.0).abs() / (n as f64 / 4.0).sqrt();
        assert!(deviation < 6.0, "stride {stride}: {deviation} standard deviations");
    }
}
