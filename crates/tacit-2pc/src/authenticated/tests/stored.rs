//! Pieces on the disk: they give what a session gives, once.

use super::*;
use crate::StateError;
use std::path::{Path, PathBuf};
use tacit_store::sealed::{FileError, FileKey};

const ROLES: [Owner; 2] = [Owner::Garbler, Owner::Evaluator];

fn key(role: Owner) -> FileKey {
    FileKey::from_bytes(&[1 + u8::from(role == Owner::Garbler); 32]).unwrap()
}

/// Makes both sides' pieces in `folder`.
fn make(folder: &Path, name: &str, rows: usize, seed: u64) -> [PathBuf; 2] {
    make_for(folder, name, Demand::of(&prepared("add8")), rows, seed)
}

fn make_for(folder: &Path, name: &str, one: Demand, rows: usize, seed: u64) -> [PathBuf; 2] {
    let paths = ["garbler", "evaluator"].map(|side| folder.join(format!("{name}.{side}")));
    let side = |channel: &mut Channel, role: Owner, path: &Path| {
        let mut file = std::fs::File::create(path).unwrap();
        let mut prg = Prg::from_seed(Block::from_halves(seed, 77));
        let session = session(channel, role, seed);
        session.store(channel, one, rows, None, &key(role), &mut file, &mut prg).unwrap()
    };
    let (one, two) = memory::run(
        |channel| side(channel, Owner::Garbler, &paths[0]),
        |channel| side(channel, Owner::Evaluator, &paths[1]),
    );
    assert_eq!((one.id, one.one, one.rows), (two.id, two.one, two.rows));
    paths
}

/// Both sides' runs of add8 on these pieces.
fn serve(paths: [&Path; 2], rows: usize, roles: [Owner; 2]) -> [Result<Option<Vec<BitVec>>>; 2] {
    let function = prepared("add8");
    let side = |channel: &mut Channel, role: Owner, path: &Path| {
        let inputs: Vec<BitVec> = (0..rows as u64)
            .map(|seed| example(&function, seed).0[(role == Owner::Evaluator) as usize].clone())
            .collect();
        let mut prg = Prg::from_os();
        let piece = Stored::open(path, &key(role))?;
        piece.run_rows(channel, &function, OutputTo::Both, &inputs, &mut prg, || ())
    };
    let (one, two) =
        memory::run(|channel| side(channel, roles[0], paths[0]), |channel| side(channel, roles[1], paths[1]));
    [one, two]
}

/// A piece is made for a size, not for a function: what needs less of it is served as well.
#[test]
fn a_piece_serves_every_function_that_is_not_larger() {
    let folder = tempfile::tempdir().unwrap();
    let one = Demand { ands: 50, garbler_inputs: 20, evaluator_inputs: 9 };
    let [g, e] = make_for(folder.path(), "wide", one, 4, 15);
    for results in serve([&g, &e], 3, ROLES) {
        let expected: Vec<BitVec> = (0..3).map(|seed| example(&prepared("add8"), seed).1).collect();
        assert_eq!(results.unwrap().unwrap(), expected);
    }
    for small in [Demand { ands: 6, ..one }, Demand { evaluator_inputs: 7, ..one }] {
        let [g, e] = make_for(folder.path(), "narrow", small, 1, 16);
        for (path, role) in [(g, Owner::Garbler), (e, Owner::Evaluator)] {
            let piece = Stored::open(&path, &key(role)).unwrap();
            let mut channel = memory::pair().0;
            let (add8, mut prg) = (prepared("add8"), Prg::from_os());
            let refused = piece.run_rows(&mut channel, &add8, OutputTo::Both, &[], &mut prg, || ());
            assert!(matches!(refused, Err(Error::State(StateError::OtherJob { .. }))), "{refused:?}");
            assert!(!is_used(&path, role));
        }
    }
}

