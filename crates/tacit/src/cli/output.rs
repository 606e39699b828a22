//! Files that are whole or not there: written beside their place, renamed when finished.

use crate::cli::fault::Unfinished;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tacit::{Error, Result};
use tempfile::NamedTempFile;

/// A file under way. Dropped before [`commit`](Self::commit), it leaves nothing.
///
/// It can be read and written by its owner alone: what two parties compute is nobody else's business.
pub struct Output {
    file: Option<BufWriter<NamedTempFile>>,
    target: PathBuf,
    // Last, so that it is dropped after the file.
    _unfinished: Unfinished,
}

impl Output {
    /// Makes the file beside `target`, so that a missing folder or a missing right shows before any work is done.
    pub fn create(target: &Path) -> Result<Self> {
        if target.is_dir() {
            let what = format!("{}: is a folder; name a file in it", target.display());
            return Err(Error::Input(what));
        }
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let temp =
            tempfile::Builder::new().prefix(".tacit-").suffix(".part").tempfile_in(folder).map_err(|e| {
                let what = format!(
                    "{}: cannot be written: {e}; create the folder or choose another",
                    target.display()
                );
                Error::Input(what)
            })?;
        let unfinished = Unfinished::new(temp.path());
        let file = Some(BufWriter::with_capacity(1 << 16, temp));
        Ok(Output { file, target: target.to_owned(), _unfinished: unfinished })
    }

    /// Forces the finished file to the disk, still beside its place: now a full disk can no longer cost what is used up
    /// for it.
    pub fn settle(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let settled = file.flush().and_then(|()| file.get_ref().as_file().sync_all());
        settled.map_err(|e| write_fault(&self.target, e))
    }

    /// Moves the finished file to its place, replacing what was there.
    pub fn commit(mut self) -> Result<()> {
        self.settle()?;
        let fault = |e| write_fault(&self.target, e);
        let Some(buffered) = self.file.take() else { return Ok(()) };
        let temp = buffered.into_inner().map_err(|e| fault(e.into_error()))?;
        temp.persist(&self.target).map_err(|e| fault(e.error))?;
        Ok(())
    }

    /// Where the finished file will be.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// The fault of a write towards `target`.
pub fn write_fault(target: &Path, source: io::Error) -> Error {
    Error::file(target, "cannot be written; is the disk full?", source)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |f| f.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |f| f.flush())
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.as_mut().map_or(Ok(0), |f| f.seek(to))
    }
}

/// Opens a local file for reading, with the cause and the remedy when that fails.
pub fn open(path: &Path) -> Result<File> {
    let refuse = |what: String| Err(Error::Input(format!("{}: {what}", path.display())));
    match File::open(path) {
        Ok(_) if path.is_dir() => refuse("is a folder; name a file in it".into()),
        Ok(file) => Ok(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => refuse("no such file; check the path".into()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            refuse("permission denied; check who may read the file".into())
        }
        Err(e) => refuse(format!("cannot be read: {e}")),
    }
}
