//! Tables of every dialect, packed or not, from files and pipes: the keys are found, and rows go out byte for
//! byte.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tacit_data::csv::{Delimiter, Error, Header, MaxRow, Misquoted, Options, Place, Quote, Source};
use tacit_data::input::Packing;
use tacit_data::keys::Longest;
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::Source as Table;

fn spec(column: &str) -> KeySpec {
    KeySpec::text(vec![column.to_owned()], Normalisation::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open(path: &Path, column: &str, options: Options) -> Result<(Table, KeySet), Error> {
    let source = Table::open(path, spec(column), options)?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn written(source: &Table, keys: &KeySet, matches: &[u32], target: &str) -> Vec<u8> {
    let mut out = Vec::new();
    source.write_matches(keys, matches, Path::new(target), &mut out).unwrap();
    out
}

fn elements(texts: &[&str]) -> Vec<[u8; 32]> {
    let mut hasher = KeyHasher::new(Normalisation::default());
    texts.iter().map(|text| hasher.hash([*text]).unwrap()).collect()
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

/// What a table looks like is nobody's to change: quotes that were not needed, rows that end otherwise than
/// the rest, and empty cells stay as they are.
#[test]
fn rows_go_out_byte_for_byte() {
    let folder = Folder::new();
    let rows = ["\"a\",\"1\"\n", "b,\"\"\r\n", " c ,\"x\ny\"\n", "\"d\",\n"];
    let path = folder.file("t.csv", format!("\"k\",\"n\"\n{}", rows.concat()));
    let (source, keys) = open(&path, "k", Options::default()).unwrap();
    assert_eq!(keys.elements(), elements(&["a", "b", "c", "d"]));
    for wanted in 0..16u32 {
        let matches: Vec<u32> = (0..4).filter(|i| wanted >> i & 1 == 1).collect();
        let expected: String = matches.iter().map(|i| rows[*i as usize]).collect();
        let out = String::from_utf8(written(&source, &keys, &matches, "out.csv")).unwrap();
        assert_eq!(out, format!("\"k\",\"n\"\n{expected}"));
    }
}

/// Rows longer and shorter than the pieces in which a file is read.
#[test]
fn rows_across_pieces_stay_whole() {
    let folder = Folder::new();
    let row = |i: usize| format!("key{i},\"{}\"\r\n", "x\n".repeat(i * 7919 % 40_000));
    let all: String = (0..60).map(row).collect();
    let path = folder.file("t.csv", format!("k,n\r\n{all}"));
    let (source, keys) = open(&path, "k", Options::default()).unwrap();
    let matches: Vec<u32> = (0..60).step_by(3).collect();
    let expected: String = (0..60).step_by(3).map(row).collect();
    let out = written(&source, &keys, &matches, "out.csv");
    assert!(out == format!("k,n\r\n{expected}").into_bytes());
}

/// Whether quotes stand where RFC 4180 has them, by a grammar written from its section 2.
fn is_well_quoted(content: &str, quote: Option<char>, escape: Option<char>) -> bool {
    let Some(quote) = quote else { return true };
    let signs: Vec<char> = content.chars().collect();
    let (mut at, ends) = (0, [',', '\n', '\r']);
    while at < signs.len() {
        if signs[at] == quote {
            at += 1;
            loop {
                match signs.get(at) {
                    None => return false,
                    Some(sign) if Some(*sign) == escape => match signs.get(at + 1) {
                        None => return false,
                        Some(_) => at += 2,
                    },
                    Some(sign) if *sign == quote => {
                        at += 1;
                        if escape.is_some() || signs.get(at) != Some(&quote) {
                            break;
                        }
                        at += 1;
                    }
                    Some(_) => at += 1,
                }
            }
        } else {
            while at < signs.len() && !ends.contains(&signs[at]) {
                if signs[at] == quote {
                    return false;
                }
                at += 1;
            }
        }
        if at < signs.len() && !ends.contains(&signs[at]) {
            return false;
        }
        at += 1;
    }
    true
}

/// The rows of a file as this crate reads them, the error as which it refuses one, and the rows as the state
/// machine of `csv` reads them, which is lax about quotes.
type Both = (Result<Vec<Vec<String>>, Error>, Option<Vec<Vec<String>>>);

fn rows_by_both(folder: &Folder, content: &[u8], options: Options) -> Both {
    let path = folder.file("t.csv", content);
    let mut ours = Vec::new();
    let read = |source: Source| {
        let all: Vec<usize> = (0..source.columns().count()).collect();
        source.read_columns(&all, |_, cells| {
            ours.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
            Ok::<_, Error>(())
        })
    };
    let ours = match Source::open_table(&path, options).and_then(read) {
        Ok(_) => Ok(ours),
        Err(Error::Empty(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).escape(options.escape).double_quote(options.escape.is_none());
    match options.quote {
        Quote::Byte(quote) => drop(builder.quote(quote)),
        Quote::None => drop(builder.quoting(false)),
        Quote::Double => {}
    }
    let theirs: Result<Vec<_>, _> = builder.from_reader(content).records().collect();
    let owned = |row: &csv::StringRecord| row.iter().map(str::to_owned).collect();
    (ours, theirs.ok().map(|rows| rows.iter().map(owned).collect()))
}

/// Rows with quotes and without are parted alike, whatever ends their lines, in files longer than what is
/// read at once and in files of a few signs where nothing fits.
#[test]
fn rows_are_parted_as_the_usual_reader_does() {
    let mut state = 7u64;
    let mut below = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let folder = Folder::new();
    let dialects =
        [(Quote::Double, None), (Quote::Double, Some(b'\\')), (Quote::Byte(b'a'), None), (Quote::None, None)];
    let options = |(quote, escape)| Options {
        quote,
        escape,
        delimiter: Delimiter::Byte(b','),
        header: Header::None,
        ..Options::default()
    };
    const SIGNS: [&[u8]; 9] = [b"a", b"\"", b",", b"\n", b"\r", "é".as_bytes(), b"\\", b"\r\n", b"\xff"];
    let (mut refused, mut misquoted, mut taken) = (0, 0, 0);
    for case in 0..6000 {
        // Bytes that are not UTF-8 in some of the files alone.
        let signs = SIGNS.len() - usize::from(case % 8 > 0);
        let content: Vec<u8> = (0..below(14)).flat_map(|_| SIGNS[below(signs)].to_vec()).collect();
        let (quote, escape) = dialects[case % 4];
        let (ours, theirs) = rows_by_both(&folder, &content, options((quote, escape)));
        let text = String::from_utf8_lossy(&content);
        let sign = match quote {
            Quote::Double => Some('"'),
            Quote::Byte(byte) => Some(char::from(byte)),
            Quote::None => None,
        };
        let well_quoted = is_well_quoted(&text, sign, escape.map(char::from));
        match ours {
            Ok(rows) => {
                assert!(well_quoted, "{text:?}");
                assert_eq!(Some(rows), theirs, "{text:?}");
                taken += 1;
            }
            Err(Error::Misquoted { .. }) => {
                assert!(!well_quoted, "{text:?}");
                misquoted += 1;
            }
            Err(Error::UnequalRow { .. } | Error::InvalidUtf8 { .. } | Error::MostlyUtf8 { .. }) => {
                assert!(theirs.is_none() || !well_quoted, "{text:?}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(taken > 500 && refused > 500 && misquoted > 500, "{taken} {refused} {misquoted}");
    let mut longest = 0;
    for case in 0..12 {
        let mut content = String::new();
        while content.len() < 400_000 {
            let fields: Vec<String> = (0..3)
                .map(|_| match below(8) {
                    0 => format!("\"{}\"", ["x,\"\"y", "\r\n", "é\n", ""][below(4)].repeat(below(5))),
                    1 if case > 8 => "é".repeat(below(200_000)),
                    _ => "ünd 5' ".repeat(below(4)),
                })
                .collect();
            longest = longest.max(fields.iter().map(String::len).sum());
            content += &fields.join(",");
            content += ["\n", "\r\n", "\r", "\n\n", "\r\r\n"][below(5)];
        }
        let (ours, theirs) = rows_by_both(&folder, content.as_bytes(), options(dialects[0]));
        assert!(ours.is_ok() && ours.ok() == theirs, "file {case}");
    }
    assert!(longest > 1 << 18, "{longest}");
}

/// Lines count by what ends them, within quotes too, and empty ones do.
#[test]
fn an_error_names_the_line_where_its_row_starts() {
    let folder = Folder::new();
    for end in ["\n", "\r\n", "\r"] {
        let lines = ["k,n", "a,1", "", "b,2", "c,\u{e9}", "d", "e,5"];
        let path = folder.file("t.csv", lines.join(end));
        let error = open(&path, "k", Options::default()).err().unwrap();
        assert!(matches!(error, Error::UnequalRow { line: 6, expected: 2, found: 1, .. }), "{error}");
    }
    let path = folder.file("t.csv", "k,n\n\"a\nb\",\"c\r\nd\"\r\n\n\"e\n\",1,2\n");
    let error = open(&path, "k", Options::default()).err().unwrap();
    assert!(matches!(error, Error::UnequalRow { line: 6, .. }), "{error}");
    for (text, line) in
        [(&b"k,n\na,1\nb,\xff\n"[..], 3), (b"k,n\na,1\r\n\n\"b\",\"\xff\"\n", 4), (b"k,n\na,\xc3", 2)]
    {
        let path = folder.file("t.csv", text);
        let error = open(&path, "k", Options::default()).err().unwrap();
        assert!(matches!(error, Error::InvalidUtf8 { line: found, .. } if found == line), "{error} {line}");
    }
}

/// What a quote left open makes of a file is no table: the rest of it would be one cell, of rows that were
/// never compared and, given to a peer, hand it all of them.
#[test]
fn quotes_that_rfc_4180_lacks_are_refused_with_their_line() {
    let folder = Folder::new();
    let long = "c,1\n".repeat(60_000);
    for (text, line, field, what) in [
        ("k,n\na,1\nb,\"open\nc,3\nd,4\n", 3, 2, Misquoted::Open),
        ("k,n\na,1\nb,\"", 3, 2, Misquoted::Open),
        ("\"k,n\na,1\n", 1, 1, Misquoted::Open),
        ("k,n\n\"x\r\ny\",\"open\n", 3, 2, Misquoted::Open),
        ("k,n\na,\"x\"\"\n", 2, 2, Misquoted::Open),
        ("k,n\n\"a@x.org\"x,1\n", 2, 1, Misquoted::TextBehind),
        ("k,n\n\"a\" ,1\n", 2, 1, Misquoted::TextBehind),
        ("k,n\na,\"1\nb,\"2\"\nc,3\n", 3, 2, Misquoted::TextBehind),
        ("k,n\na,1\nb, \"2\"\n", 3, 2, Misquoted::Within),
        ("k,n\n5\" pipe,1\n", 2, 1, Misquoted::Within),
    ] {
        // The same at the end of what is read at once.
        for (text, before) in [(text.to_owned(), 0), (text.replacen('\n', &format!("\n{long}"), 1), 60_000)] {
            let before = if text.starts_with('"') { 0 } else { before };
            let path = folder.file("t.csv", &text);
            let error = open(&path, "k", Options::default()).err().unwrap_or_else(|| panic!("{text:.60}"));
            let Error::Misquoted { line: at, field: of, what: found, .. } = &error else { panic!("{error}") };
            assert_eq!((*at, *of, *found), (line + before, field, what), "{error} {text:.60}");
            assert!(!error.to_string().contains("pipe"), "{error}");
        }
    }
    // By the escape of a dialect a quote is no end.
    let options = Options { escape: Some(b'\\'), ..Options::default() };
    let error = open(&folder.file("t.csv", "k,n\n\"a\\\",1\n"), "k", options).err().unwrap();
    assert!(matches!(error, Error::Misquoted { line: 2, what: Misquoted::Open, .. }), "{error}");
    let same = Options { escape: Some(b'"'), ..Options::default() };
    let path = folder.file("t.csv", "k,n\n\"a\"\"b\",1\n");
    assert_eq!(open(&path, "k", same).unwrap().1.elements(), elements(&["a\"b"]));
}

#[test]
fn the_longest_quoted_cell_is_told_and_a_row_has_a_bound() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "k,n\n\"a\",1\n\"b\",\"x\ny\r\nz\"\nc,\"1234567890\"\n");
    let keys = open(&path, "k", Options::default()).unwrap().1;
    assert_eq!(keys.tally().longest, Longest { bytes: 10, line: 6, lines: 3, lines_at: 3 });
    let plain = open(&folder.file("t.csv", "k,n\na,1\n"), "k", Options::default()).unwrap().1;
    assert_eq!(plain.tally().longest, Longest::default());
    let options = Options { max_row: MaxRow::new(1 << 20), ..Options::default() };
    for row in [
        "x".repeat(3 << 20),
        format!("\"{}\"", "x\n".repeat(3 << 19)),
        format!("\"{}", "é\n".repeat(1 << 20)),
    ] {
        let path = folder.file("t.csv", format!("k,n\na,1\n{row},2\n"));
        let error = open(&path, "k", options).err().unwrap();
        assert!(matches!(error, Error::LongRow { place: Place::Line(3), most: 1_048_576, .. }), "{error}");
    }
}

#[test]
fn a_file_without_a_header_has_columns_by_number() {
    let folder = Folder::new();
    let path = folder.file("t.csv", "ann,1\nbob,2\n");
    let options = Options { header: Header::None, ..Options::default() };
    let (source, keys) = open(&path, "1", options).unwrap();
    assert_eq!(keys.elements(), elements(&["ann", "bob"]));
    assert_eq!(written(&source, &keys, &[0], "out.csv"), b"ann,1\n");
    for column in ["0", "3", "ann"] {
        let error = open(&path, column, options).err().unwrap();
        assert!(matches!(error, Error::NoSuchNumber { columns: 2, .. }), "{error}");
        assert!(!error.to_string().contains("bob"), "{error}");
    }
    let table = Source::open_table(&path, options).unwrap();
    let contents = table.read_columns(&[1], |_, _| Ok::<_, Error>(())).unwrap();
    let mut out = Vec::new();
    let extend = |row: u64| vec![format!("{row},"), String::new()];
    table.write_extended(&contents, &["n", "m"], extend, Path::new("out.csv"), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "ann,1,\"0,\",\nbob,2,\"1,\",\n");
}

#[test]
fn quotes_and_escapes_are_as_the_caller_says() {
    let folder = Folder::new();
    let cases = [
        (Quote::Byte(b'\''), None, "k,n\n'a,b',1\n'it''s',2\n", ["a,b", "it's"]),
        (Quote::Double, Some(b'\\'), "k,n\n\"a\\\"b\",1\n\"c,d\",2\n", ["a\"b", "c,d"]),
        (Quote::None, None, "k,n\n\"a,1\nb\",2\n", ["\"a", "b\""]),
    ];
    for (quote, escape, content, expected) in cases {
        let path = folder.file("t.csv", content);
        let (source, keys) = open(&path, "k", Options { quote, escape, ..Options::default() }).unwrap();
        assert_eq!(keys.elements(), elements(&expected), "{content}");
        assert_eq!(written(&source, &keys, &[0, 1], "out.csv"), content.as_bytes());
    }
    let options = Options { delimiter: Delimiter::Byte(b'^'), ..Options::default() };
    let path = folder.file("t.csv", "k^n\na,b^1\n");
    assert_eq!(open(&path, "k", options).unwrap().1.elements(), elements(&["a,b"]));
}

/// Known by content, whatever the name; the output is packed as its name says, or else as the input.
#[test]
fn packed_tables_are_read_and_written() {
    let folder = Folder::new();
    let content = b"k,n\na,1\nb,2\n";
    let parts = [gzip(&content[..5]), gzip(&content[5..])].concat();
    let zstd = zstd::encode_all(&content[..], 3).unwrap();
    let unzip = |bytes: &[u8]| {
        let mut out = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
        out
    };
    for (packed, packing) in [
        (content.to_vec(), Packing::Plain),
        (gzip(content), Packing::Gzip),
        (parts, Packing::Gzip),
        (zstd, Packing::Zstd),
    ] {
        let path = folder.file("t.csv", packed);
        let (source, keys) = open(&path, "k", Options::default()).unwrap();
        assert_eq!(Source::open_table(&path, Options::default()).unwrap().packing(), packing);
        assert_eq!(keys.elements(), elements(&["a", "b"]));
        let expected = b"k,n\nb,2\n";
        assert_eq!(written(&source, &keys, &[1], "out.csv"), expected);
        assert_eq!(unzip(&written(&source, &keys, &[1], "out.csv.gz")), expected);
        let out = written(&source, &keys, &[1], "out.csv.zst");
        assert_eq!(zstd::decode_all(&out[..]).unwrap(), expected);
        let out = written(&source, &keys, &[1], "out");
        let plain = match packing {
            Packing::Plain => out,
            Packing::Gzip => unzip(&out),
            Packing::Zstd => zstd::decode_all(&out[..]).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(plain, expected);
    }
}

/// Cut at any byte, a packed table is an error and never a shorter table.
#[test]
fn packed_tables_that_are_cut_short_are_refused() {
    let folder = Folder::new();
    let content: String =
        std::iter::once("k\n".to_owned()).chain((0..300).map(|i| format!("{i}\n"))).collect();
    for (packed, packing) in
        [(gzip(content.as_bytes()), "gzip"), (zstd::encode_all(content.as_bytes(), 3).unwrap(), "zstd")]
    {
        for length in 10..packed.len() {
            let path = folder.file("t.csv", &packed[..length]);
            let error =
                open(&path, "k", Options::default()).err().unwrap_or_else(|| panic!("{length} bytes"));
            let text = error.to_string();
            assert!(text.contains("t.csv") && text.contains(packing) && text.contains("truncated"), "{text}");
        }
    }
}

/// A pipe cannot be read twice, and need not be.
#[cfg(unix)]
#[test]
fn a_pipe_is_kept_for_the_second_pass() {
    let folder = Folder::new();
    let path = folder.0.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let row = |i: u32| format!("key{i},{}\n", "x".repeat(90));
    let content: String = std::iter::once("k,n\n".to_owned()).chain((0..5000).map(row)).collect();
    for packed in [content.clone().into_bytes(), gzip(content.as_bytes())] {
        let writer = std::thread::spawn({
            let path = path.clone();
            move || fs::write(path, packed).unwrap()
        });
        let (source, keys) = open(&path, "k", Options::default()).unwrap();
        writer.join().unwrap();
        assert_eq!(keys.rows(), 5000);
        let expected = format!("k,n\n{}{}", row(17), row(4999));
        assert_eq!(written(&source, &keys, &[17, 4999], "out.csv"), expected.into_bytes());
    }
}

/// A pipe that takes a file's place between the readings is another file, and nobody waits for who may write to it.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let folder = Folder::new();
    let content = "k,n\na,1\nb,2\n";
    for packed in [content.as_bytes().to_vec(), gzip(content.as_bytes())] {
        let path = folder.file("t.csv", &packed);
        let (source, keys) = open(&path, "k", Options::default()).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let written = source.write_matches(&keys, &[0], Path::new("o.csv"), &mut Vec::new());
            let told = (written.map(|_| ()), source.digest().map(|_| ()));
            sender.send(told).is_ok()
        });
        let said = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("a pipe is waited for");
        for error in [said.0.unwrap_err(), said.1.unwrap_err()] {
            assert!(matches!(error, Error::Changed(_)), "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
}
