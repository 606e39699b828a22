//! The folder of a page's own: keys, partners' keys, dropped files, and a folder for each run. On Unix only its
//! owner can enter it and read what is in it.

use serde_json::{Value, json};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tacit::net::{PublicKey, shown};
use tacit::{Error, Result};

/// The file that marks a folder as one of these, and that the page which uses it locks.
const FOLDER_LOCK: &str = "tacit-ui.lock";
/// The most bytes of a dropped file.
pub(crate) const MOST_DROPPED: u64 = 16 << 30;
/// Characters of a name that a dropped file keeps.
const LONGEST_NAME: usize = 100;
/// Where a partner's new key comes until it replaces the old one.
const REPLACING: &str = "replacing";
/// Characters of a partner's name.
const LONGEST_PARTNER: usize = 40;
/// Partners, dropped files and runs that are listed.
const MOST_FOLDER_ENTRIES: usize = 500;
/// Bytes that are copied at a time.
const COPIED: usize = 256 << 10;

/// The folder, and its lock.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// A file that, on Unix, only its owner can read.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// A folder that, on Unix, only its owner can enter.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

#[cfg(unix)]
fn is_private(path: &Path) -> io::Result<bool> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path)?.permissions());
    Ok(mode & 0o077 == 0)
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> io::Result<bool> {
    Ok(true)
}

