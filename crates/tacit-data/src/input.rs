//! Where a table's bytes come from: a file or a stream, packed or not.
//!
//! A table is read twice, and a stream cannot be: what comes from standard input or a pipe is kept in a
//! nameless file, encrypted under a key that only this process knows and that is gone with it. Memory holds
//! one piece at a time. What a database answers is kept so too: it is asked once, and what is read again is
//! what it said. An object in a store is read again, and is refused if it changed; so is a file of columns, and one
//! that was opened to be recorded ([`Input::open_pinned`]). How a file is packed is known by its first bytes, whatever it is called.

use crate::fault::{Error, Result, gave_up};
use crate::kept::{Kept, mask};
use crate::lines::RowLines;
use crate::object::Object;
use crate::pinned::{self, Pinned};
use crate::place::{self, Place as Lead};
use crate::reread::LastRead;
use crate::zipped::Member;
use crate::{adbc, database, web};
use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tacit_crypto::fence::{Panicked, fenced};
use zeroize::Zeroizing;

/// Bytes that are read at once.
pub(crate) const BUFFER: usize = 1 << 17;

/// Bytes that a file is known by: a tar archive says what it is behind the first 256.
pub(crate) const KNOWN_BY: u64 = 1 << 12;
/// Memory for the dictionary of an xz file, in KiB: its header may ask for 4 GiB, `xz -9` takes 64 MiB.
const XZ_KIB: u32 = 1 << 18;

/// How a table's bytes are packed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Packing {
    /// Not at all.
    #[default]
    Plain,
    /// By gzip (RFC 1952).
    Gzip,
    /// By zstd (RFC 8878).
    Zstd,
    /// By xz; outputs are not.
    Xz,
    /// By bzip2; outputs are not.
    Bzip2,
    /// In a zip archive, as its only file; outputs are not.
    Zip,
}

impl Packing {
    /// What the `start` of a file shows.
    pub(crate) fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            // The size of blocks, and the mark of the first one or of the end.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Packing::Bzip2,
            // A file's header, or the directory of an archive without one.
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Packing::Zip,
            _ => Packing::Plain,
        }
    }

    /// What a file of this name holds; `None` if the name does not say.
    pub fn by_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "gz" => Some(Packing::Gzip),
            "zst" | "zstd" => Some(Packing::Zstd),
            "csv" | "tsv" | "txt" => Some(Packing::Plain),
            _ => None,
        }
    }

    /// Packs what is written to the result, which goes to `output`.
    pub(crate) fn pack<'a, W: Write>(self, output: &'a mut W) -> io::Result<Packer<'a, W>> {
        Ok(match self {
            Packing::Plain | Packing::Xz | Packing::Bzip2 | Packing::Zip => Packer::Plain(output),
            Packing::Gzip => {
                Packer::Gzip(flate2::write::GzEncoder::new(output, flate2::Compression::default()))
            }
            Packing::Zstd => Packer::Zstd(zstd::Encoder::new(output, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }
}

/// A writer that packs.
pub(crate) enum Packer<'a, W: Write> {
    Plain(&'a mut W),
    Gzip(flate2::write::GzEncoder<&'a mut W>),
    Zstd(zstd::Encoder<'static, &'a mut W>),
}

impl<W: Write> Packer<'_, W> {
    /// Ends the packed stream.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Packer::Plain(output) => output.flush(),
            Packer::Gzip(encoder) => encoder.finish()?.flush(),
            Packer::Zstd(encoder) => encoder.finish()?.flush(),
        }
    }
}

impl<W: Write> Write for Packer<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packer::Plain(output) => output.write(bytes),
            Packer::Gzip(encoder) => encoder.write(bytes),
            Packer::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packer::Plain(output) => output.flush(),
            Packer::Gzip(encoder) => encoder.flush(),
            Packer::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// A file or a stream that can be read any number of times.
pub struct Input {
    path: PathBuf,
    place: Place,
    packing: Packing,
    /// Of a zip archive, where its one file lies.
    member: Option<Member>,
    bytes: u64,
    done: Arc<AtomicU64>,
    last_read: LastRead,
    /// Of what a database answered, or of the file that columns were made of, in place of the bytes that we keep.
    answer: Option<[u8; 32]>,
    /// Whether columns were made of JSON lines.
    is_json: bool,
    /// Whether it was made of a sheet, whose first row has the columns' names.
    is_sheet: bool,
    /// Of columns that were made of a CSV file, where its rows start.
    lines: Option<RowLines>,
    /// Cells that hold errors and count as empty.
    emptied: u64,
}

enum Place {
    File,
    Pinned(Arc<Pinned>),
    Kept(Kept),
    Object(Arc<Object>),
}

