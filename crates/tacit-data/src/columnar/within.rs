//! Types within types.

use arrow_schema::{DataType, Field, FieldRef};
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
