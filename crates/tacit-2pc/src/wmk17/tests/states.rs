//! The two halves of a run, and the files between them.

use super::scripts::{CASES, Cheater, Fault, Watch, set};
use super::*;
use std::fs::File;
use std::path::{Path, PathBuf};
use tacit_net::Channel;
use tacit_store::sealed::FileError;

/// As [`run`], offline first and online from the states' files. Without an output where P2 finds a fault
/// offline.
fn run_split(
    job: &Job<'_>,
    x: &BitVec,
    y: &BitVec,
    seed: u64,
    one: &mut (impl Script + Default + Send + 'static),
    two: &mut (impl Script + Default + Send + 'static),
) -> Option<BitVec> {
    let dir = tempfile::tempdir().unwrap();
    let (p1, p2) = (dir.path().join("1"), dir.path().join("2"));
    let prg = |role: u64| Prg::from_seed(Block::from_halves(seed, role));
    let (made, found) = memory::run(
        |channel| {
            let (mut prg, base) = (prg(1), tacit_ot::base::default());
            let mut out = File::create(&p1).unwrap();
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            scripted(one, || garbler.prepare_state(channel, job, None, &key(), &mut out, &mut prg)).unwrap()
        },
        |channel| {
            let (mut prg, base) = (prg(2), tacit_ot::base::default());
            let mut out = File::create(&p2).unwrap();
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            scripted(two, || evaluator.prepare_state(channel, job, None, &key(), &mut out, &mut prg))
        },
    );
    match found {
        Ok(header) => assert_eq!(header.id, made.id),
        Err(Error::Cheated { .. }) => return None,
        Err(other) => panic!("{other}"),
    }
    let (garbler, evaluator) = memory::run(
        |channel| scripted(one, || State::open(&p1, &key()).unwrap().run(channel, job, x, &mut prg(3))),
        |channel| scripted(two, || State::open(&p2, &key()).unwrap().run(channel, job, y, &mut prg(4))),
    );
    for path in [&p1, &p2] {
        assert!(matches!(State::open(path, &key()), Err(Error::State(StateError::Used))));
        assert_eq!(std::fs::metadata(path).unwrap().len(), 224);
    }
    if job.output_to.garbler() {
        assert_eq!(garbler.is_ok(), evaluator.is_ok());
    }
    if !job.output_to.evaluator() {
        return garbler.unwrap();
    }
    match evaluator {
        Ok(output) => output,
        Err(Error::Cheated { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_is_prepared_offline_gives_the_same_outputs() {
    for (name, copies) in
        [(FUNCTION, Copies::STANDARD), ("add32", Copies::CODED), ("aes128", Copies::STANDARD)]
    {
        let (circuit, prepared) = prepared(name);
        let shape = circuit.shape();
        let mut prg = Prg::from_seed(Block::new(3));
        for output_to in [OutputTo::Evaluator, OutputTo::Garbler, OutputTo::Both] {
            let x = BitVec::random(shape.inputs[0] as usize, &mut prg);
            let y = BitVec::random(shape.inputs[1] as usize, &mut prg);
            let job = Job { copies, ..Job::new(&prepared, output_to) };
            let out = run_split(&job, &x, &y, 1, &mut Honest, &mut Honest);
            assert!(out == Some(joined(&circuit, &x, &y)), "{name}");
        }
    }
}

#[test]
fn every_fault_is_caught_or_harmless_offline_and_online() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Both);
    let right = byte(0b1011 + 0b110);
    for (fault, evaluated, checked, recovers) in CASES.iter().copied() {
        for (holds, passes) in [(true, evaluated), (false, checked)] {
            let mut watch = Watch::with(set(holds, 3));
            let mut cheater = Cheater::new(fault, 3);
            let out = run_split(&job, &byte(0b1011), &byte(0b110), 5, &mut cheater, &mut watch);
            if fault == Fault::Committed && holds {
                assert!(out.is_none_or(|z| z == right));
                continue;
            }
            assert!(out == passes.then(|| right.clone()), "{fault:?}, evaluated: {holds}");
            assert!(!holds || watch.recovers == recovers, "{fault:?}");
        }
    }
}

/// A hash of the peer's key, as far as the library knows.
const PEER: Option<[u8; 32]> = Some([21; 32]);

/// Both states of a preparation, P1's under key 1 and P2's under key 2.
fn states(job: &Job<'_>, dir: &Path, name: &str) -> [PathBuf; 2] {
    let paths = ["1", "2"].map(|side| dir.join(format!("{name}.{side}")));
    let file = |i: usize| File::create(&paths[i]).unwrap();
    memory::run(
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            garbler.prepare_state(channel, job, PEER, &key(), &mut file(0), &mut prg).unwrap()
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            evaluator.prepare_state(channel, job, PEER, &key(), &mut file(1), &mut prg).unwrap()
        },
    );
    paths
}

fn online(job: &Job<'_>, one: &Path, two: &Path) -> [Result<Option<BitVec>>; 2] {
    let side = |path: &Path, channel: &mut Channel, input: u8| {
        State::open(path, &key()).unwrap().run(channel, job, &byte(input), &mut Prg::from_os())
    };
    memory::run(|channel| side(one, channel, 1), |channel| side(two, channel, 2)).into()
}

#[test]
fn states_that_do_not_fit_are_refused_unused() {
    let (_, prepared_add) = prepared(FUNCTION);
    let (_, prepared_sub) = prepared("sub8");
    let dir = tempfile::tempdir().unwrap();
    let job = Job::new(&prepared_add, OutputTo::Both);
    let (one, two) = (states(&job, dir.path(), "one"), states(&job, dir.path(), "two"));
    // The wrong pair, and two of the same side.
    for result in online(&job, &one[0], &two[1]) {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }) && error.to_string().contains("not made together"));
    }
    for result in online(&job, &one[0], &two[0]) {
        assert!(matches!(result, Err(Error::Mismatch { what: "who garbles and who evaluates", .. })));
    }
    // Another job, before a byte is sent.
    let others = [
        Job::new(&prepared_sub, OutputTo::Both),
        Job::new(&prepared_add, OutputTo::Evaluator),
        Job { copies: Copies::CODED, ..job },
    ];
    for other in &others {
        let (result, sent) = memory::run(
            |channel| {
                let state = State::open(&one[0], &key()).unwrap();
                let result = state.run(channel, other, &byte(1), &mut Prg::from_os());
                (result, channel.stats().bytes_sent)
            },
            |_| (),
        )
        .0;
        assert!(matches!(result, Err(Error::State(StateError::OtherJob { .. }))) && sent == 0);
    }
    // A step that a peer in the other mode does not expect.
    let (a, b) = memory::run(
        |channel| terms::agree_only(channel, true, &job),
        |channel| {
            State::open(&one[1], &key())
                .unwrap()
                .run(channel, &job, &byte(1), &mut Prg::from_os())
                .map(|_| ())
        },
    );
    assert!(matches!(a, Err(Error::Mismatch { .. })) && matches!(b, Err(Error::Mismatch { .. })));
    // None of that used anything up.
    for pair in [&one, &two] {
        for output in online(&job, &pair[0], &pair[1]) {
            assert!(output.unwrap() == Some(byte(3)));
        }
        assert!(matches!(State::open(&pair[0], &key()), Err(Error::State(StateError::Used))));
    }
}

