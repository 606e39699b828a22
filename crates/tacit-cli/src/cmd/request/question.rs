//! `tacit request JOB --sql TEXT`: a question in SQL about the service's table and ours.

use super::{Args, connect, keep, open_records, record_text, shown, taken};
use crate::cli::Context;
use crate::cli::keys::{self, all};
use crate::cli::output::Output;
use crate::cmd::check_memory;
use crate::cmd::psi::{Gets, Several};
use crate::cmd::query::{self, Table, left_out, noise};
use serde_json::json;
use std::path::Path;
use tacit::crypto::text::counted;
use tacit::data::records::KeySpec;
use tacit::data::table::Source;
use tacit::data::values;
use tacit::job::Ran;
use tacit::job::psi::Own;
use tacit::job::query::{Answer, Job, Purpose, Question, Rows, USUAL_LEAST};
use tacit::net::Identity;
use tacit::{Error, Result};
use tacit_serve::json::hex;
use tacit_serve::request::{self, AnswerFloor, Offered};

/// The question that is asked, if one is.
pub(super) fn of(args: &Args, context: &Context) -> Result<Option<Question>> {
    let sql = query::text(args.sql.as_deref(), args.sql_file.as_deref())?;
    if sql.is_none() && args.question.is_none() {
        return match args.allow.is_empty() && args.min_group.is_none() {
            true => Ok(None),
            false => {
                let what = "is for a question in SQL; give its text, or leave this out".to_owned();
                let name = if args.min_group.is_some() { "min-group" } else { "allow" };
                Err(Error::Parameter { name, what })
            }
        };
    }
    alone(args)?;
    let sql = match (sql, &args.question) {
        (Some(sql), _) => sql,
        (None, name) => of_list(args, name.as_deref().unwrap_or_default(), context)?,
    };
    let question =
        tacit::query::parse(&sql).map_err(|fault| Error::Usage(format!("the question: {fault}")))?;
    Ok(Some(question))
}

/// The text of the service's own question, with our values.
fn of_list(args: &Args, name: &str, context: &Context) -> Result<String> {
    let jobs = request::list(connect(args, context)?)?;
    let job = args.job.as_deref().unwrap_or_default();
    let listed = jobs.iter().find(|listed| listed.job == job).ok_or_else(|| {
        let job = tacit::net::shown(job);
        Error::Usage(format!("the service offers you no job {job}; --list shows those that it does"))
    })?;
    listed.question(name)?.filled(&args.set)
}

/// An error where something is asked for that does not go with a question.
fn alone(args: &Args) -> Result<()> {
    let refuse = |name, what: &str| Err(Error::Parameter { name, what: what.to_owned() });
    if !args.key.is_empty() {
        return refuse("key", "the question names the key: ON a.column = b.column; leave it out");
    }
    args.or_key.refuse("a question joins by one key; leave it out")?;
    args.report.refuse("answers of a service")?;
    let is_given = [
        ("reveal", args.reveal.is_some(), "the question says what is revealed; leave it out"),
        (
            "give",
            !args.give.is_empty(),
            "a question gives no columns; say by --allow what yours may be used for, and leave it out",
        ),
        ("bounds", args.bounds.is_some(), "the question has its bounds in CLIP; leave it out"),
        ("output-rest", args.results.has_rest(), "the answer has no rows of yours; leave it out"),
        ("output-all", args.results.has_all(), "the answer has no rows of yours; leave it out"),
        (
            "duplicates",
            args.duplicates == Several::All,
            "a question takes one row of each key; set refuse or first",
        ),
    ];
    if let Some((name, _, what)) = is_given.into_iter().find(|(_, is_given, _)| *is_given) {
        return refuse(name, what);
    }
    if args.results.output.is_some() && args.result == Some(Gets::Peer) {
        return refuse("output", "the service gets the result; leave it out");
    }
    Ok(())
}

/// Our table, with its keys and what its rows put in.
fn read(args: &Args, job: &Job, context: &Context) -> Result<(Own, Rows)> {
    let source = Source::open_all_pinned(&args.input, job.key.clone(), args.table.options())?;
    keys::note_errors(&source, &args.input, context);
    if let Some(output) = &args.results.output {
        source.admits(output)?;
    }
    let progress = context.progress("reading", source.bytes(), "B");
    let path = keys::files(&args.input);
    let first = args.duplicates == Several::First;
    let own = job.read_keys(source, Path::new(&path), |done| progress.set(done))?;
    progress.finish();
    let rows = job.read_rows(&own, first)?;
    Ok((own, rows))
}

