//! What questions mean, and what is refused.

mod answers;
mod attacks;
mod fuzzed;
mod generated;
mod plans;
mod random;
mod refusals;
mod sums;
