//! Several files as one table: folders, patterns and lists of them.

use arrow_array::types::{Int8Type, Int16Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, DictionaryArray, DurationSecondArray, FixedSizeListArray, Float64Array,
    Int8Array, Int64Array, LargeStringArray, ListArray, MapArray, RecordBatch, StringArray, StringViewArray,
    StructArray, Time64NanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, Field};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::csv::{EmptyKeys, Error, Header, Options, Place};
use tacit_data::give::Purpose;
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::{Source, digest_of};
use tacit_data::values::{Column, Form, Table};

fn spec(column: &str) -> KeySpec {
    KeySpec::text(vec![column.to_owned()], Normalisation::default())
}

fn open(paths: &[PathBuf], column: &str) -> Result<(Source, KeySet), Error> {
    let source = Source::open_all(paths, spec(column), Options::default())?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn written(source: &Source, keys: &KeySet, target: &str) -> Vec<u8> {
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    let mut out = Vec::new();
    source.write_matches(keys, &all, Path::new(target), &mut out).unwrap();
    out
}

fn parquet(names: [&str; 2], keys: &[Option<&str>], numbers: &[i64]) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 2] = [
        (names[0], Arc::new(StringArray::from(keys.to_vec()))),
        (names[1], Arc::new(Int64Array::from(numbers.to_vec()))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, name == "k")),
    );
    let batch = batch.unwrap();
    let mut out = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

/// Columns in another order, and a file of no rows: one table, whose rows come in the order of the files' names.
#[test]
fn a_folder_is_one_table_by_the_names_of_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let b = file("b.csv", b"n;k\n3;c\n4;A\n");
    let a = file("a.csv", b"k,n\na,1\n\"b,b\",\n");
    let none = file("c.csv", b"k,n\n");
    // What Spark and others leave beside.
    for name in ["_SUCCESS", ".a.csv.crc", "empty.csv"] {
        file(name, if name == "empty.csv" { b"" } else { b"x" });
    }
    let expected = "k,n\na,1\n\"b,b\",\nc,3\nA,4\n";
    let pattern = folder.path().join("[a-c].csv");
    for paths in [vec![folder.path().to_owned()], vec![pattern], vec![a.clone(), b, none]] {
        let (source, keys) = open(&paths, "k").unwrap();
        assert_eq!((keys.rows(), keys.elements().len(), keys.duplicate_rows()), (4, 3, 1));
        assert_eq!(String::from_utf8(written(&source, &keys, "o.csv")).unwrap(), expected);
        assert_eq!(written(&source, &keys, "-"), expected.as_bytes());
        let mut rest = Vec::new();
        assert_eq!(source.write_rest(&keys, &[0], Path::new("o.csv"), &mut rest).unwrap(), 2);
        assert_eq!(String::from_utf8(rest).unwrap(), "k,n\n\"b,b\",\nc,3\n");
    }
    let whole = Source::open(folder.path(), spec("k"), Options::default()).unwrap();
    assert_eq!(whole.digest().unwrap(), digest_of(&[folder.path().to_owned()]).unwrap());
    assert_ne!(whole.digest().unwrap(), digest_of(std::slice::from_ref(&a)).unwrap());
    let single = Source::open(&a, spec("k"), Options::default()).unwrap();
    assert_eq!(single.digest().unwrap(), *blake3::hash(&fs::read(&a).unwrap()).as_bytes());
}

