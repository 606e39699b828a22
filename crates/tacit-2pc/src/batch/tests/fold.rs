//! Folds against plain sums, for every number of rows; and peers that fold something else.

use super::*;
use crate::batch::fold::{Fold, Part};
use crate::circuit::Uint;

const BITS: usize = 70;

/// Of a row's 70 bits: whether it counts, two numbers of 33 bits, three flags.
fn function(rows: usize, least: i128) -> Fold {
    let row = |b: &mut Builder, input: &Uint| {
        let counts = input.bits()[0];
        let by = |b: &mut Builder, number: &Uint| {
            Uint::from_bits(number.bits().iter().map(|&bit| b.and(bit, counts)).collect())
        };
        let (x, y) = (by(b, &input.slice(1..34)), by(b, &input.slice(34..67)));
        let sum = b.add(&x.resize(34), &y.resize(34));
        vec![
            Part::Sum(input.slice(0..1)),
            Part::Sum(sum),
            Part::SignedSum(x.clone()),
            Part::Largest(y),
            Part::Sum(input.slice(67..70)),
        ]
    };
    let last = |b: &mut Builder, totals: &[Uint]| {
        let count = totals[0].resize(40);
        let few = b.lt(&count, &Uint::constant(least, 40));
        totals
            .iter()
            .map(|total| Uint::from_bits(total.bits().iter().map(|&bit| b.and(bit, !few)).collect()))
            .collect()
    };
    Fold::new(rows, BITS, &row, &last).unwrap()
}

fn number(bits: &BitVec) -> i128 {
    bits.iter().enumerate().fold(0, |sum, (at, bit)| sum | i128::from(bit) << at)
}

fn signed(bits: &BitVec) -> i128 {
    let all = number(bits);
    if bits.iter().last() == Some(true) { all - (1 << bits.len()) } else { all }
}

type Table = Vec<[u64; 2]>;

/// Two shares of these rows.
fn shared(rows: &[[u64; 2]], prg: &mut Prg) -> [Table; 2] {
    let ours: Table = rows.iter().map(|_| [prg.block().low(), prg.block().low()]).collect();
    let theirs = rows.iter().zip(&ours).map(|(row, ours)| [row[0] ^ ours[0], row[1] ^ ours[1]]).collect();
    [ours, theirs]
}

fn both(fold: &Fold, shares: &[Table; 2], to: OutputTo) -> [Option<Vec<BitVec>>; 2] {
    let side = |role, rows: &Table, channel: &mut Channel| {
        let (mut sender, mut receiver) = streams(channel);
        let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
        let (mut done, mut all) = (0, 0);
        let told: &mut dyn FnMut(u64, u64) = &mut |now, of| (done, all) = (now, of);
        let out = fold.run(channel, streams, role, &|row, word| rows[row][word], to, told).unwrap();
        // What the forecast says is what is used up.
        assert_eq!((done, all), (fold.triples(), fold.triples()));
        out
    };
    memory::run(
        |channel| side(Owner::Garbler, &shares[0], channel),
        |channel| side(Owner::Evaluator, &shares[1], channel),
    )
    .into()
}

/// What rows come to, with at least so many that count.
fn plain(rows: &[[u64; 2]], least: i128) -> [i128; 5] {
    let mut all = [0; 5];
    for row in rows {
        let bits = i128::from(row[0]) & i128::from(u64::MAX) | i128::from(row[1]) << 64;
        let counts = bits & 1;
        let part = |at: usize, width: usize| (bits >> at & ((1 << width) - 1)) * counts;
        let (x, y) = (part(1, 33), part(34, 33));
        let x_signed = if x >> 32 == 1 { x - (1 << 33) } else { x };
        all[0] += counts;
        all[1] += x + y;
        all[2] += x_signed;
        all[3] = all[3].max(y);
        all[4] += bits >> 67 & 7;
    }
    if all[0] < least { [0; 5] } else { all }
}

fn read(outputs: &[BitVec]) -> [i128; 5] {
    [number(&outputs[0]), number(&outputs[1]), signed(&outputs[2]), number(&outputs[3]), number(&outputs[4])]
}

