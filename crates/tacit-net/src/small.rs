//! Small files that a user names: keys, and what they are sealed with. Pipes are read too, such as those of a shell's
//! `<(…)`, and are waited for ten seconds at most; one that no process has opened to write, for one.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
#[cfg(unix)]
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How long a pipe or device is waited for.
#[cfg(unix)]
const PIPE_PATIENCE: Duration = Duration::from_secs(10);

/// How long a pipe that nobody has opened to write is waited for: its writer may have been started a moment ago.
#[cfg(unix)]
const WRITER_PATIENCE: Duration = Duration::from_secs(1);

/// Pause before such a pipe is looked at again.
#[cfg(unix)]
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Room that is made at the start: a buffer that grows leaves copies behind, and no secret is longer.
const FIRST: usize = 1 << 16;

/// The bytes of a file of at most `most` bytes, and one more of one that is longer; and what is known of that file,
/// whatever has its name by now.
///
/// Errors: a pipe that nobody has opened to write, or into which nothing came in time.
pub fn read(path: &Path, most: u64) -> io::Result<(Zeroizing<Vec<u8>>, Metadata)> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    let mut bytes = Zeroizing::new(Vec::with_capacity((most as usize + 1).min(FIRST)));
    if metadata.is_file() || metadata.is_dir() {
        file.take(most + 1).read_to_end(&mut bytes)?;
    } else {
        of_stream(file, is_pipe(&metadata), most + 1, &mut bytes)?;
    }
    Ok((bytes, metadata))
}

/// Whether a file is a pipe, whose bytes are there once.
pub(crate) fn is_pipe(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type());
    #[cfg(not(unix))]
    return !metadata.is_file() && !metadata.is_dir();
}

/// Opens a file without waiting for who may write to it.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flag = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(flag).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn of_stream(mut stream: File, is_pipe: bool, most: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    use crate::link::Interest;
    let start = Instant::now();
    let end = start + PIPE_PATIENCE;
    let mut piece = Zeroizing::new([0; 1 << 12]);
    while (bytes.len() as u64) < most {
        let room = piece.len().min(most as usize - bytes.len());
        match stream.read(&mut piece[..room]) {
            Ok(0) if is_pipe && bytes.is_empty() && start.elapsed() < WRITER_PATIENCE => {
                std::thread::sleep(LOOK_AGAIN);
            }
            Ok(0) if is_pipe && bytes.is_empty() => {
                return Err(io::Error::other(
                    "nothing is written into this pipe; name a file, or use <(COMMAND)",
                ));
            }
            Ok(0) => return Ok(()),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = end.saturating_duration_since(Instant::now());
                let is_ready =
                    crate::tcp::await_fd(&stream, Interest::Read, left).map_err(io::Error::other)?;
                if !is_ready {
                    let what =
                        format!("nothing came out of it for {} s; name a file", PIPE_PATIENCE.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn of_stream(stream: File, _is_pipe: bool, most: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
    stream.take(most).read_to_end(bytes).map(drop)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_pipe_is_read_where_somebody_writes_and_refused_where_nobody_does() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let start = Instant::now();
        let error = read(&pipe, 100).unwrap_err();
        assert!(error.to_string().contains("nothing is written into this pipe"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5));
        // As a shell's `<(…)` has it: the other end is open already, and its bytes come in pieces.
        let (both, path) = (File::options().read(true).write(true).open(&pipe).unwrap(), pipe.clone());
        let reader = std::thread::spawn(move || {
            read(&path, 100).map(|(bytes, about)| (bytes.to_vec(), is_pipe(&about)))
        });
        for piece in [b"tacit", b" pipe"] {
            std::thread::sleep(Duration::from_millis(50));
            (&both).write_all(piece).unwrap();
        }
        std::thread::sleep(Duration::from_millis(200));
        drop(both);
        assert_eq!(reader.join().unwrap().unwrap(), (b"tacit pipe".to_vec(), true));
        // The writer comes after the reader.
        let path = pipe.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            std::fs::write(path, "late")
        });
        assert_eq!(*read(&pipe, 100).unwrap().0, b"late");
        writer.join().unwrap().unwrap();
        // A device that has nothing is an empty file. What has no end is cut.
        assert!(read(Path::new("/dev/null"), 100).unwrap().0.is_empty());
        assert_eq!(read(Path::new("/dev/zero"), 100).unwrap().0.len(), 101);
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let (bytes, about) = read(&file, 3).unwrap();
        assert!(*bytes == b"text" && !is_pipe(&about));
    }
}
