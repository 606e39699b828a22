//! The rules of a service: who may ask for which run, how often, when, and how much it may reveal.
//!
//! A policy is a TOML file of four parts: the service itself, `[peers.NAME]`, `[sources.NAME]` (a table, what
//! makes its keys, and the budgets that hold for all jobs on it) and `[jobs.NAME]`: an intersection with a
//! source, with `kind = "question"` questions in SQL about it, or with `kind = "lookup"` queries to a published
//! file of tags. It is read and checked as a whole: [`Policy::load`] gives every fault with its line, and no half
//! of a policy is ever in force.

mod explain;
mod gate;
mod lookup;
mod names;
mod question;
mod reader;
mod together;
mod words;

pub use explain::explain;
pub use gate::Gate;
pub use lookup::{Answers, Lookup};
pub use question::{Askable, QuestionJob};
pub(crate) use question::{Denied, judge, odd_sources};
pub use reader::Fault;

use crate::clock::Time;
use reader::{At, Reader, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tacit::crypto::text::counted;
use tacit::data::csv::{Delimiter, Encoding, ErrorCells, Header, MaxRow, Options, Quote};
use tacit::data::file_id::open_fault;
use tacit::data::keys::{Named, listed};
use tacit::data::records::{KeySpec, MAX_IDENTIFIERS, Normalisation};
use tacit::job::psi::{self, Bounds, Duplicates, Learns, Protocol, Reveal, owner};
use tacit::net::{Identity, Protection, PublicKey, PublicKeys, Tls};
use tacit::{Error, Result, Security};
use together::together;
use toml::de::DeTable;
use words::{near, results, source_name, word};

/// The rules of one service.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// What it is called in terms and records.
    pub name: String,
    /// Where it listens, or the relay at which it waits.
    pub listen: String,
    /// Whether that is a relay.
    pub is_via: bool,
    /// Its private key's file, which signs its records, and without certificates proves who it is.
    pub identity: PathBuf,
    /// Certificates in place of keys.
    pub certificates: Option<Certificates>,
    /// The folder of ledger and records.
    pub state: PathBuf,
    /// Requests served at once, all peers together.
    pub concurrency: u64,
    /// Requests served at once for one peer.
    pub concurrency_per_peer: u64,
    /// Bytes that all runs together may take; the machine's if nothing is said.
    pub memory: Option<u64>,
    /// Seconds that an offer stands.
    pub offer_seconds: u64,
    /// Seconds that one message of a run may take.
    pub run_seconds: u64,
    /// Seconds that a run may take as a whole, from the charge on.
    pub whole_run_seconds: u64,
    /// Runs that one client may leave without its last signature in a day.
    pub unsigned_runs_a_day: u64,
    /// Seconds that running jobs get when the service ends.
    pub drain_seconds: u64,
    /// Who may ask, by label.
    pub peers: BTreeMap<String, Peer>,
    /// What is asked about, by name.
    pub sources: BTreeMap<String, Source>,
    /// Which intersections may be asked for, by name.
    pub jobs: BTreeMap<String, Job>,
    /// Which lookups, by name; no name is in two of these.
    pub lookups: BTreeMap<String, Lookup>,
    /// Which questions, by name.
    pub questions: BTreeMap<String, QuestionJob>,
}

/// Somebody who may ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Whoever proves the key of this fingerprint.
    Fingerprint(String),
    /// Whoever proves one of these keys, while it is accepted.
    Keys(PublicKeys),
    /// Whoever proves a certificate for this name.
    Name(String),
}

impl Peer {
    /// What names the peer, for people: the fingerprint of its newest key, or its certificate's name.
    pub fn shown(&self) -> String {
        match self {
            Peer::Fingerprint(fingerprint) => fingerprint.clone(),
            Peer::Keys(keys) => keys.newest().fingerprint(),
            Peer::Name(name) => format!("certificate {name}"),
        }
    }

    /// What names the peer in the ledger, whatever its label: a key that follows another is the same peer.
    pub fn account(&self) -> String {
        match self {
            Peer::Keys(keys) => keys.first().fingerprint(),
            other => other.shown(),
        }
    }

    /// Fingerprints of the keys that it may prove today.
    fn accepted(&self) -> BTreeSet<String> {
        self.accepted_at(Time::now())
    }

