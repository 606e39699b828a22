//! The distinct keys of a table, and which row has which.

use crate::distinct::Distinct;
use crate::keys::Tally;
use crate::machine::available_memory;
use crate::records::{Element, KeySpec};
use std::collections::HashSet;
use zeroize::Zeroize;

const NONE: u32 = u32::MAX;

/// Why a [`KeySet`] takes no more rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Full {
    /// There are more than it counts.
    #[error("too many rows: at most {NONE} are supported")]
    Rows,
    /// The keys of more do not fit in this machine's memory.
    #[error("the keys of more than {rows} rows do not fit in memory; use a smaller table, or free memory")]
    Memory {
        /// Rows that it has.
        rows: u64,
    },
}

/// How the elements of rows are listed, one row behind the other.
///
/// Where every identifier is one element, a row has as many entries as there are identifiers, and nothing where it does
/// not have one. Where an identifier may be several elements, its variants, these are followed by an entry that is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing {
    identifiers: usize,
    has_variants: bool,
}

impl Listing {
    /// As rows with this key are listed.
    pub fn of(spec: &KeySpec) -> Self {
        Listing { identifiers: spec.identifiers(), has_variants: spec.has_variants() }
    }

    /// Of rows with so many identifiers of one element each.
    pub fn plain(identifiers: usize) -> Self {
        Listing { identifiers: identifiers.max(1), has_variants: false }
    }

    /// How many identifiers a row may have.
    pub fn identifiers(self) -> usize {
        self.identifiers
    }

    /// The rows in a list of whole rows.
    pub fn rows<T>(self, entries: &[Option<T>]) -> impl Iterator<Item = &[Option<T>]> {
        let mut rest = entries;
        std::iter::from_fn(move || {
            let end = match self.has_variants {
                false => self.identifiers.min(rest.len()),
                true => {
                    let mut ends = rest.iter().enumerate().filter(|(_, entry)| entry.is_none());
                    ends.nth(self.identifiers - 1).map_or(rest.len(), |(at, _)| at + 1)
                }
            };
            let (row, more) = rest.split_at(end);
            rest = more;
            (!row.is_empty()).then_some(row)
        })
    }

    /// What a row has, with the number of its identifier.
    pub fn identified<T: Copy>(
        self,
        row: impl Iterator<Item = Option<T>>,
    ) -> impl Iterator<Item = (usize, T)> {
        let mut identifier = 0;
        row.filter_map(move |entry| {
            let found = entry.map(|entry| (identifier, entry));
            identifier += usize::from(!self.has_variants || entry.is_none());
            found
        })
    }
}

/// The distinct keys of a table, and which row has which.
///
/// Of several identifiers each counts as a key, and so does each variant of one; each row has entries as its [`Listing`]
/// says.
///
/// Costs 32 bytes a distinct key, 4 bytes an entry, 4 bytes a row that may have variants, and for the index 11 bytes a
/// distinct key where the number of rows is known ahead, up to twice as many where it is not.
pub struct KeySet {
    distinct: Distinct,
    listing: Listing,
    /// Of all rows.
    entries: Vec<u32>,
    /// Where the entries of each row end, where rows have different numbers.
    ends: Vec<u32>,
    /// Of each identifier.
    counts: Vec<Counts>,
    /// Elements of all rows, those that repeat counted again.
    in_all: u64,
    /// The identifier of the next entry, whether the row has one before, and whether it has this one.
    next: (usize, bool, bool),
    without_key: u64,
    tally: Tally,
    /// Entries that there will be, about.
    expected: u64,
    /// What the file that the rows were read from held.
    file: Option<[u8; 32]>,
    available: Available,
}

/// What a table has of an identifier.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Rows that have it.
    pub rows: u64,
    /// Its distinct values.
    pub distinct: u64,
}

/// How alike the values of an identifier are in one's own table.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Likeness {
    /// Variants of all rows.
    pub variants: u64,
    /// The most of one row.
    pub most_variants: u64,
    /// Rows with different variants; of rows with the same ones, one.
    pub distinct: u64,
    /// How many of these have a variant in common with another of them.
    pub shared: u64,
}

/// How many rows with different variants have one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    None,
    One,
    Several,
}

/// An identifier of a row by which it matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Which identifier, from 0.
    pub identifier: usize,
    /// Its element, as an index into [`KeySet::elements`].
    pub element: usize,
}

impl Default for KeySet {
    fn default() -> Self {
        KeySet {
            distinct: Distinct::default(),
            listing: Listing::plain(1),
            entries: Vec::new(),
            ends: Vec::new(),
            counts: vec![Counts::default()],
            in_all: 0,
            next: (0, false, false),
            without_key: 0,
            tally: Tally::default(),
            expected: 0,
            file: None,
            available: available_memory,
        }
    }
}

