//! Batches on their way to a file of columns, with all that their source said of them.

use super::Format;
use super::dictionaries::{Dictionaries, cells};
use super::plain::{unwritable, whole_days, without_text};
use super::stored::{ARROW_SCHEMA, EXTENSION, JSON, is_uuid};
use super::views::compact;
use super::words::unwritten;
use crate::excel::Workbook;
use crate::fault::{Error, Place, Result, gave_up, guarded};
use crate::unfit::Unfit;
use crate::within::{parts, within};
use arrow_array::cast::AsArray;
use arrow_array::types::Date64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::CastOptions;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::{
    ColumnDescPtr, ColumnDescriptor, SchemaDescPtr, SchemaDescriptor, Type, TypePtr,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tacit_crypto::fence::fenced;

/// Bytes of memory that a row group of Parquet takes before it is written, about.
const MOST_OF_GROUP: usize = 1 << 28;

/// Bytes of a column's dictionary in a row group. The library's own limit is less than one long value may have, and
/// behind it every row has its value for itself.
const MOST_OF_DICTIONARY: usize = 1 << 27;

/// What an output takes from its source: compression, and of Parquet the types and the file's own metadata.
#[derive(Clone)]
pub(crate) struct Origin {
    pub compression: Compression,
    pub parquet: Option<SchemaDescPtr>,
    pub metadata: Vec<KeyValue>,
    /// How many columns come in front of the source's.
    pub ahead: usize,
    /// Whether nothing is kept of what is written, which then need not be small.
    pub is_trial: bool,
    /// What becomes of cells that the output cannot hold.
    pub unfit: Unfit,
}

impl Origin {
    /// Of a table without types, whose Parquet output is compressed by Snappy.
    pub(crate) fn text() -> Self {
        let (compression, unfit) = (Compression::SNAPPY, Unfit::default());
        Origin { compression, parquet: None, metadata: Vec::new(), ahead: 0, is_trial: false, unfit }
    }

    /// The same for a trial.
    pub(crate) fn trial(&self) -> Self {
        Origin { is_trial: true, unfit: self.unfit.trial(), ..self.clone() }
    }

    /// For a file of these columns, which are stored so.
    fn properties(&self, schema: &Schema, fixed: &Schema, stored: &SchemaDescriptor) -> WriterProperties {
        let compression = match self.compression {
            known @ (Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::ZSTD(_)
            | Compression::LZ4_RAW) => known,
            Compression::LZ4 => Compression::LZ4_RAW,
            _ => Compression::SNAPPY,
        };
        let mut entries = self.metadata.clone();
        if self.parquet.is_none() {
            let named =
                schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
            entries.extend(named.filter(|entry| entry.key != ARROW_SCHEMA));
            entries.sort_by(|one, other| one.key.cmp(&other.key));
        }
        let own = self.parquet.as_ref().map_or(0, |stored| stored.root_schema().get_fields().len());
        if self.parquet.is_some() && schema.fields().len() > own {
            let (first, rest) = schema.fields().split_at(self.ahead);
            let more = rest.get(own..).unwrap_or(&[]);
            entries = entries.into_iter().filter_map(|entry| widened(entry, first, more)).collect();
        }
        let builder = WriterProperties::builder().set_key_value_metadata(Some(entries));
        match self.is_trial {
            true => {
                builder.set_dictionary_enabled(false).set_statistics_enabled(EnabledStatistics::None).build()
            }
            false => {
                let columns = stored.columns().iter().zip(shared(fixed)).filter(|(_, shared)| *shared);
                let larger = |builder: WriterPropertiesBuilder, (column, _): (&ColumnDescPtr, bool)| {
                    builder.set_column_dictionary_page_size_limit(column.path().clone(), MOST_OF_DICTIONARY)
                };
                columns.fold(builder.set_compression(compression), larger).build()
            }
        }
    }
}

/// Spark's own schema among a file's metadata, which it reads in place of the columns': with those of text
/// that come first, and those that come behind. One that is written otherwise than Spark does goes.
fn widened(entry: KeyValue, first: &[Arc<Field>], more: &[Arc<Field>]) -> Option<KeyValue> {
    if entry.key != "org.apache.spark.sql.parquet.row.metadata" {
        return Some(entry);
    }
    let name_of = |data: &DataType| match data {
        DataType::LargeUtf8 | DataType::Utf8 => Some("string"),
        DataType::Boolean => Some("boolean"),
        _ => None,
    };
    const SPARK_START: &str = "{\"type\":\"struct\",\"fields\":[";
    let own = entry.value.as_deref()?.strip_suffix("]}")?.strip_prefix(SPARK_START)?;
    let described = |field: &Arc<Field>| {
        let kind = name_of(field.data_type())?;
        let mut name = String::new();
        for sign in field.name().chars() {
            match sign {
                '"' | '\\' => name.extend(['\\', sign]),
                sign if sign < ' ' => name += &format!("\\u{:04x}", u32::from(sign)),
                sign => name.push(sign),
            }
        }
        Some(format!("{{\"name\":\"{name}\",\"type\":\"{kind}\",\"nullable\":true,\"metadata\":{{}}}}"))
    };
    let (first, more) = (first.iter().map(described), more.iter().map(described));
    let own = (!own.is_empty()).then(|| Some(own.to_owned()));
    let fields: Vec<String> = first.chain(own).chain(more).collect::<Option<_>>()?;
    Some(KeyValue::new(entry.key, format!("{SPARK_START}{}]}}", fields.join(","))))
}

/// What of these columns a file of this format has no type for; the column's place, and what its cells are.
pub(crate) fn lacks(format: Format, schema: &Schema, from_parquet: bool) -> Option<(usize, &'static str)> {
    let lack = |field: &Arc<Field>| lack(format, field.data_type(), from_parquet);
    schema.fields().iter().enumerate().find_map(|(at, field)| Some((at, lack(field)?)))
}

fn lack(format: Format, data: &DataType, from_parquet: bool) -> Option<&'static str> {
    let inner = |field: &Field| lack(format, field.data_type(), from_parquet);
    match data {
        // Arrow's reader drops the months of Parquet's.
        DataType::Interval(_) if from_parquet || format == Format::Parquet => Some("a span of time"),
        DataType::Dictionary(_, values) if format == Format::Excel => without_text(values),
        data if format == Format::Excel => without_text(data),
        DataType::Union(..) if format == Format::Parquet => Some("a union"),
        DataType::Struct(fields) if fields.is_empty() && format == Format::Parquet => {
            Some("a structure without fields")
        }
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale)
            if *scale < 0 && format == Format::Parquet =>
        {
            Some("decimals of a negative scale")
        }
        DataType::Dictionary(_, values) => match values.as_ref() {
            nested if nested.is_nested() && format == Format::Parquet => {
                Some("a dictionary of lists or structures")
            }
            values => lack(format, values, from_parquet),
        },
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _)
        | DataType::RunEndEncoded(_, of) => inner(of),
        DataType::Struct(fields) => fields.iter().find_map(|field| inner(field)),
        DataType::Union(fields, _) => fields.iter().find_map(|(_, field)| inner(field)),
        _ => None,
    }
}

