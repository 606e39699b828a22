//! The side that asks: hears an offer, takes it or not, and runs.

mod floor;
mod question;

#[cfg(test)]
mod tests;

pub use floor::{Floor, ToOwner};
pub use question::AnswerFloor;

use crate::certified;
use crate::clock::Time;
use crate::json::{from_hex, hex};
use crate::listed::Listed;
use crate::log::detail;
use crate::play::{self, Part};
use crate::records::{self, Begun, Records};
use crate::terms::{self, Accept, Offer, Said, Side};
use crate::wire::{self, Message};
use serde_json::Value;
use std::cell::Cell;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};
use tacit::data::records::{KeySet, KeySpec};
use tacit::job::agreed;
use tacit::job::psi::{Gift, Job, Revealed};
use tacit::job::tags::{Querying, TagFile};
use tacit::job::{Observer, Ran};
use tacit::net::{Agreement, Identity, PublicKey, Session};
use tacit::{Error, Result};

pub use crate::wire::Ask;

/// Time that the service may take to read its table.
const READING: Duration = Duration::from_secs(600);

/// How far the service's clock may be from the client's, in seconds: a record has the time of the service.
const CLOCKS_APART: u64 = 3600;

/// What the client's session agrees on, which is of malicious security; what a run protects against stands in
/// its terms.
pub fn agreement() -> Agreement {
    wire::agreement("client", "service")
}

/// A request that got an offer; the service hears that it is declined unless it is taken.
pub struct Offered {
    session: Session,
    /// Whether the service has heard yes or no.
    answered: bool,
    said: Said,
    /// What is offered.
    pub offer: Offer,
    service: PublicKey,
    /// The most distinct keys that it may have.
    most_service_keys: Cell<Option<u64>>,
}

/// What a run gave, and the record of it.
pub struct Done<R = Revealed> {
    /// The result.
    pub ran: Ran<R>,
    /// The service's distinct keys.
    pub service_keys: u64,
    record: Option<Recorded>,
}

/// A run that came to its end, its result, and the service's signature.
type Recorded = (Begun, Option<Value>, Option<String>);

/// Writes the record of a run; true if both sides have signed it.
fn recorded((begun, result, theirs): Recorded) -> Result<bool> {
    let signed = theirs.is_some();
    let outcome = if signed { "complete".to_owned() } else { play::unsigned(Side::Client) };
    begun.finish(&outcome, &result.unwrap_or(Value::Null), theirs)?;
    Ok(signed)
}

/// The record of a run that `error` ended, of which the service hears; returns the error.
fn broken_off(error: Error, session: &mut Session, begun: Begun) -> Result<Error> {
    error.tell(session);
    begun.finish("broken off", &Value::Null, None)?;
    Ok(error)
}

/// Asks over an open session; `identity` signs our records, and unless the session knows its peers by
/// certificate it is the one that the session has proved.
///
/// Errors: a refusal, which names the rule, and an offer of another run than the one that was asked for.
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
            floor::as_asked(ask, &offer)?;
            question::as_asked(ask.question.as_deref(), &offer)?;
            let most_service_keys = Cell::new(None);
            Ok(Offered { session, answered: false, said, offer: *offer, service, most_service_keys })
        }
        other => Err(refusal(other, &hex(&session.id().0[..16]))),
    }
}

/// Jobs of a listing, at most: as many as a policy file has room for.
const MOST_JOBS: usize = 1 << 16;
/// Bytes of a list of jobs, at most.
const MOST_LISTED: usize = 1 << 22;

