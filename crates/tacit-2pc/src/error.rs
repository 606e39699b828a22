//! What can go wrong in two-party computation.

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
    State(#[from] crate::wmk17::StateError),
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
