//! Where a table's bytes come from: a file or a stream, packed or not.
//!
//! A table is read twice, and a stream cannot be: what comes from standard input or a pipe is kept in a
//! nameless file, encrypted under a key that only this process knows and that is gone with it. Memory holds
//! one piece at a time. What a database answers is kept so too: it is asked once, and what is read again is
//! what it said. An object in a store is read again, and is refused if it changed. Gzip and zstd are known by
//! their first bytes, whatever the file is called.

use crate::fault::{Error, Result, gave_up};
use crate::kept::{Kept, mask};
use crate::object::Object;
use crate::place::{self, Place as Lead};
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
}

impl Packing {
    /// What the `start` of a file shows.
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
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
            Packing::Plain => Packer::Plain(output),
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
    bytes: u64,
    done: Arc<AtomicU64>,
    /// Of what a database answered or a workbook holds, in place of the bytes that we keep.
    answer: Option<[u8; 32]>,
    /// Cells that hold errors and count as empty.
    emptied: u64,
}

enum Place {
    File,
    Kept(Kept),
    Object(Arc<Object>),
}

impl Input {
    /// Opens `path`; `-` is standard input. A stream is read to its end, and so is what a database answers.
    pub fn open(path: &Path) -> Result<Self> {
        let of = |path: PathBuf, place, bytes, answer| Input {
            path,
            place,
            packing: Packing::Plain,
            bytes,
            done: Arc::default(),
            answer,
            emptied: 0,
        };
        let mut input = match Lead::of(path).map_err(|what| Error::address(path, what))? {
            lead @ (Lead::Query | Lead::Driver) => {
                let shown = place::shown(path);
                let failed = |panicked: Panicked| Error::Remote { path: shown, what: gave_up(&panicked) };
                let read = if lead == Lead::Query { database::read } else { adbc::read };
                let (kept, answer) = fenced(|| read(path)).map_err(failed)??;
                return Ok(Input::kept(&place::shown(path), kept, answer, 0));
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
                let (place, bytes) = Self::local(path)?;
                of(path.to_owned(), place, bytes, None)
            }
        };
        let packing = Packing::of(input.reader()?.fill_buf().map_err(|error| input.unreadable(error))?);
        input.packing = packing;
        Ok(input)
    }

    /// A table that was read already and is kept as an Arrow file; `digest` is of what was read, and `emptied`
    /// cells of it held errors.
    pub(crate) fn kept(path: &Path, kept: Kept, digest: [u8; 32], emptied: u64) -> Self {
        let bytes = kept.bytes();
        let (packing, done) = (Packing::Plain, Arc::default());
        Input {
            path: path.to_owned(),
            place: Place::Kept(kept),
            packing,
            bytes,
            done,
            answer: Some(digest),
            emptied,
        }
    }

    /// How many cells held errors and count as empty.
    pub(crate) fn emptied(&self) -> u64 {
        self.emptied
    }

    fn local(path: &Path) -> Result<(Place, u64)> {
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
        if metadata.is_file() {
            Ok((Place::File, metadata.len()))
        } else if is_stream(&metadata) {
            let kept = File::open(path).and_then(Kept::of).map_err(unreadable)?;
            let bytes = kept.bytes();
            Ok((Place::Kept(kept), bytes))
        } else {
            Err(Error::NotAFile(path.to_owned()))
        }
    }

    /// Its name, as the caller gave it, without a password.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is what a database answered, a workbook, or CSV that was read already: what goes out as CSV
    /// unless its name says otherwise.
    pub(crate) fn is_answer(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether it lies in a store, where each look at a part is a request.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.place, Place::Object(_))
    }

    /// That reading it failed: by what another machine said, if it lies there.
    pub(crate) fn unreadable(&self, source: io::Error) -> Error {
        self.fault().unwrap_or_else(|| Error::Unreadable { path: self.path.clone(), source })
    }

    /// What another machine said when it was last read, if that failed.
    pub(crate) fn fault(&self) -> Option<Error> {
        match &self.place {
            Place::Object(object) => object.fault(),
            Place::File | Place::Kept(_) => None,
        }
    }

    /// A digest of what it holds, as it is packed: the BLAKE3 hash of a file's bytes; of what a database
    /// answered one of the columns' names and types and of all cells.
    pub fn digest(&self) -> Result<[u8; 32]> {
        if let Some(answer) = self.answer {
            return Ok(answer);
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

    /// Its bytes as it is packed, from the start.
    fn as_stored(&self) -> Result<Box<dyn Read>> {
        Ok(match &self.place {
            Place::File => Box::new(File::open(&self.path).map_err(|error| self.unreadable(error))?),
            Place::Kept(kept) => Box::new(kept.reader().map_err(|error| self.unreadable(error))?),
            Place::Object(object) => Box::new(object.stream()),
        })
    }

    /// What it holds, unpacked, from the start.
    pub fn reader(&self) -> Result<Box<dyn BufRead>> {
        self.done.store(0, Ordering::Relaxed);
        let stored = self.as_stored()?;
        let stored = BufReader::with_capacity(BUFFER, Counted { inner: stored, done: self.done.clone() });
        Ok(match self.packing {
            Packing::Plain => Box::new(stored),
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
                let file = File::open(&self.path).map_err(unreadable)?;
                let bytes = file.metadata().map_err(unreadable)?.len();
                (Bulk::File(file), bytes)
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
    Kept(File, Zeroizing<[u8; 32]>),
    Object(Arc<Object>),
}

impl Stored {
    fn from(&self, at: u64) -> io::Result<Self> {
        let place = match &self.place {
            Bulk::File(file) => Bulk::File(file.try_clone()?),
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
            Bulk::File(_) | Bulk::Kept(..) => {
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
                    format!("its {packing} data is damaged or cut short; make the file again"),
                )
            }
        })
    }
}
