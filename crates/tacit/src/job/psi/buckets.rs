//! Intersections of sets that are larger than memory: both are thrown into as many buckets on disk, and each
//! bucket is an intersection of its own.
//!
//! 1. Each side reads its keys once. Of a key goes to disk what BLAKE3 makes of it, and its row, into files
//!    by its first bits; file by file, equal keys are left out but for their first row, and the pairs of rows
//!    are kept.
//! 2. Both announce how many keys are left, and settle the number of buckets; then they toss coins for the
//!    key that says which bucket a key goes into. No set is chosen for it: it is tossed after both
//!    announcements.
//! 3. Each bucket is padded to the [`capacity`] that the set's size alone determines, with random keys that
//!    cannot match: a byte in front says that a key is real, the first party's padding or the second's.
//! 4. Bucket by bucket runs VOLE-PSI, each with a set-up, a salt and coins of its own; over several channels
//!    as many buckets at once.
//!
//! The peer learns the sizes of both sets and the result, as without buckets. A cheating peer that learns the
//! result may end the run after some buckets, and has the result of these. In every bucket it can test what
//! the protocol's bound says of its padded size; [`Bucketed::tested`] adds them up. It sees a bucket's matches
//! before it fixes its set of the next one: what it tests there may follow from them, where one intersection
//! of everything fixes its whole set first.
//!
//! Except with probability 2^-40, no bucket of either side overflows.
//!
//! # Going on after a lost connection
//!
//! A connection that is lost ends no run: the two sides meet again, tell each other which buckets are done,
//! and go on with the others ([`InBuckets`]). With [`Resume`] that holds after a crash of either too. A
//! bucket that was not done on both sides begins anew, with fresh coins and a salt that is drawn after both
//! sides' commitments; nothing of a protocol's randomness is ever kept. A peer could put another set into a
//! bucket that it begins again, and so test as many keys more: a bucket is begun at most [`ATTEMPTS`] times,
//! counted before it begins and on the disk, and [`Bucketed::tested`] counts every time. So is the toss, where
//! it has to be made again. Whatever is no lost connection, a failed check above all, ends the run for good, on the disk too.

pub(super) mod capacity;
#[cfg(test)]
mod cheats;
pub(super) mod checkpoint;
pub(super) mod kept;
pub(super) mod meeting;
pub(super) mod spill;
pub(super) mod table;

pub use checkpoint::Resume;

use super::{Job, Outcome, Protocol, Reveal, Tested, refuse_variants};
use crate::job::{Course, Observer, Phase};
use crate::{Error, Result};
use capacity::capacity;
use checkpoint::{Checkpoint, End, Plan};
use meeting::{Standing, Verdict};
use spill::{Folder, WRITING};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use table::{Keys, Table};
use tacit_crypto::text::counted;
use tacit_crypto::{BitVec, Prg, workers};
use tacit_net::{Agreement, Channel, Limits};
use tacit_ot::BaseOt;
use tacit_psi::{paxos, vole_psi};
use zeroize::Zeroizing;

/// Time that the peer may take to read its table and to spread it.
const PEER_READS: Duration = Duration::from_secs(6 * 3600);
/// How often a bucket is begun at most.
pub const ATTEMPTS: u8 = 3;
/// Logarithm of a power of two that is no less.
// proof: buckets 5.1
const ATTEMPTS_LOG2: u32 = 2;
/// The most buckets of a run.
pub const MAX_BUCKETS: u64 = 1 << (vole_psi::MAX_RUNS_LOG2 - ATTEMPTS_LOG2);
/// A bucket of a side overflows once in 2^43 tosses at most, of which a run makes [`ATTEMPTS`].
pub const OVERFLOW_BITS: u32 = 43;
/// Bytes of memory for each record of a bucket, beside the protocol's: the record, its element and its row.
const RECORD_HELD: u64 = 96;
/// Bytes that a run holds beside that and a run of its bucket's size, from the peaks of runs in 2 to 64 buckets:
/// what the bucket before gave back to the process and not to the system, and what files are read through. Of
/// 500,000 keys in four buckets 59 MiB are data, and 61 were reckoned with the process; what is beyond is the code of
/// the command, some 17 MiB. (A command that is built for tests has 27 of it, as what others wrote is not optimised
/// there: that is the tests' to allow for.)
const RUN_HELD: u64 = 12 << 20;
/// Bytes that each further computing thread holds, up to [`THREADS_HELD`]: what it gave back likewise. 7.4 MiB were
/// measured of the second.
const THREAD_HELD: u64 = 8 << 20;
const THREADS_HELD: usize = 4;
/// Where both sides say that they are, in this order.
const SETTLED: &[u8; 4] = b"plan";
const SPREAD: &[u8; 4] = b"here";
const DONE: &[u8; 4] = b"done";

