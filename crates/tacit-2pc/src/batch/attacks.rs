//! Attempts on rows side by side by a reader who did not write them. What they found is in `docs/how/batch.md`.

use super::*;
use crate::circuit::{Builder, Circuit, FIRST_INPUT, Form, Gate, Shape, Uint, evaluate, named};
use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tacit_crypto::{Block, Prg};
use tacit_net::link::{Arrival, Interest};
use tacit_net::tcp::TcpLink;
use tacit_net::testing::Network;
use tacit_net::{Link, LinkModel, Party, SessionId, memory};
use tacit_ot::bit_triples::BitTriples;

/// How often an attempt by chance is made.
const ROUNDS: u64 = if cfg!(feature = "long-tests") { 20_000 } else { 400 };

const ROLES: [Owner; 2] = [Owner::Garbler, Owner::Evaluator];

fn prg(seed: u64) -> Prg {
    Prg::from_seed(Block::new(u128::from(seed) | 1 << 70))
}

/// An end of correlated OT that a dealer gave, the other of which has the same seed.
struct Dealt {
    delta: Block,
    sends: bool,
    zeros: Prg,
    choices: Prg,
}

impl Dealt {
    fn new(seed: u64, sends: bool) -> Self {
        let delta = prg(3 * seed).block().with_lsb(true);
        Dealt { delta, sends, zeros: prg(3 * seed + 1), choices: prg(3 * seed + 2) }
    }

    fn rows(&mut self, out: &mut [Block]) {
        let mut choices = vec![Block::ZERO; out.len()];
        self.choices.fill_blocks(&mut choices);
        self.zeros.fill_blocks(out);
        for (row, choice) in out.iter_mut().zip(choices) {
            *row = row.with_lsb(false);
            if !self.sends && choice.lsb() {
                *row ^= self.delta;
            }
        }
    }
}

impl CotSender for Dealt {
    fn delta(&self) -> Block {
        self.delta
    }
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.rows(out);
        Ok(())
    }
}

impl CotReceiver for Dealt {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> tacit_ot::Result<()> {
        self.rows(out);
        Ok(())
    }
}

/// What `role` sends and receives; the garbler is the first party.
fn dealt(seed: u64, role: Owner) -> [Dealt; 2] {
    let ours = u64::from(role == Owner::Garbler);
    [Dealt::new(2 * seed + ours, true), Dealt::new(2 * seed + 1 - ours, false)]
}

/// A game: a function, both parties' rows, who learns, and how rows are cut.
struct Game {
    function: Prepared,
    rows: [Vec<Vec<BitVec>>; 2],
    to: OutputTo,
    layout: Layout,
    seed: u64,
}

type Learned = Option<Vec<Vec<BitVec>>>;

impl Game {
    fn new(function: Prepared, rows: usize, seed: u64) -> Self {
        let own = ROLES.map(|role| drawn(&function, role, rows, seed));
        let layout = Layout::new(function.plan(1), rows);
        Game { function, rows: own, to: OutputTo::Both, layout, seed }
    }

    fn cut(mut self, batch: usize, batches: usize) -> Self {
        self.layout = self.layout.cut(batch, batches);
        self
    }

    fn to(self, to: OutputTo) -> Self {
        Game { to, ..self }
    }

    fn play(&self, channel: &mut Channel, role: Owner) -> Result<Learned> {
        let [mut sender, mut receiver] = dealt(self.seed, role);
        let streams: Streams<'_> = (&mut sender, &mut receiver);
        let rows = &self.rows[usize::from(role == Owner::Evaluator)];
        run_in(self.layout.clone(), channel, streams, &self.function, role, rows, self.to, |_| ())
    }

    fn both(&self) -> [Learned; 2] {
        let (garbler, evaluator) = memory::run(
            |channel| self.play(channel, Owner::Garbler).unwrap(),
            |channel| self.play(channel, Owner::Evaluator).unwrap(),
        );
        [garbler, evaluator]
    }

    fn plain(&self) -> Vec<Vec<BitVec>> {
        let [garbler, evaluator] = &self.rows;
        let row = |(garbler, evaluator): (&Vec<BitVec>, &Vec<BitVec>)| {
            let mut own = [garbler.iter(), evaluator.iter()];
            let all = self.function.owners().iter();
            let next = all.map(|owner| own[usize::from(*owner == Owner::Evaluator)].next().unwrap().clone());
            evaluate(self.function.circuit(), &next.collect::<Vec<_>>())
        };
        garbler.iter().zip(evaluator).map(row).collect()
    }

