//! The terms of an answer to a question.

use super::{Offer, QUESTION, Said, Side, VERSION};
use serde::{Deserialize, Serialize};
use tacit::catalogue::CIRCUIT;
use tacit::crypto::text::counted;
use tacit::data::records::Normalisation;
use tacit::job::psi::Learns;
use tacit::job::query::{self, Job};
use tacit::net::{Agreement, escaped, shown};
use tacit::query::epsilon_text;
use tacit::{Error, Result, Security, security_name};

/// The question of an offer, and the rules that it was judged by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionTerms {
    /// Its canonical text, in which `ours` is the service's table.
    pub text: String,
    /// The name of the service's own question that it is, with values filled in; none where it answers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The least joined rows of a group that the service lets a result show.
    pub min_group: u64,
    /// The most groups of a question that it answers.
    pub max_groups: u64,
    /// The fewest keys of the service by which what passes its part of WHERE differs from what passed in an earlier
    /// question of the client's, unless it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_difference: Option<u64>,
}

/// The table of a side in a question.
const fn table(side: Side) -> query::Side {
    match side {
        Side::Service => query::Side::Ours,
        Side::Client => query::Side::Theirs,
    }
}

impl Offer {
    /// The run of a question as `side` plays it, with the key that the question names.
    ///
    /// Errors: terms of another kind of job, and those that make no sense or do not go together.
    pub fn answer(&self, side: Side) -> Result<Job> {
        let odd = |what: &str| {
            Error::Peer(format!("the offer is not valid: {what}; use the same release on both sides"))
        };
        let Some(terms) = &self.question else {
            let what = "this job answers no questions in SQL; leave the question out".into();
            return Err(Error::Parameter { name: "sql", what });
        };
        let said = [self.reveal.as_str(), self.protocol.as_str(), self.security.as_str()];
        if said != [QUESTION, CIRCUIT.name, security_name(Security::SemiHonest)] {
            return Err(odd("the kind of run"));
        }
        if self.version != VERSION || self.publication.is_some() {
            return Err(odd("its version differs"));
        }
        let question = tacit::query::parse(&terms.text).map_err(|_| odd("the question"))?;
        if question.text != terms.text {
            return Err(odd("the question is not in its canonical form"));
        }
        let learns = self.learns(side).ok_or_else(|| odd("who gets the result"))?;
        let normalisation = Normalisation { nfc: self.nfc, trim: self.trim, case_fold: self.case_fold };
        let job = Job::new(question, table(side), learns, normalisation)?;
        if (job.key.columns.len(), job.key.agreed_types()) != (self.key_columns, self.key_types.clone()) {
            return Err(odd("the types of the key"));
        }
        if job.goes_to_owner() != self.result_to_owner {
            return Err(odd("whether a side gets what is made of its own columns"));
        }
        let most = if side == Side::Service { self.max_peer_keys } else { self.service_keys };
        Ok(Job {
            least: terms.min_group,
            result_to_owner: self.result_to_owner,
            most_peer_keys: Some(most),
            ..job
        })
    }

    /// What the handshake of a question's run compares: the question, and everything that was said on the way to it.
    pub fn agreement_on_question(&self, job: &Job, said: &Said) -> Result<Agreement> {
        let base = tacit::ot::base_ot(Some(&self.base_ot), Security::SemiHonest)?;
        let agreement = job.agreement(&*base).with("security", &self.security);
        Ok(agreement.with("terms", crate::json::hex(&said.digest())))
    }

    /// The question, what it uses of either side, and the service's rules for it, a line each.
    pub(crate) fn question_words(&self) -> Result<Vec<String>> {
        let Some(terms) = &self.question else { return Ok(Vec::new()) };
        let job = self.answer(Side::Service)?;
        let [service, client] = [Side::Service, Side::Client].map(|side| self.party(side));
        let uses = |side: Side, who: &str| {
            let uses = job.question.tables[table(side) as usize].uses.iter();
            let uses: Vec<String> =
                uses.map(|one| format!("{} to {}", shown(&one.column), one.purpose.name())).collect();
            let name = table(side).name();
            format!("{name} is the table of {who}, whose columns the question uses: {}", uses.join(", "))
        };
        let mut lines = vec![
            match &terms.template {
                Some(name) => {
                    format!("question, by the service's template {}: {}", shown(name), escaped(&terms.text))
                }
                None => format!("question: {}", escaped(&terms.text)),
            },
            uses(Side::Service, &service),
            uses(Side::Client, &client),
            format!(
                "the result shows groups of at least {}; the rules of {service} require at least {} and at most {}",
                counted(job.question.least, "joined row"),
                terms.min_group,
                counted(terms.max_groups, "group")
            ),
        ];
        if let Some(least) = terms.min_difference {
            lines.push(format!(
                "{service} compares which of its keys pass its part of WHERE with earlier questions of {client}: it \
                 refuses, and charges, one that differs from an earlier one by 1 to {}",
                counted(least.saturating_sub(1), "key")
            ));
        }
        if let Some(left) = self.left.epsilon.filter(|_| job.learns != Learns::Me) {
            lines.push(format!(
                "noise: this question takes epsilon {} of the {} that {service} has left for {client}",
                epsilon_text(job.question.epsilon.unwrap_or(0)),
                epsilon_text(left)
            ));
        }
        if self.result_to_owner {
            let what = "a side gets what is made of its own columns, and can read matching keys from it";
            lines.push(what.to_owned());
        }
        Ok(lines)
    }
}
