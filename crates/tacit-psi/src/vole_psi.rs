//! VOLE-PSI: private set intersection from a key-value store and one vector oblivious linear evaluation over
//! GF(2^128).
//!
//! - Source: Rindal, Schoppmann, "VOLE-PSI" (EUROCRYPT 2021, 2021/266), the malicious protocol; the store of
//!   Raghuraman and Rindal (2022/320).
//! - Realises: private set intersection with abort, as [`paxos`] does. Both parties learn the
//!   size of the other's set; the result goes to one party, or to both. Semi-honest: the same steps over a
//!   semi-honest VOLE, with shorter tags.
//! - Assumptions: those of the base OT and of [silent VOLE](tacit_ot::vole::gf128); BLAKE3 as a random
//!   oracle.
//! - Rounds: both announcements at once; set-up; each run of VOLE, with its part of the store; the coins;
//!   the tags.
//! - Bytes: 16 a slot of the receiver's store (20.6 an element from 2^20 on, 16 up to [`SMALL_SET`]), 14.2 (8.3 at
//!   2^20) an element of the sender's, 0.3 to 1.1 MB of set-up.
//!
//! # Steps
//!
//! The receiver has Y and learns the result; the sender has X.
//!
//! 1. The receiver draws the salt of the session's hash function H *after* the sender's announcement, and
//!    nothing that the sender sends later enters H: so a sender can choose neither elements nor an H for which
//!    Y's store fails. The sender commits to a coin.
//! 2. VOLE gives the receiver random u and w, the sender v and Δ, with w = v + u·Δ, as long as the store.
//! 3. The receiver solves a store P with P(y) = H(y), for a small set a polynomial ([`is_small`]), and sends P + u and its own coin. The sender has k = v
//!    + (P + u)·Δ, so that k(y) + H(y)·Δ = w(y) for y in Y. It opens its coin; both coins salt the hash Ho.
//! 4. The sender sends its tags Ho(x, k(x) + H(x)·Δ), *sorted*: the order then says nothing of the order in
//!    X. The receiver refuses tags that do not ascend strictly, so none counts twice.
//! 5. The receiver outputs the y whose Ho(y, w(y)) is among the tags.
//!
//! Sorted tags need not repeat what they share: their first bits, of which there are almost log2 |X|, go as
//! a bitmap with one bit a tag and one a prefix. Its length depends on the sizes alone.
//!
//! Where both learn, Ho gives a proof beside each tag, as in [`paxos`].
//!
//! # What a cheater can do at most
//!
//! - A receiver may encode more elements than it announced: [`Parameters::encodable`] bounds them. The bound
//!   counts sets of hash values that some store fits, so it holds whatever the cheater computes: 1.9 times
//!   as many with 2^60 hash calls, 2.4 times with 2^80, at 2^20. What counts is slots: a sparse store has 13
//!   at least, so that one announced element would be 23 tested ones. A small set has as many slots as
//!   elements: 2, 18 and 173 tested ones for 1, 10 and 100 with 2^60.
//! - A sender may look for elements with one tag: [`Parameters::testable`] bounds the elements that its tags
//!   stand for. With 2^60 hash calls that is at most four more than it announced, with 2^80 twice as many and
//!   two more.
//! - Hash calls count from the announcements on, and over all attempts of a job.
//! - A sender may send noise in place of tags, which is the same as a smaller set.
//! - A party that deviates in VOLE may guess bits of Δ, or of where the noise is, and is caught when a guess
//!   is wrong.
//!
//! # Statistical security
//!
//! [`Parameters::statistical_error_log2`] adds up every bad event: the store unsolvable, two elements with
//! one key, H(x) hit by chance, equal tags of different elements.
//!
//! # Deviations
//!
//! Tags are sorted and cut to prefixes and rests, where the paper sends them in the order of X; the proofs
//! are new; the coins enter Ho's key and not its input; H gives a store's key beside its value, and Ho takes
//! this key for the element. Where two elements have one key, and not one value, k(x) is the same and H(x)·Δ
//! is not, as Δ is never zero, so that Ho's inputs differ as the elements do.

pub mod circuit;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hashing;
mod kept;
mod layout;
pub mod link;
pub mod payload;
mod runs;
mod sealing;
mod tag_hash;
mod tags;

