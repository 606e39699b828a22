//! One peer's request, from its first word to the record.

mod list;
mod lookup;
mod question;

pub(crate) use lookup::Publications;

use crate::certified;
use crate::clock::{Clock, Time};
use crate::json::{from_hex, hex};
use crate::ledger::{Charge, Ledger};
use crate::log::{Event, Figures, Log, Phases, TARGET, detail};
use crate::play::{self, Part, Played};
use crate::policy::{Job, Policy, Who};
use crate::records::{self, Begun, Records};
use crate::rules::{self, Admitted, Found, No};
use crate::slots::{Place, Slots};
use crate::terms::{self, Accept, Go, Offer, Said, Side};
use crate::unsigned::Unsigned;
use crate::wire::{self, Ask, Message};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tacit::crypto::fence::fenced;
use tacit::crypto::text::counted;
use tacit::data::table::Source;
use tacit::job::psi::{self, Own, Owned, Reveal, Revealed};
use tacit::net::{Agreement, Identity, Limits, PublicKey, Session, Stats};
use tacit::{Error, Result};

/// What all visits share.
pub(crate) struct House {
    pub policy: RwLock<Arc<Policy>>,
    pub ledger: Mutex<Ledger>,
    pub records: Records,
    pub identity: Identity,
    pub slots: Slots,
    pub publications: Publications,
    /// Runs that clients left without their last signature.
    pub unsigned: Unsigned,
    /// Whether the service ends: nothing new begins.
    pub draining: AtomicBool,
    pub log: Box<Log>,
    /// Bytes that the machine has to give.
    pub available: fn() -> Option<u64>,
    /// The time by the machine's clock.
    pub clock: Box<Clock>,
}

impl House {
    /// The rules in force now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Acts on the ledger; the policy in force does not change meanwhile.
    pub(crate) fn ledger<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        let (done, fault) = {
            // An entry is in the file and in memory, or in neither.
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            (act(&mut ledger), ledger.fault())
        };
        if let Some(fault) = fault {
            (self.log)(&Event::new("ledger", format!("it was not made shorter, and goes on: {fault}")));
        }
        done
    }

    /// The time by the clock, and the one that a day's runs are counted by, which is never before a charge.
    pub(crate) fn times(&self) -> (Time, Time) {
        let clock = (self.clock)();
        (clock, self.ledger(|ledger| ledger.now(clock)))
    }

    /// Puts a policy in force: no run that is charged later goes by the one before.
    pub(crate) fn take(&self, policy: Policy) -> Result<()> {
        let sources = policy.names_of_sources(&self.ledger(|ledger| ledger.places()));
        self.ledger(|ledger| {
            ledger.know(&policy.names_of_peers())?;
            ledger.know(&sources)?;
            *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
            Ok(())
        })
    }

    /// Tells the ledger which names of sources are one, as files are now.
    pub(crate) fn know_sources(&self, policy: &Policy) -> std::result::Result<(), No> {
        let groups = policy.names_of_sources(&self.ledger(|ledger| ledger.places()));
        self.ledger(|ledger| ledger.know(&groups)).map_err(|error| rules::unwritten(rules::UNCHARGED, &error))
    }
}

/// How a visit ended, where it came to no result.
enum End {
    /// A rule said no.
    Refused(No),
    /// The peer did not take the offer.
    Declined,
    /// A fault, before or after the run began.
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        End::Failed(error)
    }
}

impl From<No> for End {
    fn from(no: No) -> Self {
        End::Refused(no)
    }
}

struct Visit<'h> {
    house: &'h House,
    policy: Arc<Policy>,
    run: String,
    label: String,
    /// What names the peer to the ledger, and to a publication's counts, whatever its label and its newest
    /// key.
    account: String,
    client: String,
    /// What it proved: a key, or the name in its certificate.
    proved: (Option<PublicKey>, Option<String>),
    /// The key of its records: the one that it proved, or with certificates the one that it names.
    key: Option<PublicKey>,
    job: Option<String>,
}

