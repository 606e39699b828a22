//! The circuit against a plain join, and cheaters that enter what is no set.

use super::*;
use crate::circuit::{Aggregate, Column, Of};
use crate::terms::Kind;
use std::collections::{HashMap, HashSet};
use tacit_2pc::circuit::{Order, ProgramPlan};
use tacit_net::memory;
use tacit_ot::{BaseOt, base};

fn options(learns: Learns, base: &dyn BaseOt) -> Options<'_> {
    Options { learns, security: Security::Malicious, min_peer_elements: 0, max_peer_elements: 1 << 13, base }
}

/// A layout, and what the two sides put in: keys with their sums and rows.
type Entries = Vec<(u128, i128, u64)>;

fn layout(kind: Kind, owner: usize, sizes: [usize; 2], min_matches: u64) -> Layout {
    Layout { sizes, prefix: prefix(sizes), kind, owner, limits: min_matches.into() }
}

fn within(least: i64, most: i64, layout: Layout) -> Layout {
    let bounds = Some(Bounds::new(least, most).unwrap());
    Layout { limits: Limits { bounds, ..layout.limits }, ..layout }
}

fn bits(layout: &Layout, side: usize, entries: &Entries) -> Vec<bool> {
    let keys = entries.iter().flat_map(|(key, ..)| (0..KEY_BITS).map(move |i| key >> i & 1 == 1));
    let numbers = entries.iter().filter(|_| layout.payload(side) > 0);
    keys.chain(numbers.flat_map(|(_, sum, rows)| layout.encode(*sum, *rows))).collect()
}

/// The circuit in the clear.
fn clear(layout: Layout, sides: &[Entries; 2]) -> Option<(bool, i128, u64)> {
    let inputs: Vec<[u64; 1]> =
        [0, 1].iter().flat_map(|&side| bits(&layout, side, &sides[side])).map(|bit| [bit as u64]).collect();
    let plan = ProgramPlan::new(Aggregation::new(layout), Order::Layered);
    layout.read(plan.evaluate_words(&inputs).iter().map(|word| word[0] & 1 == 1))
}

/// What a join says: the number that counts, and what is opened.
fn join(layout: &Layout, sides: &[Entries; 2]) -> (u64, i128, u64) {
    let other: HashSet<u128> = sides[1 - layout.owner].iter().map(|(key, ..)| *key).collect();
    let common = sides[layout.owner].iter().filter(|(key, ..)| other.contains(key));
    match layout.kind {
        Kind::Sum | Kind::Mean => common.filter(|(.., rows)| *rows > 0).fold((0, 0, 0), |all, of| {
            (all.0 + 1, all.1 + of.1, all.2 + if layout.kind == Kind::Mean { of.2 } else { 0 })
        }),
        _ => {
            let count = common.count() as u64;
            (count, count.into(), 0)
        }
    }
}

/// Sorted random entries of two sides, `common` keys in both.
fn entries(sizes: [usize; 2], common: usize, prg: &mut Prg) -> [Entries; 2] {
    let shared: Vec<u128> = (0..common).map(|_| u128::from_le_bytes(prg.block().to_bytes())).collect();
    sizes.map(|size| {
        let own = (common..size).map(|_| u128::from_le_bytes(prg.block().to_bytes())).collect::<Vec<_>>();
        let mut keys: Vec<u128> = shared.iter().copied().chain(own).collect();
        keys.sort_unstable();
        keys.into_iter()
            .map(|key| match prg.below(4) {
                0 => (key, 0, 0),
                1 => (key, i128::from(i64::MIN), 1),
                2 => (key, i128::from(i64::MAX), 1 << 19),
                _ => (key, i128::from(prg.u64() as i64), 1 + prg.below(9)),
            })
            .collect()
    })
}