use crate::matching::{self, Found, Matching, Pair};
use crate::okvs::Store;
use crate::okvs::clustered::{Binned, Shape};
use crate::paxos::{self, Hello, Proof};
pub use crate::paxos::{Learns, MAX_ELEMENTS, Options, Outcome, Phase, Progress};
use crate::{Error, Result, work};
use hashing::ElementHash;
use runs::{Filling, Last, Masking, Summing, Whole};
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::{Block, Buffer, Prg, RHO, gf128, transcript::Transcript, workers};
use tacit_net::{Channel, Party};
use tacit_ot::vole::gf128::{self as gf128_vole, run_size};
use tacit_ot::vole::{Gf128Receiver, Gf128Sender};
use tacit_ot::{Security, VoleReceiver, VoleSender};
use tag_hash::TagHash;
use tags::{Format, Tags};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "vole";
/// log2 of the most runs that share one error bound.
pub const MAX_RUNS_LOG2: u32 = 12;
const MAGIC: [u8; 16] = *b"tacit-psi vole-7";
/// Elements hashed, or tags sent, at a time.
const STEP: usize = 1024;
/// Slots received at a time.
const CHUNK: usize = 4096;
/// Slots that are worth a thread, to be multiplied.
const MULTIPLIED_EACH: usize = 1 << 14;
/// Tags written or read at a time.
const TAGS_AT_ONCE: usize = 64 * STEP;
/// Bytes of an element that the vectorised hash takes.
const SHORT: usize = 64;
/// Bytes at work for each key of a bin that is solved.
const SOLVING: usize = 64;

/// The most elements of a receiver whose store has one slot an element.
pub const SMALL_SET: u64 = 1 << 10;
/// The most products that the sender's elements take with such a store: two seconds.
const SMALL_SET_PRODUCTS: u64 = 1 << 31;

/// Whether a receiver's set of this size, against a sender's, has a store without spare slots: then a receiver
/// that cheats can test hardly more elements than it announced, however few those are.
pub fn is_small(receiver: u64, sender: u64) -> bool {
    (1..=SMALL_SET).contains(&receiver) && receiver.saturating_mul(sender) <= SMALL_SET_PRODUCTS
}

/// Everything that follows from the two sets' sizes and the security asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    receiver: usize,
    sender: usize,
    security: Security,
    shape: Shape,
    runs_log2: u32,
}

impl Parameters {
    /// The parameters for a receiver's and a sender's set of these sizes, at most [`MAX_ELEMENTS`] each.
    pub fn new(receiver: usize, sender: usize, security: Security) -> Result<Self> {
        Self::one_of(receiver, sender, security, 0)
    }

    /// The same for each of 2^`runs_log2` runs, at most 2^[`MAX_RUNS_LOG2`], whose errors together are as
    /// rare as those of one run: each has as many bits more.
    pub fn one_of(receiver: usize, sender: usize, security: Security, runs_log2: u32) -> Result<Self> {
        if runs_log2 > MAX_RUNS_LOG2 {
            return Err(Error::Usage("more runs than share one error bound"));
        }
        let most = receiver.max(sender);
        if most > MAX_ELEMENTS {
            return Err(Error::TooManyElements { count: most as u64, allowed: MAX_ELEMENTS as u64 });
        }
        let shape = match is_small(receiver as u64, sender as u64) {
            true => Shape::dense_for(receiver)?,
            false => Shape::one_of(receiver, runs_log2)?,
        };
        Ok(Parameters { receiver, sender, security, shape, runs_log2 })
    }

    /// The store's shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Bits of a tag: 128, and semi-honest as many as leave 41 bits for equal tags of different elements.
    pub fn tag_bits(&self) -> u32 {
        match self.security {
            Security::Malicious => 128,
            Security::SemiHonest => {
                let pairs = self.sender as u64 * (self.sender + self.receiver) as u64;
                let bits = RHO as u32 + 1 + self.runs_log2 + pairs.max(1).next_power_of_two().ilog2();
                bits.min(128)
            }
        }
    }

    /// Bytes of a tag that are sent as they are, behind the prefix.
    pub fn tag_bytes(&self) -> usize {
        let prefix = self.sender.max(1).ilog2();
        (self.tag_bits() - prefix).div_ceil(8) as usize
    }

    /// Bits of a tag that are sent in the bitmap, its first ones.
    fn prefix_bits(&self) -> u32 {
        self.tag_bits().saturating_sub(8 * self.tag_bytes() as u32)
    }

    /// Bytes of the sender's tags, both parts together.
    pub fn tags_bytes(&self) -> usize {
        self.format().bitmap_bits().div_ceil(8) + self.sender * self.tag_bytes()
    }

    /// How the sender's tags are sent.
    fn format(&self) -> Format {
        Format { count: self.sender, prefix_bits: self.prefix_bits(), rest: self.tag_bytes() }
    }

