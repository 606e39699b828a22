//! The circuit of [`sorted`](super): checks, merges, compares and adds up two sorted lists of hashed keys.

use crate::limits::{Bounds, Limits};
use crate::terms::{Kind, Terms};
use std::collections::HashMap;
use tacit_2pc::circuit::{Bit, Builder, Integer, Program, Shape, Uint};
use tacit_net::Party;

/// Bits of a hashed key.
pub const KEY_BITS: usize = 128;
/// log2 of the most rows with a number that a column may have.
pub const ROWS_LOG2: usize = 20;
/// Bits of an element's rows.
const ROWS_BITS: usize = ROWS_LOG2 + 1;

/// Comparators that are placed at once: so many chains of gates run side by side.
const COMPARATORS: usize = 32;
/// Neighbours compared at once.
const NEIGHBOURS: usize = 64;
/// Comparators that flags go back through in a step.
const BACK: usize = 1 << 10;

/// Everything that the circuit follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Keys of the garbler and of the evaluator.
    pub(crate) sizes: [usize; 2],
    /// The highest bits of a key, which decide the order.
    pub(crate) prefix: usize,
    pub(crate) kind: Kind,
    /// Whose numbers are added up: 0 for the garbler.
    pub(crate) owner: usize,
    pub(crate) limits: Limits,
}

impl Layout {
    /// Of a run with so many keys.
    pub(crate) fn of(sizes: [usize; 2], terms: &Terms) -> Self {
        let owner = (terms.owner == Some(Party::Second)) as usize;
        let Terms { kind, limits, .. } = *terms;
        Layout { sizes, prefix: super::prefix(sizes), kind, owner, limits }
    }

    /// What an element's number is within.
    pub(crate) fn bounds(&self) -> Bounds {
        self.limits.bounds.unwrap_or(Bounds::WIDEST)
    }

    /// Bits of an element's number, which is entered as what it is above the least.
    fn number_bits(&self) -> usize {
        self.bounds().bits().max(1)
    }

    /// Bits of an element's rows: with bounds whether it has any.
    fn rows_bits(&self) -> usize {
        match (self.kind, self.limits.bounds) {
            (Kind::Mean, None) => ROWS_BITS,
            _ => 1,
        }
    }

    /// Bits of a sum of numbers: no entries of a side overflow them.
    fn sum_bits(&self) -> usize {
        65 + self.matches_bits()
    }

    /// Bits of the numbers that come with each of a side's keys.
    pub(crate) fn payload(&self, side: usize) -> usize {
        match self.kind {
            Kind::Sum | Kind::Mean if side == self.owner => self.number_bits() + self.rows_bits(),
            _ => 0,
        }
    }

    /// A side's input bits.
    pub(crate) fn input_bits(&self, side: usize) -> usize {
        self.sizes[side] * (KEY_BITS + self.payload(side))
    }

    /// The bits of one element's numbers, its sum first, which is within the bounds.
    pub(crate) fn encode(&self, sum: i128, rows: u64) -> impl Iterator<Item = bool> + use<> {
        let bits = |number: i128, width: usize| (0..width).map(move |i| number >> i & 1 == 1);
        let rows = if self.rows_bits() == 1 { (rows > 0).into() } else { rows };
        let above = sum - i128::from(self.bounds().least());
        bits(above, self.number_bits()).chain(bits(rows.into(), self.rows_bits()))
    }

    /// Whether no entry of this many bits is above the most.
    fn all_are_within(&self) -> bool {
        self.bounds().span().count_ones() as usize == self.number_bits()
    }

    fn adds_up(&self) -> bool {
        matches!(self.kind, Kind::Sum | Kind::Mean)
    }

    /// Bits of the number of matches.
    fn matches_bits(&self) -> usize {
        (usize::BITS - self.sizes[0].min(self.sizes[1]).leading_zeros()) as usize
    }

    /// The widths of the outputs: whether both lists ascend, whether something is revealed, and what.
    fn outputs(&self) -> Vec<u32> {
        let numbers = match self.kind {
            Kind::Sum => vec![self.sum_bits()],
            Kind::Mean => vec![self.sum_bits(), self.rows_bits() + self.matches_bits()],
            _ => vec![self.matches_bits()],
        };
        [1, 1].into_iter().chain(numbers).map(|width| width as u32).collect()
    }