impl Folder {
    /// Opens the folder at `path`, and makes it if there is none.
    ///
    /// Errors: a folder with other content, one that others can read, and one that another page uses.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let refuse = |what: &str| {
            let what = format!("{}: {what}", shown(&path.to_string_lossy()));
            Err(Error::Parameter { name: "folder", what })
        };
        let fault = |what| move |error| Error::file(path, what, error);
        let is_new = !path.exists();
        if is_new {
            private_folder(path).map_err(fault("cannot be created"))?;
        } else if !path.is_dir() {
            return refuse("is not a directory; choose another one");
        }
        let lock = path.join(FOLDER_LOCK);
        if !is_new && !lock.exists() {
            let mut entries = std::fs::read_dir(path).map_err(fault("cannot be read"))?;
            if entries.next().is_some() {
                return refuse("has other files in it; choose an empty directory");
            }
        }
        if !is_private(path).map_err(fault("cannot be read"))? {
            return refuse("others on this machine can read it; run chmod 700 on it, or choose another one");
        }
        let opened = private(OpenOptions::new().create(true).truncate(false).write(true)).open(&lock);
        let opened = opened.map_err(fault("cannot be written"))?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return refuse("another `tacit ui` uses it; choose another directory");
            }
            Err(TryLockError::Error(error)) => return Err(Error::file(path, "cannot be locked", error)),
        }
        let path = path.canonicalize().map_err(fault("cannot be found"))?;
        for inner in ["keys", "partners", "files", "runs", REPLACING] {
            private_folder(&path.join(inner)).map_err(|e| Error::file(&path, "cannot be written", e))?;
        }
        Ok(Folder { path, _lock: opened })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where this side's private key is, or will be.
    pub(crate) fn identity(&self) -> PathBuf {
        self.path.join("keys").join("tacit.key")
    }

    /// Where signed records of requests are.
    pub(crate) fn records(&self) -> PathBuf {
        self.path.join("records")
    }

    /// The file of a partner's public key.
    ///
    /// Errors: a name that is more than letters, digits, hyphens, underscores, and blanks between them.
    pub(crate) fn partner(&self, name: &str) -> std::result::Result<PathBuf, String> {
        self.key_file("partners", name)
    }

    /// Where the new key of a partner comes that replaces the one of [`partner`](Self::partner).
    pub(crate) fn replacement(&self, name: &str) -> std::result::Result<PathBuf, String> {
        self.key_file(REPLACING, name)
    }

    fn key_file(&self, inner: &str, name: &str) -> std::result::Result<PathBuf, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let are_words = name.split(' ').all(|word| !word.is_empty() && word.chars().all(is_plain));
        match name.len() <= LONGEST_PARTNER && are_words {
            true => Ok(self.path.join(inner).join(format!("{name}.pub"))),
            false => Err(format!(
                "name the partner by letters A to Z, digits, hyphens, underscores and single blanks between them, at \
                 most {LONGEST_PARTNER} characters"
            )),
        }
    }

    /// The dropped file called `name`, if there is one.
    pub(crate) fn dropped_file(&self, name: &str) -> Option<PathBuf> {
        let path = self.path.join("files").join(name);
        let is_here = plain_name(name) == name && path.symlink_metadata().is_ok_and(|one| one.is_file());
        is_here.then_some(path)
    }

    /// The folder of the run with this number.
    pub(crate) fn run(&self, id: u64) -> PathBuf {
        self.path.join("runs").join(format!("{id:06}"))
    }

    /// Makes the folder of a run.
    pub(crate) fn make_run(&self, id: u64) -> io::Result<PathBuf> {
        let path = self.run(id);
        private_folder(&path).map(|()| path)
    }

    /// The numbers of the runs that have a folder, the latest first.
    pub(crate) fn runs(&self) -> Vec<u64> {
        let names = names_in(&self.path.join("runs"));
        let mut runs: Vec<u64> = names.iter().filter_map(|name| name.parse().ok()).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.truncate(MOST_FOLDER_ENTRIES);
        runs
    }

    /// Writes a small file of a run.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        private(OpenOptions::new().create(true).truncate(true).write(true)).open(path)?.write_all(bytes)
    }

    /// Stores what `from` gives as a file called `name`, or like it if there is one; returns where.
    pub(crate) fn store(&self, name: &str, from: &mut impl Read) -> io::Result<PathBuf> {
        let folder = self.path.join("files");
        let (mut file, path) = create(&folder, &plain_name(name))?;
        let mut piece = vec![0; COPIED];
        let mut copy = || loop {
            match from.read(&mut piece)? {
                0 => return file.flush(),
                read => file.write_all(&piece[..read])?,
            }
        };
        copy().map(|()| path.clone()).inspect_err(|_| _ = std::fs::remove_file(&path))
    }

    /// The keys and files that are here, for the page.
    pub(crate) fn listed(&self) -> Value {
        let identity = self.identity().with_extension("pub");
        let own = PublicKey::load(&identity).ok().map(
            |key| json!({ "file": self.identity(), "public": identity, "fingerprint": key.fingerprint() }),
        );
        json!({ "folder": self.path, "identity": own, "partners": self.partners(), "files": self.dropped() })
    }

    fn partners(&self) -> Vec<Value> {
        let folder = self.path.join("partners");
        let read = |name: String| {
            let (file, name) = (folder.join(&name), name.strip_suffix(".pub")?.to_owned());
            let key = PublicKey::load(&file).ok()?;
            let comment = key.comment_in(&file).unwrap_or_default();
            Some(json!({ "name": name, "file": file, "fingerprint": key.fingerprint(), "comment": comment }))
        };
        names_in(&folder).into_iter().filter_map(read).collect()
    }

    fn dropped(&self) -> Vec<Value> {
        let folder = self.path.join("files");
        let read = |name: String| {
            let file = folder.join(&name);
            let bytes = std::fs::metadata(&file).ok()?.len();
            Some(json!({ "name": name, "file": file, "bytes": bytes }))
        };
        names_in(&folder).into_iter().filter_map(read).collect()
    }
}

/// The names in a folder, in order.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names.truncate(MOST_FOLDER_ENTRIES);
    names
}