impl KeySet {
    /// No rows, which have one key each.
    pub fn new() -> Self {
        Self::default()
    }

    /// No rows, which have so many identifiers of one element each.
    pub fn of(identifiers: usize) -> Self {
        Self::listed(Listing::plain(identifiers))
    }

    /// No rows, which are listed so.
    pub fn listed(listing: Listing) -> Self {
        KeySet { counts: vec![Counts::default(); listing.identifiers], listing, ..Self::default() }
    }

    /// How rows are listed.
    pub fn listing(&self) -> Listing {
        self.listing
    }

    /// How many identifiers a row may have.
    pub fn identifiers(&self) -> usize {
        self.counts.len()
    }

    /// How many rows have each identifier, and how many distinct values of it, or variants.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// For each element whether its index is in `matches`.
    pub(crate) fn wanted(&self, matches: &[u32]) -> Vec<bool> {
        let mut wanted = vec![false; self.elements().len()];
        for at in matches {
            if let Some(flag) = wanted.get_mut(*at as usize) {
                *flag = true;
            }
        }
        wanted
    }

    /// What a second reading of the same rows is held against.
    pub(crate) fn again(&self) -> Again<'_> {
        Again { keys: self, rows: 0 }
    }

    /// The keys of rows whose elements are given, in order.
    pub fn from_elements(elements: impl IntoIterator<Item = Option<Element>>) -> Result<Self, Full> {
        let mut set = Self::new();
        for element in elements {
            set.push(element)?;
        }
        Ok(set)
    }

    /// Adds the next entry of a row, of one key the next row; `None` is a row without a key.
    pub fn push(&mut self, element: Option<Element>) -> Result<(), Full> {
        if self.entries.len() >= NONE as usize {
            return Err(Full::Rows);
        }
        self.make_room(1)?;
        let of = [self.entries.len() as u64, self.expected];
        let known = self.elements().len() as u32;
        let number = element.map(|element| self.distinct.number_one(&element, of));
        self.entries.push(number.unwrap_or(NONE));
        self.count(self.entries.len() - 1, known);
        Ok(())
    }

    /// Adds the next entries, as [`push`](Self::push) does: the more at once, the faster.
    pub fn push_all(&mut self, elements: &[Option<Element>]) -> Result<(), Full> {
        if elements.len() > NONE as usize - self.entries.len() {
            return Err(Full::Rows);
        }
        self.make_room(elements.len())?;
        let (seen, known) = (self.entries.len(), self.elements().len() as u32);
        let KeySet { distinct, entries, expected, .. } = self;
        distinct.number(elements, [seen as u64, *expected], |number| entries.push(number.unwrap_or(NONE)));
        self.count(seen, known);
        Ok(())
    }

    /// Counts the entries from `first` on, before which there were `known` distinct elements.
    fn count(&mut self, first: usize, mut known: u32) {
        let Listing { identifiers, has_variants } = self.listing;
        let (mut identifier, mut has_any, mut has_this) = self.next;
        for (at, number) in (first..).zip(&self.entries[first..]) {
            // New elements get the next numbers; no number is as large as the one for none.
            let (is_there, is_new) = (*number != NONE, *number == known);
            known += u32::from(is_new);
            self.in_all += u64::from(is_there);
            self.counts[identifier].distinct += u64::from(is_new);
            has_this |= is_there;
            if has_variants && is_there {
                continue;
            }
            self.counts[identifier].rows += u64::from(has_this);
            has_any |= std::mem::take(&mut has_this);
            identifier += 1;
            if identifier == identifiers {
                identifier = 0;
                self.without_key += u64::from(!std::mem::take(&mut has_any));
                if has_variants {
                    self.ends.push(at as u32 + 1);
                }
            }
        }
        self.next = (identifier, has_any, has_this);
    }

    /// So many rows will come, about: room is made for them at once.
    pub(crate) fn expect(&mut self, rows: u64) {
        let (entries, read) = (self.entries.len() as u64, self.rows());
        self.expected = match self.listing.has_variants {
            false => rows.saturating_mul(self.identifiers() as u64),
            true => rows.saturating_mul(entries) / read.max(1),
        };
    }

    /// The rows were read from a file that held this, by the digest of one reading; see
    /// [`Input::last_read`](crate::input::Input::last_read).
    pub(crate) fn set_file(&mut self, file: Option<[u8; 32]>) {
        self.file = file;
    }

    /// What the file that the rows were read from held, if that is known.
    pub(crate) fn file(&self) -> Option<[u8; 32]> {
        self.file
    }

    /// The distinct elements, in the order of their first rows: what goes into the intersection.
    pub fn elements(&self) -> &[Element] {
        self.distinct.digests()
    }

    /// Rows read.
    pub fn rows(&self) -> u64 {
        match self.listing.has_variants {
            false => (self.entries.len() / self.identifiers()) as u64,
            true => self.ends.len() as u64,
        }
    }

    /// Keeps what the hasher of its rows refused.
    pub fn set_tally(&mut self, tally: Tally) {
        self.tally = tally;
    }

    /// Which rows have no key, by part and reason, as far as [`set_tally`](Self::set_tally) told.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Rows without a key, because a part of it is empty or refused; of several identifiers, rows that have none.
    pub fn rows_without_key(&self) -> u64 {
        self.without_key
    }

    /// Rows whose key an earlier row has already; of several identifiers or variants, how often a row has one
    /// that an earlier row has.
    pub fn duplicate_rows(&self) -> u64 {
        self.in_all - self.elements().len() as u64
    }

    /// The most rows that a result with all rows of each key shows: of several identifiers or variants a row comes once
    /// for each that it has.
    pub fn rows_at_most(&self) -> u64 {
        self.in_all.max(self.rows())
    }

    /// The element of row `row`, as an index into [`elements`](Self::elements); of several identifiers that of the
    /// first.
    pub fn element_of(&self, row: u64) -> Option<usize> {
        self.entries_of(row)?.first().filter(|element| **element != NONE).map(|element| *element as usize)
    }

    /// The entries of row `row`, as its [`Listing`] has them; none of a row that is not there.
    pub fn elements_of(&self, row: u64) -> impl Iterator<Item = Option<usize>> {
        let entries = self.entries_of(row).unwrap_or(&[]);
        entries.iter().map(|element| (*element != NONE).then_some(*element as usize))
    }

    /// The elements of row `row` with their identifiers, in their order.
    fn identified(&self, row: u64) -> impl Iterator<Item = Found> {
        let found = self.listing.identified(self.elements_of(row));
        found.map(|(identifier, element)| Found { identifier, element })
    }

    /// The first identifier of row `row` of whose element `is_match` says yes: what the row matches by.
    pub fn first_of(&self, row: u64, is_match: impl Fn(usize) -> bool) -> Option<Found> {
        self.identified(row).find(|found| is_match(found.element))
    }

    /// How many rows with different values of an identifier there are, and how similar they are.
    pub fn likeness(&self, identifier: usize) -> Likeness {
        let own = |row| self.identified(row).filter(|found| found.identifier == identifier);
        let (mut likeness, mut kinds) = (Likeness::default(), HashSet::new());
        // Whether one kind of row has an element, or several.
        let mut of_element = vec![Of::None; self.elements().len()];
        let mut first_rows = Vec::new();
        for row in 0..self.rows() {
            let (mut kind, mut variants) = (blake3::Hasher::new(), 0);
            for found in own(row) {
                kind.update(&found.element.to_le_bytes());
                variants += 1;
            }
            likeness.variants += variants;
            likeness.most_variants = likeness.most_variants.max(variants);
            if variants == 0 || !kinds.insert(kind.finalize()) {
                continue;
            }
            first_rows.push(row);
            for found in own(row) {
                let of = &mut of_element[found.element];
                *of = if *of == Of::None { Of::One } else { Of::Several };
            }
        }
        let is_shared = |row: &u64| own(*row).any(|found| of_element[found.element] == Of::Several);
        likeness.distinct = first_rows.len() as u64;
        likeness.shared = first_rows.iter().filter(|row| is_shared(row)).count() as u64;
        likeness
    }

    /// What came of a result with these `matches`, indices into [`elements`](Self::elements), for each identifier: its
    /// distinct values among them, and the rows that match by it.
    pub fn matched(&self, matches: &[u32]) -> Vec<Counts> {
        let mut matched = vec![Counts::default(); self.identifiers()];
        let (mut wanted, mut counted) = (self.wanted(matches), self.wanted(&[]));
        for row in 0..self.rows() {
            if let Some(Found { identifier, .. }) = self.first_of(row, |at| wanted[at]) {
                matched[identifier].rows += 1;
            }
            for Found { identifier, element } in self.identified(row) {
                if wanted[element] && !counted[element] {
                    counted[element] = true;
                    matched[identifier].distinct += 1;
                }
            }
        }
        wanted.zeroize();
        counted.zeroize();
        matched
    }

    fn entries_of(&self, row: u64) -> Option<&[u32]> {
        let (row, width) = (usize::try_from(row).ok()?, self.identifiers());
        if self.listing.has_variants {
            let start = if row == 0 { 0 } else { *self.ends.get(row - 1)? };
            return self.entries.get(start as usize..*self.ends.get(row)? as usize);
        }
        let start = row.checked_mul(width)?;
        self.entries.get(start..start.checked_add(width)?)
    }

    /// Makes room for `more` rows and elements. A process that the system refuses memory ends, so that what is
    /// needed is asked for before it is.
    fn make_room(&mut self, more: usize) -> Result<(), Full> {
        let (full, available) = (Full::Memory { rows: self.rows() }, self.available);
        while self.entries.capacity() - self.entries.len() < more {
            room(&mut self.entries, available).ok_or(full)?;
        }
        while self.listing.has_variants && self.ends.capacity() - self.ends.len() < more {
            room(&mut self.ends, available).ok_or(full)?;
        }
        let seen = self.entries.len() as u64;
        let Some(rooms) = self.distinct.rooms(more, [seen, self.expected]) else { return Ok(()) };
        // Where there is no room for all that is expected there may be for what is there, and a little.
        for room in rooms {
            if has(available, Distinct::bytes(room)) {
                self.distinct.grow(room);
                return Ok(());
            }
        }
        Err(full)
    }
}

