//! What each protocol's security rests on, declared once: the table in `docs/post-quantum.md`, `--help` and the refusals of
//! `--post-quantum` are all made from these declarations.
//!
//! Crates above declare their own protocols with the same [`Declaration`]; [`table`] and [`refusal`] take any list.
//!
//! ```
//! use tacit_ot::assumptions::{PROTOCOLS, find, refusal};
//! assert!(refusal(find(PROTOCOLS, "roted").unwrap(), PROTOCOLS).is_none());
//! assert!(refusal(find(PROTOCOLS, "mrr21").unwrap(), PROTOCOLS).unwrap().contains("Diffie–Hellman"));
//! ```

use crate::Security;
use core::fmt::Write;

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
    /// Whether a large quantum computer breaks it outright. Grover's square root, which the parameters allow for, is
    /// not such a break.
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

/// What a protocol is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Job {
    /// OT from nothing.
    BaseOt,
    /// Many OTs from a few.
    OtExtension,
    /// Two-party computation of a circuit.
    Computation,
    /// Private set intersection.
    Intersection,
}

impl Job {
    const fn name(self) -> &'static str {
        match self {
            Job::BaseOt => "base OT",
            Job::OtExtension => "OT extension",
            Job::Computation => "computation",
            Job::Intersection => "set intersection",
        }
    }
}

/// One protocol's word on itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// The short name, as the command line knows it.
    pub name: &'static str,
    /// What it is for.
    pub job: Job,
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
}

impl Declaration {
    /// The assumption that a quantum computer breaks, if there is one among this protocol's own.
    pub fn quantum_break(&self) -> Option<Assumption> {
        self.assumptions.iter().copied().find(|a| a.falls_to_quantum())
    }
}

use Assumption::{DiffieHellman, DualLpn, IdealCipher, Lpn, ModuleLwe, RandomOracle};
use Security::{Malicious, SemiHonest};

/// The declaration of a base OT without a reservation.
pub const fn base(name: &'static str, security: Security, assumptions: &'static [Assumption]) -> Declaration {
    let instead = match assumptions[0] {
        DiffieHellman => "roted",
        _ => "",
    };
    Declaration { name, job: Job::BaseOt, security, assumptions, needs_base_ot: false, instead, note: "" }
}

const fn extension(
    name: &'static str,
    security: Security,
    assumptions: &'static [Assumption],
) -> Declaration {
    Declaration {
        name,
        job: Job::OtExtension,
        security,
        assumptions,
        needs_base_ot: true,
        instead: "",
        note: "",
    }
}

/// The protocols of this crate.
pub const PROTOCOLS: &[Declaration] = &[
    Declaration {
        note: "semi-honest or run alone",
        ..base("co15", SemiHonest, &[DiffieHellman, RandomOracle])
    },
    Declaration {
        note: "a malicious sender may guess choice bits and is found out by the first wrong guess",
        ..base("csw20", Malicious, &[DiffieHellman, RandomOracle])
    },
    base("mr19", Malicious, &[DiffieHellman, RandomOracle]),
    base("mrr21", Malicious, &[DiffieHellman, RandomOracle]),
    Declaration {
        note: "a malicious receiver's choices are extracted late",
        ..base("roted", Malicious, &[ModuleLwe, RandomOracle])
    },
    extension("iknp", SemiHonest, &[IdealCipher]),
    extension("kos", Malicious, &[IdealCipher, RandomOracle]),
    extension("oos", Malicious, &[IdealCipher, RandomOracle]),
    extension("ferret", Malicious, &[Lpn, IdealCipher, RandomOracle]),
    extension("ferret-uni", Malicious, &[Lpn, IdealCipher, RandomOracle]),
    extension("silent", Malicious, &[DualLpn, IdealCipher, RandomOracle]),
];

/// The declaration of the protocol called `name`.
pub fn find<'a>(declarations: &'a [Declaration], name: &str) -> Option<&'a Declaration> {
    declarations.iter().find(|d| d.name == name)
}

/// The reason why `--post-quantum` refuses `declaration`, with what to take instead; `None` when it does not.
///
/// `all` is where the name in [`Declaration::instead`] may be looked up by a reader; base OTs are checked by themselves.
pub fn refusal(declaration: &Declaration, all: &[Declaration]) -> Option<String> {
    let broken = declaration.quantum_break()?;
    let mut out = format!("{} rests on {}, which a quantum computer breaks", declaration.name, broken.name());
    if !declaration.instead.is_empty() {
        let known = find(all, declaration.instead).is_some();
        let _ = write!(out, "; {} {}", if known { "take" } else { "take instead:" }, declaration.instead);
    }
    Some(out)
}

/// The table of `declarations` in Markdown, one row a protocol.
pub fn table(declarations: &[Declaration]) -> String {
    let mut out = String::from(
        "| protocol | job | security | rests on | against a quantum computer | note |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for d in declarations {
        let security = match d.security {
            SemiHonest => "semi-honest",
            Malicious => "malicious",
        };
        let names: Vec<&str> = d.assumptions.iter().map(|a| a.name()).collect();
        let quantum = match (d.quantum_break(), d.needs_base_ot) {
            (Some(_), _) => "falls",
            (None, true) => "as its base OT",
            (None, false) => "stands",
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {security} | {} | {quantum} | {} |",
            d.name,
            d.job.name(),
            names.join(", "),
            d.note
        );
    }
    out
}