    fn accepted_at(&self, time: Time) -> BTreeSet<String> {
        match self {
            Peer::Fingerprint(fingerprint) => BTreeSet::from([fingerprint.clone()]),
            Peer::Keys(keys) => keys.accepted_on(time.day()),
            Peer::Name(_) => BTreeSet::new(),
        }
    }

    fn is(&self, key: Option<&PublicKey>, name: Option<&str>, time: Time) -> bool {
        match (self, key, name) {
            (Peer::Name(expected), _, Some(name)) => expected == name,
            (Peer::Name(_), ..) | (_, None, _) => false,
            (_, Some(key), _) => self.accepted_at(time).contains(&key.fingerprint()),
        }
    }
}

/// A peer that is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    /// Its label.
    pub label: String,
    /// What names it in the ledger.
    pub account: String,
    /// What names it to the counts of a publication, as `tacit tags serve` has it.
    pub client: String,
}

/// By which certificates a service and its peers know each other, in place of keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificates {
    /// The authorities that are trusted.
    pub authority: PathBuf,
    /// Our own chain.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A table, and the budgets that hold for all jobs on it.
#[derive(Clone, PartialEq)]
pub struct Source {
    /// The file, folder or pattern of files, or the address of a table elsewhere; several are one table.
    pub inputs: Vec<PathBuf>,
    /// How it is written.
    pub options: Options,
    /// What makes a row's key.
    pub key: KeySpec,
    /// The most rows that all runs together may reveal to one peer.
    pub rows_in_total: u64,
    /// The most runs that give one peer a number over all common keys, all kinds together: two of them on
    /// tables that differ by a row reveal that row.
    pub aggregate_runs: u64,
    /// The fewest keys by which what passes the service's part of WHERE differs in two questions that one peer
    /// gets answered, unless it is the same; 0 where nothing is compared.
    pub min_difference: u64,
    /// The most that the epsilons of all questions add up to that one peer gets answered, in millionths; where it is set
    /// no question without noise is.
    pub epsilon_in_total: Option<u64>,
}

impl std::fmt::Debug for Source {
    /// Without a password that the address may hold.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("inputs", &self.shown())
            .field("options", &self.options)
            .field("key", &self.key)
            .field("rows_in_total", &self.rows_in_total)
            .field("aggregate_runs", &self.aggregate_runs)
            .field("min_difference", &self.min_difference)
            .field("epsilon_in_total", &self.epsilon_in_total)
            .finish()
    }
}

impl Source {
    /// The table's name, as errors and the log have it.
    pub(crate) fn shown(&self) -> String {
        let shown = |input: &PathBuf| tacit::data::place::shown(input).to_string_lossy().into_owned();
        self.inputs.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// What the ledger knows its place by, whatever its spelling.
    pub(crate) fn place(&self) -> String {
        let places = self.inputs.iter().map(|input| tacit::data::place::canonical(input));
        places.collect::<Vec<_>>().join("\n")
    }
}

/// A run that may be asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// On which source.
    pub source: String,
    /// Who may ask, how often and when.
    pub gate: Gate,
    /// Kinds of results; the first unless the peer names another. The columns of a `payload` are the peer's.
    pub reveal: Vec<Reveal>,
    /// Who may get the result; the first unless the peer names another.
    pub result: Vec<Learns>,
    /// Our columns that may go into a result.
    pub give: Vec<String>,
    /// What happens if several rows to send have the same key.
    pub duplicates: Duplicates,
    /// The least distinct keys that the peer must have, as it announces.
    pub min_peer_keys: u64,
    /// The most distinct keys that the peer may have.
    pub max_peer_keys: u64,
    /// The most bytes that the peer's columns may take for each of its keys.
    pub max_cell: u64,
    /// Whether cells that we give may have more than one line.
    pub line_ends: bool,
    /// Least matches of a number over all common keys.
    pub min_matches: u64,
    /// The least and the most that one key adds to a number of a column, by its name, in its smallest unit: the bounds
    /// of all columns are written alike, and mean the same only where these have the same decimal places.
    pub bounds: BTreeMap<String, Bounds>,
    /// Whether the owner of a column gets what is made of it.
    pub result_to_owner: bool,
    /// By which protocol.
    pub protocol: Protocol,
    /// The least security.
    pub security: Security,
    /// Whether everything has to hold against a quantum computer.
    pub post_quantum: bool,
    /// Bytes that one run may take.
    pub memory: Option<u64>,
    /// The folder for our results, where we get some.
    pub output: Option<PathBuf>,
}

