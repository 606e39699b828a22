//! Every protocol that the library offers, in one list: an [`Entry`] says what it is for, what it protects
//! against, what it rests on and what runs it. The command, the benchmarks, the planner, the handshake,
//! `--help` and the tables of the documents take what they say from here.
//!
//! A new protocol is one file here, with its entry, and one line in [`ENTRIES`]. The functions that have a
//! name are entries as well: [`functions`].
//!
//! ```
//! use tacit::catalogue::{find, require_post_quantum};
//! assert!(find("kos").unwrap().needs_base_ot);
//! assert!(require_post_quantum("roted").is_ok());
//! assert!(require_post_quantum("mrr21").unwrap_err().to_string().contains("take roted"));
//! ```

mod authenticated;
mod base;
mod batch;
mod cost;
mod evaluation;
mod extension;
mod ferret;
mod floor;
mod from_base;
mod functions;
mod intersection;
mod oprf;
mod paxos;
mod plain;
mod silent;
mod softspoken;
mod sorted;
mod vole;
mod wmk17;
mod yao;

pub use authenticated::AUTHENTICATED;
pub(crate) use authenticated::triples as authenticated_triples;
pub use base::{CO15, MR19, ROTED};
pub use batch::BATCH;
pub(crate) use batch::{of_fold, transfers};
pub use cost::{Candidate, Link, Machine};
pub(crate) use cost::{SETUP_BYTES, SETUP_POINTS};
pub(crate) use evaluation::ways as evaluations;
pub use evaluation::{Cost, EvalCandidate, EvalRequest, Evaluation, computations, protocol_name};
pub use extension::{
    AnyReceiver, AnySender, Choice, Extension, Family, Kind, Pick, Sets, Start, Work, check, extensions,
    names, protocol,
};
pub(crate) use extension::{DEALT, POOL, check_names};
pub use ferret::{FERRET, FERRET_UNI};
pub use floor::{Floor, Item};
pub use functions::{FunctionEntry, fields_in_words, function_table, functions};
pub use intersection::{Intersection, Phase, Sizes, Testing};
pub use oprf::OPRF;
pub use paxos::PAXOS;
pub use plain::{IKNP, KOS};
pub use silent::SILENT;
pub use softspoken::SOFTSPOKEN;
pub use sorted::SORTED;
pub(crate) use sorted::too_many;
pub(crate) use vole::sharing;
pub use vole::{CIRCUIT, LINK, VOLE};
pub use wmk17::WMK17;
pub use yao::YAO;

use crate::{Error, Result, security_name};
use std::fmt::Write;
use tacit_ot::{BaseOt, Security};

/// A computational assumption or an idealised primitive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Assumption {
    /// A hash function modelled as a random oracle.
    RandomOracle,
    /// AES modelled as an ideal cipher, or correlation robustness of hashes built on it.
    IdealCipher,
    /// Diffie–Hellman problems in the Ristretto group.
    DiffieHellman,
    /// Learning with errors over rings and modules.
    ModuleLwe,
    /// Learning parity with noise, primal.
    Lpn,
    /// Learning parity with noise, dual, for structured codes.
    DualLpn,
}

impl Assumption {
    /// Whether a large quantum computer breaks it outright. Grover's square root, which the parameters allow
    /// for, is not such a break.
    pub const fn falls_to_quantum(self) -> bool {
        matches!(self, Assumption::DiffieHellman)
    }

    /// Its name for tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Assumption::RandomOracle => "random oracle",
            Assumption::IdealCipher => "ideal cipher",
            Assumption::DiffieHellman => "Diffie–Hellman",
            Assumption::ModuleLwe => "module-LWE",
            Assumption::Lpn => "LPN",
            Assumption::DualLpn => "dual LPN",
        }
    }
}

/// What runs a protocol, which is what it is for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Runs {
    /// OT from nothing.
    BaseOt(fn() -> Box<dyn BaseOt + Send + Sync>),
    /// Many OTs from a few; one without a family runs only inside other protocols.
    Extension(Option<&'static Family>),
    /// Two-party computation of a circuit.
    Computation(&'static Evaluation),
    /// Private set intersection.
    Intersection(&'static Intersection),
}

impl Runs {
    /// What the protocol is for, in words.
    pub const fn job(&self) -> &'static str {
        match self {
            Runs::BaseOt(_) => "base OT",
            Runs::Extension(_) => "OT extension",
            Runs::Computation(_) => "computation",
            Runs::Intersection(_) => "set intersection",
        }
    }
}

/// What the catalogue says of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The short name, as the command line and the handshake know it.
    pub name: &'static str,
    /// The strongest security that it offers.
    pub security: Security,
    /// What its own steps rest on; what it is built on is declared by that.
    pub assumptions: &'static [Assumption],
    /// Whether it starts from base OTs, so that its safety is also theirs.
    pub needs_base_ot: bool,
    /// What to take instead when it falls to a quantum computer; empty when it does not.
    pub instead: &'static str,
    /// A reservation that a user must know; empty when there is none.
    pub note: &'static str,
    /// What no implementation of it can do without: the busier side's work for one item.
    pub floor: Floor,
    /// What runs it.
    pub runs: Runs,
}

