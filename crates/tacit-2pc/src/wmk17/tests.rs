//! Honest runs, and scripted cheaters for every step of figures 3 and 4. Seeds are fixed: counts repeat.

use super::deviation::{Script, scripted};
use super::secrets::Hidden;
use super::*;
use crate::circuit::{Circuit, evaluate, named};
use crate::semi_honest::Prepared;
use crate::{Error, Result};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tacit_crypto::group::Encoding;
use tacit_crypto::{Block, RHO};
use tacit_net::link::{Arrival, Interest, Link};
use tacit_net::memory::{self, Record};
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, LinkModel, Party, SessionId};
use tacit_ot::extension::kos;
use tacit_store::sealed::{FileError, FileKey};

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

pub(super) fn prepared(name: &str) -> (Circuit, Prepared) {
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

#[test]
fn honest_parties_learn_what_they_should() {
    for name in [FUNCTION, "add32", "aes128"] {
        let (circuit, prepared) = prepared(name);
        let shape = circuit.shape();
        let mut prg = Prg::from_seed(Block::new(3));
        for output_to in [OutputTo::Evaluator, OutputTo::Garbler, OutputTo::Both] {
            let x = BitVec::random(shape.inputs[0] as usize, &mut prg);
            let y = BitVec::random(shape.inputs[1] as usize, &mut prg);
            let out = run(&Job::new(&prepared, output_to), &x, &y, 1, &mut Honest, &mut Honest);
            let expected = joined(&circuit, &x, &y);
            assert!(out.evaluator.unwrap() == output_to.evaluator().then(|| expected.clone()), "{name}");
            assert!(out.garbler.unwrap() == output_to.garbler().then_some(expected), "{name}");
        }
    }
}

#[test]
fn every_built_in_function_gives_the_plain_result() {
    let mut prg = Prg::from_seed(Block::new(6));
    for (i, (stem, ..)) in named::list().enumerate() {
        let name = match stem {
            "modexp" => "modexp8",
            "mulwide" => "mulwide24",
            name => name,
        };
        let function = named::find(name).unwrap();
        let prepared = Prepared::from_function(&function).unwrap();
        let bits = |fields: &[crate::circuit::value::Field]| fields.iter().map(|f| f.bits() as usize).sum();
        let (n, m): (usize, usize) = (bits(&function.garbler), bits(&function.evaluator));
        let inputs = [
            (BitVec::random(n, &mut prg), BitVec::random(m, &mut prg)),
            (BitVec::from_bools(&vec![true; n]), BitVec::zeros(m)),
        ];
        for (j, (x, y)) in inputs.iter().enumerate() {
            let copies = Copies::ALL[(i + j) % Copies::ALL.len()];
            let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
            let out = run(&job, x, y, i as u64, &mut Honest, &mut Honest);
            let expected = joined(&function.circuit, x, y);
            assert!(out.output() == Some(&expected), "{name} at P2, {} copies", copies.name());
            assert!(out.garbler.unwrap() == Some(expected), "{name} at P1");
        }
    }
}

/// Base OTs and OT extensions included; the base OT's two messages cross.
#[test]
fn seven_messages_in_a_row_are_an_execution() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let rounds = memory::run(
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            garbler.run(channel, &job, &byte(1), &mut prg).unwrap();
            channel.stats().rounds
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            evaluator.run(channel, &job, &byte(2), &mut prg).unwrap();
            channel.stats().rounds
        },
    );
    // P2 waits for the base OT, P1's extension, steps 4 and 5, and step 7; P1 for the base OT and P2's extension, the opening and h_1.
    assert_eq!(rounds, (3, 4));
}

/// What waits for nothing leaves with the base OT's first messages.
#[test]
fn terms_and_group_elements_travel_with_the_base_ots() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (first, _) = listener.accept().unwrap();
    let records: [Record; 2] = Default::default();
    let channel = |stream, side: usize| {
        let link = records[side].of(Box::new(TcpLink::new(stream).unwrap()));
        Channel::new(link, [Party::First, Party::Second][side], SessionId([9; 32]))
    };
    memory::join(
        channel(first, 0),
        channel(second, 1),
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            garbler.run(channel, &job, &byte(1), &mut prg).unwrap();
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            evaluator.run(channel, &job, &byte(2), &mut prg).unwrap();
        },
    );
    // Each leaves when its sender flushes or waits.
    let [one, two] = records.map(|record| record.frames().iter().map(|(_, f)| f.len()).collect::<Vec<_>>());
    let (terms, point, block) = (33, 32, 16);
    let ots = 128 + 44 + probe::ProbeMatrix::new(8).encoded();
    let choices = 44usize.div_ceil(8) + probe::ProbeMatrix::new(8).encoded().div_ceil(8);
    // P1: 127 base OTs of 80 bytes.
    assert_eq!(one[0], 127 * 80 + terms);
    // P2: its side of the base OTs, terms, h, g_1 and a salt; the extension, and the choices behind it; the opening; h_1; then it goes.
    let extension = kos::bytes_by_hash(ots) as usize;
    let expected = [point + terms + 2 * point + block, extension, choices, block + 32, point, 0];
    assert_eq!(two, expected);
}

