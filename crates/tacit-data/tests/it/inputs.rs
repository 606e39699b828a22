//! What a file is, by its bytes: how it is packed, which encoding its text has, and what is no table at all.

use std::fs;
use std::path::{Path, PathBuf};
use tacit_data::csv::{Encoding, Error, Header, MaxRow, Options, Place, Source};
use tacit_data::input::Packing;
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};
use tacit_data::table::Source as Table;
use tacit_data::values;

fn read(path: &Path, column: &str, options: Options) -> Result<(Table, KeySet), Error> {
    let spec = KeySpec::text(vec![column.to_owned()], Normalisation::default());
    let source = Table::open(path, spec, options)?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn elements(texts: &[&str]) -> Vec<[u8; 32]> {
    let mut hasher = KeyHasher::new(Normalisation::default());
    texts.iter().map(|text| hasher.hash([*text]).unwrap()).collect()
}

fn written(source: &Table, keys: &KeySet, matches: &[u32], target: &str) -> String {
    let mut out = Vec::new();
    source.write_matches(keys, matches, Path::new(target), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A table whose name says nothing of its kind.
    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("t.dat");
        fs::write(&path, content).unwrap();
        path
    }

    fn error(&self, content: impl AsRef<[u8]>, options: Options) -> Error {
        read(&self.file(content), "k", options).err().unwrap()
    }
}

const XZ: &[u8] = include_bytes!("files/t.csv.xz");
const BZIP2: &[u8] = include_bytes!("files/t.csv.bz2");
const DEFLATED: &[u8] = include_bytes!("files/deflated.zip");
const STORED: &[u8] = include_bytes!("files/stored.zip");

/// As xz, bzip2 and zip write them.
#[test]
fn tables_packed_by_xz_bzip2_and_zip_are_read_and_go_out_plain() {
    let folder = Folder::new();
    for (content, packing) in [
        (XZ, Packing::Xz),
        (include_bytes!("files/streams.csv.xz"), Packing::Xz),
        (BZIP2, Packing::Bzip2),
        (include_bytes!("files/streams.csv.bz2"), Packing::Bzip2),
        (DEFLATED, Packing::Zip),
        (STORED, Packing::Zip),
        (include_bytes!("files/bzipped.zip"), Packing::Zip),
        (include_bytes!("files/mac.zip"), Packing::Zip),
    ] {
        let path = folder.file(content);
        let (source, keys) = read(&path, "k", Options::default()).unwrap();
        assert_eq!(Source::open_table(&path, Options::default()).unwrap().packing(), packing);
        assert_eq!(keys.elements(), elements(&["a", "b"]));
        for target in ["out", "-", "out.csv"] {
            assert_eq!(written(&source, &keys, &[1], target), "k,n\nb,2\n");
        }
    }
}

#[test]
fn packed_tables_that_are_cut_or_changed_are_refused() {
    let folder = Folder::new();
    for (packed, packing) in [(XZ, "xz"), (BZIP2, "bzip2"), (DEFLATED, "zip"), (STORED, "zip")] {
        for length in 10..packed.len() {
            let text = folder.error(&packed[..length], Options::default()).to_string();
            assert!(text.contains("t.dat") && text.contains("truncated"), "{length} {packing} {text}");
        }
    }
    // A byte of the content, whose checksum tells.
    let at = STORED.windows(4).position(|bytes| bytes == b"a,1\n").unwrap();
    let mut changed = STORED.to_vec();
    changed[at] = b'c';
    let text = folder.error(&changed, Options::default()).to_string();
    assert!(text.contains("its zip data is damaged"), "{text}");
}

/// A hundred bytes must not take 4 GiB, nor a row without end more than rows may have.
#[test]
fn what_unpacks_to_too_much_is_refused() {
    let folder = Folder::new();
    let mut greedy = XZ.to_vec();
    // The dictionary's size in the first block's header, and the checksum of that.
    greedy[16] = 40;
    let checksum = crc32fast::hash(&greedy[12..20]);
    greedy[20..24].copy_from_slice(&checksum.to_le_bytes());
    let text = folder.error(&greedy, Options::default()).to_string();
    assert!(text.contains("xz"), "{text}");
    let bomb = [&b"k,n\n"[..], &vec![b'x'; 8 << 20]].concat();
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    std::io::Write::write_all(&mut encoder, &bomb).unwrap();
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < 1 << 10);
    let options = Options { max_row: MaxRow::new(1 << 20), ..Options::default() };
    let error = folder.error(&packed, options);
    assert!(matches!(error, Error::LongRow { place: Place::Line(2), .. }), "{error}");
}

