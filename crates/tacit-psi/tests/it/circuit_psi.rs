//! Counts, sums, means and shares of intersections against plain joins.

use std::collections::HashSet;
use tacit_2pc::circuit::{Builder, Uint};
use tacit_2pc::semi_honest;
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party, memory};
use tacit_ot::extension::{IknpReceiver, IknpSender};
use tacit_ot::{Security, base};
use tacit_psi::circuit::{self, Aggregate, Column, MAX_ELEMENTS, Of, Outcome, Reveal, Shares};
use tacit_psi::paxos::{Learns, Options};
use tacit_psi::sorted;
use tacit_psi::{Bounds, Limits};
use tacit_psi::{Error, Result};

type Set = Vec<[u8; 8]>;

/// What a test asks for, without the parties' views of it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Count,
    /// Of the first or of the second party's column.
    Sum(Party),
    Mean(Party),
}

const KINDS: [Kind; 5] = [
    Kind::Count,
    Kind::Sum(Party::First),
    Kind::Sum(Party::Second),
    Kind::Mean(Party::First),
    Kind::Mean(Party::Second),
];
const LEARNS: [Learns; 3] = [Learns::Me, Learns::Peer, Learns::Both];

fn converse(learns: Learns) -> Learns {
    match learns {
        Learns::Me => Learns::Peer,
        Learns::Peer => Learns::Me,
        Learns::Both => Learns::Both,
    }
}

fn party(
    channel: &mut Channel,
    set: &[[u8; 8]],
    column: &Column,
    kind: Kind,
    min_matches: u64,
    learns: Learns,
) -> Result<Outcome> {
    let base = base::default();
    let security = Security::SemiHonest;
    let options =
        Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
    let of = |owner| if owner == channel.party() { Of::Mine(column) } else { Of::Peers };
    let reveal = match kind {
        Kind::Count => Reveal::Count,
        Kind::Sum(owner) => Reveal::Sum(of(owner)),
        Kind::Mean(owner) => Reveal::Mean(of(owner)),
    };
    circuit::aggregate(
        channel,
        &mut Prg::from_os(),
        set,
        reveal,
        min_matches.into(),
        &options,
        &mut |_, _, _| (),
    )
}

/// Elements of `range` in an order drawn from `seed`.
fn shuffled(range: std::ops::Range<u64>, seed: u128) -> Set {
    let (mut set, mut prg): (Vec<_>, _) =
        (range.map(u64::to_le_bytes).collect(), Prg::from_seed(Block::new(seed)));
    for i in (1..set.len()).rev() {
        set.swap(i, prg.below(i as u64 + 1) as usize);
    }
    set
}

/// One side's set and its rows: elements with numbers, negative and null ones and several of one element
/// among them, none of some.
struct Side {
    set: Set,
    rows: Vec<(u32, Option<i64>)>,
}

impl Side {
    fn new(range: std::ops::Range<u64>, seed: u128) -> Self {
        let set = shuffled(range, seed);
        let mut prg = Prg::from_seed(Block::new(seed + 1000));
        let mut rows = Vec::new();
        for element in 0..set.len() as u32 {
            for _ in 0..1 + (element % 7 == 0) as u32 - (element % 5 == 1) as u32 {
                let number = match prg.below(6) {
                    0 => None,
                    1 => Some(i64::MIN + prg.below(9) as i64),
                    2 => Some(i64::MAX - prg.below(9) as i64),
                    _ => Some(prg.u64() as i64 >> prg.below(60)),
                };
                rows.push((element, number));
            }
        }
        Side { set, rows }
    }

    fn column(&self) -> Column {
        let mut column = Column::new(self.set.len());
        self.rows.iter().for_each(|(element, number)| column.add(*element, *number).unwrap());
        column
    }