#[test]
fn a_state_knows_with_whom_it_was_made() {
    let (_, prepared) = prepared(FUNCTION);
    let dir = tempfile::tempdir().unwrap();
    let job = Job::new(&prepared, OutputTo::Both);
    let paths = states(&job, dir.path(), "state");
    for path in &paths {
        let state = State::open(path, &key()).unwrap();
        assert!(state.require_peer(PEER).is_ok());
        for other in [None, Some([22; 32])] {
            let refused = state.require_peer(other);
            assert!(matches!(refused, Err(Error::State(StateError::OtherPeer))));
        }
    }
    // A version before this one is refused by name.
    let mut old = std::fs::read(&paths[0]).unwrap();
    old[8] = 1;
    std::fs::write(&paths[0], old).unwrap();
    let error = State::open(&paths[0], &key()).unwrap_err().to_string();
    assert!(error.contains("version 1") && error.contains("make a new one"), "{error}");
}

#[test]
fn a_damaged_state_is_refused_or_gives_no_output() {
    let (_, prepared) = prepared(FUNCTION);
    let dir = tempfile::tempdir().unwrap();
    let job = Job::new(&prepared, OutputTo::Both);
    let paths = states(&job, dir.path(), "state");
    let fault = |bytes: &[u8]| {
        std::fs::write(dir.path().join("bad"), bytes).unwrap();
        match State::open(&dir.path().join("bad"), &key()) {
            Err(Error::State(StateError::File(fault))) => fault,
            other => panic!("{other:?}"),
        }
    };
    for path in &paths {
        let whole = std::fs::read(path).unwrap();
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        assert!(matches!(fault(&whole[..100]), FileError::Other { .. }));
        assert!(matches!(fault(&changed(0)), FileError::Other { .. }));
        assert!(matches!(fault(&changed(8)), FileError::Version { found: 2, known: 3 }));
        assert!(matches!(fault(&whole[..whole.len() - 1]), FileError::Length { .. }));
        assert!(matches!(fault(&[&whole[..], &[0]].concat()), FileError::Length { .. }));
        for at in [12, 14, 15, 16, 18, 20, 28, 60, 92, 124, 155, 160, 188, 192, 223] {
            assert!(matches!(fault(&changed(at)), FileError::Damaged { what: "header" }), "byte {at}");
        }
        let mut used = whole.clone();
        used[13] = 1;
        std::fs::write(dir.path().join("bad"), used).unwrap();
        let opened = State::open(&dir.path().join("bad"), &key());
        assert!(matches!(opened, Err(Error::State(StateError::Used))));
        let other = FileKey::from_bytes(&[8; 32]).unwrap();
        let opened = State::open(path, &other);
        assert!(matches!(opened, Err(Error::State(StateError::File(FileError::WrongKey)))));
        let held = State::open(path, &key()).unwrap();
        let opened = State::open(path, &key());
        assert!(matches!(opened, Err(Error::State(StateError::File(FileError::Busy)))));
        drop(held);
        // Sealed parts: the beginning is read before a word is said, the rest while the run goes on.
        for at in [224, whole.len() / 2, whole.len() - 1] {
            std::fs::write(dir.path().join("bad"), changed(at)).unwrap();
            let state = State::open(&dir.path().join("bad"), &key()).unwrap();
            let peer = if path == &paths[0] { &paths[1] } else { &paths[0] };
            let copy = dir.path().join("copy");
            std::fs::copy(peer, &copy).unwrap();
            let mine = |channel: &mut Channel| state.run(channel, &job, &byte(1), &mut Prg::from_os());
            let theirs = |channel: &mut Channel| {
                State::open(&copy, &key()).unwrap().run(channel, &job, &byte(1), &mut Prg::from_os())
            };
            let (mine, theirs) = if path == &paths[0] {
                memory::run(mine, theirs)
            } else {
                let (theirs, mine) = memory::run(theirs, mine);
                (mine, theirs)
            };
            let damage =
                matches!(mine, Err(Error::State(StateError::File(FileError::Damaged { what: "contents" }))));
            assert!(damage && theirs.is_err(), "byte {at}: {mine:?}");
        }
    }
}

