//! Telephone numbers, as E.164 writes them: `+`, the calling code, the national number.

use super::Reason;
use super::prelude::{digit, is_dash, prelude};
use std::sync::LazyLock;

/// A region of the table of numbering plans.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Region {
    /// Two letters of ISO 3166; empty for calling codes of no region.
    pub name: &'static str,
    code: &'static str,
    trunk: Trunk,
    international: &'static str,
    lengths: u16,
    bare: u16,
}

/// What stands in front of a national number within its region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trunk {
    /// Nothing: a zero in front is part of the number.
    None,
    /// These digits.
    Digits(&'static str),
    /// More than digits to cut off, so that only `+` is taken.
    Complex,
}

static REGIONS: LazyLock<Vec<Region>> = LazyLock::new(|| {
    let lengths = |list: &str| {
        let known = list.split(' ').filter_map(|length| length.parse::<u32>().ok());
        known.fold(0u16, |all, length| all | 1u16.checked_shl(length).unwrap_or(0))
    };
    let region = |line: &'static str| {
        let mut cells = line.split(',');
        let mut next = || cells.next();
        Some(Region {
            name: next()?.trim_matches('-'),
            code: next()?,
            trunk: match next()? {
                "-" => Trunk::None,
                "+" => Trunk::Complex,
                digits => Trunk::Digits(digits),
            },
            international: next()?.trim_matches('-'),
            lengths: lengths(next()?),
            bare: lengths(next()?),
        })
    };
    include_str!("regions.csv").lines().skip(1).filter_map(region).collect()
});

/// For each calling code up to 999 the lengths of its national numbers, and the trunk prefix to cut off of
/// one that was written behind the calling code; no lengths where there is no such code.
static CODES: LazyLock<Vec<(u16, &'static str)>> = LazyLock::new(|| {
    let mut codes = vec![(0, ""); 1000];
    for region in REGIONS.iter() {
        let known = region.code.parse::<usize>().ok().and_then(|code| codes.get_mut(code));
        let Some((lengths, trunk)) = known else { continue };
        *lengths |= region.lengths;
        *trunk = match region.trunk {
            Trunk::Digits(digits) if digits.starts_with('0') => digits,
            Trunk::Complex => "0",
            _ => trunk,
        };
    }
    codes
});

/// The region of this name.
pub(super) fn region(name: &str) -> Option<&'static Region> {
    REGIONS.iter().find(|region| region.name == name && !name.is_empty())
}

/// Appends the normal form of a telephone number, whose region is that of a number without a calling code.
pub(super) fn phone(text: &str, region: Option<&'static Region>, out: &mut String) -> Result<(), Reason> {
    let seen = prelude(text);
    let number = match seen.get(..4) {
        Some(start) if start.eq_ignore_ascii_case("tel:") => &seen[4..],
        _ => &*seen,
    };
    let mut digits = [0u8; 24];
    let (mut count, mut plus) = (0, false);
    for c in number.chars() {
        if let Some(value) = digit(c) {
            *digits.get_mut(count).ok_or(Reason::Length)? = b'0' + value;
            count += 1;
        } else if c == '+' && !plus && count == 0 {
            plus = true;
        } else if !(c.is_whitespace() || is_dash(c) || matches!(c, '.' | '/' | '(' | ')')) {
            return Err(Reason::Character);
        }
    }
    let digits = std::str::from_utf8(&digits[..count]).unwrap_or_default();
    if digits.is_empty() {
        return Err(if number.is_empty() { Reason::Empty } else { Reason::Form });
    }
    let abroad = region.and_then(|region| {
        Some(region.international)
            .filter(|dialled| !dialled.is_empty())
            .and_then(|dialled| digits.strip_prefix(dialled))
    });
    match (plus, abroad, region) {
        (true, ..) => international(digits, out),
        (false, Some(digits), _) => international(digits, out),
        (false, None, Some(region)) => national(digits, region, out),
        (false, None, None) => Err(Reason::Ambiguous),
    }
}

fn international(digits: &str, out: &mut String) -> Result<(), Reason> {
    // No calling code begins another.
    for length in 1..=3 {
        let Some((code, number)) = digits.split_at_checked(length) else { break };
        if code.starts_with('0') {
            break;
        }
        let known =
            code.parse::<usize>().ok().and_then(|code| CODES.get(code)).filter(|(lengths, _)| *lengths != 0);
        let Some((lengths, trunk)) = known else { continue };
        let number = match trunk.is_empty() {
            true => number,
            false => number.strip_prefix(trunk).unwrap_or(number),
        };
        if !trunk.is_empty() && number.starts_with('0') {
            return Err(Reason::Form);
        }
        return finish(code, number, *lengths, out);
    }
    Err(Reason::Range)
}

fn national(digits: &str, region: &Region, out: &mut String) -> Result<(), Reason> {
    let (number, lengths) = match region.trunk {
        Trunk::None => (digits, region.lengths),
        Trunk::Complex => return Err(Reason::Ambiguous),
        Trunk::Digits(trunk) => match digits.strip_prefix(trunk) {
            // What could be a number without the prefix has the length of one.
            Some(number) if has(region.lengths, number.len()) => (number, region.lengths),
            _ if region.bare != 0 => (digits, region.bare),
            Some(number) => (number, region.lengths),
            None => return Err(Reason::Ambiguous),
        },
    };
    if region.trunk != Trunk::None && number.starts_with('0') {
        return Err(Reason::Form);
    }
    finish(region.code, number, lengths, out)
}

fn has(lengths: u16, length: usize) -> bool {
    u32::try_from(length)
        .ok()
        .and_then(|length| lengths.checked_shr(length))
        .is_some_and(|bits| bits & 1 == 1)
}

fn finish(code: &str, number: &str, lengths: u16, out: &mut String) -> Result<(), Reason> {
    if !has(lengths, number.len()) {
        return Err(Reason::Length);
    }
    out.push('+');
    out.push_str(code);
    out.push_str(number);
    Ok(())
}
