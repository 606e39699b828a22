//! The service: receives peers, serves each on a thread of its own, and obeys signals.

use crate::board::Board;
use crate::clock::Clock;
use crate::dashboard::Dashboard;
use crate::http::Port;
use crate::ledger::Ledger;
use crate::log::{Event, Log};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::records::Records;
use crate::slots::Slots;
use crate::terms::Side;
use crate::unsigned::Unsigned;
use crate::visit::{House, Publications, visit};
use crate::wire;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use tacit::crypto::fence::fenced;
use tacit::crypto::text::counted;
use tacit::net::{self, Cancel, Identity, Limits, Listener, Observer, Options, Reception, Session};
use tacit::{Error, Result};

/// What the outside tells a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Read the policy file again.
    Reload,
    /// Begin nothing new and end when all is done; told twice, end now.
    Drain,
}

/// What a service needs beside its policy.
pub struct Setup {
    /// The policy's file.
    pub path: PathBuf,
    /// Whom it tells what happens, beside the subscriber of `tracing`.
    pub log: Box<Log>,
    /// Bytes that the machine has to give.
    pub available: fn() -> Option<u64>,
    /// The time by the machine's clock.
    pub clock: Box<Clock>,
    /// Signals from outside.
    pub signals: Receiver<Signal>,
    /// Where figures are asked for, if anywhere.
    pub metrics: Option<Port>,
    /// Where the operator's page is asked for, if anywhere.
    pub dashboard: Option<Port>,
    /// Whether a ledger that lacks runs of the records is gone on with.
    pub accept_ledger: bool,
}

/// How long the service looks for peers before it looks for signals.
const LOOK: Duration = Duration::from_millis(100);
/// Authenticated connections beside those that are served: each hears that all places are taken.
const WAITING: u64 = 64;
/// No byte for so long ends a session.
const IDLE: Duration = Duration::from_secs(120);

/// Runs the service of `policy` until it is told to end.
///
/// Errors: what keeps it from starting. A fault of one request is told in the log and ends nothing else.
pub fn serve(policy: Policy, setup: Setup) -> Result<()> {
    let Setup { path, log: told, available, clock, signals, metrics: port, dashboard, accept_ledger } = setup;
    let metrics = Arc::new(Metrics::default());
    let board = Arc::new(Board::default());
    let (tallied, noted) = (metrics.clone(), board.clone());
    let log: Box<Log> = Box::new(move |event: &Event| {
        tallied.count(event);
        noted.note(event);
        event.trace(event.level());
        told(event);
    });
    let identity = Identity::load(&policy.identity)?;
    crate::file::private_folder(&policy.state)?;
    policy.remember()?;
    let (ledger, records) = books(&policy, &identity, accept_ledger, &*log)?;
    let (now, by_ledger) = (clock(), ledger.now(clock()));
    let unsigned = Unsigned::of(&policy.state.join("records"), now.day(), by_ledger.day())?;
    let house = Arc::new(House {
        policy: RwLock::new(Arc::new(policy)),
        ledger: Mutex::new(ledger),
        records,
        identity,
        slots: Slots::default(),
        publications: Publications::default(),
        unsigned,
        draining: AtomicBool::new(false),
        log,
        available,
        clock,
    });
    let (cancel, door, policy) = (Cancel::armed(), door(&house, &metrics), house.policy());
    let options_now = options(&policy, &house.identity, &cancel, &door)?;
    let listener = match policy.is_via {
        false => Listener::bind(&policy.listen)?,
        true => Listener::at_relay(&options_now)?,
    };
    let mut reception = Reception::new(&listener, options_now)?;
    (house.log)(&Event::new("started", format!("listening at {}, {}", listener.place(), counts(&policy))));
    if policy.memory.is_none() && (house.available)().is_none() {
        let what = "this system does not say how much memory is free; set `memory_mib` in the policy";
        (house.log)(&Event::new("unbounded", what));
    }
    drop(policy);
    let over = Arc::new(AtomicBool::new(false));
    if let Some(port) = port {
        let (metrics, house, over) = (metrics.clone(), house.clone(), over.clone());
        aside("tacit-metrics", move || metrics.answer(&port, &house.slots, &over))?;
    }
    if let Some(port) = dashboard {
        let (dashboard, over) = (Dashboard::new(house.clone(), board.clone()), over.clone());
        let address = port.address()?;
        aside("tacit-dashboard", move || dashboard.answer(&port, &over))?;
        (house.log)(&Event::new("dashboard", format!("http://{address}/ only for this machine")));
    }
    let mut watch = Watch::default();
    loop {
        watch.look(&house, &metrics);
        match signals.try_recv() {
            Ok(Signal::Drain) | Err(TryRecvError::Disconnected) => break,
            Ok(Signal::Reload) => {
                board.reading();
                if let Err(panicked) = fenced(|| reload(&house, &path, (&cancel, &door), &mut reception)) {
                    (house.log)(&Event::new("panicked", format!("reading the policy: {panicked}")));
                }
            }
            Err(TryRecvError::Empty) => {}
        }
        if let Some(session) = reception.next(LOOK)? {
            receive(&house, session);
        }
    }
    // New callers are refused at once while what runs comes to its end.
    drop(reception);
    drop(listener);
    metrics.draining.store(true, Ordering::SeqCst);
    drain(&house, &signals, &cancel);
    over.store(true, Ordering::SeqCst);
    Ok(())
}

