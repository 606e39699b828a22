//! A job at a gateway: who waits with which bucket, what runs, and what the two gateways tell each other.
//!
//! The first gateway begins a bucket when a task waits with it on both sides, the lowest first. All else
//! follows from what has happened: both know it by [`Event`]s, exchanged in turns over a session of the job's
//! own.

mod inner;

use super::super::buckets::checkpoint::{End, Plan};
use super::super::buckets::meeting::{self, Standing, Verdict};
use super::super::buckets::{ATTEMPTS, MAX_BUCKETS, OVERFLOW_BITS, capacity::capacity};
use super::state::{Bucket, State, accepts, over};
use super::words::{Event, Reply, Terms, exchange, refuse, refused};
use super::{Lines, MOST_PLACES, lock};
use crate::{Blame, Error, Result};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tacit_crypto::{Prg, text::counted};
use tacit_net::{Channel, Session};

/// Between two exchanges where nothing has happened.
const TICK: Duration = Duration::from_millis(20);
/// How often a waiting task is looked after.
pub(super) const TURN: Duration = Duration::from_millis(200);
/// A task holds its slot so long before it lets an earlier bucket have it, with which the peer waits already,
/// or may come any time.
const DEFER: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(3)];
/// What a task is given to meet the peer where nothing has moved for the whole of the patience.
const GRACE: Duration = Duration::from_secs(5);
const SETTLED: &[u8; 4] = b"plan";

/// What is going on with one bucket.
#[derive(Default)]
struct Slot {
    /// Tasks that wait with it, copies of one another, the oldest first.
    waiting: VecDeque<u64>,
    running: Option<Running>,
    /// The attempt whose result the peer holds.
    peer_held: Option<u8>,
}

impl Slot {
    /// The attempt comes to nothing. A task that has not heard of it yet waits on, before all others.
    fn give_up(&mut self) {
        if let Some(running) = self.running.take()
            && !running.taken
        {
            self.waiting.push_front(running.task);
        }
        self.peer_held = None;
    }
}

struct Running {
    attempt: u8,
    /// The task that runs it.
    task: u64,
    taken: bool,
    /// The peer's end, once it is there.
    data: Option<Session>,
}

struct Inner {
    state: State,
    slots: BTreeMap<u32, Slot>,
    /// Buckets with which a task waits on the other side.
    peer_offers: BTreeSet<u32>,
    /// What the peer is told next, once all that it says is on the disk.
    outgoing: Vec<Event>,
    /// Something is not on the disk yet that must be before the peer, or a task, hears of it.
    unsaved: bool,
    next_task: u64,
    /// Numbers the sessions between the gateways; a new one takes the place of the one before.
    epoch: u64,
    /// Why nothing was settled.
    refusal: Option<Refusal>,
    /// What stands on the two sides does not belong together, or a disk fails.
    stuck: Option<Refusal>,
    /// What last kept the gateways from meeting.
    trouble: Option<String>,
    /// When the cluster last asked for something.
    interest: Instant,
    /// Whether a thread calls the peer.
    keeper: bool,
    /// Drivers that wait for the plan.
    drivers: usize,
    /// Nobody waits for a plan any more, and there is none.
    abandoned: bool,
}

/// Whose fault it is that there is nothing, and why: said to each who asks.
#[derive(Clone)]
struct Refusal(u8, String);

impl Refusal {
    fn of(error: &Error) -> Self {
        match refuse(error) {
            Reply::Refused { blame, text } => Refusal(blame, text),
            _ => Refusal(u8::MAX, error.to_string()),
        }
    }

    fn error(&self) -> Error {
        refused(self.0, self.1.clone())
    }
}

/// A job, shared by all that have to do with it.
pub(super) struct Job {
    pub label: String,
    first: bool,
    at_once: usize,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Milliseconds after `start` at which something last moved.
    moved: AtomicU64,
    start: Instant,
    stopping: Arc<AtomicBool>,
    lines: Arc<Lines>,
}