/// The outputs do not hang on how many tables are there before P2's opening, and P2 keeps no more than it must.
#[test]
fn tables_may_come_before_the_opening() {
    for (name, copies) in
        [("mul64", Copies::STANDARD), ("aes128", Copies::SPARSE), ("sha1", Copies::STANDARD)]
    {
        let (circuit, prepared) = prepared(name);
        let job = Job { copies, ..Job::new(&prepared, OutputTo::Evaluator) };
        let mut prg = Prg::from_seed(Block::new(8));
        let [x, y] = [0, 1].map(|i| BitVec::random(circuit.shape().inputs[i] as usize, &mut prg));
        for early in [false, true] {
            let mut hasty = Hasty { early };
            let out = run(&job, &x, &y, 2, &mut hasty, &mut Honest);
            if early && name == "sha1" {
                // 16 MB of tables.
                assert!(matches!(out.evaluator, Err(Error::Cheated { .. })) && out.garbler.is_err());
            } else {
                assert!(out.output() == Some(&joined(&circuit, &x, &y)) && out.garbler.is_ok());
            }
        }
    }
}

/// A P1 that sends all tables before it takes P2's opening, or none.
#[derive(Default)]
pub(super) struct Hasty {
    pub(super) early: bool,
}

impl Script for Hasty {
    fn early(&mut self, more: &mut bool) {
        *more = self.early;
    }
}

#[test]
fn one_setup_serves_many_runs() {
    let (circuit, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Both);
    let inputs = [(1, 2), (200, 100), (255, 255)];
    let (a, b) = memory::run(
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut garbler = Garbler::setup(channel, &*base, &mut prg).unwrap();
            inputs.map(|(x, _)| garbler.run(channel, &job, &byte(x), &mut prg).unwrap().unwrap())
        },
        |channel| {
            let (mut prg, base) = (Prg::from_os(), tacit_ot::base::default());
            let mut evaluator = Evaluator::setup(channel, &*base, &mut prg).unwrap();
            inputs.map(|(_, y)| evaluator.run(channel, &job, &byte(y), &mut prg).unwrap().unwrap())
        },
    );
    for (i, (x, y)) in inputs.iter().enumerate() {
        assert!(a[i] == b[i] && a[i] == joined(&circuit, &byte(*x), &byte(*y)));
    }
}

#[test]
fn parties_that_disagree_find_out_before_inputs_are_used() {
    let (_, one) = prepared("add8");
    let (_, two) = prepared("add32");
    let job = |prepared, output_to| Job::new(prepared, output_to);
    let start = |a: Job<'_>, b: Job<'_>, both_garble: bool| {
        memory::run(
            |channel| terms::agree_only(channel, true, &a).map(|_| ()),
            |channel| terms::agree_only(channel, both_garble, &b).map(|_| ()),
        )
    };
    let refused = |result: (Result<()>, Result<()>)| {
        matches!(result, (Err(Error::Mismatch { .. }), Err(Error::Mismatch { .. })))
    };
    assert!(refused(start(job(&one, OutputTo::Both), job(&two, OutputTo::Both), false)));
    assert!(refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Garbler), false)));
    assert!(refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Both), true)));
    let other = Job { copies: Copies { evaluated: 22, ..Copies::STANDARD }, ..job(&one, OutputTo::Both) };
    assert!(refused(start(job(&one, OutputTo::Both), other, false)));
    assert!(!refused(start(job(&one, OutputTo::Both), job(&one, OutputTo::Both), false)));
}

