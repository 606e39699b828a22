//! What two parties can do together, one module a kind of job: what they must agree on, what it needs and costs, what
//! each side learns, and the run itself.

pub mod eval;
