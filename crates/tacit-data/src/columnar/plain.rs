//! Cells as they are written where nothing has types: which have a text, and which one.

use super::stored::is_uuid;
use crate::fault::{Error, PANICKED};
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::date64_to_datetime;
use arrow_array::types::{Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field};
use std::path::Path;

/// What a cell must have to go to a key or to CSV.
pub(crate) const NO_TEXT: &str = "a date or time beyond the calendar, or a decimal with more digits than its column's type, cannot be written as text; leave the cell empty or change it";

/// What cells of this type are, if they have no text.
pub(crate) fn without_text(data: &DataType) -> Option<&'static str> {
    match data {
        DataType::Dictionary(_, values) => without_text(values),
        DataType::RunEndEncoded(_, values) => without_text(values.data_type()),
        DataType::Struct(_) | DataType::Map(..) => Some("a structure"),
        DataType::Union(..) => Some("a union"),
        DataType::Duration(_) | DataType::Interval(_) => Some("a span of time"),
        other if other.is_nested() => Some("a list"),
        _ => None,
    }
}

/// A column whose cells are written as they are: no dictionary, points in time of a zone in UTC, and UUIDs as
/// text.
pub(crate) fn plain(column: &ArrayRef, field: &Field) -> std::result::Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::FixedSizeBinary(_) if is_uuid(field) => Ok(uuids(column)),
        DataType::Dictionary(_, values) => plain(&arrow_cast::cast(column, values)?, field),
        DataType::RunEndEncoded(_, values) => plain(&arrow_cast::cast(column, values.data_type())?, field),
        DataType::Timestamp(unit, Some(zone)) if &**zone != UTC => {
            arrow_cast::cast(column, &DataType::Timestamp(*unit, Some(UTC.into())))
        }
        DataType::Date64 => dates(column),
        _ => {
            has_digits(column)?;
            Ok(column.clone())
        }
    }
}

/// Errors where a decimal has more digits than its column's type says: as text it would lose the last ones. DuckDB's
/// HUGEINT comes so, as may what is stored in bytes.
pub fn has_digits(column: &ArrayRef) -> std::result::Result<(), ArrowError> {
    match column.data_type() {
        DataType::Decimal32(digits, _) => {
            column.as_primitive::<Decimal32Type>().validate_decimal_precision(*digits)
        }
        DataType::Decimal64(digits, _) => {
            column.as_primitive::<Decimal64Type>().validate_decimal_precision(*digits)
        }
        DataType::Decimal128(digits, _) => {
            column.as_primitive::<Decimal128Type>().validate_decimal_precision(*digits)
        }
        DataType::Decimal256(digits, _) => {
            column.as_primitive::<Decimal256Type>().validate_decimal_precision(*digits)
        }
        _ => Ok(()),
    }
}

const UTC: &str = "+00:00";

/// The text of UUIDs, of 16 bytes each.
pub(crate) fn uuids(column: &ArrayRef) -> ArrayRef {
    let Some(cells) = column.as_fixed_size_binary_opt() else { return column.clone() };
    let text = |bytes: &[u8]| {
        let mut text = String::with_capacity(36);
        for (at, byte) in bytes.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            text += &format!("{byte:02x}");
        }
        text
    };
    let texts: StringArray = cells.iter().map(|cell| cell.map(text)).collect();
    std::sync::Arc::new(texts)
}

/// Dates in milliseconds as dates where all are whole days, else as text: a time that somebody put there stays.
pub(crate) fn dates(column: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let days = column.as_primitive::<Date64Type>();
    // Of a day that has no text the whole column decides nothing: its row is to be found by itself.
    if days.iter().flatten().any(|day| date64_to_datetime(day).is_none()) {
        return Err(ArrowError::CastError("a date beyond the calendar".into()));
    }
    if days.iter().flatten().all(|day| whole_days(day).is_some()) {
        return arrow_cast::cast(column, &DataType::Date32);
    }
    let options = FormatOptions::new().with_display_error(false);
    let texts = ArrayFormatter::try_new(column, &options)?;
    let text = |row: usize| match column.is_null(row) {
        true => Ok(None),
        false => {
            let text = texts.value(row).try_to_string()?;
            Ok(Some(text.strip_suffix("T00:00:00").map_or(text.clone(), str::to_owned)))
        }
    };
    let texts: StringArray = (0..column.len()).map(text).collect::<std::result::Result<_, ArrowError>>()?;
    Ok(std::sync::Arc::new(texts))
}

/// The days of a count of milliseconds that is one of whole days and fits.
pub(crate) fn whole_days(milliseconds: i64) -> Option<i32> {
    const MILLIS_OF_DAY: i64 = 86_400_000;
    (milliseconds % MILLIS_OF_DAY == 0).then(|| i32::try_from(milliseconds / MILLIS_OF_DAY).ok()).flatten()
}

/// That rows cannot go to the file of this name.
pub(crate) fn unwritable(target: &Path, error: &dyn std::fmt::Display) -> Error {
    let error = error.to_string();
    // Here it was no reader that panicked.
    let said = match error.split_once(PANICKED) {
        Some((_, place)) => format!("writing it failed{place}; name an output of another format"),
        None => error,
    };
    Error::Unwritable { path: target.to_owned(), source: std::io::Error::other(said) }
}
