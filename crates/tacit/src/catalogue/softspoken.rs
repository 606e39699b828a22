//! SoftSpoken: OT extension whose bytes are traded for computing, by groups of two, four or eight bits of Δ.

use super::Assumption::{IdealCipher, RandomOracle};
use super::extension::{
    AnyReceiver, AnySender, Choice, Extension, Family, Kind, PIECE, Start, Work, with_security,
};
use super::plain::{KOS, receivers, senders};
use super::{Entry, Runs};
use crate::limits::Limit;
use std::sync::Arc;
use tacit_net::Agreement;
use tacit_ot::Security::Malicious;
use tacit_ot::extension::kos::Setup;
use tacit_ot::extension::softspoken::{Groups, NAME};
use tacit_ot::extension::{SoftReceiver, SoftSender};
use tacit_ot::{Result, Security};

/// OT extension of Roy.
pub static SOFTSPOKEN: Entry = Entry {
    name: NAME,
    assumptions: &[IdealCipher, RandomOracle],
    // Of groups of two bits, which compute least: four streams a group, of which a block is 128 columns of one bit.
    floor: |item| vec![(Limit::AesFixed, 2.0 + item.hashes()), (Limit::MultiplyAdd, 1.0)],
    runs: Runs::Extension(Some(&FAMILY)),
    ..KOS
};

/// The fastest first: encryption of four bytes more costs what two bits save.
const GROUPS: [Groups; 3] = [Groups::Four, Groups::Two, Groups::Eight];

static FAMILY: Family = Family {
    codes: &[Groups::Two.name(), Groups::Four.name(), Groups::Eight.name()],
    ..Family::plain(
        |_, security, choice| Arc::new(SoftSpoken { groups: open(choice)[0], security }),
        |_, security, choice| {
            let all = open(choice).into_iter();
            all.map(|groups| -> Arc<dyn Extension> { Arc::new(SoftSpoken { groups, security }) }).collect()
        },
    )
};

/// The groups that `choice` leaves open; at least one.
fn open(choice: &Choice<'_>) -> Vec<Groups> {
    let named = choice.code.and_then(Groups::by_name);
    GROUPS.into_iter().filter(|groups| named.is_none_or(|named| named == *groups)).collect()
}

/// What a correlated OT takes in ns on the reference machine, and what of it is the check.
const fn cot_ns(groups: Groups) -> f64 {
    match groups {
        Groups::Two => 7.4,
        Groups::Four => 8.0,
        Groups::Eight => 30.7,
    }
}

const CHECK_NS: f64 = 1.5;
/// A leaf of a tree: its node and its round keys.
const TREES_LEAF_NS: f64 = 110.0;

#[derive(Debug)]
struct SoftSpoken {
    groups: Groups,
    security: Security,
}

impl Extension for SoftSpoken {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        let first = SoftSender::setup(at.channel, at.base, at.prg, self.security, self.groups)?;
        senders(first, streams, SoftSender::fork)
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        let first = SoftReceiver::setup(at.channel, at.base, at.prg, self.security, self.groups)?;
        receivers(first, streams, SoftReceiver::fork)
    }

    fn begin_sender(&self, at: Start<'_>) -> Result<Setup<AnySender>> {
        let setup = SoftSender::begin(at.channel, at.base, at.prg, self.security, self.groups)?;
        Ok(Box::new(move |channel| Ok(AnySender::new(setup(channel)?))))
    }

    fn begin_receiver(&self, at: Start<'_>) -> Result<Setup<AnyReceiver>> {
        let setup = SoftReceiver::begin(at.channel, at.base, at.prg, self.security, self.groups)?;
        Ok(Box::new(move |channel| Ok(AnyReceiver::new(setup(channel)?))))
    }

    fn protects(&self) -> Option<Security> {
        Some(self.security)
    }

    fn held(&self) -> u64 {
        self.groups.held()
    }

    fn variant(&self) -> String {
        format!("code {}", self.groups.name())
    }

    fn terms(&self, agreement: Agreement) -> Agreement {
        with_security(agreement.with("code", self.groups.name()), self.security)
    }

    fn work(&self, share: u64, _: usize, _: Kind, _: usize) -> Work {
        let bytes = |n: u64| self.groups.bytes(n as usize, self.security) as f64;
        let check = if self.security == Malicious { CHECK_NS } else { 0.0 };
        let (n, piece) = (share as f64, PIECE as u64);
        let leaves = (self.groups.count() << self.groups.bits()) as f64;
        Work {
            aes: n * (cot_ns(self.groups) - CHECK_NS) + leaves * TREES_LEAF_NS,
            multiply_add: n * check,
            gather: 0.0,
            alone: 0.0,
            streamed: (share / piece) as f64 * bytes(piece) + bytes(share % piece),
            awaited: self.groups.trees_bytes() as f64,
            trips: if self.security == Malicious { 1.5 } else { 0.5 } * share.div_ceil(piece) as f64,
        }
    }
}
