//! What can go wrong between two parties.

use crate::Cause;
use std::fmt;
use std::time::Duration;
use tacit_crypto::text::counted;

/// The result of a channel operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Who most likely caused an [`Error`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// This machine: its files, its ports, its operating system.
    Local,
    /// The peer: what it sent, what it is, or what it did not do.
    Peer,
    /// The connection between the two.
    Link,
    /// The caller: an address or an option that makes no sense.
    Usage,
}

/// A setting that is not the same on both sides: its name, and what either said. All of it is safe to print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What the setting is called.
    pub setting: String,
    /// Our value; `None` where we have no such setting.
    pub ours: Option<String>,
    /// The peer's.
    pub theirs: Option<String>,
}

impl Difference {
    /// What is to be computed: where it differs, nothing else is compared.
    pub const JOB: &str = "job";
    /// The part that a side plays in its job; named where the jobs differ.
    pub const ROLE: &str = "role";

    pub(crate) fn new(setting: &str, ours: Option<&String>, theirs: Option<&String>) -> Self {
        let value = |value: Option<&String>| value.map(|value| quoted(value));
        Difference { setting: quoted(setting), ours: value(ours), theirs: value(theirs) }
    }

    /// The setting and both values, of which `whose`, as `peer's`, is the other.
    pub fn against(&self, whose: &str) -> String {
        // Commas part the settings of a line.
        let [ours, theirs] = [&self.ours, &self.theirs].map(|value| match value.as_deref() {
            None => "not given".to_owned(),
            Some(value) if value.contains(',') && !value.starts_with('"') => format!("\"{value}\""),
            Some(value) => value.to_owned(),
        });
        format!("{} (yours {ours}, {whose} {theirs})", self.setting)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.against("peer's"))
    }
}

/// Differences that a line names; more are counted.
const NAMED: usize = 8;

fn listed(differences: &[Difference]) -> String {
    let named: Vec<String> = differences.iter().take(NAMED).map(Difference::to_string).collect();
    let more = differences.len().saturating_sub(NAMED);
    named.join(", ") + &if more > 0 { format!(", and {more} more") } else { String::new() }
}