impl Job {
    /// The run of `reveal` with the result to `learns`, as the service plays it; `asked` are the columns that
    /// the peer asks for.
    ///
    /// Numbers over all common keys run at the level of [`security`](Self::security); everything else runs against
    /// malicious peers.
    pub fn run(&self, source: &Source, reveal: &Reveal, learns: Learns, asked: &[String]) -> psi::Job {
        let security = if reveal.is_aggregate() { self.security } else { Security::Malicious };
        let give = match reveal {
            Reveal::Payload(_) if learns != Learns::Me => asked.to_vec(),
            _ => reveal
                .column()
                .filter(|column| self.give.iter().any(|own| own == column))
                .map(str::to_owned)
                .into_iter()
                .collect(),
        };
        psi::Job {
            each: None,
            protocol: if matches!(reveal, Reveal::Rows) { self.protocol } else { Protocol::Auto },
            learns,
            reveal: reveal.clone(),
            give,
            min_matches: if reveal.is_aggregate() { self.min_matches } else { 0 },
            bounds: reveal.column().and_then(|column| self.bounds.get(column)).copied(),
            result_to_owner: self.result_to_owner && reveal.column().is_some(),
            security,
            key: Some(source.key.clone()),
            most_peer_keys: Some(self.max_peer_keys),
            peer_keys: None,
            max_cell: self.max_cell,
            line_ends: self.line_ends,
            row_memory: self.memory.unwrap_or(u64::MAX),
        }
    }

    /// Every combination of kind and side, and whether the two go together.
    fn combinations(&self, source: &Source) -> Vec<(&Reveal, Learns, Result<()>)> {
        let pairs =
            self.reveal.iter().flat_map(|reveal| self.result.iter().map(move |learns| (reveal, *learns)));
        pairs
            .map(|(reveal, learns)| (reveal, learns, self.run(source, reveal, learns, &self.give).check()))
            .collect()
    }

    /// The base OT's name, where it is not the default one.
    pub fn base_ot(&self) -> Option<&'static str> {
        self.post_quantum.then_some("roted")
    }
}

/// A policy file that is no policy.
#[derive(Debug)]
pub struct Unfit {
    /// The file.
    pub path: PathBuf,
    /// Everything that is wrong with it; one at least.
    pub faults: Vec<Fault>,
}

impl Unfit {
    /// Each fault on a line of its own.
    pub fn lines(&self) -> Vec<String> {
        let path = tacit::net::shown(&self.path.to_string_lossy());
        let line = |Fault { line, what }: &Fault| match line {
            0 => format!("{path}: {what}"),
            line => format!("{path}, line {line}: {what}"),
        };
        self.faults.iter().map(line).collect()
    }
}

impl From<Unfit> for Error {
    fn from(unfit: Unfit) -> Self {
        let count = unfit.faults.len();
        match unfit.lines().as_slice() {
            [only] => Error::Input(only.clone()),
            _ => Error::Input(format!(
                "{}: {}, listed above; the policy was not loaded",
                tacit::net::shown(&unfit.path.to_string_lossy()),
                counted(count, "problem")
            )),
        }
    }
}

/// The largest difference that questions may have to have: so small beside the sums of a sketch that few of that many keys
/// share one.
pub(crate) const MOST_DIFFERENCE: u64 = 1000;
/// Largest policy file that is read.
const LARGEST_POLICY: u64 = 1 << 20;
const DAY_SECONDS: u64 = 86_400;
const LONGEST_RUN_DAYS: u64 = 30;
const MANY: u64 = 1 << 40;

