//! PaXoS: private set intersection from a key-value store and 1-out-of-2^k OT extension.
//!
//! - Source: Pinkas, Rosulek, Trieu, Yanai (EUROCRYPT 2020, 2020/193), section 5; parameters at 2,048
//!   elements as in ROTed, section 6.2: a code [768, 231, ≥ 128] and a store of 2 × 2,549 + 60 slots.
//! - Realises: private set intersection with abort. Both parties learn the size of the other's set; the
//!   result goes to one party, or to both (below). Malicious: OOS with its consistency check over the code
//!   [768, 231]. Semi-honest: the same steps over the shorter extended BCH code [512, 85, 128] with shorter
//!   tags.
//! - Assumptions: those of the base OT and of OOS; BLAKE3 as a random oracle.
//! - Rounds: both announcements at once; set-up of OOS; the receiver's rows, with their checks running beside
//!   them; the tags.
//! - Bytes: 96 (64) a slot of the receiver's store, 32 (12 at 2^20) an element of the sender's, about 100 kB
//!   of set-up.
//!
//! # Steps
//!
//! The receiver has Y and learns the result; the sender has X.
//!
//! 1. The receiver draws the seed of the session's hash functions H1, H2 *after* the sender's announcement,
//!    so that a sender cannot choose hash functions for which Y's store fails.
//! 2. The receiver solves a store D with D(y) = H1(y), and both run OOS on D's slots: t_i = q_i ⊕ C(d_i) ∧ Δ.
//! 3. The sender, once all checks passed, sends its tags H2(x, q(x) ⊕ C(H1(x)) ∧ Δ), *sorted*: the order then
//!    says nothing of the order in X. The receiver refuses tags that do not ascend strictly, so none counts
//!    twice.
//! 4. The receiver outputs the y whose H2(y, t(y)) is among the tags.
//!
//! # Both sides learn the result
//!
//! Running the protocol twice would let a cheater use another set the second time, chosen by what the first
//! run showed. Instead H2 gives a *proof* beside each tag, which stays at home; the receiver sends the proofs
//! of the tags that it found, and the sender checks them against its own. A receiver that did not encode x
//! cannot make the proof of x (128 bits), so the sender never gets a wrong match. There is no fairness, as in
//! every protocol of this kind: the receiver learns first and may keep all or some of the matches to itself.
//! The smaller set's owner receives, which also costs least.
//!
//! # What a cheater can do at most
//!
//! - A receiver may encode more elements than it announced, as D has more slots than Y elements:
//!   [`Parameters::encodable`] bounds them (for large sets 2.8 times as many with 2^80 hash calls, 3.8 times
//!   with 2^128). The paper's functionality allows this too.
//! - A sender may send noise in place of tags, which is the same as a smaller set.
//! - Both may lie about nothing else: every other deviation ends in an error, but for 2^-40.
//!
//! # Statistical security
//!
//! [`Parameters::statistical_error_log2`] adds up every bad event: the store unsolvable, two elements with
//! one key, H1(x) hit by chance, equal tags of different elements. Malicious tags have 256 bits, so that no
//! cheater finds two elements for one tag; semi-honest ones have 40 + log2(|X|·max(|X|, |Y|)).
//!
//! # Deviations
//!
//! The store is smaller than the paper's above 4,096 elements (see [`okvs::paxos`](crate::okvs::paxos)); tags
//! are sorted, where the paper permutes them; the proofs are new.

use crate::matching::{self, Found, Matching, Pair, Sorted};
use crate::okvs::paxos::{Decoder, Shape};
use crate::room::reserve;
use crate::{Error, Result, bch, work};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tacit_crypto::{Block, Prg, RHO, transcript::Transcript};
use tacit_net::{Channel, Party};
use tacit_ot::extension::code::{LinearCode, MatrixCode};
use tacit_ot::extension::{OosReceiver, OosSender};
use tacit_ot::{BaseOt, Security};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "paxos";
const MAGIC: [u8; 16] = *b"tacit-psi paxos2";
/// The most elements a set may have.
pub const MAX_ELEMENTS: usize = 1 << 24;

/// Slots sent before the sender's checks catch up: eight batches of OOS.
pub const CHUNK: usize = 8 * 255 * 128;
/// Elements hashed, or tags sent, at a time.
const STEP: usize = 1024;

