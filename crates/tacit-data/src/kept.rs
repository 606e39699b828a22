//! Bytes that are kept to be read again: of a stream, and of what a database answered.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use tacit_crypto::Prg;
use zeroize::Zeroizing;

/// Bytes that are encrypted together.
const PIECE: usize = 1 << 17;

/// Rows of a batch of columns, at most, and its cells, of which each takes some bytes though it be empty.
const ROWS_OF_BATCH: usize = 8192;
const MOST_CELLS: usize = 1 << 20;

/// Rows of a batch of so many columns.
pub(crate) fn rows_of_batch(columns: usize) -> usize {
    (MOST_CELLS / columns.max(1)).clamp(1, ROWS_OF_BATCH)
}

/// In an answer, what marks a column of text whose cells are decimals of any precision: the name that readers
/// of PostgreSQL give a column's type, and that of `numeric`.
pub(crate) const NUMERIC: (&str, &str) = ("ADBC:postgresql:typname", "numeric");

/// Bytes in a nameless file, encrypted: each is XORed with what a generator gives from the key of this
/// process for its place. Nothing else has the key, so nothing else can make sense of the file.
pub(crate) struct Kept {
    file: File,
    key: Zeroizing<[u8; 32]>,
    bytes: u64,
    /// What is encrypted next.
    piece: Zeroizing<Vec<u8>>,
}

impl Kept {
    /// Nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        Prg::from_os().fill_bytes(&mut key[..]);
        Ok(Kept { file: tempfile::tempfile()?, key, bytes: 0, piece: Zeroizing::default() })
    }

    /// All of a stream.
    pub(crate) fn of(mut stream: impl Read) -> io::Result<Self> {
        let mut kept = Kept::new()?;
        let mut piece = Zeroizing::new(vec![0; PIECE]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => kept.write_all(&piece[..read])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        kept.flush()?;
        Ok(kept)
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file, encrypted; its position is that of every other.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// What [`mask`] takes.
    pub(crate) fn key(&self) -> Zeroizing<[u8; 32]> {
        self.key.clone()
    }

    /// The bytes, from the first.
    pub(crate) fn reader(&self) -> io::Result<KeptReader> {
        // A clone shares its position: readers of one input are used one after another.
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(KeptReader { file, key: self.key.clone(), at: 0 })
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        mask(&self.key, self.bytes, &mut self.piece);
        self.file.write_all(&self.piece)?;
        self.bytes += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }
}

pub(crate) struct KeptReader {
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
pub(crate) fn mask(key: &[u8; 32], at: u64, bytes: &mut [u8]) {
    let mut stream = blake3::Hasher::new_keyed(key).finalize_xof();
    stream.set_position(at);
    let mut pad = Zeroizing::new(vec![0; bytes.len()]);
    stream.fill(&mut pad);
    bytes.iter_mut().zip(pad.iter()).for_each(|(byte, pad)| *byte ^= pad);
}
