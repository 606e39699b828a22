//! Questions in SQL about the joined tables of two parties: what a text asks, which side computes what by itself, and
//! what is left to compute on shares.
//!
//! [`parse`] makes a [`Question`] of a text. Each side then turns each of its rows into a [block](Question::row) of at
//! most [`MOST_BITS`] bits; of two joined rows' blocks the question's [measures](Question::measures) are computed, by a
//! circuit in a protocol or by [`Question::answer`] in the clear, and [`Question::render`] makes cells of what was opened.
//!
//! ```
//! use tacit_query::{Cell, Side, parse};
//!
//! let question = parse(
//!     "SELECT b.segment, COUNT(*) AS buyers, SUM(CLIP(a.cents, 0, 100000)) AS spent
//!      FROM ours a JOIN theirs b ON a.email = b.email
//!      WHERE a.cents > 1000 AND b.country = 'DE' AND b.segment IN ('a', 'b', 'c')
//!      GROUP BY b.segment",
//! )?;
//! assert_eq!(question.tables[0].columns, ["cents"]);
//! assert_eq!(question.tables[1].columns, ["segment", "country"]);
//!
//! // The rows of the two tables with one key: each side makes its block of it by itself.
//! let ours = question.row(Side::Ours, &[Some("1500")])?.expect("the row passes the filter");
//! let theirs = question.row(Side::Theirs, &[Some("b"), Some("DE")])?.expect("so does this");
//! let answer = question.answer(&[[ours, theirs]], &mut || unreachable!("the question has no noise"));
//!
//! let (group, values) = &answer[0];
//! let cells = question.render(*group, values);
//! assert_eq!(cells, [Cell::Text("b".into()), Cell::Integer(1), Cell::Integer(1500)]);
//! # Ok::<(), tacit_query::Fault>(())
//! ```
//!
//! A question may end with `ROUND TO 10`, and with `WITH NOISE EPSILON 0.5`: then numbers of the result are differentially
//! private for each key, as far as it alone is known.
//!
//! Nothing here is secret from the caller, and nothing here talks to anybody: the protocol is in `tacit::job::query`.

mod answer;
mod fault;
mod local;
mod noise;
mod part;
mod plan;
mod question;
mod range;
mod read;
mod row;
mod side;
mod sums;
mod template;
mod tree;
mod types;
mod value;

pub use answer::Cell;
pub use fault::Fault;
pub use noise::COIN_BITS;
pub use plan::parse;
pub use question::{
    Code, Comparison, Field, Group, Kind, MOST_BITS, MOST_GROUPS, Measure, Number, Output, Purpose, Question,
    Table, Test, Use,
};
pub use read::{MOST_TEXT_BYTES, epsilon_text, read_epsilon};
pub use side::Side;
pub use sums::Total;
pub use template::{Parameter, Template};
