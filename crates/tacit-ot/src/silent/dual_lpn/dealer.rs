//! Silent OT with a trusted dealer (BCGIKRS19, section 4 with appendix B): a third party hands each side a
//! short seed, and both expand it alone to correlated OTs.
//!
//! - **Realises** random correlated OT with a fixed Δ by the paper's generator (figure 3, p = 2), under dual
//!   LPN with uniform noise: one GGM tree, punctured at the t noisy leaves at once (see the module
//!   `puncture`), in the ideal-permutation model.
//! - **Security**: the dealer knows everything and must not collude with either side; a party that has its
//!   own seed alone learns what the correlation gives it. Seeds travel to the parties over channels that keep
//!   them secret.
//! - **A failed check has used the seed up**: a seed's file is wiped ([`used`]) before anything that depends
//!   on it leaves the machine, so whatever a protocol on its correlations tells a cheating peer of Δ or of
//!   choices, no later process goes on with them.
//! - **Bytes**: the sender's seed has 116, the receiver's about 16·t·log2(N/t): 42 kB (quasi-cyclic) and
//!   53 kB (linear) for 10^7 correlations.
//!
//! ```
//! use tacit_crypto::Prg;
//! use tacit_ot::silent::{bcgikrs19::Code, dealer::{Params, ReceiverSeed, SenderSeed, deal}};
//! # fn main() -> tacit_ot::Result<()> {
//! let (sender, receiver) = deal(Params { code: Code::Linear, count: 100 }, &mut Prg::from_os())?;
//! // Both go out as bytes; each side expands its own.
//! let (v, delta) = (SenderSeed::from_bytes(&sender.to_bytes())?.expand(), sender.delta());
//! let w = ReceiverSeed::from_bytes(&receiver.to_bytes())?.expand();
//! assert!(w.iter().zip(&v).all(|(w, v)| *w == if w.lsb() { *v ^ delta } else { *v }));
//! # Ok(())
//! # }
//! ```

use super::code::LinearCode;
use super::params::{Code, LARGEST_RUN};
use crate::silent::engine::stock::Stock;
use crate::silent::tree::puncture::Tree;
use crate::{CotReceiver, CotSender, Error, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The name in errors.
pub const NAME: &str = "dealt";
const MAGIC: [u8; 9] = *b"tacitdeal";
/// In place of the magic where the seed has served.
const USED: [u8; 9] = *b"tacitused";
/// Version 2 had fewer noisy positions.
const VERSION: u8 = 3;
const ID: usize = 32;
const HEADER: usize = MAGIC.len() + 3 + 8 + ID;
/// A BLAKE3 hash of all before it: damage shows, whatever it hits.
const CHECKSUM: usize = 32;
/// Positions that a code may leave out, with room for the search of a prime.
const SPARE: usize = 4096;

/// What is dealt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// The public matrix.
    pub code: Code,
    /// Number of correlations, from 1 to 2^24.
    pub count: usize,
}

/// Whose seed it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Sender = 1,
    Receiver = 2,
}

fn malformed(what: &'static str) -> Error {
    Error::Malformed { protocol: NAME, what }
}

/// What both seeds of a deal have in common, and all that is public in it.
#[derive(Clone, PartialEq, Eq)]
struct Deal {
    params: Params,
    id: [u8; ID],
}

impl Deal {
    fn context(&self) -> Transcript {
        let mut context = Transcript::new("tacit silent dealer v3");
        context.append("deal", &self.id);
        context.append("code", self.params.code.name().as_bytes());
        context.append_u64("count", self.params.count as u64);
        context
    }

    /// t: uniform noise takes as many positions as regular noise.
    fn weight(&self) -> usize {
        self.params.code.weight()
    }

    fn tree(&self) -> Tree {
        Tree::new(&self.context(), 2 * (self.params.count + 1) + SPARE)
    }

    fn code(&self, tree: &Tree) -> Box<dyn LinearCode> {
        self.params.code.instance(self.context().challenge_block("code"), tree.leaves())
    }

    /// The correlations that the leaves give.
    fn compress(&self, code: &dyn LinearCode, mut leaves: Buffer) -> Vec<Block> {
        code.absorb(&mut Block::ZERO.clone(), &mut leaves);
        let mut out = Vec::with_capacity(self.params.count);
        code.encode(leaves, self.params.count, &mut |piece| out.extend_from_slice(piece));
        out
    }

    fn body_len(&self, role: Role) -> usize {
        match role {
            Role::Sender => 32,
            Role::Receiver => 16 * self.tree().key_len(self.weight()) + (4 + 16) * self.weight(),
        }
    }

