//! This party's own cluster: drivers that open jobs, and tasks that run buckets.

use super::job::{Job, Turn};
use super::state::{State, folder_of};
use super::words::{Asked, Reply, Request, Terms, hear, refuse, take, turned_away};
use super::{House, lock, peer, serve_aside};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tacit_crypto::fence::fenced;
use tacit_crypto::text::counted;
use tacit_net::crowd::makes_room;
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Limits, Party, SessionId, relay};

/// A caller has so long to show its token.
const SHOWING: Duration = Duration::from_secs(10);
/// A task keeps its way to the peer's until both gateways hold the bucket's result: one that is closed before has
/// died, and what the other still has to say comes within this.
const GONE: Duration = Duration::from_secs(2);
/// And so many do it at once.
const UNKNOWN: usize = 256;

/// Receives callers until the gateway ends.
pub(super) fn receive(house: &Arc<House>, port: &TcpListener) {
    loop {
        let come = port.accept();
        if house.is_stopping() {
            return;
        }
        let Ok((stream, from)) = come else {
            // The process may have too many files open for a moment.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let Ok(held) = stream.try_clone() else { continue };
        let place = Unknown { house: house.clone(), number: lock(&house.unknown).take(from.ip(), held) };
        let theirs = house.clone();
        let started = serve_aside("tacit-task", &house.lines, move || {
            if let Err(error) = serve(&theirs, stream, from.ip(), place) {
                theirs.say(&format!("a caller of the cluster: {error}"));
            }
        });
        if let Err(error) = started {
            house.say(&error.to_string());
        }
    }
}

/// Callers that have not shown a token yet, in the order in which they came.
#[derive(Default)]
pub(super) struct Waiting {
    callers: VecDeque<Caller>,
    next: u64,
    /// Callers so far that came to nothing before they had shown a token.
    failed: u64,
}

struct Caller {
    number: u64,
    from: IpAddr,
    stream: TcpStream,
}

impl Waiting {
    /// Takes a caller in, and returns its number. Where all places are taken, the oldest caller of the address that
    /// holds most of them makes room: nobody keeps others away by saying nothing.
    fn take(&mut self, from: IpAddr, stream: TcpStream) -> u64 {
        if self.callers.len() >= UNKNOWN {
            let at = makes_room(self.callers.iter().map(|caller| caller.from));
            if let Some(caller) = at.and_then(|at| self.callers.remove(at)) {
                // One that is gone already needs no closing.
                let _ = caller.stream.shutdown(Shutdown::Both);
            }
        }
        self.next += 1;
        self.callers.push_back(Caller { number: self.next, from, stream });
        self.next
    }
}

/// The place of a caller that has not shown a token yet; it comes back when this is dropped.
struct Unknown {
    house: Arc<House>,
    number: u64,
}

impl Drop for Unknown {
    fn drop(&mut self) {
        lock(&self.house.unknown).callers.retain(|caller| caller.number != self.number);
    }
}

/// Counts a caller that showed no token; a line is written when their number has doubled.
fn failed(house: &House, from: IpAddr, error: &Error) {
    let count = {
        let mut unknown = lock(&house.unknown);
        unknown.failed += 1;
        unknown.failed
    };
    if count.is_power_of_two() {
        house.say(&format!(
            "{} of the cluster so far showed no token; the last from {from}: {error}",
            counted(count, "caller")
        ));
    }
}

fn serve(house: &Arc<House>, stream: TcpStream, from: IpAddr, place: Unknown) -> Result<()> {
    let limits = Limits { read: SHOWING, idle: SHOWING, ..Limits::default() };
    let opened =
        TcpLink::new(stream).and_then(|link| house.tls.open(Box::new(link), Instant::now() + SHOWING));
    let opened = opened.map_err(|error| match error {
        // It holds another key than ours for the gateway's, and so another token.
        tacit_net::Error::Refused { .. } => turned_away(),
        error => error.into(),
    });
    let heard = opened.and_then(|link| {
        let mut channel = Channel::with_limits(link, Party::First, SessionId([0; 32]), limits);
        hear(&mut channel, &house.token).map(|(request, asked)| (channel, request, asked))
    });
    drop(place);
    let (mut channel, request, asked) = match heard {
        Ok(heard) => heard,
        Err(error) => {
            failed(house, from, &error);
            return Ok(());
        }
    };
    let reply = match request {
        Request::Open { label, terms } => open(house, &mut channel, &label, terms),
        Request::Status { label } => known(house, &label).and_then(|job| job.status()),
        Request::Cheated { label, run } => known(house, &label).and_then(|job| job.cheated(&run)),
        Request::Result { label, run, number, attempt, received, length, hash } => {
            take(&mut channel, length, &hash)
                .and_then(|result| known(house, &label)?.result(&run, (number, attempt), received, &result))
        }
        Request::Bucket { label, run, number, digest, patience } => {
            let ran = known(house, &label).and_then(|job| {
                Task { house, job: &job, run, number, patience: Duration::from_secs(patience) }
                    .serve(&mut channel, &digest)
            });
            match ran {
                Ok(Served::Reply(reply)) => Ok(reply),
                Ok(Served::Run(attempt)) => return attempt.relay(channel, &asked),
                Err(error) => Err(error),
            }
        }
    };
    // Who waits for a gateway that ends waits for the next one.
    if house.is_stopping() {
        return Ok(());
    }
    // Who is gone is not answered.
    let _ = asked.answer(&mut channel, &reply.unwrap_or_else(|error| refuse(&error)));
    Ok(())
}

/// A part of a task's work, behind which the job must hear of a failure: a panic is one.
fn within<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    fenced(work).unwrap_or_else(|panicked| Err(Error::Other(panicked.to_string())))
}

