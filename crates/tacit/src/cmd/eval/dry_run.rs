//! What an evaluation would cost: a rehearsal of a few rows between two threads of this process, and the link.

use super::Args;
use crate::cli::Context;
use crate::cmd::doctor::measure_link;
use serde_json::json;
use std::time::{Duration, Instant};
use tacit::crypto::BitVec;
use tacit::eval::{Job, Options, protocol_name};
use tacit::net::{Agreement, Channel, LinkModel, Stats, memory};
use tacit::plan::Candidate;
use tacit::two_pc::circuit::{Stats as Gates, named};
use tacit::two_pc::cut_and_choose::Copies;
use tacit::two_pc::semi_honest::{self, OutputTo, Owner, Prepared};
use tacit::{Error, Result, Security, ot, security_name};

/// Runs `tacit eval --dry-run`.
pub fn run(
    args: &Args,
    function: &named::Function,
    prepared: &Prepared,
    output_to: OutputTo,
    options: Options,
    context: &Context,
) -> Result<()> {
    let threads = args.peer.threads() as u64;
    if threads > args.rows {
        return Err(Error::Usage(format!(
            "--threads {threads} for --rows {}: a row is not divided",
            args.rows
        )));
    }
    let (link, measured) = match args.peer.is_given() {
        false => (args.peer.link(), false),
        true => (measure(args, context)?, true),
    };
    let security = args.security.into();
    let gates = prepared.circuit().stats();
    let mut ways = Vec::new();
    for options in variants(security, options) {
        let rehearsal = Rehearsal::run(function, prepared, output_to, args.rows, security, options)?;
        let estimate = rehearsal.scaled(args.rows, threads);
        ways.push((candidate(security, options, &estimate, &link), estimate));
    }
    ways.sort_by_key(|(candidate, _)| candidate.time);
    let [(best, estimate), ..] = &ways[..] else {
        return Err(Error::Other("no protocol evaluates with this security".into()));
    };
    let learns = learns(output_to);
    let listed = ways.iter().map(|(candidate, _)| {
        json!({
            "protocol": candidate.protocol,
            "variant": candidate.variant,
            "security": security_name(candidate.security),
            "predicted_ms": candidate.time.as_secs_f64() * 1e3,
            "bytes": candidate.bytes,
            "rounds": candidate.rounds,
            "assumptions": candidate.assumptions,
        })
    });
    let object = json!({
        "name": "eval",
        "function": function.name,
        "protocol": best.protocol,
        "rows": args.rows,
        "threads": threads,
        "gates": gates.gates,
        "and": gates.and,
        "xor": gates.xor,
        "inv": gates.inv,
        "and_depth": gates.and_depth,
        "width": gates.width,
        "garbler_bytes": estimate.garbler_bytes,
        "evaluator_bytes": estimate.evaluator_bytes,
        "rounds": estimate.rounds,
        "link": link.to_string(),
        "link_measured": measured,
        "estimated_ms": best.time.as_secs_f64() * 1e3,
        "candidates": listed.collect::<Vec<_>>(),
        "other_side_learns": learns,
    });
    let Gates { gates, and, and_depth, width, .. } = gates;
    let text = format!(
        "{}: {gates} gates, {and} of them AND, AND depth {and_depth}, at most {width} AND gates at one depth\n\
         {} rows by {}: the garbler sends {} bytes, the evaluator {}, in {} rounds\n\
         about {:.3} s over {} link {link}, connecting apart",
        function.name,
        args.rows,
        best.protocol,
        estimate.garbler_bytes,
        estimate.evaluator_bytes,
        estimate.rounds,
        best.time.as_secs_f64(),
        if measured { "the measured" } else { "the" },
    );
    context.result(&object, &text)?;
    if context.json {
        return Ok(());
    }
    let candidates: Vec<Candidate> = ways.into_iter().map(|(candidate, _)| candidate).collect();
    crate::cli::plan::show(context, "eval", args.rows, &link.into(), &candidates, None, learns)
}

/// What could evaluate with this security: against a malicious peer every number of copies, unless one is asked for.
fn variants(security: Security, options: Options) -> Vec<Options> {
    match (security, options.copies) {
        (Security::Malicious, None) => {
            Copies::ALL.map(|copies| Options { copies: Some(copies), ..options }).to_vec()
        }
        _ => vec![options],
    }
}

fn candidate(security: Security, options: Options, estimate: &Estimate, link: &LinkModel) -> Candidate {
    let protocol = protocol_name(security);
    Candidate {
        protocol,
        variant: options.copies.map_or_else(String::new, |copies| format!("{} copies", copies.name())),
        security,
        time: estimate.over(link),
        bytes: estimate.garbler_bytes + estimate.evaluator_bytes,
        rounds: estimate.rounds,
        assumptions: tacit::plan::names(protocol),
    }
}

