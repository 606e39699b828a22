//! Tables as databases export them, written here byte for byte as they do.

use std::path::Path;
use tacit_data::csv::{Delimiter, Error, Header, Misquoted, Options, Quote, Source};
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::Source as Table;

/// The cells of all rows, and the lines where they start.
fn rows(content: &[u8], options: Options) -> Result<Vec<(u64, Vec<String>)>, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    std::fs::write(&path, content).unwrap();
    let table = Source::open_table(&path, options)?;
    let all: Vec<usize> = (0..table.columns().count()).collect();
    let mut rows = Vec::new();
    table.read_columns(&all, |line, cells| {
        rows.push((line, cells.iter().map(|cell| (*cell).to_owned()).collect()));
        Ok::<_, Error>(())
    })?;
    Ok(rows)
}

fn texts(found: Vec<(u64, Vec<String>)>) -> Vec<Vec<String>> {
    found.into_iter().map(|(_, row)| row).collect()
}

/// `SELECT … INTO OUTFILE` and `mysqldump --tab`, with nothing said besides.
const MYSQL: Options = Options {
    delimiter: Delimiter::Byte(b'\t'),
    quote: Quote::None,
    escape: Some(b'\\'),
    header: Header::None,
    ..DEFAULT
};

const DEFAULT: Options = Options {
    delimiter: Delimiter::Auto,
    quote: Quote::Double,
    escape: None,
    header: Header::Names,
    empty_keys: tacit_data::csv::EmptyKeys::Skip,
    max_row: tacit_data::csv::MaxRow::USUAL,
    encoding: None,
    skip_lines: 0,
    decimal_comma: false,
    binary_as_text: false,
    error_cells: tacit_data::csv::ErrorCells::Refuse,
};

