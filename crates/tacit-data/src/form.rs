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

/// A whole number that stands for so many `digits` behind the point, at most 24: `1275` of 2 is `12.75`.
pub fn decimal(number: i128, digits: u32) -> String {
    let one = 10u128.pow(digits);
    let (whole, rest) = (number.unsigned_abs() / one, number.unsigned_abs() % one);
    let sign = if number < 0 { "-" } else { "" };
    match digits {
        0 => number.to_string(),
        digits => format!("{sign}{whole}.{rest:0width$}", width = digits as usize),
    }
}

impl Form {
    /// Reads `date`, or `decimal` with the digits behind it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if name == "date" {
            return Some(Form::Date);
        }
        let digits = name.strip_prefix("decimal")?;
        let one = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|digits| one && usize::from(*digits) <= MOST_DIGITS).map(Form::Decimal)
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
        if let Some(sign) = open_end(text) {
            return Err(format!("a number is expected; remove the {sign} at the end"));
        }
        if text.contains('.') {
            // It parts thousands here, and a fraction elsewhere.
            return Err(match scaled_by(text.trim(), digits.into()) {
                Some(_) => {
                    format!("the cell has a point, and {COMMA_SET}; leave that setting out, or write a comma")
                }
                None => {
                    format!("the cell has a point, and {COMMA_SET}; remove points that separate thousands")
                }
            });
        }
        scaled(&text.replace(',', "."), digits.into(), out)
            .map_err(|what| what.replace("point", "comma").replace("12.5", "12,5"))
    }

    /// The number that a column's text stands for, such as 50000 for `500` as `decimal2`, or days for a date.
    ///
    /// An error says what was expected.
    pub fn number(self, text: &str) -> std::result::Result<i64, String> {
        let mut number = String::new();
        self.read(text.trim(), &mut number)?;
        number.parse().map_err(|_| match number.parse::<i128>() {
            Ok(_) => {
                format!("a number from {} to {} is expected", self.written(i64::MIN), self.written(i64::MAX))
            }
            Err(_) => "a whole number of 64 bits is expected".to_owned(),
        })
    }

    /// The text of such a number: a decimal with all its digits. Days stay a number.
    pub fn written(self, number: i64) -> String {
        match self {
            Form::Plain | Form::Date => number.to_string(),
            Form::Decimal(digits) => decimal(number.into(), digits.into()),
        }
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

/// How errors say that this setting is set, where it may be wrong.
pub const COMMA_SET: &str = "fractions of this table are set to follow a comma";

/// What to do about a number with a fraction where a whole number is expected; nothing if `text` is none.
pub fn fraction(text: &str) -> Option<String> {
    if let Some(sign) = open_end(text) {
        return Some(format!("remove the {sign} at the end"));
    }
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

/// The sign that a number ends with as if a fraction followed, which reads otherwise in every program.
fn open_end(text: &str) -> Option<&'static str> {
    let number = text.trim().trim_start_matches(['-', '+']);
    let sign = if number.ends_with('.') { "point" } else { "comma" };
    let whole = number.strip_suffix(['.', ','])?;
    (!whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit())).then_some(sign)
}

/// Appends the number times 10^digits.
pub(crate) fn scaled(text: &str, digits: usize, out: &mut String) -> std::result::Result<(), String> {
    let text = text.trim();
    let expected = || {
        let (what, example) = match digits {
            0 => ("a whole number is expected".to_owned(), "12"),
            _ => {
                let digits = counted(digits as u64, "digit");
                (format!("a decimal with at most {digits} after the point is expected"), "12.5")
            }
        };
        if let Some(sign) = open_end(text) {
            return format!("a number is expected; remove the {sign} at the end");
        }
        let with_point = text.replacen(',', ".", 1);
        let places =
            with_point.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches('0').len());
        let is_readable = scaled_by(&with_point, places).is_some();
        let has_room = scaled_by(&with_point, digits).is_some();
        match (is_readable, text.contains(',')) {
            (true, true) if has_room => {
                format!("{what}; write a point, or set that the table has a {DECIMAL_COMMA}")
            }
            (true, true) if is_grouped(text) => format!("{what}; remove separators of thousands"),
            (true, true) => {
                format!("{what}; round it, and write a point or set that the table has a {DECIMAL_COMMA}")
            }
            (true, false) if digits >= MOST_DIGITS => format!("{what}; round it"),
            (true, false) => format!("{what}; round it, or name a type with more digits, up to `decimal18`"),
            (false, _) => {
                format!("{what}, such as {example}; remove separators of thousands, signs and units")
            }
        }
    };
    out.push_str(&scaled_by(text, digits).ok_or_else(expected)?);
    Ok(())
}

