//! Dates, whole numbers and UUIDs.

use super::Reason;
use super::prelude::{digit, is_dash, prelude};

/// In which order a column's dates are written, beside `YYYY-MM-DD`, which every order takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Iso,
    DayMonthYear,
    MonthDayYear,
    YearMonthDay,
}

impl Order {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Order::DayMonthYear, Order::MonthDayYear, Order::YearMonthDay]
            .into_iter()
            .find(|order| order.suffix().eq_ignore_ascii_case(name))
    }

    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Order::Iso => "",
            Order::DayMonthYear => "DMY",
            Order::MonthDayYear => "MDY",
            Order::YearMonthDay => "YMD",
        }
    }
}

/// Appends the normal form of a date: `YYYY-MM-DD`.
pub(super) fn date(text: &str, order: Order, out: &mut String) -> Result<(), Reason> {
    let seen = prelude(text);
    if seen.is_empty() {
        return Err(Reason::Empty);
    }
    let mut plain = String::with_capacity(seen.len());
    plain.extend(seen.chars().map(|c| match digit(c) {
        Some(value) => (b'0' + value).into(),
        None if is_dash(c) => '-',
        None => c,
    }));
    let day = without_midnight(&plain);
    let part = |from: usize, to: usize| day.get(from..to).and_then(number);
    let (year, month, dom) = if is_shaped(day, b"9999-99-99") {
        (part(0, 4), part(5, 7), part(8, 10))
    } else if order == Order::YearMonthDay && is_shaped(day, b"99999999") {
        (part(0, 4), part(4, 6), part(6, 8))
    } else {
        let mut separators = day.chars().filter(|c| !c.is_ascii_digit());
        let separator = separators
            .next()
            .filter(|c| "./- ".contains(*c))
            .ok_or(if is_shaped(day, b"99999999") { Reason::Ambiguous } else { Reason::Form })?;
        if separators.next() != Some(separator) || separators.next().is_some() {
            return Err(Reason::Form);
        }
        let parts: Vec<&str> = day.split(separator).collect();
        let [first, second, third] = parts[..] else { return Err(Reason::Form) };
        if parts.iter().any(|part| !(1..=4).contains(&part.len())) {
            return Err(Reason::Form);
        }
        let (year, month, dom) = match order {
            Order::Iso => return Err(Reason::Ambiguous),
            Order::DayMonthYear => (third, second, first),
            Order::MonthDayYear => (third, first, second),
            Order::YearMonthDay => (first, second, third),
        };
        if month.len() > 2 || dom.len() > 2 {
            return Err(Reason::Form);
        }
        if year.len() != 4 {
            return Err(Reason::Ambiguous);
        }
        (number(year), number(month), number(dom))
    };
    let (Some(year), Some(month), Some(dom)) = (year, month, dom) else { return Err(Reason::Form) };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if year == 0 || !(1..=days).contains(&dom) {
        return Err(Reason::Range);
    }
    let digit = |number: u32| char::from(b'0' + (number % 10) as u8);
    out.extend([year / 1000, year / 100, year / 10, year].map(digit));
    for part in [month, dom] {
        out.extend(['-', digit(part / 10), digit(part)]);
    }
    Ok(())
}

fn number(digits: &str) -> Option<u32> {
    digits.parse().ok()
}

/// Whether `text` has digits where `shape` has a 9, and the same byte elsewhere.
fn is_shaped(text: &str, shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text
            .bytes()
            .zip(shape)
            .all(|(byte, want)| if *want == b'9' { byte.is_ascii_digit() } else { byte == *want })
}

/// A date as software writes one that has no time: without ` 00:00:00` and the like behind it.
fn without_midnight(text: &str) -> &str {
    let Some((day, time)) = text.split_at_checked(10).filter(|(day, _)| is_shaped(day, b"9999-99-99")) else {
        return text;
    };
    let time = time.strip_prefix(['T', ' ']).unwrap_or("");
    let zero = match time.strip_prefix("00:00:00.") {
        Some(fraction) => !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0'),
        None => time == "00:00" || time == "00:00:00",
    };
    if zero { day } else { text }
}

/// Appends the normal form of a whole number: its digits, with a minus if it is below zero.
pub(super) fn int(text: &str, out: &mut String) -> Result<(), Reason> {
    let seen = prelude(text);
    let (negative, digits) = match seen.chars().next() {
        None => return Err(Reason::Empty),
        Some('+') => (false, &seen[1..]),
        Some(c) if is_dash(c) => (true, &seen[c.len_utf8()..]),
        Some(_) => (false, &*seen),
    };
    if digits.is_empty() {
        return Err(Reason::Form);
    }
    let start = out.len();
    if negative {
        out.push('-');
    }
    let first = out.len();
    for c in digits.chars() {
        match digit(c) {
            Some(0) if out.len() == first => {}
            Some(value) => out.push((b'0' + value).into()),
            None => {
                out.truncate(start);
                // Thousands in one country are a fraction in another.
                let parting = c.is_whitespace() || ",.'_\u{2019}".contains(c);
                return Err(if parting { Reason::Ambiguous } else { Reason::Character });
            }
        }
    }
    if out.len() == first {
        out.truncate(start);
        out.push('0');
    }
    Ok(())
}

/// Appends the normal form of a UUID: 32 digits in lower case, with hyphens.
pub(super) fn uuid(text: &str, out: &mut String) -> Result<(), Reason> {
    let seen = prelude(text);
    if seen.is_empty() {
        return Err(Reason::Empty);
    }
    let lower = seen.to_ascii_lowercase();
    let bare = lower.strip_prefix("urn:uuid:").unwrap_or(&lower);
    let bare = bare.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(bare);
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let hyphened = bare.len() == 36 && HYPHENS.iter().all(|at| bare.as_bytes().get(*at) == Some(&b'-'));
    let (mut digits, mut count) = ([0; 32], 0);
    for byte in bare.bytes().filter(|byte| *byte != b'-') {
        if !byte.is_ascii_hexdigit() {
            return Err(Reason::Character);
        }
        if let Some(digit) = digits.get_mut(count) {
            *digit = byte;
        }
        count += 1;
    }
    if count != digits.len() {
        return Err(Reason::Length);
    }
    if !hyphened && bare.len() != 32 {
        return Err(Reason::Form);
    }
    let digits = std::str::from_utf8(&digits).unwrap_or_default();
    for (at, part) in [0..8, 8..12, 12..16, 16..20, 20..32].into_iter().enumerate() {
        if at > 0 {
            out.push('-');
        }
        out.push_str(&digits[part]);
    }
    Ok(())
}
