//! Which of the service's keys passed its part of a question's WHERE, and with which of their rows, kept so that two questions
//! that differ by a few keys can be told apart from two that differ by many, and from two that do not differ.
//!
//! A [`Sketch`] has two times [`BUCKETS`] sums: every key that passes is added, by exclusive or, to one of the first half,
//! and the key together with its rows that count to the one at the same place of the other half. Place and summands are
//! hashes under a key that only the service has. What two sketches have in common cancels, so the sums in which either
//! half differs are at most as many as the keys that pass in one question alone or count with other rows, and none only
//! where there is no such key (up to the chance that sums of 64 bits agree, 2^-64 for a sum). So **no difference below a
//! limit is missed**; one a little above it can look smaller, where two keys of it share a place. A sketch lists no key:
//! with the hash's key it can be tested against sets that somebody guesses, so the files are the service's own, as its
//! tables are.
//!
//! Keys that are read or normalised in another way are other keys, and nothing could be compared. So a sketch names
//! [what its keys are](Filters::sketch).

use crate::file::{private_file, private_folder, sync_folder};
use crate::json::hex;
use crate::policy::Source;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tacit::data::csv::{Encoding, Options};
use tacit::data::records::Normalisation;
use tacit::job::query::Passing;
use tacit::{Error, Result};
use zeroize::Zeroizing;

/// Sums of a half of a sketch.
const BUCKETS: usize = 1 << 13;
/// Bytes before a sketch's sums: the check of the hash's key, and what the table's keys are.
const SKETCH_HEAD: usize = 64;
/// Sketches that are kept of what one peer was answered of one source; it gets no answers with other ones.
pub(crate) const MOST_FILTERS: usize = 256;

const FINGERPRINT: &str = "tacit 1 fingerprints of keys that pass a filter";
const KEY_CHECK: &str = "tacit 1 check of the key of filters";
const KEY_KIND: &str = "tacit 1 what the keys of filters are";

/// A set of keys, each with its row, as far as it can be compared with others.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Sketch {
    /// What the keys are.
    kind: [u8; 32],
    sums: Vec<u64>,
}

/// The folder of sketches, and the key of their hash.
pub(crate) struct Filters {
    folder: PathBuf,
    key: Zeroizing<[u8; 32]>,
}

impl Filters {
    /// Opens the folder; makes it, with a new key, if there is none. `is_known` says that sketches were made: then the key
    /// must be there.
    ///
    /// Errors: files that cannot be read or made, and a key that is gone.
    pub(crate) fn open(folder: &Path, is_known: bool) -> Result<Self> {
        let path = folder.join("key");
        let found = match std::fs::read(&path) {
            Ok(bytes) => Some(Zeroizing::new(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(Error::file(&path, "cannot be read", e)),
        };
        let key = match found.as_deref().map(|bytes| <[u8; 32]>::try_from(&bytes[..])) {
            Some(Ok(key)) => Zeroizing::new(key),
            None if !is_known => {
                private_folder(folder)?;
                let mut key = Zeroizing::new([0; 32]);
                tacit::crypto::Prg::from_os().fill_bytes(key.as_mut());
                write(&path, key.as_ref())?;
                key
            }
            _ => {
                let path = crate::file::shown(&path);
                let what = format!(
                    "{path}, the key of what questions are compared by, is gone or damaged; restore it"
                );
                return Err(Error::Input(what));
            }
        };
        Ok(Filters { folder: folder.to_owned(), key })
    }

    /// The sketch of keys of a source that pass.
    pub(crate) fn sketch<'k>(
        &self,
        source: &Source,
        passing: impl IntoIterator<Item = Passing<'k>>,
    ) -> Sketch {
        let secret = Zeroizing::new(blake3::derive_key(FINGERPRINT, self.key.as_ref()));
        let mut sums = vec![0; 2 * BUCKETS];
        let (keys, rows) = sums.split_at_mut(BUCKETS);
        for Passing { element, rows: which } in passing {
            let mut hash = [0; 24];
            blake3::Hasher::new_keyed(&secret).update(element).finalize_xof().fill(&mut hash);
            let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| hash[8 * at + byte]));
            let place = (number(0) % BUCKETS as u64) as usize;
            keys[place] ^= number(1);
            let mut with_row = [0; 8];
            blake3::Hasher::new_keyed(&secret)
                .update(element)
                .update(&which.to_le_bytes())
                .finalize_xof()
                .fill(&mut with_row);
            rows[place] ^= u64::from_le_bytes(with_row);
        }
        Sketch { kind: kind(source), sums }
    }

    /// Keeps a sketch: it is on the disk when this returns. Returns its name.
    pub(crate) fn keep(&self, sketch: &Sketch) -> Result<String> {
        let bytes = self.bytes(sketch);
        let name = hex(blake3::hash(&bytes).as_bytes());
        let path = self.folder.join(&name);
        match write(&path, &bytes) {
            // Another question had the same, or a crash came before it was noted.
            Err(_) if std::fs::read(&path).is_ok_and(|there| there == bytes) => Ok(name),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                write(&path, &bytes).map_err(|_| error)?;
                Ok(name)
            }
            Ok(()) => Ok(name),
        }
    }

    /// The sketch of this name.
    ///
    /// Errors: one that is gone, damaged, or of another key.
    pub(crate) fn kept(&self, name: &str) -> Result<Sketch> {
        let path = self.folder.join(name);
        let bytes = std::fs::read(&path).map_err(|e| Error::file(&path, "cannot be read", e))?;
        let is_whole = bytes.len() == SKETCH_HEAD + 16 * BUCKETS
            && hex(blake3::hash(&bytes).as_bytes()) == name
            && bytes[..32] == self.check();
        if !is_whole {
            let path = crate::file::shown(&path);
            return Err(Error::Input(format!("{path} is damaged, or of another key; restore it")));
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
        Ok(Sketch {
            kind: std::array::from_fn(|at| bytes[32 + at]),
            sums: bytes[SKETCH_HEAD..].chunks_exact(8).map(number).collect(),
        })
    }

    fn check(&self) -> [u8; 32] {
        blake3::derive_key(KEY_CHECK, self.key.as_ref())
    }

    fn bytes(&self, sketch: &Sketch) -> Vec<u8> {
        let sums = sketch.sums.iter().flat_map(|sum| sum.to_le_bytes());
        self.check().into_iter().chain(sketch.kind).chain(sums).collect()
    }
}

