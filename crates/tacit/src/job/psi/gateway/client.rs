//! What a party's cluster calls: the driver opens a job, tasks throw keys into buckets and run them.

use super::super::buckets::table::{Digests, Element, bucket, pad, real, thrower};
use super::super::buckets::{Bucketed, MAX_BUCKETS, OVERFLOW_BITS, capacity::capacity, in_all, runs_log2};
use super::super::reveal::side;
use super::super::{Gift, Job, Learns, MAX_ELEMENTS, Outcome, Protocol, Reveal};
use super::given::{self, Gathered, Given, Ran};
use super::words::{Reader, Reply, Request, Terms, Token, Writer, ask, unknown_token};
use crate::{Blame, Error, Result, Security, security_name};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use tacit_crypto::aes::Aes128;
use tacit_crypto::text::counted;
use tacit_crypto::{Prg, workers};
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Limits, OneSided, Party, PublicKey, SessionId};
use tacit_ot::BaseOt;
use tacit_psi::paxos;
use tacit_psi::vole_psi::{self, payload};
use zeroize::Zeroizing;

/// Between two attempts to reach the gateway.
const AGAIN: Duration = Duration::from_millis(200);
/// What a reply may take beyond the patience that the gateway was told.
const BEYOND: Duration = Duration::from_secs(60);
/// For the gateway to say who it is.
const REACHING: Duration = Duration::from_secs(10);

/// A job that both drivers have opened: all that a task needs to run a bucket of it. Holds the job's token.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The job's name.
    pub label: String,
    /// Our distinct keys.
    pub own: u64,
    /// The peer's, as announced.
    pub peer: u64,
    /// How many buckets there are.
    pub buckets: u64,
    learns: Learns,
    security: Security,
    /// The columns of the peer's that we ask for, and those that we give.
    asked: Vec<String>,
    given: Given,
    /// The most bytes of the peer's columns for each of its keys, and of all that one bucket's matches take.
    bounds: [u64; 2],
    base: String,
    patience: Duration,
    name: [u8; 32],
    key: [u8; 32],
    party: Party,
    token: Token,
    /// Who our gateway is.
    gateway: PublicKey,
}

/// How keys become what stands for them, and go into buckets.
pub struct Throw {
    digests: Digests,
    to: Option<(Aes128, u64)>,
}

impl Throw {
    /// For keys before a job is opened: of use for [`digest`](Self::digest) alone.
    pub fn ahead() -> Self {
        Throw { digests: Digests::new(), to: None }
    }

    /// What stands for a key: 32 bytes, the same in every job.
    pub fn digest(&self, key: &[u8]) -> [u8; 32] {
        self.digests.of(key)
    }

    /// The bucket that a key goes into by what stands for it; 0 before a job is opened.
    pub fn bucket(&self, digest: &[u8; 32]) -> u64 {
        self.to.as_ref().map_or(0, |(permutation, buckets)| bucket(permutation, digest, *buckets))
    }
}

impl Job {
    /// An error where the job cannot run by gateways.
    pub fn check_by_gateways(&self) -> Result<()> {
        if !matches!(self.reveal, Reveal::Rows | Reveal::Payload(_)) {
            let what = "gateways do not compute a number over all common keys, because the number of each bucket would be revealed; reveal rows, or run psi on one machine";
            return Err(Error::Parameter { name: "reveal", what: what.to_owned() });
        }
        if self.protocol == Protocol::Paxos {
            let what = "buckets run by vole, not by paxos".to_owned();
            return Err(Error::Parameter { name: "protocol", what });
        }
        self.check()
    }
}

