//! Workbooks: what cells hold, which part is the table, and what is written.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type, TimestampMillisecondType};
use arrow_schema::{DataType, TimeUnit};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};
use std::path::{Path, PathBuf};
use tacit_data::columns::{self, FirstLine, Oddity};
use tacit_data::csv::{Error, ErrorCells, Options};
use tacit_data::records::{KeySet, KeySpec, Normalisation};
use tacit_data::table::Source;

fn spec(column: &str) -> KeySpec {
    KeySpec::text(vec![column.to_owned()], Normalisation::default())
}

fn open(path: &Path, column: &str, options: Options) -> Result<(Source, KeySet), Error> {
    let source = Source::open(path, spec(column), options)?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn text(path: &Path, column: &str) -> String {
    let (source, keys) = open(path, column, Options::default()).unwrap();
    let mut out = Vec::new();
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    source.write_matches(&keys, &all, Path::new("o.csv"), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn part(path: &Path, part: &str) -> PathBuf {
    PathBuf::from(format!("{}#{part}", path.display()))
}

/// Two sheets: one with a heading and a table at C3, and one of one kind a column.
fn book(folder: &Path, is_1904: bool) -> PathBuf {
    let path = folder.join(if is_1904 { "mac.xlsx" } else { "book" });
    let mut book = Workbook::new();
    let day = Format::new().set_num_format("yyyy-mm-dd");
    let moment = Format::new().set_num_format("yyyy-mm-dd hh:mm:ss");
    let date = |year, month, day| ExcelDateTime::from_ymd(year, month, day).unwrap();
    let sheet = book.add_worksheet().set_name("My Data").unwrap();
    sheet.write(0, 0, "Customers, as of today").unwrap();
    for (at, name) in ["id", "since", "seen", "mixed", "plain", "flag"].into_iter().enumerate() {
        sheet.write(2, at as u16 + 2, name).unwrap();
    }
    for row in 0..3u32 {
        let to = if row < 2 { row + 3 } else { 6 }; // The fourth row is empty.
        sheet.write(to, 2, 12_345.0 + f64::from(row)).unwrap();
        sheet.write_with_format(to, 3, date(2024, 2, 29), &day).unwrap();
        if row != 1 {
            let at = date(1999, 12, 31).and_hms(12, 30, 15.5).unwrap();
            sheet.write_with_format(to, 4, &at, &moment).unwrap();
        }
        match row {
            0 => sheet.write(to, 5, "00123").unwrap(),
            1 => sheet.write(to, 5, 1.5).unwrap(),
            _ => sheet.write_with_format(to, 5, date(2024, 1, 31), &day).unwrap(),
        };
        sheet.write(to, 6, "a,b").unwrap();
        sheet.write(to, 7, row == 0).unwrap();
    }
    book.add_worksheet().set_name("empty").unwrap();
    book.save(&path).unwrap();
    path
}

#[test]
fn a_cell_is_what_it_holds_and_a_column_has_the_type_of_its_cells() {
    let folder = tempfile::tempdir().unwrap();
    let path = book(folder.path(), false);
    let expected = "id,since,seen,mixed,plain,flag\n\
        12345,2024-02-29,1999-12-31T12:30:15.500,00123,\"a,b\",true\n\
        12346,2024-02-29,,1.5,\"a,b\",false\n\
        12347,2024-02-29,1999-12-31T12:30:15.500,2024-01-31,\"a,b\",false\n";
    for name in ["My Data!C3:H7", "'My Data'!$C$3:$H$99", "C3:H7"] {
        assert_eq!(text(&part(&path, name), "id"), expected, "{name}");
    }
    // Without a range the heading is the first row, which names no other column: it is told from a table without one.
    let error = open(&path, "id", Options::default()).err().unwrap().to_string();
    for words in ["the header, which is in row 3", "leave out the first 2 rows", "book#My Data!C3:H7"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    let skipping = |lines| Options { skip_lines: lines, ..Options::default() };
    let whole = |path: &Path, lines| {
        let (source, keys) = open(path, "id", skipping(lines))?;
        let mut out = Vec::new();
        let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
        source.write_matches(&keys, &all, Path::new("o.csv"), &mut out)?;
        Ok::<_, Error>(String::from_utf8(out).unwrap())
    };
    assert_eq!(whole(&path, 2).unwrap(), expected);
    // Rows are those of the part that is named, empty ones among them.
    assert_eq!(whole(&part(&path, "C2:H7"), 1).unwrap(), expected);
    assert!(matches!(whole(&path, 1), Ok(text) if text == expected), "row 2 is empty");
    assert!(whole(&path, 99).is_err_and(|error| matches!(error, Error::Empty(_))));
    assert!(whole(&path, u64::MAX).is_err());
    // A look at the columns skips the title and says so.
    let look = |first| columns::look(std::slice::from_ref(&path), Options::default(), first);
    let found = look(FirstLine::Judged).unwrap();
    assert_eq!((found.columns.len(), found.rows, found.options.skip_lines), (6, 3, 2));
    assert_eq!(found.oddities, [Oddity::Title(2)]);
    assert!(matches!(look(FirstLine::Header), Err(Error::Title { row: 3, skipped: 2, .. })));
    let (source, keys) = open(&part(&path, "C3:H7"), "mixed", Options::default()).unwrap();
    assert_eq!(keys.elements().len(), 3);
    let (schema, batches) = source.read_whole().unwrap();
    let kinds: Vec<&DataType> = schema.fields().iter().map(|field| field.data_type()).collect();
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    let text = DataType::LargeUtf8;
    assert_eq!(kinds, [&DataType::Int64, &DataType::Date32, &millis, &text, &text, &DataType::Boolean]);
    assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(2), 12_347);
    assert_eq!(batches[0].column(1).as_primitive::<Date32Type>().value(0), 19_782);
    assert_eq!(batches[0].column(2).as_primitive::<TimestampMillisecondType>().value(0), 946_643_415_500);
    // A digest is of the file, whatever part of it is read.
    let file = std::fs::read(&path).unwrap();
    assert_eq!(source.digest().unwrap(), *blake3::hash(&file).as_bytes());
}

#[test]
fn what_is_no_part_of_a_workbook_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = book(folder.path(), false);
    let plain = folder.path().join("t.csv");
    std::fs::write(&plain, "id\n1\n").unwrap();
    let said = |path: PathBuf| open(&path, "id", Options::default()).err().unwrap().to_string();
    for (name, words) in [
        (part(&path, "Other"), "it has no sheet of that name; it has `My Data`, `empty`"),
        (part(&path, "My Data!C3:"), "write a range of cells as in Sheet1!A1:D9"),
        (part(&path, "empty"), "is empty"),
        (part(&plain, "Sheet1"), "the file is not a workbook"),
    ] {
        let error = said(name);
        assert!(error.contains(words) && error.lines().count() == 1, "{error}");
    }
    // Two sheets with cells, neither of which is named.
    let several = folder.path().join("several.xlsx");
    let mut book = Workbook::new();
    for _ in 0..2 {
        book.add_worksheet().write(0, 0, "id").unwrap();
    }
    book.save(&several).unwrap();
    assert!(said(several.clone()).contains("several sheets have cells: `Sheet1`, `Sheet2`; name one"));
    assert_eq!(text(&part(&several, "Sheet2"), "id"), "id\n");
    // Damaged at every place: an error and no panic.
    let whole = std::fs::read(&path).unwrap();
    let torn = folder.path().join("torn.xlsx");
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&torn, &bytes).unwrap();
        let _ = open(&part(&torn, "C3:H7"), "id", Options::default());
        std::fs::write(&torn, &whole[..at]).unwrap();
        assert!(open(&torn, "id", Options::default()).is_err());
    }
}