/// proof: sorted 3.3
#[test]
fn the_circuit_is_a_join_at_all_sizes() {
    let mut prg = Prg::from_seed(tacit_crypto::Block::new(1));
    let few = (1..=9).flat_map(|n| (1..=9).map(move |m| [n, m]));
    let many = [[1, 64], [64, 1], [31, 33], [64, 64], [63, 65], [100, 7], [129, 127], [257, 255]];
    for sizes in few.chain(many) {
        let most = sizes[0].min(sizes[1]);
        for common in HashSet::from([0, 1, most / 2, most]) {
            let sides = entries(sizes, common, &mut prg);
            for (kind, owner) in [(Kind::Count, 0), (Kind::Sum, 0), (Kind::Mean, 1)] {
                let layout = layout(kind, owner, sizes, 0);
                let (counts, first, second) = join(&layout, &sides);
                let exactly = Layout { limits: counts.into(), ..layout };
                assert_eq!(clear(exactly, &sides), Some((true, first, second)), "{exactly:?} {common}");
                // Of large ones numbers are tried where the limit just holds and where it just does not.
                let at_all_limits = kind == Kind::Count || sizes[0] + sizes[1] <= 18;
                if at_all_limits {
                    assert_eq!(clear(layout, &sides), Some((true, first, second)), "{layout:?} {common}");
                }
                for least in [counts + 1, u64::MAX].into_iter().take(1 + usize::from(at_all_limits)) {
                    let more = Layout { limits: least.into(), ..layout };
                    assert_eq!(clear(more, &sides), Some((false, 0, 0)), "{more:?}");
                }
            }
        }
    }
}

/// Bounds of every width, those that are a power of two wide and those that are not.
const BOUNDS: [(i64, i64); 7] =
    [(0, 0), (-3, 4), (-3, 5), (0, 1), (100, 1 << 40), (i64::MIN, -1), (i64::MIN + 1, i64::MAX)];

#[test]
fn the_circuit_adds_up_what_is_within_bounds() {
    let mut prg = Prg::from_seed(tacit_crypto::Block::new(7));
    for ((least, most), kind, owner) in BOUNDS.iter().flat_map(|&(least, most)| {
        [(Kind::Sum, 0), (Kind::Mean, 1)].map(|(kind, owner)| ((least, most), kind, owner))
    }) {
        let mut sides = entries([31, 33], 17, &mut prg);
        let layout = within(least, most, layout(kind, owner, [31, 33], 0));
        for of in sides.iter_mut().flatten().filter(|of| of.2 > 0) {
            (of.1, of.2) = (layout.bounds().clip(of.1).into(), 1);
        }
        let (_, first, second) = join(&layout, &sides);
        assert_eq!(clear(layout, &sides), Some((true, first, second)), "{layout:?}");
    }
}

/// A cheating owner enters any bits: numbers above the most are not added and do not count, and no sum of rows
/// or numbers wraps around.
///
/// proof: sorted 3.4
#[test]
fn what_an_owner_enters_is_within_bounds_or_does_not_count() {
    let mut prg = Prg::from_seed(tacit_crypto::Block::new(8));
    let [set, other] = entries([9, 9], 9, &mut prg);
    let ones = |layout: &Layout| {
        let keys = bits(&Layout { kind: Kind::Count, ..*layout }, 0, &set);
        let numbers = std::iter::repeat_n(true, layout.payload(0) * set.len());
        keys.into_iter().chain(numbers).chain(bits(layout, 1, &other))
    };
    let open = |layout: Layout| {
        let inputs: Vec<[u64; 1]> = ones(&layout).map(|bit| [bit as u64]).collect();
        let plan = ProgramPlan::new(Aggregation::new(layout), Order::Layered);
        layout.read(plan.evaluate_words(&inputs).iter().map(|word| word[0] & 1 == 1))
    };
    let widest = 9 * i128::from(i64::MAX);
    assert_eq!(open(layout(Kind::Sum, 0, [9, 9], 9)), Some((true, widest, 0)));
    assert_eq!(open(layout(Kind::Mean, 0, [9, 9], 9)), Some((true, widest, 9 * ((1 << 21) - 1))));
    assert_eq!(open(within(-3, 4, layout(Kind::Mean, 0, [9, 9], 9))), Some((true, 36, 9)));
    // Fifteen is entered where twelve is the most.
    assert_eq!(open(within(-4, 8, layout(Kind::Sum, 0, [9, 9], 0))), Some((true, 0, 0)));
    assert_eq!(open(within(-4, 8, layout(Kind::Sum, 0, [9, 9], 1))), Some((false, 0, 0)));
}

#[test]
fn gates_are_as_many_as_is_said() {
    for (sizes, kind) in [
        ([300, 300], Kind::Count),
        ([100, 500], Kind::Count),
        ([256, 255], Kind::Sum),
        ([90, 64], Kind::Mean),
    ] {
        for layout in [layout(kind, 0, sizes, 1), within(0, 1000, layout(kind, 0, sizes, 1))] {
            let mut plan = ProgramPlan::new(Aggregation::new(layout), Order::Layered);
            while plan.next_window().is_some() {}
            let (made, said) = (plan.ands() as f64, layout.ands() as f64);
            assert!((made / said - 1.0).abs() < 0.02, "{layout:?}: {made} made, {said} said");
        }
    }
    // What the documents say of 2^12 keys a side.
    let said = layout(Kind::Count, 0, [1 << 12; 2], 0).ands() as f64 / 1e6;
    assert!((10.5..11.5).contains(&said), "{said}");
}

