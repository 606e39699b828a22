//! The keys of a CSV file, row after row.

use super::{EmptyKeys, Source};
use crate::batch::Batch;
use crate::fault::{Error, Result};
use crate::keys::Tally;
use crate::records::{Element, KeyHasher, KeySet};

impl Source {
    /// Reads all keys. `progress` is told now and then how many of the file's bytes have been read.
    pub fn read_keys(&self, progress: impl FnMut(u64)) -> Result<KeySet> {
        let mut keys = KeySet::new();
        let tally = self.each_key(progress, |elements| {
            let read = self.input.done().max(1);
            let rows = u128::from(keys.rows()) * u128::from(self.bytes()) / u128::from(read);
            keys.expect(u64::try_from(rows).unwrap_or(u64::MAX));
            keys.push_all(elements).map_err(|_| Error::TooManyRows { path: self.path().to_owned() })
        })?;
        keys.set_tally(tally);
        keys.set_file(self.input.last_read());
        Ok(keys)
    }

    /// Tells the elements of all rows to `visit`, some at a time and in order, nothing where there is no key.
    pub(crate) fn each_key<E: From<Error>>(
        &self,
        mut progress: impl FnMut(u64),
        mut visit: impl FnMut(&[Option<Element>]) -> std::result::Result<(), E>,
    ) -> std::result::Result<Tally, E> {
        let mut rows = self.data()?;
        let mut batch = Batch::of(KeyHasher::of(&self.spec));
        progress(self.input.done());
        while rows.next()? {
            let has_key = batch.add(self.key_columns.iter().map(|&column| rows.field(column)));
            if !has_key && self.options.empty_keys == EmptyKeys::Refuse {
                let (path, line) = (self.path().to_owned(), rows.line());
                return Err(Error::EmptyKey { path, line }.into());
            }
            if batch.is_full() {
                progress(self.input.done());
                batch.hash(&mut visit)?;
            }
        }
        batch.hash(&mut visit)?;
        let mut tally = batch.into_tally();
        tally.longest = rows.longest();
        progress(self.bytes());
        Ok(tally)
    }
}
