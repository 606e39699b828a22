//! Types within types.

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// The type with what `of` makes of the types that are directly within it.
pub(super) fn within(kind: &DataType, of: impl Fn(&DataType) -> DataType) -> DataType {
    let inner = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::clone(field).with_data_type(of(field.data_type())))
    };
    match kind {
        DataType::Dictionary(key, values) => DataType::Dictionary(key.clone(), Box::new(of(values))),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), inner(values)),
        DataType::List(of) => DataType::List(inner(of)),
        DataType::LargeList(of) => DataType::LargeList(inner(of)),
        DataType::ListView(of) => DataType::ListView(inner(of)),
        DataType::LargeListView(of) => DataType::LargeListView(inner(of)),
        DataType::FixedSizeList(of, length) => DataType::FixedSizeList(inner(of), *length),
        DataType::Map(of, sorted) => DataType::Map(inner(of), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}

/// The type with keys that number the values of many dictionaries: a library chooses the narrowest for one.
pub(super) fn widened(kind: &DataType) -> DataType {
    let wide = match within(kind, widened) {
        DataType::Dictionary(key, values) => {
            let is_narrow =
                matches!(*key, DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16);
            DataType::Dictionary(if is_narrow { Box::new(DataType::Int32) } else { key }, values)
        }
        other => other,
    };
    if arrow_cast::can_cast_types(kind, &wide) { wide } else { kind.clone() }
}

/// The columns with such keys.
pub(super) fn all_widened(schema: &Schema) -> SchemaRef {
    let wide = |field: &FieldRef| Field::clone(field).with_data_type(widened(field.data_type()));
    let fields: Vec<Field> = schema.fields().iter().map(wide).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}