static PHASES: [Phase; 2] = [("reading", "keys", 1.0), ("intersecting", "buckets", 20.0)];

/// What a run may take of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk<'a> {
    /// The folder inside which a run makes its own, of at most 120 bytes for each identifier of a row.
    pub folder: &'a Path,
    /// Bytes of memory at most.
    pub memory: u64,
    /// At least so many buckets, a power of two; 1 leaves it to the memory.
    pub buckets: u64,
    /// Buckets that run at once: as many as there are channels.
    pub at_once: usize,
    /// Where the run is kept so that it can go on after a crash; nowhere if it need not.
    pub resume: Option<Resume<'a>>,
}

impl Disk<'_> {
    /// Refuses a number of buckets that cannot be.
    pub fn check(&self) -> Result<()> {
        if self.buckets.is_power_of_two() && self.buckets <= MAX_BUCKETS {
            return Ok(());
        }
        let what = format!("a power of two from 1 to {MAX_BUCKETS}");
        Err(Error::Parameter { name: "buckets", what })
    }
}

/// What an intersection in buckets gave.
#[derive(Clone, Debug)]
pub struct Bucketed {
    /// For each of our rows whether the peer has its key too, of several identifiers for each of them, one after the
    /// other; `None` if only the peer learns that.
    pub matches: Option<BitVec>,
    /// How many of our distinct keys the peer has; `None` likewise.
    pub common: Option<u64>,
    /// Our distinct keys.
    pub own: u64,
    /// The peer's distinct keys, as announced.
    pub peer: u64,
    /// How many buckets there were.
    pub buckets: u64,
    /// How often a bucket was begun again, after a connection was lost.
    pub repeated: u64,
    /// Whether the peer has said that it is done too. Where it has not, its last bucket may be missing there.
    pub confirmed: bool,
    /// Places in each bucket, ours and the peer's.
    pub places: [u64; 2],
    /// How many keys a cheating peer can have tested over all buckets, padding and repetitions included;
    /// `None` where it got no result, and where nothing is promised of a peer that deviates.
    pub tested: Option<Tested>,
}

/// What a run on disk says of its sets.
pub(crate) const ON_DISK: &str = "in buckets on disk";

impl Bucketed {
    /// By which of so many identifiers, in their order, our row `row` matches first; nothing where it does not.
    pub fn matches_by(&self, row: u64, identifiers: usize) -> Option<usize> {
        let matches = self.matches.as_ref()?;
        let first = usize::try_from(row).ok()?.checked_mul(identifiers)?;
        (0..identifiers).find(|at| first + at < matches.len() && matches.get(first + at))
    }
}