/// Which party learns the intersection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Learns {
    /// This one only.
    Me,
    /// The peer only.
    Peer,
    /// Both, without fairness: see the module's docs.
    Both,
}

impl Learns {
    /// All, as a user may name them.
    pub const ALL: [Learns; 3] = [Learns::Me, Learns::Peer, Learns::Both];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Learns::Me => "me",
            Learns::Peer => "peer",
            Learns::Both => "both",
        }
    }

    /// The same, as the peer says it.
    pub const fn converse(self) -> Self {
        match self {
            Learns::Me => Learns::Peer,
            Learns::Peer => Learns::Me,
            Learns::Both => Learns::Both,
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|learns| learns.name() == name)
    }

    /// Whether this side is the protocol's receiver, by the announcements (mine, theirs).
    pub(crate) fn receives(self, party: Party, [mine, theirs]: &[&Hello; 2]) -> bool {
        match self {
            Learns::Me => true,
            Learns::Peer => false,
            Learns::Both if mine.elements == theirs.elements => party == Party::First,
            Learns::Both => mine.elements < theirs.elements,
        }
    }
}

/// What the two parties do together, and with what.
pub struct Options<'a> {
    /// Who learns the intersection; the peer says the converse.
    pub learns: Learns,
    /// Against what to protect; the peer says the same.
    pub security: Security,
    /// The smallest set that the peer may announce: as large as it has said before that its set is, for the choice
    /// of a protocol or for a charge, or 0.
    pub min_peer_elements: u64,
    /// The largest set that the peer may announce: what this side is ready to pay for.
    pub max_peer_elements: u64,
    /// The base OT; must be malicious, as the OT extension's check always runs. Both parties use the same.
    pub base: &'a dyn BaseOt,
}

/// What a run does at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Base OTs and their extension's set-up.
    Setup,
    /// Hashing this side's elements and solving the store; counts elements.
    Encode,
    /// The store's slots on their way; counts slots.
    Transfer,
    /// Computing this side's tags; counts elements.
    Tags,
    /// The sender's tags on their way, and proofs; counts tags.
    Compare,
}

/// Is told the phase, how much of it is done, and how much there is.
pub type Progress<'a> = dyn FnMut(Phase, u64, u64) + 'a;

/// What a run gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Indices into this side's elements of those that the peer has too, ascending; `None` if only the peer
    /// learns them.
    pub matches: Option<Vec<u32>>,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// Whether the peer had the receiver's part, in which a cheater can test more elements than it announced.
    pub peer_received: bool,
    /// The short name of the protocol that gave it.
    pub protocol: &'static str,
}

impl Outcome {
    /// The most elements that the peer can have tested against ours if it cheated, with 2^`log2_queries` hash
    /// calls and but for 2^-40: as many as it announced, or, if it had the receiver's part, what
    /// [`Parameters::encodable`] says. `own` is our number of elements. Holds for [`Security::Malicious`].
    pub fn tested_at_most(&self, own: usize, log2_queries: f64) -> Result<u64> {
        if own == 0 || self.peer_elements == 0 || !self.peer_received {
            return Ok(self.peer_elements);
        }
        tested_at_most(self.peer_elements as usize, own, log2_queries)
    }
}

/// The most elements that a receiver that announced `receiver` can test against `sender` elements, as in
/// [`Outcome::tested_at_most`].
pub fn tested_at_most(receiver: usize, sender: usize, log2_queries: f64) -> Result<u64> {
    let parameters = Parameters::new(receiver, sender, Security::Malicious)?;
    Ok(parameters.encodable(log2_queries).max(receiver as u64))
}

impl core::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Outcome {{ matches: [secret], peer_elements: {} }}", self.peer_elements)
    }
}

/// Everything that follows from the two sets' sizes and the security asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    receiver: usize,
    sender: usize,
    security: Security,
    shape: Shape,
}

impl Parameters {
    /// The parameters for a receiver's and a sender's set of these sizes, at most [`MAX_ELEMENTS`] each.
    pub fn new(receiver: usize, sender: usize, security: Security) -> Result<Self> {
        let most = receiver.max(sender);
        if most > MAX_ELEMENTS {
            return Err(Error::TooManyElements { count: most as u64, allowed: MAX_ELEMENTS as u64 });
        }
        Ok(Parameters { receiver, sender, security, shape: Shape::for_keys(receiver)? })
    }

