//! Text in other encodings than UTF-8: by their names, decoded without a replacement for what they do not have, and
//! guessed from text that is not UTF-8.

use crate::fault::{Error, Result};
use crate::input::Input;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, UTF_8, UTF_16BE, UTF_16LE, X_USER_DEFINED};
use std::io::{self, BufRead, Read};
use std::path::Path;

/// An encoding of text, by one of the names that the Encoding Standard of the web knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl Encoding {
    /// Of a name in upper or lower case, such as `windows-1252`, `cp1252`, `shift_jis` or `utf-16le`.
    pub fn named(name: &str) -> Option<Self> {
        let found = encoding_rs::Encoding::for_label_no_replacement(name.as_bytes());
        found.filter(|found| *found != X_USER_DEFINED).map(Encoding)
    }

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        name(self.0)
    }

    /// Whether there is nothing to decode.
    pub(crate) fn is_utf8(self) -> bool {
        self.0 == UTF_8
    }
}

impl std::fmt::Debug for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The mark of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// The encodings' names in lower case, of those that a file is likely to have.
const NAMES: &[&str] = &[
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1253",
    "windows-1254",
    "windows-1255",
    "windows-1256",
    "windows-1257",
    "windows-1258",
    "windows-874",
    "iso-8859-2",
    "iso-8859-3",
    "iso-8859-4",
    "iso-8859-5",
    "iso-8859-6",
    "iso-8859-7",
    "iso-8859-8",
    "iso-8859-10",
    "iso-8859-13",
    "iso-8859-14",
    "iso-8859-15",
    "iso-8859-16",
    "koi8-r",
    "koi8-u",
    "ibm866",
    "macintosh",
    "x-mac-cyrillic",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "euc-kr",
    "gbk",
    "gb18030",
    "big5",
];

fn name(of: &'static encoding_rs::Encoding) -> &'static str {
    NAMES.iter().find(|name| name.eq_ignore_ascii_case(of.name())).copied().unwrap_or("another encoding")
}

/// The encoding of text that begins with `start`: the one that its byte order mark names, or else the one that the
/// caller has `named`.
///
/// Errors: [`Error::Marked`] where the two differ.
pub(crate) fn of(path: &Path, start: &[u8], named: Option<Encoding>) -> Result<Option<Encoding>> {
    // One of UTF-32 begins as one of UTF-16 does.
    let marked = encoding_rs::Encoding::for_bom(start).filter(|_| !start.starts_with(b"\xff\xfe\0\0"));
    let Some((marked, _)) = marked else { return Ok(named) };
    match named {
        Some(named) if named.0 != marked => {
            let (path, marked, named) = (path.to_owned(), name(marked), named.name());
            Err(Error::Marked { path, marked, named })
        }
        Some(_) => Ok(named),
        None => Ok(Some(Encoding(marked)).filter(|marked| !marked.is_utf8())),
    }
}

/// How text of this encoding begins, in UTF-8 and without byte order marks. What is torn or foreign at its end is
/// replaced: this is to know a file by, and not its content.
pub(crate) fn beginning(start: &[u8], encoding: Option<Encoding>) -> Vec<u8> {
    let text = match encoding {
        Some(encoding) => encoding.0.decode_with_bom_removal(start).0.into_owned().into_bytes(),
        None => start.to_vec(),
    };
    let mut rest = &text[..];
    while let Some(behind) = rest.strip_prefix(BYTE_ORDER_MARK) {
        rest = behind;
    }
    rest.to_vec()
}

/// The encoding that bytes which are not UTF-8 seem to have; nothing if it does not have all of them.
pub(crate) fn guess(bytes: &[u8]) -> Option<&'static str> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let found = detector.guess(None, Utf8Detection::Deny);
    // Of others the last character may be torn.
    let is_whole = !found.is_single_byte()
        || found
            .decode_without_bom_handling_and_without_replacement(bytes)
            .is_some_and(|text| !text.contains(|c: char| ('\u{80}'..='\u{9f}').contains(&c)));
    (found != UTF_8 && is_whole).then(|| name(found))
}

