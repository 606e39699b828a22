//! Files sealed with a key of this machine: what [pools](crate::pool) and computations prepared ahead have in
//! common.
//!
//! AES-256-GCM under keys that BLAKE3 derives from the machine's key and a salt of the file alone; a file is
//! open in one process at a time.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tacit_crypto::text::counted;
use tacit_net::Identity;
use zeroize::{Zeroize, Zeroizing};

type Result<T> = std::result::Result<T, FileError>;

/// Bytes that sealing adds.
pub const TAG: usize = 16;
/// Bytes of a [`SealedWriter`]'s chunks.
const CHUNK: usize = 1 << 16;
/// Bytes of a key file, at least and at most.
const KEY_FILE: std::ops::RangeInclusive<usize> = 32..=4096;

/// What can be wrong with a sealed file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused an operation.
    #[error("the file cannot be {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("not a {wanted}; make one with {command}")]
    Other {
        /// What was looked for.
        wanted: &'static str,
        /// The command that makes it.
        command: &'static str,
    },
    /// The file is of another version of the format.
    #[error(
        "the file is of version {found}, and this release reads only version {known}{}; \
         make a new one on both sides, with one release of this program",
        older(*found, *known)
    )]
    Version {
        /// The file's version.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// The file is shorter or longer than its header says.
    #[error(
        "the file has {} instead of {expected}: it was cut or added to; make a new one on both sides",
        counted(found, "byte")
    )]
    Length {
        /// The file's length.
        found: u64,
        /// The length that belongs to the header.
        expected: u64,
    },
    /// A part of the file was changed since it was written.
    #[error("the file is damaged ({what}); make a new one on both sides")]
    Damaged {
        /// Which part.
        what: &'static str,
    },
    /// The file was sealed with another key.
    #[error("the file was sealed with another key; give the identity or key file that it was made with")]
    WrongKey,
    /// The key file cannot serve as a key.
    #[error("a key file has 32 to 4096 bytes, of which at least 32 are random")]
    KeyFile,
    /// Another process has the file open.
    #[error("the file is in use by another process; wait for it, or make a second one")]
    Busy,
}

/// Why a file of an older version is refused.
fn older(found: u32, known: u32) -> &'static str {
    if found < known { ": what older releases made is weaker, or belongs to another protocol" } else { "" }
}

/// The fault of an operation that the system refused.
pub fn io_fault(what: &'static str) -> impl Fn(io::Error) -> FileError {
    move |source| FileError::Io { what, source }
}

/// What files are sealed with. Never leaves this machine.
pub struct FileKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for FileKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileKey([secret])")
    }
}

impl FileKey {
    /// Derived from the party's identity key.
    pub fn from_identity(identity: &Identity) -> Self {
        FileKey(identity.derive("tacit 1 pool: key of an identity"))
    }

    /// Derived from the bytes of a key file. Errors: fewer than 32 or more than 4096 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if !KEY_FILE.contains(&bytes.len()) {
            return Err(FileError::KeyFile);
        }
        Ok(FileKey(Zeroizing::new(blake3::derive_key("tacit 1 pool: key of a file", bytes))))
    }

    /// Derived from a key file. Errors: as [`from_bytes`](Self::from_bytes), and those of the file.
    pub fn from_file(path: &Path) -> Result<Self> {
        let read = tacit_net::small::read(path, *KEY_FILE.end() as u64);
        FileKey::from_bytes(&read.map_err(io_fault("unlocked: the key file"))?.0)
    }
}

/// The contexts under which a kind of file derives its keys.
pub struct Purpose {
    /// Of sealing.
    pub sealing: &'static str,
    /// Of authenticating what stands in the clear.
    pub mac: &'static str,
    /// Of the value that tells a wrong key from a damaged file.
    pub check: &'static str,
}

/// The keys of one file.
pub struct Keys {
    seal: LessSafeKey,
    /// For what stands in the clear.
    pub mac: Zeroizing<[u8; 32]>,
    /// Tells a wrong key from a damaged file.
    pub check: [u8; 32],
}

impl Keys {
    /// The keys of the file with this salt.
    pub fn new(key: &FileKey, salt: &[u8; 32], purpose: &Purpose) -> Result<Self> {
        let derive = |context: &str| {
            let mut hasher = blake3::Hasher::new_derive_key(context);
            hasher.update(key.0.as_slice()).update(salt);
            Zeroizing::new(*hasher.finalize().as_bytes())
        };
        let sealing = derive(purpose.sealing);
        let unbound = UnboundKey::new(&AES_256_GCM, sealing.as_slice());
        let seal = LessSafeKey::new(unbound.map_err(|_| FileError::Damaged { what: "key" })?);
        Ok(Keys { seal, mac: derive(purpose.mac), check: *derive(purpose.check) })
    }

