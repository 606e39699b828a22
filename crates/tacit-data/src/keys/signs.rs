//! Signs that a column is not what it is read as: words for nothing that are keys, and text that looks like
//! something with a type of its own.

use super::{KeyType, Normalisation};
use std::collections::BTreeMap;

/// Rows whose text is looked at.
pub(crate) const LOOKED_AT: u64 = 1000;

/// What people and programs write where there is nothing, in any case but `\N`.
const WORDS: [&str; 22] = [
    "null",
    "\\N",
    "n/a",
    "na",
    "#n/a",
    "nan",
    "none",
    "nil",
    "n.a.",
    "(null)",
    "<null>",
    "[null]",
    "<na>",
    "(none)",
    "-",
    "--",
    "---",
    "?",
    "unknown",
    "undefined",
    "missing",
    "(blank)",
];

/// The longest of them.
const LONGEST: usize = 9;

/// What a table's keys showed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Signs {
    /// Rows with a key that is, in a part of it, a word for nothing: by part and word, as it is written.
    words: BTreeMap<(usize, String), u64>,
    /// Of each part that is text, what its first rows look like.
    looks: Vec<Looks>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Looks {
    cells: u64,
    emails: u64,
    phones: u64,
    dates: u64,
}

impl Signs {
    /// Whether a cell is a word for nothing.
    pub(crate) fn is_word(cell: &str) -> bool {
        let cell = cell.trim();
        // Of most keys their length or first letter shows that they are none.
        let may_be = |first: &u8| b"nN\\#(<[-?uUmM".contains(first);
        if cell.len() > LONGEST || !cell.as_bytes().first().is_some_and(may_be) {
            return false;
        }
        WORDS.iter().any(|word| match *word {
            "\\N" => cell == "\\N",
            word => cell.eq_ignore_ascii_case(word),
        })
    }

    /// Counts a row's word.
    pub(crate) fn add_word(&mut self, part: usize, cell: &str) {
        *self.words.entry((part, cell.trim().to_owned())).or_default() += 1;
    }

    /// Adds the words of rows behind those that are looked at.
    pub(crate) fn absorb(&mut self, behind: Signs) {
        for (word, count) in behind.words {
            *self.words.entry(word).or_default() += count;
        }
    }

    /// Looks at a cell of text of the row `row`, from 1.
    pub(crate) fn look(&mut self, row: u64, part: usize, cell: &str) {
        if row > LOOKED_AT || part > 64 {
            return;
        }
        if self.looks.len() <= part {
            self.looks.resize(part + 1, Looks::default());
        }
        let looks = &mut self.looks[part];
        let cell = cell.trim();
        looks.cells += 1;
        let is = |name: &str| {
            let kind = KeyType::named(name);
            kind.is_some_and(|kind| {
                kind.normalise(Normalisation::default(), cell, &mut String::new()).is_ok()
            })
        };
        looks.emails += u64::from(cell.contains('@') && is("email"));
        looks.phones += u64::from(is_phone(cell));
        looks.dates += u64::from(["date", "date:DMY", "date:MDY"].into_iter().any(is));
    }

    /// The words that more than one row in a thousand of `rows` has in a part of its key, the most frequent
    /// first.
    pub fn words(&self, rows: u64) -> Vec<(usize, &str, u64)> {
        let frequent = self.words.iter().filter(|(_, count)| count.saturating_mul(1000) > rows);
        let mut found: Vec<_> =
            frequent.map(|((part, word), count)| (*part, word.as_str(), *count)).collect();
        found.sort_by_key(|(part, _, count)| (*part, std::cmp::Reverse(*count)));
        found
    }

    /// The parts of text that look like values of another type, which is named, in nine cells of ten.
    pub fn looks(&self) -> Vec<(usize, &'static str)> {
        let named = |looks: &Looks| {
            let most = |count: u64| looks.cells >= 3 && count * 10 >= looks.cells * 9;
            let kinds = [(looks.emails, "email"), (looks.dates, "date"), (looks.phones, "phone")];
            kinds.into_iter().find(|(count, _)| most(*count)).map(|(_, name)| name)
        };
        self.looks.iter().enumerate().filter_map(|(part, looks)| Some((part, named(looks)?))).collect()
    }
}

/// Whether a text is written as telephone numbers are: more than digits alone, or with a sign of dialling.
pub(crate) fn is_phone(cell: &str) -> bool {
    let digits = cell.bytes().filter(u8::is_ascii_digit).count();
    let others = cell.bytes().all(|byte| byte.is_ascii_digit() || b"+ -()./".contains(&byte));
    let dialled = cell.starts_with(['+', '0', '(']);
    others && dialled && (8..=15).contains(&digits) && !cell.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_nothing_are_known_and_others_are_not() {
        for word in ["NULL", "null", " N/A ", "\\N", "-", "None", "#N/A", "undefined"] {
            assert!(Signs::is_word(word), "{word}");
        }
        for other in ["", "\\n", "nullable", "Nan B.", "n", "0", "ann@example.com", "NN"] {
            assert!(!Signs::is_word(other), "{other}");
        }
        assert_eq!(WORDS.iter().map(|word| word.len()).max(), Some(LONGEST));
    }

    #[test]
    fn what_nine_in_ten_look_like_is_named() {
        let of = |cells: &[&str]| {
            let mut signs = Signs::default();
            cells.iter().for_each(|cell| signs.look(1, 0, cell));
            signs.looks().first().map(|(_, name)| *name)
        };
        assert_eq!(of(&["a@x.org", "b@x.org", "C@y.example"]), Some("email"));
        assert_eq!(of(&["06-12345678", "+31 6 1234 5678", "(030) 1234567"]), Some("phone"));
        assert_eq!(of(&["2024-01-31", "31.01.2024", "2024-02-01"]), Some("date"));
        assert_eq!(of(&["17", "18", "19"]), None);
        assert_eq!(of(&["a@x.org", "b@x.org"]), None);
        assert_eq!(of(&["a@x.org", "ann", "bob"]), None);
    }
}
