//! Base OTs that exist only to be compared: no session takes them, `tacit bench` does.
//!
//! - [`bdgm19`], [`pvw08`]: protocols of the papers' tables.
//! - [`roted_paper`]: ROTed's figure as printed, which is insecure.
//! - [`standard`], [`rot_from_ot`]: chosen messages, and uniform random OT, out of any base OT.

pub mod bdgm19;
pub mod pvw08;
pub mod rot_from_ot;
pub mod roted_paper;
pub mod standard;

use tacit::catalogue::{Assumption, Entry, Runs};
use tacit::crypto::near::one_of;
use tacit::limits::Limit;
use tacit::{Error, Result, Security};
use tacit_ot::BaseOt;
use tacit_ot::base as library;

/// The short names of the protocols that benchmarks alone know.
pub const NAMES: [&str; 2] = [bdgm19::NAME, pvw08::NAME];

/// Their entries, in the order of [`NAMES`].
pub static ENTRIES: &[Entry] = &[
    Entry {
        assumptions: &[Assumption::ModuleLwe, Assumption::RandomOracle],
        instead: "",
        note: "a malicious sender may guess choice bits, and the first wrong guess ends the run and tells \
               it nothing",
        floor: |_| Vec::new(),
        runs: Runs::BaseOt(|| Box::new(bdgm19::Bdgm19::default())),
        name: bdgm19::NAME,
        ..PVW08
    },
    PVW08,
];

const PVW08: Entry = Entry {
    name: pvw08::NAME,
    security: Security::Malicious,
    assumptions: &[Assumption::DiffieHellman, Assumption::RandomOracle],
    needs_base_ot: false,
    instead: library::roted::NAME,
    note: "",
    // Two exponentiations of points that are not known ahead.
    floor: |_| vec![(Limit::PointMultiply, 2.0)],
    runs: Runs::BaseOt(|| Box::new(pvw08::Pvw08)),
};

/// The entry of the protocol of that short name: one of [`NAMES`], or any of the library's.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name).or_else(|| tacit::catalogue::find(name))
}

/// The base OT of that short name: one of [`NAMES`], or of the library's.
pub fn by_name(name: &str) -> Option<Box<dyn BaseOt + Send + Sync>> {
    match find(name)?.runs {
        Runs::BaseOt(new) => Some(new()),
        _ => None,
    }
}

/// The base OT of that name (`None`: the default), refused if it protects less than `security`.
pub fn base_ot(name: Option<&str>, security: Security) -> Result<Box<dyn BaseOt + Send + Sync>> {
    let Some(base) = name.filter(|name| NAMES.contains(name)).and_then(by_name) else {
        return tacit::ot::base_ot(name, security).map_err(|error| match name {
            Some(name) if by_name(name).is_none() => {
                let known = [&NAMES[..], &library::NAMES].concat();
                let what = format!("there is no base OT `{name}`; {}", one_of(name, known));
                Error::Parameter { name: "base-ot", what }
            }
            _ => error,
        });
    };
    tacit::ot::protects(&*base, security)?;
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_declared_and_the_declarations_agree() {
        for (name, declared) in NAMES.into_iter().zip(ENTRIES) {
            assert_eq!(declared.name, name);
            assert_eq!(declared.security, by_name(name).unwrap().security(), "{name}");
            let refused = declared.refusal();
            assert_eq!(refused.is_none(), name == bdgm19::NAME, "{name}: {refused:?}");
        }
    }

    #[test]
    fn the_library_takes_none_of_them_and_benchmarks_take_all() {
        for name in NAMES {
            let refused = tacit::ot::base_ot(Some(name), Security::SemiHonest).err().unwrap().to_string();
            assert!(refused.contains(name) && refused.contains("roted"), "{refused}");
            assert_eq!(base_ot(Some(name), Security::Malicious).unwrap().name(), name);
        }
        for name in library::NAMES {
            assert_eq!(base_ot(Some(name), Security::SemiHonest).unwrap().name(), name);
        }
        assert_eq!(base_ot(None, Security::Malicious).unwrap().name(), library::DEFAULT);
        assert!(base_ot(Some("co15"), Security::Malicious).is_err());
        let unknown = base_ot(Some(roted_paper::NAME), Security::SemiHonest).err().unwrap().to_string();
        assert!(unknown.contains("roted-paper") && unknown.contains("pvw08"), "{unknown}");
    }

    #[test]
    fn the_documents_hold_the_table() {
        let docs = include_str!("../../../../docs/post-quantum.md");
        let table = tacit::catalogue::table_of(ENTRIES);
        assert!(docs.contains(&table), "docs/post-quantum.md should hold this table:\n{table}");
    }
}
