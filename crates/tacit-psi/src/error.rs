//! What can go wrong in a private set intersection.

use tacit_crypto::text::{counted, shown};

/// The result of a protocol step.
pub type Result<T> = std::result::Result<T, Error>;

/// A fault of the caller, of the peer or of the link. Never contains an element.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The link failed.
    #[error(transparent)]
    Net(#[from] tacit_net::Error),
    /// An oblivious transfer underneath failed, or caught the peer cheating.
    #[error(transparent)]
    Ot(#[from] tacit_ot::Error),
    /// The garbled circuit on top failed.
    #[error(transparent)]
    Computation(#[from] tacit_2pc::Error),
    /// The peer deviated from the protocol.
    #[error("{protocol}: the peer cheated: {what}")]
    Cheated {
        /// The protocol's short name.
        protocol: &'static str,
        /// The check that failed.
        what: &'static str,
    },
    /// The peer runs something else, or with other options.
    #[error("{protocol}: the peers do not agree: {what}")]
    Disagreement {
        /// The protocol's short name.
        protocol: &'static str,
        /// On what they do not agree.
        what: &'static str,
    },
    /// This side asks for a column that the peer does not give; which one the peer does not say.
    #[error(
        "the peer does not give every column that you ask for ({}); ask for fewer, or have the peer give them",
        listed(asked)
    )]
    NotGiven {
        /// The columns asked for.
        asked: Vec<String>,
    },
    /// The peer asks for a column that this side does not give.
    #[error(
        "the peer asks for the column {}, and you give {}; give that one too, or have the peer ask for columns that \
         you give",
        shown(asked),
        listed(given)
    )]
    AskedForMore {
        /// The first such column.
        asked: String,
        /// The columns that this side gives.
        given: Vec<String>,
    },
    /// The peer announced a larger set than this side allows.
    #[error(
        "the peer announced a set of {} where at most {allowed} are allowed; if that many are \
         right, allow them",
        counted(announced, "element")
    )]
    PeerSetTooLarge {
        /// Elements announced.
        announced: u64,
        /// Elements allowed.
        allowed: u64,
    },
    /// The peer's columns take more for each of its keys than this side allows.
    #[error("the peer's columns have {} per key, more than the {allowed} allowed", counted(bytes, "byte"))]
    PeerRowsTooWide {
        /// Bytes announced.
        bytes: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// The caller's own set is too large.
    #[error("a set of {} is too large: at most {allowed} are supported", counted(count, "element"))]
    TooManyElements {
        /// Elements given.
        count: u64,
        /// Elements supported.
        allowed: u64,
    },
    /// The caller's own set holds an element twice.
    #[error("the set has an element twice; remove duplicates first")]
    DuplicateElement,
    /// Two of the caller's rows to give have one key.
    #[error("two rows to send have the same key; remove one, or choose that the first or all are sent")]
    DuplicateRow,
    /// The key-value store had no solution, which happens with probability below 2^-51.
    #[error("the key-value store has no solution for this session's hash functions: start a new session")]
    Unsolvable,
    /// The elements have no places in a cuckoo table, which happens with probability below 2^-43.
    #[error("the elements have no places in this session's table: start a new session")]
    Unplaceable,
    /// Two elements have hashes that cannot be put into an order, which happens with probability below 2^-41.
    #[error("two keys have the same hash in this session: start a new session")]
    Indistinct,
    /// The client asks for more queries than the publication's terms leave it.
    #[error(
        "{} where the publisher's terms leave {left}; ask for less, or for a new publication",
        counted(asked, "query")
    )]
    TooManyQueries {
        /// Queries asked for.
        asked: u64,
        /// Queries left to this client.
        left: u64,
    },
    /// The publication answers no more so many queries, whatever the client has left of its own.
    #[error(
        "the publication does not answer {} any more: its key's lifetime is nearly over, or the publisher could not \
         count them; ask for less, or for a new publication",
        counted(asked, "query")
    )]
    Outlived {
        /// Queries asked for.
        asked: u64,
    },
    /// A file of tags is not usable.
    #[error(transparent)]
    Tags(#[from] TagsError),
    /// A publisher's private file is not usable.
    #[error(transparent)]
    File(#[from] tacit_store::sealed::FileError),
    /// The caller asked for something that cannot be done.
    #[error("{0}")]
    Usage(&'static str),
}

/// What can be wrong with a file of tags.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TagsError {
    /// The operating system refused an operation.
    #[error("the file of tags cannot be {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("not a file of tags; its publisher makes one with tacit tags publish")]
    Other,
    /// The file is the one that answers queries, which its publisher keeps.
    #[error("this is the publisher's private file; delete this copy and ask for the file of tags")]
    Private,
    /// The file ends within its header.
    #[error("the file of tags is damaged: it was cut after {}; fetch it again", counted(found, "byte"))]
    Cut {
        /// The file's length.
        found: u64,
    },
    /// The file is of another version of the format.
    #[error(
        "the file of tags is of version {found}, and this release reads only version {known}; have it made \
         again with the same release"
    )]
    Version {
        /// The file's version.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// The file is shorter or longer than its index says.
    #[error(
        "the file of tags has {} instead of {expected}: it was cut or added to; fetch it again",
        counted(found, "byte")
    )]
    Length {
        /// The file's length.
        found: u64,
        /// The length that belongs to the index.
        expected: u64,
    },
    /// The publisher answers queries on another publication.
    #[error("not the publisher's current publication; fetch it again")]
    Outdated,
    /// A part of the file is not what its publisher wrote.
    #[error("the file of tags is damaged ({what}); fetch it again")]
    Damaged {
        /// Which part.
        what: &'static str,
    },
}

/// Columns' names in an error.
fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
    names.join(", ")
}
