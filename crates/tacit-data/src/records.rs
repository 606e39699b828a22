//! Records and their keys: what it means that two rows are the same.
//!
//! A key is one or several columns, read in the order in which they are named (names may differ between the
//! parties, order and number may not). Each part is normalised, and the parts are encoded injectively (each
//! with its length in front), so that `("ab", "c")` and `("a", "bc")` are different keys. The encoding's
//! BLAKE3 hash of 32 bytes is the [`Element`] that the protocols intersect.
//!
//! **Normalisation**, each step of which can be switched off; both parties must switch alike:
//!
//! 1. `trim`: white space (Unicode `White_Space`, so the no-break space too) goes from both ends; inner space
//!    stays.
//! 2. `case_fold`: Unicode's full default case folding, so that `STRASSE` = `straße`; no language's special
//!    rules (Turkish dotted I). Accents stay: `é` ≠ `e`.
//! 3. `nfc`: composed and decomposed forms become one (NFC). With case folding the text is decomposed before
//!    and composed after it: Unicode's canonical caseless matching.
//!
//! That is the type `text`; [`crate::keys`] has the others. A row of whose key any part is empty after
//! normalisation, or refused by its type, has no key: it matches nothing, and it is counted.

use crate::distinct::Distinct;
pub use crate::keys::Normalisation;
use crate::keys::{KeyType, LOOKED_AT, Named, Reason, SPECIFICATION, Sample, Signs, Tally};
use crate::machine::available_memory;
use std::sync::LazyLock;
use tacit_crypto::hash;
use zeroize::Zeroize;

/// The hash of a normalised key.
pub type Element = [u8; 32];

/// What makes two rows the same: which columns, of which types, and how text is normalised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySpec {
    /// The columns' names in this party's table, in the order agreed with the peer.
    pub columns: Vec<String>,
    /// Their types; a column without one is text.
    pub types: Vec<KeyType>,
    /// What both sides call them, where they do.
    pub labels: Vec<Option<String>>,
    /// How plain text is normalised.
    pub normalisation: Normalisation,
    /// Words for nothing: a cell that is one of them counts as empty, white space at its ends aside.
    pub nulls: Vec<String>,
    /// How many refused values, and how many normal forms, are kept to be shown to their owner.
    pub shown: Shown,
}

/// How much of one's own keys is kept to be shown; none unless asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Shown {
    /// Refused values.
    pub refused: usize,
    /// Normal forms of the first rows.
    pub forms: usize,
}

impl KeySpec {
    /// Columns of plain text.
    pub fn text(columns: Vec<String>, normalisation: Normalisation) -> Self {
        KeySpec {
            types: vec![KeyType::TEXT; columns.len()],
            labels: vec![None; columns.len()],
            columns,
            normalisation,
            nulls: Vec::new(),
            shown: Shown::default(),
        }
    }

    /// Columns of the types and labels that they are named with.
    pub fn named(columns: impl IntoIterator<Item = Named>, normalisation: Normalisation) -> Self {
        let mut spec = KeySpec::text(Vec::new(), normalisation);
        for Named { column, key_type, label } in columns {
            spec.columns.push(column);
            spec.types.push(key_type);
            spec.labels.push(label);
        }
        spec
    }

    /// Whether a cell says nothing: it is empty, or one of the words for that.
    pub fn is_null(&self, cell: &str) -> bool {
        cell.is_empty() || is_null(&self.nulls, cell)
    }

    /// The columns' types, which both parties must have alike and in one order; where either side chooses, as
    /// a telephone's region, without that.
    pub fn agreed_types(&self) -> String {
        let agreed: Vec<String> = self.types.iter().map(KeyType::agreed).collect();
        agreed.join(", ")
    }

    /// The columns' labels, which both parties must have alike; `(none)`, which is no label, where there is
    /// none.
    pub fn agreed_labels(&self) -> String {
        const NO_LABEL: &str = "(none)";
        if self.labels.iter().all(Option::is_none) {
            return NO_LABEL.to_owned();
        }
        let labels: Vec<&str> =
            self.labels.iter().map(|label| label.as_deref().unwrap_or(NO_LABEL)).collect();
        labels.join(", ")
    }

