//! Which rule of a policy says no, if one does.

pub(crate) mod question;

use crate::clock::Time;
use crate::ledger::{Charge, Ledger, Spent};
use crate::policy::{Gate, Job, Lookup, Policy, QuestionJob, Source};
use crate::terms::{self, Left, Offer};
use crate::wire::{Ask, Refusal};
use tacit::crypto::text::counted;
use tacit::job::psi::{self, Duplicates, Learns, Owned, Reveal};
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
    /// A question about a source.
    Question(&'p QuestionJob, &'p Source),
}

/// Offers of a job that one peer gets for each run that it may start: who sees many offers sees the size of
/// the table as it changes, and each one makes the service read it.
const OFFERS_A_RUN: u64 = 10;
/// Runs that come to nothing and are not charged, for each run that a peer may start.
const ATTEMPTS_A_RUN: u64 = 3;

/// The job that is asked for, if the peer may ask for it, and at this time of the clock.
pub(crate) fn find<'p>(
    policy: &'p Policy,
    label: &str,
    job: &str,
    clock: Time,
) -> std::result::Result<Found<'p>, No> {
    // Whoever may not ask for a job is not told whether there is one.
    let none =
        || No::new("allow", "this service offers you no job of that name; ask its operator for the name");
    let gate = policy.gate(job).ok_or_else(|| none().logged("there is no such job"))?;
    if !gate.allows(label) {
        return Err(none().logged("the job is for others"));
    }
    if let Some((date, day)) = &gate.expires
        && clock.day() > *day
    {
        return Err(No::new("expires", format!("the last day of this job was {date}")));
    }
    if !gate.hours.is_empty() && !gate.hours.iter().any(|window| window.holds(clock)) {
        let hours = gate.hours_text.join(" and ");
        return Err(No::new("hours", format!("this job starts only {hours} (UTC); it is {}", clock.text())));
    }
    if let Some(lookup) = policy.lookups.get(job) {
        return Ok(Found::Lookup(lookup));
    }
    let no_source = || none().logged("the job has no source");
    if let Some(asking) = policy.questions.get(job) {
        let source = policy.sources.get(&asking.source).ok_or_else(no_source)?;
        return Ok(Found::Question(asking, source));
    }
    let found = policy.jobs.get(job).ok_or_else(none)?;
    let source = policy.sources.get(&found.source).ok_or_else(no_source)?;
    Ok(Found::Intersection(found, source))
}

/// Whether `job` on `source`, as the rules have it now, still is what was admitted and offered for `ask`;
/// budgets, hours and sizes are judged anew anyway.
pub(crate) fn is_as_offered(admitted: &Admitted<'_>, ask: &Ask, job: &Job, source: &Source) -> bool {
    let Admitted { job: old, source: old_source, run, client_gives } = admitted;
    let same = Job {
        gate: old.gate.clone(),
        reveal: old.reveal.clone(),
        result: old.result.clone(),
        min_peer_keys: old.min_peer_keys,
        max_peer_keys: old.max_peer_keys,
        memory: old.memory,
        output: old.output.clone(),
        ..job.clone()
    };
    let Ok(now) = admit(job, source, ask) else { return false };
    same == **old
        && is_told_alike(&old.gate, &job.gate)
        && (&source.inputs, &source.key) == (&old_source.inputs, &old_source.key)
        && (&now.run.reveal, now.run.learns, &now.run.give) == (&run.reveal, run.learns, &run.give)
        && now.client_gives == *client_gives
}

/// The no to a yes that comes after the rules were changed.
pub(crate) fn changed() -> No {
    No::new("policy", "the rules have changed since the offer; ask again")
}

/// Whether what the terms say of two gates is the same.
pub(crate) fn is_told_alike(one: &Gate, other: &Gate) -> bool {
    (&one.purpose, &one.agreement, &one.expires) == (&other.purpose, &other.agreement, &other.expires)
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
    let no = || No::new("reveal", format!("this job reveals only {}", names.join(", ")));
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
            return Err(No::new("give", format!("this job sends only the columns {give}")));
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
    let no = || No::new("result", format!("this result of the job may go only to {}", names.join(" or to ")));
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

/// The most keys that the peer may announce, of at most `most`, so that the run fits into `left` rows.
pub(crate) fn fitting_keys(
    job: &Job,
    run: &psi::Job,
    (own_keys, own_rows): (u64, u64),
    most: u64,
    left: u64,
) -> Result<u64> {
    let fits = |keys| Ok::<_, Error>(rows_at_most(job, run, own_keys, own_rows, keys)? <= left);
    if fits(most)? {
        return Ok(most);
    }
    let (mut fitting, mut too_many) = (0, most);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(middle)? { fitting = middle } else { too_many = middle }
    }
    Ok(fitting)
}

/// How many runs of a job are left today; one at least.
pub(crate) fn runs_left(gate: &Gate, spent: &Spent) -> std::result::Result<u64, No> {
    let most = gate.runs_a_day;
    if spent.returned_today >= most.saturating_mul(ATTEMPTS_A_RUN) && most > 0 {
        let what = format!(
            "{} of this job failed today, {ATTEMPTS_A_RUN} for each of the {most} that you may start per \
             day; ask again tomorrow",
            counted(spent.returned_today, "run")
        );
        return Err(No::new("runs_a_day", what));
    }
    match most.saturating_sub(spent.runs_today) {
        0 => Err(No::new(
            "runs_a_day",
            format!("{} of this job per day, and today's are used up", counted(most, "run")),
        )),
        left => Ok(left),
    }
}

