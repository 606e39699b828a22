//! Two gateways and their drivers: a job's result is that of a plain join, whatever a disk does on the way.

use crate::disk::{Fault, Kind, Machine};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tacit::job::psi::gateway::{Gateway, Given, Planned, Ran, Setup, Throw, Token};
use tacit::job::psi::{ATTEMPTS, Job, Learns};
use tacit::net::{Identity, Limits};
use tacit::sealed::FileKey;
use tacit::{Result, Security, Session};
use zeroize::Zeroizing;

const BUCKETS: u64 = 2;
/// What an attempt waits for at most: with a disk that fails, and with sound ones on a machine that has other work.
const PATIENCE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(30)];
/// How often a job is taken up again; more often than the gateways allow attempts.
const TRIES: usize = 8;

pub(crate) struct Gateways {
    config: PathBuf,
    machines: [Machine; 2],
    jobs: u64,
    patience: Duration,
    /// The jobs whose plan a driver was given, and the token that opened them.
    planned: [Mutex<(BTreeSet<String>, String)>; 2],
}

type Digests = Vec<[u8; 32]>;

fn keys(numbers: std::ops::Range<u32>) -> Digests {
    let throw = Throw::ahead();
    numbers.map(|number| throw.digest(format!("key {number}").as_bytes())).collect()
}

impl Gateways {
    pub(crate) fn new(folder: &Path) -> Self {
        let config = folder.join("config");
        let machines = ["upper", "lower"].map(|name| {
            Identity::generate().unwrap().save(&config.join(format!("{name}.key")), "").unwrap();
            std::fs::create_dir(folder.join(name)).unwrap();
            Machine::watch(folder.join(name))
        });
        Gateways { config, machines, jobs: 0, patience: PATIENCE[1], planned: Default::default() }
    }

    /// A gateway; the second one calls the first.
    fn start(&self, side: usize, first: Option<&Gateway>) -> Result<Gateway> {
        let file = |side: usize, end: &str| self.config.join(["upper", "lower"][side]).with_extension(end);
        let target = first.and_then(Gateway::peer_address).map(|address| address.to_string());
        let session = target.as_deref().map_or_else(|| Session::listen("127.0.0.1:0"), Session::connect);
        let limits = Limits { idle: self.patience, connect: self.patience, ..Limits::default() };
        Gateway::start(Setup {
            session: session.keys(&file(side, "key"), &file(1 - side, "pub"))?.limits(limits),
            cluster: "127.0.0.1:0".into(),
            state: self.machines[side].folder.join("state"),
            key: FileKey::from_identity(&Identity::load(&file(side, "key"))?),
            at_once: 4,
            lines: Box::new(|_| ()),
        })
    }

    /// What a party's driver and tasks do; the keys that match.
    fn drive(&self, side: usize, gateway: &Gateway, label: &str, own: &[[u8; 32]]) -> Result<Digests> {
        let token = Token::from_file(&self.machines[side].folder.join("state/token"))?;
        let (job, base) = (Job::new(Learns::Both, Security::Malicious), tacit_ot::base::default());
        let address = gateway.cluster_address().to_string();
        let size = (own.len() as u64, BUCKETS);
        let planned =
            Planned::open(&address, &token, label, &job, &*base, size, Given::default(), self.patience)?;
        let text = std::fs::read_to_string(self.machines[side].folder.join("state/token")).unwrap();
        let mut known = self.planned[side].lock().unwrap();
        known.0.insert(label.to_owned());
        known.1 = text;
        drop(known);
        let throw = planned.throw();
        let mut matches = Vec::new();
        for number in 0..planned.buckets {
            let bucket: Digests = own.iter().copied().filter(|key| throw.bucket(key) == number).collect();
            loop {
                let none = |_: usize, _: usize| -> Option<&'static [u8]> { None };
                match planned.run(&address, number, Zeroizing::new(bucket.clone()), &none)? {
                    Ran::Matches { digests, .. } => break matches.extend(digests.iter().copied()),
                    Ran::Deferred => {}
                }
            }
        }
        matches.sort_unstable();
        Ok(matches)
    }

    /// Runs the job as far as it goes.
    fn attempt(&self, label: &str, sets: [&[[u8; 32]]; 2]) -> Result<[Digests; 2]> {
        let first = self.start(0, None)?;
        let second = self.start(1, Some(&first))?;
        let [one, two] = std::thread::scope(|scope| {
            let drivers = [(0, &first), (1, &second)]
                .map(|(side, gateway)| scope.spawn(move || self.drive(side, gateway, label, sets[side])));
            drivers.map(|driver| driver.join().unwrap())
        });
        match (one, two) {
            (Ok(one), Ok(two)) => Ok([one, two]),
            // One side often knows no more than that the other does not come.
            (one, two) => {
                let [one, two] =
                    [one, two].map(|side| side.map_or_else(|error| error.to_string(), |_| "done".into()));
                Err(tacit::Error::Other(format!("upper: {one}; lower: {two}")))
            }
        }
    }

    /// What a driver was given is on the disk, whatever happened since: its token, and a folder for each job in which its
    /// attempts are counted.
    fn check(&self, side: usize) {
        let state = self.machines[side].folder.join("state");
        let known = self.planned[side].lock().unwrap();
        if known.0.is_empty() {
            return;
        }
        let token = std::fs::read_to_string(state.join("token"));
        assert_eq!(token.ok().as_ref(), Some(&known.1), "the token is another one");
        let jobs = std::fs::read_dir(state.join("jobs")).map(|jobs| jobs.flatten().collect());
        let jobs: Vec<_> = jobs.unwrap_or_default();
        let counted = jobs.iter().filter(|job| job.path().join("tosses").exists()).count();
        assert!(counted >= known.0.len(), "{counted} of {} jobs are on the disk", known.0.len());
    }

    /// A job, with a fault of one side's disk; it is taken up again until it has its result, or all its attempts.
    pub(crate) fn happen(&mut self, side: usize, fault: Option<Fault>, seed: u64) {
        self.jobs += 1;
        let label = format!("job {}", self.jobs);
        let [ours, theirs] = [keys(0..12), keys(8..24)];
        let mut both = keys(8..12);
        both.sort_unstable();
        if let Some(fault) = fault {
            self.machines[side].plan(fault);
            self.patience = PATIENCE[0];
        }
        let mut last = self.attempt(&label, [&ours, &theirs]);
        self.patience = PATIENCE[1];
        match fault {
            Some(Fault { kind: Kind::Dead, .. }) => self.machines[side].cut(seed),
            _ => self.machines[side].mend(),
        }
        self.check(side);
        for tries in 1..TRIES {
            match &last {
                Ok(found) => return assert!(found.iter().all(|found| *found == both), "another result"),
                Err(error) if tries >= usize::from(ATTEMPTS) && error.to_string().contains("for good") => {
                    return;
                }
                Err(_) => last = self.attempt(&label, [&ours, &theirs]),
            }
        }
        panic!("the job does not come to its end: {:?}", last.err().map(|error| error.to_string()));
    }
}
