//! The disk that fails as it is told to: what `tools/disk/disk.c` hears.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says that the library is loaded.
const HERE: &str = "TACIT_DISK";

pub(crate) fn is_here() -> bool {
    std::env::var_os(HERE).is_some()
}

/// Starts this test in a process of its own, with the library loaded.
pub(crate) fn start_anew(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/disk/disk.c");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(source).output();
    if !compiled.is_ok_and(|run| run.status.success()) || !cfg!(target_os = "linux") {
        println!("left out: the disk that fails needs Linux and a C compiler");
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    let run = again
        .args(["--exact", test, "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env(HERE, "1")
        .status()
        .unwrap();
    assert!(run.success(), "{run}");
}

/// What comes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// It fails, and at a sync what was not synced is gone.
    Eio,
    /// The same, at syncs alone.
    Sync,
    /// The disk is full from then on.
    Full,
    /// A write writes half.
    Short,
    /// Every call fails until the power is cut.
    Dead,
}

/// A fault at the `n`th call, from 1, on files with `part` in their path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) part: &'static str,
    pub(crate) n: u64,
}

/// A folder whose disk can fail.
pub(crate) struct Machine {
    pub(crate) folder: PathBuf,
}

impl Machine {
    /// The machine of a folder that is there; what is in it counts as synced.
    pub(crate) fn watch(folder: PathBuf) -> Self {
        let machine = Machine { folder };
        machine.mend();
        machine
    }

    fn tell(&self, word: &str) -> bool {
        let told = OpenOptions::new().append(true).open(self.folder.join(format!("@{word}")));
        match told.map_err(|error| error.kind()) {
            Err(ErrorKind::NotFound) => false,
            Err(ErrorKind::AlreadyExists) => true,
            other => panic!("no disk that fails: {other:?}"),
        }
    }

    pub(crate) fn plan(&self, fault: Fault) {
        let kind = format!("{:?}", fault.kind).to_lowercase();
        self.tell(&format!("plan:{kind}:{}:{}", fault.part, fault.n));
    }

    /// What comes from now on works.
    pub(crate) fn mend(&self) {
        self.tell("plan:none::0");
    }

    /// The power is cut: what was not synced is lost, or some of it. Nothing may use the folder meanwhile.
    pub(crate) fn cut(&self, seed: u64) {
        self.tell(&format!("cut:{}", seed >> 1));
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.tell("fired")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.tell("forget");
    }
}
