//! A service with a policy: one side states who may ask for which run, and how often; the other side asks,
//! sees what it is offered, and accepts or not; both keep a signed record.
//!
//! - [`policy`]: the rules, read from a file and checked as a whole; [`check`] says how far they go with the
//!   tables as they are.
//! - [`ledger`]: what has been spent of the budgets, in a file that survives a crash.
//! - [`server`]: receives those who ask, each within the rules.
//! - [`request`]: the side that asks.
//! - [`http`]: what an operator sees from this machine: [`metrics`] and a page.
//! - [`records`]: signed records in a chain, and [`audit`], which verifies them.
#![forbid(unsafe_code)]

pub mod answer;
pub mod audit;
mod board;
mod certified;
pub mod check;
pub mod clock;
mod dashboard;
mod file;
mod filters;
mod follow;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod json;
pub mod ledger;
pub mod listed;
pub mod log;
pub mod metrics;
mod play;
pub mod policy;
pub mod records;
pub mod request;
mod rules;
pub mod server;
mod slots;
pub mod terms;
mod unsigned;
mod visit;
mod wire;

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod ledger_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod words_tests;
