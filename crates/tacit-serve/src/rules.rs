//! Which rule of a policy says no, if one does.

use crate::clock::Time;
use crate::ledger::{Charge, Ledger, Spent};
use crate::policy::{Gate, Job, Lookup, Policy, Source};
use crate::terms::{self, Left};
use crate::wire::{Ask, Refusal};
use tacit::job::psi::{self, Duplicates, Learns, Reveal};
use tacit::{Error, Result};

/// A no: what the client is told, and what the log says where that is more.
#[derive(Debug)]
pub(crate) struct No {
    /// The rule, as the policy file calls it.
    pub rule: &'static str,
    /// For the client.
    pub told: String,
    /// For the log.
    pub logged: Option<String>,
}

impl No {
    pub(crate) fn new(rule: &'static str, told: impl Into<String>) -> Self {
        No { rule, told: told.into(), logged: None }
    }

    pub(crate) fn logged(self, words: impl Into<String>) -> Self {
        No { logged: Some(words.into()), ..self }
    }

    pub(crate) fn refusal(&self) -> Refusal {
        Refusal { rule: self.rule.to_owned(), what: self.told.clone() }
    }
}

/// A request that the rules allow so far.
pub(crate) struct Admitted<'p> {
    pub job: &'p Job,
    pub source: &'p Source,
    pub run: psi::Job,
    /// The columns of the peer's that go into the result.
    pub client_gives: Vec<String>,
}

/// A job that may be asked for now, by this peer.
pub(crate) enum Found<'p> {
    /// An intersection with a source.
    Intersection(&'p Job, &'p Source),
    /// Queries to a publication.
    Lookup(&'p Lookup),
}

/// The job that is asked for, if the peer may ask for it, and now.
pub(crate) fn find<'p>(
    policy: &'p Policy,
    label: &str,
    job: &str,
    now: Time,
) -> std::result::Result<Found<'p>, No> {
    // Whoever may not ask for a job is not told whether there is one.
    let none =
        || No::new("allow", "this service offers you no job of that name; ask its operator for the name");
    let gate = policy.gate(job).ok_or_else(|| none().logged("there is no such job"))?;
    if !gate.allows(label) {
        return Err(none().logged("the job is for others"));
    }
    if let Some((date, day)) = &gate.expires
        && now.day() > *day
    {
        return Err(No::new("expires", format!("the last day of this job was {date}")));
    }
    if !gate.hours.is_empty() && !gate.hours.iter().any(|window| window.holds(now)) {
        let hours = gate.hours_text.join(" and ");
        return Err(No::new("hours", format!("this job starts {hours} (UTC) alone; it is {}", now.text())));
    }
    if let Some(lookup) = policy.lookups.get(job) {
        return Ok(Found::Lookup(lookup));
    }
    let found = policy.jobs.get(job).ok_or_else(none)?;
    let source = policy.sources.get(&found.source).ok_or_else(|| none().logged("the job has no source"))?;
    Ok(Found::Intersection(found, source))
}

/// Judges what is asked of an intersection by everything that does not need the table.
pub(crate) fn admit<'p>(
    found: &'p Job,
    source: &'p Source,
    ask: &Ask,
) -> std::result::Result<Admitted<'p>, No> {
    let (reveal, asked) = kind(found, ask.reveal.as_deref())?;
    let run = side(found, source, &reveal, &asked, ask.result.as_deref())?;
    let client_gives = match &run.reveal {
        Reveal::Payload(columns) => columns.clone(),
        other => {
            let column = other.column().filter(|_| run.give.is_empty());
            column.map(str::to_owned).into_iter().collect()
        }
    };
    Ok(Admitted { job: found, source, run, client_gives })
}

/// The kind of result that is asked for, out of those allowed, and our columns that go into it.
fn kind(job: &Job, asked: Option<&str>) -> std::result::Result<(Reveal, Vec<String>), No> {
    let names: Vec<String> = job.reveal.iter().map(Reveal::terms).collect();
    let no = || No::new("reveal", format!("this job reveals {} alone", names.join(", ")));
    let Some(asked) = asked else {
        let first = job.reveal.first().ok_or_else(no)?;
        return Ok((first.clone(), job.give.clone()));
    };
    let asked: Reveal = asked.parse().map_err(|_| no())?;
    if let Reveal::Payload(columns) = &asked {
        let found = job.reveal.iter().find(|kind| matches!(kind, Reveal::Payload(_))).ok_or_else(no)?;
        if columns.is_empty() {
            return Ok((found.clone(), job.give.clone()));
        }
        if !columns.iter().all(|column| job.give.contains(column)) {
            let give = job.give.join(", ");
            return Err(No::new("give", format!("this job gives the columns {give} alone")));
        }
        return Ok((found.clone(), columns.clone()));
    }
    match job.reveal.iter().find(|kind| **kind == asked) {
        Some(found) => Ok((found.clone(), Vec::new())),
        None => Err(no()),
    }
}

