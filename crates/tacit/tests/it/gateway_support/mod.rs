//! Two gateways on this machine, and what plays the engine of a cluster.

use std::collections::{HashSet, VecDeque};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tacit::job::psi::gateway::{Gateway, Given, Planned, Ran, Setup, Throw, Token};
use tacit::job::psi::{Bucketed, Job, Learns};
use tacit::net::{Identity, Limits};
use tacit::sealed::FileKey;
use tacit::{Result, Security, Session};
use tacit_net::OneSided;
use tacit_net::relay::relay;
use tacit_net::tcp::TcpLink;
use tacit_net::testing::Tap;
use tempfile::TempDir;
use zeroize::Zeroizing;

pub(crate) const BUCKETS: u64 = 8;

/// What stands for keys of several lengths.
pub(crate) fn keys(range: Range<u32>) -> Vec<[u8; 32]> {
    let throw = Throw::ahead();
    range.map(|i| throw.digest(format!("key {}", u64::from(i) * 7919).as_bytes())).collect()
}

/// What both have, in ascending order.
pub(crate) fn plain(ours: &[[u8; 32]], theirs: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let theirs: HashSet<_> = theirs.iter().collect();
    let mut both: Vec<_> = ours.iter().copied().filter(|key| theirs.contains(key)).collect();
    both.sort_unstable();
    both
}

/// One party.
pub(crate) struct Side {
    pub number: usize,
    pub dir: TempDir,
    pub state: PathBuf,
    pub cluster: String,
    listen: String,
    identity: PathBuf,
    gateway: Option<Gateway>,
    said: Arc<Mutex<Vec<String>>>,
}

pub(crate) struct House {
    pub sides: [Side; 2],
}

impl House {
    pub(crate) fn new() -> Self {
        let sides = [0, 1].map(|number| {
            let dir = tempfile::tempdir().unwrap();
            let identity = dir.path().join("own.key");
            Identity::generate().unwrap().save(&identity, "").unwrap();
            let (any, state) = ("127.0.0.1:0".to_owned(), dir.path().join("state"));
            let (cluster, listen) = (any.clone(), any);
            Side { number, dir, state, cluster, listen, identity, gateway: None, said: Arc::default() }
        });
        let mut house = House { sides };
        house.start(0);
        house.start(1);
        house
    }

    pub(crate) fn start(&mut self, number: usize) {
        let peer = self.sides[1 - number].identity.with_extension("pub");
        let target = self.sides[0].listen.clone();
        let side = &mut self.sides[number];
        let session = if number == 0 { Session::listen(&side.listen) } else { Session::connect(&target) };
        let limits = Limits { idle: Duration::from_secs(20), ..Limits::default() };
        let said = side.said.clone();
        let gateway = Gateway::start(Setup {
            session: session.keys(&side.identity, &peer).unwrap().limits(limits),
            cluster: side.cluster.clone(),
            state: side.state.clone(),
            key: FileKey::from_identity(&Identity::load(&side.identity).unwrap()),
            at_once: 16,
            lines: Box::new(move |line| said.lock().unwrap().push(line.to_owned())),
        });
        let gateway = gateway.unwrap();
        side.cluster = gateway.cluster_address().to_string();
        if let Some(address) = gateway.peer_address() {
            side.listen = address.to_string();
        }
        side.gateway = Some(gateway);
    }

    pub(crate) fn stop(&mut self, number: usize) {
        self.sides[number].gateway = None;
    }

    pub(crate) fn said(&self, number: usize) -> Vec<String> {
        self.sides[number].said.lock().unwrap().clone()
    }

    pub(crate) fn open(
        &self,
        number: usize,
        label: &str,
        keys: &[[u8; 32]],
        learns: Learns,
        security: Security,
        patience: Duration,
    ) -> Result<Planned> {
        let learns = match (number, learns) {
            (1, Learns::Me) => Learns::Peer,
            (_, learns) => learns,
        };
        self.open_job(number, label, keys, &Job::new(learns, security), patience)
    }

    pub(crate) fn open_job(
        &self,
        number: usize,
        label: &str,
        keys: &[[u8; 32]],
        job: &Job,
        patience: Duration,
    ) -> Result<Planned> {
        let side = &self.sides[number];
        let token = Token::from_file(&side.state.join("token"))?;
        let base = tacit_ot::base::default();
        Planned::open(
            &side.cluster,
            &token,
            label,
            job,
            &*base,
            (keys.len() as u64, BUCKETS),
            Given::default(),
            patience,
        )
    }

    /// Both drivers open a job at the same time.
    pub(crate) fn opened(
        &self,
        label: &str,
        keys: [&[[u8; 32]]; 2],
        learns: Learns,
        patience: Duration,
    ) -> [Result<Planned>; 2] {
        std::thread::scope(|scope| {
            let sides = [0, 1].map(|side| {
                scope.spawn(move || self.open(side, label, keys[side], learns, Security::Malicious, patience))
            });
            sides.map(|side| side.join().unwrap())
        })
    }

    pub(crate) fn plans(
        &self,
        label: &str,
        keys: [&[[u8; 32]]; 2],
        learns: Learns,
        patience: Duration,
    ) -> [Planned; 2] {
        self.opened(label, keys, learns, patience).map(Result::unwrap)
    }

    /// Both drivers open a job and `run` it.
    pub(crate) fn both<T: Send>(
        &self,
        label: &str,
        keys: [&[[u8; 32]]; 2],
        learns: Learns,
        patience: Duration,
        run: impl Fn(&Side, Planned, &[[u8; 32]]) -> Result<T> + Sync,
    ) -> [Result<T>; 2] {
        let (planned, run) = (self.plans(label, keys, learns, patience), &run);
        std::thread::scope(|scope| {
            let mut sides = planned
                .into_iter()
                .enumerate()
                .map(|(side, planned)| scope.spawn(move || run(&self.sides[side], planned, keys[side])));
            let started = [sides.next().unwrap(), sides.next().unwrap()];
            started.map(|side| side.join().unwrap())
        })
    }
}

