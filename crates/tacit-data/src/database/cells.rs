//! A column of an answer: from PostgreSQL's text to cells of a type.

use crate::kept::NUMERIC;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder,
};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use postgres::types::Type;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Digits of the largest decimal that has a type.
const DECIMAL_DIGITS: i32 = 38;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// A column and the cells of the batch that grows.
pub(super) struct Column {
    pub(super) field: Field,
    cells: Cells,
}

enum Cells {
    Text(StringBuilder),
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Oid(UInt32Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Date(Date32Builder),
    Moment(TimestampMicrosecondBuilder, Option<Arc<str>>),
    Bytes(BinaryBuilder),
}

impl Column {
    pub(super) fn of(column: &postgres::Column) -> Self {
        let cells = match *column.type_() {
            Type::BOOL => Cells::Bool(BooleanBuilder::new()),
            Type::INT2 => Cells::Int2(Int16Builder::new()),
            Type::INT4 => Cells::Int4(Int32Builder::new()),
            Type::INT8 => Cells::Int8(Int64Builder::new()),
            Type::OID => Cells::Oid(UInt32Builder::new()),
            Type::FLOAT4 => Cells::Float4(Float32Builder::new()),
            Type::FLOAT8 => Cells::Float8(Float64Builder::new()),
            Type::DATE => Cells::Date(Date32Builder::new()),
            Type::TIMESTAMP => Cells::Moment(TimestampMicrosecondBuilder::new(), None),
            Type::TIMESTAMPTZ => Cells::Moment(TimestampMicrosecondBuilder::new(), Some("+00:00".into())),
            Type::BYTEA => Cells::Bytes(BinaryBuilder::new()),
            Type::NUMERIC => match precision(column.type_modifier()) {
                Some((digits, scale)) => Cells::Decimal(Decimal128Builder::new(), digits, scale),
                None => Cells::Text(StringBuilder::new()),
            },
            _ => Cells::Text(StringBuilder::new()),
        };
        let mut field = Field::new(column.name(), cells.data_type(), true);
        if *column.type_() == Type::NUMERIC && matches!(cells, Cells::Text(_)) {
            let (name, value) = NUMERIC;
            field = field.with_metadata(HashMap::from([(name.to_owned(), value.to_owned())]));
        }
        Column { field, cells }
    }

    /// Appends a cell as `COPY` writes it, or says what is wrong with it.
    pub(super) fn take(&mut self, cell: &mut [u8]) -> Result<(), &'static str> {
        if cell == b"\\N" {
            self.cells.null();
            return Ok(());
        }
        let text = std::str::from_utf8(unescaped(cell)).map_err(|_| "is not UTF-8")?;
        let unread = "is not of its column's type";
        match &mut self.cells {
            Cells::Text(cells) => cells.append_value(text),
            Cells::Bool(cells) => cells.append_value(match text {
                "t" => true,
                "f" => false,
                _ => return Err(unread),
            }),
            Cells::Int2(cells) => cells.append_value(number(text)?),
            Cells::Int4(cells) => cells.append_value(number(text)?),
            Cells::Int8(cells) => cells.append_value(number(text)?),
            Cells::Oid(cells) => cells.append_value(number(text)?),
            Cells::Float4(cells) => cells.append_value(number(text)?),
            Cells::Float8(cells) => cells.append_value(number(text)?),
            Cells::Decimal(cells, _, scale) => cells.append_value(decimal(text, *scale).ok_or(
                "is a number that does not fit into a decimal, such as NaN; convert it to text in the query",
            )?),
            Cells::Date(cells) => cells.append_value(date(text).ok_or(OUT_OF_RANGE)?),
            Cells::Moment(cells, _) => cells.append_value(moment(text).ok_or(OUT_OF_RANGE)?),
            Cells::Bytes(cells) => cells.append_value(bytes(text).ok_or(unread)?),
        }
        Ok(())
    }

    /// The cells so far.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match &mut self.cells {
            Cells::Text(cells) => Arc::new(cells.finish()),
            Cells::Bool(cells) => Arc::new(cells.finish()),
            Cells::Int2(cells) => Arc::new(cells.finish()),
            Cells::Int4(cells) => Arc::new(cells.finish()),
            Cells::Int8(cells) => Arc::new(cells.finish()),
            Cells::Oid(cells) => Arc::new(cells.finish()),
            Cells::Float4(cells) => Arc::new(cells.finish()),
            Cells::Float8(cells) => Arc::new(cells.finish()),
            Cells::Decimal(cells, digits, scale) => {
                Arc::new(cells.finish().with_precision_and_scale(*digits, *scale)?)
            }
            Cells::Date(cells) => Arc::new(cells.finish()),
            Cells::Moment(cells, zone) => Arc::new(cells.finish().with_timezone_opt(zone.clone())),
            Cells::Bytes(cells) => Arc::new(cells.finish()),
        })
    }
}

const OUT_OF_RANGE: &str = "is infinite or before Christ; convert it to text in the query";