/// Judges whether the peer may have one more offer of a job today.
pub(crate) fn offers(gate: &Gate, spent: &Spent) -> std::result::Result<(), No> {
    let most = gate.runs_a_day.saturating_mul(OFFERS_A_RUN);
    if spent.offers_today < most {
        return Ok(());
    }
    let what = format!("{most} offers of this job per day, and today's are used up; ask again tomorrow");
    Err(No::new("runs_a_day", what))
}

/// What is left of a job's runs a day, and of `most` rows and numbers.
pub(crate) fn left(gate: &Gate, most: [u64; 2], spent: &Spent) -> Left {
    Left {
        runs_today: gate.runs_a_day.saturating_sub(spent.runs_today),
        rows: most[0].saturating_sub(spent.rows),
        aggregates: most[1].saturating_sub(spent.aggregates),
        epsilon: None,
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
    let spent = ledger.spent(charge);
    let (runs_today, rows) = (runs_left(&lookup.gate, &spent)?, spent.rows);
    let rows = lookup.queries_in_total.saturating_sub(rows).min(published);
    if charge.rows > rows || rows == 0 {
        let left = match rows {
            0 => "no query to this publication is left".to_owned(),
            _ => format!("{}, and {rows} left to this publication", counted(charge.rows, "query")),
        };
        let what = format!("{left} until its tags are published again");
        return Err(No::new("queries_in_total", what));
    }
    Ok(Left { runs_today, rows, aggregates: 0, epsilon: None })
}

/// Refuses queries that the key's lifetime does not last for.
pub(crate) fn lasts(lasts: bool, queries: u64) -> std::result::Result<(), No> {
    if lasts {
        return Ok(());
    }
    let what = format!(
        "{queries} to this publication: its tags must be published again before that",
        queries = counted(queries, "query")
    );
    Err(No::new("lifetime", what))
}

/// Judges a run's charge by what has been spent; returns what is left, this run not yet taken off.
pub(crate) fn budget(
    ledger: &Ledger,
    job: &Job,
    source: &Source,
    charge: &Charge,
) -> std::result::Result<Left, No> {
    let spent = ledger.spent(charge);
    runs_left(&job.gate, &spent)?;
    let left = left(&job.gate, [source.rows_in_total, source.aggregate_runs], &spent);
    total(source, charge, left)
}

/// Judges a charge by what is left of a source's totals, which it returns.
fn total(source: &Source, charge: &Charge, left: Left) -> std::result::Result<Left, No> {
    if charge.aggregate && left.aggregates == 0 {
        let what =
            format!("{} of this source in total: used up", counted(source.aggregate_runs, "aggregate"));
        return Err(No::new("aggregate_runs", what));
    }
    if charge.rows > left.rows {
        let what = format!(
            "the run could reveal {}, with {} left of {} in total",
            counted(terms::rounded(charge.rows), "row"),
            left.rows,
            source.rows_in_total
        );
        return Err(No::new("rows_in_total", what));
    }
    Ok(left)
}

/// Judges the number of queries that the client announces.
pub(crate) fn asked(lookup: &Lookup, announced: u64) -> std::result::Result<(), No> {
    if announced == 0 || announced > lookup.max_queries {
        let what = format!(
            "{announced}, and a run of this job makes 1 to {}",
            lookup.max_queries,
            announced = counted(announced, "query")
        );
        return Err(No::new("max_queries", what));
    }
    Ok(())
}

/// Judges the size that the client announces.
pub(crate) fn size(job: &Job, announced: u64) -> std::result::Result<(), No> {
    sized([job.min_peer_keys, job.max_peer_keys], announced)
}

fn sized([least, most]: [u64; 2], announced: u64) -> std::result::Result<(), No> {
    if announced < least {
        let what = format!(
            "{announced}: this job needs at least {least}",
            announced = counted(announced, "distinct key")
        );
        return Err(No::new("min_peer_keys", what));
    }
    if announced > most {
        let what = format!(
            "{announced}: this job accepts at most {most}",
            announced = counted(announced, "distinct key")
        );
        return Err(No::new("max_peer_keys", what));
    }
    Ok(())
}

/// Refuses a run whose columns of ours take more for each key than the offer says.
pub(crate) fn width(gift: &Owned, keys: u64, offer: &Offer) -> std::result::Result<(), No> {
    let bytes = gift.bytes_a_key(keys).map_err(|error| fault(&error))?;
    match (bytes, offer.service_bytes_a_key) {
        (Some(bytes), Some(most)) if bytes > most => {
            let what = format!(
                "the columns to send have {bytes} per key, more than `max_cell`, {most}",
                bytes = counted(bytes, "byte")
            );
            Err(fault(&Error::Input(what)))
        }
        _ => Ok(()),
    }
}

/// A fault of ours, which the client learns nothing of.
pub(crate) fn fault(error: &Error) -> No {
    No::new("source", "the service cannot read its table at the moment; ask its operator")
        .logged(error.to_string())
}

/// Rules of a service that cannot write down what it charges, or which runs begin.
pub(crate) const UNCHARGED: &str = "ledger";
pub(crate) const UNRECORDED: &str = "records";

/// A run that cannot be written down, by either rule: our fault, which the client learns no more of.
pub(crate) fn unwritten(rule: &'static str, error: &Error) -> No {
    No::new(rule, "the service cannot record any run at the moment; ask its operator")
        .logged(error.to_string())
}
