//! Base OT: one file a protocol.
//!
//! Every protocol is a batch, and a pair of plain functions from message to message: `Sender::start`,
//! `Receiver::start` and what follows take and give byte strings, so that a message can travel as a file.
//! [`BaseOt`] runs them over a channel. What all hashes of a batch bind (session, protocol, direction, run,
//! size) is a [`Run`].
//!
//! ```
//! use tacit_crypto::{BitVec, Block, Prg};
//! use tacit_ot::base;
//! let choices = BitVec::from_bools(&[true, false, true]);
//! let mut pairs = vec![[Block::ZERO; 2]; 3];
//! let mut chosen = vec![Block::ZERO; 3];
//! let (sent, received) = tacit_net::memory::run(
//!     |channel| base::default().send(channel, &mut Prg::from_os(), &mut pairs),
//!     |channel| base::default().receive(channel, &mut Prg::from_os(), &choices, &mut chosen),
//! );
//! sent.unwrap();
//! received.unwrap();
//! assert!((0..3).all(|i| chosen[i] == pairs[i][choices.get(i) as usize]));
//! ```

pub mod co15;
pub mod csw20;
pub mod mr19;
pub mod mrr21;
mod one_key;
mod one_round;
pub mod roted;
mod run;

pub use one_round::OneRound;
pub use run::{Oracle, Run};

use crate::BaseOt;

/// The protocol used where nothing else is asked for: malicious security, one round.
pub const DEFAULT: &str = mrr21::NAME;

/// The protocols' short names, as [`by_name`] knows them.
pub const NAMES: [&str; 5] = [co15::NAME, csw20::NAME, mr19::NAME, mrr21::NAME, roted::NAME];

/// The protocol of that short name, `None` for a name that is none of [`NAMES`].
pub fn by_name(name: &str) -> Option<Box<dyn BaseOt + Send + Sync>> {
    match name {
        co15::NAME => Some(Box::new(co15::Co15)),
        csw20::NAME => Some(Box::new(csw20::Csw20)),
        mr19::NAME => Some(Box::new(mr19::Mr19)),
        mrr21::NAME => Some(Box::new(mrr21::Mrr21)),
        roted::NAME => Some(Box::new(roted::Roted::default())),
        _ => None,
    }
}

/// The protocol named [`DEFAULT`].
pub fn default() -> Box<dyn BaseOt + Send + Sync> {
    Box::new(mrr21::Mrr21)
}
