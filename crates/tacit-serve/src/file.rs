//! Files that grow by whole lines and lose none in a crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tacit::data::file_id::FileId;
use tacit::net::durable::{folder_of, sync_names};
use tacit::{Error, Result};

/// A file of lines that grows at its end alone; what [`append`](Self::append) returned for is on the disk.
pub(crate) struct Lines {
    file: File,
    path: PathBuf,
    /// Bytes of whole lines.
    length: u64,
    /// Whether the file took another's place, and its name may not be on the disk.
    unsynced: bool,
    /// Whether a part of a line may be left of an append that failed.
    torn: bool,
    /// The lock, where it is not on the file.
    _beside: Option<File>,
}

/// Takes a line and its number, from 1.
pub(crate) type Take<'a> = &'a mut dyn FnMut(usize, &str) -> Result<()>;

/// Longest line of a file whose lines are all read, in bytes.
const LONGEST_WHOLE_LINE: u64 = 1 << 20;

impl Lines {
    /// Gives each whole line of the file to `take`, holding one at a time; a file that is not there has none.
    ///
    /// The file stays locked meanwhile; other processes wait.
    pub(crate) fn each(path: &Path, mut take: impl FnMut(&str)) -> Result<()> {
        let fault = |e| Error::file(path, "cannot be read", e);
        let file = match File::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(fault)?,
        };
        let _beside = locked(&file, path, |file| file.lock())?;
        let (mut file, mut line) = (BufReader::new(file), Vec::new());
        loop {
            line.clear();
            file.read_until(b'\n', &mut line).map_err(fault)?;
            if line.pop() != Some(b'\n') {
                return Ok(());
            }
            take(std::str::from_utf8(&line).map_err(|e| fault(std::io::Error::other(e)))?);
        }
    }

    /// Opens the file, made if there is none, and gives each whole line and its number to `take`, holding one
    /// at a time. What stands behind the last line's end is what a crash left of an append that never
    /// returned, and is cut off.
    ///
    /// The file stays locked while this lives, by a file of its own beside it, which outlives
    /// [`replace`](Self::replace); an error if another process has it.
    pub(crate) fn open_alone(path: &Path, take: Take<'_>) -> Result<Self> {
        let alone = beside(path, try_lock)?;
        let file = opened(path)?;
        if !LOCKS_KEEP_READERS_OUT {
            // Earlier releases know no other lock.
            lock(&file, path, try_lock)?;
        }
        let whole = whole_lines(path, &file, take)?;
        let length = file.metadata().map_err(|e| Error::file(path, "cannot be read", e))?.len();
        if whole < length {
            cut(&file, path, whole).map_err(|e| Error::file(path, "cannot be mended", e))?;
        }
        Ok(Lines {
            file,
            path: path.to_owned(),
            length: whole,
            unsynced: false,
            torn: false,
            _beside: Some(alone),
        })
    }

    /// Gives each whole line of the file and its number to `take`, without a lock: the file may grow
    /// meanwhile, or be replaced. One that is not there has none.
    pub(crate) fn look(path: &Path, take: Take<'_>) -> Result<()> {
        match File::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(Error::file(path, "cannot be read", e)),
            Ok(file) => whole_lines(path, &file, take).map(|_| ()),
        }
    }

    /// Bytes of whole lines.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Puts these lines in the place of all that are there: a crash leaves the old ones or the new ones. After
    /// an error the old ones are there.
    pub(crate) fn replace(&mut self, lines: &[String]) -> Result<()> {
        let next = self.path.with_extension("new");
        let fault = |e| Error::file(&next, "cannot be written; is the disk full?", e);
        // What a crash left of an earlier one.
        match std::fs::remove_file(&next) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(fault(e)),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = private_file(options.read(true).append(true).create_new(true)).open(&next);
        let mut file = file.map_err(fault)?;
        if !LOCKS_KEEP_READERS_OUT {
            file.try_lock().map_err(|_| fault(ErrorKind::ResourceBusy.into()))?;
        }
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        let renamed = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&next, &self.path));
        renamed.map_err(fault)?;
        (self.file, self.length) = (file, text.len() as u64);
        // Until its name is on the disk nothing is added to it: what fails now is tried again then.
        self.unsynced = true;
        self.torn = false;
        let _ = self.sync();
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            sync_folder(&self.path)?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Opens the file, made if there is none, and returns its last whole line: what is read does not grow with the
    /// file. Other processes wait for the lock.
    pub(crate) fn open_last(path: &Path) -> Result<(Self, Option<String>)> {
        let fault = |e| Error::file(path, "cannot be read", e);
        let mut file = opened(path)?;
        let beside = locked(&file, path, |file| file.lock())?;
        let length = file.metadata().map_err(fault)?.len();
        let (mut from, mut tail) = (length, Vec::new());
        // The last line's end, and that of the one before it.
        let ends = |tail: &[u8]| {
            let mut found = (0..tail.len()).rev().filter(|&at| tail[at] == b'\n');
            (found.next(), found.next())
        };
        while from > 0 && ends(&tail).1.is_none() {
            let step = from.min(1 << 16);
            from -= step;
            let mut piece = vec![0; step as usize];
            file.seek(SeekFrom::Start(from)).and_then(|_| file.read_exact(&mut piece)).map_err(fault)?;
            piece.append(&mut tail);
            tail = piece;
        }
        let (end, before) = ends(&tail);
        let whole = end.map_or(0, |end| from + end as u64 + 1);
        if whole < length {
            cut(&file, path, whole).map_err(|e| Error::file(path, "cannot be mended", e))?;
        }
        let line = match end {
            Some(end) => {
                let line = tail[before.map_or(0, |at| at + 1)..end].to_vec();
                Some(String::from_utf8(line).map_err(|e| fault(std::io::Error::other(e)))?)
            }
            None => None,
        };
        Ok((
            Lines {
                file,
                path: path.to_owned(),
                length: whole,
                unsynced: false,
                torn: false,
                _beside: beside,
            },
            line,
        ))
    }

    /// An error where the file takes no line: what is written to a file without a name is lost at the next start, and
    /// what follows half a line too.
    pub(crate) fn check(&self) -> Result<()> {
        if self.torn {
            let what = "may end in an incomplete line, and accepts no more; restart the service, which \
                        repairs it";
            return Err(Error::Input(format!("{} {what}", shown(&self.path))));
        }
        match is_named(&self.file, &self.path) {
            true => Ok(()),
            false => Err(is_gone(&self.path)),
        }
    }

    /// Adds one line, which is on the disk when this returns; after an error nothing of it is there, or nothing is
    /// added any more.
    pub(crate) fn append(&mut self, line: &str) -> Result<()> {
        self.sync()?;
        self.check()?;
        let text = format!("{line}\n");
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would run into the next one.
            let cut = cut(&self.file, &self.path, self.length);
            self.torn = cut.and_then(|()| self.file.seek(SeekFrom::End(0))).is_err();
            return Err(Error::file(&self.path, "cannot be written; is the disk full?", error));
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

/// Whether the file is the one of this name.
fn is_named(file: &File, path: &Path) -> bool {
    FileId::of(file).is_ok_and(|own| FileId::at(path).is_ok_and(|named| own == named))
}

/// Gives each whole line of the file to `take`, holding one at a time; returns their bytes.
fn whole_lines(path: &Path, file: &File, take: Take<'_>) -> Result<u64> {
    let fault = |e| Error::file(path, "cannot be read", e);
    let (mut file, mut line, mut whole) = (BufReader::new(file), Vec::new(), 0);
    for number in 1.. {
        line.clear();
        let read = (&mut file).take(LONGEST_WHOLE_LINE).read_until(b'\n', &mut line).map_err(fault)?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            if read as u64 == LONGEST_WHOLE_LINE {
                return Err(Error::Input(format!(
                    "{}, line {number}: too long; restore a copy",
                    shown(path)
                )));
            }
            break;
        }
        take(number, std::str::from_utf8(&line).map_err(|e| fault(std::io::Error::other(e)))?)?;
        whole += read as u64;
    }
    Ok(whole)
}