/// What a cheater puts in in place of its set.
type Entered = fn(&mut Entries);

/// Runs the cheating side with `entered`, against an honest `other` that learns; what that got, and what the
/// cheater learns where it learns too.
fn cheat(
    kind: Kind,
    side: usize,
    set: &Entries,
    entered: Entered,
    other: &Entries,
) -> [Option<Vec<bool>>; 2] {
    let mut sides = [set.clone(), other.clone()];
    if side == 1 {
        sides.swap(0, 1);
    }
    let layout = layout(kind, side, [sides[0].len(), sides[1].len()], 0);
    entered(&mut sides[side]);
    let party = |channel: &mut Channel, at: usize| {
        let role = [Owner::Garbler, Owner::Evaluator][at];
        let run = Run { layout, role, side: at };
        let input = BitVec::from_bools(&bits(&layout, at, &sides[at]));
        let (base, prg) = (base::default(), &mut Prg::from_os());
        let options = options(Learns::Both, &*base);
        let opened = run.evaluate(channel, prg, &input, &options, &mut |_, _, _| ()).unwrap();
        opened.map(|opened| opened.iter().collect())
    };
    let (first, second) = memory::run(|channel| party(channel, 0), |channel| party(channel, 1));
    [first, second]
}

/// What is no set is refused, and the refusal is the same bits whatever the other side has.
///
/// proof: sorted 2.5, 3.2
#[test]
fn what_is_no_set_is_refused_without_a_word_on_the_other_side() {
    let mut prg = Prg::from_seed(tacit_crypto::Block::new(2));
    let [set, disjoint] = entries([9, 8], 0, &mut prg);
    let mut common = disjoint.clone();
    for (theirs, mine) in common.iter_mut().zip(&set) {
        theirs.0 = mine.0;
    }
    let no_sets: [Entered; 5] = [
        |entries| entries.swap(0, 1),
        |entries| entries.swap(7, 8),
        |entries| entries[4] = entries[3],
        |entries| entries.iter_mut().for_each(|of| of.0 = 0),
        // As the first bits order the list, others do not make keys different.
        |entries| entries[1].0 = entries[0].0 ^ 1,
    ];
    for (number, &entered) in no_sets.iter().enumerate() {
        let (kind, side) = ([Kind::Count, Kind::Sum, Kind::Mean][number % 3], number % 2);
        for other in [&disjoint, &common] {
            for opened in cheat(kind, side, &set, entered, other) {
                let opened = opened.expect("both learn");
                assert!(opened.iter().all(|&bit| !bit), "{number}: {opened:?}");
            }
        }
    }
}

/// Numbers of keys without a row add nothing, whoever says otherwise.
#[test]
fn a_number_that_is_not_counted_is_not_added() {
    let mut prg = Prg::from_seed(tacit_crypto::Block::new(3));
    let [mut set, mut other] = entries([6, 6], 6, &mut prg);
    set.iter_mut().chain(&mut other).for_each(|of| (of.1, of.2) = (10, 1));
    for kind in [Kind::Sum, Kind::Mean] {
        let opened = cheat(kind, 0, &set, |entries| entries[2].2 = 0, &other);
        let layout = layout(kind, 0, [6, 6], 0);
        let read = layout.read(opened[1].clone().expect("both learn"));
        assert_eq!(read, Some((true, 50, if kind == Kind::Mean { 5 } else { 0 })));
    }
}

/// What a party has, and what the other has: the result of [`aggregate`] on either side.
fn party(
    channel: &mut Channel,
    set: &[u64],
    rows: &[(u32, Option<i64>)],
    (kind, owner, learns, min_matches): (Kind, Party, [Learns; 2], u64),
) -> Result<Outcome> {
    let base = base::default();
    let me = channel.party();
    let options = options(learns[(me == Party::Second) as usize], &*base);
    let elements: Vec<[u8; 8]> = set.iter().map(|element| element.to_le_bytes()).collect();
    let mut column = Column::new(elements.len());
    rows.iter().for_each(|(element, number)| column.add(*element, *number).unwrap());
    let of = if me == owner { Of::Mine(&column) } else { Of::Peers };
    let reveal = match kind {
        Kind::Sum => Reveal::Sum(of),
        Kind::Mean => Reveal::Mean(of),
        _ => Reveal::Count,
    };
    aggregate(
        channel,
        &mut Prg::from_os(),
        &elements,
        reveal,
        min_matches.into(),
        &options,
        &mut |_, _, _| (),
    )
}