    /// Bytes that the receiver, and the sender, holds at most beside its elements and what the process takes
    /// anyway; payload counts as where both learn: `docs/notes/psi.md` has the table of buffers.
    pub fn memory(&self, learns: Learns) -> [u64; 2] {
        let proof = if learns == Learns::Both { size_of::<Proof>() } else { 0 };
        let block = size_of::<Block>();
        let [blocks, pairs, indices] = [block, size_of::<Pair>(), size_of::<u32>()]
            .map(|each| move |of: usize| Buffer::bytes(of.div_ceil(block / each)));
        [[self.receiver, self.sender], [self.sender, self.receiver]].map(|[count, other]| {
            let summing = self.summing_memory(count);
            // Tags, and the same sorted with their elements.
            let room = self.shape.bins() * self.shape.room(count);
            let sorting = indices(room) + blocks(room) + blocks(count) + indices(count);
            // Of the peer's tags those that are held, and a place for what is found at each of them: nothing of it a
            // sender, which sends what is as large.
            let is_held = other / matching::HELD_FOR_EACH <= count;
            let [held, places] = if is_held { [blocks(other), other] } else { [0, other.min(count)] };
            let comparing = blocks(count) + indices(count) + held + pairs(places + 2);
            // What is no buffer: a bitmap twice, some tags that came and are read, marks, and the list of matches.
            let read = self.tag_bytes() + if is_held { 0 } else { block };
            let vectors =
                2 * other.div_ceil(4) + TAGS_AT_ONCE.min(other) * read + (1 + size_of::<u32>()) * count;
            // Beside it are buffers of before that wait, up to what all took then.
            let after = |buffers: usize| summing.max(sorting).min(buffers + Buffer::WAITING).max(buffers);
            let proofs = proof * count;
            summing.max(after(sorting) + proofs).max(after(comparing) + proofs + vectors) as u64
        })
    }

    /// The same of a party with `count` elements until all slots have passed.
    fn summing_memory(&self, count: usize) -> usize {
        let (block, slots) = (size_of::<Block>(), self.shape.slots());
        let room = self.shape.bins() * self.shape.room(count);
        let digests = Buffer::bytes(room.div_ceil(block / size_of::<u32>())) + 2 * Buffer::bytes(room);
        let run = gf128_vole::memory(slots) + 2 * Buffer::bytes(run_size(slots));
        // Each thread solves a bin of its own; one more is on its way.
        let at_work = workers::count().min(self.shape.bins());
        let bin = self.shape.bin_slots() * block;
        digests + run + bin + at_work * (bin + SOLVING * self.shape.room(self.receiver))
    }

    /// log2 of an upper bound on the probability that an honest run errs or fails by chance. At most
    /// -40, less log2 of the runs that share it.
    pub fn statistical_error_log2(&self) -> f64 {
        // proof: vole-psi 7.1
        let (n, m) = (self.receiver as f64, self.sender as f64);
        let events = [
            self.shape.failure_log2().exp2(),
            n * n / 2.0 * 2f64.powi(-128), // two elements of Y have one key
            m * 2f64.powi(-128),           // P(x) = H(x) for an x outside Y
            m * (n + m) * 2f64.powi(-(self.tag_bits() as i32)), // two elements have one tag
        ];
        events.iter().sum::<f64>().log2()
    }

    /// How many elements a cheating receiver that makes 2^`log2_queries` hash calls can have encoded, but
    /// for 2^-40: of q random values of H, some n' are met by one of 2^(128·m) stores with probability at
    /// most C(q, n')·2^((m − n')·128).
    pub fn encodable(&self, log2_queries: f64) -> u64 {
        // proof: vole-psi 3.3
        paxos::encodable(self.shape.slots(), 128, log2_queries, self.runs_log2)
    }

    /// How many elements the tags of a cheating sender that makes 2^`log2_queries` hash calls can stand for,
    /// but for 2^-40.
    ///
    /// Of q random tags of b bits there are on average E(k) = C(q, k)·2^(b − b·k) sets of k equal ones. For the
    /// least k with E(k) < 1/2, all tags may stand for k − 1 elements. A tag that stands for k + i of them has
    /// the probability E(k + i), several tags the product of theirs, and E falls faster and faster: so the most
    /// that the error leaves room for is one more for each tag, then another one for each, and so on.
    pub fn testable(&self, log2_queries: f64) -> u64 {
        // proof: vole-psi 4.3
        let bits = self.tag_bits() as f64;
        if log2_queries >= bits {
            return u64::MAX;
        }
        let sender = self.sender as u64;
        let error = f64::from(RHO as u32 + self.runs_log2);
        let (mut k, mut log2_factorial) = (2u64, 1.0);
        let log2_sets =
            |k: u64, log2_factorial: f64| k as f64 * log2_queries - log2_factorial - (k - 1) as f64 * bits;
        while log2_sets(k, log2_factorial) >= -1.0 {
            k += 1;
            log2_factorial += (k as f64).log2();
        }
        let mut tested = sender.saturating_mul(k - 1);
        // What one element more costs each tag, and what all of them have cost.
        let (mut each, mut spent) = (-log2_sets(k, log2_factorial), 0.0);
        loop {
            let room = ((error - spent) / each).ceil() as u64 - 1;
            tested = tested.saturating_add(room.min(sender));
            if room < sender {
                return tested;
            }
            spent += sender as f64 * each;
            k += 1;
            each = bits - log2_queries + (k as f64).log2();
        }
    }
}