/// Whatever had reached the disk when a crash came, a state that anything was sent from does not serve again.
#[test]
fn a_state_serves_once_whenever_the_crash_comes() {
    let (_, prepared) = prepared(FUNCTION);
    let dir = tempfile::tempdir().unwrap();
    let job = Job::new(&prepared, OutputTo::Evaluator);
    for side in 0..2 {
        let paths = states(&job, dir.path(), "state");
        let whole = std::fs::read(&paths[side]).unwrap();
        let id = State::open(&paths[side], &key()).unwrap().header().id;
        // A peer that shows the right state and goes away: the run ends right after the state was used up.
        let vanish = |channel: &mut Channel| {
            let _ = channel.send(&[&[side as u8][..], &id].concat());
            let _ = channel.flush();
            let _ = channel.recv(&mut [0; 33]);
        };
        let mine = |channel: &mut Channel| {
            State::open(&paths[side], &key()).unwrap().run(channel, &job, &byte(1), &mut Prg::from_os())
        };
        let result = if side == 0 { memory::run(mine, vanish).0 } else { memory::run(vanish, mine).1 };
        assert!(result.is_err());
        let after = std::fs::read(&paths[side]).unwrap();
        assert!(after.len() == 224 && after[92..156].iter().all(|byte| *byte == 0));
        // A header of which only a part was written: either it is whole and unused, and nothing was sent yet,
        // or it is refused.
        for written in 0..=224 {
            let torn = [&after[..written], &whole[written..]].concat();
            let path = dir.path().join("torn");
            std::fs::write(&path, &torn).unwrap();
            let opened = State::open(&path, &key());
            assert_eq!(opened.is_ok(), torn == whole, "{written} bytes");
        }
    }
}
