//! [`Session`]: who the peer is, how to reach it, and how much to trust it.

mod buckets;
mod eval;
mod tags;
mod transfers;

pub use transfers::{ReceivedCots, SentCots};

use crate::catalogue::{CIRCUIT, LINK};
use crate::job::psi::{self, Learns, Outcome};
use crate::job::{self, Ran, link, ot, pool, query};
use crate::ot::Own;
use crate::{Error, Result, security_name};
use std::io::{Seek, Write};
use std::path::Path;
use std::time::Instant;
use tacit_crypto::{BitVec, workers};
use tacit_net::{
    Agreement, Cancel, Channel, Identity, Limits, LinkModel, Observer, Options, Protection, Proxy,
    PublicKeys, Stats, Tls,
};
use tacit_ot::{BaseOt, Security};
use tacit_store::pool::{Header, PoolKey};

#[derive(Clone, Debug)]
enum Endpoint {
    Listen(String),
    Connect(String),
    /// At a relay, whichever side listens there.
    Meet(String),
    /// A service that waits at a relay.
    Call(String),
}

/// How to reach the peer and what to hold against it. Every job opens a connection of its own, on which both
/// parties first check that they agree on the job and all its parameters.
#[derive(Clone, Debug)]
pub struct Session {
    endpoint: Endpoint,
    protection: Option<Protection>,
    security: Security,
    base_ot: Option<String>,
    post_quantum: bool,
    threads: Option<usize>,
    link: LinkModel,
    limits: Limits,
    observer: Observer,
    cancel: Cancel,
    proxy: Option<Proxy>,
}

impl Session {
    /// The side that waits for the peer at `address`, such as `0.0.0.0:7700`.
    pub fn listen(address: &str) -> Self {
        Self::new(Endpoint::Listen(address.to_owned()))
    }

    /// The side that connects to `address`; it keeps trying until the connect deadline.
    pub fn connect(address: &str) -> Self {
        Self::new(Endpoint::Connect(address.to_owned()))
    }

    /// The side that meets the peer at the relay `address`, where both sides call: for two that cannot reach each
    /// other. Both must have keys; see [`tacit_net::meeting`].
    pub fn meet(address: &str) -> Self {
        Self::new(Endpoint::Meet(address.to_owned()))
    }

    /// The side that calls a service which waits at the relay `address`.
    pub fn call(address: &str) -> Self {
        Self::new(Endpoint::Call(address.to_owned()))
    }

    fn new(endpoint: Endpoint) -> Self {
        Session {
            endpoint,
            protection: None,
            security: Security::Malicious,
            base_ot: None,
            post_quantum: false,
            threads: None,
            link: LinkModel::LOOPBACK,
            limits: Limits::default(),
            observer: Observer::default(),
            cancel: Cancel::default(),
            proxy: None,
        }
    }

    /// Authenticates both sides with TLS 1.3: our private key file, and the public key file that the peer
    /// gave us. Where that names a [successor](tacit_net::succession), the peer may prove that key, or for as
    /// long as they overlap the one before. The first successor that was seen is remembered next to the identity,
    /// in a file that ends in `.successions`, and another one refused.
    pub fn keys(mut self, identity: &Path, peer: &Path) -> Result<Self> {
        let memory = tacit_net::succession::memory_of(identity);
        let (file, identity, peer) = (peer, Identity::load(identity)?, PublicKeys::load(peer)?);
        if peer.accepted_keys().contains(&identity.public()) {
            return Err(Error::Input(format!(
                "{}: this is your own public key; give the file that the peer has sent you",
                tacit_crypto::text::shown(&file.to_string_lossy())
            )));
        }
        peer.remember(&memory)?;
        let tls = match peer.words() {
            None => Tls::pinned(&identity, peer.first())?,
            Some(_) => Tls::one_of(&identity, peer.accepted())?,
        };
        self.protection = Some(Protection::Tls(tls));
        Ok(self)
    }

    /// Authenticates both sides with TLS 1.3 and certificates: of the PEM files, `authorities` holds those
    /// that we trust, `chain` our own certificate chain and `key` its private key; the peer must prove the
    /// name `peer`.
    pub fn certificates(mut self, authorities: &Path, chain: &Path, key: &Path, peer: &str) -> Result<Self> {
        self.protection = Some(Protection::Tls(Tls::authority(authorities, chain, key, peer)?));
        Ok(self)
    }

