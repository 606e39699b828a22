//! Names on the disk: a file that was synced is lost all the same if a crash takes its name, or its folder's.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use tempfile::NamedTempFile;

/// The folder that a file's name is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Puts the names in a folder on the disk. Nothing happens where the system cannot, or where we may enter the folder
/// and not list it: somebody else made it for us then.
pub fn sync_names(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error)
            if cfg!(unix)
                && !matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::Unsupported
                ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Moves a finished file into the place of another, which may be open: who reads it goes on with what it had.
///
/// Errors: those of the system; the unfinished file is gone then.
pub fn replace(unfinished: NamedTempFile, path: &Path) -> io::Result<File> {
    // The library's own way fails on Windows where the old file is open.
    let (file, unfinished) = unfinished.keep().map_err(|error| error.error)?;
    let moved = std::fs::rename(&unfinished, path);
    moved.inspect_err(|_| _ = std::fs::remove_file(&unfinished)).map(|()| file)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const FOLDER: &str = "TACIT_TEST_UNLISTED";
    const NOBODY: u32 = 65534;

    /// In a process of its own, as nobody where the tests run as root, who may list every folder.
    #[test]
    fn a_folder_that_may_be_entered_and_not_listed_is_no_fault() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            assert_eq!(File::open(&folder).unwrap_err().kind(), ErrorKind::PermissionDenied);
            return sync_names(Path::new(&folder)).unwrap();
        }
        let place = tempfile::tempdir().unwrap();
        let (folder, program) = (place.path().join("unlisted"), place.path().join("test"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let may =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        may(place.path(), 0o711);
        may(&program, 0o755);
        may(&folder, 0o311);
        let test = "a_folder_that_may_be_entered_and_not_listed_is_no_fault";
        let mut again = Command::new(&program);
        again.arg(test).env(FOLDER, &folder).current_dir("/");
        if std::fs::metadata(&folder).unwrap().uid() == 0 {
            again.uid(NOBODY);
        }
        let run = again.output().unwrap();
        may(&folder, 0o711);
        assert!(run.status.success() && String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        assert!(sync_names(&place.path().join("missing")).is_err());
        sync_names(&folder).unwrap();
    }
}