    /// The plain result and how many elements count.
    fn plain(&self, other: &Set, kind: Kind) -> (Aggregate, u64) {
        let other: HashSet<_> = other.iter().collect();
        let common = |element: u32| other.contains(&self.set[element as usize]);
        if kind == Kind::Count {
            let count = (0..self.set.len() as u32).filter(|element| common(*element)).count() as u64;
            return (Aggregate::Count(count), count);
        }
        let added = self.rows.iter().filter_map(|(element, number)| {
            number.filter(|_| common(*element)).map(|number| (*element, i128::from(number)))
        });
        let (mut elements, mut sum, mut rows) = (HashSet::new(), 0, 0);
        for (element, number) in added {
            elements.insert(element);
            sum += number;
            rows += 1;
        }
        let result = match kind {
            Kind::Mean(_) => Aggregate::Mean { sum, rows },
            _ => Aggregate::Sum(sum),
        };
        (result, elements.len() as u64)
    }
}

fn expected(a: &Side, b: &Side, kind: Kind) -> (Aggregate, u64) {
    match kind {
        Kind::Sum(Party::Second) | Kind::Mean(Party::Second) => b.plain(&a.set, kind),
        _ => a.plain(&b.set, kind),
    }
}

/// Both parties' results and what each sent.
fn run(
    a: &Side,
    b: &Side,
    kind: Kind,
    min_matches: u64,
    learns: Learns,
) -> [(Option<Aggregate>, [u64; 3]); 2] {
    let one = |channel: &mut Channel, side: &Side, learns| {
        let outcome = party(channel, &side.set, &side.column(), kind, min_matches, learns).unwrap();
        let stats = channel.stats();
        (outcome.result, [stats.bytes_sent, stats.messages_sent, stats.rounds])
    };
    let (first, second) = memory::run(|c| one(c, a, learns), |c| one(c, b, converse(learns)));
    [first, second]
}

#[track_caller]
fn check(a: &Side, b: &Side, kind: Kind, min_matches: u64, learns: Learns) {
    let (plain, counted) = expected(a, b, kind);
    let result = if counted >= min_matches { plain } else { Aggregate::Withheld };
    let [first, second] = run(a, b, kind, min_matches, learns);
    let name = format!("{} × {}, {kind:?}, {learns:?}", a.set.len(), b.set.len());
    assert!(first.0 == (learns != Learns::Peer).then_some(result), "{name}: {}", shown(first.0));
    assert!(second.0 == (learns != Learns::Me).then_some(result), "{name}: {}", shown(second.0));
}

fn shown(result: Option<Aggregate>) -> String {
    match result {
        Some(Aggregate::Count(count)) => format!("count {count}"),
        Some(Aggregate::Sum(sum)) => format!("sum {sum}"),
        Some(Aggregate::Mean { sum, rows }) => format!("sum {sum} of {rows}"),
        other => format!("{other:?}"),
    }
}

#[test]
fn sets_of_all_shapes() {
    let cases = [
        (0..0, 0..0),
        (0..0, 0..5),
        (0..5, 0..0),
        (0..1, 0..1),
        (0..1, 1..2),
        (0..2, 1..3),
        (0..3, 0..3),
        (0..2, 0..3),
        (0..1, 0..1000),
        (0..1000, 999..1000),
        (0..700, 700..1400),
    ];
    for (i, (a, b)) in cases.into_iter().enumerate() {
        let (a, b) = (Side::new(a, i as u128), Side::new(b, 100 + i as u128));
        for (j, kind) in KINDS.into_iter().enumerate() {
            check(&a, &b, kind, 0, LEARNS[(i + j) % 3]);
        }
    }
}

#[test]
fn large_sets_of_different_sizes() {
    let (a, b) = (Side::new(0..6789, 1), Side::new(3000..10_890, 2));
    for (kind, learns) in KINDS.into_iter().zip(LEARNS.into_iter().cycle()) {
        check(&a, &b, kind, 0, learns);
    }
}

