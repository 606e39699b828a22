//! Which file a name leads to, however it is spelt.

use std::fs::File;
use std::io;
use std::path::Path;

/// What all names of one file share, hard links among them: the disk, and the file's number on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileId {
    disk: u64,
    number: u64,
}

#[cfg(unix)]
impl FileId {
    fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        FileId { disk: metadata.dev(), number: metadata.ino() }
    }

    /// The open file's.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_metadata(&file.metadata()?))
    }

    /// That of the file or folder at `path`, links followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of_metadata(&std::fs::metadata(path)?))
    }
}

#[cfg(windows)]
impl FileId {
    fn of_information(about: &winapi_util::file::Information) -> Self {
        FileId { disk: about.volume_serial_number(), number: about.file_index() }
    }

    /// The open file's.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::of_information(&winapi_util::file::information(file)?))
    }

    /// That of the file or folder at `path`, links followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        let handle = winapi_util::Handle::from_path_any(path)?;
        Ok(Self::of_information(&winapi_util::file::information(&handle)?))
    }
}

/// How many names the open file has; one that was removed has none.
pub fn names(file: &File) -> io::Result<u64> {
    #[cfg(unix)]
    return Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?));
    #[cfg(windows)]
    return Ok(winapi_util::file::information(file)?.number_of_links());
}

/// What kept a file from being opened. A folder is named as such: where folders cannot be opened at all, the system says
/// that it may not be.
pub fn open_fault(path: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied if path.is_dir() => io::ErrorKind::IsADirectory.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_file_are_one_and_a_copy_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("one"), "x").unwrap();
        std::fs::write(at("copy"), "x").unwrap();
        std::fs::hard_link(at("one"), at("link")).unwrap();
        let id = |name: &str| FileId::at(&at(name)).unwrap();
        assert_eq!(id("one"), id("link"));
        assert_ne!(id("one"), id("copy"));
        let open = File::open(at("one")).unwrap();
        assert_eq!(FileId::of(&open).unwrap(), id("./link"));
        assert_eq!(names(&open).unwrap(), 2);
        std::fs::remove_file(at("link")).unwrap();
        assert_eq!(names(&open).unwrap(), 1);
        assert!(FileId::at(&at("link")).is_err());
        FileId::at(folder.path()).unwrap();
    }
}