/// The ledger and the records, which have to know of the same runs.
fn books(policy: &Policy, identity: &Identity, accept: bool, log: &Log) -> Result<(Ledger, Records)> {
    let mut ledger = Ledger::open(&policy.state.join("ledger"))?;
    let folder = policy.state.join("records");
    let (records, interrupted) = Records::open(&folder, identity, Side::Service)?;
    if interrupted > 0 {
        log(&Event::new(
            "recovered",
            format!("recorded as interrupted: {}, still charged", counted(interrupted, "run")),
        ));
    }
    let found = ledger.compare(&folder)?;
    for words in ledger.go_on(found, accept)? {
        log(&Event::new("ledger", words));
    }
    ledger.know(&policy.names_of_peers())?;
    ledger.know(&policy.names_of_sources(&ledger.places()))?;
    Ok((ledger, records))
}

/// Runs `work` on a thread of its own.
fn aside(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(|_| ()).map_err(|e| Error::Other(format!("no thread for {name}: {e}")))
}

/// Who is told of the connections that come to no session: strangers are counted, and a line tells when their
/// number has doubled; a peer that wants another session than the service has is told of each time.
fn door(house: &Arc<House>, metrics: &Arc<Metrics>) -> Observer {
    let (house, metrics) = (house.clone(), metrics.clone());
    Observer::new(move |event| match event {
        net::Event::Stranger { from, reason, what, .. } => {
            if let Some(words) = metrics.count_stranger(reason) {
                (house.log)(&Event::new("strangers", format!("{words}; the last from {from}: {what}")));
            }
        }
        net::Event::Relay { address, lost } => {
            metrics.relay(lost.is_none());
            let event = match lost {
                None => {
                    Event::new("relay found", format!("clients reach this service at the relay {address}"))
                }
                Some(why) => {
                    Event::new("relay lost", format!("no client can reach this service: {why}; retrying"))
                }
            };
            (house.log)(&event);
        }
        net::Event::Disagreed { from, key, name, what } => {
            let mut event = Event::new("mismatch", format!("from {from}: {what}"));
            let found = house.policy().who(key.as_ref(), name.as_deref(), house.times().0);
            event.peer = found.map(|who| who.label).or_else(|| key.map(|key| key.fingerprint()));
            (house.log)(&event);
        }
        _ => {}
    })
}

/// How many jobs and peers a policy has, in words.
fn counts(policy: &Policy) -> String {
    let (jobs, peers) = (counted(policy.gates().count(), "job"), counted(policy.peers.len(), "peer"));
    format!("{jobs}, {peers}")
}

fn options(policy: &Policy, identity: &Identity, cancel: &Cancel, door: &Observer) -> Result<Options> {
    let mut options = Options::new(wire::agreement("service", "client"), policy.protection(identity)?);
    options.limits = Limits { idle: IDLE, ..Limits::default() };
    options.cancel = cancel.clone();
    options.observer = door.clone();
    options.via = policy.is_via.then(|| policy.listen.clone());
    options.proxy = options.via.as_deref().and_then(tacit::net::Proxy::from_environment);
    Ok(options)
}

/// Serves a session on a thread of its own, if there are not too many.
fn receive(house: &Arc<House>, session: Session) {
    let most = house.policy().concurrency + WAITING;
    let Some(place) = house.slots.visit(most) else {
        (house.log)(&Event::new("turned away", "too many peers at once"));
        return;
    };
    let theirs = house.clone();
    let started = std::thread::Builder::new().name("tacit-visit".to_owned()).spawn(move || {
        let _place = place;
        if let Err(panicked) = fenced(|| visit(&theirs, session)) {
            (theirs.log)(&Event::new("panicked", format!("a visit: {panicked}")));
        }
    });
    if let Err(error) = started {
        (house.log)(&Event::new("turned away", format!("no thread: {error}")));
    }
}