/// Asks a service over an open session which jobs we may ask for; it reads no table for that, and counts
/// nothing.
///
/// Errors: a refusal, which names the rule.
pub fn list(mut session: Session) -> Result<Vec<Listed>> {
    wire::send(session.channel(), &Message::List)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() <= MOST_JOBS && bytes <= MOST_LISTED {
        let (message, received) = wire::receive(session.channel(), wire::PROMPT)?;
        bytes += received.len();
        match message {
            Message::Listed(one) => found.push(*one),
            Message::Listing(count) if count == found.len() as u64 => return Ok(found),
            other => return Err(refusal(other, &hex(&session.id().0[..16]))),
        }
    }
    Err(wire::out_of_turn())
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
        let theirs: Vec<&str> = self.offer.key_types.split(tacit::data::records::OR).collect();
        let ours = key.types_of_each();
        if ours != theirs && (key.has_several() || theirs.len() > 1) {
            let what = format!(
                "the service matches by {} ({}), your rows by {} ({}); give the same, in the same order",
                tacit::crypto::text::counted(theirs.len(), "identifier"),
                tacit::net::escaped(&theirs.join("; ")),
                tacit::crypto::text::counted(ours.len(), "identifier"),
                ours.join("; ")
            );
            return Err(Error::Parameter { name: "key", what });
        }
        self.offer.job(Side::Client, key)
    }

    /// Refuses terms below what the user takes, and remembers how many keys the service may have.
    ///
    /// Errors: what is asked beyond that, by the name of its setting.
    pub fn admit(&self, job: &Job, floor: &Floor<'_>) -> Result<()> {
        self.most_service_keys.set(floor.most_service_keys);
        floor.admit(&self.offer, job)
    }

    /// As [`admit`](Self::admit), for lookups, whose result is the client's.
    pub fn admit_lookups(&self, floor: &Floor<'_>) -> Result<()> {
        self.most_service_keys.set(floor.most_service_keys);
        floor.pinned(&self.offer)
    }

    /// Refuses keys of other types than the service's, which no run would compare.
    pub fn admit_types(&self, key: &KeySpec) -> Result<()> {
        let (ours, theirs) = (key.agreed_types(), &self.offer.key_types);
        if ours == *theirs {
            return Ok(());
        }
        let example =
            agreed::with_types(key, theirs).unwrap_or_else(|| "each column with its type".to_owned());
        let what = format!(
            "the service's keys are of the type {}, yours of {ours}; write {example}",
            tacit::net::escaped(theirs)
        );
        Err(Error::Parameter { name: "key", what })
    }

    /// Refuses a run that would not fit into what the service has left for us, before it hears anything.
    ///
    /// Errors: as the service's own refusal.
    pub fn admit_keys(&self, keys: u64) -> Result<()> {
        let Offer { fitting_keys, max_peer_keys, left, run, .. } = &self.offer;
        // Other sizes are the service's to refuse, by its rule.
        if self.offer.fits(keys) || keys > *max_peer_keys {
            return Ok(());
        }
        Err(Error::Peer(format!(
            "the service refuses, by its rule `rows_in_total`: with {keys} keys the run does not fit into the {} rows \
             that are left, with up to {fitting_keys} it does (its log calls this run {run})",
            left.rows
        )))
    }

    /// Refuses to give columns that take more for each key than the service takes.
    pub fn admit_width(&self, bytes: Option<u64>) -> Result<()> {
        match (bytes, self.offer.client_bytes_a_key) {
            (Some(bytes), Some(most)) if bytes > most => Err(Error::Input(format!(
                "the columns to give take {bytes} bytes for each key, and the service accepts up to {most}; give fewer \
                 columns or rows"
            ))),
            _ => Ok(()),
        }
    }

    /// Tells the service that we do not take the offer.
    pub fn decline(mut self) -> Result<()> {
        self.answered = true;
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
        let (mut begun, service_keys) =
            self.begin(keys.elements().len() as u64, input, (identity, records), &agreement)?;
        let session = &mut self.session;
        let part = Part { offer: &self.offer, job, keys, gift, peer_keys: service_keys };
        let played = match play::run(session, &part, observer) {
            Ok(played) => played,
            Err(error) => return Err(broken_off(error, session, begun)?),
        };
        detail("played", &self.offer.run, format!("{:.3} s", played.wall.as_secs_f64()));
        let mut revealed = played.revealed;
        let result = play::summary(keys, &mut revealed);
        let theirs = play::close(session, Side::Client, &mut begun, result.as_ref(), &self.service).ok();
        // The service sees nothing any more of how long this takes. What fails from here on is this side's own, and
        // the run has its record all the same.
        let stats = session.end();
        let record = (begun, result, theirs);
        match revealed.opened() {
            Ok(result) => {
                let ran = Ran { result, wall: played.wall, stats };
                Ok(Done { ran, service_keys, record: Some(record) })
            }
            Err(error) => {
                recorded(record)?;
                Err(error)
            }
        }
    }

    /// Takes an offer of lookups: the places of those of our `keys` that are in the file of tags `tags`,
    /// whose digest is the offer's; `input` is our file's digest.
    ///
    /// All of the file is read before anything is asked, unless it was before, and looked into when the session
    /// has ended.
    ///
    /// Errors: another publication than the offer's, a damaged file, keys of another kind or more than are
    /// answered; a refusal, and those of the run. A run that began has a record also if it ends in an error.
    pub fn look_up(
        mut self,
        tags: &mut TagFile<impl Read + Seek>,
        input: &[u8; 32],
        (keys, spec): (&KeySet, &KeySpec),
        (identity, records): (&Identity, &Records),
        observer: &dyn Observer,
    ) -> Result<Done<Vec<u32>>> {
        self.admit_tags(tags, keys.elements().len() as u64, spec)?;
        tags.checked().map_err(tacit::Error::from)?;
        let (publication, digest) = (tags.publication().clone(), *tags.digest());
        let querying = Querying { publication: &publication, digest: &digest };
        let agreement =
            |offer: &Offer, said: &Said| Ok(offer.agreement_on_lookups(querying.agreement(), said));
        let (mut begun, service_keys) =
            self.begin(keys.elements().len() as u64, input, (identity, records), &agreement)?;
        let start = Instant::now();
        let session = &mut self.session;
        let answers = match querying.run(session.channels(), tags, keys.elements(), observer) {
            Ok(answers) => answers,
            Err(error) => return Err(broken_off(error, session, begun)?),
        };
        let wall = start.elapsed();
        let result = Some(play::answered(keys, &answers));
        let theirs = play::close(session, Side::Client, &mut begun, result.as_ref(), &self.service).ok();
        let stats = session.end();
        let record = (begun, result, theirs);
        match answers.opened(tags) {
            Ok(result) => Ok(Done { ran: Ran { result, wall, stats }, service_keys, record: Some(record) }),
            Err(error) => {
                recorded(record)?;
                Err(error)
            }
        }
    }

    /// Refuses a file of tags that is not the offer's, and keys that it cannot be asked for.
    pub fn admit_tags(&self, tags: &TagFile<impl Read + Seek>, asked: u64, spec: &KeySpec) -> Result<()> {
        if self.offer.looked_up()? != *tags.digest() {
            let what = "the file of tags is not the service's current publication; fetch it again";
            return Err(Error::Input(what.into()));
        }
        Querying { publication: tags.publication(), digest: tags.digest() }.check(spec, asked)?;
        if asked == 0 || asked > self.offer.max_peer_keys {
            let what = format!(
                "{asked} distinct keys, and a request may ask for 1 to {} now; take fewer rows",
                self.offer.max_peer_keys
            );
            return Err(Error::Input(what));
        }
        Ok(())
    }

    /// Takes the offer: says how many keys we have, and hears that the run begins, and with how many keys of
    /// the service.
    fn begin(
        &mut self,
        keys: u64,
        input: &[u8; 32],
        (identity, records): (&Identity, &Records),
        agreement: &dyn Fn(&Offer, &Said) -> Result<Agreement>,
    ) -> Result<(Begun, u64)> {
        let (input_salt, result_salt) = (records::salt(), records::salt());
        let accept = Accept {
            keys,
            commitment: hex(&records::commitment("input", &input_salt, input)),
            head: hex(&records.head()?),
            proof: certified::prove(&self.session, Side::Client, &self.offer.run, &identity.public())?,
        };
        let session = &mut self.session;
        self.answered = true;
        self.said.add(&wire::send(session.channel(), &Message::Accept(accept.clone()))?);
        let (message, bytes) = wire::receive(session.channel(), READING)?;
        self.said.add(&bytes);
        detail("accepted", &self.offer.run, format!("with {} keys", accept.keys));
        let Message::Go(go) = message else { return Err(refusal(message, &self.offer.run)) };
        floor::bounded(self.most_service_keys.get(), self.offer.service_keys)?;
        let is_hash = |text: &str| from_hex::<32>(text).is_some();
        if !is_hash(&go.commitment) || !is_hash(&go.head) || go.started >= 1 << 53 || go.keys >= 1 << 53 {
            return Err(wire::out_of_turn());
        }
        let clock = Time::now();
        if clock.0.abs_diff(go.started) > CLOCKS_APART {
            let theirs = Time(go.started).text();
            let what = format!(
                "the service's clock says {theirs}, this machine's {}, more than an hour apart; set the one that is \
                 wrong",
                clock.text()
            );
            return Err(Error::Peer(what));
        }
        if terms::rounded(go.keys) != self.offer.service_keys {
            let offered = self.offer.service_keys;
            let what = format!("the service offered {offered} keys and begins with {}; ask again", go.keys);
            return Err(Error::Peer(what));
        }
        let mut common = terms::common_part(&self.offer, &accept, &go, [&self.service, &identity.public()])?;
        certified::fill(&mut common, session, Side::Client, [go.proof.as_ref(), accept.proof.as_ref()])?;
        if !records::is_signed(&self.service, records::BEGUN, &common, &go.signature)? {
            let what = "the service's signature on the run does not hold; run the same release on both sides";
            return Err(Error::Peer(what.into()));
        }
        let begun = records.begin(common, Some(&go.signature), input_salt, result_salt)?;
        let agreed = wire::send(session.channel(), &Message::Signature(begun.begun()))
            .and_then(|_| agreement(&self.offer, &self.said))
            .and_then(|agreement| play::agree(session, &agreement));
        match agreed {
            Ok(()) => Ok((begun, go.keys)),
            Err(error) => {
                error.tell(&mut self.session);
                begun.finish("not begun", &Value::Null, None)?;
                Err(error)
            }
        }
    }
}

impl Drop for Offered {
    /// Terms that one does not take, and a table that cannot be read, are no failure of the service.
    fn drop(&mut self) {
        if !self.answered {
            let _ = wire::send(self.session.channel(), &Message::Decline);
        }
    }
}

impl<R> Done<R> {
    /// What the service learned, in the record's sentence, which names both parties; before the record is
    /// written.
    pub fn service_learned(&self) -> Option<String> {
        let (begun, ..) = self.record.as_ref()?;
        begun.common["revealed"]["to_service"].as_str().map(str::to_owned)
    }

    /// Writes the record; true if both sides have signed it.
    pub fn record(&mut self) -> Result<bool> {
        self.record.take().map_or(Ok(false), recorded)
    }
}