impl Policy {
    /// Reads the policy at `path`, with the key files that it names. Paths in it are relative to its folder.
    ///
    /// Errors: a file that cannot be read, and every fault in it at once.
    pub fn load(path: &Path) -> std::result::Result<Self, Unfit> {
        let unfit = |what: String| Unfit { path: path.to_owned(), faults: vec![Fault { line: 0, what }] };
        match std::fs::metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(unfit("no such file; check the path".into()));
            }
            Err(e) => return Err(unfit(format!("cannot be read: {e}"))),
            Ok(_) => {}
        }
        let read = tacit::net::small::read(path, LARGEST_POLICY).map_err(|e| open_fault(path, e));
        let (bytes, _) = read.map_err(|e| unfit(format!("cannot be read: {e}")))?;
        if bytes.len() as u64 > LARGEST_POLICY {
            return Err(unfit("larger than any policy".into()));
        }
        let text = String::from_utf8(bytes.to_vec()).map_err(|e| unfit(format!("cannot be read: {e}")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Policy::parse(&text, folder).map_err(|faults| Unfit { path: path.to_owned(), faults })
    }

    /// Reads a policy whose paths are relative to `folder`.
    ///
    /// Errors: every fault, in the order of lines.
    pub fn parse(text: &str, folder: &Path) -> std::result::Result<Self, Vec<Fault>> {
        let mut reader = Reader::new(text);
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                reader.fault(at, format!("{}; fix the TOML", error.message()));
                return Err(reader.faults());
            }
        };
        let mut section = reader.section(root.get_ref(), "the policy", 0);
        let policy = read(&mut section, folder);
        section.finish();
        let faults = reader.faults();
        match policy {
            Some(policy) if faults.is_empty() => Ok(policy),
            _ => Err(faults),
        }
    }

    /// Who may ask for the job of this name, how often and when.
    pub fn gate(&self, job: &str) -> Option<&Gate> {
        self.gates().find(|(name, _)| *name == job).map(|(_, gate)| gate)
    }

    /// All jobs' names and gates.
    pub fn gates(&self) -> impl Iterator<Item = (&str, &Gate)> {
        let jobs = self.jobs.iter().map(|(name, job)| (name.as_str(), &job.gate));
        let lookups = self.lookups.iter().map(|(name, lookup)| (name.as_str(), &lookup.gate));
        jobs.chain(lookups).chain(self.questions.iter().map(|(name, job)| (name.as_str(), &job.gate)))
    }

    /// The jobs about sources: their names, their gates and the sources' names.
    pub(crate) fn sourced(&self) -> impl Iterator<Item = (&str, &Gate, &str)> {
        let jobs = self.jobs.iter().map(|(name, job)| (name.as_str(), &job.gate, job.source.as_str()));
        let questions = self.questions.iter();
        jobs.chain(questions.map(|(name, job)| (name.as_str(), &job.gate, job.source.as_str())))
    }

    /// Who it is that proved this key, or a certificate for this name, at this time.
    pub fn who(&self, key: Option<&PublicKey>, name: Option<&str>, time: Time) -> Option<Who> {
        let (label, peer) = self.peers.iter().find(|(_, peer)| peer.is(key, name, time))?;
        let client = match (peer, key) {
            (Peer::Keys(keys), _) => format!("key {}", keys.first().line("")),
            (Peer::Name(name), _) => format!("certificate {name}"),
            (Peer::Fingerprint(_), key) => format!("key {}", key?.line("")),
        };
        Some(Who { label: label.clone(), account: peer.account(), client })
    }

    /// Compares each peer's keys with the successions that were seen before, and remembers new ones.
    ///
    /// Errors: a peer whose key was followed by another one.
    pub fn remember(&self) -> Result<()> {
        for (label, peer) in &self.peers {
            if let Peer::Keys(keys) = peer {
                let named = |error| Error::Input(format!("[peers.{label}]: {error}"));
                keys.remember(&self.state.join("successions")).map_err(named)?;
            }
        }
        Ok(())
    }

    /// An error where a client's key is the service's own.
    pub fn check_own(&self, identity: &Identity) -> Result<()> {
        let own = identity.public();
        let is_own = |peer: &Peer| match peer {
            Peer::Keys(keys) => keys.accepted_keys().contains(&own),
            Peer::Fingerprint(said) => *said == own.fingerprint(),
            Peer::Name(_) => false,
        };
        match self.peers.iter().find(|(_, peer)| is_own(peer)) {
            None => Ok(()),
            Some((label, _)) => Err(Error::Input(format!(
                "[peers.{label}]: this is the service's own public key; name the file that the client has sent you"
            ))),
        }
    }

    /// How the service proves who it is, and whom it lets in.
    ///
    /// Errors: as [`check_own`](Self::check_own), and certificates that cannot be used.
    pub fn protection(&self, identity: &Identity) -> Result<Protection> {
        self.check_own(identity)?;
        let tls = match &self.certificates {
            Some(Certificates { authority, chain, key }) => {
                let names = self.peers.values().filter_map(|peer| match peer {
                    Peer::Name(name) => Some(name.clone()),
                    _ => None,
                });
                Tls::authority_of(authority, chain, key, &names.collect())?
            }
            None => Tls::one_of(identity, self.peers.values().flat_map(|peer| peer.accepted()).collect())?,
        };
        Ok(Protection::Tls(tls))
    }
}

