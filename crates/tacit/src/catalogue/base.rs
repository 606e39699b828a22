//! Base OTs: OT from nothing.

use super::Assumption::{DiffieHellman, ModuleLwe, RandomOracle};
use super::{Entry, Runs, floor};
use tacit_ot::Security::{Malicious, SemiHonest};
use tacit_ot::base::{co15, csw20, mr19, mrr21, roted};

/// Base OT of Chou and Orlandi, which is safe against a malicious peer only where nothing follows.
pub static CO15: Entry = Entry {
    name: co15::NAME,
    security: SemiHonest,
    note: "semi-honest or run alone",
    runs: Runs::BaseOt(|| Box::new(co15::Co15)),
    ..MRR21
};

/// Base OT of Canetti, Sarkar and Wang.
pub(super) static CSW20: Entry = Entry {
    name: csw20::NAME,
    note: "a malicious sender may guess choice bits and is found out by the first wrong guess",
    runs: Runs::BaseOt(|| Box::new(csw20::Csw20)),
    ..MRR21
};

/// Base OT of Masny and Rindal.
pub static MR19: Entry = Entry { name: mr19::NAME, runs: Runs::BaseOt(|| Box::new(mr19::Mr19)), ..MRR21 };

/// Base OT of McQuoid, Rosulek and Roy: the default.
pub(super) static MRR21: Entry = Entry {
    name: mrr21::NAME,
    security: Malicious,
    assumptions: &[DiffieHellman, RandomOracle],
    needs_base_ot: false,
    instead: roted::NAME,
    note: "",
    floor: floor::two_points,
    runs: Runs::BaseOt(|| Box::new(mrr21::Mrr21)),
};

/// ROTed: base OT from lattices.
pub static ROTED: Entry = Entry {
    name: roted::NAME,
    assumptions: &[ModuleLwe, RandomOracle],
    instead: "",
    note: "a malicious receiver's choices are extracted late; that it gets one message of a pair is an assumption of its own",
    floor: floor::unknown,
    runs: Runs::BaseOt(|| Box::new(roted::Roted::default())),
    ..MRR21
};