#[test]
fn archives_that_hold_no_single_table_say_what_they_hold() {
    let folder = Folder::new();
    for (content, expected) in [
        (&include_bytes!("files/several.zip")[..], &["2 files", "`a.csv`", "unpack it"][..]),
        (include_bytes!("files/empty.zip"), &["zip archive without a file"]),
        (include_bytes!("files/encrypted.zip"), &["`t.csv`", "encrypted"]),
        (include_bytes!("files/by-lzma.zip"), &["`data/t.csv`", "compressed with", "unpack it"]),
        (include_bytes!("files/workbook.zip"), &["Excel"]),
        (include_bytes!("files/arrays.npz"), &["NumPy arrays"]),
    ] {
        let text = folder.error(content, Options::default()).to_string();
        assert!(expected.iter().all(|word| text.contains(word)), "{text}");
        assert!(!text.contains('\x1b') && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn what_is_no_table_says_what_it_is_and_what_to_do() {
    let folder = Folder::new();
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let page = b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>";
    let twice = gzip(&gzip(b"k,n\na,1\n"));
    let utf32: Vec<u8> = "k,n\na,1\n".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for (content, kind, remedy) in [
        (&b"ORC\x08\x03\x10\0"[..], "an ORC file", "Parquet"),
        (b"Obj\x01\x04\x14avro.codec", "an Avro file", "Parquet"),
        (b"PARE\x15\0\x15\x0e\0\0\0PARE", "an encrypted Parquet file", "decrypt"),
        (b"SQLite format 3\0\x10\0", "an SQLite database", "CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "old Excel workbook", "CSV UTF-8"),
        (page, "a web page (HTML)", "login"),
        (b"[\n  {\"k\": 1}\n]\n", "JSON", "jq -c"),
        (b"[{\"k\": 1}, {\"k\": 2}]", "JSON", "jq -c"),
        (b"{\n  \"k\": 1\n}\n", "JSON", "jq -c"),
        (b"<?xml version=\"1.0\"?><a/>", "XML", "CSV"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF", "CSV"),
        (b"\x80\x04\x95\x10\0\0\0", "a pickled Python object", "Parquet"),
        (b"\x93NUMPY\x01\0", "a NumPy array", "Parquet"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive", "unpack"),
        (&twice, "compressed twice", "decompress"),
        (&utf32, "UTF-32", "UTF-8"),
    ] {
        let error = folder.error(content, Options::default());
        let text = error.to_string();
        assert!(matches!(error, Error::Kind { .. }), "{text}");
        assert!(text.contains(kind) && text.contains(remedy) && !text.contains("Sign in"), "{text}");
        let table = values::Table::open(&folder.file(content), Options::default()).err().unwrap();
        assert!(matches!(table, Error::Kind { .. }), "{table}");
    }
}

fn named(encoding: &str) -> Options {
    Options { encoding: Encoding::named(encoding), ..Options::default() }
}

#[test]
fn text_in_a_named_encoding_is_read_and_goes_out_as_utf_8() {
    let folder = Folder::new();
    let utf16: Vec<u8> = "k;n\r\nZoë;1\r\nKöln;2\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xff\xfe"[..], &utf16].concat();
    for (content, encoding) in [
        (&b"k;n\r\nZo\xeb;1\r\nK\xf6ln;2\r\n"[..], "windows-1252"),
        (b"k;n\r\nZo\x91;1\r\nK\x9aln;2\r\n", "macintosh"),
        (&utf16, "utf-16le"),
        (&marked, "utf-16le"),
        ("k;n\r\nZoë;1\r\nKöln;2\r\n".as_bytes(), "utf-8"),
    ] {
        let (source, keys) = read(&folder.file(content), "k", named(encoding)).unwrap();
        assert_eq!(keys.elements(), elements(&["zoë", "köln"]), "{encoding}");
        assert_eq!(written(&source, &keys, &[0], "out.csv"), "k;n\r\nZoë;1\r\n", "{encoding}");
    }
    // A character of two bytes across every seam of what is read at once.
    let mut rows = String::from("k,n\n");
    (0..60_000).for_each(|i| rows += &format!("日本{i},x\n"));
    let bytes = rows.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let (source, keys) = read(&folder.file(bytes), "k", named("utf-16be")).unwrap();
    assert_eq!((keys.rows(), keys.elements().len()), (60_000, 60_000));
    let all: Vec<u32> = (0..60_000).collect();
    assert_eq!(written(&source, &keys, &all, "out.csv"), rows);
}

#[test]
fn bytes_that_are_no_text_are_named_by_line_and_column_with_a_guess() {
    let folder = Folder::new();
    let text = b"k,n,city\na,1,b\n\"x, y\",2,K\xf6ln\nc,3,Malm\xf6\n";
    let error = folder.error(text, Options::default());
    let Error::InvalidUtf8 { line: 3, column: 3, looks_like: Some("windows-1252"), .. } = error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("line 3, column 3") && !error.to_string().contains("x, y"), "{error}");
    for (content, encoding, place) in [
        (&b"k,n\na,1\nb,\x81\n"[..], "windows-1252", (3, 2)),
        (b"k,n\n\x81,1\n", "cp1252", (2, 1)),
        (b"k,n\na,\x93", "shift_jis", (2, 2)),
        (b"k\0,\0n\0\n\0a\0,\0\x3d\xd8\n\0", "utf-16le", (2, 2)),
    ] {
        let error = folder.error(content, named(encoding));
        let Error::NotInEncoding { line, column, .. } = error else { panic!("{encoding} {error}") };
        assert_eq!((line, column), place, "{error}");
        assert!(error.to_string().contains(Encoding::named(encoding).unwrap().name()), "{error}");
    }
    // Rows before stand, wherever the bytes are read.
    let long = [&b"k,n\n"[..], &b"a,1\n".repeat(100_000), b"b,\x81\n"].concat();
    let error = folder.error(&long, named("windows-1252"));
    assert!(matches!(error, Error::NotInEncoding { line: 100_002, column: 2, .. }), "{error}");
    let wide: Vec<u8> = "k,n\na,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = folder.error(&wide, Options::default());
    assert!(matches!(error, Error::Encoded { encoding: "utf-16le", .. }), "{error}");
    assert!(error.to_string().contains("utf-16le"), "{error}");
}

#[test]
fn a_byte_order_mark_names_the_encoding_and_is_not_contradicted() {
    let folder = Folder::new();
    let text = "\u{feff}k,n\nZoë,1\nKöln,2\n";
    let (little, big): (Vec<u8>, Vec<u8>) = (
        text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    );
    for (content, encoding, other) in [
        (&little[..], "utf-16le", "utf-16be"),
        (&big[..], "utf-16be", "utf-8"),
        (text.as_bytes(), "utf-8", "windows-1252"),
    ] {
        for options in [Options::default(), named(encoding)] {
            let (source, keys) = read(&folder.file(content), "k", options).unwrap();
            assert_eq!(keys.elements(), elements(&["zoë", "köln"]), "{encoding}");
            assert!(written(&source, &keys, &[1], "out.csv").ends_with("k,n\nKöln,2\n"), "{encoding}");
        }
        let error = folder.error(content, named(other));
        let Error::Marked { marked, named, .. } = error else { panic!("{encoding} {error}") };
        assert_eq!((marked, named), (encoding, other));
    }
    let error = folder.error(b"\xff\xfe\0\0k\0\0\0\n\0\0\0", Options::default());
    assert!(matches!(error, Error::Kind { kind: "text in UTF-32", .. }), "{error}");
}

/// Files that were joined have several marks, and none is a part of a cell; the first mark hides no private key either.
#[test]
fn marks_are_no_part_of_a_table_wherever_it_begins() {
    let folder = Folder::new();
    let headless = |skip_lines| Options { header: Header::None, skip_lines, ..Options::default() };
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let marked = "\u{feff}\u{feff}bob,1\nann,2\n";
    for (content, options) in [
        (marked.as_bytes().to_vec(), headless(0)),
        (wide(marked), headless(0)),
        (format!("sep=,\n{marked}").into_bytes(), headless(0)),
        (format!("title\n{marked}").into_bytes(), headless(1)),
    ] {
        let (_, keys) = read(&folder.file(&content), "1", options).unwrap();
        assert_eq!(keys.elements(), elements(&["bob", "ann"]), "{content:?}");
    }
    for secret in ["tacit-ed25519-private AAAA\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n"] {
        for content in [format!("\u{feff}{secret}").into_bytes(), wide(&format!("\u{feff}{secret}"))] {
            let error = folder.error(&content, Options::default());
            assert!(matches!(error, Error::Kind { .. }) && !error.to_string().contains("AAAA"), "{error}");
        }
    }
    // JSON lines are known in any encoding.
    let lines = wide("\u{feff}{\"k\":\"Zoë\",\"n\":1}\n{\"k\":\"Köln\",\"n\":2}\n");
    let path = folder.file(lines);
    assert_eq!(read(&path, "k", Options::default()).unwrap().1.elements(), elements(&["zoë", "köln"]));
}

/// What stands in front of a table is passed over, and lines count from the file's first.
#[test]
fn lines_in_front_of_the_table_are_skipped_and_a_line_names_the_separator() {
    let folder = Folder::new();
    let skip = |skip_lines| Options { skip_lines, ..Options::default() };
    for (content, options, keys, out) in [
        ("sep=;\r\nk;n\r\na,b;1\r\n", skip(0), "a,b", "k;n\r\na,b;1\r\n"),
        ("\u{feff}SEP=|\nk|n\na;b|1\n", skip(0), "a;b", "\u{feff}k|n\na;b|1\n"),
        ("\"sep=\t\"\nk\tn\na\t1\n", skip(0), "a", "k\tn\na\t1\n"),
        ("Report \"of\n\n2026;;;;\r\nk,n\na,1\n", skip(3), "a", "k,n\na,1\n"),
        ("x\rk,n\ra,1\r", skip(1), "a", "k,n\ra,1\r"),
        ("Report\nsep=;\nk;n\na;1\n", skip(1), "a", "k;n\na;1\n"),
    ] {
        let (source, found) = read(&folder.file(content), "k", options).unwrap();
        assert_eq!(found.elements(), elements(&[keys]), "{content:?}");
        assert_eq!(written(&source, &found, &[0], "out.csv"), out, "{content:?}");
    }
    let comma = Options { delimiter: tacit_data::csv::Delimiter::Byte(b','), ..skip(0) };
    assert_eq!(
        read(&folder.file("sep=;\nk,n\na;b,1\n"), "k", comma).unwrap().1.elements(),
        elements(&["a;b"])
    );
    let error = folder.error("sep=,\nk,n\na,1\nb\n", skip(0));
    assert!(matches!(error, Error::UnequalRow { line: 4, .. }), "{error}");
    let error = folder.error("one\ntwo\nk,n\na,1\nb\n", skip(2));
    assert!(matches!(error, Error::UnequalRow { line: 5, .. }), "{error}");
    assert!(matches!(folder.error("one\ntwo\n", skip(2)), Error::Empty(_)));
    // A skipped line across what is read at once, ended by CR and LF at the very seam.
    for length in (1 << 17) - 3..(1 << 17) + 3 {
        let content = format!("{}\r\nk,n\na,1\n", "x".repeat(length));
        assert_eq!(
            read(&folder.file(content), "k", skip(1)).unwrap().1.elements(),
            elements(&["a"]),
            "{length}"
        );
    }
    let options = Options { max_row: MaxRow::new(1 << 20), ..skip(1) };
    let error = folder.error("x".repeat(3 << 20), options);
    assert!(matches!(error, Error::LongRow { place: Place::Line(1), .. }), "{error}");
}

/// However few bytes come first: the first of several members of a packed file may hold one.
#[test]
fn a_mark_and_a_header_are_found_across_pieces() {
    let folder = Folder::new();
    let text = "\u{feff}k;n\na,b;1\n".as_bytes();
    for first in 0..6 {
        let pieces = [&text[..first], &text[first..first + 1], &text[first + 1..]];
        let packed: Vec<u8> = pieces
            .into_iter()
            .flat_map(|piece| {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut encoder, piece).unwrap();
                encoder.finish().unwrap()
            })
            .collect();
        let (source, keys) = read(&folder.file(&packed), "k", Options::default()).unwrap();
        assert_eq!(keys.elements(), elements(&["a,b"]), "{first}");
        assert_eq!(written(&source, &keys, &[0], "out.csv").as_bytes(), text, "{first}");
    }
}

/// The field that stands for a row's own while others are put behind it must not come out as one of them.
#[test]
fn fields_go_behind_rows_whatever_separates_them() {
    let folder = Folder::new();
    for separator in ["x", "y", "z", ",", "q"] {
        let path = folder.file(format!("k{separator}n\na{separator}1\n"));
        let options = Options {
            delimiter: tacit_data::csv::Delimiter::Byte(separator.as_bytes()[0]),
            header: Header::Names,
            ..Options::default()
        };
        let table = Source::open_table(&path, options).unwrap();
        let contents = table.read_columns(&[0], |_, _| Ok::<_, Error>(())).unwrap();
        let mut out = Vec::new();
        let extend = |_: u64| vec![format!("v{separator}w")];
        table.write_extended(&contents, &["m"], extend, Path::new("out.csv"), &mut out).unwrap();
        let expected = format!("k{separator}n{separator}m\na{separator}1{separator}\"v{separator}w\"\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