/// What a cheating P1 spoils.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Fault {
    /// Nothing.
    #[default]
    Nothing,
    /// Step 1: another key or seed goes into the OT than the one used.
    Key,
    Seed,
    /// Step 2: the labels for 1 of the encoded input bits that `wires` names, in all copies.
    Selective,
    /// Step 3: R.
    R,
    /// Step 4: a label that is opened is wrong; is the other value's; is the other value's and committed to as this one's.
    Opened,
    OtherLabel,
    Inconsistent,
    /// Step 4: a commitment is to another label.
    Committed,
    /// Step 5: ciphertexts; the circuit computes with a flipped input bit; T; its commitment; a token; T of P1's outputs.
    Tables,
    Flipped,
    T,
    TCommitment,
    Token,
    ReturnedT,
    /// Step 5: the hash of a copy's tables; tables that are not those which were hashed.
    TableHash,
    OtherTables,
    /// Step 5, coded: a combination; two, so that their share in copy 0 may vanish, whose circuit has a flipped input bit.
    Combination,
    Vanishing,
    /// Step 7: Δ, a token, C_j, no group element, Enc(seed_j).
    Delta,
    RevealedToken,
    C,
    NoElement,
    EncSeed,
    /// The last step: the hash of a token of P1's outputs; the token as it is revealed.
    ReturnedHash,
    ReturnedToken,
}

/// A P1 that spoils one thing in the copies below `copies`.
#[derive(Default)]
struct Cheater {
    fault: Fault,
    copies: usize,
    /// Encoded input bits.
    wires: Vec<usize>,
    flipped: bool,
    /// Whether the tables go before P2's opening.
    early: bool,
    /// The encoding in place of the right one.
    matrix: Option<probe::ProbeMatrix>,
}

impl Cheater {
    fn new(fault: Fault, copies: usize) -> Self {
        Cheater { fault, copies, ..Cheater::default() }
    }
}

fn spoil(blocks: &mut [Block]) {
    blocks.iter_mut().for_each(|b| *b ^= Block::new(4));
}

fn shift(labels: &mut [Block], deltas: &[Block]) {
    labels.iter_mut().zip(deltas).for_each(|(label, delta)| *label ^= *delta);
}

impl Script for Cheater {
    fn terms(&mut self, matrix: &mut probe::ProbeMatrix, _opening_checks: &mut usize) {
        self.matrix.take().into_iter().for_each(|other| *matrix = other);
    }
    fn keys(&mut self, pairs: &mut [[Block; 2]]) {
        for pair in &mut pairs[..self.copies] {
            match self.fault {
                Fault::Key => pair[1] ^= Block::ONE,
                Fault::Seed => pair[0] ^= Block::ONE,
                _ => {}
            }
        }
    }
    fn evaluator_labels(&mut self, i: usize, _zero: &mut [Block], one: &mut [Block]) {
        if self.fault == Fault::Selective && self.wires.contains(&i) {
            spoil(one);
        }
    }
    fn masked_input(&mut self, i: usize, r: &mut [Block]) {
        if self.fault == Fault::R && i == 2 {
            spoil(&mut r[..self.copies]);
        }
    }
    fn committed(&mut self, i: usize, pairs: &mut [[(Block, Block); 2]]) {
        for pair in &mut pairs[..self.copies] {
            match self.fault {
                Fault::Inconsistent if i == 2 => (pair[0].0, pair[1].0) = (pair[1].0, pair[0].0),
                Fault::Committed if i == 2 => pair[0].1 ^= Block::new(4),
                _ => {}
            }
        }
    }
    fn opened(&mut self, i: usize, deltas: &[Block], labels: &mut [Block]) {
        let labels = &mut labels[..self.copies];
        match self.fault {
            Fault::Opened if i == 2 => spoil(labels),
            Fault::OtherLabel | Fault::Inconsistent if i == 2 => shift(labels, deltas),
            _ => {}
        }
    }
    fn garbled_input(&mut self, i: usize, deltas: &[Block], labels: &mut [Block]) {
        if matches!(self.fault, Fault::Flipped | Fault::Vanishing) && i == 2 {
            shift(&mut labels[..self.copies], deltas);
        }
    }
    fn tables(&mut self, _lanes: usize, tables: &mut [Block]) {
        if self.fault == Fault::Tables && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut tables[..2 * self.copies]);
        }
    }
    fn early(&mut self, more: &mut bool) {
        *more = self.early;
    }
    fn combination(&mut self, combination: &mut [Block]) {
        if self.fault == Fault::Combination && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut combination[..1]);
        }
        if self.fault == Fault::Vanishing && !std::mem::replace(&mut self.flipped, true) {
            let second = combination.len() / Copies::SPARSE.evaluated;
            [0, second].iter().for_each(|&at| combination[at] ^= Block::ONE);
        }
    }
    fn sent(&mut self, message: &mut [Block]) {
        if self.fault == Fault::OtherTables && !std::mem::replace(&mut self.flipped, true) {
            spoil(&mut message[..2 * self.copies]);
        }
    }
    fn table_hashes(&mut self, hashes: &mut [[u8; 32]]) {
        if self.fault == Fault::TableHash {
            hashes[0][0] ^= 1;
        }
    }
    fn output_table(&mut self, j: usize, kind: Hidden, table: &mut [Block]) {
        let returned = matches!(kind, Hidden::Returned);
        if (self.fault == Fault::T || self.fault == Fault::ReturnedT && returned) && j < self.copies {
            spoil(table);
        }
    }
    fn returned_hashes(&mut self, hashes: &mut [[[u8; 32]; 2]]) {
        hashes[1][0][0] ^= u8::from(self.fault == Fault::ReturnedHash);
    }
    fn revealed_returned(&mut self, tokens: &mut [[Block; 2]]) {
        if self.fault == Fault::ReturnedToken {
            spoil(&mut tokens[1][..1]);
        }
    }
    fn table_commitment(&mut self, j: usize, commitment: &mut [u8; 32]) {
        commitment[0] ^= (self.fault == Fault::TCommitment && j < self.copies) as u8;
    }
    fn tokens(&mut self, tokens: &mut [[Block; 2]]) {
        if self.fault == Fault::Token {
            spoil(&mut tokens[1][1..]);
        }
    }
    fn revealed(&mut self, delta: &mut Block, tokens: &mut [Block]) {
        match self.fault {
            Fault::Delta => spoil(std::slice::from_mut(delta)),
            Fault::RevealedToken => spoil(tokens),
            _ => {}
        }
    }
    fn recovery(&mut self, c: &mut [Encoding], seeds: &mut [Block]) {
        match self.fault {
            Fault::C => (0..self.copies).for_each(|j| c[j] = c[j + 20]),
            Fault::NoElement => c[..self.copies].fill([0xff; 32]),
            Fault::EncSeed => spoil(&mut seeds[..self.copies]),
            _ => {}
        }
    }
}