/// Intersects `elements` with the peer's set.
///
/// Elements are byte strings of any lengths, each once, at most [`MAX_ELEMENTS`]; their order is not
/// revealed. `prg` is seeded by the operating system. Errors: the caller's ([`Error::TooManyElements`],
/// [`Error::DuplicateElement`]), disagreement of the parties' options, the peer's cheating, or the link's.
/// Nothing is returned unless every check passed.
pub fn run<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome> {
    run_one_of(channel, prg, elements, options, 0, progress)
}

/// The same as [`run`], for one of 2^`runs_log2` runs that together err or fail as rarely as one
/// ([`Parameters::one_of`]). Both sides say the same number, and bind it to what they announce before.
pub fn run_one_of<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    options: &Options<'_>,
    runs_log2: u32,
    progress: &mut Progress<'_>,
) -> Result<Outcome> {
    let Marked { marks, peer_elements, peer_received } =
        mark_one_of(channel, prg, elements, options, runs_log2, progress)?;
    let matches = marks.map(|marks| matching::indices(&marks));
    Ok(Outcome { matches, peer_elements, peer_received, protocol: NAME })
}

/// One byte an element: 1 where the peer has it too, else 0.
pub type Marks = Zeroizing<Vec<u8>>;

/// What a run gave, in a form whose size and whose making do not depend on the matches.
pub struct Marked {
    /// Which elements match; `None` if only the peer learns that.
    pub marks: Option<Marks>,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// Whether the peer had the receiver's part.
    pub peer_received: bool,
}

/// The same as [`run_one_of`] where more is said to the peer afterwards: what this does takes as long whatever
/// matches, and so may what the caller makes of it. That holds where the peer learns nothing; where both learn,
/// it shows the number of matches, which the peer learns anyway.
pub fn mark_one_of<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    options: &Options<'_>,
    runs_log2: u32,
    progress: &mut Progress<'_>,
) -> Result<Marked> {
    if options.security == Security::Malicious && options.base.security() != Security::Malicious {
        return Err(Error::Usage("malicious security needs a malicious base OT"));
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements.len() as u64, allowed: MAX_ELEMENTS as u64 });
    }
    // proof: vole-psi 2.1
    let mine = Hello::new(MAGIC, elements.len(), options);
    let theirs = mine.exchange(channel, NAME, options)?;
    let peer_elements = theirs.elements;
    if mine.elements == 0 || peer_elements == 0 {
        let marks = (options.learns != Learns::Peer).then(|| Zeroizing::new(vec![0; elements.len()]));
        return Ok(Marked { marks, peer_elements, peer_received: false });
    }
    let party = Run::start_runs(channel, prg, elements, options, progress, [mine, theirs], runs_log2)?;
    let peer_received = !party.receives;
    Ok(Marked { marks: party.run()?, peer_elements, peer_received })
}

/// How many elements the peer of a malicious run with `own` of ours can have tested if it cheated, with
/// 2^`log2_queries` hash calls: [`Parameters::encodable`] of a receiver, [`Parameters::testable`] of a
/// sender.
pub fn tested_at_most(outcome: &Outcome, own: usize, log2_queries: f64) -> Result<u64> {
    tested_in_one_of(outcome, own, log2_queries, 0)
}

/// The same for a run of [`run_one_of`]; hash calls count for all runs, and so may all be spent on each.
pub fn tested_in_one_of(outcome: &Outcome, own: usize, log2_queries: f64, runs_log2: u32) -> Result<u64> {
    let peer = outcome.peer_elements as usize;
    if own == 0 || peer == 0 {
        return Ok(outcome.peer_elements);
    }
    Ok(if outcome.peer_received {
        Parameters::one_of(peer, own, Security::Malicious, runs_log2)?.encodable(log2_queries)
    } else {
        Parameters::one_of(own, peer, Security::Malicious, runs_log2)?.testable(log2_queries)
    })
}

/// What the oblivious function serves; its hash functions bind it.
#[derive(Clone, Copy)]
struct Purpose<'t> {
    /// The transcript's domain.
    domain: &'static str,
    /// What the parties agreed on beyond their announcements.
    terms: &'t [u8],
    /// Whether the second half of Ho's output is kept beside the tag: as proof, or as key.
    second_half: bool,
    /// log2 of the runs that share the error bound.
    runs_log2: u32,
}

