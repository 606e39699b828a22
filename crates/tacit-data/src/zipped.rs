//! The one table of a zip archive.

use crate::fault::{Error, Result, guarded};
use std::borrow::Cow;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use tacit_crypto::text::shown;
use zip::CompressionMethod;

/// Members that an error lists at most.
const LISTED: usize = 10;

/// Where the one member lies, and what it must come to.
#[derive(Clone, Copy)]
pub(crate) struct Member {
    start: u64,
    packed: u64,
    length: u64,
    checksum: u32,
    method: CompressionMethod,
}

impl Member {
    /// Finds the only file of the archive `stored`, which is called `path`; nothing in a workbook of Excel.
    pub(crate) fn find(path: &Path, stored: impl Read + Seek) -> Result<Option<Self>> {
        let refused = |what: String| Error::Archive { path: path.to_owned(), what };
        let damaged = |_| refused("not a whole zip archive; it is truncated or damaged".to_owned());
        let mut archive = guarded(|| zip::ZipArchive::new(stored)).map_err(damaged)?;
        let names: Vec<String> = archive.file_names().map(name_of).collect();
        if is_workbook(&names) {
            return Ok(None);
        }
        if let Some((kind, remedy)) = known(&names) {
            return Err(Error::Kind { path: path.to_owned(), kind, remedy });
        }
        let is_file = |name: &str| !name.ends_with(['/', '\\']) && !name.starts_with("__MACOSX/");
        let files: Vec<&str> = names.iter().map(String::as_str).filter(|name| is_file(name)).collect();
        let [name] = files[..] else { return Err(refused(several(&files))) };
        let at = names.iter().position(|other| other == name).unwrap_or(0);
        let found = guarded(|| {
            let file = archive.by_index_raw(at)?;
            let member = Member {
                start: file.data_start().unwrap_or(0),
                packed: file.compressed_size(),
                length: file.size(),
                checksum: file.crc32(),
                method: file.compression(),
            };
            Ok::<_, zip::result::ZipError>((member, file.encrypted()))
        });
        match found.map_err(damaged)? {
            (_, true) => Err(refused(format!("its file `{}` is encrypted; unpack it first", shown(name)))),
            (member, _) if !METHODS.contains(&member.method) => {
                let method = member.method;
                let what = format!("its file `{}` is compressed with {method}; unpack it first", shown(name));
                Err(refused(what))
            }
            (member, _) => Ok(Some(member)),
        }
    }

    /// Unpacks it out of its archive. What is not as long as the archive says, or has another checksum, ends in
    /// an error.
    pub(crate) fn unpack(
        self,
        mut stored: impl Read + Seek + 'static,
        buffer: usize,
    ) -> io::Result<Box<dyn Read>> {
        stored.seek(SeekFrom::Start(self.start))?;
        let packed = BufReader::with_capacity(buffer, stored.take(self.packed));
        let inner: Box<dyn Read> = match self.method {
            CompressionMethod::DEFLATE => Box::new(flate2::bufread::DeflateDecoder::new(packed)),
            CompressionMethod::BZIP2 => Box::new(bzip2::bufread::BzDecoder::new(packed)),
            CompressionMethod::ZSTD => Box::new(zstd::Decoder::with_buffer(packed)?),
            _ => Box::new(packed),
        };
        Ok(Box::new(Checked { inner, left: self.length, hasher: crc32fast::Hasher::new(), member: self }))
    }
}

/// A member's name; none where it cannot be read.
fn name_of<E>(name: std::result::Result<Cow<'_, str>, E>) -> String {
    name.map_or_else(|_| String::new(), Cow::into_owned)
}

/// The ways to pack that are read.
const METHODS: [CompressionMethod; 4] =
    [CompressionMethod::STORE, CompressionMethod::DEFLATE, CompressionMethod::BZIP2, CompressionMethod::ZSTD];

fn is_workbook(names: &[String]) -> bool {
    names.iter().any(|name| name == "xl/workbook.xml" || name == "xl/workbook.bin")
}

/// What programs keep in zip archives of their own.
fn known(names: &[String]) -> Option<(&'static str, &'static str)> {
    let has = |name: &str| names.iter().any(|one| one == name);
    if has("mimetype") && has("content.xml") {
        return Some(("an OpenDocument file", "save the sheet as CSV in UTF-8"));
    }
    if has("Index/Document.iwa") {
        return Some(("a Numbers document", "export the sheet as CSV"));
    }
    if !names.is_empty() && names.iter().all(|name| name.ends_with(".npy")) {
        return Some(("NumPy arrays (.npz)", "save them as CSV or Parquet"));
    }
    None
}

/// What is wrong with an archive of these files.
fn several(files: &[&str]) -> String {
    if files.is_empty() {
        return "a zip archive without a file".to_owned();
    }
    let listed: Vec<String> = files.iter().take(LISTED).map(|name| format!("`{}`", shown(name))).collect();
    let more = files.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("a zip archive of {} files ({}{more}); unpack it and name one", files.len(), listed.join(", "))
}

/// A member's bytes, held against what the archive says of them.
struct Checked {
    inner: Box<dyn Read>,
    left: u64,
    hasher: crc32fast::Hasher,
    member: Member,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        let ended = read == 0 && !buffer.is_empty();
        match self.left.checked_sub(read as u64) {
            Some(left) if !ended || left == 0 && self.hasher.clone().finalize() == self.member.checksum => {
                self.left = left;
                Ok(read)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
