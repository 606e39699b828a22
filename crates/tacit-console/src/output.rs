//! Files that a run writes: refused before it where they would replace what must stay, and whole or absent
//! after it.
//!
//! A file is written beside its place under the name `.tacit-out-….part` and renamed when it is finished.
//! While it grows, its writer holds a lock on it, so that whoever next writes to the folder can tell what a
//! killed run left there, and removes it. A pipe or a character device is written to where it is, and never
//! renamed over. An object in a store is written in parts, and is there when all of them are.

use crate::fault::Unfinished;
use crate::os;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tacit::data::file_id::{self, FileId};
use tacit::data::object::Upload;
use tacit::data::{self, place};
use tacit::net::durable::{self, folder_of, sync_names};
use tacit::net::shown;
use tacit::{Error, Result};
use tempfile::NamedTempFile;

/// How the names of unfinished files begin and end.
const PART: [&str; 2] = [".tacit-out-", ".part"];
/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 16;
/// Symbolic links that are followed, as many as Linux follows.
const LINKS: usize = 40;
/// Bytes of a key and a signature in front of a message of `tacit nisc`, with the version.
const AUTHOR: usize = 1 + 32 + 64;
/// Bytes of a file that are looked at to see whether it may be replaced.
const HEAD: u64 = 4096;

/// Whether files may be replaced: the command line's `--overwrite`, which holds for the whole process.
static OVERWRITE: AtomicBool = AtomicBool::new(false);

/// From now on files that hold no secret and no state of security may be replaced.
pub fn allow_overwrite() {
    OVERWRITE.store(true, Ordering::Relaxed);
}

/// What an output's name leads to.
pub enum Target {
    /// Nothing yet: a file of this path will be made.
    New(PathBuf),
    /// A file, every symbolic link followed.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A pipe or a character device, or a descriptor of this process.
    Stream(PathBuf),
    /// An object in a store.
    Object,
}

