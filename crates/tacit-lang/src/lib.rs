//! Programs of the Garble language as functions of two parties.
//!
//! The language is typed, looks like Rust, and every program of it ends. Its own compiler scans, parses and
//! types a program; what comes after is ours: the typed tree is lowered onto [`tacit_2pc::circuit::Builder`],
//! whose arithmetic needs fewer AND gates than the compiler's, and literals are read and written here,
//! because they are secrets and the compiler's do not erase themselves.
//!
//! ```
//! use tacit_2pc::{Owner, circuit::evaluate};
//! let source = "pub fn main(mine: u32, yours: u32) -> bool { mine > yours }";
//! let program = tacit_lang::compile(source, &tacit_lang::Options::default()).unwrap();
//! let mut inputs = program.parse(Owner::Garbler, "7").unwrap();
//! inputs.extend(program.parse(Owner::Evaluator, "5").unwrap());
//! let outputs = evaluate(&program.function().circuit, &inputs);
//! assert_eq!(program.format(&outputs), "true");
//! ```
//!
//! **Whose a parameter is.** The garbler's come first, in the order of the parameters: the first half of
//! them, rounded up, unless [`Options::garbler`] says how many.
//!
//! **Faults.** A program cannot stop at an overflow, a division by zero or an index out of bounds: that would
//! tell when. It goes on with what arithmetic modulo 2^n gives (a division by zero and a place that is not
//! there give bits of no meaning), and a flag behind the result says of each kind of fault whether it
//! happened on the path that was taken. Who gets the result gets the flags and, with a flag set, those bits
//! as well.
#![forbid(unsafe_code)]

mod bounds;
mod compile;
mod constants;
mod error;
mod literal;
mod lower;
mod pattern;
mod types;

pub use compile::{Options, Program, compile};
pub use error::{Error, Fault};
pub use literal::{LiteralError, Part};
pub use types::Type;
