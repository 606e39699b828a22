//! `tacit bench eval`: a function by two parties. Of `wmk17`, `authenticated` and `batch` a run is everything
//! from the base OTs on, of `wmk17` either at once or in the two halves of `tacit eval --offline` and `--online`; of
//! `yao` setup is the base OTs, and a run does everything else.

use super::measure::{Runs, Side, by_lane, measure, measure_phases};
use super::{Common, Subject, record::check_memory};
use crate::Context;
use clap::builder::PossibleValuesParser;
use tacit::catalogue::{self, BATCH, Entry, WMK17};
use tacit::crypto::{BitVec, Prg};
use tacit::job::eval::{Job, Options, Step, load, memory, protocol_name};
use tacit::net::{Agreement, Channel};
use tacit::ot::{Choice, Pick};
use tacit::plan::{self, EvalCandidate, EvalRequest, Machine};
use tacit::sealed::FileKey;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::circuit::value::Field;
use tacit::two_pc::circuit::{Bit, Builder, Uint};
use tacit::two_pc::semi_honest;
use tacit::two_pc::wmk17::{Copies, State};
use tacit::two_pc::{OutputTo, Owner, Prepared};
use tacit::{Error, Result, Security, ot};
use tacit_console::options::Security as SecurityArg;
use tacit_console::options::{OutputArg, output_to};

/// A function by two parties on random inputs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of a function, a Bristol file, or the sizes of a made-up circuit:
    /// GARBLER-BITS/EVALUATOR-BITS/OUTPUT-BITS/AND-GATES
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
    /// Of wmk17, the copies garbled, and of them evaluated; auto takes those that are fastest over --link
    #[arg(long, value_name = "COPIES", default_value = "auto", value_parser = ["auto", "44", "44/22", "47/16"])]
    copies: String,
    /// Of wmk17, does ahead what needs no inputs and keeps it in a sealed file: `offline_ms`; the rest is
    /// `online_ms`
    #[arg(long)]
    halves: bool,
    #[command(flatten)]
    common: Common,
}

/// Which protocol evaluates, as `bench eval` and `bench stream` take it.
#[derive(clap::Args)]
pub(crate) struct Protocol {
    /// The protocol; auto takes what the security needs
    #[arg(long, value_name = "P", default_value = "auto", value_parser = names())]
    protocol: String,
    /// Against which peer to protect; without it, what the protocol gives
    #[arg(long, value_enum)]
    security: Option<SecurityArg>,
}