/// Serves one session to its end, and tells the log.
pub(crate) fn visit(house: &House, mut session: Session) {
    let policy = house.policy();
    let run = hex(&session.id().0[..16]);
    let (key, name) = (session.peer_key(), session.peer_name().map(str::to_owned));
    let Some(shown) = key.map(|key| key.fingerprint()).or_else(|| name.clone()) else { return };
    // A key's last day has come by either time.
    let (clock, counted) = house.times();
    let found = policy.who(key.as_ref(), name.as_deref(), clock.max(counted));
    let known = found.is_some();
    let Who { label, account, client } =
        found.unwrap_or_else(|| Who { label: shown, account: String::new(), client: String::new() });
    let span = tracing::info_span!(target: TARGET, "request", run, peer = label);
    let _within = span.enter();
    let mut visit = Visit { house, policy, run, label, account, client, proved: (key, name), key, job: None };
    let end = match known {
        // What panics ends this visit alone, and is told by its run and its peer.
        true => match fenced(|| visit.serve(&mut session)) {
            Ok(end) => end,
            Err(panicked) => return visit.tell("panicked", None, panicked.to_string()),
        },
        // The key was let in just before a reload took it out.
        false => Err(No::new("allow", "this service does not know your key any more").into()),
    };
    let Err(end) = end else { return };
    match end {
        End::Refused(no) => {
            // Who is gone already need not be told.
            if let Some(channel) = session.channels().first_mut() {
                let _ = wire::send(channel, &Message::Refusal(no.refusal()));
            }
            let words = no.logged.clone().unwrap_or_else(|| no.told.clone());
            visit.tell("refused", Some(no.rule), words);
        }
        End::Declined => visit.tell("declined", None, ""),
        End::Failed(error) => {
            error.tell(&mut session);
            visit.tell("failed", None, error.to_string());
        }
    }
}