    /// The store's shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The code's length in bits: the width of a row.
    pub fn code_length(&self) -> usize {
        match self.security {
            Security::Malicious => 768,
            Security::SemiHonest => bch::LENGTH,
        }
    }

    /// The code's dimension in bits: the width of the store's values.
    pub fn code_dimension(&self) -> usize {
        match self.security {
            Security::Malicious => 231,
            Security::SemiHonest => bch::DIMENSION,
        }
    }

    /// Bytes of a tag.
    pub fn tag_bytes(&self) -> usize {
        match self.security {
            Security::Malicious => 32,
            Security::SemiHonest => {
                // Equal tags of the sender's own end a run as well: 41 bits for all pairs.
                let pairs = self.sender as u64 * (self.sender + self.receiver) as u64;
                (RHO as u32 + 1 + pairs.max(1).next_power_of_two().ilog2()).div_ceil(8) as usize
            }
        }
    }

    /// log2 of an upper bound on the probability that an honest run errs or fails by chance. At most -40.
    pub fn statistical_error_log2(&self) -> f64 {
        // proof: paxos 5.1
        let (n, m) = (self.receiver as f64, self.sender as f64);
        let events = [
            2f64.powi(-51),                                        // the store is unsolvable (okvs)
            n * n / 2.0 * 2f64.powi(-128),                         // two elements of Y have one key
            m * 2f64.powi(-(self.code_dimension() as i32)),        // D(x) = H1(x) for an x outside Y
            m * (n + m) * 2f64.powi(-8 * self.tag_bytes() as i32), // two elements have one tag
        ];
        events.iter().sum::<f64>().log2()
    }

    /// How many elements a cheating receiver that makes 2^`log2_queries` hash calls can have encoded, but for
    /// 2^-40.
    ///
    /// Of q random k-bit values of H1, some set of n' is met by one of 2^(m·k) stores with probability at
    /// most C(q, n')·2^((m − n')·k) (2020/193, section 5). The least n' that makes this 2^-40, less one.
    pub fn encodable(&self, log2_queries: f64) -> u64 {
        // proof: paxos 3.4
        encodable(self.shape.slots(), self.code_dimension(), log2_queries, 0)
    }
}

/// How many of 2^`log2_queries` random values of `bits` bits some store of `slots` slots can hold, but for
/// 2^-40 over 2^`runs_log2` runs: the least n' for which C(q, n')·2^((slots − n')·bits) is that small, less
/// one.
pub(crate) fn encodable(slots: usize, bits: usize, log2_queries: f64, runs_log2: u32) -> u64 {
    let error = f64::from(RHO as u32 + runs_log2);
    let (slots, k) = (slots as f64, bits as f64);
    // log2 C(q, n') ≤ n'·(log2 q + log2 e − log2 n').
    let excess = |n: f64| n * (log2_queries + std::f64::consts::LOG2_E - n.log2()) - (n - slots) * k + error;
    let (mut allowed, mut refused) = (slots, 2.0 * slots);
    while excess(refused) > 0.0 {
        allowed = refused;
        refused *= 2.0;
    }
    while refused - allowed > 1.0 {
        let middle = ((allowed + refused) / 2.0).floor();
        if excess(middle) > 0.0 { allowed = middle } else { refused = middle }
    }
    allowed as u64
}