#[test]
fn files_of_columns_keep_their_types_and_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let a = file("a.parquet", &parquet(["k", "n"], &[Some("a"), None], &[1, 2]));
    let mut turned = Vec::new();
    {
        // The same columns the other way round, and a null where the first has none.
        let columns: [(&str, ArrayRef); 2] = [
            ("n", Arc::new(Int64Array::from(vec![Some(3), None]))),
            ("k", Arc::new(StringArray::from(vec!["b", "a"]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut turned, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    let b = file("b.parquet", &turned);
    let (source, keys) = open(&[a.clone(), b.clone()], "k").unwrap();
    assert_eq!((keys.rows(), keys.rows_without_key(), keys.elements().len()), (4, 1, 2));
    source.prove(Path::new("o.arrow")).unwrap();
    let out = file("out.parquet", &written(&source, &keys, "o.parquet"));
    let (again, found) = open(&[out], "k").unwrap();
    assert_eq!(found.elements(), keys.elements());
    assert_eq!(written(&again, &found, "o.csv"), b"k,n\na,1\nb,3\na,\n");
    // Values to compute on, and what is given, name file and row of a cell that is none.
    let mut given = Vec::new();
    let each = |at: usize, place: Place, cells: &[Option<&str>]| {
        given.push((at, source.located(place).0 == b, cells[0].map(str::to_owned)));
        Ok::<_, Error>(())
    };
    source.read_given(&keys, &["n".to_owned()], Purpose::Number(Form::Plain), each).unwrap();
    assert_eq!(given, [(0, false, Some("1".into())), (1, true, Some("3".into())), (0, true, None)]);
    let table = Table::open(&folder.path().join("[ab].parquet"), Options::default()).unwrap();
    let wanted = table.find(&[Column::parse("n")]).unwrap();
    let error = table.read(&wanted, |_, _| Ok::<_, Error>(())).err().unwrap().to_string();
    assert!(error.contains("b.parquet, row 2: column `n` has no value"), "{error}");
    let options = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
    let source = Source::open_all(&[b, a], spec("k"), options).unwrap();
    let error = source.read_keys(|_| ()).err().unwrap().to_string();
    assert!(error.contains("a.parquet, row 2: a key column is empty"), "{error}");
}

/// Several libraries store text in several ways, and one library by what it finds.
#[test]
fn text_is_text_however_the_files_store_it() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |name: &str, keys: ArrayRef| {
        let batch = RecordBatch::try_from_iter_with_nullable([("k", keys, true)]).unwrap();
        let mut out = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        fs::write(folder.path().join(name), out).unwrap();
        folder.path().join(name)
    };
    let keys = ["a", "b"];
    let paths = [
        stored("short.parquet", Arc::new(StringArray::from(keys.to_vec()))),
        stored("long.parquet", Arc::new(LargeStringArray::from(vec!["c", "d"]))),
        stored("view.parquet", Arc::new(StringViewArray::from(vec!["e"]))),
        stored("words.parquet", Arc::new(["f", "f"].into_iter().collect::<DictionaryArray<Int8Type>>())),
        folder.path().join("lines.csv"),
    ];
    fs::write(&paths[4], "k\ng\n").unwrap();
    for first in 0..paths.len() {
        let mut paths = paths.to_vec();
        paths.rotate_left(first);
        let (source, keys) = open(&paths, "k").unwrap();
        let mut lines: Vec<String> =
            String::from_utf8(written(&source, &keys, "o.csv")).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines.remove(0), "k");
        lines.sort();
        assert_eq!(lines, ["a", "b", "c", "d", "e", "f", "f", "g"]);
        assert!(written(&source, &keys, "o.parquet").starts_with(b"PAR1"));
    }
}

#[test]
fn a_difference_is_a_line_that_names_file_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let said = |paths: &[PathBuf]| open(paths, "k").err().unwrap().to_string();
    let a = file("a.csv", b"k,secret\na,1\n");
    let b = file("b.csv", b"k,other\na,1\n");
    let more = file("more.csv", b"k,secret,x\na,1,2\n");
    let broken = file("broken.csv", b"k,secret\na,1\nb\n");
    let error = said(&[a.clone(), b]);
    assert!(error.contains("b.csv: column 2 of") && error.contains("a.csv is missing there"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    let error = said(&[a.clone(), more]);
    assert!(error.contains("more.csv: column 3 is not in"), "{error}");
    assert!(said(&[a.clone(), broken]).contains("broken.csv, line 3: 1 field, but the first line has 2"));
    let one = file("a.parquet", &parquet(["k", "n"], &[Some("a")], &[1]));
    let other = file("b.parquet", &parquet(["k", "m"], &[Some("a")], &[1]));
    let error = said(&[one.clone(), other.clone()]);
    assert!(error.contains("b.parquet: column 2 (`n`) of") && error.lines().count() == 1, "{error}");
    let error = said(&[one, file("t.csv", b"k,n\na,1\n")]);
    assert!(error.contains("t.csv: column 2 has text, but in"), "{error}");
    // Names that lead to nothing.
    assert!(said(&[folder.path().join("*.txt")]).contains("no such file"));
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(said(std::slice::from_ref(&empty)).contains("the directory has no table in it"));
    assert!(said(&[folder.path().to_owned()]).contains("empty: a subdirectory"));
    fs::remove_dir(&empty).unwrap();
    // A cut file among them is named.
    let cut = parquet(["k", "n"], &[Some("a"), Some("b")], &[1, 2]);
    let cut = file("cut.parquet", &cut[..cut.len() - 9]);
    assert!(said(&[folder.path().join("a.parquet"), cut]).contains("cut.parquet"));
}

#[test]
fn files_without_a_header_go_by_numbers() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.csv", "a,1\nb,2\n"), ("b.csv", "c,3\n")] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let options = Options { header: Header::None, ..Options::default() };
    let source = Source::open(folder.path(), spec("1"), options).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    assert_eq!(keys.rows(), 3);
    assert_eq!(written(&source, &keys, "o.csv"), b"1,2\na,1\nb,2\nc,3\n");
}

/// The rows of CSV files are kept as columns; errors name their lines all the same.
#[test]
fn errors_in_rows_of_csv_files_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.csv", "k,n\na,1\n"), ("b.csv", "k,n\n\"b\n\nb\",2\n\nc,3\n,4\nd,x\n")] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let options = Options { empty_keys: EmptyKeys::Refuse, ..Options::default() };
    let source = Source::open(folder.path(), spec("k"), options).unwrap();
    let error = source.read_keys(|_| ()).err().unwrap().to_string();
    assert!(error.contains("b.csv, line 7: a key column is empty"), "{error}");
    let table = Table::open(folder.path(), Options::default()).unwrap();
    let wanted = table.find(&[Column::parse("n:decimal0")]).unwrap();
    let error = table.read(&wanted, |_, _| Ok::<_, Error>(())).err().unwrap().to_string();
    assert!(error.contains("b.csv, line 8: column `n`"), "{error}");
}