const BOTH: [Learns; 2] = [Learns::Both; 2];

/// Rows of a set's elements, several of some, none of others, nulls among them.
fn rows(set: &[u64]) -> Vec<(u32, Option<i64>)> {
    let number = |element: u64| (element % 5 != 1).then_some((element as i64 - 40) << (element % 50));
    (0..set.len() as u32)
        .flat_map(|at| (0..[1, 2, 0, 1][at as usize % 4]).map(move |_| at))
        .map(|at| (at, number(set[at as usize])))
        .collect()
}

fn expected(sets: [&[u64]; 2], owner: usize, kind: Kind) -> (u64, Aggregate) {
    let other: HashSet<&u64> = sets[1 - owner].iter().collect();
    let mut added: HashMap<u32, (i128, u64)> = HashMap::new();
    for (at, number) in rows(sets[owner]) {
        if let (Some(number), true) = (number, other.contains(&sets[owner][at as usize])) {
            let of = added.entry(at).or_default();
            *of = (of.0 + i128::from(number), of.1 + 1);
        }
    }
    let sum = added.values().map(|of| of.0).sum();
    match kind {
        Kind::Sum => (added.len() as u64, Aggregate::Sum(sum)),
        Kind::Mean => {
            (added.len() as u64, Aggregate::Mean { sum, rows: added.values().map(|of| of.1).sum() })
        }
        _ => {
            let count = sets[owner].iter().filter(|key| other.contains(key)).count() as u64;
            (count, Aggregate::Count(count))
        }
    }
}

#[test]
fn two_parties_get_what_a_join_gives() {
    let me = [Learns::Me, Learns::Peer];
    let peer = [Learns::Peer, Learns::Me];
    let cases: &[([usize; 2], usize, Kind, [Learns; 2])] = &[
        ([0, 5], 0, Kind::Count, BOTH),
        ([5, 0], 0, Kind::Mean, me),
        ([1, 1], 1, Kind::Count, peer),
        ([1, 1], 0, Kind::Sum, BOTH),
        ([2, 3], 2, Kind::Sum, me),
        ([3, 2], 0, Kind::Mean, BOTH),
        ([127, 130], 60, Kind::Sum, peer),
        ([65, 1], 1, Kind::Count, BOTH),
    ];
    for (number, &(sizes, common, kind, learns)) in cases.iter().enumerate() {
        let first: Vec<u64> = (0..sizes[0] as u64).rev().collect();
        let second: Vec<u64> = (0..sizes[1] as u64).map(|i| sizes[0] as u64 - common as u64 + i).collect();
        let owner = number % 2;
        let party_of = [Party::First, Party::Second][owner];
        let (counts, result) = expected([&first, &second], owner, kind);
        for least in [0, counts, counts + 1] {
            let terms = (kind, party_of, learns, least);
            let (one, two) = memory::run(
                |channel| party(channel, &first, &rows(&first), terms).unwrap(),
                |channel| party(channel, &second, &rows(&second), terms).unwrap(),
            );
            let result = if least > counts { Aggregate::Withheld } else { result };
            for (outcome, (learns, size)) in [one, two].iter().zip(learns.iter().zip([sizes[1], sizes[0]])) {
                assert_eq!(outcome.peer_elements, size as u64);
                assert!(outcome.result == (*learns != Learns::Peer).then_some(result), "{number} {least}");
            }
        }
    }
}

/// Sizes beside powers of two, in the long tests 2^12.
#[test]
fn large_sets_give_what_a_join_gives() {
    let most = if cfg!(feature = "long-tests") { 1 << 12 } else { 1 << 9 };
    for (sizes, kind) in [([most, most], Kind::Count), ([most - 1, most / 2 + 1], Kind::Sum)] {
        let first: Vec<u64> = (0..sizes[0] as u64).rev().collect();
        let second: Vec<u64> = (0..sizes[1] as u64).map(|i| i * 3).collect();
        let (_, result) = expected([&first, &second], 0, kind);
        let terms = (kind, Party::First, BOTH, 1);
        let (one, two) = memory::run(
            |channel| party(channel, &first, &rows(&first), terms).unwrap(),
            |channel| party(channel, &second, &rows(&second), terms).unwrap(),
        );
        assert!(one.result == Some(result) && two.result == Some(result), "{sizes:?}");
    }
}

