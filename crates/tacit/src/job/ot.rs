//! Oblivious transfers between two parties: by a protocol, or out of what was made ahead.

use super::{Course, Observer, Phase};
use crate::ot::{self, AnyReceiver, AnySender, Kind, Sent};
use crate::plan::{self, Candidate, Choice, Link, Machine, Pick, Request};
use crate::{Error, Result};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Agreement, Channel};
use tacit_ot::silent::dealer::{DealtReceiver, DealtSender, ReceiverSeed, SenderSeed};
use tacit_ot::{BaseOt, Security};
pub use tacit_store::pool::Role;
use tacit_store::pool::{Pool, PoolReceiver, PoolSender};

/// One side's half of what a dealer made.
pub enum Seed {
    /// The sender's.
    Sender(SenderSeed),
    /// The receiver's.
    Receiver(ReceiverSeed),
}

/// Where the correlations come from.
pub enum Source<'a> {
    /// The job's protocol makes them.
    Protocol,
    /// A pool, which both sides made before.
    Pool(Box<Pool>),
    /// A dealer's seed, and what marks it as used, on the disk: called before anything that depends on the
    /// seed is handed out.
    Seed(Seed, Box<dyn FnOnce() -> Result<()> + 'a>),
}

impl Source<'_> {
    /// Where the source makes them without a protocol: how it is called.
    fn ready(&self) -> Option<Pick> {
        match self {
            Source::Protocol => None,
            Source::Pool(_) => Some(Pick::ready(&ot::POOL)),
            Source::Seed(..) => Some(Pick::ready(&ot::DEALT)),
        }
    }
}

/// Takes what a run makes, piece by piece and in order. All of it is secret.
pub trait Sink {
    /// What the sender made.
    fn sent(&mut self, part: Sent<'_>) -> Result<()>;
    /// What the receiver chose, and got.
    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()>;
}

/// Keeps nothing: for a run that only shows that it can be done.
impl Sink for () {
    fn sent(&mut self, _: Sent<'_>) -> Result<()> {
        Ok(())
    }

    fn received(&mut self, _: &BitVec, _: &[Block]) -> Result<()> {
        Ok(())
    }
}

/// A sink that may be missing.
impl<S: Sink> Sink for Option<S> {
    fn sent(&mut self, part: Sent<'_>) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.sent(part))
    }

    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.received(choices, messages))
    }
}

/// Transfers that both parties agreed on, and this side's part in them.
#[derive(Clone, Debug)]
pub struct Job {
    /// The protocol with its parameters, the kind and the count; both sides must say the same.
    pub transfers: ot::Job,
    /// Which side this is.
    pub role: Role,
    /// Against which peer; both sides must say the same.
    pub security: Security,
}

const PHASES: [Phase; 2] = [("setting up", "", 0.05), ("OT", "OT", 0.95)];

impl Job {
    /// `count` transfers of `kind` by what was picked.
    pub fn new(role: Role, kind: Kind, count: u64, pick: Pick, security: Security) -> Self {
        Job { transfers: ot::Job { pick, kind, count }, role, security }
    }