/// What an engine's job gave.
#[derive(Debug)]
pub(crate) struct Done {
    pub matches: Vec<[u8; 32]>,
    pub deferred: usize,
    pub ran: Bucketed,
}

/// As an engine runs a stage of tasks, one a bucket, in so many slots: in rounds, until no bucket is left.
pub(crate) fn engine(
    planned: &Planned,
    address: &str,
    keys: &[[u8; 32]],
    slots: usize,
    ascending: bool,
) -> Result<Done> {
    let throw = planned.throw();
    let mut buckets = vec![Vec::new(); planned.buckets as usize];
    keys.iter().for_each(|key| buckets[throw.bucket(key) as usize].push(*key));
    let matches = Mutex::new(Vec::new());
    let deferred = AtomicUsize::new(0);
    let mut round: Vec<u64> = (0..planned.buckets).collect();
    while !round.is_empty() {
        if !ascending {
            round.reverse();
        }
        let (todo, left) = (Mutex::new(VecDeque::from(round)), Mutex::new(Vec::new()));
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..slots {
                scope.spawn(|| {
                    loop {
                        let Some(number) = todo.lock().unwrap().pop_front() else { return };
                        let keys = Zeroizing::new(buckets[number as usize].clone());
                        match planned.run(address, number, keys, &|_, _| None) {
                            Ok(Ran::Matches { digests, .. }) => matches.lock().unwrap().extend(digests),
                            Ok(Ran::Deferred) => {
                                deferred.fetch_add(1, Ordering::SeqCst);
                                left.lock().unwrap().push(number);
                            }
                            Err(error) => {
                                todo.lock().unwrap().clear();
                                failed.lock().unwrap().get_or_insert(error);
                            }
                        }
                    }
                });
            }
        });
        if let Some(error) = failed.into_inner().unwrap() {
            return Err(error);
        }
        round = left.into_inner().unwrap();
        round.sort_unstable();
    }
    let mut matches = matches.into_inner().unwrap();
    matches.sort_unstable();
    let ran = planned.ran(address, matches.len() as u64)?;
    Ok(Done { matches, deferred: deferred.into_inner(), ran })
}

/// What happens to a connection.
#[derive(Clone)]
pub(crate) enum Harm {
    /// It ends, as when a process is killed.
    Cut,
    /// A byte of what the task says changes, by somebody who has the gateway's token.
    Flip(Identity),
}

impl Harm {
    pub(crate) fn flip(side: &Side) -> Self {
        let token = std::fs::read_to_string(side.state.join("token")).unwrap();
        let token = *blake3::Hash::from_hex(token.trim()).unwrap().as_bytes();
        Harm::Flip(Identity::of_secret("tacit 1 gateway: identity in its cluster", &token).unwrap())
    }
}

/// A way between tasks and their gateway on which as many connections are harmed as `left` says, each after
/// so many bytes of the task's.
pub(crate) struct Way {
    pub address: String,
    pub left: Arc<AtomicUsize>,
}

impl Way {
    pub(crate) fn start(target: &str, after: usize, harm: Harm) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, target) = (port.local_addr().unwrap().to_string(), target.to_owned());
        let left = Arc::new(AtomicUsize::new(0));
        let counter = left.clone();
        std::thread::spawn(move || {
            while let Ok((inner, _)) = port.accept() {
                let Ok(outer) = TcpStream::connect(&target) else { continue };
                let counter = counter.clone();
                let take = move || {
                    let take = |left: usize| left.checked_sub(1);
                    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok()
                };
                match &harm {
                    Harm::Flip(identity) if take() => {
                        let identity = identity.clone();
                        std::thread::spawn(move || _ = pass_flipped(inner, outer, &identity, after));
                    }
                    harm => {
                        let cuts = matches!(harm, Harm::Cut);
                        let (from, to) = (outer.try_clone().unwrap(), inner.try_clone().unwrap());
                        std::thread::spawn(move || pass(from, to, |_, _| false));
                        std::thread::spawn(move || {
                            let mut is_done = false;
                            pass(inner, outer, |passed, bytes| {
                                let comes = cuts && !is_done && passed + bytes.len() > after;
                                is_done |= comes;
                                comes && take()
                            });
                        });
                    }
                }
            }
        });
        Way { address, left }
    }
}

/// Passes on what a task and its gateway say, with a bit changed of what the task does.
fn pass_flipped(inner: TcpStream, outer: TcpStream, identity: &Identity, at: usize) -> tacit_net::Result<()> {
    let (soon, tap) = (Instant::now() + Duration::from_secs(20), Tap::default());
    let outer = OneSided::calling(identity.public()).open(Box::new(TcpLink::new(outer)?), soon)?;
    let inner = OneSided::called(identity)?.open(Box::new(TcpLink::new(inner)?), soon)?;
    tap.flip(at, 0x10);
    let ends = [(inner, Vec::new()), (tap.of(outer), Vec::new())];
    relay(ends, Duration::from_secs(60), Duration::from_secs(60), &mut |_| {}, &mut || false)
}

/// Passes bytes on until either end closes or `meet`, told how many have passed and the next ones, ends it.
fn pass(mut from: TcpStream, mut to: TcpStream, mut meet: impl FnMut(usize, &[u8]) -> bool) {
    let (mut buffer, mut passed) = (vec![0; 1 << 14], 0);
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
        if meet(passed, &buffer[..n]) {
            break;
        }
        passed += n;
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
