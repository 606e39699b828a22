//! `tacit bench stream`: a program too long to hold, planned by both parties while it runs. Of `wmk17` and
//! `authenticated` a run is everything from the base OTs on; of `yao` setup is the base OTs.

use super::eval::Protocol;
use super::{Common, Subject, measure::measure};
use crate::Context;
use tacit::catalogue::{AUTHENTICATED, BATCH, YAO};
use tacit::crypto::{BitVec, Prg};
use tacit::net::{Agreement, LinkModel};
use tacit::two_pc::authenticated::buckets::Level;
use tacit::two_pc::authenticated::{self, Demand};
use tacit::two_pc::circuit::library::modexp::{ModExp, largest_prime};
use tacit::two_pc::circuit::{Builder, Program, Shape, Uint, count_ands, iterate};
use tacit::two_pc::semi_honest;
use tacit::two_pc::wmk17::{Evaluator, Garbler, Job, Streamed};
use tacit::two_pc::{OutputTo, Owner};
use tacit::{Error, Result, Security, ot};

/// A long program, planned while it runs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is computed
    #[arg(value_enum, default_value = "mul32")]
    program: Name,
    #[command(flatten)]
    protocol: Protocol,
    /// AND gates, at least
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    count: u64,
    #[command(flatten)]
    common: Common,
}

/// The programs there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Name {
    /// A chain of 32-bit multiplications
    Mul32,
    /// A 1,024-bit number to the power of a number, modulo a prime; an exponent bit is a step
    Modexp1024,
}

/// x·y^steps modulo 2^32 of the garbler's x and the evaluator's y.
fn powers(steps: u64) -> impl Program {
    let shape = Shape { inputs: vec![32, 32], outputs: vec![32] };
    iterate("x times y", shape, steps, |b: &mut Builder, state: &[Uint], inputs: &[Uint]| {
        vec![b.mul(&state[0], &inputs[1])]
    })
}

/// The width of the modular exponentiation, as in table 8 of WMK17.
const BITS: u32 = 1024;

/// The garbler's number to the power of the evaluator's, which has a bit a step.
fn exponentiation(steps: u64) -> Result<ModExp> {
    let modulus = largest_prime(BITS).ok_or_else(|| Error::Other("no modulus of that width".into()))?;
    Ok(ModExp::new(modulus, steps as usize))
}

/// AND gates of a program of `steps` steps, all but the first of which cost the same: one step has `first`,
/// two have `second`.
fn ands(first: u64, second: u64, steps: u64) -> u64 {
    first + (second - first) * (steps - 1)
}

/// AND gates of a 1,024-bit modular exponentiation with an exponent of 1,024 bits.
pub(crate) fn whole_exponentiation() -> Result<u64> {
    let [one, two] = [count_ands(exponentiation(1)?), count_ands(exponentiation(2)?)];
    Ok(ands(one, two, u64::from(BITS)))
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    match args.program {
        Name::Mul32 => run_program(args, context, "mul32", powers),
        Name::Modexp1024 => {
            // Nothing is left that could fail.
            let modulus = exponentiation(1)?;
            run_program(args, context, "modexp1024", move |steps| modulus.with_exponent(steps as usize))
        }
    }
}

