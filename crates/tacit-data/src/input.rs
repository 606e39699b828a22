//! Where a table's bytes come from: a file or a stream, packed or not.
//!
//! A table is read twice, and a stream cannot be: what comes from standard input or a pipe is kept in a
//! nameless file, encrypted under a key that only this process knows and that is gone with it. Memory holds
//! one piece at a time. Gzip and zstd are known by their first bytes, whatever the file is called.

use crate::fault::{Error, Result};
use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tacit_crypto::Prg;
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
}

enum Place {
    File,
    Kept(Kept),
}

impl Input {
    /// Opens `path`; `-` is standard input. A stream is read to its end.
    pub fn open(path: &Path) -> Result<Self> {
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let (place, bytes) = if path == Path::new("-") {
            let kept = Kept::of(io::stdin().lock()).map_err(unreadable)?;
            let bytes = kept.bytes;
            (Place::Kept(kept), bytes)
        } else {
            let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::NotFound(path.to_owned()),
                _ => unreadable(error),
            })?;
            if metadata.is_file() {
                (Place::File, metadata.len())
            } else if is_stream(&metadata) {
                let kept = File::open(path).and_then(Kept::of).map_err(unreadable)?;
                let bytes = kept.bytes;
                (Place::Kept(kept), bytes)
            } else {
                return Err(Error::NotAFile(path.to_owned()));
            }
        };
        let mut input =
            Input { path: path.to_owned(), place, packing: Packing::Plain, bytes, done: Arc::default() };
        input.packing = Packing::of(input.reader()?.fill_buf().map_err(unreadable)?);
        Ok(input)
    }

    /// Its name, as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
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

    /// What it holds, unpacked, from the start.
    pub fn reader(&self) -> Result<Box<dyn BufRead>> {
        let unreadable = |source| Error::Unreadable { path: self.path.clone(), source };
        self.done.store(0, Ordering::Relaxed);
        let stored: Box<dyn Read> = match &self.place {
            Place::File => Box::new(File::open(&self.path).map_err(unreadable)?),
            Place::Kept(kept) => Box::new(kept.reader().map_err(unreadable)?),
        };
        let stored = BufReader::with_capacity(BUFFER, Counted { inner: stored, done: self.done.clone() });
        Ok(match self.packing {
            Packing::Plain => Box::new(stored),
            Packing::Gzip => {
                let inner = flate2::bufread::MultiGzDecoder::new(stored);
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "gzip" }))
            }
            Packing::Zstd => {
                let inner = zstd::Decoder::with_buffer(stored).map_err(unreadable)?;
                Box::new(BufReader::with_capacity(BUFFER, Unpacked { inner, packing: "zstd" }))
            }
        })
    }
}

impl Input {
    /// What it holds, as it is packed, for a reader that goes to and fro.
    pub(crate) fn stored(&self) -> Result<Stored> {
        let unreadable = |source| Error::Unreadable { path: self.path.clone(), source };
        self.done.store(0, Ordering::Relaxed);
        let (file, key, bytes) = match &self.place {
            Place::File => {
                let file = File::open(&self.path).map_err(unreadable)?;
                let bytes = file.metadata().map_err(unreadable)?.len();
                (file, None, bytes)
            }
            Place::Kept(kept) => {
                (kept.file.try_clone().map_err(unreadable)?, Some(kept.key.clone()), kept.bytes)
            }
        };
        Ok(Stored { file, key, bytes, at: 0, done: self.done.clone() })
    }
}

/// The bytes of an input, at any place. Knows its own place: clones share that of the file below.
pub(crate) struct Stored {
    file: File,
    key: Option<Zeroizing<[u8; 32]>>,
    bytes: u64,
    at: u64,
    done: Arc<AtomicU64>,
}

impl Stored {
    fn from(&self, at: u64) -> io::Result<Self> {
        let file = self.file.try_clone()?;
        Ok(Stored { file, key: self.key.clone(), bytes: self.bytes, at, done: self.done.clone() })
    }
}

impl Read for Stored {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.read(buffer)?;
        if let Some(key) = &self.key {
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
        let mut bytes = Vec::new();
        let read = self.from(start)?.take(length as u64).read_to_end(&mut bytes)?;
        if read != length {
            return Err(parquet::errors::ParquetError::EOF("the file ends too early".into()));
        }
        Ok(bytes.into())
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
        self.inner.read(buffer).map_err(|error| match error.kind() {
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

/// A stream's bytes in a nameless file, encrypted: piece `i` is XORed with what a generator gives from the
/// key of this process and `i`. Nothing else has the key, so nothing else can make sense of the file.
struct Kept {
    file: File,
    key: Zeroizing<[u8; 32]>,
    bytes: u64,
}

impl Kept {
    fn of(mut stream: impl Read) -> io::Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        Prg::from_os().fill_bytes(&mut key[..]);
        let mut kept = Kept { file: tempfile::tempfile()?, key, bytes: 0 };
        let mut piece = Zeroizing::new(vec![0; BUFFER]);
        loop {
            let mut full = 0;
            while full < piece.len() {
                match stream.read(&mut piece[full..]) {
                    Ok(0) => break,
                    Ok(read) => full += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            mask(&kept.key, kept.bytes, &mut piece[..full]);
            kept.file.write_all(&piece[..full])?;
            kept.bytes += full as u64;
            if full < piece.len() {
                return Ok(kept);
            }
        }
    }

    fn reader(&self) -> io::Result<KeptReader> {
        // A clone shares its position: readers of one input are used one after another.
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(KeptReader { file, key: self.key.clone(), at: 0 })
    }
}

struct KeptReader {
    file: File,
    key: Zeroizing<[u8; 32]>,
    at: u64,
}

impl Read for KeptReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        mask(&self.key, self.at, &mut buffer[..read]);
        self.at += read as u64;
        Ok(read)
    }
}

/// XORs `bytes`, which stand at `at` of the stream, with the key's stream.
fn mask(key: &[u8; 32], at: u64, bytes: &mut [u8]) {
    let mut stream = blake3::Hasher::new_keyed(key).finalize_xof();
    stream.set_position(at);
    let mut pad = Zeroizing::new(vec![0; bytes.len()]);
    stream.fill(&mut pad);
    bytes.iter_mut().zip(pad.iter()).for_each(|(byte, pad)| *byte ^= pad);
}
