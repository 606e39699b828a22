//! Sealing of texts of one length, each under a key of its own, many side by side.
//!
//! Block i of a key's stream is BLAKE3's keyed hash of key and i, 32 bytes. Block 0 gives r and s, the blocks
//! after it hide the text. The mark is the one-time authenticator s + Σ cᵢ·r^(m+1−i) over GF(2^128) of the
//! hidden text's m blocks of 16 bytes, the last one filled up with zeros: all texts of a run have one
//! length, so that this is no ambiguity. Who has not seen the key forges a mark with 2^-112 at most in texts
//! of a mebibyte. A key seals one text in each kind of stream.

use crate::paxos::Proof;
use subtle::ConstantTimeEq;
use tacit_crypto::{Block, gf128, hash};
use zeroize::Zeroizing;

/// Bytes of a mark.
pub(super) const MARK: usize = 16;
/// Texts that are worth sealing side by side: more, and their hashes leave the first-level cache.
const TEXTS_AT_ONCE: usize = 128;
/// What the streams of rows that go with tags are made of, and those of rows that go back.
pub(super) const STREAM: &str = "tacit-psi payload v3 stream";
pub(super) const STREAM_BACK: &str = "tacit-psi payload v3 stream back";
/// Bytes that are sent for one element, at most.
pub const MAX_SEALED: usize = 1 << 20;
/// Bytes sent, or received, at a time, about.
const PIECE: usize = 1 << 16;
/// Bytes of a block of the stream.
const PAD: usize = 32;
/// Bytes of the stream's input: the key, and the block's number.
const INPUT: usize = size_of::<Proof>() + size_of::<u64>();

/// Texts of a length that are sent, or received, at a time.
pub(super) fn at_once(length: usize) -> usize {
    (PIECE / length).clamp(1, TEXTS_AT_ONCE)
}

/// Makes streams and marks from texts' keys.
pub(super) struct Sealer {
    key: [u8; 32],
}

/// What authenticates one text after the other, and what hides them.
struct Streams {
    messages: Zeroizing<Vec<[u8; 64]>>,
    pads: Zeroizing<Vec<[u8; PAD]>>,
}

impl Sealer {
    /// Of streams that are called `name`: another one for each text that is sealed under one key.
    pub(super) fn new(name: &str) -> Self {
        Sealer { key: blake3::derive_key(name, &[]) }
    }

    /// Seals all but the last bytes of each text in place, and puts the mark there.
    pub(super) fn seal(&self, keys: &[Proof], texts: &mut [&mut [u8]]) {
        let mut streams = Streams::new(keys);
        let once = Zeroizing::new(streams.pads(self, 0).to_vec());
        self.mask(&mut streams, texts);
        let marks = marks(&once, texts);
        for (text, mark) in texts.iter_mut().zip(marks.iter()) {
            let at = text.len() - MARK;
            text[at..].copy_from_slice(&mark.to_bytes());
        }
    }

    /// Opens each text in place, but for its mark; says of each whether the mark fits. What does not open is
    /// noise.
    pub(super) fn open(&self, keys: &[Proof], texts: &mut [&mut [u8]]) -> Vec<bool> {
        let mut streams = Streams::new(keys);
        let once = Zeroizing::new(streams.pads(self, 0).to_vec());
        let expected = marks(&once, texts);
        let fit = |(text, mark): (&&mut [u8], &Block)| {
            bool::from(mark.to_bytes().as_slice().ct_eq(&text[text.len() - MARK..]))
        };
        let fits = texts.iter().zip(expected.iter()).map(fit).collect();
        self.mask(&mut streams, texts);
        fits
    }

    fn mask(&self, streams: &mut Streams, texts: &mut [&mut [u8]]) {
        let length = texts.first().map_or(0, |text| text.len() - MARK);
        for (block, start) in (1..).zip((0..length).step_by(PAD)) {
            let pads = streams.pads(self, block);
            for (text, pad) in texts.iter_mut().zip(pads) {
                let end = length.min(start + PAD);
                text[start..end].iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
            }
        }
    }
}

