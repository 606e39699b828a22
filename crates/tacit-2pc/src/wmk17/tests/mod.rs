//! Honest runs, and scripted cheaters for every step of figures 3 and 4. Seeds are fixed: counts repeat.

mod digests;
mod evaluator_cheats;
mod garbler_cheats;
mod honest;
mod pace;
mod scripts;
mod states;

use super::deviation::{Script, scripted};
use super::*;
use crate::circuit::{Circuit, evaluate, named};
use crate::semi_honest::Prepared;
use crate::{Error, Result, StateError};
use tacit_crypto::Block;
use tacit_net::memory;
use tacit_store::sealed::FileKey;

const FUNCTION: &str = "add8";

/// Follows the protocol.
#[derive(Default)]
struct Honest;

impl Script for Honest {}

struct Outcome {
    garbler: Result<Option<BitVec>>,
    evaluator: Result<Option<BitVec>>,
    /// What P1 received, in bytes and messages.
    view: (u64, u64),
}

impl Outcome {
    /// The output, or `None` if P2 aborted; panics on any other fault.
    fn output(&self) -> Option<&BitVec> {
        match &self.evaluator {
            Ok(output) => output.as_ref(),
            Err(Error::Cheated { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    }
}

fn prepared(name: &str) -> (Circuit, Prepared) {
    let function = named::find(name).unwrap();
    (function.circuit.clone(), Prepared::from_function(&function).unwrap())
}

fn run(
    job: &Job<'_>,
    x: &BitVec,
    y: &BitVec,
    seed: u64,
    one: &mut (impl Script + Default + Send + 'static),
    two: &mut (impl Script + Default + Send + 'static),
) -> Outcome {
    let prg = |role: u64| Prg::from_seed(Block::from_halves(seed, role));
    let ((garbler, view), evaluator) = memory::run(
        |channel| {
            let (mut prg, base) = (prg(1), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            let result = scripted(one, || garbler.run(channel, job, x, &mut prg));
            (result, (channel.stats().bytes_received, channel.stats().messages_received))
        },
        |channel| {
            let (mut prg, base) = (prg(2), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            scripted(two, || evaluator.run(channel, job, y, &mut prg))
        },
    );
    Outcome { garbler, evaluator, view }
}

fn joined(circuit: &Circuit, x: &BitVec, y: &BitVec) -> BitVec {
    let bits: Vec<bool> = evaluate(circuit, &[x.clone(), y.clone()])
        .iter()
        .flat_map(|o| o.iter().collect::<Vec<_>>())
        .collect();
    BitVec::from_bools(&bits)
}

fn byte(value: u8) -> BitVec {
    BitVec::from_bytes(&[value], 8)
}

fn key() -> FileKey {
    FileKey::from_bytes(&[7; 32]).unwrap()
}

/// Whether `count` of `runs` is within three standard deviations of the chance `p`.
fn near(count: u64, runs: u64, p: f64) -> bool {
    let (mean, deviation) = (runs as f64 * p, (runs as f64 * p * (1.0 - p)).sqrt());
    (count as f64 - mean).abs() <= 3.0 * deviation + 1e-9
}

#[cfg(feature = "long-tests")]
const RUNS: u64 = 1200;

#[cfg(not(feature = "long-tests"))]
const RUNS: u64 = 120;

#[test]
fn a_chance_is_told_from_its_double() {
    assert!(near(15, 120, 1.0 / 8.0) && !near(30, 120, 1.0 / 8.0) && !near(15, 120, 1.0 / 4.0));
}
