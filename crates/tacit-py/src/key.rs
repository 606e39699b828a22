//! What makes a row's key: columns of a table, their types, and their cells as text.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use tacit_data::columnar::{Texts, is_uuid};
use tacit_data::keys::{KeyType, NoType};
use tacit_data::records::{KeySpec, Normalisation};

/// A key in the columns `on`, of these types; of text unless said.
pub(crate) fn spec(
    on: Vec<String>,
    types: Option<Vec<String>>,
    normalisation: Normalisation,
) -> Result<KeySpec, String> {
    if on.is_empty() {
        return Err("on: name at least one column".to_owned());
    }
    let mut spec = KeySpec::text(on, normalisation);
    if let Some(types) = types {
        let known =
            types.iter().map(|name| KeyType::named(name).ok_or_else(|| format!("on: {}", NoType::new(name))));
        spec.types = known.collect::<Result<_, _>>()?;
    }
    Ok(spec)
}

/// The cells of a key's column as text, or why it cannot be a key.
pub(crate) fn texts(
    name: &str,
    column: &ArrayRef,
    field: &Field,
    key_type: KeyType,
) -> Result<Texts, String> {
    let kind = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        kind => kind,
    };
    match kind {
        DataType::LargeUtf8 => {}
        DataType::Utf8 | DataType::Utf8View | DataType::Boolean | DataType::Null => {}
        DataType::Date32 | DataType::Date64 | DataType::Decimal128(..) | DataType::Decimal256(..) => {}
        kind if kind.is_integer() => {}
        DataType::FixedSizeBinary(16) if is_uuid(field) => {}
        DataType::Timestamp(_, None) if key_type.is_date() => {}
        DataType::Timestamp(..) => {
            return Err(format!(
                "column {name} has timestamps; give it the type date, which accepts midnights without a \
                 time zone, or convert it to text or dates"
            ));
        }
        kind if kind.is_floating() => {
            return Err(format!(
                "column {name} has floating-point numbers, which two systems rarely write in the same way; convert it to text or integers"
            ));
        }
        kind => {
            return Err(format!(
                "column {name} has the type {kind}, which cannot be a key; convert it to text"
            ));
        }
    }
    let is_bad = |row: &usize| Texts::of(&column.slice(*row, 1), field).is_err();
    Texts::of(column, field).map_err(|_| {
        let row = (0..column.len()).find(is_bad).map_or(0, |row| row + 1);
        format!("column {name}, row {row} of its batch: not a valid date or time; leave it empty")
    })
}
