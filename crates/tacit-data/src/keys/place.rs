//! Postcodes, without the marks that part them.

use super::Reason;
use super::prelude::{digit, is_dash, prelude};
use std::sync::LazyLock;

/// A country of the table of postcodes.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Country {
    /// Two letters of ISO 3166.
    pub name: &'static str,
    prefixes: &'static str,
    patterns: &'static str,
}

static COUNTRIES: LazyLock<Vec<Country>> = LazyLock::new(|| {
    let country = |line: &'static str| {
        let mut cells = line.split(',');
        Some(Country { name: cells.next()?, prefixes: cells.next()?, patterns: cells.next()? })
    };
    include_str!("postcodes.csv").lines().skip(1).filter_map(country).collect()
});

/// The country of this name.
pub(super) fn country(name: &str) -> Option<&'static Country> {
    COUNTRIES.iter().find(|country| country.name == name)
}

impl Country {
    /// How much of `code` is compared, if it is a code of this country: a pattern's part before its `+`.
    fn compared(&self, code: &str) -> Option<usize> {
        self.patterns.split(' ').find_map(|pattern| {
            let (front, behind) = pattern.split_once('+').unwrap_or((pattern, ""));
            let wanted = || front.bytes().chain(behind.bytes());
            let fits = wanted().count() == code.len()
                && wanted().zip(code.bytes()).all(|(wanted, byte)| match wanted {
                    b'9' => byte.is_ascii_digit(),
                    b'A' => byte.is_ascii_uppercase(),
                    b'*' => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
                    letter => byte == letter,
                });
            fits.then_some(front.len())
        })
    }
}

/// Appends the normal form of a postcode.
pub(super) fn postcode(
    text: &str,
    country: Option<&'static Country>,
    out: &mut String,
) -> Result<(), Reason> {
    let mut code = String::new();
    for c in prelude(text).chars() {
        match (digit(c), c) {
            (Some(value), _) => code.push((b'0' + value).into()),
            (None, c) if c.is_ascii_alphabetic() => code.push(c.to_ascii_uppercase()),
            (None, c) if c.is_whitespace() || is_dash(c) || c == '.' => {}
            _ => return Err(Reason::Character),
        }
    }
    if code.is_empty() {
        return Err(Reason::Empty);
    }
    let Some(country) = country else {
        if !(2..=12).contains(&code.len()) {
            return Err(Reason::Length);
        }
        out.push_str(&code);
        return Ok(());
    };
    let without = country.prefixes.split(' ').filter_map(|prefix| code.strip_prefix(prefix));
    for candidate in std::iter::once(code.as_str()).chain(without) {
        if let Some(length) = country.compared(candidate) {
            out.push_str(&candidate[..length]);
            return Ok(());
        }
    }
    Err(Reason::Form)
}
