//! Ferret, with regular and with uniform noise: OT extension that sends less than a bit an OT.

use super::Assumption::{IdealCipher, Lpn, RandomOracle};
use super::extension::{
    AnyReceiver, AnySender, Choice, Extension, Family, GATHERS, Kind, Start, Work, with_security,
};
use super::{Entry, Runs};
use crate::limits::Limit;
use std::sync::Arc;
use tacit_net::{Agreement, LinkModel};
use tacit_ot::Security::Malicious;
use tacit_ot::silent::ferret::cost::CACHE;
use tacit_ot::silent::ferret::{Config, Lanes, Params, UniConfig, UniParams, setup};
use tacit_ot::{Result, Security};

/// Ferret of Yang, Weng, Lan, Zhang and Wang, with regular noise.
pub static FERRET: Entry = Entry {
    name: "ferret",
    security: Malicious,
    assumptions: &[Lpn, IdealCipher, RandomOracle],
    needs_base_ot: true,
    instead: "",
    note: "",
    // A leaf of the tree and the indices of the ten entries, which four rows share.
    floor: |item| {
        vec![(Limit::AesFixed, 1.0 + 2.5 / 4.0 + 2.0 * item.hashes()), (Limit::Gather(1 << 20), 2.5)]
    },
    runs: Runs::Extension(Some(&FAMILY)),
};

static FAMILY: Family = Family {
    shares_setup: false,
    sets: |sets| sets.of(&Params::ALL, &Params::PAPERS).iter().map(|p| (p.name, p.security_bits)).collect(),
    ..Family::plain(soonest, ways)
};

/// Ferret with uniform noise.
pub static FERRET_UNI: Entry = Entry {
    name: "ferret-uni",
    // A leaf of the tree; indices of ten entries, and the entries, of a table of nine megabytes.
    floor: |item| vec![(Limit::AesFixed, 1.0 + 2.5 + 2.0 * item.hashes()), (Limit::Gather(8 << 20), 10.0)],
    runs: Runs::Extension(Some(&UNI_FAMILY)),
    ..FERRET
};

static UNI_FAMILY: Family = Family {
    shares_setup: false,
    sets: |sets| {
        sets.of(&UniParams::ALL, &UniParams::PAPERS).iter().map(|p| (p.name, p.security_bits)).collect()
    },
    ..Family::plain(uni_soonest, uni_ways)
};

/// Of `all` and, where `choice` names one, `papers` the sets that it leaves open: what only the papers'
/// tables need is taken by name alone.
fn open<P: Copy>(choice: &Choice<'_>, all: &[P], papers: &[P], name: fn(&P) -> &'static str) -> Vec<P> {
    match choice.set {
        None => all.to_vec(),
        Some(set) => choice.sets.of(all, papers).into_iter().filter(|p| name(p) == set).collect(),
    }
}

fn sets(choice: &Choice<'_>) -> Vec<Params> {
    open(choice, &Params::ALL, &Params::PAPERS, |p| p.name)
}

fn uni_sets(choice: &Choice<'_>) -> Vec<UniParams> {
    open(choice, &UniParams::ALL, &UniParams::PAPERS, |p| p.name)
}

fn soonest(count: u64, security: Security, choice: &Choice<'_>) -> Arc<dyn Extension> {
    let link = &LinkModel::LOOPBACK;
    let config = match &sets(choice)[..] {
        [only] => Config::with_set(*only, count, security, link, CACHE),
        _ => Config::choose(count, security, link, CACHE),
    };
    Arc::new(Ferret { config, up_front: None })
}

fn ways(_: u64, security: Security, choice: &Choice<'_>) -> Vec<Arc<dyn Extension>> {
    let both = |params| {
        [Lanes::One, Lanes::Four].map(|lanes| -> Arc<dyn Extension> {
            Arc::new(Ferret { config: Config { params, lanes, security }, up_front: None })
        })
    };
    sets(choice).into_iter().flat_map(both).collect()
}

fn uni_soonest(count: u64, security: Security, choice: &Choice<'_>) -> Arc<dyn Extension> {
    Arc::new(FerretUni(match &uni_sets(choice)[..] {
        [only] => UniConfig { params: *only, security },
        _ => UniConfig::choose(count, security, &LinkModel::LOOPBACK, CACHE),
    }))
}