    /// No TLS at all: anybody on the way can read and change everything. Refused for an address beyond this
    /// machine; a name that is not found is looked up again until the connect deadline of the
    /// [`limits`](Self::limits) set before.
    pub fn plaintext(self) -> Result<Self> {
        let (Endpoint::Listen(address) | Endpoint::Connect(address)) = &self.endpoint else {
            let what = "a relay may be another organisation's machine; give both sides' keys".to_owned();
            return Err(Error::Parameter { name: "insecure-plaintext", what });
        };
        if !tacit_net::is_loopback(address, self.limits.connect)? {
            let what = format!("{address} is beyond this machine, where anyone may read and change the data");
            return Err(Error::Parameter { name: "insecure-plaintext", what });
        }
        Ok(self.plaintext_anywhere())
    }

    /// As [`plaintext`](Self::plaintext), for any address. The caller answers for it.
    pub fn plaintext_anywhere(mut self) -> Self {
        self.protection = Some(Protection::Plaintext);
        self
    }

    /// Against what to protect; malicious unless said otherwise. Both sides must say the same.
    pub fn security(mut self, security: Security) -> Self {
        self.security = security;
        self
    }

    /// The base OT by its short name; the default one unless said otherwise. Both sides must say the same.
    pub fn base_ot(mut self, name: &str) -> Self {
        self.base_ot = Some(name.to_owned());
        self
    }

    /// Takes ROTed for base OT, and refuses what falls to a quantum computer.
    pub fn post_quantum(mut self) -> Self {
        self.post_quantum = true;
        self
    }

    /// Refuses the protocol called `name` if the session is to be post-quantum and the protocol is not.
    pub fn allow(&self, name: &str) -> Result<()> {
        if self.post_quantum { crate::catalogue::require_post_quantum(name) } else { Ok(()) }
    }

    /// Computing threads, each with a connection of its own; 1 unless said otherwise. Both sides must say the
    /// same, but for an intersection without buckets: it has one connection, and each side computes it on as
    /// many threads as it likes, on all cores unless said otherwise.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Emulates a slower link. Both sides must say the same.
    pub fn link(mut self, link: LinkModel) -> Self {
        self.link = link;
        self
    }

