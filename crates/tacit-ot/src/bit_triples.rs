//! Beaver triples of bits, packed 64 a word: from correlated OT both ways, one bit kept of each.
//!
//! Both parties get XOR shares of random a and b and of c = a ∧ b.
//!
//! - **Security**: semi-honest. The hash is MITCCRH (Guo, Katz, Weng, Yu, 2019/1168) with [`GROUP`] blocks under a
//!   gid, of each of which the peer knows one of two; with honest parties the rows of correlated OT are random, and
//!   no two are equal but by chance.
//! - **Messages**: those of the correlated OT, two a triple, one in each direction. Nothing else is sent.
//!
//! Of an OT that this party sends, x = m_0 ⊕ m_1 and s = m_0; the peer has y = u and t = m_u, so s ⊕ t = x·y. With x'
//! = u', t' = m'_u' of the other direction, a = x, b = u' and c = a·b ⊕ s ⊕ t'. This is [`ole`](crate::ole) over bits,
//! kept in words.

use crate::convert::started;
use crate::{CotReceiver, CotSender, Error, Result};
use tacit_crypto::bits::pack_words;
use tacit_crypto::{Block, hash::Mitccrh};
use tacit_net::{Channel, Party};
use zeroize::{Zeroize, Zeroizing};

const NAME: &str = "bit triples";
const HASH_DOMAIN: &str = "tacit bit triples v1";

/// Blocks under one gid, which are hashed at a time: few enough to stay in the nearest cache, and many to a key
/// schedule. They cost nine bits of the hash's bound.
pub const GROUP: usize = 512;

/// What makes triples: the ends of two streams of correlated OT, one in each direction.
pub struct BitTriples<S, R> {
    sender: S,
    receiver: R,
    sent: Side,
    received: Side,
}

/// What hashes the OTs of one direction.
#[derive(Default)]
struct Side {
    hash: Option<Mitccrh>,
    gid: u64,
}

impl Side {
    fn begin(&mut self, channel: &mut Channel, sender: Party, n: usize) -> (&Mitccrh, u64) {
        let first = self.gid;
        self.gid += n.div_ceil(GROUP) as u64;
        (self.hash.get_or_insert_with(|| started(channel, HASH_DOMAIN, sender)), first)
    }
}

impl<S: CotSender, R: CotReceiver> BitTriples<S, R> {
    /// Over these streams.
    pub fn new(sender: S, receiver: R) -> Self {
        BitTriples { sender, receiver, sent: Side::default(), received: Side::default() }
    }

    /// Fills this party's shares of `64 · a.len()` triples. Nothing is left of any on an error.
    ///
    /// `Error::Usage` unless a, b and c have one length.
    pub fn extend(&mut self, channel: &mut Channel, [a, b, c]: [&mut [u64]; 3]) -> Result<()> {
        if a.len() != b.len() || b.len() != c.len() {
            return Err(Error::Usage { protocol: NAME, what: "as many words of a, b and c" });
        }
        let made = self.make(channel, [a, b, c]);
        made.inspect_err(|_| [a, b, c].into_iter().for_each(Zeroize::zeroize))
    }

    fn make(&mut self, channel: &mut Channel, [a, b, c]: [&mut [u64]; 3]) -> Result<()> {
        let mut share = Zeroizing::new(vec![0; a.len()]);
        match channel.party() {
            Party::First => {
                self.send(channel, a, c)?;
                self.receive(channel, b, &mut share)?;
            }
            Party::Second => {
                self.receive(channel, b, &mut share)?;
                self.send(channel, a, c)?;
            }
        }
        for ((c, share), (a, b)) in c.iter_mut().zip(share.iter()).zip(a.iter().zip(b.iter())) {
            *c ^= share ^ (a & b);
        }
        Ok(())
    }

    /// The OTs that this party sends: x and s.
    fn send(&mut self, channel: &mut Channel, x: &mut [u64], s: &mut [u64]) -> Result<()> {
        let n = 64 * x.len();
        let (hash, mut gid) = self.sent.begin(channel, channel.party(), n);
        let delta = self.sender.delta();
        let mut chunk = Chunk::new();
        let mut flipped = Zeroizing::new([Block::ZERO; GROUP]);
        let mut at = 0;
        self.sender.extend_each(channel, n, &mut |rows| {
            chunk.fill(rows, n, |blocks| {
                let flipped = &mut flipped[..blocks.len()];
                flipped.iter_mut().zip(&*blocks).for_each(|(flipped, v)| *flipped = *v ^ delta);
                hash.hash_group(gid, blocks);
                hash.hash_group(gid, flipped);
                gid += 1;
                let words = at..at + blocks.len() / 64;
                at = words.end;
                pack_words(blocks, &mut s[words.clone()]);
                pack_words(flipped, &mut x[words.clone()]);
                x[words.clone()].iter_mut().zip(&s[words]).for_each(|(x, s)| *x ^= s);
            });
        })
    }