/// The run with the result to who is asked for, or to the first that goes with the kind.
fn side(
    job: &Job,
    source: &Source,
    reveal: &Reveal,
    asked: &[String],
    result: Option<&str>,
) -> std::result::Result<psi::Job, No> {
    let names: Vec<&str> = job.result.iter().map(|learns| terms::result_name(*learns)).collect();
    let no =
        || No::new("result", format!("this result of the job may go to {} alone", names.join(" or to ")));
    let run = |learns| {
        // A payload of the peer's alone takes none of ours.
        let asked = if learns == Learns::Me { &[] } else { asked };
        let reveal = match reveal {
            Reveal::Payload(_) if learns == Learns::Peer => Reveal::Payload(Vec::new()),
            other => other.clone(),
        };
        let run = job.run(source, &reveal, learns, asked);
        run.check().ok().map(|()| run)
    };
    match result {
        None => job.result.iter().find_map(|learns| run(*learns)).ok_or_else(no),
        Some(name) => {
            let learns = terms::learns(name).filter(|learns| job.result.contains(learns)).ok_or_else(no)?;
            run(learns).ok_or_else(no)
        }
    }
}

/// What a run can reveal at most: distinct keys, or rows where all rows of a key are given.
pub(crate) fn rows_at_most(
    job: &Job,
    run: &psi::Job,
    own_keys: u64,
    own_rows: u64,
    announced: u64,
) -> Result<u64> {
    let keys = run.reveals_at_most(own_keys, announced)?;
    let all = matches!(run.reveal, Reveal::Payload(_)) && job.duplicates == Duplicates::All;
    Ok(if all && keys > 0 { own_rows } else { keys })
}

/// How many runs of a job are left today; one at least.
fn runs_left(gate: &Gate, spent: u64) -> std::result::Result<u64, No> {
    match gate.runs_a_day.saturating_sub(spent) {
        0 => {
            let what = format!("{} runs of this job a day, and today's are used up", gate.runs_a_day);
            Err(No::new("runs_a_day", what))
        }
        left => Ok(left),
    }
}

/// Judges the charge of a lookup, whose rows are queries, by what has been spent; `published` are the queries
/// that the publication itself leaves the peer. Returns what is left, this run not yet taken off.
pub(crate) fn queries(
    ledger: &Ledger,
    lookup: &Lookup,
    published: u64,
    charge: &Charge,
) -> std::result::Result<Left, No> {
    let Spent { runs_today, rows, .. } = ledger.spent(charge);
    let runs_today = runs_left(&lookup.gate, runs_today)?;
    let rows = lookup.queries_in_total.saturating_sub(rows).min(published);
    if charge.rows > rows || rows == 0 {
        let what = format!(
            "{} queries to this publication, and {rows} are left until its tags are published anew",
            charge.rows.max(1)
        );
        return Err(No::new("queries_in_total", what));
    }
    Ok(Left { runs_today, rows, aggregates: 0 })
}

/// Judges a run's charge by what has been spent; returns what is left, this run not yet taken off.
pub(crate) fn budget(
    ledger: &Ledger,
    job: &Job,
    source: &Source,
    charge: &Charge,
) -> std::result::Result<Left, No> {
    let Spent { runs_today, rows, aggregates } = ledger.spent(charge);
    let left = Left {
        runs_today: runs_left(&job.gate, runs_today)?,
        rows: source.rows_in_total.saturating_sub(rows),
        aggregates: source.aggregate_runs.saturating_sub(aggregates),
    };
    if charge.aggregate && left.aggregates == 0 {
        let what = format!(
            "{} numbers over all common keys of this source in all, and they are used up",
            source.aggregate_runs
        );
        return Err(No::new("aggregate_runs", what));
    }
    if charge.rows > left.rows {
        let what = format!(
            "the run could reveal {} rows, and {} are left of {} in all",
            charge.rows, left.rows, source.rows_in_total
        );
        return Err(No::new("rows_in_total", what));
    }
    Ok(left)
}

/// Judges the number of queries that the client announces.
pub(crate) fn asked(lookup: &Lookup, announced: u64) -> std::result::Result<(), No> {
    if announced == 0 || announced > lookup.max_queries {
        let what = format!("{announced} queries, and a run of this job makes 1 to {}", lookup.max_queries);
        return Err(No::new("max_queries", what));
    }
    Ok(())
}

/// Judges the size that the client announces.
pub(crate) fn size(job: &Job, announced: u64) -> std::result::Result<(), No> {
    if announced < job.min_peer_keys {
        let what = format!(
            "{announced} distinct keys are fewer than the {} that this job asks for",
            job.min_peer_keys
        );
        return Err(No::new("min_peer_keys", what));
    }
    if announced > job.max_peer_keys {
        let what =
            format!("{announced} distinct keys are more than the {} that this job takes", job.max_peer_keys);
        return Err(No::new("max_peer_keys", what));
    }
    Ok(())
}

/// A fault of ours, which the client learns nothing of.
pub(crate) fn fault(error: &Error) -> No {
    No::new("source", "the service cannot read its table at the moment; ask its operator")
        .logged(error.to_string())
}
