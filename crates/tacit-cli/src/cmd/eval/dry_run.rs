//! What an evaluation would cost, by the planner.

use super::Args;
use crate::cli::Context;
use crate::cli::peer::learned;
use crate::cli::plan::{Picked, from_base};
use serde_json::{Value, json};
use tacit::catalogue::fields_in_words;
use tacit::crypto::hex;
use tacit::crypto::text::counted;
use tacit::job::eval::Job;
use tacit::link::measure_link;
use tacit::net::{Agreement, LinkModel};
use tacit::plan::{Candidate, EvalCandidate, Machine};
use tacit::two_pc::circuit::Stats as Gates;
use tacit::two_pc::circuit::named;
use tacit::two_pc::circuit::value::Field;
use tacit::{Error, Result, security_name};

/// Runs `tacit eval --dry-run`: of `job` the role does not count.
pub(super) fn run(
    args: &Args,
    rows: u64,
    function: &named::Function,
    job: &Job<'_>,
    context: &Context,
) -> Result<()> {
    let threads = args.peer.threads() as u64;
    if threads > rows {
        return Err(Error::Usage(format!("--threads {threads} for --rows {}: a row is not divided", rows)));
    }
    let link = Link::of(args, context)?;
    let job = &job.fitted(usize::try_from(rows).unwrap_or(usize::MAX));
    let gates = job.function.circuit().stats();
    let machine = Machine::measure();
    let ways = job.estimate(rows, args.peer.threads(), &link.model.into(), &machine);
    let ways = link.of_base(ways, args, &machine)?;
    let learns = learned(args.security, &job.learns_by_role());
    let (circuit, source) = (hex(&job.function.digest()), job.function.source().map(|digest| hex(&digest)));
    let shape = job.function.circuit().shape();
    let Gates { gates, and, xor, inv, and_depth, width, .. } = gates;
    let mut more = json!({
        "threads": threads,
        "circuit_digest": circuit,
        "inputs": shape.inputs,
        "outputs": shape.outputs,
        "gates": gates,
        "and": and,
        "xor": xor,
        "inv": inv,
        "and_depth": and_depth,
        "width": width,
    });
    let mut digests = String::new();
    if let Some(source) = source {
        digests = format!("program {}, circuit {}\n", &source[..32], &circuit[..32]);
        more["source_digest"] = json!(source);
    }
    let size = format!(
        "{gates}, {and} of them AND, AND depth {and_depth}, at most {width} at one depth\n\
         {} by",
        counted(rows, "row"),
        gates = counted(gates, "gate"),
        width = counted(width, "AND gate")
    );
    let fields = [&function.garbler, &function.evaluator, &function.outputs].map(Vec::as_slice);
    let preview = Preview {
        name: &function.name,
        about: function.about,
        fields,
        rows,
        more,
        size,
        named: args.named(),
    };
    preview.show(&digests, &link, ways, &learns, context)
}

/// A link, and whether it was measured.
pub(super) struct Link {
    pub model: LinkModel,
    is_measured: bool,
}

impl Link {
    /// The link that is named, or the one to the peer, which does a dry run as well.
    pub(super) fn of(args: &Args, context: &Context) -> Result<Self> {
        let is_measured = args.peer.is_given();
        let model = if is_measured { measured(args, context)? } else { args.peer.link() };
        Ok(Link { model, is_measured })
    }

    /// What is left of `ways` by the options, from the base OT that they ask for.
    pub(super) fn of_base(
        &self,
        ways: Vec<EvalCandidate>,
        args: &Args,
        machine: &Machine,
    ) -> Result<Vec<EvalCandidate>> {
        let base = args.peer.base(None, args.security)?;
        from_base(ways, &args.peer, &*base, &self.model.into(), machine)
    }
}

/// What is said of an evaluation before it runs.
pub(super) struct Preview<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// The garbler's, the evaluator's and the results.
    pub fields: [&'a [Field]; 3],
    pub rows: u64,
    /// What else is known, for a result in JSON.
    pub more: Value,
    /// How large it is, in words that the protocol's name follows.
    pub size: String,
    /// The protocol that the user insists on.
    pub named: Option<&'a str>,
}

impl Preview<'_> {
    /// Shows it behind `head`, with what each of `ways`, the best first, would cost over `link`.
    pub(super) fn show(
        self,
        head: &str,
        link: &Link,
        ways: Vec<EvalCandidate>,
        learns: &str,
        context: &Context,
    ) -> Result<()> {
        let Some(EvalCandidate { candidate: best, garbler_bytes, evaluator_bytes, .. }) = ways.first() else {
            return Err(Error::Other("no protocol evaluates with this security".into()));
        };
        let Link { model, is_measured } = link;
        let Preview { name, about, fields, rows, more, size, named } = self;
        let [garbler, evaluator, result] = fields.map(fields_in_words);
        let mut object = json!({
            "name": "eval",
            "function": name,
            "about": about,
            "garbler": garbler,
            "evaluator": evaluator,
            "result": result,
            "protocol": best.protocol,
            "rows": rows,
            "garbler_bytes": garbler_bytes,
            "evaluator_bytes": evaluator_bytes,
            "rounds": best.rounds,
            "link": model.to_string(),
            "link_measured": is_measured,
            "estimated_ms": best.time.as_secs_f64() * 1e3,
            "candidates": listed(&ways),
            "other_side_learns": learns,
        });
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        let text = format!(
            "{head}{name}: {about}\n\
             garbler: {garbler}; evaluator: {evaluator}; out: {result}\n\
             {size} {}: the garbler sends {garbler_bytes}, the evaluator {evaluator_bytes}, in {}\n\
             about {:.3} s over {} link ({}), not counting connecting",
            best.protocol,
            counted(best.rounds, "round"),
            best.time.as_secs_f64(),
            if *is_measured { "the measured" } else { "the" },
            tacit::plan::Link::from(*model),
            garbler_bytes = counted(garbler_bytes, "byte"),
        );
        context.result(&object, &text)?;
        if context.json {
            return Ok(());
        }
        let candidates: Vec<Candidate> = ways.into_iter().map(|way| way.candidate).collect();
        crate::cli::plan::show(
            context,
            "eval",
            rows,
            &(*model).into(),
            &candidates,
            Picked::from(named),
            learns,
        )
    }
}

/// The ways to evaluate, for a result in JSON.
fn listed(ways: &[EvalCandidate]) -> Vec<Value> {
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
fn measured(args: &Args, context: &Context) -> Result<LinkModel> {
    let session = args.peer.session(args.security, context)?;
    let mut opened = session.open(Agreement::new("eval --dry-run", "examiner", "examiner"))?;
    let (round_trip, to_peer, from_peer) = measure_link(opened.channel())?;
    Ok(LinkModel::new(to_peer.min(from_peer), round_trip / 2)?)
}
