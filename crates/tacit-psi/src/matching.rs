//! Which of a party's tags are among the peer's, found in steps whose number follows from the sizes alone: the
//! peer, which sees when the next message comes, learns nothing from it of what matched.

use crate::room::reserve;
use crate::{Error, Result, work};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tacit_crypto::{Block, Buffer, workers};
use zeroize::Zeroizing;

/// What is compared as a number.
pub(crate) trait Number: Pod + Send + Sync {
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
pub(crate) trait Sorted: Sync {
    /// A tag.
    type Tag: Number;

    /// How many there are, at least one.
    fn count(&self) -> usize;

    /// One of them.
    fn tag(&self, at: usize) -> Self::Tag;

    /// Its element.
    fn element(&self, at: usize) -> u32;
}

/// The place of a match among the peer's tags, and its element.
pub(crate) type Pair = [u32; 2];

/// Matches: the place of each among the peer's tags, and the element.
pub(crate) struct Found {
    /// [`Pair`]s, at least as many as there can be matches, and one.
    pairs: Buffer,
    len: usize,
    /// How many there can be.
    most: usize,
}

/// Zeros, with room for so many pairs.
fn room(pairs: usize) -> Result<Buffer> {
    // What does not fit is an error here.
    drop(reserve::<Pair>(pairs)?);
    Ok(Buffer::zeros(pairs.div_ceil(size_of::<Block>() / size_of::<Pair>())))
}

impl Found {
    /// No place and an element that is there.
    pub(crate) const NONE: Pair = [u32::MAX, 0];

    fn new(most: usize) -> Result<Self> {
        let mut pairs = room(most + 1)?;
        // All of it is touched here, so that a match touches no page that nothing else would have.
        cast_slice_mut(&mut pairs).fill(Self::NONE);
        Ok(Found { pairs, len: 0, most })
    }

    /// Of matches that are known.
    pub(crate) fn of(known: &[Pair]) -> Result<Self> {
        let mut found = Self::new(known.len())?;
        found.all_mut()[..known.len()].copy_from_slice(known);
        Ok(Found { len: known.len(), ..found })
    }

    fn all_mut(&mut self) -> &mut [Pair] {
        cast_slice_mut(&mut self.pairs)
    }

    /// Notes a place and an element, which stay if they are a match.
    #[inline(always)]
    fn note(&mut self, place: usize, element: u32, is_match: bool) {
        // A peer that repeats a tag is refused in the end; until then the last entry takes it all.
        let at = self.len.min(self.most);
        self.all_mut()[at] = [place as u32, element];
        self.len += is_match as usize;
    }

    /// Moves the matches among `pairs`, each where it was found, to the front.
    fn gather(pairs: Buffer, most: usize) -> Self {
        let mut found = Found { pairs, len: 0, most };
        let (pairs, mut len) = (found.all_mut(), 0);
        for at in 0..pairs.len() {
            let pair = pairs[at];
            pairs[len] = pair;
            len += usize::from(pair[0] != Self::NONE[0]);
        }
        // Whoever repeats a tag finds it repeatedly.
        Found { len: len.min(most), ..found }
    }

    /// Puts an element in turn behind the matches: were one and the same marked there, marking would take longer the
    /// fewer match.
    fn finish(mut self, own: &impl Sorted) -> Self {
        let (len, places) = (self.len.min(self.most), self.most + 1);
        let share = workers::share(places, PAIRS_EACH);
        workers::each(self.all_mut()[..places].chunks_mut(share).enumerate(), |(part, pairs)| {
            for (at, pair) in (part * share..).zip(pairs) {
                let keep = Block::mask(at < len).low() as u32;
                let other = own.element(at.min(own.count() - 1));
                *pair = [pair[0] | !keep, pair[1] & keep | other & !keep];
            }
        });
        Found { len, ..self }
    }

    /// The matches, by ascending place. How many there are shows in what is done with them: only what the peer
    /// sees anyway, or what is done after the last message, may use it.
    pub(crate) fn pairs(&self) -> &[Pair] {
        &self.filled()[..self.len]
    }

    /// The same, filled up with entries whose place no tag has to as many as there could be.
    pub(crate) fn filled(&self) -> &[Pair] {
        &cast_slice(&self.pairs)[..self.most + 1]
    }

