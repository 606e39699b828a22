//! Beaver triples: both parties get additive shares of random a and b and of c = a·b, over bits, words or a field.
//!
//! Against a semi-honest peer two products of random factors, one in each direction, make a triple
//! ([`tacit_ot::ole`]). Against a malicious one triples are of bits, and authenticated: those of
//! [`tacit_2pc::authenticated`].

use super::vole::Field;
use super::{Course, Observer, Phase};
use crate::catalogue::{self, AUTHENTICATED, AnyReceiver, AnySender};
use crate::ot::in_parallel;
use crate::plan::{self, Candidate, Choice, Link, Machine, Pick, Request};
use crate::{Error, Result};
use std::time::Duration;
use tacit_2pc::Owner;
use tacit_2pc::authenticated::buckets::{Level, WINDOW};
use tacit_2pc::authenticated::{Demand, Session};
use tacit_crypto::field::{F61, F128};
use tacit_crypto::near::one_of;
use tacit_crypto::{Block, Prg};
use tacit_net::{Agreement, Channel, LinkModel, Party};
use tacit_ot::convert::CotToRot;
use tacit_ot::ole::{Bit, Gf128, OleReceiver, OleSender, Ring, Word};
use tacit_ot::{BaseOt, Security};
use zeroize::Zeroizing;

/// What a triple's a, b and c are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bits: shares are added by XOR, and the product is AND.
    Bits,
    /// Integers modulo 2^64.
    Words,
    /// Elements of [`Field::Gf128`], [`Field::P61`] or [`Field::P128`].
    Field(Field),
}

/// The fields that triples are over.
const FIELDS: [Field; 3] = [Field::Gf128, Field::P61, Field::P128];

/// Sizes of a ring, whatever its type.
#[derive(Clone, Copy)]
struct Sizes {
    /// Random OTs of a product.
    ots: u64,
    /// Bytes of an element.
    element: u64,
    /// Bytes that are sent for a product beside its OTs.
    corrections: u64,
}

impl Sizes {
    const fn of<R: Ring>() -> Self {
        Sizes { ots: R::BITS as u64, element: R::BYTES as u64, corrections: R::CORRECTION_BYTES as u64 }
    }
}

impl Kind {
    /// The kind called `bits`, `words` or `field`; with the latter over a field called `gf128`, `p61` or `p128`, which
    /// is `gf128` unless said otherwise.
    pub fn named(name: &str, field: Option<&str>) -> Result<Self> {
        let refuse = |name, what: String| Err(Error::Parameter { name, what });
        match (name, field) {
            ("bits" | "words", Some(_)) => refuse("field", "goes with kind field".into()),
            ("bits", None) => Ok(Kind::Bits),
            ("words", None) => Ok(Kind::Words),
            ("field", field) => {
                let field = field.unwrap_or(Field::Gf128.name());
                match FIELDS.into_iter().find(|known| known.name() == field) {
                    Some(field) => Ok(Kind::Field(field)),
                    None => refuse(
                        "field",
                        format!("there is no field `{field}`; {}", one_of(field, FIELDS.map(Field::name))),
                    ),
                }
            }
            _ => refuse(
                "kind",
                format!("there is no kind `{name}`; {}", one_of(name, ["bits", "words", "field"])),
            ),
        }
    }

    /// `bits`, `words` or `field`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bits => "bits",
            Kind::Words => "words",
            Kind::Field(_) => "field",
        }
    }

    /// The field, if it is over one.
    pub fn field(self) -> Option<Field> {
        match self {
            Kind::Field(field) => Some(field),
            _ => None,
        }
    }

    /// What it is over, in words.
    pub fn title(self) -> &'static str {
        match self {
            Kind::Bits => "bits",
            Kind::Words => "integers modulo 2^64",
            Kind::Field(field) => field.title(),
        }
    }

    /// Bytes of an element as a sink gets it.
    pub fn element_bytes(self) -> usize {
        self.sizes().element as usize
    }

    /// Random OTs that a triple takes in either direction.
    pub fn ots(self) -> u64 {
        self.sizes().ots
    }

    fn sizes(self) -> Sizes {
        match self {
            Kind::Bits => Sizes::of::<Bit>(),
            Kind::Words => Sizes::of::<Word>(),
            Kind::Field(Field::P61) => Sizes::of::<F61>(),
            Kind::Field(Field::P128) => Sizes::of::<F128>(),
            Kind::Field(_) => Sizes::of::<Gf128>(),
        }
    }
}

