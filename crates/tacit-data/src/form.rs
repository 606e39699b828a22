//! What the text of a column that is computed on means: whole numbers, dates, and decimals as so many digits.

use crate::keys::{KeyType, Reason};
use crate::records::Normalisation;
use tacit_crypto::text::counted;

/// What a column's text means.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Form {
    /// What it says.
    #[default]
    Plain,
    /// A date, `2024-01-31` or that with a midnight behind it: the days since 1970-01-01.
    Date,
    /// A decimal with at most so many digits behind the point: the number times ten to the power of that.
    Decimal(u8),
}

impl Form {
    /// Reads `date`, or `decimal` with the digits behind it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if name == "date" {
            return Some(Form::Date);
        }
        let digits = name.strip_prefix("decimal")?;
        let one = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|digits| one && *digits <= 18).map(Form::Decimal)
    }

    /// The same of a cell of a file without types, whose decimals may have a comma.
    pub(crate) fn read_written(
        self,
        text: &str,
        comma: bool,
        out: &mut String,
    ) -> std::result::Result<(), String> {
        let Form::Decimal(digits) = self else { return self.read(text, out) };
        if !comma {
            return scaled(text, digits.into(), out);
        }
        if text.contains('.') {
            // It parts thousands here, and a fraction elsewhere.
            return Err(
                "a decimal with a comma and no points is expected, as this table has decimal commas; remove \
                        the points"
                    .to_owned(),
            );
        }
        scaled(&text.replace(',', "."), digits.into(), out)
            .map_err(|what| what.replace("point", "comma").replace("12.5", "12,5"))
    }

    /// Appends the value's text, or says what was expected.
    pub(crate) fn read(self, text: &str, out: &mut String) -> std::result::Result<(), String> {
        match self {
            Form::Plain => out.push_str(text),
            Form::Date => out.push_str(&days(text)?.to_string()),
            Form::Decimal(digits) => scaled(text, digits.into(), out)?,
        }
        Ok(())
    }
}

/// The days from 1970-01-01 to this date.
fn days(text: &str) -> std::result::Result<i64, String> {
    const EXPECTED: &str = "a date such as 2024-01-31 is expected";
    let (date, mut normal) = (KeyType::named("date").ok_or(EXPECTED)?, String::new());
    date.normalise(Normalisation::default(), text, &mut normal).map_err(|reason| match reason {
        Reason::Range => "a day that exists is expected".to_owned(),
        _ => EXPECTED.to_owned(),
    })?;
    let part = |from, to| normal.get(from..to).and_then(|part| part.parse::<i64>().ok());
    let (Some(year), Some(month), Some(day)) = (part(0, 4), part(5, 7), part(8, 10)) else {
        return Err(EXPECTED.to_owned());
    };
    // Years that begin in March, so that the leap day is a year's last.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Ok(before + (153 * month + 2) / 5 + day - 1 - 719_468)
}

/// How errors call commas before fractions, for which a table has a setting of its own.
pub const DECIMAL_COMMA: &str = "decimal comma";

/// What to do about a number with a fraction where a whole number is expected; nothing if `text` is none.
pub fn fraction(text: &str) -> Option<String> {
    let number = text.trim().trim_start_matches('-');
    let (whole, rest) = number.split_once(['.', ','])?;
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(rest) {
        return None;
    }
    let and = if number.contains(',') {
        format!(", and set that the table has a {DECIMAL_COMMA}")
    } else {
        String::new()
    };
    Some(format!(
        "to read numbers with a fraction, add the decimal places to the column, as in `price:decimal2`{and}"
    ))
}

/// Appends the number times 10^digits.
pub(crate) fn scaled(text: &str, digits: usize, out: &mut String) -> std::result::Result<(), String> {
    let text = text.trim();
    let expected = || {
        let what = format!(
            "a decimal with at most {digits} after the point is expected",
            digits = counted(digits as u64, "digit")
        );
        let with_point = text.replacen(',', ".", 1);
        let places =
            with_point.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len());
        let is_readable = scaled_by(&with_point, places).is_some();
        match (is_readable, text.contains(',')) {
            (true, true) => format!("{what}; write a point, or set that the table has a {DECIMAL_COMMA}"),
            (true, false) => format!("{what}; round it, or name a type with more digits, up to `decimal18`"),
            (false, _) => format!("{what}, such as 12.5; remove separators of thousands, signs and units"),
        }
    };
    out.push_str(&scaled_by(text, digits).ok_or_else(expected)?);
    Ok(())
}