/// What comes of waiting with a bucket.
pub(super) enum Turn {
    /// Run this attempt; the first gateway waits for the peer's end, the second calls.
    Run(u8),
    Reply(Reply),
    /// Nothing yet.
    Wait,
}

impl Job {
    pub(super) fn new(
        state: State,
        first: bool,
        at_once: usize,
        stopping: Arc<AtomicBool>,
        lines: Arc<Lines>,
    ) -> Self {
        Job {
            label: state.label.clone(),
            first,
            at_once,
            inner: Mutex::new(Inner {
                state,
                slots: BTreeMap::new(),
                peer_offers: BTreeSet::new(),
                outgoing: Vec::new(),
                unsaved: false,
                next_task: 0,
                epoch: 0,
                refusal: None,
                stuck: None,
                trouble: None,
                interest: Instant::now(),
                keeper: false,
                drivers: 0,
                abandoned: false,
            }),
            changed: Condvar::new(),
            moved: AtomicU64::new(0),
            start: Instant::now(),
            stopping,
            lines,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn say(&self, what: &str) {
        (self.lines)(&format!("job {}: {what}", tacit_net::shown(&self.label)));
    }

    /// Something moved.
    pub(super) fn touch(&self) {
        self.moved.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn still_for(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.moved.load(Ordering::Relaxed)))
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn terms(&self) -> Terms {
        self.inner().state.terms.clone()
    }

    pub(super) fn has_plan(&self, name: &[u8; 32]) -> bool {
        self.inner().state.plan.as_ref().is_some_and(|plan| plan.name == *name)
    }

    /// Compares what a driver asks for with what is here, and takes its patience.
    pub(super) fn reopen(&self, terms: &Terms) -> Result<()> {
        let mut inner = self.inner();
        inner.state.compare(terms)?;
        (inner.state.terms.patience, inner.state.terms.most_peer) = (terms.patience, terms.most_peer);
        // proof: buckets 2.2
        accepts(inner.state.plan.as_ref().map_or(0, |plan| plan.peer), terms)?;
        // What kept the job from going on, another disk or other terms, may be mended: the next meeting tells.
        (inner.stuck, inner.refusal) = (None, None);
        Ok(())
    }

    /// Somebody of the cluster asks for something. Returns whether the caller is to call the peer from now
    /// on.
    pub(super) fn take_interest(&self) -> bool {
        let mut inner = self.inner();
        inner.interest = Instant::now();
        let starts = !self.first && !inner.keeper && !inner.is_over();
        inner.keeper |= starts;
        starts
    }

    /// The gateway ends.
    pub(super) fn close(&self) {
        let mut inner = self.inner();
        // What does not reach the disk the two find out anew.
        let _ = inner.state.save();
        inner.state.close();
        drop(inner);
        self.changed.notify_all();
    }

    /// The thread that calls the peer asks whether there is a reason to; if not, it ends.
    pub(super) fn calls_on(&self) -> bool {
        let mut inner = self.inner();
        let waits = inner.slots.values().any(|slot| !slot.waiting.is_empty() || slot.running.is_some());
        let patience = Duration::from_secs(inner.state.terms.patience);
        let goes_on = !self.is_stopping()
            && !inner.is_over()
            && inner.refusal.is_none()
            && (waits || inner.interest.elapsed() < patience);
        inner.keeper = goes_on;
        goes_on
    }

    pub(super) fn met_trouble(&self, error: &Error) {
        self.inner().trouble = Some(error.to_string());
    }

    /// Nothing will be settled.
    pub(super) fn refuse(&self, error: &Error) {
        let mut inner = self.inner();
        if !inner.state.agreed {
            inner.refusal = Some(Refusal::of(error));
        }
        self.changed.notify_all();
    }

    /// Waits until the plan is settled, for as long as `lives` says so. Returns whether the job stands, too:
    /// where the last driver has left and nothing was settled it does not.
    pub(super) fn settled(&self, lives: &mut dyn FnMut() -> bool) -> (Result<Reply>, bool) {
        self.inner().drivers += 1;
        let settled = self.await_plan(lives);
        let mut inner = self.inner();
        inner.drivers -= 1;
        inner.abandoned |= settled.is_err() && inner.drivers == 0 && inner.state.plan.is_none();
        (settled, !inner.abandoned)
    }

    fn await_plan(&self, lives: &mut dyn FnMut() -> bool) -> Result<Reply> {
        let start = Instant::now();
        loop {
            {
                let mut inner = self.inner();
                inner.interest = Instant::now();
                if let Some(end) = inner.state.over {
                    return Err(over(end));
                }
                let plan = inner.state.plan.clone().filter(|_| inner.state.agreed);
                if let Some(Plan { name, key, own, peer, buckets }) = plan {
                    return Ok(Reply::Plan { name, key, own, peer, buckets, first: self.first });
                }
                if let Some(why) = inner.stuck.as_ref().or(inner.refusal.as_ref()) {
                    return Err(why.error());
                }
                let patience = Duration::from_secs(inner.state.terms.patience);
                if start.elapsed() >= patience || self.is_stopping() {
                    let why = inner.trouble.as_ref().map_or(String::new(), |why| format!("; last: {why}"));
                    return Err(Error::Peer(format!(
                        "the other side did not come to this job within {} s{why}",
                        patience.as_secs()
                    )));
                }
                drop(self.changed.wait_timeout(inner, TURN));
            }
            if !lives() {
                return Err(Error::Other("the driver that opened the job is gone".to_owned()));
            }
        }
    }

    /// How far the job is.
    pub(super) fn status(&self) -> Result<Reply> {
        let inner = self.inner();
        if let Some(end) = inner.state.over {
            return Err(over(end));
        }
        let buckets = &inner.state.buckets;
        Ok(Reply::Status {
            begun: buckets.iter().map(|bucket| bucket.begun).collect(),
            ended: buckets.iter().map(|bucket| u8::from(bucket.ended)).collect(),
            received: inner.state.received,
        })
    }

    /// The place of bucket `number`; an error unless this is the run that the caller means, and it goes on.
    fn check(inner: &Inner, run: &[u8; 32], number: u32) -> Result<usize> {
        let known = inner.state.plan.as_ref().is_some_and(|plan| plan.name == *run);
        if !known || number as usize >= inner.state.buckets.len() {
            return Err(Error::Input("the gateway has another run under this job's name".to_owned()));
        }
        match inner.state.over {
            Some(end) => Err(over(end)),
            None => Ok(number as usize),
        }
    }

    /// A task waits with a bucket whose keys have this digest. Returns its number as a waiting task, or the
    /// result of a bucket that has ended.
    pub(super) fn offer(
        &self,
        run: &[u8; 32],
        number: u32,
        digest: &[u8; 32],
    ) -> Result<std::result::Result<u64, Reply>> {
        let mut inner = self.inner();
        let at = Self::check(&inner, run, number)?;
        match inner.state.buckets[at].digest {
            Some(committed) if committed != *digest => {
                return Err(Error::Input(format!(
                    "bucket {number} has other keys or rows than when it was first run: the table is not the same each time that it is read; write it out first, and start a new job"
                )));
            }
            Some(_) => {}
            // On the disk with the first attempt's begin; before that nothing depends on it.
            None => inner.state.buckets[at].digest = Some(*digest),
        }
        if inner.state.buckets[at].ended {
            return Ok(Err(Reply::Ended { result: inner.state.result_of(at)? }));
        }
        let task = inner.next_task;
        inner.next_task += 1;
        let slot = inner.slots.entry(number).or_default();
        slot.waiting.push_back(task);
        if slot.waiting.len() == 1 {
            inner.outgoing.push(Event::Offer(number));
        }
        self.changed.notify_all();
        Ok(Ok(task))
    }

    /// The task does not wait any more. An attempt that it was just given comes to nothing.
    pub(super) fn withdraw(&self, number: u32, task: u64) {
        let mut inner = self.inner();
        let slot = inner.slots.entry(number).or_default();
        if let Some(at) = slot.waiting.iter().position(|waiting| *waiting == task) {
            slot.waiting.remove(at);
            if slot.waiting.is_empty() {
                inner.outgoing.push(Event::Withdraw(number));
            }
        } else if let Some(attempt) =
            slot.running.as_ref().filter(|one| one.task == task).map(|one| one.attempt)
        {
            slot.running = None;
            inner.outgoing.push(Event::Failed(number, attempt));
        }
        self.changed.notify_all();
    }

    /// What comes of a task's waiting, after a moment.
    pub(super) fn turn(
        &self,
        run: &[u8; 32],
        (number, task): (u32, u64),
        since: Instant,
        patience: Duration,
    ) -> Result<Turn> {
        let inner = self.inner();
        let mut inner = match self.look(inner, run, number, task)? {
            Ok(turn) => return Ok(turn),
            Err(inner) => {
                self.changed.wait_timeout(inner, TURN).map_or_else(|e| e.into_inner().0, |woken| woken.0)
            }
        };
        inner.interest = Instant::now();
        let inner = match self.look(inner, run, number, task)? {
            Ok(turn) => return Ok(turn),
            Err(inner) => inner,
        };
        if self.is_stopping() {
            return Err(Error::Other("the gateway ends".to_owned()));
        }
        let late = since.elapsed() >= GRACE && self.still_for() >= patience;
        if late {
            let why = inner.trouble.as_ref().map_or(String::new(), |why| format!("; last: {why}"));
            return Err(Error::Peer(format!(
                "bucket {number}: no progress for {} s: the other side's tasks do not arrive{why}",
                patience.as_secs()
            )));
        }
        let defers = inner.stands_in_the_way(number).is_some_and(|patience| since.elapsed() >= patience);
        Ok(if defers { Turn::Reply(Reply::Deferred) } else { Turn::Wait })
    }

    fn look<'m>(
        &self,
        mut inner: MutexGuard<'m, Inner>,
        run: &[u8; 32],
        number: u32,
        task: u64,
    ) -> Result<std::result::Result<Turn, MutexGuard<'m, Inner>>> {
        Self::check(&inner, run, number)?;
        if let Some(stuck) = &inner.stuck {
            return Err(stuck.error());
        }
        if inner.state.buckets[number as usize].ended {
            let result = inner.state.result_of(number as usize)?;
            return Ok(Ok(Turn::Reply(Reply::Ended { result })));
        }
        let running = inner.slots.get_mut(&number).and_then(|slot| slot.running.as_mut());
        if let Some(running) = running.filter(|running| running.task == task && !running.taken) {
            running.taken = true;
            return Ok(Ok(Turn::Run(running.attempt)));
        }
        Ok(Err(inner))
    }

