//! What follows from seeds and keys, and the hashes of a run.

use super::schedule::{Work, note};
use tacit_crypto::group::{Encoding, Points, Scalars};
use tacit_crypto::hash::blake3_keyed;
use tacit_crypto::{Block, Prg};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Streams of blocks, one a garbled copy, read side by side: row i holds block i of every stream.
pub(super) struct Streams {
    prgs: Vec<Prg>,
    column: Vec<Block>,
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.column.zeroize();
    }
}

impl Streams {
    fn new(seeds: impl Iterator<Item = Block>) -> Self {
        Streams { prgs: seeds.map(Prg::from_seed).collect(), column: Vec::new() }
    }

    /// Fills `rows`, a whole number of rows, with the streams' next blocks.
    pub(super) fn fill(&mut self, rows: &mut [Block]) {
        rows.fill(Block::ZERO);
        self.xor(rows);
    }

    /// XORs the streams' next blocks into `rows`.
    pub(super) fn xor(&mut self, rows: &mut [Block]) {
        note(Work::Cipher, rows.len());
        let lanes = self.prgs.len();
        let n = rows.len().checked_div(lanes).unwrap_or(0);
        if self.column.len() < n {
            self.column.zeroize();
            self.column = vec![Block::ZERO; n];
        }
        for (j, prg) in self.prgs.iter_mut().enumerate() {
            let column = &mut self.column[..n];
            prg.fill_blocks(column);
            for (i, block) in column.iter().enumerate() {
                rows[i * lanes + j] ^= *block;
            }
        }
    }

    /// XORs stream `j`'s next blocks into `blocks`.
    pub(super) fn xor_one(&mut self, j: usize, blocks: &mut [Block]) {
        note(Work::Cipher, blocks.len());
        self.prgs[j].xor_blocks(blocks);
    }
}

/// What copy j's seed determines.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
struct Expanded {
    delta: Block,
    own: Block,
    peer: Block,
    masks: Block,
    scalars: Block,
}

/// The secrets of some of the copies, from their seeds.
pub(super) struct Seeds {
    seeds: Zeroizing<Vec<Block>>,
    expanded: Vec<Expanded>,
}

impl Seeds {
    pub(super) fn new(seeds: Vec<Block>) -> Self {
        let expand = |seed: &Block| {
            let mut prg = Prg::from_seed(*seed);
            let mut next = || prg.block();
            Expanded {
                delta: next().with_lsb(true),
                own: next(),
                peer: next(),
                masks: next(),
                scalars: next(),
            }
        };
        let expanded = seeds.iter().map(expand).collect();
        Seeds { seeds: Zeroizing::new(seeds), expanded }
    }

    pub(super) fn all(&self) -> &[Block] {
        &self.seeds
    }

    pub(super) fn len(&self) -> usize {
        self.seeds.len()
    }

    /// The offset between the labels of a wire in each copy.
    pub(super) fn deltas(&self) -> Zeroizing<Vec<Block>> {
        Zeroizing::new(self.expanded.iter().map(|e| e.delta).collect())
    }

    /// PRF_seed(i, "A"): the zero-labels of P1's inputs.
    pub(super) fn own_labels(&self) -> Streams {
        Streams::new(self.expanded.iter().map(|e| e.own))
    }

    /// PRF_seed(i, "B"): the zero-labels of P2's encoded inputs.
    pub(super) fn peer_labels(&self) -> Streams {
        Streams::new(self.expanded.iter().map(|e| e.peer))
    }

    /// PRF_seed(i, "R"): what hides M in the commitments to P1's input.
    pub(super) fn masks(&self) -> Streams {
        Streams::new(self.expanded.iter().map(|e| e.masks))
    }