impl Visit<'_> {
    fn tell(&self, what: &'static str, rule: Option<&'static str>, words: impl Into<String>) {
        self.tell_with(what, rule, words, Figures::default());
    }

    fn tell_with(
        &self,
        what: &'static str,
        rule: Option<&'static str>,
        words: impl Into<String>,
        figures: Figures,
    ) {
        let mut event = Event::new(what, words);
        event.figures = figures;
        event.run = Some(self.run.clone());
        event.peer = Some(self.label.clone());
        event.job = self.job.clone();
        event.rule = rule;
        (self.house.log)(&event);
    }

    fn serve(&mut self, session: &mut Session) -> std::result::Result<(), End> {
        let mut said = Said::default();
        let place = self.place(&self.policy)?;
        let (message, bytes) = wire::receive(session.channel(), wire::PROMPT)?;
        // The rules may have changed while the peer thought.
        self.policy = self.house.policy();
        let policy = self.policy.clone();
        self.is_known(&policy)?;
        let ask = match message {
            Message::Ask(ask) => ask,
            Message::List => {
                let count = self.list(session)?;
                drop(place);
                self.tell("listed", None, counted(count, "job"));
                return Ok(());
            }
            _ => return Err(wire::out_of_turn().into()),
        };
        said.add(&bytes);
        self.job = Some(ask.job.clone());
        detail("asked", &self.run, format!("for {}", tacit::net::shown(&ask.job)));
        self.key = self.key.or_else(|| ask.key.as_deref().and_then(from_hex).map(PublicKey::from_bytes));
        self.key()?;
        self.signs(&policy)?;
        self.open()?;
        let found = rules::find(&policy, &self.label, &ask.job, self.house.times().0)?;
        let busy =
            || No::new("concurrency", "this job is at its limit of concurrent requests; ask again later");
        let concurrency = policy.gate(&ask.job).map_or(0, |gate| gate.concurrency);
        let _job = self.house.slots.job(&ask.job, concurrency).ok_or_else(busy)?;
        match found {
            Found::Intersection(job, source) => {
                let admitted = rules::admit(job, source, &ask)?;
                self.intersect(session, &ask, &admitted, said)
            }
            Found::Lookup(lookup) => self.look_up(session, &ask, lookup, said),
            Found::Question(job, source) => {
                let admitted = rules::question::admit(job, source, &ask)?;
                self.answer(session, &ask, &admitted, said)
            }
        }
    }

    /// Whether these rules know the peer, as the one that it was.
    fn is_known(&self, policy: &Policy) -> std::result::Result<(), No> {
        let (clock, counted) = self.house.times();
        let (key, name) = &self.proved;
        let who = policy.who(key.as_ref(), name.as_deref(), clock.max(counted));
        match who.is_some_and(|who| who.label == self.label) {
            true => Ok(()),
            false => Err(No::new("allow", "this service does not know your key any more")),
        }
    }

    /// The key of the peer's records.
    fn key(&self) -> std::result::Result<PublicKey, No> {
        let none = "with certificates the client needs a key of tacit keygen for its records; give one";
        self.key.ok_or_else(|| No::new("identity", none))
    }

    /// The key of our records, where TLS shows another.
    fn service_key(&self) -> Option<String> {
        let public = self.house.identity.public();
        self.policy.certificates.is_some().then(|| hex(&public.to_bytes()))
    }

    fn intersect(
        &mut self,
        session: &mut Session,
        ask: &Ask,
        admitted: &Admitted<'_>,
        mut said: Said,
    ) -> std::result::Result<(), End> {
        // Refusals that need no table come before it is read, and so does the count of offers.
        self.house.know_sources(&self.policy)?;
        let nothing = self.charge(ask, admitted, 0);
        self.house.ledger(|ledger| {
            rules::budget(ledger, admitted.job, admitted.source, &nothing)?;
            rules::offers(&admitted.job.gate, &ledger.spent(&nothing))?;
            ledger.offer(nothing).map_err(|error| End::from(rules::unwritten(rules::UNCHARGED, &error)))
        })?;
        let own = read(admitted).map_err(|error| rules::fault(&error))?;
        detail("table read", &self.run, counted(own.count(), "key"));
        let offer = self.offer(ask, admitted, &own)?;
        let accept = self.accepted(session, &offer, &mut said)?;
        let _memory = self.check(admitted, &own, &accept)?;
        // What the offer does not say is the policy's.
        let (_, one) = self.memory(admitted.job);
        let rows = one.saturating_sub(admitted.run.memory(own.count(), accept.keys));
        let job = psi::Job {
            max_cell: admitted.run.max_cell,
            line_ends: admitted.run.line_ends,
            row_memory: admitted.run.row_memory.min(rows),
            ..offer.job(Side::Service, &admitted.source.key)?
        };
        let gift = own.gift(&job, admitted.job.duplicates).map_err(|error| rules::fault(&error))?;
        rules::width(&gift, own.count(), &offer)?;
        self.grant(session, ask, admitted, Ready { offer, accept, own, job, gift }, said)
    }

    /// Makes the offer, and waits for the peer's yes.
    fn accepted(
        &self,
        session: &mut Session,
        offer: &Offer,
        said: &mut Said,
    ) -> std::result::Result<Accept, End> {
        said.add(&wire::send(session.channel(), &Message::Offer(Box::new(offer.clone())))?);
        self.tell("offered", None, "");
        let (message, bytes) = wire::receive(session.channel(), Duration::from_secs(offer.seconds))?;
        let accept = match message {
            Message::Accept(accept) => accept,
            Message::Decline => return Err(End::Declined),
            _ => return Err(wire::out_of_turn().into()),
        };
        said.add(&bytes);
        detail("accepted", &self.run, format!("with {}", counted(accept.keys, "key")));
        Ok(accept)
    }

    /// Whether the client signs its runs to their end: most of them at least.
    fn signs(&self, policy: &Policy) -> std::result::Result<(), No> {
        let most = policy.unsigned_runs_a_day;
        let client = match &self.proved.1 {
            Some(name) => name.clone(),
            None => hex(&self.key()?.to_bytes()),
        };
        let count = self.house.unsigned.count(self.house.times().1.day(), &client);
        if count < most {
            return Ok(());
        }
        let what = format!(
            "{count} of today ended without your last signature, of {most} that may",
            count = counted(count, "run")
        );
        Err(No::new("unsigned_runs_a_day", what))
    }

    /// Writes the record of a run that ended without the client's last signature: counted, and a warning.
    fn unsigned(&self, begun: Begun, day: u64, outcome: &str, result: &Value) -> Result<()> {
        self.house.unsigned.add(&begun.common, day);
        begun.finish(outcome, result, None)?;
        self.recorded();
        self.tell("unsigned", None, format!("{outcome}; the client signed the run when it began"));
        Ok(())
    }

    fn open(&self) -> std::result::Result<(), No> {
        match self.house.draining.load(Ordering::SeqCst) {
            true => Err(No::new("draining", "the service is stopping; ask again later")),
            false => Ok(()),
        }
    }

    fn place(&self, policy: &Policy) -> std::result::Result<Place, No> {
        let place = self.house.slots.request(&self.label, policy.concurrency, policy.concurrency_per_peer);
        place.ok_or_else(|| {
            No::new(
                "concurrency",
                "the service is at its limit of requests, or you are at \
                                                    yours; ask again later",
            )
        })
    }

    fn charge(&self, ask: &Ask, admitted: &Admitted<'_>, rows: u64) -> Charge {
        Charge {
            rows,
            aggregate: admitted.run.reveal.is_aggregate()
                && admitted.run.learns != tacit::job::psi::Learns::Me,
            ..self.nothing(&ask.job, (&admitted.job.source, admitted.source.place()))
        }
    }

    /// A charge of this run on a source, that costs nothing yet. It looks at the ledger for the time.
    fn nothing(&self, job: &str, source: (&str, String)) -> Charge {
        self.nothing_at(self.house.times().1.0, job, source)
    }

    /// The same at a time by which the ledger counts.
    fn nothing_at(&self, time: u64, job: &str, source: (&str, String)) -> Charge {
        Charge {
            run: self.run.clone(),
            ..Charge::nothing(time, job, source, (&self.label, self.account.clone()))
        }
    }

    /// Bytes that runs may take: all together, and one of this job.
    fn memory(&self, job: &Job) -> (u64, u64) {
        let all = self.policy.memory.or_else(self.house.available).unwrap_or(u64::MAX);
        (all, job.memory.unwrap_or(all).min(all))
    }

    fn offer(&self, ask: &Ask, admitted: &Admitted<'_>, own: &Own) -> std::result::Result<Offer, End> {
        let Admitted { job, source, run, client_gives } = admitted;
        let (all, one) = self.memory(job);
        let room = one.min(self.house.slots.memory_left(all));
        // By the number that is told: the exact one would show in how many keys there is room for.
        let service_keys = terms::rounded(own.count());
        let most = run.most_peer_keys(service_keys, Some(room)).min(job.max_peer_keys);
        if most < job.min_peer_keys.max(1) {
            return Err(No::new(
                "memory",
                "the service has no memory for a run at the moment; ask again later",
            )
            .into());
        }
        let rows =
            rules::rows_at_most(job, run, own.count(), own.keys().rows_at_most(), job.min_peer_keys.max(1))?;
        let charge = self.charge(ask, admitted, rows);
        let left = self.house.ledger(|ledger| rules::budget(ledger, job, source, &charge))?;
        let fitting =
            rules::fitting_keys(job, run, (own.count(), own.keys().rows_at_most()), most, left.rows)?;
        let base = tacit::ot::base_ot(job.base_ot(), run.security)?;
        let normalisation = source.key.normalisation;
        let is_payload = matches!(run.reveal, Reveal::Payload(_));
        Ok(Offer {
            version: terms::VERSION,
            run: self.run.clone(),
            service_name: self.policy.name.clone(),
            client_name: self.label.clone(),
            service_key: self.service_key(),
            job: ask.job.clone(),
            reveal: run.reveal.terms(),
            result: terms::result_name(run.learns).to_owned(),
            service_gives: run.give.clone(),
            service_bytes_a_key: (is_payload && !run.give.is_empty()).then_some(run.max_cell),
            client_gives: client_gives.clone(),
            client_bytes_a_key: (is_payload && !client_gives.is_empty()).then_some(run.max_cell),
            protocol: run.protocol.name().to_owned(),
            security: tacit::security_name(run.security).to_owned(),
            base_ot: base.name().to_owned(),
            key_columns: source.key.columns.len(),
            key_types: source.key.agreed_types(),
            nfc: normalisation.nfc,
            trim: normalisation.trim,
            case_fold: normalisation.case_fold,
            min_matches: run.min_matches,
            bounds: run.written_bounds(),
            result_to_owner: run.result_to_owner,
            service_keys,
            min_peer_keys: job.min_peer_keys,
            max_peer_keys: most,
            fitting_keys: fitting,
            publication: None,
            question: None,
            left,
            purpose: job.gate.purpose.clone(),
            agreement: job.gate.agreement.clone(),
            expires: job.gate.expires.as_ref().map(|(date, _)| date.clone()),
            seconds: self.policy.offer_seconds,
        })
    }

    /// Judges the size that was announced, and takes the memory for it.
    fn check(&self, admitted: &Admitted<'_>, own: &Own, accept: &Accept) -> std::result::Result<Place, No> {
        rules::size(admitted.job, accept.keys)?;
        self.is_whole(accept)?;
        let (all, one) = self.memory(admitted.job);
        let needed = admitted.run.memory(own.count(), accept.keys);
        let none = || {
            No::new(
                "memory",
                format!(
                    "the service has no memory for a run with {} of yours at the moment",
                    counted(accept.keys, "key")
                ),
            )
        };
        if needed > one {
            return Err(none());
        }
        self.house.slots.memory(needed, all).ok_or_else(none)
    }

    /// Whether an acceptance holds what it has to.
    fn is_whole(&self, accept: &Accept) -> std::result::Result<(), No> {
        let is_hash = |text: &str| from_hex::<32>(text).is_some();
        match is_hash(&accept.commitment) && is_hash(&accept.head) {
            true => Ok(()),
            false => {
                let what = "the acceptance makes no sense; run the same release on both sides";
                Err(No::new("version", what))
            }
        }
    }

    /// Charges the run, writes down that it begins, and makes it.
    fn grant(
        &mut self,
        session: &mut Session,
        ask: &Ask,
        admitted: &Admitted<'_>,
        ready: Ready,
        said: Said,
    ) -> std::result::Result<(), End> {
        let Ready { offer, accept, own, job, gift } = ready;
        let digest = own.digest().map_err(|error| rules::fault(&error))?;
        let rows = rules::rows_at_most(
            admitted.job,
            &admitted.run,
            own.count(),
            own.keys().rows_at_most(),
            accept.keys,
        )?;
        let charge_keys = accept.keys;
        let begin = Begin {
            offer: &offer,
            accept: &accept,
            digest,
            own_keys: own.count(),
            charge: self.charge(ask, admitted, rows),
            judge: &|ledger, found, charge| match found {
                Found::Intersection(job, source) if rules::is_as_offered(admitted, ask, job, source) => {
                    rules::size(job, charge_keys)?;
                    rules::budget(ledger, job, source, charge).map(|_| ())
                }
                _ => Err(rules::changed()),
            },
            agreement: &|said| offer.agreement(&job, said),
            words: format!(
                "{} of the client, {} of the service, at most {rows}",
                counted(accept.keys, "key"),
                own.count(),
                rows = counted(rows, "row")
            ),
        };
        let mut begun = self.begin(session, &begin, said)?;
        let part = Part {
            offer: &offer,
            job: &job,
            keys: own.keys(),
            gift: gift.borrowed(),
            peer_keys: accept.keys,
        };
        let played = within(|| self.play(session, admitted, &part, &own, &mut begun));
        self.conclude(begun, played)
    }

    /// Charges a run, writes down that it begins, and agrees on it; from then on the link may wait as long as
    /// a run may.
    fn begin(
        &mut self,
        session: &mut Session,
        begin: &Begin<'_>,
        mut said: Said,
    ) -> std::result::Result<Begun, End> {
        let Begin { offer, accept, .. } = begin;
        let (input_salt, result_salt) = (records::salt(), records::salt());
        let head = self.house.records.head();
        let head = head.map_err(|error| rules::unwritten(rules::UNRECORDED, &error))?;
        let (charge, clock) = self.charged(begin)?;
        let mut go = Go {
            keys: begin.own_keys,
            commitment: hex(&records::commitment("input", &input_salt, &begin.digest)),
            head: hex(&head),
            started: clock.0,
            proof: None,
            signature: String::new(),
        };
        let peer = self.key()?;
        let keys = [&self.house.identity.public(), &peer];
        let common = certified::prove(session, Side::Service, &self.run, keys[0]).and_then(|proof| {
            go.proof = proof;
            let mut common = terms::common_part(offer, accept, &go, keys)?;
            let proofs = [go.proof.as_ref(), accept.proof.as_ref()];
            certified::fill(&mut common, session, Side::Service, proofs)?;
            Ok(common)
        });
        let begun = common.and_then(|common| {
            let kept = serde_json::to_value(&charge).map_err(|e| Error::Other(format!("the charge: {e}")))?;
            Ok(self.house.records.begin_charged(common, None, [input_salt, result_salt], kept))
        });
        let mut begun = match begun {
            Ok(Ok(begun)) => begun,
            Ok(Err(error)) => {
                let no = rules::unwritten(rules::UNRECORDED, &error);
                return Err(match self.refund(error) {
                    Ok(_) => no.into(),
                    Err(second) => second,
                });
            }
            Err(error) => return Err(self.refund(error).map_or_else(|second| second, End::Failed)),
        };
        go.signature = begun.begun();
        let figures = Figures {
            client_keys: Some(accept.keys),
            service_keys: Some(begin.own_keys),
            most_rows: Some(charge.rows),
            ..Figures::default()
        };
        self.tell_with("granted", None, &*begin.words, figures);

        let began = wire::send(session.channel(), &Message::Go(go))
            .map(|bytes| said.add(&bytes))
            .and_then(|()| self.signed_by_peer(session, &mut begun, &peer))
            .and_then(|()| (begin.agreement)(&said))
            .and_then(|agreement| play::agree(session, &agreement));
        if let Err(error) = began {
            // Whatever comes of the record, the charge is taken back.
            let finished = begun.finish("not begun", &Value::Null, None);
            let end = self.refund(error).map_or_else(|second| second, End::Failed);
            finished?;
            self.recorded();
            return Err(end);
        }
        let read = Duration::from_secs(self.policy.run_seconds);
        for channel in session.channels() {
            channel.set_limits(Limits { read, ..channel.limits() });
            channel.end_within(Duration::from_secs(self.policy.whole_run_seconds));
        }
        Ok(begun)
    }

    /// Charges a run by the rules as they are now; the charge, and the time by the clock.
    fn charged(&self, begin: &Begin<'_>) -> std::result::Result<(Charge, Time), End> {
        let mut charge = begin.charge.clone();
        // While the peer thought, the hours may have come to an end, its key, or the rules that made the offer.
        self.house.know_sources(&self.house.policy())?;
        self.is_known(&self.house.policy())?;
        let clock = self.house.times().0;
        self.house.ledger(|ledger| {
            let policy = self.house.policy();
            charge.time = ledger.now(clock).0;
            self.open()?;
            let known = policy.peers.get(&self.label) == self.policy.peers.get(&self.label);
            let found = rules::find(&policy, &self.label, &begin.offer.job, clock)?;
            if !known {
                return Err(End::Refused(rules::changed()));
            }
            (begin.judge)(ledger, found, &charge)?;
            ledger.charge(charge.clone()).map_err(|error| rules::unwritten(rules::UNCHARGED, &error))?;
            Ok((charge, clock))
        })
    }

    /// The client signs the run before anything of the table is sent: what it asked for is proved, even if it
    /// leaves as soon as it has its result.
    fn signed_by_peer(&self, session: &mut Session, begun: &mut Begun, peer: &PublicKey) -> Result<()> {
        match wire::receive(session.channel(), wire::PROMPT)?.0 {
            Message::Signature(text) => begun.peer_began(peer, &text),
            _ => Err(wire::out_of_turn()),
        }
    }

    /// Writes the record of a run that ended, with a result or without one.
    fn conclude(&self, begun: Begun, played: Result<Fate>) -> std::result::Result<(), End> {
        match played {
            Ok(Fate { wall, stats, result, theirs, kept }) => {
                let day = self.charged_on();
                self.house.ledger(|ledger| ledger.settle(&self.run));
                // What is wrong here is no fault of the client's, which has signed or not.
                if let Err(error) = kept {
                    self.tell("not stored", None, format!("the service's own result: {error}"));
                }
                let result = result.unwrap_or(Value::Null);
                let outcome = match theirs {
                    Ok(theirs) => {
                        begun.finish("complete", &result, Some(theirs))?;
                        self.recorded();
                        "complete".to_owned()
                    }
                    Err(_) => {
                        let outcome = play::unsigned(Side::Service);
                        self.unsigned(begun, day, &outcome, &result)?;
                        outcome
                    }
                };
                let words = format!(
                    "{:.3} s, {} sent, {} received; {outcome}",
                    wall.as_secs_f64(),
                    counted(stats.bytes_sent, "byte"),
                    stats.bytes_received
                );
                let figures = Figures {
                    milliseconds: Some(wall.as_millis() as u64),
                    sent: Some(stats.bytes_sent),
                    received: Some(stats.bytes_received),
                    ..Figures::default()
                };
                self.tell_with("done", None, words, figures);
                Ok(())
            }
            Err(error) => {
                self.house.unsigned.add(&begun.common, self.charged_on());
                self.broke();
                begun.finish("broken off", &Value::Null, None)?;
                self.recorded();
                Err(error.into())
            }
        }
    }

    /// The day that this run is charged to.
    fn charged_on(&self) -> u64 {
        let charged = self.house.ledger(|ledger| ledger.charged(&self.run));
        charged.unwrap_or_else(|| self.house.times().1).day()
    }

    /// The run's record is on the disk.
    fn recorded(&self) {
        self.house.ledger(|ledger| ledger.recorded(&self.run));
    }

    /// Counts a run that broke off after the comparison began.
    fn broke(&self) {
        let counted = self.house.ledger(|ledger| ledger.broke(&self.run));
        let words = match counted {
            Ok(broken) => format!(
                "after the comparison began: the charge stays; so ended {broken} of this peer's runs on this source"
            ),
            Err(error) => {
                format!("after the comparison began: the charge stays, and is not counted: {error}")
            }
        };
        self.tell("broken off", None, words);
    }

    /// Takes the charge back after `error`, which it returns; or how the visit ends where that fails.
    fn refund(&self, error: Error) -> std::result::Result<Error, End> {
        self.house.ledger(|ledger| ledger.refund(&self.run))?;
        self.tell("refunded", None, "no data of the table had been sent");
        Ok(error)
    }

    /// The run itself, our result in its file, and the signatures, which may be missing in the end.
    fn play(
        &self,
        session: &mut Session,
        admitted: &Admitted<'_>,
        part: &Part<'_>,
        own: &Own,
        begun: &mut Begun,
    ) -> Result<Fate> {
        let Played { mut revealed, wall, stats } = play::run(session, part, &Phases::of(&self.run))?;
        let result = play::summary(part.keys, &mut revealed);
        let key = self.key().map_err(|no| Error::Other(no.told))?;
        let theirs = play::close(session, Side::Service, begun, result.as_ref(), &key);
        // How long this takes tells how much matched: only once the client sees nothing more, not even when the
        // session ends. Nor is it the client's fault if it fails.
        session.end();
        let kept = within(|| {
            let revealed = revealed.opened()?;
            match (&admitted.job.output, &result) {
                (Some(folder), Some(result)) => store(folder, &self.run, (part.job, own), &revealed, result),
                _ => Ok(()),
            }
        });
        Ok(Fate { wall, stats, result, theirs, kept })
    }
}

