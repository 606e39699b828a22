//! Names of people and firms: accents, case and punctuation go, the order of the words stays.

use super::Reason;
use super::prelude::{is_dash, prelude};
use super::text::fold;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What stands for an apostrophe, of which U+00B4 and U+2032 would not survive compatibility form.
const APOSTROPHES: &str = "'`\u{b4}\u{2018}\u{2019}\u{201b}\u{2b9}\u{2bb}\u{2bc}\u{2bd}\u{2032}\u{ff07}";
/// What parts words as a space does.
const PARTING: &str = ".,;:_/&()\"\u{201c}\u{201d}\u{201e}\u{ab}\u{bb}\u{b7}";

/// Appends the normal form of a name.
pub(super) fn name(text: &str, out: &mut String) -> Result<(), Reason> {
    if text.is_ascii() { plain(text, out) } else { general(text, out) }
}

/// The normal form of a name with any characters.
fn general(text: &str, out: &mut String) -> Result<(), Reason> {
    let bare: String = text.chars().filter(|c| !APOSTROPHES.contains(*c)).collect();
    let folded = fold(&prelude(&bare));
    let mut plain = String::with_capacity(folded.len());
    let mut latin = false;
    for c in folded.nfd() {
        match c {
            '\u{300}'..='\u{36f}' if latin => continue,
            c if is_combining_mark(c) => plain.push(c),
            c if APOSTROPHES.contains(c) => continue,
            c if c.is_whitespace() || is_dash(c) || PARTING.contains(c) => plain.push(' '),
            c if c.is_control() => return Err(Reason::Character),
            c => match plain_letters(c) {
                Some(letters) => plain.push_str(letters),
                None => plain.push(c),
            },
        }
        if !is_combining_mark(c) {
            latin = c.is_ascii_lowercase() || matches!(c, '\u{e0}'..='\u{24f}');
        }
    }
    let composed: String = plain.nfc().collect();
    let start = out.len();
    for word in composed.split_whitespace() {
        if out.len() > start {
            out.push(' ');
        }
        out.push_str(word);
    }
    Ok(())
}

/// The same of ASCII alone, which no step composes or takes apart.
fn plain(text: &str, out: &mut String) -> Result<(), Reason> {
    let (start, mut parted) = (out.len(), false);
    for c in text.chars() {
        match c {
            '\'' | '`' => {}
            c if c.is_whitespace() || is_dash(c) || PARTING.contains(c) => parted = true,
            c if c.is_control() => return Err(Reason::Character),
            c => {
                if parted && out.len() > start {
                    out.push(' ');
                }
                parted = false;
                out.push(c.to_ascii_lowercase());
            }
        }
    }
    Ok(())
}

/// Letters that no accent makes, as those of a passport's machine-readable lines that most lists write.
fn plain_letters(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{142}' => "l",
        '\u{f8}' => "o",
        '\u{111}' | '\u{f0}' => "d",
        '\u{fe}' => "th",
        '\u{e6}' => "ae",
        '\u{153}' => "oe",
        '\u{131}' => "i",
        '\u{127}' => "h",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// What is quicker for ASCII is what holds for all characters.
        #[test]
        fn names_in_ascii_are_as_all_others(text in "[ -~]{0,12}|[\\x00-\\x7f]{0,12}|[A-Za-z'` .,-]{0,12}") {
            let (mut one, mut other) = ("k".to_owned(), "k".to_owned());
            let (quick, usual) = (plain(&text, &mut one), general(&text, &mut other));
            prop_assert_eq!(&quick, &usual, "{:?}", text);
            if quick.is_ok() {
                prop_assert_eq!(one, other);
            }
        }
    }
}