    /// Reads the outputs: `None` where a list does not ascend, else whether something is revealed, and what.
    pub(crate) fn read(&self, bits: impl IntoIterator<Item = bool>) -> Option<(bool, i128, u64)> {
        let mut bits = bits.into_iter();
        let mut number = |width: &u32| {
            (0..*width).fold(0u128, |number, i| number | u128::from(bits.next().unwrap_or(false)) << i)
        };
        let numbers: Vec<u128> = self.outputs().iter().map(&mut number).collect();
        let first = match self.kind {
            Kind::Sum | Kind::Mean => {
                let above = 128 - self.sum_bits();
                (numbers[2] << above) as i128 >> above
            }
            _ => numbers[2] as i128,
        };
        let second = numbers.get(3).map_or(0, |number| *number as u64);
        (numbers[0] == 1).then_some((numbers[1] == 1, first, second))
    }

    /// AND gates, of which some hundred may be more or fewer.
    pub(crate) fn ands(&self) -> u64 {
        let [garbler, evaluator] = self.sizes.map(|size| size as u64);
        let prefix = self.prefix as u64;
        let ordered = (garbler + evaluator) * (prefix + 1);
        let moved = comparators(self.sizes) * (prefix + KEY_BITS as u64 + u64::from(self.adds_up()));
        let equal = (garbler + evaluator) * KEY_BITS as u64;
        let owned = self.sizes[self.owner] as u64;
        let (number, rows) = (self.number_bits() as u64, self.rows_bits() as u64);
        let checked = if self.all_are_within() { 0 } else { owned * number };
        let added = match self.kind {
            Kind::Sum | Kind::Mean if rows == 1 => checked + owned * (2 * number + 2),
            Kind::Mean => owned * (2 * (number + rows) + rows + 2),
            _ => 0,
        };
        ordered + moved + equal + added
    }
}

/// Comparators of Batcher's merge.
fn comparators(sizes: [usize; 2]) -> u64 {
    fn count([m, n]: [usize; 2], known: &mut HashMap<[usize; 2], u64>) -> u64 {
        match [m, n] {
            [0, _] | [_, 0] => 0,
            [1, 1] => 1,
            sizes => {
                if let Some(&count) = known.get(&sizes) {
                    return count;
                }
                let odd = count([m.div_ceil(2), n.div_ceil(2)], known);
                let even = count([m / 2, n / 2], known);
                known.insert(sizes, odd + even + (m + n - 1) as u64 / 2);
                odd + even + (m + n - 1) as u64 / 2
            }
        }
    }
    count(sizes, &mut HashMap::new())
}

/// Batcher's odd-even merge of the ascending places `x` and `y` (Knuth, volume 3, 5.3.4): what its
/// comparators leave ascends in the order returned. A comparator puts the smaller into its first place.
fn merge(x: &[u32], y: &[u32], network: &mut Vec<[u32; 2]>) -> Vec<u32> {
    match (x, y) {
        (x, []) => x.to_vec(),
        ([], y) => y.to_vec(),
        ([x], [y]) => {
            network.push([*x, *y]);
            vec![*x, *y]
        }
        _ => {
            let half = |of: &[u32], from: usize| of.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
            let odd = merge(&half(x, 0), &half(y, 0), network);
            let even = merge(&half(x, 1), &half(y, 1), network);
            let mut order = vec![odd[0]];
            for (i, &place) in even.iter().enumerate() {
                order.push(place);
                if let Some(&next) = odd.get(i + 1) {
                    network.push([place, next]);
                    order.push(next);
                }
            }
            order.extend(odd.get(even.len() + 1..).unwrap_or_default());
            order
        }
    }
}

/// The comparators with those first that wait for nothing, each with its level, and the order they leave.
fn network(sizes: [usize; 2]) -> (Vec<(u32, [u32; 2])>, Vec<u32>) {
    let places: Vec<u32> = (0..(sizes[0] + sizes[1]) as u32).collect();
    let (x, y) = places.split_at(sizes[0]);
    let mut network = Vec::new();
    let order = merge(x, y, &mut network);
    let mut levels = vec![0u32; places.len()];
    let mut levelled: Vec<(u32, [u32; 2])> = network
        .into_iter()
        .map(|pair| {
            let level = pair.iter().map(|&place| levels[place as usize]).max().unwrap_or(0);
            pair.iter().for_each(|&place| levels[place as usize] = level + 1);
            (level, pair)
        })
        .collect();
    levelled.sort_by_key(|(level, _)| *level);
    (levelled, order)
}

