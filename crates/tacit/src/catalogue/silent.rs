//! Silent OT by dual LPN: a run for each request of at most 2^24, each with base correlations of its own.

use super::Assumption::{DualLpn, IdealCipher, RandomOracle};
use super::extension::{
    AnyReceiver, AnySender, CHOSEN_PIECE, Choice, Extension, Family, GATHERS, Kind, Start, Work,
    with_security,
};
use super::plain::{receivers, senders};
use super::{Entry, Runs};
use crate::limits::Limit;
use std::sync::Arc;
use tacit_net::Agreement;
use tacit_ot::Security::Malicious;
use tacit_ot::extension::{iknp, kos};
use tacit_ot::silent::bcgikrs19::{Code, Config, LARGEST_RUN, SilentReceiver, SilentSender};
use tacit_ot::silent::ferret::cost::Cost;
use tacit_ot::{Result, Security};

/// Silent OT of Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal and Scholl.
pub static SILENT: Entry = Entry {
    name: "silent",
    security: Malicious,
    assumptions: &[DualLpn, IdealCipher, RandomOracle],
    needs_base_ot: true,
    instead: "",
    note: "",
    // Two leaves.
    floor: |item| vec![(Limit::AesFixed, 2.0 + 2.0 * item.hashes())],
    runs: Runs::Extension(Some(&FAMILY)),
};

/// The fastest first.
const CODES: [Code; 2] = [Code::Linear, Code::QuasiCyclic];

static FAMILY: Family = Family {
    piece: LARGEST_RUN,
    stream: 1 << 18,
    working: 75,
    codes: &[Code::QuasiCyclic.name(), Code::Linear.name()],
    ..Family::plain(
        |_, security, choice| Arc::new(Silent(configs(security, choice)[0])),
        |_, security, choice| {
            configs(security, choice)
                .into_iter()
                .map(|config| -> Arc<dyn Extension> { Arc::new(Silent(config)) })
                .collect()
        },
    )
};

/// By every code that `choice` leaves open; at least one.
fn configs(security: Security, choice: &Choice<'_>) -> Vec<Config> {
    let named = choice.code.and_then(Code::by_name);
    let open = CODES.into_iter().filter(|code| named.is_none_or(|named| named == *code));
    open.map(|code| Config { code, security }).collect()
}

/// A run, and each of its OTs by code, in ns.
const RUN_NS: f64 = 1.0e6;
const LINEAR_NS: f64 = 52.0;
const QUASI_CYCLIC_NS: f64 = 128.0;
/// What the short form adds to each.
const SHORT_NS: f64 = 50.0;

#[derive(Debug)]
struct Silent(Config);

impl Extension for Silent {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        senders(SilentSender::setup(at.channel, at.base, at.prg, self.0)?, streams, SilentSender::fork)
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        receivers(SilentReceiver::setup(at.channel, at.base, at.prg, self.0)?, streams, SilentReceiver::fork)
    }

    fn protects(&self) -> Option<Security> {
        Some(self.0.security)
    }

    fn variant(&self) -> String {
        format!("code {}", self.0.code.name())
    }

    fn terms(&self, agreement: Agreement) -> Agreement {
        with_security(agreement.with("code", self.0.code.name()), self.0.security)
    }

    fn work(&self, share: u64, _: usize, kind: Kind, _: usize) -> Work {
        let config = self.0;
        let largest = if kind == Kind::Ot { CHOSEN_PIECE } else { LARGEST_RUN as u64 };
        let runs = share.div_ceil(largest.max(1)).max(1) as f64;
        let each = share.min(largest);
        let cots = config.base_cots(each as usize);
        let mut cost = Cost::of_source(cots as f64, config.security);
        let extension = if config.security == Malicious { kos::bytes_by_hash } else { iknp::bytes };
        cost.awaited = extension(cots) as f64 + config.bytes(each as usize) as f64;
        let short = config.is_short(each as usize);
        let code_ns = match config.code {
            Code::Linear => LINEAR_NS,
            Code::QuasiCyclic => QUASI_CYCLIC_NS,
        };
        let short_ns = if short { SHORT_NS } else { 0.0 };
        cost.ns += RUN_NS + each.max(1 << 14) as f64 * (code_ns + short_ns);
        let opened = config.security == Malicious && !short;
        cost.trips += if opened { 1.4 } else { 0.4 };
        // Along with the base OTs, the parties exchange parameters and commitments to seeds, which the first
        // run opens.
        let awaited = runs * cost.awaited + 160.0;
        let cost = Cost { ns: runs * cost.ns, awaited, trips: runs * cost.trips, ..cost };
        Work::silent(cost, GATHERS)
    }
}