    /// At the first gateway: the peer's end of an attempt is there. One that nobody waits for ends.
    pub(super) fn deliver(&self, number: u32, attempt: u8, data: Session) {
        let mut inner = self.inner();
        let running = inner.slots.get_mut(&number).and_then(|slot| slot.running.as_mut());
        if let Some(running) = running.filter(|running| running.attempt == attempt && running.data.is_none())
        {
            running.data = Some(data);
            self.changed.notify_all();
        }
    }

    /// Waits for that end of an attempt, for as long as `patience` says.
    pub(super) fn await_data(&self, number: u32, attempt: u8, patience: Duration) -> Result<Session> {
        let start = Instant::now();
        let mut inner = self.inner();
        loop {
            let running = inner.slots.get_mut(&number).and_then(|slot| slot.running.as_mut());
            let Some(running) = running.filter(|running| running.attempt == attempt) else {
                return Err(Error::Peer("the attempt came to nothing".to_owned()));
            };
            if let Some(data) = running.data.take() {
                return Ok(data);
            }
            if start.elapsed() >= patience || self.is_stopping() {
                return Err(Error::Peer("the other gateway did not connect".to_owned()));
            }
            inner = self.changed.wait_timeout(inner, TURN).map_or_else(|e| e.into_inner().0, |woken| woken.0);
        }
    }