fn uni_ways(_: u64, security: Security, choice: &Choice<'_>) -> Vec<Arc<dyn Extension>> {
    let one = |params| -> Arc<dyn Extension> { Arc::new(FerretUni(UniConfig { params, security })) };
    uni_sets(choice).into_iter().map(one).collect()
}

/// Correlations of an iteration that wait to be taken, by what runs of every set held; those with uniform
/// noise have their positions besides.
const CARRIED: usize = 1 << 20;
const UNI_CARRIED: usize = 1 << 21;
const UNI_BYTES: usize = 32;

/// Its parameters, and how many iterations a stream makes ahead: on demand unless they are given.
#[derive(Debug)]
struct Ferret {
    config: Config,
    up_front: Option<usize>,
}

impl Extension for Ferret {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        let all = match self.up_front {
            Some(ahead) => setup::senders_ahead(at.channel, at.base, at.prg, self.config, streams, ahead)?,
            None => setup::senders(at.channel, at.base, at.prg, self.config, streams)?,
        };
        Ok(all.into_iter().map(AnySender::new).collect())
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        let all = match self.up_front {
            Some(ahead) => setup::receivers_ahead(at.channel, at.base, at.prg, self.config, streams, ahead)?,
            None => setup::receivers(at.channel, at.base, at.prg, self.config, streams)?,
        };
        Ok(all.into_iter().map(AnyReceiver::new).collect())
    }

    /// The secret and the next one, and an iteration's correlations as far as they wait.
    fn held(&self) -> u64 {
        let Params { k, t, depth, .. } = self.config.params;
        16 * (2 * k + (t << depth).min(CARRIED)) as u64
    }

    fn protects(&self) -> Option<Security> {
        self.config.protects()
    }

    fn security_bits(&self) -> u32 {
        self.config.params.security_bits
    }

    fn variant(&self) -> String {
        format!("set {}, {} lanes", self.config.params.name, self.config.lanes.count())
    }

    fn terms(&self, agreement: Agreement) -> Agreement {
        let Config { params, lanes, security } = self.config;
        let agreement = agreement
            .with("set", params.name)
            .with("lanes", lanes.count())
            .with("up-front", self.up_front.unwrap_or(0));
        with_security(agreement, security)
    }

    fn work(&self, share: u64, streams: usize, _: Kind, cache: usize) -> Work {
        Work::silent(self.config.cost(share, streams, cache), GATHERS)
    }

    fn up_front(&self, most: u64) -> Option<Arc<dyn Extension>> {
        let config = self.config;
        Some(Arc::new(Ferret { config, up_front: Some(config.iterations_ahead(most)) }))
    }
}

#[derive(Debug)]
struct FerretUni(UniConfig);

impl Extension for FerretUni {
    fn senders(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnySender>> {
        Ok(setup::uni_senders(at.channel, at.base, at.prg, self.0, streams)?
            .into_iter()
            .map(AnySender::new)
            .collect())
    }

    fn receivers(&self, at: Start<'_>, streams: usize) -> Result<Vec<AnyReceiver>> {
        Ok(setup::uni_receivers(at.channel, at.base, at.prg, self.0, streams)?
            .into_iter()
            .map(AnyReceiver::new)
            .collect())
    }

    fn held(&self) -> u64 {
        let UniParams { k, m, q, .. } = self.0.params;
        (32 * k + UNI_BYTES * (m * q).min(UNI_CARRIED)) as u64
    }

    fn protects(&self) -> Option<Security> {
        self.0.protects()
    }

    fn security_bits(&self) -> u32 {
        self.0.params.security_bits
    }

    fn variant(&self) -> String {
        format!("set {}", self.0.params.name)
    }

    fn terms(&self, agreement: Agreement) -> Agreement {
        with_security(agreement.with("set", self.0.params.name), self.0.security)
    }

    fn work(&self, share: u64, streams: usize, _: Kind, cache: usize) -> Work {
        Work::silent(self.0.cost(share, streams, cache), GATHERS)
    }
}