    /// As [`new`](Self::new), out of a `source` that runs no protocol; `None` if it does.
    pub fn from_source(
        role: Role,
        kind: Kind,
        count: u64,
        source: &Source<'_>,
        security: Security,
    ) -> Option<Self> {
        Some(Job::new(role, kind, count, source.ready()?, security))
    }

    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        self.transfers.agreement(base, self.role == Role::Sender)
    }

    /// Bytes that a party holds at most on `threads`, beside what its sink keeps: for each stream the state
    /// that it carries, a piece of results, and what the protocol works with; by the peaks of runs of every
    /// set.
    pub fn memory(&self, threads: usize) -> u64 {
        let ot::Job { ref pick, kind, count } = self.transfers;
        let streams = pick.streams(count, threads.max(1)) as u64;
        let piece = self.transfers.piece(streams as usize) as u64;
        let blocks = if kind == Kind::Cot || self.role == Role::Receiver { 1 } else { 2 };
        (24 << 20) + streams * (pick.held() + piece * (16 * blocks + pick.working()))
    }

    /// What the run should cost on `link`; `None` where nothing foresees it.
    fn foreseen(&self, threads: usize) -> Option<Candidate> {
        let ot::Job { ref pick, kind, count } = self.transfers;
        let choice = Choice { protocol: Some(pick.protocol.name), ..Choice::default() };
        let request = Request { count, kind, security: self.security, threads, choice };
        let link = Link::from(tacit_net::LinkModel::LOOPBACK);
        plan::ot(&request, &link, &Machine::REFERENCE).ok()?.into_iter().next()
    }

    /// What the other side learned of us.
    pub fn has_learned(&self) -> String {
        let what = match self.role {
            Role::Sender => "nothing of your messages but one of each pair",
            Role::Receiver => "nothing of your choices",
        };
        super::learned(self.security, &format!("how many OTs were made, and {what}"))
    }

    /// Runs this side over `channels`, base OTs included, and hands what it makes to `sink`.
    ///
    /// For chosen OT messages and choices are drawn at random.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        source: Source<'_>,
        sink: &mut dyn Sink,
        observer: &dyn Observer,
    ) -> Result<()> {
        let expected = self.foreseen(channels.len()).map_or(0, |candidate| candidate.bytes);
        let course = Course::begin(&PHASES, channels, expected, observer);
        course.at(0, 0, 0);
        let (job, total) = (&self.transfers, self.transfers.count);
        let mut done = 0;
        let mut advance = |n: usize| {
            done += n as u64;
            course.at(1, done, total);
        };
        match self.role {
            Role::Sender => {
                let mut each = |part: Sent<'_>| {
                    advance(match &part {
                        Sent::Cot(_, v) => v.len(),
                        Sent::Pairs(pairs) => pairs.len(),
                    });
                    sink.sent(part)
                };
                let cot = match source {
                    Source::Protocol => return job.send(channels, base, &mut each),
                    Source::Pool(pool) => AnySender::new(PoolSender::setup(super::first(channels)?, *pool)?),
                    Source::Seed(Seed::Sender(seed), used) => {
                        let sender = DealtSender::setup(super::first(channels)?, seed)?;
                        used()?;
                        AnySender::new(sender)
                    }
                    Source::Seed(Seed::Receiver(_), _) => return Err(other_role()),
                };
                job.send_from(channels, vec![cot], &mut Prg::from_os(), &mut each)
            }
            Role::Receiver => {
                let mut each = |choices: &BitVec, messages: &[Block]| {
                    advance(messages.len());
                    sink.received(choices, messages)
                };
                let cot = match source {
                    Source::Protocol => return job.receive(channels, base, &mut each),
                    Source::Pool(pool) => {
                        AnyReceiver::new(PoolReceiver::setup(super::first(channels)?, *pool)?)
                    }
                    Source::Seed(Seed::Receiver(seed), used) => {
                        let receiver = DealtReceiver::setup(super::first(channels)?, seed)?;
                        used()?;
                        AnyReceiver::new(receiver)
                    }
                    Source::Seed(Seed::Sender(_), _) => return Err(other_role()),
                };
                job.receive_from(channels, vec![cot], &mut Prg::from_os(), &mut each)
            }
        }
    }
}

fn other_role() -> Error {
    Error::Usage("the seed is for the other role".into())
}

/// What `request` would cost by every protocol that serves, each with its best parameters, the fastest first.
///
/// An error if it names what there is not.
pub fn estimate(request: &Request<'_>, link: &Link, machine: &Machine) -> Result<Vec<Candidate>> {
    let choice = Choice { protocol: None, ..request.choice };
    plan::ot(&Request { choice, ..*request }, link, machine)
}

