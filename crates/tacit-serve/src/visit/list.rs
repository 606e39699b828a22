//! The answer to whoever asks which jobs it may ask for: what the rules say, and nothing of a table.

use super::{End, Visit};
use crate::ledger::{Charge, Ledger};
use crate::listed::{Listed, ListedParameter, ListedQuestion};
use crate::policy::{Askable, Gate, Job, Policy, QuestionJob, Source};
use crate::rules::{self, Found, No};
use crate::terms::{self, LOOKUP, Left, QUESTION};
use crate::wire::{self, Message};
use tacit::crypto::text::counted;
use tacit::job::psi::{Learns, Reveal};
use tacit::net::Session;

impl Visit<'_> {
    /// Tells the jobs that this peer may ask for; returns how many.
    pub(super) fn list(&self, session: &mut Session) -> std::result::Result<u64, End> {
        self.open()?;
        let policy = self.policy.clone();
        self.house.know_sources(&policy)?;
        let mut count = 0;
        for (name, gate) in policy.gates().filter(|(_, gate)| gate.allows(&self.label)) {
            let Some(listed) = self.listed(&policy, name, gate) else { continue };
            wire::send(session.channel(), &Message::Listed(Box::new(listed)))?;
            count += 1;
        }
        wire::send(session.channel(), &Message::Listing(count))?;
        Ok(count)
    }

    fn listed(&self, policy: &Policy, name: &str, gate: &Gate) -> Option<Listed> {
        let (clock, counted) = self.house.times();
        let found: Result<Found<'_>, No> = rules::find(policy, &self.label, name, clock);
        let listed = Listed {
            job: name.to_owned(),
            reveal: vec![LOOKUP.to_owned()],
            result: vec![terms::result_name(Learns::Peer).to_owned()],
            gives: Vec::new(),
            question_rules: None,
            questions: Vec::new(),
            questions_left_out: 0,
            key_columns: 1,
            key_types: None,
            min_peer_keys: 1,
            max_peer_keys: 0,
            runs_a_day: gate.runs_a_day,
            left: Left { runs_today: 0, rows: 0, aggregates: 0, epsilon: None },
            hours: gate.hours_text.clone(),
            purpose: gate.purpose.clone(),
            agreement: gate.agreement.clone(),
            expires: gate.expires.as_ref().map(|(date, _)| date.clone()),
            refused: found.as_ref().err().map(|no| (no.rule.to_owned(), no.told.clone())),
        };
        let nothing = |source: &str, input: String| self.nothing_at(counted.0, name, (source, input));
        if let Some(lookup) = policy.lookups.get(name) {
            return Some(self.house.ledger(|ledger| {
                // Of a publication that nobody has asked about yet, nothing is used up.
                let publication = ledger.latest_source(name).unwrap_or_default().to_owned();
                let nothing = nothing(&publication, publication.clone());
                let left = rules::left(gate, [lookup.queries_in_total, 0], &ledger.spent(&nothing));
                let used_up = (left.rows == 0).then(|| {
                    ("queries_in_total".to_owned(), "no query to this publication is left".to_owned())
                });
                let refused =
                    listed.refused.clone().or_else(|| none_left(ledger, gate, &nothing)).or(used_up);
                Listed { max_peer_keys: lookup.max_queries, left, refused, ..listed }
            }));
        }
        if let Some(job) = policy.questions.get(name) {
            let source = policy.sources.get(&job.source)?;
            let nothing = nothing(&job.source, source.place());
            let (questions, questions_left_out) = questions(job);
            return Some(self.house.ledger(|ledger| {
                let left = rules::question::left(job, source, &ledger.spent(&nothing));
                let refused = listed.refused.clone().or_else(|| none_left(ledger, gate, &nothing));
                let is_told = job.result.iter().all(|learns| *learns != Learns::Me);
                let budgets = [("aggregate_runs", left.aggregates), ("rows_in_total", left.rows)];
                let budgets = budgets.into_iter().chain(left.epsilon.map(|left| ("epsilon_in_total", left)));
                let used_up = { budgets }.find(|(_, left)| *left == 0 && is_told).map(used_up_words);
                Listed {
                    reveal: vec![QUESTION.to_owned()],
                    result: result_names(&job.result),
                    question_rules: Some(question_rules(job)),
                    questions,
                    questions_left_out,
                    key_columns: source.key.columns.len(),
                    key_types: Some(source.key.agreed_types()),
                    min_peer_keys: job.min_peer_keys,
                    max_peer_keys: job.max_peer_keys,
                    left,
                    refused: refused.or(used_up),
                    ..listed
                }
            }));
        }
        let job = policy.jobs.get(name)?;
        let source = policy.sources.get(&job.source)?;
        let kind = |reveal: &Reveal| match reveal {
            Reveal::Payload(columns) if !columns.is_empty() => format!("payload:{}", columns.join(",")),
            other => other.terms(),
        };
        Some(self.house.ledger(|ledger| {
            let nothing = nothing(&job.source, source.place());
            let most = [source.rows_in_total, source.aggregate_runs];
            let left = rules::left(gate, most, &ledger.spent(&nothing));
            let refused = listed.refused.clone().or_else(|| none_left(ledger, gate, &nothing));
            let refused = refused.or_else(|| used_up(job, source, &left));
            Listed {
                reveal: job.reveal.iter().map(kind).collect(),
                result: result_names(&job.result),
                gives: job.give.clone(),
                key_columns: source.key.columns.len(),
                key_types: Some(source.key.agreed_types()),
                min_peer_keys: job.min_peer_keys,
                max_peer_keys: job.max_peer_keys,
                left,
                refused,
                ..listed
            }
        }))
    }
}

