//! What a policy comes to with the tables as they are today: whether each can be read, and how many runs fit
//! into what is left of its budgets.

use crate::clock::Time;
use crate::file::shown;
use crate::filters::Filters;
use crate::ledger::{Charge, Ledger, peer_name, source_name};
use crate::policy::{Askable, Gate, Job, Policy, QuestionJob, Source};
use crate::rules;
use std::path::Path;
use tacit::Error;
use tacit::crypto::text::counted;
use tacit::data::records::KeySet;
use tacit::data::table;
use tacit::job::psi::{self, Learns, Own, Reveal};
use tacit::job::query;
use tacit::net::Identity;
use tacit::query::epsilon_text;

/// What was found.
#[derive(Default, Debug)]
pub struct Checked {
    /// The tables, and how far their budgets go, a line each.
    pub lines: Vec<String>,
    /// What works otherwise than whoever wrote it may think.
    pub warnings: Vec<String>,
    /// What keeps jobs from running at all.
    pub faults: Vec<String>,
}

/// Days after which a budget that is used up is worth no warning.
const A_YEAR: u64 = 366;

/// Opens every table of `policy`, reads its keys, and counts by the ledger in its state folder, if there is
/// one. Nothing is charged and nothing written.
pub fn examine(policy: &Policy, clock: Time) -> Checked {
    let mut checked = Checked::default();
    let ledger = Ledger::look(&policy.state.join("ledger"));
    let mut ledger = ledger.unwrap_or_else(|error| {
        checked.faults.push(format!("the amount spent is unknown, and counted as zero here: {error}"));
        Ledger::empty()
    });
    checked.faults.extend(lacks(policy, &ledger));
    ledger.suppose(&policy.names_of_peers());
    ledger.suppose(&policy.names_of_sources(&ledger.places()));
    checked.warnings.extend(one_account(policy, &ledger));
    // The key may be on another machine.
    if let Ok(identity) = Identity::load(&policy.identity)
        && let Err(error) = policy.check_own(&identity)
    {
        checked.faults.push(error.to_string());
    }
    for (name, source) in &policy.sources {
        let title = format!("{name} ({})", tacit::net::shown(&source.shown()));
        match open(source) {
            Err(error) => checked.faults.push(format!("[sources.{name}]: {error}")),
            Ok(own) => {
                let (count, rows) = (own.count(), own.keys().rows());
                checked.lines.push(format!(
                    "{title} has {count} in {rows} today",
                    count = counted(count, "distinct key"),
                    rows = counted(rows, "row")
                ));
                for (job_name, job) in policy.jobs.iter().filter(|(_, job)| job.source == *name) {
                    if let Err(error) = given(&own, source, job) {
                        checked.faults.push(format!("[jobs.{job_name}]: {error}"));
                    }
                    budgets(
                        &mut checked,
                        (policy, &ledger, clock),
                        (name, source, own.keys()),
                        (job_name, job),
                    );
                }
                let asked = policy.questions.iter().filter(|(_, job)| job.source == *name);
                for (job_name, job) in asked {
                    if let Err(error) = asked_about(&own, source, job) {
                        checked.faults.push(format!("[jobs.{job_name}]: {error}"));
                    }
                    answers(
                        &mut checked,
                        (policy, &ledger, clock),
                        (name, source, own.count()),
                        (job_name, job),
                    );
                }
                unseen(&mut checked, policy, name, source);
            }
        }
    }
    for (name, lookup) in &policy.lookups {
        if let Err(error) = std::fs::File::open(&lookup.answers.private) {
            let file = shown(&lookup.answers.private);
            checked.faults.push(format!(
                "[jobs.{name}]: {file} cannot be opened: {error}; `tacit tags publish` makes it"
            ));
        }
    }
    if ledger.has_filters() {
        let filters = Filters::open(&policy.state.join("filters"), true);
        let all = filters
            .and_then(|filters| ledger.all_filters().try_for_each(|name| filters.kept(name).map(drop)));
        if let Err(error) = all {
            checked.warnings.push(format!("questions are not compared, and so refused and charged: {error}"));
        }
    }
    checked
}

