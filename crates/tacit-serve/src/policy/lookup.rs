//! Jobs that answer lookups in a published file of tags.

use super::reader::Section;
use super::{Gate, Known};
use std::path::PathBuf;
use tacit::job::psi;

/// Lookups in a file of tags that may be asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Answers {
    /// The private file of the publication.
    pub private: PathBuf,
    /// The file that it was sealed with, if not with the service's identity.
    pub seal_key: Option<PathBuf>,
}

/// A job of the kind `lookup`: single queries and batches, answered from a publication's private file.
#[derive(Clone, PartialEq, Debug)]
pub struct Lookup {
    /// Who may ask, how often and when.
    pub gate: Gate,
    /// Out of which publication.
    pub answers: Answers,
    /// The most queries of one request.
    pub max_queries: u64,
    /// The most queries that the publication's key answers for one peer, over its lifetime. What the
    /// publication itself allows bounds them as well.
    pub queries_in_total: u64,
}

impl Lookup {
    pub(super) fn read(section: &mut Section<'_, '_, '_>, known: &Known<'_>) -> Option<Self> {
        let private = section.wanted_text("private");
        let seal_key = section.text("seal_key").map(|file| known.folder.join(file.value));
        let most = psi::MAX_ELEMENTS as u64;
        let max_queries = section.wanted_number("max_queries", 1..=most);
        let queries_in_total = section.wanted_number("queries_in_total", 1..=super::MANY);
        let gate = Gate::read(section, known)?;
        let answers = Answers { private: known.folder.join(private?.value), seal_key };
        Some(Lookup { gate, answers, max_queries: max_queries?, queries_in_total: queries_in_total? })
    }
}
