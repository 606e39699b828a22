//! Which of a party's tags are among the peer's, found in steps whose number follows from the sizes alone: the
//! peer, which sees when the next message comes, learns nothing from it of what matched.

use crate::room::reserve;
use crate::{Result, work};
use tacit_crypto::Block;
use zeroize::Zeroizing;

/// What is compared as a number.
pub(crate) trait Number: Copy {
    /// Whether this is at most `other`, and whether it is equal, without a branch.
    fn compare(self, other: Self) -> [bool; 2];
}

impl Number for u128 {
    #[inline(always)]
    fn compare(self, other: Self) -> [bool; 2] {
        [self <= other, self == other]
    }
}

/// 256 bits, the higher half first.
impl Number for [u128; 2] {
    #[inline(always)]
    fn compare(self, other: Self) -> [bool; 2] {
        let [[high, low], [others, other]] = [self, other];
        let equal = high == others;
        [(high < others) | (equal & (low <= other)), equal & (low == other)]
    }
}

/// A party's tags in ascending order, each with its element.
pub(crate) trait Sorted {
    /// A tag.
    type Tag: Number;

    /// How many there are, at least one.
    fn count(&self) -> usize;

    /// One of them.
    fn tag(&self, at: usize) -> Self::Tag;

    /// Its element.
    fn element(&self, at: usize) -> u32;
}

/// Matches: the place of each among the peer's tags, and the element.
pub(crate) struct Found {
    /// Room for as many as there can be, and one: what lies beyond the matches is [`Found::NONE`].
    pairs: Zeroizing<Vec<(u32, u32)>>,
    len: usize,
}

impl Found {
    /// No place and an element that is there.
    pub(crate) const NONE: (u32, u32) = (u32::MAX, 0);

    fn new(most: usize) -> Result<Self> {
        let mut pairs = reserve(most + 1)?;
        // All of it is touched here, so that a match touches no page that nothing else would have.
        pairs.resize(most + 1, Self::NONE);
        Ok(Found { pairs: Zeroizing::new(pairs), len: 0 })
    }

    /// Of matches that are known.
    pub(crate) fn of(mut pairs: Vec<(u32, u32)>) -> Self {
        let len = pairs.len();
        pairs.push(Self::NONE);
        Found { pairs: Zeroizing::new(pairs), len }
    }

    /// Notes a place and an element, which stay if they are a match.
    #[inline(always)]
    fn note(&mut self, place: usize, element: u32, is_match: bool) {
        // A peer that repeats a tag is refused in the end; until then the last entry takes it all.
        let at = self.len.min(self.pairs.len() - 1);
        self.pairs[at] = (place as u32, element);
        self.len += is_match as usize;
    }

    fn finish(mut self) -> Self {
        let most = self.pairs.len() - 1;
        self.len = self.len.min(most);
        let len = self.len;
        for (at, pair) in self.pairs.iter_mut().enumerate() {
            let keep = Block::mask(at < len).low() as u32;
            *pair = (pair.0 | !keep, pair.1 & keep);
        }
        self
    }

    /// The matches, by ascending place. How many there are shows in what is done with them: only what the peer
    /// sees anyway, or what is done after the last message, may use it.
    pub(crate) fn pairs(&self) -> &[(u32, u32)] {
        &self.pairs[..self.len]
    }

    /// The same, filled up with entries whose place no tag has to as many as there could be.
    pub(crate) fn filled(&self) -> &[(u32, u32)] {
        &self.pairs
    }

    /// For each of so many elements whether it matches: 1 or 0.
    pub(crate) fn marks(&self, elements: usize) -> Zeroizing<Vec<u8>> {
        let mut marks = Zeroizing::new(vec![0; elements]);
        for (place, element) in self.pairs.iter() {
            marks[*element as usize] |= (*place != Self::NONE.0) as u8;
        }
        work::done(work::Kind::Marked, self.pairs.len());
        marks
    }
}

/// The indices that are marked, ascending.
pub(crate) fn indices(marks: &[u8]) -> Vec<u32> {
    let mut indices = vec![u32::MAX; marks.len() + 1];
    let mut len = 0;
    for (index, mark) in (0u32..).zip(marks) {
        indices[len] = index;
        len += usize::from(*mark);
    }
    work::done(work::Kind::Listed, marks.len());
    indices.truncate(len);
    indices
}

/// The peer's tags as they come, and what matches among them.
pub(crate) struct Matching<'t, S: Sorted> {
    own: &'t S,
    found: Found,
    /// The peer's tags, where there are few enough of them to be walked through beside the own ones.
    held: Option<Vec<S::Tag>>,
    taken: usize,
}

/// The peer's tags for each own one up to which they are held: beyond that each is looked up as it comes.
pub(crate) const HELD_FOR_EACH: usize = 16;