/// What a record commits to is what is read, of every file.
#[test]
fn pinned_files_are_what_their_digest_is_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let a = file("a.parquet", &parquet(["k", "n"], &[Some("a")], &[1]));
    // More than a piece that a reader holds.
    let many: Vec<String> =
        (0..10_000).map(|at| blake3::hash(&[at as u8, 1]).to_string() + &at.to_string()).collect();
    let many: Vec<Option<&str>> = many.iter().map(|key| Some(key.as_str())).collect();
    let b = file("b.parquet", &parquet(["k", "n"], &many, &vec![2; many.len()]));
    assert!(fs::metadata(&b).unwrap().len() > 1 << 19);
    let paths = [a.clone(), b.clone()];
    let source = Source::open_all_pinned(&paths, spec("k"), Options::default()).unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    let digest = source.digest().unwrap();
    assert_eq!(digest, digest_of(&paths).unwrap());
    assert_ne!(digest, digest_of(&[b.clone(), a.clone()]).unwrap());
    // A cell that is no key.
    fs::write(&b, parquet(["k", "n"], &many, &vec![3; many.len()])).unwrap();
    let error = source.write_matches(&keys, &[0, 1], Path::new("o.csv"), &mut Vec::new()).err().unwrap();
    assert!(matches!(&error, Error::Changed(path) if *path == b), "{error}");
    assert_eq!(source.digest().unwrap(), digest);
    assert_ne!(digest_of(&paths).unwrap(), digest);
    // Of CSV files a copy is read, which is of the pinned bytes.
    let [c, d] = [file("c.csv", b"k,n\nc,1\n"), file("d.csv", b"k,n\nd,2\n")];
    let paths = [c, d.clone()];
    let source = Source::open_all_pinned(&paths, spec("k"), Options::default()).unwrap();
    assert_eq!(source.digest().unwrap(), digest_of(&paths).unwrap());
    fs::write(&d, "k,n\nx,9\n").unwrap();
    let keys = source.read_keys(|_| ()).unwrap();
    assert_eq!(written(&source, &keys, "o.csv"), b"k,n\nc,1\nd,2\n");
}