/// Asks what the offer is of.
pub(super) fn run(args: &Args, offered: Offered, identity: &Identity, context: &Context) -> Result<()> {
    let target = args.results.output.as_deref();
    if let Some(target) = target.filter(|target| *target != Path::new("-")) {
        values::admits_alone(target)?;
    }
    let allowed = all(&args.allow).iter().map(|text| query::allowed(text)).collect::<Result<Vec<_>>>()?;
    let admitted = offered.admit_answer(&floor(args, &allowed));
    let job = offered.answer_job()?;
    let nulls = all(&args.null);
    let keyed = |job: Job| Job { key: KeySpec { nulls: nulls.clone(), ..job.key.clone() }, ..job };
    if args.dry_run {
        let (own, _) = read(args, &keyed(job), context)?;
        shown(&offered, own.count(), admitted.err(), context)?;
        return offered.decline();
    }
    let job = keyed(admitted?);
    let output = target.map(Output::create).transpose()?;
    let (own, rows) = read(args, &job, context)?;
    offered.admit_keys(own.count())?;
    if own.keys().rows() == 0 {
        let what = "has no rows: the run would count against your budgets and find nothing; was its export truncated?";
        return Err(Error::Input(format!("{}: {what}", keys::files(&args.input))));
    }
    let room = job.room(own.count())?;
    let what = format!("a question over {}", counted(own.count(), "key"));
    let memory = room.memory(offered.offer.service_keys);
    check_memory(&what, memory, "split the file, or ask for fewer groups")?;
    if !taken(args, &offered, own.count(), context)? {
        return offered.decline();
    }

    let (folder, records) = open_records(args, identity, context)?;
    let offer = offered.offer.clone();
    let progress = context.progress("running", 0, "keys");
    let digest = own.digest()?;
    let mut done = offered.ask(&job, &digest, (own.keys(), &rows), (identity, &records), &progress)?;
    progress.finish();
    let learned = done.service_learned().unwrap_or_default();
    // The run is over and charged: a record that cannot be written takes no result away.
    let signed = done.record();
    let table = done.ran.result.shown.as_ref().map(|shown| Table::of_shown(&job.question, shown));
    if let (Some(table), Some(output)) = (&table, output) {
        table.write(output)?;
    }
    let record = record_text(&signed, &offer.run, &folder);
    let more = json!({
        "job": offer.job, "run": offer.run, "terms_hash": hex(&offer.hash()?), "records": folder,
        "service_name": offer.service_name, "client_name": offer.client_name, "purpose": offer.purpose,
        "agreement": offer.agreement, "signed_by_both": matches!(signed, Ok(true)), "other_side_learned": learned,
        "base_ot": offer.base_ot, "template": offer.question.as_ref().and_then(|terms| terms.template.as_ref()),
    });
    report(args, &job, (&own, &rows), &done.ran, table, (more, &record), context)?;
    keep(signed, &folder)
}

fn floor<'a>(args: &Args, allowed: &'a [(String, Purpose)]) -> AnswerFloor<'a> {
    AnswerFloor {
        security: args.security.into(),
        min_group: args.min_group.unwrap_or(USUAL_LEAST),
        allowed: (!allowed.is_empty()).then_some(allowed),
        result_to_owner: args.result_to_owner,
        post_quantum: args.post_quantum,
        most_service_keys: args.max_peer_rows,
        terms: args.terms,
        unattended: args.yes && args.result.is_none(),
    }
}

/// Tells the answer; `more` is what is the service's, and `record` where the record is.
fn report(
    args: &Args,
    job: &Job,
    (own, rows): (&Own, &Rows),
    ran: &Ran<Answer>,
    table: Option<Table>,
    (more, record): (serde_json::Value, &str),
    context: &Context,
) -> Result<()> {
    let Ran { result, wall, stats } = ran;
    let mut object = json!({
        "name": "request",
        "question": job.question.text,
        "security": tacit::security_name(tacit::Security::SemiHonest),
        "result": job.learns.name(),
        "reveal": tacit_serve::terms::QUESTION,
        "result_to_owner": job.result_to_owner,
        "min_group": job.question.least,
        "own_rows": own.keys().rows(),
        "own_keys": own.count(),
        "own_keys_passing": rows.passing,
        "own_rows_left_out": rows.left_out,
        "own_rows_unfit": rows.unfit,
        "epsilon": job.question.epsilon_text(),
        "peer_keys": result.peer_keys,
        "groups": job.question.group_count(),
        "wall_ms": wall.as_secs_f64() * 1e3,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "rounds": stats.rounds,
        "warning": job.warning(),
        "output": args.results.output,
    });
    if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
        object.extend(more.clone());
    }
    let learned = object["other_side_learned"].as_str().unwrap_or_default().to_owned();
    let groups = job.question.group_count();
    let mut text = match &table {
        Some(table) => table.tell(groups, args.results.output.as_deref(), &mut object),
        None => "the service has the result\n".to_owned(),
    };
    text += &noise(&job.question).filter(|_| table.is_some()).map_or(String::new(), |line| line + "\n");
    text += &left_out(rows);
    text += record;
    text += &format!(
        "your file: {}, {} of them with a row that passes your part of WHERE\nthe service: {}\n{:.3} s, {} sent, {} \
         received, {}\n{learned}",
        counted(own.count(), "distinct key"),
        rows.passing,
        counted(result.peer_keys, "distinct key"),
        wall.as_secs_f64(),
        counted(stats.bytes_sent, "byte"),
        stats.bytes_received,
        counted(stats.rounds, "round"),
    );
    context.result(&object, &text)
}
