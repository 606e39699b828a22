//! Oblivious transfers between two parties: by a protocol, or out of what was made ahead.

use super::{Course, Observer, Phase};
use crate::ot::{self, AnyReceiver, AnySender, Kind, Layout, Own, Received, Sent};
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

    /// How the messages of chosen OT lie, before the receiver sends a choice. A sink that does not say
    /// otherwise takes blocks alone.
    fn opens(&mut self, layout: Layout) -> Result<()> {
        match layout {
            Layout::BLOCKS => Ok(()),
            _ => Err(Error::Peer(
                "the sender's messages are not blocks of 16 bytes, and only those are accepted here".into(),
            )),
        }
    }

    /// What the receiver chose, and got of messages that are no blocks, one after the other as they travel:
    /// [`Layout::message`] makes of them what the sender had, once the run is over.
    fn received_own(&mut self, _choices: &BitVec, _rows: &[u8]) -> Result<()> {
        Err(Error::Other("a sink took messages that it cannot keep; please report it".into()))
    }
}

/// Keeps nothing: for a run that only shows that it can be done.
impl Sink for () {
    fn sent(&mut self, _: Sent<'_>) -> Result<()> {
        Ok(())
    }

    fn received(&mut self, _: &BitVec, _: &[Block]) -> Result<()> {
        Ok(())
    }

    fn opens(&mut self, _: Layout) -> Result<()> {
        Ok(())
    }