#[test]
fn cells_that_hold_errors_are_refused_or_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.xlsx");
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write(0, 0, "k").unwrap();
    sheet.write(0, 1, "n").unwrap();
    for (row, key) in ["a", "b"].into_iter().enumerate() {
        sheet.write(row as u32 + 1, 0, key).unwrap();
    }
    sheet.write(1, 1, 7).unwrap();
    sheet.write(2, 1, Formula::new("=NA()").set_result("#N/A")).unwrap();
    book.save(&path).unwrap();
    let error = open(&path, "k", Options::default()).err().unwrap().to_string();
    assert!(error.contains("e.xlsx, cell B3: the cell has an error"), "{error}");
    let options = Options { error_cells: ErrorCells::Null, ..Options::default() };
    let (source, keys) = open(&path, "k", options).unwrap();
    assert_eq!((source.error_cells(), keys.rows()), (1, 2));
    let mut out = Vec::new();
    source.write_matches(&keys, &[0, 1], Path::new("o.csv"), &mut out).unwrap();
    assert_eq!(out, b"k,n\na,7\nb,\n");
}

/// What goes to a workbook comes back as it was, and what it would show otherwise goes as text.
#[test]
fn a_workbook_that_is_written_holds_every_cell() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("t.csv");
    let content = "k,v\n007,=1+1\n-1,\"a\"\"b\nc\"\n9007199254740993,\n";
    std::fs::write(&csv, content).unwrap();
    let (source, keys) = open(&csv, "k", Options::default()).unwrap();
    let target = folder.path().join("o.xlsx");
    source.admits(&target).unwrap();
    source.prove(&target).unwrap();
    let mut out = Vec::new();
    source.write_matches(&keys, &[0, 1, 2], &target, &mut out).unwrap();
    std::fs::write(&target, &out).unwrap();
    assert_eq!(text(&target, "k"), content);
    // Types, through a workbook and back; what a sheet cannot count is text, and the same.
    let typed = part(&book(folder.path(), false), "C3:H7");
    let (source, keys) = open(&typed, "id", Options::default()).unwrap();
    let mut out = Vec::new();
    source.write_matches(&keys, &[0, 1, 2], &target, &mut out).unwrap();
    std::fs::write(&target, &out).unwrap();
    assert_eq!(text(&target, "id"), text(&typed, "id"));
    let (again, _) = open(&target, "id", Options::default()).unwrap();
    assert_eq!(again.read_whole().unwrap().0.fields(), source.read_whole().unwrap().0.fields());
    // All rows with a mark.
    let mut out = Vec::new();
    source.write_marked(&keys, &[1], &target, &mut out).unwrap();
    std::fs::write(&target, &out).unwrap();
    assert!(text(&target, "id").contains("12346,2024-02-29,,1.5,\"a,b\",false,true\n"));
}

