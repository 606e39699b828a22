//! Ho, the hash function behind the oblivious function.

use super::tags::Counts;
use super::{SHORT, STEP, halves};
use crate::okvs::clustered::Bin;
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, hash};
use zeroize::Zeroizing;

/// Bytes of Ho's input: H's key and the store's sum.
const TAG_INPUT: usize = 32;

/// Ho, which gives a tag and a proof.
pub(super) struct TagHash(Zeroizing<[u8; 32]>);

impl TagHash {
    /// Ho of the run whose coins end `transcript`.
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        transcript.clone().challenge_bytes("Ho", &mut key[..]);
        TagHash(key)
    }

    /// Puts the tags of the elements of some bins in the place of their keys, their last `shift` bits zero, and the
    /// second halves of Ho, if they are kept, in the place of their sums. Returns how the tags of these bins begin,
    /// where all bins have `count` of them.
    pub(super) fn tag(&self, bins: &mut [Bin<'_>], count: usize, shift: u32, keeps_second: bool) -> Counts {
        let mut counts = Counts::new(count);
        self.put(bins, shift, keeps_second, |tag| counts.add(tag));
        counts
    }

    /// The first halves of Ho in the place of the keys of some bins, for values that stay secret: nothing is counted by
    /// their bits.
    pub(super) fn values(&self, bins: &mut [Bin<'_>]) {
        self.put(bins, 0, false, |_| ());
    }

    fn put(&self, bins: &mut [Bin<'_>], shift: u32, keeps_second: bool, mut note: impl FnMut(Block)) {
        let mut messages = Zeroizing::new(vec![[0; SHORT]; STEP]);
        let mut hashes = Zeroizing::new(vec![[0; 32]; STEP]);
        for (keys, sums, _) in bins {
            for (keys, sums) in keys.chunks_mut(STEP).zip(sums.chunks_mut(STEP)) {
                let hashes = self.outputs([keys, sums], &mut messages, &mut hashes);
                for ((tag, sum), hash) in keys.iter_mut().zip(sums).zip(hashes) {
                    let (first, second) = halves(hash);
                    *tag = Block::new(first.to_u128() >> shift << shift);
                    note(*tag);
                    if keeps_second {
                        *sum = second;
                    }
                }
            }
        }
    }

    /// Ho of a few elements, at most [`STEP`], from H's keys and the store's sums.
    pub(super) fn outputs<'h>(
        &self,
        [keys, sums]: [&[Block]; 2],
        messages: &mut [[u8; SHORT]],
        hashes: &'h mut [[u8; 32]],
    ) -> &'h [[u8; 32]] {
        let (messages, hashes) = (&mut messages[..keys.len()], &mut hashes[..keys.len()]);
        for ((message, key), sum) in messages.iter_mut().zip(keys).zip(sums) {
            message[..16].copy_from_slice(&key.to_bytes());
            message[16..TAG_INPUT].copy_from_slice(&sum.to_bytes());
        }
        hash::blake3_keyed(&self.0, TAG_INPUT, messages, hashes);
        hashes
    }
}