/// A P2 that follows the protocol and notes whether it recovered P1's input; its set may be fixed.
#[derive(Default)]
struct Watch {
    set: Option<BitVec>,
    recovers: bool,
    matrix: Option<probe::ProbeMatrix>,
}

impl Watch {
    fn with(set: BitVec) -> Self {
        Watch { set: Some(set), ..Watch::default() }
    }
}

impl Script for Watch {
    fn terms(&mut self, matrix: &mut probe::ProbeMatrix, _opening_checks: &mut usize) {
        self.matrix.take().into_iter().for_each(|other| *matrix = other);
    }
    fn evaluated(&mut self, set: &mut BitVec) {
        if let Some(fixed) = &self.set {
            *set = fixed.clone();
        }
    }
    fn omega(&mut self, known: &mut bool, _omega: &mut Block) {
        self.recovers = *known;
    }
}

/// A set of [`Copies::STANDARD`] that holds the copies below `copies` or not, and of the others the even ones before the odd ones.
fn set(first: bool, copies: usize) -> BitVec {
    let Copies { total, evaluated, .. } = Copies::STANDARD;
    let left = if first { evaluated - copies } else { evaluated };
    let others = (copies..total).filter(|j| j % 2 == 0).chain((copies..total).filter(|j| j % 2 == 1));
    let mut set = BitVec::zeros(total);
    (0..copies).for_each(|j| set.set(j, first));
    others.take(left).for_each(|j| set.set(j, true));
    set
}

/// What P2 gets when the spoilt copies are evaluated, and when they are checked.
fn both_ways(fault: Fault, output_to: OutputTo, early: bool) -> [(Option<BitVec>, bool); 2] {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, output_to);
    [true, false].map(|evaluated| {
        let mut watch = Watch::with(set(evaluated, 3));
        let mut cheater = Cheater { early, ..Cheater::new(fault, 3) };
        let out = run(&job, &byte(0b1011), &byte(0b110), 5, &mut cheater, &mut watch);
        if output_to == OutputTo::Evaluator {
            // P1 ends as in an honest run whatever P2 found.
            assert!(out.garbler.as_ref().is_ok_and(Option::is_none), "{fault:?}");
        } else {
            assert_eq!(out.garbler.is_ok(), out.evaluator.is_ok(), "{fault:?}");
        }
        (out.output().cloned(), watch.recovers)
    })
}

/// (fault, is the output right if the copies are evaluated, if they are checked, is the input recovered)
const CASES: &[(Fault, bool, bool, bool)] = &[
    (Fault::Key, false, true, false),
    (Fault::Seed, true, false, false),
    (Fault::R, false, true, false),
    (Fault::Opened, false, true, false),
    (Fault::OtherLabel, false, true, true),
    (Fault::Inconsistent, true, false, true),
    (Fault::Committed, true, false, false),
    (Fault::Tables, true, false, false),
    (Fault::Flipped, true, false, true),
    (Fault::T, true, false, false),
    (Fault::TCommitment, false, false, false),
    (Fault::Token, false, false, false),
    (Fault::TableHash, false, false, false),
    (Fault::OtherTables, false, true, false),
    (Fault::Delta, false, false, false),
    (Fault::RevealedToken, false, false, false),
    (Fault::C, true, false, false),
    (Fault::NoElement, false, false, false),
    (Fault::EncSeed, true, false, false),
];

