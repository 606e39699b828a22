//! How many keys a peer that cheats can have tested.

use crate::catalogue::{Entry, Testing};
use crate::{Error, Result};
use tacit_psi::paxos::Outcome;

/// How many keys a cheating peer can have tested against ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tested {
    /// With as many hash calls as somebody might make: 2^80 by PaXoS, else 2^60.
    pub likely: u64,
    /// With 2^128 by PaXoS, which nobody makes, else with 2^80.
    pub most: u64,
    pub(super) effort: [u32; 2],
    pub(super) never_more: bool,
}

impl Tested {
    /// In words.
    pub fn words(&self) -> String {
        let Tested { likely, most, effort: [some, more], never_more } = self;
        match never_more {
            true => format!("{likely} with 2^{some} hash calls, and never more than {most}"),
            false => format!("{likely} with 2^{some} hash calls, and {most} with 2^{more}"),
        }
    }
}

/// The worst bound that `entries` promise on the peer of `outcome`.
pub(in crate::job) fn bound(
    entries: impl Iterator<Item = &'static Entry>,
    outcome: &Outcome,
    own: u64,
) -> Result<Tested> {
    let own = usize::try_from(own).unwrap_or(usize::MAX);
    let mut worst: Option<Tested> = None;
    for entry in entries {
        let Some(Testing { effort, never_more, bound }) = entry.intersection()?.tested.as_ref() else {
            continue;
        };
        let [likely, most] = effort.map(|effort| bound(outcome, own, effort));
        let tested = Tested { likely: likely?, most: most?, effort: *effort, never_more: *never_more };
        worst = Some(match worst {
            Some(other) if other.most >= tested.most => other,
            _ => tested,
        });
    }
    worst.ok_or_else(|| Error::Other("nothing bounds what a cheating peer tests here".to_owned()))
}