fn read(section: &mut Section<'_, '_, '_>, folder: &Path) -> Option<Policy> {
    let version = section.wanted_number("version", 1..=1);
    let via = section.text("via");
    let listen = match &via {
        None => {
            let listen = section.text("listen");
            if listen.is_none() {
                section.fault(
                    section.at(),
                    "the policy needs `listen`, an address, or `via`, a relay".to_owned(),
                );
            }
            listen.map(|listen| listen.value)
        }
        Some(via) => {
            if let Some(listen) = section.text("listen") {
                section.fault(
                    listen.at,
                    "`listen` and `via` are both set; a service waits at a port or at a relay, so remove one"
                        .to_owned(),
                );
            }
            if let Err(error) = tacit::net::address_of(&via.value) {
                section.fault(via.at, format!("`via`: {error}"));
            }
            Some(via.value.clone())
        }
    };
    let identity = section.wanted_text("identity");
    let name = name(section, identity.as_ref());
    let state = section.wanted_text("state");
    let certificates = certificates(section, folder);
    let concurrency = section.number("concurrency", 1..=256).unwrap_or(4);
    let concurrency_per_peer = section.number("concurrency_per_peer", 1..=256).unwrap_or(2);
    let memory = section.number("memory_mib", 64..=1 << 24).map(|mib| mib << 20);
    let offer_seconds = section.number("offer_seconds", 1..=DAY_SECONDS).unwrap_or(300);
    let run_seconds = section.number("run_seconds", 1..=DAY_SECONDS).unwrap_or(3600);
    let longest = LONGEST_RUN_DAYS * DAY_SECONDS;
    let whole_run_seconds = section.number("whole_run_seconds", 1..=longest).unwrap_or(DAY_SECONDS);
    let unsigned_runs_a_day = section.number("unsigned_runs_a_day", 1..=MANY).unwrap_or(10);
    let drain_seconds = section.number("drain_seconds", 0..=DAY_SECONDS).unwrap_or(600);

    let (mut peers, mut labels): (BTreeMap<String, Peer>, Vec<String>) = Default::default();
    for (name, table) in section.wanted_tables("peers") {
        labels.push(name.value.clone());
        let peer =
            section.inner(table, &format!("[peers.{}]", name.value), name.at, |inner| peer(inner, folder));
        let Some(peer) = peer else { continue };
        let is_same = |known: &Peer| match (known, &peer) {
            (Peer::Name(known), Peer::Name(name)) => known == name,
            (known, peer) => {
                !known.accepted().is_disjoint(&peer.accepted()) || known.account() == peer.account()
            }
        };
        if let Some((other, _)) = peers.iter().find(|(_, known)| is_same(known)) {
            section.fault(
                name.at,
                format!("[peers.{}] has the key of [peers.{other}]; keep one of them", name.value),
            );
        }
        if certificates.is_some() != matches!(peer, Peer::Name(_)) {
            let what = match certificates {
                Some(_) => "a service with `authority` identifies its peers by certificate: give `name`",
                None => "`name` is for a service with `authority`, `certificate` and `certificate_key`",
            };
            section.fault(name.at, format!("[peers.{}]: {what}", name.value));
        }
        peers.insert(name.value, peer);
    }
    let mut sources = BTreeMap::new();
    let (mut source_names, mut source_places) = (Vec::new(), BTreeMap::new());
    for (name, table) in section.tables("sources") {
        source_names.push(name.value.clone());
        source_places.insert(name.value.clone(), name.at);
        let title = format!("[sources.{}]", name.value);
        let source = section.inner(table, &title, name.at, |inner| source(inner, folder));
        sources.extend(source.map(|source| (name.value, source)));
    }
    let (mut jobs, mut lookups, mut questions) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (name, table) in section.wanted_tables("jobs") {
        let title = format!("[jobs.{}]", name.value);
        let known = Known { labels: &labels, source_names: &source_names, sources: &sources, folder };
        section.inner(table, &title, name.at, |inner| {
            let kinds = [
                ("intersection", Kind::Intersection),
                ("lookup", Kind::Lookup),
                ("question", Kind::Question),
            ];
            let kind = inner.text("kind").map(|said| word(inner, "kind", &said, &kinds));
            match kind.unwrap_or(Some(Kind::Intersection)) {
                Some(Kind::Intersection) => jobs.extend(job(inner, &known).map(|job| (name.value, job))),
                Some(Kind::Lookup) => {
                    lookups.extend(Lookup::read(inner, &known).map(|lookup| (name.value, lookup)));
                }
                Some(Kind::Question) => {
                    questions.extend(QuestionJob::read(inner, &known).map(|job| (name.value, job)));
                }
                None => inner.leave(),
            }
        });
    }
    for odd in odd_sources(&sources, &questions) {
        section.fault(source_places.get(odd.names[0]).copied().unwrap_or_default(), odd.to_string());
    }
    version?;
    Some(Policy {
        name,
        listen: listen?,
        is_via: via.is_some(),
        identity: folder.join(identity?.value),
        certificates,
        state: folder.join(state?.value),
        concurrency,
        concurrency_per_peer,
        memory,
        offer_seconds,
        run_seconds,
        whole_run_seconds,
        unsigned_runs_a_day,
        drain_seconds,
        peers,
        sources,
        jobs,
        lookups,
        questions,
    })
}