/// What makes triples.
#[derive(Clone, Debug)]
pub enum By {
    /// Random OTs both ways, against a semi-honest peer.
    Transfers(Pick),
    /// The triples of authenticated garbling, bits with MACs, against a malicious peer.
    Authenticated,
}

/// Triples that both parties agreed on. No party has a role.
#[derive(Clone, Debug)]
pub struct Job {
    /// What of.
    pub kind: Kind,
    /// How many.
    pub count: u64,
    /// What makes them.
    pub by: By,
}

/// Takes what a run makes, piece by piece and in order. All of it is secret.
///
/// Use none of it before [`Job::run`] has ended well: later pieces of authenticated triples have the same Δ, and a check
/// of theirs may still fail.
pub trait Sink {
    /// This party's Δ, once and before all else; of authenticated triples alone.
    fn delta(&mut self, delta: Block) -> Result<()>;
    /// Shares of a, b and c of the next triples, [`Kind::element_bytes`] each, the lowest byte first.
    fn shares(&mut self, abc: [&[u8]; 3]) -> Result<()>;
    /// Of authenticated triples the MACs of these shares, and the keys of the peer's: MAC = key ⊕ share·Δ, with
    /// the Δ of whoever has the key.
    fn tags(&mut self, macs: [&[Block]; 3], keys: [&[Block]; 3]) -> Result<()>;
}

/// A sink that may be missing.
impl<S: Sink> Sink for Option<S> {
    fn delta(&mut self, delta: Block) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.delta(delta))
    }

    fn shares(&mut self, abc: [&[u8]; 3]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.shares(abc))
    }

    fn tags(&mut self, macs: [&[Block]; 3], keys: [&[Block]; 3]) -> Result<()> {
        self.as_mut().map_or(Ok(()), |sink| sink.tags(macs, keys))
    }
}

const PHASES: [Phase; 2] = [("setting up", "", 0.05), ("triples", "triple", 0.95)];

/// Authenticated triples of a session, whose Ferret needs some hundred megabytes at most, and each of those that are
/// made at a time; by the peaks of runs.
const BYTES_SESSION: u64 = 24 << 20;
const BYTES_AUTHENTICATED: u64 = 500;

/// An error unless triples of this kind are made against such a peer, by the OT extension called `protocol`, on so
/// many threads.
pub fn check(kind: Kind, security: Security, protocol: Option<&str>, threads: usize) -> Result<()> {
    let refuse = |name, what: &str| Err(Error::Parameter { name, what: what.to_owned() });
    match security {
        Security::SemiHonest => Ok(()),
        Security::Malicious if kind != Kind::Bits => refuse(
            "security",
            "triples of words and fields are secure only against a peer that follows the protocol; set semi-honest security on both sides",
        ),
        Security::Malicious if protocol.is_some() => refuse(
            "protocol",
            "goes with semi-honest security: a protocol of their own makes checked triples",
        ),
        Security::Malicious if threads > 1 => refuse(
            "threads",
            "authenticated triples have one Δ per side, and so one thread; leave it out, or make them in several runs at once",
        ),
        Security::Malicious => Ok(()),
    }
}

/// What the OT extension must make in either direction; an error for more than a run holds.
fn ots(kind: Kind, count: u64) -> Result<u64> {
    let ots = count.checked_mul(kind.sizes().ots);
    ots.ok_or_else(|| Error::Parameter { name: "count", what: "too many triples for one run".into() })
}

/// The transfers of one direction, as the planner takes them.
pub(crate) fn request<'a>(
    kind: Kind,
    count: u64,
    threads: usize,
    protocol: Option<&'a str>,
) -> Result<Request<'a>> {
    let choice = Choice { protocol, ..Choice::default() };
    let count = ots(kind, count)?;
    Ok(Request { count, kind: crate::ot::Kind::Rot, security: Security::SemiHonest, threads, choice })
}

impl Job {
    /// What both parties must agree on before they start.
    pub fn agreement(&self, base: &dyn BaseOt) -> Agreement {
        let agreement = terms("triples", self.kind, self.count).with("base-ot", base.name());
        match &self.by {
            By::Transfers(pick) => pick.extension().terms(agreement.with("protocol", pick.protocol.name)),
            By::Authenticated => agreement.with("protocol", AUTHENTICATED.name),
        }
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &'static str {
        match &self.by {
            By::Transfers(pick) => pick.protocol.name,
            By::Authenticated => AUTHENTICATED.name,
        }
    }

