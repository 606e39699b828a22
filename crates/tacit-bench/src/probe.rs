//! `tacit bench probe`: the labels of P2's input from those of its ρ-probe encoding, as WMK17 needs them once
//! a copy.

use super::Subject;
use super::garble::{report_alone, timed};
use super::record::check_memory;
use crate::Context;
use std::time::Instant;
use tacit::catalogue::WMK17;
use tacit::crypto::{Block, Prg};
use tacit::two_pc::wmk17::probe::ProbeMatrix;
use tacit::{Result, Security};

/// The labels of an input from those of its ρ-probe encoding.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Input bits
    #[arg(long, value_name = "N", default_value_t = 1 << 15, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    count: u32,
    /// Copies side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    copies: u16,
    /// Measured runs, after one that is thrown away
    #[arg(long, value_name = "R", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let (bits, copies) = (args.count as usize, usize::from(args.copies));
    // At most three bits of the encoding an input bit; short inputs take some hundred more.
    let blocks = (4 * u64::from(args.count) + 256) * u64::from(args.copies);
    check_memory("this benchmark", blocks * size_of::<Block>() as u64)?;
    let start = Instant::now();
    let matrix = ProbeMatrix::new(bits);
    let setup_ms = start.elapsed().as_secs_f64() * 1e3;
    let mut encoded = vec![Block::ZERO; matrix.encoded() * copies];
    Prg::from_os().fill_blocks(&mut encoded);
    let mut labels = vec![Block::ZERO; bits * copies];
    let side = timed(args.repeat, setup_ms, || matrix.combine(copies, &encoded, &mut labels));
    let subject = Subject {
        name: "probe",
        protocol: WMK17.name.into(),
        security: Some(Security::Malicious),
        kind: format!("input bits x{copies}"),
        count: u64::from(args.count) * copies as u64,
        more: |_, _| Vec::new(),
    };
    report_alone(context, &subject, &side)
}