    /// Deadlines and bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whom to tell while this side waits for the other: nobody unless said otherwise.
    pub fn observer(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// What ends the session's jobs from another thread: nothing unless said otherwise. A job that was ended
    /// returns [`tacit_net::Error::Cancelled`].
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// The HTTP proxy, as `HOST:PORT` or `http://USER:PASSWORD@HOST:PORT`, that a side which connects asks for a
    /// tunnel to the peer or the relay: none unless said otherwise.
    pub fn proxy(mut self, address: &str) -> Self {
        self.proxy = Some(Proxy::new(address));
        self
    }

    /// As [`proxy`](Self::proxy), if the environment names one for this session's peer or relay: see
    /// [`Proxy::from_environment`].
    pub fn proxy_from_environment(mut self) -> Self {
        self.proxy = match &self.endpoint {
            Endpoint::Listen(_) => None,
            Endpoint::Connect(address) | Endpoint::Meet(address) | Endpoint::Call(address) => {
                Proxy::from_environment(address)
            }
        };
        self
    }

    /// The OT extension and its parameters for `count` OTs of `kind`: the fastest that gives the session's
    /// security and fits `choice`, as [`plan`](crate::plan) has it.
    ///
    /// Both sides must call it with the same values. Where the link decides, it is measured over a connection
    /// of its own.
    pub fn choose_ot(
        &self,
        kind: crate::ot::Kind,
        count: u64,
        choice: crate::plan::Choice<'_>,
    ) -> Result<crate::plan::Pick> {
        let (security, threads) = (self.security, self.asked_threads());
        let request = crate::plan::Request { count, kind, security, threads, choice };
        crate::plan::agree(&request, |settle| {
            let agreement = Agreement::new("plan", "party", "party")
                .with("kind", kind.name())
                .with("count", count)
                .with("protocol", choice.protocol.unwrap_or("auto"))
                .with("set", choice.set.unwrap_or("any"))
                .with("code", choice.code.unwrap_or("any"));
            self.run(agreement, |opened| settle(opened.channel()))
        })
    }

    /// The security asked for.
    pub fn asked_security(&self) -> Security {
        self.security
    }

    /// The threads asked for, 1 if none were.
    pub fn asked_threads(&self) -> usize {
        self.threads.unwrap_or(1)
    }

    /// The base OT asked for, checked against the security.
    pub fn base(&self) -> Result<Box<dyn BaseOt + Send + Sync>> {
        crate::ot::base_ot_among(self.base_ot.as_deref(), self.post_quantum, self.security)
    }

    /// Intersects our `elements` (byte strings, each once) with the peer's.
    ///
    /// The peer learns how many there are, and with [`Learns::Peer`] or [`Learns::Both`] which of its own are
    /// among them. Both sides' security and base OT must be equal, and `learns` must fit.
    pub fn intersect<E: AsRef<[u8]> + Sync>(&self, elements: &[E], learns: Learns) -> Result<Outcome> {
        let job = psi::Job::new(learns, self.security);
        Ok(self.run_psi(&job, elements, psi::MAX_ELEMENTS as u64, &())?.result)
    }

    /// Runs `job` with our `elements`; the peer may have `most_peer_keys`.
    pub fn run_psi<E: AsRef<[u8]> + Sync>(
        &self,
        job: &psi::Job,
        elements: &[E],
        most_peer_keys: u64,
        observer: &dyn job::Observer,
    ) -> Result<Ran<Outcome>> {
        let base = self.allow_psi(job)?;
        self.computing(|session| {
            session.timed(job.agreement(&*base), |opened| {
                job.run(opened.channels(), &*base, elements, most_peer_keys, observer)
            })
        })
    }

    /// As [`run_psi`](Self::run_psi) for every kind of result, with what we give: see [`psi::Job::run_with`].
    pub fn run_psi_with<E: AsRef<[u8]> + Sync>(
        &self,
        job: &psi::Job,
        elements: &[E],
        gift: psi::Gift<'_>,
        most_peer_keys: u64,
        observer: &dyn job::Observer,
    ) -> Result<Ran<psi::Revealed>> {
        let base = self.allow_psi(job)?;
        job.check_keys(elements.len() as u64)?;
        let ran = self.computing(|session| {
            session.timed(job.agreement(&*base), |opened| {
                job.run_with(opened.channels(), &*base, elements, gift, most_peer_keys, observer)
            })
        })?;
        // The session has ended: the peer sees nothing any more of how long this takes.
        Ok(Ran { result: ran.result.opened()?, wall: ran.wall, stats: ran.stats })
    }

    /// Shares the intersection, and opens what `then` makes of it: see [`psi::Job::run_shared`]. Returns the
    /// outputs if we get them, and the peer's distinct keys.
    pub fn run_shared<E: AsRef<[u8]> + Sync>(
        &self,
        job: &psi::Job,
        elements: &[E],
        numbers: Option<&[i64]>,
        then: &psi::Then<'_>,
    ) -> Result<(Option<Vec<BitVec>>, u64)> {
        let base = self.allow_psi(job)?;
        let run = |opened: &mut tacit_net::Session| {
            job.run_shared(opened.channels(), &*base, elements, numbers, then, &())
        };
        Ok(self.computing(|session| session.run(job.agreement(&*base), run))?.0)
    }

    /// Asks a question of our `elements` and `rows` and the peer's: see [`query::Job::run`].
    ///
    /// Secure only against a peer that follows the protocol; a session that asks for more refuses it.
    pub fn run_query<E: AsRef<[u8]> + Sync>(
        &self,
        job: &query::Job,
        elements: &[E],
        rows: &query::Rows,
        most_peer_keys: u64,
        observer: &dyn job::Observer,
    ) -> Result<Ran<query::Answer>> {
        job.check()?;
        self.allow(CIRCUIT.name)?;
        self.allow_level(Security::SemiHonest)?;
        let base = self.base()?;
        self.computing(|session| {
            session.timed(job.agreement(&*base), |opened| {
                job.run(opened.channels(), &*base, elements, rows, most_peer_keys, observer)
            })
        })
    }

    /// Gives each of our `elements` (byte strings, each once) a random identifier, which it also has on the peer's side
    /// if it is there: see [`link::Job`]. The peer may have `most_peer_keys`.
    pub fn run_link<E: AsRef<[u8]> + Sync>(
        &self,
        job: &link::Job,
        elements: &[E],
        most_peer_keys: u64,
        observer: &dyn job::Observer,
    ) -> Result<Ran<link::Linked>> {
        job.check()?;
        self.allow(LINK.name)?;
        self.allow_level(job.security)?;
        let base = self.base()?;
        self.computing(|session| {
            session.timed(job.agreement(&*base), |opened| {
                job.run(opened.channels(), &*base, elements, most_peer_keys, observer)
            })
        })
    }

    /// Does `work` with one connection and on the threads asked for, where each side has its own number of them.
    fn computing<T>(&self, work: impl FnOnce(&Session) -> T) -> T {
        let session = Session { threads: None, ..self.clone() };
        match self.threads {
            Some(threads) => workers::limited(threads, || work(&session)),
            None => work(&session),
        }
    }

    fn allow_psi(&self, job: &psi::Job) -> Result<Box<dyn BaseOt + Send + Sync>> {
        job.check()?;
        // The peer refuses for itself what it cannot do, and this side would wait for it.
        match self.endpoint {
            Endpoint::Listen(_) => job.check_peer(true)?,
            Endpoint::Connect(_) => job.check_peer(false)?,
            Endpoint::Meet(_) | Endpoint::Call(_) => {}
        }
        for protocol in job.protocol.candidates() {
            self.allow(protocol)?;
        }
        self.allow_level(job.security)?;
        self.base()
    }

    /// Runs `job`, out of `source`, and hands what it makes to `sink`.
    pub fn run_ot(
        &self,
        job: &ot::Job,
        source: ot::Source<'_>,
        sink: &mut dyn ot::Sink,
        observer: &dyn job::Observer,
    ) -> Result<Ran<()>> {
        self.run_own_ot(job, source, &Own::Drawn, sink, observer)
    }

    /// As [`run_ot`](Self::run_ot), on messages or choices of one's own.
    ///
    /// Errors that come before the peer is called: they are the other role's, not as many as the job has
    /// OTs, or the job is not of kind [`Ot`](crate::ot::Kind::Ot).
    pub fn run_own_ot(
        &self,
        job: &ot::Job,
        source: ot::Source<'_>,
        own: &Own,
        sink: &mut dyn ot::Sink,
        observer: &dyn job::Observer,
    ) -> Result<Ran<()>> {
        own.fits(&job.transfers, job.role == ot::Role::Sender)?;
        self.allow_level(job.security)?;
        let base = self.base()?;
        self.timed(job.agreement(&*base), |opened| {
            job.run(opened.channels(), &*base, source, own, sink, observer)
        })
    }

    /// Makes the correlations of `job`, or its 1-out-of-p transfers, and hands them to `sink`.
    pub fn run_vole(
        &self,
        job: &job::vole::Job,
        sink: &mut dyn job::vole::Sink,
        observer: &dyn job::Observer,
    ) -> Result<Ran<()>> {
        job.check()?;
        self.allow_level(job.security)?;
        let base = self.base()?;
        self.timed(job.agreement(&*base), |opened| job.run(opened.channels(), &*base, sink, observer))
    }

    /// Makes our half of the pool, sealed with `key`, and writes it to `out`: an empty file that the caller
    /// gives its name only after success.
    pub fn make_pool(
        &self,
        job: &pool::Job<'_>,
        key: &PoolKey,
        out: &mut (impl Write + Seek),
        observer: &dyn job::Observer,
    ) -> Result<Ran<Header>> {
        self.allow(job.pick.protocol.name)?;
        self.allow_level(job.pick.protocol.security)?;
        let base = self.base()?;
        self.timed(job.agreement(&*base), |opened| job.run(opened.channels(), &*base, key, out, observer))
    }

    /// Refuses a job that protects less than the session promises.
    pub(crate) fn allow_level(&self, security: Security) -> Result<()> {
        if self.security == Security::Malicious && security == Security::SemiHonest {
            let what = "the session is against a malicious peer, the job against a semi-honest one only";
            return Err(Error::Parameter { name: "security", what: what.into() });
        }
        Ok(())
    }

    /// [`run`](Self::run), with the time that the job took.
    fn timed<T>(
        &self,
        agreement: Agreement,
        job: impl FnOnce(&mut tacit_net::Session) -> Result<T>,
    ) -> Result<Ran<T>> {
        let ((result, wall), stats) = self.run(agreement, |opened| {
            let start = Instant::now();
            Ok((job(opened)?, start.elapsed()))
        })?;
        Ok(Ran { result, wall, stats })
    }

    /// Opens a connection for the job that `agreement` names, runs it, and tells what passed.
    ///
    /// Without TLS the two sides compare at the end what they sent and what arrived, so that a connection
    /// that damages data ends in an error too.
    pub fn run<T>(
        &self,
        agreement: Agreement,
        job: impl FnOnce(&mut tacit_net::Session) -> Result<T>,
    ) -> Result<(T, Stats)> {
        self.run_to_the_end(agreement, job).map_err(|error| self.ended(error))
    }

    /// `error`, or that the session was cancelled where it was.
    fn ended(&self, error: Error) -> Error {
        if self.cancel.is_cancelled() { tacit_net::Error::Cancelled.into() } else { error }
    }

    /// Tells the peer why the session `opened` ends, as far as it may know.
    fn stopped(&self, opened: &mut tacit_net::Session, error: Error) -> Error {
        let error = self.ended(error);
        error.tell(opened);
        error
    }

    fn run_to_the_end<T>(
        &self,
        agreement: Agreement,
        job: impl FnOnce(&mut tacit_net::Session) -> Result<T>,
    ) -> Result<(T, Stats)> {
        let mut opened = self.open(agreement)?;
        if opened.tls().is_none() {
            opened.channels().iter_mut().for_each(Channel::audit);
        }
        let ran = job(&mut opened).and_then(|result| {
            opened.channels().iter_mut().try_for_each(Channel::confirm)?;
            Ok(result)
        });
        match ran {
            Ok(result) => Ok((result, opened.stats())),
            Err(error) => Err(self.stopped(&mut opened, error)),
        }
    }

    /// Opens a connection for a job: `agreement` names it and its parameters, to which the security is added.
    pub fn open(&self, agreement: Agreement) -> Result<tacit_net::Session> {
        let options = self.options(agreement.with("security", security_name(self.security)))?;
        let opened = match &self.endpoint {
            Endpoint::Listen(address) => tacit_net::listen(address, &options),
            Endpoint::Connect(address) => tacit_net::connect(address, &options),
            Endpoint::Meet(_) => tacit_net::meet(&options),
            Endpoint::Call(_) => tacit_net::call(&options),
        };
        Ok(opened.map_err(|error| match error {
            tacit_net::Error::Mismatch { differences } => {
                tacit_net::Error::Mismatch { differences: psi::causes(differences) }
            }
            other => other,
        })?)
    }

    fn options(&self, agreement: Agreement) -> Result<Options> {
        let protection = self.protection.clone().ok_or_else(|| {
            Error::Usage("the session has no keys: give both sides' keys, or ask for plaintext".into())
        })?;
        let mut options = Options::new(agreement, protection);
        options.limits = self.limits;
        options.channels = self.asked_threads();
        options.link = self.link;
        options.observer = self.observer.clone();
        options.cancel = self.cancel.clone();
        options.proxy = self.proxy.clone();
        options.via = match &self.endpoint {
            Endpoint::Meet(address) | Endpoint::Call(address) => Some(address.clone()),
            Endpoint::Listen(_) | Endpoint::Connect(_) => None,
        };
        Ok(options)
    }

    /// What a gateway opens its many sessions by: where it listens, or whom it calls.
    pub(crate) fn gateway(&self, agreement: Agreement) -> Result<(Option<String>, Option<String>, Options)> {
        if matches!(self.protection, Some(Protection::Plaintext)) {
            return Err(Error::Usage("gateways use only TLS; give both sides' keys".into()));
        }
        if self.asked_threads() != 1 {
            let what = "a gateway has a connection for each bucket that runs".into();
            return Err(Error::Parameter { name: "threads", what });
        }
        let options = self.options(agreement)?;
        Ok(match &self.endpoint {
            Endpoint::Listen(address) => (Some(address.clone()), None, options),
            Endpoint::Connect(address) => (None, Some(address.clone()), options),
            Endpoint::Meet(_) | Endpoint::Call(_) => {
                let what =
                    "gateways do not meet at a relay: one of them must be reached, by a port or a tunnel";
                return Err(Error::Parameter { name: "via", what: what.into() });
            }
        })
    }
}