impl Purpose<'_> {
    /// The intersection itself.
    fn rows(learns: Learns, runs_log2: u32) -> Self {
        let second_half = learns == Learns::Both;
        Purpose { domain: "tacit-psi vole v3", terms: &[], second_half, runs_log2 }
    }
}

/// The key of H, and what Ho's will follow from.
struct Seeds {
    h: Zeroizing<[u8; 32]>,
    /// The key under which an element's part in each bin is hashed, where there are bins.
    bins: Zeroizing<[u8; 32]>,
    transcript: Transcript,
    /// What the commitment is bound to.
    context: [u8; 32],
    coin: Coin,
}

/// The sender's coin: its own, or the peer's commitment.
enum Coin {
    Mine([u8; 32], Opening),
    Theirs(Commitment),
}

impl Seeds {
    /// Step 1. H binds the session and the run within it, both announcements by role, the parameters and the
    /// salt; Ho the commitment as well.
    fn agree(
        channel: &mut Channel,
        prg: &mut Prg,
        receives: bool,
        [receiver, sender]: [&Hello; 2],
        parameters: &Parameters,
        purpose: &Purpose<'_>,
    ) -> Result<Self> {
        let mut transcript = Transcript::new(purpose.domain);
        if !purpose.terms.is_empty() {
            transcript.append("terms", purpose.terms);
        }
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", channel.next_instance());
        transcript.append_u64("first receives", (receives == (channel.party() == Party::First)) as u64);
        transcript.append("receiver", &receiver.bytes);
        transcript.append("sender", &sender.bytes);
        transcript.append_u64("bins", parameters.shape.bins() as u64);
        transcript.append_u64("third", parameters.shape.third() as u64);
        transcript.append_u64("dense", parameters.shape.dense() as u64);
        transcript.append_u64("tag bits", parameters.tag_bits() as u64);
        let mut context = [0; 32];
        transcript.clone().challenge_bytes("coin", &mut context);
        let mut salt = [0; 32];
        // proof: vole-psi 2.2
        if receives {
            prg.fill_bytes(&mut salt);
            channel.send(&salt)?;
            let [h, bins] = Self::salted(&mut transcript, &salt);
            let mut commitment = Commitment([0; 32]);
            channel.recv(&mut commitment.0)?;
            transcript.append("commitment", &commitment.0);
            return Ok(Seeds { h, bins, transcript, context, coin: Coin::Theirs(commitment) });
        }
        let mut coin = [0; 32];
        prg.fill_bytes(&mut coin);
        let (commitment, opening) = commit(&context, &coin, prg);
        channel.send(&commitment.0)?;
        channel.recv(&mut salt)?;
        let [h, bins] = Self::salted(&mut transcript, &salt);
        transcript.append("commitment", &commitment.0);
        Ok(Seeds { h, bins, transcript, context, coin: Coin::Mine(coin, opening) })
    }

    /// The keys of H and of the hash of bins, which decide whether stores and tables have a solution. The sender
    /// may hold back its commitment until it has seen the salt, so that nothing of it may enter here.
    fn salted(transcript: &mut Transcript, salt: &[u8; 32]) -> [Zeroizing<[u8; 32]>; 2] {
        transcript.append("salt", salt);
        ["H", "bins"].map(|name| {
            let mut key = Zeroizing::new([0; 32]);
            transcript.clone().challenge_bytes(name, &mut key[..]);
            key
        })
    }

    /// Step 3, after the store's last slot: both coins, and with them the transcript that Ho's key follows from.
    fn exchange_coins(self, channel: &mut Channel, prg: &mut Prg) -> Result<Transcript> {
        let Seeds { mut transcript, context, coin, .. } = self;
        // proof: vole-psi 2.5, 2.6
        let (mut receivers, mut senders) = ([0; 32], [0; 32]);
        match coin {
            Coin::Mine(mine, opening) => {
                channel.recv(&mut receivers)?;
                senders = mine;
                channel.send(&mine)?;
                channel.send(&opening.0)?;
                channel.flush()?;
            }
            Coin::Theirs(commitment) => {
                prg.fill_bytes(&mut receivers);
                channel.send(&receivers)?;
                channel.flush()?;
                channel.recv(&mut senders)?;
                let mut opening = Opening([0; 32]);
                channel.recv(&mut opening.0)?;
                if !verify(&context, &senders, &commitment, &opening) {
                    return Err(Error::Cheated {
                        protocol: NAME,
                        what: "the coin is not the one committed to",
                    });
                }
            }
        }
        transcript.append("receiver's coin", &receivers);
        transcript.append("sender's coin", &senders);
        Ok(transcript)
    }

