//! What a file is that is no table, by its first bytes: the error says what it is and what to do.

use crate::encoding::{self, Encoding};
use crate::fault::{Error, Result};
use crate::input::Packing;
use std::path::Path;

/// A format that is not read, and what makes a table of it that is.
struct Unread {
    kind: &'static str,
    remedy: &'static str,
}

/// Refuses what is no table, by the `start` of what an input holds, unpacked, and by the same as text: a byte order mark
/// or another encoding does not make a table of a private key.
pub(crate) fn refuse(path: &Path, start: &[u8], packing: Packing, encoding: Option<Encoding>) -> Result<()> {
    let text = encoding::beginning(start, encoding);
    let unread = |Unread { kind, remedy }| Error::Kind { path: path.to_owned(), kind, remedy };
    if packing != Packing::Plain && Packing::of(start) != Packing::Plain {
        let kind = "a table that is compressed twice";
        return Err(unread(Unread { kind, remedy: "decompress it once" }));
    }
    if let Some(found) =
        private_key(&text).or_else(|| by_magic(start)).or_else(|| by_magic(&text)).or_else(|| by_words(&text))
    {
        return Err(unread(found));
    }
    if encoding.is_some_and(|encoding| !encoding.is_utf8()) {
        return Ok(());
    }
    match wide(start) {
        None => Ok(()),
        Some("utf-32") => Err(unread(Unread { kind: "text in UTF-32", remedy: "save it as UTF-8" })),
        Some(encoding) => Err(Error::Encoded { path: path.to_owned(), encoding }),
    }
}

/// What begins with these bytes, is called so, and needs this.
const MAGIC: &[(&[u8], &str, &str)] = &[
    (b"Obj\x01", "an Avro file", "convert it to Parquet"),
    (b"SQLite format 3\0", "an SQLite database", "export the table as CSV, as with sqlite3 -csv -header"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel workbook (.xls) or another Office file of that time",
        "save it as CSV UTF-8",
    ),
    (b"PK\x03\x04", "an Excel workbook or another archive", "save the sheet as CSV UTF-8"),
    (b"%PDF-", "a PDF", "export the table as CSV"),
    (b"\x93NUMPY", "a NumPy array", "save it as CSV or Parquet"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "save it as CSV or Parquet"),
    (b"RDX2\nX\n", "an R data file", "save it as CSV or Parquet"),
    (b"RDX3\nX\n", "an R data file", "save it as CSV or Parquet"),
    (b"$FL2@(#)", "an SPSS file", "save it as CSV"),
    (b"<stata_dta>", "a Stata file", "save it as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it"),
    (b"\x04\x22\x4d\x18", "a file compressed by LZ4", "decompress it, or compress it by gzip or zstd"),
    (b"\xff\x06\0\0sNaPpY", "a file compressed by Snappy", "decompress it, or compress it by gzip or zstd"),
    (b"\x1f\x9d", "a file compressed by compress (.Z)", "decompress it, or compress it by gzip or zstd"),
    (b"\x5d\0\0\x80\0", "a file compressed by the old lzma", "decompress it, or compress it by xz"),
    (b"-----BEGIN PGP MESSAGE-----", "an encrypted message", "decrypt it"),
    (b"{\\rtf", "a text document (RTF)", "save it as CSV UTF-8"),
    (b"tacit-ed25519 ", "a public key of tacit keygen", "give your table"),
    (b"TACITPOL", "a pool of tacit pool", "give your table"),
    (b"TACITAP1", "a pool of tacit eval", "give your table"),
    (b"TACITST", "a state of tacit eval", "give your table"),
    (b"tacitdeal", "a seed of tacit deal", "give your table"),
    (b"tacitused", "a seed of tacit deal", "give your table"),
    (b"tacitnisc", "a file of tacit nisc", "give your table"),
    (b"tacitsign", "a signed file of tacit nisc", "give your table"),
    (b"tacitprf", "a tag file of tacit", "give your table"),
];