impl Job {
    /// Intersects the keys that `keys` tells one after the other, one a row (and identifier) or none, duplicates among
    /// them, with the peer's, which may be as many as `most_peer_keys`: rows are revealed, by VOLE-PSI. Both sides
    /// call it.
    ///
    /// `keys` is called once, with whom to tell. Errors: a job that reveals something else, less memory than
    /// the sets take in [`MAX_BUCKETS`], a folder that cannot be written, what `keys` returns, and those of
    /// [`vole_psi::run`]. Nothing is returned unless every bucket's checks passed, and no file is left but
    /// those of [`Resume`].
    pub fn run_in_buckets(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        keys: impl FnOnce(&mut dyn FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> + Send,
        most_peer_keys: u64,
        disk: &Disk<'_>,
        observer: &dyn Observer,
    ) -> Result<Bucketed> {
        let mut run = InBuckets::new(self, base, Box::new(keys), most_peer_keys, disk, observer)?;
        run.go_on(channels)?;
        run.finish()
    }

    /// What both sides of a run in buckets must agree on.
    pub fn agreement_in_buckets(&self, base: &dyn BaseOt, disk: &Disk<'_>) -> Agreement {
        let resume = if disk.resume.is_some() { "given" } else { "not given" };
        self.agreement(base).with("sets", ON_DISK).with("resume", resume)
    }

    /// The fewest buckets with which a run with so many keys keeps to the memory, and no fewer than were
    /// asked for; nothing if [`MAX_BUCKETS`] are too few.
    pub fn buckets(&self, own: u64, peer: u64, disk: &Disk<'_>) -> Option<u64> {
        let at_once = disk.at_once.max(1) as u64;
        let held = RUN_HELD + (workers::count().min(THREADS_HELD) as u64 - 1) * THREAD_HELD;
        let fits = |buckets: &u64| {
            let [ours, theirs] = [own, peer].map(|count| capacity(count, *buckets, OVERFLOW_BITS));
            let most = super::MAX_ELEMENTS as u64;
            let each = self.memory(ours, theirs).saturating_add(RECORD_HELD * ours);
            ours.max(theirs) <= most
                && each.saturating_mul(at_once.min(*buckets)).saturating_add(own / 8 + held) <= disk.memory
        };
        (0..=MAX_BUCKETS.ilog2()).map(|log2| 1 << log2).filter(|b| *b >= disk.buckets).find(fits)
    }
}

fn too_little(keys: u64, memory: u64) -> Error {
    let what = format!(
        "{memory} do not suffice for {keys} and the peer's; give more",
        memory = counted(memory, "byte"),
        keys = counted(keys, "key")
    );
    Error::Parameter { name: "memory", what }
}

/// An intersection in buckets that takes as many connections as it needs.
///
/// [`go_on`](Self::go_on) runs over one until all is done or the connection is lost, which
/// [`Error::is_lost_link`] tells; [`finish`](Self::finish) gives the result.
pub struct InBuckets<'a> {
    job: Job,
    base: &'a (dyn BaseOt + Send + Sync),
    keys: Option<Box<Keys<'a>>>,
    most_peer_keys: u64,
    disk: Disk<'a>,
    observer: &'a dyn Observer,
    /// Where our keys will lie, made before anybody is called.
    folder: Option<Folder>,
    course: Option<Course<'a>>,
    local: Option<Local<'a>>,
}

/// What is on this side, once its keys were read.
struct Local<'a> {
    table: Table,
    checkpoint: Checkpoint<'a>,
    matches: BitVec,
    /// The peer has settled the plan too: it has no reason to know nothing of it.
    peer_settled: bool,
    /// Over this connection both have said where they are, and go on from there.
    has_met: bool,
}

impl<'a> InBuckets<'a> {
    /// A run of `job`; the arguments are those of [`Job::run_in_buckets`]. Errors: a job that does not run in
    /// buckets, and folders in which nothing can be made.
    pub fn new(
        job: &Job,
        base: &'a (dyn BaseOt + Send + Sync),
        keys: Box<Keys<'a>>,
        most_peer_keys: u64,
        disk: &Disk<'a>,
        observer: &'a dyn Observer,
    ) -> Result<Self> {
        job.check()?;
        if job.reveal != Reveal::Rows {
            let what = "buckets reveal only rows".to_owned();
            return Err(Error::Parameter { name: "reveal", what });
        }
        if job.protocol == Protocol::Paxos {
            let what = "buckets run by vole, not by paxos".to_owned();
            return Err(Error::Parameter { name: "protocol", what });
        }
        if let Some(key) = &job.key {
            refuse_variants(key, "buckets take")?;
        }
        disk.check()?;
        let job = Job { protocol: Protocol::Vole, ..job.clone() };
        let folder = Folder::new(disk.folder, &mut Prg::from_os())?;
        if let Some(resume) = &disk.resume {
            resume.admit()?;
        }
        Ok(InBuckets {
            job,
            base,
            keys: Some(keys),
            most_peer_keys,
            disk: *disk,
            observer,
            folder: Some(folder),
            course: None,
            local: None,
        })
    }

