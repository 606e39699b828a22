//! For tests: correlations for a setup, from nowhere.

use crate::{CotReceiver, CotSender, Result};
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;

/// A trusted dealer for the setup's correlations: both ends draw from one seed.
pub(crate) struct Dealer {
    prg: Prg,
    delta: Block,
    receives: bool,
}

impl Dealer {
    pub(crate) fn pair(seed: u128) -> (Dealer, Dealer) {
        let mut prg = Prg::from_seed(Block::new(seed));
        let delta = prg.block().with_lsb(true);
        (Dealer { prg: prg.clone(), delta, receives: false }, Dealer { prg, delta, receives: true })
    }

    fn deal(&mut self, out: &mut [Block]) {
        for slot in out {
            let (v, u) = (self.prg.block().with_lsb(false), self.prg.bit());
            *slot = if self.receives { v ^ (self.delta & Block::mask(u)) } else { v };
        }
    }
}

impl CotSender for Dealer {
    fn delta(&self) -> Block {
        self.delta
    }
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.deal(out);
        Ok(())
    }
}

impl CotReceiver for Dealer {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.deal(out);
        Ok(())
    }
}