    fn write(&self, role: Role, body: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(HEADER + self.body_len(role) + CHECKSUM));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, role as u8, (self.params.code == Code::Linear) as u8]);
        out.extend_from_slice(&(self.params.count as u64).to_le_bytes());
        out.extend_from_slice(&self.id);
        for part in body {
            out.extend_from_slice(part);
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }

    /// Reads the seed of `role`; returns what follows the header.
    fn read(bytes: &[u8], role: Role) -> Result<(Deal, &[u8])> {
        let (magic, rest) = bytes.split_at_checked(MAGIC.len()).ok_or(malformed("the seed is cut short"))?;
        if magic == USED {
            let what = "the seed was used before; its correlations serve once; ask the dealer for another";
            return Err(Error::Usage { protocol: NAME, what });
        }
        if magic != MAGIC {
            return Err(malformed("this is not a dealer's seed"));
        }
        let &[version, whose, code, ref rest @ ..] = rest else {
            return Err(malformed("the seed is cut short"));
        };
        if version < VERSION {
            return Err(malformed(
                "the seed is of an older version, whose parameters are refused now; \
                 ask the dealer for another",
            ));
        }
        if version > VERSION {
            return Err(malformed("the seed is of a newer version; update this side"));
        }
        if whose != role as u8 {
            return Err(malformed("the seed is for the other role, or for none"));
        }
        let code = match code {
            0 => Code::QuasiCyclic,
            1 => Code::Linear,
            _ => return Err(malformed("an unknown code")),
        };
        let cut =
            rest.split_first_chunk::<8>().and_then(|(n, rest)| Some((n, rest.split_first_chunk::<ID>()?)));
        let Some((count, (id, body))) = cut else { return Err(malformed("the seed is cut short")) };
        let count = usize::try_from(u64::from_le_bytes(*count)).unwrap_or(usize::MAX);
        if !(1..=LARGEST_RUN).contains(&count) {
            return Err(malformed("the number of correlations is out of range"));
        }
        let deal = Deal { params: Params { code, count }, id: *id };
        if body.len() < deal.body_len(role) + CHECKSUM {
            return Err(malformed("the seed is cut short"));
        }
        let (body, checksum) = body.split_at(deal.body_len(role));
        if blake3::hash(&bytes[..bytes.len() - checksum.len()]).as_bytes() != checksum {
            return Err(malformed("the seed is damaged"));
        }
        Ok((deal, body))
    }

    /// Whether the peer's seed is of the same deal, which tells nothing else.
    fn agree(&self, channel: &mut Channel) -> Result<()> {
        let mut transcript = self.context();
        transcript.append("session", &channel.session_id().0);
        let (mut mine, mut theirs) = ([0; 32], [0; 32]);
        transcript.challenge_bytes("deal", &mut mine);
        channel.send(&mine)?;
        channel.flush()?;
        channel.recv(&mut theirs)?;
        if mine == theirs { Ok(()) } else { Err(malformed("the peer's seed is of another deal")) }
    }
}

/// What takes the place of a seed's bytes once it has served, as long: its header with a mark, and nothing
/// secret.
///
/// A file overwritten with it before any output leaves the machine expands no second time, under whatever
/// name.
pub fn used(seed: &[u8]) -> Vec<u8> {
    let mut out = vec![0; seed.len().max(HEADER)];
    let header = seed.len().min(HEADER);
    out[..header].copy_from_slice(&seed[..header]);
    out[..USED.len()].copy_from_slice(&USED);
    out
}

/// The sender's seed: Δ and the key of the tree.
#[derive(Clone)]
pub struct SenderSeed {
    deal: Deal,
    delta: Block,
    key: Block,
}

/// The receiver's seed: the noisy positions, the punctured key and the values at the positions.
#[derive(Clone)]
pub struct ReceiverSeed {
    deal: Deal,
    points: Zeroizing<Vec<u32>>,
    key: Zeroizing<Vec<Block>>,
    values: Zeroizing<Vec<Block>>,
}

impl Drop for SenderSeed {
    fn drop(&mut self) {
        self.delta.zeroize();
        self.key.zeroize();
    }
}

impl core::fmt::Debug for SenderSeed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SenderSeed({:?}, [secret])", self.deal.params)
    }
}

impl core::fmt::Debug for ReceiverSeed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ReceiverSeed({:?}, [secret])", self.deal.params)
    }
}

/// G.Gen: the dealer's step. Fig. 3 with the puncturing of figure 18.
///
/// Errors when the number of correlations is out of range.
pub fn deal(params: Params, prg: &mut Prg) -> Result<(SenderSeed, ReceiverSeed)> {
    if !(1..=LARGEST_RUN).contains(&params.count) {
        return Err(Error::Usage {
            protocol: NAME,
            what: "the number of correlations must be from 1 to 2^24",
        });
    }
    let mut id = [0; ID];
    prg.fill_bytes(&mut id);
    let deal = Deal { params, id };
    let (delta, key) = (prg.block().with_lsb(true), prg.block());
    let tree = deal.tree();
    let points = positions(prg, deal.weight(), deal.code(&tree).input_len());
    let (punctured, mut values) = tree.puncture(key, &points);
    for value in values.iter_mut() {
        *value = value.with_lsb(false) ^ delta;
    }
    let sender = SenderSeed { deal: deal.clone(), delta, key };
    Ok((sender, ReceiverSeed { deal, points, key: punctured, values }))
}