/// Pieces of the same gates and inputs in other rows were not made for the same runs: refused, and kept.
#[test]
fn pieces_of_other_rows_do_not_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let one = Demand { ands: 20, garbler_inputs: 16, evaluator_inputs: 16 };
    let half = Demand { ands: 10, garbler_inputs: 8, evaluator_inputs: 8 };
    let paths = ["garbler", "evaluator"].map(|side| folder.path().join(side));
    let make = |channel: &mut Channel, role: Owner, path: &Path, one, rows| {
        let mut file = std::fs::File::create(path).unwrap();
        let mut prg = Prg::from_seed(Block::new(77));
        session(channel, role, 21).store(channel, one, rows, None, &key(role), &mut file, &mut prg).unwrap();
    };
    memory::run(
        |channel| make(channel, Owner::Garbler, &paths[0], one, 2),
        |channel| make(channel, Owner::Evaluator, &paths[1], half, 4),
    );
    for result in serve([&paths[0], &paths[1]], 1, ROLES) {
        assert!(matches!(result, Err(Error::Mismatch { .. })), "{result:?}");
    }
    assert!(!is_used(&paths[0], Owner::Garbler) && !is_used(&paths[1], Owner::Evaluator));
}

/// Who has no piece cannot have ours used up by sending back what we show.
#[test]
fn a_piece_is_not_taken_by_its_own_terms() {
    let folder = tempfile::tempdir().unwrap();
    let paths = make(folder.path(), "mirrored", 1, 23);
    for (path, role) in paths.iter().zip(ROLES) {
        let (taken, _) = memory::run(
            |channel| Stored::open(path, &key(role))?.take(channel, &mut Prg::from_os()).map(|_| ()),
            |channel| {
                let mut shown = [0u8; 32];
                channel.recv(&mut shown)?;
                channel.send(&shown)?;
                channel.flush()
            },
        );
        assert!(matches!(taken, Err(Error::Mismatch { .. })), "{taken:?}");
        assert!(!is_used(path, role));
    }
}

/// What else a session made would share the piece's Δ, and not its end.
#[test]
fn a_session_that_made_something_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let one = Demand::of(&prepared("add8"));
    let side = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 24);
        let _made = session.independent(channel, one)?;
        let mut file = std::fs::File::create(folder.path().join(format!("{role:?}"))).unwrap();
        session.store(channel, one, 1, None, &key(role), &mut file, &mut Prg::from_os())
    };
    let (one, two) =
        memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator));
    for result in [one, two] {
        assert!(matches!(result, Err(Error::Usage { .. })), "{result:?}");
    }
}

/// Lies in the opening of what the second phase multiplies.
struct WrongOpening;

impl Script for WrongOpening {
    fn opened(&mut self, bits: &mut BitVec) {
        let bit = bits.get(0);
        bits.set(0, !bit);
    }
}

/// A failed check leaves nothing of a piece: its Δ, of which the cheater may have learnt a bit, serves no
/// more, after a restart either.
///
/// proof: authenticated-run 2.2, 2.3
#[test]
fn a_failed_check_has_burnt_the_piece_on_the_disk() {
    for cheater in ROLES {
        let folder = tempfile::tempdir().unwrap();
        let paths = make(folder.path(), "piece", 3, 12);
        let function = prepared("add8");
        let side = |channel: &mut Channel, role: Owner, path: &Path| {
            let inputs = vec![example(&function, 1).0[(role == Owner::Evaluator) as usize].clone(); 3];
            let script = (role == cheater).then(|| Box::new(WrongOpening) as Box<dyn Script>);
            let (piece, mut prg) = (Stored::open(path, &key(role)).unwrap(), Prg::from_os());
            scripted(script, || piece.run_rows(channel, &function, OutputTo::Both, &inputs, &mut prg, || ()))
        };
        let results: [_; 2] = memory::run(
            |channel| side(channel, Owner::Garbler, &paths[0]),
            |channel| side(channel, Owner::Evaluator, &paths[1]),
        )
        .into();
        let honest = (cheater == Owner::Garbler) as usize;
        assert!(matches!(results[honest], Err(Error::Cheated { .. })), "{:?}", results[honest]);
        assert!(is_used(&paths[honest], ROLES[honest]));
        let left = std::fs::read(&paths[honest]).unwrap();
        assert_eq!(left.len(), 224);
        assert_eq!(left[88..152], [0; 64], "the salt and the check of the key are gone");
    }
}

