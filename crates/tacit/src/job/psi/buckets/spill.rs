//! What of a run's keys lies on the disk: sealed, and gone with the run.

use crate::{Error, Result};
use std::fs::{DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};
use tacit_crypto::Prg;
use tacit_store::sealed::{self, FileError, FileKey, Keys, Locked, Purpose, SealedReader, SealedWriter};
use zeroize::Zeroizing;

/// Bytes that stand for a key.
pub(in crate::job::psi) const DIGEST: usize = 32;
/// Bytes of a record: what stands for the key, and the row that it came from.
const RECORD: usize = DIGEST + size_of::<u64>();
/// Bytes of memory that a file takes while it is written.
pub(super) const WRITING: u64 = (1 << 16) + 4096;

const PURPOSE: Purpose = Purpose {
    sealing: "tacit 1 psi buckets: sealing",
    mac: "tacit 1 psi buckets: mac",
    check: "tacit 1 psi buckets: check",
};

/// A key and its row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Record {
    /// What stands for the key.
    pub digest: [u8; DIGEST],
    /// The row that it came from.
    pub row: u64,
}

/// What opens a new file that its owner alone can read.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A new file that its owner alone can read.
pub(in crate::job::psi) fn private_file(path: &Path) -> Result<File> {
    private_options().open(path).map_err(|source| Error::file(path, "cannot be made", source))
}

/// A folder that its owner alone can enter.
pub(in crate::job::psi) fn private_folder() -> DirBuilder {
    #[cfg(unix)]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    #[cfg(not(unix))]
    let builder = DirBuilder::new();
    builder
}

/// How the names of runs' folders begin.
const PREFIX: &str = ".tacit-psi-";
/// The file in it that its run holds locked.
const ALIVE: &str = "running";

/// Removes the folders of killed runs in `parent`: those whose lock nobody holds. One that cannot be removed
/// is somebody else's, and stays.
fn sweep(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let Ok(lock) = File::open(entry.path().join(ALIVE)) else { continue };
        if lock.try_lock().is_ok() {
            clear(&entry.path(), lock);
        }
    }
}