/// The most digits behind a point.
const MOST_DIGITS: usize = 18;

/// Whether commas may separate thousands: three digits follow each.
fn is_grouped(text: &str) -> bool {
    let whole = text.split('.').next().unwrap_or(text);
    whole.split(',').skip(1).all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The number times 10^digits; nothing if `text` is not one, or has more digits after the point.
fn scaled_by(text: &str, digits: usize) -> Option<String> {
    let (sign, plain) = match text.strip_prefix(['-', '+']) {
        Some(plain) if text.starts_with('-') => ("-", plain),
        Some(plain) => ("", plain),
        None => ("", text),
    };
    // As whole numbers do not, a decimal ends with no point.
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, "0"));
    let is_open = fraction.is_empty();
    let fraction = fraction.trim_end_matches('0');
    let digital = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if is_open || whole.is_empty() || !digital(whole) || !digital(fraction) || fraction.len() > digits {
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
            ("12.345678", false, "; round it, or name a type"),
            ("12,345678", false, "; round it, and write a point or set that"),
            ("1,234", false, "; remove separators of thousands"),
            ("12.5", true, "fractions of this table are set to follow a comma; leave that setting out"),
            ("1.234,50", true, "remove points that separate thousands"),
            ("€ 5", true, "such as 12,5; remove separators of thousands, signs and units"),
            ("5.", false, "a number is expected; remove the point at the end"),
            ("-5,", false, "remove the comma at the end"),
            ("5.", true, "remove the point at the end"),
            ("5,", true, "remove the comma at the end"),
            ("1,234.50", false, "such as 12.5; remove separators of thousands"),
        ] {
            let said = wrong(Form::Decimal(2), text, comma);
            assert!(said.contains(words), "{text}: {said}");
        }
        let of = |digits, text| wrong(Form::Decimal(digits), text, false);
        assert_eq!(
            of(0, "12.5x"),
            "a whole number is expected, such as 12; remove separators of thousands, signs and units"
        );
        assert_eq!(of(0, "1,234"), "a whole number is expected; remove separators of thousands");
        assert!(of(18, "0.1234567890123456789").ends_with("is expected; round it"));
        assert_eq!(fraction(" +5.").unwrap(), "remove the point at the end");
        assert!(fraction("12.5").unwrap().ends_with("`price:decimal2`"));
        assert!(fraction("-12,50").unwrap().ends_with(DECIMAL_COMMA));
        assert_eq!(["12", "a,5", "1,2,3", "a,", ",5", "x.y"].map(fraction), [const { None }; 6]);
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
            (2, "+12", "1200"),
        ] {
            assert_eq!(read(Form::Decimal(digits), text).as_deref(), Some(number), "{text}");
        }
        for (digits, number, text) in
            [(2, 50_000, "500.00"), (2, -7, "-0.07"), (0, 7, "7"), (18, i64::MIN, "-9.223372036854775808")]
        {
            assert_eq!(Form::Decimal(digits).written(number), text);
            assert_eq!(Form::Decimal(digits).number(text), Ok(number));
        }
        assert_eq!(Form::Plain.number(" -5"), Ok(-5));
        for text in ["", "5.5", "9223372036854775808", "x"] {
            assert!(Form::Plain.number(text).is_err(), "{text}");
        }
        assert!(Form::Decimal(2).number("92233720368547758.08").is_err());
        for text in ["1.234", "1e3", "", ".5", "1.2.3", "--1", "+-1", "5.", "1,5", "NaN"] {
            assert_eq!(read(Form::Decimal(2), text), None, "{text}");
        }
    }
}
