//! Two parties compute on data that neither may see.
//!
//! - [`Session`]: how to reach the peer, whom to accept, how much to trust it; [`Session::intersect`] is the main job.
//! - [`mod@job`]: what two parties do together, each with its parameters, its cost and what it tells the other side.
//! - [`job::eval`]: functions of both parties' inputs, by name or from circuit files; [`Session::evaluate_named`] is the
//!   short way.
//! - [`mod@ot`]: the table of OT protocols, and runs of any size over any number of threads.
//! - [`link`]: a link's delay and bandwidth, measured.
//! - [`plan`]: what each protocol would cost on a link, and which is the fastest.
//! - [`data`]: tables and their keys, NumPy archives.
//! - [`psi`], [`net`], [`crypto`]: the floors below, for set intersection, channels and links, blocks and kernels.
//!
//! ```
//! use tacit::{Result, Session, job::psi::Learns};
//!
//! # fn main() -> Result<()> {
//! // Plaintext is refused for any address but this machine's own; `Session::keys` turns on TLS.
//! let peer = std::thread::spawn(|| {
//!     Session::listen("127.0.0.1:7708").plaintext()?.intersect(&["ann", "bob"], Learns::Peer)
//! });
//! let session = Session::connect("127.0.0.1:7708").plaintext()?;
//! let outcome = session.intersect(&["bob", "cleo"], Learns::Me)?;
//! assert_eq!(outcome.matches, Some(vec![0]));
//! assert_eq!(peer.join().unwrap()?.peer_elements, 2);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod assumptions;
mod error;
pub mod job;
pub mod limits;
pub mod link;
pub mod ot;
pub mod plan;
mod security;
mod session;

pub use error::{Blame, Error, Result};
pub use security::security_name;
pub use session::Session;
pub use tacit_2pc as two_pc;
pub use tacit_crypto as crypto;
pub use tacit_data as data;
pub use tacit_lang as lang;
pub use tacit_net as net;
pub use tacit_ot::Security;
pub use tacit_psi as psi;
pub use tacit_store::{pool, sealed};

/// The book's page on the library: its examples are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Book;