#[test]
fn what_a_sheet_has_no_room_for_is_found_before() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long.csv");
    std::fs::write(&long, format!("k,v\na,{}\nb,{}\n", "x".repeat(32_767), "é".repeat(32_768))).unwrap();
    let (source, _) = open(&long, "k", Options::default()).unwrap();
    let error = source.prove(Path::new("o.xlsx")).err().unwrap().to_string();
    assert!(error.contains("long.csv, line 3: column 2: a text of at most 32,767"), "{error}");
    assert!(source.prove(Path::new("o.parquet")).is_ok());
    let rows = folder.path().join("rows.csv");
    std::fs::write(&rows, format!("k\n{}", "a\n".repeat(1_048_576))).unwrap();
    let (source, keys) = open(&rows, "k", Options::default()).unwrap();
    let error = source.prove(Path::new("o.xlsx")).err().unwrap().to_string();
    assert!(error.contains("more than 1,048,575 rows"), "{error}");
    // The same of a table of columns.
    let mut out = Vec::new();
    source.write_matches(&keys, &[0], Path::new("o.parquet"), &mut out).unwrap();
    let columns = folder.path().join("rows.parquet");
    std::fs::write(&columns, out).unwrap();
    let (source, _) = open(&columns, "k", Options::default()).unwrap();
    let error = source.prove(Path::new("o.xlsx")).err().unwrap().to_string();
    assert!(error.contains("more than 1,048,575 rows"), "{error}");
    // A cell of the other side's that is too long is left empty, and counted.
    let short = folder.path().join("short.csv");
    std::fs::write(&short, "k\na\n").unwrap();
    let (source, keys) = open(&short, "k", Options::default()).unwrap();
    let cells = [vec![Some("y".repeat(32_768)), Some("z".to_owned())]];
    let mut out = Vec::new();
    let names = ["p".to_owned(), "q".to_owned()];
    let target = folder.path().join("o.xlsx");
    let done = source.write_joined(&keys, &names, "peer_", |_| &cells, &target, &mut out).unwrap();
    assert_eq!((done.rows, done.emptied), (1, 1));
    std::fs::write(&target, out).unwrap();
    assert_eq!(text(&target, "k"), "k,p,q\na,,z\n");
    for name in ["o.xls", "o.ods"] {
        assert!(source.admits(Path::new(name)).err().unwrap().to_string().contains("it writes .xlsx"));
    }
}

