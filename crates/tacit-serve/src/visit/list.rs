//! The answer to whoever asks which jobs it may ask for: what the rules say, and nothing of a table.

use super::{End, Visit};
use crate::ledger::{Charge, Ledger};
use crate::listed::Listed;
use crate::policy::{Gate, Job, Policy, Source};
use crate::rules::{self, Found, No};
use crate::terms::{self, LOOKUP, Left};
use crate::wire::{self, Message};
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
            key_columns: 1,
            key_types: None,
            min_peer_keys: 1,
            max_peer_keys: 0,
            runs_a_day: gate.runs_a_day,
            left: Left { runs_today: 0, rows: 0, aggregates: 0 },
            hours: gate.hours_text.clone(),
            purpose: gate.purpose.clone(),
            agreement: gate.agreement.clone(),
            expires: gate.expires.as_ref().map(|(date, _)| date.clone()),
            refused: found.as_ref().err().map(|no| (no.rule.to_owned(), no.told.clone())),
        };
        let nothing = |source: String, input: String| Charge {
            run: self.run.clone(),
            time: counted.0,
            job: name.to_owned(),
            source,
            input,
            peer: self.label.clone(),
            fingerprint: self.account.clone(),
            rows: 0,
            aggregate: false,
        };
        if let Some(lookup) = policy.lookups.get(name) {
            return Some(self.house.ledger(|ledger| {
                // Of a publication that nobody has asked about yet, nothing is used up.
                let publication = ledger.latest_source(name).unwrap_or_default().to_owned();
                let nothing = nothing(publication.clone(), publication);
                let left = rules::left(gate, [lookup.queries_in_total, 0], &ledger.spent(&nothing));
                let used_up = (left.rows == 0).then(|| {
                    ("queries_in_total".to_owned(), "no query to this publication is left".to_owned())
                });
                let refused =
                    listed.refused.clone().or_else(|| none_left(ledger, gate, &nothing)).or(used_up);
                Listed { max_peer_keys: lookup.max_queries, left, refused, ..listed }
            }));
        }
        let job = policy.jobs.get(name)?;
        let source = policy.sources.get(&job.source)?;
        let kind = |reveal: &Reveal| match reveal {
            Reveal::Payload(columns) if !columns.is_empty() => format!("payload:{}", columns.join(",")),
            other => other.terms(),
        };
        Some(self.house.ledger(|ledger| {
            let nothing = nothing(job.source.clone(), source.place());
            let most = [source.rows_in_total, source.aggregate_runs];
            let left = rules::left(gate, most, &ledger.spent(&nothing));
            let refused = listed.refused.clone().or_else(|| none_left(ledger, gate, &nothing));
            let refused = refused.or_else(|| used_up(job, source, &left));
            Listed {
                reveal: job.reveal.iter().map(kind).collect(),
                result: job.result.iter().map(|learns| terms::result_name(*learns).to_owned()).collect(),
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
    runs.all(|run| no(run).is_some())
        .then(|| (rule.to_owned(), "the budget of this source is used up".to_owned()))
}

/// Why no run of a job may start today, if none may.
fn none_left(ledger: &Ledger, gate: &Gate, nothing: &Charge) -> Option<(String, String)> {
    let spent = ledger.spent(nothing);
    let judged = rules::runs_left(gate, &spent).and_then(|_| rules::offers(gate, &spent));
    judged.err().map(|no| (no.rule.to_owned(), no.told))
}