/// What the service is called: as it says, or as the file of its identity is.
fn name(section: &mut Section<'_, '_, '_>, identity: Option<&At<String>>) -> String {
    let of_file = |file: &At<String>| Path::new(&file.value).file_stem()?.to_str().map(str::to_owned);
    let Some(said) = section.text("name") else {
        return identity.and_then(of_file).unwrap_or_else(|| "service".to_owned());
    };
    if said.value.trim().is_empty() || said.value.chars().count() > crate::terms::LONGEST_NAME {
        section.fault(said.at, "`name` is empty or too long; give 1 to 100 characters");
    }
    said.value
}

/// What a job does.
#[derive(Clone, Copy)]
enum Kind {
    Intersection,
    Lookup,
    Question,
}

/// The files of certificates: all three, or none.
fn certificates(section: &mut Section<'_, '_, '_>, folder: &Path) -> Option<Certificates> {
    let said = [section.text("authority"), section.text("certificate"), section.text("certificate_key")];
    match said {
        [None, None, None] => None,
        [Some(authority), Some(chain), Some(key)] => {
            let file = |said: At<String>| folder.join(said.value);
            Some(Certificates { authority: file(authority), chain: file(chain), key: file(key) })
        }
        some => {
            let at = some.into_iter().flatten().next().map_or(0, |said| said.at);
            let what = "`authority`, `certificate` and `certificate_key` must be set together";
            section.fault(at, what);
            None
        }
    }
}

fn peer(section: &mut Section<'_, '_, '_>, folder: &Path) -> Option<Peer> {
    let (key, fingerprint) = (section.text("key"), section.text("fingerprint"));
    let has_key = section.has("key") || section.has("fingerprint");
    if let Some(name) = section.text("name") {
        if key.is_some() || fingerprint.is_some() {
            section.fault(name.at, "a peer has a key or the `name` of a certificate, not both");
        }
        return Some(Peer::Name(name.value));
    }
    let of_file = key.and_then(|file| match PublicKeys::load(&folder.join(&file.value)) {
        Ok(keys) => Some(At { value: keys, at: file.at }),
        Err(error) => {
            section.fault(file.at, error.to_string());
            None
        }
    });
    if let Some(At { value, at }) = &fingerprint
        && !is_fingerprint(value)
    {
        section.fault(
            *at,
            "a fingerprint is eight groups of four hexadecimal digits, as tacit fingerprint prints",
        );
        return None;
    }
    match (of_file, fingerprint) {
        (Some(file), Some(said)) if file.value.newest().fingerprint() != said.value => {
            let found = file.value.newest().fingerprint();
            section.fault(said.at, format!("the key in the file has the fingerprint {found}, not this one"));
            None
        }
        (Some(found), _) => Some(Peer::Keys(found.value)),
        (None, Some(said)) => Some(Peer::Fingerprint(said.value)),
        // One that cannot be read is told of.
        (None, None) if has_key => None,
        (None, None) => {
            let at = section.at();
            let what = "a peer needs `key`, the file of its public key, `fingerprint`, or the `name` of a \
                        certificate";
            section.fault(at, what);
            None
        }
    }
}

fn is_fingerprint(text: &str) -> bool {
    let is_group =
        |group: &str| group.len() == 4 && group.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    text.split('-').count() == 8 && text.split('-').all(is_group)
}

/// A budget: none unless given. One that is wrong counts as given, so that it is one fault.
fn budget(section: &mut Section<'_, '_, '_>, key: &'static str) -> u64 {
    let wrong = if section.has(key) { MANY } else { 0 };
    section.number(key, 0..=MANY).unwrap_or(wrong)
}

