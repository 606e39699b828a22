//! A file of which nothing is used that is not what was read of it before.
//!
//! The file stays open: one that takes its name is not read. Of each block a hash is taken when it is first read, and
//! every later read, at whatever place, checks the block that it is of. Where a record of a run commits to the table's
//! bytes, all of them are read so at the start, and hashed as a whole too. Of another table a block may be read for
//! the first time late; that is refused once the file is no longer as it was when it was opened.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes of a block.
const BLOCK: usize = 1 << 16;
/// Blocks that are at hand: columns' pages, which lie apart, are read by turns.
const AT_HAND: usize = 64;

/// A file whose blocks are known, all or those that were read.
pub(crate) struct Pinned {
    open: Mutex<Open>,
    digest: Option<[u8; 32]>,
    bytes: u64,
    stamp: Stamp,
    changed: AtomicBool,
}

struct Open {
    file: File,
    /// The BLAKE3 hash of each block that was read.
    blocks: Vec<Option<[u8; 32]>>,
    /// Blocks that were read last, with their numbers, the latest behind.
    at_hand: VecDeque<(usize, Vec<u8>)>,
}

/// What a file system tells of a file's last change.
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// When anything of it changed, which nobody can set back, and how many names it has.
    changed: Option<(i64, i64, u64)>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let changed = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.ctime(), metadata.ctime_nsec(), metadata.nlink()))
        };
        #[cfg(not(unix))]
        let changed = None;
        Stamp { bytes: metadata.len(), modified: metadata.modified().ok(), changed }
    }

    /// Whether the file still is what it was; that another has taken its name is no change of it.
    fn holds(&self, now: &Stamp) -> bool {
        let lost_a_name = matches!((self.changed, now.changed), (Some(then), Some(now)) if now.2 < then.2);
        self.bytes == now.bytes
            && self.modified == now.modified
            && (self.changed == now.changed || lost_a_name)
    }
}

impl Pinned {
    /// Opens the file at `path`, of which what is read is known from then on.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let bytes = stamp.bytes;
        let blocks = usize::try_from(bytes.div_ceil(BLOCK as u64)).map_err(io::Error::other)?;
        Ok(Pinned {
            open: Mutex::new(Open { file, blocks: vec![None; blocks], at_hand: VecDeque::new() }),
            digest: None,
            bytes,
            stamp,
            changed: AtomicBool::new(false),
        })
    }

    /// Opens the file at `path`, and hashes it.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        let (mut whole, mut blocks, mut bytes) = (blake3::Hasher::new(), Vec::new(), 0);
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            (&mut file).take(BLOCK as u64).read_to_end(&mut block)?;
            if block.is_empty() {
                break;
            }
            whole.update(&block);
            blocks.push(Some(*blake3::hash(&block).as_bytes()));
            bytes += block.len() as u64;
        }
        Ok(Pinned {
            open: Mutex::new(Open { file, blocks, at_hand: VecDeque::new() }),
            digest: Some(*whole.finalize().as_bytes()),
            bytes,
            stamp,
            changed: AtomicBool::new(false),
        })
    }

    /// The BLAKE3 hash of the file, where it was hashed as a whole.
    pub(crate) fn digest(&self) -> Option<[u8; 32]> {
        self.digest
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a read found other bytes than those that were read before.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
    }

    /// Reads every block anew from here on.
    pub(crate) fn start_again(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).at_hand.clear();
    }

    /// Reads some bytes at this place; none at the end.
    ///
    /// Errors: bytes that are not those that were read before, and a file that grew.
    pub(crate) fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if at >= self.bytes {
            return if open.file.metadata()?.len() == self.bytes { Ok(0) } else { Err(self.change()) };
        }
        let (number, from) = ((at / BLOCK as u64) as usize, (at % BLOCK as u64) as usize);
        if open.at_hand.iter().rev().all(|(known, _)| *known != number) {
            self.fetch(&mut open, number)?;
        }
        let block = open.at_hand.iter().rev().find(|(known, _)| *known == number);
        let found = block.and_then(|(_, block)| block.get(from..)).unwrap_or_default();
        let read = found.len().min(out.len());
        out[..read].copy_from_slice(&found[..read]);
        Ok(read)
    }

    /// Takes the block of this number from the file.
    fn fetch(&self, open: &mut Open, number: usize) -> io::Result<()> {
        let Open { file, blocks, at_hand } = open;
        let spare = if at_hand.len() < AT_HAND { None } else { at_hand.pop_front() };
        let mut block = spare.map_or_else(|| Vec::with_capacity(BLOCK), |(_, block)| block);
        block.clear();
        let start = number as u64 * BLOCK as u64;
        file.seek(SeekFrom::Start(start))?;
        (&*file).take(BLOCK as u64).read_to_end(&mut block)?;
        let hash = *blake3::hash(&block).as_bytes();
        match blocks.get_mut(number) {
            Some(Some(known)) if *known == hash => {}
            Some(new @ None)
                if block.len() as u64 == (self.bytes - start).min(BLOCK as u64)
                    && self.stamp.holds(&Stamp::of(&file.metadata()?)) =>
            {
                *new = Some(hash);
            }
            _ => return Err(self.change()),
        }
        at_hand.push_back((number, block));
        Ok(())
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
                (length as u64, Some(*blake3::hash(&bytes[..length]).as_bytes()))
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

    /// Of a file that nobody has read through, what was read is known, and what was not is read of the same file alone.
    #[test]
    fn what_was_not_read_yet_is_read_of_a_file_that_did_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let bytes: Vec<u8> = (0..3 * BLOCK).map(|at| (at % 251) as u8).collect();
        let byte = |pinned: &Pinned, block: usize| {
            let mut out = [0];
            pinned.start_again();
            pinned.read_at((block * BLOCK) as u64, &mut out).map(|_| out[0])
        };
        for at in 0..3 {
            std::fs::write(&path, &bytes).unwrap();
            let pinned = Pinned::open(&path).unwrap();
            assert_eq!(byte(&pinned, 0).unwrap(), bytes[0]);
            assert_eq!(byte(&pinned, 1).unwrap(), bytes[BLOCK]);
            // The clock of a file system goes by some milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let mut other = bytes.clone();
            other[at * BLOCK] ^= 1;
            std::fs::write(&path, &other).unwrap();
            let found = [0, 1, 2].map(|block| byte(&pinned, block).is_ok());
            assert_eq!(found, [at != 0, at != 1, false], "{at}");
            assert!(pinned.is_changed());
        }
        std::fs::write(&path, &bytes).unwrap();
        let pinned = Pinned::open(&path).unwrap();
        std::fs::write(folder.path().join("next"), "other").unwrap();
        std::fs::rename(folder.path().join("next"), &path).unwrap();
        assert_eq!(byte(&pinned, 2).unwrap(), bytes[2 * BLOCK]);
    }
}
