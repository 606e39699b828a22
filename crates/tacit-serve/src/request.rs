//! The side that asks: hears an offer, takes it or not, and runs.

use crate::json::{from_hex, hex};
use crate::log::detail;
use crate::play::{self, Part};
use crate::records::{self, Begun, Records};
use crate::terms::{self, Accept, Offer, Said, Side};
use crate::wire::{self, Message};
use serde_json::Value;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};
use tacit::data::records::{KeySet, KeySpec};
use tacit::job::psi::{Gift, Job, Revealed};
use tacit::job::tags::{Querying, TagFile};
use tacit::job::{Observer, Ran};
use tacit::net::{Agreement, Identity, PublicKey, Session};
use tacit::{Error, Result, Security};

pub use crate::wire::Ask;

/// Time that the service may take to read its table.
const READING: Duration = Duration::from_secs(600);

/// What the client's session agrees on, which is of malicious security; what a run protects against stands in
/// its terms.
pub fn agreement() -> Agreement {
    wire::agreement("client", "service")
}

/// A request that got an offer.
pub struct Offered {
    session: Session,
    said: Said,
    /// What is offered.
    pub offer: Offer,
    service: PublicKey,
}

/// What a run gave, and the record of it.
pub struct Done<R = Revealed> {
    /// The result.
    pub ran: Ran<R>,
    record: Option<(Begun, Option<Value>, Option<String>)>,
}

/// Asks over an open session; `identity` signs our records, and unless the session knows its peers by
/// certificate it is the one that the session has proved.
///
/// Errors: a refusal, which names the rule.
pub fn ask(mut session: Session, ask: &Ask, identity: &Identity) -> Result<Offered> {
    let shown = session.peer_key();
    if shown.is_none() && session.peer_name().is_none() {
        return Err(Error::Usage(
            "a request takes keys of tacit keygen, or certificates, on both sides".into(),
        ));
    }
    let key = shown.is_none().then(|| hex(&identity.public().to_bytes()));
    let mut said = Said::default();
    said.add(&wire::send(session.channel(), &Message::Ask(Ask { key, ..ask.clone() }))?);
    let (message, bytes) = wire::receive(session.channel(), READING)?;
    said.add(&bytes);
    match message {
        Message::Offer(offer)
            if offer.job == ask.job && offer.run == hex(&session.id().0[..16]) && offer.names_parties() =>
        {
            detail("offered", &offer.run, format!("job {}", tacit::net::shown(&offer.job)));
            let told = offer.service_key.as_deref().and_then(from_hex).map(PublicKey::from_bytes);
            let service = shown.or(told).ok_or_else(wire::out_of_turn)?;
            Ok(Offered { session, said, offer: *offer, service })
        }
        other => Err(refusal(other, &hex(&session.id().0[..16]))),
    }
}

/// What a message other than the one that was due means.
fn refusal(message: Message, run: &str) -> Error {
    match message {
        Message::Refusal(refusal) => Error::Peer(format!(
            "the service refuses, by its rule `{}`: {} (its log calls this run {run})",
            tacit::net::shown(&refusal.rule),
            tacit::net::escaped(&refusal.what)
        )),
        _ => wire::out_of_turn(),
    }
}

impl Offered {
    /// The run that we would make, with our key columns.
    pub fn job(&self, key: &KeySpec) -> Result<Job> {
        self.offer.job(Side::Client, key)
    }