    /// For each of so many elements whether it matches: 1 or 0.
    pub(crate) fn marks(&self, elements: usize) -> Zeroizing<Vec<u8>> {
        let mut marks = Zeroizing::new(vec![0; elements]);
        for [place, element] in self.filled() {
            marks[*element as usize] |= (*place != Self::NONE[0]) as u8;
        }
        work::done(work::Kind::Marked, self.filled().len());
        marks
    }
}

/// The pair, or none, without a branch.
#[inline(always)]
fn kept([place, element]: Pair, is_match: bool) -> Pair {
    let keep = Block::mask(is_match).low() as u32;
    [place | !keep, element & keep]
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
    held: Option<Buffer>,
    taken: usize,
    count: usize,
}

/// The peer's tags for each own one up to which they are held: beyond that each is looked up as it comes.
pub(crate) const HELD_FOR_EACH: usize = 16;
/// Steps of the walk, and pairs, that are worth a thread.
const STEPS_EACH: usize = 1 << 15;
const PAIRS_EACH: usize = 1 << 16;

impl<'t, S: Sorted> Matching<'t, S> {
    /// For `count` tags of the peer's.
    pub(crate) fn new(own: &'t S, count: usize) -> Result<Self> {
        let most = count.min(own.count());
        let is_held = count / HELD_FOR_EACH <= own.count();
        if !is_held {
            return Ok(Matching { own, found: Found::new(most)?, held: None, taken: 0, count });
        }
        // What does not fit is an error here.
        drop(reserve::<S::Tag>(count)?);
        let held = Some(Buffer::zeros(count * size_of::<S::Tag>() / size_of::<Block>()));
        let found = Found { pairs: Buffer::zeros(0), len: 0, most };
        Ok(Matching { own, found, held, taken: 0, count })
    }

    /// Where the next of the peer's tags, which ascend, are written; then they are [taken](Self::take_written).
    /// `None` where they are [given](Self::take).
    pub(crate) fn place(&mut self, tags: usize) -> Option<&mut [S::Tag]> {
        let held: &mut [S::Tag] = cast_slice_mut(self.held.as_mut()?);
        Some(&mut held[self.taken..][..tags])
    }

    /// Takes so many tags that were written.
    pub(crate) fn take_written(&mut self, tags: usize) {
        self.taken += tags;
        work::done(work::Kind::Held, tags);
    }

    /// The next of the peer's tags, which ascend.
    pub(crate) fn take(&mut self, tags: &[S::Tag]) {
        if let Some(place) = self.place(tags.len()) {
            place.copy_from_slice(tags);
            return self.take_written(tags.len());
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

    /// What matched, once all tags are there. [`Error::Usage`] where tags that are held do not ascend.
    pub(crate) fn finish(mut self) -> Result<Found> {
        if let Some(theirs) = self.held.take() {
            let theirs: &[S::Tag] = cast_slice(&theirs);
            self.found = if theirs.is_empty() { Found::new(0)? } else { self.merge(theirs)? };
        }
        Ok(self.found.finish(self.own))
    }

    /// Walks through both sides' tags: each step goes on by one of either. The walk is cut into parts of as many
    /// steps, whatever matches.
    fn merge(&self, theirs: &[S::Tag]) -> Result<Found> {
        let (own, steps) = (self.own, self.count + self.own.count());
        let share = workers::share(steps, STEPS_EACH);
        let ends = (0..steps.div_ceil(share)).map(|part| ((part + 1) * share).min(steps));
        let mut cuts = vec![[0, 0]];
        cuts.extend(ends.map(|steps| cut(own, theirs, steps)));
        // A place for each of the peer's tags, and one a part for what is written behind the last of them.
        let mut pairs = room(self.count + cuts.len() - 1)?;
        let mut rest: &mut [Pair] = cast_slice_mut(&mut pairs);
        let mut parts = Vec::new();
        for ends in cuts.windows(2) {
            let [from, to] = [ends[0], ends[1]];
            let places = to[0].saturating_sub(from[0]) + 1;
            let Some(pairs) = rest.split_off_mut(..places) else { return Err(UNORDERED) };
            parts.push((from, to, pairs));
        }
        rest.fill(Found::NONE);
        let walked = workers::map(parts, |(from, to, pairs)| {
            let steps = to[0] + to[1] - from[0] - from[1];
            walk(own, theirs, from, steps, pairs) == to
        });
        // Where a walk ended elsewhere, places between it and the next were left out.
        if walked.contains(&false) {
            return Err(UNORDERED);
        }
        work::done(work::Kind::Merged, steps);
        Ok(Found::gather(pairs, self.found.most))
    }
}

/// Of a caller that has not compared neighbours.
const UNORDERED: Error = Error::Usage("tags that are compared do not ascend; sort them");

/// How many of either side's tags a walk has passed after so many steps: it passes the peer's first where two are
/// equal. The search takes as long wherever that is.
fn cut<S: Sorted>(own: &S, theirs: &[S::Tag], steps: usize) -> [usize; 2] {
    let (mut low, mut high) = (steps.saturating_sub(own.count()), steps.min(theirs.len()));
    for _ in 0..usize::BITS - (high - low).leading_zeros() {
        let (goes_on, middle) = (low < high, usize::midpoint(low, high));
        // Where the search has ended any tag is compared.
        let of = middle.min(theirs.len().saturating_sub(1));
        let at = (steps.max(1) - 1 - of.min(steps.max(1) - 1)).min(own.count() - 1);
        let [before, _] = theirs[of].compare(own.tag(at));
        low = if goes_on & before { middle + 1 } else { low };
        high = if goes_on & !before { middle } else { high };
    }
    [low, steps - low]
}

/// Walks `steps` steps on from where so many tags of either side were passed, and writes a pair for each of the
/// peer's that it passes: its match, or none. How many it has passed then.
fn walk<S: Sorted>(
    own: &S,
    theirs: &[S::Tag],
    [first, mut j]: [usize; 2],
    steps: usize,
    pairs: &mut [Pair],
) -> [usize; 2] {
    let (count, last) = (theirs.len(), pairs.len().saturating_sub(1));
    let mut i = first;
    for _ in 0..steps {
        let (here, there) = (j < own.count(), i < count);
        let (at, of) = (j.min(own.count() - 1), i.min(count - 1));
        let [before, equal] = theirs[of].compare(own.tag(at));
        pairs[(i - first).min(last)] = kept([of as u32, own.element(at)], here & there & equal);
        let step = there & (!here | before);
        i += usize::from(step);
        j += usize::from(!step);
    }
    // No tag of this part's.
    if let Some(behind) = pairs.last_mut() {
        *behind = Found::NONE;
    }
    [i, j]
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
            let expected: Vec<Pair> = (0u32..)
                .zip(&peers)
                .filter_map(|(place, tag)| Some([place, (own - 1 - mine.binary_search(tag).ok()?) as u32]))
                .collect();
            assert_eq!(expected.len(), common);
            for piece in [1, 64, 2000] {
                let own = Own(mine.clone());
                let mut matching = Matching::new(&own, theirs).unwrap();
                peers.chunks(piece).for_each(|tags| matching.take(tags));
                let found = matching.finish().unwrap();
                assert_eq!(found.pairs(), expected);
                assert_eq!(found.filled().len(), own.count().min(theirs) + 1);
                let mut elements: Vec<u32> = expected.iter().map(|pair| pair[1]).collect();
                elements.sort_unstable();
                assert_eq!(indices(&found.marks(own.count())), elements);
            }
        }
    }