/// `t` distinct uniform positions below `len`; a draw with a repetition is thrown away whole.
fn positions(prg: &mut Prg, t: usize, len: usize) -> Zeroizing<Vec<u32>> {
    loop {
        let points: Zeroizing<Vec<u32>> =
            Zeroizing::new((0..t).map(|_| prg.below(len as u64) as u32).collect());
        let mut repeated = 0u32;
        for (i, a) in points.iter().enumerate() {
            repeated += points[..i].iter().map(|b| (a == b) as u32).sum::<u32>();
        }
        if repeated == 0 {
            return points;
        }
    }
}

impl SenderSeed {
    /// The number of correlations and the code.
    pub fn params(&self) -> Params {
        self.deal.params
    }

    /// The correlation Δ.
    pub fn delta(&self) -> Block {
        self.delta
    }

    /// The seed as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        self.deal.write(Role::Sender, &[Block::as_bytes(&[self.delta, self.key])])
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. `Usage` for what [`used`] left, `Malformed` for
    /// anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (deal, body) = Deal::read(bytes, Role::Sender)?;
        let [delta, key] = [0, 1].map(|i| block(body, i));
        if !delta.lsb() {
            return Err(malformed("the lowest bit of Δ must be 1"));
        }
        Ok(SenderSeed { deal, delta, key })
    }

    /// G.Expand of the sender: v, every one with its lowest bit 0.
    pub fn expand(&self) -> Vec<Block> {
        let tree = self.deal.tree();
        let mut leaves = tree.full(self.key);
        for leaf in leaves.iter_mut() {
            *leaf = leaf.with_lsb(false);
        }
        self.deal.compress(&*self.deal.code(&tree), leaves)
    }
}

impl ReceiverSeed {
    /// The number of correlations and the code.
    pub fn params(&self) -> Params {
        self.deal.params
    }

    /// The seed as bytes for a file that only its owner can read.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let points: Zeroizing<Vec<u8>> =
            Zeroizing::new(self.points.iter().flat_map(|p| p.to_le_bytes()).collect());
        self.deal.write(Role::Receiver, &[&points, Block::as_bytes(&self.values), Block::as_bytes(&self.key)])
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. `Usage` for what [`used`] left, `Malformed` for
    /// anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (deal, body) = Deal::read(bytes, Role::Receiver)?;
        let (points, body) = body.split_at(4 * deal.weight());
        let points: Zeroizing<Vec<u32>> =
            Zeroizing::new(points.as_chunks().0.iter().map(|p| u32::from_le_bytes(*p)).collect());
        let leaves = deal.tree().leaves();
        let beyond = points.iter().fold(0, |sum, p| sum + (*p as usize >= leaves) as u32);
        if beyond > 0 {
            return Err(malformed("a position beyond the tree"));
        }
        let blocks = |from: usize, to: usize| Zeroizing::new((from..to).map(|i| block(body, i)).collect());
        let (values, key) = (blocks(0, deal.weight()), blocks(deal.weight(), body.len() / 16));
        Ok(ReceiverSeed { deal, points, key, values })
    }

    /// G.Expand of the receiver: w, whose lowest bits are the choice bits.
    pub fn expand(&self) -> Vec<Block> {
        let tree = self.deal.tree();
        let leaves = tree.punctured(&self.key, &self.points, &self.values);
        self.deal.compress(&*self.deal.code(&tree), leaves)
    }
}

/// The `i`-th block of a seed whose length was checked.
fn block(bytes: &[u8], i: usize) -> Block {
    Block::from_bytes(core::array::from_fn(|j| bytes[16 * i + j]))
}

/// The sender's seed as a source of correlated OTs, each handed out once.
pub struct DealtSender {
    delta: Block,
    stock: Stock,
}

/// The receiver's seed as a source of correlated OTs, each handed out once.
pub struct DealtReceiver {
    stock: Stock,
}

impl DealtSender {
    /// Makes sure that the peer holds the other seed of the same deal, and expands ours. One message each
    /// way.
    pub fn setup(channel: &mut Channel, seed: SenderSeed) -> Result<Self> {
        seed.deal.agree(channel)?;
        Ok(DealtSender { delta: seed.delta, stock: Stock::new(NAME, seed.expand()) })
    }
}

impl DealtReceiver {
    /// As [`DealtSender::setup`].
    pub fn setup(channel: &mut Channel, seed: ReceiverSeed) -> Result<Self> {
        seed.deal.agree(channel)?;
        Ok(DealtReceiver { stock: Stock::new(NAME, seed.expand()) })
    }
}

impl CotSender for DealtSender {
    fn delta(&self) -> Block {
        self.delta
    }

    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.stock.take(out)
    }
}

impl CotReceiver for DealtReceiver {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<()> {
        self.stock.take(out)
    }
}