impl Protocol {
    /// The protocol named, or `auto`.
    pub(crate) fn entry(&self, auto: &'static Entry) -> &'static Entry {
        catalogue::find(&self.protocol).unwrap_or(auto)
    }

    /// The security of the protocol chosen.
    pub(crate) fn choose(&self) -> Result<Security> {
        let asked = self.security.map(Security::from);
        let Some(entry) = catalogue::find(&self.protocol) else {
            return Ok(asked.unwrap_or(Security::Malicious));
        };
        if asked == Some(Security::Malicious) && entry.security == Security::SemiHonest {
            return Err(Error::Usage(format!(
                "{} protects against a semi-honest peer only; take --protocol {} or --security semi-honest",
                entry.name,
                protocol_name(Security::Malicious)
            )));
        }
        Ok(entry.security)
    }
}

/// What `--protocol` takes.
fn names() -> PossibleValuesParser {
    let names = catalogue::computations().map(|entry| entry.name);
    PossibleValuesParser::new(std::iter::once("auto").chain(names))
}

/// Most bits and AND gates of a made-up circuit.
const MAX_SIZE: u32 = 1 << 24;

/// The sizes of a made-up circuit: input bits of both, output bits, AND gates; `None` if `text` is not four
/// numbers between slashes.
fn sizes(text: &str) -> Option<Result<[u32; 4]>> {
    let numbers: Vec<u32> = text.split('/').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let &[garbler, evaluator, outputs, ands] = numbers.as_slice() else { return None };
    let bits = [garbler, evaluator, outputs];
    if numbers.iter().any(|n| *n > MAX_SIZE) || bits.contains(&0) || garbler + evaluator < 3 {
        return Some(Err(Error::Usage(format!(
            "{text}: a made-up circuit has inputs of both, 3 bits in all, an output, and at most \
             {MAX_SIZE} of anything"
        ))));
    }
    Some(Ok([garbler, evaluator, outputs, ands]))
}

/// A circuit of given sizes, in which every AND gate depends on inputs of both parties after the first pass
/// over them.
fn made_up(name: &str, [garbler, evaluator, outputs, ands]: [u32; 4]) -> Result<Function> {
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
    Ok(Function {
        name: name.into(),
        about: "a made-up circuit",
        circuit: b.finish(&[out]).map_err(|e| Error::Other(e.to_string()))?,
        garbler: vec![Field::number("number", garbler)],
        evaluator: vec![Field::number("number", evaluator)],
        outputs: vec![Field::number("result", outputs)],
    })
}

pub(crate) fn run(args: Args, context: &Context) -> Result<()> {
    let security = args.protocol.choose()?;
    let executions = u64::from(args.rows) * u64::from(args.common.threads);
    let check = |gates, bits| check_memory("this benchmark", memory(security, gates, bits, executions));
    let function = match sizes(&args.function).transpose()? {
        None => load(&args.function)?,
        Some(sizes) => {
            let [garbler, evaluator, outputs, ands] = sizes.map(u64::from);
            let bits = garbler + evaluator + outputs;
            check(2 * ands + bits, bits)?;
            made_up(&args.function, sizes)?
        }
    };
    let prepared = Prepared::from_function(&function)?;
    let (rows, to) = (args.rows as usize, output_to(args.output_to));
    let named = Copies::by_name(&args.copies);
    if args.halves && (rows > 1 || args.common.threads > 1) {
        return Err(Error::Usage(
            "--halves is one evaluation on one thread; leave --rows and --threads out".into(),
        ));
    }
    let request = EvalRequest {
        rows: executions,
        threads: args.common.threads.into(),
        copies: named,
        ..EvalRequest::new(&prepared, to, security)
    };
    // Both parties come to the same, whatever each of them would measure.
    let link = args.common.link().into();
    let wmk17 = named.is_some() || args.halves;
    let entry = catalogue::find(&args.protocol.protocol)
        .or_else(|| (wmk17 && security == Security::Malicious).then_some(&WMK17))
        .or_else(|| {
            let ways = plan::eval(&request, &link, &Machine::REFERENCE);
            let serves = |way: &&EvalCandidate| way.candidate.security == security;
            catalogue::find(ways.iter().find(serves)?.candidate.protocol)
        })
        .ok_or_else(|| Error::Other("no protocol evaluates with this security".into()))?;
    if wmk17 && entry.name != WMK17.name {
        return Err(Error::Usage(
            "--copies and --halves are of wmk17; leave them out or add --protocol wmk17".into(),
        ));
    }
    let copies = (entry.name == WMK17.name).then(|| request.copies(&link));
    let shape = prepared.circuit().shape();
    if entry.name != BATCH.name {
        check(prepared.circuit().stats().gates, (shape.input_bits() + shape.output_bits()) as u64)?;
    }
    let mut common = args.common.clone();
    common.variant = match copies {
        Some(copies) if copies != Copies::STANDARD => format!("{} copies", copies.name()),
        _ => String::new(),
    };
    let mut kind = args.function.clone();
    kind += match to {
        OutputTo::Evaluator => "",
        OutputTo::Garbler => " to the garbler",
        OutputTo::Both => " to both",
    };
    kind += if args.halves { " in halves" } else { "" };
    let role = if args.common.is_peer() { Owner::Evaluator } else { Owner::Garbler };
    let (own, peer) = match role {
        Owner::Garbler => ("garbler", "evaluator"),
        Owner::Evaluator => ("evaluator", "garbler"),
    };
    let agreement = Agreement::new("bench", own, peer).with("rows", rows);
    let options = Options { protocol: Some(entry), copies, ot: None };
    let job = Job { function: &prepared, role, output_to: to, security, options }.fitted(rows);
    if entry.name == BATCH.name {
        let threads: usize = args.common.threads.into();
        check_memory("this benchmark", job.memory(rows * threads, threads))?;
    }
    let ands = job.function.circuit().stats().and;
    let subject = Subject {
        name: "eval",
        protocol: entry.name.into(),
        security: Some(security),
        kind,
        count: ands * executions,
        more: |_, _| Vec::new(),
    };
    let bench = Bench { function: &function, job: &job, rows };
    let repeat = args.common.repeat.into();
    // Planned ahead, as by a program that evaluates more than once.
    let lanes = if security == Security::Malicious { 2 } else { rows.min(semi_honest::ROWS_AT_ONCE) };
    prepared.plan(lanes);
    common.run(context, &subject, agreement, |channels| match security {
        Security::SemiHonest if entry.name != BATCH.name => bench.yao(channels, repeat),
        Security::Malicious if args.halves => bench.halves(channels, repeat),
        _ => bench.whole(channels, repeat),
    })
}

/// One side of the benchmark.
struct Bench<'a> {
    function: &'a Function,
    job: &'a Job<'a>,
    rows: usize,
}