impl Input {
    /// Opens `path`; `-` is standard input. A stream is read to its end, and so is what a database answers.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(path, false)
    }

    /// As [`open`](Self::open), for a table whose digest is recorded: every byte that is read later is one that the
    /// digest is of. A file is read once for that; where it changes afterwards, reading it is
    /// [`Error::Changed`].
    pub fn open_pinned(path: &Path) -> Result<Self> {
        Self::of(path, true)
    }

    fn of(path: &Path, is_pinned: bool) -> Result<Self> {
        let of = |path: PathBuf, place, bytes, answer| Input {
            path,
            place,
            packing: Packing::Plain,
            member: None,
            bytes,
            done: Arc::default(),
            last_read: LastRead::default(),
            answer,
            is_json: false,
            is_sheet: false,
            lines: None,
            emptied: 0,
        };
        let mut input = match Lead::of(path).map_err(|what| Error::address(path, what))? {
            lead @ (Lead::Query | Lead::Driver) => {
                let shown = place::shown(path);
                let failed = |panicked: Panicked| Error::Remote { path: shown, what: gave_up(&panicked) };
                let read = if lead == Lead::Query { database::read } else { adbc::read };
                let (kept, answer) = fenced(|| read(path)).map_err(failed)??;
                return Ok(Input::kept(&place::shown(path), kept, answer));
            }
            Lead::Web => {
                let kept = web::read(path)?;
                let bytes = kept.bytes();
                of(place::shown(path), Place::Kept(kept), bytes, None)
            }
            Lead::Object { .. } => {
                let object = Object::open(path)?;
                let bytes = object.bytes();
                of(place::shown(path), Place::Object(Arc::new(object)), bytes, None)
            }
            Lead::Local => {
                let (place, bytes) = Self::local(path, is_pinned)?;
                of(path.to_owned(), place, bytes, None)
            }
        };
        input.packing = Packing::of(&input.start()?);
        if input.packing == Packing::Zip {
            input.member = Member::find(&input.path, input.stored()?)?;
            // A workbook is an archive, and is read as it is.
            if input.member.is_none() {
                input.packing = Packing::Plain;
            }
        }
        Ok(input)
    }

    fn local(path: &Path, is_pinned: bool) -> Result<(Place, u64)> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        if path == Path::new("-") {
            let kept = Kept::of(io::stdin().lock()).map_err(unreadable)?;
            let bytes = kept.bytes();
            return Ok((Place::Kept(kept), bytes));
        }
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound(path.to_owned()),
            _ => unreadable(error),
        })?;
        if metadata.is_file() && is_pinned {
            let pinned = Pinned::of(path).map_err(unreadable)?;
            let bytes = pinned.bytes();
            Ok((Place::Pinned(Arc::new(pinned)), bytes))
        } else if metadata.is_file() {
            Ok((Place::File, metadata.len()))
        } else if is_stream(&metadata) {
            let kept = File::open(path).and_then(Kept::of).map_err(unreadable)?;
            let bytes = kept.bytes();
            Ok((Place::Kept(kept), bytes))
        } else {
            Err(Error::NotAFile(path.to_owned()))
        }
    }

    /// The same, of which later reads give what was read before, or nothing: for a file that is not read through.
    pub(crate) fn watched(mut self) -> Result<Self> {
        if matches!(self.place, Place::File) {
            let pinned = Pinned::open(&self.path).map_err(|error| self.unreadable(error))?;
            self.bytes = pinned.bytes();
            self.place = Place::Pinned(Arc::new(pinned));
        }
        Ok(self)
    }

    /// A table that was read already and is kept as an Arrow file; `digest` is of what was read.
    pub(crate) fn kept(path: &Path, kept: Kept, digest: [u8; 32]) -> Self {
        Input {
            path: path.to_owned(),
            bytes: kept.bytes(),
            place: Place::Kept(kept),
            packing: Packing::Plain,
            member: None,
            done: Arc::default(),
            last_read: LastRead::default(),
            answer: Some(digest),
            is_json: false,
            is_sheet: false,
            lines: None,
            emptied: 0,
        }
    }

    /// The same, made of JSON lines.
    pub(crate) fn of_json(self) -> Self {
        Input { is_json: true, ..self }
    }

    /// The same, made of a CSV file whose rows start on these lines.
    pub(crate) fn of_rows(self, lines: RowLines) -> Self {
        Input { lines: Some(lines), ..self }
    }

    /// The same, made of a workbook of which so many cells held errors and count as empty.
    pub(crate) fn of_workbook(self, emptied: u64) -> Self {
        Input { emptied, is_sheet: true, ..self }
    }

    /// Whether the names of its columns are cells of a first line or row, and may be data.
    pub(crate) fn has_first_line(&self) -> bool {
        self.is_sheet || self.lines.is_some()
    }

    /// How many cells held errors and count as empty.
    pub(crate) fn emptied(&self) -> u64 {
        self.emptied
    }

    /// Where the rows start of the CSV file that columns were made of.
    pub(crate) fn lines(&self) -> Option<&RowLines> {
        self.lines.as_ref()
    }

    /// Its name, as the caller gave it, without a password.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is what a database answered, or made of lines, of a workbook or of CSV among other files: an
    /// output has no format from it.
    pub(crate) fn is_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether columns were made of JSON lines.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether it lies in a store, where each look at a part is a request.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.place, Place::Object(_))
    }

    /// That reading it failed: by what another machine said, if it lies there.
    pub(crate) fn unreadable(&self, source: io::Error) -> Error {
        self.fault().unwrap_or_else(|| Error::Unreadable { path: self.path.clone(), source })
    }

    /// What another machine said when it was last read, if that failed, or that the file is not the one that was
    /// pinned.
    pub(crate) fn fault(&self) -> Option<Error> {
        match &self.place {
            Place::Object(object) => object.fault(),
            Place::Pinned(pinned) => pinned.is_changed().then(|| Error::Changed(self.path.clone())),
            Place::File | Place::Kept(_) => None,
        }
    }

    /// A digest of what it holds, as it is packed: the BLAKE3 hash of a file's bytes; of what a database
    /// answered one of the columns' names and types and of all cells.
    pub fn digest(&self) -> Result<[u8; 32]> {
        if let Some(answer) = self.answer {
            return Ok(answer);
        }
        if let Place::Pinned(pinned) = &self.place
            && let Some(digest) = pinned.digest()
        {
            return Ok(digest);
        }
        let mut hasher = blake3::Hasher::new();
        let mut stored = self.as_stored()?;
        let mut buffer = vec![0; BUFFER];
        loop {
            match stored.read(&mut buffer) {
                Ok(0) => return Ok(*hasher.finalize().as_bytes()),
                Ok(read) => _ = hasher.update(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(error)),
            }
        }
    }

    /// The same of what the last [`reader`](Self::reader) has read to its end, without another reading.
    pub(crate) fn digest_as_read(&self) -> Result<[u8; 32]> {
        match self.last_read() {
            // Of a zip archive the member alone was hashed.
            Some(read) if self.member.is_none() && self.answer.is_none() => Ok(read),
            _ => self.digest(),
        }
    }

    /// How it is packed.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Its size in bytes, as it is packed, when it was opened.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many of these bytes have been read since it was last opened.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The BLAKE3 hash of the bytes that the last [`reader`](Self::reader) read, as they are packed, if it has
    /// come to their end. Of a pinned file no reading gives others than those that were hashed.
    pub fn last_read(&self) -> Option<[u8; 32]> {
        match &self.place {
            Place::Pinned(pinned) => pinned.digest().or_else(|| self.last_read.digest()),
            _ => self.last_read.digest(),
        }
    }

    /// The file by its name, once more: a pipe that has come in its place would be waited for.
    fn reopened(&self) -> Result<File> {
        let metadata = std::fs::metadata(&self.path).map_err(|error| self.unreadable(error))?;
        if !metadata.is_file() {
            return Err(Error::Changed(self.path.clone()));
        }
        File::open(&self.path).map_err(|error| self.unreadable(error))
    }

    /// Its bytes as it is packed, from the start.
    fn as_stored(&self) -> Result<Box<dyn Read>> {
        Ok(match &self.place {
            Place::File => Box::new(self.reopened()?),
            Place::Pinned(pinned) => {
                pinned.start_again();
                Box::new(pinned::Bytes { pinned: pinned.clone(), at: 0 })
            }
            Place::Kept(kept) => Box::new(kept.reader().map_err(|error| self.unreadable(error))?),
            Place::Object(object) => Box::new(object.stream()),
        })
    }

    /// The first bytes of what it holds, unpacked: all, or enough to know it by. One that cannot be unpacked
    /// is known by what can.
    pub(crate) fn start(&self) -> Result<Vec<u8>> {
        let mut start = Vec::new();
        let read = self.reader()?.take(KNOWN_BY).read_to_end(&mut start);
        match read {
            Err(error) if start.is_empty() => Err(self.unreadable(error)),
            _ => Ok(start),
        }
    }

    /// What it holds, unpacked, from the start.
    pub fn reader(&self) -> Result<Box<dyn BufRead>> {
        self.done.store(0, Ordering::Relaxed);
        if let Some(member) = self.member {
            let inner = member.unpack(self.stored()?, BUFFER).map_err(|error| self.unreadable(error))?;
            let inner = self.last_read.of(Unpacked { inner, packing: "zip" });
            return Ok(Box::new(BufReader::with_capacity(BUFFER, inner)));
        }
        let stored: Box<dyn Read> = match &self.place {
            Place::Pinned(pinned) if pinned.digest().is_some() => self.as_stored()?,
            _ => Box::new(self.last_read.of(self.as_stored()?)),
        };
        let stored = BufReader::with_capacity(BUFFER, Counted { inner: stored, done: self.done.clone() });
        Ok(match self.packing {
            Packing::Plain | Packing::Zip => Box::new(stored),
            Packing::Xz => {
                let inner = lzma_rust2::XzReader::new_mem_limit(stored, true, XZ_KIB);
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "xz" }))
            }
            Packing::Bzip2 => {
                let inner = bzip2::bufread::MultiBzDecoder::new(stored);
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "bzip2" }))
            }
            Packing::Gzip => {
                let inner = flate2::bufread::MultiGzDecoder::new(stored);
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "gzip" }))
            }
            Packing::Zstd => {
                let inner = zstd::Decoder::with_buffer(stored).map_err(|error| self.unreadable(error))?;
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "zstd" }))
            }
        })
    }
}