    /// Everything about the key that both parties must have alike, for the handshake to bind: not the names,
    /// but the types, and the version of every table of Unicode that [`Normalisation::apply`] reads.
    pub fn agreement(&self) -> String {
        let tables = self.agreement_with(&Tables::OURS);
        if self.types.iter().all(|kind| *kind == KeyType::TEXT) && self.labels.iter().all(Option::is_none) {
            return tables;
        }
        let (types, labels) = (self.agreed_types(), self.agreed_labels());
        format!("{tables}; rules of version {SPECIFICATION} for {types}; called {labels}")
    }

    fn agreement_with(&self, tables: &Tables) -> String {
        let Normalisation { nfc, trim, case_fold } = self.normalisation;
        let version = |(a, b, c): Version| format!("{a}.{b}.{c}");
        format!(
            "key v2: {} columns, nfc {nfc}, trim {trim}, case fold {case_fold}, \
             Unicode of normalisation {}, of case folding {}, of white space {}",
            self.columns.len(),
            version(tables.normalisation),
            version(tables.case_folding),
            version(tables.white_space),
        )
    }
}

/// A version of Unicode: major, minor, update.
type Version = (u64, u64, u64);

/// The versions of Unicode's tables. They come from three sources, which move on one by one.
struct Tables {
    /// Decomposition and composition.
    normalisation: Version,
    /// Default case folding.
    case_folding: Version,
    /// The property `White_Space`, which trimming goes by: the standard library's.
    white_space: Version,
}

impl Tables {
    const OURS: Tables = Tables {
        normalisation: widened(unicode_normalization::UNICODE_VERSION),
        case_folding: caseless::UNICODE_VERSION,
        white_space: widened(char::UNICODE_VERSION),
    };
}

const fn widened((a, b, c): (u8, u8, u8)) -> Version {
    (a as u64, b as u64, c as u64)
}

static RECORD_KEY: LazyLock<[u8; 32]> = LazyLock::new(|| blake3::derive_key("tacit 2026 record key v1", &[]));

/// Whether a cell is one of these words for nothing.
pub(crate) fn is_null(nulls: &[String], cell: &str) -> bool {
    !nulls.is_empty() && nulls.iter().any(|null| null == cell.trim())
}

/// The element of an encoded key.
pub(crate) fn digest(encoded: &[u8]) -> Element {
    *blake3::keyed_hash(&RECORD_KEY, encoded).as_bytes()
}

/// The elements of encoded keys of `len` bytes, at most 64, with zeros behind them.
pub(crate) fn digests(len: usize, encoded: &[[u8; 64]], out: &mut [Element]) {
    hash::blake3_keyed(&RECORD_KEY, len, encoded, out);
}

/// Turns rows' key parts into elements, reusing its buffers, and counts what it refuses.
pub struct KeyHasher {
    normalisation: Normalisation,
    types: Vec<KeyType>,
    nulls: Vec<String>,
    shown: Shown,
    tally: Tally,
    row: u64,
    /// Rows in front of its own.
    before: u64,
    encoded: Vec<u8>,
    text: String,
}

impl KeyHasher {
    /// A hasher of plain text with the given normalisation.
    pub fn new(normalisation: Normalisation) -> Self {
        Self::of(&KeySpec::text(Vec::new(), normalisation))
    }

    /// A hasher of keys of these types.
    pub fn of(spec: &KeySpec) -> Self {
        KeyHasher {
            normalisation: spec.normalisation,
            types: spec.types.clone(),
            nulls: spec.nulls.clone(),
            shown: spec.shown,
            tally: Tally::default(),
            row: 0,
            before: 0,
            encoded: Vec::new(),
            text: String::new(),
        }
    }

