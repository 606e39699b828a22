//! What stands against a quantum computer: the declarations of every protocol that the command offers.

use crate::{Error, Result};
use tacit_ot::Security;
use tacit_ot::assumptions::{self, Assumption, Declaration, Job};

/// The protocols above oblivious transfer.
pub const ABOVE_OT: &[Declaration] = &[
    Declaration {
        name: "paxos",
        job: Job::Intersection,
        security: Security::Malicious,
        assumptions: &[Assumption::IdealCipher, Assumption::RandomOracle],
        needs_base_ot: true,
        instead: "",
        note: "",
    },
    Declaration {
        name: "vole",
        job: Job::Intersection,
        security: Security::Malicious,
        assumptions: &[Assumption::DualLpn, Assumption::IdealCipher, Assumption::RandomOracle],
        needs_base_ot: true,
        instead: "",
        note: "",
    },
    Declaration {
        name: "payload",
        job: Job::Intersection,
        security: Security::Malicious,
        assumptions: &[Assumption::DualLpn, Assumption::IdealCipher, Assumption::RandomOracle],
        needs_base_ot: true,
        instead: "",
        note: "the peer's columns of matching rows, on vole",
    },
    Declaration {
        name: "circuit",
        job: Job::Intersection,
        security: Security::SemiHonest,
        assumptions: &[
            Assumption::Lpn,
            Assumption::DualLpn,
            Assumption::IdealCipher,
            Assumption::RandomOracle,
        ],
        needs_base_ot: true,
        instead: "",
        note: "counts, sums, means and shares, on vole",
    },
    Declaration {
        name: "oprf",
        job: Job::Intersection,
        security: Security::Malicious,
        assumptions: &[Assumption::DiffieHellman, Assumption::RandomOracle],
        needs_base_ot: false,
        instead: "paxos",
        note: "",
    },
    Declaration {
        name: "yao",
        job: Job::Computation,
        security: Security::SemiHonest,
        assumptions: &[Assumption::IdealCipher],
        needs_base_ot: true,
        instead: "",
        note: "",
    },
    Declaration {
        name: "wmk17",
        job: Job::Computation,
        security: Security::Malicious,
        assumptions: &[Assumption::DiffieHellman, Assumption::IdealCipher, Assumption::RandomOracle],
        needs_base_ot: true,
        instead: "yao",
        note: "recovers a cheater's input by Diffie–Hellman; yao, which stands, is semi-honest only",
    },
];

/// Every declaration there is.
pub fn declarations() -> Vec<Declaration> {
    [assumptions::PROTOCOLS, ABOVE_OT].concat()
}

/// The table of all protocols, for documents and `--help`.
pub fn table() -> String {
    assumptions::table(&declarations())
}

/// Refuses the protocol called `name` unless it is declared and stands against a quantum computer.
pub fn require_post_quantum(name: &str) -> Result<()> {
    let all = declarations();
    let refusal = match assumptions::find(&all, name) {
        Some(found) => assumptions::refusal(found, &all),
        None => Some(format!("{name} does not declare what it rests on")),
    };
    refusal.map_or(Ok(()), |why| Err(Error::Usage(format!("--post-quantum: {why}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_is_refused_with_the_reason() {
        for name in ["roted", "iknp", "kos", "ferret", "silent", "paxos", "vole", "payload", "circuit", "yao"]
        {
            require_post_quantum(name).unwrap();
        }
        for (name, instead) in
            [("mrr21", "take roted"), ("csw20", "take roted"), ("oprf", "take paxos"), ("wmk17", "take yao")]
        {
            let error = require_post_quantum(name).unwrap_err().to_string();
            assert!(error.contains("Diffie–Hellman") && error.contains(instead), "{error}");
        }
        assert!(require_post_quantum("roted-paper").is_err());
        assert!(require_post_quantum("none such").is_err());
    }

    #[test]
    fn every_protocol_offered_is_declared() {
        let all = declarations();
        for name in crate::ot::names().iter().filter(|n| **n != "auto").chain(&tacit_ot::base::NAMES) {
            assert!(assumptions::find(&all, name).is_some(), "{name} is not declared");
        }
    }

    #[test]
    fn the_documents_hold_the_table() {
        let docs = include_str!("../../../docs/post-quantum.md");
        assert!(docs.contains(&table()), "docs/post-quantum.md should hold this table:\n{}", table());
    }
}