impl Input {
    /// What it holds, as it is packed, for a reader that goes to and fro.
    pub(crate) fn stored(&self) -> Result<Stored> {
        self.done.store(0, Ordering::Relaxed);
        let unreadable = |error| self.unreadable(error);
        let (place, bytes) = match &self.place {
            Place::File => {
                let file = self.reopened()?;
                let bytes = file.metadata().map_err(unreadable)?.len();
                (Bulk::File(file), bytes)
            }
            Place::Pinned(pinned) => {
                pinned.start_again();
                (Bulk::Pinned(pinned.clone()), pinned.bytes())
            }
            Place::Kept(kept) => (Bulk::Kept(kept.file().map_err(unreadable)?, kept.key()), kept.bytes()),
            Place::Object(object) => (Bulk::Object(object.clone()), object.bytes()),
        };
        Ok(Stored { place, bytes, at: 0, done: self.done.clone() })
    }
}

/// The bytes of an input, at any place. Knows its own place: clones share that of the file below.
pub(crate) struct Stored {
    place: Bulk,
    bytes: u64,
    at: u64,
    done: Arc<AtomicU64>,
}

enum Bulk {
    File(File),
    Pinned(Arc<Pinned>),
    Kept(File, Zeroizing<[u8; 32]>),
    Object(Arc<Object>),
}

