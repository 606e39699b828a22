//! A file that is hashed before it is used, and of which nothing is used that was not hashed.
//!
//! A record of a run commits to a table's bytes. Were they hashed in a pass of their own, the file could be another
//! one by then. So the first pass hashes them, as a whole and in blocks, and every later read, at whatever place,
//! checks the block that it is of. The file stays open: one that takes its name is not read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a block.
const BLOCK: usize = 1 << 17;

/// A file whose blocks are known.
pub(crate) struct Pinned {
    open: Mutex<Open>,
    /// The BLAKE3 hash of each block.
    blocks: Vec<[u8; 32]>,
    digest: [u8; 32],
    bytes: u64,
    changed: AtomicBool,
}

struct Open {
    file: File,
    /// The block that was read last, and its number.
    block: Vec<u8>,
    number: Option<usize>,
}

impl Pinned {
    /// Opens the file at `path`, and hashes it.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let (mut whole, mut blocks, mut bytes) = (blake3::Hasher::new(), Vec::new(), 0);
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            (&mut file).take(BLOCK as u64).read_to_end(&mut block)?;
            if block.is_empty() {
                break;
            }
            whole.update(&block);
            blocks.push(*blake3::hash(&block).as_bytes());
            bytes += block.len() as u64;
        }
        Ok(Pinned {
            open: Mutex::new(Open { file, block, number: None }),
            blocks,
            digest: *whole.finalize().as_bytes(),
            bytes,
            changed: AtomicBool::new(false),
        })
    }

    /// The BLAKE3 hash of the file.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a read found other bytes than those that were hashed.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
    }

    /// Reads some bytes at this place; none at the end.
    ///
    /// Errors: bytes that are not those that were hashed, and a file that grew.
    pub(crate) fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if at >= self.bytes {
            return if open.file.metadata()?.len() == self.bytes { Ok(0) } else { Err(self.change()) };
        }
        let (number, from) = ((at / BLOCK as u64) as usize, (at % BLOCK as u64) as usize);
        if open.number != Some(number) {
            let Open { file, block, number: known } = &mut *open;
            *known = None;
            block.clear();
            file.seek(SeekFrom::Start(number as u64 * BLOCK as u64))?;
            file.take(BLOCK as u64).read_to_end(block)?;
            if self.blocks.get(number) != Some(blake3::hash(block).as_bytes()) {
                return Err(self.change());
            }
            *known = Some(number);
        }
        let found = open.block.get(from..).unwrap_or_default();
        let read = found.len().min(out.len());
        out[..read].copy_from_slice(&found[..read]);
        Ok(read)
    }

    fn change(&self) -> io::Error {
        self.changed.store(true, Ordering::SeqCst);
        io::Error::other("the file changed while it was used")
    }
}

/// The bytes of a pinned file, from the start.
pub(crate) struct Bytes {
    pub(crate) pinned: Arc<Pinned>,
    pub(crate) at: u64,
}

impl Read for Bytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.pinned.read_at(self.at, out)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_hashed_is_what_is_read_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let bytes: Vec<u8> = (0..2 * BLOCK + 77).map(|at| (at % 251) as u8).collect();
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, bytes.len()] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let pinned = Arc::new(Pinned::of(&path).unwrap());
            assert_eq!(
                (pinned.bytes(), pinned.digest()),
                (length as u64, *blake3::hash(&bytes[..length]).as_bytes())
            );
            let mut found = Vec::new();
            Bytes { pinned: pinned.clone(), at: 0 }.read_to_end(&mut found).unwrap();
            assert_eq!(found, bytes[..length]);
            // Another file of that name is another file.
            std::fs::write(folder.path().join("next"), "other").unwrap();
            std::fs::rename(folder.path().join("next"), &path).unwrap();
            found.clear();
            Bytes { pinned: pinned.clone(), at: 0 }.read_to_end(&mut found).unwrap();
            assert_eq!((found.len(), pinned.is_changed()), (length, false));
        }
        // One byte of the second block, one more at the end, behind whole blocks too, and one less.
        let mut other = bytes.clone();
        other[BLOCK + 5] ^= 1;
        let longer = [&bytes[..], b"x"].concat();
        let whole = 2 * BLOCK;
        for (from, to, read) in [
            (&bytes[..], &other[..], BLOCK),
            (&bytes, &longer, whole),
            (&bytes[..whole], &bytes[..whole + 1], whole),
            (&bytes, &bytes[..bytes.len() - 1], whole),
        ] {
            std::fs::write(&path, from).unwrap();
            let pinned = Arc::new(Pinned::of(&path).unwrap());
            std::fs::write(&path, to).unwrap();
            let mut found = Vec::new();
            assert!(Bytes { pinned: pinned.clone(), at: 0 }.read_to_end(&mut found).is_err());
            assert_eq!((found.len(), pinned.is_changed()), (read, true));
        }
    }
}