/// What the other side of transfers of `kind` will learn.
pub fn will_learn(kind: Kind, security: Security) -> String {
    let what = match kind {
        Kind::Ot => {
            "how many OTs are made; of the sender the messages chosen and no others, of the receiver nothing"
        }
        _ => "how many OTs are made; of the sender one message of each pair, of the receiver nothing",
    };
    super::learned(security, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Step;
    use std::sync::Mutex;
    use tacit_net::{Traffic, memory};
    use tacit_ot::base;

    fn pick(name: &str) -> Pick {
        let protocol = ot::protocol(name, Security::Malicious).unwrap();
        protocol.pick(1 << 20, Security::Malicious, &Choice::default()).unwrap()
    }

    /// Both sides' results, to be compared.
    #[derive(Default)]
    struct Kept {
        delta: Option<Block>,
        v: Vec<Block>,
        choices: Vec<bool>,
        w: Vec<Block>,
    }

    impl Sink for Kept {
        fn sent(&mut self, part: Sent<'_>) -> Result<()> {
            if let Sent::Cot(delta, v) = part {
                self.delta = Some(delta);
                self.v.extend_from_slice(v);
            }
            Ok(())
        }

        fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
            self.choices.extend(choices.iter());
            self.w.extend_from_slice(messages);
            Ok(())
        }
    }

    #[derive(Default)]
    struct Watch {
        opened: Mutex<Option<(Traffic, u64)>>,
        steps: Mutex<Vec<Step>>,
    }

    impl Observer for Watch {
        fn opened(&self, traffic: &Traffic, expected: u64) {
            *self.opened.lock().unwrap() = Some((traffic.clone(), expected));
        }

        fn step(&self, step: &Step) {
            self.steps.lock().unwrap().push(*step);
        }
    }

    #[test]
    fn transfers_by_a_protocol_and_what_the_observer_hears_of_them() {
        const COUNT: u64 = 40_000;
        let side = |role| {
            move |channel: &mut Channel| {
                let pick = pick("kos");
                let job = Job::new(role, Kind::Cot, COUNT, pick, Security::Malicious);
                let (mut kept, watch) = (Kept::default(), Watch::default());
                let base = base::default();
                let channels = std::slice::from_mut(channel);
                job.run(channels, &*base, Source::Protocol, &mut kept, &watch).unwrap();
                (kept, watch)
            }
        };
        let ((a, _), (b, watch)) = memory::run(side(Role::Sender), side(Role::Receiver));
        assert_eq!((a.v.len() as u64, b.w.len() as u64), (COUNT, COUNT));
        let delta = a.delta.unwrap();
        for ((v, w), choice) in a.v.iter().zip(&b.w).zip(&b.choices) {
            assert_eq!(*w, if *choice { *v ^ delta } else { *v });
        }
        let steps = watch.steps.into_inner().unwrap();
        let last = steps.last().unwrap();
        assert_eq!((last.phase, last.done, last.total, last.fraction), ("OT", COUNT, COUNT, Step::LAST));
        // What was foreseen is what passed, to a hundredth and the handshake of the base OTs.
        let (traffic, expected) = watch.opened.into_inner().unwrap().unwrap();
        let off = expected as f64 / traffic.bytes() as f64 - 1.0;
        assert!(off.abs() < 0.05, "{expected} foreseen, {} passed", traffic.bytes());
        // The last bytes leave once all is handed on.
        assert!((traffic.bytes() - 100..=traffic.bytes()).contains(&last.bytes));
    }

    #[test]
    fn words_and_memory() {
        let job = |role, count| Job::new(role, Kind::Rot, count, pick("silent"), Security::Malicious);
        assert!(job(Role::Sender, 5).has_learned().contains("one of each pair"));
        assert!(job(Role::Receiver, 5).has_learned().contains("nothing of your choices"));
        let semi = Job { security: Security::SemiHonest, ..job(Role::Sender, 5) };
        assert!(semi.has_learned().contains("nothing is promised"));
        assert!(will_learn(Kind::Ot, Security::Malicious).contains("the messages chosen and no others"));
        // A piece of silent OT is a whole run of 2^24.
        assert!(job(Role::Sender, 1 << 24).memory(1) > 107 << 24);
        assert!(job(Role::Sender, 1 << 10).memory(1) < 25 << 20);
        assert!(job(Role::Receiver, 1 << 24).memory(1) < job(Role::Sender, 1 << 24).memory(1));
    }
}