    /// The same for rows behind the first ones, which alone are looked at.
    pub(crate) fn behind_first(mut self) -> Self {
        self.row = LOOKED_AT;
        self.before = LOOKED_AT;
        self
    }

    /// The element of a row with these key parts, or `None` when a part is empty after normalisation or
    /// refused.
    pub fn hash<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> Option<Element> {
        self.encode(parts).map(digest)
    }

    /// What [`hash`](Self::hash) takes the digest of.
    pub(crate) fn encode<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> Option<&[u8]> {
        self.row += 1;
        self.encoded.clear();
        let (mut forms, mut words) = (Vec::new(), Vec::new());
        for (at, part) in parts.into_iter().enumerate() {
            self.text.clear();
            if is_null(&self.nulls, part) {
                self.refuse(at, Reason::Empty, part);
                forms.zeroize();
                return None;
            }
            let kind = self.types.get(at).copied().unwrap_or(KeyType::TEXT);
            if let Err(reason) = kind.normalise(self.normalisation, part, &mut self.text) {
                self.refuse(at, reason, part);
                forms.zeroize();
                return None;
            }
            self.encoded.extend_from_slice(&(self.text.len() as u64).to_le_bytes());
            self.encoded.extend_from_slice(self.text.as_bytes());
            if self.tally.forms.len() < self.shown.forms {
                forms.push(self.text.clone());
            }
            if Signs::is_word(part) {
                words.push((at, part));
            }
            if kind.is_text() {
                self.tally.signs.look(self.row, at, part);
            }
        }
        words.into_iter().for_each(|(at, word)| self.tally.signs.add_word(at, word));
        if !forms.is_empty() {
            self.tally.forms.push(forms);
        }
        Some(&self.encoded)
    }

    /// Counts a row whose part `part` is refused.
    fn refuse(&mut self, part: usize, reason: Reason, text: &str) {
        *self.tally.refused.entry((part, reason)).or_default() += 1;
        if reason != Reason::Empty && self.tally.samples.len() < self.shown.refused {
            self.tally.samples.push(Sample { row: self.row, part, reason, text: text.to_owned() });
        }
    }

    /// Counts what another hasher has counted of rows behind the first ones.
    pub(crate) fn absorb(&mut self, behind: Tally) {
        self.row += behind.rows;
        self.tally.absorb(behind);
    }

    /// What was refused so far; counting begins anew.
    pub fn take_tally(&mut self) -> Tally {
        self.tally.rows = self.row - self.before;
        std::mem::take(&mut self.tally)
    }
}

impl Drop for KeyHasher {
    fn drop(&mut self) {
        self.encoded.zeroize();
        self.text.zeroize();
    }
}

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

/// The distinct keys of a table, and which row has which.
///
/// Costs 32 bytes a distinct key, 4 bytes a row, and for the index 11 bytes a distinct key where the number of rows is
/// known ahead, up to twice as many where it is not.
pub struct KeySet {
    distinct: Distinct,
    rows: Vec<u32>,
    without_key: u64,
    tally: Tally,
    /// Rows that there will be, about.
    expected: u64,
    /// What the file that the rows were read from held.
    file: Option<[u8; 32]>,
    available: Available,
}

impl Default for KeySet {
    fn default() -> Self {
        KeySet {
            distinct: Distinct::default(),
            rows: Vec::new(),
            without_key: 0,
            tally: Tally::default(),
            expected: 0,
            file: None,
            available: available_memory,
        }
    }
}

impl KeySet {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
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

    /// Adds the next row; `None` is a row without a key.
    pub fn push(&mut self, element: Option<Element>) -> Result<(), Full> {
        if self.rows.len() >= NONE as usize {
            return Err(Full::Rows);
        }
        self.make_room(1)?;
        let of = [self.rows.len() as u64, self.expected];
        let number = element.map(|element| self.distinct.number_one(&element, of));
        self.without_key += u64::from(number.is_none());
        self.rows.push(number.unwrap_or(NONE));
        Ok(())
    }