    /// s_j and t_j of step 7.
    pub(super) fn scalars(&self) -> (Scalars, Scalars) {
        let mut bytes: [Zeroizing<Vec<[u8; 32]>>; 2] = Default::default();
        for expanded in &self.expanded {
            let mut prg = Prg::from_seed(expanded.scalars);
            for bytes in &mut bytes {
                let scalar = Scalars::random(1, &mut prg).to_bytes();
                bytes.extend_from_slice(&scalar);
            }
        }
        (Scalars::from_bytes(&bytes[0]), Scalars::from_bytes(&bytes[1]))
    }
}

/// What a key hides; each has a stream of its own.
#[derive(Clone, Copy)]
pub(super) enum Hidden {
    /// R of step 3.
    Commitments = 0,
    /// The openings of step 4.
    Openings = 1,
    /// The tables T of step 5.
    Tables = 2,
    /// The tables of the outputs that P1 learns.
    Returned = 3,
}

/// Enc_key of each copy, for one kind of message.
pub(super) fn encryption(keys: &[Block], hidden: Hidden) -> Streams {
    Streams::new(keys.iter().map(|&key| {
        let mut subkeys = Zeroizing::new([Block::ZERO; 4]);
        Prg::from_seed(key).fill_blocks(&mut subkeys[..]);
        subkeys[hidden as usize]
    }))
}

/// The hashes of one run: all bind its session, roles, function and parameters through their key.
#[derive(Clone)]
pub(super) struct Oracle {
    key: [u8; 32],
}

/// What is hashed from a start point.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Garbled gates; P1's salt.
    Circuits = 35,
    /// The committing OT's labels; P2's salt.
    Labels = 37,
    /// The other OTs' pads; P1's salt.
    Pads = 38,
}

pub(super) type Digest = [u8; 32];

/// Messages of one block, to be hashed side by side; wiped at the end, since each row's overwrite those
/// before.
pub(super) struct Messages {
    blocks: Zeroizing<Vec<[u8; 64]>>,
    used: usize,
    length: usize,
}

impl Messages {
    /// Room for so many at a time, of so many blocks beside the tag and the numbers.
    pub(super) fn new(most: usize, blocks: usize) -> Self {
        Messages { blocks: Zeroizing::new(vec![[0; 64]; most]), used: 0, length: 16 * (1 + blocks) }
    }

    fn add<const N: usize>(&mut self, tag: u8, copy: usize, index: usize, blocks: [Block; N]) {
        let message = &mut self.blocks[self.used];
        self.used += 1;
        message[..8].copy_from_slice(&((index as u64) << 8 | u64::from(tag)).to_le_bytes());
        message[8..16].copy_from_slice(&(copy as u64).to_le_bytes());
        for (part, block) in message[16..].as_chunks_mut().0.iter_mut().zip(blocks) {
            *part = block.to_bytes();
        }
    }
}

/// All differences between two digests; zero if they are equal.
pub(super) fn differences(x: &Digest, y: &Digest) -> Block {
    let half = |digest: &Digest, at: usize| {
        Block::from_bytes(digest[at..].first_chunk().copied().unwrap_or_default())
    };
    (half(x, 0) ^ half(y, 0)) | (half(x, 16) ^ half(y, 16))
}