    /// Whether all our buckets are done: what is missing is at most the peer's word that its are.
    pub fn is_complete(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.checkpoint.is_complete())
    }

    /// Whether the peer has said that all its buckets are done.
    pub fn is_confirmed(&self) -> bool {
        self.local.as_ref().is_some_and(|local| local.checkpoint.confirmed)
    }

    /// How many buckets are done, and of how many, if that was settled.
    pub fn progress(&self) -> Option<(u64, u64)> {
        let checkpoint = &self.local.as_ref()?.checkpoint;
        let done = checkpoint.are_done().iter().filter(|done| **done).count();
        Some((done as u64, checkpoint.plan.as_ref()?.buckets))
    }

    /// Reads our keys, if that was not done yet, and what is kept of the run. Errors: a run that ended for
    /// good, or that is not the one that is kept; those of files.
    pub fn prepare(&mut self) -> Result<()> {
        let (Some(keys), Some(folder)) = (self.keys.take(), self.folder.take()) else { return Ok(()) };
        let course = self.course.get_or_insert_with(|| Course::begin(&PHASES, &mut [], 0, self.observer));
        let table = Table::read(folder, keys, self.disk.memory, course)?;
        let checkpoint = match &self.disk.resume {
            Some(resume) => {
                let agreement = self.job.agreement_in_buckets(self.base, &self.disk);
                Checkpoint::load(resume, digest(&agreement, &self.job), table.digest)?
            }
            None => Checkpoint::in_memory(),
        };
        let mut matches = BitVec::zeros(usize::try_from(table.rows).unwrap_or(usize::MAX));
        checkpoint.each_row(|row| matches.set(row as usize, true))?;
        self.local = Some(Local { table, checkpoint, matches, peer_settled: false, has_met: false });
        Ok(())
    }

    /// Runs over these channels until all buckets are done on both sides.
    ///
    /// Errors: one with [`Error::is_lost_link`] leaves the run as far as it went. Any other that the peer is
    /// to blame for ends it for good, once the two have met.
    pub fn go_on(&mut self, channels: &mut [Channel]) -> Result<()> {
        match &self.course {
            Some(course) => course.count(channels),
            None => self.course = Some(Course::begin(&PHASES, channels, 0, self.observer)),
        }
        self.prepare()?;
        let (Some(local), Some(course)) = (&mut self.local, &self.course) else {
            return Err(Error::Other("the run has no table".into()));
        };
        let way = Way {
            job: &self.job,
            base: self.base,
            disk: &self.disk,
            most_peer_keys: self.most_peer_keys,
            course,
        };
        let ran = way.run(local, channels);
        if let Err(error) = &ran
            && local.has_met
            && error.blame() == crate::Blame::Peer
            && !error.is_lost_link()
            && local.checkpoint.ended.is_none()
        {
            local.checkpoint.ended = Some(End::Cheated);
            local.checkpoint.save(&mut Prg::from_os())?;
        }
        ran
    }

    /// The result. Errors: buckets that are missing.
    pub fn finish(self) -> Result<Bucketed> {
        let Some(Local { mut table, checkpoint, mut matches, .. }) = self.local else {
            return Err(Error::Other("the run has no table".into()));
        };
        let (true, Some(plan)) = (checkpoint.is_complete(), &checkpoint.plan) else {
            return Err(Error::Other("the run is not at its end".into()));
        };
        table.each_twin(|row, first| matches.set(row as usize, matches.get(first as usize)))?;
        let places = places(plan);
        let outcome = Outcome {
            matches: None,
            peer_elements: places[1],
            peer_received: checkpoint.peer_received,
            protocol: vole_psi::NAME,
        };
        let tested = self.job.tested(&outcome, places[0])?;
        let begun: u64 = checkpoint.begun.iter().map(|begun| u64::from(*begun)).sum();
        let tested = tested.map(|one| in_all(one, &outcome, places[0], plan.buckets, begun)).transpose()?;
        let ours = self.job.learns != super::Learns::Peer;
        Ok(Bucketed {
            matches: ours.then_some(matches),
            common: ours.then_some(checkpoint.common()),
            own: plan.own,
            peer: plan.peer,
            buckets: plan.buckets,
            repeated: begun.saturating_sub(plan.buckets),
            confirmed: checkpoint.confirmed,
            places,
            tested,
        })
    }
}