fn run_program<P: Program + 'static>(
    args: Args,
    context: &Context,
    kind: &str,
    program: impl Fn(u64) -> P + Sync,
) -> Result<()> {
    let security = args.protocol.choose()?;
    let entry = args.protocol.entry(match security {
        Security::SemiHonest => &YAO,
        Security::Malicious => &AUTHENTICATED,
    });
    if entry.name == BATCH.name {
        return Err(Error::Usage(
            "batch holds its circuit, and no gates are streamed; take --protocol yao".into(),
        ));
    }
    let (first, second) = (count_ands(program(1)), count_ands(program(2)));
    let steps = 1 + args.count.saturating_sub(first).div_ceil(second - first);
    let subject = Subject {
        name: "stream",
        protocol: entry.name.into(),
        security: Some(security),
        kind: kind.into(),
        count: ands(first, second, steps),
        more: |_, _| Vec::new(),
    };
    let base = ot::base_ot(None, security)?;
    let cot = super::eval::auto(security)?;
    let garbler = !args.common.is_peer();
    let owners = [Owner::Garbler, Owner::Evaluator];
    let roles = if garbler { ("garbler", "evaluator") } else { ("evaluator", "garbler") };
    let agreement = Agreement::new("bench", roles.0, roles.1);
    let (repeat, to) = (args.common.repeat.into(), OutputTo::Both);
    // The warm-up needs a hundredth only.
    let length = |warm: &mut bool| if std::mem::replace(warm, true) { steps } else { steps.div_ceil(100) };
    let input = |steps: u64| {
        let widths = program(steps).shape().inputs;
        BitVec::random(widths[usize::from(!garbler)] as usize, &mut Prg::from_os())
    };
    args.common.run(context, &subject, agreement, |channels| match (security, garbler) {
        (Security::SemiHonest, true) => {
            let setup = |_, channel: &mut _| {
                let mut prg = Prg::from_os();
                Ok((cot.senders(channel, &*base, &mut prg, 1)?.remove(0), prg, false))
            };
            measure(channels, repeat, setup, |_, (sender, prg, warm), channel| {
                let steps = length(warm);
                let (program, input) = (program(steps), [input(steps)]);
                semi_honest::garble_program(channel, sender, program, &owners, &input, to, prg)?;
                Ok(())
            })
        }
        (Security::SemiHonest, false) => {
            let setup = |_, channel: &mut _| {
                Ok((cot.receivers(channel, &*base, &mut Prg::from_os(), 1)?.remove(0), false))
            };
            measure(channels, repeat, setup, |_, (receiver, warm), channel| {
                let steps = length(warm);
                let (program, input) = (program(steps), [input(steps)]);
                semi_honest::evaluate_program(channel, receiver, program, &owners, &input, to)?;
                Ok(())
            })
        }
        (Security::Malicious, _) if entry.name == AUTHENTICATED.name => {
            let role = if garbler { Owner::Garbler } else { Owner::Evaluator };
            let setup = |_, _: &mut _| Ok((Prg::from_os(), false));
            measure(channels, repeat, setup, |_, (prg, warm), channel| {
                let steps = length(warm);
                let (program, input) = (program(steps), input(steps));
                let widths = &program.shape().inputs;
                let demand = Demand {
                    ands: ands(first, second, steps) as usize,
                    garbler_inputs: widths[0] as usize,
                    evaluator_inputs: widths[1] as usize,
                };
                let config = demand.ferret(&LinkModel::LOOPBACK, Level::ALONE);
                let mut session = authenticated::Session::setup(channel, role, &*base, config, prg)?;
                session.run_program(channel, program, &owners, to, &input, |_| ())?;
                Ok(())
            })
        }
        (Security::Malicious, _) => {
            let setup = |_, _: &mut _| Ok((Prg::from_os(), false));
            measure(channels, repeat, setup, |_, (prg, warm), channel| {
                let steps = length(warm);
                let function = Streamed::new(|| program(steps), owners.to_vec())?;
                let (job, input) = (Job::new(&function, to), input(steps));
                if garbler {
                    Garbler::setup(channel, &*base, prg)?.run(channel, &job, &input, prg)?;
                } else {
                    Evaluator::setup(channel, &*base, prg)?.run(channel, &job, &input, prg)?;
                }
                Ok(())
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_a_program_grows_by_the_same_with_every_step() {
        let [one, two, five] = [1, 2, 5].map(|steps| count_ands(powers(steps)));
        assert_eq!((ands(one, two, 1), ands(one, two, 5)), (one, five));
        assert_eq!(two - one, 993);
    }
}
