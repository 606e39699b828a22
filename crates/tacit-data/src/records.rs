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
//!
//! **Any of several identifiers**: a [`KeySpec`] may have more than one list of columns ([`KeySpec::or`]). A row then
//! has an element for each identifier that is neither empty nor refused, and the element binds the identifier's place:
//! a telephone number is never an e-mail address.
//!
//! **Near matches**: a column may be of a type whose values have variants ([`KeyType::is_near`]). An identifier then has an
//! element for each combination of its parts' variants, at most [`MAX_VARIANTS`], and two rows match if they have one in
//! common. How the elements of rows are listed says [`Listing`].

mod key_set;

pub use crate::keys::Normalisation;
use crate::keys::{KeyType, LOOKED_AT, MAX_VARIANTS, Named, Reason, SPECIFICATION, Sample, Signs, Tally};
pub use key_set::{Counts, Found, Full, KeySet, Likeness, Listing};
use std::ops::Range;
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
    /// Where in `columns` each identifier but the first begins; empty where all columns make one key.
    pub further: Vec<usize>,
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
            further: Vec::new(),
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

    /// The same key, or else these columns: one more identifier, behind those that it has.
    #[must_use]
    pub fn or(mut self, columns: impl IntoIterator<Item = Named>) -> Self {
        self.further.push(self.columns.len());
        for Named { column, key_type, label } in columns {
            self.columns.push(column);
            self.types.push(key_type);
            self.labels.push(label);
        }
        self
    }

    /// As many identifiers as a row may match by; 1 where all columns make one key.
    pub fn identifiers(&self) -> usize {
        self.further.len() + 1
    }

    /// Whether there is more than one.
    pub fn has_several(&self) -> bool {
        !self.further.is_empty()
    }

    /// Whether an identifier of a row may be several elements: a column's type is near.
    pub fn has_variants(&self) -> bool {
        self.types.iter().any(KeyType::is_near)
    }

    /// Whether a row may have more than one element, of several identifiers or of variants.
    pub fn is_open(&self) -> bool {
        self.has_several() || self.has_variants()
    }

    /// The columns of an identifier, of which the first is 0.
    pub fn parts(&self, identifier: usize) -> Range<usize> {
        parts(&self.further, self.columns.len(), identifier)
    }

    /// The identifiers' names: those of this side's columns, joined by `+`. Of two with one name the second has its number
    /// behind it, in parentheses.
    pub fn identifier_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for identifier in 0..self.identifiers() {
            let columns: Vec<&str> =
                self.columns[self.parts(identifier)].iter().map(|name| name.trim()).collect();
            let name = columns.join("+");
            let numbered = (2..).map(|number| format!("{name} ({number})"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
            names.extend(free);
        }
        names
    }

    /// What the parts of each identifier are, joined as both sides agree on it.
    fn each_agreed(&self, of: impl Fn(usize) -> String) -> Vec<String> {
        let one = |identifier| self.parts(identifier).map(&of).collect::<Vec<_>>().join(", ");
        (0..self.identifiers()).map(one).collect()
    }

    /// The types of the columns of each identifier.
    pub fn types_of_each(&self) -> Vec<String> {
        self.each_agreed(|part| self.types[part].agreed())
    }

    /// The labels of the columns of each identifier; `(none)` where there is none.
    pub fn labels_of_each(&self) -> Vec<String> {
        self.each_agreed(|part| self.labels[part].clone().unwrap_or_else(|| NO_LABEL.to_owned()))
    }

    /// Whether a cell says nothing: it is empty, or one of the words for that.
    pub fn is_null(&self, cell: &str) -> bool {
        cell.is_empty() || is_null(&self.nulls, cell)
    }

    /// The columns' types, which both parties must have alike and in one order; where either side chooses, as
    /// a telephone's region, without that. Those of several identifiers are parted by [`OR`].
    pub fn agreed_types(&self) -> String {
        self.types_of_each().join(OR)
    }

    /// The columns' labels, which both parties must have alike; `(none)`, which is no label, where there is
    /// none.
    pub fn agreed_labels(&self) -> String {
        if self.labels.iter().all(Option::is_none) {
            return NO_LABEL.to_owned();
        }
        self.labels_of_each().join(OR)
    }

    /// Everything about the key that both parties must have alike, for the handshake to bind: not the names,
    /// but the types, and the version of every table of Unicode that [`Normalisation::apply`] reads.
    pub fn agreement(&self) -> String {
        let tables = self.agreement_with(&Tables::OURS);
        if !self.has_several()
            && self.types.iter().all(|kind| *kind == KeyType::TEXT)
            && self.labels.iter().all(Option::is_none)
        {
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

/// Of so many parts of a row those of an identifier, of which each but the first begins where `further` says.
fn parts(further: &[usize], all: usize, identifier: usize) -> Range<usize> {
    let start = if identifier == 0 { 0 } else { further[identifier - 1] };
    start..further.get(identifier).copied().unwrap_or(all)
}

/// What parts the identifiers of a row where their types or labels are listed.
pub const OR: &str = " or ";
/// The most identifiers that a row may match by.
pub const MAX_IDENTIFIERS: usize = 16;
/// What a list of labels has for a column without one.
const NO_LABEL: &str = "(none)";

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
/// Of elements that bind an identifier's place: they are never those of one key.
static IDENTIFIER_KEY: LazyLock<[u8; 32]> =
    LazyLock::new(|| blake3::derive_key("tacit 2026 record key of several identifiers v1", &[]));

/// The key of the hash that elements are, of one key or of several identifiers.
fn record_key(has_several: bool) -> &'static [u8; 32] {
    if has_several { &IDENTIFIER_KEY } else { &RECORD_KEY }
}

/// Whether a cell is one of these words for nothing.
pub(crate) fn is_null(nulls: &[String], cell: &str) -> bool {
    !nulls.is_empty() && nulls.iter().any(|null| null == cell.trim())
}

/// Turns rows' key parts into elements, reusing its buffers, and counts what it refuses.
pub struct KeyHasher {
    normalisation: Normalisation,
    types: Vec<KeyType>,
    further: Vec<usize>,
    nulls: Vec<String>,
    shown: Shown,
    tally: Tally,
    row: u64,
    /// Rows in front of its own.
    before: u64,
    encoded: Vec<u8>,
    text: String,
    /// The normal forms of the row, as far as they are kept.
    forms: Vec<String>,
    /// Whether identifiers are several elements.
    has_variants: bool,
    /// The variants of each part of an identifier.
    variants: Vec<Vec<String>>,
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
            further: spec.further.clone(),
            nulls: spec.nulls.clone(),
            shown: spec.shown,
            tally: Tally::default(),
            row: 0,
            before: 0,
            encoded: Vec::new(),
            text: String::new(),
            forms: Vec::new(),
            has_variants: spec.has_variants(),
            variants: Vec::new(),
        }
    }

    /// The same for rows behind the first ones, which alone are looked at.
    pub(crate) fn behind_first(mut self) -> Self {
        self.row = LOOKED_AT;
        self.before = LOOKED_AT;
        self
    }

    /// The element of a row with these key parts, or `None` when a part is empty after normalisation or
    /// refused. Of several identifiers or variants that of the first; [`hash_row`](Self::hash_row) gives all.
    pub fn hash<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> Option<Element> {
        let mut first = None;
        self.each_identifier(parts, |at, element| {
            if at == 0 {
                first = first.or(element);
            }
        });
        first
    }

    /// The elements of a row with these key parts, as [`Listing`] has them.
    pub fn hash_row<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> Vec<Option<Element>> {
        let mut elements = Vec::with_capacity(self.identifiers());
        self.each_identifier(parts, |_, element| elements.push(element));
        elements
    }

    fn each_identifier<'a>(
        &mut self,
        parts: impl IntoIterator<Item = &'a str>,
        mut visit: impl FnMut(usize, Option<Element>),
    ) {
        let has_several = self.has_several();
        self.encode_row(parts, |at, encoded| visit(at, encoded.map(|encoded| digest(has_several, encoded))));
    }

    /// How many identifiers a row may have.
    pub(crate) fn identifiers(&self) -> usize {
        self.further.len() + 1
    }

    /// The most entries of a row.
    pub(crate) fn most_entries(&self) -> usize {
        self.identifiers() * if self.has_variants { MAX_VARIANTS + 1 } else { 1 }
    }

    pub(crate) fn has_several(&self) -> bool {
        !self.further.is_empty()
    }

    /// Tells `visit` what each entry of the next row is the digest of, as [`Listing`] has them. Returns whether the row has
    /// any identifier.
    pub(crate) fn encode_row<'a>(
        &mut self,
        parts: impl IntoIterator<Item = &'a str>,
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> bool {
        self.row += 1;
        let mut parts = parts.into_iter();
        let mut has_any = false;
        for identifier in 0..self.identifiers() {
            // A hasher of plain text takes as many parts as come.
            let Range { start, end } = self::parts(&self.further, usize::MAX, identifier);
            let mut own = parts.by_ref().take(end - start);
            let is_there = self.encode(identifier, start, &mut own);
            // Those behind a part that is refused.
            own.for_each(drop);
            has_any |= is_there;
            if !self.has_variants {
                visit(identifier, is_there.then_some(&self.encoded));
                continue;
            }
            if is_there {
                self.each_variant(|encoded| visit(identifier, Some(encoded)));
            }
            visit(identifier, None);
        }
        let forms = std::mem::take(&mut self.forms);
        match has_any && !forms.is_empty() {
            true => self.tally.forms.push(forms),
            false => zeroized(forms),
        }
        has_any
    }

    /// Tells `visit` the encoding of each combination of variants of an identifier's parts, of which the last changes first.
    fn each_variant(&mut self, mut visit: impl FnMut(&[u8])) {
        let KeyHasher { encoded, variants, .. } = self;
        let start = encoded.len();
        let mut chosen = vec![0; variants.len()];
        loop {
            for (at, variants) in chosen.iter().zip(variants.iter()) {
                append(encoded, &variants[*at]);
            }
            visit(encoded);
            encoded.truncate(start);
            let Some(last) = (0..chosen.len()).rfind(|part| chosen[*part] + 1 < variants[*part].len()) else {
                break;
            };
            chosen[last] += 1;
            chosen[last + 1..].fill(0);
        }
        variants.zeroize();
    }

    /// Notes the variants of a part; `false` where a key would have too many.
    fn add_variants(&mut self, kind: KeyType) -> bool {
        self.variants.push(kind.variants(&self.text));
        self.variants.iter().map(Vec::len).product::<usize>() <= MAX_VARIANTS
    }

    /// Encodes an identifier, whose parts begin at `start`; `false` where the row has none.
    fn encode(&mut self, identifier: usize, start: usize, parts: &mut dyn Iterator<Item = &str>) -> bool {
        self.encoded.clear();
        self.variants.zeroize();
        // proof: vole-psi 1.5
        if self.has_several() {
            self.encoded.extend_from_slice(&(identifier as u64 + 1).to_le_bytes());
        }
        let known = self.forms.len();
        let mut words = Vec::new();
        for (at, part) in (start..).zip(parts) {
            self.text.clear();
            let kind = self.types.get(at).copied().unwrap_or(KeyType::TEXT);
            let refused = match is_null(&self.nulls, part) {
                true => Some(Reason::Empty),
                false => kind.normalise(self.normalisation, part, &mut self.text).err(),
            };
            let is_too_many = refused.is_none() && self.has_variants && !self.add_variants(kind);
            let refused = refused.or(is_too_many.then_some(Reason::Variants));
            if let Some(reason) = refused {
                self.refuse(at, reason, part);
                self.forget_forms(identifier, known);
                return false;
            }
            if !self.has_variants {
                append(&mut self.encoded, &self.text);
            }
            if self.tally.forms.len() < self.shown.forms {
                self.forms.push(self.text.clone());
            }
            if Signs::is_word(part) {
                words.push((at, part));
            }
            if kind.is_text() {
                self.tally.signs.look(self.row, at, part);
            }
        }
        words.into_iter().for_each(|(at, word)| self.tally.signs.add_word(at, word));
        true
    }

    /// Leaves the forms of an identifier that the row does not have, behind `known` others, empty.
    fn forget_forms(&mut self, identifier: usize, known: usize) {
        zeroized(self.forms.split_off(known));
        if self.has_several() && self.tally.forms.len() < self.shown.forms {
            let parts = parts(&self.further, self.types.len(), identifier);
            self.forms.extend(parts.map(|_| String::new()));
        }
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
        self.forms.zeroize();
        self.variants.zeroize();
    }
}

/// Encodes a part, behind its length.
fn append(encoded: &mut Vec<u8>, part: &str) {
    encoded.extend_from_slice(&(part.len() as u64).to_le_bytes());
    encoded.extend_from_slice(part.as_bytes());
}

/// Wipes texts.
fn zeroized(mut texts: Vec<String>) {
    texts.zeroize();
}

/// The element of an encoded key, or of one of several identifiers.
pub(crate) fn digest(has_several: bool, encoded: &[u8]) -> Element {
    *blake3::keyed_hash(record_key(has_several), encoded).as_bytes()
}

/// The elements of encoded keys of `len` bytes, at most 64, with zeros behind them.
pub(crate) fn digests(has_several: bool, len: usize, encoded: &[[u8; 64]], out: &mut [Element]) {
    hash::blake3_keyed(record_key(has_several), len, encoded, out);
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
