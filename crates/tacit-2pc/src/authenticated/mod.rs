//! Authenticated garbling: malicious two-party computation from one garbled circuit.
//!
//! - **Source**: Katz, Ranellucci, Rosulek and Wang, "Optimizing Authenticated Garbling for Faster Secure
//!   Two-Party Computation" (2018/578), after Wang, Ranellucci and Katz (2017/030). What differs from the
//!   papers is listed, with the argument for it, in `docs/notes/authenticated.md`.
//! - **Realises** secure evaluation of a circuit against malicious parties, with abort, in the hybrid model
//!   of correlated OT: the parties get what the circuit says of the inputs they chose, or a party stops.
//! - **Assumptions**: those of the correlated OT; MITCCRH circular correlation robust (ideal cipher); BLAKE3
//!   a random oracle. Statistical error 2^-40 a job ([`buckets`]), whose sessions are as much surer as there are
//!   more; a wrong product of a triple passes with an eighth of that, once a session; a MAC of an output's mask is guessed with 2^-127, another with 2^-63.
//!   A Δ is not found by fewer than 2^127 tries, whatever a cheater was shown before it left.
//! - **Masks**: each wire's value is hidden by a mask λ = λ_A ⊕ λ_B of which each party holds one share, with
//!   a MAC under the other's Δ. The evaluator sees masked values Λ = value ⊕ λ alone.
//! - **Phases**: [`Session::independent`] needs the number of gates, [`Independent::dependent`] the function,
//!   [`Dependent::online`] the inputs. Each takes the one before by value, so nothing serves twice; when one
//!   fails, all that the session made is spent.
//! - **Bytes** of both directions an AND gate: 11 for each triple of a bucket (3 from 423,689 gates on, 4
//!   from 4,376 on, else 5; of one of several sessions 12 and 4 or more), 32 for the table, about 2 for bits, and the correlated OT's for 3·B + 1
//!   correlations each way.
//! - **Rows** of a function ([`Session::run_rows`]) go through the phases side by side, as many as fill a window.
//! - **Length**: a circuit of more than 500,000 AND gates, and a program of any length
//!   ([`Session::run_program`]), runs in stretches of as many at most, one after the other through all
//!   phases.
//! - **Memory**: of a stretch 128 bytes a gate from the first phase on; while it is made, 96 bytes more for
//!   each triple of the rows that are held, one beside the first where there are three, and in the last phase
//!   the garbler's 16 a gate: about 170 MB, whatever the length, and 50 more over a long line, where another row is
//!   held.
//! - **Triples alone** ([`Session::triples`]) are the first phase's, for a protocol of the caller's own.
//! - **On the disk**: [`Session::store`] and [`Stored`] keep the first phase in a sealed file that serves
//!   once.
//! - **Abort** tells nothing of an input: all that comes before inputs are used is independent of them, and
//!   what fails later depends on masked values alone, which are uniform for the party that cheated.
//!
//! ```
//! use tacit_2pc::authenticated::{Demand, Session, buckets::Level};
//! use tacit_2pc::{OutputTo, Owner, Prepared, circuit::named};
//! use tacit_crypto::{BitVec, Prg};
//! use tacit_net::{Channel, LinkModel, memory};
//! use tacit_ot::base;
//!
//! let function = Prepared::from_function(&named::find("add8").unwrap()).unwrap();
//! let config = Demand::of(&function).ferret(&LinkModel::LOOPBACK, Level::ALONE);
//! let party = |channel: &mut Channel, role: Owner, input: u8| {
//!     let mut prg = Prg::from_os();
//!     let mut session = Session::setup(channel, role, &*base::default(), config, &mut prg)?;
//!     session.run(channel, &function, OutputTo::Evaluator, &BitVec::from_bytes(&[input], 8))
//! };
//! let (garbler, evaluator) = memory::run(
//!     |channel| party(channel, Owner::Garbler, 200).unwrap(),
//!     |channel| party(channel, Owner::Evaluator, 55).unwrap(),
//! );
//! assert_eq!(garbler, None);
//! assert_eq!(evaluator.unwrap().as_bytes()[0], 255);
//! ```

mod alike;
mod bits;
pub mod buckets;
mod demand;
mod dependent;
mod deviation;
mod evaluator;
mod garbler;
mod hash;
mod independent;
mod leaky;
mod masked;
mod online;
mod opening;
mod oracle;
mod reduced;
mod session;
mod setup;
mod spent;
mod stored;
mod stream;
mod stretch;
#[cfg(test)]
mod tests;
mod triples;

pub use demand::Demand;
pub use dependent::Dependent;
pub use independent::Independent;
pub use session::Session;
pub use stored::{Header, Stored};
pub use triples::Triples;

use crate::Error;
use crate::Result;

pub(crate) const PROTOCOL: &str = "authenticated";
/// Name and version in every hash of this protocol.
const DOMAIN: &str = "tacit authenticated v8";
/// AND gates whose tables go in one message: few enough to stay in the nearest caches.
const PIECE: usize = 1 << 11;

const OTHER_INPUT: &str = "as many input bits as the function takes from this party";

fn cheated<T>(what: &'static str) -> Result<T> {
    Err(Error::Cheated { protocol: PROTOCOL, what })
}

fn usage<T>(what: &'static str) -> Result<T> {
    Err(Error::Usage { protocol: PROTOCOL, what })
}

fn mismatch<T>(what: &'static str) -> Result<T> {
    Err(Error::Mismatch { protocol: PROTOCOL, what })
}