#[test]
fn every_fault_is_caught_or_harmless() {
    let right = byte(0b1011 + 0b110);
    for (output_to, early) in
        [(OutputTo::Evaluator, true), (OutputTo::Evaluator, false), (OutputTo::Both, true)]
    {
        for (fault, evaluated, checked, recovers) in CASES.iter().copied() {
            let [(first, recovered), (second, _)] = both_ways(fault, output_to, early);
            let expected = |passes: bool| passes.then(|| right.clone());
            if fault == Fault::Committed {
                // The spoilt commitment is opened or not, as P1's bit and the colours fall: 1/2 each.
                assert!(first.is_none_or(|z| z == right) && second.is_none());
                continue;
            }
            assert!(first == expected(evaluated), "{fault:?} in evaluated copies");
            assert!(second == expected(checked), "{fault:?} in checked copies");
            assert_eq!(recovered, recovers, "{fault:?}");
        }
    }
}

/// As [`run`], offline first and online from the states' files. Without an output where P2 finds a fault offline.
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

pub(super) fn key() -> FileKey {
    FileKey::from_bytes(&[7; 32]).unwrap()
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
        assert!(matches!(fault(&changed(8)), FileError::Version { found: 3, known: 2 }));
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
        // A header of which only a part was written: either it is whole and unused, and nothing was sent yet, or it is refused.
        for written in 0..=224 {
            let torn = [&after[..written], &whole[written..]].concat();
            let path = dir.path().join("torn");
            std::fs::write(&path, &torn).unwrap();
            let opened = State::open(&path, &key());
            assert_eq!(opened.is_ok(), torn == whole, "{written} bytes");
        }
    }
}

#[test]
fn the_coded_transfer_is_as_strict() {
    let (circuit, prepared) = prepared(FUNCTION);
    let right = byte(0b1011 + 0b110);
    // (fault, is the output right if the three copies are evaluated, is the input recovered)
    let cases = [
        (Fault::Tables, true, false),
        (Fault::Flipped, true, true),
        (Fault::Inconsistent, true, true),
        (Fault::Combination, false, false),
        (Fault::TableHash, false, false),
        (Fault::OtherTables, false, false),
    ];
    for (copies, holds) in
        [Copies::CODED, Copies::SPARSE].into_iter().flat_map(|copies| [(copies, true), (copies, false)])
    {
        let Copies { total, evaluated: active, .. } = copies;
        let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
        let out = run(&job, &byte(9), &byte(8), 4, &mut Honest, &mut Honest);
        assert!(out.output() == Some(&joined(&circuit, &byte(9), &byte(8))) && out.garbler.is_ok());
        for (fault, evaluated, recovers) in cases {
            let set: Vec<bool> =
                (0..total).map(|j| if holds { j < active } else { j >= total - active }).collect();
            let mut watch = Watch::with(BitVec::from_bools(&set));
            let mut cheater = Cheater::new(fault, 3);
            let out = run(&job, &byte(0b1011), &byte(0b110), 5, &mut cheater, &mut watch);
            let expected = (evaluated && holds).then_some(&right);
            assert!(out.output() == expected, "{fault:?}, evaluated: {holds}");
            assert!(watch.recovers == (recovers && holds), "{fault:?}");
        }
    }
}

#[test]
fn every_choice_of_copies_is_sound() {
    let choose = |n: usize, k: usize| (0..k).fold(1u128, |c, i| c * (n - i) as u128 / (i as u128 + 1));
    for copies in Copies::ALL {
        assert_eq!(Copies::by_name(&copies.name()), Some(copies));
        assert!(choose(copies.total, copies.evaluated) > 1 << RHO, "{copies:?}");
    }
    // No fewer copies would do, and with more evaluated ones by four not these.
    assert!((0..=43).all(|k| choose(43, k) < 1 << RHO) && choose(44, 28) < 1 << RHO);
    // With coins, whose number shows: the sum over the numbers of their chance by that of a guess, at 40 and at 46 copies.
    let told =
        |n: usize| (0..=n).map(|k| choose(n, k) as f64 / choose(n, k) as f64).sum::<f64>().log2() - n as f64;
    assert!(told(40) > -34.7 && told(45) > -40.0 && told(46) < -40.0);
    assert_eq!((Copies::by_name("40"), Copies::by_name("44/24")), (None, None));
}

