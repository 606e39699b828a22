//! Dictionaries of any values and within anything, from every kind of file to every other.

use arrow_array::builder::{BinaryViewBuilder, FixedSizeBinaryBuilder};
use arrow_array::types::{Float16Type, Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, DurationMillisecondArray,
    FixedSizeListArray, Int8Array, Int64Array, ListArray, ListViewArray, MapArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray, StructArray, UnionArray,
};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;
use tacit_data::csv::Options;
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: Vec<u8>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// Batches of these columns `d`, with keys that go on from one to the next.
fn batches(columns: &[ArrayRef]) -> Vec<RecordBatch> {
    let mut next = 0;
    let batch = |column: &ArrayRef| {
        let from = next;
        next += column.len() as i64;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(from..next));
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("d", column.clone(), true)]).unwrap()
    };
    columns.iter().map(batch).collect()
}

fn arrow_file(columns: &[ArrayRef]) -> Vec<u8> {
    let (batches, mut out) = (batches(columns), Vec::new());
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    out
}

fn stream(columns: &[ArrayRef]) -> Vec<u8> {
    let (batches, mut out) = (batches(columns), Vec::new());
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut out, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    out
}

/// A row group each, or all in one.
fn parquet_file(columns: &[ArrayRef], properties: WriterProperties, is_one: bool) -> Vec<u8> {
    let (batches, mut out) = (batches(columns), Vec::new());
    let mut writer = ArrowWriter::try_new(&mut out, batches[0].schema(), Some(properties)).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
        if !is_one {
            writer.flush().unwrap();
        }
    }
    writer.close().unwrap();
    out
}

fn open(paths: &[PathBuf]) -> (Source, KeySet) {
    let spec = KeySpec::text(vec!["k".to_owned()], Normalisation::default());
    let source = Source::open_all(paths, spec, Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    (source, keys)
}

/// The rows of these elements as they go to a file called `target`, which was found to hold all before.
fn written(paths: &[PathBuf], wanted: Option<&[u32]>, target: &str) -> Vec<u8> {
    let (source, keys) = open(paths);
    source.admits(Path::new(target)).unwrap();
    source.prove(Path::new(target)).unwrap();
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    let mut out = Vec::new();
    source.write_matches(&keys, wanted.unwrap_or(&all), Path::new(target), &mut out).unwrap();
    out
}

/// The column `d` of such a file.
fn column(out: Vec<u8>, target: &str) -> ArrayRef {
    let out = bytes::Bytes::from(out);
    let batches: Vec<RecordBatch> = match target.ends_with(".parquet") {
        true => ParquetRecordBatchReader::try_new(out, 1 << 20).unwrap().map(Result::unwrap).collect(),
        false => {
            let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(out), None).unwrap();
            reader.map(Result::unwrap).collect()
        }
    };
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(1)).collect();
    arrow_select::concat::concat(&columns).unwrap()
}

/// A row of each column as text, which does not show how a cell is stored.
fn cells(columns: &[ArrayRef]) -> Vec<String> {
    let options = arrow_cast::display::FormatOptions::new().with_null("nothing");
    let texts = |column: &ArrayRef| {
        let texts = arrow_cast::display::ArrayFormatter::try_new(column, &options).unwrap();
        (0..column.len()).map(|row| texts.value(row).to_string()).collect::<Vec<_>>()
    };
    columns.iter().flat_map(texts).collect()
}

/// Three rows: the first value, nothing, and the second.
fn dictionary(values: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::new(Int8Array::from(vec![Some(0), None, Some(1)]), values))
}

fn field(name: &str, of: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(name, of.data_type().clone(), true))
}

/// The same cells, three of them, within others of each kind that Parquet has.
fn within(cells: &ArrayRef) -> Vec<ArrayRef> {
    let lengths = StringArray::from(vec!["xx", "", "x"]).offsets().clone();
    let list: ArrayRef = Arc::new(ListArray::new(field("item", cells), lengths.clone(), cells.clone(), None));
    let record: ArrayRef = Arc::new(StructArray::from(vec![(field("a", cells), cells.clone())]));
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let key = Arc::new(Field::new("key", DataType::Utf8, false));
    let entries = StructArray::from(vec![(key, keys), (field("value", cells), cells.clone())]);
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map: ArrayRef = Arc::new(MapArray::new(entry, lengths.clone(), entries, None, false));
    let records: ArrayRef = Arc::new(ListArray::new(field("item", &record), lengths, record.clone(), None));
    let pair: ArrayRef = Arc::new(FixedSizeListArray::new(field("item", cells), 1, cells.clone(), None));
    vec![cells.clone(), list, record, map, records, pair]
}