fn result_names(result: &[Learns]) -> Vec<String> {
    result.iter().map(|learns| terms::result_name(*learns).to_owned()).collect()
}

/// What a question of a job must keep to.
fn question_rules(job: &QuestionJob) -> String {
    let columns = job.columns.iter().map(|(column, purpose)| format!("{column}:{}", purpose.name()));
    let rules = format!(
        "of `ours` a question may use {}; groups of at least {}, at most {}",
        columns.collect::<Vec<_>>().join(", "),
        counted(job.min_group, "joined row"),
        job.max_groups
    );
    match job.askable {
        Askable::Any => format!("any question: {rules}"),
        Askable::Templates(_) => rules,
    }
}

/// The questions of a job, as far as a message has room for them, and how many more there are.
fn questions(job: &QuestionJob) -> (Vec<ListedQuestion>, u64) {
    const MOST_LISTED_TEXT: usize = 6_000;
    let (mut room, mut found) = (MOST_LISTED_TEXT, Vec::new());
    for (name, template) in job.templates() {
        let open = template.parameters().iter().filter(|parameter| parameter.is_open());
        let listed = ListedQuestion {
            name: name.to_owned(),
            sql: template.form(),
            parameters: open
                .map(|parameter| ListedParameter {
                    name: parameter.name().to_owned(),
                    kind: parameter.kind_name(),
                    words: parameter.words(),
                })
                .collect(),
        };
        let words: usize = listed.parameters.iter().map(|one| one.name.len() + one.words.len()).sum();
        if let Some(less) = room.checked_sub(name.len() + listed.sql.len() + words) {
            room = less;
            found.push(listed);
        }
    }
    let left_out = job.templates().count() - found.len();
    (found, left_out as u64)
}

fn used_up_words((rule, _): (&str, u64)) -> (String, String) {
    (rule.to_owned(), "the budget of this source is used up".to_owned())
}

/// The budget that keeps every kind of a job's runs from starting, if it is used up.
fn used_up(job: &Job, source: &Source, left: &Left) -> Option<(String, String)> {
    let pairs = job.reveal.iter().flat_map(|reveal| job.result.iter().map(move |learns| (reveal, *learns)));
    let mut runs =
        pairs.filter(|(reveal, learns)| job.run(source, reveal, *learns, &job.give).check().is_ok());
    let no = |(reveal, learns): (&Reveal, Learns)| match learns {
        Learns::Me => None,
        _ if reveal.is_aggregate() && left.aggregates == 0 => Some("aggregate_runs"),
        _ if left.rows == 0 => Some("rows_in_total"),
        _ => None,
    };
    let rule = no(runs.next()?)?;
    runs.all(|run| no(run).is_some()).then(|| used_up_words((rule, 0)))
}

/// Why no run of a job may start today, if none may.
fn none_left(ledger: &Ledger, gate: &Gate, nothing: &Charge) -> Option<(String, String)> {
    let spent = ledger.spent(nothing);
    let judged = rules::runs_left(gate, &spent).and_then(|_| rules::offers(gate, &spent));
    judged.err().map(|no| (no.rule.to_owned(), no.told))
}