impl Stored {
    fn from(&self, at: u64) -> io::Result<Self> {
        let place = match &self.place {
            Bulk::File(file) => Bulk::File(file.try_clone()?),
            Bulk::Pinned(pinned) => Bulk::Pinned(pinned.clone()),
            Bulk::Kept(file, key) => Bulk::Kept(file.try_clone()?, key.clone()),
            Bulk::Object(object) => Bulk::Object(object.clone()),
        };
        Ok(Stored { place, bytes: self.bytes, at, done: self.done.clone() })
    }
}

impl Read for Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.place {
            Bulk::Object(object) => object.read_at(self.at, buffer)?,
            Bulk::Pinned(pinned) => pinned.read_at(self.at, buffer)?,
            Bulk::File(file) | Bulk::Kept(file, _) => {
                file.seek(SeekFrom::Start(self.at))?;
                file.read(buffer)?
            }
        };
        if let Bulk::Kept(_, key) = &self.place {
            mask(key, self.at, &mut buffer[..read]);
        }
        self.at += read as u64;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Stored {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Length for Stored {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Stored {
    type T = BufReader<Stored>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(self.from(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = match &self.place {
            Bulk::Object(object) => {
                let bytes = object.bytes_at(start, length)?;
                self.done.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                bytes
            }
            Bulk::File(_) | Bulk::Pinned(_) | Bulk::Kept(..) => {
                let mut bytes = Vec::new();
                self.from(start)?.take(length as u64).read_to_end(&mut bytes)?;
                bytes.into()
            }
        };
        if bytes.len() != length {
            return Err(parquet::errors::ParquetError::EOF("the file ends too early".into()));
        }
        Ok(bytes)
    }
}

#[cfg(unix)]
fn is_stream(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn is_stream(_: &Metadata) -> bool {
    false
}

struct Counted<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Unpacks, and says in plain words that this failed.
struct Unpacked<R> {
    inner: R,
    packing: &'static str,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read =
            fenced(|| self.inner.read(buffer)).unwrap_or_else(|_| Err(io::ErrorKind::InvalidData.into()));
        read.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kind => {
                let packing = self.packing;
                io::Error::new(
                    kind,
                    format!("its {packing} data is damaged or truncated; make the file again"),
                )
            }
        })
    }
}