    /// Large sets, whose walk is cut into parts; so that parts begin and end within runs of either side, and behind
    /// all of the peer's tags.
    #[test]
    fn a_walk_in_parts_finds_the_same() {
        for (own, theirs, common) in [
            (100_000, 70_000, 30_000),
            (70_000, 300_000, 69_999),
            (200_000, 13_000, 13_000),
            (90_000, 90_000, 0),
        ] {
            let mine = drawn(5, own);
            let mut peers: Vec<u128> =
                mine.iter().step_by((own / common.max(1)).max(1)).take(common).copied().collect();
            // All of the rest lie behind the own ones, before them, or anywhere.
            let more = drawn(6, theirs - common);
            peers.extend(more.iter().enumerate().map(|(at, tag)| match at / 1000 % 3 {
                0 => tag | 0xffff << 112,
                1 => tag & (u128::MAX >> 16),
                _ => *tag,
            }));
            peers.sort_unstable();
            let found = [1, 2, 3, 8].map(|threads| {
                workers::limited(threads, || {
                    let own = Own(mine.clone());
                    let mut matching = Matching::new(&own, theirs).unwrap();
                    matching.place(theirs).unwrap().copy_from_slice(&peers);
                    matching.take_written(theirs);
                    matching.finish().unwrap()
                })
            });
            let expected: Vec<Pair> = (0u32..)
                .zip(&peers)
                .filter_map(|(place, tag)| Some([place, (own - 1 - mine.binary_search(tag).ok()?) as u32]))
                .collect();
            for found in found {
                assert_eq!(found.pairs(), expected);
                assert_eq!(found.filled().len(), own.min(theirs) + 1);
                assert!(found.filled()[expected.len()..].iter().all(|pair| pair[0] == Found::NONE[0]));
            }
        }
    }

    /// After any number of steps: what a walk step by step has passed.
    #[test]
    fn a_cut_is_where_the_walk_is() {
        for (own, theirs) in [(1, 1), (1, 9), (9, 1), (20, 33), (64, 64)] {
            let mine = Own(drawn(7, own));
            let mut peers: Vec<u128> = mine.0.iter().step_by(3).take(theirs).copied().collect();
            peers.extend(drawn(8, theirs - peers.len()));
            peers.sort_unstable();
            let (mut i, mut j) = (0, 0);
            for steps in 0..=own + theirs {
                assert_eq!(cut(&mine, &peers, steps), [i, j], "{steps} of {own} and {theirs}");
                let is_theirs = j == own || i < theirs && peers[i] <= mine.0[j];
                (i, j) = if is_theirs { (i + 1, j) } else { (i, j + 1) };
            }
        }
    }

