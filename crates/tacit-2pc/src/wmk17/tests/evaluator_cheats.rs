//! A P2 that cheats is caught, or learns nothing.

use super::scripts::set;
use super::*;
use std::sync::{Arc, Mutex};

/// A cheating P2, and the channel by which the test tells it what it should not know.
#[derive(Default)]
struct Prier {
    offset: bool,
    /// Correlations that prove the opening, in place of all; P2 guesses that P1's choices in them are 0.
    checks: Option<usize>,
    claim: Option<Arc<Mutex<Block>>>,
    flip_returned: bool,
    decrypted: Vec<Block>,
}

impl Script for Prier {
    fn evaluated(&mut self, all: &mut BitVec) {
        *all = set(true, 3);
    }
    fn terms(&mut self, _matrix: &mut probe::ProbeMatrix, opening_checks: &mut usize) {
        self.checks.iter().for_each(|&checks| *opening_checks = checks);
    }
    fn opening(&mut self, offset: &mut Block, _rows: &mut [Block]) {
        if self.offset {
            *offset ^= Block::new(1 << 77);
        }
    }
    fn omega(&mut self, known: &mut bool, omega: &mut Block) {
        if let Some(claim) = &self.claim {
            (*known, *omega) = (true, *claim.lock().unwrap());
        }
    }
    fn decrypted(&mut self, seeds: &[Block]) {
        self.decrypted = seeds.to_vec();
    }
    fn returned(&mut self, tokens: &mut [Block]) {
        if self.flip_returned {
            tokens[0] ^= Block::ONE;
        }
    }
}

/// An honest P1 whose seeds and Δ the test sees.
#[derive(Default)]
struct Open {
    seeds: Vec<Block>,
    delta: Arc<Mutex<Block>>,
    checks: Option<usize>,
}

impl Script for Open {
    fn terms(&mut self, _matrix: &mut probe::ProbeMatrix, opening_checks: &mut usize) {
        self.checks.iter().for_each(|&checks| *opening_checks = checks);
    }
    fn keys(&mut self, pairs: &mut [[Block; 2]]) {
        self.seeds = pairs.iter().map(|pair| pair[0]).collect();
    }
    fn tokens(&mut self, tokens: &mut [[Block; 2]]) {
        *self.delta.lock().unwrap() = tokens[0][0] ^ tokens[0][1];
    }
}

/// proof: wmk17 2.6
#[test]
fn a_wrong_opening_of_the_committing_ot_is_caught() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let mut cheater = Prier { offset: true, ..Prier::default() };
    let out = run(&job, &byte(1), &byte(2), 1, &mut Honest, &mut cheater);
    assert!(matches!(out.garbler, Err(Error::Cheated { .. })));
}

/// Another Γ passes with k sacrificed correlations once in 2^k times: so 128 are worth 128 bits.
///
/// proof: wmk17 2.6, 4.2
#[test]
fn an_opening_is_worth_a_bit_a_sacrificed_correlation() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    for checks in [1, 2, 3] {
        let passed = |seed: &u64| {
            let mut honest = Open { checks: Some(checks), ..Open::default() };
            let mut cheater = Prier { offset: true, checks: Some(checks), ..Prier::default() };
            let out = run(&job, &byte(1), &byte(2), 500 + seed, &mut honest, &mut cheater);
            // Which is no use to P2 here: what it gets hangs together no more.
            assert!(out.evaluator.is_err());
            out.garbler.is_ok()
        };
        let count = (0..RUNS).filter(passed).count() as u64;
        assert!(near(count, RUNS, 0.5f64.powi(checks as i32)), "{checks} correlations: {count} of {RUNS}");
    }
}

/// proof: wmk17 4.4
#[test]
fn only_delta_opens_the_seeds() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    for knows in [true, false] {
        let mut open = Open::default();
        let wrong = Arc::new(Mutex::new(Block::new(12345)));
        let claim = if knows { open.delta.clone() } else { wrong };
        let mut cheater = Prier { claim: Some(claim), ..Prier::default() };
        let out = run(&job, &byte(1), &byte(2), 1, &mut open, &mut cheater);
        assert!(out.garbler.is_ok());
        let evaluated: Vec<usize> = (0..44).filter(|&j| set(true, 3).get(j)).collect();
        assert_eq!(evaluated.len(), cheater.decrypted.len());
        let opened =
            evaluated.iter().zip(&cheater.decrypted).filter(|(j, seed)| open.seeds[**j] == **seed).count();
        assert_eq!(opened, if knows { evaluated.len() } else { 0 });
    }
}

/// proof: wmk17 2.10, 4.5
#[test]
fn the_evaluator_cannot_change_the_garblers_output() {
    let (_, prepared) = prepared(FUNCTION);
    for output_to in [OutputTo::Garbler, OutputTo::Both] {
        let mut cheater = Prier { flip_returned: true, ..Prier::default() };
        let out = run(&Job::new(&prepared, output_to), &byte(1), &byte(2), 1, &mut Honest, &mut cheater);
        assert!(matches!(out.garbler, Err(Error::Cheated { .. })));
    }
}
