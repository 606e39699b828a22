//! Channels between two parties.
//!
//! A protocol is straight-line blocking code over `&mut` [`Channel`]. [`memory::pair`] joins two parties in
//! one process; [`listen`] and [`connect`] join two machines.
//!
//! ```
//! let (sum, ()) = tacit_net::memory::run(
//!     |channel| channel.recv_u64().unwrap() + channel.recv_u64().unwrap(),
//!     |channel| {
//!         channel.send_u64(40).unwrap();
//!         channel.send_u64(2).unwrap();
//!     },
//! );
//! assert_eq!(sum, 42);
//! ```
#![forbid(unsafe_code)]

mod address;
pub mod calendar;
mod cancel;
mod cause;
pub mod certificate;
mod channel;
pub mod crowd;
pub mod durable;
pub mod emulate;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handshake;
mod inbox;
pub mod invite;
pub mod keys;
pub mod link;
mod listener;
mod lobby;
pub mod meeting;
pub mod memory;
mod patience;
mod proxy;
mod reception;
pub mod relay;
pub mod rendezvous;
mod session;
mod setup;
pub mod small;
pub mod succession;
pub mod tcp;
pub mod testing;
mod tls;
mod waiting;
mod wake;

pub use address::address_of;
pub use cancel::Cancel;
pub use cause::Cause;
pub use channel::{Channel, Limits, MAX_FRAME, Party, Recording, SessionId, Stats, Traffic};
pub use emulate::LinkModel;
pub use error::{Difference, Error, Fault, Result};
pub use handshake::{Agreement, RELEASE, WIRE_VERSION};
pub use keys::{Identity, PublicKey, SIGNATURE};
pub use link::Link;
pub use listener::Listener;
pub use patience::SLOWEST;
pub use proxy::Proxy;
pub use reception::Reception;
pub use session::{Session, call, connect, is_loopback, listen, meet};
pub use setup::{Options, Protection};
pub use succession::{PublicKeys, name_successor};
pub use tacit_crypto::text::{escaped, shown};
pub use tls::{OneSided, Tls};
pub use waiting::{Event, Observer};