/// Whether the ledger lacks runs of the records: twice in turn, as a service may charge and record one meanwhile.
fn lacks(policy: &Policy, ledger: &Ledger) -> Option<String> {
    let folder = policy.state.join("records");
    let mut found = ledger.compare(&folder).ok()?;
    if found.is_lacking() {
        found = Ledger::look(&policy.state.join("ledger"))
            .and_then(|again| again.compare(&folder))
            .ok()?
            .and(&found);
    }
    found.is_lacking().then(|| found.lacks())
}

fn open(source: &Source) -> tacit::Result<Own> {
    let table = table::Source::open_all(&source.inputs, source.key.clone(), source.options)?;
    let keys = table.read_keys(|_| ())?;
    Ok(Own::new(table, keys, Path::new(&source.shown())))
}

/// Whether the columns that a job gives are there, and every cell can be sent in each kind of result.
fn given(own: &Own, source: &Source, job: &Job) -> tacit::Result<()> {
    if job.give.is_empty() {
        return Ok(());
    }
    for reveal in &job.reveal {
        // Of a side that gives columns; numbers are the same whoever gets them.
        let learns = job.result.iter().copied().find(|learns| *learns != Learns::Me);
        own.check_gift(&job.run(source, reveal, learns.unwrap_or(Learns::Me), &job.give))?;
    }
    Ok(())
}

/// Whether the columns that a question may use are there, and the templates can be answered with the table's cells.
fn asked_about(own: &Own, source: &Source, job: &QuestionJob) -> tacit::Result<()> {
    let table = table::Source::open_all(&source.inputs, source.key.clone(), source.options)?;
    if let Some((column, _)) = job.columns.iter().find(|(column, _)| !table.has_column(column)) {
        let column = tacit::net::shown(column);
        return Err(Error::Input(format!(
            "`columns`: the table has no column `{column}`; name one that it has"
        )));
    }
    for (name, template) in job.templates() {
        let learns = job.result.first().copied().unwrap_or(Learns::Peer);
        for sample in template.samples() {
            let run = query::Job::new(sample, query::Side::Ours, learns, source.key.normalisation)?;
            let run = query::Job { key: source.key.clone(), ..run };
            run.read_rows(own, job.first)
                .map_err(|error| Error::Input(format!("the question {name}: {error}")))?;
        }
    }
    Ok(())
}

/// What the rules for questions about a source do not see.
fn unseen(checked: &mut Checked, policy: &Policy, name: &str, source: &Source) {
    let reveals = |job: &Job| job.result.iter().any(|learns| *learns != Learns::Me);
    for (job_name, job) in policy.jobs.iter().filter(|(_, job)| job.source == *name && reveals(job)) {
        if source.epsilon_in_total.is_some() {
            checked.warnings.push(format!(
                "{job_name}: `epsilon_in_total` of [sources.{name}] counts questions, and the results of this job have no \
                 noise"
            ));
        }
        if source.min_difference > 0 && job.reveal.iter().any(Reveal::is_aggregate) {
            checked.warnings.push(format!(
                "{job_name}: `min_difference` of [sources.{name}] compares questions with each other, and not with the \
                 numbers of this job, which are of all keys"
            ));
        }
    }
    let asked = policy.questions.iter().filter(|(_, job)| job.source == *name && source.min_difference > 0);
    for (job_name, template_name, template) in
        asked.flat_map(|(job_name, job)| job.templates().map(move |(name, one)| (job_name, name, one)))
    {
        if template.samples().iter().any(|sample| sample.tells_of_one_row()) {
            checked.warnings.push(format!(
                "{job_name}: the question {template_name} has MIN, MAX or a condition on them: the row that it tells of can \
                 differ between two questions that differ by many"
            ));
        }
    }
}

