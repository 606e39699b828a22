//! What can go wrong in two-party computation.

use tacit_store::sealed::FileError;

/// The result of a protocol.
pub type Result<T> = std::result::Result<T, Error>;

/// A fault in a two-party computation. Never contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The link failed.
    #[error(transparent)]
    Net(#[from] tacit_net::Error),
    /// The oblivious transfer below failed.
    #[error(transparent)]
    Ot(#[from] tacit_ot::Error),
    /// A state prepared offline is not usable.
    #[error(transparent)]
    State(#[from] StateError),
    /// The peer runs something else: another function, other sizes, another output rule, or the same role.
    #[error("{protocol}: the peer disagrees on {what}")]
    Mismatch {
        /// The protocol's short name.
        protocol: &'static str,
        /// What differs.
        what: &'static str,
    },
    /// A check failed: the peer deviated from the protocol.
    #[error("{protocol}: the peer cheated: {what}")]
    Cheated {
        /// The protocol's short name.
        protocol: &'static str,
        /// The check that failed.
        what: &'static str,
    },
    /// The caller's arguments do not fit the function.
    #[error("{protocol}: {what}")]
    Usage {
        /// The protocol's short name.
        protocol: &'static str,
        /// What does not fit.
        what: &'static str,
    },
}

/// What can be wrong with a prepared state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The state has served.
    #[error(
        "the state was used before, perhaps in a run that was cut short or failed a check; make a new one \
         on both sides"
    )]
    Used,
    /// The state belongs to another computation.
    #[error("the state was made for another {what}; name the right one, or make a new one on both sides")]
    OtherJob {
        /// What differs.
        what: &'static str,
    },
    /// The state was made with another peer.
    #[error(
        "the state was made with another peer, or with one that proved no key; call that peer, or make a \
         new state with this one"
    )]
    OtherPeer,
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        Error::State(error.into())
    }
}
