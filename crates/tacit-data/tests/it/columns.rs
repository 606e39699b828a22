//! Parquet and Arrow files: keys of every type, rows that keep types and nulls, and files that are cut short.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    Float64Array, Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::columnar::Format;
use tacit_data::csv::{EmptyKeys, Error, Options};
use tacit_data::keys::KeyType;
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
        Format::ArrowFile | Format::Excel => {
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &schema).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Format::ArrowStream => {
            let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut out, &schema).unwrap();
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
        // An output is a file where the input is a stream.
        Format::ArrowFile | Format::ArrowStream | Format::Excel => {
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
        Format::ArrowFile | Format::Excel => "o.feather",
        Format::ArrowStream => "o",
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
        assert!(matches!(explain(&["TEXT"]), Error::NoColumn { columns: 10, near: Some(_), .. }));
        assert!(matches!(explain(&[]), Error::NoKey(_)));
        let refuse = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
        let source = Source::open(&path, spec(&["text"]), refuse).unwrap();
        assert!(matches!(source.read_keys(|_| ()).err().unwrap(), Error::EmptyKeyInRow { row: 2, .. }));
        let (source, keys) = open(&path, &["text"]).unwrap();
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
    }
}

fn csv_of(text: &str) -> (Folder, Source, KeySet) {
    let folder = Folder::new();
    let path = folder.file("t.csv", text);
    let (source, keys) = open(&path, &["k"]).unwrap();
    (folder, source, keys)
}

/// Columns of text under the header's names, an empty cell being a null, more rows than a batch has.
#[test]
fn a_csv_file_becomes_columns_of_text() {
    let rows: String = (0..20_000).map(|row| format!("{row};\"a;\"\"{row}\";\r\n")).collect();
    let (_folder, source, keys) = csv_of(&format!("\u{feff}k;note;nothing\r\n{rows}"));
    let matches: Vec<u32> = (0..20_000).filter(|row| row % 3 != 0).collect();
    for (format, _) in FORMATS {
        let target = target_of(format);
        source.admits(Path::new(target)).unwrap();
        let out = batches(&written(&source, &keys, &matches, target), format);
        let out = arrow_select::concat::concat_batches(&out[0].schema(), &out).unwrap();
        let names: Vec<_> = out.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["k", "note", "nothing"]);
        let text = |at: usize| out.column(at).as_any().downcast_ref::<LargeStringArray>().unwrap().clone();
        let expected = |of: &dyn Fn(u32) -> String| matches.iter().map(|row| Some(of(*row))).collect();
        assert_eq!(text(0), expected(&|row| row.to_string()));
        assert_eq!(text(1), expected(&|row| format!("a;\"{row}")));
        assert_eq!(text(2).null_count(), matches.len());
        // No match: the columns alone.
        let out = batches(&written(&source, &keys, &[], target), format);
        assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
    // Without a header, columns are numbered.
    let folder = Folder::new();
    let options = Options { header: tacit_data::csv::Header::None, ..Options::default() };
    let source = Source::open(&folder.file("t.csv", "a,b\n"), spec(&["2"]), options).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    let out = batches(&written(&source, &keys, &[0], "o.arrow"), Format::ArrowFile);
    assert_eq!((out[0].num_rows(), out[0].schema().field(1).name().as_str()), (1, "2"));
    // A file that changed meanwhile.
    folder.file("t.csv", "a,c\n");
    let error = source.write_matches(&keys, &[0], Path::new("o.arrow"), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Changed(_)), "{error}");
}

#[test]
fn columns_become_csv_with_nulls_apart_from_empty_text() {
    let folder = Folder::new();
    let moments = [Some(1_706_659_200_000_001), None, Some(0)];
    let zoned = TimestampMicrosecondArray::from(moments.to_vec()).with_timezone("+02:00");
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("k", column(Int64Array::from(vec![1, 2, 3]))),
        ("a \"name\"", column(StringArray::from(vec![Some("x,\"y\"\r\n"), None, Some("")]))),
        ("time", column(TimestampMicrosecondArray::from(moments.to_vec()))),
        ("zoned", column(zoned)),
        ("bytes", column(BinaryArray::from(vec![Some(&[0u8, 255][..]), None, Some(&[][..])]))),
    ];
    let table = table();
    for at in [2, 4, 5, 6, 7, 8, 9] {
        columns
            .push((["", "", "category", "", "u", "b", "d", "m", "dec", "f"][at], table.column(at).clone()));
    }
    let batch = |columns: Vec<(&str, ArrayRef)>| {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, of)| (name, of, true)))
            .unwrap()
    };
    let content = batch(columns.clone());
    let expected = "k,\"a \"\"name\"\"\",time,zoned,bytes,category,u,b,d,m,dec,f\n\
        1,\"x,\"\"y\"\"\r\n\",2024-01-31T00:00:00.000001,2024-01-31T00:00:00.000001Z,00ff,Ann,\
        18446744073709551615,true,2024-01-31,2024-01-31,1.50,0.1\n\
        2,,,,,,,,,,,\n\
        3,\"\",1970-01-01T00:00:00,1970-01-01T00:00:00Z,\"\", Zoë ,0,false,1969-12-31,1969-12-31,-2.00,NaN\n";
    for (format, name) in FORMATS {
        let path = folder.file(name, bytes(std::slice::from_ref(&content), format));
        let (source, keys) = open(&path, &["k"]).unwrap();
        source.admits(Path::new("o.csv")).unwrap();
        let plain = written(&source, &keys, &[0, 1, 2], "o.csv");
        assert_eq!(String::from_utf8(plain).unwrap(), expected, "{name}");
        let packed = written(&source, &keys, &[0, 1, 2], "o.csv.zst");
        assert_eq!(zstd::decode_all(&packed[..]).unwrap(), expected.as_bytes());
        assert_eq!(
            written(&source, &keys, &[], "o.csv"),
            expected.split_inclusive('\n').next().unwrap().as_bytes()
        );
        // What it wrote it reads again as the same keys.
        let again = folder.file("again.csv", expected);
        for name in ["k", "a \"name\"", "b", "d", "u"] {
            let [ours, theirs] =
                [&path, &again].map(|path| open(path, &[name]).unwrap().1.elements().to_vec());
            assert_eq!(ours, theirs, "{name}");
        }
        // A column alone whose cell is null is still a row.
        let one = folder.file(name, bytes(&[batch(columns[1..2].to_vec())], format));
        let (source, keys) = open(&one, &["a \"name\""]).unwrap();
        assert_eq!(keys.rows_without_key(), 2);
        assert!(source.write_matches(&keys, &[0], Path::new("o.csv"), &mut Vec::new()).is_ok());
    }
}

