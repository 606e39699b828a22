//! What a party can see of the other's work, its messages and when they come, tells nothing of inputs and
//! masks.
//!
//! Time is virtual here: each step of a party moves its clock on, by its kind and by how much it handles.

use super::cheats::*;
use super::*;
use crate::authenticated::bits::GatesMut;
use crate::circuit::{Builder, Uint};
use crate::pace::{Note, paced};
use std::cell::Cell;
use std::collections::HashMap;

thread_local! {
    /// The time of the party on this thread.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
}

/// Moves time on. Each kind of step has a weight of its own, so that no two runs of steps take the same by
/// chance.
fn work(kind: u32, amount: usize) {
    CLOCK.set(CLOCK.get() + 1_009u64.pow(kind % 4) * (1 + u64::from(kind)) * (1 + amount as u64));
}

/// Follows the protocol, and says what it does.
struct Steps;

impl Script for Steps {
    fn bits(&mut self, macs: &mut [&mut [Block]; 3]) {
        work(0, macs[0].len());
    }
    fn masks(&mut self, macs: &mut [Block]) {
        work(1, macs.len());
    }
    fn leaky(&mut self, messages: &mut [Block], _: &mut [Block]) {
        work(2, messages.len());
    }
    fn alike(&mut self, _: &mut [u8; 32]) {
        work(3, 0);
    }
    fn opened_commitment(&mut self, _: &mut [u8; 32]) {
        work(4, 0);
    }
    fn products(&mut self, bits: &mut BitVec) {
        work(5, bits.len());
    }
    fn shifts(&mut self, shifts: &[usize]) {
        work(6, shifts.len());
    }
    fn opened(&mut self, bits: &mut BitVec) {
        work(7, bits.len());
    }
    fn mac_digest(&mut self, _: &mut [u8; 32]) {
        work(8, 0);
    }
    fn gate_masks(&mut self, gates: &mut GatesMut<'_>) {
        work(9, gates.len());
    }
    fn shown(&mut self, bits: &mut BitVec, _: &mut [u8; 32]) {
        work(10, bits.len());
    }
    fn input_labels(&mut self, labels: &mut [Block]) {
        work(11, labels.len());
    }
    fn tables(&mut self, _: Block, tables: &mut [Block], _: &mut BitVec) {
        work(12, tables.len());
    }
    fn returned(&mut self, results: &BitVec) {
        work(13, results.len());
    }
    fn gates_digest(&mut self, _: &mut [u8; 32]) {
        work(14, 0);
    }
    fn checked(&mut self, _: &mut bool) {
        work(15, 0);
    }
    fn results(&mut self, results: &mut BitVec) {
        work(16, results.len());
    }
    fn labels_digest(&mut self, _: &mut [u8; 32]) {
        work(17, 0);
    }
    fn proof(&mut self, _: &mut [u8; 32]) {
        work(18, 0);
    }
}

/// What can be seen of a party: its pace, and its channel's bytes, messages and rounds.
type Pace = (Vec<Note>, [u64; 5]);

/// What a run was like: what each party got, and what its peer saw of it.
struct Seen {
    results: Outcome,
    paces: [Pace; 2],
}

/// One run, each party with its script. If `masked`, the masks of inputs are drawn so that their masked values
/// are the same whatever the inputs.
fn view(
    function: &Prepared,
    output_to: OutputTo,
    inputs: &[BitVec; 2],
    seed: u64,
    masked: bool,
    [one, two]: [Box<dyn Script + Send>; 2],
) -> Seen {
    let party = |channel: &mut Channel, role: Owner, script: Box<dyn Script + Send>| {
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let choices = if masked {
            let gates = std::iter::repeat_n(false, Demand::of(function).ands);
            BitVec::from_bools(&gates.chain(input.iter()).collect::<Vec<_>>())
        } else {
            BitVec::zeros(0)
        };
        let mut session = dealt_with(role, seed, choices);
        let result = scripted(Some(script), || session.run(channel, function, output_to, input));
        let of = channel.stats();
        let sizes = [of.bytes_sent, of.bytes_received, of.messages_sent, of.messages_received, of.rounds];
        (result, sizes)
    };
    let ((one, sizes), (two, others), [pace, other]) = paced(
        || CLOCK.get(),
        |channel| party(channel, Owner::Garbler, one),
        |channel| party(channel, Owner::Evaluator, two),
    );
    Seen { results: [one, two], paces: [(pace, sizes), (other, others)] }
}

