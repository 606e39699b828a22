//! What a policy comes to with the tables as they are today: whether each can be read, and how many runs fit
//! into what is left of its budgets.

use crate::clock::Time;
use crate::file::shown;
use crate::ledger::{Charge, Ledger, peer_name, source_name};
use crate::policy::{Gate, Job, Policy, Source};
use crate::rules;
use tacit::crypto::text::counted;
use tacit::data::give::Purpose;
use tacit::data::records::KeySet;
use tacit::data::table;
use tacit::job::psi::{self, Learns, Reveal};
use tacit::net::Identity;

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
            Ok((table, keys)) => {
                let (count, rows) = (keys.elements().len(), keys.rows());
                checked.lines.push(format!(
                    "{title} has {count} in {rows} today",
                    count = counted(count, "distinct key"),
                    rows = counted(rows, "row")
                ));
                for (job_name, job) in policy.jobs.iter().filter(|(_, job)| job.source == *name) {
                    if let Err(error) = given(&table, &keys, job) {
                        checked.faults.push(format!("[jobs.{job_name}]: {error}"));
                    }
                    budgets(&mut checked, (policy, &ledger, clock), (name, source, &keys), (job_name, job));
                }
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

fn open(source: &Source) -> tacit::Result<(table::Source, KeySet)> {
    let table = table::Source::open_all(&source.inputs, source.key.clone(), source.options)?;
    let keys = table.read_keys(|_| ())?;
    Ok((table, keys))
}

/// Whether the columns that a job gives are there.
fn given(table: &table::Source, keys: &KeySet, job: &Job) -> tacit::Result<()> {
    if job.give.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = job.give.iter().map(|name| table.number_column(name).name).collect();
    table.read_given(keys, &names, Purpose::Shown, |_, _, _| Ok::<(), tacit::Error>(()))
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
    let (own_keys, own_rows) = (keys.elements().len() as u64, keys.rows());
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
        let spent = ledger.spent(&Charge {
            run: String::new(),
            time: ledger.now(clock).0,
            job: name.to_owned(),
            source: source_name.to_owned(),
            input: source.place(),
            peer: peer.clone(),
            fingerprint: known.account(),
            rows: 0,
            aggregate: false,
        });
        let left = rules::left(&job.gate, [source.rows_in_total, source.aggregate_runs], &spent);
        if let Some(fit) = left.rows.checked_div(most) {
            let what = format!(
                "{name}: {peer} has {} left of {}, and a run is charged at most {most} with today's table",
                counted(left.rows, "row"),
                source.rows_in_total,
                most = counted(most, "row")
            );
            lasts(checked, what, (name, peer), &job.gate, fit, clock);
            if fit == 0 {
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
            lasts(checked, what, (name, peer), &job.gate, left.aggregates, clock);
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

/// Says how many runs fit, and warns where that is not as long as the job is to last.
fn lasts(checked: &mut Checked, what: String, (job, peer): (&str, &str), gate: &Gate, fit: u64, clock: Time) {
    let runs = format!("room for {}", counted(fit, "run"));
    let Some(days) = fit.checked_div(gate.runs_a_day) else {
        checked.lines.push(format!("  {what}: {runs}"));
        return;
    };
    let a_day = format!("{} a day", counted(gate.runs_a_day, "run"));
    let enough = if days == 0 { "less than a day".to_owned() } else { counted(days, "day") };
    checked.lines.push(format!("  {what}: {runs}, enough for {enough} with {a_day}"));
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
