//! OT extension: one file a protocol.
//!
//! | file | makes | security | bytes an OT |
//! | --- | --- | --- | --- |
//! | [`iknp`] | correlated OT | semi-honest | 15.875 |
//! | [`kos`] | correlated OT | malicious | 15.94 in full batches |
//! | [`oos`] | 1-out-of-2^k OT over a linear code | malicious | length of the code / 8 |
//! | [`softspoken`] | correlated OT | either | 2, 4 or 8, malicious 0.04 more |
//!
//! [`crate::convert`] makes random and chosen OT of any of them. Forks of one sender or receiver are streams
//! of one setup, each for a channel of its own.
//!
//! ```
//! use tacit_crypto::{Block, Prg};
//! use tacit_ot::extension::{KosReceiver, KosSender};
//! use tacit_ot::{CotReceiver, CotSender, Result, base};
//! let (mut v, mut w) = (vec![Block::ZERO; 1000], vec![Block::ZERO; 1000]);
//! let (delta, done) = tacit_net::memory::run(
//!     |channel| -> Result<Block> {
//!         let mut sender = KosSender::setup(channel, &*base::default(), &mut Prg::from_os())?;
//!         sender.extend(channel, &mut v)?;
//!         Ok(sender.delta())
//!     },
//!     |channel| {
//!         let mut receiver = KosReceiver::setup(channel, &*base::default(), &mut Prg::from_os())?;
//!         receiver.extend(channel, &mut w)
//!     },
//! );
//! done?;
//! let delta = delta?;
//! // The choice bit u stands in the lowest bit of w, and w = v ⊕ u·Δ.
//! assert!((0..1000).all(|j| w[j] == v[j] ^ (delta & Block::mask(w[j].lsb()))));
//! # Ok::<(), tacit_ot::Error>(())
//! ```

pub mod code;
mod columns;
pub(crate) mod either;
pub mod iknp;
pub mod kos;
pub mod oos;
pub mod softspoken;

pub use iknp::{IknpReceiver, IknpSender};
pub use kos::{KosReceiver, KosSender};
pub use oos::{OosReceiver, OosSender};
pub use softspoken::{SoftReceiver, SoftSender};

/// What is left of a setup whose base OTs have begun; it only receives.
pub type Setup<C> = Box<dyn FnOnce(&mut tacit_net::Channel) -> crate::Result<C> + Send>;