/// Places in each bucket, ours and the peer's.
pub(super) fn places(plan: &Plan) -> [u64; 2] {
    [plan.own, plan.peer].map(|count| capacity(count, plan.buckets, OVERFLOW_BITS))
}

/// log2 of how many runs share one bound on errors: every bucket as often as it may be begun.
pub fn runs_log2(buckets: u64) -> u32 {
    // proof: buckets 3.4
    buckets.ilog2() + ATTEMPTS_LOG2
}

/// The bound on what was tested in all buckets, `begun` of them with repetitions, each with the parameters
/// that one of so many has.
pub(super) fn in_all(one: Tested, outcome: &Outcome, own: u64, buckets: u64, begun: u64) -> Result<Tested> {
    let of = |effort: u32| {
        let each = vole_psi::tested_in_one_of(outcome, own as usize, f64::from(effort), runs_log2(buckets))?;
        // proof: buckets 3.5
        Ok::<_, Error>(each.saturating_mul(begun))
    };
    Ok(Tested { likely: of(one.effort[0])?, most: of(one.effort[1])?, ..one })
}

/// What stands for a job and all its options.
pub(super) fn digest(agreement: &Agreement, job: &Job) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 1 psi resume: job");
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    };
    [agreement.protocol(), agreement.role(), crate::security_name(job.security)]
        .into_iter()
        .for_each(&mut add);
    for (name, value) in agreement.parameters() {
        add(name);
        add(value);
    }
    *hasher.finalize().as_bytes()
}

/// A run's way over one connection.
struct Way<'a> {
    job: &'a Job,
    base: &'a (dyn BaseOt + Send + Sync),
    disk: &'a Disk<'a>,
    most_peer_keys: u64,
    course: &'a Course<'a>,
}