    /// Against which peer they are safe.
    pub fn security(&self) -> Security {
        match self.by {
            By::Transfers(_) => Security::SemiHonest,
            By::Authenticated => Security::Malicious,
        }
    }

    /// Bytes that a party holds at most on `threads`, beside what its sink keeps: of both directions the state of
    /// each stream and a piece of OTs, and the triples of a piece.
    pub fn memory(&self, threads: usize) -> u64 {
        let By::Transfers(pick) = &self.by else {
            return (24 << 20) + BYTES_SESSION + BYTES_AUTHENTICATED * self.count.min(WINDOW as u64);
        };
        let Sizes { ots, element, corrections } = self.kind.sizes();
        let lanes = pick.streams(self.ots(), threads.max(1)) as u64;
        let triples = self.piece(pick, lanes as usize) as u64;
        // The sender's pairs and the receiver's messages; corrections that come while others are sent; a triple, a
        // share of a product, and a triple written out.
        let piece = triples * (ots * (32 + 16 + pick.working()) + corrections + 7 * element);
        (24 << 20) + lanes * (2 * pick.held() + piece)
    }

    /// What the other side learned of us.
    pub fn has_learned(&self) -> String {
        super::learned(self.security(), "how many triples were made, and nothing of your shares")
    }

    /// Random OTs of one direction.
    fn ots(&self) -> u64 {
        self.count.saturating_mul(self.kind.sizes().ots)
    }

    /// Triples that each of `lanes` makes at a time.
    fn piece(&self, pick: &Pick, lanes: usize) -> usize {
        let ots = pick.piece(self.ots(), lanes);
        let each = self.kind.sizes().ots as usize;
        (ots / each).max(1).min(self.count.max(1) as usize)
    }

    /// Runs this side over `channels`, base OTs included, and hands what it makes to `sink`.
    pub fn run(
        &self,
        channels: &mut [Channel],
        base: &(dyn BaseOt + Send + Sync),
        sink: &mut dyn Sink,
        observer: &dyn Observer,
    ) -> Result<()> {
        let course = Course::begin(&PHASES, channels, self.bytes(channels.len(), base), observer);
        course.at(0, 0, 0);
        let By::Transfers(pick) = &self.by else {
            return self.authenticated(super::first(channels)?, base, sink, &course);
        };
        let lanes = pick.streams(self.ots(), channels.len());
        let mut making = Making { job: self, pick, base, channels: &mut channels[..lanes], course: &course };
        match self.kind {
            Kind::Bits => making.run::<Bit>(sink),
            Kind::Words => making.run::<Word>(sink),
            Kind::Field(Field::P61) => making.run::<F61>(sink),
            Kind::Field(Field::P128) => making.run::<F128>(sink),
            Kind::Field(_) => making.run::<Gf128>(sink),
        }
    }

    /// Bytes that should pass from these base OTs, or 0 where nothing foresees it.
    fn bytes(&self, threads: usize, base: &dyn BaseOt) -> u64 {
        let protocol = matches!(self.by, By::Transfers(_)).then(|| self.protocol());
        let (link, machine) = (LinkModel::LOOPBACK.into(), Machine::REFERENCE);
        let all = estimate(self.kind, self.count, self.security(), threads, protocol, &link, &machine);
        let best = all.ok().and_then(|all| all.into_iter().next());
        best.map_or(0, |best| best.with_base(base, &link, &machine).bytes)
    }

    fn authenticated(
        &self,
        channel: &mut Channel,
        base: &dyn BaseOt,
        sink: &mut dyn Sink,
        course: &Course<'_>,
    ) -> Result<()> {
        let role = match channel.party() {
            Party::First => Owner::Garbler,
            Party::Second => Owner::Evaluator,
        };
        let count = usize::try_from(self.count).map_err(|_| Error::Usage("too many triples".into()))?;
        let config = Demand::of_triples(count).ferret(&LinkModel::LOOPBACK, Level::ALONE);
        let mut session = Session::setup(channel, role, base, config, &mut Prg::from_os())?;
        let mut bytes = [(); 3].map(|()| Zeroizing::new(Vec::new()));
        let mut done = 0;
        loop {
            let size = (count - done).min(WINDOW);
            let made = session.triples(channel, size)?;
            channel.flush()?;
            if done == 0 {
                sink.delta(made.delta())?;
            }
            for (bytes, macs) in bytes.iter_mut().zip(made.macs()) {
                bytes.clear();
                bytes.extend(macs.iter().map(|mac| u8::from(mac.lsb())));
            }
            sink.shares(bytes.each_ref().map(|bytes| &bytes[..]))?;
            sink.tags(made.macs(), made.keys())?;
            done += size;
            course.at(1, done as u64, self.count);
            if done == count {
                return Ok(());
            }
        }
    }
}

