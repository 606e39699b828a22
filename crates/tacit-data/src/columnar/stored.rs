//! What a Parquet file says of its columns beyond what Arrow's types hold.
//!
//! Timestamps of 96 bits, as Spark writes them, count nanoseconds from a day that is counted apart: read as
//! one number of nanoseconds they hold the years 1677 to 2262 alone, and a reader that does so wraps the
//! others around to other moments. They are read as microseconds in UTC where that loses nothing, else as
//! nanoseconds, and a value that neither holds is refused with its row. UUIDs and JSON are marked as Arrow's
//! extension types of these names.

use crate::bounds::Column;
use crate::fault::{Error, Place, Result, guarded};
use crate::input::Input;
use crate::within::{all_widened, most_words, parts, within};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit as Unit, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{Int96, Int96Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The field's metadata that names an extension type, and the names of those that we know.
pub(crate) const EXTENSION: &str = "ARROW:extension:name";
pub(crate) const UUID: &str = "arrow.uuid";
pub(crate) const JSON: &str = "arrow.json";
/// The entry of a file's metadata that holds Arrow's schema.
pub(crate) const ARROW_SCHEMA: &str = "ARROW:schema";

/// The schema of a Parquet file, and how it is read.
pub(super) struct Described {
    /// With marks of what Arrow has no type of.
    pub schema: SchemaRef,
    /// What outputs are written by: the file's own, 96-bit timestamps aside.
    pub parquet: SchemaDescPtr,
    pub metadata: Vec<KeyValue>,
    pub compression: Compression,
    pub options: ArrowReaderOptions,
    /// Columns that are timestamps of 96 bits.
    pub moments: Vec<usize>,
}

/// Whether a column holds UUIDs of 16 bytes.
pub fn is_uuid(field: &Field) -> bool {
    field.data_type() == &DataType::FixedSizeBinary(16)
        && field.metadata().get(EXTENSION).is_some_and(|name| name == UUID)
}

/// What its footer, which was `read`, and its `pages`, where they were looked at, say, bytes that they say no more
/// of being text where that is asked for.
/// `damaged` makes an error of what the library says.
pub(super) fn describe(
    input: &Input,
    read: &ArrowReaderMetadata,
    pages: &[Column],
    binary_as_text: bool,
    damaged: &dyn Fn(String) -> Error,
) -> Result<Described> {
    let file = read.metadata().clone();
    let parquet = file.file_metadata().schema_descr_ptr();
    let entries = file.file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let has_hints = entries.iter().any(|entry| entry.key == ARROW_SCHEMA);
    let (schema, options) = match readable(read.schema(), &parquet) {
        schema if schema != *read.schema() => (schema.clone(), ArrowReaderOptions::new().with_schema(schema)),
        schema => (schema, ArrowReaderOptions::new()),
    };
    let units = units(input, &file, damaged)?;
    let (schema, parquet, options) = match units.is_empty() {
        true => (schema, parquet, options),
        false => {
            let schema = with_units(&schema, &units, has_hints);
            (schema.clone(), without_96_bits(&parquet, &units, &schema), options.with_schema(schema))
        }
    };
    let (schema, options) = match binary_as_text.then(|| with_text(&schema, &parquet)).flatten() {
        Some(schema) => (schema.clone(), options.with_schema(schema)),
        None => (schema, options),
    };
    let wide = all_widened(&schema);
    let (schema, options) = match wide != schema && is_too_narrow(&schema, &file, pages) {
        true => (wide.clone(), options.with_schema(wide)),
        false => (schema, options),
    };
    let columns = file.file_metadata().schema_descr();
    let moments = units.keys().filter(|leaf| columns.column(**leaf).path().parts().len() == 1);
    let moments = moments.map(|leaf| columns.get_column_root_idx(*leaf)).collect();
    let first = file.row_groups().first().and_then(|group| group.columns().first());
    Ok(Described {
        schema: marked(&schema, &parquet),
        parquet,
        metadata: entries.into_iter().filter(|entry| entry.key != ARROW_SCHEMA).collect(),
        compression: first.map_or(Compression::UNCOMPRESSED, |column| column.compression()),
        options,
        moments,
    })
}

/// Whether a dictionary may have more values than its keys number: of each row group it has its own, and writers put
/// those of several tables together.
fn is_too_narrow(schema: &Schema, file: &ParquetMetaData, pages: &[Column]) -> bool {
    fn add(data: &DataType, to: &mut Vec<Option<u64>>) {
        match data {
            DataType::Dictionary(key, _) => to.push(most_words(key)),
            nested if nested.is_nested() && !is_leaf(nested) => {
                parts(nested).into_iter().for_each(|part| add(part, to));
            }
            _ => to.push(None),
        }
    }
    let [group] = file.row_groups() else { return file.num_row_groups() > 1 };
    let mut limits = Vec::new();
    schema.fields().iter().for_each(|field| add(field.data_type(), &mut limits));
    let mut words = pages.iter().flat_map(|column| &column.words);
    group.columns().iter().zip(limits).any(|(column, most)| {
        let words = words.next().filter(|words| (1..u64::MAX).contains(*words)).copied();
        let cells = u64::try_from(column.num_values()).unwrap_or(u64::MAX);
        most.is_some_and(|most| words.unwrap_or(cells) > most)
    })
}

/// The schema with other dictionaries, or none, in place of those that the library cannot read: writers leave a note
/// of what they had.
fn readable(schema: &SchemaRef, parquet: &SchemaDescriptor) -> SchemaRef {
    fn of(data: &DataType, leaf: &mut usize, parquet: &SchemaDescriptor) -> DataType {
        if data.is_nested() && !is_leaf(data) {
            return within(data, &mut |part| of(part, leaf, parquet));
        }
        let at = *leaf;
        *leaf += 1;
        let DataType::Dictionary(key, values) = data else { return data.clone() };
        let is_read = match parquet.column(at).physical_type() {
            Physical::BOOLEAN | Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
            Physical::BYTE_ARRAY => match &**values {
                DataType::Utf8View => {
                    return DataType::Dictionary(key.clone(), Box::new(DataType::Utf8));
                }
                DataType::BinaryView => {
                    return DataType::Dictionary(key.clone(), Box::new(DataType::Binary));
                }
                values => !values.is_decimal(),
            },
            _ => !values.is_null(),
        };
        if is_read { data.clone() } else { DataType::clone(values) }
    }
    let mut leaf = 0;
    let plain =
        |field: &FieldRef| Field::clone(field).with_data_type(of(field.data_type(), &mut leaf, parquet));
    let fields: Vec<Field> = schema.fields().iter().map(plain).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The columns' fields with the marks of their extension types.
fn marked(schema: &SchemaRef, parquet: &SchemaDescriptor) -> SchemaRef {
    let mark = |(field, stored): (&FieldRef, &TypePtr)| {
        let info = stored.get_basic_info();
        let name = match (info.logical_type_ref(), field.data_type()) {
            (Some(LogicalType::Uuid), DataType::FixedSizeBinary(16)) => UUID,
            (Some(LogicalType::Json), _) => JSON,
            (None, _) if info.converted_type() == ConvertedType::JSON => JSON,
            _ => return field.clone(),
        };
        let mut metadata = field.metadata().clone();
        metadata.entry(EXTENSION.to_owned()).or_insert_with(|| name.to_owned());
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    };
    let fields: Fields = schema.fields().iter().zip(parquet.root_schema().get_fields()).map(mark).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The schema with text in columns of bytes that nothing says more of; nothing if there is none.
fn with_text(schema: &SchemaRef, parquet: &SchemaDescriptor) -> Option<SchemaRef> {
    let mut changed = false;
    let text = |(field, stored): (&FieldRef, &TypePtr)| {
        let info = stored.get_basic_info();
        let is_bare = info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE;
        match field.data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView if is_bare => {
                changed = true;
                Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8))
            }
            _ => field.clone(),
        }
    };
    let fields: Fields = schema.fields().iter().zip(parquet.root_schema().get_fields()).map(text).collect();
    changed.then(|| Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// By leaf column of 96-bit timestamps the unit that holds all of its values.
type Units = BTreeMap<usize, TimeUnit>;

fn units(input: &Input, file: &ParquetMetaData, damaged: &dyn Fn(String) -> Error) -> Result<Units> {
    let mut units = Units::new();
    for (leaf, column) in file.file_metadata().schema_descr().columns().iter().enumerate() {
        if column.physical_type() != Physical::INT96 {
            continue;
        }
        let spans = guarded(|| spans(input, leaf)).map_err(damaged)?;
        let unit = match (spans.no_micros, spans.no_nanos) {
            (None, _) => TimeUnit::Microsecond,
            (Some(_), None) => TimeUnit::Nanosecond,
            (Some(one), Some(other)) => {
                let column = format!("`{}`", tacit_crypto::text::shown(&column.path().string()));
                let what =
                    "a timestamp that fits into microseconds is expected, or one in nanoseconds from 1677 to \
                     2262"
                        .to_owned();
                let (path, place) = (input.path().to_owned(), Place::Row(one.max(other)));
                return Err(Error::Cell { path, place, column, what });
            }
        };
        units.insert(leaf, unit);
    }
    Ok(units)
}

/// The first rows, from 1, whose values a unit cannot hold.
#[derive(Default)]
struct Spans {
    no_micros: Option<u64>,
    no_nanos: Option<u64>,
}

impl Spans {
    fn add(&mut self, value: &Int96, row: u64) {
        let (micros, nanos) = counts(value);
        if micros.is_none() {
            self.no_micros.get_or_insert(row);
        }
        if nanos.is_none() {
            self.no_nanos.get_or_insert(row);
        }
    }
}

/// Microseconds and nanoseconds since 1970, where they are whole and fit.
fn counts(value: &Int96) -> (Option<i64>, Option<i64>) {
    const EPOCH: i128 = 2_440_588;
    const NANOS_OF_DAY: i128 = 86_400_000_000_000;
    let [low, high, day] = *value.data() else { return (None, None) };
    // Signed as the reader takes them.
    let within = i128::from((i64::from(high) << 32) + i64::from(low));
    let nanos = (i128::from(day as i32) - EPOCH) * NANOS_OF_DAY + within;
    let micros = (nanos % 1000 == 0).then(|| i64::try_from(nanos / 1000).ok()).flatten();
    (micros, i64::try_from(nanos).ok())
}

fn spans(input: &Input, leaf: usize) -> std::result::Result<Spans, ParquetError> {
    const BATCH: usize = 8192;
    let stored = input.stored().map_err(|error| ParquetError::General(error.to_string()))?;
    let reader = SerializedFileReader::new(stored)?;
    let (mut spans, mut row) = (Spans::default(), 0u64);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let column = group.metadata().column(leaf).column_descr_ptr();
        let (whole, nested) = (column.max_def_level(), column.max_rep_level() > 0);
        let mut values = get_typed_column_reader::<Int96Type>(group.get_column_reader(leaf)?);
        loop {
            let (mut there, mut again, mut found) = (Vec::new(), Vec::new(), Vec::new());
            let (records, _, levels) =
                values.read_records(BATCH, Some(&mut there), Some(&mut again), &mut found)?;
            if records == 0 && levels == 0 {
                break;
            }
            let (mut found, mut at) = (found.iter(), row);
            for level in 0..levels {
                at += u64::from(!nested || again.get(level) == Some(&0));
                if whole == 0 || there.get(level) == Some(&whole) {
                    found.next().inspect(|value| spans.add(value, at));
                }
            }
            row += records as u64;
        }
    }
    Ok(spans)
}

/// The schema with 96-bit timestamps in these units: in UTC, unless Arrow's own schema says otherwise.
fn with_units(schema: &Schema, units: &Units, has_hints: bool) -> SchemaRef {
    let mut leaf = 0;
    let fields: Fields = schema
        .fields()
        .iter()
        .map(|field| {
            let data = with_unit(field.data_type(), &mut leaf, units, has_hints);
            Field::clone(field).with_data_type(data)
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn with_unit(data: &DataType, leaf: &mut usize, units: &Units, has_hints: bool) -> DataType {
    if data.is_nested() && !is_leaf(data) {
        return within(data, &mut |part| with_unit(part, leaf, units, has_hints));
    }
    let at = *leaf;
    *leaf += 1;
    match (units.get(&at), data) {
        (Some(unit), DataType::Timestamp(_, zone)) => {
            let utc = (!has_hints).then(|| "UTC".into());
            DataType::Timestamp(*unit, zone.clone().or(utc))
        }
        _ => data.clone(),
    }
}

/// Whether Parquet stores this as one column of leaves, though Arrow has a type within it.
fn is_leaf(data: &DataType) -> bool {
    matches!(data, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}

/// The file's schema with timestamps of 64 bits in place of those of 96.
fn without_96_bits(parquet: &SchemaDescriptor, units: &Units, schema: &Schema) -> SchemaDescPtr {
    fn changed(stored: &TypePtr, leaf: &mut usize, units: &Units, utc: bool) -> TypePtr {
        match stored.as_ref() {
            Type::GroupType { basic_info, fields } => Arc::new(Type::GroupType {
                basic_info: basic_info.clone(),
                fields: fields.iter().map(|field| changed(field, leaf, units, utc)).collect(),
            }),
            Type::PrimitiveType { basic_info, .. } => {
                let unit = units.get(leaf).copied();
                *leaf += 1;
                let Some(unit) = unit else { return stored.clone() };
                let unit = if unit == TimeUnit::Microsecond { Unit::MICROS } else { Unit::NANOS };
                let made = Type::primitive_type_builder(basic_info.name(), Physical::INT64)
                    .with_repetition(basic_info.repetition())
                    .with_logical_type(Some(LogicalType::timestamp(utc, unit)))
                    .with_id(basic_info.has_id().then(|| basic_info.id()))
                    .build();
                made.map_or_else(|_| stored.clone(), Arc::new)
            }
        }
    }
    let (root, mut leaf) = (parquet.root_schema(), 0);
    let fields: Vec<TypePtr> = root
        .get_fields()
        .iter()
        .zip(schema.fields())
        .map(|(stored, field)| changed(stored, &mut leaf, units, is_zoned(field.data_type())))
        .collect();
    let root = Type::GroupType { basic_info: root.get_basic_info().clone(), fields };
    Arc::new(SchemaDescriptor::new(Arc::new(root)))
}

/// Whether points in time in this type have a time zone.
fn is_zoned(data: &DataType) -> bool {
    match data {
        DataType::Timestamp(_, zone) => zone.is_some(),
        other => !is_leaf(other) && parts(other).into_iter().any(is_zoned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_96_bits_are_counted_whole_or_not_at_all() {
        let moment = |day: i32, nanos: u64| {
            let mut value = Int96::new();
            value.set_data(nanos as u32, (nanos >> 32) as u32, day as u32);
            counts(&value)
        };
        assert_eq!(moment(2_440_588, 0), (Some(0), Some(0)));
        assert_eq!(moment(2_440_587, 86_399_999_999_000), (Some(-1), Some(-1000)));
        assert_eq!(moment(2_440_588, 1), (None, Some(1)));
        // 0001-01-01 and 9999-12-31.
        assert_eq!(moment(1_721_426, 0), (Some(-62_135_596_800_000_000), None));
        assert_eq!(moment(5_373_484, 0), (Some(253_402_214_400_000_000), None));
        assert_eq!(moment(i32::MAX, 0), (None, None));
    }
}