impl Target {
    /// Follows `target` to what would be written. Errors: a folder, a query, a link that leads nowhere, no
    /// folder to be in.
    pub fn of(target: &Path) -> Result<Self> {
        if target == Path::new("-") {
            return Ok(Target::Stdout);
        }
        match place::Place::of(target).map_err(|what| data::csv::Error::address(target, what))? {
            place::Place::Local => {}
            place::Place::Object { .. } => return Ok(Target::Object),
            place::Place::Query | place::Place::Driver => {
                return Err(unwritable(target, "a query cannot be an output; name a file"));
            }
            place::Place::Web => {
                return Err(unwritable(target, "a server cannot be an output; name a file"));
            }
        }
        let mut path = target.to_owned();
        for _ in 0..LINKS {
            if let Some(stream) = descriptor(&path) {
                return Ok(stream);
            }
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                Err(e) if e.kind() == io::ErrorKind::NotFound && path == target => return Self::new(path),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(unwritable(target, "it is a broken symbolic link; remove it"));
                }
                Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                    return Err(unwritable(target, "its directory is a file; choose another"));
                }
                Err(e) => return Err(unwritable(target, &format!("{e}; choose another name"))),
            };
            let kind = metadata.file_type();
            if kind.is_symlink() {
                let next = fs::read_link(&path).map_err(|e| unwritable(target, &e.to_string()))?;
                path = folder_of(&path).join(next);
            } else if kind.is_dir() {
                return Err(unwritable(target, "it is a directory; name a file in it"));
            } else if kind.is_file() {
                return Ok(Target::File(path));
            } else if os::is_stream(kind) {
                return Ok(Target::Stream(path));
            } else {
                return Err(unwritable(target, "it is neither a file, a pipe nor a character device"));
            }
        }
        Err(unwritable(target, "too many symbolic links; name the file itself"))
    }

    fn new(path: PathBuf) -> Result<Self> {
        if !matches!(path.components().next_back(), Some(Component::Normal(_))) {
            return Err(unwritable(&path, "the name is not that of a file"));
        }
        match fs::metadata(folder_of(&path)) {
            Ok(metadata) if metadata.is_dir() => Ok(Target::New(path)),
            Ok(_) => Err(unwritable(&path, "its directory is a file; choose another")),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(unwritable(&path, "its directory does not exist; create it or choose another"))
            }
            Err(e) => Err(unwritable(&path, &format!("{e}; choose another directory"))),
        }
    }

    /// What stands there, so that two names of one file are known.
    pub(crate) fn identity(&self) -> Option<FileId> {
        match self {
            Target::New(_) | Target::Object => None,
            Target::File(path) | Target::Stream(path) => FileId::at(path).ok(),
            Target::Stdout => os::standard(false).and_then(|file| FileId::of(&file)).ok(),
            Target::Stderr => os::standard(true).and_then(|file| FileId::of(&file)).ok(),
        }
    }

    /// Refuses a file that stands there and must stay; `secret` is of a new file that would hold a secret, or
    /// serve once.
    fn admit(&self, target: &Path, secret: bool) -> Result<()> {
        let refuse = |what: &str| Err(Error::Input(format!("{}: {what}", name(target))));
        match self {
            Target::New(_) => Ok(()),
            Target::File(_) if secret => refuse("exists already and is not overwritten; choose another name"),
            Target::File(_) if !OVERWRITE.load(Ordering::Relaxed) => {
                refuse("exists already and is not overwritten; choose another name, or add --overwrite")
            }
            Target::File(path) => match precious(path) {
                Ok(Some(what)) => {
                    refuse(&format!("is {what}, which is never overwritten; choose another name"))
                }
                Ok(None) => os::check_writable(path)
                    .map_err(|e| unwritable(target, &format!("{e}; choose another name"))),
                Err(e) => refuse(&format!("cannot be read: {e}; choose another name to keep its content")),
            },
            _ if secret => refuse("a file with a secret, or for one use, must be a regular file"),
            Target::Stdout | Target::Stderr => Ok(()),
            Target::Object => Ok(Upload::check(target, OVERWRITE.load(Ordering::Relaxed))?),
            Target::Stream(path) => {
                os::check_writable(path).map_err(|e| unwritable(target, &format!("{e}; choose another name")))
            }
        }
    }
}

/// A name of one of the process's own descriptors. They are not followed further: what they are links to may
/// have no name.
fn descriptor(path: &Path) -> Option<Target> {
    let path_text = path.to_str()?;
    let number = match path_text {
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ => path_text.strip_prefix("/dev/fd/").or_else(|| path_text.strip_prefix("/proc/self/fd/"))?,
    };
    match number {
        "1" => Some(Target::Stdout),
        "2" => Some(Target::Stderr),
        _ if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            fs::metadata(path).ok().map(|_| Target::Stream(path.to_owned()))
        }
        _ => None,
    }
}

/// What a file is that must not be lost, by its first bytes.
fn precious(path: &Path) -> io::Result<Option<&'static str>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    // What is signed has its author's key and signature in front.
    if let Some(message) = head.strip_prefix(b"tacitsign").and_then(|rest| rest.get(AUTHOR..)) {
        head = message.to_vec();
    }
    // Secrets in text are read with a byte order mark too.
    if let Some(text) = head.strip_prefix(b"\xEF\xBB\xBF") {
        head = text.to_vec();
    }
    let kinds: [(&[u8], &str); 11] = [
        (b"tacit-ed25519-private", "a private key"),
        (b"tacit-ed25519 ", "a public key"),
        (b"TACITPOL", "a pool of correlations"),
        (b"TACITAP1", "a pool of prepared gates"),
        (b"TACITST", "a state of tacit eval --offline"),
        (b"tacitdeal", "a dealer's seed"),
        (b"tacitused", "a dealer's seed that served"),
        (b"tacitnisc", "a key of tacit nisc"),
        (b"tacitprf", "a private file of tacit tags"),
        (b"tacit-pair-key", "a key of tacit pair"),
        (b"tacit-pair-salt", "a salt of tacit pair"),
    ];
    // Of what `tacit nisc` writes, kinds 1, 2, 4 and 10 are keys; the version stands before the kind.
    let is_message =
        |head: &[u8]| head.starts_with(b"tacitnisc") && !matches!(head.get(10), Some(1 | 2 | 4 | 10));
    let pem = head.windows(16).any(|window| window == b"PRIVATE KEY-----");
    let found = kinds.iter().find(|(magic, _)| head.starts_with(magic) && !is_message(&head));
    Ok(found.map(|(_, what)| *what).or(pem.then_some("a private key")).or_else(|| kept_lines(path, &head)))
}

