//! A column in front of a table's own, in every format.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, Decimal128Array, DictionaryArray, Int64Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::csv::{Error, Header, Options, Quote};
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;

fn open(path: &Path, options: Options) -> (Source, KeySet) {
    let spec = KeySpec::text(vec!["k".to_owned()], Normalisation::default());
    let source = Source::open(path, spec, options).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    (source, keys)
}

/// The whole table with the numbers of elements in front, as it goes to `target`.
fn extended(path: &Path, options: Options, target: &str) -> Vec<u8> {
    let (source, keys) = open(path, options);
    let mut out = Vec::new();
    let cell = |element: Option<usize>| element.map_or("none".to_owned(), |element| format!("e{element}"));
    source.holds_ahead(Path::new(target), "id", "e0").unwrap();
    let rows = source.write_ahead(&keys, "id", cell, Path::new(target), &mut out).unwrap();
    assert_eq!(rows, keys.rows());
    out
}

fn csv(path: &Path, options: Options) -> String {
    String::from_utf8(extended(path, options, "o.csv")).unwrap()
}

#[test]
fn rows_of_text_keep_their_own_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for (content, expected) in [
        ("k,v\na,1\n,2\na,3\nb,4", "id,k,v\ne0,a,1\nnone,,2\ne0,a,3\ne1,b,4\n"),
        ("k;v\r\na;\"x\"\"y\"\r\n", "id;k;v\r\ne0;a;\"x\"\"y\"\r\n"),
        ("\u{feff}k\tv\na\t1,5\n", "\u{feff}id\tk\tv\ne0\ta\t1,5\n"),
    ] {
        std::fs::write(&path, content).unwrap();
        assert_eq!(csv(&path, Options::default()), expected);
    }
    // Packed as its name says, and read again as a table of the same rows.
    std::fs::write(&path, "k,v\na,1\n,2\na,3\n").unwrap();
    let packed = folder.path().join("again.csv.gz");
    std::fs::write(&packed, extended(&path, Options::default(), "o.csv.gz")).unwrap();
    assert_eq!(csv(&packed, Options::default()), "id,id,k,v\ne0,e0,a,1\nnone,none,,2\ne0,e0,a,3\n");
    // Without names there is none for the new column.
    let options = Options { header: Header::None, ..Options::default() };
    let spec = KeySpec::text(vec!["1".to_owned()], Normalisation::default());
    let source = Source::open(&path, spec, options).unwrap();
    let (keys, mut out) = (source.read_keys(|_| ()).unwrap(), Vec::new());
    source.write_ahead(&keys, "id", |_| "x".to_owned(), Path::new("o"), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "x,k,v\nx,a,1\nx,,2\nx,a,3\n");
}

/// Where nothing encloses a field, a name may have no room.
#[test]
fn a_name_that_a_file_without_quotes_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "k,v\na,1\n").unwrap();
    let (source, _) = open(&path, Options { quote: Quote::None, ..Options::default() });
    let held = |name: &str, target: &str| source.holds_ahead(Path::new(target), name, "0123456789abcdef");
    held("id", "o.csv").unwrap();
    held("i,d", "o.parquet").unwrap();
    let error = held("i,d", "o.csv").unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. }) && error.to_string().contains("another name"), "{error}");
    assert!(held("id", "o.json").is_err());
}

fn columns(folder: &Path) -> [PathBuf; 2] {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(8), Some(7)]));
    let words: DictionaryArray<Int32Type> = vec![Some("x"), Some("y"), None, Some("x")].into_iter().collect();
    let money = Decimal128Array::from(vec![150, 2, 3, 4]).with_precision_and_scale(9, 2).unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("k", keys, true),
        ("words", Arc::new(words) as ArrayRef, true),
        ("money", Arc::new(money) as ArrayRef, true),
    ])
    .unwrap();
    let [parquet, arrow] = ["t.parquet", "t.arrow"].map(|name| folder.join(name));
    let mut out = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    std::fs::write(&parquet, out).unwrap();
    let mut out = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &batch.schema()).unwrap();
    // Two batches, of which each has its own rows in front.
    [batch.slice(0, 3), batch.slice(3, 1)].iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    std::fs::write(&arrow, out).unwrap();
    [parquet, arrow]
}

