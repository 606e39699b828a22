//! Intersections of sets that are spread over a cluster: one gateway a party between the two networks.
//!
//! A party's tasks, one a bucket, run [`InBuckets`](super::InBuckets)' buckets: the same keyed throw, the
//! same padding, VOLE-PSI with the same parameters. A task never speaks to the peer's. It speaks to its own
//! gateway, the two gateways join the tasks of one bucket by a session of their own (TLS 1.3, both keys
//! pinned), and pass on what the two say. Of a job a gateway keeps what the
//! [rules of going on](super::ATTEMPTS) ask for:
//!
//! 1. Both drivers open the job by its name ([`Planned::open`]). The gateways compare its terms, announce
//!    both sets' sizes, settle the number of buckets, and only then toss the key that says which bucket a key
//!    goes into.
//! 2. A task comes with its bucket ([`Planned::run`]) and a digest of the bucket's keys. The first one is
//!    committed to: who comes with other keys is refused, so that a table which is not twice the same ends in
//!    an error and not in a wrong result.
//! 3. The first gateway begins a bucket when a task waits with it on both sides, the lowest first. An attempt
//!    is counted on both disks before its first byte, and there are [`ATTEMPTS`](super::ATTEMPTS) at most. It
//!    runs under a session id of its own, to which both sides contributed, with fresh coins and a fresh salt.
//!    Of several tasks with one bucket one runs, the others wait for what it gives.
//! 4. A bucket ends when both gateways hold the result of one attempt on disk. Who comes later, after a crash
//!    or because an engine computes a partition again, is served from there. What ended on neither side runs
//!    anew.
//! 5. A task that waits with a bucket while nobody has come with an earlier one gives up its slot within a
//!    few seconds, and comes again: so both sides always get to the lowest bucket that is left, however few
//!    slots they have.
//! 6. A failed check ends the job on both sides for good, on the disk too.
//!
//! The peer learns what it learns of a run in buckets: both sizes and the result. When a bucket runs depends
//! on both engines, which take longer over more rows (docs/proofs/buckets.md, 6.3). A cheating peer can put another set into a bucket for each attempt,
//! which [`Bucketed::tested`](super::Bucketed::tested) counts.

mod client;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod given;
mod job;
mod local;
mod peer;
mod state;
mod words;

pub use client::{Planned, Throw};
pub use given::{Given, Ran, Row};
pub use words::Token;

use super::buckets::kept::lasting_folder;
use crate::{Error, Result};
use job::Job;
use state::State;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tacit_crypto::fence::fenced;
use tacit_crypto::text::counted;
use tacit_net::{Cancel, Event, Observer, OneSided, Options};
use tacit_store::sealed::FileKey;

/// The most places of a bucket: beyond it one task would take gigabytes.
pub const MOST_PLACES: u64 = 1 << 23;
/// Keys of a bucket, unless the caller says how many buckets there are.
const BUCKET_KEYS: u64 = 1 << 18;
/// Where the jobs' folders are, in the state folder.
const JOBS: &str = "jobs";

/// How many buckets suit a set of `own` keys and so many tasks at once, a power of two: at least four for
/// each task, and so many that none has far beyond 2^18 keys, up to [`MAX_BUCKETS`](super::MAX_BUCKETS).
pub fn buckets_for(own: u64, at_once: u64) -> u64 {
    let wanted = at_once.saturating_mul(4).max(own.div_ceil(BUCKET_KEYS)).max(1);
    wanted.min(super::MAX_BUCKETS).next_power_of_two()
}

/// Who is told what happens, a line at a time.
pub type Lines = dyn Fn(&str) + Send + Sync;

/// What a gateway is made of.
pub struct Setup {
    /// How the peer's gateway is reached, and who it is; with TLS.
    pub session: crate::Session,
    /// Where this party's own tasks find the gateway.
    pub cluster: String,
    /// The folder in which jobs are kept, sealed, and where the token for the party's driver is.
    pub state: PathBuf,
    /// What they are sealed with.
    pub key: FileKey,
    /// The most buckets that run at a time.
    pub at_once: usize,
    /// Who is told what happens.
    pub lines: Box<Lines>,
}

/// What all threads of a gateway share.
struct House {
    first: bool,
    /// The peer's gateway, where we call it.
    target: Option<String>,
    options: Options,
    jobs_folder: PathBuf,
    key: Arc<FileKey>,
    token: Token,
    /// How this party's cluster knows the gateway.
    tls: OneSided,
    at_once: usize,
    lines: Arc<Lines>,
    stopping: Arc<AtomicBool>,
    jobs: Mutex<BTreeMap<String, Arc<Job>>>,
    /// Connections of the cluster that have not shown a token yet.
    unknown: Mutex<local::Waiting>,
}

/// A gateway that runs until it is stopped or dropped.
pub struct Gateway {
    house: Arc<House>,
    cluster: SocketAddr,
    peer: Option<SocketAddr>,
    cancel: Cancel,
    threads: Vec<JoinHandle<()>>,
    _lock: std::fs::File,
}