/// How far the budgets go that answers draw on, for each peer that may ask.
fn answers(
    checked: &mut Checked,
    (policy, ledger, clock): (&Policy, &Ledger, Time),
    (source_name, source, own_keys): (&str, &Source, u64),
    (name, job): (&str, &QuestionJob),
) {
    if job.askable == Askable::Any {
        checked.warnings.push(format!(
            "{name}: a client that writes its own question can ask about one row inside a large group, by CASE, MIN or MAX, \
             within what `columns` allows; templates say which questions there are"
        ));
    }
    for peer in job.gate.allow.iter().filter(|_| job.result.iter().any(|learns| *learns != Learns::Me)) {
        let Some(known) = policy.peers.get(peer) else { continue };
        let (place, account) = ((source_name, source.place()), (peer.as_str(), known.account()));
        let spent = ledger.spent(&Charge::nothing(ledger.now(clock).0, name, place, account));
        let left = rules::question::left(job, source, &spent);
        // A run is charged with every key of the source: a client that cheats can learn of each.
        let by_rows = left.rows.checked_div(own_keys).unwrap_or(left.aggregates);
        let mut fit = left.aggregates.min(by_rows);
        let mut what = format!(
            "{name}: {peer} has {} and {} left, and an answer is charged 1 and {own_keys}",
            counted(left.aggregates, "aggregate"),
            counted(left.rows, "row")
        );
        if let Some(left) = left.epsilon {
            // The cheapest template says how many answers there can be; a client's own text can be as cheap as it likes.
            let epsilons = job.templates().flat_map(|(_, template)| template.samples());
            let least = epsilons.filter_map(|question| question.epsilon).min();
            what += &format!("; of epsilon {} is left", epsilon_text(left));
            if let Some(least) = least {
                what += &format!(", and an answer takes {} at least", epsilon_text(least));
                fit = fit.min(left / least);
            }
        }
        lines(checked, what, &job.gate, fit);
        lasts(checked, (name, peer), &job.gate, fit, clock);
    }
}

/// Peers, and sources, of the policy that share their budgets.
fn one_account(policy: &Policy, ledger: &Ledger) -> Vec<String> {
    let mut found = Vec::new();
    let peers: Vec<&String> = policy.peers.keys().collect();
    for (at, one) in peers.iter().enumerate() {
        for other in &peers[at + 1..] {
            if ledger.are_one(&[peer_name(one), peer_name(other)]) {
                found.push(format!(
                    "[peers.{one}] and [peers.{other}] share their budgets: their names or keys were used \
                     together"
                ));
            }
        }
    }
    let sources: Vec<&String> = policy.sources.keys().collect();
    for (at, one) in sources.iter().enumerate() {
        for other in &sources[at + 1..] {
            if ledger.are_one(&[source_name(one), source_name(other)]) {
                found.push(format!(
                    "[sources.{one}] and [sources.{other}] share their budgets: they have, or had, a file in \
                     common; each counts the total spent"
                ));
            }
        }
    }
    found
}