/// A program too long to hold: streamed by both sides, checks included.
#[test]
fn a_program_streams_through_all_copies() {
    use crate::circuit::{Integer, Repeat, Shape, Uint};
    use crate::semi_honest::Owner;
    let rounds: u64 = if cfg!(feature = "long-tests") { 8000 } else { 100 };
    let make = move || {
        let shape = Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
        Repeat::new(
            "mixing",
            shape,
            rounds,
            |b: &mut crate::circuit::Builder, i, state: &[Uint], inputs: &[Uint]| {
                let product = b.mul(&state[0], &inputs[1]);
                vec![b.add(&product, &Uint::constant(i as i128, 32)), b.not_bits(&state[0])]
            },
        )
    };
    let streamed = Streamed::new(make, vec![Owner::Garbler, Owner::Evaluator]).unwrap();
    let (x, y) = (123_456_789u32, 987_654_321u32);
    let mut state = (x, y);
    for i in 0..rounds {
        state = (state.0.wrapping_mul(y).wrapping_add(i as u32), !state.0);
    }
    let word = |value: u32| BitVec::from_bytes(&value.to_le_bytes(), 32);
    let expected = BitVec::from_bytes(&[state.0.to_le_bytes(), state.1.to_le_bytes()].concat(), 64);
    for copies in [Copies::STANDARD, Copies::CODED] {
        let job = Job { copies, ..Job::new(&streamed, OutputTo::Evaluator) };
        // Recovery walks through the program a second time.
        let mut honest = Cheater::new(Fault::Flipped, 0);
        let out = run(&job, &word(x), &word(y), 3, &mut honest, &mut Honest);
        assert!(out.output() == Some(&expected));
        let set = BitVec::from_bools(&(0..copies.total).map(|j| j < copies.evaluated).collect::<Vec<_>>());
        let mut watch = Watch::with(set);
        let out = run(&job, &word(x), &word(y), 3, &mut Cheater::new(Fault::Flipped, 1), &mut watch);
        assert!(watch.recovers && out.output() == Some(&expected));
    }
}

/// The protocol asks nothing of the OTs below but the traits: over Ferret all is as over KOS, cheaters included.
#[test]
fn over_ferret_nothing_changes() {
    use tacit_ot::silent::ferret::{self, setup as ferret_setup};
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Both);
    let (malicious, link) = (tacit_ot::Security::Malicious, tacit_net::LinkModel::LOOPBACK);
    let config = ferret::Config::choose(1 << 10, malicious, &link, ferret::cost::CACHE);
    for (fault, holds, right, recovers) in [
        (Fault::Tables, true, true, false),
        (Fault::Tables, false, false, false),
        (Fault::Flipped, true, true, true),
        (Fault::Selective, true, false, false),
    ] {
        let mut watch = Watch::with(set(holds, 3));
        let (garbler, evaluator) = memory::run(
            |channel| {
                let (mut prg, base) = (Prg::from_seed(Block::new(1)), tacit_ot::base::default());
                let ferret = ferret_setup::senders(channel, &*base, &mut prg, config, 1).unwrap().remove(0);
                let mut cheater = Cheater { wires: (0..40).collect(), ..Cheater::new(fault, 3) };
                scripted(&mut cheater, || Garbler::new(ferret).run(channel, &job, &byte(11), &mut prg))
            },
            |channel| {
                let (mut prg, base) = (Prg::from_seed(Block::new(2)), tacit_ot::base::default());
                let ferret = ferret_setup::receivers(channel, &*base, &mut prg, config, 1).unwrap().remove(0);
                scripted(&mut watch, || Evaluator::new(ferret).run(channel, &job, &byte(6), &mut prg))
            },
        );
        assert_eq!((garbler.is_ok(), watch.recovers), (right, recovers), "{fault:?}");
        match evaluator {
            Ok(output) => assert!(right && output == Some(byte(17)), "{fault:?}"),
            Err(error) => assert!(!right && matches!(error, Error::Cheated { .. }), "{error}"),
        }
    }
}