#[test]
fn sizes_around_powers_of_two() {
    for log in [2, 6, 10, 16] {
        for (i, (n, m)) in [(-1, 1), (0, 0), (1, -1)].into_iter().enumerate() {
            let size = |d: i64| ((1i64 << log) + d) as u64;
            let (a, b) = (Side::new(0..size(n), 1), Side::new(size(n) / 2..size(n) / 2 + size(m), 2));
            check(&a, &b, KINDS[(i + 2 * log) % 5], 0, LEARNS[i]);
        }
    }
}

#[test]
fn the_least_number_of_matches_is_enforced() {
    let (a, b) = (Side::new(0..60, 1), Side::new(40..140, 2));
    for (kind, learns) in KINDS.into_iter().zip(LEARNS.into_iter().cycle()) {
        let (_, counted) = expected(&a, &b, kind);
        assert!(counted > 5);
        for least in [1, counted - 1, counted, counted + 1, 1 << 32, u64::MAX] {
            check(&a, &b, kind, least, learns);
        }
    }
    let (none, apart) = (Side::new(0..0, 1), Side::new(500..600, 2));
    for b in [&none, &apart] {
        check(&a, b, Kind::Count, 1, Learns::Both);
        check(b, &a, Kind::Sum(Party::First), 1, Learns::Me);
    }
}

/// Sums at both ends of what a column can reach with its rows, and of one element with many rows.
#[test]
fn sums_do_not_overflow() {
    for extreme in [i64::MIN, i64::MAX] {
        let sides = [Side::new(0..500, 1), Side::new(0..400, 2)];
        let [a, b] = sides.map(|side| {
            let rows = (0..side.set.len() as u32).flat_map(|element| vec![(element, Some(extreme)); 20]);
            Side { rows: rows.collect(), ..side }
        });
        for kind in KINDS {
            check(&a, &b, kind, 0, Learns::Both);
        }
    }
}

#[test]
fn nulls_add_nothing_and_do_not_count() {
    let mut a = Side::new(0..30, 1);
    let b = Side::new(0..30, 2);
    a.rows = (0..30).map(|element| (element, (element < 3).then_some(-5))).collect();
    for (least, result) in [(3, Aggregate::Mean { sum: -15, rows: 3 }), (4, Aggregate::Withheld)] {
        let [first, _] = run(&a, &b, Kind::Mean(Party::First), least, Learns::Me);
        assert!(first.0 == Some(result), "{least}: {}", shown(first.0));
    }
    a.rows.clear();
    check(&a, &b, Kind::Mean(Party::First), 0, Learns::Me);
}

#[test]
fn columns_refuse_what_they_cannot_hold() {
    let mut column = Column::new(3);
    assert!(column.add(2, Some(1)).is_ok());
    assert!(matches!(column.add(3, Some(1)), Err(Error::Usage(_))));
    let set = shuffled(0..4, 1);
    let (mut channel, _peer) = memory::pair();
    let refused = party(&mut channel, &set, &column, Kind::Sum(Party::First), 0, Learns::Me);
    assert!(matches!(refused, Err(Error::Usage(_))));
}

/// For one pair of sizes both views have the same numbers of bytes, messages and rounds, whatever sets and
/// columns are, whoever learns, and whether the result is withheld.
#[test]
fn views_depend_on_sizes_alone() {
    let views = |common: u64, seed, kind, learns| {
        let (a, b) = (Side::new(0..900, seed), Side::new(900 - common..1700 - common, seed + 1));
        run(&a, &b, kind, 200, learns).map(|(_, view)| view)
    };
    for kind in KINDS {
        for learns in LEARNS {
            assert_eq!(views(0, 1, kind, learns), views(700, 5, kind, learns), "{kind:?}, {learns:?}");
        }
    }
}

