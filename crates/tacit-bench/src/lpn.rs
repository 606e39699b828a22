//! `tacit bench lpn`: the code of Ferret alone, in one thread and without a link.

use super::Subject;
use super::garble::{report_alone, timed};
use crate::Context;
use tacit::catalogue::FERRET;
use tacit::crypto::lpn::LocalCode;
use tacit::crypto::near::one_of;
use tacit::crypto::{Block, Buffer, Prg};
use tacit::{Error, Result, Security};
use tacit_ot::silent::ferret::{Config, Lanes, Params};

/// Ferret's LPN encoding alone.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The LPN set: a, b, c, d, e, paper or paper-setup
    #[arg(long, value_name = "SET", default_value = "paper")]
    set: String,
    /// Iterations in lockstep: 1 or 4
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = lanes)]
    lanes: usize,
    /// Outputs of a run, at least
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    /// Measured runs, after one that is thrown away
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

fn lanes(text: &str) -> std::result::Result<usize, String> {
    match text {
        "1" => Ok(1),
        "4" => Ok(4),
        _ => Err("give 1 or 4".into()),
    }
}

/// Outputs made at a time, as leaves of trees are while they are in cache.
const PIECE: usize = 1 << 12;

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let params = Params::for_measuring(&args.set).ok_or_else(|| {
        let known: Vec<_> = Params::ALL.iter().chain(&Params::PAPERS).map(|p| p.name).collect();
        Error::Usage(format!("there is no LPN set `{}`; {}", args.set, one_of(&args.set, known)))
    })?;
    let mut prg = Prg::from_os();
    let code = LocalCode::new(prg.block(), params.k);
    let mut secret = Buffer::zeros(params.k * args.lanes);
    prg.fill_blocks(&mut secret);
    let mut leaves = vec![Block::ZERO; PIECE];
    let rows = (PIECE / args.lanes) as u64;
    let pieces = args.count.div_ceil(PIECE as u64);
    let side = timed(args.repeat, 0.0, || {
        (0..pieces).for_each(|piece| code.add_rows(piece * rows, &secret, args.lanes, &mut leaves));
    });
    let subject = Subject {
        name: "lpn",
        protocol: FERRET.name.into(),
        security: Config { params, lanes: Lanes::One, security: Security::Malicious }.protects(),
        kind: format!("set {}, {} lanes", params.name, args.lanes),
        count: pieces * PIECE as u64,
        more: |_, _| Vec::new(),
    };
    report_alone(context, &subject, &side)
}