    /// H of all elements: what stands for them in the store, and its values, bin by bin of the store.
    fn digests<E: AsRef<[u8]> + Sync>(
        &self,
        shape: &Shape,
        elements: &[E],
        progress: &mut Progress<'_>,
    ) -> Result<Binned> {
        let mut digests = shape.binned(elements.len());
        let full = || if has_repeats(elements) { Error::DuplicateElement } else { Error::Unsolvable };
        if let Some(has_room) = hashing::scatter(&self.h, shape, elements, &mut digests, progress) {
            work::done(work::Kind::Hashed, elements.len());
            return if has_room { Ok(digests) } else { Err(full()) };
        }
        self.hash_each(elements, progress, &mut |first, keys, values| {
            if digests.push(shape, keys, values, first as u32) {
                return Ok(());
            }
            Err(full())
        })?;
        Ok(digests)
    }

    /// Hands `each` H of all elements, some at a time.
    fn hash_each<E: AsRef<[u8]> + Sync>(
        &self,
        elements: &[E],
        progress: &mut Progress<'_>,
        each: &mut Hashed<'_>,
    ) -> Result<()> {
        let count = elements.len();
        let mut hash = ElementHash::new(&self.h);
        let [mut keys, mut values] = [(); 2].map(|()| Zeroizing::new(vec![Block::ZERO; STEP]));
        for (step, chunk) in elements.chunks(STEP).enumerate() {
            let start = step * STEP;
            if step.is_multiple_of(64) {
                progress(Phase::Encode, start as u64, count as u64);
            }
            hash.hash(chunk, &mut keys, &mut values);
            work::done(work::Kind::Hashed, chunk.len());
            each(start, &keys[..chunk.len()], &values[..chunk.len()])?;
        }
        progress(Phase::Encode, count as u64, count as u64);
        Ok(())
    }
}