fn known(house: &Arc<House>, label: &str) -> Result<Arc<Job>> {
    let job = house.find(label)?;
    house.keep(&job)?;
    Ok(job)
}

/// Whether who waits on this connection is still there: it has nothing to say meanwhile.
fn lives(channel: &mut Channel) -> bool {
    matches!(channel.has_come(1), Ok(false))
}

fn open(house: &Arc<House>, channel: &mut Channel, label: &str, terms: Terms) -> Result<Reply> {
    let job = {
        let mut jobs = house.jobs();
        let here = jobs.get(label).cloned();
        let job = match &here {
            Some(job) => job.clone(),
            None => {
                let kept = State::load(&folder_of(&house.jobs_folder, label), house.key.clone())?;
                let new = || State::new(&house.jobs_folder, label, terms.clone(), house.key.clone());
                house.make(kept.unwrap_or_else(new))
            }
        };
        // A plan on the disk may be of other terms: it may have been settled when its driver was gone.
        job.reopen(&terms)?;
        if here.is_none() {
            jobs.insert(label.to_owned(), job.clone());
        }
        job
    };
    house.keep(&job)?;
    let (settled, stands) = job.settled(&mut || lives(channel));
    if !stands {
        house.jobs().retain(|_, other| !Arc::ptr_eq(other, &job));
    }
    settled
}

/// A task that has come with a bucket.
struct Task<'a> {
    house: &'a Arc<House>,
    job: &'a Arc<Job>,
    run: [u8; 32],
    number: u32,
    patience: Duration,
}

enum Served {
    Reply(Reply),
    Run(Box<Attempt>),
}

/// An attempt that both gateways are ready for.
struct Attempt {
    job: Arc<Job>,
    number: u32,
    attempt: u8,
    session: [u8; 32],
    data: tacit_net::Session,
    idle: Duration,
}

impl Task<'_> {
    fn serve(&self, channel: &mut Channel, digest: &[u8; 32]) -> Result<Served> {
        loop {
            let task = match self.job.offer(&self.run, self.number, digest)? {
                Ok(task) => task,
                Err(reply) => return Ok(Served::Reply(reply)),
            };
            let turn = within(|| self.wait(channel, task));
            if !matches!(turn, Ok(Turn::Run(_))) {
                self.job.withdraw(self.number, task);
            }
            let attempt = match turn? {
                Turn::Run(attempt) => attempt,
                Turn::Reply(reply) => return Ok(Served::Reply(reply)),
                Turn::Wait => return Err(Error::Other("the task is gone".to_owned())),
            };
            let (job, number, idle) = (self.job.clone(), self.number, self.house.options.limits.idle);
            match within(|| peer::join(self.house, &job, &self.run, number, attempt)) {
                Ok(data) => {
                    let session = peer::session_id(&data, &self.run, number, attempt);
                    return Ok(Served::Run(Box::new(Attempt { job, number, attempt, session, data, idle })));
                }
                // The other side's task may just have gone: this one waits on.
                Err(error) => job.parted(number, attempt, &Err(error)),
            }
        }
    }

    /// Waits for the bucket's turn, while the task is there: [`Turn::Wait`] if it is gone.
    fn wait(&self, channel: &mut Channel, task: u64) -> Result<Turn> {
        let since = Instant::now();
        loop {
            match self.job.turn(&self.run, (self.number, task), since, self.patience)? {
                Turn::Wait if lives(channel) => {}
                turn => return Ok(turn),
            }
        }
    }
}

impl Attempt {
    /// Tells the task to run, and passes on what it and the peer's task say.
    fn relay(self: Box<Self>, mut channel: Channel, asked: &Asked) -> Result<()> {
        let Attempt { job, number, attempt, session, data, idle } = *self;
        let passed = within(|| {
            asked.answer(&mut channel, &Reply::Go { attempt, session })?;
            let data = data.into_channels().pop();
            let data = data.ok_or_else(|| Error::Other("a session without a channel".to_owned()))?;
            let ends = [channel.into_link()?, data.into_link()?];
            let mut halt = || !job.runs(number, attempt);
            Ok(relay::relay(ends, idle, GONE, &mut |_| job.touch(), &mut halt)?)
        });
        job.parted(number, attempt, &passed);
        Ok(())
    }
}