/// The library can write them no other way.
#[test]
fn views_in_dictionaries_go_to_parquet_as_text_and_bytes() {
    let folder = Folder::new();
    let long = "longer than a view holds within itself";
    let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a", long]));
    let mut bytes = BinaryViewBuilder::new();
    [b"\xff".as_slice(), long.as_bytes()].iter().for_each(|bytes_of| bytes.append_value(bytes_of));
    let bytes: ArrayRef = Arc::new(bytes.finish());
    for (values, plain) in [(texts, DataType::Utf8), (bytes, DataType::Binary)] {
        let dictionaries = within(&dictionary(values));
        for (at, whole) in dictionaries.iter().enumerate() {
            let path = folder.file("t.arrow", arrow_file(from_ref(whole)));
            let found = column(written(&[path], None, "o.parquet"), "o.parquet");
            assert_eq!(cells(from_ref(&found)), cells(from_ref(whole)), "{}", whole.data_type());
            let stored = DataType::Dictionary(Box::new(DataType::Int8), Box::new(plain.clone()));
            assert!(at > 0 || found.data_type() == &stored, "{}", found.data_type());
        }
    }
}

/// An Arrow file has one dictionary for each place of a type, and files, row groups and batches have one each.
#[test]
fn dictionaries_within_others_become_one_each() {
    let folder = Folder::new();
    // More words together than the keys number.
    let part = |from: usize| -> Vec<ArrayRef> {
        let words: Vec<String> = (from..from + 100).map(|at| format!("w{at}")).collect();
        let words: ArrayRef = Arc::new(StringArray::from(words));
        let keys = Int8Array::from(vec![Some(from as i8 % 7), None, Some(99)]);
        let own: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, words));
        let mut all = within(&own);
        let nested = within(&all[1]).swap_remove(1);
        all.push(nested);
        all
    };
    let (one, other) = (part(0), part(95));
    // What Parquet has not.
    let more = |own: &ArrayRef| -> Vec<ArrayRef> {
        let view = ListViewArray::new(
            field("item", own),
            vec![1, 0, 2].into(),
            vec![2, 1, 0].into(),
            own.clone(),
            None,
        );
        let fields = [(0, field("x", own))].into_iter().collect();
        let union = UnionArray::try_new(fields, vec![0i8; 3].into(), None, vec![own.clone()]).unwrap();
        let ends = arrow_array::Int32Array::from(vec![1, 2, 3]);
        let runs = arrow_array::RunArray::<Int32Type>::try_new(&ends, own).unwrap();
        vec![Arc::new(view), Arc::new(union), Arc::new(runs)]
    };
    let pairs = one.iter().zip(&other).map(|(one, other)| ([one.clone(), other.clone()], true));
    let more = more(&one[0]).into_iter().zip(more(&other[0])).map(|(one, other)| ([one, other], false));
    for (both, has_parquet) in pairs.chain(more) {
        let kind = both[0].data_type().clone();
        let [a, b] = &batches(&both)[..] else { unreachable!() };
        let files = [("a.arrow", a), ("b.arrow", b)].map(|(name, batch)| {
            let mut out = Vec::new();
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
            folder.file(name, out)
        });
        let mut inputs = vec![files.to_vec(), vec![folder.file("stream", stream(&both))]];
        if has_parquet {
            let groups = parquet_file(&both, WriterProperties::default(), false);
            inputs.push(vec![folder.file("groups.parquet", groups)]);
        }
        for paths in inputs {
            let found = column(written(&paths, None, "o.arrow"), "o.arrow");
            assert_eq!(cells(from_ref(&found)), cells(&both), "{kind} {paths:?}");
            assert!(found.data_type().to_string().contains("Dictionary(Int32, Utf8)"), "{kind}");
            let some = column(written(&paths, Some(&[1, 4]), "o.arrow"), "o.arrow");
            let wanted = both.clone().map(|column| column.slice(1, 1));
            assert_eq!(cells(&[some]), cells(&wanted), "{kind} {paths:?}");
        }
    }
}

