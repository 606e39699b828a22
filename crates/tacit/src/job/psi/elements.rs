//! What is compared of rows, in words: keys, identifiers, or variants.

use tacit_crypto::text::counted;
use tacit_data::records::KeySpec;

/// What the elements are of which keys are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Elements {
    /// One of each row.
    Keys,
    /// Its identifiers.
    Identifiers,
    /// The variants of its identifiers, or of its key.
    Variants,
}

impl Elements {
    /// Of rows with this key.
    pub(super) fn of(key: Option<&KeySpec>) -> Self {
        match key {
            Some(key) if key.has_variants() => Elements::Variants,
            Some(key) if key.has_several() => Elements::Identifiers,
            _ => Elements::Keys,
        }
    }

    /// So many distinct ones.
    pub(super) fn counted(self, keys: u64) -> String {
        match self {
            Elements::Keys => counted(keys, "distinct key"),
            Elements::Identifiers => {
                counted(keys, "distinct identifier") + " in all, each of which counts as a key"
            }
            Elements::Variants => {
                counted(keys, "distinct variant") + " in all, each of which counts as a key"
            }
        }
    }

    /// What is learnt of which of them match.
    pub(super) const fn which(self) -> &'static str {
        match self {
            Elements::Keys => "which of its own keys are among them",
            Elements::Identifiers => {
                "for each of its own identifiers whether it is among them, not only which of its rows match"
            }
            Elements::Variants => {
                "for each variant of its own rows whether it is among them, which tells where matching values differ and \
                 not only which rows match"
            }
        }
    }

    /// Of what columns come.
    pub(super) const fn each(self) -> &'static str {
        match self {
            Elements::Keys => "",
            Elements::Identifiers => " for each identifier that is",
            Elements::Variants => " for each variant that is",
        }
    }
}