/// What a file of lines is in which a budget, a run or a succession is remembered.
fn kept_lines(path: &Path, head: &[u8]) -> Option<&'static str> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let hex = |at: usize| line.get(at..at + 64).is_some_and(|part| part.iter().all(u8::is_ascii_hexdigit));
    if hex(0) && line.get(64..67) == Some(b" {\"") {
        return Some("a service's ledger");
    }
    if hex(0) && line.get(64) == Some(&b' ') && hex(65) && line.len() == 140 {
        return Some("a memory of which key follows which");
    }
    if line.starts_with(b"{\"input_salt\":") || line.starts_with(b"{\"charge\":{") {
        return Some("the private part of records");
    }
    // A chain that was exported has the same lines, and no private part beside it.
    let is_chain = line.starts_with(b"{\"begun\":") || line.starts_with(b"{\"common\":");
    (is_chain && folder_of(path).join("private.jsonl").exists()).then_some("a chain of records")
}

/// An output under way. Dropped before [`commit`](Self::commit), a file leaves nothing.
///
/// A new file can be read and written by its owner alone, because what two parties compute is theirs.
pub struct Output {
    place: Place,
    target: PathBuf,
    /// Where the next byte goes, and the end of what was written.
    position: u64,
    end: u64,
}

enum Place {
    /// A file beside its place.
    Part(Part),
    /// A stream.
    Stream(BufWriter<File>),
    /// A nameless file, copied to a stream at the end.
    Spool(BufWriter<File>, File),
    /// An object in a store, written in parts.
    Object(Upload),
}

struct Part {
    file: BufWriter<NamedTempFile>,
    /// Where it belongs, links followed.
    place: PathBuf,
    replaces: Replaces,
    // Last, so that it is dropped after the file.
    _unfinished: Unfinished,
}

/// What a finished file may take the place of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaces {
    Nothing,
    /// An output of that name, as the command line says.
    Output,
    /// The file of which it is the next state.
    Itself,
}

impl Output {
    /// An output written from its start to its end.
    pub fn create(target: &Path) -> Result<Self> {
        if matches!(Target::of(target)?, Target::Object) {
            let place = Place::Object(Upload::begin(target, OVERWRITE.load(Ordering::Relaxed))?);
            return Ok(Output { place, target: target.to_owned(), position: 0, end: 0 });
        }
        Self::open(target, |stream| Ok(Place::Stream(BufWriter::with_capacity(BUFFER, stream))), false)
    }

    /// An output written in any order. What goes to a stream is gathered in a nameless file first.
    pub fn create_archive(target: &Path) -> Result<Self> {
        let spool = |stream| {
            let file = tempfile::tempfile()
                .map_err(|e| unwritable(target, &format!("{e}, in {}", name(&std::env::temp_dir()))))?;
            Ok(Place::Spool(BufWriter::with_capacity(BUFFER, file), stream))
        };
        Self::open(target, spool, false)
    }

