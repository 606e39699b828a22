//! Tables of every dialect, packed or not, from files and pipes: the keys are found, and rows go out byte for byte.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tacit_data::csv::{Delimiter, Error, Header, Options, Quote, Source};
use tacit_data::input::Packing;
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Normalisation};

fn spec(column: &str) -> KeySpec {
    KeySpec::text(vec![column.to_owned()], Normalisation::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn open(path: &Path, column: &str, options: Options) -> Result<(Source, KeySet), Error> {
    let source = Source::open(path, spec(column), options)?;
    let keys = source.read_keys(|_| ())?;
    Ok((source, keys))
}

fn written(source: &Source, keys: &KeySet, matches: &[u32], target: &str) -> Vec<u8> {
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

/// What a table looks like is nobody's to change: quotes that were not needed, rows that end otherwise than the
/// rest, and empty cells stay as they are.
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
        assert_eq!(source.packing(), packing);
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
            assert!(text.contains("t.csv") && text.contains(packing) && text.contains("cut short"), "{text}");
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