#[test]
fn columns_keep_their_types_and_go_to_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "id,k,words,money\ne0,7,x,1.50\nnone,,y,0.02\ne1,8,,0.03\ne0,7,x,0.04\n";
    for path in columns(folder.path()) {
        assert_eq!(csv(&path, Options::default()), expected, "{}", path.display());
        for target in ["o.parquet", "o.arrow", "o.xlsx"] {
            let bytes = extended(&path, Options::default(), target);
            let batch = match target {
                "o.parquet" => {
                    ParquetRecordBatchReader::try_new(bytes::Bytes::from(bytes), 100).unwrap().next().unwrap()
                }
                "o.arrow" => {
                    let read = std::io::Cursor::new(bytes);
                    let reader = arrow_ipc::reader::FileReader::try_new(read, None).unwrap();
                    let schema = reader.schema();
                    let batches: Vec<_> = reader.map(Result::unwrap).collect();
                    arrow_select::concat::concat_batches(&schema, &batches)
                }
                _ => {
                    // As text again.
                    let back = folder.path().join("back.xlsx");
                    std::fs::write(&back, bytes).unwrap();
                    let (source, keys) = open(&back, Options::default());
                    let mut out = Vec::new();
                    source.write_rest(&keys, &[], Path::new("o.csv"), &mut out).unwrap();
                    let text = String::from_utf8(out).unwrap();
                    assert!(text.starts_with("id,k,words,money\ne0,7,x,1.5"), "{text}");
                    continue;
                }
            };
            let batch = batch.unwrap();
            let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
            assert_eq!(names, ["id", "k", "words", "money"]);
            let ids: Vec<_> = batch.column(0).as_string::<i64>().iter().map(Option::unwrap).collect();
            assert_eq!(ids, ["e0", "none", "e1", "e0"]);
            let numbers: Vec<_> = batch.column(1).as_primitive::<Int64Type>().iter().collect();
            assert_eq!(numbers, [Some(7), None, Some(8), Some(7)]);
            let words = arrow_cast::cast(batch.column(2), &arrow_schema::DataType::Utf8).unwrap();
            let words: Vec<_> = words.as_string::<i32>().iter().collect();
            assert_eq!(words, [Some("x"), Some("y"), None, Some("x")]);
            assert_eq!(batch.column(3).as_primitive::<Decimal128Type>().value(0), 150);
        }
    }
    // Text to columns.
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "k,v\na,1\n,2\na,3\n").unwrap();
    let bytes = bytes::Bytes::from(extended(&path, Options::default(), "o.parquet"));
    let batch = ParquetRecordBatchReader::try_new(bytes, 100).unwrap().next().unwrap().unwrap();
    let ids: Vec<_> = batch.column(0).as_string::<i64>().iter().map(Option::unwrap).collect();
    assert_eq!((ids, batch.num_columns()), (vec!["e0", "none", "e0"], 3));
    assert!(batch.column(1).is_null(1));
}

/// A table that changed between its readings has no identifiers of before.
#[test]
fn a_table_that_changed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for then in ["k,v\nb,1\n", "k,v\na,1\nb,2\n", "k,v\n"] {
        std::fs::write(&path, "k,v\na,1\n").unwrap();
        let (source, keys) = open(&path, Options::default());
        std::fs::write(&path, then).unwrap();
        let result = source.write_ahead(&keys, "id", |_| "x".to_owned(), Path::new("o"), &mut Vec::new());
        assert!(matches!(result, Err(Error::Changed(_))), "{then:?}: {result:?}");
    }
}
