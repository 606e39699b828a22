//! Tables to compute on, of every format and type: what is read, what is refused and how it is named, and the
//! columns of results behind a table's own.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int64Array, LargeStringArray, ListArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt8Array,
    UInt64Array,
};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacit_data::csv::{Error, Options};
use tacit_data::values::{Column, Kind, Table, Value};

fn array(values: impl Array + 'static) -> ArrayRef {
    Arc::new(values)
}

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let columns = columns.into_iter().map(|(name, values)| (name, values, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn rows_of(path: &Path) -> Vec<RecordBatch> {
    if path.extension().is_some_and(|end| end == "parquet") {
        let builder = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
        builder.build().unwrap().map(Result::unwrap).collect()
    } else {
        let file = fs::File::open(path).unwrap();
        arrow_ipc::reader::FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect()
    }
}

/// The values of these columns, row after row, or the error's words.
fn read(path: &Path, columns: &[&str]) -> Result<Vec<Vec<String>>, String> {
    let go = || -> Result<_, Error> {
        let table = Table::open(path, Options::default())?;
        let columns: Vec<Column> = columns.iter().map(|text| Column::parse(text)).collect();
        let wanted = table.find(&columns)?;
        let mut rows = Vec::new();
        table.read(&wanted, |_, cells| {
            rows.push(cells.iter().map(|cell| cell.to_string()).collect());
            Ok::<_, Error>(())
        })?;
        Ok(rows)
    };
    go().map_err(|error| error.to_string())
}

#[test]
fn cells_of_every_type_become_the_text_of_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let decimals = Decimal128Array::from(vec![1250, -200]).with_precision_and_scale(9, 2).unwrap();
    let midnights = TimestampMicrosecondArray::from(vec![0, -86_400_000_000]);
    let lists =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(-2)]), Some([None, None])]);
    let good =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(-2)]), Some(vec![])]);
    parquet(
        &path,
        vec![
            ("int", array(Int64Array::from(vec![i64::MIN, 7]))),
            ("big", array(UInt64Array::from(vec![u64::MAX, 0]))),
            ("yes", array(BooleanArray::from(vec![true, false]))),
            ("float", array(Float64Array::from(vec![-3.0, -0.0]))),
            ("half", array(Float64Array::from(vec![0.5, 1.25]))),
            ("cents", array(decimals)),
            ("day", array(Date32Array::from(vec![19_782, -1]))),
            ("moment", array(midnights)),
            ("list", array(good)),
            ("holes", array(lists)),
            ("word", array(["a", "b"].into_iter().collect::<DictionaryArray<Int32Type>>())),
            ("gap", array(Int64Array::from(vec![Some(1), None]))),
            ("bytes", array(BinaryArray::from(vec![&b"x"[..], b"y"]))),
        ],
    );
    let of = |column: &str| {
        let rows = read(&path, &[column]).unwrap();
        rows.into_iter().map(|mut row| row.remove(0)).collect::<Vec<_>>()
    };
    assert_eq!(of("int"), ["-9223372036854775808", "7"]);
    assert_eq!(of("big"), ["18446744073709551615", "0"]);
    assert_eq!(of("yes"), ["true", "false"]);
    assert_eq!(of("float"), ["-3", "0"]);
    assert_eq!(of("half:decimal2"), ["50", "125"]);
    assert_eq!(of("cents:decimal2"), ["1250", "-200"]);
    assert_eq!(of("cents:decimal3"), ["12500", "-2000"]);
    assert_eq!(of("day"), ["19782", "-1"]);
    assert_eq!(of("day:date"), of("day"));
    assert_eq!(of("moment:date"), ["0", "-1"]);
    assert_eq!(of("list"), ["[1, -2]", "[]"]);
    assert_eq!(of("word"), ["a", "b"]);
    assert_eq!(read(&path, &["yes", "int", "yes"]).unwrap()[1], ["false", "7", "false"]);
    for (column, words) in [
        ("half", &["row 1", "`half`", "a whole number"][..]),
        ("half:decimal1", &["row 2", "`half`", "at most 1 digit after"]),
        ("moment", &["`moment`", "Timestamp", "COL:date"]),
        ("day:decimal2", &["`day`", "Date32", ":decimal"]),
        ("holes", &["row 2", "`holes`", "no value"]),
        ("gap", &["row 2", "`gap`", "no value"]),
        ("bytes", &["`bytes`", "Binary"]),
        ("none", &["`none`", "13 columns"]),
    ] {
        let said = read(&path, &[column]).unwrap_err();
        assert!(
            words.iter().all(|word| said.contains(word)) && said.contains("t.parquet"),
            "{column}: {said}"
        );
        assert!(!said.contains("0.5") && !said.contains("1.25"), "a cell shows: {said}");
    }
}