impl<'t, S: Sorted> Matching<'t, S> {
    /// For `count` tags of the peer's.
    pub(crate) fn new(own: &'t S, count: usize) -> Result<Self> {
        let held = (count / HELD_FOR_EACH <= own.count()).then(|| reserve(count)).transpose()?;
        Ok(Matching { own, found: Found::new(count.min(own.count()))?, held, taken: 0 })
    }

    /// The next of the peer's tags, which ascend.
    pub(crate) fn take(&mut self, tags: &[S::Tag]) {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(tags);
            work::done(work::Kind::Held, tags.len());
            return;
        }
        let mut steps = 0;
        for (place, tag) in (self.taken..).zip(tags) {
            // The last own tag that is not larger, in as many steps whatever it is.
            let (mut at, mut size) = (0, self.own.count());
            while size > 1 {
                let half = size / 2;
                let [before, _] = self.own.tag(at + half).compare(*tag);
                at += half * usize::from(before);
                size -= half;
                steps += 1;
            }
            let [_, equal] = self.own.tag(at).compare(*tag);
            self.found.note(place, self.own.element(at), equal);
        }
        self.taken += tags.len();
        work::done(work::Kind::LookedUp, steps);
    }

    /// What matched, once all tags are there.
    pub(crate) fn finish(mut self) -> Found {
        if let Some(theirs) = self.held.take() {
            self.merge(&theirs);
        }
        self.found.finish()
    }

    /// Walks through both sides' tags: each step goes on by one of either.
    fn merge(&mut self, theirs: &[S::Tag]) {
        let (count, own) = (theirs.len(), self.own.count());
        if count == 0 {
            return;
        }
        let (mut i, mut j) = (0, 0);
        for _ in 0..count + own {
            let (here, there) = (j < own, i < count);
            let (at, of) = (j - usize::from(!here), i - usize::from(!there));
            let [before, equal] = theirs[of].compare(self.own.tag(at));
            self.found.note(of, self.own.element(at), here & there & equal);
            let step = there & (!here | before);
            i += usize::from(step);
            j += usize::from(!step);
        }
        work::done(work::Kind::Merged, count + own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::{Block, Prg};

    struct Own(Vec<u128>);

    impl Sorted for Own {
        type Tag = u128;
        fn count(&self) -> usize {
            self.0.len()
        }
        fn tag(&self, at: usize) -> u128 {
            self.0[at]
        }
        fn element(&self, at: usize) -> u32 {
            self.0.len() as u32 - 1 - at as u32
        }
    }

    fn drawn(seed: u128, count: usize) -> Vec<u128> {
        let mut prg = Prg::from_seed(Block::new(seed));
        let mut tags: Vec<u128> = (0..count).map(|_| prg.block().to_u128()).collect();
        tags.sort_unstable();
        tags
    }

    #[test]
    fn what_is_found_is_what_a_search_finds() {
        // Few of the peer's tags are walked through, many looked up.
        for (own, theirs, common) in [
            (1, 1, 0),
            (1, 1, 1),
            (1, 40, 1),
            (7, 500, 7),
            (7, 500, 0),
            (500, 700, 233),
            (700, 3, 2),
            (64, 64, 64),
        ] {
            let mine = drawn(1, own);
            let mut peers: Vec<u128> =
                mine.iter().step_by((own / common.max(1)).max(1)).take(common).copied().collect();
            peers.extend(drawn(2, theirs - common));
            peers.sort_unstable();
            let expected: Vec<(u32, u32)> = (0u32..)
                .zip(&peers)
                .filter_map(|(place, tag)| Some((place, (own - 1 - mine.binary_search(tag).ok()?) as u32)))
                .collect();
            assert_eq!(expected.len(), common);
            for piece in [1, 64, 2000] {
                let own = Own(mine.clone());
                let mut matching = Matching::new(&own, theirs).unwrap();
                peers.chunks(piece).for_each(|tags| matching.take(tags));
                let found = matching.finish();
                assert_eq!(found.pairs(), expected);
                assert_eq!(found.filled().len(), own.count().min(theirs) + 1);
                let mut elements: Vec<u32> = expected.iter().map(|pair| pair.1).collect();
                elements.sort_unstable();
                assert_eq!(indices(&found.marks(own.count())), elements);
            }
        }
    }

    /// A peer may repeat a tag before it is refused: nothing is written past what there is room for.
    #[test]
    fn repeated_tags_overflow_nothing() {
        let mine = drawn(3, 4);
        for count in [4, 100] {
            let own = Own(mine.clone());
            let mut matching = Matching::new(&own, count).unwrap();
            matching.take(&vec![mine[2]; count]);
            assert!(matching.finish().pairs().len() <= 4);
        }
    }

    #[test]
    fn wide_numbers_compare_as_their_digits_do() {
        let values = [[0, 0], [0, 5], [1, 0], [1, 5], [u128::MAX, 1]];
        for (i, a) in values.into_iter().enumerate() {
            for (j, b) in values.into_iter().enumerate() {
                assert_eq!(a.compare(b), [i <= j, i == j]);
            }
        }
    }
}
