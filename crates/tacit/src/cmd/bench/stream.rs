//! `tacit bench stream`: a program too long to hold, planned by both parties while it runs. Setup is the base OTs.

use super::{Common, Subject, measure::measure};
use crate::cli::Context;
use tacit::crypto::{BitVec, Prg};
use tacit::net::Agreement;
use tacit::two_pc::circuit::{Builder, Order, Program, ProgramPlan, Repeat, Shape, Uint};
use tacit::two_pc::semi_honest::{self, OutputTo, Owner};
use tacit::{Result, Security, ot};

/// A chain of 32-bit multiplications by Yao's protocol, planned while it runs.
#[derive(clap::Args)]
pub struct Args {
    /// AND gates, at least
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    #[command(flatten)]
    common: Common,
}

/// x·y^steps modulo 2^32 of the garbler's x and the evaluator's y.
fn powers(steps: u64) -> impl Program {
    let shape = Shape { inputs: vec![32, 32], outputs: vec![32] };
    Repeat::new("x times y", shape, steps, |b: &mut Builder, _, state: &[Uint], inputs: &[Uint]| {
        vec![b.mul(&state[0], &inputs[1])]
    })
}

fn ands(steps: u64) -> u64 {
    let mut plan = ProgramPlan::new(powers(steps), Order::Layered);
    while plan.next_window().is_some() {}
    plan.ands()
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let each = ands(2) - ands(1);
    let steps = args.count.div_ceil(each);
    let subject = Subject {
        name: "stream",
        protocol: "yao".into(),
        security: Security::SemiHonest,
        kind: "mul32".into(),
        count: steps * each,
        more: |_, _| Vec::new(),
    };
    let base = ot::base_ot(None, Security::SemiHonest)?;
    let cot = ot::protocol("auto", Security::SemiHonest)?;
    let garbler = !args.common.is_peer();
    let owners = [Owner::Garbler, Owner::Evaluator];
    let input = [BitVec::random(32, &mut Prg::from_os())];
    let roles = if garbler { ("garbler", "evaluator") } else { ("evaluator", "garbler") };
    let agreement = Agreement::new("bench", roles.0, roles.1);
    let (repeat, to) = (args.common.repeat.into(), OutputTo::Both);
    // The warm-up needs a hundredth only.
    let length = |warm: &mut bool| if std::mem::replace(warm, true) { steps } else { steps.div_ceil(100) };
    args.common.run(context, &subject, agreement, |channels| {
        if garbler {
            let setup = |_, channel: &mut _| {
                let mut prg = Prg::from_os();
                Ok((cot.senders(channel, &*base, &mut prg, 1)?.remove(0), prg, false))
            };
            measure(channels, repeat, setup, |_, (sender, prg, warm), channel| {
                let program = powers(length(warm));
                semi_honest::garble_program(channel, sender, program, &owners, &input, to, prg)?;
                Ok(())
            })
        } else {
            let setup = |_, channel: &mut _| {
                Ok((cot.receivers(channel, &*base, &mut Prg::from_os(), 1)?.remove(0), false))
            };
            measure(channels, repeat, setup, |_, (receiver, warm), channel| {
                let program = powers(length(warm));
                semi_honest::evaluate_program(channel, receiver, program, &owners, &input, to)?;
                Ok(())
            })
        }
    })
}