/// Takes the policy file as it is now, as a whole or not at all; what runs keeps what it began with.
fn reload(house: &House, path: &Path, (cancel, door): (&Cancel, &Observer), reception: &mut Reception<'_>) {
    let old = house.policy();
    let reloaded = Policy::load(path).map_err(|unfit| unfit.lines()).and_then(|policy| {
        let fixed = [
            ("listen", policy.listen != old.listen || policy.is_via != old.is_via),
            ("identity", policy.identity != old.identity),
            ("state", policy.state != old.state),
            ("authority", policy.certificates.is_some() != old.certificates.is_some()),
        ];
        let changed: Vec<String> = fixed
            .iter()
            .filter(|(_, changed)| *changed)
            .map(|(name, _)| format!("`{name}` changed, which needs a restart"))
            .collect();
        if !changed.is_empty() {
            return Err(changed);
        }
        policy.remember().map_err(|error| vec![error.to_string()])?;
        let options = options(&policy, &house.identity, cancel, door)
            .and_then(|options| Ok(reception.receive_by(options)?));
        options.map_err(|error| vec![error.to_string()])?;
        Ok(policy)
    });
    let taken = reloaded.and_then(|policy| {
        let words = counts(&policy);
        house.take(policy).map(|()| words).map_err(|error| vec![error.to_string()])
    });
    match taken {
        Ok(words) => {
            (house.log)(&Event::new("reloaded", words));
        }
        Err(lines) => {
            lines.iter().for_each(|line| (house.log)(&Event::new("policy fault", line.clone())));
            (house.log)(&Event::new("not reloaded", "the previous policy stays active"));
        }
    }
}

/// Looks at how far the clock is behind the latest charge: where it was ahead once, a day's runs are counted
/// by another day than it shows. And at whether runs can be charged and recorded.
#[derive(Default)]
struct Watch {
    /// The day of the last line about the clock.
    told: Option<u64>,
    /// Why no run can be charged.
    stuck: Option<String>,
}

/// Seconds from which on the clock is worth a line.
const BEHIND: u64 = 3600;

impl Watch {
    fn look(&mut self, house: &House, metrics: &Metrics) {
        let stuck = house.ledger(|ledger| ledger.check()).and_then(|()| house.records.check());
        let stuck = stuck.err().map(|error| error.to_string());
        if stuck != self.stuck {
            metrics.stuck.store(stuck.is_some(), Ordering::SeqCst);
            (house.log)(&match &stuck {
                Some(why) => Event::new("not charging", format!("no run is granted: {why}")),
                None => Event::new("charging", "runs are granted again"),
            });
            self.stuck = stuck;
        }
        let (clock, counted) = house.times();
        let behind = counted.0.saturating_sub(clock.0);
        metrics.behind.store(behind, Ordering::SeqCst);
        if behind < BEHIND {
            self.told = None;
        } else if self.told != Some(counted.day()) {
            self.told = Some(counted.day());
            let words = format!(
                "it is {behind} s behind the latest charge: hours use the clock, {}, and a day's runs are \
                 counted as of {}; set the clock if it is wrong",
                clock.text(),
                counted.text()
            );
            (house.log)(&Event::new("clock", words));
        }
    }
}

/// Waits for what runs, for as long as the policy says, or until it is told again.
fn drain(house: &House, signals: &Receiver<Signal>, cancel: &Cancel) {
    house.draining.store(true, Ordering::SeqCst);
    let running = house.slots.visits();
    (house.log)(&Event::new("draining", format!("{} being served", counted(running, "request"))));
    let patience = Duration::from_secs(house.policy().drain_seconds);
    let start = Instant::now();
    while house.slots.visits() > 0 {
        if start.elapsed() >= patience || matches!(signals.try_recv(), Ok(Signal::Drain)) {
            (house.log)(&Event::new("cancelled", "remaining runs are aborted"));
            cancel.cancel();
            break;
        }
        std::thread::sleep(LOOK / 4);
    }
    // Those broken off write their records.
    let end = Instant::now();
    while house.slots.visits() > 0 && end.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(LOOK / 4);
    }
    (house.log)(&Event::new("ended", ""));
}