impl Entry {
    /// The assumption that a quantum computer breaks, if there is one among this protocol's own.
    pub fn quantum_break(&self) -> Option<Assumption> {
        self.assumptions.iter().copied().find(|a| a.falls_to_quantum())
    }

    /// What it rests on, by name.
    pub fn assumption_names(&self) -> Vec<&'static str> {
        self.assumptions.iter().map(|a| a.name()).collect()
    }

    /// Why a user who wants only what stands against a quantum computer is refused it, with what to take
    /// instead; `None` when it stands. Its base OT has an entry of its own, to be asked as well.
    pub fn refusal(&self) -> Option<String> {
        let broken = self.quantum_break()?.name();
        let instead =
            if self.instead.is_empty() { String::new() } else { format!("; take {}", self.instead) };
        Some(format!("{} rests on {broken}, which a quantum computer breaks{instead}", self.name))
    }
}

/// Every protocol; a new one is one more line.
pub static ENTRIES: &[&Entry] = &[
    &base::CO15,
    &base::CSW20,
    &base::MR19,
    &base::MRR21,
    &base::ROTED,
    &plain::IKNP,
    &plain::KOS,
    &plain::OOS,
    &softspoken::SOFTSPOKEN,
    &ferret::FERRET,
    &ferret::FERRET_UNI,
    &silent::SILENT,
    &paxos::PAXOS,
    &vole::VOLE,
    &vole::PAYLOAD,
    &vole::LINK,
    &vole::CIRCUIT,
    &sorted::SORTED,
    &oprf::OPRF,
    &yao::YAO,
    &batch::BATCH,
    &wmk17::WMK17,
    &authenticated::AUTHENTICATED,
];

/// The entry of the protocol called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().copied().find(|entry| entry.name == name)
}

/// The table of all protocols in Markdown, for documents and `--help`.
pub fn table() -> String {
    table_of(ENTRIES.iter().copied())
}

/// The table of `entries` in Markdown, one row a protocol.
pub fn table_of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut out = String::from(
        "| protocol | job | security | rests on | against a quantum computer | note |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for entry in entries {
        let quantum = match (entry.quantum_break(), entry.needs_base_ot) {
            (Some(_), _) => "falls",
            (None, true) => "as its base OT",
            (None, false) => "stands",
        };
        let (job, security) = (entry.runs.job(), security_name(entry.security));
        let (names, note) = (entry.assumption_names().join(", "), entry.note);
        let _ = writeln!(out, "| `{}` | {job} | {security} | {names} | {quantum} | {note} |", entry.name);
    }
    out
}

/// Refuses the protocol called `name` unless it is declared and stands against a quantum computer.
pub fn require_post_quantum(name: &str) -> Result<()> {
    let refusal = match find(name) {
        Some(entry) => entry.refusal(),
        None => Some(format!("{name} does not declare what it rests on")),
    };
    refusal.map_or(Ok(()), |what| Err(Error::Parameter { name: "post-quantum", what }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_is_refused_with_the_reason() {
        for name in [
            "roted",
            "iknp",
            "kos",
            "softspoken",
            "ferret",
            "silent",
            "paxos",
            "vole",
            "payload",
            "link",
            "circuit",
            "sorted",
            "yao",
            "batch",
        ] {
            require_post_quantum(name).unwrap();
        }
        for (name, instead) in [
            ("mrr21", "take roted"),
            ("csw20", "take roted"),
            ("oprf", "take paxos"),
            ("wmk17", "take authenticated"),
        ] {
            let error = require_post_quantum(name).unwrap_err().to_string();
            assert!(error.contains("Diffie–Hellman") && error.contains(instead), "{error}");
        }
        assert!(require_post_quantum("roted-paper").is_err());
        assert!(require_post_quantum("none such").is_err());
    }

    #[test]
    fn every_name_is_there_once_and_what_to_take_instead_stands() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert!(std::ptr::eq(find(entry.name).unwrap(), ENTRIES[index]), "{}", entry.name);
            assert_eq!(entry.quantum_break().is_some(), !entry.instead.is_empty(), "{}", entry.name);
            if entry.quantum_break().is_some() {
                let instead = find(entry.instead).unwrap();
                assert!(instead.quantum_break().is_none(), "{}", entry.name);
                assert_eq!(instead.runs.job(), entry.runs.job());
            }
        }
    }

    #[test]
    fn base_ots_are_called_and_protect_as_declared() {
        let mut names = Vec::new();
        for entry in ENTRIES {
            if let Runs::BaseOt(new) = entry.runs {
                assert_eq!((new().name(), new().security()), (entry.name, entry.security));
                names.push(entry.name);
            }
        }
        assert_eq!(names, tacit_ot::base::NAMES);
    }

    #[test]
    fn the_documents_hold_the_table() {
        let docs = include_str!("../../../../docs/post-quantum.md");
        assert!(docs.contains(&table()), "docs/post-quantum.md should hold this table:\n{}", table());
    }
}