/// Intersects `elements` with the peer's set.
///
/// Elements are byte strings of any lengths, each once, at most [`MAX_ELEMENTS`]; their order is not
/// revealed. `prg` is seeded by the operating system. Errors: the caller's ([`Error::TooManyElements`],
/// [`Error::DuplicateElement`]), disagreement of the parties' options, the peer's cheating, or the link's.
/// Nothing is returned unless every check passed.
pub fn run<E: AsRef<[u8]>>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Outcome> {
    if options.base.security() != Security::Malicious {
        return Err(Error::Usage("the OT extension's check, which always runs, needs a malicious base OT"));
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements.len() as u64, allowed: MAX_ELEMENTS as u64 });
    }
    // proof: paxos 2.1
    let mine = Hello::new(MAGIC, elements.len(), options);
    let theirs = mine.exchange(channel, NAME, options)?;
    let peer_elements = theirs.elements;
    let (matches, peer_received) = if mine.elements == 0 || peer_elements == 0 {
        (Vec::new(), false)
    } else {
        let party = Run::start(channel, prg, elements, options, progress, [mine, theirs])?;
        let peer_received = !party.receives;
        let matches = match options.security {
            Security::Malicious => party.run::<2, 6>(Arc::new(MatrixCode::concatenated(64)))?,
            Security::SemiHonest => party.run::<1, 4>(Arc::new(bch::extended_bch()))?,
        };
        (matches, peer_received)
    };
    let matches = (options.learns != Learns::Peer).then_some(matches);
    Ok(Outcome { matches, peer_elements, peer_received, protocol: NAME })
}

/// What each party announces, in every protocol of this crate.
#[derive(Clone)]
pub(crate) struct Hello {
    pub bytes: [u8; Hello::LEN],
    pub elements: u64,
}

impl Hello {
    const LEN: usize = 32;

    /// This side's; the first 16 bytes, `magic`, name protocol and version.
    pub(crate) fn new(magic: [u8; 16], elements: usize, options: &Options<'_>) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes[..16].copy_from_slice(&magic);
        bytes[16] = options.security as u8;
        bytes[17] = options.learns as u8;
        bytes[24..].copy_from_slice(&(elements as u64).to_le_bytes());
        Hello { bytes, elements: elements as u64 }
    }

    /// Announces this side and takes in the peer's announcement, which must fit.
    pub(crate) fn exchange(
        &self,
        channel: &mut Channel,
        protocol: &'static str,
        options: &Options<'_>,
    ) -> Result<Hello> {
        channel.send(&self.bytes)?;
        let mut bytes = [0; Hello::LEN];
        channel.recv(&mut bytes)?;
        let disagreement = |what| Err(Error::Disagreement { protocol, what });
        if bytes[..16] != self.bytes[..16] || bytes[18..24] != [0; 6] {
            return disagreement("the other side runs another protocol or version");
        }
        if bytes[16] != options.security as u8 {
            return disagreement("one side asks for malicious security and the other for semi-honest");
        }
        let converse = match options.learns {
            Learns::Me => Learns::Peer,
            Learns::Peer => Learns::Me,
            Learns::Both => Learns::Both,
        };
        if bytes[17] != converse as u8 {
            return disagreement("who learns the result");
        }
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[24..]);
        let announced = u64::from_le_bytes(number);
        let allowed = options.max_peer_elements.min(MAX_ELEMENTS as u64);
        if announced > allowed {
            return Err(Error::PeerSetTooLarge { announced, allowed });
        }
        if announced < options.min_peer_elements {
            return disagreement("the peer has fewer elements than it said before");
        }
        Ok(Hello { bytes, elements: announced })
    }
}

/// The keys of H1 and H2.
struct Seeds {
    h1: Zeroizing<[u8; 32]>,
    h2: Zeroizing<[u8; 32]>,
}

impl Seeds {
    /// Step 1: the receiver draws a nonce now that the sender has announced itself; H1 and H2 bind it, the
    /// session and the run within it, both announcements by role, and the parameters.
    fn agree(
        channel: &mut Channel,
        prg: &mut Prg,
        receives: bool,
        [receiver, sender]: [&Hello; 2],
        parameters: &Parameters,
    ) -> Result<Self> {
        // proof: paxos 2.2
        let instance = channel.next_instance();
        let mut nonce = [0; 32];
        if receives {
            prg.fill_bytes(&mut nonce);
            channel.send(&nonce)?;
        } else {
            channel.recv(&mut nonce)?;
        }
        let mut transcript = Transcript::new("tacit-psi paxos v2");
        transcript.append("session", &channel.session_id().0);
        transcript.append_u64("instance", instance);
        transcript.append_u64("first receives", (receives == (channel.party() == Party::First)) as u64);
        transcript.append("receiver", &receiver.bytes);
        transcript.append("sender", &sender.bytes);
        transcript.append_u64("side", parameters.shape.side() as u64);
        transcript.append_u64("code length", parameters.code_length() as u64);
        transcript.append_u64("code dimension", parameters.code_dimension() as u64);
        transcript.append("nonce", &nonce);
        let mut seeds = Seeds { h1: Zeroizing::new([0; 32]), h2: Zeroizing::new([0; 32]) };
        transcript.challenge_bytes("H1", &mut seeds.h1[..]);
        transcript.challenge_bytes("H2", &mut seeds.h2[..]);
        Ok(seeds)
    }