    /// Refuses terms below what the user takes: `floor` is the least security, `gives` are the columns that
    /// may go into the result.
    ///
    /// Errors: what is asked beyond that, by the name of its setting.
    pub fn admit(&self, job: &Job, floor: Security, gives: &[String], post_quantum: bool) -> Result<()> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        // A lower floor is for numbers, which have no stronger form at every size; all else has one.
        if job.security == Security::SemiHonest && !job.reveal.is_aggregate() {
            let what = format!(
                "the offer protects {} only if the service follows the protocol, and services run them against \
                 malicious peers; decline it, and ask the service why",
                job.reveal.name()
            );
            return refuse("security", what);
        }
        if floor == Security::Malicious && job.security == Security::SemiHonest {
            let what = "the offer protects you only if the service follows the protocol; accept that for numbers \
                        with semi-honest";
            return refuse("security", what.into());
        }
        if let Some(column) = self.offer.client_gives.iter().find(|column| !gives.contains(column)) {
            let column = tacit::net::shown(column);
            return refuse("give", format!("the job takes our column {column}; name it if you give it"));
        }
        if post_quantum {
            for protocol in job.protocol.candidates() {
                tacit::catalogue::require_post_quantum(protocol)?;
            }
            tacit::catalogue::require_post_quantum(&self.offer.base_ot)?;
        }
        Ok(())
    }

    /// Tells the service that we do not take the offer.
    pub fn decline(mut self) -> Result<()> {
        wire::send(self.session.channel(), &Message::Decline).map(|_| ())
    }

    /// Takes the offer and makes the run: `input` is our file's digest, `keys` are its keys, `gift` what we
    /// give.
    ///
    /// Errors: a refusal, and those of the run. A run that began has a record also if it ends in an error.
    pub fn run(
        mut self,
        job: &Job,
        input: &[u8; 32],
        (keys, gift): (&KeySet, Gift<'_>),
        (identity, records): (&Identity, &Records),
        observer: &dyn Observer,
    ) -> Result<Done> {
        let agreement = |offer: &Offer, said: &Said| offer.agreement(job, said);
        let mut begun = self.begin(keys.elements().len() as u64, input, (identity, records), &agreement)?;
        let session = &mut self.session;
        let part = Part { offer: &self.offer, job, keys, gift, peer_keys: self.offer.service_keys };
        let played = match play::run(session, &part, observer) {
            Ok(played) => played,
            Err(error) => {
                begun.finish("broken off", &Value::Null, None)?;
                return Err(error);
            }
        };
        detail("played", &self.offer.run, format!("{:.3} s", played.wall.as_secs_f64()));
        let mut revealed = played.revealed;
        let result = play::summary(keys, &mut revealed);
        let theirs = play::close(session, Side::Client, &mut begun, result.as_ref(), &self.service).ok();
        // Nothing more is said.
        let ran = Ran { result: revealed.opened()?, wall: played.wall, stats: session.stats() };
        Ok(Done { ran, record: Some((begun, result, theirs)) })
    }

    /// Takes an offer of lookups: the places of those of our `keys` that are in the file of tags `tags`,
    /// whose digest is the offer's; `input` is our file's digest.
    ///
    /// Errors: another publication than the offer's, keys of another kind or more than are answered; a
    /// refusal, and those of the run. A run that began has a record also if it ends in an error.
    pub fn look_up(
        mut self,
        tags: &mut TagFile<impl Read + Seek>,
        input: &[u8; 32],
        (keys, spec): (&KeySet, &KeySpec),
        (identity, records): (&Identity, &Records),
        observer: &dyn Observer,
    ) -> Result<Done<Vec<u32>>> {
        self.admit_tags(tags, keys.elements().len() as u64, spec)?;
        let (publication, digest) = (tags.publication().clone(), *tags.digest());
        let querying = Querying { publication: &publication, digest: &digest };
        let agreement =
            |offer: &Offer, said: &Said| Ok(offer.agreement_on_lookups(querying.agreement(), said));
        let mut begun = self.begin(keys.elements().len() as u64, input, (identity, records), &agreement)?;
        let start = Instant::now();
        let session = &mut self.session;
        let found = match querying.run(session.channels(), tags, keys.elements(), observer) {
            Ok(found) => found,
            Err(error) => {
                begun.finish("broken off", &Value::Null, None)?;
                return Err(error);
            }
        };
        let wall = start.elapsed();
        let result = Some(play::matched(keys, &found));
        let theirs = play::close(session, Side::Client, &mut begun, result.as_ref(), &self.service).ok();
        let ran = Ran { result: found, wall, stats: session.stats() };
        Ok(Done { ran, record: Some((begun, result, theirs)) })
    }

    /// Refuses a file of tags that is not the offer's, and keys that it cannot be asked for.
    pub fn admit_tags(&self, tags: &TagFile<impl Read + Seek>, asked: u64, spec: &KeySpec) -> Result<()> {
        if self.offer.looked_up()? != *tags.digest() {
            let what = "the file of tags is not the service's current publication; fetch it again";
            return Err(Error::Input(what.into()));
        }
        Querying { publication: tags.publication(), digest: tags.digest() }
            .check(&spec.agreement(), asked)?;
        if asked == 0 || asked > self.offer.max_peer_keys {
            let what = format!(
                "{asked} distinct keys, and a request may ask for 1 to {} now; take fewer rows",
                self.offer.max_peer_keys
            );
            return Err(Error::Input(what));
        }
        Ok(())
    }

    /// Takes the offer: says how many keys we have, and hears that the run begins.
    fn begin(
        &mut self,
        keys: u64,
        input: &[u8; 32],
        (identity, records): (&Identity, &Records),
        agreement: &dyn Fn(&Offer, &Said) -> Result<Agreement>,
    ) -> Result<Begun> {
        let (input_salt, result_salt) = (records::salt(), records::salt());
        let accept = Accept {
            keys,
            commitment: hex(&records::commitment("input", &input_salt, input)),
            head: hex(&records.head()?),
        };
        let session = &mut self.session;
        self.said.add(&wire::send(session.channel(), &Message::Accept(accept.clone()))?);
        let (message, bytes) = wire::receive(session.channel(), READING)?;
        self.said.add(&bytes);
        detail("accepted", &self.offer.run, format!("with {} keys", accept.keys));
        let Message::Go(go) = message else { return Err(refusal(message, &self.offer.run)) };
        let is_hash = |text: &str| from_hex::<32>(text).is_some();
        if !is_hash(&go.commitment) || !is_hash(&go.head) || go.started >= 1 << 53 {
            return Err(wire::out_of_turn());
        }
        let common = terms::common_part(&self.offer, &accept, &go, [&self.service, &identity.public()])?;
        if !records::is_signed(&self.service, records::BEGUN, &common, &go.signature)? {
            let what = "the service's signature on the run does not hold; run the same release on both sides";
            return Err(Error::Peer(what.into()));
        }
        let begun = records.begin(common, Some(&go.signature), input_salt, result_salt)?;
        let agreed = wire::send(session.channel(), &Message::Signature(begun.begun()))
            .and_then(|_| agreement(&self.offer, &self.said))
            .and_then(|agreement| play::agree(session, &agreement));
        match agreed {
            Ok(()) => Ok(begun),
            Err(error) => {
                begun.finish("not begun", &Value::Null, None)?;
                Err(error)
            }
        }
    }
}

impl<R> Done<R> {
    /// Writes the record; true if both sides have signed it.
    pub fn record(&mut self) -> Result<bool> {
        let Some((begun, result, theirs)) = self.record.take() else { return Ok(false) };
        let signed = theirs.is_some();
        let outcome = if signed { "complete".to_owned() } else { play::unsigned(Side::Client) };
        begun.finish(&outcome, &result.unwrap_or(Value::Null), theirs)?;
        Ok(signed)
    }
}