/// What a source's keys are: of which columns, of which types, read and normalised how.
fn kind(Source { key, options, .. }: &Source) -> [u8; 32] {
    let Normalisation { nfc, trim, case_fold } = key.normalisation;
    let Options { delimiter, quote, escape, header, decimal_comma, binary_as_text, .. } = options;
    let read = [
        key.agreed_types(),
        options.encoding.map_or("utf-8", Encoding::name).to_owned(),
        format!("{delimiter:?} {quote:?} {escape:?} {header:?} {decimal_comma} {binary_as_text}"),
        format!("{nfc} {trim} {case_fold}"),
    ];
    let mut hasher = blake3::Hasher::new_derive_key(KEY_KIND);
    for texts in [&key.columns[..], &key.nulls[..], &read[..]] {
        hasher.update(&(texts.len() as u64).to_le_bytes());
        for text in texts {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}

impl Sketch {
    /// By how many keys two sets differ, and by how many either in this or in the row that counts: at most as many as they
    /// do, and none only where they do not.
    ///
    /// `None` where the keys are not the same kind of keys, so that sets of the same rows would differ.
    pub(crate) fn difference(&self, other: &Self) -> Option<[u64; 2]> {
        let halves = [0..BUCKETS, BUCKETS..2 * BUCKETS];
        let differ = |half: std::ops::Range<usize>| {
            self.sums[half.clone()].iter().zip(&other.sums[half]).filter(|(one, two)| one != two).count()
        };
        (self.kind == other.kind).then(|| halves.map(|half| differ(half) as u64))
    }
}

/// Writes a file of these bytes that is not there yet: as a whole, and on the disk when this returns.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let fault = |e| Error::file(path, "cannot be written; is the disk full?", e);
    let mut file = private_file(OpenOptions::new().write(true).create_new(true)).open(path).map_err(fault)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fault)?;
    sync_folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::MOST_DIFFERENCE;
    use tacit::data::csv::{Delimiter, Header, Quote};
    use tacit::data::records::KeySpec;

    fn keys(numbers: impl IntoIterator<Item = u64>) -> Vec<[u8; 32]> {
        numbers.into_iter().map(|number| *blake3::hash(&number.to_le_bytes()).as_bytes()).collect()
    }

    /// A source with this key.
    fn source(key: KeySpec) -> Source {
        Source {
            inputs: Vec::new(),
            options: Options::default(),
            key,
            rows_in_total: 0,
            aggregate_runs: 0,
            min_difference: 2,
            epsilon_in_total: None,
        }
    }

    fn of_text(columns: &[&str]) -> KeySpec {
        KeySpec::text(columns.iter().map(ToString::to_string).collect(), Normalisation::default())
    }

    fn usual() -> Source {
        source(of_text(&["id"]))
    }

    /// The sketch of these keys, each with its first row but those that have another.
    fn sketch(filters: &Filters, keys: &[[u8; 32]], other_rows: usize) -> Sketch {
        let rows = |at: usize| u64::from(at < other_rows);
        let passing = keys.iter().enumerate().map(|(at, element)| Passing { element, rows: rows(at) });
        filters.sketch(&usual(), passing)
    }

    /// Differences of every size up to the largest limit, of sets of several sizes: none is missed, none that is not there
    /// is seen, and few look smaller than they are by more than a tenth.
    #[test]
    fn no_difference_is_missed_and_none_is_made_up() {
        let folder = tempfile::tempdir().unwrap();
        let filters = Filters::open(&folder.path().join("filters"), false).unwrap();
        for size in [0, 1, 100, 50_000] {
            let same = keys(0..size);
            let all = sketch(&filters, &same, 0);
            let turned = sketch(&filters, &keys((0..size).rev()), 0);
            assert_eq!(all.difference(&turned), Some([0, 0]), "the order says nothing");
            for by in [1, 2, 3, 10, 100, MOST_DIFFERENCE] {
                // Some leave, and some come.
                let leaving = by.min(size) / 2;
                let other = sketch(&filters, &keys(leaving..size + (by - leaving)), 0);
                let is_near = |seen: u64, by: u64| (1..=by).contains(&seen) && seen * 10 >= by * 9;
                let seen = all.difference(&other).unwrap();
                assert!(seen.iter().all(|seen| is_near(*seen, by)), "{by} of {size}: {seen:?}");
                // The same keys, of which so many count with another row.
                let by = by.min(size);
                let [in_keys, in_rows] = all.difference(&sketch(&filters, &same, by as usize)).unwrap();
                assert!(in_keys == 0 && (by == 0 || is_near(in_rows, by)), "{by} rows of {size}: {in_rows}");
            }
        }
    }

    /// Keys of other columns, types or normalisation would all be other keys: such sketches are not compared.
    #[test]
    fn sketches_of_other_keys_are_not_compared() {
        let folder = tempfile::tempdir().unwrap();
        let filters = Filters::open(&folder.path().join("filters"), false).unwrap();
        let of = |source: &Source| filters.sketch(source, []);
        let first = of(&usual());
        let key = of_text(&["id"]);
        let unfolded = Normalisation { case_fold: false, ..key.normalisation };
        let typed = tacit::data::keys::Named::parse("id:email").unwrap();
        let nulls = vec!["none".to_owned()];
        let read = |options: Options| Source { options, ..usual() };
        let usual_options = Options::default();
        for other in [
            source(of_text(&["mail"])),
            source(of_text(&["i", "d"])),
            source(KeySpec { normalisation: unfolded, ..key.clone() }),
            source(KeySpec::named(vec![typed], key.normalisation)),
            source(KeySpec { nulls, ..key }),
            read(Options { encoding: Encoding::named("windows-1252"), ..usual_options }),
            read(Options { quote: Quote::Byte(b'\''), ..usual_options }),
            read(Options { delimiter: Delimiter::Byte(b';'), ..usual_options }),
            read(Options { header: Header::None, ..usual_options }),
            read(Options { escape: Some(b'/'), ..usual_options }),
            read(Options { decimal_comma: true, ..usual_options }),
            read(Options { binary_as_text: true, ..usual_options }),
        ] {
            assert_eq!(first.difference(&of(&other)), None, "{other:?}");
        }
        let kept = filters.kept(&filters.keep(&first).unwrap()).unwrap();
        // Where the table lies, and what may be learnt of it, are no part of what its keys are.
        let moved = Source { inputs: vec!["elsewhere.csv".into()], rows_in_total: 9, ..usual() };
        assert_eq!(kept.difference(&of(&moved)), Some([0, 0]));
    }

    #[test]
    fn sketches_outlive_a_restart_and_a_damaged_one_is_no_sketch() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("filters");
        let filters = Filters::open(&place, false).unwrap();
        let ten = keys(0..10);
        let first = sketch(&filters, &ten, 3);
        let name = filters.keep(&first).unwrap();
        assert_eq!(filters.keep(&first).unwrap(), name, "twice is once");
        let again = Filters::open(&place, true).unwrap();
        assert!(again.kept(&name).unwrap() == first && sketch(&again, &ten, 3) == first);
        // Torn by a crash before it was noted: it is written anew.
        std::fs::write(place.join(&name), b"torn").unwrap();
        assert!(again.kept(&name).is_err());
        assert_eq!(again.keep(&first).unwrap(), name);
        assert!(again.kept(&name).unwrap() == first);
        // With another key everything would differ: that is an error and not a difference.
        std::fs::write(place.join("key"), [7; 32]).unwrap();
        let error = Filters::open(&place, true).unwrap().kept(&name).err().unwrap().to_string();
        assert!(error.contains("another key"), "{error}");
        std::fs::remove_file(place.join("key")).unwrap();
        assert!(Filters::open(&place, true).err().unwrap().to_string().contains("is gone"));
        assert!(Filters::open(&folder.path().join("none"), true).is_err());
    }
}