    fn digest(&self, element: &[u8]) -> Digest {
        let mut bytes = Zeroizing::new([0; 48]);
        blake3::Hasher::new_keyed(&self.h1).update(element).finalize_xof().fill(&mut bytes[..]);
        let block = |at: usize| {
            let mut block = [0; 16];
            block.copy_from_slice(&bytes[16 * at..16 * at + 16]);
            Block::from_bytes(block)
        };
        Digest { key: block(0), value: [block(1), block(2)] }
    }

    /// H2 of a row and the digest that stands for its element: the tag's first 256 bits and the proof.
    fn tag<const W: usize>(&self, digest: &Digest, row: &[Block; W], with_proof: bool) -> (Tag, Proof) {
        let mut input = Zeroizing::new([Block::ZERO; 8]);
        input[..W].copy_from_slice(row);
        input[W..W + 2].copy_from_slice(&digest.value);
        let input = Block::as_bytes(&input[..W + 2]);
        if !with_proof {
            return (Tag::from_bytes(blake3::keyed_hash(&self.h2, input).as_bytes()), [0; 16]);
        }
        let (mut bytes, mut proof) = ([0; 48], [0; 16]);
        blake3::Hasher::new_keyed(&self.h2).update(input).finalize_xof().fill(&mut bytes);
        proof.copy_from_slice(&bytes[32..]);
        (Tag::from_bytes(&bytes[..32]), proof)
    }
}

/// What stands for an element within a session: the store's key, and H1 with a few bits more than the code
/// takes, so that no two elements have one digest.
#[derive(Clone, Copy)]
struct Digest {
    key: Block,
    value: [Block; 2],
}

impl zeroize::Zeroize for Digest {
    fn zeroize(&mut self) {
        self.key.zeroize();
        self.value.zeroize();
    }
}

impl Digest {
    /// H1's value as a message of the code: its lowest `dimension` bits.
    #[inline]
    fn word<const K: usize>(&self, dimension: usize) -> [Block; K] {
        core::array::from_fn(|i| {
            let bits = (dimension - 128 * i).min(128);
            self.value[i] & Block::new(u128::MAX >> (128 - bits))
        })
    }
}

/// A tag, compared as a big-endian number of 256 bits; bytes past the tag's length are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tag([u64; 4]);

impl Tag {
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut padded = [0; 32];
        padded[..bytes.len()].copy_from_slice(bytes);
        let (words, _) = padded.as_chunks::<8>();
        Tag(core::array::from_fn(|i| u64::from_be_bytes(words[i])))
    }

    /// The first `length` bytes.
    fn shortened(self, length: usize) -> Self {
        Tag(core::array::from_fn(|i| {
            let bits = (8 * length).saturating_sub(64 * i).min(64) as u32;
            self.0[i] & !u64::MAX.checked_shr(bits).unwrap_or(0)
        }))
    }

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
}

impl Tag {
    /// The same number, by halves.
    fn digits(self) -> [u128; 2] {
        let half = |at: usize| u128::from(self.0[at]) << 64 | u128::from(self.0[at + 1]);
        [half(0), half(2)]
    }
}

impl zeroize::Zeroize for Tag {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// What shows that the receiver knows the element behind a tag.
pub(crate) type Proof = [u8; 16];

/// A party's tags, sorted, each with the index of its element; proofs by that index, if both learn the
/// result.
struct Tags {
    sorted: Zeroizing<Vec<(Tag, u32)>>,
    proofs: Zeroizing<Vec<Proof>>,
}

impl Sorted for Tags {
    type Tag = [u128; 2];

    fn count(&self) -> usize {
        self.sorted.len()
    }

