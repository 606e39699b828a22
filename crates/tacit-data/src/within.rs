//! Types within types.

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// The types that are directly within one.
pub(crate) fn parts(kind: &DataType) -> Vec<&DataType> {
    match kind {
        DataType::Dictionary(_, values) => vec![values],
        DataType::RunEndEncoded(_, of)
        | DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => vec![of.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// The type with what `of` makes of its [`parts`].
pub(crate) fn within(kind: &DataType, of: &mut dyn FnMut(&DataType) -> DataType) -> DataType {
    if let DataType::Dictionary(key, values) = kind {
        return DataType::Dictionary(key.clone(), Box::new(of(values)));
    }
    let mut inner = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::clone(field).with_data_type(of(field.data_type())))
    };
    match kind {
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), inner(values)),
        DataType::List(of) => DataType::List(inner(of)),
        DataType::LargeList(of) => DataType::LargeList(inner(of)),
        DataType::ListView(of) => DataType::ListView(inner(of)),
        DataType::LargeListView(of) => DataType::LargeListView(inner(of)),
        DataType::FixedSizeList(of, length) => DataType::FixedSizeList(inner(of), *length),
        DataType::Map(of, sorted) => DataType::Map(inner(of), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(&mut inner).collect()),
        DataType::Union(fields, mode) => {
            DataType::Union(fields.iter().map(|(id, field)| (id, inner(field))).collect(), *mode)
        }
        other => other.clone(),
    }
}

/// The type with keys that number the values of many dictionaries: a library chooses the narrowest for one.
pub(crate) fn widened(kind: &DataType) -> DataType {
    let (key, values) = match within(kind, &mut widened) {
        DataType::Dictionary(key, values) => (key, values),
        other => return other,
    };
    let key = if most_words(&key).is_some() { Box::new(DataType::Int32) } else { key };
    let wide = DataType::Dictionary(key, values);
    if arrow_cast::can_cast_types(kind, &wide) { wide } else { kind.clone() }
}

/// How many values a dictionary with keys of this narrow type may have and be read and written in parts.
pub(crate) fn most_words(key: &DataType) -> Option<u64> {
    match key {
        DataType::Int8 => Some(i8::MAX as u64),
        DataType::UInt8 => Some(u8::MAX.into()),
        DataType::Int16 => Some(i16::MAX as u64),
        DataType::UInt16 => Some(u16::MAX.into()),
        _ => None,
    }
}

/// The columns with such keys.
pub(crate) fn all_widened(schema: &Schema) -> SchemaRef {
    let wide = |field: &FieldRef| Field::clone(field).with_data_type(widened(field.data_type()));
    let fields: Vec<Field> = schema.fields().iter().map(wide).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