/// proof: sorted 2.5
#[test]
fn a_peer_whose_list_is_no_set_has_cheated() {
    let run = |cheats: bool| {
        memory::run(
            |channel| party(channel, &[1, 2, 3], &[], (Kind::Count, Party::First, BOTH, 0)),
            |channel| {
                let terms = Reveal::Count.terms(Party::Second, Limits::default());
                let base = base::default();
                let options = options(Learns::Both, &*base);
                let prg = &mut Prg::from_os();
                let (hellos, theirs) = terms.announce(channel, &ANNOUNCED, 2, &options).unwrap();
                let run = Run::new(Party::Second, &hellos, &terms);
                let bound = bound_terms(Party::Second, &terms, &theirs);
                let salt = toss(channel, prg, Party::Second, &hellos, &bound).unwrap();
                let elements = [3u64, 4].map(u64::to_le_bytes);
                let mut keys = run.sorted(&elements, &salt, &mut |_, _, _| ()).unwrap();
                if cheats {
                    keys.swap(0, 1);
                }
                let input = run.input(&keys, &Reveal::Count);
                let _ = run.evaluate(channel, prg, &input, &options, &mut |_, _, _| ());
            },
        )
        .0
    };
    assert!(run(false).is_ok_and(|outcome| outcome.result == Some(Aggregate::Count(1))));
    assert!(matches!(run(true), Err(Error::Cheated { protocol: NAME, .. })));
}

/// proof: sorted 2.2
#[test]
fn a_coin_other_than_the_one_committed_to_is_caught() {
    let (caught, ()) = memory::run(
        |channel| party(channel, &[1], &[], (Kind::Count, Party::First, BOTH, 0)).err(),
        |channel| {
            let base = base::default();
            let terms = Reveal::Count.terms(Party::Second, Limits::default());
            let _ = terms.announce(channel, &ANNOUNCED, 1, &options(Learns::Both, &*base));
            // The second party cannot cheat here: it sends its coin before it sees the first's.
            let _ = channel.send(&[7; 32]);
        },
    );
    assert!(matches!(caught, Some(Error::Net(_) | Error::Computation(_) | Error::Ot(_))));
    let (_, caught) = memory::run(
        |channel| {
            let base = base::default();
            let terms = Reveal::Count.terms(Party::First, Limits::default());
            let _ = terms.announce(channel, &ANNOUNCED, 1, &options(Learns::Both, &*base));
            let (commitment, opening) = commit(&[0; 32], &[1; 32], &mut Prg::from_os());
            let _ = channel.send(&commitment.0);
            let _ = channel.recv(&mut [0; 32]);
            let _ = channel.send(&[2; 32]);
            let _ = channel.send(&opening.0);
            let _ = channel.flush();
        },
        |channel| party(channel, &[1], &[], (Kind::Count, Party::First, BOTH, 0)).err(),
    );
    assert!(matches!(caught, Some(Error::Cheated { protocol: NAME, .. })));
}

/// proof: sorted 3.5
#[test]
fn own_faults_and_bounds() {
    let run = |first: &[u64], second: &[u64], terms| {
        memory::run(|channel| party(channel, first, &[], terms), |channel| party(channel, second, &[], terms))
    };
    let terms = (Kind::Count, Party::First, BOTH, 0);
    assert!(matches!(run(&[1, 1], &[2, 3], terms).0, Err(Error::DuplicateElement)));
    let many: Vec<u64> = (0..MAX_ELEMENTS as u64 + 1).collect();
    assert!(matches!(run(&many, &[2], terms).0, Err(Error::TooManyElements { .. })));
    // One key in each of 2^41 runs, both sides together.
    for size in [1, 2, 1 << 10, 1 << 12, MAX_ELEMENTS] {
        let pairs = (size * (size - 1)) as f64;
        assert!(pairs <= 2f64.powi(prefix([size; 2]) as i32 - 41), "{size}");
    }
    assert_eq!(prefix([1 << 12; 2]), 65);
    // No pair with 2^40 calls; every entry tests two keys, and none three, with 2^80.
    assert_eq!(tested_at_most(4096, 40), 4096);
    assert!(tested_at_most(4096, 60) < 4096 + 64);
    assert!((8192..8300).contains(&tested_at_most(4096, 80)), "{}", tested_at_most(4096, 80));
}