#[test]
fn disagreements_are_named_on_both_sides() {
    let side = Side::new(0..5, 1);
    let column = side.column();
    let cases = [
        ((Kind::Count, 0), (Kind::Sum(Party::First), 0)),
        ((Kind::Mean(Party::First), 0), (Kind::Sum(Party::First), 0)),
        ((Kind::Sum(Party::First), 0), (Kind::Sum(Party::Second), 0)),
        ((Kind::Count, 3), (Kind::Count, 4)),
    ];
    for ((one, one_least), (two, two_least)) in cases {
        let (a, b) = memory::run(
            |channel| party(channel, &side.set, &column, one, one_least, Learns::Me).map(|_| ()),
            |channel| party(channel, &side.set, &column, two, two_least, Learns::Peer).map(|_| ()),
        );
        assert!(matches!(a, Err(Error::Disagreement { protocol: circuit::NAME, .. })), "{a:?}");
        assert!(matches!(b, Err(Error::Disagreement { protocol: circuit::NAME, .. })), "{b:?}");
    }
    let (a, b) = memory::run(
        |channel| party(channel, &side.set, &column, Kind::Count, 0, Learns::Both).map(|_| ()),
        |channel| share(channel, &side.set, None).map(|_| ()),
    );
    assert!(matches!((&a, &b), (Err(Error::Disagreement { .. }), Err(Error::Disagreement { .. }))));
}

/// With bounds each element adds one number within them, whatever its rows are, by either protocol; and both
/// sides must say the same bounds.
#[test]
fn bounded_numbers_are_clipped_and_agreed_on() {
    let set: Vec<[u8; 8]> = (0..20u64).map(|i| i.to_le_bytes()).collect();
    let numbers: Vec<i64> = (0..20).map(|i| if i % 2 == 0 { 1 << (3 * i) } else { -5 }).collect();
    let run = |sorted: bool, bounds: [Option<Bounds>; 2]| {
        let party = |channel: &mut Channel, at: usize| {
            let base = base::default();
            let security = if sorted { Security::Malicious } else { Security::SemiHonest };
            let options = Options {
                learns: Learns::Both,
                security,
                min_peer_elements: 0,
                max_peer_elements: 99,
                base: &*base,
            };
            let mut column = Column::new(set.len());
            for (at, number) in (0u32..).zip(&numbers) {
                column.add(at, Some(*number)).unwrap();
                column.add(at, (at == 3).then_some(7)).unwrap();
            }
            let of = if at == 0 { Of::Mine(&column) } else { Of::Peers };
            let limits = Limits { min_matches: 0, bounds: bounds[at] };
            let (set, prg) = (&set[..if at == 0 { 20 } else { 10 }], &mut Prg::from_os());
            let aggregate = if sorted { sorted::aggregate } else { circuit::aggregate };
            aggregate(channel, prg, set, Reveal::Mean(of), limits, &options, &mut |_, _, _| ())
        };
        memory::run(|channel| party(channel, 0), |channel| party(channel, 1))
    };
    let [narrow, wide] = [Bounds::new(-2, 6).unwrap(), Bounds::new(-2, 7).unwrap()];
    for is_sorted in [false, true] {
        let (one, two) = run(is_sorted, [Some(narrow); 2]);
        // 1, 2^6 and above, as 6, and -2 for -5; the element of two rows adds 2.
        let expected = Some(Aggregate::Mean { sum: 1 + 4 * 6 - 4 * 2 + 2, rows: 10 });
        assert!(one.unwrap().result == expected && two.unwrap().result == expected, "{is_sorted}");
        for other in [None, Some(wide)] {
            let (one, two) = run(is_sorted, [Some(narrow), other]);
            assert!(matches!(one, Err(Error::Disagreement { .. })), "{is_sorted}");
            assert!(matches!(two, Err(Error::Disagreement { .. })), "{is_sorted}");
        }
    }
}

#[test]
fn malicious_security_names_the_option_to_change() {
    let (mut channel, _peer) = memory::pair();
    let base = base::default();
    let (learns, security) = (Learns::Me, Security::Malicious);
    let options = Options { learns, security, min_peer_elements: 0, max_peer_elements: 9, base: &*base };
    let set = shuffled(0..3, 1);
    let run = circuit::aggregate(
        &mut channel,
        &mut Prg::from_os(),
        &set,
        Reveal::Count,
        0.into(),
        &options,
        &mut |_, _, _| (),
    );
    assert!(matches!(run, Err(Error::Usage(what)) if what.contains("semi-honest security")));
}

