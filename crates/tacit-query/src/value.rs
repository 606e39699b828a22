//! Values that a row's cells and a text's literals have: exact decimals, dates, truth values and text.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// Digits after the point of a number that a cell or a literal has, at most.
pub(crate) const MOST_DIGITS: u8 = 18;
/// Digits of a number that a cell or a literal has, at most.
const MOST_LENGTH: usize = 36;

/// An exact decimal: `units` times 10^-`scale`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Decimal {
    pub(crate) units: i128,
    pub(crate) scale: u8,
}

/// Ten to the power of this, if it fits.
pub(crate) fn power(digits: u8) -> Option<i128> {
    10i128.checked_pow(digits.into())
}

impl Decimal {
    /// A whole number.
    pub(crate) const fn whole(units: i128) -> Self {
        Decimal { units, scale: 0 }
    }

    /// Reads `-12.50`, without an exponent; `None` if it is something else, or too long.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = if whole.is_empty() && !rest.is_empty() { "0" } else { whole };
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(rest) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        if whole.len() + rest.len() > MOST_LENGTH || rest.len() > MOST_DIGITS.into() {
            return None;
        }
        let mut units = 0i128;
        for digit in whole.bytes().chain(rest.bytes()) {
            units = units * 10 + i128::from(digit - b'0');
        }
        Some(Decimal { units: if negative { -units } else { units }, scale: rest.len() as u8 })
    }

    /// The same number in units of 10^-scale, if it is a whole number of them and they fit.
    pub(crate) fn at(self, scale: u8) -> Option<i128> {
        if scale >= self.scale {
            return self.units.checked_mul(power(scale - self.scale)?);
        }
        let unit = power(self.scale - scale)?;
        (self.units % unit == 0).then(|| self.units / unit)
    }

    /// The same number without zeros at its end.
    pub(crate) fn shortest(mut self) -> Self {
        while self.scale > 0 && self.units % 10 == 0 {
            self = Decimal { units: self.units / 10, scale: self.scale - 1 };
        }
        self
    }

    /// The sum, or `None` if it does not fit.
    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        Some(Decimal { units: self.at(scale)?.checked_add(other.at(scale)?)?, scale })
    }

    /// The negative.
    pub(crate) fn negative(self) -> Option<Self> {
        Some(Decimal { units: self.units.checked_neg()?, scale: self.scale })
    }

    /// The product, or `None` if it does not fit.
    pub(crate) fn multiply(self, other: Self) -> Option<Self> {
        let (a, b) = (self.shortest(), other.shortest());
        Some(Decimal { units: a.units.checked_mul(b.units)?, scale: a.scale.checked_add(b.scale)? })
    }

    /// How the two compare, or `None` if their units are too far apart.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        let (a, b) = (self.shortest(), other.shortest());
        let scale = a.scale.max(b.scale);
        Some(a.at(scale)?.cmp(&b.at(scale)?))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.units.unsigned_abs().to_string();
        let scale = usize::from(self.scale);
        let sign = if self.units < 0 { "-" } else { "" };
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, rest) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{rest}")
    }
}

/// The days from 1970-01-01 to a date such as `2026-11-28`.
pub(crate) fn days(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let form = |at: usize, byte: &u8| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() };
    if bytes.len() != 10 || !bytes.iter().enumerate().all(|(at, byte)| form(at, byte)) {
        return None;
    }
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i128>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    if year == 0 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    // Years that begin in March, so that the leap day is a year's last.
    let (of, moved) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let before = 365 * of + of.div_euclid(4) - of.div_euclid(100) + of.div_euclid(400);
    let days = before + (153 * moved + 2) / 5 + day - 1 - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

/// The year, month and day that these days after 1970-01-01 are.
pub(crate) fn civil(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let moved = (5 * of_year + 2) / 153;
    let day = of_year - (153 * moved + 2) / 5 + 1;
    let month = if moved < 10 { moved + 3 } else { moved - 9 };
    (year + era * 400 + i128::from(month < 3), month, day)
}

/// The date as text.
pub(crate) fn date(days: i128) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Truth(bool),
    Number(Decimal),
    /// Days since 1970-01-01.
    Date(i128),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// How two values of one type compare; `None` if one is nothing or their numbers are too far apart.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.compare(*b),
            (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Truth(a), Value::Truth(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Whether it is nothing.
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}