/// The error about bytes at a place of `input` that are not UTF-8, `near` which a guess is made. A file that is UTF-8
/// but for a few bytes has no other encoding.
pub(crate) fn invalid(input: &Input, (line, column): (u64, u64), near: &[u8]) -> Error {
    let path = input.path().to_owned();
    let found = || Found::of(input.reader().ok()?).ok();
    match path.is_file() && found() == Some(Found::MostlyUtf8) {
        true => Error::MostlyUtf8 { path, line },
        false => Error::InvalidUtf8 { path, line, column, looks_like: guess(near) },
    }
}

/// What the text of a file is encoded in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// ASCII, which is the same in nearly all.
    Any,
    Utf8,
    /// UTF-8 but for a few bytes.
    MostlyUtf8,
    /// Another one, where there is a guess.
    Other(Option<&'static str>),
}

impl Found {
    /// The encoding of a whole text without a mark of its own.
    pub(crate) fn of(mut text: impl Read) -> io::Result<Self> {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        let (mut valid, mut invalid) = (0u64, 0u64);
        let (mut bytes, mut torn) = (vec![0; PIECE], 0);
        loop {
            let read = match text.read(&mut bytes[torn..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            detector.feed(&bytes[torn..torn + read], read == 0);
            let whole = &bytes[..torn + read];
            let mut left = 0;
            for chunk in whole.utf8_chunks() {
                valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count() as u64;
                let rest = chunk.invalid();
                // A character may go on behind what was read.
                let is_torn = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
                match is_torn && read > 0 && whole.ends_with(rest) {
                    true => left = rest.len(),
                    false => invalid += u64::from(!rest.is_empty()),
                }
            }
            if read == 0 {
                break;
            }
            let end = torn + read;
            bytes.copy_within(end - left..end, 0);
            torn = left;
        }
        Ok(match (valid, invalid) {
            (0, 0) => Found::Any,
            (_, 0) => Found::Utf8,
            // In another encoding hardly anything is UTF-8 by chance.
            _ if valid >= MOSTLY * invalid => Found::MostlyUtf8,
            _ => {
                let found = detector.guess(None, Utf8Detection::Deny);
                Found::Other((found != UTF_8).then(|| name(found)))
            }
        })
    }

    /// As errors call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Found::Any | Found::Utf8 => "utf-8",
            Found::MostlyUtf8 => "utf-8 with invalid bytes",
            Found::Other(Some(name)) => name,
            Found::Other(None) => "another encoding",
        }
    }
}

/// Characters of UTF-8 for each that is none, in a text that is UTF-8 but for a few bytes.
const MOSTLY: u64 = 2;

/// That bytes are not of the encoding, which ends the text.
#[derive(Debug, thiserror::Error)]
#[error("bytes that the encoding does not have")]
struct Foreign;

/// Whether reading ended by bytes that the encoding does not have.
pub(crate) fn is_foreign(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Foreign>())
}

/// Bytes of UTF-8 that are made at once.
const PIECE: usize = 1 << 16;

/// The text of `inner` in UTF-8, without a byte order mark.
pub(crate) struct Decoded<R> {
    inner: R,
    decoder: encoding_rs::Decoder,
    /// Of an encoding of single bytes those that it leaves open become control characters, by the web's rules.
    refuses_controls: bool,
    made: Vec<u8>,
    at: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Going,
    Ended,
    Foreign,
}

impl<R: BufRead> Decoded<R> {
    pub(crate) fn new(inner: R, encoding: Encoding) -> Self {
        let wide = [UTF_16LE, UTF_16BE].contains(&encoding.0);
        Decoded {
            inner,
            decoder: encoding.0.new_decoder_with_bom_removal(),
            refuses_controls: encoding.0.is_single_byte() && !wide,
            made: Vec::new(),
            at: 0,
            state: State::Going,
        }
    }

