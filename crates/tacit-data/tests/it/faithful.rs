//! Files of columns as other programs write them: nothing becomes another value, what cannot be written shows
//! before it has to be, and types that Arrow lacks stay.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date64Type, Decimal128Type, Int32Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, Date32Array, Date64Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
    Int32Array, Int64Array, IntervalDayTimeArray, ListArray, RecordBatch, RunArray, StringArray, StructArray,
    Time32SecondArray, TimestampSecondArray, UnionArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, EdgeInterpolationAlgorithm, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType};
use parquet::data_type::{Int32Type as Stored32, Int64Type as Stored64, Int96, Int96Type};
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::csv::{Error, Options, Place};
use tacit_data::keys::KeyType;
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn open(path: &Path, column: &str) -> Result<(Source, KeySet), Error> {
    let spec = KeySpec::text(vec![column.to_owned()], Normalisation::default());
    let source = Source::open(path, spec, Options::default())?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

/// All rows as they go to a file called `target`, which was found to hold them before.
fn written(path: &Path, target: &str) -> Vec<u8> {
    let (source, keys) = open(path, "k").unwrap();
    source.admits(Path::new(target)).unwrap();
    source.prove(Path::new(target)).unwrap();
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    let mut out = Vec::new();
    source.write_matches(&keys, &all, Path::new(target), &mut out).unwrap();
    out
}

fn parquet(bytes: Vec<u8>) -> RecordBatch {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn arrow(bytes: &[u8]) -> RecordBatch {
    let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// A Parquet file by its own schema, its columns written by `write`.
fn stored(
    message: &str,
    properties: WriterProperties,
    write: impl Fn(&mut SerializedRowGroupWriter<'_, &mut Vec<u8>>),
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut out = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut out, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    write(&mut group);
    group.close().unwrap();
    writer.close().unwrap();
    out
}

fn int96(days_from_1970: i32, nanos: u64) -> Int96 {
    let mut value = Int96::new();
    value.set_data(nanos as u32, (nanos >> 32) as u32, (2_440_588 + days_from_1970) as u32);
    value
}

fn moments(values: &[Int96]) -> Vec<u8> {
    let message = "message spark_schema { required int64 k; optional int96 t; }";
    stored(message, WriterProperties::default(), |group| {
        let mut column = group.next_column().unwrap().unwrap();
        let keys: Vec<i64> = (0..values.len() as i64).collect();
        column.typed::<Stored64>().write_batch(&keys, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let there = vec![1; values.len()];
        column.typed::<Int96Type>().write_batch(values, Some(&there), None).unwrap();
        column.close().unwrap();
    })
}

/// Spark's default: the years 1 to 9999 in microseconds, of which nanoseconds would hold 1677 to 2262.
#[test]
fn timestamps_of_96_bits_stay_the_moments_that_they_are() {
    let folder = Folder::new();
    let noon = 43_200_000_000_000;
    // 0001-01-01, 1000-01-01, 2024-01-31 and 9999-12-31, each at noon.
    let days = [-719_162, -354_285, 19_753, 2_932_896];
    let micros: Vec<i64> = days.iter().map(|day| day * 86_400_000_000 + 43_200_000_000).collect();
    let values: Vec<Int96> = days.iter().map(|day| int96(*day as i32, noon)).collect();
    let path = folder.file("t.parquet", moments(&values));
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for batch in [parquet(written(&path, "o.parquet")), arrow(&written(&path, "o.arrow"))] {
        assert_eq!(batch.column(1).data_type(), &utc);
        assert_eq!(batch.column(1).as_primitive::<TimestampMicrosecondType>().values(), &micros[..]);
    }
    let text = String::from_utf8(written(&path, "o.csv")).unwrap();
    for moment in
        ["0001-01-01T12:00:00Z", "1000-01-01T12:00:00Z", "2024-01-31T12:00:00Z", "9999-12-31T12:00:00Z"]
    {
        assert!(text.contains(moment), "{text}");
    }
    // What Spark's readers and others see: microseconds of 64 bits in UTC.
    let out = bytes::Bytes::from(written(&path, "o.parquet"));
    let file = ParquetMetaDataReader::new().parse_and_finish(&out).unwrap();
    let column = file.file_metadata().schema_descr().column(1);
    let unit = parquet::basic::TimeUnit::MICROS;
    assert_eq!(column.physical_type(), Physical::INT64);
    assert_eq!(column.logical_type_ref(), Some(&LogicalType::timestamp(true, unit)));
    // Nanoseconds where microseconds would lose some, and neither where neither holds all.
    let fine = [int96(0, 1), int96(19_753, 999)];
    let path = folder.file("t.parquet", moments(&fine));
    let batch = parquet(written(&path, "o.parquet"));
    let expected = [1, 19_753 * 86_400_000_000_000 + 999];
    assert_eq!(batch.column(1).as_primitive::<TimestampNanosecondType>().values(), &expected[..]);
    let path = folder.file("t.parquet", moments(&[int96(0, 0), int96(0, 1), int96(2_932_896, 0)]));
    let error = open(&path, "k").err().unwrap();
    assert!(matches!(error, Error::Cell { place: Place::Row(3), .. }), "{error}");
    // Midnights are dates.
    let path = folder.file("t.parquet", moments(&[int96(19_753, 0), int96(0, noon)]));
    let mut spec = KeySpec::text(vec!["t".into()], Normalisation::default());
    spec.types = vec![KeyType::named("date").unwrap()];
    let keys = Source::open(&path, spec.clone(), Options::default()).unwrap().read_keys(|_| ()).unwrap();
    assert_eq!(keys.elements(), [KeyHasher::of(&spec).hash(["2024-01-31"]).unwrap()]);
    assert_eq!(keys.rows_without_key(), 1);
}

fn with_keys(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let rows = columns[0].1.len() as i64;
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let all = std::iter::once(("k", keys)).chain(columns).map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(all).unwrap()
}

fn as_parquet(batch: &RecordBatch, properties: Option<WriterProperties>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), properties).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    out
}

fn as_arrow(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    out
}

fn refused(path: &Path, target: &str) -> Error {
    let (source, _) = open(path, "k").unwrap();
    let target = Path::new(target);
    source.admits(target).and_then(|()| source.prove(target)).expect_err("it can be written")
}

#[test]
fn what_a_format_lacks_shows_before_a_run_whatever_the_column() {
    let folder = Folder::new();
    let interval = IntervalDayTimeArray::from(vec![Some(arrow_array::types::IntervalDayTime::new(1, 2))]);
    let negative = Decimal128Array::from(vec![5]).with_precision_and_scale(5, -2).unwrap();
    let ids = [0i8].into_iter().collect();
    let fields = [(0, Arc::new(Field::new("x", DataType::Int64, true)))].into_iter().collect();
    let union = UnionArray::try_new(fields, ids, None, vec![Arc::new(Int64Array::from(vec![7]))]).unwrap();
    let cases: [(ArrayRef, &str); 3] = [
        (Arc::new(interval), "a span of time"),
        (Arc::new(negative), "negative scale"),
        (Arc::new(union), "a union"),
    ];
    for (column, words) in cases {
        let batch = with_keys(vec![("x", column)]);
        let path = folder.file("t.arrow", as_arrow(&batch));
        let error = refused(&path, "o.parquet");
        assert!(matches!(error, Error::NoType { number: 2, .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(arrow(&written(&path, "o.arrow")), batch, "{words}");
    }
    // Parquet's spans of time have months, which Arrow's reader drops.
    let interval = IntervalDayTimeArray::from(vec![Some(arrow_array::types::IntervalDayTime::new(1, 2))]);
    let path = folder.file("t.parquet", as_parquet(&with_keys(vec![("x", Arc::new(interval))]), None));
    for target in ["o.parquet", "o.arrow", "o.csv"] {
        assert!(
            refused(&path, target).to_string().contains("column 2 of the input, which is a span of time")
        );
    }
}

/// Cells that a type of the output cannot hold, in rows of any number; no error shows one.
#[test]
fn what_only_reading_shows_is_read_before_a_run() {
    let folder = Folder::new();
    let rows = 20_000;
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values((0..rows).map(|row| match row {
        19_998 => i32::MAX,
        row => row,
    })));
    let batch = with_keys(vec![("day", days)]);
    // DuckDB's HUGEINT: more digits than the type says, of which a text would lose the last.
    let huge = Decimal128Array::from(vec![-1, i128::MAX]).with_precision_and_scale(38, 0).unwrap();
    let of_huge = with_keys(vec![("h", Arc::new(huge.clone()))]);
    for (name, content) in [("h.parquet", as_parquet(&of_huge, None)), ("h.arrow", as_arrow(&of_huge))] {
        let path = folder.file(name, content);
        for target in ["o.csv", "o.xlsx"] {
            let error = refused(&path, target).to_string();
            assert!(error.contains("row 2") && error.contains("`h`") && !error.contains("17014"), "{error}");
        }
        assert!(open(&path, "h").err().unwrap().to_string().contains("row 2"));
        assert_eq!(parquet(written(&path, "o.parquet")).column(1).as_ref(), &huge as &dyn Array);
        assert_eq!(arrow(&written(&path, "o.arrow")).column(1).as_ref(), &huge as &dyn Array);
    }
    let noon: ArrayRef = Arc::new(Date64Array::from(vec![Some(0), None, Some(43_200_000)]));
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0, i64::MAX]));
    for (name, content) in [("t.parquet", as_parquet(&batch, None)), ("t.arrow", as_arrow(&batch))] {
        let path = folder.file(name, content);
        let error = refused(&path, "o.csv").to_string();
        assert!(
            error.contains("row 19999") && error.contains("`day`") && !error.contains("2147483647"),
            "{error}"
        );
        assert!(error.contains(name), "{error}");
        assert_eq!(open(&path, "day").err().unwrap().to_string(), error);
        written(&path, "o.parquet");
        written(&path, "o.arrow");
    }
    let path = folder.file("t.arrow", as_arrow(&with_keys(vec![("d", noon)])));
    let error = refused(&path, "o.parquet");
    assert!(matches!(error, Error::Unfit { place: Place::Row(3), .. }), "{error}");
    assert!(
        String::from_utf8(written(&path, "o.csv"))
            .unwrap()
            .ends_with("0,1970-01-01\n1,\n2,1970-01-01T12:00:00\n")
    );
    let path = folder.file("t.arrow", as_arrow(&with_keys(vec![("s", seconds)])));
    assert!(matches!(refused(&path, "o.parquet"), Error::Unfit { place: Place::Row(2), .. }));
}

/// Where that is asked for: in every output, counted once for each, and not by the trial.
#[test]
fn what_an_output_cannot_hold_is_left_empty_where_that_is_asked_for() {
    let folder = Folder::new();
    let left = |path: &Path, target: &str| {
        let (source, keys) = open(path, "k").unwrap();
        source.leave_unfit_empty();
        source.admits(Path::new(target)).unwrap();
        source.prove(Path::new(target)).unwrap();
        assert_eq!(source.left_empty(), 0, "a trial counts");
        let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
        let (mut out, mut marked) = (Vec::new(), Vec::new());
        source.write_matches(&keys, &all, Path::new(target), &mut out).unwrap();
        let count = source.left_empty();
        source.write_marked(&keys, &all, Path::new(target), &mut marked).unwrap();
        assert_eq!(source.left_empty(), 2 * count, "{target}");
        (out, count)
    };
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(1), Some(i32::MAX), None, Some(i32::MIN)]));
    for (name, content) in [
        ("t.parquet", as_parquet(&with_keys(vec![("day", days.clone())]), None)),
        ("t.arrow", as_arrow(&with_keys(vec![("day", days)]))),
    ] {
        let path = folder.file(name, content);
        let (csv, count) = left(&path, "o.csv");
        assert_eq!(
            (String::from_utf8(csv).unwrap().as_str(), count),
            ("k,day\n0,1970-01-02\n1,\n2,\n3,\n", 2)
        );
        let (workbook, count) = left(&path, "o.xlsx");
        assert_eq!(count, 2);
        let back = folder.file("back.xlsx", workbook);
        assert_eq!(written(&back, "b.csv"), b"k,day\n0,1970-01-02\n1,\n2,\n3,\n");
    }
    // Runs have no place for a null but their values.
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1, i32::MAX]));
    let runs: ArrayRef = Arc::new(RunArray::try_new(&Int32Array::from(vec![1, 3]), &days).unwrap());
    let path = folder.file("t.arrow", as_arrow(&with_keys(vec![("day", runs)])));
    let (csv, count) = left(&path, "o.csv");
    assert_eq!((String::from_utf8(csv).unwrap().as_str(), count), ("k,day\n0,1970-01-02\n1,\n2,\n", 2));
    let (workbook, count) = left(&path, "o.xlsx");
    assert_eq!(count, 2);
    let back = folder.file("back.xlsx", workbook);
    assert_eq!(written(&back, "b.csv"), b"k,day\n0,1970-01-02\n1,\n2,\n");
    let noon: ArrayRef = Arc::new(Date64Array::from(vec![Some(0), None, Some(43_200_000)]));
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![7, i64::MAX, 9]));
    let batch = with_keys(vec![("d", noon), ("s", seconds)]);
    let path = folder.file("t.arrow", as_arrow(&batch));
    let (out, count) = left(&path, "o.parquet");
    let out = parquet(out);
    let nulls = |at: usize| (0..3).map(|row| out.column(at).is_null(row)).collect::<Vec<_>>();
    assert_eq!((nulls(1), nulls(2), count), (vec![false, true, true], vec![false, true, false], 2));
    // A day beyond the calendar among others, one of which has a time.
    let days: ArrayRef = Arc::new(Date64Array::from(vec![0, 43_200_000, 86_400_000 * i64::from(i32::MAX)]));
    let path = folder.file("t.arrow", as_arrow(&with_keys(vec![("d", days)])));
    assert!(matches!(refused(&path, "o.csv"), Error::Unfit { place: Place::Row(3), .. }));
    let (csv, count) = left(&path, "o.csv");
    assert_eq!(
        (String::from_utf8(csv).unwrap().as_str(), count),
        ("k,d\n0,1970-01-01\n1,1970-01-01T12:00:00\n2,\n", 1)
    );
    // A column that was never null may be so then.
    let schema =
        Schema::new(vec![Field::new("k", DataType::Int64, false), Field::new("d", DataType::Date64, false)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1])), Arc::new(Date64Array::from(vec![43_200_000]))];
    let path = folder.file("t.arrow", as_arrow(&RecordBatch::try_new(Arc::new(schema), columns).unwrap()));
    assert!(matches!(refused(&path, "o.parquet"), Error::Unfit { place: Place::Row(1), .. }));
    let (out, count) = left(&path, "o.parquet");
    let out = parquet(out);
    assert_eq!((out.column(1).is_null(0), out.schema().field(0).is_nullable(), count), (true, false, 1));
    // Text of a CSV file that no cell of a workbook holds.
    let path = folder.file("t.csv", format!("k,v\na,{}\nb,x\n", "y".repeat(32_768)));
    assert!(refused(&path, "o.xlsx").to_string().contains("32,767"));
    let (workbook, count) = left(&path, "o.xlsx");
    assert_eq!(count, 1);
    let back = folder.file("back.xlsx", workbook);
    assert_eq!(written(&back, "b.csv"), b"k,v\na,\nb,x\n");
}