    /// The same output for everybody to read, as the user's files usually are: others are its owner's alone. For
    /// what is passed on anyway.
    pub fn for_everyone(mut self) -> Result<Self> {
        if let Place::Part(Part { place, replaces, .. }) = &self.place {
            self.place = Place::Part(Part::new(place.clone(), &self.target, *replaces, true)?);
        }
        Ok(self)
    }

    /// A new file that holds a secret or serves once: it never replaces another, whatever the command line
    /// says.
    pub fn create_secret(target: &Path) -> Result<Self> {
        Self::open(target, |stream| Ok(Place::Stream(BufWriter::new(stream))), true)
    }

    /// The same for a key that is written at once: nothing of it is gathered in memory, where it would stay.
    pub fn create_key(target: &Path) -> Result<Self> {
        Self::gathering(target, |stream| Ok(Place::Stream(BufWriter::with_capacity(0, stream))), true, 0)
    }

    /// An output that the same job may have left already, when it was killed at its end.
    pub fn create_again(target: &Path) -> Result<Self> {
        match Target::of(target)? {
            Target::File(_) => Self::next_state(target),
            // What stands there is the job's own, if it is what it left.
            Target::Object => {
                let place = Place::Object(Upload::begin(target, true)?);
                Ok(Output { place, target: target.to_owned(), position: 0, end: 0 })
            }
            _ => Self::create(target),
        }
    }

    /// The next state of a file that the command keeps, and that the caller holds open.
    pub fn next_state(target: &Path) -> Result<Self> {
        let Target::File(path) = Target::of(target)? else {
            return Err(unwritable(target, "it is not a file any more"));
        };
        let place = Place::Part(Part::new(path, target, Replaces::Itself, false)?);
        Ok(Output { place, target: target.to_owned(), position: 0, end: 0 })
    }

    /// Whether an output could be made at `target`, which is left as it is.
    pub fn check(target: &Path, secret: bool) -> Result<()> {
        let found = Target::of(target)?;
        found.admit(target, secret)?;
        match found {
            Target::New(path) | Target::File(path) => part(&path, target, false).map(drop),
            _ => Ok(()),
        }
    }

    fn open(target: &Path, stream: impl FnOnce(File) -> Result<Place>, secret: bool) -> Result<Self> {
        Self::gathering(target, stream, secret, BUFFER)
    }

    /// As [`open`](Self::open), of a file that gathers so many bytes before they are written.
    fn gathering(
        target: &Path,
        stream: impl FnOnce(File) -> Result<Place>,
        secret: bool,
        buffer: usize,
    ) -> Result<Self> {
        let found = Target::of(target)?;
        found.admit(target, secret)?;
        let closed = |e: io::Error| unwritable(target, &e.to_string());
        let place = match found {
            Target::New(path) => Place::Part(Part::buffered(path, target, Replaces::Nothing, false, buffer)?),
            Target::File(path) => Place::Part(Part::buffered(path, target, Replaces::Output, false, buffer)?),
            Target::Stdout => stream(os::standard(false).map_err(closed)?)?,
            Target::Stderr => stream(os::standard(true).map_err(closed)?)?,
            Target::Stream(path) => stream(open_stream(&path, target)?)?,
            Target::Object => return Err(unwritable(target, "only tables can go to a store; name a file")),
        };
        Ok(Output { place, target: target.to_owned(), position: 0, end: 0 })
    }

