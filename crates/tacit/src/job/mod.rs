//! What two parties can do together, one module a kind of job: what they must agree on, what it needs and costs, what
//! each side learns, and the run itself.

pub mod eval;

use tacit_net::Stats;

/// Whom a running job tells how far it is; every method does nothing unless implemented.
pub trait Observer: Sync {
    /// The phase `name` begins; until then `so_far` passed on the channel that tells.
    fn phase(&self, name: &'static str, so_far: &Stats) {
        let _ = (name, so_far);
    }

    /// Of `total` rows `done` are done; until then `so_far` passed on the channel that tells.
    fn rows(&self, done: u64, total: u64, so_far: &Stats) {
        let _ = (done, total, so_far);
    }
}

/// Nobody.
impl Observer for () {}