    /// Whether the attempt still goes on.
    pub(super) fn runs(&self, number: u32, attempt: u8) -> bool {
        let inner = self.inner();
        let running = inner.slots.get(&number).and_then(|slot| slot.running.as_ref());
        !self.is_stopping() && running.is_some_and(|running| running.attempt == attempt)
    }

    /// The way between the two tasks has ended. Without a result here the attempt came to nothing.
    pub(super) fn parted(&self, number: u32, attempt: u8, how: &Result<()>) {
        let mut inner = self.inner();
        let is_held = inner.state.buckets[number as usize].held == Some(attempt);
        let slot = inner.slots.entry(number).or_default();
        if is_held || slot.running.as_ref().is_none_or(|running| running.attempt != attempt) {
            return;
        }
        slot.running = None;
        inner.outgoing.push(Event::Failed(number, attempt));
        self.changed.notify_all();
        drop(inner);
        let why = how.as_ref().err().map_or_else(|| "a task ended early".to_owned(), ToString::to_string);
        self.say(&format!("bucket {number}, attempt {attempt}: came to nothing: {why}"));
    }

    /// A task's result.
    pub(super) fn result(
        &self,
        run: &[u8; 32],
        (number, attempt): (u32, u8),
        received: bool,
        result: &[u8],
    ) -> Result<Reply> {
        let mut inner = self.inner();
        let at = Self::check(&inner, run, number)?;
        if !inner.state.is_result(result) {
            return Err(Error::Input("a result of another length than the bucket's".to_owned()));
        }
        let slot = inner.slots.entry(number).or_default();
        let is_current =
            |slot: &Slot| slot.running.as_ref().is_some_and(|running| running.attempt == attempt);
        if is_current(slot) && inner.state.buckets[at].held != Some(attempt) {
            let file = inner.state.file_of(at, attempt)?;
            // Other buckets go on meanwhile.
            drop(inner);
            file.write(result)?;
            inner = self.inner();
            let slot = inner.slots.entry(number).or_default();
            let (current, both) = (is_current(slot), slot.peer_held == Some(attempt));
            if current && inner.state.buckets[at].held != Some(attempt) {
                inner.state.received |= received;
                inner.state.buckets[at].held = Some(attempt);
                inner.outgoing.push(Event::Held(number, attempt));
                inner.unsaved = true;
                if both {
                    inner.save()?;
                    self.end_bucket(&mut inner, number);
                }
                self.touch();
                self.changed.notify_all();
            }
        }
        loop {
            if let Some(end) = inner.state.over {
                return Err(over(end));
            }
            let bucket = &inner.state.buckets[at];
            if bucket.ended {
                return Ok(Reply::Ended { result: inner.state.result_of(at)? });
            }
            if bucket.held != Some(attempt) {
                return Ok(Reply::Again);
            }
            if self.is_stopping() {
                return Err(Error::Other("the gateway ends".to_owned()));
            }
            let patience = Duration::from_secs(inner.state.terms.patience);
            if self.still_for() >= patience + GRACE {
                return Err(Error::Peer(format!(
                    "bucket {number}: no progress for {} s: the other side has not confirmed its result",
                    patience.as_secs()
                )));
            }
            inner.interest = Instant::now();
            inner = self.changed.wait_timeout(inner, TURN).map_or_else(|e| e.into_inner().0, |woken| woken.0);
        }
    }

