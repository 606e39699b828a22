//! A policy in plain words.

use super::{Gate, Job, Lookup, Peer, Policy, Source};
use tacit::Security;
use tacit::crypto::text::counted;
use tacit::job::psi::{Learns, Reveal};

/// What the policy allows, in sentences, one a line.
pub fn explain(policy: &Policy) -> Vec<String> {
    let mut lines = vec![format!(
        "{} {} {} and serves at most {} at a time, {} per client; a run may take {} s in total",
        service(policy),
        if policy.is_via { "waits at the relay" } else { "listens at" },
        tacit::net::shown(&policy.listen),
        counted(policy.concurrency, "request"),
        policy.concurrency_per_peer,
        policy.whole_run_seconds
    )];
    for (label, peer) in &policy.peers {
        let jobs: Vec<&str> =
            policy.gates().filter(|(_, gate)| gate.allows(label)).map(|(name, _)| name).collect();
        let what = if jobs.is_empty() { "nothing".to_owned() } else { jobs.join(", ") };
        let proof = match peer {
            Peer::Name(name) => format!("certificate for {}", tacit::net::shown(name)),
            known => format!("fingerprint {}", known.shown()),
        };
        lines.push(format!("{label} ({proof}) may ask for {what}"));
        if let Peer::Keys(keys) = peer {
            lines.extend(keys.words().map(|words| format!("  {label}: {words}")));
        }
    }
    for (name, source) in &policy.sources {
        lines.push(source_words(name, source));
    }
    for (name, job) in &policy.jobs {
        lines.extend(job_words(policy, name, job));
        lines.extend(reason_words(name, &job.gate));
    }
    for (name, lookup) in &policy.lookups {
        lines.extend(lookup_words(policy, name, lookup));
        lines.extend(reason_words(name, &lookup.gate));
    }
    lines
}

/// The service by its name and role, as terms and records have it.
fn service(policy: &Policy) -> String {
    format!("{} (service)", tacit::net::shown(&policy.name))
}

/// The clients of a job, of which one takes part in a run.
fn client(gate: &Gate) -> String {
    let each: Vec<String> = gate.allow.iter().map(|label| format!("{label} (client)")).collect();
    each.join(" or ")
}

/// What a job is for, and the contract that it rests on.
fn reason_words(name: &str, gate: &Gate) -> Vec<String> {
    let said = [("purpose", &gate.purpose), ("agreement", &gate.agreement)];
    let line = |(what, text): (&str, &Option<String>)| {
        Some(format!("  {name}: {what}: {}", tacit::net::shown(text.as_ref()?)))
    };
    said.into_iter().filter_map(line).collect()
}

/// Who may start how many runs, and when.
fn gate_words(gate: &Gate) -> String {
    format!(
        "{} may start {} a day, {}{}",
        gate.allow.join(" and "),
        counted(gate.runs_a_day, "run"),
        match gate.hours_text.as_slice() {
            [] => "at any time".to_owned(),
            hours => format!("{} (UTC)", hours.join(" and ")),
        },
        gate.expires.as_ref().map_or(String::new(), |(date, _)| format!(", up to and including {date}"))
    )
}

fn lookup_words(policy: &Policy, name: &str, lookup: &Lookup) -> [String; 2] {
    let client = client(&lookup.gate);
    [
        format!(
            "job {name} answers lookups in the publication of {}; {}",
            tacit::net::shown(&lookup.answers.private.to_string_lossy()),
            gate_words(&lookup.gate)
        ),
        format!(
            "  {name}: a run may make {}, and each client {} over the lifetime of the publication's key; {client} learns \
             which of its own keys are published, and {} how many it asks for; {}",
            counted(lookup.max_queries, "query"),
            lookup.queries_in_total,
            service(policy),
            holds(Security::Malicious)
        ),
    ]
}

fn source_words(name: &str, source: &Source) -> String {
    format!(
        "{name} is {}, with the key {}; each client may learn {} of it in total, and get {} in total",
        tacit::net::shown(&source.shown()),
        source.key.columns.join(" and "),
        counted(source.rows_in_total, "row"),
        counted(source.aggregate_runs, "aggregate")
    )
}

fn job_words(policy: &Policy, name: &str, job: &Job) -> Vec<String> {
    let Some(source) = policy.sources.get(&job.source) else { return Vec::new() };
    let (service, client) = (service(policy), client(&job.gate));
    let mut lines =
        vec![format!("job {name} is an intersection with {}; {}", job.source, gate_words(&job.gate))];
    lines.push(format!(
        "  {name}: {client} must announce {} to {}{}",
        job.min_peer_keys,
        counted(job.max_peer_keys, "distinct key"),
        if job.post_quantum { ", and all protocols must resist a quantum computer" } else { "" }
    ));
    for (reveal, learns, checked) in job.combinations(source) {
        if checked.is_err() {
            continue;
        }
        let run = job.run(source, reveal, learns, &job.give);
        let other = if learns == Learns::Me { &client } else { &service };
        let other = if learns == Learns::Both { "the other side" } else { other.as_str() };
        let words = result_words(reveal, job, (service.as_str(), client.as_str()), other);
        let holds = holds(run.security);
        lines.push(match learns {
            Learns::Me => format!("  {name}: {service} may get {words}, {client} nothing; {holds}"),
            Learns::Peer => format!("  {name}: {client} may get {words}, {service} nothing; {holds}"),
            Learns::Both => format!("  {name}: {service} and {client} may both get {words}; {holds}"),
        });
    }
    lines
}

/// Against whom what is said of a result holds.
fn holds(security: Security) -> &'static str {
    match security {
        Security::Malicious => "this is guaranteed even if the other side cheats",
        Security::SemiHonest => {
            "this is guaranteed only if both sides follow the protocol, and not against a side that cheats"
        }
    }
}

fn result_words(reveal: &Reveal, job: &Job, (service, client): (&str, &str), other: &str) -> String {
    let withheld = match (reveal.is_aggregate(), job.min_matches) {
        (false, _) | (_, 0) => String::new(),
        (true, least) => format!(" unless there are fewer than {least}", least = counted(least, "key")),
    };
    let words = match reveal {
        Reveal::Rows => format!("which of its own keys {other} has too"),
        Reveal::Payload(columns) => {
            let ours = format!("columns of {service}: {}", job.give.join(", "));
            let theirs = format!("columns of {client}: {}", columns.join(", "));
            let which = match (job.give.is_empty(), columns.is_empty()) {
                (false, false) => format!("{ours}; {theirs}"),
                (false, true) => ours,
                _ => theirs,
            };
            format!("which of its own keys {other} has too, with what the rows hold there ({which})")
        }
        Reveal::Count => "how many keys are common".to_owned(),
        other => match other.column() {
            Some(column) => format!("the {} of {column} over common keys", other.name()),
            None => other.name().to_owned(),
        },
    };
    words + &withheld
}