    /// A peer may repeat a tag before it is refused: nothing is written past what there is room for.
    #[test]
    fn repeated_tags_overflow_nothing() {
        let mine = drawn(3, 4);
        for count in [4, 50, 100] {
            let own = Own(mine.clone());
            let mut matching = Matching::new(&own, count).unwrap();
            matching.take(&vec![mine[2]; count]);
            assert!(matching.finish().unwrap().pairs().len() <= 4);
        }
    }

    /// No tags of the peer's, and tags in any order, which callers refuse before: nothing, and an error or pairs of
    /// places and elements that there are.
    #[test]
    fn no_tags_and_tags_in_any_order_are_no_panic() {
        let own = Own(drawn(1, 200_000));
        assert!(Matching::new(&own, 0).unwrap().finish().unwrap().pairs().is_empty());
        assert_eq!(Matching::new(&own, 0).unwrap().finish().unwrap().filled().len(), 1);
        let mut prg = Prg::from_seed(Block::new(9));
        let mut refused = 0;
        for count in [2, 3, 40, 1000, 250_000] {
            let own = Own(if count < 1000 { drawn(1, 5) } else { own.0.clone() });
            let unordered = (0..count).map(|at| match prg.below(3) {
                0 => own.0[prg.below(own.count() as u64) as usize],
                1 => 0,
                _ => prg.block().to_u128() >> (at % 100),
            });
            let unordered: Vec<u128> = unordered.collect();
            let descending: Vec<u128> = drawn(2, count).into_iter().rev().collect();
            for (tags, threads) in
                [&unordered, &descending].into_iter().flat_map(|tags| [(tags, 1), (tags, 5)])
            {
                let mut matching = Matching::new(&own, count).unwrap();
                matching.take(tags);
                match workers::limited(threads, || matching.finish()) {
                    Ok(found) => {
                        assert_eq!(found.filled().len(), own.count().min(count) + 1);
                        let is_there = |[place, element]: &Pair| {
                            (*place as usize) < count && (*element as usize) < own.count()
                        };
                        assert!(found.pairs().iter().all(is_there));
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("do not ascend"), "{error}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 0);
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

    /// All pairs of sets of small numbers, cut everywhere: what one walk finds, two halves find, and parts of a step.
    #[test]
    fn a_walk_may_be_cut_anywhere() {
        let of =
            |bits: u32| -> Vec<u128> { (0..6u32).filter(|i| bits >> i & 1 == 1).map(u128::from).collect() };
        for (mine, peers) in (1..64).flat_map(|mine| (1..64).map(move |peers| (of(mine), of(peers)))) {
            let (own, steps) = (Own(mine), peers.len());
            let steps = steps + own.count();
            let expected: Vec<Pair> = (0u32..)
                .zip(&peers)
                .filter_map(|(place, tag)| Some([place, own.element(own.0.binary_search(tag).ok()?)]))
                .collect();
            for share in 1..=steps {
                let mut found = Vec::new();
                for first in (0..steps).step_by(share) {
                    let part = share.min(steps - first);
                    let [from, to] = [first, first + part].map(|steps| cut(&own, &peers, steps));
                    // What is there already must not stay.
                    let mut pairs = vec![[7, 7]; to[0] - from[0] + 1];
                    assert_eq!(walk(&own, &peers, from, part, &mut pairs), to);
                    found.extend(pairs.into_iter().filter(|pair| pair[0] != Found::NONE[0]));
                }
                assert_eq!(found, expected, "{:?} and {peers:?} by {share}", own.0);
            }
        }
    }

    /// Elements are marked at places that lie as far apart whatever matches: one place for all that does not match would
    /// be marked in two thirds more time, which tells how many do.
    #[test]
    fn what_does_not_match_marks_no_single_place() {
        for (own, theirs) in [(3000, 3000), (3000, 100), (100, 900), (20, 5000)] {
            let own = Own(drawn(1, own));
            let mut matching = Matching::new(&own, theirs).unwrap();
            matching.take(&drawn(2, theirs));
            let found = matching.finish().unwrap();
            assert!(found.pairs().is_empty());
            let elements: std::collections::BTreeSet<u32> =
                found.filled().iter().map(|pair| pair[1]).collect();
            assert!(
                elements.len() > found.filled().len() / 3,
                "{} of {}",
                elements.len(),
                found.filled().len()
            );
        }
    }
}