/// Files of columns that are not pinned are read again, and held against what the first pass read.
#[test]
fn a_file_among_several_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|key| {
        let path = folder.path().join(format!("{key}.parquet"));
        fs::write(&path, parquet(["k", "n"], &[Some(key)], &[1])).unwrap();
        path
    });
    let (source, keys) = open(&[a, b.clone()], "k").unwrap();
    let pass = source.each_key(|_| (), |_| Ok::<_, Error>(())).unwrap();
    fs::write(&b, parquet(["k", "n"], &[Some("c")], &[1])).unwrap();
    let target = Path::new("o.csv");
    for error in [
        source.write_matches(&keys, &[0, 1], target, &mut Vec::new()).err(),
        source.write_rest(&keys, &[0], target, &mut Vec::new()).err(),
        source.write_marked(&keys, &[0], target, &mut Vec::new()).err(),
        source.write_rows(&pass, |_| true, target, &mut Vec::new()).err(),
        source.write_rows_marked(&pass, |_| true, target, &mut Vec::new()).err(),
    ] {
        let error = error.unwrap();
        assert!(matches!(error, Error::Changed(_)), "{error}");
        assert!(error.to_string().contains("b.parquet"), "{error}");
    }
}

#[test]
fn files_of_several_kinds_are_one_table_if_their_cells_mean_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let csv = file("a.csv", b"k,n\na,x\n");
    let lines = file("b.jsonl", b"{\"n\":\"y\",\"k\":\"b\"}\n");
    let packed = file("c.csv.zst", &zstd::encode_all(&b"n;k\nz;c\n"[..], 1).unwrap());
    let (source, keys) = open(&[csv.clone(), lines, packed], "k").unwrap();
    assert_eq!(written(&source, &keys, "o.csv"), b"k,n\na,x\nb,y\nc,z\n");
    // Decimals and text have one type among the columns, and are other keys.
    let decimals = file("d.jsonl", b"{\"k\":1.50,\"n\":\"y\"}\n");
    let error = open(&[csv, decimals], "k").err().unwrap().to_string();
    assert!(error.contains("d.jsonl: column 1") && error.contains("has other values"), "{error}");
}

#[test]
fn decimals_with_a_comma_are_read_so_in_several_files_too() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [("a.csv", "k;n\na;1,50\n"), ("b.csv", "k;n\nb;0,25\n")] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let options = Options { decimal_comma: true, ..Options::default() };
    let table = Table::open(folder.path(), options).unwrap();
    let wanted = table.find(&[Column::parse("n:decimal2")]).unwrap();
    let mut found = Vec::new();
    let each = |_, cells: &[&str]| {
        found.push(cells[0].to_owned());
        Ok::<_, Error>(())
    };
    table.read(&wanted, each).unwrap();
    assert_eq!(found, ["150", "25"]);
    let source = Source::open(folder.path(), spec("k"), options).unwrap();
    let (keys, mut found) = (source.read_keys(|_| ()).unwrap(), Vec::new());
    let column = source.number_column("n:decimal2");
    let each = |_, _, cells: &[Option<&str>]| {
        found.push(cells[0].map(str::to_owned));
        Ok::<_, Error>(())
    };
    source.read_given(&keys, &[column.name], Purpose::Number(column.form), each).unwrap();
    assert_eq!(found, [Some("150".to_owned()), Some("25".to_owned())]);
}

