//! Each cheat, on both sides where both can, is caught by the honest party whenever it should be.

use super::*;
use crate::authenticated::bits::GatesMut;
use crate::circuit::{Builder, Uint};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tacit_net::{LinkModel, Party, SessionId};

/// A change at one step; the counter says which call is changed.
macro_rules! cheat {
    ($name:ident, $method:ident($($argument:ident: $type:ty),*), $change:expr) => {
        #[derive(Default)]
        pub(super) struct $name;
        impl Script for $name {
            fn $method(&mut self, $($argument: $type),*) {
                #[allow(clippy::redundant_closure_call)]
                ($change)($($argument),*)
            }
        }
    };
}

fn flip(bits: &mut BitVec, i: usize) {
    let bit = bits.get(i);
    bits.set(i, !bit);
}

cheat!(WrongX, bits(macs: &mut [&mut [Block]; 3]), |macs: &mut [&mut [Block]; 3]| macs[0][7] ^= Block::ONE);
cheat!(WrongY, bits(macs: &mut [&mut [Block]; 3]), |macs: &mut [&mut [Block]; 3]| macs[1][7] ^= Block::ONE);
cheat!(WrongZ, bits(macs: &mut [&mut [Block]; 3]), |macs: &mut [&mut [Block]; 3]| macs[2][7] ^= Block::ONE);
cheat!(WrongMask, masks(macs: &mut [Block]), |macs: &mut [Block]| macs[1] ^= Block::ONE);
cheat!(WrongMac, bits(macs: &mut [&mut [Block]; 3]), |macs: &mut [&mut [Block]; 3]| macs[1][7] ^= Block::new(2));
cheat!(WrongProduct, products(bits: &mut BitVec), |bits| flip(bits, 11));
cheat!(WrongOpening, opened(bits: &mut BitVec), |bits| flip(bits, 0));
cheat!(WrongDigest, mac_digest(digest: &mut [u8; 32]), |digest: &mut [u8; 32]| digest[5] ^= 1);
cheat!(WrongGateMask, gate_masks(gates: &mut GatesMut<'_>),
    |gates: &mut GatesMut<'_>| gates.macs[2][0] ^= Block::ONE);
cheat!(WrongOutput, shown(bits: &mut BitVec, _digest: &mut [u8; 32]), |bits, _| flip(bits, 3));
cheat!(WrongOutputMac, shown(_bits: &mut BitVec, digest: &mut [u8; 32]),
    |_, digest: &mut [u8; 32]| digest[0] ^= 1);

cheat!(WrongColour, tables(_delta: Block, _tables: &mut [Block], colours: &mut BitVec),
    |_, _, colours| flip(colours, 0));
cheat!(WrongGatesDigest, gates_digest(digest: &mut [u8; 32]), |digest: &mut [u8; 32]| digest[31] ^= 128);
cheat!(WrongRow, tables(delta: Block, tables: &mut [Block], _colours: &mut BitVec),
    |delta, tables: &mut [Block], _| tables[0] ^= delta);
cheat!(WrongLabels, input_labels(labels: &mut [Block]),
    |labels: &mut [Block]| labels.iter_mut().for_each(|label| *label ^= Block::new(1 << 70)));

cheat!(WrongResult, results(results: &mut BitVec), |results| flip(results, 2));
cheat!(WrongLabelHash, labels_digest(digest: &mut [u8; 32]), |digest: &mut [u8; 32]| digest[9] ^= 4);

cheat!(WrongDelta, triples_delta(delta: &mut Block), |delta: &mut Block| *delta ^= Block::new(1 << 7));
cheat!(WrongAlike, alike(digest: &mut [u8; 32]), |digest: &mut [u8; 32]| digest[3] ^= 2);
cheat!(WrongProof, proof(proof: &mut [u8; 32]), |proof: &mut [u8; 32]| proof[17] ^= 8);
cheat!(OtherOpening, opened_commitment(message: &mut [u8; 32]), |message: &mut [u8; 32]| message[8] ^= 1);

/// Whether the honest party, against the one whose script this is, says that it was cheated.
fn caught(by: Owner, script: impl Script + Send + 'static, seed: u64) -> bool {
    caught_in("add8", by, script, seed)
}

fn caught_in(function: &str, by: Owner, script: impl Script + Send + 'static, seed: u64) -> bool {
    let function = prepared(function);
    let (inputs, outputs) = example(&function, seed);
    let script: Scripts = Some(Box::new(script));
    let scripts = if by == Owner::Garbler { [script, None] } else { [None, script] };
    let results = run(&function, OutputTo::Both, &inputs, seed, scripts);
    let honest = &results[(by == Owner::Garbler) as usize];
    match honest {
        Ok(output) => {
            assert_eq!(output.as_ref(), Some(&outputs), "a wrong output passed");
            false
        }
        Err(Error::Cheated { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

macro_rules! always_caught {
    ($by:ident: $($script:ident),*) => {
        $(for seed in 0..6 {
            assert!(caught(Owner::$by, $script, seed), "{} {seed}", stringify!($script));
        })*
    };
}

/// What is sent of a row before its digest, the digest, and what is opened of the buckets.
///
/// proof: authenticated 2.2, 2.8
/// proof: authenticated-run 2.2, 2.3
#[test]
fn a_garbler_that_lies_before_the_inputs_is_caught() {
    always_caught!(Garbler: WrongX, WrongZ, WrongProduct, WrongOpening, WrongDigest);
    always_caught!(Garbler: WrongY, WrongMac, WrongMask, WrongDelta, WrongAlike, WrongProof, OtherOpening);
}

/// proof: authenticated 2.2, 2.8
/// proof: authenticated-run 2.2, 2.3
#[test]
fn an_evaluator_that_lies_before_the_inputs_is_caught() {
    always_caught!(Evaluator: WrongX, WrongZ, WrongProduct, WrongOpening, WrongDigest);
    always_caught!(Evaluator: WrongY, WrongMac, WrongMask, WrongDelta, WrongAlike, WrongProof);
}

/// proof: authenticated-run 2.5, 2.8, 2.9
#[test]
fn a_garbler_that_lies_online_is_caught() {
    always_caught!(Garbler: WrongColour, WrongGatesDigest, WrongGateMask, WrongOutput, WrongOutputMac);
    // Of labels that are none each gate's bit is right by chance, and all of them with 2^-63: with the seven
    // gates of eight bits such a run would pass, and harm nobody, now and then.
    for seed in 0..6 {
        assert!(caught_in("add64", Owner::Garbler, WrongLabels, seed), "WrongLabels {seed}");
    }
}

/// proof: authenticated-run 2.7, 2.10
#[test]
fn an_evaluator_that_lies_online_is_caught() {
    always_caught!(Evaluator: WrongResult, WrongLabelHash, WrongGateMask, WrongOutput, WrongOutputMac);
}

#[test]
fn an_honest_run_is_not_caught() {
    struct Honest;
    impl Script for Honest {}
    assert!(!caught(Owner::Garbler, Honest, 1) && !caught(Owner::Evaluator, Honest, 1));
}

/// Changes nothing, and keeps the digests of what must be alike; or shows a wrong product besides.
struct Digests {
    seen: Arc<Mutex<Vec<[u8; 32]>>>,
    lies: bool,
}

impl Script for Digests {
    fn alike(&mut self, digest: &mut [u8; 32]) {
        self.seen.lock().unwrap().push(*digest);
    }
    fn products(&mut self, bits: &mut BitVec) {
        if self.lies {
            flip(bits, 3);
        }
    }
    fn checked(&mut self, right: &mut bool) {
        *right |= self.lies;
    }
}

/// The honest party's digest is then off by some bits of its Δ, which its peer could search for.
#[test]
fn a_digest_of_triples_is_never_shown() {
    let function = prepared("add8");
    let (inputs, _) = example(&function, 1);
    for cheater in [Owner::Garbler, Owner::Evaluator] {
        let seen: [Arc<Mutex<Vec<_>>>; 2] = Default::default();
        let written: [memory::Record; 2] = Default::default();
        let (one, two) = memory::links(LinkModel::LOOPBACK);
        let channel = |link, party, i: usize| Channel::new(written[i].of(link), party, SessionId([1; 32]));
        let party = |channel: &mut Channel, role: Owner| {
            let i = (role == Owner::Evaluator) as usize;
            let script = Digests { seen: seen[i].clone(), lies: role == cheater };
            let mut session = session(channel, role, 1);
            scripted(Some(Box::new(script)), || session.run(channel, &function, OutputTo::Both, &inputs[i]))
        };
        let results: [_; 2] = memory::join(
            channel(one, Party::First, 0),
            channel(two, Party::Second, 1),
            |channel| party(channel, Owner::Garbler),
            |channel| party(channel, Owner::Evaluator),
        )
        .into();
        let honest = (cheater == Owner::Garbler) as usize;
        assert!(matches!(results[honest], Err(Error::Cheated { .. })), "{:?}", results[honest]);
        let [ours, theirs] = [honest, 1 - honest].map(|i| seen[i].lock().unwrap().clone());
        assert!(ours.len() == 1 && ours[0] != theirs[0], "the digests differ");
        let sent: Vec<u8> = written[honest].frames().into_iter().flat_map(|(_, payload)| payload).collect();
        assert!(!sent.windows(32).any(|bytes| bytes == ours[0]), "{cheater:?} is shown the digest");
    }
}

const RUNS: u64 = if cfg!(feature = "long-tests") { 1200 } else { 120 };

/// Whether `count` of [`RUNS`] is within three and a half standard deviations of the chance `p`.
fn near(count: u64, p: f64) -> bool {
    let (mean, deviation) = (RUNS as f64 * p, (RUNS as f64 * p * (1.0 - p)).sqrt());
    (count as f64 - mean).abs() <= 3.5 * deviation
}

/// Guesses that the peer's x of the first `guesses` triples is 1: G is off by what S makes up for.
struct Guess {
    guesses: usize,
    ones: bool,
}

impl Script for Guess {
    fn leaky(&mut self, messages: &mut [Block], sums: &mut [Block]) {
        // The highest bit of what is sent counts as well.
        let error = Block::new(0xABC << 32);
        for i in 0..self.guesses {
            messages[i] ^= error;
            sums[i] ^= error & Block::mask(self.ones);
        }
        self.guesses = 0;
    }
}

#[test]
fn each_guess_of_a_triples_bit_is_caught_with_chance_one_half() {
    for by in [Owner::Garbler, Owner::Evaluator] {
        for (guesses, ones) in [(1, false), (1, true), (3, true)] {
            let passed = (0..RUNS).filter(|&seed| !caught(by, Guess { guesses, ones }, seed)).count() as u64;
            let p = 0.5f64.powi(guesses as i32);
            assert!(near(passed, p), "{by:?}: {guesses} guesses passed {passed} times of {RUNS}");
        }
    }
}

/// How often the evaluator stops when one row of the first gate is off by Δ.
fn stops(inputs: &[BitVec; 2]) -> u64 {
    let function = prepared("add8");
    let stopped = |seed| {
        let scripts: [Scripts; 2] = [Some(Box::new(WrongRow)), None];
        matches!(run(&function, OutputTo::Evaluator, inputs, seed, scripts)[1], Err(Error::Cheated { .. }))
    };
    (0..RUNS).filter(|&seed| stopped(seed)).count() as u64
}

/// proof: authenticated-run 4.4
#[test]
fn what_a_wrong_row_shows_depends_on_masks_and_not_on_inputs() {
    // An operand that is the garbler's input alone has a mask that the garbler knows: it learns nothing
    // from it, and the chance is not 1/2. The first gate's other operand is masked by the evaluator as well.
    let byte = |value: u8| BitVec::from_bytes(&[value], 8);
    for other in [0, 255] {
        for own in [0, 255] {
            let count = stops(&[byte(own), byte(other)]);
            assert!(near(count, 0.5), "inputs {own} and {other}: stopped {count} times of {RUNS}");
        }
    }
}

#[test]
fn a_garbler_whose_row_is_found_out_learns_no_output() {
    let function = prepared("add8");
    let (inputs, _) = example(&function, 3);
    let mut stopped = 0;
    for seed in 0..16 {
        let scripts: [Scripts; 2] = [Some(Box::new(WrongRow)), None];
        let [garbler, evaluator] = run(&function, OutputTo::Garbler, &inputs, seed, scripts);
        stopped += u64::from(evaluator.is_err());
        assert_eq!(garbler.is_err(), evaluator.is_err(), "seed {seed}");
    }
    assert!((1..16).contains(&stopped), "{stopped} of 16");
}

/// Once it has seen masked values, makes all rows of a later piece wrong or none, by what it saw.
struct Adaptive {
    seen: Option<bool>,
    lied: Arc<AtomicBool>,
}

impl Script for Adaptive {
    fn returned(&mut self, results: &BitVec) {
        self.seen.get_or_insert(results.get(0));
    }
    fn tables(&mut self, delta: Block, tables: &mut [Block], _: &mut BitVec) {
        if self.seen == Some(true) && !self.lied.swap(true, Ordering::Relaxed) {
            tables.iter_mut().for_each(|row| *row ^= delta);
        }
    }
}

/// proof: authenticated-run 2.6, 4.2
#[test]
fn a_garbler_that_chooses_tables_by_masked_values_it_saw_is_caught_as_any_other() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..40).fold(x, |value, _| builder.mul(&value, &y));
    let owners = vec![Owner::Garbler, Owner::Evaluator];
    let function = Prepared::new(builder.finish(&[value]).unwrap(), owners).unwrap();
    let mut lies = 0;
    for seed in 0..12 {
        let (inputs, outputs) = example(&function, seed);
        let lied = Arc::new(AtomicBool::new(false));
        let script = Adaptive { seen: None, lied: lied.clone() };
        let [_, evaluator] = run(&function, OutputTo::Both, &inputs, seed, [Some(Box::new(script)), None]);
        if lied.load(Ordering::Relaxed) {
            lies += 1;
            assert!(matches!(evaluator, Err(Error::Cheated { .. })), "seed {seed}: {evaluator:?}");
        } else {
            assert_eq!(evaluator.unwrap(), Some(outputs));
        }
    }
    assert!((1..12).contains(&lies), "{lies} of 12 lied after what they saw");
}

/// Lies at one call of one step: in the second of a program's stretches.
struct Later {
    step: &'static str,
    /// Calls of that step before the lie.
    before: usize,
}

impl Later {
    fn is_now(&mut self, step: &str) -> bool {
        let now = self.step == step && self.before == 0;
        self.before = self.before.saturating_sub(usize::from(self.step == step));
        now
    }
}

impl Script for Later {
    fn alike(&mut self, digest: &mut [u8; 32]) {
        digest[0] ^= u8::from(self.is_now("alike"));
    }
    fn mac_digest(&mut self, digest: &mut [u8; 32]) {
        digest[0] ^= u8::from(self.is_now("MACs"));
    }
    fn gates_digest(&mut self, digest: &mut [u8; 32]) {
        digest[0] ^= u8::from(self.is_now("gates"));
    }
    fn results(&mut self, results: &mut BitVec) {
        if self.is_now("results") {
            flip(results, 5);
        }
    }
}

/// proof: authenticated-run 6.1
#[test]
fn whoever_lies_in_a_later_stretch_is_caught_there() {
    // A stretch of 500,000 gates has three rows of triples, in two checks, and two hashes of MACs.
    for (by, step, before) in [
        (Owner::Garbler, "alike", 2),
        (Owner::Garbler, "gates", 1),
        (Owner::Evaluator, "MACs", 2),
        (Owner::Evaluator, "MACs", 3),
        // The first stretch has 245 pieces.
        (Owner::Evaluator, "results", 260),
    ] {
        let script: Scripts = Some(Box::new(Later { step, before }));
        let scripts = if by == Owner::Garbler { [script, None] } else { [None, script] };
        let outcome = honest::run_program(2200, OutputTo::Both, 3, scripts);
        let (result, done) = &outcome[(by == Owner::Garbler) as usize];
        assert!(matches!(result, Err(Error::Cheated { .. })), "{step}: {result:?}");
        assert_eq!(done.len(), 1, "{step}: the first stretch was right");
    }
}