fn source(section: &mut Section<'_, '_, '_>, folder: &Path) -> Option<Source> {
    let inputs = section.wanted_list("input");
    let mut columns = Vec::new();
    for At { value, at } in section.wanted_list("key") {
        match Named::parse(&value) {
            Ok(named) => columns.push(named),
            Err(error) => section.fault(at, format!("`key`: {error}")),
        }
    }
    let mut further = Vec::new();
    for At { value, at } in section.list("or_keys") {
        let named = listed(&value).into_iter().map(Named::parse).collect::<std::result::Result<Vec<_>, _>>();
        match named {
            Ok(columns) => further.push(columns),
            Err(error) => section.fault(at, format!("`or_keys`: {error}")),
        }
        if further.len() == MAX_IDENTIFIERS {
            let what = format!("`or_keys`: a row has at most {MAX_IDENTIFIERS} identifiers; give fewer");
            section.fault(at, what);
        }
    }
    let normalisation = Normalisation {
        nfc: section.yes("nfc", true),
        trim: section.yes("trim", true),
        case_fold: section.yes("case_fold", true),
    };
    let first = KeySpec::named(columns, normalisation);
    let rows_in_total = budget(section, "rows_in_total");
    let aggregate_runs = budget(section, "aggregate_runs");
    let start = section.at();
    let min_difference = section.number("min_difference", 0..=MOST_DIFFERENCE).unwrap_or(0);
    let epsilon_in_total = section.epsilon("epsilon_in_total");
    if min_difference == 1 {
        section.fault(start, "`min_difference`: 1 refuses nothing; give 2 or more, or leave it out");
    }
    if min_difference > 0 && epsilon_in_total.is_some() {
        let what = "`min_difference` with `epsilon_in_total`: its refusals tell of keys without noise, and the epsilons \
                    bound what questions tell together already; keep one of them";
        section.fault(start, what);
    }
    let nulls = section.list("null").into_iter().map(|null| null.value).collect();
    let options = options(section);
    Some(Source {
        inputs: inputs.iter().map(|input| tacit::data::place::seen_from(folder, &input.value)).collect(),
        options,
        key: KeySpec { nulls, ..further.into_iter().fold(first, KeySpec::or) },
        rows_in_total,
        aggregate_runs,
        min_difference,
        epsilon_in_total,
    })
}

/// How a source's table is written.
fn options(section: &mut Section<'_, '_, '_>) -> Options {
    let delimiter = sign(section, "delimiter", &[("auto", None), ("tab", Some(b'\t'))]);
    let quote = sign(section, "quote", &[("none", None), ("\"", Some(b'"'))]);
    let encoding = section.text("encoding").and_then(|said| {
        let found = Encoding::named(&said.value);
        if found.is_none() {
            let name = tacit::net::shown(&said.value);
            section
                .fault(said.at, format!("`encoding`: there is no `{name}`; give one such as windows-1252"));
        }
        found
    });
    let error_cells = section.text("error_cells").and_then(|said| {
        let words = [("refuse", ErrorCells::Refuse), ("null", ErrorCells::Null)];
        word(section, "error_cells", &said, &words)
    });
    Options {
        delimiter: delimiter.flatten().map_or(Delimiter::Auto, Delimiter::Byte),
        quote: quote.map_or(Quote::Double, |quote| quote.map_or(Quote::None, Quote::Byte)),
        escape: sign(section, "escape", &[]).flatten(),
        header: if section.yes("header", true) { Header::Names } else { Header::None },
        encoding,
        skip_lines: section.number("skip_lines", 0..=MANY).unwrap_or(0),
        decimal_comma: section.yes("decimal_comma", false),
        binary_as_text: section.yes("binary_as_text", false),
        error_cells: error_cells.unwrap_or(ErrorCells::Refuse),
        max_row: section
            .number("max_row_mib", 1..=65_536)
            .map_or_else(MaxRow::default, |mib| MaxRow::new(mib << 20)),
        ..Options::default()
    }
}

/// A character of ASCII, or what one of these words means; nothing if there is none.
fn sign(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    words: &[(&str, Option<u8>)],
) -> Option<Option<u8>> {
    let said = section.text(key)?;
    if let Some((_, meant)) = words.iter().find(|(word, _)| *word == said.value) {
        return Some(*meant);
    }
    match said.value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n') => Some(Some(*byte)),
        _ => {
            let words: Vec<String> = words.iter().map(|(word, _)| format!("{word} or ")).collect();
            section.fault(said.at, format!("`{key}`: give {}one character of ASCII", words.concat()));
            None
        }
    }
}