impl Oracle {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Oracle { key }
    }

    /// Its key, which is public.
    pub(super) fn key(&self) -> &[u8; 32] {
        &self.key
    }

    fn hash(&self, tag: u8, copy: usize, index: usize, data: &[u8]) -> Digest {
        note(Work::Hash, 1);
        let mut message = Zeroizing::new([0u8; 48]);
        let used = 16 + data.len();
        message[..8].copy_from_slice(&((index as u64) << 8 | u64::from(tag)).to_le_bytes());
        message[8..16].copy_from_slice(&(copy as u64).to_le_bytes());
        message[16..used].copy_from_slice(data);
        *blake3::keyed_hash(&self.key, &message[..used]).as_bytes()
    }

    /// Com(R, A): the commitment of step 4 to one label of P1's input `index` in `copy`.
    ///
    /// A label that stays hidden differs from what P2 knows by δ_j, 127 bits: the commitment needs no
    /// randomness of its own.
    ///
    /// Adds the message to `messages`, which [`digests`](Self::digests) hashes all together.
    pub(super) fn label(messages: &mut Messages, copy: usize, index: usize, r: Block, a: Block) {
        messages.add(1, copy, index, [r, a]);
    }

    /// The hashes of the messages added since the last call, in place of those in `out`.
    pub(super) fn digests(&self, messages: &mut Messages, out: &mut Vec<Digest>) {
        let used = std::mem::take(&mut messages.used);
        note(Work::Hash, used);
        out.resize(used, [0; 32]);
        blake3_keyed(&self.key, messages.length, &messages.blocks[..used], out);
    }

    /// H(Δ_{i,b}) of step 5 for `N` tokens of each output from output `first` on; `kind` tells the tokens of
    /// recovery from those of P1's outputs.
    pub(super) fn tokens<const N: usize>(
        &self,
        kind: Hidden,
        first: usize,
        tokens: &[[Block; N]],
    ) -> Vec<[Digest; N]> {
        const OUTPUTS: usize = 64;
        let (mut messages, mut part) = (Messages::new(OUTPUTS * N, 1), Vec::new());
        let mut out = Vec::with_capacity(tokens.len());
        for (c, chunk) in tokens.chunks(OUTPUTS).enumerate() {
            for (i, token) in (first + c * OUTPUTS..).zip(chunk) {
                token.iter().for_each(|&token| messages.add(2 + kind as u8, 0, i, [token]));
            }
            self.digests(&mut messages, &mut part);
            out.extend_from_slice(part.as_chunks().0);
        }
        out
    }

    /// Com({T}) of step 5, as a running hash.
    pub(super) fn table_hasher(&self, kind: Hidden, copy: usize) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.hash(16 + kind as u8, copy, 0, &[]))
    }

    /// Com({T}) of step 5.
    pub(super) fn tables(&self, kind: Hidden, copy: usize, tables: &[Block]) -> Digest {
        note(Work::Hash, tables.len());
        *self.table_hasher(kind, copy).update(Block::as_bytes(tables)).finalize().as_bytes()
    }

    /// A running hash of one copy's garbled tables. Its key is its own, so that tables begin with its input:
    /// then whole chunks lie side by side.
    pub(super) fn circuit(&self, copy: usize) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.hash(24, copy, 0, &[]))
    }

    /// The key of Enc_{D_j} in step 7.
    pub(super) fn pad(&self, copy: usize, d: &Encoding) -> Block {
        let hash = Zeroizing::new(self.hash(32, copy, 0, d));
        Block::from_bytes(hash.first_chunk().copied().unwrap_or_default())
    }

    /// The hash of the committing OT's proof that its opening is right.
    pub(super) fn opening(&self, rows: &[Block]) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        note(Work::Hash, rows.len());
        hasher.update(&[33]);
        hasher.update(Block::as_bytes(rows));
        *hasher.finalize().as_bytes()
    }

    /// P2's commitment to the tokens that it returns.
    pub(super) fn returned(&self, opening: &Digest, tokens: &[Block]) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        note(Work::Hash, tokens.len());
        hasher.update(&[36]);
        hasher.update(opening);
        hasher.update(Block::as_bytes(tokens));
        *hasher.finalize().as_bytes()
    }

    /// Δ as a group element, with no known discrete logarithm.
    pub(super) fn element(&self, delta: Block) -> Points {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        note(Work::Group, 1);
        hasher.update(&[34]);
        hasher.update(&delta.to_bytes());
        let mut uniform = Zeroizing::new([0u8; 64]);
        hasher.finalize_xof().fill(&mut uniform[..]);
        Points::from_uniform(&[*uniform])
    }

    /// The public start point of a re-keyed hash of this run, for a salt that one party drew.
    pub(super) fn start(&self, of: Start, salt: Block) -> Block {
        let hash = self.hash(of as u8, 0, 0, &salt.to_bytes());
        Block::from_bytes(hash.first_chunk().copied().unwrap_or_default())
    }
}