#[test]
fn columns_that_cannot_be_read_are_named_though_they_are_no_key() {
    let folder = Folder::new();
    let message = "message schema { required int64 k; required binary note (UTF8); }";
    let write = |cells: &[&[u8]]| {
        stored(message, WriterProperties::default(), |group| {
            let mut column = group.next_column().unwrap().unwrap();
            let keys: Vec<i64> = (0..cells.len() as i64).collect();
            column.typed::<Stored64>().write_batch(&keys, None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let cells: Vec<ByteArray> = cells.iter().map(|cell| ByteArray::from(cell.to_vec())).collect();
            column.typed::<ByteArrayType>().write_batch(&cells, None, None).unwrap();
            column.close().unwrap();
        })
    };
    let mut cells: Vec<&[u8]> = vec![b"fine"; 9000];
    cells[8500] = b"SECRET\xff";
    let path = folder.file("t.parquet", write(&cells));
    for target in ["o.parquet", "o.csv", "o.arrow"] {
        let error = refused(&path, target).to_string();
        assert!(error.contains("column 2 (`note`) cannot be read after row 0"), "{error}");
        assert!(error.contains("not UTF-8") && !error.contains("SECRET"), "{error}");
    }
    let whole = folder.file("t.parquet", write(&[b"fine", b"\xc3\xa9"]));
    assert_eq!(written(&whole, "o.csv"), "k,note\n0,fine\n1,\u{e9}\n".as_bytes());
    // The same of a codec that this build lacks: the second column's is overwritten with LZO's number.
    let mut bytes = write(&[b"fine"]);
    let properties = WriterProperties::builder()
        .set_column_compression(vec!["note".to_string()].into(), Compression::SNAPPY)
        .build();
    let snappy = stored(message, properties, |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Stored64>().write_batch(&[0], None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&[ByteArray::from("fine")], None, None).unwrap();
        column.close().unwrap();
    });
    // In Thrift's compact form the codec stands behind the path, as a zigzag of 1.
    let footer = bytes.len().min(snappy.len()) / 2;
    let end =
        snappy.len() - 8 - u32::from_le_bytes(snappy[snappy.len() - 8..][..4].try_into().unwrap()) as usize;
    let name = end + snappy[end..].windows(5).rposition(|part| part == b"\x04note").unwrap();
    bytes = snappy.clone();
    assert_eq!(bytes[name + 5..name + 7], [0x15, 0x02], "{footer}");
    bytes[name + 6] = 0x08;
    let path = folder.file("t.parquet", &bytes);
    let error = refused(&path, "o.parquet").to_string();
    assert!(error.contains("column 2 (`note`)") && error.contains("compression"), "{error}");
}