/// Inputs of both parties that are zeros, ones, and drawn.
fn various(function: &Prepared) -> Vec<[BitVec; 2]> {
    let demand = Demand::of(function);
    let all =
        |bit| [demand.garbler_inputs, demand.evaluator_inputs].map(|n| BitVec::from_bools(&vec![bit; n]));
    let [zeros, ones] = [all(false), all(true)];
    let mixed = [zeros[0].clone(), ones[1].clone()];
    vec![zeros, ones, mixed, example(function, 1).0]
}

/// Five products of 32 bits: more than one piece of tables.
fn products() -> Prepared {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(32), builder.input(32));
    let value = (0..5).fold(x, |value, _| builder.mul(&value, &y));
    Prepared::new(builder.finish(&[value]).unwrap(), vec![Owner::Garbler, Owner::Evaluator]).unwrap()
}

#[test]
fn the_messages_and_their_order_are_the_same_for_all_inputs_and_masks() {
    for (function, seeds) in [(prepared("add8"), 6), (products(), 2)] {
        for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let mut first = None;
            for seed in 0..seeds {
                for inputs in various(&function) {
                    let scripts: [Box<dyn Script + Send>; 2] = [Box::new(Steps), Box::new(Steps)];
                    let seen = view(&function, output_to, &inputs, seed, false, scripts);
                    assert!(seen.results.iter().all(Result::is_ok));
                    assert!(seen.paces.iter().all(|(pace, _)| pace.len() > 12), "steps are noted");
                    let first = first.get_or_insert_with(|| seen.paces.clone());
                    assert!(*first == seen.paces, "{output_to:?}, seed {seed}, {inputs:?}");
                }
            }
        }
    }
}

/// A party that cheats, and whether it is caught whatever the masks.
type Cheat = (Owner, Box<dyn Fn() -> Box<dyn Script + Send>>, bool);

/// A cheater sees the masked values of inputs. Which inputs lie behind them it learns neither from the honest
/// party's pace nor from whether and when that stops: by a wrong row, which is not noticed where it is not used,
/// as little as by anything else.
#[test]
fn whether_and_when_a_party_stops_follows_from_masked_values() {
    let (garbler, evaluator) = (Owner::Garbler, Owner::Evaluator);
    let cheats: [Cheat; 8] = [
        (garbler, Box::new(|| Box::new(WrongRow)), false),
        (garbler, Box::new(|| Box::new(WrongColour)), true),
        (garbler, Box::new(|| Box::new(WrongGateMask)), true),
        (garbler, Box::new(|| Box::new(WrongGatesDigest)), true),
        (garbler, Box::new(|| Box::new(WrongOutput)), true),
        (evaluator, Box::new(|| Box::new(WrongResult)), true),
        (evaluator, Box::new(|| Box::new(WrongLabelHash)), true),
        (evaluator, Box::new(|| Box::new(WrongOutput)), true),
    ];
    let function = prepared("add8");
    const SEEDS: u64 = 8;
    for (number, (by, cheat, always)) in cheats.iter().enumerate() {
        let honest = usize::from(*by == garbler);
        let mut stops = 0;
        // The honest party's pace, where it goes on and where it stops.
        let mut paces: HashMap<bool, Pace> = HashMap::new();
        for seed in 0..SEEDS {
            let mut outcomes = Vec::new();
            for inputs in various(&function) {
                let mut scripts: [Box<dyn Script + Send>; 2] = [cheat(), Box::new(Steps)];
                if *by == evaluator {
                    scripts.swap(0, 1);
                }
                let seen = view(&function, OutputTo::Both, &inputs, seed, true, scripts);
                let stopped = match &seen.results[honest] {
                    Ok(_) => false,
                    Err(Error::Cheated { .. }) => true,
                    Err(other) => panic!("{other}"),
                };
                outcomes.push(stopped);
                let pace = &seen.paces[honest];
                let expected = paces.entry(stopped).or_insert_with(|| pace.clone());
                assert!(expected == pace, "cheat {number}, seed {seed}, {inputs:?}");
            }
            assert!(outcomes.iter().all(|stopped| *stopped == outcomes[0]), "cheat {number}, seed {seed}");
            stops += u64::from(outcomes[0]);
        }
        let expected = if *always { SEEDS..=SEEDS } else { 1..=SEEDS - 1 };
        assert!(expected.contains(&stops), "cheat {number}: {stops} of {SEEDS} stopped");
        // Up to where it stops it did what it does as ever.
        if let (Some((stopped, _)), Some((went_on, _))) = (paces.get(&true), paces.get(&false)) {
            assert!(went_on.starts_with(&stopped[..stopped.len() - 1]));
        }
    }
}