    fn received_own(&mut self, _: &BitVec, _: &[u8]) -> Result<()> {
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

    fn opens(&mut self, layout: Layout) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.opens(layout))
    }

    fn received_own(&mut self, choices: &BitVec, rows: &[u8]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.received_own(choices, rows))
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

    /// What the run should cost from these base OTs, on a link without bounds; `None` where nothing foresees it.
    fn foreseen(&self, threads: usize, base: &dyn BaseOt) -> Option<Candidate> {
        let ot::Job { ref pick, kind, count } = self.transfers;
        let choice = Choice { protocol: Some(pick.protocol.name), ..Choice::default() };
        let request = Request { count, kind, security: self.security, threads, choice };
        let link = Link::from(tacit_net::LinkModel::LOOPBACK);
        let best = plan::ot(&request, &link, &Machine::REFERENCE).ok()?.into_iter().next();
        best.map(|best| best.with_base(base, &link, &Machine::REFERENCE))
    }

    /// Bytes that the messages of chosen OT which are no blocks take beside [`memory`](Self::memory), in the
    /// run and as they are kept.
    pub fn memory_of_own(&self, layout: Layout, threads: usize) -> u64 {
        if layout == Layout::BLOCKS {
            return 0;
        }
        let streams = self.transfers.pick.streams(self.transfers.count, threads.max(1));
        self.transfers.memory_of_own(layout, streams)
    }

    /// What the other side learned of us, who brought this of our `own`.
    pub fn has_learned(&self, own: &Own) -> String {
        let what = match (self.role, own) {
            (Role::Sender, Own::Messages(messages)) if messages.layout() != Layout::BLOCKS => {
                "how long the longest of your messages is, and nothing of them but one of each pair"
            }
            (Role::Sender, _) => "nothing of your messages but one of each pair",
            (Role::Receiver, _) => "nothing of your choices",
        };
        super::learned(self.security, &format!("how many OTs were made, and {what}"))
    }

    /// Runs this side over `channels`, base OTs included, and hands what it makes to `sink`. Chosen OT takes
    /// the messages or choices that are its `own`.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        source: Source<'_>,
        own: &Own,
        sink: &mut dyn Sink,
        observer: &dyn Observer,
    ) -> Result<()> {
        let expected = self.foreseen(channels.len(), base).map_or(0, |candidate| candidate.bytes);
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
                        Sent::Own(pairs) => *pairs,
                    });
                    sink.sent(part)
                };
                let cot = match source {
                    Source::Protocol => return job.send_own(channels, base, own, &mut each),
                    Source::Pool(pool) => AnySender::new(PoolSender::setup(super::first(channels)?, *pool)?),
                    Source::Seed(Seed::Sender(seed), used) => {
                        let sender = DealtSender::setup(super::first(channels)?, seed)?;
                        used()?;
                        AnySender::new(sender)
                    }
                    Source::Seed(Seed::Receiver(_), _) => return Err(other_role()),
                };
                job.send_from(channels, vec![cot], &mut Prg::from_os(), own, &mut each)
            }
            Role::Receiver => {
                let mut each = |part: Received<'_>| match part {
                    Received::Opens(layout) => sink.opens(layout),
                    Received::Blocks(choices, messages) => {
                        advance(messages.len());
                        sink.received(choices, messages)
                    }
                    Received::Own(choices, rows) => {
                        advance(choices.len());
                        sink.received_own(choices, rows)
                    }
                };
                let cot = match source {
                    Source::Protocol => return job.receive_own(channels, base, own, &mut each),
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
                job.receive_from(channels, vec![cot], &mut Prg::from_os(), own, &mut each)
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

/// As [`estimate`], of chosen OT on messages of `layout`: what they take beside blocks is added, on the line and
/// in time.
pub fn estimate_own(
    request: &Request<'_>,
    layout: Layout,
    link: &Link,
    machine: &Machine,
) -> Result<Vec<Candidate>> {
    let mut candidates = estimate(request, link, machine)?;
    let bytes = |width: usize| 2 * width as u64 * request.count;
    let (with, without) = (bytes(layout.width), bytes(Layout::BLOCKS.width));
    for candidate in &mut candidates {
        candidate.bytes = (candidate.bytes + with).saturating_sub(without);
        let seconds = with.saturating_sub(without) as f64 * 8e-6 / link.megabits;
        candidate.time += std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    }
    Ok(candidates)
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
                job.run(channels, &*base, Source::Protocol, &Own::Drawn, &mut kept, &watch).unwrap();
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

    /// What a receiver gets whatever the form.
    #[derive(Default)]
    struct Got {
        layout: Option<Layout>,
        choices: Vec<bool>,
        rows: Vec<u8>,
    }

    impl Sink for Got {
        fn sent(&mut self, _: Sent<'_>) -> Result<()> {
            Ok(())
        }

        fn received(&mut self, choices: &BitVec, messages: &[Block]) -> Result<()> {
            self.received_own(choices, Block::as_bytes(messages))
        }

        fn opens(&mut self, layout: Layout) -> Result<()> {
            assert!(self.layout.replace(layout).is_none(), "told once");
            Ok(())
        }

        fn received_own(&mut self, choices: &BitVec, rows: &[u8]) -> Result<()> {
            self.choices.extend(choices.iter());
            self.rows.extend_from_slice(rows);
            Ok(())
        }
    }

    /// Chosen OT of `messages` and `choices` by `name` over `lanes` connections.
    fn chosen(
        name: &str,
        lanes: usize,
        messages: Own,
        choices: Vec<bool>,
        most: u64,
    ) -> (Result<()>, Result<()>, Got) {
        let count = choices.len() as u64;
        let job = |role| Job::new(role, Kind::Ot, count, pick(name), Security::Malicious);
        let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (0..lanes).map(|_| memory::pair()).unzip();
        let own = Own::Choices(ot::Choices { bits: BitVec::from_bools(&choices), most });
        let mut got = Got::default();
        let (sent, received) = std::thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let base = base::default();
                job(Role::Sender).run(&mut ours, &*base, Source::Protocol, &messages, &mut (), &())
            });
            let base = base::default();
            let received =
                job(Role::Receiver).run(&mut theirs, &*base, Source::Protocol, &own, &mut got, &());
            drop(theirs);
            (sender.join().unwrap(), received)
        });
        (sent, received, got)
    }

    #[test]
    fn messages_and_choices_of_ones_own() {
        const COUNT: usize = 3_001;
        let mut prg = Prg::from_seed(Block::new(35));
        let choices: Vec<bool> = BitVec::random(COUNT, &mut prg).iter().collect();
        let texts: Vec<[String; 2]> =
            (0..COUNT).map(|i| [format!("{i}"), "x".repeat(i % 40) + &i.to_string()]).collect();
        let mut blocks = vec![[Block::ZERO; 2]; COUNT];
        prg.fill_blocks(blocks.as_flattened_mut());
        for (name, lanes) in [("kos", 1), ("kos", 3), ("ferret", 2), ("silent", 1)] {
            let own = Own::Messages(ot::Messages::texts(&texts));
            let (sent, received, got) = chosen(name, lanes, own, choices.clone(), 60);
            sent.unwrap();
            received.unwrap();
            let layout = got.layout.unwrap();
            assert_eq!(got.choices, choices);
            assert_eq!(got.rows.len(), COUNT * layout.width);
            for ((row, pair), choice) in got.rows.chunks(layout.width).zip(&texts).zip(&choices) {
                assert_eq!(layout.message(row), pair[usize::from(*choice)].as_bytes(), "{name} {lanes}");
            }
            let own = Own::Messages(ot::Messages::blocks(&blocks));
            let (sent, received, got) = chosen(name, lanes, own, choices.clone(), 16);
            sent.unwrap();
            received.unwrap();
            let wanted: Vec<Block> =
                blocks.iter().zip(&choices).map(|(pair, choice)| pair[usize::from(*choice)]).collect();
            assert_eq!((got.layout.unwrap(), &got.choices), (Layout::BLOCKS, &choices));
            assert!(got.rows == Block::as_bytes(&wanted), "{name} {lanes}");
        }
    }

    #[test]
    fn pieces_of_long_messages_are_small() {
        // Two lanes: messages of which one alone fills a piece, and several a piece; the last round is of one lane.
        for (length, count) in [(17 << 20, 3), (5 << 20, 7)] {
            let message = |byte: usize| vec![byte as u8; length];
            let pairs: Vec<[Vec<u8>; 2]> = (0..count).map(|i| [message(i), message(i + 100)]).collect();
            let choices: Vec<bool> = (0..count).map(|i| i % 3 != 1).collect();
            let own = Own::Messages(ot::Messages::strings(&pairs));
            let (sent, received, got) = chosen("kos", 2, own, choices.clone(), length as u64);
            sent.unwrap();
            received.unwrap();
            let layout = got.layout.unwrap();
            let rows = got.rows.chunks(layout.width).map(|row| layout.message(row));
            assert_eq!(rows.len(), count);
            for ((row, pair), choice) in rows.zip(&pairs).zip(choices) {
                assert!(row == pair[usize::from(choice)], "{length}");
            }
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let texts = || Own::Messages(ot::Messages::texts(&[["one", "two"], ["three", ""]]));
        // Longer than the receiver takes: no choice has left it then.
        let (sent, received, got) = chosen("kos", 1, texts(), vec![true, false], 4);
        let said = received.unwrap_err().to_string();
        assert!(said.contains("has 5 bytes, more than the 4 accepted"), "{said}");
        let said = sent.unwrap_err().to_string();
        assert!(said.contains("does not accept messages of 5 bytes") && got.layout.is_none(), "{said}");
        // Another number than agreed on.
        let (sent, _, _) = chosen("kos", 1, texts(), vec![true], 9);
        assert!(sent.unwrap_err().to_string().contains("there are 2, and the run is of 1"));
        let job = |kind, count| ot::Job { pick: pick("kos"), kind, count };
        assert!(texts().fits(&job(Kind::Ot, 2), true).is_ok());
        assert!(texts().fits(&job(Kind::Ot, 2), false).is_err());
        assert!(texts().fits(&job(Kind::Rot, 2), true).is_err());
        let drawn = ot::Choices { bits: BitVec::zeros(2), most: 1 };
        assert!(Own::Choices(drawn).fits(&job(Kind::Ot, 2), true).is_err());
        // A sink that takes blocks alone.
        let mut kept = Kept::default();
        assert!(kept.opens(Layout::BLOCKS).is_ok());
        assert!(kept.opens(Layout { width: 17, ..Layout::BLOCKS }).is_err());
    }

    #[test]
    fn words_and_memory() {
        let job = |role, count| Job::new(role, Kind::Rot, count, pick("silent"), Security::Malicious);
        assert!(job(Role::Sender, 5).has_learned(&Own::Drawn).contains("one of each pair"));
        assert!(job(Role::Receiver, 5).has_learned(&Own::Drawn).contains("nothing of your choices"));
        let semi = Job { security: Security::SemiHonest, ..job(Role::Sender, 5) };
        assert!(semi.has_learned(&Own::Drawn).contains("nothing is promised"));
        assert!(will_learn(Kind::Ot, Security::Malicious).contains("the messages chosen and no others"));
        // A piece of silent OT is a whole run of 2^24.
        assert!(job(Role::Sender, 1 << 24).memory(1) > 107 << 24);
        assert!(job(Role::Sender, 1 << 10).memory(1) < 25 << 20);
        assert!(job(Role::Receiver, 1 << 24).memory(1) < job(Role::Sender, 1 << 24).memory(1));
    }
}