/// What the program does next.
#[derive(Clone, Copy)]
enum Stage {
    /// Whether a side's list ascends, from this key on.
    Order(usize, usize),
    /// Comparators, from this one on.
    Merge(usize),
    /// Neighbours, from this one on.
    Compare(usize),
    /// Flags on their way back through the comparators, of which so many are left.
    Back(usize),
    /// The owner's numbers, from this key on.
    Add(usize),
    End,
}

/// The program.
pub(crate) struct Aggregation {
    layout: Layout,
    stage: Stage,
    network: Vec<(u32, [u32; 2])>,
    order: Vec<u32>,
    keys: Vec<Uint>,
    /// Whether each comparator swapped, where numbers are added up.
    swaps: Vec<Bit>,
    ordered: Bit,
    /// Whether neighbours are equal; then, at each place, whether its key is common.
    flags: Vec<Bit>,
    /// The number of keys that count, and the sums.
    totals: Vec<Uint>,
}

impl Aggregation {
    pub(crate) fn new(layout: Layout) -> Self {
        // proof: sorted 2.4
        let (network, order) = network(layout.sizes);
        let mut widths = vec![layout.matches_bits()];
        if layout.adds_up() {
            widths.push(layout.number_bits() + layout.matches_bits());
            if layout.rows_bits() > 1 {
                widths.push(layout.rows_bits() + layout.matches_bits());
            }
        }
        Aggregation {
            layout,
            stage: Stage::Order(0, 0),
            network,
            order,
            keys: Vec::new(),
            swaps: Vec::new(),
            ordered: Bit::ONE,
            flags: Vec::new(),
            totals: widths.into_iter().map(|width| Uint::constant(0, width)).collect(),
        }
    }

    fn prefix(&self, key: &Uint) -> Uint {
        key.slice(KEY_BITS - self.layout.prefix..KEY_BITS)
    }

    fn ascends(&mut self, b: &mut Builder, side: usize, from: usize) -> Stage {
        let size = self.layout.sizes[side];
        if from + 1 >= size {
            return if side == 0 { Stage::Order(1, 0) } else { Stage::Merge(0) };
        }
        let (start, end) = (side * self.layout.sizes[0] + from, size.min(from + NEIGHBOURS + 1) - from);
        let prefixes: Vec<Uint> = self.keys[start..start + end].iter().map(|key| self.prefix(key)).collect();
        let before = self.ordered;
        self.ordered = b.region(|b| {
            let ascend = b.component("ascending", &prefixes, |b, keys| {
                let less: Vec<Bit> = keys.windows(2).map(|pair| b.lt(&pair[0], &pair[1])).collect();
                vec![Uint::from_bits(vec![b.all(&less)])]
            });
            b.and(before, ascend[0].bits()[0])
        });
        b.discard_except(before, &self.ordered);
        Stage::Order(side, from + NEIGHBOURS)
    }

    fn exchange(&mut self, b: &mut Builder, from: usize) -> Stage {
        let Some(&(level, _)) = self.network.get(from) else { return Stage::Compare(0) };
        let chunk = self.network[from..].iter().take(COMPARATORS).take_while(|of| of.0 == level);
        let pairs: Vec<[usize; 2]> = chunk.map(|(_, pair)| pair.map(|place| place as usize)).collect();
        let before: Vec<Uint> = pairs.iter().flatten().map(|&place| self.keys[place].clone()).collect();
        let (prefix, back) = (self.layout.prefix, self.layout.adds_up());
        let high = KEY_BITS - prefix..KEY_BITS;
        let (keys, swaps) = b.region(|b| {
            let all = b.component("compare and exchange", &before, |b, keys| {
                let mut out = Vec::with_capacity(keys.len() / 2 * 3);
                for pair in keys.chunks(2) {
                    let swap = b.lt(&pair[1].slice(high.clone()), &pair[0].slice(high.clone()));
                    let differ = b.xor_bits(&pair[0], &pair[1]);
                    let moved = Uint::from_bits(differ.bits().iter().map(|&bit| b.and(bit, swap)).collect());
                    let [first, second] = [&pair[0], &pair[1]].map(|key| b.xor_bits(key, &moved));
                    out.extend([first, second, Uint::from_bits(vec![swap])]);
                }
                out
            });
            let swaps: Vec<Bit> = match back {
                true => all.chunks(3).map(|of| of[2].bits()[0]).collect(),
                false => Vec::new(),
            };
            let keys: Vec<Uint> = all.chunks(3).flat_map(|of| of[..2].to_vec()).collect();
            (keys, swaps)
        });
        b.discard(before);
        for (&place, key) in pairs.iter().flatten().zip(keys) {
            self.keys[place] = key;
        }
        self.swaps.extend(swaps);
        Stage::Merge(from + pairs.len())
    }