/// The least number of 64 bits is text, as all of more digits than a sheet counts.
#[test]
fn the_least_number_goes_to_a_workbook_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let content = format!("{{\"k\":{}}}\n{{\"k\":{}}}\n{{\"k\":-999999999999999}}\n", i64::MIN, i64::MAX);
    std::fs::write(&path, content).unwrap();
    let (source, keys) = open(&path, "k", Options::default()).unwrap();
    let target = folder.path().join("o.xlsx");
    source.prove(&target).unwrap();
    let mut out = Vec::new();
    source.write_matches(&keys, &[0, 1, 2], &target, &mut out).unwrap();
    std::fs::write(&target, &out).unwrap();
    assert_eq!(text(&target, "k"), format!("k\n{}\n{}\n-999999999999999\n", i64::MIN, i64::MAX));
}

/// A cell that names column 2,147,483,647: room for the columns before it would be 50 GB, and the process would end.
#[test]
fn a_cell_beyond_the_last_column_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.xlsx");
    std::fs::write(&path, include_bytes!("files/wide.xlsx")).unwrap();
    let error = open(&path, "k", Options::default()).err().unwrap().to_string();
    assert!(error.contains("save it again"), "{error}");
}

/// A workbook of a few rows with one part of it as `change` makes it.
fn with_part(folder: &Path, name: &str, change: impl Fn(String) -> String) -> PathBuf {
    let path = folder.join("made.xlsx");
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (row, cells) in [["k", "v"], ["a", "x"], ["b", "y"]].iter().enumerate() {
        sheet.write_row(row as u32, 0, *cells).unwrap();
    }
    let made = book.save_to_buffer().unwrap();
    let mut from = zip::ZipArchive::new(std::io::Cursor::new(made)).unwrap();
    let mut to = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for at in 0..from.len() {
        let mut part = from.by_index(at).unwrap();
        let (called, mut text) = (part.name().unwrap().into_owned(), String::new());
        std::io::Read::read_to_string(&mut part, &mut text).unwrap();
        to.start_file(&*called, zip::write::SimpleFileOptions::default()).unwrap();
        let text = if called == name { change(text) } else { text };
        std::io::Write::write_all(&mut to, text.as_bytes()).unwrap();
    }
    to.finish().unwrap();
    path
}

/// What a workbook unpacks to, and what that takes in memory, is looked at before its reader has it.
#[test]
fn a_workbook_that_takes_too_much_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let error = open(path, "k", Options::default()).err().unwrap();
        assert!(matches!(error, Error::Damaged { .. }) && error.to_string().lines().count() == 1, "{error}");
        error.to_string()
    };
    let shared = "xl/sharedStrings.xml";
    let whole = with_part(folder.path(), shared, |text| text);
    assert_eq!(text(&whole, "k"), "k,v\na,x\nb,y\n");
    let count = with_part(folder.path(), shared, |text| {
        text.replacen("uniqueCount=\"6\"", "uniqueCount=\"99999999999\"", 1)
    });
    assert!(refused(&count).contains("of memory"));
    let styles = with_part(folder.path(), "xl/styles.xml", |text| text + &" ".repeat(129 << 20));
    assert!(refused(&styles).contains("more than 128 MiB"));
    // A cell in CDATA would come out empty.
    let cdata = with_part(folder.path(), "xl/worksheets/sheet1.xml", |text| {
        text.replacen("<v>3</v>", "<v><![CDATA[3]]></v>", 1)
    });
    refused(&cdata);
    // One part under many names.
    let file = std::fs::File::options().read(true).write(true).open(&whole).unwrap();
    with_part(folder.path(), shared, |text| text);
    let mut archive = zip::ZipWriter::new_append(file).unwrap();
    archive.shallow_copy_file("xl/styles.xml", "xl/media/other.xml").unwrap();
    archive.finish().unwrap();
    refused(&whole);
}

