//! `tacit bench eval`: a function by two parties. Of `wmk17` a run is everything from the base OTs on; of `yao` setup is the
//! base OTs, and a run does everything else.

use super::{
    Common, Subject,
    measure::{Side, measure},
};
use crate::cli::Context;
use crate::cli::peer::Security as SecurityArg;
use crate::cmd::eval::{OutputArg, load, output_to};
use tacit::crypto::{BitVec, Prg};
use tacit::eval::protocol_name;
use tacit::net::{Agreement, Channel};
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::circuit::value::Field;
use tacit::two_pc::circuit::{Bit, Builder, Uint};
use tacit::two_pc::cut_and_choose::{Evaluator, Garbler, Job};
use tacit::two_pc::semi_honest::{self, OutputTo, Owner, Prepared};
use tacit::{Error, Result, Security, ot};

/// A function by two parties on random inputs.
#[derive(clap::Args)]
pub struct Args {
    /// The name of a function, a Bristol file, or the sizes of a made-up circuit: GARBLER-BITS/EVALUATOR-BITS/OUTPUT-BITS/AND-GATES
    #[arg(value_name = "CIRCUIT|NAME|SIZES")]
    function: String,
    #[command(flatten)]
    protocol: Protocol,
    /// Evaluations in a run, on each thread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    rows: u32,
    /// Who learns the outputs
    #[arg(long, value_enum, default_value = "evaluator")]
    output_to: OutputArg,
    #[command(flatten)]
    common: Common,
}

/// Which protocol evaluates, as `bench eval` and `bench stream` take it.
#[derive(clap::Args)]
pub struct Protocol {
    /// The protocol; auto takes what the security needs
    #[arg(long, value_name = "P", default_value = "auto", value_parser = ["auto", "yao", "wmk17"])]
    protocol: String,
    /// Against which peer to protect; without it, what the protocol gives
    #[arg(long, value_enum)]
    security: Option<SecurityArg>,
}

impl Protocol {
    /// The security of the protocol chosen: malicious means wmk17, semi-honest yao.
    pub fn choose(&self) -> Result<Security> {
        let asked = self.security.map(Security::from);
        match (self.protocol.as_str(), asked) {
            ("yao", Some(Security::Malicious)) => Err(Error::Usage(
                "yao protects against a semi-honest peer only; take --protocol wmk17 or --security semi-honest"
                    .into(),
            )),
            ("yao", _) | ("auto", Some(Security::SemiHonest)) => Ok(Security::SemiHonest),
            _ => Ok(Security::Malicious),
        }
    }
}

/// Most bits and AND gates of a made-up circuit.
const MAX_SIZE: u32 = 1 << 24;

/// A circuit of given sizes, in which every AND gate hangs on inputs of both parties after the first pass over them.
///
/// `None` if `sizes` is not four numbers between slashes.
fn made_up(sizes: &str) -> Option<Result<Function>> {
    let numbers: Vec<u32> = sizes.split('/').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let &[garbler, evaluator, outputs, ands] = numbers.as_slice() else { return None };
    let bits = [garbler, evaluator, outputs];
    if numbers.iter().any(|n| *n > MAX_SIZE) || bits.contains(&0) || garbler + evaluator < 3 {
        return Some(Err(Error::Usage(format!(
            "{sizes}: a made-up circuit has inputs of both, 3 bits in all, an output, and at most {MAX_SIZE} of anything"
        ))));
    }
    let mut b = Builder::new();
    let (x, y) = (b.input(garbler), b.input(evaluator));
    let mut state: Vec<Bit> = x.bits().iter().chain(y.bits()).copied().collect();
    let n = state.len();
    for i in 0..ands as usize {
        let product = b.and(state[(i + 1) % n], state[(i + 2) % n]);
        state[i % n] = b.xor(state[i % n], product);
    }
    // Every gate reaches an output.
    let mut out: Vec<Bit> = (0..outputs as usize).map(|i| state[i % n]).collect();
    for (i, &bit) in state.iter().enumerate().skip(out.len()) {
        let at = i % out.len();
        out[at] = b.xor(out[at], bit);
    }
    let out = Uint::from_bits(out);
    Some(b.finish(&[out]).map_err(|e| Error::Other(e.to_string())).map(|circuit| Function {
        name: sizes.into(),
        about: "a made-up circuit",
        circuit,
        garbler: vec![Field::number("number", garbler)],
        evaluator: vec![Field::number("number", evaluator)],
        outputs: vec![Field::number("result", outputs)],
    }))
}