/// The number times 10^digits; nothing if `text` is not one, or has more digits after the point.
fn scaled_by(text: &str, digits: usize) -> Option<String> {
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => ("-", plain),
        None => ("", text),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let fraction = fraction.trim_end_matches('0');
    let digital = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digital(whole) || !digital(fraction) || fraction.len() > digits {
        return None;
    }
    let number = format!("{whole}{fraction:0<digits$}");
    Some(match number.trim_start_matches('0') {
        "" => "0".to_owned(),
        number => format!("{sign}{number}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_number_says_what_to_do() {
        let wrong =
            |form: Form, text: &str, comma| form.read_written(text, comma, &mut String::new()).unwrap_err();
        for (text, comma, words) in [
            ("12,5", false, "at most 2 digits after the point is expected; write a point, or set that"),
            ("12.345", false, "; round it, or name a type with more digits, up to `decimal18`"),
            ("12,345", true, "at most 2 digits after the comma is expected; round it"),
            ("12.5", true, "remove the points"),
            ("€ 5", true, "such as 12,5; remove separators of thousands, signs and units"),
            ("1,234.50", false, "such as 12.5; remove separators of thousands"),
        ] {
            let said = wrong(Form::Decimal(2), text, comma);
            assert!(said.contains(words), "{text}: {said}");
        }
        assert!(fraction("12.5").unwrap().ends_with("`price:decimal2`"));
        assert!(fraction("-12,50").unwrap().ends_with(DECIMAL_COMMA));
        assert_eq!(["12", "a,5", "1,2,3", "12,", ",5", "x.y"].map(fraction), [const { None }; 6]);
    }

    #[test]
    fn decimals_may_have_a_comma_where_that_is_said() {
        let read = |text: &str, comma| {
            let mut out = String::new();
            Form::Decimal(2).read_written(text, comma, &mut out).map(|()| out).ok()
        };
        for (text, with_comma, with_point) in [
            ("12,5", Some("1250"), None),
            ("-0,07", Some("-7"), None),
            ("3", Some("300"), Some("300")),
            ("12.5", None, Some("1250")),
            ("1.234,50", None, None),
            ("1,234.50", None, None),
            ("1,234", None, None),
            (",5", None, None),
        ] {
            assert_eq!(read(text, true).as_deref(), with_comma, "{text}");
            assert_eq!(read(text, false).as_deref(), with_point, "{text}");
        }
    }

    #[test]
    fn dates_are_days_and_decimals_are_scaled() {
        let read = |form: Form, text: &str| {
            let mut out = String::new();
            form.read(text, &mut out).map(|()| out).ok()
        };
        for (text, days) in [
            ("1970-01-01", "0"),
            ("1969-12-31", "-1"),
            ("2024-02-29", "19782"),
            ("2024-03-01 00:00:00", "19783"),
            ("2000-03-01T00:00:00", "11017"),
            ("0001-01-01", "-719162"),
            ("9999-12-31", "2932896"),
        ] {
            assert_eq!(read(Form::Date, text).as_deref(), Some(days), "{text}");
        }
        for text in ["", "2023-02-29", "2024-03-01 00:00:01", "01.02.2024", "5"] {
            assert_eq!(read(Form::Date, text), None, "{text}");
        }
        for (digits, text, number) in [
            (2, "12.5", "1250"),
            (2, "-0.07", "-7"),
            (2, "0", "0"),
            (2, "-0.00", "0"),
            (0, "7.000", "7"),
            (3, " 001.25 ", "1250"),
        ] {
            assert_eq!(read(Form::Decimal(digits), text).as_deref(), Some(number), "{text}");
        }
        for text in ["1.234", "1e3", "", ".5", "1.2.3", "--1", "1,5", "NaN"] {
            assert_eq!(read(Form::Decimal(2), text), None, "{text}");
        }
    }
}