    fn decode(&mut self) -> io::Result<()> {
        let bytes = self.inner.fill_buf()?;
        let is_last = bytes.is_empty();
        self.made.resize(PIECE, 0);
        self.at = 0;
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(bytes, &mut self.made, is_last);
        self.inner.consume(read);
        self.made.truncate(written);
        match result {
            DecoderResult::Malformed(..) => self.state = State::Foreign,
            DecoderResult::InputEmpty if is_last => self.state = State::Ended,
            DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
        }
        if self.refuses_controls {
            let is_control = |at: &usize| matches!(self.made.get(at + 1), Some(0x80..=0x9f));
            if let Some(at) = memchr::memchr_iter(0xc2, &self.made).find(is_control) {
                self.made.truncate(at);
                self.state = State::Foreign;
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.made.len() {
            match self.state {
                State::Going => self.decode()?,
                State::Ended => return Ok(0),
                State::Foreign => return Err(io::Error::new(io::ErrorKind::InvalidData, Foreign)),
            }
        }
        let read = buffer.len().min(self.made.len() - self.at);
        buffer[..read].copy_from_slice(&self.made[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            (buffer[0], self.0) = (*first, rest);
            Ok(1)
        }
    }

    #[test]
    fn a_few_bad_bytes_do_not_make_another_encoding_of_utf8() {
        let of = |bytes: &[u8]| {
            let found = Found::of(bytes).unwrap();
            assert_eq!(found, Found::of(Slow(bytes)).unwrap());
            found
        };
        let good = "José Müller 木\n".repeat(50).into_bytes();
        assert_eq!((of(b"a,b\n"), of(&good)), (Found::Any, Found::Utf8));
        assert_eq!(of(&[&good[..], b"Zo\xeb\n"].concat()), Found::MostlyUtf8);
        assert_eq!(of(&[&good[..], b"Zo\xc3"].concat()), Found::MostlyUtf8);
        assert_eq!(of(b"name,city\nZo\xeb,K\xf6ln\nJos\xe9,M\xe1laga\n"), Found::Other(Some("windows-1252")));
    }

    fn decoded(bytes: &[u8], name: &str) -> (String, bool) {
        let mut text = Vec::new();
        // A byte at a time, so that characters are torn.
        let inner = io::BufReader::with_capacity(1, bytes);
        let end = Decoded::new(inner, Encoding::named(name).unwrap()).read_to_end(&mut text);
        (String::from_utf8(text).unwrap(), end.is_err_and(|error| is_foreign(&error)))
    }

    #[test]
    fn text_is_decoded_as_its_encoding_has_it_and_ends_where_it_does_not() {
        assert_eq!(decoded(b"Zo\xeb\x80", "cp1252"), ("Zoë€".into(), false));
        assert_eq!(decoded(b"a\x81b", "windows-1252"), ("a".into(), true));
        assert_eq!(decoded(b"a\xff", "windows-1255"), ("a".into(), true));
        assert_eq!(decoded(b"\xcf\xf0\xe8", "windows-1251"), ("При".into(), false));
        assert_eq!(decoded(b"\x93\xfa\x96{", "shift_jis"), ("日本".into(), false));
        assert_eq!(decoded(b"a\x93", "shift_jis"), ("a".into(), true));
        assert_eq!(decoded(b"\xff\xfea\0\x3d\xd8\0\xde", "utf-16le"), ("a😀".into(), false));
        assert_eq!(decoded(b"\0a\xd8\x3d", "utf-16be"), ("a".into(), true));
        assert_eq!(decoded(b"a\0b", "utf-16le"), ("a".into(), true));
    }

    #[test]
    fn names_are_those_of_the_web_and_a_guess_is_one_of_them() {
        for known in NAMES {
            assert_eq!(Encoding::named(known).map(Encoding::name), Some(*known));
        }
        assert_eq!(Encoding::named("Latin1").map(Encoding::name), Some("windows-1252"));
        for unknown in ["", "utf-32", "iso-2022-kr", "x-user-defined", "cp437"] {
            assert_eq!(Encoding::named(unknown), None, "{unknown}");
        }
        assert_eq!(guess(b"name,city\nZo\xeb,K\xf6ln\nJos\xe9,M\xe1laga\n"), Some("windows-1252"));
        assert_eq!(guess(b"\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0"), Some("windows-1251"));
        // CP437, in which windows-1252 has no such byte.
        assert_ne!(guess(b"Jos\x82\nM\x81ller,K\x94ln\n"), Some("windows-1252"));
    }
}
