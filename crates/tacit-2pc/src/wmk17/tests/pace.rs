//! What P1 can time of P2's work tells neither the evaluation set nor P2's input.

use super::scripts::{Cheater, Fault, Watch};
use super::*;
use crate::pace::{self, Note};
use crate::wmk17::secrets::Hidden;
use crate::wmk17::{schedule, secrets};
use std::fs::File;
use tacit_net::Channel;

/// Runs both parties, P2 under a clock; returns P1's view of its pace as well.
fn paced<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, Vec<Note>) {
    let second = |channel: &mut Channel| {
        schedule::start();
        second(channel)
    };
    let (a, b, [_, pace]) = pace::paced(schedule::clock, first, second);
    (a, b, pace)
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
///
/// proof: wmk17 5.4
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
