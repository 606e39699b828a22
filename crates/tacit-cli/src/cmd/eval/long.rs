//! Functions too large to hold: `tacit eval modexp1024`.

use super::dry_run::{Link, Preview};
use super::{Args, Form, Role, Subject, report, single};
use crate::cli::Context;
use crate::cli::peer::learned;
use serde_json::json;
use std::time::Instant;
use tacit::catalogue::{self, fields_in_words};
use tacit::crypto::text::counted;
use tacit::job::eval::layout::Inputs;
use tacit::job::long::Job;
use tacit::plan::Machine;
use tacit::two_pc::Owner;
use tacit::two_pc::circuit::LongFunction;
use tacit::{Error, Result};
use tacit_console::options::output_to;

/// Runs `tacit eval NAME` of a function whose gates are made as they are used.
pub(super) fn run(args: &Args, function: &LongFunction, context: &Context) -> Result<()> {
    refuse(args, function)?;
    let role = match args.role {
        Some(Role::Garbler) => Owner::Garbler,
        Some(Role::Evaluator) => Owner::Evaluator,
        None if args.dry_run => Owner::Garbler,
        None => return Err(Error::Usage("--role is missing".into())),
    };
    let (output_to, security) = (output_to(args.output_to), args.security.into());
    let job = Job { function, role, output_to, security, protocol: catalogue::find(&args.protocol) };
    job.check()?;
    if args.dry_run {
        return dry_run(args, &job, context);
    }
    if let Some(entry) = job.protocol {
        args.peer.allow(entry.name)?;
    }
    let what = format!("evaluating {}", function.name);
    crate::cmd::check_memory(&what, job.memory(), "choose a smaller size")?;
    let fields = args.format.fields(function.fields(role));
    let row = single(Inputs::Numbers(&fields), &args.given.input)?;
    let form = Form::of(&function.outputs, args.format, None);
    let page = args.page()?;
    let session = args.peer.session(args.security, context)?;
    let start = Instant::now();
    let progress = context.progress("waiting", 0, "AND gates");
    let (evaluated, stats) = session.evaluate_long(&job, &row, &progress)?;
    progress.finish();
    let subject = Subject {
        function: &function.name,
        digest: None,
        form: &form,
        role,
        ands: function.ands,
        mode: "streamed",
        rows: 1,
        learns: job.learns(),
    };
    report((args, page), context, &subject, &evaluated, start.elapsed(), &stats)
}

/// Refuses what a function that is never held cannot do.
fn refuse(args: &Args, function: &LongFunction) -> Result<()> {
    let parameter = |name, what: &str| {
        let what = format!("{} is generated during the run, {what}; leave it out", function.name);
        Err(Error::Parameter { name, what })
    };
    if args.given.batch {
        return parameter("batch", "one evaluation a run");
    }
    if args.offline.is_some() || args.online.is_some() || args.pool.is_some() || args.pool_key.is_some() {
        return parameter("offline", "and nothing of it in advance");
    }
    if args.copies != "auto" {
        return parameter("copies", "with the number of copies that suits the link");
    }
    if args.ot != "auto" {
        return parameter("ot", "over the OT extension of its protocol");
    }
    if args.rows != 1 {
        return parameter("rows", "one evaluation a run");
    }
    if args.peer.threads() != 1 {
        return parameter("threads", "by one thread");
    }
    Ok(())
}

fn dry_run(args: &Args, job: &Job<'_>, context: &Context) -> Result<()> {
    let link = Link::of(args, context)?;
    let function = job.function;
    let machine = Machine::measure();
    let ways = link.of_base(job.estimate(&link.model.into(), &machine), args, &machine)?;
    let learns = learned(args.security, &job.learns_by_role());
    let preview = Preview {
        name: &function.name,
        about: function.about,
        fields: [&function.garbler, &function.evaluator, &function.outputs].map(Vec::as_slice),
        rows: 1,
        more: json!({ "streamed": true, "and": function.ands, "memory_bytes": job.memory() }),
        size: format!(
            "{}, made while it runs: each side needs at most {} MiB\nby",
            counted(function.ands, "AND gate"),
            job.memory() >> 20
        ),
        named: args.named(),
    };
    preview.show("", &link, ways, &learns, context)
}

/// Shows the functions of this kind, with what they cost on this machine and without a link's delay.
pub(super) fn list(context: &Context) -> Result<()> {
    let machine = Machine::measure();
    for name in LongFunction::names() {
        let Some(function) = LongFunction::find(&name) else { continue };
        let (output_to, security) = (tacit::two_pc::OutputTo::Both, tacit::Security::Malicious);
        let job = Job { function: &function, role: Owner::Garbler, output_to, security, protocol: None };
        let ways = job.estimate(&tacit::net::LinkModel::LOOPBACK.into(), &machine);
        let Some(best) = ways.first() else { continue };
        let [garbler, evaluator, outputs] =
            [&function.garbler, &function.evaluator, &function.outputs].map(|fields| fields_in_words(fields));
        let (seconds, bytes) = (best.candidate.time.as_secs_f64(), best.candidate.bytes);
        let object = json!({
            "name": name,
            "size": null,
            "limit": null,
            "about": function.about,
            "garbler": garbler,
            "evaluator": evaluator,
            "outputs": outputs,
            "and": function.ands,
            "streamed": true,
            "protocol": best.candidate.protocol,
            "estimated_ms": seconds * 1e3,
            "bytes": bytes,
        });
        let text = format!(
            "{name:14} {}, made while it runs\n{:14} garbler: {garbler}; evaluator: {evaluator}; out: {outputs}; \
             {}, about {seconds:.0} s and {:.1} GB",
            function.about,
            "",
            counted(function.ands, "AND gate"),
            bytes as f64 / 1e9
        );
        context.result(&object, &text)?;
    }
    Ok(())
}