    /// Seals `bytes` in place, bound to `context`; no two calls for one file may share domain and number.
    pub fn seal(&self, domain: u32, number: u64, context: &[u8], bytes: &mut [u8]) -> Result<[u8; TAG]> {
        let tag = self.seal.seal_in_place_separate_tag(nonce(domain, number), Aad::from(context), bytes);
        let tag = tag.map_err(|_| FileError::Damaged { what: "sealing" })?;
        Ok(array(tag.as_ref()))
    }

    /// Opens what [`seal`](Self::seal) made, with its tag behind it; `what` names it if it is damaged.
    pub fn open<'a>(
        &self,
        domain: u32,
        number: u64,
        context: &[u8],
        bytes: &'a mut [u8],
        what: &'static str,
    ) -> Result<&'a mut [u8]> {
        let opened = self.seal.open_in_place(nonce(domain, number), Aad::from(context), bytes);
        opened.map_err(|_| FileError::Damaged { what })
    }
}

fn nonce(domain: u32, number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&domain.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// A slice of exactly `N` bytes as an array; panics at any other length.
pub fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}

/// A file that only this holder works on, one thread at a time.
pub struct Locked {
    file: File,
    /// Who holds it reads and writes: all share one place in the file.
    turn: Mutex<()>,
}

impl Locked {
    /// Opens a file for reading and writing. Errors if another process holds it.
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io_fault("opened"))?;
        match file.try_lock() {
            Ok(()) => Ok(Locked { file, turn: Mutex::new(()) }),
            Err(TryLockError::WouldBlock) => Err(FileError::Busy),
            Err(TryLockError::Error(source)) => Err(io_fault("locked")(source)),
        }
    }

    /// Reads all of `out` from offset `at` on.
    pub fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        let _turn = self.turn();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(out)
    }

    /// Writes `bytes` at offset `at` and forces them to the disk.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.turn();
        self.write(at, bytes)
    }

    /// Writes `mark` at offset `at`, which makes the file useless, and forces it to the disk. Where that fails, the file
    /// loses what it holds, if it can be had.
    ///
    /// Errors: of the mark. The file must be deleted then.
    pub fn burn(&self, at: u64, mark: &[u8]) -> io::Result<()> {
        let _turn = self.turn();
        self.write(at, mark).inspect_err(|_| {
            let _ = self.file.set_len(0).and_then(|()| self.file.sync_all());
        })
    }

    /// What stands from offset `at` on, at most `limit` bytes of it.
    pub fn read_up_to(&self, at: u64, limit: u64) -> io::Result<Vec<u8>> {
        let _turn = self.turn();
        self.up_to(at, limit)
    }

    /// What stands from offset `at` on, of which `limit` bytes are read at most; where that is nothing, `bytes` are
    /// written there and forced to the disk. No other thread writes in between.
    pub fn read_or_write(&self, at: u64, limit: u64, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let _turn = self.turn();
        let found = self.up_to(at, limit)?;
        if found.is_empty() {
            // Half of them would look like others, and nobody has acted on them yet.
            self.write(at, bytes).inspect_err(|_| _ = self.file.set_len(at))?;
        } else if found == bytes {
            // Who wrote them may have been killed before they were on the disk.
            self.file.sync_data()?;
        }
        Ok(found)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up_to(&self, at: u64, limit: u64) -> io::Result<Vec<u8>> {
        let (mut found, mut file) = (Vec::new(), &self.file);
        file.seek(SeekFrom::Start(at))?;
        file.take(limit).read_to_end(&mut found)?;
        Ok(found)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)?;
        file.sync_data()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec holds a copy of the descriptor, and the lock
        // with it.
        let _ = self.file.unlock();
    }
}

impl std::ops::Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// Nonce domains of a stream's chunks and of its last one.
const MIDDLE: u32 = 2;
const LAST: u32 = 3;

/// Seals a stream of bytes in chunks, of which none can be changed, moved or left out unnoticed.
pub struct SealedWriter<W> {
    out: W,
    keys: Keys,
    context: [u8; 32],
    chunk: Zeroizing<Vec<u8>>,
    number: u64,
}

