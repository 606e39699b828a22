//! Honest runs, and a scripted cheater for every step, on both sides.

mod bounds;
mod cheats;
mod compared;
mod digests;
mod honest;
mod misuse;
mod pace;
mod rates;
mod stored;

use super::deviation::{Script, scripted};
use super::reduced::{Reduced, with_reduced};
use super::*;
use crate::circuit::{evaluate, named};
use crate::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::extension::kos::{KosReceiver, KosSender};
use tacit_ot::{CotReceiver, CotSender};

type Scripts = Option<Box<dyn Script + Send>>;

fn prepared(name: &str) -> Prepared {
    Prepared::from_function(&named::find(name).unwrap()).unwrap()
}

/// Random inputs of both parties, all input bits of a party together, and the outputs.
fn example(function: &Prepared, seed: u64) -> ([BitVec; 2], BitVec) {
    let mut prg = Prg::from_seed(Block::from_halves(seed, 9));
    let widths = &function.circuit().shape().inputs;
    let inputs: Vec<BitVec> = widths.iter().map(|&w| BitVec::random(w as usize, &mut prg)).collect();
    let of = |owner: Owner| {
        let own = inputs.iter().zip(function.owners()).filter(|(_, o)| **o == owner);
        BitVec::from_bools(&own.flat_map(|(input, _)| input.iter()).collect::<Vec<_>>())
    };
    let outputs = evaluate(function.circuit(), &inputs);
    let outputs: Vec<bool> = outputs.iter().flat_map(BitVec::iter).collect();
    ([of(Owner::Garbler), of(Owner::Evaluator)], BitVec::from_bools(&outputs))
}

/// A session over KOS both ways.
fn session(channel: &mut Channel, role: Owner, seed: u64) -> Session<KosSender, KosReceiver> {
    session_as(channel, role, role, seed)
}

/// As [`session`], for a party that then takes another role.
fn session_as(channel: &mut Channel, role: Owner, then: Owner, seed: u64) -> Session<KosSender, KosReceiver> {
    let mut prg = Prg::from_seed(Block::from_halves(seed, 1 + (role == Owner::Garbler) as u64));
    let base = tacit_ot::base::default();
    let (sender, receiver) = if role == Owner::Garbler {
        let sender = KosSender::setup(channel, &*base, &mut prg).unwrap();
        (sender, KosReceiver::setup(channel, &*base, &mut prg).unwrap())
    } else {
        let receiver = KosReceiver::setup(channel, &*base, &mut prg).unwrap();
        (KosSender::setup(channel, &*base, &mut prg).unwrap(), receiver)
    };
    Session::new(then, sender, receiver, &mut prg)
}

/// One direction of correlated OT by a dealer whom both parties ask with one seed: nothing is sent, so runs are
/// short where correlated OT is not what is tried.
struct Dealt {
    prg: Prg,
    delta: Block,
    receives: bool,
    /// What is added to the choices that are dealt first.
    choices: BitVec,
}

impl Dealt {
    /// `role`'s end of the direction in which the party `keys` holds the keys.
    fn new(role: Owner, keys: Owner, seed: u64) -> Self {
        let mut prg = Prg::from_seed(Block::from_halves(seed, 30 + (keys == Owner::Garbler) as u64));
        let delta = prg.block().with_lsb(true);
        Dealt { prg, delta, receives: role != keys, choices: BitVec::zeros(0) }
    }

    fn deal(&mut self, out: &mut [Block]) -> tacit_ot::Result<()> {
        let choices = std::mem::replace(&mut self.choices, BitVec::zeros(0));
        for (i, slot) in out.iter_mut().enumerate() {
            let (key, choice) = (self.prg.block().with_lsb(false), self.prg.bit());
            let choice = choice ^ (i < choices.len() && choices.get(i));
            *slot = key ^ (self.delta & Block::mask(self.receives && choice));
        }
        Ok(())
    }
}

impl CotSender for Dealt {
    fn delta(&self) -> Block {
        self.delta
    }
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.deal(out)
    }
}

impl CotReceiver for Dealt {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.deal(out)
    }
}

/// A session over what a dealer gives.
fn dealt(role: Owner, seed: u64) -> Session<Dealt, Dealt> {
    dealt_with(role, seed, BitVec::zeros(0))
}

/// As [`dealt`]; `choices` are added to the first bits that this party gets, which are its masks.
fn dealt_with(role: Owner, seed: u64, choices: BitVec) -> Session<Dealt, Dealt> {
    let mut prg = Prg::from_seed(Block::from_halves(seed, 1 + (role == Owner::Garbler) as u64));
    let receiver = Dealt { choices, ..Dealt::new(role, role.other(), seed) };
    Session::new(role, Dealt::new(role, role, seed), receiver, &mut prg)
}

type Outcome = [Result<Option<BitVec>>; 2];

/// One run, each party with its script: the garbler's result, then the evaluator's.
fn run(
    function: &Prepared,
    output_to: OutputTo,
    inputs: &[BitVec; 2],
    seed: u64,
    scripts: [Scripts; 2],
) -> Outcome {
    let [one, two] = scripts;
    let patient = Reduced { patient: true, ..Reduced::default() };
    let party = |channel: &mut Channel, role: Owner, script: Scripts| {
        let mut session = session(channel, role, seed);
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let script = script.map(|script| script as Box<dyn Script>);
        with_reduced(patient, || scripted(script, || session.run(channel, function, output_to, input)))
    };
    let (one, two) = memory::run(
        |channel| party(channel, Owner::Garbler, one),
        |channel| party(channel, Owner::Evaluator, two),
    );
    [one, two]
}