    fn assert_plain(&self) {
        let expected = self.plain();
        for (role, learned) in ROLES.into_iter().zip(self.both()) {
            let told = self.to.learned_by(role).then_some(&expected);
            assert!(learned.as_ref() == told, "{}: {role:?} {:?}", self.seed, self.layout);
        }
    }
}

fn drawn(function: &Prepared, role: Owner, rows: usize, seed: u64) -> Vec<Vec<BitVec>> {
    let mut prg = prg(seed ^ (1 + role as u64) << 40);
    let own = function.circuit().shape().inputs.iter().zip(function.owners());
    let widths: Vec<usize> = own.filter(|(_, o)| **o == role).map(|(&width, _)| width as usize).collect();
    (0..rows).map(|_| widths.iter().map(|&width| BitVec::random(width, &mut prg)).collect()).collect()
}

/// A circuit of any form: deep, wide, without AND gates or of nothing else; with constants; a side may have no input,
/// outputs may be inputs, constants, the same wire, or none.
fn wild(seed: u64) -> Prepared {
    let mut prg = prg(seed);
    let mut below = |n: usize| (prg.block().low() % n.max(1) as u64) as usize;
    let widths = |n: usize, below: &mut dyn FnMut(usize) -> usize| -> Vec<u32> {
        (0..n).map(|_| [1, 2, 7, 63, 64, 65, 130][below(7)]).collect()
    };
    let kind = below(5);
    let count = 1 + below(4);
    let inputs = widths(count, &mut below);
    let count = below(4);
    let shape = Shape { inputs, outputs: widths(count, &mut below) };
    let side = below(4);
    let owners = shape.inputs.iter().map(|_| ROLES[if side < 2 { side } else { below(2) }]).collect();
    let first = FIRST_INPUT as usize + shape.input_bits();
    let gates = [0, 1, 20, 300, 900][below(5)];
    let all = (0..gates).map(|i| {
        let (here, out) = (first + i, (first + i) as u32);
        let (near, far) = ((here - 1 - below(here.min(3))) as u32, below(here) as u32);
        let input = below(first) as u32;
        match (kind, below(6)) {
            // One long chain.
            (0, 0..=3) => Gate::And { a: near, b: far, out },
            // All in few levels.
            (1, 0..=4) => Gate::And { a: input, b: far.min(first as u32 - 1), out },
            // No AND gate at all, or no other.
            (2, 0..=3) => Gate::Xor { a: near, b: far, out },
            (2, _) | (_, 5) => Gate::Inv { a: far, out },
            (3, _) => Gate::And { a: far, b: near, out },
            (_, 0..=2) => Gate::And { a: far, b: input, out },
            (_, _) => Gate::Xor { a: near, b: far, out },
        }
    });
    let all: Vec<Gate> = all.collect();
    let outputs = (0..shape.output_bits()).map(|_| match below(4) {
        0 => below(FIRST_INPUT as usize) as u32,
        1 => below(first) as u32,
        _ => below(first + gates) as u32,
    });
    let outputs = outputs.collect();
    Prepared::new(Circuit::new(shape, all, outputs).unwrap(), owners).unwrap()
}

#[test]
fn wild_circuits_give_the_plain_result() {
    const ROWS: [usize; 12] = [0, 1, 2, 7, 8, 63, 64, 65, 127, 128, 129, 300];
    for seed in 0..ROUNDS {
        let mut prg = prg(seed + 1000);
        let rows = ROWS[prg.below(12) as usize];
        let to = [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both][prg.below(3) as usize];
        let (batch, batches) = (1 + prg.below(140) as usize, 1 + prg.below(4) as usize);
        Game::new(wild(seed), rows, seed).cut(batch, batches).to(to).assert_plain();
    }
}