/// A new file in `folder`, called `name` or, if there is one, with a number in front of its ending.
fn create(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let (stem, ending) = name.split_once('.').map_or((name, String::new()), |(a, b)| (a, format!(".{b}")));
    for number in 1..=MOST_FOLDER_ENTRIES {
        let name = if number == 1 { name.to_owned() } else { format!("{stem}-{number}{ending}") };
        let path = folder.join(name);
        match private(OpenOptions::new().create_new(true).write(true)).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A name as the browser gave it, as one that is a name on every system, and a name only.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mapped = last.chars().map(|c| if is_plain(c) { c } else { '_' });
    // The ending says what kind of table it is, so the end of a long name is kept.
    let mut name: Vec<char> = mapped.collect();
    name.drain(..name.len().saturating_sub(LONGEST_NAME));
    let name: String = name.into_iter().collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "table".to_owned(),
        plain => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_file_s_name_leads_nowhere() {
        for (given, name) in [
            ("customers.csv", "customers.csv"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("C:\\Users\\me\\a b.xlsx", "a_b.xlsx"),
            ("..", "table"),
            ("", "table"),
            (".hidden", "hidden"),
            ("--input=x", "input_x"),
            ("Übersicht 1.csv", "Übersicht_1.csv"),
            ("a\0b\n.csv", "a_b_.csv"),
        ] {
            assert_eq!(plain_name(given), name, "{given:?}");
        }
        assert!(plain_name(&("x".repeat(5000) + ".csv")).ends_with("x.csv"));
    }

    #[test]
    fn files_of_one_name_are_kept_apart_and_a_broken_one_goes() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("ui")).unwrap();
        let store = |text: &str| folder.store("a.csv.gz", &mut text.as_bytes()).unwrap();
        let (first, second) = (store("1"), store("2"));
        assert!(first.ends_with("files/a.csv.gz") && second.ends_with("files/a-2.csv.gz"));
        assert_eq!(std::fs::read(&second).unwrap(), b"2");
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
        }
        assert!(folder.store("b.csv", &mut Broken).is_err());
        assert!(!folder.path().join("files/b.csv").exists());
    }

    #[test]
    fn a_folder_is_private_and_has_one_user() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ui");
        let folder = Folder::open(&path).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o700);
            assert_eq!(mode(&folder.store("a.csv", &mut &b"x"[..]).unwrap()), 0o600);
            assert_eq!(mode(&folder.make_run(1).unwrap()), 0o700);
        }
        assert!(Folder::open(&path).is_err_and(|e| e.to_string().contains("another `tacit ui`")));
        drop(folder);
        assert!(Folder::open(&path).is_ok());
        std::fs::write(home.path().join("other"), "x").unwrap();
        assert!(Folder::open(home.path()).is_err());
        assert!(Folder::open(&home.path().join("other")).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert!(Folder::open(&path).is_err_and(|e| e.to_string().contains("chmod 700")));
        }
    }

    #[test]
    fn a_partner_s_name_leads_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("ui")).unwrap();
        assert!(folder.partner("shop-2_a").unwrap().ends_with("partners/shop-2_a.pub"));
        assert!(folder.partner("Corner shop 2").unwrap().ends_with("partners/Corner shop 2.pub"));
        let wrong =
            ["", "../keys/tacit", "a/b", "a.b", "ä", " ", " a", "a ", "a  b", "a\tb", &"a".repeat(41)];
        for wrong in wrong {
            assert!(folder.partner(wrong).is_err() && folder.replacement(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_a_dropped_file_is_found_by_its_name() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(&home.path().join("ui")).unwrap();
        let stored = folder.store("a b.csv", &mut &b"x"[..]).unwrap();
        assert_eq!(folder.dropped_file("a_b.csv"), Some(stored));
        std::fs::write(folder.path().join("keys/tacit.key"), "secret").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("keys/tacit.key"), folder.path().join("files/link"))
            .unwrap();
        let other = folder.path().join("keys/tacit.key").display().to_string();
        for wrong in
            ["", ".", "..", "a b.csv", "../keys/tacit.key", "../files/a_b.csv", "none", "link", &other]
        {
            assert_eq!(folder.dropped_file(wrong), None, "{wrong}");
        }
    }
}