    fn compare(&mut self, b: &mut Builder, from: usize) -> Stage {
        if from + 1 >= self.order.len() {
            self.order_flags(b);
            return if self.layout.adds_up() { Stage::Back(self.network.len()) } else { Stage::End };
        }
        let places = &self.order[from..self.order.len().min(from + NEIGHBOURS + 1)];
        let keys: Vec<Uint> = places.iter().map(|&place| self.keys[place as usize].clone()).collect();
        let before = std::mem::take(&mut self.totals);
        let (flags, totals) = b.region(|b| {
            let equal = b.component("equal neighbours", &keys, |b, keys| {
                let equal = keys.windows(2).map(|pair| b.eq(&pair[0], &pair[1])).collect();
                vec![Uint::from_bits(equal)]
            });
            let flags = equal[0].bits().to_vec();
            if self.layout.adds_up() {
                return (flags, before.clone());
            }
            let count = b.count_ones(&flags).resize(before[0].width());
            (Vec::new(), vec![b.add(&before[0], &count)])
        });
        b.discard_except(before, &totals);
        self.totals = totals;
        self.flags.extend(flags);
        Stage::Compare(from + NEIGHBOURS)
    }

    /// Turns the flags of equal neighbours into those of common keys, by place. A key has one equal neighbour
    /// at most, as both lists ascend, or nothing is revealed.
    fn order_flags(&mut self, b: &mut Builder) {
        if !self.layout.adds_up() {
            return;
        }
        let equal = std::mem::take(&mut self.flags);
        let mut flags = vec![Bit::ZERO; self.order.len()];
        let common = b.region(|b| {
            let beside = |i: usize| equal.get(i).copied().unwrap_or(Bit::ZERO);
            let common = |i: usize| if i == 0 { beside(0) } else { b.xor(beside(i - 1), beside(i)) };
            (0..self.order.len()).map(common).collect::<Vec<Bit>>()
        });
        self.order.iter().zip(&common).for_each(|(&place, &flag)| flags[place as usize] = flag);
        self.flags = flags;
    }

    fn back(&mut self, b: &mut Builder, left: usize) -> Stage {
        if left == 0 {
            return Stage::Add(0);
        }
        let start = left.saturating_sub(BACK);
        let before = self.flags.clone();
        self.flags = b.region(|b| {
            let mut flags = before.clone();
            for ((_, pair), &swap) in self.network[start..left].iter().zip(&self.swaps[start..left]).rev() {
                let [x, y] = pair.map(|place| place as usize);
                let differ = b.xor(flags[x], flags[y]);
                let moved = b.and(differ, swap);
                (flags[x], flags[y]) = (b.xor(flags[x], moved), b.xor(flags[y], moved));
            }
            flags
        });
        b.discard_except(before, &self.flags);
        Stage::Back(start)
    }