/// A batch is full, lacks a row, and has one behind it; then groups of batches, and more triples than a piece.
#[test]
fn rows_at_the_ends_of_batches_and_of_pieces_of_triples_are_right() {
    let function = || {
        let mut b = Builder::new();
        let (x, y): (Uint, Uint) = (b.input(4), b.input(4));
        let (product, less) = (b.mul(&x, &y), b.lt(&x, &y));
        let circuit = b.finish(&[product, Uint::from_bits(vec![less])]).unwrap();
        Prepared::new(circuit, ROLES.to_vec()).unwrap()
    };
    for rows in [65_535, 65_536, 65_537] {
        Game::new(function(), rows, rows as u64).assert_plain();
    }
    let ands = function().circuit().stats().and as usize;
    let rows = triples::PIECE / ands * 5 / 2 + 1;
    Game::new(function(), rows, 5).cut(1 << 14, 7).to(OutputTo::Evaluator).assert_plain();
}

/// More gates than a window of the plan holds, with wires that live from one window into others.
#[test]
fn circuits_of_several_windows_are_right() {
    let shape = Shape { inputs: vec![40, 40], outputs: vec![200] };
    let (first, gates) = (FIRST_INPUT as usize + 80, 600_000);
    let mut prg = prg(77);
    let mut below = |n: usize| (prg.block().low() % n as u64) as u32;
    let all = (0..gates).map(|i| {
        let out = (first + i) as u32;
        let (a, b) = (below(first + i), out - 1 - below(80));
        match i % 3 {
            0 => Gate::And { a, b, out },
            _ => Gate::Xor { a, b, out },
        }
    });
    let all: Vec<Gate> = all.collect();
    let outputs = (0..200).map(|_| below(first + gates)).collect();
    let function = Prepared::new(Circuit::new(shape, all, outputs).unwrap(), ROLES.to_vec()).unwrap();
    assert!(function.plan(1).windows().len() > 2);
    Game::new(function, 3, 7).assert_plain();
}

/// A level of more than 4 MiB each way, in batches that are all sent before any is received.
fn large(batch: usize) -> Game {
    let shape = Shape { inputs: vec![64, 64], outputs: vec![64] };
    let first = FIRST_INPUT;
    let gate =
        |i: u32| Gate::And { a: first + i % 64, b: first + 64 + (i / 64 + i) % 64, out: first + 128 + i };
    let gates: Vec<Gate> = (0..1024).map(gate).collect();
    let outputs = (0..64).map(|i| first + 128 + 16 * i).collect();
    let function = Prepared::new(Circuit::new(shape, gates, outputs).unwrap(), ROLES.to_vec()).unwrap();
    let game = Game::new(function, 20_000, 3).cut(batch, 5);
    assert!(game.layout.opened(Owner::Garbler, game.to, 64) > 4 << 20);
    game
}

/// A link that holds few bytes: neither side can finish a message that the other does not read.
struct Narrow {
    link: Box<dyn Link>,
    /// Bytes under way that this side wrote, and that the other did.
    under_way: [Arc<AtomicUsize>; 2],
    room: usize,
    /// How long a read of this side takes.
    slow: Duration,
}

impl Link for Narrow {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
        let free = self.room.saturating_sub(self.under_way[0].load(Ordering::SeqCst));
        let Some(slice) = slices.iter().find(|slice| !slice.is_empty()).filter(|_| free > 0) else {
            return Ok(0);
        };
        let part = &slice[..slice.len().min(free)];
        self.under_way[0].fetch_add(part.len(), Ordering::SeqCst);
        let written = self.link.try_write(&[IoSlice::new(part)])?;
        self.under_way[0].fetch_sub(part.len() - written, Ordering::SeqCst);
        Ok(written)
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
        std::thread::sleep(self.slow);
        let arrival = self.link.try_read(slices)?;
        if let Arrival::Bytes(n) = arrival {
            self.under_way[1].fetch_sub(n, Ordering::SeqCst);
        }
        Ok(arrival)
    }

    fn wait(&mut self, _: Interest, _: Duration) -> tacit_net::Result<bool> {
        std::thread::sleep(Duration::from_micros(20));
        Ok(true)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}

fn narrow(room: usize, slow: Duration) -> [Channel; 2] {
    let (one, other) = memory::links(LinkModel::LOOPBACK);
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let end = |link, party, at: usize, slow| {
        let under_way = [counts[at].clone(), counts[1 - at].clone()];
        Channel::new(Box::new(Narrow { link, under_way, room, slow }), party, SessionId([3; 32]))
    };
    [end(one, Party::First, 0, Duration::ZERO), end(other, Party::Second, 1, slow)]
}