/// The terms that do not depend on the protocol.
pub(crate) fn terms(job: &str, kind: Kind, count: u64) -> Agreement {
    let agreement = Agreement::new(job, "party", "party").with("kind", kind.name()).with("count", count);
    agreement.with("field", kind.field().map_or("none", Field::name))
}

/// A run by random OTs.
struct Making<'a> {
    job: &'a Job,
    pick: &'a Pick,
    base: &'a (dyn BaseOt + Send + Sync),
    channels: &'a mut [Channel],
    course: &'a Course<'a>,
}

/// What a connection works with.
struct Lane<R: Ring> {
    sender: OleSender<CotToRot<AnySender>>,
    receiver: OleReceiver<CotToRot<AnyReceiver>>,
    /// a, b and c.
    made: [Zeroizing<Vec<R>>; 3],
    /// This party's share of the product of which it received a factor.
    share: Zeroizing<Vec<R>>,
    bytes: [Zeroizing<Vec<u8>>; 3],
}

impl Making<'_> {
    fn lanes<R: Ring>(&mut self) -> Result<Vec<Lane<R>>> {
        let (pick, base, lanes) = (self.pick, self.base, self.channels.len());
        let (channel, mut prg) = (super::first(self.channels)?, Prg::from_os());
        let (senders, receivers) = pick.both_ways(channel, base, &mut prg, lanes)?;
        channel.flush()?;
        let n = self.job.piece(pick, lanes);
        let elements = || Zeroizing::new(vec![R::default(); n]);
        let lane = |(sender, receiver)| Lane {
            sender: OleSender::new(CotToRot::new(sender)),
            receiver: OleReceiver::new(CotToRot::new(receiver)),
            made: [(); 3].map(|()| elements()),
            share: elements(),
            bytes: [(); 3].map(|()| Zeroizing::new(vec![0; n * R::BYTES])),
        };
        Ok(senders.into_iter().zip(receivers).map(lane).collect())
    }

    fn run<R: Ring>(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let count = self.job.count;
        let states = self.lanes::<R>()?;
        let share = self.job.piece(self.pick, states.len()) as u64;
        let mut lanes: Vec<_> = self.channels.iter_mut().zip(states).collect();
        let mut next = 0;
        while next < count {
            let mut sizes = Vec::with_capacity(lanes.len());
            for _ in &lanes {
                let size = (count - next).min(share);
                sizes.push(size as usize);
                next += size;
            }
            in_parallel(&mut lanes, |index, (channel, lane)| {
                lane.make(channel, sizes[index])?;
                Ok(channel.flush()?)
            })?;
            for ((_, lane), size) in lanes.iter().zip(sizes) {
                sink.shares(lane.bytes.each_ref().map(|bytes| &bytes[..size * R::BYTES]))?;
            }
            self.course.at(1, next, count);
        }
        Ok(())
    }
}

impl<R: Ring> Lane<R> {
    /// Makes `n` triples, as a and b the factors that this party gave to either product.
    fn make(&mut self, channel: &mut Channel, n: usize) -> Result<()> {
        let [a, b, c] = self.made.each_mut().map(|made| &mut made[..n]);
        let share = &mut self.share[..n];
        match channel.party() {
            Party::First => {
                self.sender.begin::<R>(channel, n)?;
                self.receiver.begin::<R>(channel, n)?;
            }
            Party::Second => {
                self.receiver.begin::<R>(channel, n)?;
                self.sender.begin::<R>(channel, n)?;
            }
        }
        // Both directions' corrections pass at the same time.
        self.sender.finish(channel, a, c)?;
        self.receiver.finish(channel, b, share)?;
        for ((c, share), (a, b)) in c.iter_mut().zip(share).zip(a.iter().zip(&*b)) {
            *c = *c + *share + *a * *b;
        }
        for (bytes, made) in self.bytes.iter_mut().zip(&self.made) {
            bytes.chunks_exact_mut(R::BYTES).zip(&made[..n]).for_each(|(out, element)| element.write(out));
        }
        Ok(())
    }
}

