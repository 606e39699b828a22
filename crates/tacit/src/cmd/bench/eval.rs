//! `tacit bench eval`: a function by two parties. Setup is the base OTs; a run does everything else.

use super::{Common, Subject, measure::measure};
use crate::cli::Context;
use crate::cmd::eval::load;
use tacit::crypto::{BitVec, Prg};
use tacit::net::Agreement;
use tacit::two_pc::semi_honest::{self, OutputTo, Owner, Prepared};
use tacit::{Result, Security, ot};

/// A function by two parties on random inputs.
#[derive(clap::Args)]
pub struct Args {
    /// The name of a function, or a Bristol file
    #[arg(value_name = "CIRCUIT|NAME")]
    function: String,
    /// The protocol
    #[arg(long, value_name = "P", default_value = "yao", value_parser = ["yao"])]
    protocol: String,
    /// Evaluations in a run, on each thread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    rows: u32,
    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let function = load(&args.function)?;
    let prepared = Prepared::from_function(&function)?;
    let rows = args.rows as usize;
    let threads = u64::from(args.common.threads);
    let subject = Subject {
        name: "eval",
        protocol: args.protocol.clone(),
        security: Security::SemiHonest,
        kind: args.function.clone(),
        count: prepared.plan(rows.min(semi_honest::ROWS_AT_ONCE)).ands() * u64::from(args.rows) * threads,
        more: |_, _| Vec::new(),
    };
    let base = ot::base_ot(None, Security::SemiHonest)?;
    let cot = ot::protocol("auto", Security::SemiHonest)?;
    let garbler = !args.common.is_peer();
    let (owner, fields) = if garbler {
        (("garbler", "evaluator"), semi_honest::fields(&function, Owner::Garbler))
    } else {
        (("evaluator", "garbler"), semi_honest::fields(&function, Owner::Evaluator))
    };
    let mut prg = Prg::from_os();
    let inputs: Vec<Vec<BitVec>> = (0..rows)
        .map(|_| fields.iter().map(|f| BitVec::random(f.bits() as usize, &mut prg)).collect())
        .collect();
    let agreement = Agreement::new("bench", owner.0, owner.1).with("rows", rows);
    let (repeat, to) = (args.common.repeat.into(), OutputTo::Evaluator);
    args.common.run(context, &subject, agreement, |channels| {
        if garbler {
            measure(
                channels,
                repeat,
                |_, channel| {
                    let mut prg = Prg::from_os();
                    Ok((cot.senders(channel, &*base, &mut prg, 1)?.remove(0), prg))
                },
                |_, (sender, prg), channel| {
                    semi_honest::garble(channel, sender, &prepared, &inputs, to, prg)?;
                    Ok(())
                },
            )
        } else {
            measure(
                channels,
                repeat,
                |_, channel| Ok(cot.receivers(channel, &*base, &mut Prg::from_os(), 1)?.remove(0)),
                |_, receiver, channel| {
                    semi_honest::evaluate(channel, receiver, &prepared, &inputs, to)?;
                    Ok(())
                },
            )
        }
    })
}
