//! Tags in ascending order, and the message that they are sent as.

use crate::matching::Sorted;
use crate::okvs::clustered::Binned;
use crate::paxos::Proof;
use tacit_crypto::{BitVec, Block, Buffer, Indices, workers};
use zeroize::Zeroizing;

/// Bits of the first pass of sorting: as many places are written to by turns.
const COARSE_BITS: u32 = 10;
/// Groups of bins that are moved on their own, at most.
const MOST_GROUPS: usize = 64;
/// Parts, of tags that begin alike, that one thread sorts at a time.
const SORTED: usize = 32;
/// Tags that are worth a thread, to be written or read.
const TAGS_EACH: usize = 1 << 12;
/// Words of a bitmap whose ones are counted together.
const GROUP: usize = 64;

/// The first bits of a tag.
fn first_bits(tag: Block, bits: u32) -> usize {
    (tag.to_u128() >> 1 >> (127 - bits)) as usize
}

/// A party's tags in ascending order, each with its element, and proofs in the order of elements.
pub(super) struct Tags {
    pub(super) tags: Buffer,
    pub(super) elements: Indices,
    pub(super) proofs: Zeroizing<Vec<Proof>>,
}

/// How many tags of some bins begin with the same bits.
pub(super) struct Counts {
    bits: u32,
    coarse: Zeroizing<Vec<u32>>,
}

impl Counts {
    /// None yet, of a party that has `count` tags.
    pub(super) fn new(count: usize) -> Self {
        let bits = bits(count).min(COARSE_BITS);
        Counts { bits, coarse: Zeroizing::new(vec![0; 1 << bits]) }
    }

    /// Counts a tag.
    pub(super) fn add(&mut self, tag: Block) {
        self.coarse[first_bits(tag, self.bits)] += 1;
    }
}

/// Bits that tags are told apart by before neighbours are compared: there are as many values as tags.
fn bits(count: usize) -> u32 {
    count.max(1).ilog2()
}

/// So many of the `bins` have their tags counted and moved together.
pub(super) fn group(bins: usize) -> usize {
    bins.div_ceil(MOST_GROUPS)
}

/// Sorts the tags that stand in the place of the keys of `binned`: by the first bits in one pass, then within the
/// first-level cache by as many bits as tell most of them apart, then neighbours. `counts` are of each [`group`] of
/// bins. Tags are values of a hash function that no party chose.
pub(super) fn sort(binned: Binned, counts: &[Counts], proofs: Zeroizing<Vec<Proof>>) -> Tags {
    let bits = bits(binned.len());
    let coarse_bits = bits.min(COARSE_BITS);
    let mut tags = Buffer::zeros(binned.len());
    let mut elements = Indices::zeros(binned.len());
    // Each group has a place of its own for the tags that begin alike.
    let mut places: Vec<_> = counts.iter().map(|_| Vec::with_capacity(1 << coarse_bits)).collect();
    let (mut tags_left, mut elements_left) = (&mut tags[..], &mut elements[..]);
    for first in 0..1 << coarse_bits {
        for (places, counts) in places.iter_mut().zip(counts) {
            let count = counts.coarse[first] as usize;
            let tags = tags_left.split_off_mut(..count).unwrap_or_default();
            let elements = elements_left.split_off_mut(..count).unwrap_or_default();
            places.push(tags.iter_mut().zip(elements));
        }
    }
    let bins: Vec<_> = binned.bins().collect();
    let groups = bins.chunks(group(bins.len())).zip(places);
    workers::each(groups, |(bins, mut places)| {
        for (tags, elements) in bins {
            for (tag, element) in tags.iter().zip(*elements) {
                if let Some((to, of)) = places[first_bits(*tag, coarse_bits)].next() {
                    (*to, *of) = (*tag, *element);
                }
            }
        }
    });
    drop(bins);
    drop(binned);
    let alike = |first: usize| counts.iter().map(|counts| counts.coarse[first] as usize).sum::<usize>();
    let (mut tags_left, mut elements_left) = (&mut tags[..], &mut elements[..]);
    let mut parts: Vec<_> = (0..1 << coarse_bits)
        .map(|first| {
            let tags = tags_left.split_off_mut(..alike(first)).unwrap_or_default();
            (tags, elements_left.split_off_mut(..alike(first)).unwrap_or_default())
        })
        .collect();
    workers::each(parts.chunks_mut(SORTED), |parts| sort_alike(parts, bits - coarse_bits));
    Tags { tags, elements, proofs }
}