#[test]
fn mysql_writes_tabs_and_escapes() {
    // Cells: 1 | a tab, a line end and a backslash in a text | NULL; an empty text; the text `\N`; a NUL.
    let content = b"1\tann@example.com\ttab:\\\there\\\nline\\\\\t\\N\n\
                    2\tbob@example.com\t\t3.50\n\
                    3\t\\\\N\tnul:\\0.\t\\N\n\
                    4\tMe \"and\" you\ta\\Nb\t\xc3\xa9\n\
                    5\t\\N\t\\N\t\\N\n";
    let found = rows(content, MYSQL).unwrap();
    assert_eq!(found.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    let expected: [[&str; 4]; 5] = [
        ["1", "ann@example.com", "tab:\there\nline\\", ""],
        ["2", "bob@example.com", "", "3.50"],
        ["3", "\\N", "nul:\0.", ""],
        ["4", "Me \"and\" you", "aNb", "é"],
        ["5", "", "", ""],
    ];
    assert_eq!(texts(found), expected);
    // As the client's --batch writes them, on a system that ends lines with CR and LF.
    let found = rows(b"1\ta\\tb\\nc\\\\d\\r\r\n2\t\\N\r\n", MYSQL).unwrap();
    assert_eq!(texts(found), [["1", "a\tb\nc\\d\r"], ["2", ""]]);
    // A CR within a line is part of a cell.
    assert_eq!(texts(rows(b"1\ta\rb\n2\tc\n", MYSQL).unwrap()), [["1", "a\rb"], ["2", "c"]]);
}

/// `FIELDS TERMINATED BY ',' ENCLOSED BY '"' ESCAPED BY '\\'`: a null is not enclosed.
#[test]
fn mysql_writes_quotes_if_it_is_told_to() {
    let options = Options { escape: Some(b'\\'), header: Header::None, ..DEFAULT };
    let content = b"\"1\",\"Lee, \\\"Ann\\\"\",\"a\\\\b\"\n\"2\",\\N,\"x\\\ny\"\n";
    let found = rows(content, Options { delimiter: Delimiter::Byte(b','), ..options }).unwrap();
    assert_eq!(texts(found), [["1", "Lee, \"Ann\"", "a\\b"], ["2", "\\N", "x\ny"]]);
}

/// `COPY INTO @stage` with nothing said besides, and with `FIELD_OPTIONALLY_ENCLOSED_BY = '"' HEADER = TRUE`.
#[test]
fn snowflake_writes_escapes_or_quotes() {
    let options = Options {
        delimiter: Delimiter::Byte(b','),
        quote: Quote::None,
        escape: Some(b'\\'),
        header: Header::None,
        ..DEFAULT
    };
    let content = b"1,Lee\\, Ann,a\\\\b,\\N\n2,say \"hi\",x\\\ny,\n";
    let found = rows(content, options).unwrap();
    assert_eq!(texts(found), [["1", "Lee, Ann", "a\\b", ""], ["2", "say \"hi\"", "x\ny", ""]]);
    let content = b"\"ID\",\"NAME\",\"NOTE\"\n1,\"Lee, \"\"Ann\"\"\",\"a\\b\"\n2,\\N,\"\"\n";
    assert_eq!(texts(rows(content, DEFAULT).unwrap()), [["1", "Lee, \"Ann\"", "a\\b"], ["2", "\\N", ""]]);
}

#[test]
fn a_null_is_no_key_and_rows_go_out_as_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.txt");
    let lines = ["ann\tx\\\ty\n", "\\N\tz\n", "\\\\N\tw\n", "b\\\nob\tv\\\\\n"];
    std::fs::write(&path, lines.concat()).unwrap();
    let spec = KeySpec::text(vec!["1".to_owned()], Normalisation::default());
    let table = Table::open(&path, spec, MYSQL).unwrap();
    let keys = table.read_keys(|_| ()).unwrap();
    assert_eq!((keys.rows(), keys.rows_without_key()), (4, 1));
    let mut hasher = KeyHasher::new(Normalisation::default());
    let expected: Vec<_> =
        ["ann", "\\N", "b\nob"].into_iter().map(|key| hasher.hash([key]).unwrap()).collect();
    assert_eq!(keys.elements(), expected);
    let out = |keys: &KeySet, matches: &[u32], target: &str| {
        let mut out = Vec::new();
        table.write_matches(keys, matches, Path::new(target), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(out(&keys, &[0, 2], "out.txt"), [lines[0], lines[3]].concat());
    // Cells that go behind are escaped, and read again as they were.
    let table = Source::open_table(&path, MYSQL).unwrap();
    let contents = table.read_columns(&[0], |_, _| Ok::<_, Error>(())).unwrap();
    let mut made = Vec::new();
    let cell = "a\tb\nc\\d\re";
    table.write_extended(&contents, &["m"], |_| vec![cell.to_owned()], Path::new("o"), &mut made).unwrap();
    let again = texts(rows(&made, MYSQL).unwrap());
    assert_eq!(again[0], ["ann", "x\ty", cell]);
    assert!(again.iter().all(|row| row.len() == 3 && row[2] == cell));
}

/// With an escape every cell of the peer's finds room, and is read again as it was; without one, or where a letter
/// separates that a backslash gives another meaning, none is taken in.
#[test]
fn what_a_peer_gives_is_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = ["\\", "\\N", "a\tb", "x\n", "\r\n", "\r", "n\\", ",\"'", "\0\u{1a}\u{8}", "", "é\\é"];
    let open = |options: Options| {
        let between = if let Delimiter::Byte(byte) = options.delimiter { char::from(byte) } else { ',' };
        let path = folder.path().join("t.txt");
        std::fs::write(&path, format!("a{between}x\nb{between}y\\\r\n")).unwrap();
        let spec = KeySpec::text(vec!["1".to_owned()], Normalisation::default());
        let table = Table::open(&path, spec, options).unwrap();
        let keys = table.read_keys(|_| ()).unwrap();
        (table, keys)
    };
    let names = ["p".to_owned(), "q".to_owned()];
    for escape in [b'\\', b'^'] {
        let options = Options { escape: Some(escape), ..MYSQL };
        let (table, keys) = open(options);
        table.holds_behind(Path::new("o.txt"), &names).unwrap();
        let given: Vec<Vec<Option<String>>> =
            hostile.iter().map(|cell| vec![Some((*cell).to_owned()), Some(format!("{cell}z"))]).collect();
        let mut made = Vec::new();
        let rows_of = |_| &given[..];
        let written = table.write_joined(&keys, &names, "peer_", rows_of, Path::new("o.txt"), &mut made);
        assert_eq!(written.unwrap().emptied, 0);
        let again = texts(rows(&made, options).unwrap());
        assert_eq!(again.len(), 2 * hostile.len());
        for (row, cell) in again.iter().zip(hostile.iter().cycle()) {
            assert_eq!(row[2..], [(*cell).to_owned(), format!("{cell}z")]);
        }
    }
    for options in [
        Options { escape: None, ..MYSQL },
        Options { delimiter: Delimiter::Byte(b'n'), ..MYSQL },
        Options { delimiter: Delimiter::Byte(b'N'), ..MYSQL },
    ] {
        let (table, _) = open(options);
        let error = table.holds_behind(Path::new("o.txt"), &names).unwrap_err().to_string();
        assert!(error.contains("cannot contain every cell of the peer's"), "{error}");
        table.holds_behind(Path::new("o.parquet"), &names).unwrap();
    }
}

/// Wherever what is read at once ends.
#[test]
fn escapes_are_read_across_pieces() {
    for before in (1 << 17) - 6..=1 << 17 {
        let content = format!("{}\ta\\\tb\\\nc\t\\N\r\nx\ty\tz\n", "p".repeat(before - 2));
        let found = texts(rows(content.as_bytes(), MYSQL).unwrap());
        assert_eq!((found[0][1].as_str(), found[0][2].as_str()), ("a\tb\nc", ""), "{before}");
        assert_eq!(found[1], ["x", "y", "z"], "{before}");
    }
    let error = rows(b"a\tb\nc\td\\", MYSQL).err().unwrap();
    assert!(matches!(error, Error::Misquoted { line: 2, field: 2, what: Misquoted::Escape, .. }), "{error}");
    assert!(matches!(rows(b"a\tb\nc\\\td\n", MYSQL).err().unwrap(), Error::UnequalRow { line: 2, .. }));
}

/// An escaped line end is part of the last cell, and not of what ends its row: what goes behind does not end up in it.
#[test]
fn an_escaped_end_of_line_stays_in_its_cell() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { delimiter: Delimiter::Byte(b','), header: Header::Names, ..MYSQL };
    for (content, last, end) in [
        ("k,v\na,x\\\r\nb,y\n", "x\r", "\n"),
        ("k,v\r\na,x\\\r\r\nb,y\r\n", "x\r", "\r\n"),
        ("k,v\na,x\\\r", "x\r", "\n"),
        ("k,v\na,x\\\n", "x\n", "\n"),
    ] {
        let path = folder.path().join("t.csv");
        std::fs::write(&path, content).unwrap();
        let spec = KeySpec::text(vec!["k".to_owned()], Normalisation::default());
        let table = Table::open(&path, spec, options).unwrap();
        let keys = table.read_keys(|_| ()).unwrap();
        let mut out = Vec::new();
        table.write_marked(&keys, &[0], Path::new("all.csv"), &mut out).unwrap();
        let again = texts(rows(&out, Options { header: Header::None, ..options }).unwrap());
        assert_eq!(again[1], ["a", last, "true"], "{content:?}");
        let mut out = Vec::new();
        table.write_rest(&keys, &[], Path::new("rest.csv"), &mut out).unwrap();
        let whole = if content.contains("b,y") { content.to_owned() } else { format!("{content}{end}") };
        assert_eq!(String::from_utf8(out).unwrap(), whole, "{content:?}");
    }
    // Of the first row too: the file's line end is not the one that is escaped there.
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "a\\\rb|1\nk2|c").unwrap();
    let spec = KeySpec::text(vec!["1".to_owned()], Normalisation::default());
    let bars = Options { delimiter: Delimiter::Auto, header: Header::None, ..MYSQL };
    let table = Table::open(&path, spec, bars).unwrap();
    let keys = table.read_keys(|_| ()).unwrap();
    let mut out = Vec::new();
    table.write_matches(&keys, &[0, 1], Path::new("o.csv"), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "a\\\rb|1\nk2|c\n");
}
