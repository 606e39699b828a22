//! The private file: counts outlive crashes, and no change of it brings queries back.

use super::*;
use crate::oprf::tags::{Terms, publish};
use std::io::Cursor;
use std::num::NonZeroUsize;
use tempfile::TempDir;

fn seal() -> FileKey {
    FileKey::from_bytes(&[7; 32]).unwrap()
}

/// A folder with the private file of a publication that answers 10 queries, 6 of them for one client.
fn fresh() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.oprf");
    let mut prg = Prg::from_os();
    let terms = Terms { lifetime: 10, per_client: 6, key: String::new() };
    let mut tags = Cursor::new(Vec::new());
    let published = publish(&mut tags, &["x", "y"], terms, NonZeroUsize::MIN, &mut prg, &mut |_| ()).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    create(&mut file, &published, &seal(), &mut prg).unwrap();
    (folder, path)
}

fn open(path: &Path) -> Result<Private> {
    Private::open(path, &seal())
}

const ANN: Client = [1; 32];
const BOB: Client = [2; 32];

#[test]
fn queries_are_counted_for_each_client_and_for_all_over_openings() {
    let (_folder, path) = fresh();
    let refused = |said: Result<()>, asked, left| match said {
        Err(Error::TooManyQueries { asked: a, left: l }) => assert_eq!((a, l), (asked, left)),
        other => panic!("{other:?}"),
    };
    let mut private = open(&path).unwrap();
    assert_eq!((private.left(&ANN), private.answered()), (6, 0));
    refused(private.charge(&ANN, 7), 7, 6);
    private.charge(&ANN, 4).unwrap();
    private.charge(&ANN, 0).unwrap();
    assert!(matches!(open(&path), Err(Error::File(FileError::Busy))));
    drop(private);
    let mut private = open(&path).unwrap();
    assert_eq!((private.left(&ANN), private.left(&BOB), private.answered(), private.clients()), (2, 6, 4, 1));
    private.charge(&BOB, 5).unwrap();
    // One is left of the key's lifetime, for whomever; what each client has left of its own says nothing of it.
    assert_eq!((private.left(&ANN), private.lasts(1), private.lasts(2)), (2, true, false));
    assert!(matches!(private.charge(&ANN, 2), Err(Error::Outlived { asked: 2 })));
    private.charge(&ANN, 1).unwrap();
    refused(private.charge(&[3; 32], u64::MAX), u64::MAX, 6);
    assert!(matches!(private.charge(&[3; 32], 1), Err(Error::Outlived { asked: 1 })));
    drop(private);
    let private = open(&path).unwrap();
    assert_eq!(
        (private.left(&ANN), private.left(&BOB), private.answered(), private.clients()),
        (1, 1, 10, 2)
    );
    assert_eq!(format!("{private:?}"), "Private(3 entries, [secret])");
}

#[test]
fn another_key_another_file_and_every_changed_byte_are_refused() {
    let (_folder, path) = fresh();
    open(&path).unwrap().charge(&ANN, 3).unwrap();
    let wrong = Private::open(&path, &FileKey::from_bytes(&[8; 32]).unwrap());
    assert!(matches!(wrong, Err(Error::File(FileError::WrongKey))));
    let whole = std::fs::read(&path).unwrap();
    let entry = JOURNAL as usize..JOURNAL as usize + ENTRY;
    for at in (0..BODY + 32).chain(entry) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(open(&path), Err(Error::File(_))), "byte {at}");
    }
    std::fs::write(&path, b"short").unwrap();
    assert!(matches!(open(&path), Err(Error::File(FileError::Other { .. }))));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(open(&path).unwrap().answered(), 3);
    let text = String::from_utf8_lossy(&whole).into_owned();
    assert!(text.starts_with("tacitprf"));
    let secret = open(&path).unwrap().key().to_bytes();
    assert!(!whole.windows(32).any(|window| window == &secret[..]), "the key stands unsealed in the file");
}

#[test]
fn older_counts_put_back_or_entries_cut_off_are_refused() {
    let (_folder, path) = fresh();
    let mut states = vec![std::fs::read(&path).unwrap()];
    for _ in 0..4 {
        open(&path).unwrap().charge(&ANN, 1).unwrap();
        states.push(std::fs::read(&path).unwrap());
    }
    let latest = states[4].clone();
    let (journal, slots) = (JOURNAL as usize, 4096..8192 + SLOT);
    let refuses = |bytes: &[u8], what: &str| {
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(open(&path), Err(Error::File(FileError::Damaged { .. }))), "{what}");
    };
    for (old, state) in states[..3].iter().enumerate() {
        // The slots of an earlier day beside the journal of today, and the other way round.
        let mut bytes = latest.clone();
        bytes[slots.clone()].copy_from_slice(&state[slots.clone()]);
        refuses(&bytes, &format!("slots of {old} entries"));
        let mut bytes = latest[..journal].to_vec();
        bytes.extend_from_slice(&state[journal..]);
        refuses(&bytes, &format!("journal of {old} entries"));
    }
    refuses(&latest[..latest.len() - 1], "an entry cut short");
    refuses(&latest[..latest.len() - ENTRY], "an entry cut off");
    let mut bytes = latest.clone();
    bytes[journal..journal + ENTRY].copy_from_slice(&latest[journal + ENTRY..journal + 2 * ENTRY]);
    refuses(&bytes, "an entry in place of another");
    let mut bytes = latest.clone();
    bytes[slots].fill(0);
    refuses(&bytes, "no slot");
    std::fs::write(&path, &latest).unwrap();
    assert_eq!(open(&path).unwrap().answered(), 4);
}

/// Each crash leaves the entry and not the slot, and nothing is charged in between.
#[test]
fn two_crashes_between_entry_and_slot_leave_the_file_whole() {
    let (_folder, path) = fresh();
    for crashes in 1..=4 {
        let mut private = open(&path).unwrap();
        assert_eq!(private.answered(), crashes - 1);
        let slots = std::fs::read(&path).unwrap()[4096..8192 + SLOT].to_vec();
        private.charge(&BOB, 1).unwrap();
        drop(private);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096..8192 + SLOT].copy_from_slice(&slots);
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(open(&path).unwrap().answered(), 4);
}

#[test]
fn a_crash_at_any_write_loses_no_count_of_an_answered_query() {
    let (_folder, path) = fresh();
    for before in 0..4 {
        let old = std::fs::read(&path).unwrap();
        open(&path).unwrap().charge(&BOB, 1).unwrap();
        let new = std::fs::read(&path).unwrap();
        let at = JOURNAL as usize + before * ENTRY;
        // Any part of the entry, and not the slot: nothing was answered, and the next charge takes the place.
        for written in 0..=ENTRY {
            let mut bytes = old.clone();
            bytes.truncate(at);
            bytes.resize(at, 0);
            bytes.extend_from_slice(&new[at..at + written]);
            std::fs::write(&path, &bytes).unwrap();
            let mut private = open(&path).unwrap();
            let counted = before as u64 + u64::from(written == ENTRY);
            assert_eq!(private.answered(), counted, "{written} bytes written");
            private.charge(&ANN, 1).unwrap();
            drop(private);
            assert_eq!(open(&path).unwrap().answered(), counted + 1);
        }
        std::fs::write(&path, &new).unwrap();
        assert_eq!(open(&path).unwrap().answered(), before as u64 + 1);
    }
}