impl Cells {
    fn data_type(&self) -> DataType {
        match self {
            Cells::Text(_) => DataType::Utf8,
            Cells::Bool(_) => DataType::Boolean,
            Cells::Int2(_) => DataType::Int16,
            Cells::Int4(_) => DataType::Int32,
            Cells::Int8(_) => DataType::Int64,
            Cells::Oid(_) => DataType::UInt32,
            Cells::Float4(_) => DataType::Float32,
            Cells::Float8(_) => DataType::Float64,
            Cells::Decimal(_, digits, scale) => DataType::Decimal128(*digits, *scale),
            Cells::Date(_) => DataType::Date32,
            Cells::Moment(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            Cells::Bytes(_) => DataType::Binary,
        }
    }

    fn null(&mut self) {
        match self {
            Cells::Text(cells) => cells.append_null(),
            Cells::Bool(cells) => cells.append_null(),
            Cells::Int2(cells) => cells.append_null(),
            Cells::Int4(cells) => cells.append_null(),
            Cells::Int8(cells) => cells.append_null(),
            Cells::Oid(cells) => cells.append_null(),
            Cells::Float4(cells) => cells.append_null(),
            Cells::Float8(cells) => cells.append_null(),
            Cells::Decimal(cells, ..) => cells.append_null(),
            Cells::Date(cells) => cells.append_null(),
            Cells::Moment(cells, _) => cells.append_null(),
            Cells::Bytes(cells) => cells.append_null(),
        }
    }
}

/// Digits in all and behind the point, as a column of `numeric` was made with, if a decimal can hold them.
fn precision(modifier: i32) -> Option<(u8, i8)> {
    let packed = modifier.checked_sub(4).filter(|packed| *packed >= 0)?;
    // The scale has eleven bits, and a sign.
    let (digits, scale) = (packed >> 16, ((packed & 0x7ff) ^ 1024) - 1024);
    let fits = (1..=DECIMAL_DIGITS).contains(&digits) && (0..=digits).contains(&scale);
    if fits { Some((digits as u8, scale as i8)) } else { None }
}

/// A cell without the escapes of `COPY`, in its place.
fn unescaped(cell: &mut [u8]) -> &[u8] {
    let Some(first) = cell.iter().position(|byte| *byte == b'\\') else { return cell };
    let (mut from, mut to) = (first, first);
    while let Some(&byte) = cell.get(from) {
        let (byte, step) = match (byte, cell.get(from + 1)) {
            (b'\\', Some(escaped)) => (
                match escaped {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    other => *other,
                },
                2,
            ),
            (byte, _) => (byte, 1),
        };
        cell[to] = byte;
        from += step;
        to += 1;
    }
    &cell[..to]
}

fn number<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "is not of its column's type")
}

/// A decimal as its digits without the point, of which `scale` stand behind it.
fn decimal(text: &str, scale: i8) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() != usize::try_from(scale).ok()? {
        return None;
    }
    let mut digits = String::with_capacity(text.len());
    digits.push_str(whole);
    digits.push_str(fraction);
    digits.parse().ok()
}

/// Days since 1970 of `YYYY-MM-DD`.
fn date(text: &str) -> Option<i32> {
    let mut parts = text.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is a year's last one.
    let years = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (years.div_euclid(400), years.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    i32::try_from(days).ok()
}

/// Microseconds since 1970 of `YYYY-MM-DD HH:MM:SS[.ffffff][+00]`.
fn moment(text: &str) -> Option<i64> {
    let (day, time) = text.split_once(' ')?;
    let time = time.strip_suffix("+00").unwrap_or(time);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: i64 = format!("{fraction:0<6}").parse().ok()?;
    let of_day = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction;
    i64::from(date(day)?).checked_mul(DAY_MICROSECONDS)?.checked_add(of_day)
}

/// Bytes of `\x…`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?;
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_as_postgresql_writes_them() {
        let plain =
            |text: &str| String::from_utf8(unescaped(&mut text.as_bytes().to_vec()).to_vec()).unwrap();
        assert_eq!(plain(r"a\tb\\N\nc\bd"), "a\tb\\N\nc\u{8}d");
        assert_eq!(plain("ohne"), "ohne");
        for (text, days) in
            [("1970-01-01", 0), ("2000-02-29", 11_016), ("1969-12-31", -1), ("0001-01-01", -719_162)]
        {
            assert_eq!(date(text), Some(days), "{text}");
        }
        for wrong in ["infinity", "-infinity", "0044-03-15 BC", "", "2000-13-01"] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
        assert_eq!(moment("1970-01-02 00:00:01.5"), Some(DAY_MICROSECONDS + 1_500_000));
        assert_eq!(moment("1969-12-31 23:59:59.999999+00"), Some(-1));
        assert_eq!(moment("infinity"), None);
        assert_eq!(decimal("-12.340", 3), Some(-12_340));
        assert_eq!(decimal("-0.05", 2), Some(-5));
        assert_eq!((decimal("NaN", 2), decimal("1.5", 2)), (None, None));
        assert_eq!(bytes("\\x00ff"), Some(vec![0, 255]));
    }

    #[test]
    fn the_precision_of_a_numeric_is_read_from_its_modifier() {
        let modifier = |digits: i32, scale: i32| (digits << 16 | scale & 0x7ff) + 4;
        assert_eq!(precision(modifier(10, 2)), Some((10, 2)));
        assert_eq!(precision(modifier(38, 0)), Some((38, 0)));
        for other in [-1, modifier(39, 2), modifier(5, -2), modifier(2, 5)] {
            assert_eq!(precision(other), None);
        }
    }
}