/// Files of JSON lines are typed by all of their lines, as one file of them would be: Spark writes 2.5 and 1.0E300 of
/// one column, leaves nulls out, and a part may hold nothing but nulls.
#[test]
fn parts_in_json_lines_have_the_columns_of_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [
        "{\"k\":\"a\",\"x\":2.5,\"n\":1,\"ok\":null,\"o\":{\"a\":1}}\n{\"n\":2,\"k\":\"b\"}\n",
        "{\"k\":\"c\",\"x\":1.0E300,\"n\":1.5,\"ok\":true,\"o\":7}\n",
        "{\"ok\":false,\"only\":3,\"k\":\"d\"}\n",
    ];
    let whole = folder.path().join("whole.jsonl");
    fs::write(&whole, parts.concat()).unwrap();
    let split = folder.path().join("parts");
    fs::create_dir(&split).unwrap();
    for (at, part) in parts.iter().enumerate() {
        fs::write(split.join(format!("{at}.json")), part).unwrap();
    }
    let (one, keys) = open(&[whole], "k").unwrap();
    let (several, their_keys) = open(&[split], "k").unwrap();
    assert_eq!(keys.elements(), their_keys.elements());
    assert_eq!(one.read_whole().unwrap().0, several.read_whole().unwrap().0);
    assert_eq!(written(&one, &keys, "o.csv"), written(&several, &their_keys, "o.csv"));
    let text = String::from_utf8(written(&several, &their_keys, "o.csv")).unwrap();
    assert_eq!(
        text,
        "k,x,n,ok,o,only\na,2.5,1,,\"{\"\"a\"\":1}\",\nb,,2,,,\nc,1.0E300,1.5,true,7,\nd,,,false,,3\n"
    );
    let (place, at) = several.located(Place::Row(3));
    assert_eq!((place.file_name().unwrap().to_str(), at), (Some("1.json"), Place::Row(1)));
    // A name twice in a line is one fault, the same name in the same line of two files none.
    let twice = [folder.path().join("1.jsonl"), folder.path().join("2.jsonl")];
    fs::write(&twice[0], "{\"k\":\"a\"}\n").unwrap();
    fs::write(&twice[1], "{\"k\":\"b\",\"k\":\"c\"}\n").unwrap();
    let error = open(&twice, "k").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("2.jsonl") && error.contains("line 1: a member's name occurs twice"), "{error}");
}

/// An Arrow file, or a stream, of batches with the keys `k` and this column `d` each.
fn arrow(columns: &[(&[&str], ArrayRef)], is_stream: bool) -> Vec<u8> {
    let batch = |(keys, column): &(&[&str], ArrayRef)| {
        let keys: ArrayRef = Arc::new(StringArray::from(keys.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("d", column.clone(), true)]).unwrap()
    };
    let batches: Vec<RecordBatch> = columns.iter().map(batch).collect();
    let (mut out, schema) = (Vec::new(), batches[0].schema());
    if is_stream {
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut out, &schema).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &schema).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    out
}

/// The column `d` that an Arrow file or a Parquet file of all rows has.
fn column_of(paths: &[PathBuf], target: &str) -> ArrayRef {
    let (source, keys) = open(paths, "k").unwrap();
    source.prove(Path::new(target)).unwrap();
    let out = bytes::Bytes::from(written(&source, &keys, target));
    let batches: Vec<RecordBatch> = if target.ends_with(".parquet") {
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(out, 1 << 20).unwrap();
        reader.map(Result::unwrap).collect()
    } else {
        let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(out), None).unwrap();
        reader.map(Result::unwrap).collect()
    };
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(1)).collect();
    arrow_select::concat::concat(&columns).unwrap()
}