#[test]
fn the_text_of_a_csv_file_is_read_as_its_columns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, "day;price;n\n2024-02-29;12.50;1\n1969-12-31 00:00:00;-0.5;x\n").unwrap();
    let rows = read(&path, &["day:date", "price:decimal2", "n"]).unwrap();
    assert_eq!(rows, [["19782", "1250", "1"], ["-1", "-50", "x"]]);
    let said = read(&path, &["day:date", "price:decimal1"]).unwrap();
    assert_eq!(said[0][1], "125");
    fs::write(&path, "day,price\n2024-02-29,1\n2023-02-29,1.234\n").unwrap();
    for (column, words) in [
        ("day:date", ["line 3", "`day`", "day that exists"]),
        ("price:decimal2", ["line 3", "`price`", "at most 2 digits"]),
    ] {
        let said = read(&path, &[column]).unwrap_err();
        assert!(words.iter().all(|word| said.contains(word)) && !said.contains("1.234"), "{said}");
    }
}

/// Rows with their number, doubled, behind them, whether it is odd, and a word or nothing.
fn extend(input: &Path, target: &Path, text: bool) -> Result<(), Error> {
    let table = Table::open(input, Options::default())?;
    let wanted = table.find(&[Column::parse("n")])?;
    let read = table.read(&wanted, |_, _| Ok::<_, Error>(()))?;
    assert_eq!(table.is_text(target)?, text);
    let kinds = [
        Kind::Integer { bits: 8, signed: false },
        Kind::Bool,
        Kind::Text,
        Kind::Integer { bits: 33, signed: true },
    ];
    let names = ["n", "odd", "word", "less"];
    let more: Vec<(String, Kind)> = names.iter().zip(kinds).map(|(n, k)| (n.to_string(), k)).collect();
    let cells = |row: u64| {
        let word = if row == 1 { Value::Null } else { Value::Text(format!("w, {row}")) };
        vec![
            Value::Integer(2 * i128::from(row)),
            Value::Bool(row % 2 == 1),
            word,
            Value::Integer(-i128::from(row)),
        ]
    };
    let mut out = Vec::new();
    table.write_extended(&read, &more, cells, target, &mut out)?;
    fs::write(target, out).unwrap();
    Ok(())
}

fn typed(path: &Path) {
    let rows = rows_of(path);
    let (schema, batch) = (rows[0].schema(), &rows[0]);
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["n", "name", "n_2", "odd", "word", "less"]);
    let kinds: Vec<&DataType> = schema.fields()[2..].iter().map(|field| field.data_type()).collect();
    assert_eq!(kinds, [&DataType::UInt8, &DataType::Boolean, &DataType::Utf8, &DataType::Int64]);
    let column = |at: usize| batch.column(at).clone();
    let doubled = column(2).as_any().downcast_ref::<UInt8Array>().unwrap().clone();
    assert_eq!(doubled.values().to_vec(), [0, 2, 4]);
    let odd = column(3).as_any().downcast_ref::<BooleanArray>().unwrap().clone();
    assert_eq!(odd.iter().map(Option::unwrap).collect::<Vec<_>>(), [false, true, false]);
    let words = column(4).as_any().downcast_ref::<StringArray>().unwrap().clone();
    assert_eq!(words.iter().collect::<Vec<_>>(), [Some("w, 0"), None, Some("w, 2")]);
    let less = column(5).as_any().downcast_ref::<Int64Array>().unwrap().clone();
    assert_eq!(less.values().to_vec(), [0, -1, -2]);
}

