//! What can go wrong in a session, and whose fault it is.

use std::path::{Path, PathBuf};
use tacit_net::Fault;
use tacit_store::pool::PoolError;

/// The result of a session's operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Who can mend a fault; the command's exit codes are these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The caller asked for something impossible (exit code 2).
    Usage,
    /// A local file or its content (exit code 3).
    Input,
    /// The peer or the link, a detected cheat included (exit code 4).
    Peer,
    /// Anything else (exit code 1).
    Other,
}

/// A fault: one line that names the cause and the remedy. Never contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something impossible.
    #[error("{0}")]
    Usage(String),
    /// A parameter of a job has a value that does not serve, or does not go with the others.
    #[error("{name}: {what}")]
    Parameter {
        /// The parameter, called as the option of the command that sets it.
        name: &'static str,
        /// What is wrong with it, and what to give.
        what: String,
    },
    /// A local file or its content is not usable.
    #[error("{0}")]
    Input(String),
    /// The peer or the link failed or deviated.
    #[error("{0}")]
    Peer(String),
    /// The operating system refused an operation on a file.
    #[error("{}: {}", tacit_net::shown(&tacit_data::place::shown(.path).to_string_lossy()), refused(what, source))]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A fault of the link.
    #[error(transparent)]
    Net(#[from] tacit_net::Error),
    /// A fault in an oblivious transfer.
    #[error(transparent)]
    Ot(#[from] tacit_ot::Error),
    /// A table cannot be read or written.
    #[error(transparent)]
    Table(#[from] tacit_data::csv::Error),
    /// A fault in a private set intersection.
    #[error(transparent)]
    Psi(#[from] tacit_psi::Error),
    /// A fault in a two-party computation.
    #[error(transparent)]
    TwoPc(#[from] tacit_2pc::Error),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A circuit of the caller's own that is not valid.
impl From<tacit_2pc::circuit::InvalidCircuit> for Error {
    fn from(fault: tacit_2pc::circuit::InvalidCircuit) -> Self {
        Error::Input(fault.to_string())
    }
}

impl Error {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Error::Usage(_) | Error::Parameter { .. } => Blame::Usage,
            Error::Table(error) if error.is_usage() => Blame::Usage,
            Error::Input(_) | Error::File { .. } | Error::Table(_) => Blame::Input,
            Error::Peer(_) => Blame::Peer,
            Error::Net(error) => net(error),
            Error::Ot(error) => ot(error),
            Error::Psi(error) => psi(error),
            Error::TwoPc(error) => two_pc(error),
            Error::Other(_) => Blame::Other,
        }
    }

    /// What oblivious transfer says, where it is that.
    fn ot(&self) -> Option<&tacit_ot::Error> {
        match self {
            Error::Ot(error)
            | Error::Psi(
                tacit_psi::Error::Ot(error) | tacit_psi::Error::Computation(tacit_2pc::Error::Ot(error)),
            )
            | Error::TwoPc(tacit_2pc::Error::Ot(error)) => Some(error),
            _ => None,
        }
    }

    /// Whether a check of what the peer did has failed; see [`tacit_ot::Error::is_failed_check`].
    pub fn is_failed_check(&self) -> bool {
        if let Some(error) = self.ot() {
            return error.is_failed_check();
        }
        match self {
            Error::TwoPc(error) | Error::Psi(tacit_psi::Error::Computation(error)) => {
                matches!(error, tacit_2pc::Error::Cheated { .. })
            }
            Error::Psi(error) => matches!(error, tacit_psi::Error::Cheated { .. }),
            _ => false,
        }
    }

    /// Whether the connection was lost, by the network or because the peer's process ended: what another
    /// connection mends.
    pub fn is_lost_link(&self) -> bool {
        use tacit_net::Error as Net;
        matches!(
            self.link(),
            Some(
                Net::Closed { .. }
                    | Net::Lost { .. }
                    | Net::Timeout { .. }
                    | Net::Broken
                    | Net::Tls(_)
                    | Net::Io(_)
            )
        )
    }

    /// The reason for ending the run that the peer may hear, from a fixed list; `None` where it hears none.
    ///
    /// That is so of every failed check and of whatever else can depend on what the peer sent in a protocol, so that
    /// a cheater learns no more than that the run has ended.
    pub fn cause(&self) -> Option<tacit_net::Cause> {
        use tacit_net::{Cause, Error as Net};
        if let Some(link) = self.link() {
            return match link {
                Net::Cancelled => Some(Cause::Interrupted),
                Net::Timeout { .. } | Net::Overtime { .. } => Some(Cause::Waited),
                _ => None,
            };
        }
        match self {
            Error::Table(error) if error.is_usage() => Some(Cause::Settings),
            Error::Input(_) | Error::File { .. } | Error::Table(_) => Some(Cause::Files),
            Error::Usage(_) | Error::Parameter { .. } => Some(Cause::Settings),
            Error::Psi(
                tacit_psi::Error::PeerSetTooLarge { .. }
                | tacit_psi::Error::PeerRowsTooWide { .. }
                | tacit_psi::Error::TooManyQueries { .. }
                | tacit_psi::Error::Outlived { .. },
            ) => Some(Cause::Limit),
            _ => None,
        }
    }

    /// Tells the peer of `session` why this side ends it: the [`cause`](Self::cause), if there is one.
    pub fn tell(&self, session: &mut tacit_net::Session) {
        if let Some(cause) = self.cause() {
            session.stop(cause);
        }
    }

    /// What the link says, where it is that.
    fn link(&self) -> Option<&tacit_net::Error> {
        match self {
            Error::Net(error)
            | Error::Ot(tacit_ot::Error::Net(error))
            | Error::Psi(
                tacit_psi::Error::Net(error)
                | tacit_psi::Error::Ot(tacit_ot::Error::Net(error))
                | tacit_psi::Error::Computation(
                    tacit_2pc::Error::Net(error) | tacit_2pc::Error::Ot(tacit_ot::Error::Net(error)),
                ),
            )
            | Error::TwoPc(
                tacit_2pc::Error::Net(error) | tacit_2pc::Error::Ot(tacit_ot::Error::Net(error)),
            ) => Some(error),
            _ => None,
        }
    }

    /// Of two errors of one run the one to be told and acted on: a failed check before any other fault of the
    /// peer's, that before one of ours, and that before a lost link. A cheater that closes one channel first would
    /// else hide on that what it does on another. A setup that is spent only follows from one of these, whichever.
    pub(crate) fn or_worse(self, other: Error) -> Error {
        let rank = |error: &Error| match error {
            error if matches!(error.ot(), Some(tacit_ot::Error::Spent(_))) => 0,
            error if error.is_lost_link() => 1,
            error if error.is_failed_check() => 4,
            error => 2 + u8::from(error.blame() == Blame::Peer),
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// A fault of a file.
    pub fn file(path: &Path, what: &'static str, source: std::io::Error) -> Self {
        Error::File { path: path.to_owned(), what, source }
    }
}

/// What was tried with a file, and what the operating system said.
fn refused(what: &str, source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::NotFound if what == "cannot be read" => "no such file; check the path".to_owned(),
        _ => format!("{what}: {source}"),
    }
}

fn net(error: &tacit_net::Error) -> Blame {
    match error {
        tacit_net::Error::Key { .. } => Blame::Input,
        _ => match error.fault() {
            Fault::Usage => Blame::Usage,
            Fault::Peer | Fault::Link => Blame::Peer,
            Fault::Local => Blame::Other,
        },
    }
}

fn ot(error: &tacit_ot::Error) -> Blame {
    match error {
        tacit_ot::Error::Net(error) => net(error),
        tacit_ot::Error::Usage { .. } => Blame::Usage,
        tacit_ot::Error::Store(_) => match PoolError::of(error) {
            Some(PoolError::OtherPool { .. } | PoolError::Position { .. }) => Blame::Peer,
            _ => Blame::Input,
        },
        _ => Blame::Peer,
    }
}

fn two_pc(error: &tacit_2pc::Error) -> Blame {
    match error {
        tacit_2pc::Error::Net(error) => net(error),
        tacit_2pc::Error::Ot(error) => ot(error),
        tacit_2pc::Error::Usage { .. } => Blame::Usage,
        tacit_2pc::Error::State(_) => Blame::Input,
        _ => Blame::Peer,
    }
}

fn psi(error: &tacit_psi::Error) -> Blame {
    match error {
        tacit_psi::Error::Net(error) => net(error),
        tacit_psi::Error::Ot(error) => ot(error),
        tacit_psi::Error::Computation(error) => two_pc(error),
        tacit_psi::Error::Usage(_) | tacit_psi::Error::DuplicateRow => Blame::Usage,
        tacit_psi::Error::TooManyElements { .. }
        | tacit_psi::Error::DuplicateElement
        | tacit_psi::Error::Tags(_)
        | tacit_psi::Error::File(_) => Blame::Input,
        tacit_psi::Error::Unsolvable | tacit_psi::Error::Unplaceable => Blame::Other,
        _ => Blame::Peer,
    }
}