/// What a bit of a product computes beside its OT, in nanoseconds on the reference machine.
const CORRECTION_NS: f64 = 3.0;

/// What `count` triples would cost by everything that makes them against such a peer, the fastest first.
///
/// An error if it names what there is not, or as [`check`].
pub fn estimate(
    kind: Kind,
    count: u64,
    security: Security,
    threads: usize,
    protocol: Option<&str>,
    link: &Link,
    machine: &Machine,
) -> Result<Vec<Candidate>> {
    check(kind, security, protocol, threads)?;
    if security == Security::Malicious {
        return Ok(vec![catalogue::authenticated_triples(count, link, machine)]);
    }
    let request = request(kind, count, threads, protocol)?;
    let mut all = plan::ot(&request, link, machine)?;
    let bytes = count.saturating_mul(kind.sizes().corrections);
    // One direction's OTs after the other's; corrections pass at the same time.
    let computing = 2.0 * request.count as f64 / threads.max(1) as f64 * CORRECTION_NS;
    let nanoseconds = computing.max(link.pass(bytes as f64));
    for candidate in &mut all {
        candidate.time = 2 * candidate.time + Duration::from_secs_f64((nanoseconds / 1e9).min(1e15));
        candidate.bytes = candidate.bytes.saturating_add(bytes).saturating_mul(2);
        candidate.rounds *= 2;
        candidate.base_batches *= 2;
        // Whatever the OTs withstand, the corrections are not checked.
        candidate.security = Security::SemiHonest;
    }
    Ok(all)
}

