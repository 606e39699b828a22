//! A policy in plain words.

use super::{Askable, Gate, Job, Lookup, Peer, Policy, QuestionJob, Source};
use tacit::Security;
use tacit::crypto::text::counted;
use tacit::data::records::KeySpec;
use tacit::job::psi::{Learns, Reveal, Statistic};
use tacit::net::{escaped, shown};
use tacit::query::epsilon_text;

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
    for (name, job) in &policy.questions {
        lines.extend(question_words(policy, name, job));
        lines.extend(reason_words(name, &job.gate));
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

/// What a job that answers questions allows.
fn question_words(policy: &Policy, name: &str, job: &QuestionJob) -> Vec<String> {
    let Some(source) = policy.sources.get(&job.source) else { return Vec::new() };
    let (service, client) = (service(policy), client(&job.gate));
    let which = match &job.askable {
        Askable::Any => "any question in SQL".to_owned(),
        Askable::Templates(templates) => counted(templates.len() as u64, "question") + " in SQL",
    };
    let mut lines = vec![format!(
        "job {name}: answers to {which} about {} and a table of the client; {}",
        job.source,
        gate_words(&job.gate)
    )];
    lines.push(format!(
        "  {name}: {client} must announce {} to {}{}",
        job.min_peer_keys,
        counted(job.max_peer_keys, "distinct key"),
        if job.post_quantum { ", and all protocols must resist a quantum computer" } else { "" }
    ));
    let columns =
        job.columns.iter().map(|(column, purpose)| format!("{} to {}", shown(column), purpose.name()));
    lines.push(format!(
        "  {name}: a question may use these columns of {service}: {}; it may have at most {}, and shows none of fewer \
         than {}",
        columns.collect::<Vec<_>>().join(", "),
        counted(job.max_groups, "group"),
        counted(job.min_group, "joined row")
    ));
    for (template_name, template) in job.templates() {
        lines.push(format!("  {name}: question {template_name}: {}", escaped(&template.form())));
        let parameters = template.parameters().iter();
        lines.extend(
            parameters
                .map(|parameter| format!("  {name}: in {template_name}, {}", escaped(&parameter.words()))),
        );
    }
    if source.min_difference > 0 {
        lines.push(format!(
            "  {name}: a question is refused, and charged, if what passes its part of WHERE for {service} differs from an \
             earlier question of the same client by 1 to {}; what the client's table holds is not seen",
            counted(source.min_difference - 1, "key")
        ));
    }
    if let Some(total) = source.epsilon_in_total {
        lines.push(format!(
            "  {name}: an answer to {client} has noise, and the epsilons of all its questions about the table add up to at \
             most {}",
            epsilon_text(total)
        ));
    }
    let holds = holds(Security::SemiHonest);
    lines.extend(job.result.iter().map(|learns| match learns {
        Learns::Me => format!("  {name}: {service} may get the result, {client} nothing; {holds}"),
        Learns::Peer => format!("  {name}: {client} may get the result, {service} nothing; {holds}"),
        Learns::Both => format!("  {name}: {service} and {client} may both get the result; {holds}"),
    }));
    if job.result_to_owner {
        lines.push(format!(
            "  {name}: a side may get what is made of its own columns, and can read from it which keys match"
        ));
    }
    lines
}

fn source_words(name: &str, source: &Source) -> String {
    format!(
        "{name} is {}, with the key {}; each client may learn {} of it in total, and get {} in total",
        tacit::net::shown(&source.shown()),
        key_words(&source.key),
        counted(source.rows_in_total, "row"),
        counted(source.aggregate_runs, "aggregate")
    )
}

/// What makes a row's key, in the columns' names.
fn key_words(key: &KeySpec) -> String {
    let each = (0..key.identifiers()).map(|at| key.columns[key.parts(at)].join(" and "));
    let each: Vec<String> = each.collect();
    match (key.has_several(), key.has_variants()) {
        (true, false) => format!("or identifiers {}, each of which counts as a key", each.join(" or ")),
        (_, true) => format!(
            "{}{}, compared by variants ({}), each of which counts as a key and as a row",
            if key.has_several() { "or identifiers " } else { "" },
            each.join(" or "),
            key.agreed_types()
        ),
        (false, false) => each.concat(),
    }
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
        let parties = (service.as_str(), client.as_str());
        let words = result_words((reveal, &source.key), job, run.written_bounds(), parties, other);
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

fn result_words(
    (reveal, key): (&Reveal, &KeySpec),
    job: &Job,
    bounds: Option<String>,
    (service, client): (&str, &str),
    other: &str,
) -> String {
    let withheld = match (reveal.is_aggregate(), job.min_matches) {
        (false, _) | (_, 0) => String::new(),
        (true, least) => format!(" unless there are fewer than {least}", least = counted(least, "key")),
    };
    let which = match (key.has_several(), key.has_variants()) {
        (_, true) => format!("for each variant of its own rows whether {other} has it too"),
        (true, false) => format!("for each of its own identifiers whether {other} has it too"),
        (false, false) => format!("which of its own keys {other} has too"),
    };
    let words = match reveal {
        Reveal::Rows => which,
        Reveal::Payload(columns) => {
            let ours = format!("columns of {service}: {}", job.give.join(", "));
            let theirs = format!("columns of {client}: {}", columns.join(", "));
            let given = match (job.give.is_empty(), columns.is_empty()) {
                (false, false) => format!("{ours}; {theirs}"),
                (false, true) => ours,
                _ => theirs,
            };
            format!("{given}, with what the rows hold there, and {which}")
        }
        Reveal::Count => "how many keys are common".to_owned(),
        Reveal::Of(Statistic::Max, column) => format!("the largest {} of a common key", shown(column)),
        Reveal::Of(Statistic::Min, column) => format!("the smallest {} of a common key", shown(column)),
        Reveal::Of(Statistic::Over(limit), column) => {
            let limit = reveal.form().written(*limit);
            format!("how many common keys have {} above {limit}", shown(column))
        }
        other => match other.column() {
            Some(column) => format!("the {} of {} over common keys", other.name(), shown(column)),
            None => other.name().to_owned(),
        },
    };
    let clipped = bounds.map_or_else(String::new, |bounds| {
        format!(", each key's number taken as within {bounds}: one outside counts as the nearer bound")
    });
    words + &withheld + &clipped
}