fn is_used(path: &Path, role: Owner) -> bool {
    matches!(Stored::open(path, &key(role)), Err(Error::State(StateError::Used)))
}

#[test]
fn a_piece_serves_its_rows_once() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = make(folder.path(), "piece", 3, 5);
    for results in serve([&one, &two], 3, ROLES) {
        let expected: Vec<BitVec> = (0..3).map(|seed| example(&prepared("add8"), seed).1).collect();
        assert_eq!(results.unwrap().unwrap(), expected);
    }
    assert!(is_used(&one, Owner::Garbler) && is_used(&two, Owner::Evaluator));
    for path in [&one, &two] {
        assert_eq!(std::fs::metadata(path).unwrap().len(), 224, "nothing but the header is left");
    }
}

#[test]
fn pieces_that_do_not_belong_together_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (make(folder.path(), "first", 1, 6), make(folder.path(), "second", 1, 7));
    for error in serve([&first[0], &second[1]], 1, ROLES) {
        assert!(matches!(error, Err(Error::Mismatch { .. })), "{error:?}");
    }
    for result in serve([&first[0], &first[1]], 1, ROLES) {
        assert!(result.unwrap().is_some());
    }
}

/// A process that dies between the mark and the run: the mark is on the disk before anything is sent that
/// depends on the piece, so whatever is left of the file serves no more. A death before it leaves a piece
/// that was never shown.
#[test]
fn a_crash_after_the_peer_showed_its_piece_loses_it() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = make(folder.path(), "piece", 1, 8);
    let whole = std::fs::metadata(&one).unwrap().len();
    let side = |channel: &mut Channel, role: Owner, path: &Path| {
        let piece = Stored::open(path, &key(role)).unwrap();
        let made = piece.take(channel, &mut Prg::from_os()).unwrap();
        // The process ends here: nothing is dropped in order, and nothing runs.
        std::mem::forget(made);
    };
    memory::run(
        |channel| side(channel, Owner::Garbler, &one),
        |channel| side(channel, Owner::Evaluator, &two),
    );
    assert!(is_used(&one, Owner::Garbler) && is_used(&two, Owner::Evaluator));
    // Even if the file had kept its length, the mark alone refuses it, and its salt is gone.
    let file = std::fs::OpenOptions::new().write(true).open(&one).unwrap();
    file.set_len(whole).unwrap();
    assert!(is_used(&one, Owner::Garbler));
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = make(folder.path(), "piece", 1, 9);
    let good = std::fs::read(&one).unwrap();
    let error = |bytes: &[u8], role| {
        let path = folder.path().join("other");
        std::fs::write(&path, bytes).unwrap();
        Stored::open(&path, &key(role)).unwrap_err().to_string()
    };
    assert!(error(&good, Owner::Evaluator).contains("another key"));
    assert!(error(&good[..good.len() - 1], Owner::Garbler).contains("bytes instead of"));
    assert!(error(&good[..100], Owner::Garbler).contains("not a pool"));
    assert!(error(b"nothing", Owner::Garbler).contains("not a pool"));
    for place in 0..224 {
        let mut bytes = good.clone();
        bytes[place] ^= 64;
        let path = folder.path().join("other");
        std::fs::write(&path, &bytes).unwrap();
        assert!(Stored::open(&path, &key(Owner::Garbler)).is_err(), "byte {place} of the header");
    }
    let mut bytes = good.clone();
    bytes[300] ^= 1;
    std::fs::write(&one, &bytes).unwrap();
    let [damaged, _] = serve([&one, &two], 1, ROLES);
    assert!(matches!(damaged, Err(Error::State(StateError::File(FileError::Damaged { .. })))), "{damaged:?}");
    let open = Stored::open(&two, &key(Owner::Evaluator)).unwrap();
    assert!(open.require_peer(Some([7; 32])).is_err() && open.require_peer(None).is_ok());
    let mut channel = memory::pair().0;
    let other =
        open.run_rows(&mut channel, &prepared("add16"), OutputTo::Both, &[], &mut Prg::from_os(), || ());
    assert!(matches!(other, Err(Error::State(StateError::OtherJob { .. }))), "{other:?}");
}