    #[inline(always)]
    fn tag(&self, at: usize) -> [u128; 2] {
        self.sorted[at].0.digits()
    }

    #[inline(always)]
    fn element(&self, at: usize) -> u32 {
        self.sorted[at].1
    }
}

/// One party after the announcements.
struct Run<'r, 'a, E> {
    channel: &'r mut Channel,
    prg: &'r mut Prg,
    elements: &'r [E],
    options: &'r Options<'a>,
    receives: bool,
    parameters: Parameters,
    seeds: Seeds,
    progress: &'r mut Progress<'a>,
}

impl<'r, 'a, E: AsRef<[u8]>> Run<'r, 'a, E> {
    /// Settles the roles, and what follows from the announcements (mine, theirs).
    fn start(
        channel: &'r mut Channel,
        prg: &'r mut Prg,
        elements: &'r [E],
        options: &'r Options<'a>,
        progress: &'r mut Progress<'a>,
        [mine, theirs]: [Hello; 2],
    ) -> Result<Self> {
        let receives = options.learns.receives(channel.party(), &[&mine, &theirs]);
        let [receiver, sender] = if receives { [mine, theirs] } else { [theirs, mine] };
        let parameters =
            Parameters::new(receiver.elements as usize, sender.elements as usize, options.security)?;
        let seeds = Seeds::agree(channel, prg, receives, [&receiver, &sender], &parameters)?;
        Ok(Run { channel, prg, elements, options, receives, parameters, seeds, progress })
    }

    fn run<const K: usize, const W: usize>(mut self, code: Arc<dyn LinearCode>) -> Result<Vec<u32>> {
        let both = self.options.learns == Learns::Both;
        if self.receives {
            let tags = self.receiver_tags::<K, W>(code)?;
            let found = self.compare(&tags)?;
            if both {
                send_proofs(self.channel, found.pairs(), &tags.proofs)?;
            }
            Ok(matching::indices(&found.marks(self.elements.len())))
        } else {
            let tags = self.sender_tags::<K, W>(code)?;
            self.send_tags(&tags)?;
            if !both {
                return Ok(Vec::new());
            }
            let most = self.parameters.sender.min(self.parameters.encodable(128.0) as usize) as u64;
            let order: Vec<u32> = tags.sorted.iter().map(|(_, element)| *element).collect();
            check_proofs(self.channel, NAME, most, &tags.proofs, &order)
        }
    }

    /// Steps 2 and 3 of the sender, up to its tags.
    fn sender_tags<const K: usize, const W: usize>(&mut self, code: Arc<dyn LinearCode>) -> Result<Tags> {
        (self.progress)(Phase::Setup, 0, 1);
        let mut oos = OosSender::<K, W>::setup(self.channel, self.options.base, code, self.prg)?;
        (self.progress)(Phase::Setup, 1, 1);
        let digests = self.digests();

        // Step 2. Rows are reserved at once and touched as they arrive, so the peer pays for what it makes us
        // hold.
        let slots = self.parameters.shape.slots();
        let mut rows = Zeroizing::new(reserve::<[Block; W]>(slots)?);
        while rows.len() < slots {
            let start = rows.len();
            rows.resize((start + CHUNK).min(slots), [Block::ZERO; W]);
            oos.extend(self.channel, &mut rows[start..])?;
            (self.progress)(Phase::Transfer, rows.len() as u64, slots as u64);
        }

        // Step 3.
        // proof: paxos 2.7
        let dimension = self.parameters.code_dimension();
        let mut words = Zeroizing::new(vec![[Block::ZERO; K]; STEP]);
        self.tags(&digests, &rows, |digests, rows| {
            let words = &mut words[..digests.len()];
            for (word, digest) in words.iter_mut().zip(digests) {
                *word = digest.word(dimension);
            }
            oos.correct(words, rows);
        })
    }

    /// Steps 2 and 4 of the receiver, up to its tags.
    fn receiver_tags<const K: usize, const W: usize>(&mut self, code: Arc<dyn LinearCode>) -> Result<Tags> {
        (self.progress)(Phase::Setup, 0, 1);
        let oos = OosReceiver::<K, W>::setup(self.channel, self.options.base, code, self.prg)?;
        (self.progress)(Phase::Setup, 1, 1);
        let digests = self.digests();
        // proof: paxos 2.4
        let store = self.store::<K>(&digests)?;
        let rows = self.transfer(oos, store)?;
        self.tags(&digests, &rows, |_, _| ())
    }