impl Gateway {
    /// Starts a gateway, which goes on with the jobs that its state folder holds.
    ///
    /// Errors: a session without TLS or with several channels, addresses that cannot be listened at, a state
    /// folder that another gateway uses, and files in it that do not open.
    pub fn start(setup: Setup) -> Result<Self> {
        let Setup { session, cluster, state, key, at_once, lines } = setup;
        let cancel = Cancel::armed();
        let agreement = peer::agreement();
        let (listen, target, mut options) = session.gateway(agreement)?;
        options.cancel = cancel.clone();
        let lines: Arc<Lines> = Arc::from(lines);
        options.observer = door(&lines);
        lasting_folder(&state)?;
        let lock = super::buckets::kept::hold(&state, "another gateway uses this state directory")?;
        let jobs_folder = state.join(JOBS);
        lasting_folder(&jobs_folder)?;
        let listener = listen.as_deref().map(tacit_net::Listener::bind).transpose()?;
        let peer = listener.as_ref().map(tacit_net::Listener::local_addr).transpose()?;
        let failed = |source| Error::Usage(format!("{cluster}: cannot listen there: {source}"));
        let port = TcpListener::bind(&cluster).map_err(failed)?;
        let cluster = port.local_addr().map_err(failed)?;
        let token = state::token(&state)?;
        let tls = OneSided::called(&token.identity()?)?;
        let house = Arc::new(House {
            first: listener.is_some(),
            target,
            options,
            jobs_folder,
            key: Arc::new(key),
            token,
            tls,
            at_once: at_once.max(1),
            lines,
            stopping: Arc::default(),
            jobs: Mutex::default(),
            unknown: Mutex::default(),
        });
        house.load()?;
        let mut gateway = Gateway { house, cluster, peer, cancel, threads: Vec::new(), _lock: lock };
        let house = gateway.house.clone();
        gateway.threads.push(spawn("tacit-cluster", move || local::receive(&house, &port))?);
        if let Some(listener) = listener {
            let house = gateway.house.clone();
            gateway.threads.push(spawn("tacit-gateway", move || peer::receive(&house, &listener))?);
        }
        Ok(gateway)
    }

    /// Where tasks find the gateway.
    pub fn cluster_address(&self) -> SocketAddr {
        self.cluster
    }

    /// Where the peer's gateway finds it, if it is the one that listens.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Waits until the gateway ends, which only a fault of the system brings about.
    pub fn wait(mut self) -> Result<()> {
        if let Some(thread) = self.threads.pop() {
            let _ = thread.join();
        }
        Err(Error::Other("the gateway no longer accepts calls".to_owned()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.house.stopping.store(true, Ordering::SeqCst);
        self.cancel.cancel();
        // Wakes who waits for the next task.
        let _ = TcpStream::connect(self.cluster);
        self.threads.drain(..).for_each(|thread| _ = thread.join());
        self.house.jobs().values().for_each(|job| job.close());
    }
}

impl House {
    fn say(&self, what: &str) {
        (self.lines)(what);
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Job>>> {
        lock(&self.jobs)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn make(&self, state: State) -> Arc<Job> {
        Arc::new(Job::new(state, self.first, self.at_once, self.stopping.clone(), self.lines.clone()))
    }

    /// Takes up the jobs that are kept.
    fn load(self: &Arc<Self>) -> Result<()> {
        for folder in state::folders(&self.jobs_folder)? {
            if let Some(state) = State::load(&folder, self.key.clone())? {
                let job = self.make(state);
                self.jobs().insert(job.label.clone(), job.clone());
                self.keep(&job)?;
            }
        }
        Ok(())
    }

    /// Sees to it that somebody calls the peer about this job, where we are the side that calls.
    fn keep(self: &Arc<Self>, job: &Arc<Job>) -> Result<()> {
        if job.take_interest() {
            let (house, job) = (self.clone(), job.clone());
            let lines = self.lines.clone();
            serve_aside("tacit-keeper", &lines, move || peer::call(&house, &job))?;
        }
        Ok(())
    }

    /// The job of this name.
    fn find(&self, label: &str) -> Result<Arc<Job>> {
        self.jobs().get(label).cloned().ok_or_else(|| {
            let name = tacit_net::shown(label);
            Error::Input(format!("the gateway has no job {name}; the driver must open it first"))
        })
    }
}

/// Who is told of the connections at the peer's port that are no gateway's: strangers when their number has
/// doubled, a gateway that wants something else each time.
fn door(lines: &Arc<Lines>) -> Observer {
    let lines = lines.clone();
    Observer::new(move |event| match event {
        Event::Stranger { from, what, count, .. } if count.is_power_of_two() => {
            lines(&format!(
                "{count} so far were turned away; the last from {from}: {what}",
                count = counted(count, "stranger")
            ));
        }
        Event::Disagreed { from, what, .. } => {
            lines(&format!("the other gateway, from {from}, was turned away: {what}"));
        }
        _ => {}
    })
}

/// Does the work of one caller on a thread of its own. A panic ends that work alone, and is told.
fn serve_aside(
    name: &str,
    lines: &Arc<Lines>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let lines = lines.clone();
    spawn(name, move || {
        if let Err(panicked) = fenced(work) {
            lines(&format!("one caller's work ended: {panicked}"));
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|error| Error::Other(format!("no thread for {name}: {error}")))
}

/// A thread that panicked has left nothing half-done that another could not go on from.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