fn random(rows: usize, seed: u128) -> Table {
    let mut prg = prg(seed);
    (0..rows).map(|_| [prg.block().low(), prg.block().low() & 63]).collect()
}

#[test]
fn folds_are_the_plain_sums_and_largest_for_any_number_of_rows() {
    for (seed, rows) in (0..).zip([1, 2, 3, 4, 5, 9, 63, 64, 65, 127, 1000]) {
        let table = random(rows, seed);
        let fold = function(rows, 1);
        let shares = shared(&table, &mut prg(7));
        for to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let [ours, theirs] = both(&fold, &shares, to);
            assert_eq!(ours.map(|outputs| read(&outputs)), to.garbler().then(|| plain(&table, 1)), "{rows}");
            assert_eq!(
                theirs.map(|outputs| read(&outputs)),
                to.evaluator().then(|| plain(&table, 1)),
                "{rows}"
            );
        }
    }
}

/// None, all and equal ones, the largest and the smallest that there are.
#[test]
fn nothing_overflows_and_too_few_are_withheld() {
    let top = u64::MAX;
    // The first number is the least in two's complement.
    let lowest = 1 | 1 << 33;
    for (row, least) in [([top, 63], 1), ([0, 0], 0), ([top - 1, 63], 1), ([lowest, 0], 1), ([top, 63], 131)]
    {
        for rows in [1, 64, 130] {
            let table = vec![row; rows];
            let shares = shared(&table, &mut prg(3));
            let [ours, _] = both(&function(rows, least), &shares, OutputTo::Both);
            assert_eq!(ours.map(|outputs| read(&outputs)), Some(plain(&table, least)), "{row:?} {rows}");
        }
    }
}

/// More rows than a batch has, and more triples than a piece.
#[test]
fn many_rows_go_in_batches() {
    let rows = 70_001;
    let table = random(rows, 5);
    let fold = function(rows, 1000);
    assert!(fold.triples() > 2 * triples::PIECE as u64);
    let [ours, theirs] = both(&fold, &shared(&table, &mut prg(6)), OutputTo::Both);
    let expected = Some(plain(&table, 1000));
    assert_eq!(ours.map(|outputs| read(&outputs)), expected);
    assert_eq!(theirs.map(|outputs| read(&outputs)), expected);
}

/// What a party sends, its messages and its rounds follow from the number of rows, and are those of the forecast.
#[test]
fn what_is_sent_follows_from_the_number_of_rows() {
    for rows in [1, 65, 3000] {
        let fold = function(rows, 1);
        let mut views = Vec::new();
        for table in [random(rows, 1), vec![[0, 0]; rows], vec![[u64::MAX, 63]; rows]] {
            let shares = shared(&table, &mut prg(2));
            let side = |role, rows: &Table, channel: &mut Channel| {
                let (mut sender, mut receiver) = (Nothing, Nothing);
                let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
                let before = channel.stats();
                let share = |row: usize, word: usize| rows[row][word];
                fold.run(channel, streams, role, &share, OutputTo::Garbler, &mut |_, _| ()).unwrap();
                let seen = channel.stats().since(&before);
                let told = fold.opened(role, OutputTo::Garbler) + 49;
                // Frames have heads of their own.
                let most = told + 8 * (fold.messages() + 4);
                assert!((told..=most).contains(&seen.bytes_sent), "{role:?} {told} {}", seen.bytes_sent);
                assert!(seen.rounds <= 2 * fold.rounds(), "{} {}", seen.rounds, fold.rounds());
                (seen.bytes_sent, seen.bytes_received, seen.messages_sent, seen.messages_received)
            };
            views.push(memory::run(
                |channel| side(Owner::Garbler, &shares[0], channel),
                |channel| side(Owner::Evaluator, &shares[1], channel),
            ));
        }
        assert!(views.iter().all(|view| *view == views[0]), "{views:?}");
    }
}

