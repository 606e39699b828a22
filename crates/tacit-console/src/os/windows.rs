use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Lets a file that is made have the rights that files of the user's usually have: all have them here.
pub(crate) fn give_usual_rights(_: &mut tempfile::Builder<'_, '_>) {}

/// The whole path, by which two names of one file are known; hard links are not.
pub(crate) type FileId = PathBuf;

/// What stands at `path`, links followed.
pub(crate) fn id_at(path: &Path) -> io::Result<FileId> {
    path.canonicalize()
}

/// What standard output and standard error lead to has no path here.
pub(crate) fn id_of_stream(_: bool) -> io::Result<FileId> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Standard output, or standard error, as a file of its own.
pub(crate) fn standard(error: bool) -> io::Result<File> {
    let owned = match error {
        false => io::stdout().as_handle().try_clone_to_owned(),
        true => io::stderr().as_handle().try_clone_to_owned(),
    };
    owned.map(File::from)
}

/// What is neither a file, a folder nor a link: a named pipe or a device.
pub(crate) fn is_stream(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
}

/// Whether reading uses it up.
pub(crate) fn is_pipe(_: FileType) -> bool {
    false
}

/// Errors: why the file may not be written.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path)?.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Bytes that the file's disk has free for us: not known.
pub(crate) fn free_room(_: &File) -> Option<u64> {
    None
}

/// Reserves room in the file; false if there is none. Nothing is reserved here.
pub(crate) fn take_room(_: &File, _: u64) -> bool {
    true
}

/// Whether the open file has no name any more, which an open file keeps here.
pub(crate) fn is_removed(_: &File) -> bool {
    false
}

/// Opens a pipe or a device.
pub(crate) fn open_stream(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().append(true).open(path).map(Some)
}

/// Ends a process.
pub(crate) fn terminate(child: &Child) -> io::Result<()> {
    let ended = Command::new("taskkill").args(["/F", "/PID", &child.id().to_string()]).output()?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&ended.stderr).into_owned())),
    }
}