    /// Makes sure that `bytes` have room, and takes it where the file system lets one. A stream has no limit.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        let file = match &mut self.place {
            Place::Part(part) => part.file.get_ref().as_file(),
            Place::Spool(spool, _) => spool.get_ref(),
            Place::Stream(_) => return Ok(()),
            Place::Object(upload) => {
                upload.expect(bytes);
                return Ok(());
            }
        };
        let full = |free: Option<u64>| {
            let free = free.map_or(String::new(), |free| format!(", and {} MiB are free", free >> 20));
            unwritable(
                &self.target,
                &format!(
                    "it may need {} MiB{free}; free some space or choose another disk",
                    bytes.div_ceil(1 << 20)
                ),
            )
        };
        if let Some(free) = os::free_room(file).filter(|free| bytes > *free) {
            return Err(full(Some(free)));
        }
        if bytes > 0 && !os::take_room(file, bytes) {
            return Err(full(None));
        }
        Ok(())
    }

    /// Forces the finished file to the disk, still beside its place, so that what it used up is not lost to a
    /// full disk.
    pub fn settle(&mut self) -> Result<()> {
        let settled = match &mut self.place {
            Place::Part(part) => part.file.flush().and_then(|()| {
                let file = part.file.get_ref().as_file();
                // What was reserved may have been more.
                file.set_len(self.end)?;
                file.sync_all()
            }),
            Place::Stream(stream) => stream.flush(),
            Place::Object(upload) => upload.flush(),
            Place::Spool(spool, _) => spool.flush().and_then(|()| spool.get_ref().set_len(self.end)),
        };
        settled.map_err(|e| write_fault(&self.target, e))
    }

    /// Moves the finished file to its place in one step; ends a stream.
    pub fn commit(mut self) -> Result<()> {
        self.settle()?;
        let Output { place, target, .. } = self;
        let fault = |e| write_fault(&target, e);
        match place {
            Place::Part(part) => part.commit(&target),
            Place::Stream(stream) => stream.into_inner().map(drop).map_err(|e| fault(e.into_error())),
            Place::Object(upload) => Ok(upload.finish()?),
            Place::Spool(spool, mut stream) => {
                let mut spool = spool.into_inner().map_err(|e| fault(e.into_error()))?;
                spool.rewind().and_then(|()| io::copy(&mut spool, &mut stream)).map(drop).map_err(fault)
            }
        }
    }

    /// The name that was asked for.
    pub fn target(&self) -> &Path {
        &self.target
    }
}

impl Part {
    fn new(place: PathBuf, target: &Path, replaces: Replaces, is_public: bool) -> Result<Self> {
        Self::buffered(place, target, replaces, is_public, BUFFER)
    }

    /// As [`new`](Self::new), with so many bytes gathered before they are written.
    fn buffered(
        place: PathBuf,
        target: &Path,
        replaces: Replaces,
        is_public: bool,
        buffer: usize,
    ) -> Result<Self> {
        let temp = part(&place, target, is_public)?;
        let unfinished = Unfinished::new(temp.path());
        let file = BufWriter::with_capacity(buffer, temp);
        Ok(Part { file, place, replaces, _unfinished: unfinished })
    }

    fn commit(self, target: &Path) -> Result<()> {
        let fault = |e| write_fault(target, e);
        let temp = self.file.into_inner().map_err(|e| fault(e.into_error()))?;
        // Time has passed since the first look.
        let place = match (Target::of(&self.place)?, self.replaces) {
            (Target::New(place), _) => temp.persist_noclobber(place).map_err(|e| e.error),
            (found @ Target::File(_), Replaces::Output) => {
                found.admit(target, false)?;
                durable::replace(temp, &self.place)
            }
            (Target::File(_), Replaces::Itself) => durable::replace(temp, &self.place),
            _ => {
                return Err(Error::Input(format!(
                    "{}: was created by another process during the run and is not overwritten; run again",
                    name(target)
                )));
            }
        };
        place.map_err(fault)?;
        sync_folder(&self.place);
        Ok(())
    }
}

/// Makes the name of a new file as durable as its content, where the file system can.
fn sync_folder(file: &Path) {
    // The output is in its place; when its name is on the disk is otherwise for the system to say.
    let _ = sync_names(folder_of(file));
}