    /// Step 2: the store D with D(y) = H1(y).
    fn store<const K: usize>(&mut self, digests: &[Digest]) -> Result<Zeroizing<Vec<[Block; K]>>> {
        let keys = Zeroizing::new(digests.iter().map(|digest| digest.key).collect::<Vec<_>>());
        let dimension = self.parameters.code_dimension();
        let value = |i: usize| digests[i].word::<K>(dimension);
        let mut store = self.parameters.shape.encode(&keys, value, self.prg)?;
        // The free slots' random fill is as wide as blocks; the code's messages are not.
        let mask = Digest { key: Block::ZERO, value: [Block::ONES; 2] }.word::<K>(dimension);
        for slot in store.iter_mut() {
            slot.iter_mut().zip(&mask).for_each(|(block, mask)| *block &= *mask);
        }
        Ok(store)
    }

    /// Step 2: OOS on the store's slots.
    fn transfer<const K: usize, const W: usize>(
        &mut self,
        mut oos: OosReceiver<K, W>,
        store: Zeroizing<Vec<[Block; K]>>,
    ) -> Result<Zeroizing<Vec<[Block; W]>>> {
        let mut rows = Zeroizing::new(reserve::<[Block; W]>(store.len())?);
        for chunk in store.chunks(CHUNK) {
            let start = rows.len();
            rows.resize(start + chunk.len(), [Block::ZERO; W]);
            oos.extend(self.channel, chunk, &mut rows[start..])?;
            (self.progress)(Phase::Transfer, rows.len() as u64, store.len() as u64);
        }
        Ok(rows)
    }

    fn digests(&mut self) -> Zeroizing<Vec<Digest>> {
        let count = self.elements.len() as u64;
        let mut digests = Zeroizing::new(Vec::with_capacity(self.elements.len()));
        for chunk in self.elements.chunks(64 * STEP) {
            (self.progress)(Phase::Encode, digests.len() as u64, count);
            digests.extend(chunk.iter().map(|element| self.seeds.digest(element.as_ref())));
        }
        work::done(work::Kind::Hashed, self.elements.len());
        (self.progress)(Phase::Encode, count, count);
        digests
    }

    /// The tags of all elements; `correct` is applied to the rows' sums first.
    fn tags<const W: usize>(
        &mut self,
        digests: &[Digest],
        rows: &[[Block; W]],
        mut correct: impl FnMut(&[Digest], &mut [[Block; W]]),
    ) -> Result<Tags> {
        let decoder = Decoder::new(self.parameters.shape, rows)?;
        let length = self.parameters.tag_bytes();
        let with_proof = self.options.learns == Learns::Both;
        let mut sorted = Zeroizing::new(Vec::with_capacity(digests.len()));
        let mut proofs = Zeroizing::new(Vec::with_capacity(if with_proof { digests.len() } else { 0 }));
        let mut keys = Zeroizing::new(vec![Block::ZERO; STEP]);
        let mut sums = Zeroizing::new(vec![[Block::ZERO; W]; STEP]);
        for (step, digests) in digests.chunks(STEP).enumerate() {
            if step.is_multiple_of(64) {
                (self.progress)(Phase::Tags, (step * STEP) as u64, self.elements.len() as u64);
            }
            let sums = &mut sums[..digests.len()];
            let keys = &mut keys[..digests.len()];
            for (key, digest) in keys.iter_mut().zip(digests) {
                *key = digest.key;
            }
            decoder.get_each(keys, sums);
            correct(digests, sums);
            for (sum, digest) in sums.iter().zip(digests) {
                let (tag, proof) = self.seeds.tag(digest, sum, with_proof);
                let index = sorted.len() as u32;
                sorted.push((tag.shortened(length), index));
                if with_proof {
                    proofs.push(proof);
                }
            }
        }
        sorted.sort_unstable();
        work::done(work::Kind::Tagged, sorted.len());
        (self.progress)(Phase::Tags, self.elements.len() as u64, self.elements.len() as u64);
        Ok(Tags { sorted, proofs })
    }

