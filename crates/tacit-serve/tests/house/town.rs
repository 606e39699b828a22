//! Services, those who ask them, and what happens to them.

use crate::after;
use crate::disk::{Fault, Kind, Machine};
use crate::gateways::Gateways;
use crate::pools::{self, Pools};
use crate::schedule::{ASKERS, Dice, Event, Harm, SERVICES, Whose, schedule};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tacit::Result;
use tacit::data::csv::Options as Dialect;
use tacit::data::records::{KeySpec, Normalisation};
use tacit::data::table::Source;
use tacit::job::psi::{Duplicates, Own};
use tacit::net::{self, Identity, Limits, Options, Protection, Session, Tls};
use tacit_net::testing::{Direction, Harm as Break, Proxy, Rule};
use tacit_serve::clock::Time;
use tacit_serve::log::Event as Logged;
use tacit_serve::policy::Policy;
use tacit_serve::records::Records;
use tacit_serve::request::{self, Ask};
use tacit_serve::server::{self, Setup, Signal};
use tacit_serve::terms::Side;

/// How the parties are called.
pub(crate) const NAMES: [&str; SERVICES] = ["north", "south"];
pub(crate) const PEERS: [&str; ASKERS] = ["ann", "bob"];
/// How many keys a service and an asker have in common.
pub(crate) const COMMON: u64 = 20;
/// No visit takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an asker hears nothing before it leaves: a line that breaks may swallow the rest.
const IDLE: Duration = Duration::from_secs(10);
/// Events that end a visit.
const ENDS: [&str; 5] = ["done", "failed", "refused", "declined", "panicked"];

/// What all houses share, made once.
pub(crate) struct Kept {
    root: tempfile::TempDir,
    pub(crate) pool: [Vec<u8>; 2],
    results: AtomicU64,
    faults: AtomicU64,
    cuts: AtomicU64,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Kept { root, pool: pools::make(), results: 0.into(), faults: 0.into(), cuts: 0.into() }
    }

    /// What came of all seeds, so that houses in which nothing happened do not count as passes.
    pub(crate) fn counts(&self) -> String {
        let [results, faults, cuts] =
            [&self.results, &self.faults, &self.cuts].map(|n| n.load(Ordering::SeqCst));
        format!("{results} results, {faults} faults of a disk, {cuts} power cuts")
    }
}

pub(crate) struct Service {
    pub(crate) machine: Machine,
    policy: PathBuf,
    pub(crate) identity: Identity,
    running: Option<Running>,
    ahead: Arc<AtomicI64>,
    /// The most rows and runs that any of its policies allowed.
    pub(crate) most: (u64, u64),
}

struct Running {
    place: String,
    signals: mpsc::Sender<Signal>,
    events: Arc<Mutex<Vec<Logged>>>,
    thread: JoinHandle<Result<()>>,
}

/// What an asker has seen: an offer, and perhaps its result with so many rows.
pub(crate) struct Seen {
    pub(crate) service: usize,
    pub(crate) run: String,
    pub(crate) rows: Option<u64>,
}

pub(crate) struct Asker {
    pub(crate) machine: Machine,
    pub(crate) identity: Identity,
    pub(crate) seen: Mutex<Vec<Seen>>,
}

pub(crate) struct Town<'k> {
    kept: &'k Kept,
    pub(crate) folder: PathBuf,
    pub(crate) services: Vec<Service>,
    pub(crate) askers: Vec<Asker>,
    pools: Option<Pools>,
    gateways: Option<Gateways>,
}

fn table(numbers: std::ops::Range<u32>) -> String {
    numbers.fold("id,note\n".to_owned(), |text, id| text + &format!("{id},n{id}\n"))
}

/// Runs the house of a seed, and checks what is left.
pub(crate) fn run(seed: u64, kept: &Kept) {
    let mut town = Town::new(kept, seed);
    let mut dice = Dice::new(!seed);
    for event in schedule(seed) {
        town.happen(event, dice.number());
    }
    town.services.iter_mut().for_each(Service::stop);
    if dice.below(2) == 0 {
        let services = town.services.iter().map(|service| &service.machine);
        services
            .chain(town.askers.iter().map(|asker| &asker.machine))
            .for_each(|machine| machine.cut(dice.number()));
    }
    after::check(&town);
    let folder = town.folder.clone();
    // Machines that are watched still keep what is removed.
    drop(town);
    std::fs::remove_dir_all(folder).unwrap();
}