/// A dictionary a row group, of which Arrow's file format has one: 30,000 rows, values that come and go.
#[test]
fn dictionaries_that_change_become_one() {
    let folder = Folder::new();
    let piece = |from: i64| {
        let names: Vec<String> = (from..from + 10_000).map(|row| format!("v{}", row / 100)).collect();
        let cells = names.iter().enumerate().map(|(at, name)| (at % 7 > 0).then_some(name.as_str()));
        let column: DictionaryArray<Int32Type> = cells.collect();
        RecordBatch::try_from_iter_with_nullable([
            ("k", Arc::new(Int64Array::from_iter_values(from..from + 10_000)) as ArrayRef, true),
            ("v", Arc::new(column) as ArrayRef, true),
        ])
        .unwrap()
    };
    let pieces = [piece(0), piece(9_950), piece(500)];
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, pieces[0].schema(), None).unwrap();
    for piece in &pieces {
        writer.write(piece).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let path = folder.file("t.parquet", &out);
    let expected: Vec<Option<String>> = pieces
        .iter()
        .flat_map(|piece| {
            let text = arrow_cast::cast(piece.column(1), &DataType::Utf8).unwrap();
            text.as_string::<i32>().iter().map(|cell| cell.map(str::to_owned)).collect::<Vec<_>>()
        })
        .collect();
    for batch in [arrow(&written(&path, "o.arrow")), parquet(written(&path, "o.parquet"))] {
        assert_eq!(batch.column(1).data_type(), pieces[0].column(1).data_type());
        let text = arrow_cast::cast(batch.column(1), &DataType::Utf8).unwrap();
        let found: Vec<Option<String>> =
            text.as_string::<i32>().iter().map(|cell| cell.map(str::to_owned)).collect();
        assert!(found == expected);
    }
}