/// Sorts each of the `parts`, whose tags begin alike, by `fine_bits` more and by neighbours.
fn sort_alike(parts: &mut [(&mut [Block], &mut [u32])], fine_bits: u32) {
    let fine = (1 << fine_bits) - 1;
    let mut few: Zeroizing<Vec<(Block, u32)>> = Zeroizing::new(Vec::new());
    let mut counts = Zeroizing::new(vec![0u32; fine + 1]);
    for (tags, elements) in parts {
        few.clear();
        few.extend(tags.iter().copied().zip(elements.iter().copied()));
        counts.fill(0);
        let of = |tag: Block| first_bits(tag, COARSE_BITS + fine_bits) & fine;
        few.iter().for_each(|(tag, _)| counts[of(*tag)] += 1);
        let mut next = starts(&counts);
        for (tag, element) in few.iter() {
            let at = &mut next[of(*tag)];
            (tags[*at as usize], elements[*at as usize]) = (*tag, *element);
            *at += 1;
        }
        sort_neighbours(tags, elements);
    }
}

/// Where each part starts, from their lengths.
fn starts(lens: &[u32]) -> Zeroizing<Vec<u32>> {
    let mut sum = 0;
    let start = |len: &u32| {
        sum += len;
        sum - len
    };
    Zeroizing::new(lens.iter().map(start).collect())
}