impl Planned {
    /// Opens the job `label` at the gateway that tasks find at `address`, for `own` distinct keys in at least
    /// so many buckets, a power of two; waits for the peer's driver for `patience`. `token` is the gateway's,
    /// and `given` says how the columns that the job gives are laid out.
    ///
    /// A job that was opened before goes on. Errors: terms that differ from the peer's, a job of that name
    /// that is another one or has ended for good, a peer that has more than the job's `most_peer_keys`, and one
    /// that does not come.
    pub fn open(
        address: &str,
        token: &Token,
        label: &str,
        job: &Job,
        base: &dyn BaseOt,
        (own, buckets): (u64, u64),
        given: Given,
        patience: Duration,
    ) -> Result<Self> {
        job.check_by_gateways()?;
        given.check(&job.give)?;
        let job = Job { protocol: Protocol::Vole, ..job.clone() };
        let agreement = job
            .agreement(base)
            .with("sets", "in buckets, by gateways")
            .with("security", security_name(job.security));
        let peer_role = match job.learns {
            Learns::Me => "result peer",
            Learns::Peer => "result me",
            Learns::Both => "result both",
        };
        let pair = |(name, value): (&String, &String)| (name.clone(), value.clone());
        let terms = Terms {
            protocol: agreement.protocol().to_owned(),
            role: agreement.role().to_owned(),
            peer_role: peer_role.to_owned(),
            parameters: agreement.parameters().iter().map(pair).collect(),
            own,
            buckets,
            patience: patience.as_secs().max(1),
            most_peer: job.most_peer_keys.unwrap_or(u64::MAX),
        };
        let request = Request::Open { label: label.to_owned(), terms };
        let start = Instant::now();
        let gateway = token.identity()?.public();
        let reply = loop {
            let asked = call(address, gateway)
                .and_then(|mut way| ask(&mut way, token, &request, &[], patience + BEYOND));
            match asked {
                Err(error) if is_absence(&error) && start.elapsed() < patience => std::thread::sleep(AGAIN),
                asked => break asked?,
            }
        };
        let Reply::Plan { name, key, own, peer, buckets, first } = reply else { return Err(odd()) };
        Ok(Planned {
            label: label.to_owned(),
            own,
            peer,
            buckets,
            learns: job.learns,
            security: job.security,
            asked: match &job.reveal {
                Reveal::Payload(asked) => asked.clone(),
                _ => Vec::new(),
            },
            given,
            bounds: [job.max_cell, job.row_memory],
            base: base.name().to_owned(),
            patience,
            name,
            key,
            party: if first { Party::First } else { Party::Second },
            token: token.of_job(label),
            gateway,
        })
    }