    /// Step 3's message: the tags in ascending order.
    fn send_tags(&mut self, tags: &Tags) -> Result<()> {
        // Two elements with one tag: their digests are equal, so the elements are.
        if tags.sorted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::DuplicateElement);
        }
        let (length, count) = (self.parameters.tag_bytes(), tags.sorted.len() as u64);
        let mut message = Vec::with_capacity(STEP * length);
        for (step, chunk) in tags.sorted.chunks(STEP).enumerate() {
            message.clear();
            chunk.iter().for_each(|(tag, _)| message.extend_from_slice(&tag.to_bytes()[..length]));
            self.channel.send(&message)?;
            if step.is_multiple_of(64) {
                (self.progress)(Phase::Compare, (step * STEP) as u64, count);
            }
        }
        self.channel.flush()?;
        (self.progress)(Phase::Compare, count, count);
        Ok(())
    }

    /// Receives the sender's tags and finds this side's among them, the same way whatever matches.
    fn compare(&mut self, mine: &Tags) -> Result<Found> {
        let (length, count) = (self.parameters.tag_bytes(), self.parameters.sender);
        let mut message = vec![0; STEP * length];
        let mut matching = Matching::new(mine, count)?;
        let mut theirs = Vec::with_capacity(STEP);
        let (mut ascend, mut last) = (true, None);
        for start in (0..count).step_by(STEP) {
            let chunk = &mut message[..STEP.min(count - start) * length];
            self.channel.recv(chunk)?;
            if start.is_multiple_of(64 * STEP) {
                (self.progress)(Phase::Compare, start as u64, count as u64);
            }
            theirs.clear();
            for bytes in chunk.chunks_exact(length) {
                let tag = Tag::from_bytes(bytes);
                ascend &= last.is_none_or(|last| last < tag);
                last = Some(tag);
                theirs.push(tag.digits());
            }
            matching.take(&theirs);
        }
        // proof: paxos 2.8
        if !ascend {
            return Err(Error::Cheated { protocol: NAME, what: "the tags do not ascend" });
        }
        let found = matching.finish()?;
        (self.progress)(Phase::Compare, count as u64, count as u64);
        Ok(found)
    }
}

/// Sends the position and the proof of each tag found; `proofs` are by element.
pub(crate) fn send_proofs(channel: &mut Channel, found: &[Pair], proofs: &[Proof]) -> Result<()> {
    channel.send_u64(found.len() as u64)?;
    work::done(work::Kind::Proved, found.len());
    for &[position, element] in found {
        channel.send(&position.to_le_bytes())?;
        channel.send(&proofs[element as usize])?;
    }
    Ok(channel.flush()?)
}

/// Receives the positions and proofs of the tags that the receiver found, at most `most` of them, and checks
/// them all. `order` has the element of each tag sent. Returns the elements, ascending.
pub(crate) fn check_proofs(
    channel: &mut Channel,
    protocol: &'static str,
    most: u64,
    proofs: &[Proof],
    order: &[u32],
) -> Result<Vec<u32>> {
    let cheated = |what| Err(Error::Cheated { protocol, what });
    let count = channel.recv_u64()?;
    if count > most {
        return cheated("more matches than tags");
    }
    let (mut matches, mut next, mut proven) = (Vec::new(), 0u32, subtle::Choice::from(1));
    for _ in 0..count {
        let (mut position, mut proof) = ([0; 4], [0; 16]);
        channel.recv(&mut position)?;
        channel.recv(&mut proof)?;
        let position = u32::from_le_bytes(position);
        let Some(element) = order.get(position as usize).filter(|_| position >= next) else {
            return cheated("positions of matches do not ascend");
        };
        proven &= proofs[*element as usize].ct_eq(&proof);
        next = position + 1;
        matches.push(*element);
    }
    // proof: vole-psi 2.10, 3.5
    // proof: paxos 2.9
    if !bool::from(proven) {
        return cheated("a match without proof");
    }
    Ok(ascending(matches.into_iter()))
}

pub(crate) fn ascending(indices: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut indices: Vec<u32> = indices.collect();
    indices.sort_unstable();
    indices
}

#[cfg(test)]
#[path = "paxos_cheats.rs"]
mod cheats;
