//! The asking side of a question.

use super::{Done, Offered, broken_off, refusal};
use crate::answer;
use crate::log::detail;
use crate::play::{self, Asking};
use crate::records::{REFUSED_RUN, Records};
use crate::terms::{self, Offer, Said, Side};
use crate::wire::{self, Message};
use tacit::data::records::KeySet;
use tacit::job::psi::Learns;
use tacit::job::query::{Answer, Job, Purpose, Rows};
use tacit::job::{Observer, Ran};
use tacit::net::{Identity, escaped};
use tacit::{Error, Result, Security};

/// What a user takes at least of an answer's terms.
#[derive(Clone, Debug)]
pub struct AnswerFloor<'a> {
    /// The least security.
    pub security: Security,
    /// The least joined rows of a group that the result may show.
    pub min_group: u64,
    /// What each local column may be used for; nothing where a question may use them as it says.
    pub allowed: Option<&'a [(String, Purpose)]>,
    /// Whether a side may get what is made of its own columns.
    pub result_to_owner: bool,
    /// Whether everything has to hold against a quantum computer.
    pub post_quantum: bool,
    /// The most distinct keys that the service may have.
    pub most_service_keys: Option<u64>,
    /// The hash of terms that were reviewed ([`Offer::hash`]).
    pub terms: Option<[u8; 32]>,
    /// Whether nobody looks at the terms before they are accepted, and nobody named who gets the result.
    pub unattended: bool,
}

impl Offered {
    /// The run of the question that we would make.
    pub fn answer_job(&self) -> Result<Job> {
        self.offer.answer(Side::Client)
    }

    /// Refuses terms below what the user takes, and remembers how many keys the service may have; else the run, which
    /// is held to the same.
    ///
    /// Errors: what is asked beyond that, by the name of its setting.
    pub fn admit_answer(&self, floor: &AnswerFloor<'_>) -> Result<Job> {
        self.most_service_keys.set(floor.most_service_keys);
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        if floor.security == Security::Malicious {
            let what = "the answer to a question is protected only against a semi-honest service; set semi-honest to accept \
                        this";
            return refuse("security", what.into());
        }
        let offer = &self.offer;
        if floor.post_quantum {
            tacit::catalogue::require_post_quantum(&offer.protocol)?;
            tacit::catalogue::require_post_quantum(&offer.base_ot)?;
        }
        if floor.unattended && terms::learns(&offer.result) == Some(Learns::Me) {
            let what = "the service would get the result, and you nothing; name who gets the result if you accept that \
                        unseen";
            return refuse("result", what.into());
        }
        let job = self.answer_job()?;
        let job = Job {
            least: floor.min_group,
            allowed: floor.allowed.map(<[_]>::to_vec),
            // What nobody needs to allow is not asked for.
            result_to_owner: floor.result_to_owner && offer.result_to_owner,
            ..job
        };
        job.check()?;
        self.pinned(floor.terms, floor.most_service_keys)?;
        Ok(job)
    }

    fn pinned(&self, terms: Option<[u8; 32]>, most_service_keys: Option<u64>) -> Result<()> {
        super::floor::pinned(terms, &self.offer)?;
        super::floor::bounded(most_service_keys, self.offer.service_keys)
    }

    /// Takes the offer and asks: `input` is our file's digest, `keys` are its keys, `rows` what its rows put in.
    ///
    /// Errors: a refusal, and those of the run. A run that began has a record also if it ends in an error.
    pub fn ask(
        mut self,
        job: &Job,
        input: &[u8; 32],
        (keys, rows): (&KeySet, &Rows),
        (identity, records): (&Identity, &Records),
        observer: &dyn Observer,
    ) -> Result<Done<Answer>> {
        let agreement = |offer: &Offer, said: &Said| offer.agreement_on_question(job, said);
        let (mut begun, service_keys) =
            self.begin(keys.elements().len() as u64, input, (identity, records), &agreement)?;
        let session = &mut self.session;
        // What the service puts in depends on the question, and so does whether it answers.
        let ready = match wire::receive(session.channel(), super::READING) {
            Ok((Message::Ready, _)) => Ok(()),
            Ok((message @ Message::Refusal(_), _)) => {
                begun.finish(REFUSED_RUN, &serde_json::Value::Null, None)?;
                return Err(refusal(message, &self.offer.run));
            }
            Ok((other, _)) => Err(refusal(other, &self.offer.run)),
            Err(error) => Err(error),
        };
        let asking = Asking { offer: &self.offer, job, keys, rows, peer_keys: service_keys };
        let played = ready.and_then(|()| play::answer(session, &asking, observer));
        let ran = match played {
            Ok(ran) => ran,
            Err(error) => return Err(broken_off(error, session, begun)?),
        };
        detail("played", &self.offer.run, format!("{:.3} s", ran.wall.as_secs_f64()));
        let result = answer::summary(&job.question, &ran.result);
        let theirs = play::close(session, Side::Client, &mut begun, result.as_ref(), &self.service).ok();
        let stats = session.end();
        Ok(Done { ran: Ran { stats, ..ran }, service_keys, record: Some((begun, result, theirs)) })
    }
}

/// Where an offer is not of the question that was asked.
pub(super) fn as_asked(asked: Option<&str>, offer: &Offer) -> Result<()> {
    let offered = offer.question.as_ref().map(|terms| terms.text.as_str());
    match (asked, offered) {
        (Some(asked), Some(offered)) if asked == offered => Ok(()),
        (Some(asked), Some(offered)) => Err(Error::Peer(format!(
            "the offer does not match the request: the question (requested `{}`, offered `{}`); ask the service's operator",
            escaped(asked),
            escaped(offered)
        ))),
        (Some(_), None) => {
            let what = "this job answers no questions in SQL; leave the question out".into();
            Err(Error::Parameter { name: "sql", what })
        }
        (None, _) => Ok(()),
    }
}