/// Counts aborts over `runs` runs with free evaluation sets, of the cheater that `cheater` makes; every output must be right.
fn aborts(cheater: &dyn Fn() -> Cheater, evaluator: &dyn Fn() -> Watch, y: u8, runs: u64) -> u64 {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let mut views = std::collections::HashSet::new();
    let aborts = (0..runs)
        .filter(|seed| {
            let out = run(&job, &byte(77), &byte(y), 1000 + seed, &mut cheater(), &mut evaluator());
            assert!(out.garbler.is_ok());
            views.insert(out.view);
            assert!(out.output().is_none_or(|z| *z == byte(77u8.wrapping_add(y))), "a wrong output");
            out.output().is_none()
        })
        .count() as u64;
    assert_eq!(views.len(), 1, "what P1 receives does not tell runs apart");
    aborts
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

#[test]
fn bad_copies_are_caught_at_the_rate_of_the_analysis() {
    let Copies { total, evaluated, .. } = Copies::STANDARD;
    for fault in [Fault::Tables, Fault::Inconsistent, Fault::Flipped] {
        for copies in [1, 2, 4] {
            let count = aborts(&|| Cheater::new(fault, copies), &Watch::default, 100, RUNS);
            // All spoilt copies are evaluated.
            let all: f64 = (0..copies).map(|i| (evaluated - i) as f64 / (total - i) as f64).product();
            assert!(near(count, RUNS, 1.0 - all), "{fault:?} in {copies}: {count} of {RUNS}");
        }
    }
}

/// P1 spoils the labels for 1 of encoded bits whose sum is bit 0 of y. Without the encoding one of them is that bit.
#[test]
fn selective_failure_tells_nothing_of_the_input() {
    let support = probe::ProbeMatrix::new(8).support(0);
    assert!(support.len() >= RHO);
    for wires in [1, 3, support.len()] {
        let cheater = || Cheater { wires: support[..wires].to_vec(), ..Cheater::new(Fault::Selective, 0) };
        let counts = [0u8, 255].map(|y| aborts(&cheater, &Watch::default, y, RUNS));
        for count in counts {
            let caught = 1.0 - 0.5f64.powi(wires as i32);
            assert!(near(count, RUNS, caught), "{wires} wires: {counts:?} of {RUNS}");
        }
    }
    let plain = || Some(probe::ProbeMatrix::plain(8));
    let runs = 20;
    let cheater = || Cheater { wires: vec![0], matrix: plain(), ..Cheater::new(Fault::Selective, 0) };
    let evaluator = || Watch { matrix: plain(), ..Watch::default() };
    let counts = [0u8, 255].map(|y| aborts(&cheater, &evaluator, y, runs));
    assert!(counts == [0, runs] && !counts.iter().any(|&count| near(count, runs, 0.5)), "{counts:?}");
}

/// With few copies P1 guesses the set and gets what it wants exactly as often as it may.
#[test]
fn only_a_guess_of_the_whole_set_succeeds() {
    let (_, prepared) = prepared(FUNCTION);
    let copies = Copies { total: 4, evaluated: 2, coded: false };
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Evaluator) };
    for spoilt in [1, 2] {
        let (mut right, mut wrong) = (0, 0);
        for seed in 0..RUNS {
            // Bit 2 is flipped in copies 0 and 1: P1 hopes for the set {0, 1}. In copy 0 alone it is always found out.
            let mut cheater = Cheater::new(Fault::Flipped, spoilt);
            let out = run(&job, &byte(8), &byte(0), 9000 + seed, &mut cheater, &mut Honest);
            match out.output() {
                Some(z) if *z == byte(8) => right += 1,
                Some(_) => wrong += 1,
                None => {}
            }
        }
        let expected = if spoilt == 1 { [1.0 / 2.0, 0.0] } else { [0.0, 1.0 / 6.0] };
        assert!(
            near(right, RUNS, expected[0]) && near(wrong, RUNS, expected[1]),
            "{spoilt} spoilt: {right} right, {wrong} wrong"
        );
    }
}

/// P1's last step: the tokens of its outputs and their hashes, and T that holds them.
#[test]
fn what_comes_back_to_the_garbler_is_checked() {
    let (_, prepared) = prepared(FUNCTION);
    for output_to in [OutputTo::Garbler, OutputTo::Both] {
        let job = Job::new(&prepared, output_to);
        for (fault, evaluated, checked) in [
            (Fault::ReturnedHash, false, false),
            (Fault::ReturnedToken, false, false),
            (Fault::ReturnedT, true, false),
        ] {
            for (holds, right) in [(true, evaluated), (false, checked)] {
                let mut watch = Watch::with(set(holds, 3));
                let out = run(&job, &byte(11), &byte(6), 5, &mut Cheater::new(fault, 3), &mut watch);
                assert_eq!((out.garbler.is_ok(), out.evaluator.is_ok()), (right, right), "{fault:?}");
                if right {
                    assert!(out.garbler.unwrap() == Some(byte(17)), "{fault:?}");
                }
            }
        }
    }
}