/// Writers give a column of nulls alone a dictionary without values.
#[test]
fn a_dictionary_without_values_is_a_column_of_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let words = |words: &[Option<&str>]| -> ArrayRef {
        Arc::new(words.iter().copied().collect::<DictionaryArray<Int8Type>>())
    };
    let (none, some) = (words(&[None, None]), words(&[Some("x"), None]));
    let parts: [(&[&str], ArrayRef); 2] = [(&["a", "b"], none.clone()), (&["c", "d"], some.clone())];
    let wanted: ArrayRef = Arc::new(StringArray::from(vec![None, None, Some("x"), None]));
    let paths = ["a.arrow", "b.arrow"].map(|name| folder.path().join(name));
    for (path, part) in paths.iter().zip(&parts) {
        fs::write(path, arrow(std::slice::from_ref(part), false)).unwrap();
    }
    let stream = folder.path().join("stream");
    fs::write(&stream, arrow(&parts, true)).unwrap();
    for paths in [paths.to_vec(), vec![stream]] {
        for target in ["o.arrow", "o.parquet"] {
            let found = arrow_cast::cast(&column_of(&paths, target), &DataType::Utf8).unwrap();
            assert_eq!(&found, &wanted, "{paths:?} {target}");
        }
        let (source, keys) = open(&paths, "k").unwrap();
        source.prove(Path::new("o.xlsx")).unwrap();
        assert_eq!(written(&source, &keys, "o.csv"), b"k,d\na,\nb,\nc,x\nd,\n");
        assert_eq!(open(&paths, "d").unwrap().1.rows_without_key(), 3);
    }
    // Nothing but nulls anywhere.
    let none = arrow(&[(&["a", "b"], none)], false);
    paths.iter().for_each(|path| fs::write(path, &none).unwrap());
    let found = column_of(&paths, "o.arrow");
    assert_eq!((found.len(), found.null_count()), (4, 4));
    // No rows, and so no runs and no views.
    let empty = arrow_array::Int32Array::from(Vec::<i32>::new());
    let runs: ArrayRef =
        Arc::new(arrow_array::RunArray::try_new(&empty, &StringArray::from(Vec::<&str>::new())).unwrap());
    let views: ArrayRef = Arc::new(StringViewArray::from(Vec::<&str>::new()));
    for column in [runs, views] {
        let content = arrow(&[(&[], column)], false);
        paths.iter().for_each(|path| fs::write(path, &content).unwrap());
        for target in ["o.arrow", "o.parquet", "o.csv", "o.xlsx"] {
            let (source, keys) = open(&paths, "k").unwrap();
            source.prove(Path::new(target)).unwrap();
            assert!(!written(&source, &keys, target).is_empty());
        }
    }
}

/// What two files' dictionaries have in common is found by the values: not each has a text, nor one of its own.
#[test]
fn values_of_dictionaries_stay_what_they_are_in_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.arrow", "b.arrow"].map(|name| folder.path().join(name));
    let far = 100_000_000_000_000_000i64;
    let times = |of: &dyn Fn(Vec<i64>) -> ArrayRef| [of(vec![far, 1]), of(vec![far + 1, 1])];
    let lists = |items: [i64; 3]| -> ArrayRef {
        let lists = items.map(|item| Some([Some(item), None]));
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>(lists))
    };
    let records = |numbers: Vec<Option<i64>>| -> ArrayRef {
        let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
        Arc::new(StructArray::try_from(vec![("n", numbers)]).unwrap())
    };
    let columns: Vec<[ArrayRef; 2]> = vec![
        times(&|of| Arc::new(DurationSecondArray::from(of))),
        times(&|of| Arc::new(TimestampSecondArray::from(of))),
        times(&|of| Arc::new(Time64NanosecondArray::from(of))),
        [
            Arc::new(Date32Array::from(vec![i32::MAX, 5])) as ArrayRef,
            Arc::new(Date32Array::from(vec![i32::MAX - 1, 5])),
        ],
        [
            Arc::new(Float64Array::from(vec![-0.0, 0.1])) as ArrayRef,
            Arc::new(Float64Array::from(vec![0.0, 0.1f64.next_up()])),
        ],
        [lists([1, far, 3]).slice(1, 2), lists([1, far + 1, 3]).slice(1, 2)],
        [records(vec![Some(far), None]), records(vec![Some(far + 1), None])],
        [
            Arc::new(StringArray::from(vec![None, Some("")])) as ArrayRef,
            Arc::new(StringArray::from(vec![Some(""), None])),
        ],
    ];
    for values in columns {
        let kind = values[0].data_type().clone();
        for ((path, values), keys) in paths.iter().zip(&values).zip([["a", "b", "c"], ["d", "e", "f"]]) {
            let column =
                DictionaryArray::<Int32Type>::new(vec![Some(1), None, Some(0)].into(), values.clone());
            fs::write(path, arrow(&[(&keys, Arc::new(column))], false)).unwrap();
        }
        let found = column_of(&paths, "o.arrow");
        let indices = arrow_array::UInt32Array::from(vec![Some(1), None, Some(0)]);
        let taken = values.map(|values| arrow_select::take::take(&values, &indices, None).unwrap());
        let wanted = arrow_select::concat::concat(&[&*taken[0], &*taken[1]]).unwrap();
        let dictionary = found.as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap();
        let found = arrow_select::take::take(dictionary.values(), dictionary.keys(), None).unwrap();
        assert_eq!(&found, &wanted, "{kind}");
    }
}