#[test]
fn duplicates_end_the_run() {
    let (mut set, other) = (shuffled(0..50, 1), shuffled(0..40, 2));
    set[49] = set[7];
    for more in [7, 8, 9, 10] {
        // Two, and then more than have places.
        set[more] = set[49];
        for kind in [Kind::Count, Kind::Sum(Party::First)] {
            let (a, b) = memory::run(
                |channel| party(channel, &set, &Column::new(50), kind, 0, Learns::Me).map(|_| ()),
                |channel| party(channel, &other, &Column::new(40), kind, 0, Learns::Peer).map(|_| ()),
            );
            assert!(matches!(a, Err(Error::DuplicateElement)), "{kind:?}: {a:?}");
            assert!(matches!(b, Err(Error::Net(_) | Error::Ot(_))), "{kind:?}: {b:?}");
        }
    }
}

#[test]
fn failures_by_chance_stay_below_40_bits() {
    for n in [1, 2, 100, 1 << 10, 1 << 13, 1 << 16, 1 << 20, MAX_ELEMENTS] {
        for m in [1, 50, 1 << 12, 1 << 20, MAX_ELEMENTS] {
            let bound = circuit::failure_log2(n, m).unwrap();
            assert!(bound <= -40.0, "{n} × {m}: {bound}");
        }
    }
}

fn share(channel: &mut Channel, set: &[[u8; 8]], values: Option<&[Block]>) -> Result<Shares> {
    let base = base::default();
    let (learns, security) = (Learns::Both, Security::SemiHonest);
    let options =
        Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
    circuit::shares(channel, &mut Prg::from_os(), set, values, &options, &mut |_, _, _| ())
}

#[test]
fn an_empty_set_has_no_bins_and_both_sides_know_the_others_size() {
    let set: Set = (0..5u64).map(u64::to_le_bytes).collect();
    let (ours, theirs) = memory::run(
        |channel| share(channel, &[], None).unwrap(),
        |channel| share(channel, &set, None).unwrap(),
    );
    assert_eq!([ours.bins(), theirs.bins()], [0, 0]);
    assert_eq!([ours.peer_elements, theirs.peer_elements], [5, 0]);
}

fn values_of(set: &Set, factor: u64) -> Vec<Block> {
    set.iter().map(|element| Block::from_halves(u64::from_le_bytes(*element) * factor, factor)).collect()
}

#[test]
fn shares_open_to_members_and_both_sides_numbers() {
    for (a, b, gives) in
        [(0..60, 40..140, true), (0..300, 100..200, true), (0..1, 0..1, false), (0..40, 9..49, true)]
    {
        let (a, b) = (shuffled(a, 1), shuffled(b, 2));
        let (values_a, values_b) = (values_of(&a, 3), values_of(&b, 5));
        let pick = |values| gives.then_some(values);
        let (one, two) = memory::run(
            |channel| share(channel, &a, pick(&values_a[..])).unwrap(),
            |channel| share(channel, &b, pick(&values_b[..])).unwrap(),
        );
        // The smaller set's owner holds the table.
        let first_holds = a.len() <= b.len();
        let (held, other) = if first_holds { (&one, &two) } else { (&two, &one) };
        assert!(other.elements.is_none() && held.bins() == other.bins());
        let (set, peers, factors) = if first_holds { (&a, &b, [3, 5]) } else { (&b, &a, [5, 3]) };
        let peers: HashSet<_> = peers.iter().collect();
        let mut seen = 0;
        for (bin, element) in held.elements.as_ref().unwrap().iter().enumerate() {
            let member = held.members.get(bin) ^ other.members.get(bin);
            let value = held.table_values[bin] ^ other.table_values[bin];
            let Some(element) = element else {
                assert!(!member && value == Block::ZERO);
                continue;
            };
            seen += 1;
            let element = set[*element as usize];
            assert_eq!(member, peers.contains(&element));
            let number = u64::from_le_bytes(element);
            let of = |factor: u64| Block::from_halves(number * factor, factor);
            if !gives {
                assert!(value == Block::ZERO && held.other_values.is_empty());
                continue;
            }
            assert!(value == of(factors[0]));
            let others = held.other_values[bin] ^ other.other_values[bin];
            assert_eq!(others == of(factors[1]), member);
        }
        assert_eq!(seen, set.len());
    }
}