    /// The OTs that the peer sends: y and t.
    fn receive(&mut self, channel: &mut Channel, y: &mut [u64], t: &mut [u64]) -> Result<()> {
        let n = 64 * y.len();
        let peer = match channel.party() {
            Party::First => Party::Second,
            Party::Second => Party::First,
        };
        let (hash, mut gid) = self.received.begin(channel, peer, n);
        let mut chunk = Chunk::new();
        let mut at = 0;
        self.receiver.extend_each(channel, n, &mut |rows| {
            chunk.fill(rows, n, |blocks| {
                let words = at..at + blocks.len() / 64;
                at = words.end;
                pack_words(blocks, &mut y[words.clone()]);
                hash.hash_group(gid, blocks);
                gid += 1;
                pack_words(blocks, &mut t[words]);
            });
        })
    }
}

/// Rows gathered to chunks, wherever the stream cuts its pieces: both parties hash the same rows under a gid.
struct Chunk {
    blocks: Zeroizing<Vec<Block>>,
    seen: usize,
}

impl Chunk {
    fn new() -> Self {
        Chunk { blocks: Zeroizing::new(Vec::with_capacity(GROUP)), seen: 0 }
    }

    /// Takes `rows` in and calls `full` with every whole chunk, and with the last one of `n` rows.
    fn fill(&mut self, mut rows: &[Block], n: usize, mut full: impl FnMut(&mut [Block])) {
        while !rows.is_empty() {
            let taken = rows.len().min(GROUP - self.blocks.len());
            self.blocks.extend_from_slice(&rows[..taken]);
            rows = &rows[taken..];
            self.seen += taken;
            if self.blocks.len() == GROUP || self.seen == n {
                full(&mut self.blocks);
                self.blocks.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::iknp::{IknpReceiver, IknpSender};
    use tacit_crypto::Prg;
    use tacit_net::memory;

    /// A stream whose pieces are cut at odd places.
    struct Cut<C>(C, usize);

    impl<C: CotSender> CotSender for Cut<C> {
        fn delta(&self) -> Block {
            self.0.delta()
        }
        fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
            self.0.extend(channel, out)
        }
        fn extend_each(
            &mut self,
            channel: &mut Channel,
            n: usize,
            each: &mut dyn FnMut(&[Block]),
        ) -> Result<()> {
            let mut rows = vec![Block::ZERO; n];
            self.0.extend(channel, &mut rows)?;
            rows.chunks(self.1).for_each(each);
            Ok(())
        }
    }

    fn party(channel: &mut Channel, requests: &[usize]) -> Vec<[Vec<u64>; 3]> {
        let (base, mut prg) = (crate::base::default(), Prg::from_os());
        let (sender, receiver) = match channel.party() {
            Party::First => {
                let sender = IknpSender::setup(channel, &*base, &mut prg).unwrap();
                (sender, IknpReceiver::setup(channel, &*base, &mut prg).unwrap())
            }
            Party::Second => {
                let receiver = IknpReceiver::setup(channel, &*base, &mut prg).unwrap();
                (IknpSender::setup(channel, &*base, &mut prg).unwrap(), receiver)
            }
        };
        let mut triples = BitTriples::new(Cut(sender, 77), receiver);
        let made = requests.iter().map(|&words| {
            let mut abc = [(); 3].map(|()| vec![0; words]);
            triples.extend(channel, abc.each_mut().map(|part| &mut part[..])).unwrap();
            channel.flush().unwrap();
            abc
        });
        made.collect()
    }

    #[test]
    fn shares_multiply_however_streams_cut_their_pieces_and_look_random() {
        let requests = [1, 0, 9, 40, 3];
        let (ours, theirs) =
            memory::run(|channel| party(channel, &requests), |channel| party(channel, &requests));
        let mut ones = [0; 6];
        for (ours, theirs) in ours.iter().zip(&theirs) {
            for i in 0..ours[0].len() {
                let [a, b, c] = [0, 1, 2].map(|part| ours[part][i] ^ theirs[part][i]);
                assert_eq!(c, a & b);
                for (ones, word) in ones.iter_mut().zip(ours.iter().chain(theirs).map(|part| part[i])) {
                    *ones += word.count_ones();
                }
            }
        }
        let bits = 64 * requests.iter().sum::<usize>() as u32;
        assert!(ones.iter().all(|ones| (bits * 2 / 5..bits * 3 / 5).contains(ones)), "{ones:?} of {bits}");
    }

    #[test]
    fn a_group_is_hashed_as_its_blocks_are() {
        let mut prg = Prg::from_os();
        let hash = Mitccrh::new(prg.block());
        let mut blocks = vec![Block::ZERO; 77];
        prg.fill_blocks(&mut blocks);
        let mut others = blocks.clone();
        hash.hash_group(u64::MAX - 3, &mut blocks);
        hash.hash_blocks(u64::MAX - 3, 77, &mut others);
        assert!(blocks == others);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        let (ended, _) = memory::run(
            |channel| {
                let (base, mut prg) = (crate::base::default(), Prg::from_os());
                let sender = IknpSender::setup(channel, &*base, &mut prg).unwrap();
                let receiver = IknpReceiver::setup(channel, &*base, &mut prg).unwrap();
                let mut triples = BitTriples::new(sender, receiver);
                triples.extend(channel, [&mut [0; 2], &mut [0; 2], &mut [0; 1]])
            },
            |channel| party(channel, &[]),
        );
        assert!(matches!(ended, Err(Error::Usage { .. })));
    }
}