/// What a job may refer to.
struct Known<'a> {
    labels: &'a [String],
    source_names: &'a [String],
    sources: &'a BTreeMap<String, Source>,
    folder: &'a Path,
}

/// The bounds of each column that `kinds` take numbers of, in its unit; the one fault that there is, is told once.
fn bounds(section: &mut Section<'_, '_, '_>, kinds: &[At<Reveal>]) -> BTreeMap<String, Bounds> {
    let mut found = BTreeMap::new();
    let Some(At { value, at }) = section.text("bounds") else { return found };
    let is_numbers = |kind: &&At<Reveal>| kind.value.column().is_some();
    // Kinds without a column take none: they are looked at where there is no other, so that nonsense is refused.
    let some = kinds.iter().any(|kind| is_numbers(&kind));
    for kind in kinds.iter().filter(|kind| !some || is_numbers(kind)) {
        let column = kind.value.column();
        match owner::bounds(&value, kind.value.form()) {
            Ok(bounds) => found.extend(column.map(|column| (column.to_owned(), bounds))),
            Err(what) => {
                let of = column.map_or(String::new(), |column| format!(", of {}", tacit::net::shown(column)));
                section.fault(at, format!("`bounds`{of}: {what}"));
                break;
            }
        }
    }
    found
}

fn job(section: &mut Section<'_, '_, '_>, known: &Known<'_>) -> Option<Job> {
    let start = section.at();
    let source_name = source_name(section, known);
    let gate = Gate::read(section, known);
    let mut reveal: Vec<At<Reveal>> = Vec::new();
    for At { value, at } in section.wanted_list("reveal") {
        match value.parse() {
            Ok(kind) => reveal.push(At { value: kind, at }),
            Err(what) => section.fault(at, format!("`reveal`: {what}")),
        }
    }
    let result = results(section);
    let give = section.list("give").into_iter().map(|column| column.value).collect();
    let several = [("refuse", Duplicates::Refuse), ("first", Duplicates::First), ("all", Duplicates::All)];
    let duplicates = section.text("duplicates").and_then(|said| word(section, "duplicates", &said, &several));
    let min_peer_keys = section.number("min_peer_keys", 0..=MANY).unwrap_or(0);
    let max_peer_keys = section.wanted_number("max_peer_keys", 1..=psi::MAX_ELEMENTS as u64);
    let max_cell = section.number("max_cell", 64..=psi::MAX_SEALED as u64).unwrap_or(psi::USUAL_KEY);
    let line_ends = section.yes("line_ends", false);
    let min_matches = section.number("min_matches", 0..=MANY).unwrap_or(0);
    let bounds = bounds(section, &reveal);
    let result_to_owner = section.yes("result_to_owner", false);
    let protocols = Protocol::ALL.map(|protocol| (protocol.name(), protocol));
    let protocol = section.text("protocol").and_then(|said| word(section, "protocol", &said, &protocols));
    let levels = [("malicious", Security::Malicious), ("semi-honest", Security::SemiHonest)];
    let security = section.text("security").and_then(|said| word(section, "security", &said, &levels));
    let security = security.unwrap_or(Security::Malicious);
    let post_quantum = section.yes("post_quantum", false);
    let memory = section.number("memory_mib", 64..=1 << 24).map(|mib| mib << 20);
    let output = section.text("output").map(|folder| known.folder.join(folder.value));

    let job = Job {
        source: source_name?.value,
        gate: gate?,
        reveal: reveal.iter().map(|kind| kind.value.clone()).collect(),
        result,
        give,
        duplicates: duplicates.unwrap_or(Duplicates::Refuse),
        min_peer_keys,
        max_peer_keys: max_peer_keys?,
        max_cell,
        line_ends,
        min_matches,
        bounds,
        result_to_owner,
        protocol: protocol.unwrap_or_default(),
        security,
        post_quantum,
        memory,
        output,
    };
    if job.min_peer_keys > job.max_peer_keys {
        section.fault(start, "`min_peer_keys` is more than `max_peer_keys`, which excludes every peer");
    }
    let source = known.sources.get(&job.source)?;
    for kind in &reveal {
        together(section, &job, source, kind);
    }
    Some(job)
}