/// Some of the rows, a batch's share of which has no elements: an array of none comes with a dictionary of none.
#[test]
fn rows_of_empty_lists_have_their_columns_dictionary() {
    let folder = Folder::new();
    let list = |cells: &ArrayRef, lengths: Vec<&str>| -> ArrayRef {
        let lengths = StringArray::from(lengths).offsets().clone();
        Arc::new(ListArray::new(field("item", cells), lengths, cells.clone(), None))
    };
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let views: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
    for values in [texts, views] {
        let inner = list(&dictionary(values), vec!["xx", "", "x"]);
        let outer = list(&inner, vec!["xxx", "", ""]);
        let both = [outer.clone(), outer];
        let path = folder.file("t.arrow", arrow_file(&both));
        let all = cells(&both);
        for wanted in [&[0, 1, 2, 3, 4, 5][..], &[0, 4], &[1, 2, 3, 4], &[5]] {
            let found = column(written(from_ref(&path), Some(wanted), "o.arrow"), "o.arrow");
            let expected: Vec<String> = wanted.iter().map(|at| all[*at as usize].clone()).collect();
            assert_eq!(cells(&[found]), expected, "{wanted:?}");
        }
    }
}

/// Other readers take a dictionary of them for one of integers.
#[test]
fn durations_of_dictionaries_go_to_parquet_as_durations() {
    let folder = Folder::new();
    let values: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![5, -1]));
    let plain = DataType::Duration(TimeUnit::Millisecond);
    for (at, whole) in within(&dictionary(values)).into_iter().enumerate() {
        let column_of = from_ref(&whole);
        let stored = parquet_file(column_of, WriterProperties::default(), true);
        for path in [folder.file("t.arrow", arrow_file(column_of)), folder.file("t.parquet", stored)] {
            let found = column(written(from_ref(&path), None, "o.parquet"), "o.parquet");
            assert_eq!(cells(from_ref(&found)), cells(column_of), "{path:?}");
            assert!(at > 0 || found.data_type() == &plain);
            assert!(!found.data_type().to_string().contains("Dictionary"), "{}", found.data_type());
        }
    }
}

/// A Parquet file of this column in which a note says that it was the other, which has the same cells.
fn noted(plain: &ArrayRef, was: &ArrayRef) -> Vec<u8> {
    let mut properties = WriterProperties::default();
    let schema = batches(from_ref(was))[0].schema();
    parquet::arrow::add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let (batch, mut out) = (batches(from_ref(plain)).remove(0), Vec::new());
    let mut writer = ArrowWriter::try_new_with_options(&mut out, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

/// pyarrow notes in a Parquet file that its cells were of a dictionary, whatever its values.
#[test]
fn dictionaries_that_the_library_does_not_read_are_read_as_their_values() {
    let folder = Folder::new();
    let decimals = Decimal128Array::from(vec![1, -(10i128.pow(37))]).with_precision_and_scale(38, 2).unwrap();
    let more = arrow_cast::cast(&decimals, &DataType::Decimal256(60, 2)).unwrap();
    let mut bytes = FixedSizeBinaryBuilder::new(3);
    [b"abc", b"xyz"].iter().for_each(|of| bytes.append_value(of).unwrap());
    let halves: PrimitiveArray<Float16Type> = [1.5f32, -2.0].into_iter().map(half).collect();
    let kinds: Vec<ArrayRef> = vec![
        Arc::new(decimals),
        more,
        Arc::new(BooleanArray::from(vec![true, false])),
        Arc::new(bytes.finish()),
        Arc::new(halves),
    ];
    for values in kinds {
        let values_type = values.data_type().clone();
        let rows = arrow_array::UInt32Array::from(vec![Some(0), None, Some(1)]);
        let plain = within(&arrow_select::take::take(&values, &rows, None).unwrap());
        for (at, (whole, plain)) in within(&dictionary(values)).into_iter().zip(plain).enumerate() {
            let column_of = from_ref(&whole);
            let stored = noted(&plain, &whole);
            let path = [folder.file("t.parquet", stored)];
            for target in ["o.parquet", "o.arrow"] {
                let found = column(written(&path, None, target), target);
                assert_eq!(cells(from_ref(&found)), cells(column_of), "{values_type}");
                assert!(at > 0 || found.data_type() == &values_type);
            }
            if at == 0 {
                assert!(written(&path, None, "o.csv").starts_with(b"k,d\n0,"));
                // From Arrow the same, for whose library cannot read them either.
                let path = [folder.file("t.arrow", arrow_file(column_of))];
                let found = column(written(&path, None, "o.parquet"), "o.parquet");
                assert_eq!(found.data_type(), &values_type);
                assert_eq!(cells(&[found]), cells(column_of), "{values_type}");
            }
        }
    }
}

/// The library has no dictionaries of views, whatever a note in a Parquet file says.
#[test]
fn noted_dictionaries_of_views_are_read_as_of_text_and_bytes() {
    let folder = Folder::new();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "longer than a view holds"]));
    let bytes = arrow_cast::cast(&texts, &DataType::Binary).unwrap();
    for (values, view) in [(texts, DataType::Utf8View), (bytes, DataType::BinaryView)] {
        let was = dictionary(arrow_cast::cast(&values, &view).unwrap());
        let rows = arrow_array::UInt32Array::from(vec![Some(0), None, Some(1)]);
        let plain = within(&arrow_select::take::take(&values, &rows, None).unwrap());
        let read = DataType::Dictionary(Box::new(DataType::Int8), Box::new(values.data_type().clone()));
        for (at, (whole, plain)) in within(&was).into_iter().zip(plain).enumerate() {
            let path = [folder.file("t.parquet", noted(&plain, &whole))];
            for target in ["o.parquet", "o.arrow"] {
                let found = column(written(&path, None, target), target);
                assert_eq!(cells(from_ref(&found)), cells(from_ref(&whole)), "{view} {target}");
                assert!(at > 0 || found.data_type() == &read, "{}", found.data_type());
            }
        }
    }
}