impl<'k> Town<'k> {
    fn new(kept: &'k Kept, seed: u64) -> Self {
        let folder = kept.root.path().join(seed.to_string());
        std::fs::create_dir(&folder).unwrap();
        let place = |name: &str| {
            let place = folder.join(name);
            std::fs::create_dir(&place).unwrap();
            place
        };
        let config = place("config");
        let identity = |name: &str| {
            let identity = Identity::generate().unwrap();
            identity.save(&config.join(format!("{name}.key")), "").unwrap();
            identity
        };
        let askers = PEERS.iter().map(|name| {
            let place = place(name);
            std::fs::write(place.join("table.csv"), table(20..50)).unwrap();
            Asker { machine: Machine::watch(place), identity: identity(name), seen: Mutex::default() }
        });
        let askers = askers.collect();
        let services = NAMES.iter().map(|name| {
            let place = place(name);
            std::fs::write(place.join("table.csv"), table(0..40)).unwrap();
            let policy = config.join(format!("{name}.toml"));
            let (identity, machine) = (identity(name), Machine::watch(place));
            Service { machine, policy, identity, running: None, ahead: Arc::default(), most: (0, 0) }
        });
        let services = services.collect();
        let mut town = Town { kept, folder: folder.clone(), services, askers, pools: None, gateways: None };
        for service in &mut town.services {
            service.allow(100, 4);
            service.start();
        }
        town
    }

    fn happen(&mut self, event: Event, seed: u64) {
        match event {
            Event::Ask { service, asker, job, harm } => self.ask(service, asker, job, harm, seed),
            Event::Together { service, job } => {
                let (service, kept) = (&self.services[service], self.kept);
                std::thread::scope(|scope| {
                    for asker in &self.askers {
                        scope.spawn(move || kept.note(asker.ask(service, job, Harm::Nothing)));
                    }
                });
            }
            Event::Restart { service } => self.services[service].restart(None),
            Event::Cut { service } => self.services[service].restart(Some(seed)),
            Event::Clock { service, days } => {
                let ahead = &self.services[service].ahead;
                let now = ahead.load(Ordering::SeqCst);
                ahead.store(if days == 0 { 0 } else { now + days * 86_400 }, Ordering::SeqCst);
            }
            Event::Policy { service, rows, runs } => {
                self.services[service].allow(rows, runs);
                self.services[service].reload();
            }
            Event::Pool { side, fault } => {
                let (folder, kept) = (&self.folder, self.kept);
                let pools = self.pools.get_or_insert_with(|| Pools::new(folder.clone(), kept));
                pools.happen(side, fault, seed);
            }
            Event::Gateways { side, fault } => {
                let folder = &self.folder;
                self.gateways.get_or_insert_with(|| Gateways::new(folder)).happen(side, fault, seed);
            }
        }
    }

    fn ask(&mut self, service: usize, asker: usize, job: &str, harm: Harm, seed: u64) {
        let machine = match harm {
            Harm::Disk(Whose::Service, fault) => Some((&self.services[service].machine, fault)),
            Harm::Disk(Whose::Asker, fault) => Some((&self.askers[asker].machine, fault)),
            _ => None,
        };
        if let Some((machine, fault)) = machine {
            machine.plan(fault);
        }
        self.kept.note(self.askers[asker].ask(&self.services[service], job, harm));
        let Some((machine, fault)) = machine else { return };
        self.kept.faults.fetch_add(u64::from(machine.has_failed()), Ordering::SeqCst);
        match harm {
            Harm::Disk(Whose::Service, Fault { kind: Kind::Dead, .. }) => {
                self.services[service].restart(Some(seed))
            }
            Harm::Disk(Whose::Asker, Fault { kind: Kind::Dead, .. }) => machine.cut(seed),
            _ => machine.mend(),
        }
        self.kept.cuts.fetch_add(u64::from(matches!(fault.kind, Kind::Dead)), Ordering::SeqCst);
    }
}

impl Kept {
    fn note(&self, result: Result<bool>) {
        self.results.fetch_add(u64::from(result.is_ok_and(|has_result| has_result)), Ordering::SeqCst);
    }
}