/// A file that somebody took away while it was in use.
pub(crate) fn is_gone(path: &Path) -> Error {
    Error::Input(format!("{} was moved, removed or replaced while it was in use; restore it", shown(path)))
}

fn try_lock(file: &File) -> std::io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => ErrorKind::ResourceBusy.into(),
        TryLockError::Error(error) => error,
    })
}

/// Whether nobody else can read a file that is locked, as on Windows.
const LOCKS_KEEP_READERS_OUT: bool = cfg!(windows);

/// Locks the file, or one beside it where a lock would keep readers out; that one is returned.
fn locked(file: &File, path: &Path, take: fn(&File) -> std::io::Result<()>) -> Result<Option<File>> {
    match LOCKS_KEEP_READERS_OUT {
        true => beside(path, take).map(Some),
        false => lock(file, path, take).map(|()| None),
    }
}

/// The lock that is a file of its own, beside the file at `path`.
fn beside(path: &Path, take: fn(&File) -> std::io::Result<()>) -> Result<File> {
    let path = path.with_extension("lock");
    let file = opened(&path)?;
    lock(&file, &path, take)?;
    Ok(file)
}

fn lock(file: &File, path: &Path, take: fn(&File) -> std::io::Result<()>) -> Result<()> {
    take(file).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => Error::Input(format!(
            "{}: another service runs with this `state`; stop it first, or set another directory",
            shown(path)
        )),
        _ => Error::file(path, "cannot be locked", error),
    })
}