/// Shares feed a circuit of Yao's protocol on the same channel: the sum over common elements of the product
/// of both sides' numbers, which neither side learns one by one.
#[test]
fn shares_feed_a_computation_in_the_same_session() {
    let (a, b) = (shuffled(0..60, 1), shuffled(40..140, 2));
    let numbers = |set: &Set, factor: u64| -> Vec<Block> {
        set.iter()
            .map(|element| Block::new(u128::from(u64::from_le_bytes(*element) * factor % 251)))
            .collect()
    };
    let (values_a, values_b) = (numbers(&a, 3), numbers(&b, 7));
    let function = |bins: usize| {
        let mut builder = Builder::new();
        let mut inputs =
            || -> Vec<[Uint; 3]> { (0..bins).map(|_| [1, 8, 8].map(|width| builder.input(width))).collect() };
        let (garblers, evaluators) = (inputs(), inputs());
        let mut terms = Vec::new();
        for (one, two) in garblers.iter().zip(&evaluators) {
            let [member, x, y] = [0, 1, 2].map(|i| builder.xor_bits(&one[i], &two[i]));
            let product = builder.mul_wide(&x, &y);
            let bits = product.bits().iter().map(|bit| builder.and(*bit, member.bits()[0])).collect();
            terms.push(Uint::from_bits(bits));
        }
        let sum = builder.sum(&terms, 32);
        let circuit = builder.finish(&[sum]).unwrap();
        let owners = [vec![Owner::Garbler; 3 * bins], vec![Owner::Evaluator; 3 * bins]].concat();
        Prepared::new(circuit, owners).unwrap()
    };
    let inputs = |shares: &Shares| -> [Vec<BitVec>; 1] {
        [(0..shares.bins()).flat_map(|bin| shares.inputs(bin, 8)).collect()]
    };
    let (one, two) = memory::run(
        |channel| {
            let shares = share(channel, &a, Some(&values_a)).unwrap();
            let mut prg = Prg::from_os();
            let mut cot = IknpSender::setup(channel, &*base::default(), &mut prg).unwrap();
            let (function, inputs) = (function(shares.bins()), inputs(&shares));
            semi_honest::garble(channel, &mut cot, &function, &inputs, OutputTo::Both, &mut prg).unwrap()
        },
        |channel| {
            let shares = share(channel, &b, Some(&values_b)).unwrap();
            let mut cot = IknpReceiver::setup(channel, &*base::default(), &mut Prg::from_os()).unwrap();
            let (function, inputs) = (function(shares.bins()), inputs(&shares));
            semi_honest::evaluate(channel, &mut cot, &function, &inputs, OutputTo::Both).unwrap()
        },
    );
    let plain: u128 = (40..60u64).map(|x| u128::from((x * 3 % 251) * (x * 7 % 251))).sum();
    for outputs in [one, two] {
        assert_eq!(outputs.unwrap()[0][0].blocks()[0].to_u128(), plain);
    }
}

#[test]
fn shares_views_depend_on_sizes_alone() {
    let views = |common: u64, factor| {
        let (a, b) = (shuffled(0..500, 1), shuffled(500 - common..1100 - common, 2));
        let one = |channel: &mut Channel, set: &Set| {
            share(channel, set, Some(&values_of(set, factor))).unwrap();
            let stats = channel.stats();
            [stats.bytes_sent, stats.messages_sent, stats.rounds]
        };
        memory::run(|c| one(c, &a), |c| one(c, &b))
    };
    assert_eq!(views(0, 3), views(500, 7));
}