fn types_of(bytes: Vec<u8>) -> Vec<(Physical, Option<LogicalType>)> {
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes)).unwrap();
    let columns = file.file_metadata().schema_descr().columns().to_vec();
    columns.iter().map(|column| (column.physical_type(), column.logical_type_ref().cloned())).collect()
}

/// What Arrow has no type of, and what a file says of itself.
#[test]
fn parquet_goes_out_as_it_came_in() {
    let folder = Folder::new();
    let message = "message spark_schema {
        required int64 k;
        required fixed_len_byte_array(16) u (UUID);
        required binary j (JSON);
        required binary e (ENUM);
        required binary b (BSON);
        required int32 d (DECIMAL(5, 2));
        required fixed_len_byte_array(9) w (DECIMAL(20, 2));
        optional group l (LIST) { repeated int32 x; }
        required int32 day (DATE);
        required fixed_len_byte_array(3) n (DECIMAL(5, 2));
        optional group m (LIST) { repeated fixed_len_byte_array(8) x (DECIMAL(18, 0)); }
    }";
    let spark = r#"{"type":"struct","fields":[{"name":"k","type":"long","nullable":false,"metadata":{}}]}"#;
    let entry = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let entries = vec![
        entry("pandas", "{}"),
        entry("geo", r#"{"version":"1.0.0"}"#),
        entry("org.apache.spark.sql.parquet.row.metadata", spark),
    ];
    let properties = WriterProperties::builder().set_key_value_metadata(Some(entries.clone())).build();
    let uuid: Vec<u8> = (0x10..0x20).collect();
    let content = stored(message, properties, |group| {
        let mut at = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            match at {
                0 => _ = column.typed::<Stored64>().write_batch(&[0], None, None).unwrap(),
                1 => {
                    let cell = FixedLenByteArray::from(uuid.clone());
                    column.typed::<FixedLenByteArrayType>().write_batch(&[cell], None, None).unwrap();
                }
                2..5 => {
                    let cell = ByteArray::from(["{\"a\":1}", "x", "y"][at - 2]);
                    column.typed::<ByteArrayType>().write_batch(&[cell], None, None).unwrap();
                }
                5 => _ = column.typed::<Stored32>().write_batch(&[-150], None, None).unwrap(),
                6 => {
                    let cell = FixedLenByteArray::from(vec![0, 0, 0, 0, 0, 0, 0, 0, 7]);
                    column.typed::<FixedLenByteArrayType>().write_batch(&[cell], None, None).unwrap();
                }
                7 => {
                    let levels = (&[2, 2], &[0, 1]);
                    column.typed::<Stored32>().write_batch(&[4, 5], Some(levels.0), Some(levels.1)).unwrap();
                }
                8 => _ = column.typed::<Stored32>().write_batch(&[19_753], None, None).unwrap(),
                9 => {
                    let cell = FixedLenByteArray::from(vec![0xff, 0xff, 0x6a]);
                    column.typed::<FixedLenByteArrayType>().write_batch(&[cell], None, None).unwrap();
                }
                _ => {
                    let cell = FixedLenByteArray::from(999_999_999_999_999_999i64.to_be_bytes().to_vec());
                    let values = column.typed::<FixedLenByteArrayType>();
                    values.write_batch(&[cell], Some(&[2]), Some(&[0])).unwrap();
                }
            }
            column.close().unwrap();
            at += 1;
        }
    });
    let path = folder.file("t.parquet", &content);
    let out = written(&path, "o.parquet");
    let found = parquet(out.clone());
    assert_eq!(found.column_by_name("n").unwrap().as_primitive::<Decimal128Type>().value(0), -150);
    assert_eq!(types_of(out.clone()), types_of(content.clone()));
    assert_eq!(parquet(out.clone()).columns(), parquet(content.clone()).columns());
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(out)).unwrap();
    let found = file.file_metadata().key_value_metadata().unwrap();
    assert!(entries.iter().all(|entry| found.contains(entry)), "{found:?}");
    assert_eq!(file.file_metadata().schema_descr().name(), "spark_schema");
    // Where bytes are more than the digits take, the library has no such storage, and the values stay.
    let message = "message m { required int64 k; required fixed_len_byte_array(16) n (DECIMAL(5, 2)); }";
    let wide = stored(message, WriterProperties::default(), |group| {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Stored64>().write_batch(&[0], None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let cell = FixedLenByteArray::from((-150i128).to_be_bytes().to_vec());
        column.typed::<FixedLenByteArrayType>().write_batch(&[cell], None, None).unwrap();
        column.close().unwrap();
    });
    let back = written(&folder.file("wide.parquet", wide), "o.parquet");
    assert_eq!(types_of(back.clone())[1].0, Physical::INT32);
    assert_eq!(parquet(back).column(1).as_primitive::<Decimal128Type>().value(0), -150);
    // As a key.
    let of_uuid =
        KeyHasher::new(Normalisation::default()).hash(["10111213-1415-1617-1819-1a1b1c1d1e1f"]).unwrap();
    assert_eq!(open(&path, "u").unwrap().1.elements(), [of_uuid]);
    // Through Arrow and back, by the names of extension types.
    let through = folder.file("t.arrow", written(&path, "o.arrow"));
    assert_eq!(open(&through, "u").unwrap().1.elements(), [of_uuid]);
    let back = types_of(written(&through, "o.parquet"));
    assert_eq!(back[1..3], types_of(content.clone())[1..3]);
    // Columns behind come into Spark's own schema too.
    let (source, keys) = open(&path, "k").unwrap();
    let cells = [vec![Some("a".to_owned())]];
    let mut out = Vec::new();
    let names = ["pl\"an".to_owned()];
    source.write_joined(&keys, &names, "peer_", |_| &cells, Path::new("o.parquet"), &mut out).unwrap();
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(out)).unwrap();
    let found = file.file_metadata().key_value_metadata().unwrap();
    let named = found.iter().find(|entry| entry.key.contains("spark")).unwrap().value.clone().unwrap();
    let value: serde_json::Value = serde_json::from_str(&named).unwrap();
    assert_eq!(value["fields"][1]["name"], "pl\"an");
    assert!(found.contains(&entries[1]), "{found:?}");
    // And one in front, behind which all types are as they were.
    let mut out = Vec::new();
    source.write_ahead(&keys, "id", |_| "x".to_owned(), Path::new("o.parquet"), &mut out).unwrap();
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(out.clone())).unwrap();
    let found = file.file_metadata().key_value_metadata().unwrap();
    let named = found.iter().find(|entry| entry.key.contains("spark")).unwrap().value.clone().unwrap();
    let value: serde_json::Value = serde_json::from_str(&named).unwrap();
    assert_eq!((&value["fields"][0]["name"], &value["fields"][0]["type"]), (&"id".into(), &"string".into()));
    assert_eq!(types_of(out)[1..], types_of(content)[..]);
}