/// Makes a run, whose record is closed as one that broke off if the run panics.
fn within<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    fenced(run).unwrap_or_else(|panicked| Err(Error::Other(panicked.to_string())))
}

/// What a granted intersection has at hand.
struct Ready {
    offer: Offer,
    accept: Accept,
    own: Own,
    /// The run out of the offer: what was offered is what runs.
    job: psi::Job,
    gift: Owned,
}

/// A run that is about to be charged.
struct Begin<'a> {
    offer: &'a Offer,
    accept: &'a Accept,
    /// Of what we put in.
    digest: [u8; 32],
    /// How many keys that has.
    own_keys: u64,
    charge: Charge,
    /// Whether the job as the policy in force has it is the one that was offered, and its budgets allow the
    /// charge.
    judge: &'a Judge<'a>,
    agreement: &'a dyn Fn(&Said) -> Result<Agreement>,
    words: String,
}

type Judge<'a> = dyn Fn(&Ledger, Found<'_>, &Charge) -> std::result::Result<(), No> + 'a;

/// How a run went that came to its end.
struct Fate {
    wall: Duration,
    stats: Stats,
    /// Our result, if we got one.
    result: Option<Value>,
    /// The other side's signature.
    theirs: Result<String>,
    /// Whether our result is in its file, where it goes into one.
    kept: Result<()>,
}