/// What this machine has to give.
type Available = fn() -> Option<u64>;

/// Memory that is taken without asking whether it is there.
const UNASKED: usize = 16 << 20;

/// Whether so many bytes can be had.
fn has(available: Available, bytes: usize) -> bool {
    // A limit of the process shows when the system is asked; what it gives is given back at once.
    let gives = || Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    bytes < UNASKED || available().is_none_or(|available| bytes as u64 <= available) && gives()
}

/// Makes room for as many again, or for as many as memory allows; nothing where that is hardly any.
fn room<T>(all: &mut Vec<T>, available: Available) -> Option<()> {
    let fits = |more: &usize| has(available, more * size_of::<T>());
    let steps = [1, 4, 16].map(|part| all.capacity().max(1024) / part);
    let free = all.capacity() - all.len();
    steps.into_iter().filter(fits).find_map(|more| all.try_reserve_exact(free + more).ok())
}

/// A second reading of rows whose keys are known.
pub(crate) struct Again<'k> {
    keys: &'k KeySet,
    rows: u64,
}

/// Rows that are not those which were read before.
#[derive(Debug)]
pub(crate) struct Differs;

impl Again<'_> {
    /// The number of the next row, whose elements must be these.
    pub(crate) fn row(&mut self, elements: &[Option<Element>]) -> Result<u64, Differs> {
        let known = self.keys.elements_of(self.rows).map(|at| at.map(|at| &self.keys.elements()[at]));
        if self.rows >= self.keys.rows() || !known.eq(elements.iter().map(Option::as_ref)) {
            return Err(Differs);
        }
        self.rows += 1;
        Ok(self.rows - 1)
    }

    /// Whether all rows were there.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows == self.keys.rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where memory ends, rows are refused before the process is: what is there is used up to a sixteenth.
    #[test]
    fn keys_that_do_not_fit_in_memory_are_refused_in_time() {
        let element = |at: u64| {
            let mut element = [0; 32];
            element[..8].copy_from_slice(&at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
            Some(element)
        };
        let fill = |available: Available, most: u64| {
            let mut keys = KeySet { available, ..KeySet::default() };
            (0..most).find_map(|at| keys.push(element(at)).err().map(|full| (full, keys.rows())))
        };
        let (full, rows) = fill(|| Some(0), 1 << 21).unwrap();
        assert_eq!(full, Full::Memory { rows });
        assert!((1 << 18..1 << 21).contains(&rows), "{rows}");
        assert_eq!(fill(|| None, 1 << 21), None);
        assert_eq!(fill(|| Some(1 << 40), 1 << 21), None);
        let said = full.to_string();
        assert!(said.contains("memory") && said.lines().count() == 1, "{said}");
    }

    /// More rows at once than are free: room is made until they fit.
    #[test]
    fn many_rows_at_once_find_room() {
        let elements: Vec<_> =
            (0..5000u32).map(|at| Some([at.to_le_bytes(); 8].as_flattened().try_into().unwrap())).collect();
        let mut keys = KeySet::default();
        for count in [1100, 5000] {
            keys.push_all(&elements[..count]).unwrap();
        }
        assert_eq!((keys.rows(), keys.elements().len()), (6100, 5000));
    }
}
