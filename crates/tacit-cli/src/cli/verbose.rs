//! What `--verbose` tells on standard error: how the handshake went and what it settled. Nothing of it is
//! secret. What each phase of a job took is told by its progress.

use crate::cli::fault::one_line;
use tacit::net::Event;

/// Tells of a session that is open.
pub(crate) fn handshake(event: &Event) {
    let Event::Opened { proof, tls, terms } = event else { return };
    let tls = match tls {
        Some((group, suite)) => format!("TLS 1.3 with {group} and {suite}, peer known by {proof}"),
        None => "no TLS: anyone can be the peer".to_owned(),
    };
    tracing::debug!(target: "tacit", "handshake: {}", one_line(&tls));
    let terms: Vec<String> = terms.iter().map(|(name, value)| format!("{name} {value}")).collect();
    tracing::debug!(target: "tacit", "agreed: {}", one_line(&terms.join(", ")));
}
