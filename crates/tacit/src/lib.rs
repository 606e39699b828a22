//! Two parties compute on data that neither may see.
//!
//! A [`Session`] says how to reach the peer, whom to accept and how much to trust it. With one on each side,
//! a few lines do each of three things.
//!
//! # An intersection
//!
//! [`Session::intersect`] tells which elements both sides have; [`job::psi`] has every other result.
//!
//! ```
//! # use tacit::{Result, Session, job::psi::Learns};
//! # fn run(session: Session) -> Result<Vec<String>> {
//! let mine = ["bob", "cleo"];
//! let outcome = session.intersect(&mine, Learns::Me)?;
//! let shared = outcome.matches.unwrap_or_default().into_iter().map(|at| mine[at as usize].to_owned());
//! # Ok(shared.collect())
//! # }
//! # // Plaintext is refused for any address but this machine's own; `Session::keys` turns on TLS.
//! # let peer = std::thread::spawn(|| {
//! #     Session::listen("127.0.0.1:7708").plaintext()?.intersect(&["ann", "bob"], Learns::Peer)
//! # });
//! # assert_eq!(run(Session::connect("127.0.0.1:7708").plaintext()?)?, ["bob"]);
//! # assert_eq!(peer.join().unwrap()?.peer_elements, 2);
//! # Ok::<(), tacit::Error>(())
//! ```
//!
//! # A circuit of one's own
//!
//! [`Session::evaluate_function`] evaluates what a [`Builder`](two_pc::circuit::Builder) made on both sides'
//! secret inputs; [`Session::evaluate_named`] takes a function that is there already.
//!
//! ```
//! # use tacit::two_pc::{Owner, circuit::{Builder, named::Function}};
//! # use tacit::{Result, Session};
//! # fn run(session: Session, side: Owner, mine: &str) -> Result<Vec<String>> {
//! # let mut b = Builder::new();
//! let (theirs, ours) = (b.input(32), b.input(32));
//! let product = b.mul(&theirs, &ours);
//! session.evaluate_function(&Function::from_circuit("product", b.finish(&[product])?), side, mine)
//! # }
//! # let here = |session: Session| session.security(tacit::Security::SemiHonest);
//! # let peer = std::thread::spawn(move || {
//! #     run(here(Session::listen("127.0.0.1:7709").plaintext()?), Owner::Garbler, "6")
//! # });
//! # let product = run(here(Session::connect("127.0.0.1:7709").plaintext()?), Owner::Evaluator, "7")?;
//! # assert_eq!(product, ["0x0000002a"]);
//! # assert_eq!(peer.join().unwrap()?, product);
//! # Ok::<(), tacit::Error>(())
//! ```
//!
//! # Correlated OTs
//!
//! [`Session::send_cots`] and [`Session::receive_cots`] keep them in memory; [`Session::run_ot`] hands out
//! the pieces of a run of any size, of every kind and protocol of [`mod@ot`].
//!
//! ```
//! # use tacit::{ReceivedCots, Result, SentCots, Session};
//! # fn sender(session: Session) -> Result<SentCots> {
//! let sent = session.send_cots(1_000)?; // the peer: session.receive_cots(1_000)?
//! let (delta, v) = (sent.delta, &sent.v);
//! let first_pair = [v[0], v[0] ^ delta]; // the peer holds one of them, and we cannot tell which
//! # let _ = first_pair;
//! # Ok(sent)
//! # }
//! # let peer = std::thread::spawn(|| Session::listen("127.0.0.1:7710").plaintext()?.receive_cots(1_000));
//! # let sent = sender(Session::connect("127.0.0.1:7710").plaintext()?)?;
//! # let ReceivedCots { w, .. } = &peer.join().unwrap()?;
//! # assert_eq!((sent.v.len(), w.len()), (1_000, 1_000));
//! # let correct = |i: usize| w[i] == if w[i].lsb() { sent.v[i] ^ sent.delta } else { sent.v[i] };
//! # assert!((0..1_000).all(correct));
//! # assert!(w.iter().any(|w| w.lsb()) && w.iter().any(|w| !w.lsb()));
//! # Ok::<(), tacit::Error>(())
//! ```
//!
//! # The rest
//!
//! - [`mod@catalogue`]: every protocol, what it rests on and what runs it.
//! - [`mod@job`]: what two parties do together, each with its parameters, its cost and what it tells the
//!   other side.
//! - [`link`] and [`plan`]: a link's delay and bandwidth, and what each protocol would cost on it.
//! - [`data`]: tables and their keys, NumPy archives.
//! - [`limits`]: what this machine can do at best.
//! - [`psi`], [`two_pc`], [`lang`], [`net`], [`crypto`]: what the crates below offer, for set intersection,
//!   circuits, programs, channels and links, blocks and kernels.
#![forbid(unsafe_code)]

pub mod catalogue;
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
pub use session::{ReceivedCots, SentCots, Session};
pub use tacit_ot::Security;
pub use tacit_store::{pool, sealed};

/// Blocks, bits and pseudorandom streams.
pub mod crypto {
    pub use tacit_crypto::{BitVec, Block, Buffer, Prg, fence, hex, lpn, near, simd, text, workers};
}

/// Tables, their keys, and NumPy archives.
pub mod data {
    pub use tacit_data::{
        By, Written, columns, csv, file_id, generate, give, input, keys, machine, npz, object, place,
        records, table, values,
    };
}

/// Programs that people write, as circuits.
pub mod lang {
    pub use tacit_lang::{Options, Part, Program, Type};
}

/// Questions in SQL about two tables, read and planned.
pub mod query {
    pub use tacit_query::*;
}

/// Connections to the other party.
pub mod net {
    #[cfg(feature = "fuzzing")]
    #[doc(hidden)]
    pub use tacit_net::fuzzing;
    pub use tacit_net::{
        Agreement, Cancel, Cause, Channel, Difference, Error, Event, Identity, Limits, LinkModel, Listener,
        Observer, Options, Party, Protection, Proxy, PublicKey, PublicKeys, Reception, Recording, Result,
        SIGNATURE, Session, SessionId, Stats, Tls, Traffic, address_of, calendar, certificate, connect,
        durable, escaped, invite, is_loopback, memory, name_successor, rendezvous, shown, small, succession,
    };
}

/// Set intersection.
pub mod psi {
    pub use tacit_psi::vole_psi::{circuit, link, payload};
    pub use tacit_psi::{Error, Result, okvs, oprf, paxos, sorted, vole_psi};
}

/// Circuits, and how two parties evaluate them.
pub mod two_pc {
    pub use tacit_2pc::{
        Error, OutputTo, Owner, Prepared, Result, StateError, authenticated, circuit, garble, nisc,
        semi_honest, wmk17,
    };
}

/// The book's page on the library: its examples are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Book;
