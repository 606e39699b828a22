//! Where parsers that take paths find their files: in a folder of each thread, in memory where there is such a place.

use std::path::{Path, PathBuf};

thread_local! {
    static FOLDER: tempfile::TempDir = folder();
}

fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let in_memory = memory.is_dir().then(|| tempfile::tempdir_in(memory).ok()).flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a folder for files can be made"))
}

/// Writes the bytes to a file of this name, that its owner alone can read.
pub(crate) fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join(name));
    if !path.exists() {
        std::fs::write(&path, b"").expect("a file can be made");
        private(&path);
    }
    std::fs::write(&path, bytes).expect("a file can be written");
    path
}

#[cfg(unix)]
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
}

#[cfg(not(unix))]
fn private(_: &Path) {}

/// An empty folder.
pub(crate) fn empty() -> PathBuf {
    let path = FOLDER.with(|folder| folder.path().join("empty"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).expect("a folder can be made");
    path
}