/// A fault of the link, of the peer or of the setup. One line each; never contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer closed the connection before the protocol ended.
    #[error("{}", closed(*cause))]
    Closed {
        /// What the peer gave as its reason, if it gave one.
        cause: Option<Cause>,
    },
    /// The session was ended on this side, by [`Cancel`](crate::Cancel).
    #[error("cancelled on this side")]
    Cancelled,
    /// The connection broke off without a goodbye.
    #[error("the connection to the peer was lost {during}: its process ended or the network failed")]
    Lost {
        /// What was going on.
        during: String,
    },
    /// Nothing moved before the deadline.
    #[error("gave up after {} waiting for {awaited}", in_words(*after))]
    Timeout {
        /// How long was waited.
        after: Duration,
        /// What for.
        awaited: String,
    },
    /// All that was to happen on the connection has its time, and that is over.
    #[error("not finished within {}, the time that it was given", in_words(*after))]
    Overtime {
        /// How long that was.
        after: Duration,
    },
    /// The peer announced more than the protocol allows at this place.
    #[error(
        "the peer announced a message of {}, more than the {allowed} allowed",
        counted(announced, "byte")
    )]
    Oversized {
        /// Bytes announced.
        announced: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// The peer sent far more than was asked for while it took nothing.
    #[error("the peer sent {} in advance, more than the {allowed} that are buffered", counted(held, "byte"))]
    Flooded {
        /// Bytes held.
        held: u64,
        /// The bound.
        allowed: u64,
    },
    /// What arrived is not of the agreed form.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
    /// The other end does not speak this protocol at all.
    #[error(
        "the other end does not speak Tacit: it sent {saw}; check the address and that both sides use TLS \
         or neither"
    )]
    NotTacit {
        /// The first bytes, printable.
        saw: String,
    },
    /// The peer runs another release.
    #[error("releases differ: yours tacit {ours}, peer's {theirs}; install the same on both sides")]
    Release {
        /// Our release and wire format.
        ours: String,
        /// The peer's.
        theirs: String,
    },
    /// The parties were started with different settings.
    #[error("settings differ: {}; use the same on both sides", listed(differences))]
    Mismatch {
        /// The settings that differ; at least one.
        differences: Vec<Difference>,
    },
    /// The parties' roles do not fit together.
    #[error("roles do not match (yours {ours}, peer's {theirs}); restart the peer {}", played(wanted))]
    Role {
        /// Our role.
        ours: String,
        /// What the peer should play.
        wanted: String,
        /// What it plays.
        theirs: String,
    },
    /// The peer proved another identity than the one pinned.
    #[error(
        "the peer's key is {found}, not the pinned {expected}: the wrong peer, the wrong key file, or a man \
         in the middle"
    )]
    WrongPeer {
        /// Fingerprint of the pinned key.
        expected: String,
        /// Fingerprint of the key presented.
        found: String,
    },
    /// The peer did not accept this side's identity.
    #[error("the peer rejected your key ({alert}); send it your current .pub file")]
    Refused {
        /// The TLS alert it sent.
        alert: String,
    },
    /// Keys were to be exchanged by a code, and the two sides had different ones.
    #[error(
        "the code does not match: it was mistyped, or an attacker tried to guess it. The code is used up: \
         run `tacit invite` again for a new one"
    )]
    WrongCode,
    /// TLS failed in another way.
    #[error("TLS: {0}")]
    Tls(String),
    /// A listener's peer did not come.
    #[error("gave up after {} waiting for the peer to connect to {address}{callers}", in_words(*after))]
    NoPeer {
        /// Where.
        address: String,
        /// How long it was waited.
        after: Duration,
        /// Who came instead, and what was wrong with them; empty when nobody came.
        callers: String,
    },
    /// Nobody listens at the address.
    #[error("cannot connect to {address} ({reason}{})", tried(*after))]
    Unreachable {
        /// Where.
        address: String,
        /// How long it was tried.
        after: Duration,
        /// What the last attempt met.
        reason: String,
    },
    /// No relay answers at the address.
    #[error("no relay answers at {address} ({reason}{})", tried(*after))]
    NoRelay {
        /// Where.
        address: String,
        /// How long it was tried; zero of a single call.
        after: Duration,
        /// What the last attempt met.
        reason: String,
    },
    /// A relay was reached, and then not any more.
    #[error(
        "the relay {address} was reached but has gone away ({reason}), and has not answered for {}; is it still running?",
        in_words(*after)
    )]
    RelayLost {
        /// Where.
        address: String,
        /// How long it was tried after the relay was there last.
        after: Duration,
        /// What the last attempt met.
        reason: String,
    },
    /// Something else than a relay answers at the address.
    #[error(
        "{address} is not a relay: it {}; if the peer listens there, connect to it without a relay",
        sent(saw)
    )]
    NotRelay {
        /// Where.
        address: String,
        /// The first bytes, printable; empty where none came.
        saw: String,
    },
    /// A relay serves some keys only, and not this side's.
    #[error("the relay {address} {}", not_served(key.as_deref()))]
    NotServed {
        /// Where.
        address: String,
        /// The fingerprint of this side's key; `None` where keys are to be exchanged by a code.
        key: Option<String>,
    },
    /// A relay serves some keys only, and none of those that this side wants to meet.
    #[error(
        "the relay {address} does not serve your peer's key: its operator must allow that key too; do you have \
         your peer's current public key file?"
    )]
    PeerNotServed {
        /// Where.
        address: String,
    },
    /// A relay turned this side away for another reason.
    #[error("the relay {address} rejected this side: {reason}")]
    TurnedAway {
        /// Where.
        address: String,
        /// What the relay said, printable.
        reason: String,
    },
    /// The peer did not come to the relay.
    #[error(
        "the peer did not reach the relay {address} within {}; is it started with this relay and your \
         current public key file, and do you have its current one?",
        in_words(*after)
    )]
    NobodyMet {
        /// Where.
        address: String,
        /// How long it was waited.
        after: Duration,
    },
    /// Nobody came to an invitation.
    #[error("nobody joined with the code within {}; run `tacit invite` again for a new one", in_words(*after))]
    NobodyJoined {
        /// How long it was waited.
        after: Duration,
    },
    /// Nobody answered in the place of a code.
    #[error(
        "nobody answered with the number {number} at the relay {address} within {}: your peer is not there or was busy \
         with other callers, or the code was mistyped, was used, has expired, or belongs to another relay; ask for a \
         new code",
        in_words(*after)
    )]
    NoInvitation {
        /// The relay.
        address: String,
        /// The code's number.
        number: u32,
        /// How long it was waited.
        after: Duration,
    },
    /// The name in an address has no address just now.
    #[error("the name in {address} was not found within {} ({reason}); check it and the network", in_words(*after))]
    Unresolved {
        /// As given.
        address: String,
        /// How long it was tried.
        after: Duration,
        /// What the name service said last.
        reason: String,
    },
    /// Another process listens there.
    #[error("{address} is in use by another process; stop it or listen on another port")]
    AddressInUse {
        /// Where.
        address: String,
    },
    /// The address cannot be used.
    #[error("address {address}: {reason}")]
    Address {
        /// As given.
        address: String,
        /// Why not.
        reason: String,
    },
    /// A key or certificate file cannot be used.
    #[error("{path}: {reason}")]
    Key {
        /// The file.
        path: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// An option cannot be used.
    #[error("{0}")]
    Usage(String),
    /// The channel failed before; the first error says why.
    #[error("the channel has failed before and cannot be used any more")]
    Broken,
    /// The operating system reported a fault.
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Who most likely caused this.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Closed { .. }
            | Error::Timeout { .. }
            | Error::Overtime { .. }
            | Error::NoPeer { .. }
            | Error::Oversized { .. }
            | Error::Flooded { .. }
            | Error::Malformed(_)
            | Error::NotTacit { .. }
            | Error::Release { .. }
            | Error::Mismatch { .. }
            | Error::Role { .. }
            | Error::WrongPeer { .. }
            | Error::WrongCode
            | Error::NobodyMet { .. }
            | Error::NobodyJoined { .. }
            | Error::NoInvitation { .. }
            | Error::Refused { .. } => Fault::Peer,
            Error::Lost { .. }
            | Error::Tls(_)
            | Error::Unreachable { .. }
            | Error::NoRelay { .. }
            | Error::NotRelay { .. }
            | Error::RelayLost { .. }
            | Error::NotServed { .. }
            | Error::PeerNotServed { .. }
            | Error::TurnedAway { .. }
            | Error::Unresolved { .. }
            | Error::Broken => Fault::Link,
            Error::Cancelled | Error::AddressInUse { .. } | Error::Key { .. } | Error::Io(_) => Fault::Local,
            Error::Address { .. } | Error::Usage(_) => Fault::Usage,
        }
    }

    /// Whether the peer or the link, not this side, is at fault: what exit code 4 stands for.
    pub fn is_peer_fault(&self) -> bool {
        matches!(self.fault(), Fault::Peer | Fault::Link)
    }

    /// The error of one call at a relay among several.
    pub(crate) fn single(self) -> Self {
        match self {
            Error::NoRelay { address, reason, .. } => {
                Error::NoRelay { address, after: Duration::ZERO, reason }
            }
            other => other,
        }
    }

    pub(crate) fn lost(during: &str) -> Self {
        Error::Lost { during: during.to_owned() }
    }

    /// The error of a socket operation: a broken connection is told from a fault of this machine.
    pub(crate) fn socket(error: std::io::Error, during: &str) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::ConnectionReset | Kind::ConnectionAborted | Kind::BrokenPipe | Kind::UnexpectedEof => {
                Error::lost(during)
            }
            Kind::TimedOut | Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
                Error::Lost { during: format!("{during} ({error})") }
            }
            _ => Error::Io(error),
        }
    }
}