/// pandas gives the words of a file the narrowest key, and several files have more of them.
#[test]
fn words_of_several_files_have_a_key_that_is_wide_enough() {
    let folder = tempfile::tempdir().unwrap();
    let word = |at: usize| format!("w{at}");
    let part = |name: &str, range: std::ops::Range<usize>, is_wide: bool, is_nested: bool| {
        let texts: Vec<String> = range.map(word).collect();
        let words: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut column: ArrayRef = match is_wide {
            true => Arc::new(words.iter().copied().collect::<DictionaryArray<Int16Type>>()),
            false => Arc::new(words.iter().copied().collect::<DictionaryArray<Int8Type>>()),
        };
        if is_nested {
            column = Arc::new(StructArray::try_from(vec![("w", column)]).unwrap());
        }
        fs::write(folder.path().join(name), arrow(&[(&words, column)], false)).unwrap();
        folder.path().join(name)
    };
    let wanted: ArrayRef = Arc::new(StringArray::from((0..300).map(word).collect::<Vec<_>>()));
    let wide = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    for is_wide in [false, true] {
        let paths = [
            part("a.arrow", 0..100, false, false),
            part("b.arrow", 100..200, is_wide, false),
            part("c.arrow", 200..300, false, false),
        ];
        for target in ["o.arrow", "o.parquet"] {
            let found = column_of(&paths, target);
            assert_eq!(found.data_type(), &wide, "{target}");
            assert_eq!(&arrow_cast::cast(&found, &DataType::Utf8).unwrap(), &wanted, "{target}");
        }
    }
    let paths = [part("a.arrow", 0..100, false, true), part("b.arrow", 100..300, true, true)];
    let found = column_of(&paths, "o.parquet");
    let found = found.as_any().downcast_ref::<StructArray>().unwrap().column(0).clone();
    assert_eq!(found.data_type(), &wide);
    assert_eq!(&arrow_cast::cast(&found, &DataType::Utf8).unwrap(), &wanted);
    // A file alone keeps its type.
    let one = column_of(&paths[..1], "o.parquet");
    assert!(matches!(one.data_type(), DataType::Struct(fields) if matches!(fields[0].data_type(),
        DataType::Dictionary(key, _) if **key == DataType::Int8)));
    // Other keys than signed ones, and rows that have none.
    let numbers = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![Some(0), None]),
        Arc::new(Int64Array::from(vec![7])),
    );
    fs::write(&paths[0], arrow(&[(&["a", "b"], Arc::new(numbers))], false)).unwrap();
    let numbers = DictionaryArray::<arrow_array::types::UInt8Type>::new(
        vec![Some(0), None].into(),
        Arc::new(Int64Array::from(vec![8])),
    );
    fs::write(&paths[1], arrow(&[(&["c", "d"], Arc::new(numbers))], false)).unwrap();
    let found = arrow_cast::cast(&column_of(&paths, "o.arrow"), &DataType::Int64).unwrap();
    let wanted: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(8), None]));
    assert_eq!(&found, &wanted);
}