/// A locked file in the folder of `place`, after those that killed runs left there are gone.
fn part(place: &Path, target: &Path, is_public: bool) -> Result<NamedTempFile> {
    let folder = folder_of(place);
    sweep(folder);
    loop {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PART[0]).suffix(PART[1]).rand_bytes(10);
        if is_public {
            os::give_usual_rights(&mut builder);
        }
        // The library's words name the unfinished file.
        let temp = builder.tempfile_in(folder).map_err(|e| {
            let why = match e.kind() {
                io::ErrorKind::PermissionDenied => {
                    "its directory is not writable; change its permissions or choose another".to_owned()
                }
                io::ErrorKind::NotFound => {
                    "there is no such directory; create it or choose another".to_owned()
                }
                kind => format!("{}; choose another directory", io::Error::from(kind)),
            };
            unwritable(target, &why)
        })?;
        // Another run's sweep may take a file for a dead one before its lock is on it.
        let file = temp.as_file();
        let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !taken && !file_id::names(file).is_ok_and(|names| names == 0) {
            return Ok(temp);
        }
    }
}

/// Removes unfinished files on which no living process has its lock.
fn sweep(folder: &Path) {
    // Whatever cannot be listed, opened or removed stays: it costs room alone.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let is_part = found.to_str().is_some_and(|n| n.starts_with(PART[0]) && n.ends_with(PART[1]));
        if !is_part || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Opens a pipe, a device or a descriptor. Does not wait for somebody to read a pipe.
fn open_stream(path: &Path, target: &Path) -> Result<File> {
    match os::open_stream(path) {
        Ok(Some(file)) => Ok(file),
        Ok(None) => Err(unwritable(target, "this pipe has no reader; start the reader first")),
        Err(e) => Err(unwritable(target, &format!("{e}; choose another name"))),
    }
}

/// Where an output went, fit for a line of text: standard output is no file.
pub fn destination(path: &Path) -> String {
    if path == Path::new("-") { "standard output".to_owned() } else { name(path) }
}

/// The path, fit for a line of text; of an address without its password.
pub fn name(path: &Path) -> String {
    shown(&place::shown(path).to_string_lossy())
}

fn unwritable(target: &Path, why: &str) -> Error {
    Error::Input(format!("{}: cannot be written: {why}", name(target)))
}

/// The fault of a write towards `target`.
pub fn write_fault(target: &Path, source: io::Error) -> Error {
    let what = match source.kind() {
        _ if os::is_reader_gone(&source) => "cannot be written; is the reader of the pipe gone?",
        _ => "cannot be written; is the disk full?",
    };
    Error::file(target, what, source)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = match &mut self.place {
            Place::Part(part) => part.file.write(bytes),
            Place::Object(upload) => upload.write(bytes),
            Place::Stream(file) | Place::Spool(file, _) => file.write(bytes),
        }?;
        self.position += n as u64;
        self.end = self.end.max(self.position);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::Part(part) => part.file.flush(),
            Place::Object(upload) => upload.flush(),
            Place::Stream(file) | Place::Spool(file, _) => file.flush(),
        }
    }
}

impl Seek for Output {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = match &mut self.place {
            Place::Part(part) => part.file.seek(to),
            Place::Stream(_) | Place::Object(_) => Err(io::ErrorKind::NotSeekable.into()),
            Place::Spool(file, _) => file.seek(to),
        }?;
        Ok(self.position)
    }
}

/// Opens a local file for reading, with the cause and the remedy when that fails.
pub fn open(path: &Path) -> Result<File> {
    let refuse = |what: String| Err(Error::Input(format!("{}: {what}", name(path))));
    match File::open(path).map_err(|e| file_id::open_fault(path, e)) {
        Ok(_) if path.is_dir() => refuse("is a directory; name a file in it".into()),
        Ok(file) => Ok(file),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
            refuse("is a directory; name a file in it".into())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => refuse("no such file; check the path".into()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            refuse("permission denied; check the file's permissions".into())
        }
        Err(e) => refuse(format!("cannot be read: {e}")),
    }
}