fn closed(cause: Option<Cause>) -> String {
    match cause {
        Some(cause) => format!("the peer stopped: {cause}; its own output has the details"),
        None => "the peer closed the connection before the protocol ended; its own output has the reason"
            .to_owned(),
    }
}

/// A role that a party is to play; the command's is given by its options.
fn played(role: &str) -> String {
    let how = if role.starts_with("--") { "with" } else { "as" };
    format!("{how} {role}")
}

/// How long something was tried that failed more than once.
fn tried(time: Duration) -> String {
    // A last attempt gives up a moment before its time is over.
    let time = time + Duration::from_millis(100);
    if time.as_secs() == 0 { String::new() } else { format!(", tried for {}", in_words(time)) }
}

/// What came of something that is no relay.
fn sent(saw: &str) -> String {
    if saw.is_empty() { "sent nothing".to_owned() } else { format!("sent {saw}") }
}

fn not_served(key: Option<&str>) -> String {
    match key {
        Some(key) => {
            format!("does not serve your key (fingerprint {key}): ask its operator to allow your public key")
        }
        None => {
            "serves only the keys that its operator allows, and accepts no invitations: use another relay, \
             or send each other your public key files"
                .to_owned()
        }
    }
}

/// A time as people say it: no finer than seconds from one on.
pub(crate) fn in_words(time: Duration) -> String {
    match time.as_secs_f64().round() as u64 {
        _ if time.as_secs() == 0 => "less than 1 s".to_owned(),
        seconds if seconds >= 120 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// A value in an error's line: as it is where it is one plain word or some, else quoted, escaped and cut, so
/// that it cannot pass for what stands around it.
pub(crate) fn quoted(value: &str) -> String {
    const LONGEST: usize = 200;
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_.,/+:=".contains(c);
    let is_plain = !value.is_empty()
        && value.chars().count() <= LONGEST
        && value.trim() == value
        && value.chars().all(plain)
        && !value.split(|c: char| !c.is_alphanumeric()).any(|word| word == "yours");
    if is_plain { value.to_owned() } else { printable(value.as_bytes()) }
}

/// Makes bytes that a peer sent safe to print: quoted, escaped and cut.
pub(crate) fn printable(bytes: &[u8]) -> String {
    const SHOWN: usize = 48;
    let cut = bytes.len() > SHOWN;
    let text: String =
        bytes.iter().take(SHOWN).flat_map(|&byte| std::ascii::escape_default(byte)).map(char::from).collect();
    format!("\"{text}\"{}", if cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_as_people_say_them() {
        for (milliseconds, words) in [
            (0, "less than 1 s"),
            (999, "less than 1 s"),
            (1000, "1 s"),
            (8085, "8 s"),
            (59_999, "60 s"),
            (90_400, "90 s"),
            (600_001, "10 min"),
        ] {
            assert_eq!(in_words(Duration::from_millis(milliseconds)), words);
        }
    }
}