impl Way<'_> {
    fn run(&self, local: &mut Local<'_>, channels: &mut [Channel]) -> Result<()> {
        let mut prg = Prg::from_os();
        let channel = super::super::first(channels)?;
        // The peer may be reading still.
        let limits = channel.limits();
        channel.set_limits(Limits {
            read: limits.read.max(PEER_READS),
            idle: limits.idle.max(PEER_READS),
            ..limits
        });
        local.has_met = false;
        self.meet(local, channel, &mut prg)?;
        local.has_met = true;
        let Some(plan) = local.checkpoint.plan.clone() else {
            return Err(Error::Other("nothing was settled".into()));
        };
        // What is gone on with may have been settled with more memory.
        let alone = Disk { buckets: 1, ..*self.disk };
        if self.job.buckets(plan.own, plan.peer, &alone).is_none_or(|wanted| wanted > plan.buckets) {
            return Err(too_little(plan.own, self.disk.memory));
        }
        let places = places(&plan);
        local.table.spread(&plan.key, plan.buckets, places[0])?;
        let mut done = local.checkpoint.are_done();
        // proof: buckets 2.5
        meeting::compare(channel, &mut done, &mut local.checkpoint.begun)?;
        meeting::together(channel, SPREAD)?;
        channel.set_limits(limits);
        let todo: Vec<usize> = (0..done.len()).filter(|number| !done[*number]).collect();
        if todo.iter().any(|number| local.checkpoint.begun[*number] >= ATTEMPTS) {
            return Err(self.end(local, End::Attempts, &mut prg));
        }
        if todo.iter().any(|number| !local.table.holds(*number)) {
            return Err(Error::Peer("the peer asks again for a bucket that it has done".into()));
        }
        self.buckets(local, channels, &plan, &todo)?;
        let channel = super::super::first(channels)?;
        meeting::together(channel, DONE)?;
        local.checkpoint.confirmed = true;
        local.checkpoint.save(&mut prg)
    }

    /// The run will not go on, here nor after a crash.
    fn end(&self, local: &mut Local<'_>, end: End, prg: &mut Prg) -> Error {
        local.checkpoint.ended = Some(end);
        match local.checkpoint.save(prg) {
            Ok(()) => self.ended(end),
            Err(error) => error,
        }
    }

    fn ended(&self, end: End) -> Error {
        let why = end.words();
        Error::Peer(match &self.disk.resume {
            None => format!("the run ended for good: {why}"),
            Some(resume) => format!(
                "the run ended for good: {why}; once that is settled, remove {} on both sides and start again",
                tacit_net::shown(&resume.folder.to_string_lossy())
            ),
        })
    }

    /// An error where the peer has more keys than this side accepts now.
    fn accepts(&self, peer: u64) -> Result<()> {
        if peer > self.most_peer_keys {
            let most = self.most_peer_keys;
            return Err(Error::Peer(format!(
                "the peer has {peer}, more than the {most} allowed",
                peer = counted(peer, "key")
            )));
        }
        Ok(())
    }

    /// Finds out where both sides are, and settles the plan if none was.
    fn meet(&self, local: &mut Local<'_>, channel: &mut Channel, prg: &mut Prg) -> Result<()> {
        let own = match (&local.checkpoint.plan, local.checkpoint.ended) {
            (Some(plan), None) => Standing::Under(plan.name),
            (Some(plan), Some(_)) => Standing::Ended(plan.name),
            (None, _) => Standing::Fresh,
        };
        let peer = meeting::meet(channel, own)?;
        if let Some(end) = local.checkpoint.ended {
            return Err(self.ended(end));
        }
        let begun = local.checkpoint.begun.iter().any(|begun| *begun > 0);
        match Verdict::of(own, peer, !local.peer_settled && !begun) {
            // proof: buckets 2.2
            Verdict::GoOn => return self.accepts(local.checkpoint.plan.as_ref().map_or(0, |plan| plan.peer)),
            Verdict::EndedThere => return Err(self.end(local, End::There, prg)),
            Verdict::Missing(side) => return Err(meeting::missing(side)),
            Verdict::Settle => {}
        }
        if local.checkpoint.tosses >= ATTEMPTS {
            return Err(self.end(local, End::Attempts, prg));
        }
        let own = local.table.own;
        // proof: buckets 2.1, 2.2
        let peer = meeting::announce(channel, own)?;
        self.accepts(peer)?;
        // Both send before either may refuse, so that the peer does not wait for a side that has ended.
        let wanted = self.job.buckets(own, peer, self.disk);
        let buckets = meeting::agree(channel, wanted.unwrap_or(MAX_BUCKETS))?.max(self.disk.buckets);
        let wanted = wanted.ok_or_else(|| too_little(own, self.disk.memory))?;
        if buckets < wanted || buckets.saturating_mul(WRITING) > self.disk.memory / 2 {
            return Err(too_little(own, self.disk.memory));
        }
        meeting::bounded(peer, buckets, self.most_peer_keys, wanted.max(self.disk.buckets))?;
        // A peer that has seen the bucket key and leaves gets another one, as it gets another attempt at a bucket:
        // counted, before it begins.
        // proof: buckets 2.3
        local.checkpoint.toss(prg)?;
        let plan = meeting::toss(channel, prg, [own, peer], buckets)?;
        local.checkpoint.settle(plan, prg)?;
        meeting::together(channel, SETTLED)?;
        local.peer_settled = true;
        Ok(())
    }

    /// Runs the buckets of these numbers, each channel every so many of them.
    fn buckets(
        &self,
        local: &mut Local<'_>,
        channels: &mut [Channel],
        plan: &Plan,
        todo: &[usize],
    ) -> Result<()> {
        let at_once = channels.len();
        let each = (workers::count() / at_once).max(1);
        let shared = Mutex::new((local, None));
        std::thread::scope(|scope| {
            for (first, channel) in channels.iter_mut().enumerate() {
                let shared = &shared;
                let mut work = move || {
                    let mut before = None;
                    for number in todo.iter().skip(first).step_by(at_once) {
                        if lock(shared).1.is_some() {
                            return;
                        }
                        // With this bucket the peer has shown that it has done the one before.
                        let ran = self.bucket(shared, channel, plan, *number);
                        let ran = ran.and_then(|()| match before.replace(*number) {
                            Some(before) => lock(shared).0.table.done(before),
                            None => Ok(()),
                        });
                        if let Err(error) = ran {
                            // proof: buckets 2.7
                            let worst = &mut lock(shared).1;
                            *worst = Some(match worst.take() {
                                Some(earlier) => Error::or_worse(earlier, error),
                                None => error,
                            });
                            return;
                        }
                    }
                };
                if at_once == 1 {
                    work();
                } else {
                    scope.spawn(move || workers::limited(each, work));
                }
            }
        });
        match shared.into_inner().unwrap_or_else(PoisonError::into_inner).1 {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn bucket(
        &self,
        shared: &Mutex<(&mut Local<'_>, Option<Error>)>,
        channel: &mut Channel,
        plan: &Plan,
        number: usize,
    ) -> Result<()> {
        let (mut prg, places) = (Prg::from_os(), places(plan));
        let bucket = {
            let mut guard = lock(shared);
            let local = &mut *guard.0;
            let done = local.checkpoint.are_done().iter().filter(|done| **done).count();
            self.course.at(1, done as u64, plan.buckets);
            // proof: buckets 2.6
            local.checkpoint.begun[number] += 1;
            local.checkpoint.save(&mut prg)?;
            local.table.bucket(number, places[0], channel.party(), &mut prg)?
        };
        let options = paxos::Options {
            learns: self.job.learns,
            security: self.job.security,
            min_peer_elements: places[1],
            max_peer_elements: places[1],
            base: self.base,
        };
        let ran = vole_psi::mark_one_of(
            channel,
            &mut prg,
            &bucket.elements,
            &options,
            runs_log2(plan.buckets),
            &mut |_, _, _| {},
        )?;
        // proof: buckets 2.7
        if ran.peer_elements != places[1] {
            return Err(Error::Peer(format!(
                "the peer's bucket has {} instead of {}: it announced {} and has others",
                counted(ran.peer_elements, "key"),
                places[1],
                counted(plan.peer, "key")
            )));
        }
        let mut guard = lock(shared);
        let local = &mut *guard.0;
        if ran.peer_received && !local.checkpoint.peer_received {
            local.checkpoint.peer_received = true;
            local.checkpoint.save(&mut prg)?;
        }
        // The peer sees when the next bucket begins: what is done until then is the same whatever matches. What
        // is beyond our rows is padding.
        let marks = ran.marks.unwrap_or_else(|| Zeroizing::new(vec![0; bucket.elements.len()]));
        local.checkpoint.done(number, &bucket.rows, &marks, &mut prg)?;
        for (row, mark) in bucket.rows.iter().zip(marks.iter()) {
            let row = *row as usize;
            // What a bucket gave before it was run again is not the result's.
            local.matches.set(row, *mark == 1);
        }
        Ok(())
    }
}

fn lock<'m, T>(mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