    fn add(&mut self, b: &mut Builder, inputs: &[Uint], from: usize) -> Stage {
        let Layout { sizes, owner, .. } = self.layout;
        let (width, within) = (self.layout.number_bits(), self.layout.all_are_within());
        let span = Uint::constant(self.layout.bounds().span().into(), width);
        if from >= sizes[owner] {
            return Stage::End;
        }
        let (payload, first) = (self.layout.payload(owner), sizes[owner] * KEY_BITS);
        let end = sizes[owner].min(from + NEIGHBOURS);
        let numbers: Vec<Uint> = (from..end)
            .map(|key| inputs[owner].slice(first + key * payload..first + (key + 1) * payload))
            .collect();
        let start = owner * sizes[0];
        let flags = &self.flags[start + from..start + end];
        let before = std::mem::take(&mut self.totals);
        self.totals = b.region(|b| {
            let mut terms = vec![Vec::new(); before.len()];
            for (numbers, &flag) in numbers.iter().zip(flags) {
                let (sum, rest) = (numbers.slice(0..width), numbers.slice(width..payload));
                // Only what counts is added, so nothing can be added without being counted; what is above the
                // most, which a cheater alone enters, does neither.
                let has_rows = b.any(rest.bits());
                let fits = if within { Bit::ONE } else { b.le(&sum, &span) };
                let allowed = b.and(has_rows, fits);
                let counts = b.and(flag, allowed);
                let mut times = |number: &Uint| {
                    Uint::from_bits(number.bits().iter().map(|&bit| b.and(bit, counts)).collect())
                };
                terms[0].push(Uint::from_bits(vec![counts]));
                terms[1].push(times(&sum));
                if let Some(rows) = terms.get_mut(2) {
                    rows.push(times(&rest));
                }
            }
            let total = |(mut terms, before): (Vec<Uint>, &Uint)| {
                terms.push(before.clone());
                b.sum(&terms, before.width())
            };
            terms.into_iter().zip(&before).map(total).collect::<Vec<Uint>>()
        });
        b.discard_except(before, &self.totals);
        Stage::Add(end)
    }

    /// What is opened: the count, or the sum of what is above the least and as many times the least, and the
    /// rows.
    fn numbers(&self, b: &mut Builder) -> Vec<Uint> {
        let Layout { kind, .. } = self.layout;
        let [matches, above, rows @ ..] = &self.totals[..] else { return self.totals.clone() };
        let width = self.layout.sum_bits();
        let least = Uint::constant(self.layout.bounds().least().into(), width);
        let shift = b.mul(&matches.resize(width), &least);
        let sum = b.add(&above.resize(width), &shift);
        match (kind, rows) {
            (Kind::Mean, [rows]) => vec![sum, rows.clone()],
            (Kind::Mean, _) => {
                vec![sum, matches.resize(self.layout.rows_bits() + self.layout.matches_bits())]
            }
            _ => vec![sum],
        }
    }

    fn end(&self, b: &mut Builder) -> Vec<Uint> {
        let matches = &self.totals[0];
        let width = matches.width().max(64) + 1;
        let least = Uint::constant(self.layout.limits.min_matches.into(), width);
        let enough = b.le(&least, &matches.resize(width));
        let opens = b.and(self.ordered, enough);
        let numbers = self.numbers(b);
        let mut shown =
            |number: &Uint| Uint::from_bits(number.bits().iter().map(|&bit| b.and(bit, opens)).collect());
        let numbers: Vec<Uint> = numbers.iter().map(&mut shown).collect();
        [self.ordered, opens].map(|bit| Uint::from_bits(vec![bit])).into_iter().chain(numbers).collect()
    }
}

impl Program for Aggregation {
    fn identity(&self) -> String {
        let Layout { sizes: [first, second], prefix, kind, owner, limits } = self.layout;
        let Limits { min_matches, bounds } = limits;
        let bounds = bounds.map(|bounds| (bounds.least(), bounds.most()));
        format!(
            "sorted {kind:?} of {first} and {second}, order {prefix}, owner {owner}, least {min_matches}, {bounds:?}"
        )
    }

    fn shape(&self) -> Shape {
        let inputs = [0, 1].map(|side| self.layout.input_bits(side) as u32).to_vec();
        Shape { inputs, outputs: self.layout.outputs() }
    }

    fn step(&mut self, b: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
        if self.keys.is_empty() {
            let key = |input: &Uint, at: usize| input.slice(at * KEY_BITS..(at + 1) * KEY_BITS);
            for (input, &size) in inputs.iter().zip(&self.layout.sizes) {
                self.keys.extend((0..size).map(|at| key(input, at)));
            }
        }
        self.stage = match self.stage {
            Stage::Order(side, from) => self.ascends(b, side, from),
            Stage::Merge(from) => self.exchange(b, from),
            Stage::Compare(from) => self.compare(b, from),
            Stage::Back(left) => self.back(b, left),
            Stage::Add(from) => self.add(b, inputs, from),
            Stage::End => return Some(self.end(b)),
        };
        None
    }
}
