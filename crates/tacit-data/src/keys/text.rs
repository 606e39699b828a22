//! Text: as it is written, or in compatibility form.

use super::prelude::prelude;
use caseless::Caseless;
use unicode_normalization::UnicodeNormalization;

/// What is done to a key's text before it is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Normalisation {
    /// Compose characters (NFC).
    pub nfc: bool,
    /// Drop white space at both ends.
    pub trim: bool,
    /// Ignore upper and lower case.
    pub case_fold: bool,
}

impl Default for Normalisation {
    /// Everything on.
    fn default() -> Self {
        Normalisation { nfc: true, trim: true, case_fold: true }
    }
}

impl Normalisation {
    /// No change at all: keys are compared byte by byte.
    pub const NONE: Normalisation = Normalisation { nfc: false, trim: false, case_fold: false };

    /// Appends the normal form of `text` to `out`.
    pub fn apply(&self, text: &str, out: &mut String) {
        let text = if self.trim { text.trim() } else { text };
        if text.is_ascii() {
            let start = out.len();
            out.push_str(text);
            if self.case_fold {
                out[start..].make_ascii_lowercase();
            }
            return;
        }
        match (self.nfc, self.case_fold) {
            (false, false) => out.push_str(text),
            (true, false) => out.extend(text.nfc()),
            (false, true) => out.extend(text.chars().default_case_fold()),
            (true, true) => out.extend(text.nfd().default_case_fold().nfc()),
        }
    }
}

/// Appends the text in compatibility form, case-folded, with one space for each run of white space.
pub(super) fn compatible(text: &str, out: &mut String) {
    let folded = fold(&prelude(text));
    let start = out.len();
    for word in prelude(&folded).split_whitespace() {
        if out.len() > start {
            out.push(' ');
        }
        out.push_str(word);
    }
}

/// The text case-folded, composed.
pub(super) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfd().default_case_fold().nfc().collect()
}