fn learns(output_to: OutputTo) -> &'static str {
    match output_to {
        OutputTo::Both => "the outputs, and of our inputs what follows from them",
        OutputTo::Garbler => "as garbler the outputs and what follows from them, as evaluator nothing",
        OutputTo::Evaluator => "as evaluator the outputs and what follows from them, as garbler nothing",
    }
}

/// The link to a peer that does a dry run as well.
fn measure(args: &Args, context: &Context) -> Result<LinkModel> {
    let session = args.peer.session(args.security, context)?;
    let mut opened = session.open(Agreement::new("eval --dry-run", "examiner", "examiner"))?;
    let (round_trip, to_peer, from_peer) = measure_link(opened.channel())?;
    Ok(LinkModel::new(to_peer.min(from_peer), round_trip / 2)?)
}

/// One side's part of a rehearsal.
struct Part {
    setup: Stats,
    total: Stats,
    setup_time: Duration,
    total_time: Duration,
}

impl Part {
    fn of(
        channel: &mut Channel,
        job: impl FnOnce(&mut Channel, &mut dyn FnMut(&mut Channel)) -> Result<()>,
    ) -> Result<Part> {
        let start = Instant::now();
        let (mut setup, mut setup_time) = (Stats::default(), Duration::ZERO);
        job(channel, &mut |channel| {
            setup = channel.stats();
            setup_time = start.elapsed();
        })?;
        channel.flush()?;
        Ok(Part { setup, total: channel.stats(), setup_time, total_time: start.elapsed() })
    }
}

/// A few rows on zeros.
struct Rehearsal {
    rows: u64,
    planning: Duration,
    garbler: Part,
    evaluator: Part,
}

/// What all the rows cost.
struct Estimate {
    garbler_bytes: u64,
    evaluator_bytes: u64,
    rounds: u64,
    /// Setup and planning.
    before: Duration,
    computing: Duration,
    /// Bytes of the busier direction.
    stream: u64,
}

impl Rehearsal {
    fn run(
        function: &named::Function,
        prepared: &Prepared,
        output_to: OutputTo,
        rows: u64,
        security: Security,
        options: Options,
    ) -> Result<Self> {
        // Cut-and-choose takes its rows one after the other.
        let most = if security == Security::Malicious { 2 } else { semi_honest::ROWS_AT_ONCE as u64 };
        let rows = rows.min(most);
        let start = Instant::now();
        prepared.plan(rows as usize);
        let planning = start.elapsed();
        let base = ot::base_ot(None, security)?;
        let inputs = |owner| -> Vec<Vec<BitVec>> {
            let row = || {
                semi_honest::fields(function, owner)
                    .iter()
                    .map(|f| BitVec::zeros(f.bits() as usize))
                    .collect()
            };
            (0..rows).map(|_| row()).collect()
        };
        let side = |role, channel: &mut Channel| {
            let job = Job { function: prepared, role, output_to, security, options };
            Part::of(channel, |channel, mark| {
                job.run_marked(channel, &*base, &inputs(role), mark)?;
                Ok(())
            })
        };
        let (garbler, evaluator) =
            memory::run(|channel| side(Owner::Garbler, channel), |channel| side(Owner::Evaluator, channel));
        Ok(Rehearsal { rows, planning, garbler: garbler?, evaluator: evaluator? })
    }

    fn scaled(&self, rows: u64, threads: u64) -> Estimate {
        let bytes = |part: &Part| {
            let run = (part.total.bytes_sent - part.setup.bytes_sent) as u128;
            part.setup.bytes_sent * threads + (run * u128::from(rows) / u128::from(self.rows)) as u64
        };
        let longer = |time: fn(&Part) -> Duration| time(&self.garbler).max(time(&self.evaluator));
        let run = longer(|part| part.total_time - part.setup_time);
        let (garbler_bytes, evaluator_bytes) = (bytes(&self.garbler), bytes(&self.evaluator));
        // Both parties computed here side by side; threads beyond the cores there are do not help.
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let speed = threads.min(cores).max(1) as f64;
        Estimate {
            garbler_bytes,
            evaluator_bytes,
            rounds: self.garbler.total.rounds.max(self.evaluator.total.rounds),
            before: self.planning + longer(|part| part.setup_time),
            computing: run.mul_f64(rows as f64 / self.rows as f64 / speed),
            stream: garbler_bytes.max(evaluator_bytes),
        }
    }
}

impl Estimate {
    /// A round trip a round; computing and the link work at the same time.
    fn over(&self, link: &LinkModel) -> Duration {
        let passing =
            if link.is_unshaped() { 0.0 } else { self.stream as f64 * 8.0 / (link.megabits() * 1e6) };
        let waiting = 2.0 * link.delay().as_secs_f64() * self.rounds as f64;
        let seconds = self.before.as_secs_f64() + waiting + passing.max(self.computing.as_secs_f64());
        Duration::from_secs_f64(seconds)
    }
}