/// Sorts tags with their elements, which are nearly sorted.
fn sort_neighbours(tags: &mut [Block], elements: &mut [u32]) {
    for i in 1..tags.len() {
        let mut at = i;
        while at > 0 && tags[at - 1].to_u128() > tags[at].to_u128() {
            tags.swap(at - 1, at);
            elements.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// How tags are sent: their first bits, the prefix, as a bitmap with a one for each tag and a zero for the
/// end of each prefix; then their rests.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Tags.
    pub count: usize,
    /// Bits of the prefix.
    pub prefix_bits: u32,
    /// Bytes of the rest.
    pub rest: usize,
}

impl Format {
    /// Bits of the bitmap.
    pub(super) fn bitmap_bits(self) -> usize {
        self.count + (1 << self.prefix_bits)
    }

    /// How far the rest stands from a tag's end.
    pub(super) fn shift(self) -> u32 {
        128 - self.prefix_bits - 8 * self.rest as u32
    }

    /// The bitmap of `tags` in ascending order.
    pub(super) fn bitmap(self, tags: &[Block]) -> BitVec {
        let at = |i: usize| i + first_bits(tags[i], self.prefix_bits);
        let share = workers::share(tags.len(), TAGS_EACH);
        let parts = (0..tags.len()).step_by(share).map(|first| first..(first + share).min(tags.len()));
        // Words from that of a part's first one to that of its last.
        let words = workers::map(parts, |part| {
            let (first, last) = (at(part.start) / 64, at(part.end - 1) / 64);
            let mut words = vec![0u64; last - first + 1];
            part.map(at).for_each(|at| words[at / 64 - first] |= 1 << (at % 64));
            (first, words)
        });
        let mut all = vec![0u64; self.bitmap_bits().div_ceil(64)];
        for (first, words) in words {
            all[first..].iter_mut().zip(words).for_each(|(all, word)| *all |= word);
        }
        let bytes: Vec<u8> = all.into_iter().flat_map(u64::to_le_bytes).collect();
        BitVec::from_bytes(&bytes, self.bitmap_bits())
    }

    /// Bytes of `tags` rests, with room to write the last one as a whole number.
    pub(super) fn room(self, tags: usize) -> usize {
        tags * self.rest + size_of::<u128>()
    }

    /// The rests of some tags, one behind the other.
    pub(super) fn rests(self, tags: &[Block], message: &mut [u8]) {
        let share = workers::share(tags.len(), TAGS_EACH);
        let parts = tags.chunks(share).zip(message[..tags.len() * self.rest].chunks_mut(share * self.rest));
        workers::each(parts, |(tags, message)| {
            for (i, tag) in tags.iter().enumerate() {
                let (rest, at) = ((tag.to_u128() >> self.shift()).to_le_bytes(), i * self.rest);
                // What is too long is written over by the next.
                match message.get_mut(at..at + rest.len()) {
                    Some(place) => place.copy_from_slice(&rest),
                    None => message[at..][..self.rest].copy_from_slice(&rest[..self.rest]),
                }
            }
        });
    }

    /// Reads tags from a bitmap; `None` where it is no bitmap of as many tags.
    pub(super) fn reader(self, bitmap: &[u8]) -> Option<Reader> {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let mut words: Vec<u64> = bitmap.chunks(8).map(word).collect();
        let bits = self.bitmap_bits();
        // Bits past the end say nothing; the last one ends the last prefix.
        let past = words.len() * 64 - bits;
        *words.last_mut()? &= u64::MAX >> past;
        let ones: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let ends = words[(bits - 1) / 64] >> ((bits - 1) % 64) & 1 == 0;
        if ones != self.count || !ends {
            return None;
        }
        let mut before = 0;
        let count = |group: &[u64]| {
            let first = before;
            before += group.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            first
        };
        let before = words.chunks(GROUP).map(count).collect();
        Some(Reader { format: self, words, before, read: 0, last: 0 })
    }
}

/// The tags of a message, from the first to the last.
pub(super) struct Reader {
    format: Format,
    /// The bitmap.
    words: Vec<u64>,
    /// The ones in front of each [`GROUP`] of words.
    before: Vec<usize>,
    /// Tags read.
    read: usize,
    /// The last of them.
    last: u128,
}

impl Reader {
    /// The next tags from their rests, into `tags`; whether they ascend strictly. Panics when there are not
    /// so many.
    pub(super) fn read(&mut self, message: &[u8], tags: &mut [u128]) -> bool {
        let (share, first) = (workers::share(tags.len(), TAGS_EACH), self.read);
        let parts = tags.chunks_mut(share).enumerate();
        let ascend = workers::map(parts, |(part, tags)| {
            let start = part * share;
            self.part(first + start, &message[start * self.format.rest..], tags)
        });
        let mut ascend = ascend.iter().all(|ascend| *ascend);
        for tags in tags.chunks(share) {
            ascend &= (self.read == 0) | (self.last < tags[0]);
            self.last = tags[tags.len() - 1];
            self.read += tags.len();
        }
        ascend
    }

    /// The same of tags from the one of number `first` on, whatever was read.
    fn part(&self, first: usize, message: &[u8], tags: &mut [u128]) -> bool {
        let Format { prefix_bits, rest: len, .. } = self.format;
        let (shift, unused) = (self.format.shift(), 128 - 8 * len as u32);
        let group = self.before.partition_point(|before| *before <= first) - 1;
        let (mut at, mut behind) = (group * GROUP, first - self.before[group]);
        while self.words[at].count_ones() as usize <= behind {
            behind -= self.words[at].count_ones() as usize;
            at += 1;
        }
        let mut word = self.words[at];
        (0..behind).for_each(|_| word &= word - 1);
        let (mut ascend, mut last) = (true, None);
        for (i, tag) in tags.iter_mut().enumerate() {
            while word == 0 {
                at += 1;
                word = self.words[at];
            }
            let prefix = 64 * at + word.trailing_zeros() as usize - (first + i);
            word &= word - 1;
            let mut rest = [0; size_of::<u128>()];
            rest.copy_from_slice(&message[i * len..][..size_of::<u128>()]);
            // The last bytes are the next tag's.
            let rest = u128::from_le_bytes(rest) << unused >> unused;
            *tag = (prefix as u128) << 1 << (127 - prefix_bits) | rest << shift;
            ascend &= last.is_none_or(|last| last < *tag);
            last = Some(*tag);
        }
        ascend
    }
}

/// Whether two neighbours of tags in ascending order are equal.
pub(super) fn has_twins(tags: &[Block]) -> bool {
    let share = workers::share(tags.len(), TAGS_EACH);
    let parts = (0..tags.len()).step_by(share).map(|first| &tags[first..(first + share + 1).min(tags.len())]);
    workers::map(parts, |tags| tags.windows(2).any(|pair| pair[0] == pair[1])).contains(&true)
}

impl Sorted for Tags {
    type Tag = u128;

    fn count(&self) -> usize {
        self.tags.len()
    }

    #[inline(always)]
    fn tag(&self, at: usize) -> u128 {
        self.tags[at].to_u128()
    }

    #[inline(always)]
    fn element(&self, at: usize) -> u32 {
        self.elements[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    fn sorted(seed: u128, count: usize) -> Vec<Block> {
        let mut prg = Prg::from_seed(Block::new(seed));
        let mut tags: Vec<Block> = (0..count).map(|_| prg.block()).collect();
        tags.sort_by_key(|tag| tag.to_u128());
        tags
    }

    #[test]
    fn tags_come_back_from_their_message() {
        for count in [1usize, 2, 3, 7, 64, 1000, 4096, 3 << 14] {
            let prefix_bits = count.ilog2();
            let rest = (128 - prefix_bits).div_ceil(8) as usize;
            let format = Format { count, prefix_bits: prefix_bits.min(128 - 8 * rest as u32), rest };
            let tags = sorted(count as u128, count);
            let bitmap = format.bitmap(&tags);
            let mut reader = format.reader(bitmap.as_bytes()).unwrap();
            for tags in tags.chunks(if count > 4096 { 20_000 } else { 100 }) {
                let mut message = vec![0; format.room(tags.len())];
                format.rests(tags, &mut message);
                let mut read = vec![0; tags.len()];
                assert!(reader.read(&message, &mut read));
                assert!(read.iter().zip(tags).all(|(read, tag)| *read == tag.to_u128()), "{count}");
            }
            assert!(!has_twins(&tags));
            if count > 1 {
                for twin in [1, count / 2, count - 1] {
                    let mut tags = tags.clone();
                    tags[twin] = tags[twin - 1];
                    assert!(has_twins(&tags), "{count}: {twin}");
                }
            }
            for wrong in [0, bitmap.as_bytes().len() - 1] {
                let mut bytes = bitmap.as_bytes().to_vec();
                bytes[wrong] ^= 1;
                assert!(format.reader(&bytes).is_none(), "{count}: byte {wrong}");
            }
        }
    }
}