impl Service {
    /// Writes its policy; that of another machine, whose disk is sound.
    fn allow(&mut self, rows: u64, runs: u64) {
        self.most = (self.most.0.max(rows), self.most.1.max(runs));
        let at = |name: &str| self.machine.folder.join(name).display().to_string();
        let name = self.policy.file_stem().unwrap().to_str().unwrap();
        let mut text = format!(
            "version = 1\nlisten = \"127.0.0.1:0\"\nidentity = \"{name}.key\"\nstate = \"{}\"\noffer_seconds = 10\n\
             run_seconds = 10\ndrain_seconds = 30\nunsigned_runs_a_day = 50\n\
             [sources.table]\ninput = \"{}\"\nkey = [\"id\"]\nrows_in_total = {rows}\naggregate_runs = 3\n",
            at("state"),
            at("table.csv"),
        );
        PEERS.iter().for_each(|peer| writeln!(text, "[peers.{peer}]\nkey = \"{peer}.pub\"").unwrap());
        let results = at("results");
        for (job, kind, to, more) in [
            ("match", "rows", "peer", String::new()),
            ("count", "count", "peer", "min_matches = 5\n".to_owned()),
            ("takes", "payload:note", "me", format!("output = \"{results}\"\n")),
        ] {
            writeln!(
                text,
                "[jobs.{job}]\nsource = \"table\"\nallow = [\"ann\", \"bob\"]\nreveal = [\"{kind}\"]\n\
                 result = [\"{to}\"]\nmax_peer_keys = 100\nruns_a_day = {runs}\n{more}"
            )
            .unwrap();
        }
        std::fs::write(&self.policy, text).unwrap();
    }

    fn start(&mut self) {
        let policy = Policy::load(&self.policy).unwrap_or_else(|unfit| panic!("{:?}", unfit.lines()));
        let (signals, received) = mpsc::channel();
        let events: Arc<Mutex<Vec<Logged>>> = Arc::default();
        let (told, ahead) = (events.clone(), self.ahead.clone());
        let setup = Setup {
            path: self.policy.clone(),
            log: Box::new(move |event| told.lock().unwrap().push(event.clone())),
            available: || None,
            clock: Box::new(move || Time(Time::now().0.saturating_add_signed(ahead.load(Ordering::SeqCst)))),
            signals: received,
            metrics: None,
            dashboard: None,
            accept_ledger: false,
        };
        let thread = std::thread::spawn(move || server::serve(policy, setup));
        let mut running = Running { place: String::new(), signals, events, thread };
        let started = running.wait(|event| event.what == "started");
        let Some(started) = started else {
            panic!("{} does not start: {:?}", self.policy.display(), running.thread.join().unwrap().err())
        };
        let words = started.words.strip_prefix("listening at ").unwrap();
        running.place = words.split(',').next().unwrap().to_owned();
        self.running = Some(running);
    }