    /// The plan for the tasks. It holds the job's token: who has it can run buckets of this job at this
    /// party's gateway, and nothing else.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Writer::default();
        out.text(&self.label);
        out.text(&self.base);
        for number in [self.own, self.peer, self.buckets, self.patience.as_secs()] {
            out.number(number);
        }
        out.number(match self.learns {
            Learns::Me => 0,
            Learns::Peer => 1,
            Learns::Both => 2,
        });
        out.number(u64::from(self.security == Security::Malicious));
        out.number(u64::from(self.party == Party::First));
        for bytes in [&self.name, &self.key, &*self.token.0, &self.gateway.to_bytes()] {
            out.bytes(bytes);
        }
        out.texts(&self.asked);
        self.bounds.iter().for_each(|bound| out.number(*bound));
        self.given.write(&mut out);
        out.0
    }

    /// As [`to_bytes`](Self::to_bytes) made it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader(bytes);
        let planned = Planned {
            label: from.text()?,
            base: from.text()?,
            own: from.number()?,
            peer: from.number()?,
            buckets: from.number()?,
            patience: Duration::from_secs(from.number()?),
            learns: match from.number()? {
                0 => Learns::Me,
                1 => Learns::Peer,
                _ => Learns::Both,
            },
            security: if from.number()? == 1 { Security::Malicious } else { Security::SemiHonest },
            party: if from.number()? == 1 { Party::First } else { Party::Second },
            name: from.array()?,
            key: from.array()?,
            token: Token(Zeroizing::new(from.array()?)),
            gateway: PublicKey::from_bytes(from.array()?),
            asked: from.texts()?,
            bounds: [from.number()?, from.number()?],
            given: Given::read(&mut from)?,
        };
        let fits = |places: u64| places <= MAX_ELEMENTS as u64;
        match (1..=MAX_BUCKETS).contains(&planned.buckets) && planned.places().into_iter().all(fits) {
            true => Ok(planned),
            false => Err(Error::Input("the plan has sizes that no job has".to_owned())),
        }
    }

    /// How keys go into this job's buckets.
    pub fn throw(&self) -> Throw {
        Throw { digests: Digests::new(), to: Some((thrower(&self.key), self.buckets)) }
    }

    /// Places in each bucket, ours and the peer's.
    pub fn places(&self) -> [u64; 2] {
        [self.own, self.peer].map(|count| capacity(count, self.buckets, OVERFLOW_BITS))
    }

    /// Which buckets have not ended yet.
    pub fn left(&self, address: &str) -> Result<Vec<u64>> {
        let (_, ended, _) = self.status(address)?;
        Ok((0..).zip(ended).filter(|(_, ended)| *ended == 0).map(|(number, _)| number).collect())
    }

    fn status(&self, address: &str) -> Result<(Vec<u8>, Vec<u8>, bool)> {
        match self.ask(address, &Request::Status { label: self.label.clone() }, &[], self.patience)? {
            Reply::Status { begun, ended, received } => Ok((begun, ended, received)),
            _ => Err(odd()),
        }
    }

    /// What the run came to, once all buckets have ended; `common` is how many of our keys the peer has.
    pub fn ran(&self, address: &str, common: u64) -> Result<Bucketed> {
        let (begun, _, received) = self.status(address)?;
        let places = self.places();
        let outcome = Outcome {
            matches: None,
            peer_elements: places[1],
            peer_received: received,
            protocol: vole_psi::NAME,
        };
        let begun: u64 = begun.iter().map(|begun| u64::from(*begun)).sum();
        let job = Job { protocol: Protocol::Vole, ..Job::new(self.learns, self.security) };
        let tested = job.tested(&outcome, places[0])?.filter(|_| begun > 0);
        let tested = tested.map(|one| in_all(one, &outcome, places[0], self.buckets, begun)).transpose()?;
        Ok(Bucketed {
            matches: None,
            common: (self.learns != Learns::Peer).then_some(common),
            own: self.own,
            peer: self.peer,
            buckets: self.buckets,
            repeated: begun.saturating_sub(self.buckets),
            confirmed: true,
            places,
            tested,
        })
    }

    /// What the other side learned of us, in words.
    pub fn has_learned(&self, ran: &Bucketed) -> String {
        let reveal = if self.has_columns() { Reveal::Payload(self.asked.clone()) } else { Reveal::Rows };
        Job { protocol: Protocol::Vole, reveal, ..Job::new(self.learns, self.security) }
            .has_learned_in_buckets(ran)
    }

    /// Whether either side gives columns.
    fn has_columns(&self) -> bool {
        !self.asked.is_empty() || !self.given.is_empty()
    }

    /// Runs bucket `number`, whose keys these `digests` stand for, through the gateway at `address`: the
    /// peer's gateway has a task with the same bucket, or will have. Where columns are given, `digests` has
    /// one for each row, and `cell` a row's cell of a column of those that were named.
    ///
    /// A way that is lost, and a gateway that is started again, are waited for as long as the patience says;
    /// an attempt that came to nothing is made again. Errors: keys of another bucket or more than it has room
    /// for, rows that the job's layout has no room for, what a gateway refuses, and a check that fails, which
    /// ends the job on both sides.
    pub fn run<'c>(
        &self,
        address: &str,
        number: u64,
        digests: Zeroizing<Vec<[u8; 32]>>,
        cell: &dyn Fn(usize, usize) -> Option<&'c [u8]>,
    ) -> Result<Ran> {
        let throw = self.throw();
        if digests.iter().any(|digest| throw.bucket(digest) != number) {
            return Err(Error::Usage(format!("a key was given for bucket {number} that belongs to another")));
        }
        let gathered = self.given.gather(digests, cell)?;
        if gathered.digests.len() as u64 > self.places()[0] {
            let what = "a bucket overflowed, which happens once in 2^40 runs; run again under another name";
            return Err(Error::Other(what.into()));
        }
        let request = Request::Bucket {
            label: self.label.clone(),
            run: self.name,
            number: u32::try_from(number).unwrap_or(u32::MAX),
            digest: gathered.commitment(&self.name, number),
            patience: self.patience.as_secs(),
        };
        let base = crate::ot::base_ot(Some(&self.base), self.security)?;
        let mut lost = Instant::now();
        loop {
            match self.attempt(address, &request, &gathered, &*base) {
                Ok(Some(Reply::Ended { result })) => {
                    let columns = (!self.asked.is_empty()).then_some(self.asked.len());
                    return given::decode(&gathered.digests, self.places()[0], columns, &result);
                }
                Ok(Some(Reply::Deferred)) => return Ok(Ran::Deferred),
                Ok(Some(_)) => return Err(odd()),
                Ok(None) => lost = Instant::now(),
                Err(error) if is_absence(&error) && lost.elapsed() < self.patience => {
                    std::thread::sleep(AGAIN)
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// One attempt; nothing if it came to nothing.
    fn attempt(
        &self,
        address: &str,
        request: &Request,
        gathered: &Gathered,
        base: &(dyn BaseOt + Send + Sync),
    ) -> Result<Option<Reply>> {
        let Request::Bucket { number, .. } = *request else { return Err(odd()) };
        let mut channel = call(address, self.gateway)?;
        let (attempt, session) = match ask(&mut channel, &self.token, request, &[], self.patience + BEYOND)? {
            Reply::Go { attempt, session } => (attempt, session),
            reply => return Ok(Some(reply)),
        };
        let (link, come) = channel.into_link()?;
        let limits = Limits { idle: self.patience.max(REACHING), ..Limits::default() };
        let mut channel = Channel::go_on(link, &come, self.party, SessionId(session), limits);
        // An engine gives a task one core, and runs as many tasks as it has.
        let ran = workers::limited(1, || self.intersect(&mut channel, gathered, base));
        let (result, received) = match ran {
            Ok(outcome) => outcome,
            Err(error) if error.is_lost_link() => {
                // The gateway says why, if there is more to it than a lost way.
                std::thread::sleep(AGAIN);
                return Ok(None);
            }
            Err(error) => {
                if error.blame() == Blame::Peer {
                    let request = Request::Cheated { label: self.label.clone(), run: self.name };
                    // What was seen is told here in any case.
                    let _ = self.ask(address, &request, &[], REACHING);
                }
                return Err(error);
            }
        };
        let request = Request::Result {
            label: self.label.clone(),
            run: self.name,
            number,
            attempt,
            received,
            length: result.len() as u64,
            hash: *blake3::hash(&result).as_bytes(),
        };
        // The way to the peer's task stays until both sides have what they need.
        let reply = self.ask(address, &request, &result, self.patience + BEYOND);
        drop(channel);
        match reply {
            Ok(Reply::Again) => Ok(None),
            reply => reply.map(Some),
        }
    }

    /// The protocol for one bucket: what [`given::decode`] reads, and whether the peer gets a result.
    fn intersect(
        &self,
        channel: &mut Channel,
        gathered: &Gathered,
        base: &(dyn BaseOt + Send + Sync),
    ) -> Result<(Zeroizing<Vec<u8>>, bool)> {
        let (mut prg, places) = (Prg::from_os(), self.places());
        let mut elements: Zeroizing<Vec<Element>> = Zeroizing::new(Vec::with_capacity(places[0] as usize));
        elements.extend(gathered.digests.iter().map(real));
        pad(&mut elements, places[0], self.party, &mut prg);
        let options = paxos::Options {
            learns: self.learns,
            security: self.security,
            min_peer_elements: 0,
            max_peer_elements: places[1],
            base,
        };
        let (runs, quiet) = (runs_log2(self.buckets), &mut |_, _, _| {});
        let (peer_elements, peer_received, result) = if self.has_columns() {
            let asked: Vec<&str> = self.asked.iter().map(String::as_str).collect();
            let table = gathered.table.as_ref();
            let gift = table.map_or(Gift::None, |table| Gift::Table(table, payload::Duplicates::All));
            let side = side(&asked, gift);
            let [key, memory] = self.bounds;
            let bounds = payload::Bounds { key, memory, told: None };
            let prg = &mut prg;
            let mut collected =
                payload::collect_one_of(channel, prg, &elements, side, &bounds, &options, runs, quiet)?;
            let result = given::encode(gathered.digests.len(), places, &mut collected);
            (collected.peer_elements, self.learns != Learns::Me, result)
        } else {
            let ran = vole_psi::mark_one_of(channel, &mut prg, &elements, &options, runs, quiet)?;
            let marks = ran.marks.as_ref().map_or(&[][..], |marks| marks);
            let result = given::bits(gathered.digests.len(), places[0], marks);
            (ran.peer_elements, ran.peer_received, result)
        };
        channel.flush()?;
        if peer_elements != places[1] {
            return Err(Error::Peer(format!(
                "the peer's bucket has {peer_elements} instead of {}: it announced {} and has others",
                places[1],
                counted(self.peer, "key"),
                peer_elements = counted(peer_elements, "key")
            )));
        }
        Ok((result, peer_received))
    }

    fn ask(&self, address: &str, request: &Request, body: &[u8], patience: Duration) -> Result<Reply> {
        let start = Instant::now();
        loop {
            let asked = call(address, self.gateway)
                .and_then(|mut way| ask(&mut way, &self.token, request, body, patience + BEYOND));
            match asked {
                Err(error) if is_absence(&error) && start.elapsed() < patience => std::thread::sleep(AGAIN),
                asked => return asked,
            }
        }
    }
}

/// A connection to our own gateway, which proves soon who it is.
fn call(address: &str, gateway: PublicKey) -> Result<Channel> {
    let unfit = |error: std::io::Error| Error::Usage(format!("{}: {error}", tacit_net::shown(address)));
    let mut last = None;
    for target in address.to_socket_addrs().map_err(unfit)? {
        match TcpStream::connect_timeout(&target, REACHING) {
            Ok(stream) => {
                let limits = Limits { read: REACHING, idle: REACHING, ..Limits::default() };
                let link = Box::new(TcpLink::new(stream)?);
                let link = OneSided::calling(gateway).open(link, Instant::now() + REACHING);
                let link = link.map_err(|error| match error {
                    tacit_net::Error::WrongPeer { .. } => unknown_token(),
                    error => error.into(),
                })?;
                return Ok(Channel::with_limits(link, Party::Second, SessionId([0; 32]), limits));
            }
            Err(error) => last = Some(error),
        }
    }
    let reason = last.map_or_else(|| "no such address".to_owned(), |error| error.to_string());
    Err(tacit_net::Error::Unreachable { address: address.to_owned(), after: REACHING, reason }.into())
}

/// Whether the gateway is not there just now, or went away in the middle.
fn is_absence(error: &Error) -> bool {
    error.is_lost_link() || matches!(error, Error::Net(tacit_net::Error::Unreachable { .. }))
}

fn odd() -> Error {
    Error::Input(
        "the gateway's answer does not match the question; use the same release on both sides".to_owned(),
    )
}