/// The same of words that a CSV file's header may begin with too: bytes that no text has tell them apart.
const WORDS: &[(usize, &[u8], &str, &str)] = &[
    (0, b"ORC", "an ORC file", "convert it to Parquet"),
    (0, b"FEA1", "a Feather file of version 1", "save it as Feather version 2, which is Arrow's format"),
    (0, b"PARE", "an encrypted Parquet file", "decrypt it with a program that has its keys"),
    (8, b"DUCK", "a DuckDB database", "export the table as Parquet"),
    (257, b"ustar", "a tar archive", "unpack it"),
];

/// Lines in which a private key is looked for.
const KEY_LINES: usize = 64;

/// A private key, wherever in the first lines it begins: what is in it must not be shown as the names of columns, also
/// behind a comment, a quote, an invisible character, or a line that names a separator.
fn private_key(text: &[u8]) -> Option<Unread> {
    // A line may end with both.
    let ends = memchr::memchr2_iter(b'\n', b'\r', text)
        .filter(|&at| text[at] == b'\n' || text.get(at + 1) != Some(&b'\n'));
    let end = { ends }.nth(KEY_LINES).unwrap_or(text.len());
    let text = &text[..end];
    let remedy = "give your table, and never pass on the key";
    if memchr::memmem::find(text, b"tacit-ed25519-private").is_some() {
        return Some(Unread { kind: "a private key of tacit keygen", remedy });
    }
    let is_begun = |at: usize| {
        let line = &text[at..];
        let line = &line[..memchr::memchr2(b'\n', b'\r', line).unwrap_or(line.len())];
        memchr::memmem::find(line, b"PRIVATE KEY").is_some()
    };
    // PEM and OpenSSH, and SSH2 with a dash less; PuTTY and age.
    let is_pem = memchr::memmem::find_iter(text, b"---- BEGIN ")
        .chain(memchr::memmem::find_iter(text, b"-----BEGIN "));
    let is_other = [&b"PuTTY-User-Key-File-"[..], b"AGE-SECRET-KEY-"];
    let found =
        { is_pem }.any(is_begun) || is_other.iter().any(|begin| memchr::memmem::find(text, begin).is_some());
    found.then_some(Unread { kind: "a private key", remedy })
}

/// Whether there are control characters that no text has.
fn is_binary(start: &[u8]) -> bool {
    start.iter().any(|byte| *byte < 0x09)
}

fn by_magic(start: &[u8]) -> Option<Unread> {
    let found = MAGIC.iter().find(|(magic, ..)| start.starts_with(magic));
    if let Some((_, kind, remedy)) = found {
        return Some(Unread { kind, remedy });
    }
    // A protocol number that a frame or the end of the value follows.
    if matches!(start, [0x80, 2..=5, ..]) {
        return Some(Unread { kind: "a pickled Python object", remedy: "save it as CSV or Parquet" });
    }
    let word = |(at, word, ..): &&(usize, &[u8], &str, &str)| {
        start.get(*at..).is_some_and(|start| start.starts_with(word))
    };
    let (_, _, kind, remedy) = WORDS.iter().filter(|_| is_binary(start)).find(word)?;
    Some(Unread { kind, remedy })
}

/// What is text and no table.
fn by_words(start: &[u8]) -> Option<Unread> {
    let text = start.trim_ascii_start();
    let begins =
        |word: &str| text.get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()));
    if ["<!doctype html", "<html", "<head", "<table", "<body"].into_iter().any(begins) {
        let remedy = "a download may have returned a login page instead of the file; save the table as CSV";
        return Some(Unread { kind: "a web page (HTML)", remedy });
    }
    if begins("<?xml") {
        return Some(Unread { kind: "XML", remedy: "save the table as CSV" });
    }
    let inner = text.get(1..).unwrap_or_default().trim_ascii_start();
    let is_json = match text.first() {
        Some(b'[') => matches!(inner.first(), None | Some(b'{' | b'[' | b']')),
        // An object over several lines; one in a line is read.
        Some(b'{') => matches!(inner.first(), None | Some(b'"' | b'}')),
        _ => false,
    };
    is_json.then_some(Unread {
        kind: "JSON without an object on each line",
        remedy: "convert it to JSON lines, as with jq -c '.[]'",
    })
}

