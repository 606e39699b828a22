//! `tacit bench psi`: the intersection of two sets of 32-byte elements, base OTs and checks included in every run.

use super::measure::{Runs, by_lane, measure_phases};
use super::{Common, Subject};
use crate::Context;
use tacit::crypto::{Block, Prg};
use tacit::job::psi::{Job, Protocol};
use tacit::net::Agreement;
use tacit::psi::paxos::{self, Learns, MAX_ELEMENTS, Phase};
use tacit::psi::vole_psi;
use tacit::{Error, Result};
use tacit_console::options::Security;

/// Private set intersection of two generated sets.
#[derive(clap::Args)]
pub struct Args {
    /// The protocol: auto, paxos or vole
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// Against which peer to protect
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// Elements of each set; half of them are common
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=MAX_ELEMENTS as u64))]
    count: u64,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let vole = match args.protocol.as_str() {
        "auto" => Protocol::Auto.settled(2 * args.count) == Protocol::Vole,
        paxos::NAME => false,
        vole_psi::NAME => true,
        other => {
            return Err(Error::Usage(format!(
                "there is no PSI protocol `{other}`; choose auto, paxos or vole"
            )));
        }
    };
    if args.common.threads != 1 {
        return Err(Error::Usage("an intersection runs in one thread; leave --threads out".into()));
    }
    let security = args.security.into();
    super::record::check_memory(
        "this benchmark",
        2 * Job::new(Learns::Both, args.security.into()).memory(args.count, args.count),
    )?;
    let base = crate::base::base_ot(args.base_ot.as_deref(), security)?;
    let subject = Subject {
        name: "psi",
        protocol: if vole { vole_psi::NAME } else { paxos::NAME }.into(),
        security: Some(security),
        kind: "set".into(),
        count: args.count,
        more: |_, _| Vec::new(),
    };
    // The connecting side learns the result.
    let receives = args.common.is_peer();
    let elements = set(args.count, receives);
    let repeat = args.common.repeat.into();
    let mut common = args.common.clone();
    common.variant = args.base_ot.as_ref().map_or_else(String::new, |name| format!("base {name}"));
    common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        measure_phases(
            channels,
            Runs { repeat, fresh: false },
            by_lane(|_, _| Ok(Prg::from_os())),
            |_, prg, channel, inputs| {
                let learns = if receives { Learns::Me } else { Learns::Peer };
                let options =
                    paxos::Options { learns, security, max_peer_elements: args.count, base: &*base };
                let mut told = |phase, _, _| {
                    if phase != Phase::Setup {
                        inputs();
                    }
                };
                let run = if vole { vole_psi::run } else { paxos::run };
                let outcome = run(channel, prg, &elements, &options, &mut told)?;
                match outcome.matches {
                    Some(matches) if matches.len() as u64 != args.count.div_ceil(2) => {
                        Err(Error::Other(format!("a wrong result: {} matches", matches.len())))
                    }
                    _ => Ok(()),
                }
            },
        )
    })
}

/// The first half is common, the rest is the party's own.
fn set(count: u64, own: bool) -> Vec<[u8; 32]> {
    let mut common = Prg::from_seed(Block::new(1));
    let mut rest = Prg::from_seed(Block::new(2 + own as u128));
    let common_count = count.div_ceil(2);
    let draw = |i: u64| {
        let mut element = [0; 32];
        let prg = if i < common_count { &mut common } else { &mut rest };
        prg.fill_bytes(&mut element);
        element
    };
    (0..count).map(draw).collect()
}