#[test]
fn peers_that_fold_something_else_are_refused() {
    let refused = |folds: [&Fold; 2], roles: [Owner; 2]| {
        let side = |at: usize, channel: &mut Channel| {
            let streams = (&mut Nothing as &mut dyn CotSender, &mut Nothing as &mut dyn CotReceiver);
            let run = folds[at].run(channel, streams, roles[at], &|_, _| 0, OutputTo::Both, &mut |_, _| ());
            run.unwrap_err().to_string()
        };
        let (one, two) = memory::run(|channel| side(0, channel), |channel| side(1, channel));
        assert_eq!(one, two);
        one
    };
    let roles = [Owner::Garbler, Owner::Evaluator];
    let (one, other, longer) = (function(65, 1), function(65, 2), function(66, 1));
    assert!(one.digest() != other.digest() && one.digest() != longer.digest());
    assert_eq!(one.digest(), function(65, 1).digest());
    assert!(refused([&one, &other], roles).contains("the function"));
    assert!(refused([&one, &longer], roles).contains("sizes"));
    assert!(refused([&one, &one], [Owner::Garbler; 2]).contains("who garbles"));
    let none = Fold::new(0, 1, &|_, _| Vec::new(), &|_, _| Vec::new());
    assert!(matches!(none, Err(Error::Usage { .. })));
}

/// A row's parts are added up with an AND gate a bit, and compared with two.
#[test]
fn a_fold_takes_few_gates_and_few_rounds() {
    for rows in [1000, 1 << 16] {
        let row = |_: &mut Builder, input: &Uint| vec![Part::Sum(input.slice(0..64))];
        let last = |_: &mut Builder, totals: &[Uint]| totals.to_vec();
        let fold = Fold::new(rows, 64, &row, &last).unwrap();
        assert!(fold.triples() <= 66 * rows as u64 + 1000, "{}", fold.triples());
        let rounds = (rows as f64).log(1.5) + 20.0;
        assert!((fold.rounds() as f64) < rounds, "{} {rounds}", fold.rounds());
        let row = |_: &mut Builder, input: &Uint| vec![Part::Largest(input.slice(0..64))];
        let fold = Fold::new(rows, 64, &row, &last).unwrap();
        assert!(fold.triples() <= 260 * rows as u64, "{}", fold.triples());
    }
}

/// Each side draws half of the coins, so that they are uniform if one of them does; what is opened is both halves.
#[test]
fn coins_are_of_both_sides() {
    let coins = 200;
    let row = |_: &mut Builder, input: &Uint| vec![Part::Sum(input.clone())];
    let last = |_: &mut Builder, totals: &[Uint], coins: &Uint| vec![totals[0].clone(), coins.clone()];
    let fold = Fold::with_coins(3, 1, &row, coins, &last).unwrap();
    let plain = Fold::new(3, 1, &row, &|_, totals| totals.to_vec()).unwrap();
    assert_ne!(fold.digest(), plain.digest());
    let drawn = |seed: u128| {
        let mut prg = Prg::from_seed(Block::new(seed));
        let words: Vec<u64> = (0..coins.div_ceil(64)).map(|_| prg.block().low()).collect();
        (0..coins).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect::<Vec<_>>()
    };
    // One of the sides may always draw the same.
    for theirs in [5, 6, 7] {
        let side = |role, seed, channel: &mut Channel| {
            let (mut sender, mut receiver) = streams(channel);
            let streams = (&mut sender as &mut dyn CotSender, &mut receiver as _);
            let mut prg = Prg::from_seed(Block::new(seed));
            let share = |_: usize, _: usize| u64::from(role == Owner::Garbler);
            let out = fold.run_with(&mut prg, channel, streams, role, &share, OutputTo::Both, &mut |_, _| ());
            out.unwrap().unwrap()
        };
        let (a, b) = memory::run(
            |channel| side(Owner::Garbler, 4, channel),
            |channel| side(Owner::Evaluator, theirs, channel),
        );
        assert_eq!(a, b);
        let expected: Vec<bool> = drawn(4).iter().zip(drawn(theirs)).map(|(a, b)| a ^ b).collect();
        assert_eq!((number(&a[0]), a[1].iter().collect::<Vec<_>>()), (3, expected));
    }
}