/// Whether an element is there twice.
fn has_repeats<E: AsRef<[u8]> + Sync>(elements: &[E]) -> bool {
    let mut sorted: Vec<&[u8]> = elements.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Takes H of a few elements: the first one's index, what stands for them in the store, and their values.
type Hashed<'h> = dyn FnMut(usize, &[Block], &[Block]) -> Result<()> + 'h;

fn halves(hash: &[u8; 32]) -> (Block, Block) {
    let half = |at: usize| {
        let mut half = [0; 16];
        half.copy_from_slice(&hash[at..at + 16]);
        Block::from_bytes(half)
    };
    (half(0), half(16))
}

/// One party after the announcements.
struct Run<'r, 'a, E> {
    channel: &'r mut Channel,
    prg: &'r mut Prg,
    elements: &'r [E],
    options: &'r Options<'a>,
    receives: bool,
    parameters: Parameters,
    second_half: bool,
    seeds: Seeds,
    progress: &'r mut Progress<'a>,
}

impl<'r, 'a, E: AsRef<[u8]> + Sync> Run<'r, 'a, E> {
    /// Settles the roles, and what follows from the announcements (mine, theirs).
    fn start_runs(
        channel: &'r mut Channel,
        prg: &'r mut Prg,
        elements: &'r [E],
        options: &'r Options<'a>,
        progress: &'r mut Progress<'a>,
        [mine, theirs]: [Hello; 2],
        runs_log2: u32,
    ) -> Result<Self> {
        let receives = options.learns.receives(channel.party(), &[&mine, &theirs]);
        let purpose = Purpose::rows(options.learns, runs_log2);
        Self::start_for(channel, prg, elements, options, progress, [mine, theirs], receives, purpose)
    }

    /// The same for any purpose, where `receives` says who has the receiver's part.
    #[allow(clippy::too_many_arguments)] // The parts of a run, each of its own kind.
    fn start_for(
        channel: &'r mut Channel,
        prg: &'r mut Prg,
        elements: &'r [E],
        options: &'r Options<'a>,
        progress: &'r mut Progress<'a>,
        [mine, theirs]: [Hello; 2],
        receives: bool,
        purpose: Purpose<'_>,
    ) -> Result<Self> {
        let [receiver, sender] = if receives { [mine, theirs] } else { [theirs, mine] };
        let [of_receiver, of_sender] = [receiver.elements as usize, sender.elements as usize];
        let parameters = Parameters::one_of(of_receiver, of_sender, options.security, purpose.runs_log2)?;
        let seeds = Seeds::agree(channel, prg, receives, [&receiver, &sender], &parameters, &purpose)?;
        let second_half = purpose.second_half;
        Ok(Run { channel, prg, elements, options, receives, parameters, second_half, seeds, progress })
    }

    /// For each element whether the peer has it too, to a side that learns.
    fn run(mut self) -> Result<Option<Marks>> {
        let both = self.options.learns == Learns::Both;
        let count = self.elements.len();
        if self.receives {
            let sums = self.receive()?;
            let (mut rest, tags) = self.tags(sums)?;
            let found = rest.compare(&tags)?;
            if both {
                paxos::send_proofs(rest.channel, found.pairs(), &tags.proofs)?;
            }
            return Ok(Some(found.marks(count)));
        }
        let sums = self.send()?;
        let (mut rest, tags) = self.tags(sums)?;
        rest.send_tags(&tags)?;
        if !both {
            return Ok(None);
        }
        let most = rest.parameters.sender.min(rest.parameters.encodable(128.0) as usize) as u64;
        let matches = paxos::check_proofs(rest.channel, NAME, most, &tags.proofs, &tags.elements)?;
        let mut marks = Zeroizing::new(vec![0; count]);
        matches.iter().for_each(|element| marks[*element as usize] = 1);
        Ok(Some(marks))
    }

    /// Steps 2 and 3 of the receiver: w(y) for the elements, but for those of the last run's bins.
    fn receive(&mut self) -> Result<Summing> {
        let mut vole = self.receiver_setup()?;
        let shape = self.parameters.shape;
        let digests = self.seeds.digests(&shape, self.elements, self.progress)?;
        let mut filling = Filling::new(Summing::new(shape, digests, None));
        let last = self.transfer(&mut vole, &mut filling)?;
        Ok(filling.ends_with(last))
    }

    /// Step 2 of the receiver, up to the first correlation.
    fn receiver_setup(&mut self) -> Result<Gf128Receiver> {
        (self.progress)(Phase::Setup, 0, 1);
        let vole = Gf128Receiver::setup(self.channel, self.options.base, self.prg, self.options.security)?;
        (self.progress)(Phase::Setup, 1, 1);
        Ok(vole)
    }

    /// Sends P + u and hands on w, run by run, but for the last run's.
    fn transfer(
        &mut self,
        vole: &mut dyn VoleReceiver<Block, Block>,
        store: &mut dyn Masking,
    ) -> Result<Last> {
        let slots = self.parameters.shape.slots();
        let size = run_size(slots);
        let [mut u, mut w] = [Buffer::zeros(size), Buffer::zeros(size)];
        let mut start = 0;
        loop {
            let len = size.min(slots - start);
            let masked = &mut u[..len];
            // proof: vole-psi 2.3, 2.4
            vole.extend(self.channel, masked, &mut w[..len])?;
            for part in masked.chunks_mut(CHUNK) {
                store.mask(self.prg, part)?;
                self.channel.send_blocks(part)?;
            }
            self.channel.flush()?;
            start += len;
            (self.progress)(Phase::Transfer, start as u64, slots as u64);
            if start == slots {
                return Ok(Last::new(w, len));
            }
            // The peer has as much to do with what it was sent.
            store.take(&w[..len]);
        }
    }

    /// Steps 2 and 3 of the sender: k(x) + H(x)·Δ for the elements.
    fn send(&mut self) -> Result<Summing> {
        let vole = self.sender_setup()?;
        let shape = self.parameters.shape;
        let digests = self.seeds.digests(&shape, self.elements, self.progress)?;
        let mut sums = Summing::new(shape, digests, Some(vole.delta()));
        self.fetch(vole, &mut |slots| sums.take(slots))?;
        Ok(sums)
    }

    /// Step 2 of the sender, up to the first correlation.
    fn sender_setup(&mut self) -> Result<Gf128Sender> {
        (self.progress)(Phase::Setup, 0, 1);
        let Run { channel, prg, options, .. } = self;
        let vole = Gf128Sender::setup(channel, options.base, prg, options.security)?;
        (self.progress)(Phase::Setup, 1, 1);
        Ok(vole)
    }

    /// Hands on k for the slots of the receiver's store as they come.
    fn fetch(&mut self, vole: Gf128Sender, take: &mut dyn FnMut(&[Block])) -> Result<()> {
        let slots = self.parameters.shape.slots();
        let (size, delta) = (run_size(slots), vole.delta());
        // With many threads a run at once, so that each has enough to do.
        let at_once = if workers::count() > 1 { size } else { CHUNK.min(size) };
        let [mut masked, mut k] = [Buffer::zeros(at_once), Buffer::zeros(size)];
        let mut vole = Some(vole);
        for start in (0..slots).step_by(size) {
            let k = &mut k[..size.min(slots - start)];
            if let Some(vole) = &mut vole {
                vole.extend(self.channel, k)?;
            }
            let done = start + k.len();
            if done == slots {
                // Its memory is wiped while the peer is at work.
                vole = None;
            }
            for part in k.chunks_mut(at_once) {
                let masked = &mut masked[..part.len()];
                self.channel.recv_blocks(masked)?;
                let share = workers::share(part.len(), MULTIPLIED_EACH);
                workers::each(part.chunks_mut(share).zip(masked.chunks(share)), |(part, masked)| {
                    gf128::multiply_add(part, masked, delta);
                });
                take(part);
            }
            (self.progress)(Phase::Transfer, done as u64, slots as u64);
        }
        Ok(())
    }

    /// The tags of all elements from their sums; and what is left of the run.
    fn tags(self, sums: Summing) -> Result<(Finish<'r, 'a>, Tags)> {
        let hash = TagHash::of(&self.seeds.exchange_coins(self.channel, self.prg)?);
        let mut digests = sums.finish();
        let (parameters, progress) = (self.parameters, self.progress);
        let count = self.elements.len();
        progress(Phase::Tags, 0, count as u64);
        let shift = 128 - parameters.tag_bits();
        let mut bins: Vec<_> = digests.bins_mut().collect();
        let groups = bins.chunks_mut(tags::group(parameters.shape.bins()));
        let counts = workers::map(groups, |bins| hash.tag(bins, count, shift, self.second_half));
        work::done(work::Kind::Tagged, count);
        let mut proofs =
            Zeroizing::new(vec![[0; size_of::<Proof>()]; if self.second_half { count } else { 0 }]);
        if self.second_half {
            for (_, proof_blocks, elements) in &bins {
                for (proof, element) in proof_blocks.iter().zip(*elements) {
                    proofs[*element as usize] = proof.to_bytes();
                }
            }
        }
        drop(bins);
        digests.drop_values();
        let tags = tags::sort(digests, &counts, proofs);
        progress(Phase::Tags, count as u64, count as u64);
        Ok((Finish { channel: self.channel, parameters, progress }, tags))
    }
}

/// A party that has its tags.
struct Finish<'r, 'a> {
    channel: &'r mut Channel,
    parameters: Parameters,
    progress: &'r mut Progress<'a>,
}

impl Finish<'_, '_> {
    /// Step 4's message: how many tags have each prefix, then the rests in ascending order.
    fn send_tags(&mut self, tags: &Tags) -> Result<()> {
        // proof: vole-psi 2.7, 3.4
        // Two elements with one tag: their digests are equal, so the elements are.
        if tags::has_twins(&tags.tags) {
            return Err(Error::DuplicateElement);
        }
        let format = self.parameters.format();
        self.channel.send(format.bitmap(&tags.tags).as_bytes())?;
        let count = tags.tags.len();
        let mut message = vec![0; TAGS_AT_ONCE.min(count) * format.rest];
        for (start, tags) in (0..).step_by(TAGS_AT_ONCE).zip(tags.tags.chunks(TAGS_AT_ONCE)) {
            let message = &mut message[..tags.len() * format.rest];
            format.rests(tags, message);
            (self.progress)(Phase::Compare, start, count as u64);
            for part in message.chunks(STEP * format.rest) {
                self.channel.send(part)?;
            }
        }
        self.channel.flush()?;
        (self.progress)(Phase::Compare, count as u64, count as u64);
        Ok(())
    }

    /// Receives the sender's tags and finds this side's among them, the same way whatever matches.
    fn compare(&mut self, mine: &Tags) -> Result<Found> {
        let cheated = |what| Err(Error::Cheated { protocol: NAME, what });
        let (format, count) = (self.parameters.format(), self.parameters.sender);
        let mut bitmap = vec![0; format.bitmap_bits().div_ceil(8)];
        self.channel.recv(&mut bitmap)?;
        let Some(mut reader) = format.reader(&bitmap) else {
            return cheated("the prefixes are not those of as many tags");
        };
        drop(bitmap);
        let mut message = vec![0; format.room(TAGS_AT_ONCE.min(count))];
        let mut looked_up = Vec::new();
        let mut matching = Matching::new(mine, count)?;
        let mut ascend = true;
        for start in (0..count).step_by(TAGS_AT_ONCE) {
            let tags = TAGS_AT_ONCE.min(count - start);
            self.channel.recv(&mut message[..tags * format.rest])?;
            if let Some(theirs) = matching.place(tags) {
                ascend &= reader.read(&message, theirs);
                matching.take_written(tags);
            } else {
                looked_up.resize(tags, 0);
                ascend &= reader.read(&message, &mut looked_up);
                matching.take(&looked_up);
            }
            (self.progress)(Phase::Compare, start as u64, count as u64);
        }
        // proof: vole-psi 2.8
        if !ascend {
            return cheated("the tags do not ascend");
        }
        let found = matching.finish()?;
        (self.progress)(Phase::Compare, count as u64, count as u64);
        Ok(found)
    }
}

#[cfg(test)]
#[path = "vole_cheats.rs"]
mod cheats;