/// A batch of an output has the bytes of its own views.
#[test]
fn views_go_to_an_arrow_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    let keys: Vec<String> = (0..40_000).map(|at| at.to_string()).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let texts = keys.iter().enumerate().map(|(at, key)| (at % 7 > 0).then(|| format!("{key:050}")));
    let views: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
    let field = Arc::new(Field::new("item", DataType::Utf8View, true));
    let lengths = StringArray::from(vec!["x"; keys.len()]);
    let lists: ArrayRef =
        Arc::new(ListArray::new(field.clone(), lengths.offsets().clone(), views.clone(), None));
    let pair: ArrayRef = Arc::new(FixedSizeListArray::new(field, 1, views.clone(), None));
    let entries: Vec<(Arc<Field>, ArrayRef)> = vec![
        (
            Arc::new(Field::new("key", DataType::Utf8, false)),
            Arc::new(StringArray::from(vec!["y"; keys.len()])),
        ),
        (Arc::new(Field::new("value", DataType::Utf8View, true)), views.clone()),
    ];
    let entries = StructArray::from(entries);
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let map: ArrayRef = Arc::new(MapArray::new(entry, lengths.offsets().clone(), entries, None, false));
    let columns = vec![("v", views.clone()), ("l", lists), ("p", pair), ("m", map)];
    let record: ArrayRef = Arc::new(StructArray::try_from(columns).unwrap());
    for column in [views, record] {
        let content = arrow(&[(&keys, column.clone())], false);
        fs::write(&path, &content).unwrap();
        let (source, found) = open(std::slice::from_ref(&path), "k").unwrap();
        let out = written(&source, &found, "o.arrow");
        assert!(out.len() < content.len() + content.len() / 8, "{} of {}", out.len(), content.len());
        assert_eq!(&column_of(std::slice::from_ref(&path), "o.arrow"), &column);
        // Some of the rows.
        let some: Vec<u32> = (0..keys.len() as u32).filter(|row| row % 10 == 0).collect();
        let mut few = Vec::new();
        source.write_matches(&found, &some, Path::new("o.arrow"), &mut few).unwrap();
        assert!(few.len() < content.len() / 5, "{} of {}", few.len(), content.len());
    }
}

/// The row groups of a file, and the batches of a stream, may each have words of their own under a narrow key.
#[test]
fn words_of_several_parts_of_a_file_have_a_key_that_is_wide_enough() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<String> = (0..200).map(|at| format!("w{at}")).collect();
    let words: Vec<&str> = texts.iter().map(String::as_str).collect();
    let part = |words: &[&str]| -> ArrayRef {
        Arc::new(words.iter().copied().collect::<DictionaryArray<Int8Type>>())
    };
    let halves = [&words[..100], &words[100..]].map(|words| (words, part(words)));
    let stream = folder.path().join("stream");
    fs::write(&stream, arrow(&halves, true)).unwrap();
    let groups = folder.path().join("groups.parquet");
    let mut out = Vec::new();
    let batches = halves.map(|(keys, column)| {
        let keys: ArrayRef = Arc::new(StringArray::from(keys.to_vec()));
        RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("d", column, true)]).unwrap()
    });
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut out, batches[0].schema(), None).unwrap();
    for batch in &batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    fs::write(&groups, out).unwrap();
    let wanted: ArrayRef = Arc::new(StringArray::from(words.clone()));
    for path in [stream, groups] {
        // As a key, and as another column.
        let (_, keys) = open(std::slice::from_ref(&path), "d").unwrap();
        assert_eq!(keys.elements().len(), 200, "{path:?}");
        for target in ["o.arrow", "o.parquet"] {
            let found = column_of(std::slice::from_ref(&path), target);
            assert_eq!(&arrow_cast::cast(&found, &DataType::Utf8).unwrap(), &wanted, "{path:?} {target}");
        }
        let (source, keys) = open(std::slice::from_ref(&path), "k").unwrap();
        assert!(written(&source, &keys, "o.csv").starts_with(b"k,d\nw0,w0\n"));
    }
}