/// A column that only those with its key can read, in a file whose other columns anybody reads (by pyarrow).
#[test]
fn an_encrypted_column_is_said_to_be_one_before_a_run() {
    let folder = Folder::new();
    let path = folder.file("t.parquet", include_bytes!("files/encrypted-column.parquet"));
    assert_eq!(open(&path, "k").unwrap().1.rows(), 2);
    for target in ["o.csv", "o.parquet", "o.xlsx"] {
        let error = refused(&path, target).to_string();
        assert!(
            error.contains("column 2 (`v`)") && error.contains("encrypted data; decrypt it first"),
            "{error}"
        );
    }
    assert!(open(&path, "v").err().unwrap().to_string().contains("encrypted data"));
    // Bytes that were changed are damage, in the same place too.
    let whole = include_bytes!("files/encrypted-column.parquet");
    let mut bytes = whole.to_vec();
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(bytes.clone())).unwrap();
    let (start, _) = file.row_group(0).column(1).byte_range();
    bytes[start as usize] ^= 1;
    let error = refused(&folder.file("d.parquet", bytes), "o.csv").to_string();
    assert!(error.contains("column 2 (`v`)") && error.contains("damaged"), "{error}");
}

/// Annotations that came to Parquet late: places on Earth with their systems of reference, and values of any type.
#[test]
fn places_and_variants_stay_what_they_are() {
    let folder = Folder::new();
    let leaf = |name: &str, physical, logical| {
        let built = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Arc::new(built.with_repetition(Repetition::REQUIRED).build().unwrap())
    };
    let bytes = |name: &str, logical| leaf(name, Physical::BYTE_ARRAY, logical);
    let crs = || Some("EPSG:4326".to_owned());
    let variant = Type::group_type_builder("v")
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::variant(Some(1))))
        .with_fields(vec![bytes("metadata", None), bytes("value", None)]);
    let columns = vec![
        leaf("k", Physical::INT64, None),
        bytes("place", Some(LogicalType::geometry(crs()))),
        bytes("ground", Some(LogicalType::geography(crs(), Some(EdgeInterpolationAlgorithm::VINCENTY)))),
        Arc::new(variant.build().unwrap()),
    ];
    let root = Type::group_type_builder("m").with_fields(columns).build().unwrap();
    let mut content = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut content, Arc::new(root), Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Stored64>().write_batch(&[0, 1], None, None).unwrap();
    column.close().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        let cells = [ByteArray::from(vec![1, 0, 0]), ByteArray::from(vec![12, 7])];
        let written = column.typed::<ByteArrayType>();
        match written.get_descriptor().max_def_level() > 0 {
            true => written.write_batch(&cells[..1], Some(&[1, 0]), None).unwrap(),
            false => written.write_batch(&cells, None, None).unwrap(),
        };
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let schema = |bytes: &[u8]| {
        let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::copy_from_slice(bytes));
        file.unwrap().file_metadata().schema().clone()
    };
    let out = written(&folder.file("t.parquet", &content), "o.parquet");
    assert_eq!(schema(&out), schema(&content));
    assert_eq!(parquet(out).columns(), parquet(content).columns());
}