/// The attack for which a recovered table that misses its hash is no mere invalid circuit: copy 0 computes something else and is hashed as it
/// is; two combinations are spoilt alike. For one set in 256 that holds copy 0 their share in it vanishes, so that of all that P2 evaluates
/// copy 0 alone is as it was hashed.
#[test]
fn errors_that_vanish_in_a_bad_copy_gain_nothing() {
    let copies = Copies::SPARSE;
    let oracle = secrets::Oracle::new([3; 32]);
    let mut prg = Prg::from_seed(Block::new(77));
    let sets = if cfg!(feature = "long-tests") { 1 << 17 } else { 1 << 14 };
    let mut vanishing: Option<BitVec> = None;
    let (mut holding, mut count) = (0, 0);
    for _ in 0..sets {
        let set = copies.draw(&mut prg);
        if !set.get(0) {
            continue;
        }
        holding += 1;
        let (evaluated, checked): (Vec<usize>, Vec<usize>) = (0..copies.total).partition(|&j| set.get(j));
        let mut combinations = vec![Block::ZERO; 2 * evaluated.len()];
        (combinations[0], combinations[2]) = (Block::ONE, Block::ONE);
        let mut shares = vec![Block::ZERO; 2 * evaluated.len()];
        let mut decoder = transfer::Decoder::new(&oracle, &evaluated, &checked);
        decoder.piece(&combinations, &vec![Block::ZERO; 2 * checked.len()], &mut shares);
        if shares[0] == Block::ZERO {
            count += 1;
            // The others are spoilt, but for such as vanish too.
            assert!(shares[2..].iter().filter(|share| **share != Block::ZERO).count() > 8);
            vanishing.get_or_insert(set);
        }
    }
    assert!(near(count, holding, 1.0 / 256.0), "{count} of {holding}");
    let (_, prepared) = prepared(FUNCTION);
    let job = Job { copies, ..Job::new(&prepared, OutputTo::Both) };
    let mut watch = Watch::with(vanishing.unwrap());
    let mut cheater = Cheater::new(Fault::Vanishing, 1);
    let out = run(&job, &byte(11), &byte(6), 5, &mut cheater, &mut watch);
    assert!(out.output().is_none() && out.garbler.is_err());
}

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

#[test]
fn a_wrong_opening_of_the_committing_ot_is_caught() {
    let (_, prepared) = prepared(FUNCTION);
    let job = Job::new(&prepared, OutputTo::Evaluator);
    let mut cheater = Prier { offset: true, ..Prier::default() };
    let out = run(&job, &byte(1), &byte(2), 1, &mut Honest, &mut cheater);
    assert!(matches!(out.garbler, Err(Error::Cheated { .. })));
}

/// Another Γ passes with k sacrificed correlations once in 2^k times: so 128 are worth 128 bits.
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

#[test]
fn the_evaluator_cannot_change_the_garblers_output() {
    let (_, prepared) = prepared(FUNCTION);
    for output_to in [OutputTo::Garbler, OutputTo::Both] {
        let mut cheater = Prier { flip_returned: true, ..Prier::default() };
        let out = run(&Job::new(&prepared, output_to), &byte(1), &byte(2), 1, &mut Honest, &mut cheater);
        assert!(matches!(out.garbler, Err(Error::Cheated { .. })));
    }
}

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

/// Runs both parties, P2 under a clock; returns P1's view of its pace as well, up to the last byte that P2 takes.
fn paced<A: Send, B: Send>(
    first: impl FnOnce(&mut Channel) -> A + Send,
    second: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, Vec<(bool, u64, u64)>) {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let pace = Pace::default();
    let b = Box::new(Paced { link: b, pace: pace.clone(), moved: [0; 2] });
    let id = SessionId([5; 32]);
    let (a, b) = memory::join(
        Channel::new(a, Party::First, id),
        Channel::new(b, Party::Second, id),
        first,
        |channel| {
            schedule::start();
            second(channel)
        },
    );
    let mut notes = std::mem::take(&mut *pace.0.lock().unwrap());
    let last = notes.iter().rposition(|&(taken, ..)| taken).map_or(0, |at| at + 1);
    notes.truncate(last);
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

/// All of P2's work is noted between its receives, and what P1 can time of it is the same for every evaluation set and every input:
/// a P1 that paces its bytes and is told P2's times learns nothing of either before it has nothing left to choose, whatever it spoilt.
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
                    assert!(view(set, y) == first, "{copies:?}, {fault:?}, y = {y}");
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
        let told: Vec<usize> = pace.iter().skip(1).map(|(_, at, _)| (*at as usize - 4) / 256 - 1).collect();
        let opened: Vec<usize> = (0..44).filter(|&j| set.get(j)).collect();
        assert_eq!(told, opened);
    }
}
