//! What all types but plain text begin with.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// The value in compatibility form, without invisible characters and without white space at its ends:
/// full-width letters and digits become the usual ones, and what a spreadsheet or a web page slipped in goes.
pub(super) fn prelude(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text.trim());
    }
    let seen: String = text.nfkc().filter(|c| !is_invisible(*c)).nfc().collect();
    Cow::Owned(seen.trim().to_owned())
}

/// Code points that show nothing by themselves: Unicode's `Default_Ignorable_Code_Point`, of version 16.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfff8
        | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The value of a decimal digit: ASCII's, the Arabic-Indic and the extended Arabic-Indic ones.
pub(super) fn digit(c: char) -> Option<u8> {
    let base = match c {
        '0'..='9' => '0',
        '\u{660}'..='\u{669}' => '\u{660}',
        '\u{6f0}'..='\u{6f9}' => '\u{6f0}',
        _ => return None,
    };
    u8::try_from(u32::from(c) - u32::from(base)).ok()
}

/// Hyphens, dashes and the minus sign.
pub(super) fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}