/// What is done to a column's cells before they are written.
#[derive(Clone, PartialEq)]
struct Fixes {
    /// The type that they get first, which holds the same.
    first: Option<DataType>,
    then: Fix,
}

impl Fixes {
    const NONE: Self = Fixes { first: None, then: Fix::Nothing };
}

#[derive(Clone, PartialEq)]
enum Fix {
    Nothing,
    /// They get this type, and a cell that it cannot hold is refused.
    Cast(DataType),
    /// Milliseconds are written as days, which they have to be.
    WholeDays,
}

/// Batches on their way to a file.
pub(crate) struct Writer<'a, W: Write + Send> {
    target: &'a Path,
    schema: SchemaRef,
    fixes: Vec<Fixes>,
    unfit: Unfit,
    written: u64,
    /// By its columns what an Arrow file has one of.
    dictionaries: Arc<BTreeMap<usize, Dictionaries>>,
    /// How many columns come in front of those.
    ahead: usize,
    form: Form<'a, W>,
}

enum Form<'a, W: Write + Send> {
    Excel(Box<Workbook<'a, W>>),
    Parquet(Box<ArrowWriter<&'a mut W>>),
    ArrowFile(Box<arrow_ipc::writer::FileWriter<&'a mut W>>),
}

impl<'a, W: Write + Send> Writer<'a, W> {
    /// A file of these columns to `output`, which is called `target`.
    pub(crate) fn new(
        format: Format,
        output: &'a mut W,
        target: &'a Path,
        schema: &SchemaRef,
        origin: &Origin,
    ) -> Result<Self> {
        let failed = |error: &String| unwritable(target, &unwritten(error));
        if let Some((at, kind)) = lacks(format, schema, origin.parquet.is_some()) {
            let (path, format) = (target.to_owned(), format.name());
            return Err(Error::NoType { path, format, number: at + 1, kind });
        }
        let (unfit, dictionaries, ahead) = (origin.unfit.clone(), Arc::default(), origin.ahead);
        if format != Format::Parquet {
            let form = if format == Format::Excel {
                let workbook = Workbook::new(target, schema, output, origin.is_trial, unfit.clone())?;
                Form::Excel(Box::new(workbook))
            } else {
                let writer = guarded(|| arrow_ipc::writer::FileWriter::try_new(output, schema));
                Form::ArrowFile(Box::new(writer.map_err(|error| failed(&error))?))
            };
            let (schema, fixes) = (schema.clone(), vec![Fixes::NONE; schema.fields().len()]);
            return Ok(Writer { target, schema, fixes, unfit, written: 0, dictionaries, ahead, form });
        }
        let Layout { schema: fixed, stored, fixes } =
            guarded(|| Layout::of(schema, origin)).map_err(|e| failed(&e))?;
        let properties = origin.properties(schema, &fixed, &stored);
        let options = ArrowWriterOptions::new().with_properties(properties).with_parquet_schema(stored);
        let writer = guarded(|| ArrowWriter::try_new_with_options(output, fixed.clone(), options));
        let form = Form::Parquet(Box::new(writer.map_err(|error| failed(&error))?));
        Ok(Writer { target, schema: fixed, fixes, unfit, written: 0, dictionaries, ahead, form })
    }

    /// The same by these dictionaries, which have all values of the rows to come.
    pub(super) fn by(self, dictionaries: Arc<BTreeMap<usize, Dictionaries>>) -> Self {
        Writer { dictionaries, ..self }
    }

    /// Appends these rows.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let fixed = match self.fixes.iter().all(|fixes| *fixes == Fixes::NONE) {
            true => None,
            false => Some(self.fixed(batch)?),
        };
        let batch = fixed.as_ref().unwrap_or(batch);
        let (form, dictionaries, ahead) = (&mut self.form, &self.dictionaries, self.ahead);
        if let Form::Excel(workbook) = form {
            let target = self.target;
            return fenced(|| workbook.write(batch))
                .unwrap_or_else(|panicked| Err(unwritable(target, &gave_up(&panicked))));
        }
        let result = guarded(|| match form {
            Form::Excel(_) => Ok(()),
            Form::Parquet(writer) => {
                writer.write(batch)?;
                // A row group is in memory until it is whole.
                match writer.memory_size() > MOST_OF_GROUP {
                    true => Ok(writer.flush()?),
                    false => Ok(()),
                }
            }
            Form::ArrowFile(writer) => {
                let column = |(at, column): (usize, &ArrayRef)| {
                    let compact = compact(column)?;
                    let own = at.checked_sub(ahead).and_then(|at| dictionaries.get(&at));
                    own.map_or(Ok(compact.clone()), |own| own.apply(&compact))
                };
                let columns = batch.columns().iter().enumerate().map(column);
                let columns = columns.collect::<std::result::Result<_, _>>()?;
                let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                writer.write(&RecordBatch::try_new_with_options(batch.schema(), columns, &rows)?)
            }
        });
        self.written += batch.num_rows() as u64;
        result.map_err(|error| self.failed(&error))
    }

    fn fixed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |column: &ArrayRef, to: &DataType| arrow_cast::cast_with_options(column, to, &options);
        let fix = |(at, (column, fixes)): (usize, (&ArrayRef, &Fixes))| {
            let unfit = |row: usize, what: &str| Error::Unfit {
                path: self.target.to_owned(),
                place: Place::Row(self.written + row as u64 + 1),
                column: format!("`{}`", tacit_crypto::text::shown(self.schema.field(at).name())),
                what: what.to_owned(),
            };
            // A column that is never null stays so.
            let unfits =
                if self.schema.field(at).is_nullable() { self.unfit.clone() } else { Unfit::default() };
            let first = match &fixes.first {
                Some(to) => Some(guarded(|| cast(column, to)).map_err(|error| self.failed(&error))?),
                None => None,
            };
            let column = first.as_ref().unwrap_or(column);
            match &fixes.then {
                Fix::Nothing => Ok(column.clone()),
                Fix::Cast(to) => {
                    // A dictionary may have values that no row has.
                    let (plain, wanted) = match (column.data_type(), to) {
                        (DataType::Dictionary(_, plain), DataType::Dictionary(_, to)) => (&**plain, &**to),
                        (DataType::RunEndEncoded(_, plain), to) => (plain.data_type(), to),
                        (plain, to) => (plain, to),
                    };
                    let plain = guarded(|| cast(column, plain)).map_err(|error| self.failed(&error))?;
                    // The library drops the time from a date that has one.
                    let whole = |column: &ArrayRef| {
                        let made = cast(column, wanted)?;
                        let back = cast(&made, column.data_type())?;
                        match *back == **column || cells(&back)? == cells(column)? {
                            true => Ok(made),
                            false => Err(ArrowError::CastError("no whole day".into())),
                        }
                    };
                    let refused = |row| {
                        unfit(
                            row,
                            "a time that fits into milliseconds is expected, or a date that is a \
                                    whole day",
                        )
                    };
                    let made = unfits.through(&plain, whole).map_err(refused)?;
                    guarded(|| cast(&made, to)).map_err(|error| self.failed(&error))
                }
                Fix::WholeDays => {
                    let whole = |column: &ArrayRef| {
                        let mut days = column.as_primitive::<Date64Type>().iter().flatten();
                        match days.all(|day| whole_days(day).is_some()) {
                            true => Ok(column.clone()),
                            false => Err(ArrowError::CastError("no whole day".into())),
                        }
                    };
                    let refused = |row| unfit(row, "a whole day is expected, as Parquet's dates are");
                    unfits.through(column, whole).map_err(refused)
                }
            }
        };
        let columns = batch.columns().iter().zip(&self.fixes).enumerate().map(fix).collect::<Result<_>>()?;
        RecordBatch::try_new(self.schema.clone(), columns).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Error {
        unwritable(self.target, &unwritten(&error.to_string()))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<()> {
        if let Form::Excel(workbook) = self.form {
            return workbook.finish();
        }
        let result = guarded(|| match self.form {
            Form::Excel(_) => Ok(()),
            Form::Parquet(mut writer) => {
                writer.finish().map_err(ArrowError::from).and_then(|_| Ok(writer.inner_mut().flush()?))
            }
            Form::ArrowFile(mut writer) => writer.finish().and_then(|()| Ok(writer.get_mut().flush()?)),
        });
        result.map_err(|error| unwritable(self.target, &error))
    }
}

/// How columns are laid out in a Parquet file.
struct Layout {
    schema: SchemaRef,
    stored: SchemaDescriptor,
    fixes: Vec<Fixes>,
}

impl Layout {
    /// As the source has them where that is Parquet, else by their types.
    fn of(schema: &SchemaRef, origin: &Origin) -> std::result::Result<Self, ParquetError> {
        let root = origin.parquet.as_ref().map(|stored| stored.root_schema());
        let (mut fields, mut stored, mut fixes) = (Vec::new(), Vec::new(), Vec::new());
        for (at, field) in schema.fields().iter().enumerate() {
            let plain = storable(field.data_type());
            let first = (plain != *field.data_type()).then_some(plain);
            let field = &match &first {
                Some(plain) => Arc::new(Field::clone(field).with_data_type(plain.clone())),
                None => field.clone(),
            };
            let made = converted(field)?;
            let known = root.and_then(|root| root.get_fields().get(at.checked_sub(origin.ahead)?));
            if let Some(known) = known.filter(|known| fits(known, &made, field.data_type())) {
                let days = field.data_type() == &DataType::Date64
                    && known.is_primitive()
                    && known.get_physical_type() == Physical::INT32;
                fixes.push(Fixes { first, then: if days { Fix::WholeDays } else { Fix::Nothing } });
                fields.push(field.clone());
                stored.push(known.clone());
                continue;
            }
            let (field, fix) = match field.data_type() {
                DataType::Timestamp(TimeUnit::Second, zone) => {
                    cast(field, DataType::Timestamp(TimeUnit::Millisecond, zone.clone()))
                }
                DataType::Time32(TimeUnit::Second) => cast(field, DataType::Time32(TimeUnit::Millisecond)),
                DataType::Date64 => (field.clone(), Fix::WholeDays),
                data => {
                    // Parquet has no runs.
                    let plain = match data {
                        DataType::RunEndEncoded(_, values) => values.data_type(),
                        data => data,
                    };
                    match known_elsewhere(plain) {
                        to if to != *plain && is_cast(plain, &to) => cast(field, to),
                        _ => (field.clone(), Fix::Nothing),
                    }
                }
            };
            let may_be_emptied = fix != Fix::Nothing && origin.unfit.is_left_empty();
            let field = match may_be_emptied && !field.is_nullable() {
                true => Arc::new(Field::clone(&field).with_nullable(true)),
                false => field,
            };
            stored.push(annotated(&field)?);
            fields.push(field);
            fixes.push(Fixes { first, then: fix });
        }
        let name = root.map_or("arrow_schema", |root| root.name());
        let root = Type::group_type_builder(name).with_fields(stored).build()?;
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Layout { schema, stored: SchemaDescriptor::new(Arc::new(root)), fixes })
    }
}