/// What the other side will learn of this one.
pub fn will_learn(security: Security) -> String {
    super::learned(security, "how many triples are made, and nothing of your shares")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ot::protocol;
    use std::sync::Mutex;
    use tacit_crypto::field::Field as _;
    use tacit_crypto::gf128;
    use tacit_net::memory;
    use tacit_ot::base;

    const KINDS: [Kind; 5] = [
        Kind::Bits,
        Kind::Words,
        Kind::Field(Field::Gf128),
        Kind::Field(Field::P61),
        Kind::Field(Field::P128),
    ];

    /// A side's shares.
    #[derive(Default)]
    struct Kept {
        delta: Option<Block>,
        abc: [Vec<u8>; 3],
        macs: [Vec<Block>; 3],
        keys: [Vec<Block>; 3],
    }

    impl Sink for Kept {
        fn delta(&mut self, delta: Block) -> Result<()> {
            assert!(self.abc[0].is_empty() && self.delta.replace(delta).is_none());
            Ok(())
        }

        fn shares(&mut self, abc: [&[u8]; 3]) -> Result<()> {
            self.abc.iter_mut().zip(abc).for_each(|(kept, bytes)| kept.extend_from_slice(bytes));
            Ok(())
        }

        fn tags(&mut self, macs: [&[Block]; 3], keys: [&[Block]; 3]) -> Result<()> {
            self.macs.iter_mut().zip(macs).for_each(|(kept, blocks)| kept.extend_from_slice(blocks));
            self.keys.iter_mut().zip(keys).for_each(|(kept, blocks)| kept.extend_from_slice(blocks));
            Ok(())
        }
    }

    fn job(kind: Kind, count: u64, name: &str) -> Job {
        if name == AUTHENTICATED.name {
            return Job { kind, count, by: By::Authenticated };
        }
        let entry = protocol(name, Security::SemiHonest).unwrap();
        let pick = entry.pick(count.max(1), Security::SemiHonest, &Choice::default()).unwrap();
        Job { kind, count, by: By::Transfers(pick) }
    }

    /// Both sides' shares and the bytes that passed.
    fn ran(job: &Job, lanes: usize) -> (Kept, Kept, u64) {
        let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (0..lanes).map(|_| memory::pair()).unzip();
        let side = |channels: &mut [Channel]| {
            let mut kept = Kept::default();
            job.run(channels, &*base::default(), &mut kept, &()).unwrap();
            (kept, channels.iter().map(|channel| channel.stats().bytes_sent).sum::<u64>())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| side(&mut theirs));
            let (a, sent) = side(&mut ours);
            let (b, back) = other.join().unwrap();
            (a, b, sent + back)
        })
    }

    fn numbers(kind: Kind, bytes: &[u8]) -> Vec<u128> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        bytes.chunks(kind.element_bytes()).map(number).collect()
    }

    /// Checks a triple as the kind says, by other arithmetic than what made it.
    fn multiplies(kind: Kind, [x, y]: [[u128; 3]; 2]) -> bool {
        let both = [0, 1, 2].map(|i| (x[i], y[i]));
        let [a, b, c] = match kind {
            Kind::Bits => both.map(|(x, y)| x ^ y),
            Kind::Words => both.map(|(x, y)| (x + y) & u128::from(u64::MAX)),
            Kind::Field(Field::P61) => both.map(|(x, y)| (x + y) % ((1 << 61) - 1)),
            Kind::Field(Field::P128) => both.map(|(x, y)| {
                (F128::from_block(Block::new(x)) + F128::from_block(Block::new(y))).to_block().to_u128()
            }),
            Kind::Field(_) => both.map(|(x, y)| x ^ y),
        };
        match kind {
            Kind::Bits => a < 2 && b < 2 && a & b == c,
            Kind::Words => (a as u64).wrapping_mul(b as u64) == c as u64,
            Kind::Field(Field::P61) => a * b % ((1 << 61) - 1) == c,
            Kind::Field(Field::P128) => {
                let [a, b, c] = [a, b, c].map(|number| F128::from_canonical(Block::new(number)).unwrap());
                a * b == c
            }
            Kind::Field(_) => gf128::mul(Block::new(a), Block::new(b)).to_u128() == c,
        }
    }

    fn hold(job: &Job, lanes: usize) {
        let (a, b, _) = ran(job, lanes);
        let name = (job.kind, job.count, job.protocol(), lanes);
        let [ours, theirs] = [&a, &b].map(|side| side.abc.each_ref().map(|bytes| numbers(job.kind, bytes)));
        for all in ours.iter().chain(&theirs) {
            assert_eq!(all.len() as u64, job.count, "{name:?}");
        }
        for i in 0..job.count as usize {
            let triple = [&ours, &theirs].map(|side| [side[0][i], side[1][i], side[2][i]]);
            assert!(multiplies(job.kind, triple), "{name:?}: triple {i}");
        }
        assert_eq!(a.delta.is_some(), job.security() == Security::Malicious);
        for (mine, theirs) in [(&a, &b), (&b, &a)] {
            for part in 0..3 {
                let keys = theirs.keys[part].iter().zip(&mine.abc[part]);
                assert_eq!(mine.macs[part].len(), theirs.keys[part].len());
                for (mac, (key, share)) in mine.macs[part].iter().zip(keys) {
                    assert!(*mac == *key ^ (theirs.delta.unwrap() & Block::mask(*share == 1)));
                }
            }
        }
    }

    #[test]
    fn triples_of_every_kind_and_count_multiply() {
        for kind in KINDS {
            for count in [0, 1, 7, 8, 65] {
                hold(&job(kind, count, "iknp"), 1);
            }
        }
        for name in ["kos", "ferret", "silent"] {
            hold(&job(Kind::Bits, 1001, name), 1);
            hold(&job(Kind::Words, 101, name), 1);
        }
        for count in [0, 1, 7, 8, 65, 5000] {
            hold(&job(Kind::Bits, count, AUTHENTICATED.name), 1);
        }
    }

    #[test]
    fn pieces_and_lanes_keep_their_order() {
        // More OTs than a piece, and less than a piece for the last lane.
        hold(&job(Kind::Words, 17_000, "iknp"), 1);
        hold(&job(Kind::Field(Field::P61), 35_000, "iknp"), 2);
        hold(&job(Kind::Bits, 10, "iknp"), 3);
    }

    #[test]
    fn foreseen_bytes_are_those_that_pass() {
        let link = LinkModel::LOOPBACK.into();
        let told = |kind, count, security, name: Option<&str>| {
            estimate(kind, count, security, 1, name, &link, &Machine::REFERENCE).unwrap()[0].bytes
        };
        let close = |told: u64, sent: u64, name: &str| {
            let off = told as f64 / sent as f64 - 1.0;
            assert!(off.abs() < 0.02, "{name}: told {told}, sent {sent}");
        };
        for kind in KINDS {
            for name in ["iknp", "kos"] {
                let (_, _, sent) = ran(&job(kind, 3000, name), 1);
                close(told(kind, 3000, Security::SemiHonest, Some(name)), sent, &format!("{kind:?} {name}"));
            }
        }
        for count in [1, 3000, 30_000] {
            let (_, _, sent) = ran(&job(Kind::Bits, count, AUTHENTICATED.name), 1);
            close(
                told(Kind::Bits, count, Security::Malicious, None),
                sent,
                &format!("authenticated {count}"),
            );
        }
        // The fastest first, and none that is said to withstand more than it does.
        let all = estimate(Kind::Words, 1 << 20, Security::SemiHonest, 1, None, &link, &Machine::REFERENCE);
        let all = all.unwrap();
        assert!(all.len() > 2 && all.windows(2).all(|two| two[0].time <= two[1].time));
        assert!(all.iter().all(|candidate| candidate.security == Security::SemiHonest));
    }

    #[test]
    fn what_is_not_made_is_refused() {
        let refused = |kind, security, protocol, threads| {
            check(kind, security, protocol, threads).unwrap_err().to_string()
        };
        for kind in &KINDS[1..] {
            assert!(refused(*kind, Security::Malicious, None, 1).contains("semi-honest"));
            check(*kind, Security::SemiHonest, Some("kos"), 8).unwrap();
        }
        check(Kind::Bits, Security::Malicious, None, 1).unwrap();
        assert!(refused(Kind::Bits, Security::Malicious, Some("kos"), 1).contains("protocol"));
        assert!(refused(Kind::Bits, Security::Malicious, None, 2).contains("one Δ"));
        for (name, field, said) in [
            ("nibbles", None, "bits, words, field"),
            ("bits", Some("gf128"), "goes with kind field"),
            ("field", Some("gf4"), "gf128, p61, p128"),
        ] {
            assert!(Kind::named(name, field).unwrap_err().to_string().contains(said), "{name}");
        }
        assert_eq!(Kind::named("field", None).unwrap(), Kind::Field(Field::Gf128));
        for kind in KINDS {
            assert_eq!(Kind::named(kind.name(), kind.field().map(Field::name)).unwrap(), kind);
        }
        assert!(ots(Kind::Words, u64::MAX / 8).is_err());
    }

    /// What a peer with another number of triples gets: both wait or end, and nothing is handed on.
    #[test]
    fn a_peer_that_leaves_early_ends_the_run() {
        let kept = Mutex::new(Kept::default());
        let (ended, ()) = memory::run(
            |channel| {
                let mut sink = kept.lock().unwrap();
                let job = job(Kind::Words, 65, "iknp");
                job.run(std::slice::from_mut(channel), &*base::default(), &mut *sink, &()).is_err()
            },
            |channel| {
                let job = job(Kind::Words, 65, "iknp");
                let By::Transfers(pick) = &job.by else { unreachable!() };
                let channels = std::slice::from_mut(channel);
                let course = Course::begin(&PHASES, channels, 0, &());
                let base = base::default();
                let mut making = Making { job: &job, pick, base: &*base, channels, course: &course };
                drop(making.lanes::<Word>().unwrap());
            },
        );
        assert!(ended && kept.into_inner().unwrap().abc[0].is_empty());
    }

    #[test]
    fn words_and_memory() {
        let small = job(Kind::Bits, 5, "kos");
        assert!(small.has_learned().contains("nothing of your shares"));
        assert!(small.has_learned().contains("nothing is promised"));
        let checked = job(Kind::Bits, 5, AUTHENTICATED.name);
        assert!(!checked.has_learned().contains("nothing is promised"));
        assert!(small.memory(1) < 34 << 20, "{}", small.memory(1));
        assert!(checked.memory(1) < 49 << 20, "{}", checked.memory(1));
        // A piece has 2^20 OTs, whatever they make, and every thread its own.
        let words = job(Kind::Words, 1 << 30, "kos");
        assert!((88 << 20..110 << 20).contains(&words.memory(1)), "{}", words.memory(1));
        assert!(words.memory(4) > 3 * words.memory(1));
        let all = job(Kind::Bits, 1 << 40, AUTHENTICATED.name);
        assert_eq!(all.memory(1), job(Kind::Bits, WINDOW as u64, AUTHENTICATED.name).memory(1));
    }
}