impl Streams {
    fn new(keys: &[Proof]) -> Self {
        let mut messages = Zeroizing::new(vec![[0; 64]; keys.len()]);
        for (message, key) in messages.iter_mut().zip(keys) {
            message[..key.len()].copy_from_slice(key);
        }
        Streams { messages, pads: Zeroizing::new(vec![[0; PAD]; keys.len()]) }
    }

    /// A block of every key's stream.
    fn pads(&mut self, sealer: &Sealer, block: u64) -> &[[u8; PAD]] {
        for message in self.messages.iter_mut() {
            message[size_of::<Proof>()..INPUT].copy_from_slice(&block.to_le_bytes());
        }
        hash::blake3_keyed(&sealer.key, INPUT, &self.messages, &mut self.pads);
        &self.pads
    }
}

/// The marks of hidden texts, from the first blocks of their streams.
fn marks(once: &[[u8; PAD]], texts: &[&mut [u8]]) -> Zeroizing<Vec<Block>> {
    let half = |half: usize| {
        let block = |pad: &[u8; PAD]| Block::from_bytes(std::array::from_fn(|i| pad[16 * half + i]));
        Zeroizing::new(once.iter().map(block).collect::<Vec<_>>())
    };
    let (r, s) = (half(0), half(1));
    let mut sums = Zeroizing::new(vec![Block::ZERO; texts.len()]);
    let length = texts.first().map_or(0, |text| text.len() - MARK);
    for start in (0..length).step_by(16) {
        for (sum, text) in sums.iter_mut().zip(texts) {
            let mut block = [0; 16];
            let part = &text[start..length.min(start + 16)];
            block[..part.len()].copy_from_slice(part);
            *sum ^= Block::from_bytes(block);
        }
        gf128::multiply_each(&mut sums, &r);
    }
    sums.iter_mut().zip(s.iter()).for_each(|(sum, s)| *sum ^= *s);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    /// Texts side by side are sealed as each is alone, and as the definition says.
    #[test]
    fn sealed_texts_are_those_of_the_definition_and_open_again() {
        let mut prg = Prg::from_seed(Block::new(5));
        let sealer = Sealer::new("sealing test");
        for (count, length) in [(1, 0), (3, 1), (40, 13), (17, 32), (5, 33), (130, 100)] {
            let mut keys = vec![[0; 16]; count];
            prg.fill_bytes(keys.as_flattened_mut());
            let mut plain = vec![vec![0; length + MARK]; count];
            plain.iter_mut().for_each(|text| prg.fill_bytes(&mut text[..length]));
            let mut sealed = plain.clone();
            sealer.seal(&keys, &mut sealed.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
            for ((key, plain), sealed) in keys.iter().zip(&plain).zip(&sealed) {
                let pad = |block: u64| {
                    *blake3::keyed_hash(&sealer.key, &[&key[..], &block.to_le_bytes()].concat()).as_bytes()
                };
                let stream: Vec<u8> = (1..).map(pad).take(length.div_ceil(PAD)).flatten().collect();
                let hidden: Vec<u8> = plain[..length].iter().zip(&stream).map(|(a, b)| a ^ b).collect();
                assert_eq!(hidden, sealed[..length]);
                let block = |bytes: &[u8]| {
                    let mut block = [0; 16];
                    block[..bytes.len()].copy_from_slice(bytes);
                    Block::from_bytes(block)
                };
                let (r, s) = (block(&pad(0)[..16]), block(&pad(0)[16..]));
                let sum = hidden.chunks(16).fold(Block::ZERO, |sum, part| gf128::mul(sum ^ block(part), r));
                assert_eq!((sum ^ s).to_bytes(), sealed[length..]);
            }
            // A bit changed anywhere, and this text alone does not open.
            for at in 0..length + MARK {
                let mut changed = sealed.clone();
                changed[at % count][at] ^= 1 << (at % 8);
                let mut texts: Vec<_> = changed.iter_mut().map(Vec::as_mut_slice).collect();
                let fits = sealer.open(&keys, &mut texts);
                assert!(fits.iter().enumerate().all(|(i, fits)| *fits == (i != at % count)));
            }
            let fits = sealer.open(&keys, &mut sealed.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
            assert!(fits.iter().all(|fits| *fits));
            assert!(plain.iter().zip(&sealed).all(|(a, b)| a[..length] == b[..length]));
        }
    }
}
