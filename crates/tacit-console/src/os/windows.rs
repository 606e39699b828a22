use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::process::{Child, Command};

/// Lets a file that is made have the rights that files of the user's usually have: all have them here.
pub(crate) fn give_usual_rights(_: &mut tempfile::Builder<'_, '_>) {}

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

/// Opens a pipe or a device.
pub(crate) fn open_stream(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().append(true).open(path).map(Some)
}

/// Whether a pipe could not be written to because nobody reads from it any more.
pub(crate) fn is_reader_gone(error: &io::Error) -> bool {
    /// ERROR_PIPE_NOT_CONNECTED, which has no kind of its own.
    const NOT_CONNECTED: i32 = 233;
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(NOT_CONNECTED)
}

/// Ends a process.
pub(crate) fn terminate(child: &Child) -> io::Result<()> {
    let ended = Command::new("taskkill").args(["/F", "/PID", &child.id().to_string()]).output()?;
    match ended.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&ended.stderr).into_owned())),
    }
}