/// Bytes in a file of `bytes` that a [`SealedWriter`] wrote.
pub fn sealed_length(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(CHUNK as u64).max(1) * TAG as u64
}

impl<W: Write> SealedWriter<W> {
    /// Writes to `out` with the keys of this file; every chunk is bound to `context`.
    pub fn new(out: W, keys: Keys, context: [u8; 32]) -> Self {
        SealedWriter { out, keys, context, chunk: Zeroizing::new(Vec::with_capacity(CHUNK)), number: 0 }
    }

    /// Appends `bytes`.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.chunk.len() == CHUNK {
                self.seal(MIDDLE)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    fn seal(&mut self, domain: u32) -> Result<()> {
        let tag = self.keys.seal(domain, self.number, &self.context, &mut self.chunk)?;
        self.out
            .write_all(&self.chunk)
            .and_then(|()| self.out.write_all(&tag))
            .map_err(io_fault("written"))?;
        self.chunk.zeroize();
        self.number += 1;
        Ok(())
    }

    /// Ends the stream; returns what it was written to.
    pub fn finish(mut self) -> Result<W> {
        self.seal(LAST)?;
        Ok(self.out)
    }
}

/// Reads what [`SealedWriter`] wrote.
pub struct SealedReader {
    file: Locked,
    keys: Keys,
    context: [u8; 32],
    at: u64,
    end: u64,
    chunk: Zeroizing<Vec<u8>>,
    taken: usize,
    number: u64,
}

impl SealedReader {
    /// Reads the stream that stands in `file` from offset `at` up to `end`.
    pub fn new(file: Locked, keys: Keys, context: [u8; 32], at: u64, end: u64) -> Self {
        SealedReader { file, keys, context, at, end, chunk: Zeroizing::default(), taken: 0, number: 0 }
    }

    /// Fills `out` with the next bytes.
    pub fn read(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.taken == self.chunk.len() {
                self.open()?;
            }
            let now = out.len().min(self.chunk.len() - self.taken);
            out[..now].copy_from_slice(&self.chunk[self.taken..][..now]);
            self.taken += now;
            out = &mut out[now..];
        }
        Ok(())
    }

    /// All bytes that are left; the last chunk must be there.
    pub fn rest(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            out.extend_from_slice(&self.chunk[self.taken..]);
            self.taken = self.chunk.len();
            if self.at == self.end && self.number > 0 {
                return Ok(out);
            }
            self.open()?;
        }
    }

    fn open(&mut self) -> Result<()> {
        const DAMAGE: &str = "contents";
        let left = (self.end - self.at) as usize;
        // Only of an empty stream is the last chunk empty.
        if left < TAG + usize::from(self.number > 0) {
            return Err(FileError::Damaged { what: DAMAGE });
        }
        let sealed = left.min(CHUNK + TAG);
        let domain = if sealed == left { LAST } else { MIDDLE };
        self.chunk.resize(sealed, 0);
        self.file.read_at(self.at, &mut self.chunk).map_err(io_fault("read"))?;
        let opened = self.keys.open(domain, self.number, &self.context, &mut self.chunk, DAMAGE)?.len();
        self.chunk.truncate(opened);
        (self.taken, self.at, self.number) = (0, self.at + sealed as u64, self.number + 1);
        Ok(())
    }

    /// The file.
    pub fn file(&self) -> &Locked {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PURPOSE: Purpose = Purpose { sealing: "test: seal", mac: "test: mac", check: "test: check" };

    #[test]
    fn streams_of_any_length_are_read_whole_and_none_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream");
        let keys = || Keys::new(&FileKey::from_bytes(&[7; 32]).unwrap(), &[1; 32], &PURPOSE).unwrap();
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut out = SealedWriter::new(File::create(&path).unwrap(), keys(), [2; 32]);
            out.write(&bytes).unwrap();
            let file = out.finish().unwrap();
            let end = file.metadata().unwrap().len();
            assert_eq!(end, sealed_length(length as u64));
            let read = |end| SealedReader::new(Locked::open(&path).unwrap(), keys(), [2; 32], 0, end).rest();
            assert_eq!(read(end).unwrap(), bytes, "{length} bytes");
            for cut in [1, TAG as u64, (CHUNK + TAG) as u64].into_iter().filter(|cut| *cut <= end) {
                assert!(read(end - cut).is_err(), "{length} bytes without the last {cut}");
            }
        }
    }
}
