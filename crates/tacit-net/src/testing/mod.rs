//! What the tests of every crate share: faults on purpose, and parties that cheat.
//!
//! - [`Proxy`] damages what passes between two parties over real sockets.
//! - [`Network`] joins two parties in memory, with faults at bytes of the stream and time that passes only
//!   where both wait: the same network gives the same run, and an hour's silence takes no time.
//! - [`Tap`] flips bits of what a protocol says, wherever its frames end.
//! - [`paced`] notes when a party takes and sends its bytes, in a virtual time that its work moves on.
//! - [`duel`] runs a cheater against an honest party, and a [`Tally`] holds what many duels gave against a
//!   bound.
//!
//! ```
//! use tacit_net::testing::{Outcome, Tally, duel};
//! // A cheater that guesses a bit is right in half of the runs.
//! let tally = Tally::of(200, |seed| {
//!     let guess = |channel: &mut tacit_net::Channel| channel.send_u64(1).and_then(|()| channel.flush());
//!     let (_, guessed) = duel(seed, guess, |channel| channel.recv_u64());
//!     if guessed.unwrap() == u64::from(seed.count_ones() % 2) { Outcome::Won } else { Outcome::Caught }
//! });
//! tally.assert_won_at_most(0.5, 0.999);
//! ```

mod cheaters;
mod network;
mod pace;
mod proxy;
mod tap;

pub use cheaters::{Outcome, Tally, duel};
pub use network::{Fault, Network, Strike};
pub use pace::{Note, paced};
pub use proxy::{Direction, Harm, Proxy, Rule};
pub use tap::Tap;
