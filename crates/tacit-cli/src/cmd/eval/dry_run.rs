//! What an evaluation would cost, by the planner.

use super::Args;
use crate::cli::Context;
use crate::cli::peer::learned;
use serde_json::json;
use tacit::catalogue::fields_in_words;
use tacit::job::eval::Job;
use tacit::link::measure_link;
use tacit::net::{Agreement, LinkModel};
use tacit::plan::{Candidate, EvalCandidate, Machine};
use tacit::two_pc::circuit::{Stats as Gates, named};
use tacit::{Error, Result, security_name};

/// Runs `tacit eval --dry-run`: of `job` the role does not count.
pub fn run(args: &Args, function: &named::Function, job: &Job<'_>, context: &Context) -> Result<()> {
    let threads = args.peer.threads() as u64;
    if threads > args.rows {
        return Err(Error::Usage(format!(
            "--threads {threads} for --rows {}: a row is not divided",
            args.rows
        )));
    }
    let (link, is_measured) = match args.peer.is_given() {
        false => (args.peer.link(), false),
        true => (measured(args, context)?, true),
    };
    let gates = job.function.circuit().stats();
    let ways = job.estimate(args.rows, args.peer.threads(), &link.into(), &Machine::measure());
    let Some(EvalCandidate { candidate: best, garbler_bytes, evaluator_bytes, .. }) = ways.first() else {
        return Err(Error::Other("no protocol evaluates with this security".into()));
    };
    let learns = learned(args.security, &job.learns_by_role());
    let hex = |digest: [u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (circuit, source) = (hex(job.function.digest()), job.function.source().map(hex));
    let shape = job.function.circuit().shape();
    let [garbler, evaluator, result] =
        [&function.garbler, &function.evaluator, &function.outputs].map(|fields| fields_in_words(fields));
    let mut object = json!({
        "name": "eval",
        "function": function.name,
        "about": function.about,
        "garbler": garbler,
        "evaluator": evaluator,
        "result": result,
        "protocol": best.protocol,
        "rows": args.rows,
        "threads": threads,
        "circuit_digest": circuit,
        "inputs": shape.inputs,
        "outputs": shape.outputs,
        "gates": gates.gates,
        "and": gates.and,
        "xor": gates.xor,
        "inv": gates.inv,
        "and_depth": gates.and_depth,
        "width": gates.width,
        "garbler_bytes": garbler_bytes,
        "evaluator_bytes": evaluator_bytes,
        "rounds": best.rounds,
        "link": link.to_string(),
        "link_measured": is_measured,
        "estimated_ms": best.time.as_secs_f64() * 1e3,
        "candidates": listed(&ways),
        "other_side_learns": &learns,
    });
    let mut digests = String::new();
    if let Some(source) = source {
        digests = format!("program {}, circuit {}\n", &source[..32], &circuit[..32]);
        object["source_digest"] = json!(source);
    }
    let Gates { gates, and, and_depth, width, .. } = gates;
    let text = format!(
        "{digests}{}: {}\n\
         garbler: {garbler}; evaluator: {evaluator}; out: {result}\n\
         {gates} gates, {and} of them AND, AND depth {and_depth}, at most {width} AND gates at one depth\n\
         {} rows by {}: the garbler sends {garbler_bytes} bytes, the evaluator {evaluator_bytes}, in {} rounds\n\
         about {:.3} s over {} link {link}, connecting apart",
        function.name,
        function.about,
        args.rows,
        best.protocol,
        best.rounds,
        best.time.as_secs_f64(),
        if is_measured { "the measured" } else { "the" },
    );
    context.result(&object, &text)?;
    if context.json {
        return Ok(());
    }
    let candidates: Vec<Candidate> = ways.into_iter().map(|way| way.candidate).collect();
    crate::cli::plan::show(context, "eval", args.rows, &link.into(), &candidates, None, &learns)
}

/// The ways to evaluate, for a result in JSON.
pub fn listed(ways: &[EvalCandidate]) -> Vec<serde_json::Value> {
    let way = |EvalCandidate { candidate, .. }: &EvalCandidate| {
        json!({
            "protocol": candidate.protocol,
            "variant": candidate.variant,
            "security": security_name(candidate.security),
            "predicted_ms": candidate.time.as_secs_f64() * 1e3,
            "bytes": candidate.bytes,
            "rounds": candidate.rounds,
            "assumptions": candidate.assumptions,
        })
    };
    ways.iter().map(way).collect()
}

/// The link to a peer that does a dry run as well.
pub fn measured(args: &Args, context: &Context) -> Result<LinkModel> {
    let session = args.peer.session(args.security, context)?;
    let mut opened = session.open(Agreement::new("eval --dry-run", "examiner", "examiner"))?;
    let (round_trip, to_peer, from_peer) = measure_link(opened.channel())?;
    Ok(LinkModel::new(to_peer.min(from_peer), round_trip / 2)?)
}