/// The file, made if there is none.
fn opened(path: &Path) -> Result<File> {
    let new = !path.exists();
    let file = private_file(OpenOptions::new().read(true).append(true).create(true)).open(path);
    let file = file.map_err(|e| Error::file(path, "cannot be opened", e))?;
    if new {
        sync_folder(path)?;
    }
    Ok(file)
}

/// Leaves so many bytes of the file at `path`, on the disk.
fn cut(file: &File, path: &Path, length: u64) -> std::io::Result<()> {
    // On Windows what only appends may not shorten.
    let again = if cfg!(windows) { Some(OpenOptions::new().write(true).open(path)?) } else { None };
    let file = again.as_ref().unwrap_or(file);
    file.set_len(length).and_then(|()| file.sync_all())
}

/// A file that, on Unix, its owner alone can read, if these options make one.
pub(crate) fn private_file(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes the name of a new file as durable as its content.
pub(crate) fn sync_folder(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    sync_names(folder).map_err(|e| Error::file(folder, "cannot be synced", e))
}

/// Makes a folder that, on Unix, its owner alone can enter, if there is none; its name is on the disk when this
/// returns, because files synced in a folder are lost if a crash removes the folder.
pub(crate) fn private_folder(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    // One that is there may be of a process that was killed before it was on the disk.
    let above = path.ancestors().skip(1).take_while(is_new);
    let unsynced: Vec<&Path> = std::iter::once(path).chain(above).collect();
    let made = builder.recursive(true).create(path);
    made.map_err(|e| Error::file(path, "cannot be created; create the directory or choose another", e))?;
    unsynced.into_iter().try_for_each(sync_folder)
}

/// The path, fit for a line of text.
pub(crate) fn shown(path: &Path) -> String {
    tacit::net::shown(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(path: &Path) -> Result<(Lines, Vec<String>)> {
        let mut found = Vec::new();
        let lines = Lines::open_alone(path, &mut |_, line| {
            found.push(line.to_owned());
            Ok(())
        });
        lines.map(|lines| (lines, found))
    }

    /// What is added to a file that was moved away would not be there at the next start.
    #[cfg(unix)]
    #[test]
    fn a_file_without_its_name_takes_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut lines, _) = all_of(&path).unwrap();
        lines.append("one").unwrap();
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        let error = lines.append("two").unwrap_err().to_string();
        assert!(
            error.ends_with("lines was moved, removed or replaced while it was in use; restore it"),
            "{error}"
        );
        std::fs::write(&path, "another\n").unwrap();
        assert!(lines.append("two").is_err());
        std::fs::rename(folder.path().join("moved"), &path).unwrap();
        lines.append("three").unwrap();
        drop(lines);
        assert_eq!(all_of(&path).unwrap().1, ["one", "three"]);
    }

    /// What is replaced is the old file or the new one, whatever a crash left, and nobody gets between.
    #[test]
    fn lines_are_replaced_as_a_whole_and_stay_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        std::fs::write(folder.path().join("lines.new"), "half of an earl").unwrap();
        let (mut lines, found) = all_of(&path).unwrap();
        assert_eq!(found, ["one", "two"]);
        // Another process opened the old file just before.
        let old = File::open(&path).unwrap();
        lines.replace(&["three".to_owned()]).unwrap();
        assert!(all_of(&path).is_err(), "locked after it was replaced");
        lines.append("four").unwrap();
        drop((lines, old));
        assert_eq!(all_of(&path).unwrap().1, ["three", "four"]);
        assert!(!folder.path().join("lines.new").exists());
        // Where nothing can be written beside it, the old lines stay.
        let (mut lines, _) = all_of(&path).unwrap();
        std::fs::create_dir(folder.path().join("lines.new")).unwrap();
        assert!(lines.replace(&["five".to_owned()]).is_err());
        lines.append("six").unwrap();
        drop(lines);
        assert_eq!(all_of(&path).unwrap().1, ["three", "four", "six"]);
        std::fs::write(&path, vec![b'x'; 3 << 20]).unwrap();
        assert!(all_of(&path).is_err(), "a line without an end");
    }

    /// Neither the line nor the cut behind it can be written: what follows would run into half a line, and the file
    /// would not open again.
    #[cfg(unix)]
    #[test]
    fn after_half_a_line_that_cannot_be_cut_off_nothing_is_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut lines, _) = all_of(&path).unwrap();
        lines.append("one").unwrap();
        let able = std::mem::replace(&mut lines.file, File::open(&path).unwrap());
        assert!(lines.append("two").is_err());
        lines.file = able;
        lines.file.write_all(b"tw").unwrap();
        let error = lines.append("three").unwrap_err().to_string();
        assert!(error.contains("incomplete line"), "{error}");
        drop(lines);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntw");
        // The next start mends it; and so does writing it anew.
        let (mut lines, found) = all_of(&path).unwrap();
        assert_eq!(found, ["one"]);
        lines.torn = true;
        lines.replace(&["two".to_owned()]).unwrap();
        lines.append("three").unwrap();
        drop(lines);
        assert_eq!(all_of(&path).unwrap().1, ["two", "three"]);
    }

    #[test]
    fn a_torn_tail_is_cut_and_whole_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let (mut lines, found) = all_of(&path).unwrap();
        assert!(found.is_empty());
        lines.append("one").unwrap();
        lines.append("two").unwrap();
        let error = all_of(&path).err().unwrap().to_string();
        assert!(error.contains("another service runs with this `state`"), "two at once: {error}");
        drop(lines);
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        let (mut lines, found) = all_of(&path).unwrap();
        assert_eq!(found, ["one", "two"]);
        lines.append("three").unwrap();
        drop(lines);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }

    #[test]
    fn whole_lines_are_gone_through_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let lines = || {
            let mut found = Vec::new();
            Lines::each(&path, |line| found.push(line.to_owned())).map(|()| found)
        };
        assert!(lines().unwrap().is_empty(), "no file, no line");
        let long = "x".repeat(1 << 17);
        for text in ["", "to", "one\n", "\n", "one\n\ntwo\nthr", &format!("{long}\na\n")] {
            std::fs::write(&path, text).unwrap();
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            assert_eq!(lines().unwrap(), text[..whole].lines().collect::<Vec<_>>());
        }
        std::fs::write(&path, b"one\n\xff\n").unwrap();
        assert!(lines().is_err(), "no text");
    }

    #[test]
    fn the_last_line_alone_is_that_of_all_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(1 << 17);
        for text in [
            "",
            "to",
            "one\n",
            "\n",
            "one\ntwo\n",
            "one\ntwo\nthr",
            "a\n\n",
            &format!("{long}\n{long}\nt"),
            &long,
        ] {
            std::fs::write(&path, text).unwrap();
            let (mut lines, last) = Lines::open_last(&path).unwrap();
            lines.append("next").unwrap();
            drop(lines);
            let found = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text).unwrap();
            let (mut lines, all) = all_of(&path).unwrap();
            lines.append("next").unwrap();
            assert_eq!((last, found), (all.last().cloned(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}