    pub(crate) fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.signals.send(Signal::Drain).unwrap();
        running.thread.join().unwrap().unwrap();
        // A visit may outlive what it is drained with, where a process would end.
        let lock = std::fs::File::open(self.state().join("ledger.lock")).unwrap();
        let start = Instant::now();
        while lock.try_lock().is_err() {
            assert!(start.elapsed() < PATIENCE, "a visit does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(lock);
        let events = running.events.lock().unwrap();
        let panicked = events.iter().find(|event| event.what == "panicked");
        assert!(panicked.is_none(), "{panicked:?}");
    }

    /// Ends it, cuts its power if there is a seed for that, and starts it.
    fn restart(&mut self, cut: Option<u64>) {
        self.stop();
        if let Some(seed) = cut {
            self.machine.cut(seed);
        }
        self.machine.mend();
        self.start();
    }

    fn reload(&self) {
        let running = self.running.as_ref().unwrap();
        let earlier = running.events.lock().unwrap().len();
        running.signals.send(Signal::Reload).unwrap();
        let reloaded = |event: &Logged| matches!(event.what, "reloaded" | "not reloaded");
        running.wait_from(earlier, reloaded).expect("an answer to the new policy");
    }
}

impl Running {
    /// Whether the service says anything of this run, in as long as it may need.
    fn hears_of(&self, run: &str) -> bool {
        let start = Instant::now();
        while start.elapsed() < IDLE {
            if self.events.lock().unwrap().iter().any(|event| event.run.as_deref() == Some(run)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn wait(&self, is_it: impl Fn(&Logged) -> bool) -> Option<Logged> {
        self.wait_from(0, is_it)
    }

    /// The first such event; none if the service ends before.
    fn wait_from(&self, earlier: usize, is_it: impl Fn(&Logged) -> bool) -> Option<Logged> {
        let start = Instant::now();
        loop {
            let ended = self.thread.is_finished();
            if let Some(found) = self.events.lock().unwrap()[earlier..].iter().find(|event| is_it(event)) {
                return Some(found.clone());
            }
            if ended {
                return None;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {:?}", self.events.lock().unwrap());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Asker {
    /// Asks for a job; whether there was a result. When this returns the service has ended the visit, too.
    fn ask(&self, service: &Service, job: &str, harm: Harm) -> Result<bool> {
        let running = service.running.as_ref().unwrap();
        let broken = match harm {
            Harm::Line { from_asker, bytes } => {
                let direction = if from_asker { Direction::ToListener } else { Direction::ToConnector };
                let rule = Rule { direction, offset: bytes, harm: Break::Truncate };
                Some(Proxy::start(running.place.parse().unwrap(), vec![rule]).unwrap())
            }
            _ => None,
        };
        let place = broken.as_ref().map_or(running.place.clone(), |proxy| proxy.address().to_string());
        // Through a line that breaks it tries again and again.
        let connect = Duration::from_secs(if broken.is_some() { 1 } else { 30 });
        let protection = Protection::Tls(Tls::pinned(&self.identity, service.identity.public())?);
        let limits = Limits { connect, idle: IDLE, ..Limits::default() };
        let options = Options { limits, ..Options::new(request::agreement(), protection) };
        let session = net::connect(&place, &options)?;
        let run = tacit::crypto::hex(&session.id().0[..16]);
        let result = self.request(session, service, job, &run, matches!(harm, Harm::Left));
        let is_broken = broken.is_some();
        drop(broken);
        let is_end = |event: &Logged| event.run.as_ref() == Some(&run) && ENDS.contains(&event.what);
        // A line that breaks in the last message of a greeting leaves a caller that the service never let in.
        if is_broken && !running.hears_of(&run) {
            return result;
        }
        running.wait(is_end);
        result
    }

    fn request(
        &self,
        session: Session,
        service: &Service,
        job: &str,
        run: &str,
        leaves: bool,
    ) -> Result<bool> {
        let ask = Ask { job: job.into(), reveal: None, result: None, key: None, question: None };
        let offered = request::ask(session, &ask, &self.identity)?;
        let number = NAMES.iter().position(|name| service.policy.file_stem().unwrap() == *name).unwrap();
        self.seen.lock().unwrap().push(Seen { service: number, run: run.to_owned(), rows: None });
        if leaves {
            return Ok(false);
        }
        let key = KeySpec::text(vec!["id".to_owned()], Normalisation::default());
        let job = offered.job(&key)?;
        let path = self.machine.folder.join("table.csv");
        let own = Own::read(Source::open_pinned(&path, key, Dialect::default())?, &path, &job, |_| ())?;
        let gift = own.gift(&job, Duplicates::First)?;
        let (records, _) = Records::open(&self.records(), &self.identity, Side::Client)?;
        let ours = (own.keys(), gift.borrowed());
        let mut done = offered.run(&job, &own.digest()?, ours, (&self.identity, &records), &())?;
        let rows = done.ran.result.matches(own.keys().elements().len()).map_or(0, |found| found.len() as u64);
        assert!(rows == 0 || rows == COMMON, "{rows} rows");
        let mut seen = self.seen.lock().unwrap();
        seen.iter_mut().find(|seen| seen.run == run).unwrap().rows = Some(rows);
        drop(seen);
        done.record()?;
        Ok(true)
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.machine.folder.join("records")
    }
}

impl Service {
    pub(crate) fn state(&self) -> PathBuf {
        self.machine.folder.join("state")
    }

    pub(crate) fn results(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.machine.folder.join("results")).into_iter().flatten();
        let is_result = |path: &PathBuf| path.extension().is_some_and(|end| end == "csv");
        listed.map(|entry| entry.unwrap().path()).filter(is_result).collect()
    }
}