/// A workbook in binary, whose sheet has these records between its first row, of the names `k` and `v`, and its end.
fn binary(folder: &Path, rows: &[u8]) -> PathBuf {
    let path = folder.join("made.xlsb");
    let sheet = [
        &record(0x81, &[])[..],
        &record(0x94, &[0; 16]),
        &record(0x91, &[]),
        &record(0, &[0; 25]),
        &record(6, &[&[0; 8][..], &wide("k")].concat()),
        &record(6, &[&[1, 0, 0, 0, 0, 0, 0, 0][..], &wide("v")].concat()),
        rows,
        &record(0x92, &[]),
        &record(0x82, &[]),
    ];
    let named = [&[0, 0, 0, 0, 1, 0, 0, 0][..], &wide("rId1"), &wide("S")].concat();
    let book = [
        record(0x83, &[]),
        record(0x99, &[0; 8]),
        record(0x8f, &[]),
        record(0x9c, &named),
        record(0x90, &[]),
        record(0x84, &[]),
    ];
    let start = "http://schemas.openxmlformats.org";
    let relations = format!(
        "<Relationships xmlns=\"{start}/package/2006/relationships\"><Relationship Id=\"rId1\" Type=\"{start}\
         /officeDocument/2006/relationships/worksheet\" Target=\"worksheets/sheet1.bin\"/></Relationships>"
    );
    let mut to = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    for (name, content) in [
        ("xl/workbook.bin", book.concat()),
        ("xl/_rels/workbook.bin.rels", relations.into_bytes()),
        ("xl/worksheets/sheet1.bin", sheet.concat()),
    ] {
        to.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut to, &content).unwrap();
    }
    to.finish().unwrap();
    path
}

fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let kind = if kind < 128 { vec![kind as u8] } else { vec![kind as u8 | 0x80, (kind >> 7) as u8] };
    [&kind[..], &[body.len() as u8], body].concat()
}

fn wide(text: &str) -> Vec<u8> {
    let bytes = text.encode_utf16().flat_map(u16::to_le_bytes);
    (text.len() as u32).to_le_bytes().into_iter().chain(bytes).collect()
}

/// The reader of workbooks in binary ends at a row that no sheet has, and takes some kinds of cells for empty.
#[test]
fn a_binary_workbook_is_read_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let row = |number: u32| record(0, &[&number.to_le_bytes()[..], &[0; 21]].concat());
    let cell =
        |column: u32, text: &str| record(6, &[&column.to_le_bytes()[..], &[0; 4], &wide(text)].concat());
    let whole = [row(1), cell(0, "a"), cell(1, "x"), row(1_048_575), cell(0, "b")].concat();
    assert_eq!(text(&binary(folder.path(), &whole), "k"), "k,v\na,x\nb,\n");
    let error = record(11, &[1, 0, 0, 0, 0, 0, 0, 0, 0x2a]);
    let rich = record(62, &[&[1, 0, 0, 0, 0, 0, 0, 0, 0][..], &wide("x"), &[0; 4]].concat());
    for rows in [
        [row(1), cell(0, "a"), row(1_048_576), cell(0, "b")],
        [row(1), cell(0, "a"), row(u32::MAX), cell(0, "b")],
        [row(1), cell(0, "a"), error, row(2)],
        [row(1), cell(0, "a"), rich, row(2)],
        [row(1), cell(0, "a"), record(6, &[1, 0, 0, 0, 0, 0, 0, 0]), row(2)],
    ] {
        let error = open(&binary(folder.path(), &rows.concat()), "k", Options::default()).err().unwrap();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("save it again"), "{error}");
    }
}

#[test]
fn a_sheet_and_its_workbook_are_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let book = folder.path().join("b.xlsx");
    std::fs::write(&book, b"PK").unwrap();
    for name in ["b.xlsx", "b.xlsx#S1", "b.xlsx#S1!A1:B2", "b*.xlsx"] {
        assert_eq!(
            tacit_data::table::files_of(&folder.path().join(name)),
            std::slice::from_ref(&book),
            "{name}"
        );
    }
    assert_eq!(tacit_data::table::files_of(folder.path()), [book]);
}
