//! Parquet and Arrow files: keys of every type, rows that keep types and nulls, and files that are cut short.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray, Float64Array,
    Int64Array, LargeStringArray, RecordBatch, StringArray, UInt64Array,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::columnar::Format;
use tacit_data::csv::{EmptyKeys, Error, Options};
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;

const FORMATS: [(Format, &str); 2] = [(Format::Parquet, "t.parquet"), (Format::ArrowFile, "t.arrow")];

fn spec(columns: &[&str]) -> KeySpec {
    KeySpec::text(columns.iter().map(|c| c.to_string()).collect(), Normalisation::default())
}

fn column(values: impl Array + 'static) -> ArrayRef {
    Arc::new(values)
}

/// Each type that may be a key, a float, and a null in each.
fn table() -> RecordBatch {
    let text = [Some("Ann"), None, Some(" Zoë ")];
    let decimals = Decimal128Array::from(vec![Some(150), None, Some(-200)]).with_precision_and_scale(9, 2);
    let days = [Some(19_753), None, Some(-1)];
    let moments = days.map(|day| day.map(|day: i32| i64::from(day) * 86_400_000));
    let columns = [
        ("text", column(StringArray::from(text.to_vec()))),
        ("large", column(LargeStringArray::from(text.to_vec()))),
        ("category", column(text.into_iter().collect::<DictionaryArray<Int32Type>>())),
        ("int", column(Int64Array::from(vec![Some(i64::MIN), None, Some(9_007_199_254_740_993)]))),
        ("unsigned", column(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]))),
        ("bool", column(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("date", column(Date32Array::from(days.to_vec()))),
        ("moment", column(Date64Array::from(moments.to_vec()))),
        ("decimal", column(decimals.unwrap())),
        ("float", column(Float64Array::from(vec![Some(0.1), None, Some(f64::NAN)]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
}

fn bytes(batches: &[RecordBatch], format: Format) -> Vec<u8> {
    let schema = batches[0].schema();
    let mut out = Vec::new();
    match format {
        Format::Parquet => {
            let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, schema, None).unwrap();
            for batch in batches {
                writer.write(batch).unwrap();
                writer.flush().unwrap();
            }
            writer.close().unwrap();
        }
        Format::ArrowFile => {
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
    out
}

fn batches(bytes: &[u8], format: Format) -> Vec<RecordBatch> {
    match format {
        Format::Parquet => {
            let bytes = bytes::Bytes::copy_from_slice(bytes);
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap();
            reader.map(Result::unwrap).collect()
        }
        Format::ArrowFile => {
            let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap();
            reader.map(Result::unwrap).collect()
        }
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

fn open(path: &Path, columns: &[&str]) -> Result<(Source, KeySet), Error> {
    let source = Source::open(path, spec(columns), Options::default())?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn written(source: &Source, keys: &KeySet, matches: &[u32], target: &str) -> Vec<u8> {
    let mut out = Vec::new();
    source.write_matches(keys, matches, Path::new(target), &mut out).unwrap();
    out
}

/// Every type gives the same keys as the text that it stands for, in either format.
#[test]
fn cells_become_text_without_loss() {
    let folder = Folder::new();
    let cases = [
        ("text", ["ann", "zoë"]),
        ("large", ["ann", "zoë"]),
        ("category", ["ann", "zoë"]),
        ("int", ["-9223372036854775808", "9007199254740993"]),
        ("unsigned", ["18446744073709551615", "0"]),
        ("bool", ["true", "false"]),
        ("date", ["2024-01-31", "1969-12-31"]),
        ("moment", ["2024-01-31", "1969-12-31"]),
        ("decimal", ["1.5", "-2"]),
    ];
    for (format, name) in FORMATS {
        let path = folder.file(name, bytes(&[table()], format));
        for (column, expected) in cases {
            let (_, keys) = open(&path, &[column]).unwrap();
            let mut hasher = KeyHasher::new(Normalisation::default());
            let expected: Vec<_> = expected.iter().map(|text| hasher.hash([*text]).unwrap()).collect();
            assert_eq!(keys.elements(), expected, "{column} of {name}");
            assert_eq!((keys.rows(), keys.rows_without_key()), (3, 1), "{column} of {name}");
        }
        // The order of a composite key is the caller's and not the file's.
        let (_, keys) = open(&path, &["bool", "text", "bool"]).unwrap();
        let mut hasher = KeyHasher::new(Normalisation::default());
        assert_eq!(keys.elements()[0], hasher.hash(["true", "ann", "true"]).unwrap());
    }
}

#[test]
fn matching_rows_keep_types_order_and_nulls_in_either_format() {
    let folder = Folder::new();
    let two = [table(), table().slice(1, 2)];
    for (format, name) in FORMATS {
        let path = folder.file(name, bytes(&two, format));
        let (source, keys) = open(&path, &["int"]).unwrap();
        for (out_format, target) in
            [(Format::Parquet, "o.parquet"), (Format::ArrowFile, "o.arrow"), (format, "-")]
        {
            let out = batches(&written(&source, &keys, &[1], target), out_format);
            let out = arrow_select::concat::concat_batches(&table().schema(), &out).unwrap();
            let expected = [table().slice(2, 1), table().slice(2, 1)];
            let expected = arrow_select::concat::concat_batches(&table().schema(), &expected).unwrap();
            assert_eq!(out.schema(), table().schema());
            // A NaN differs from itself.
            let all_but_float: Vec<usize> = (0..9).collect();
            assert_eq!(out.project(&all_but_float).unwrap(), expected.project(&all_but_float).unwrap());
            assert_eq!(out.num_rows(), 2);
        }
        // No match: the columns alone.
        let out = written(&source, &keys, &[], target_of(format));
        assert_eq!(batches(&out, format).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}

fn target_of(format: Format) -> &'static str {
    match format {
        Format::Parquet => "o.pq",
        Format::ArrowFile => "o.feather",
    }
}

#[test]
fn what_cannot_be_a_key_is_refused_on_one_line() {
    let folder = Folder::new();
    for (format, name) in FORMATS {
        let content = bytes(&[table()], format);
        let path = folder.file(name, &content);
        let explain = |columns: &[&str]| open(&path, columns).err().unwrap();
        let error = explain(&["float"]);
        assert!(matches!(error, Error::KeyType { .. }) && error.to_string().contains("Float64"), "{error}");
        assert!(matches!(explain(&["TEXT"]), Error::NoColumn { columns: 10, .. }));
        assert!(matches!(explain(&[]), Error::NoKey(_)));
        let refuse = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
        let source = Source::open(&path, spec(&["text"]), refuse).unwrap();
        assert!(matches!(source.read_keys(|_| ()).err().unwrap(), Error::EmptyKeyInRow { row: 2, .. }));
        let (source, keys) = open(&path, &["text"]).unwrap();
        assert!(matches!(source.admits(Path::new("o.csv")).unwrap_err(), Error::OtherFormat { .. }));
        source.admits(Path::new("o.arrow")).unwrap();
        // Another file in its place, of fewer rows and of other columns.
        let fewer = bytes(&[table().slice(0, 2)], format);
        let others = bytes(&[table().project(&[0, 1]).unwrap()], format);
        for other in [fewer, others] {
            fs::write(&path, other).unwrap();
            let error = source.write_matches(&keys, &[0], Path::new("o"), &mut Vec::new()).unwrap_err();
            assert!(matches!(error, Error::Changed(_)), "{error}");
        }
        let packed = folder.file("packed", zstd::encode_all(&content[..], 3).unwrap());
        assert!(matches!(open(&packed, &["text"]).err().unwrap(), Error::PackedColumns { .. }));
        let csv = folder.file("t.csv", "k\na\n");
        let error = open(&csv, &["k"]).unwrap().0.admits(Path::new(name)).unwrap_err();
        assert!(error.to_string().contains(name) && error.to_string().contains("CSV"), "{error}");
    }
}

/// Cut at any byte, the file is an error on one line: no panic, and no shorter table.
#[test]
fn files_that_are_cut_short_are_refused() {
    let folder = Folder::new();
    for (format, name) in FORMATS {
        let content = bytes(&[table()], format);
        for length in (8..content.len()).step_by(7).chain([content.len() - 1]) {
            let path = folder.file(name, &content[..length]);
            let error = open(&path, &["text"]).err().unwrap_or_else(|| panic!("{length} bytes of {name}"));
            let text = error.to_string();
            assert!(matches!(error, Error::Damaged { .. }) && !text.contains('\n'), "{text}");
            assert!(text.contains(name) && !text.contains("Ann"), "{text}");
        }
    }
}

/// From a pipe, which such files cannot be read from in one go.
#[cfg(unix)]
#[test]
fn columns_come_through_a_pipe() {
    let folder = Folder::new();
    for (format, _) in FORMATS {
        let path = folder.0.path().join(format!("pipe-{}", format.name()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let content = bytes(&[table()], format);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || fs::write(path, content).unwrap()
        });
        let (source, keys) = open(&path, &["text"]).unwrap();
        writer.join().unwrap();
        let out = batches(&written(&source, &keys, &[0], "o"), format);
        assert_eq!(out[0].slice(0, 1), table().slice(0, 1));
    }
}