/// The encoding of text with a zero in every character, as text of two or four bytes a character has.
pub(crate) fn wide(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => return Some("utf-32"),
        [0xff, 0xfe, ..] => return Some("utf-16le"),
        [0xfe, 0xff, ..] => return Some("utf-16be"),
        _ => {}
    }
    let start = &start[..start.len().min(1024) & !3];
    let zeros = |place: usize| start.iter().skip(place).step_by(4).filter(|byte| **byte == 0).count();
    let (quarter, zeros) = (start.len() / 4, [0, 1, 2, 3].map(zeros));
    let most = |place: usize| zeros[place] * 10 > quarter * 7;
    let few = |place: usize| zeros[place] * 10 < quarter;
    match quarter {
        0 => None,
        _ if most(2) && most(3) && few(0) || most(0) && most(1) && few(3) => Some("utf-32"),
        _ if most(1) && most(3) && few(0) && few(2) => Some("utf-16le"),
        _ if most(0) && most(2) && few(1) && few(3) => Some("utf-16be"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_begins_like_a_format_is_a_header() {
        for text in
            ["ORC_ID,n\na,1\n", "PARENT,n\n", "FEA1,b\n", "k,name1,DUCK\n", "$FL2,n\n", "[id],[name]\n"]
        {
            assert!(by_magic(text.as_bytes()).or(by_words(text.as_bytes())).is_none(), "{text}");
        }
        for bytes in [&b"ORC\x08\x03"[..], b"PARE\x15\x00", b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK\x40\x00"] {
            assert!(by_magic(bytes).is_some(), "{bytes:?}");
        }
    }

    #[test]
    fn a_private_key_is_known_behind_other_lines_and_signs() {
        for before in
            ["", "\n", "\n\n  ", "\u{200b}", "\u{feff}\u{200b}", "\"", "sep=,\n", "# comment\r", "a,b\n1,2\n"]
        {
            for key in [
                "tacit-ed25519-private xRJO8GiZ",
                "-----BEGIN OPENSSH PRIVATE KEY-----",
                "-----BEGIN PRIVATE KEY",
                "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----",
                "PuTTY-User-Key-File-3: ssh-ed25519",
                "AGE-SECRET-KEY-1QQQ",
            ] {
                assert!(private_key(format!("{before}{key}\n").as_bytes()).is_some(), "{before:?}{key}");
            }
        }
        let far = "a,b\r\n".repeat(60) + "tacit-ed25519-private x\r\n";
        assert!(private_key(far.as_bytes()).is_some());
        for table in ["private key,n\na,1\n", "-----BEGIN CERTIFICATE-----\nPRIVATE KEY\n", ""] {
            assert!(private_key(table.as_bytes()).is_none(), "{table}");
        }
    }

    #[test]
    fn text_of_wide_characters_is_known_without_a_mark_and_other_text_is_not() {
        let wide_of = |bytes: Vec<u8>| wide(&bytes);
        let text = "k,n\r\nZo\u{e9},1\r\n\u{141}ukasz,2\r\n";
        assert_eq!(wide_of(text.encode_utf16().flat_map(u16::to_le_bytes).collect()), Some("utf-16le"));
        assert_eq!(wide_of(text.encode_utf16().flat_map(u16::to_be_bytes).collect()), Some("utf-16be"));
        assert_eq!(wide_of(text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()), Some("utf-32"));
        assert_eq!(wide_of(text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()), Some("utf-32"));
        assert_eq!(wide_of(text.as_bytes().to_vec()), None);
        assert_eq!(wide_of(Vec::new()), None);
        assert_eq!(wide_of(b"k,n\na,\0\0\0\0\n".to_vec()), None);
    }
}