/// How far the budgets go that a job draws on, for each peer that may ask.
fn budgets(
    checked: &mut Checked,
    (policy, ledger, clock): (&Policy, &Ledger, Time),
    (source_name, source, keys): (&str, &Source, &KeySet),
    (name, job): (&str, &Job),
) {
    let (own_keys, own_rows) = (keys.elements().len() as u64, keys.rows_at_most());
    let pairs = job.reveal.iter().flat_map(|reveal| job.result.iter().map(move |learns| (reveal, *learns)));
    let runs = pairs.filter(|(_, learns)| *learns != Learns::Me).filter_map(|(reveal, learns)| {
        let run = job.run(source, reveal, learns, &job.give);
        run.check().ok().map(|()| run)
    });
    let runs: Vec<_> = runs.collect();
    let most = runs.iter().filter_map(|run| {
        rules::rows_at_most(job, run, own_keys, own_rows, job.max_peer_keys.min(run.max_keys())).ok()
    });
    let most = most.max().unwrap_or(0);
    let is_number = |reveal: &Reveal| reveal.is_aggregate();
    for peer in &job.gate.allow {
        let Some(known) = policy.peers.get(peer) else { continue };
        let (place, account) = ((source_name, source.place()), (peer.as_str(), known.account()));
        let spent = ledger.spent(&Charge::nothing(ledger.now(clock).0, name, place, account));
        let left = rules::left(&job.gate, [source.rows_in_total, source.aggregate_runs], &spent);
        let (mut least, mut never) = (None, false);
        if let Some(fit) = left.rows.checked_div(most) {
            never = fit == 0;
            let what = format!(
                "{name}: {peer} has {} left of {}, and a run is charged at most {most} with today's table",
                counted(left.rows, "row"),
                source.rows_in_total,
                most = counted(most, "row")
            );
            lines(checked, what, &job.gate, fit);
            least = Some(fit);
            if never {
                let fitting = fitting(job, &runs, (own_keys, own_rows), left.rows);
                let who = match fitting.filter(|keys| *keys >= job.min_peer_keys.max(1)) {
                    Some(keys) => format!("only with up to {} it is served", counted(keys, "key")),
                    None => "no run of it is served".to_owned(),
                };
                checked.warnings.push(format!(
                    "{name}: a run of {peer} with {} costs up to {}, more than the {} left: {who}",
                    counted(job.max_peer_keys, "key"),
                    counted(most, "row"),
                    left.rows
                ));
            }
        }
        if runs.iter().any(|run| is_number(&run.reveal)) {
            let what = format!(
                "{name}: {peer} has {} left of {}",
                counted(left.aggregates, "aggregate"),
                source.aggregate_runs
            );
            lines(checked, what, &job.gate, left.aggregates);
            least = Some(least.map_or(left.aggregates, |fit| fit.min(left.aggregates)));
        }
        // A run that never fits was warned of, and the smaller of two budgets ends first.
        if let Some(fit) = least.filter(|_| !never) {
            lasts(checked, (name, peer), &job.gate, fit, clock);
        }
        if spent.broken > 0 {
            checked.lines.push(format!(
                "  {name}: {} of {peer} on {source_name} ended early after the comparison started",
                counted(spent.broken, "run")
            ));
        }
    }
}

/// The most keys that a peer may announce in every run of a job so that it fits into `left` rows.
fn fitting(job: &Job, runs: &[psi::Job], own: (u64, u64), left: u64) -> Option<u64> {
    let most = |run: &psi::Job| job.max_peer_keys.min(run.max_keys());
    runs.iter().filter_map(|run| rules::fitting_keys(job, run, own, most(run), left).ok()).min()
}

/// Says how many runs fit.
fn lines(checked: &mut Checked, what: String, gate: &Gate, fit: u64) {
    let runs = format!("room for {}", counted(fit, "run"));
    let Some(days) = fit.checked_div(gate.runs_a_day) else {
        checked.lines.push(format!("  {what}: {runs}"));
        return;
    };
    let a_day = counted(gate.runs_a_day, "run");
    let enough = if days == 0 { "less than a day".to_owned() } else { counted(days, "day") };
    checked.lines.push(format!("  {what}: {runs}, enough for {enough} with {a_day} a day"));
}

/// Warns where the runs that fit are not as many as the job is to last.
fn lasts(checked: &mut Checked, (job, peer): (&str, &str), gate: &Gate, fit: u64, clock: Time) {
    let a_day = format!("{} a day", counted(gate.runs_a_day, "run"));
    let wanted = gate.expires.as_ref().map_or(A_YEAR, |(_, last)| (last + 1).saturating_sub(clock.day()));
    let open_days =
        (clock.day()..clock.day() + wanted.min(A_YEAR)).filter(|day| gate.opens_on(*day)).count() as u64;
    if fit < open_days.saturating_mul(gate.runs_a_day) {
        let until = match &gate.expires {
            Some((date, _)) => format!("up to {date}"),
            None => format!("of the next {A_YEAR}"),
        };
        checked.warnings.push(format!(
            "{job}: {peer} may start {a_day} on {} {until}, and its budget lasts for {} of the largest size in all",
            counted(open_days, "day"),
            counted(fit, "run")
        ));
    }
}