fn half(number: f32) -> Option<<Float16Type as arrow_array::ArrowPrimitiveType>::Native> {
    let whole: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![number]));
    let half = arrow_cast::cast(&whole, &DataType::Float16).unwrap();
    Some(half.as_any().downcast_ref::<PrimitiveArray<Float16Type>>().unwrap().value(0))
}

/// A key of 8 bits numbers 128 values, and a row group may have those of several dictionaries.
#[test]
fn a_row_group_of_more_words_than_narrow_keys_number_is_read() {
    let folder = Folder::new();
    let part = |from: usize, words: usize| -> ArrayRef {
        let words: Vec<String> = (from..from + words).map(|at| format!("w{at}")).collect();
        Arc::new(words.iter().map(|word| Some(word.as_str())).collect::<DictionaryArray<Int8Type>>())
    };
    let default = WriterProperties::default;
    // The words of the first table alone are in the dictionary.
    let small = || WriterProperties::builder().set_dictionary_page_size_limit(450).build();
    let none = || WriterProperties::builder().set_dictionary_enabled(false).build();
    let narrow = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let wide = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    for (columns, properties, kind) in [
        (vec![part(0, 127)], default(), &narrow),
        (vec![part(0, 128)], default(), &wide),
        (vec![part(0, 120), part(120, 120)], default(), &wide),
        (vec![part(0, 120), part(120, 120)], small(), &wide),
        (vec![part(0, 120), part(120, 120)], none(), &wide),
        (vec![part(0, 100)], none(), &narrow),
    ] {
        let path = [folder.file("t.parquet", parquet_file(&columns, properties, true))];
        for target in ["o.parquet", "o.arrow"] {
            let found = column(written(&path, None, target), target);
            assert_eq!((found.data_type(), cells(from_ref(&found))), (kind, cells(&columns)), "{target}");
        }
    }
}

/// Rows that share a long value go out few at a time, and still share it in the file.
#[test]
fn a_long_value_goes_to_parquet_once() {
    let folder = Folder::new();
    let long = "x".repeat(3 << 20);
    let own: ArrayRef = Arc::new(std::iter::repeat_n(&*long, 100).collect::<DictionaryArray<Int32Type>>());
    let record: ArrayRef = Arc::new(StructArray::from(vec![(field("a", &own), own.clone())]));
    let lengths = StringArray::from(vec!["x"; 100]).offsets().clone();
    let list: ArrayRef = Arc::new(ListArray::new(field("item", &own), lengths, own.clone(), None));
    for whole in [own, record, list] {
        let path = [folder.file("t.arrow", arrow_file(from_ref(&whole)))];
        let out = written(&path, None, "o.parquet");
        assert!(out.len() < 4 << 20, "{} {}", whole.data_type(), out.len());
        assert_eq!(&column(out, "o.parquet"), &whole);
    }
}
