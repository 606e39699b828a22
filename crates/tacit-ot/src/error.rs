//! What can go wrong in an oblivious transfer.

use tacit_crypto::text::counted;

/// The result of a protocol step.
pub type Result<T> = std::result::Result<T, Error>;

/// A fault in an OT protocol. Never contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The link failed.
    #[error(transparent)]
    Net(#[from] tacit_net::Error),
    /// A consistency check failed: the peer deviated from the protocol.
    #[error("{protocol}: the peer cheated: {what}")]
    Cheated {
        /// The protocol's short name, such as `kos`.
        protocol: &'static str,
        /// The check that failed.
        what: &'static str,
    },
    /// The peer's message is not of the protocol's form.
    #[error("{protocol}: malformed message: {what}")]
    Malformed {
        /// The protocol's short name.
        protocol: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The caller asked for something the protocol cannot do.
    #[error("{protocol}: {what}")]
    Usage {
        /// The protocol's short name.
        protocol: &'static str,
        /// What was asked.
        what: &'static str,
    },
    /// More was asked for than was made ahead.
    #[error("{protocol}: only {} left of those made ahead", counted(left, "correlation"))]
    Exhausted {
        /// The protocol's short name.
        protocol: &'static str,
        /// How many are left.
        left: usize,
    },
    /// What was made ahead and stored on this machine is not usable.
    #[error(transparent)]
    Store(Box<dyn std::error::Error + Send + Sync>),
    /// An earlier check failed on this state; it makes no more correlations.
    #[error("{0}: this state failed an earlier check and cannot be used again")]
    Spent(&'static str),
}

impl Error {
    /// The peer has agreed to something else: the one error of every comparison of parameters.
    pub(crate) fn mismatch(protocol: &'static str) -> Self {
        let what =
            "the peer's parameters differ; use the same code, field, set, security and count on both sides";
        Error::Malformed { protocol, what }
    }

    /// Whether a check of what the peer did has failed. The peer may have learnt bits of a secret from that,
    /// so all that shares the secret must serve no more, on the disk as well (see
    /// `Fuse` of `tacit-store`).
    pub fn is_failed_check(&self) -> bool {
        matches!(self, Error::Cheated { .. } | Error::Spent(_))
    }
}
