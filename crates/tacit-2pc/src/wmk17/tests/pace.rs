//! What P1 can time of P2's work tells neither the evaluation set nor P2's input.

use super::scripts::{Cheater, Fault, Watch};
use super::*;
use crate::wmk17::secrets::Hidden;
use crate::wmk17::{schedule, secrets};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tacit_net::link::{Arrival, Interest, Link};
use tacit_net::{Channel, LinkModel, Party, SessionId};

/// P2's link as P1 sees it: when P2 takes which byte, and when it sends, in P2's virtual time.
#[derive(Clone, Default)]
struct Pace(Arc<Mutex<Vec<(bool, u64, u64)>>>);

struct Paced {
    link: Box<dyn Link>,
    pace: Pace,
    moved: [u64; 2],
}

impl Paced {
    /// Notes where the bytes of a direction stand, if time has passed since the last note.
    fn note(&mut self, taken: bool, bytes: usize) {
        let mut notes = self.pace.0.lock().unwrap();
        let (at, time) = (self.moved[usize::from(taken)], schedule::clock());
        if notes.last().is_none_or(|&(_, _, last)| last != time) {
            notes.push((taken, at, time));
        }
        self.moved[usize::from(taken)] += bytes as u64;
    }
}

impl Link for Paced {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
        let n = self.link.try_write(slices)?;
        self.note(false, n);
        Ok(n)
    }

    /// A byte at a time: P1 paces them as finely as can be.
    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
        let Some(slice) = slices.iter_mut().find(|slice| !slice.is_empty()) else {
            return Ok(Arrival::Nothing);
        };
        let arrival = self.link.try_read(&mut [IoSliceMut::new(&mut slice[..1])])?;
        if matches!(arrival, Arrival::Bytes(_)) {
            self.note(true, 1);
        }
        Ok(arrival)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> tacit_net::Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn try_flush(&mut self) -> tacit_net::Result<bool> {
        self.link.try_flush()
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

/// Runs both parties, P2 under a clock; returns P1's view of its pace as well, up to when it is done.
///
/// What P2's channel still says when it is dropped, and whether P1's last word came before that, is the
/// machine's pace and not P2's.
fn paced<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, Vec<(bool, u64, u64)>) {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let pace = Pace::default();
    let b = Box::new(Paced { link: b, pace: pace.clone(), moved: [0; 2] });
    let id = SessionId([5; 32]);
    let (a, (b, notes)) = memory::join(
        Channel::new(a, Party::First, id),
        Channel::new(b, Party::Second, id),
        first,
        |channel| {
            schedule::start();
            let result = second(channel);
            let mut notes = std::mem::take(&mut *pace.0.lock().unwrap());
            notes.push((false, u64::MAX, schedule::clock()));
            (result, notes)
        },
    );
    (a, b, notes)
}

/// Sets that lie differently: at the beginning, at the end, in every second copy, and drawn.
fn sets(copies: Copies) -> Vec<BitVec> {
    let Copies { total, evaluated, .. } = copies;
    let of = |chosen: &dyn Fn(usize) -> bool| BitVec::from_bools(&(0..total).map(chosen).collect::<Vec<_>>());
    let mut prg = Prg::from_seed(Block::new(55));
    vec![
        of(&|j| j < evaluated),
        of(&|j| j >= total - evaluated),
        of(&|j| {
            if 2 * evaluated > total {
                j % 2 == 0 || j < 2 * evaluated - total
            } else {
                j % 2 == 1 && j < 2 * evaluated
            }
        }),
        copies.draw(&mut prg),
    ]
}