fn read(admitted: &Admitted<'_>) -> Result<Own> {
    let Admitted { source: from, .. } = admitted;
    let source = Source::open_all_pinned(&from.inputs, from.key.clone(), from.options)?;
    let name = PathBuf::from(from.shown());
    let own = Own::read(source, &name, &admitted.run, |_| ())?;
    if admitted.job.output.is_some() && admitted.run.learns != psi::Learns::Peer {
        own.prove(Path::new(STORED))?;
    }
    Ok(own)
}

/// The name of a result that is a table, but for the run's.
const STORED: &str = "result.csv";

/// Our result as a file of its own: rows as a table like ours, a number as JSON.
fn store(
    folder: &Path,
    run: &str,
    (job, own): (&psi::Job, &Own),
    revealed: &Revealed,
    result: &Value,
) -> Result<()> {
    crate::file::private_folder(folder)?;
    let is_table = matches!(job.reveal, Reveal::Rows | Reveal::Payload(_));
    let target = folder.join(format!("{run}.{}", if is_table { "csv" } else { "json" }));
    let fault = |e| Error::file(&target, "cannot be written; is the disk full?", e);
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fault)?;
    if is_table {
        own.write(job, revealed, &target, &mut file)?;
    } else {
        let object = json!({ "run": run, "reveal": job.reveal.terms(), "result": result });
        writeln!(file, "{object}").map_err(fault)?;
    }
    file.as_file().sync_all().map_err(fault)?;
    file.persist_noclobber(&target).map_err(|e| fault(e.error))?;
    crate::file::sync_folder(&target)
}