    /// A check failed in one of our tasks: the job ends for good.
    pub(super) fn cheated(&self, run: &[u8; 32]) -> Result<Reply> {
        let mut inner = self.inner();
        Self::check(&inner, run, 0)?;
        self.end_for_good(&mut inner, End::Cheated)?;
        Ok(Reply::Noted)
    }

    fn end_for_good(&self, inner: &mut Inner, end: End) -> Result<()> {
        if inner.state.over.is_none() {
            inner.state.over = Some(end);
            inner.unsaved = true;
            inner.save()?;
            inner.slots.values_mut().for_each(|slot| slot.running = None);
            self.say(&format!("ended for good: {}", end.words()));
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Both gateways hold the bucket's result on the disk. That it has ended may come there later: if it does
    /// not, the two find out anew when they meet.
    fn end_bucket(&self, inner: &mut Inner, number: u32) {
        inner.state.buckets[number as usize].ended = true;
        if let Some(slot) = inner.slots.get_mut(&number) {
            slot.running = None;
            slot.peer_held = None;
        }
        self.touch();
    }

    /// Meets the peer over a session of the job's own, and goes on until the job is complete or the session
    /// is lost.
    pub(super) fn accompany(&self, session: &mut Session) -> Result<()> {
        let epoch = {
            let mut inner = self.inner();
            // The one before gives up within a turn.
            inner.epoch += 1;
            inner.lose();
            self.changed.notify_all();
            inner.epoch
        };
        let met = self.meet(session.channel(), epoch);
        {
            let mut inner = self.inner();
            if inner.epoch != epoch {
                return Ok(());
            }
            match &met {
                Ok(()) => {
                    (inner.stuck, inner.refusal) = (None, None);
                    let offers = inner.slots.iter().filter(|(_, slot)| !slot.waiting.is_empty());
                    inner.outgoing = offers.map(|(number, _)| Event::Offer(*number)).collect();
                }
                Err(error) if !error.is_lost_link() => inner.stuck = Some(Refusal::of(error)),
                Err(_) => {}
            }
            self.changed.notify_all();
        }
        met?;
        self.touch();
        let ran = self.in_turns(session.channel(), epoch);
        let mut inner = self.inner();
        if inner.epoch != epoch {
            return Ok(());
        }
        inner.lose();
        if let Err(error) = &ran
            && error.blame() == Blame::Peer
            && !error.is_lost_link()
        {
            self.say(&error.to_string());
            self.end_for_good(&mut inner, End::Cheated)?;
        }
        self.changed.notify_all();
        ran
    }

    /// What a session may change, as long as no other has taken its place: what comes over it afterwards was
    /// said of another standing.
    fn of_session(&self, epoch: u64) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.inner();
        if inner.epoch == epoch { Ok(inner) } else { Err(tacit_net::Error::Closed { cause: None }.into()) }
    }

    /// Where both sides are; settles the plan if none was. Nobody waits for the peer with the lock held.
    fn meet(&self, channel: &mut Channel, epoch: u64) -> Result<()> {
        let (own, ended, begun, terms) = {
            let inner = self.of_session(epoch)?;
            let State { plan, over, buckets, terms, .. } = &inner.state;
            let standing = match (plan, over) {
                (Some(plan), None) => Standing::Under(plan.name),
                (Some(plan), Some(_)) => Standing::Ended(plan.name),
                (None, _) => Standing::Fresh,
            };
            (standing, *over, buckets.iter().any(|bucket| bucket.begun > 0), terms.clone())
        };
        let peer = meeting::meet(channel, own)?;
        if let Some(end) = ended {
            return Err(over(end));
        }
        let verdict = Verdict::of(own, peer, !begun);
        let fits = !matches!(verdict, Verdict::Missing(_));
        channel.send(&[u8::from(fits)])?;
        channel.flush()?;
        let mut theirs = [0];
        channel.recv(&mut theirs)?;
        match verdict {
            Verdict::EndedThere => {
                let mut inner = self.of_session(epoch)?;
                self.end_for_good(&mut inner, End::There)?;
                return Err(over(End::There));
            }
            Verdict::Missing(side) => return Err(meeting::missing(side)),
            _ if theirs != [1] => return Err(meeting::missing("this side")),
            Verdict::GoOn => {}
            Verdict::Settle => self.settle(&terms, channel, epoch)?,
        }
        self.compare(channel, epoch)
    }

    fn settle(&self, terms: &Terms, channel: &mut Channel, epoch: u64) -> Result<()> {
        let own = terms.own;
        // proof: buckets 2.1, 2.2
        let peer = meeting::announce(channel, own)?;
        let mut buckets = meeting::agree(channel, terms.buckets)?;
        accepts(peer, terms)?;
        let fits = |buckets| [own, peer].iter().all(|n| capacity(*n, buckets, OVERFLOW_BITS) <= MOST_PLACES);
        while buckets < MAX_BUCKETS && !fits(buckets) {
            buckets *= 2;
        }
        if !fits(buckets) {
            return Err(Error::Input(format!(
                "your {} and the peer's {peer} do not fit {MAX_BUCKETS} buckets",
                counted(own, "key")
            )));
        }
        meeting::bounded(peer, buckets, terms.most_peer, terms.buckets)?;
        {
            let mut inner = self.of_session(epoch)?;
            if !inner.state.toss()? {
                self.end_for_good(&mut inner, End::Attempts)?;
                return Err(over(End::Attempts));
            }
        }
        let plan = meeting::toss(channel, &mut Prg::from_os(), [own, peer], buckets)?;
        {
            let mut inner = self.of_session(epoch)?;
            inner.state.settle(plan)?;
            // Tasks that came with the plan before are of another run.
            inner.slots.clear();
        }
        meeting::together(channel, SETTLED)?;
        let (own, buckets) = (counted(own, "key"), counted(buckets, "bucket"));
        self.say(&format!("settled: your {own}, the peer's {peer}, {buckets}"));
        Ok(())
    }

    /// Which buckets have ended, and how often each was begun on the side that counts more.
    fn compare(&self, channel: &mut Channel, epoch: u64) -> Result<()> {
        let own: Vec<u8> = {
            let mut inner = self.of_session(epoch)?;
            inner.save()?;
            let each = |bucket: &Bucket| [bucket.begun, bucket.held.unwrap_or(0), u8::from(bucket.ended)];
            inner.state.buckets.iter().flat_map(each).collect()
        };
        channel.send(&own)?;
        channel.flush()?;
        let mut theirs = vec![0; own.len()];
        channel.recv(&mut theirs)?;
        let mut inner = self.of_session(epoch)?;
        for (number, theirs) in theirs.as_chunks::<3>().0.iter().enumerate() {
            let [begun, held, ended] = *theirs;
            let bucket = &mut inner.state.buckets[number];
            let same = held > 0 && bucket.held == Some(held);
            if (bucket.ended || ended == 1) && !same {
                return Err(Error::Peer(format!(
                    "bucket {number} has ended on one side and is not known on the other: one has lost what it \
                     kept"
                )));
            }
            bucket.begun = bucket.begun.max(begun.min(ATTEMPTS));
            bucket.ended = same;
            if !same {
                bucket.held = None;
            }
            if let Some(slot) = inner.slots.get_mut(&(number as u32)) {
                slot.give_up();
            }
        }
        // The peer has the plan on its disk: it compares what was begun under it.
        inner.state.agreed = true;
        inner.state.save()?;
        self.changed.notify_all();
        Ok(())
    }

    /// Both sides tell each other in turns what has happened.
    fn in_turns(&self, channel: &mut Channel, epoch: u64) -> Result<()> {
        let (mut said, mut heard) = (false, false);
        loop {
            let (events, is_over) = {
                let mut inner = self.inner();
                if inner.epoch != epoch || self.is_stopping() {
                    return Ok(());
                }
                if self.first {
                    self.decide(&mut inner)?;
                }
                if inner.state.is_complete() && !said {
                    inner.outgoing.push(Event::Complete);
                    (inner.unsaved, said) = (true, true);
                }
                if inner.state.over.is_some() {
                    inner.outgoing.push(Event::Over);
                }
                inner.save()?;
                (std::mem::take(&mut inner.outgoing), inner.state.over.is_some())
            };
            let come = exchange(channel, &events)?;
            let mut inner = self.inner();
            if inner.epoch != epoch {
                return Ok(());
            }
            heard |= come.contains(&Event::Complete);
            let happened = come.iter().try_for_each(|event| self.happened(&mut inner, *event));
            inner.save()?;
            happened?;
            if let Some(end) = inner.state.over.filter(|_| is_over || come.contains(&Event::Over)) {
                return Err(over(end));
            }
            if said && heard {
                inner.state.confirmed = true;
                inner.state.save()?;
                self.say("complete on both sides");
                return Ok(());
            }
            if come.is_empty() && inner.outgoing.is_empty() {
                drop(self.changed.wait_timeout(inner, TICK));
            } else {
                self.changed.notify_all();
            }
        }
    }

    /// At the first gateway: begins what can be begun, the lowest bucket first.
    fn decide(&self, inner: &mut Inner) -> Result<()> {
        let runs = inner.slots.values().filter(|slot| slot.running.is_some()).count();
        let ready = inner.peer_offers.iter().copied().filter(|number| inner.is_offered(*number));
        let ready: Vec<u32> = ready.take(self.at_once.saturating_sub(runs)).collect();
        for number in ready {
            if inner.state.buckets[number as usize].begun >= ATTEMPTS {
                return self.end_for_good(inner, End::Attempts);
            }
            let attempt = inner.state.buckets[number as usize].begun + 1;
            self.begin(inner, number, attempt);
            inner.outgoing.push(Event::Begin(number, attempt));
        }
        Ok(())
    }

    /// Counts an attempt and gives it to the oldest task that waits. Who calls saves that before a task can
    /// see it.
    fn begin(&self, inner: &mut Inner, number: u32, attempt: u8) {
        let bucket = &mut inner.state.buckets[number as usize];
        (bucket.begun, bucket.held) = (attempt, None);
        inner.unsaved = true;
        inner.peer_offers.remove(&number);
        let slot = inner.slots.entry(number).or_default();
        slot.peer_held = None;
        if let Some(task) = slot.waiting.pop_front() {
            slot.running = Some(Running { attempt, task, taken: false, data: None });
            if !slot.waiting.is_empty() {
                inner.outgoing.push(Event::Offer(number));
            }
        }
        self.touch();
        self.changed.notify_all();
    }

    /// The peer says what happened there.
    fn happened(&self, inner: &mut Inner, event: Event) -> Result<()> {
        let beyond = || Error::Peer("the other gateway does not keep to the order of a job".to_owned());
        let known = |number: u32| inner.state.buckets.get(number as usize).ok_or_else(beyond);
        match event {
            Event::Offer(number) => {
                known(number)?;
                inner.peer_offers.insert(number);
            }
            Event::Withdraw(number) => _ = inner.peer_offers.remove(&number),
            Event::Begin(number, attempt) => {
                let bucket = known(number)?;
                let in_order = attempt > bucket.begun && attempt <= ATTEMPTS;
                if self.first || bucket.ended || !in_order {
                    return Err(beyond());
                }
                self.begin(inner, number, attempt);
                if inner.slots.get(&number).is_none_or(|slot| slot.running.is_none()) {
                    inner.outgoing.push(Event::Failed(number, attempt));
                }
            }
            Event::Held(number, attempt) => {
                let bucket = known(number)?;
                if attempt != bucket.begun {
                    return Err(beyond());
                }
                let both = bucket.held == Some(attempt);
                let slot = inner.slots.entry(number).or_default();
                // It may have come to nothing here while the word was on its way.
                if slot.running.as_ref().is_some_and(|running| running.attempt == attempt) {
                    slot.peer_held = Some(attempt);
                    if both {
                        inner.save()?;
                        self.end_bucket(inner, number);
                    }
                }
                self.touch();
            }
            Event::Failed(number, attempt) => {
                let bucket = known(number)?;
                if attempt == 0 || attempt > bucket.begun || bucket.ended {
                    return Err(beyond());
                }
                if attempt == bucket.begun {
                    let ran = inner.slots.get(&number).is_some_and(|slot| slot.running.is_some());
                    inner.state.buckets[number as usize].held = None;
                    let slot = inner.slots.entry(number).or_default();
                    let waited = !slot.waiting.is_empty();
                    slot.give_up();
                    if !waited && !slot.waiting.is_empty() {
                        inner.outgoing.push(Event::Offer(number));
                    }
                    if ran {
                        self.say(&format!(
                            "bucket {number}, attempt {attempt}: came to nothing on the other side"
                        ));
                    }
                }
            }
            Event::Over => self.end_for_good(inner, End::There)?,
            Event::Complete => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
