//! Small files that outlive their process: sealed, whole or not there at all, and bound to their place.

use super::spill::{private_file, private_folder};
use crate::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use tacit_crypto::Prg;
use tacit_net::durable;
use tacit_store::sealed::{FileError, FileKey, Keys, Locked, Purpose, SealedReader, SealedWriter, array};

/// Bytes in front of what is sealed: the magic, the salt, and what tells a wrong key from a damaged file.
const FRONT: usize = 16 + 32 + 32;
/// How the names of files end that are not whole yet.
pub(in crate::job::psi) const UNFINISHED: &str = ".part";
/// The file whose lock says that a process goes on with what a folder holds.
pub(in crate::job::psi) const LOCK: &str = "lock";

/// How the files of one use are sealed.
pub(in crate::job::psi) struct Form {
    pub magic: [u8; 16],
    pub purpose: Purpose,
}

/// A folder of such files.
#[derive(Clone, Copy)]
pub(in crate::job::psi) struct Sealed<'a> {
    pub folder: &'a Path,
    pub key: &'a FileKey,
    pub form: &'static Form,
}

/// Makes a folder that its owner alone can enter, if there is none. Its name is on the disk when this returns, where the
/// file system can, because files synced in a folder, attempts included, are lost if a crash removes the folder.
pub(in crate::job::psi) fn lasting_folder(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        let made = private_folder().create(folder);
        made.map_err(|source| Error::file(folder, "cannot be made", source))?;
    }
    sync_names(durable::folder_of(folder))
}

/// Puts the names in a folder on the disk.
pub(in crate::job::psi) fn sync_names(folder: &Path) -> Result<()> {
    durable::sync_names(folder).map_err(|source| Error::file(folder, "cannot be synced", source))
}

/// Holds a folder for this process; `busy` is said of one that another holds.
pub(in crate::job::psi) fn hold(folder: &Path, busy: &str) -> Result<File> {
    let path = folder.join(LOCK);
    let lock = File::options().create(true).truncate(false).write(true).open(&path);
    let lock = lock.map_err(|source| Error::file(&path, "cannot be made", source))?;
    if lock.try_lock().is_err() {
        return Err(refused(folder, busy));
    }
    Ok(lock)
}

impl Sealed<'_> {
    /// Writes a file as a whole: it is on the disk before it takes its place. `context` binds it.
    pub(in crate::job::psi) fn write(
        &self,
        name: &str,
        context: [u8; 32],
        bytes: &[u8],
        prg: &mut Prg,
    ) -> Result<()> {
        let (path, part) = (self.folder.join(name), self.folder.join(format!("{name}{UNFINISHED}")));
        let fault = |fault| told(&path, fault);
        let mut salt = [0; 32];
        prg.fill_bytes(&mut salt);
        let keys = Keys::new(self.key, &salt, &self.form.purpose).map_err(fault)?;
        let _ = std::fs::remove_file(&part);
        let mut file = private_file(&part)?;
        let head = [&self.form.magic[..], &salt, &keys.check].concat();
        let failed = |source| Error::file(&path, "cannot be written; free some space there", source);
        file.write_all(&head).map_err(failed)?;
        let mut out = SealedWriter::new(file, keys, context);
        out.write(bytes).map_err(fault)?;
        let file = out.finish().map_err(fault)?;
        file.sync_all().and_then(|()| std::fs::rename(&part, &path)).map_err(failed)?;
        sync_names(self.folder)
    }

    /// Reads a file that [`write`](Self::write) wrote with this `context`.
    pub(in crate::job::psi) fn read(&self, name: &str, context: [u8; 32]) -> Result<Vec<u8>> {
        let path = self.folder.join(name);
        let fault = |fault| told(&path, fault);
        let file = Locked::open(&path).map_err(fault)?;
        let failed = |source| Error::file(&path, "cannot be read", source);
        let end = file.metadata().map_err(failed)?.len();
        let mut head = [0; FRONT];
        let read = end >= FRONT as u64 && file.read_at(0, &mut head).is_ok();
        if !read || head[..16] != self.form.magic {
            return Err(damaged(self.folder));
        }
        let keys = Keys::new(self.key, &array(&head[16..48]), &self.form.purpose).map_err(fault)?;
        if keys.check != head[48..] {
            return Err(fault(FileError::WrongKey));
        }
        SealedReader::new(file, keys, context, FRONT as u64, end).rest().map_err(fault)
    }
}

pub(in crate::job::psi) fn refused(folder: &Path, what: &str) -> Error {
    let name = tacit_net::shown(&folder.to_string_lossy());
    Error::Input(format!("{name}: {what}; name another directory, or remove it to start again"))
}

pub(in crate::job::psi) fn damaged(folder: &Path) -> Error {
    refused(folder, "its files were changed after they were written")
}

fn told(path: &Path, fault: FileError) -> Error {
    match fault {
        FileError::Io { source, .. } => Error::file(path, "cannot be read or written", source),
        FileError::Damaged { .. } => damaged(path.parent().unwrap_or(path)),
        other => Error::Input(format!("{}: {other}", tacit_net::shown(&path.to_string_lossy()))),
    }
}
