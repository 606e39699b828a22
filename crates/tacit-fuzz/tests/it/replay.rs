//! Every input that is kept of fuzzing, replayed: seeds that reach all that was reached, and inputs that once failed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tacit_fuzz::{target, targets, whole};

/// All seeds together, at most.
const MOST_BYTES: u64 = 400 << 10;
/// One run, at most: as long as a slow machine may take where a fast one takes a second.
const MOST_TIME: Duration = Duration::from_secs(20);

fn seeds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_target_has_seeds_and_they_are_few() {
    let names: BTreeSet<String> = targets().map(|target| target.name.to_owned()).collect();
    assert_eq!(names.len(), targets().count(), "two targets of one name");
    let folders = entries(&seeds());
    let found = folders.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    assert_eq!(found.collect::<BTreeSet<_>>(), names);
    let mut bytes = 0;
    for folder in folders {
        let files = entries(&folder);
        assert!(!files.is_empty(), "{folder:?} is empty");
        bytes += files.iter().map(|file| fs::metadata(file).unwrap().len()).sum::<u64>();
    }
    assert!(bytes <= MOST_BYTES, "{bytes} bytes of seeds");
}

#[test]
fn seeds_hold() {
    // An input that panics outside a fence is named: the test's output is then the fault's.
    for folder in entries(&seeds()) {
        let target = target(&folder.file_name().unwrap().to_string_lossy()).unwrap();
        for file in entries(&folder) {
            let (bytes, start) = (fs::read(&file).unwrap(), Instant::now());
            let done = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(done.is_ok(), "{}", file.display());
            assert!(start.elapsed() < MOST_TIME, "{} took {:?}", file.display(), start.elapsed());
        }
    }
}

#[test]
fn whole_inputs_hold() {
    for (name, bytes) in whole() {
        let target = target(name).unwrap_or_else(|| panic!("no target is called {name}"));
        assert!(bytes.len() <= target.longest, "{name}: a whole input of {} bytes", bytes.len());
        (target.run)(&bytes);
    }
}