fn cast(field: &Field, to: DataType) -> (Arc<Field>, Fix) {
    (Arc::new(field.clone().with_data_type(to.clone())), Fix::Cast(to))
}

/// The type with other dictionaries, or none, in place of those that the library does not write or read, or that
/// others read as bare integers.
fn storable(data: &DataType) -> DataType {
    // Decimals of more digits are bytes.
    const DIGITS_OF_INTEGERS: u8 = 18;
    let (key, values) = match within(data, &mut storable) {
        DataType::Dictionary(key, values) => (key, *values),
        other => return other,
    };
    let values = match values {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Boolean | DataType::Null | DataType::Float16 | DataType::Duration(_) => return values,
        DataType::FixedSizeBinary(_) | DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
            return values;
        }
        DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _) if digits > DIGITS_OF_INTEGERS => {
            return values;
        }
        other => other,
    };
    DataType::Dictionary(key, Box::new(values))
}

/// The type with what other readers know in place of seconds, and of dates in milliseconds, within it.
fn known_elsewhere(data: &DataType) -> DataType {
    match data {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Time32(TimeUnit::Second) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Date64 => DataType::Date32,
        other => within(other, &mut known_elsewhere),
    }
}

fn is_cast(one: &DataType, other: &DataType) -> bool {
    arrow_cast::can_cast_types(one, other) && arrow_cast::can_cast_types(other, one)
}