impl Bench<'_> {
    /// Random values of this side's fields, row by row.
    fn inputs(&self) -> Vec<Vec<BitVec>> {
        let (fields, mut prg) = (self.function.fields(self.job.role), Prg::from_os());
        let mut row = || fields.iter().map(|f| BitVec::random(f.bits() as usize, &mut prg)).collect();
        (0..self.rows).map(|_| row()).collect()
    }

    fn yao(&self, channels: &mut [Channel], repeat: usize) -> Result<Side> {
        let base = ot::base_ot(None, Security::SemiHonest)?;
        let cot = auto(Security::SemiHonest)?;
        let (inputs, function, to) = (self.inputs(), self.job.function, self.job.output_to);
        match self.job.role {
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

    /// Everything in every run; the base OTs are what needs no input.
    fn whole(&self, channels: &mut [Channel], repeat: usize) -> Result<Side> {
        let base = ot::base_ot(None, self.job.security)?;
        let (inputs, lanes) = (self.inputs(), channels.len());
        self.each_run(channels, repeat, |channel, ready| {
            self.job.run_marked(channel, lanes, &*base, &inputs, &mut |step| {
                if step == Step::Ready {
                    ready();
                }
            })?;
            Ok(())
        })
    }

    /// As `tacit eval --offline` and `--online`, in one process after the other.
    fn halves(&self, channels: &mut [Channel], repeat: usize) -> Result<Side> {
        let base = ot::base_ot(None, Security::Malicious)?;
        let mut bytes = [0; 32];
        Prg::from_os().fill_bytes(&mut bytes);
        let key = FileKey::from_bytes(&bytes).map_err(tacit::two_pc::Error::from)?;
        let folder = tempfile::tempdir().map_err(|e| Error::Other(format!("no temporary folder: {e}")))?;
        let path = folder.path().join("state");
        let inputs = self.inputs();
        self.each_run(channels, repeat, |channel, ready| {
            let mut file =
                std::fs::File::create(&path).map_err(|e| Error::file(&path, "keeping the first half", e))?;
            self.job.prepare(channel, &*base, None, &key, &mut file)?;
            ready();
            let state = State::open(&path, &key)?;
            self.job.finish(channel, state, &inputs[0])?;
            Ok(())
        })
    }

    fn each_run(
        &self,
        channels: &mut [Channel],
        repeat: usize,
        once: impl Fn(&mut Channel, &mut dyn FnMut()) -> Result<()> + Sync,
    ) -> Result<Side> {
        let runs = Runs { repeat, fresh: false };
        measure_phases(channels, runs, by_lane(|_, _| Ok(())), |_, (), channel, ready| once(channel, ready))
    }
}

/// The OT extension that a computation takes unless another is named.
pub(super) fn auto(security: Security) -> Result<Pick> {
    ot::protocol("auto", security)?.pick(1 << 20, security, &Choice::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_circuits_have_the_sizes_asked_for() {
        for (text, [n1, n2, n3, ands]) in [
            ("2/1/5/7", [2, 1, 5, 7]),
            ("128/64/300/5000", [128, 64, 300, 5000]),
            ("50/60/1/3000", [50, 60, 1, 3000]),
        ] {
            let function = made_up(text, sizes(text).unwrap().unwrap()).unwrap();
            let shape = function.circuit.shape();
            assert_eq!((shape.inputs.as_slice(), shape.outputs.as_slice()), (&[n1, n2][..], &[n3][..]));
            assert_eq!(function.circuit.stats().and, u64::from(ands));
        }
        assert!(["aes128", "1/2/3", "a/b/c/d"].into_iter().all(|text| sizes(text).is_none()));
        assert!(
            ["1/1/1/1", "9/9/0/1", "9/9/9/4000000000"].into_iter().all(|text| sizes(text).unwrap().is_err())
        );
    }
}