#[test]
fn results_stand_behind_a_tables_own_columns_with_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| -> PathBuf { folder.path().join(name) };
    fs::write(place("t.csv"), "n,name\n1,Ann\n2,\"B, \"\n3,\n").unwrap();
    let names = StringArray::from(vec![Some("Ann"), Some("B, "), None]);
    parquet(
        &place("t.parquet"),
        vec![("n", array(Int64Array::from(vec![1, 2, 3]))), ("name", array(names.clone()))],
    );
    for input in ["t.csv", "t.parquet"] {
        for target in ["out.parquet", "out.arrow"] {
            extend(&place(input), &place(target), false).unwrap();
            typed(&place(target));
            let own = rows_of(&place(target))[0].column(1).clone();
            match own.as_any().downcast_ref::<LargeStringArray>() {
                Some(text) => assert_eq!(text.iter().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>()),
                None => assert_eq!(own.as_any().downcast_ref::<StringArray>(), Some(&names)),
            }
        }
    }
    extend(&place("t.csv"), &place("out.csv"), true).unwrap();
    let more =
        "n,name,n_2,odd,word,less\n1,Ann,0,false,\"w, 0\",0\n2,\"B, \",2,true,,-1\n3,,4,false,\"w, 2\",-2\n";
    assert_eq!(fs::read_to_string(place("out.csv")).unwrap(), more);
    extend(&place("t.parquet"), &place("again.csv"), true).unwrap();
    assert_eq!(fs::read_to_string(place("again.csv")).unwrap(), more);
    // What is packed comes out packed.
    extend(&place("t.parquet"), &place("again.csv.gz"), true).unwrap();
    assert!(fs::read(place("again.csv.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
}

#[test]
fn a_table_that_changed_is_refused_and_a_list_has_no_place_in_csv() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let write = |numbers: Vec<i64>| parquet(&path, vec![("n", array(Int64Array::from(numbers)))]);
    write(vec![1, 2]);
    let table = Table::open(&path, Options::default()).unwrap();
    let wanted = table.find(&[Column::parse("n")]).unwrap();
    let read = table.read(&wanted, |_, _| Ok::<_, Error>(())).unwrap();
    assert_eq!(read.rows(), 2);
    for numbers in [vec![1, 3], vec![1], vec![1, 2, 3]] {
        write(numbers);
        let result =
            table.write_extended(&read, &[], |_| Vec::new(), Path::new("o.parquet"), &mut Vec::new());
        assert!(matches!(result, Err(Error::Changed(_))), "{result:?}");
    }
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
    parquet(&path, vec![("n", array(Int64Array::from(vec![1]))), ("l", array(lists))]);
    let said = extend(&path, &folder.path().join("o.csv"), true).unwrap_err().to_string();
    assert!(said.contains("CSV cannot contain column 2"), "{said}");
}

/// A party without inputs: the rows of its table count, whatever they hold.
#[test]
fn of_no_columns_the_rows_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    parquet(&path, vec![("b", array(BinaryArray::from(vec![&b"x"[..], b"y", b"z"])))]);
    fs::write(folder.path().join("t.csv"), "b\nx\ny\nz\n").unwrap();
    for path in [path, folder.path().join("t.csv")] {
        let table = Table::open(&path, Options::default()).unwrap();
        let read = table.read(&[], |_, cells| {
            assert!(cells.is_empty());
            Ok::<_, Error>(())
        });
        assert_eq!(read.unwrap().rows(), 3);
    }
}
