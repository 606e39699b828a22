//! Vector oblivious linear evaluation: w = v + u·Δ over a field, one party holding Δ and v, the other u and w.
//!
//! - [`prime`]: many random correlations from little traffic, over prime fields (BCGIKRS19).
//! - [`gf128`]: the same over GF(2^128) with u in the whole field; its code is [`ScaledAccumulate`](crate::silent::code::ScaledAccumulate). With u in
//!   GF(2) the correlated OTs of [`bcgikrs19`](crate::silent::bcgikrs19) are that correlation, and
//!   [`subfield`] has u in GF(4), GF(16) or GF(256).
//! - [`reverse`]: chosen inputs on both sides, by bits of one side's input; what `prime` is set up with.

pub(crate) mod cope;
pub mod gf128;
pub mod prime;
pub mod reverse;
pub mod subfield;

pub use gf128::{Gf128Receiver, Gf128Sender};
pub use prime::{SilentVoleReceiver, SilentVoleSender};

use crate::silent::bcgikrs19::{SilentReceiver, SilentSender};
use crate::{CotReceiver, CotSender, Error, Result, VoleReceiver, VoleSender};
use tacit_crypto::Block;
use tacit_net::Channel;

impl VoleSender<Block> for SilentSender {
    fn delta(&self) -> Block {
        CotSender::delta(self)
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        CotSender::extend(self, channel, out)
    }
}

impl VoleReceiver<bool, Block> for SilentReceiver {
    fn extend(&mut self, channel: &mut Channel, u: &mut [bool], w: &mut [Block]) -> Result<()> {
        if u.len() != w.len() {
            return Err(Error::Usage { protocol: "silent", what: "as many u as w" });
        }
        CotReceiver::extend(self, channel, w)?;
        for (u, w) in u.iter_mut().zip(w) {
            *u = w.lsb();
        }
        Ok(())
    }
}