/// Of each column of leaves whether its rows share values.
fn shared(schema: &Schema) -> Vec<bool> {
    fn add(data: &DataType, to: &mut Vec<bool>) {
        match data {
            DataType::Dictionary(..) => to.push(true),
            DataType::RunEndEncoded(_, values) => add(values.data_type(), to),
            nested if nested.is_nested() => parts(nested).into_iter().for_each(|part| add(part, to)),
            _ => to.push(false),
        }
    }
    let mut shared = Vec::new();
    schema.fields().iter().for_each(|field| add(field.data_type(), &mut shared));
    shared
}

/// A column as the library would store it.
fn converted(field: &Arc<Field>) -> std::result::Result<TypePtr, ParquetError> {
    let schema = Schema::new(vec![field.clone()]);
    let stored = ArrowSchemaConverter::new().convert(&schema)?;
    stored
        .root_schema()
        .get_fields()
        .first()
        .cloned()
        .ok_or_else(|| ParquetError::General("no column".into()))
}

/// The same with what other readers know it by.
fn annotated(field: &Arc<Field>) -> std::result::Result<TypePtr, ParquetError> {
    let is_json = field.metadata().get(EXTENSION).is_some_and(|name| name == JSON);
    let (physical, logical, length) = match field.data_type() {
        DataType::Date64 => (Physical::INT32, LogicalType::Date, -1),
        DataType::FixedSizeBinary(16) if is_uuid(field) => {
            (Physical::FIXED_LEN_BYTE_ARRAY, LogicalType::Uuid, 16)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_json => {
            (Physical::BYTE_ARRAY, LogicalType::Json, -1)
        }
        _ => return converted(field),
    };
    let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let built = Type::primitive_type_builder(field.name(), physical)
        .with_repetition(repetition)
        .with_logical_type(Some(logical))
        .with_length(length)
        .build()?;
    Ok(Arc::new(built))
}

/// Whether these are decimals in as few bytes as all of their digits take, which is how the library writes bytes.
fn is_of_least_bytes(column: &ColumnDescriptor) -> bool {
    let precision = u32::try_from(column.type_precision()).unwrap_or(0);
    let holds = |bytes: u32| 10u128.checked_pow(precision).is_some_and(|all| all <= 1 << (8 * bytes - 1));
    column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY
        && precision > 0
        && (1..=16).find(|bytes| holds(*bytes)).and_then(|bytes| i32::try_from(bytes).ok())
            == Some(column.type_length())
}

/// Whether what the library would lay out as `made` can be laid out as `known`.
fn fits(known: &TypePtr, made: &TypePtr, data: &DataType) -> bool {
    let leaves = |of: &TypePtr| {
        let root = Type::group_type_builder("root").with_fields(vec![of.clone()]).build();
        root.ok().map(|root| SchemaDescriptor::new(Arc::new(root)))
    };
    let (Some(known), Some(made)) = (leaves(known), leaves(made)) else { return false };
    let same = |(known, made): (&ColumnDescPtr, &ColumnDescPtr)| {
        let (stored, wanted) = (known.physical_type(), made.physical_type());
        let length = stored != Physical::FIXED_LEN_BYTE_ARRAY || known.type_length() == made.type_length();
        let whole = matches!(stored, Physical::INT32 | Physical::INT64);
        let is_wide = matches!(data, DataType::Decimal128(..) | DataType::Decimal256(..));
        known.max_def_level() == made.max_def_level()
            && known.max_rep_level() == made.max_rep_level()
            && !matches!(known.logical_type_ref(), Some(LogicalType::_Unknown { .. }))
            && (stored == wanted && length
                || whole && is_wide
                || is_of_least_bytes(known) && known.type_precision() == made.type_precision()
                || stored == Physical::INT32 && data == &DataType::Date64)
    };
    known.num_columns() == made.num_columns() && known.columns().iter().zip(made.columns()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::StringArray;

    /// A row group is held until it is whole, in a trial too: long cells end it early.
    #[test]
    fn a_row_group_is_no_larger_than_memory_is_for_it() {
        let long = "x".repeat(8 << 20);
        let column: ArrayRef = Arc::new(StringArray::from(vec![long.as_str()]));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let (mut out, target) = (Vec::new(), Path::new("o.parquet"));
        let origin = Origin::text().trial();
        let mut writer = Writer::new(Format::Parquet, &mut out, target, &batch.schema(), &origin).unwrap();
        (0..40).for_each(|_| writer.write(&batch).unwrap());
        writer.finish().unwrap();
        let read = parquet::file::metadata::ParquetMetaDataReader::new();
        let read = read.parse_and_finish(&bytes::Bytes::from(out)).unwrap();
        assert_eq!((read.num_row_groups(), read.file_metadata().num_rows()), (2, 40));
    }
}