/// A table whose keys are not kept is turned into the other kind of file as well, unless it changed.
#[test]
fn rows_by_number_become_the_other_kind_of_file() {
    let folder = Folder::new();
    let csv = folder.file("t.csv", "k,n\n1,a\n2,\n3,c\n");
    let source = Source::open(&csv, spec(&["k"]), Options::default()).unwrap();
    let pass = source.each_key::<Error>(|_| (), |_| Ok(())).unwrap();
    let mut out = Vec::new();
    assert_eq!(source.write_rows(&pass, |row| row > 0, Path::new("o.parquet"), &mut out).unwrap(), 2);
    let columns = folder.file("t.parquet", &out);
    folder.file("t.csv", "k,n\n1,a\n2,\n4,c\n");
    let error = source.write_rows(&pass, |_| true, Path::new("o.parquet"), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Changed(_)), "{error}");
    let source = Source::open(&columns, spec(&["k"]), Options::default()).unwrap();
    let pass = source.each_key::<Error>(|_| (), |_| Ok(())).unwrap();
    let mut out = Vec::new();
    assert_eq!(source.write_rows(&pass, |_| true, Path::new("o.csv"), &mut out).unwrap(), 2);
    assert_eq!(String::from_utf8(out).unwrap(), "k,n\n2,\n3,c\n");
}

#[test]
fn lists_stay_in_files_of_columns() {
    let folder = Folder::new();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
    let columns = [("k", column(Int64Array::from(vec![1, 2]))), ("list", column(list))];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    for (format, name) in FORMATS {
        let (source, keys) =
            open(&folder.file(name, bytes(std::slice::from_ref(&table), format)), &["k"]).unwrap();
        let error = source.admits(Path::new("o.csv")).unwrap_err();
        assert!(error.to_string().contains("column 2 of the input, which is a list"), "{error}");
        for (format, _) in FORMATS {
            source.admits(Path::new(target_of(format))).unwrap();
            let out = batches(&written(&source, &keys, &[0], target_of(format)), format);
            assert_eq!(out[0].columns(), table.slice(0, 1).columns());
        }
    }
}

/// Midnights are dates where the key is a date; a point in time has no text.
#[test]
fn points_in_time_are_keys_of_the_type_date_alone() {
    let folder = Folder::new();
    let day = 86_400_000_000_i64;
    let times = TimestampMicrosecondArray::from(vec![Some(19_753 * day), None, Some(day + 1)]);
    let zoned = column(times.clone().with_timezone("+00:00"));
    let table = RecordBatch::try_from_iter([("t", column(times)), ("z", zoned)]).unwrap();
    let of = |name: &str, key_type: &str| {
        let mut spec = spec(&[name]);
        spec.types = vec![KeyType::named(key_type).unwrap()];
        spec
    };
    for (format, name) in FORMATS {
        let path = folder.file(name, bytes(std::slice::from_ref(&table), format));
        let open = |spec| Source::open(&path, spec, Options::default());
        let keys = open(of("t", "date")).unwrap().read_keys(|_| ()).unwrap();
        let mut hasher = KeyHasher::of(&of("t", "date"));
        assert_eq!(keys.elements(), [hasher.hash(["2024-01-31"]).unwrap()]);
        assert_eq!((keys.rows(), keys.rows_without_key()), (3, 2));
        let error = open(of("t", "text")).err().unwrap().to_string();
        assert!(error.contains("timestamps") && error.contains("t:date"), "{error}");
        assert!(matches!(open(of("z", "date")).err().unwrap(), Error::KeyType { .. }));
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
            let is_damage = matches!(error, Error::Damaged { .. } | Error::Unread { .. });
            assert!(is_damage && !text.contains('\n'), "{text}");
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
