use rustix::fs::{Access, OFlags, access, fcntl_getfl, fcntl_setfl, fstatvfs};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Child;

/// Lets a file that is made have the rights that files of the user's usually have.
pub(crate) fn give_usual_rights(builder: &mut tempfile::Builder<'_, '_>) {
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

/// Standard output, or standard error, as a file of its own.
pub(crate) fn standard(error: bool) -> io::Result<File> {
    let owned = match error {
        false => io::stdout().as_fd().try_clone_to_owned(),
        true => io::stderr().as_fd().try_clone_to_owned(),
    };
    owned.map(File::from)
}

/// Whether it takes what is written and keeps nothing: a pipe or a character device.
pub(crate) fn is_stream(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device()
}

/// Whether reading uses it up.
pub(crate) fn is_pipe(kind: FileType) -> bool {
    kind.is_fifo()
}

/// Errors: why the file may not be written.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}

/// Bytes that the file's disk has free for us.
pub(crate) fn free_room(file: &File) -> Option<u64> {
    fstatvfs(file).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Reserves room in the file; false if there is none. A file system that cannot reserve has said nothing.
#[cfg(target_os = "linux")]
pub(crate) fn take_room(file: &File, bytes: u64) -> bool {
    use rustix::fs::{FallocateFlags, fallocate};
    let taken = fallocate(file, FallocateFlags::empty(), 0, bytes);
    !matches!(taken, Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn take_room(_: &File, _: u64) -> bool {
    true
}

/// Opens a pipe, a device or a descriptor. Does not wait for somebody to read a pipe: `None` where nobody
/// does.
pub(crate) fn open_stream(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    match OpenOptions::new().append(true).custom_flags(flags).open(path) {
        Ok(file) => {
            let flags = fcntl_getfl(&file)?;
            fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
            Ok(Some(file))
        }
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a pipe could not be written to because nobody reads from it any more.
pub(crate) fn is_reader_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// Asks a process to end in order (SIGTERM).
pub(crate) fn terminate(child: &Child) -> io::Result<()> {
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}