/// Removes a run's folder, if it can be, and lets go of its lock.
fn clear(folder: &Path, alive: File) {
    // Some systems keep the name of a file as long as it is open, and the folder with it.
    if std::fs::remove_dir_all(folder).is_err() {
        drop(alive);
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// How often a run that starts makes its folder anew where another's sweep came between making and locking
/// it.
const CLAIMS: usize = 100;

/// Makes `path` and locks the file in it, or tells that a sweep took the folder in between.
fn claim(path: &Path) -> std::io::Result<Option<File>> {
    private_folder().create(path)?;
    let taken = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => Ok(None),
        _ => Err(source),
    };
    let alive = match private_options().open(path.join(ALIVE)) {
        Ok(alive) => alive,
        Err(source) => return taken(source),
    };
    // A sweep that holds the lock removes the folder before it lets go.
    alive.lock()?;
    match path.join(ALIVE).symlink_metadata() {
        Ok(_) => Ok(Some(alive)),
        Err(source) => taken(source),
    }
}

/// A folder that a run has for itself, mode 700. It is removed when the run ends, whether it succeeds or not;
/// of a killed process sealed files may stay, whose key was nowhere but in its memory, until the next run
/// beside them.
pub(super) struct Folder {
    path: PathBuf,
    key: FileKey,
    files: u64,
    /// Locked while the run goes on.
    alive: Option<File>,
}

impl Folder {
    /// Makes the run's folder inside `parent`.
    pub(super) fn new(parent: &Path, prg: &mut Prg) -> Result<Self> {
        sweep(parent);
        let mut key = Zeroizing::new([0; 32]);
        prg.fill_bytes(key.as_mut_slice());
        let refused = |source| Error::file(parent, "no directory can be created in it", source);
        for _ in 0..CLAIMS {
            let path = parent.join(format!("{PREFIX}{:016x}", prg.u64()));
            let claimed = claim(&path).inspect_err(|_| {
                let _ = std::fs::remove_dir_all(&path);
            });
            if let Some(alive) = claimed.map_err(refused)? {
                let key = FileKey::from_bytes(key.as_slice()).map_err(|fault| told(&path, fault))?;
                return Ok(Folder { path, key, files: 0, alive: Some(alive) });
            }
        }
        Err(refused(std::io::ErrorKind::ResourceBusy.into()))
    }

    /// A new, empty file.
    pub(super) fn file(&mut self) -> Result<Writing> {
        let number = self.files;
        self.files += 1;
        let path = self.path.join(format!("{number:06}"));
        let file = private_file(&path)?;
        let out = SealedWriter::new(file, self.keys(number, &path)?, [0; 32]);
        Ok(Writing { out, path, number, count: 0 })
    }

    /// Empty files for so many buckets.
    pub(super) fn buckets(&mut self, count: u64) -> Result<Vec<Writing>> {
        (0..count).map(|_| self.file()).collect()
    }

    /// Tells all records of `written` to `each`, and removes the file.
    pub(super) fn take(&self, written: Written, each: impl FnMut(Record) -> Result<()>) -> Result<()> {
        self.read(&written, each)?;
        self.remove(written)
    }

    /// Tells all records of `written` to `each`.
    pub(super) fn read(&self, written: &Written, mut each: impl FnMut(Record) -> Result<()>) -> Result<()> {
        let Written { path, number, count } = written;
        if *count == 0 {
            return Ok(());
        }
        let fault = |fault| told(path, fault);
        let file = Locked::open(path).map_err(fault)?;
        let end = sealed::sealed_length(count * RECORD as u64);
        let mut from = SealedReader::new(file, self.keys(*number, path)?, [0; 32], 0, end);
        let mut bytes = Zeroizing::new([0; RECORD]);
        for _ in 0..*count {
            from.read(bytes.as_mut_slice()).map_err(fault)?;
            let (digest, row) = bytes.split_at(DIGEST);
            each(Record { digest: sealed::array(digest), row: u64::from_le_bytes(sealed::array(row)) })?;
        }
        Ok(())
    }

    /// Removes a file.
    pub(super) fn remove(&self, Written { path, .. }: Written) -> Result<()> {
        std::fs::remove_file(&path).map_err(|source| Error::file(&path, "cannot be removed", source))
    }

    /// The keys of a file: no two of a run have one salt.
    fn keys(&self, number: u64, path: &Path) -> Result<Keys> {
        let mut salt = [0; 32];
        salt[..8].copy_from_slice(&number.to_le_bytes());
        Keys::new(&self.key, &salt, &PURPOSE).map_err(|fault| told(path, fault))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(alive) = self.alive.take() {
            clear(&self.path, alive);
        }
    }
}

/// A file of records that is written.
pub(super) struct Writing {
    out: SealedWriter<File>,
    path: PathBuf,
    number: u64,
    count: u64,
}

impl Writing {
    /// Appends a record.
    pub(super) fn push(&mut self, record: &Record) -> Result<()> {
        let fault = |fault| told(&self.path, fault);
        self.out.write(&record.digest).map_err(fault)?;
        self.out.write(&record.row.to_le_bytes()).map_err(fault)?;
        self.count += 1;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<Written> {
        let Writing { out, path, number, count } = self;
        out.finish().map_err(|fault| told(&path, fault))?;
        Ok(Written { path, number, count })
    }
}

/// A file of records.
pub(super) struct Written {
    path: PathBuf,
    number: u64,
    /// How many records it holds.
    pub count: u64,
}

fn told(path: &Path, fault: FileError) -> Error {
    match fault {
        FileError::Io { what: "written", source } => {
            let what = "cannot be written; free some space there or name another directory";
            Error::file(path, what, source)
        }
        FileError::Io { source, .. } => Error::file(path, "cannot be read back", source),
        FileError::Damaged { .. } => Error::Input(format!(
            "{}: changed by another program during the run; run it again",
            tacit_net::shown(&path.to_string_lossy())
        )),
        other => Error::Input(format!("{}: {other}", tacit_net::shown(&path.to_string_lossy()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Block;

    #[test]
    fn runs_beside_each_other_keep_their_folders() {
        let parent = tempfile::tempdir().expect("a folder");
        std::thread::scope(|scope| {
            for thread in 0..8_u8 {
                let parent = parent.path();
                scope.spawn(move || {
                    let mut prg = Prg::from_seed(Block::from([thread; 16]));
                    for _ in 0..100 {
                        let mut folder = Folder::new(parent, &mut prg).expect("a folder of its own");
                        let mut file = folder.file().expect("a file");
                        file.push(&Record { digest: [thread; DIGEST], row: 7 }).expect("a record");
                        let written = file.finish().expect("a file");
                        let mut rows = Vec::new();
                        let told = folder.take(written, |record| {
                            rows.push(record.row);
                            Ok(())
                        });
                        told.expect("the file is still there");
                        assert_eq!(rows, [7]);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(parent.path()).expect("the folder").count(), 0);
    }
}
