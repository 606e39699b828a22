//! Tags in ascending order.

use crate::okvs::clustered::Binned;
use crate::paxos::Proof;
use tacit_crypto::{Block, Buffer, Indices};
use zeroize::Zeroizing;

/// Bits of the first pass of sorting: as many places are written to by turns.
const COARSE_BITS: u32 = 10;
/// So many tags of one prefix are looked through one by one.
pub(super) const FEW_TAGS: usize = 8;

/// A party's tags in ascending order, each with its element, and proofs in the order of elements.
pub(super) struct Tags {
    pub(super) tags: Buffer,
    pub(super) elements: Indices,
    pub(super) proofs: Zeroizing<Vec<Proof>>,
    /// Where each prefix starts, and the last one ends.
    pub(super) starts: Indices,
}

impl Tags {
    /// Sorts tags that stand in the place of the keys of `binned`: by the first bits of the prefix in one
    /// pass, then within the first-level cache by the others, then each prefix's few.
    pub(super) fn sort(binned: Binned, bins: usize, proofs: Zeroizing<Vec<Proof>>, prefix_bits: u32) -> Self {
        let count = binned.len();
        let coarse_bits = prefix_bits.min(COARSE_BITS);
        let fine_bits = prefix_bits - coarse_bits;
        let prefix = |tag: u128, bits: u32| (tag >> 1 >> (127 - bits)) as usize;
        let mut next = Zeroizing::new(vec![0u32; (1 << coarse_bits) + 1]);
        let places = || (0..bins).map(|bin| binned.bin(bin));
        let tags = places().flat_map(|at| &binned.keys()[at]);
        tags.for_each(|tag| next[prefix(tag.to_u128(), coarse_bits) + 1] += 1);
        (1..next.len()).for_each(|i| next[i] += next[i - 1]);
        let coarse = next.clone();
        let mut sorted = Buffer::zeros(count);
        let mut of = Indices::zeros(count);
        for at in places() {
            for (tag, element) in binned.keys()[at.clone()].iter().zip(&binned.elements()[at]) {
                let at = &mut next[prefix(tag.to_u128(), coarse_bits)];
                (sorted[*at as usize], of[*at as usize]) = (*tag, *element);
                *at += 1;
            }
        }
        drop(binned);
        let mut starts = Indices::zeros((1 << prefix_bits) + 1);
        let mut few: Zeroizing<Vec<(Block, u32)>> = Zeroizing::new(Vec::new());
        let mut next = Zeroizing::new(vec![0u32; (1 << fine_bits) + 1]);
        for (bucket, pair) in coarse.windows(2).enumerate() {
            let range = pair[0] as usize..pair[1] as usize;
            let (tags, elements) = (&mut sorted[range.clone()], &mut of[range]);
            few.clear();
            few.extend(tags.iter().copied().zip(elements.iter().copied()));
            let fine = |tag: Block| prefix(tag.to_u128(), prefix_bits) & ((1 << fine_bits) - 1);
            next.fill(0);
            few.iter().for_each(|(tag, _)| next[fine(*tag) + 1] += 1);
            (1..next.len()).for_each(|i| next[i] += next[i - 1]);
            let starts = &mut starts[bucket << fine_bits..][..1 << fine_bits];
            starts.iter_mut().zip(next.iter()).for_each(|(start, next)| *start = pair[0] + next);
            for (tag, element) in few.iter() {
                let at = &mut next[fine(*tag)];
                (tags[*at as usize], elements[*at as usize]) = (*tag, *element);
                *at += 1;
            }
            // Each prefix's end is by now where `next` stands.
            let mut start = 0;
            for end in next[..1 << fine_bits].iter().map(|end| *end as usize) {
                sort_few(&mut tags[start..end], &mut elements[start..end], &mut few);
                start = end;
            }
        }
        if let Some(last) = starts.last_mut() {
            *last = count as u32;
        }
        Tags { tags: sorted, elements: of, proofs, starts }
    }
}

/// Sorts the tags of one prefix with their elements; `scratch` is for many.
fn sort_few(tags: &mut [Block], elements: &mut [u32], scratch: &mut Vec<(Block, u32)>) {
    if tags.len() > FEW_TAGS {
        scratch.clear();
        scratch.extend(tags.iter().copied().zip(elements.iter().copied()));
        scratch.sort_unstable_by_key(|(tag, _)| tag.to_u128());
        for ((tag, element), sorted) in tags.iter_mut().zip(elements).zip(scratch.iter()) {
            (*tag, *element) = *sorted;
        }
        return;
    }
    for i in 1..tags.len() {
        let mut at = i;
        while at > 0 && tags[at - 1].to_u128() > tags[at].to_u128() {
            tags.swap(at - 1, at);
            elements.swap(at - 1, at);
            at -= 1;
        }
    }
}