/// Types of Arrow that Parquet has no annotation for are written so that others read them.
#[test]
fn seconds_and_milliseconds_go_to_parquet_as_others_know_them() {
    let folder = Folder::new();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("d", Arc::new(Date64Array::from(vec![Some(86_400_000), None]))),
        ("s", Arc::new(TimestampSecondArray::from(vec![Some(-1), None]).with_timezone("UTC"))),
        ("t", Arc::new(Time32SecondArray::from(vec![Some(3600), None]))),
        ("text", Arc::new(StringArray::from(vec![Some("a"), None]))),
    ];
    let metadata = [("pandas".to_owned(), "{}".to_owned())].into_iter().collect();
    let batch = with_keys(columns);
    let schema = Arc::new(Schema::new_with_metadata(batch.schema().fields().clone(), metadata));
    let batch = RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap();
    let path = folder.file("t.arrow", as_arrow(&batch));
    let out = written(&path, "o.parquet");
    let unit = parquet::basic::TimeUnit::MILLIS;
    let expected = [
        (Physical::INT32, Some(LogicalType::Date)),
        (Physical::INT64, Some(LogicalType::timestamp(true, unit))),
        (Physical::INT32, Some(LogicalType::time(false, unit))),
    ];
    assert_eq!(types_of(out.clone())[1..4], expected);
    let file = ParquetMetaDataReader::new().parse_and_finish(&bytes::Bytes::from(out.clone())).unwrap();
    let entries = file.file_metadata().key_value_metadata().unwrap();
    assert!(entries.contains(&KeyValue::new("pandas".to_owned(), "{}".to_owned())), "{entries:?}");
    let read = parquet(out);
    assert_eq!(read.column(1).as_primitive::<Date64Type>().value(0), 86_400_000);
    let uuids = FixedSizeBinaryArray::try_from_iter([[7u8; 16]].into_iter()).unwrap();
    let plain = folder.file("t.arrow", as_arrow(&with_keys(vec![("u", Arc::new(uuids))])));
    assert!(matches!(open(&plain, "u").err().unwrap(), Error::KeyType { .. }));
}