fn joined(game: &Game, [first, second]: [Channel; 2]) {
    let (garbler, evaluator) = memory::join(
        first,
        second,
        |channel| game.play(channel, Owner::Garbler).unwrap(),
        |channel| game.play(channel, Owner::Evaluator).unwrap(),
    );
    assert!(garbler == evaluator && garbler == Some(game.plain()));
}

#[test]
fn large_messages_both_ways_at_once_lock_nobody() {
    let game = large(1 << 15);
    joined(&large(4096), narrow(1 << 13, Duration::from_micros(200)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let end =
        |stream, party| Channel::new(Box::new(TcpLink::new(stream).unwrap()), party, SessionId([4; 32]));
    joined(&game, [end(accepted, Party::First), end(connected, Party::Second)]);
}

/// Whatever a network does to the bytes, a run ends: with the result, or with an error of both or one.
#[test]
fn runs_over_faulty_networks_end() {
    let mut all = 0;
    for seed in 0..ROUNDS {
        let game = Game::new(wild(seed), 40, seed).cut(16, 2);
        let bytes = game.layout.opened(Owner::Garbler, game.to, 64) + 200;
        let network = Network::faulty(seed, 1 + seed as usize % 3, bytes);
        let ended = network.run(
            |channel| game.play(channel, Owner::Garbler).is_ok(),
            |channel| game.play(channel, Owner::Evaluator).is_ok(),
        );
        all += u32::from(ended != (true, true));
    }
    // Few networks only delay.
    assert!(u64::from(all) > ROUNDS / 4, "{all}");
}

/// What the evaluator of a game says, as one string: terms first.
fn said(game: &Game, id: [u8; 32]) -> Vec<u8> {
    let record = memory::Record::default();
    let (one, other) = memory::links(LinkModel::LOOPBACK);
    let channel = |link, party| Channel::new(link, party, SessionId(id));
    memory::join(
        channel(one, Party::First),
        channel(record.of(other), Party::Second),
        |channel| game.play(channel, Owner::Garbler).unwrap(),
        |channel| game.play(channel, Owner::Evaluator).unwrap(),
    );
    let frames = record.frames();
    frames.into_iter().filter(|(kind, _)| *kind == 0xD7).flat_map(|(_, payload)| payload).collect()
}

/// A peer that says what an honest one would, with something changed: bytes flipped, left out, repeated, put in, moved.
#[test]
fn changed_messages_end_in_an_error_or_another_result_and_nothing_else() {
    let mut endings = HashMap::new();
    for seed in 0..ROUNDS {
        let game = Game::new(wild(seed % 50), [1, 9, 64, 130][seed as usize % 4], seed).cut(64, 2);
        let mut honest = said(&game, [9; 32]);
        let mut prg = prg(seed + 5000);
        let mut below = |n: usize| prg.below(n.max(1) as u64) as usize;
        let (at, length) = (below(honest.len()), 1 + below(24));
        let end = honest.len().min(at + length);
        let kind = below(6);
        match kind {
            0 => honest.truncate(at),
            1 => honest[at] ^= 1 << below(8),
            2 => drop(honest.drain(at..end)),
            3 => drop(honest.splice(at..at, honest[at..end].to_vec())),
            4 => drop(honest.splice(at..at, vec![below(256) as u8; length])),
            _ => honest.rotate_left(at),
        }
        let (one, other) = memory::pair_with(SessionId([9; 32]));
        let (ended, ()) = memory::join(
            one,
            other,
            |channel| game.play(channel, Owner::Garbler),
            |channel| {
                let _ = channel.send(&honest).and_then(|()| channel.flush());
            },
        );
        let ending = match ended {
            Ok(_) => "a result",
            Err(Error::Mismatch { .. }) => "another place",
            Err(Error::Net(_)) => "the end",
            Err(other) => panic!("{seed}: {other}"),
        };
        *endings.entry((kind, ending)).or_insert(0) += 1;
    }
    assert!(endings.len() > 6, "{endings:?}");
}

/// Values where carries run through all bits, signs turn, and nothing or everything is set.
fn edges(width: usize, prg: &mut Prg) -> Vec<BitVec> {
    let bits = |bit: &dyn Fn(usize) -> bool| BitVec::from_bools(&(0..width).map(bit).collect::<Vec<_>>());
    let mut all = vec![
        bits(&|_| false),
        bits(&|_| true),
        bits(&|i| i == 0),
        bits(&|i| i > 0),
        bits(&|i| i + 1 == width),
        bits(&|i| i + 1 < width),
        bits(&|i| i % 2 == 0),
        bits(&|i| i < width / 2),
    ];
    all.extend((0..2).map(|_| BitVec::random(width, prg)));
    all
}

#[test]
fn shallow_forms_of_all_functions_agree_at_the_edges() {
    let mut prg = prg(31);
    let mut compared = 0;
    for (stem, size, ..) in named::list() {
        let sizes: &[u32] = match size {
            None => &[0],
            Some(_) if stem.starts_with("modexp") => &[2, 5, 9],
            Some(_) => &[1, 2, 3, 4, 5, 8, 13, 16, 31, 32, 33, 64, 65],
        };
        for size in sizes {
            let name = if *size == 0 { stem.to_owned() } else { format!("{stem}{size}") };
            let (Some(small), Some(shallow)) = (named::find(&name), named::find_in(&name, Form::Shallow))
            else {
                continue;
            };
            let widths = &small.circuit.shape().inputs;
            assert_eq!(small.circuit.shape(), shallow.circuit.shape());
            let all: Vec<Vec<BitVec>> = widths.iter().map(|&width| edges(width as usize, &mut prg)).collect();
            let step = if small.circuit.stats().gates > 20_000 { 7 } else { 1 };
            for pair in (0..100usize).step_by(step) {
                let place = [pair % 10, pair / 10];
                let inputs: Vec<BitVec> =
                    all.iter().enumerate().map(|(i, values)| values[place[i % 2]].clone()).collect();
                let [one, other] = [&small, &shallow].map(|function| evaluate(&function.circuit, &inputs));
                assert!(one == other, "{name} {inputs:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// A circuit of one level whose inputs are zeros opens the masks themselves: over all groups, batches and pieces they
/// are those of one stream of triples, each once and in order.
#[test]
fn no_triple_is_used_twice() {
    const GATES: usize = 24;
    let shape = Shape { inputs: vec![GATES as u32; 2], outputs: vec![1] };
    let gate = |i: u32| {
        let a = FIRST_INPUT + i;
        Gate::And { a, b: a + GATES as u32, out: a + 2 * GATES as u32 }
    };
    let circuit = Circuit::new(shape, (0..GATES as u32).map(gate).collect(), vec![FIRST_INPUT]).unwrap();
    let function = Prepared::new(circuit, ROLES.to_vec()).unwrap();
    let mut game = Game::new(function, triples::PIECE / 16 + 5, 11).cut(1001, 3).to(OutputTo::Evaluator);
    for row in game.rows.iter_mut().flatten().flatten() {
        *row = BitVec::zeros(row.len());
    }
    let heard = said(&game, [1; 32]);
    let mut at = 49;
    let mut opened = [(); 2].map(|()| Vec::new());
    for rows in game.rows[0].chunks(3003).flat_map(|group| group.chunks(1001)) {
        at += 8;
        for bits in &mut opened {
            let n = GATES * rows.len();
            bits.extend(BitVec::from_bytes(&heard[at..at + n.div_ceil(8)], n).iter());
            at += n.div_ceil(8);
        }
    }
    assert_eq!(at, heard.len());
    let words = opened[0].len().div_ceil(64);
    assert!(64 * words > triples::PIECE);
    let made = |role, channel: &mut Channel| {
        let [sender, receiver] = dealt(game.seed, role);
        let mut abc = [(); 3].map(|()| vec![0; words]);
        BitTriples::new(sender, receiver).extend(channel, abc.each_mut().map(|part| &mut part[..])).unwrap();
        abc
    };
    let (one, other) = memory::pair_with(SessionId([1; 32]));
    let (_, [a, b, _]) = memory::join(
        one,
        other,
        |channel| made(Owner::Garbler, channel),
        |channel| made(Owner::Evaluator, channel),
    );
    for (bits, words) in opened.iter().zip([a, b]) {
        assert!(bits.iter().enumerate().all(|(i, &bit)| bit == (words[i / 64] >> (i % 64) & 1 == 1)));
    }
}

/// Two levels, an unmasked input under each gate, and an output that is an XOR of inputs. Of each of the garbler's
/// inputs, what the evaluator hears before the outputs, with what it says itself, is spread evenly over all values.
#[test]
fn what_the_peer_hears_does_not_depend_on_inputs() {
    let shape = Shape { inputs: vec![2, 2], outputs: vec![2] };
    let x = FIRST_INPUT;
    let gates = vec![
        Gate::And { a: x, b: x + 2, out: x + 4 },
        Gate::Xor { a: x + 1, b: x + 3, out: x + 5 },
        Gate::And { a: x + 4, b: x + 5, out: x + 6 },
        Gate::And { a: x + 4, b: x + 1, out: x + 7 },
    ];
    let circuit = Circuit::new(shape, gates, vec![x + 6, x + 5]).unwrap();
    let rows = 1 << 18;
    for case in 0..16u64 {
        let function = Prepared::new(circuit.clone(), ROLES.to_vec()).unwrap();
        let mut game = Game::new(function, rows, 900 + case).cut(1 << 16, 4).to(OutputTo::Garbler);
        for (bits, rows) in [case & 3, case >> 2].into_iter().zip(&mut game.rows) {
            rows.iter_mut().for_each(|row| row[0] = BitVec::from_bytes(&[bits as u8], 2));
        }
        let records = [(); 2].map(|()| memory::Record::default());
        let (one, other) = memory::links(LinkModel::LOOPBACK);
        let end = |link, party| Channel::new(link, party, SessionId([8; 32]));
        memory::join(
            end(records[0].of(one), Party::First),
            end(records[1].of(other), Party::Second),
            |channel| game.play(channel, Owner::Garbler).unwrap(),
            |channel| game.play(channel, Owner::Evaluator).unwrap(),
        );
        let mut views = vec![0u32; rows];
        let mut lengths = Vec::new();
        for record in &records {
            let frames = record.frames();
            let heard: Vec<u8> = frames
                .into_iter()
                .filter(|(kind, _)| *kind == 0xD7)
                .flat_map(|(_, payload)| payload)
                .collect();
            lengths.push(heard.len());
            let mut at = 49;
            for (level, ands) in [(0, 1), (1, 2)] {
                for batch in 0..4u64 {
                    let head = (batch << 32 | step_of(&game, level)).to_le_bytes();
                    assert_eq!(heard[at..at + 8], head);
                    let rows = 1 << 16;
                    for bit in (0..2 * ands).map(|gate| at + 8 + gate * rows / 8) {
                        for row in 0..rows {
                            let view = &mut views[batch as usize * rows + row];
                            *view = *view << 1 | u32::from(heard[bit + row / 8] >> (row % 8) & 1);
                        }
                    }
                    at += 8 + 2 * ands * rows / 8;
                }
            }
        }
        // The evaluator alone sends output halves.
        assert_eq!(lengths[1] - lengths[0], 4 * (8 + 2 * (1 << 16) / 8));
        let mut counts = vec![0f64; 1 << 12];
        views.iter().for_each(|&view| counts[view as usize] += 1.0);
        let mean = rows as f64 / counts.len() as f64;
        let squares: f64 = counts.iter().map(|count| (count - mean).powi(2) / mean).sum();
        let (freedom, off) = (counts.len() as f64 - 1.0, 6.0);
        assert!((squares - freedom).abs() < off * (2.0 * freedom).sqrt(), "{case}: {squares} of {freedom}");
    }
}

/// The step of the level of this number among those with AND gates.
fn step_of(game: &Game, level: usize) -> u64 {
    let all = levels(game.function.plan(1)).into_iter().enumerate();
    all.filter(|(_, step)| !step.ands.is_empty()).nth(level).unwrap().0 as u64
}

#[test]
fn a_peer_that_leaves_ends_the_run_at_once() {
    let game = large(4096);
    let begun = Instant::now();
    let (one, other) = memory::pair_with(SessionId([9; 32]));
    let (ended, ()) = memory::join(one, other, |channel| game.play(channel, Owner::Garbler), |_| ());
    assert!(matches!(ended, Err(Error::Net(_))) && begun.elapsed() < Duration::from_secs(20));
}