    /// Adds the next rows, as [`push`](Self::push) does: the more at once, the faster.
    pub fn push_all(&mut self, elements: &[Option<Element>]) -> Result<(), Full> {
        if elements.len() > NONE as usize - self.rows.len() {
            return Err(Full::Rows);
        }
        self.make_room(elements.len())?;
        let seen = self.rows.len() as u64;
        let KeySet { distinct, rows, without_key, expected, .. } = self;
        distinct.number(elements, [seen, *expected], |number| {
            *without_key += u64::from(number.is_none());
            rows.push(number.unwrap_or(NONE));
        });
        Ok(())
    }

    /// So many rows will come, about: room is made for them at once.
    pub(crate) fn expect(&mut self, rows: u64) {
        self.expected = rows;
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
        self.rows.len() as u64
    }

    /// Keeps what the hasher of its rows refused.
    pub fn set_tally(&mut self, tally: Tally) {
        self.tally = tally;
    }

    /// Which rows have no key, by part and reason, as far as [`set_tally`](Self::set_tally) told.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Rows without a key, because a part of it is empty or refused.
    pub fn rows_without_key(&self) -> u64 {
        self.without_key
    }

    /// Rows whose key an earlier row has already.
    pub fn duplicate_rows(&self) -> u64 {
        self.rows() - self.without_key - self.elements().len() as u64
    }

    /// The element of row `row`, as an index into [`elements`](Self::elements).
    pub fn element_of(&self, row: u64) -> Option<usize> {
        let row = usize::try_from(row).ok()?;
        self.rows.get(row).filter(|element| **element != NONE).map(|element| *element as usize)
    }

    /// Makes room for `more` rows and elements. A process that the system refuses memory ends, so that what is
    /// needed is asked for before it is.
    fn make_room(&mut self, more: usize) -> Result<(), Full> {
        let (full, available) = (Full::Memory { rows: self.rows() }, self.available);
        while self.rows.capacity() - self.rows.len() < more {
            room(&mut self.rows, available).ok_or(full)?;
        }
        let seen = self.rows.len() as u64;
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
    /// The index of the next row's element, which must be this one.
    pub(crate) fn element(&mut self, element: Option<&Element>) -> Result<Option<usize>, Differs> {
        let at = self.keys.element_of(self.rows);
        if self.rows >= self.keys.rows() || element != at.map(|at| &self.keys.elements()[at]) {
            return Err(Differs);
        }
        self.rows += 1;
        Ok(at)
    }

    /// Whether all rows were there.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows == self.keys.rows()
    }
}

/// The intersection of two sets in the clear, for checking: indices of `mine` that `theirs` holds too,
/// ascending.
pub fn plain_join(mine: &[Element], theirs: &[Element]) -> Vec<u32> {
    let theirs: std::collections::HashSet<&Element> = theirs.iter().collect();
    (0u32..).zip(mine).filter(|(_, element)| theirs.contains(element)).map(|(at, _)| at).collect()
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

    /// Two releases that differ in one table alone may see two keys as equal and as different: they must not
    /// agree.
    #[test]
    fn the_agreement_binds_every_table_of_unicode() {
        let spec = KeySpec::text(vec!["a".into()], Normalisation::default());
        let older = |(a, b, c): Version| (a - 1, b, c);
        let Tables { normalisation, case_folding, white_space } = Tables::OURS;
        let tables = [
            Tables::OURS,
            Tables { normalisation: older(normalisation), ..Tables::OURS },
            Tables { case_folding: older(case_folding), ..Tables::OURS },
            Tables { white_space: older(white_space), ..Tables::OURS },
        ];
        let said: Vec<String> = tables.iter().map(|tables| spec.agreement_with(tables)).collect();
        assert_eq!(said[0], spec.agreement());
        for (i, one) in said.iter().enumerate() {
            assert!(said[..i].iter().all(|other| other != one), "{one}");
        }
        let (a, b, c) = char::UNICODE_VERSION;
        assert!(said[0].ends_with(&format!("of white space {a}.{b}.{c}")), "{}", said[0]);
    }
}