/// Within others as well, each with its name.
#[test]
fn seconds_and_dates_within_others_go_to_parquet_as_others_know_them() {
    let folder = Folder::new();
    let seconds = TimestampSecondArray::from(vec![Some(5), None, Some(i64::MAX)]);
    let field = |name: &str, of: &ArrayRef| Arc::new(Field::new(name, of.data_type().clone(), true));
    let of = |values: ArrayRef| -> Vec<(&'static str, ArrayRef)> {
        // The last value is in no row.
        let keys = Int32Array::from(vec![Some(0), Some(1), None]);
        let words = DictionaryArray::<Int32Type>::new(keys, values.clone());
        let runs = RunArray::try_new(&Int32Array::from(vec![2, 3]), &values.slice(0, 2)).unwrap();
        let mixed: ArrayRef = Arc::new(Time32SecondArray::from(vec![7; 3]));
        let shown: ArrayRef = values.slice(0, 2);
        let shown = arrow_select::concat::concat(&[&*shown, &*shown.slice(0, 1)]).unwrap();
        let record =
            StructArray::from(vec![(field("v", &shown), shown.clone()), (field("t", &mixed), mixed)]);
        let lengths = StringArray::from(vec!["x"; 3]);
        let list = ListArray::new(field("item", &shown), lengths.offsets().clone(), shown, None);
        vec![
            ("words", Arc::new(words)),
            ("runs", Arc::new(runs)),
            ("record", Arc::new(record)),
            ("list", Arc::new(list)),
        ]
    };
    let columns = of(Arc::new(seconds));
    let path = folder.file("t.arrow", as_arrow(&with_keys(columns)));
    let out = written(&path, "o.parquet");
    let unit = parquet::basic::TimeUnit::MILLIS;
    let moment = (Physical::INT64, Some(LogicalType::timestamp(false, unit)));
    let time = (Physical::INT32, Some(LogicalType::time(false, unit)));
    assert_eq!(types_of(out.clone())[1..], [moment.clone(), moment.clone(), moment.clone(), time, moment]);
    let millis = |column: &ArrayRef| {
        let plain = arrow_cast::cast(column, &DataType::Timestamp(TimeUnit::Millisecond, None)).unwrap();
        plain.as_primitive::<TimestampMillisecondType>().iter().collect::<Vec<_>>()
    };
    let read = parquet(out);
    assert_eq!(millis(read.column(1)), [Some(5000), None, None]);
    assert!(matches!(read.column(1).data_type(), DataType::Dictionary(..)));
    assert_eq!(millis(read.column(2)), [Some(5000), Some(5000), None]);
    assert_eq!(millis(read.column(3).as_struct().column(0)), [Some(5000), None, Some(5000)]);
    assert_eq!(millis(read.column(4).as_list::<i32>().values()), [Some(5000), None, Some(5000)]);
    // Days, and one with a time.
    let days = |noon: i64| of(Arc::new(Date64Array::from(vec![Some(86_400_000), Some(noon), Some(1)])));
    let path = folder.file("t.arrow", as_arrow(&with_keys(days(0))));
    let out = written(&path, "o.parquet");
    let day = (Physical::INT32, Some(LogicalType::Date));
    let types = types_of(out);
    assert!([1, 2, 3, 5].iter().all(|at| types[*at] == day), "{types:?}");
    for (name, column) in days(43_200_000) {
        let row = if name == "runs" { 3 } else { 2 };
        let path = folder.file("t.arrow", as_arrow(&with_keys(vec![(name, column)])));
        let error = refused(&path, "o.parquet");
        assert!(
            matches!(error, Error::Unfit { place: Place::Row(found), .. } if found == row),
            "{name}: {error}"
        );
        let (source, keys) = open(&path, "k").unwrap();
        source.leave_unfit_empty();
        let mut out = Vec::new();
        source.write_matches(&keys, &[0, 1, 2], Path::new("o.parquet"), &mut out).unwrap();
        let read = parquet(out);
        let before = if name == "words" { 1 } else { 0 };
        assert_eq!((read.column(1).null_count(), source.left_empty()), (1 + before, 1), "{name}");
        assert!(read.column(1).is_null(row as usize - 1), "{name}");
    }
}
