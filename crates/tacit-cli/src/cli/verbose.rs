//! What `--verbose` tells on standard error: how the handshake went and what it settled, and what each phase of a job
//! took. Nothing of it is secret.

use crate::cli::fault::one_line;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tacit::job::Observer;
use tacit::net::{Event, Stats};

/// Tells of a session that is open.
pub fn handshake(event: &Event) {
    let Event::Opened { proof, tls, terms } = event else { return };
    let tls = match tls {
        Some((group, suite)) => format!("TLS 1.3 with {group} and {suite}, peer known by {proof}"),
        None => "no TLS: the peer can be anybody".to_owned(),
    };
    eprintln!("handshake: {}", one_line(&tls));
    let terms: Vec<String> = terms.iter().map(|(name, value)| format!("{name} {value}")).collect();
    eprintln!("agreed: {}", one_line(&terms.join(", ")));
}

/// Tells what each phase of a job took, once it is over.
pub struct Phases(Mutex<Option<Begun>>);

struct Begun {
    name: &'static str,
    at: Instant,
    stats: Stats,
}

impl Phases {
    /// Before the first phase.
    pub fn new() -> Self {
        Phases(Mutex::new(None))
    }

    /// Ends the phase under way, and begins the one called `next` if there is one.
    fn turn(&self, next: Option<&'static str>, stats: &Stats) {
        // A holder of the lock that panicked leaves a phase that is still right.
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Begun { name, at, stats: before }) = begun.take() {
            let passed = stats.since(&before);
            eprintln!(
                "phase {name}: {:.3} s, {} bytes sent, {} received, {} rounds",
                at.elapsed().as_secs_f64(),
                passed.bytes_sent,
                passed.bytes_received,
                passed.rounds
            );
        }
        *begun = next.map(|name| Begun { name, at: Instant::now(), stats: *stats });
    }
}

impl Observer for Phases {
    fn phase(&self, name: &'static str, so_far: &Stats) {
        self.turn(Some(name), so_far);
    }

    fn rows(&self, done: u64, total: u64, so_far: &Stats) {
        if done == total {
            self.turn(None, so_far);
        }
    }
}