/// Runs the subcommand.
pub fn run(args: Args, context: &Context) -> Result<()> {
    let security = args.protocol.choose()?;
    let function = made_up(&args.function).unwrap_or_else(|| load(&args.function))?;
    let prepared = Prepared::from_function(&function)?;
    let (rows, to) = (args.rows as usize, output_to(args.output_to));
    let executions = u64::from(args.rows) * u64::from(args.common.threads);
    let subject = Subject {
        name: "eval",
        protocol: protocol_name(security).into(),
        security,
        kind: match to {
            OutputTo::Evaluator => args.function.clone(),
            OutputTo::Garbler => format!("{} to the garbler", args.function),
            OutputTo::Both => format!("{} to both", args.function),
        },
        count: prepared.circuit().stats().and * executions,
        more: |_, _| Vec::new(),
    };
    let role = if args.common.is_peer() { Owner::Evaluator } else { Owner::Garbler };
    let (own, peer) = match role {
        Owner::Garbler => ("garbler", "evaluator"),
        Owner::Evaluator => ("evaluator", "garbler"),
    };
    let agreement = Agreement::new("bench", own, peer).with("rows", rows);
    let bench = Bench { function: &function, prepared: &prepared, role, to, rows };
    let repeat = args.common.repeat.into();
    // Planned ahead, as by a program that evaluates more than once.
    let lanes = if security == Security::Malicious { 2 } else { rows.min(semi_honest::ROWS_AT_ONCE) };
    prepared.plan(lanes);
    args.common.run(context, &subject, agreement, |channels| match security {
        Security::SemiHonest => bench.yao(channels, repeat),
        Security::Malicious => bench.wmk17(channels, repeat),
    })
}

/// One side of the benchmark.
struct Bench<'a> {
    function: &'a Function,
    prepared: &'a Prepared,
    role: Owner,
    to: OutputTo,
    rows: usize,
}

impl Bench<'_> {
    /// Random values of this side's fields, row by row.
    fn inputs(&self) -> Vec<Vec<BitVec>> {
        let (fields, mut prg) = (semi_honest::fields(self.function, self.role), Prg::from_os());
        let mut row = || fields.iter().map(|f| BitVec::random(f.bits() as usize, &mut prg)).collect();
        (0..self.rows).map(|_| row()).collect()
    }

    fn yao(&self, channels: &mut [Channel], repeat: usize) -> Result<Side> {
        let base = ot::base_ot(None, Security::SemiHonest)?;
        let cot = ot::protocol("auto", Security::SemiHonest)?;
        let (inputs, function, to) = (self.inputs(), self.prepared, self.to);
        match self.role {
            Owner::Garbler => measure(
                channels,
                repeat,
                |_, channel| {
                    let mut prg = Prg::from_os();
                    Ok((cot.senders(channel, &*base, &mut prg, 1)?.remove(0), prg))
                },
                |_, (sender, prg), channel| {
                    semi_honest::garble(channel, sender, function, &inputs, to, prg)?;
                    Ok(())
                },
            ),
            Owner::Evaluator => measure(
                channels,
                repeat,
                |_, channel| Ok(cot.receivers(channel, &*base, &mut Prg::from_os(), 1)?.remove(0)),
                |_, receiver, channel| {
                    semi_honest::evaluate(channel, receiver, function, &inputs, to)?;
                    Ok(())
                },
            ),
        }
    }

    fn wmk17(&self, channels: &mut [Channel], repeat: usize) -> Result<Side> {
        let base = ot::base_ot(None, Security::Malicious)?;
        let job = Job::new(self.prepared, self.to);
        let bits = semi_honest::fields(self.function, self.role).iter().map(|f| f.bits() as usize).sum();
        let inputs: Vec<BitVec> = (0..self.rows).map(|_| BitVec::random(bits, &mut Prg::from_os())).collect();
        measure(
            channels,
            repeat,
            |_, _| Ok(Prg::from_os()),
            |_, prg, channel| {
                match self.role {
                    Owner::Garbler => {
                        let mut garbler = Garbler::setup(channel, &*base, prg)?;
                        inputs.iter().try_for_each(|x| garbler.run(channel, &job, x, prg).map(|_| ()))?;
                    }
                    Owner::Evaluator => {
                        let mut evaluator = Evaluator::setup(channel, &*base, prg)?;
                        inputs.iter().try_for_each(|y| evaluator.run(channel, &job, y, prg).map(|_| ()))?;
                    }
                }
                Ok(())
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_circuits_have_the_sizes_asked_for() {
        for (sizes, [n1, n2, n3, ands]) in [
            ("2/1/5/7", [2, 1, 5, 7]),
            ("128/64/300/5000", [128, 64, 300, 5000]),
            ("50/60/1/3000", [50, 60, 1, 3000]),
        ] {
            let function = made_up(sizes).unwrap().unwrap();
            let shape = function.circuit.shape();
            assert_eq!((shape.inputs.as_slice(), shape.outputs.as_slice()), (&[n1, n2][..], &[n3][..]));
            assert_eq!(function.circuit.stats().and, u64::from(ands));
        }
        assert!(made_up("aes128").is_none() && made_up("1/2/3").is_none() && made_up("a/b/c/d").is_none());
        assert!(
            made_up("1/1/1/1").unwrap().is_err()
                && made_up("9/9/0/1").unwrap().is_err()
                && made_up("9/9/9/4000000000").unwrap().is_err()
        );
    }
}
