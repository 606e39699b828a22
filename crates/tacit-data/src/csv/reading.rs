//! The keys of a CSV file, and its rows once more: one after another, or in pieces where there are workers.

use super::rows::{Place, Rows, Written};
use super::{EmptyKeys, Source, pieces};
use crate::batch::{Batch, NO_ELEMENT};
use crate::fault::{Error, Result};
use crate::keys::{LOOKED_AT, Tally};
use crate::records::{Element, KeyHasher, KeySet, Shown};
use tacit_crypto::Wiped;

/// Takes the elements of some rows, in order; nothing where a row has no key.
pub(super) type Visit<'v, E> = dyn FnMut(&[Option<Element>]) -> std::result::Result<(), E> + 'v;

impl Source {
    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read.
    pub fn read_keys(&self, progress: impl FnMut(u64)) -> Result<KeySet> {
        let mut keys = KeySet::listed(self.listing());
        let tally = self.each_key(progress, |elements| {
            let read = pieces::behind_workers(self.input.done()).max(1);
            let rows = u128::from(keys.rows()) * u128::from(self.bytes()) / u128::from(read);
            keys.expect(u64::try_from(rows).unwrap_or(u64::MAX));
            keys.push_all(elements).map_err(|full| Error::full(self.path(), full))
        })?;
        keys.set_tally(tally);
        keys.set_file(self.input.last_read());
        Ok(keys)
    }

    /// Tells the elements of all rows to `visit`, some rows at a time and in order, nothing where there is no key.
    pub(crate) fn each_key<E: From<Error>>(
        &self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(&[Option<Element>]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Tally, E> {
        let (mut rows, hasher) = (self.data()?, KeyHasher::of(&self.spec));
        // A piece knows nothing of what is kept of the first rows.
        let is_plain = self.spec.shown == Shown::default();
        let mut tally;
        if !(is_plain && pieces::is_worth(self.bytes(), &self.options)) {
            tally = self.each_in_turn(&mut rows, u64::MAX, hasher, &mut progress, &mut visit)?;
        } else {
            tally = self.each_in_turn(&mut rows, LOOKED_AT, hasher, &mut progress, &mut visit)?;
            let read = |rows: &mut Rows<'_>| self.elements(rows).ok().flatten();
            let mut take = |(elements, of_piece): (Elements, Tally), _: &[u8]| {
                progress(self.input.done());
                tally.absorb(of_piece);
                elements.iter().try_for_each(|elements| visit(elements))
            };
            rows = self.in_pieces(rows, &read, &mut take)?;
            let hasher = KeyHasher::of(&self.spec).behind_first();
            let behind = self.each_in_turn(&mut rows, u64::MAX, hasher, &mut progress, &mut visit)?;
            tally.absorb(behind);
        }
        tally.longest = rows.longest();
        progress(self.bytes());
        Ok(tally)
    }

    /// The same of the next `most` rows, without pieces.
    fn each_in_turn<E: From<Error>>(
        &self,
        rows: &mut Rows<'_>,
        most: u64,
        hasher: KeyHasher,
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_, E>,
    ) -> std::result::Result<Tally, E> {
        let mut batch = Batch::of(hasher);
        let mut read = 0;
        progress(self.input.done());
        while read < most && rows.next()? {
            read += 1;
            let has_key = batch.add(self.key_columns.iter().map(|&column| rows.field(column)));
            if !has_key && self.options.empty_keys == EmptyKeys::Refuse {
                let (path, line) = (self.path().to_owned(), rows.line());
                return Err(Error::EmptyKey { path, line }.into());
            }
            if batch.is_full() {
                progress(self.input.done());
                batch.hash(&mut *visit)?;
            }
        }
        batch.hash(visit)?;
        Ok(batch.into_tally())
    }

    /// The elements of all rows, which stand behind the first ones; `None` where one has no key and must have one.
    fn elements(&self, rows: &mut Rows<'_>) -> Result<Option<(Elements, Tally)>> {
        let mut elements = Elements::new();
        let mut batch = Batch::of(KeyHasher::of(&self.spec).behind_first());
        while rows.next()? {
            let has_key = batch.add(self.key_columns.iter().map(|&column| rows.field(column)));
            if !has_key && self.options.empty_keys == EmptyKeys::Refuse {
                return Ok(None);
            }
            if batch.is_full() {
                batch.hash(|hashed| elements.push(Wiped::new(hashed.to_vec(), Some(NO_ELEMENT))));
            }
        }
        batch.hash(|hashed| elements.push(Wiped::new(hashed.to_vec(), Some(NO_ELEMENT))));
        Ok(Some((elements, batch.into_tally())))
    }

    /// Hands the rows that `wanted` says of their numbers to `visit`, as they are written.
    pub(super) fn each_written(
        &self,
        mut wanted: impl FnMut(u64) -> Result<bool>,
        mut visit: impl FnMut(Written<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut number, mut rows) = (0, self.data()?);
        let mut each = |row: Written<'_>| {
            number += 1;
            if wanted(number - 1)? { visit(row) } else { Ok(()) }
        };
        if pieces::is_worth(self.bytes(), &self.options) {
            let read = |rows: &mut Rows<'_>| {
                rows.take_as_written();
                let mut places = Vec::new();
                while rows.next().ok()? {
                    places.push(rows.place());
                }
                Some(places)
            };
            let mut take =
                |places: Vec<Place>, bytes: &[u8]| places.iter().try_for_each(|place| each(place.of(bytes)));
            rows = self.in_pieces(rows, &read, &mut take)?;
        }
        rows.take_as_written();
        while rows.next()? {
            each(rows.written())?;
        }
        Ok(())
    }
}

/// The elements of some rows, some at a time: a list that grew would leave copies behind that nobody wipes.
type Elements = Vec<Wiped<Option<Element>>>;
