//! Keys that are hashed together: those of one length go side by side through the vectorised hash.

use crate::keys::Tally;
use crate::records::{Element, KeyHasher, digest, digests};
use tacit_crypto::Wiped;

/// Rows of a batch: so many that most lengths fill the vectors.
const ROWS: usize = 2048;
/// Bytes of an encoded key that the vectorised hash takes.
const SHORT: usize = 64;
const NO_KEY: [u8; SHORT] = [0; SHORT];
/// What elements are overwritten with.
pub(crate) const NO_ELEMENT: Element = [0; 32];

/// Messages of one length, and where each stands in the batch.
type OfLength = (Wiped<[u8; SHORT]>, Vec<u32>);

/// Rows whose keys wait to be hashed.
pub(crate) struct Batch {
    hasher: KeyHasher,
    /// Of each length the encoded keys, and which entries they are of.
    of_length: Vec<OfLength>,
    hashed: Wiped<Element>,
    elements: Wiped<Option<Element>>,
}

impl Batch {
    /// No rows, of whose keys `hasher` says what they are.
    pub(crate) fn of(hasher: KeyHasher) -> Self {
        let of_length = (0..=SHORT).map(|_| (Wiped::new(Vec::new(), NO_KEY), Vec::new())).collect();
        // The last row may go beyond.
        let most = ROWS + hasher.most_entries();
        let hashed = Wiped::with_capacity(most, NO_ELEMENT);
        Batch { hasher, of_length, hashed, elements: Wiped::with_capacity(most, Some(NO_ELEMENT)) }
    }

    /// Adds a row with these key parts, of all identifiers; `false` when it has no key.
    pub(crate) fn add<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> bool {
        let has_several = self.hasher.has_several();
        let Batch { hasher, of_length, elements, .. } = self;
        hasher.encode_row(parts, |_, encoded| {
            let entry = elements.len() as u32;
            let Some(encoded) = encoded else { return elements.push(None) };
            match of_length.get_mut(encoded.len()) {
                None => elements.push(Some(digest(has_several, encoded))),
                Some((keys, entries)) => {
                    let mut key = [0; SHORT];
                    key[..encoded.len()].copy_from_slice(encoded);
                    push(keys, key);
                    entries.push(entry);
                    elements.push(None);
                }
            }
        })
    }

    /// Whether it is time to hash.
    pub(crate) fn is_full(&self) -> bool {
        self.elements.len() >= ROWS
    }

    /// Hands the elements of all rows to `visit`, those of all identifiers one behind the other and `None` where there is
    /// no key, and begins anew.
    pub(crate) fn hash<T>(&mut self, visit: impl FnOnce(&[Option<Element>]) -> T) -> T {
        for (len, (keys, rows)) in
            self.of_length.iter_mut().enumerate().filter(|(_, (keys, _))| !keys.is_empty())
        {
            self.hashed.resize(keys.len(), [0; 32]);
            digests(self.hasher.has_several(), len, keys, &mut self.hashed);
            for (element, row) in self.hashed.iter().zip(rows.iter()) {
                self.elements[*row as usize] = Some(*element);
            }
            keys.clear();
            rows.clear();
        }
        let result = visit(&self.elements);
        self.elements.clear();
        result
    }

    /// What was refused.
    pub(crate) fn into_tally(mut self) -> Tally {
        self.hasher.take_tally()
    }

    /// The hasher, which counts on.
    pub(crate) fn into_hasher(self) -> KeyHasher {
        self.hasher
    }
}

/// Appends one. A list that grows by itself would leave a copy behind that nobody wipes.
fn push(keys: &mut Wiped<[u8; SHORT]>, key: [u8; SHORT]) {
    if keys.len() == keys.capacity() {
        let mut larger = Wiped::with_capacity((2 * keys.len()).max(16), NO_KEY);
        larger.extend_from_slice(keys);
        *keys = larger;
    }
    keys.push(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{KeySpec, Normalisation};

    #[test]
    fn elements_are_those_of_one_key_at_a_time() {
        let spec = KeySpec::text(vec!["a".into(), "b".into()], Normalisation::default());
        let mut alone = KeyHasher::of(&spec);
        let mut batch = Batch::of(KeyHasher::of(&spec));
        let mut seen = 0;
        for _ in 0..2 {
            let mut expected = Vec::new();
            // Lengths on both sides of what the vectorised hash takes, and rows without a key.
            for row in 0..700 {
                let parts = ["Ä".repeat(row % 40), format!("Key {row}")];
                let parts = || parts.iter().map(String::as_str);
                expected.push(alone.hash(parts()));
                assert_eq!(batch.add(parts()), row % 40 > 0);
            }
            batch.hash(|elements| {
                assert!(elements == expected);
                seen += elements.len();
            });
        }
        assert_eq!((seen, batch.into_tally().rows), (1400, 1400));
    }
}
