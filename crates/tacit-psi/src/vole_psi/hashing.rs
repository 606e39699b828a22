//! H of all elements: on workers where there are many.

use super::{SHORT, STEP, halves};
use crate::okvs::clustered::{Binned, PIECE, Piece, Shape};
use crate::paxos::{Phase, Progress};
use tacit_crypto::{Block, hash, workers};
use zeroize::Zeroizing;

/// Fewer elements than this are hashed by one thread.
const HASHED_ALONE: usize = 4 * PIECE;

/// H under one key, with the buffers that it reuses.
pub(super) struct ElementHash<'k> {
    key: &'k [u8; 32],
    messages: Zeroizing<Vec<[u8; SHORT]>>,
    hashes: Zeroizing<Vec<[u8; 32]>>,
    order: Vec<usize>,
}

impl<'k> ElementHash<'k> {
    pub(super) fn new(key: &'k [u8; 32]) -> Self {
        let messages = Zeroizing::new(vec![[0; SHORT]; STEP]);
        let hashes = Zeroizing::new(vec![[0; 32]; STEP]);
        ElementHash { key, messages, hashes, order: Vec::with_capacity(STEP) }
    }

    /// H of at most [`STEP`] elements: what stands for them in the store, and their values.
    pub(super) fn hash<E: AsRef<[u8]>>(&mut self, elements: &[E], keys: &mut [Block], values: &mut [Block]) {
        let ElementHash { key, messages, hashes, order } = self;
        // Elements of one length go through the vectorised hash together.
        let len = |i: &usize| elements[*i].as_ref().len();
        order.clear();
        order.extend(0..elements.len());
        order.sort_by_key(len);
        for group in order.chunk_by(|a, b| len(a) == len(b)) {
            let (len, hashes) = (len(&group[0]), &mut hashes[..group.len()]);
            if len <= SHORT {
                let messages = &mut messages[..group.len()];
                for (message, i) in messages.iter_mut().zip(group) {
                    message[..len].copy_from_slice(elements[*i].as_ref());
                    message[len..].fill(0);
                }
                hash::blake3_keyed(key, len, messages, hashes);
            } else {
                for (hash, i) in hashes.iter_mut().zip(group) {
                    *hash = *blake3::keyed_hash(key, elements[*i].as_ref()).as_bytes();
                }
            }
            for (hash, i) in hashes.iter().zip(group) {
                (keys[*i], values[*i]) = halves(hash);
            }
        }
    }
}

/// Puts H of all elements into `binned`, on workers if that is worth it, as one thread would. `None` where one
/// thread is to do it; else whether there was room.
pub(super) fn scatter<E: AsRef<[u8]> + Sync>(
    key: &[u8; 32],
    shape: &Shape,
    elements: &[E],
    binned: &mut Binned,
    progress: &mut Progress<'_>,
) -> Option<bool> {
    let threads = workers::count();
    if threads == 1 || shape.bins() == 1 || elements.len() < HASHED_ALONE {
        return None;
    }
    let count = elements.len() as u64;
    let mut pieces: Vec<Piece> = (0..threads).map(|_| Piece::new(shape)).collect();
    let mut first = 0;
    for elements in elements.chunks(threads * PIECE) {
        progress(Phase::Encode, first as u64, count);
        let parts = elements.chunks(PIECE).zip(&mut pieces).enumerate();
        workers::each(parts, |(i, (elements, piece))| {
            let [mut keys, mut values] = [(); 2].map(|()| Zeroizing::new(vec![Block::ZERO; elements.len()]));
            let mut hash = ElementHash::new(key);
            let results = keys.chunks_mut(STEP).zip(values.chunks_mut(STEP));
            for (elements, (keys, values)) in elements.chunks(STEP).zip(results) {
                hash.hash(elements, keys, values);
            }
            piece.sort(shape, &keys, &values, (first + i * PIECE) as u32);
        });
        if !binned.append(&pieces[..elements.len().div_ceil(PIECE)]) {
            return Some(false);
        }
        first += elements.len();
    }
    progress(Phase::Encode, count, count);
    Some(true)
}