/// All of P2's work is noted between its receives, and what P1 can time of it is the same for every
/// evaluation set and every input: a P1 that paces its bytes and is told P2's times learns nothing of either
/// before it has nothing left to choose, whatever it spoilt.
#[test]
fn the_evaluators_pace_tells_nothing() {
    let (_, prepared) = prepared(FUNCTION);
    let faults = [Fault::Nothing, Fault::Flipped, Fault::T, Fault::OtherTables, Fault::NoElement, Fault::R];
    for copies in Copies::ALL {
        for (fault, output_to) in
            faults.into_iter().flat_map(|f| [(f, OutputTo::Evaluator), (f, OutputTo::Both)])
        {
            let job = Job { copies, ..Job::new(&prepared, output_to) };
            let view = |set: &BitVec, y: u8| {
                let mut watch = Watch::with(set.clone());
                let (_, _, pace) = paced(
                    |channel| {
                        let (mut prg, base) = (Prg::from_seed(Block::new(1)), tacit_ot::base::default());
                        let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
                        let mut cheater = Cheater::new(fault, 3);
                        let _ = scripted(&mut cheater, || garbler.run(channel, &job, &byte(9), &mut prg));
                    },
                    |channel| {
                        let (mut prg, base) = (Prg::from_seed(Block::new(2)), tacit_ot::base::default());
                        let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
                        let _ = scripted(&mut watch, || evaluator.run(channel, &job, &byte(y), &mut prg));
                    },
                );
                pace
            };
            let sets = sets(copies);
            let first = view(&sets[0], 0);
            assert!(first.len() > 8, "work is noted: {first:?}");
            for set in &sets {
                for y in [0, 255] {
                    assert!(view(set, y) == first, "{copies:?}, {fault:?}, {output_to:?}, y = {y}");
                }
            }
        }
    }
}

/// The same offline, where P1's choices after the circuits are still to come, and online.
#[test]
fn the_evaluators_pace_tells_nothing_offline_and_online() {
    let (_, prepared) = prepared(FUNCTION);
    let dir = tempfile::tempdir().unwrap();
    let (p1, p2) = (dir.path().join("1"), dir.path().join("2"));
    for copies in [Copies::STANDARD, Copies::SPARSE] {
        let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
        let view = |set: &BitVec, y: u8| {
            let mut watch = Watch::with(set.clone());
            let (_, _, offline) = paced(
                |channel| {
                    let (mut prg, base) = (Prg::from_seed(Block::new(1)), tacit_ot::base::default());
                    let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
                    let mut out = File::create(&p1).unwrap();
                    garbler.prepare_state(channel, &job, None, &key(), &mut out, &mut prg).unwrap()
                },
                |channel| {
                    let (mut prg, base) = (Prg::from_seed(Block::new(2)), tacit_ot::base::default());
                    let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
                    let mut out = File::create(&p2).unwrap();
                    scripted(&mut watch, || {
                        evaluator.prepare_state(channel, &job, None, &key(), &mut out, &mut prg)
                    })
                    .unwrap()
                },
            );
            let (one, two, online) = paced(
                |channel| {
                    let state = State::open(&p1, &key()).unwrap();
                    state.run(channel, &job, &byte(9), &mut Prg::from_seed(Block::new(3))).unwrap()
                },
                |channel| {
                    let state = State::open(&p2, &key()).unwrap();
                    state.run(channel, &job, &byte(y), &mut Prg::from_seed(Block::new(4))).unwrap()
                },
            );
            assert!(one == Some(byte(9u8.wrapping_add(y))) && two == one);
            [offline, online]
        };
        let sets = sets(copies);
        let first = view(&sets[0], 0);
        assert!(first.iter().all(|pace| pace.len() > 3));
        for set in &sets {
            for y in [0, 255] {
                assert!(view(set, y) == first, "{copies:?}, y = {y}");
            }
        }
    }
}

/// What those tests would see of a P2 that opens each copy's table as it comes: the whole set.
#[test]
fn opening_copy_by_copy_would_tell_the_set() {
    let oracle = secrets::Oracle::new([9; 32]);
    let table = vec![Block::ZERO; 16];
    for set in sets(Copies::STANDARD) {
        let (_, _, pace) = paced(
            |channel| {
                (0..44).try_for_each(|_| channel.send_blocks(&table)).unwrap();
                channel.send_block(Block::ZERO).unwrap();
            },
            |channel| {
                let mut table = vec![Block::ZERO; 16];
                for j in 0..44 {
                    channel.recv_blocks(&mut table).unwrap();
                    if set.get(j) {
                        oracle.tables(Hidden::Tables, j, &table);
                    }
                }
                // What P2 takes next shows how long the last copy took it.
                channel.recv_block().unwrap();
            },
        );
        // A frame's head of 4 bytes, then 256 bytes a copy. Time passes where a copy was opened.
        let taken = pace.iter().filter(|(taken, ..)| *taken).skip(1);
        let told: Vec<usize> = taken.map(|(_, at, _)| (*at as usize - 4) / 256 - 1).collect();
        let opened: Vec<usize> = (0..44).filter(|&j| set.get(j)).collect();
        assert_eq!(told, opened);
    }
}
