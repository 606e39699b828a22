//! Tables in every format that is read, through the fence that the product has around other people's parsers.

use crate::{Target, first, place};
use std::io::Cursor;
use std::path::Path;
use tacit_data::csv::{Delimiter, EmptyKeys, Encoding, Error, ErrorCells, Header, MaxRow, Options, Quote};
use tacit_data::keys::Named;
use tacit_data::records::{KeySpec, Normalisation};
use tacit_data::table::Source;
use tacit_data::values::Table;

pub(crate) const TABLES_TARGETS: &[Target] = &[
    Target {
        name: "csv",
        run: csv,
        longest: 2048,
        words: &[b"email", b"\x0d\x0a", b"\"\"", b"\xef\xbb\xbf", b"\\N"],
    },
    Target {
        name: "json-lines",
        run: |bytes| read("t.jsonl", bytes, Options::default()),
        longest: 2048,
        words: &[b"{\"email\":", b"null", b"\\ud83d\\ude00", b"1e400"],
    },
    Target {
        name: "arrow",
        run: |bytes| read("t.arrow", bytes, Options::default()),
        longest: 1 << 14,
        words: &[b"ARROW1", b"\xff\xff\xff\xff"],
    },
    Target {
        name: "parquet",
        run: |bytes| read("t.parquet", bytes, Options::default()),
        longest: 1 << 13,
        words: &[b"PAR1"],
    },
    Target {
        name: "xlsx",
        run: |bytes| read("t.xlsx", bytes, Options::default()),
        longest: 1 << 14,
        words: &[b"PK\x03\x04", b"PK\x01\x02", b"<row r=", b"<c r="],
    },
    Target {
        name: "xlsb",
        run: |bytes| read("t.xlsb", bytes, Options::default()),
        longest: 1 << 14,
        words: &[b"PK\x03\x04", b"PK\x01\x02"],
    },
    Target { name: "xls", run: old_workbook, longest: 1 << 15, words: &[b"\xd0\xcf\x11\xe0"] },
    Target {
        name: "packed",
        run: packed,
        longest: 4096,
        words: &[b"\x1f\x8b", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"],
    },
    Target {
        name: "sheet",
        run: sheet,
        longest: 4096,
        words: &[b"<row r=\"", b"<c r=\"", b" t=\"s\"", b"<v>", b"</v>", b"<is><t>", b"#N/A", b"XFD1048576"],
    },
];

/// Options chosen by a byte: how fields are separated and quoted, and whether the first line names the columns.
fn options(byte: u8) -> Options {
    Options {
        delimiter: if byte & 1 == 0 { Delimiter::Auto } else { Delimiter::Byte(b';') },
        quote: match byte >> 1 & 3 {
            0 | 1 => Quote::Double,
            2 => Quote::Byte(b'\''),
            _ => Quote::None,
        },
        escape: (byte & 8 != 0).then_some(b'\\'),
        header: if byte & 16 == 0 { Header::Names } else { Header::None },
        encoding: if byte & 32 == 0 { None } else { Encoding::named("windows-1252") },
        skip_lines: u64::from(byte & 64 != 0),
        decimal_comma: byte & 1 != 0,
        empty_keys: if byte & 128 == 0 { EmptyKeys::Skip } else { EmptyKeys::Refuse },
        max_row: MaxRow::new(1 << 16),
        error_cells: ErrorCells::Null,
        ..Options::default()
    }
}

fn csv(bytes: &[u8]) {
    let (how, rest) = first(bytes);
    let options = options(how);
    // What this does not show to be an option is an error of use, not of the file.
    read("t.csv", rest, options);
}

/// A packed file: by which packing the first byte says.
fn packed(bytes: &[u8]) {
    let (kind, rest) = first(bytes);
    let name = ["t.csv.gz", "t.csv.zst", "t.csv.xz", "t.csv.bz2", "t.csv.zip"][usize::from(kind % 5)];
    read(name, rest, Options { max_row: MaxRow::new(1 << 16), ..Options::default() });
}

/// A workbook of the old kind, read once: its library sets aside every cell that a sheet may have, up to gigabytes.
fn old_workbook(bytes: &[u8]) {
    let path = place::file("t.xls", bytes);
    let spec = KeySpec::text(vec!["email".to_owned()], Normalisation::default());
    let options = Options { error_cells: ErrorCells::Null, ..Options::default() };
    let read = || -> Result<(), Error> {
        let source = Source::open(&path, spec, options)?;
        let keys = source.read_keys(|_| ())?;
        source.write_matches(&keys, &[], &path.with_file_name("out.csv"), &mut Vec::new())?;
        source.read_whole()?;
        Ok(())
    };
    if let Err(error) = read() {
        line(&error);
    }
}

/// A whole workbook around the XML of one sheet.
fn sheet(bytes: &[u8]) {
    read("t.xlsx", &workbook(bytes), Options { error_cells: ErrorCells::Null, ..Options::default() });
}

fn line(error: &Error) {
    let said = error.to_string();
    assert!(!said.is_empty() && said.lines().count() == 1, "not one line: {said}");
}

/// Reads a table as a run does: its keys, its rows, and the matching rows to an output; and its values. Read again
/// it has the same keys.
fn read(name: &str, bytes: &[u8], options: Options) {
    let path = place::file(name, bytes);
    let column = if options.header == Header::None { "1" } else { "email" };
    let text = KeySpec::text(vec![column.to_owned()], Normalisation::default());
    if let Err(error) = keyed(&path, text, options) {
        line(&error);
    }
    for kind in ["email", "name~1"] {
        if let Ok(named) = Named::parse(&format!("{column}:{kind}"))
            && let Err(error) = keyed(&path, KeySpec::named([named], Normalisation::default()), options)
        {
            line(&error);
        }
    }
    if let Err(error) = valued(&path, options) {
        line(&error);
    }
}

fn keyed(path: &Path, spec: KeySpec, options: Options) -> Result<(), Error> {
    let source = Source::open(path, spec.clone(), options)?;
    let keys = source.read_keys(|_| ())?;
    let most = if spec.is_open() { keys.rows_at_most() } else { keys.rows() };
    assert!(keys.elements().len() as u64 <= most);
    let again = Source::open(path, spec, options)?.read_keys(|_| ())?;
    assert!(again.elements() == keys.elements(), "other keys when a file is read again");
    let all: Vec<u32> = (0..keys.elements().len() as u32).collect();
    let target = path.with_file_name("out.csv");
    let mut out = Vec::new();
    let written = source.write_matches(&keys, &all, &target, &mut out);
    // What goes into an output that names no encoding is UTF-8.
    assert!(std::str::from_utf8(&out).is_ok() || options.encoding.is_some() || written.is_err());
    written?;
    source.read_whole()?;
    Ok(())
}

fn valued(path: &Path, options: Options) -> Result<(), Error> {
    let table = Table::open(path, options)?;
    let columns = table.names().len().min(4);
    let wanted = table.at(0..columns)?;
    table.read::<Error>(&wanted, |_, values| {
        assert_eq!(values.len(), columns);
        Ok(())
    })?;
    Ok(())
}

const SHEET: &str = r#"<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>email</t></is></c><c r="B1" t="s"><v>0</v></c></row><row r="2"><c r="A2" t="inlineStr"><is><t>ann@example.com</t></is></c><c r="B2"><v>5</v></c></row><row r="3"><c r="A3" t="e"><v>#N/A</v></c><c r="B3" s="1"><v>45000.5</v></c></row></sheetData></worksheet>"#;

/// A workbook whose one sheet is this.
fn workbook(sheet: &[u8]) -> Vec<u8> {
    use std::io::Write;
    const WORKBOOK: [(&str, &str); 5] = [
        (
            "[Content_Types].xml",
            r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#,
        ),
        (
            "_rels/.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#,
        ),
        (
            "xl/workbook.xml",
            r#"<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="s" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings" Target="sharedStrings.xml"/></Relationships>"#,
        ),
        (
            "xl/sharedStrings.xml",
            r#"<?xml version="1.0"?><sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" count="1"><si><t>amount</t></si></sst>"#,
        ),
    ];
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let parts = WORKBOOK.iter().map(|(name, text)| (*name, text.as_bytes()));
    for (name, content) in parts.chain([("xl/worksheets/sheet1.xml", sheet)]) {
        out.start_file(name, stored).expect("memory is written");
        out.write_all(content).expect("memory is written");
    }
    out.finish().expect("memory is written").into_inner()
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let table = "email,age,since\nann@example.com,5,2024-01-05\n\"quoted \"\"x\"\"@example.com\",7,\n";
    let mut out = vec![("sheet", SHEET.as_bytes().to_vec()), ("xlsx", workbook(SHEET.as_bytes()))];
    for how in [0, 1, 8, 16, 22, 32, 64, 128] {
        out.push(("csv", [&[how], table.as_bytes()].concat()));
    }
    out.push(("csv", [&[1], table.replace(',', ";").as_bytes()].concat()));
    out.push((
        "json-lines",
        b"{\"email\":\"ann@example.com\",\"age\":5}\n{\"email\":\"b\",\"age\":null,\"x\":[1,{}]}\n".to_vec(),
    ));
    out
}
