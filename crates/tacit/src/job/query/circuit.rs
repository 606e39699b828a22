//! A question as a fold: what is made of a row of two joined rows' shared blocks, and what is opened of all.
//!
//! A row that no key has in common holds noise, and so does one that a side's own filter leaves out: nothing of it
//! counts, because every part that a row makes is cut to zero by the row's own bit of its group.

use crate::job::psi::places::{bit, enough, gated};
use crate::{Error, Result};
use tacit_2pc::batch::fold::{Fold, Part};
use tacit_2pc::circuit::{Bit, Builder, Int, Integer, Uint};
use tacit_crypto::BitVec;
use tacit_crypto::text::counted;
use tacit_query::{COIN_BITS, Comparison, Kind, Measure, Number, Question, Side, Test};

/// Bits that a row makes, of all groups together, at most.
const MOST_ROW_BITS: u64 = 1 << 16;

/// A number inside, from the least to the most that it can be if it is there, and whether it is.
#[derive(Clone)]
struct Value {
    number: Int,
    range: (i128, i128),
    there: Bit,
}

impl Value {
    /// In as many bits as its range has, whatever form the circuit has: all of them are cut or extended to that.
    fn of(number: &Int, range: (i128, i128), there: Bit) -> Self {
        Value { number: number.resize(width(range)), range, there }
    }

    fn constant(value: i128, there: Bit) -> Self {
        Value::of(&Int::constant(value, i128::BITS as usize), (value, value), there)
    }
}

/// Bits of the numbers from the first to the second, in two's complement.
fn width((least, most): (i128, i128)) -> usize {
    let bits = |number: i128| i128::BITS - (if number < 0 { !number } else { number }).leading_zeros();
    bits(least).max(bits(most)) as usize + 1
}

/// What a test says: whether it is true, and whether it is false; neither where that is unknown.
#[derive(Clone, Copy)]
struct Truth {
    yes: Bit,
    no: Bit,
}

impl Truth {
    const UNKNOWN: Truth = Truth { yes: Bit::ZERO, no: Bit::ZERO };

    fn known(is: Bit) -> Self {
        Truth { yes: is, no: !is }
    }
}

/// What the leaves of an expression stand for.
struct Scope<'a> {
    value: &'a dyn Fn(&mut Builder, usize) -> Value,
    truth: &'a dyn Fn(&mut Builder, usize) -> Truth,
}

impl Scope<'_> {
    fn value(&self, b: &mut Builder, number: &Number) -> Value {
        match number {
            Number::Leaf(at) => (self.value)(b, *at),
            Number::Constant(value) => Value::constant(*value, Bit::ONE),
            Number::Null => Value::constant(0, Bit::ZERO),
            Number::Negative(of) => {
                let Value { number, range: (least, most), there } = self.value(b, of);
                let wide = number.resize(number.width() + 1);
                Value::of(&b.neg(&wide), (most.saturating_neg(), least.saturating_neg()), there)
            }
            Number::Add(left, right) => {
                let (x, y, there) = self.both(b, left, right);
                let range = (x.range.0.saturating_add(y.range.0), x.range.1.saturating_add(y.range.1));
                let (x, y) = (x.number.resize(width(range)), y.number.resize(width(range)));
                Value::of(&b.add(&x, &y), range, there)
            }
            Number::Subtract(left, right) => {
                let (x, y, there) = self.both(b, left, right);
                let range = (x.range.0.saturating_sub(y.range.1), x.range.1.saturating_sub(y.range.0));
                let (x, y) = (x.number.resize(width(range)), y.number.resize(width(range)));
                Value::of(&b.sub(&x, &y), range, there)
            }
            Number::Multiply(left, right) => {
                let (x, y, there) = self.both(b, left, right);
                let ends =
                    [x.range.0, x.range.1].map(|p| [y.range.0, y.range.1].map(|q| p.saturating_mul(q)));
                let ends = ends.as_flattened().iter().copied();
                let range =
                    ends.fold((i128::MAX, i128::MIN), |(least, most), end| (least.min(end), most.max(end)));
                Value::of(&b.mul_wide(&x.number, &y.number), range, there)
            }
            Number::Case(cases, otherwise) => {
                let mut found = self.value(b, otherwise);
                for (test, number) in cases.iter().rev() {
                    let (is, then) = (self.test(b, test).yes, self.value(b, number));
                    found = chosen(b, is, &then, &found);
                }
                found
            }
            Number::Coalesce(first, second) => {
                let (first, second) = (self.value(b, first), self.value(b, second));
                chosen(b, first.there, &first, &second)
            }
            Number::Truth(test) => {
                let Truth { yes, no } = self.test(b, test);
                let there = b.xor(yes, no);
                Value::of(&bit(yes).resize(2).as_int(), (0, 1), there)
            }
            Number::Clip(of, least, most) => {
                let Value { number, range, there } = self.value(b, of);
                let bits = width(range).max(width((*least, *most)));
                let [number, low, high] =
                    [number.resize(bits), Int::constant(*least, bits), Int::constant(*most, bits)];
                let number = b.max(&number, &low);
                Value::of(
                    &b.min(&number, &high),
                    (range.0.clamp(*least, *most), range.1.clamp(*least, *most)),
                    there,
                )
            }
        }
    }

    fn both(&self, b: &mut Builder, left: &Number, right: &Number) -> (Value, Value, Bit) {
        let (left, right) = (self.value(b, left), self.value(b, right));
        let there = b.and(left.there, right.there);
        (left, right, there)
    }

    fn test(&self, b: &mut Builder, test: &Test) -> Truth {
        match test {
            Test::Field(at) => (self.truth)(b, *at),
            Test::Constant(is) => Truth::known(Bit::constant(*is)),
            Test::Compare(how, left, right) => {
                let (x, y, there) = self.both(b, left, right);
                let bits = width(x.range).max(width(y.range));
                let (x, y) = (x.number.resize(bits), y.number.resize(bits));
                let is = match how {
                    Comparison::Equal => b.eq(&x, &y),
                    Comparison::Less => b.lt(&x, &y),
                    Comparison::AtMost => b.le(&x, &y),
                };
                let yes = b.and(is, there);
                Truth { yes, no: b.xor(yes, there) }
            }
            Test::IsNull(of) => Truth::known(!self.value(b, of).there),
            Test::All(tests) => {
                let (yes, no) = self.each(b, tests);
                Truth { yes: b.all(&yes), no: b.any(&no) }
            }
            Test::Any(tests) => {
                let (yes, no) = self.each(b, tests);
                Truth { yes: b.any(&yes), no: b.all(&no) }
            }
            Test::Not(of) => {
                let Truth { yes, no } = self.test(b, of);
                Truth { yes: no, no: yes }
            }
        }
    }

    fn each(&self, b: &mut Builder, tests: &[Test]) -> (Vec<Bit>, Vec<Bit>) {
        tests.iter().map(|test| self.test(b, test)).map(|Truth { yes, no }| (yes, no)).unzip()
    }
}

fn chosen(b: &mut Builder, is: Bit, then: &Value, otherwise: &Value) -> Value {
    let range = (then.range.0.min(otherwise.range.0), then.range.1.max(otherwise.range.1));
    let (x, y) = (then.number.resize(width(range)), otherwise.number.resize(width(range)));
    let there = b.mux_bit(is, then.there, otherwise.there);
    Value::of(&b.mux(is, &x, &y), range, there)
}

/// Whether a number of a row may be nothing.
fn is_nullable(number: &Number) -> bool {
    match number {
        Number::Leaf(_) | Number::Null | Number::Truth(_) => true,
        Number::Constant(_) => false,
        Number::Negative(of) | Number::Clip(of, ..) => is_nullable(of),
        Number::Add(left, right) | Number::Subtract(left, right) | Number::Multiply(left, right) => {
            is_nullable(left) || is_nullable(right)
        }
        Number::Case(cases, otherwise) => {
            is_nullable(otherwise) || cases.iter().any(|(_, number)| is_nullable(number))
        }
        Number::Coalesce(first, second) => is_nullable(first) && is_nullable(second),
    }
}

/// How a measure is made of what rows have, and read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// The number of the group's rows.
    Rows,
    /// The number of those with a value.
    Count,
    /// The sum of numbers of this range, some of which may be nothing.
    Sum { range: (i128, i128), sparse: bool },
    /// The largest of what the numbers of this range are above its least; or of what they are below its most, which
    /// gives the smallest.
    Extreme { range: (i128, i128), largest: bool },
}

impl How {
    fn is_signed(self) -> bool {
        matches!(self, How::Sum { range, .. } if range.0 < 0)
    }
}

/// A number in two's complement.
pub(super) fn signed(bits: &BitVec) -> i128 {
    let number = bits.iter().enumerate().fold(0_u128, |sum, (at, bit)| sum | u128::from(bit) << at);
    let unused = i128::BITS - bits.len() as u32;
    (number as i128) << unused >> unused
}

/// A measure of a group.
enum Total {
    /// As [`How::total`] has it.
    Exact(Uint, Bit),
    /// The number with its noise, which is always there.
    Noised(Value),
}

impl Total {
    fn whole(&self, b: &mut Builder, how: How) -> Value {
        match self {
            Total::Exact(number, there) => how.whole(b, &(number.clone(), *there)),
            Total::Noised(value) => value.clone(),
        }
    }
}

/// The coins of all groups' noise, in the order in which [`Question::answer`] has them.
struct Coins<'c> {
    bits: &'c Uint,
    used: usize,
}

impl Coins<'_> {
    /// A geometric number: its digits are independent.
    fn geometric(&mut self, b: &mut Builder, thresholds: &[u64]) -> Uint {
        let digits = thresholds.iter().map(|&words| {
            let word = self.bits.slice(self.used..self.used + COIN_BITS);
            self.used += COIN_BITS;
            b.lt(&word, &Uint::constant(words.into(), COIN_BITS))
        });
        Uint::from_bits(digits.collect())
    }

    /// A total, which is zero where there is none, with noise.
    fn added(&mut self, b: &mut Builder, total: &Value, thresholds: &[u64]) -> Value {
        let [added, subtracted] = [(); 2].map(|()| self.geometric(b, thresholds));
        let end = 1 << thresholds.len();
        let range = (total.range.0.min(0) - end, total.range.1.max(0) + end);
        let bits = width(range);
        let wide = |number: &Uint| number.resize(bits).as_int();
        let noise = b.sub(&wide(&added), &wide(&subtracted));
        Value::of(&b.add(&total.number.resize(bits), &noise), range, Bit::ONE)
    }
}

/// The nearest number of steps of `unit`, halves away from zero.
pub(super) fn steps(b: &mut Builder, number: &Int, unit: i128) -> Int {
    let size = b.abs(number);
    let bits = size.width() + 1;
    let size = b.add(&size.resize(bits), &Uint::constant(unit / 2, bits));
    let (factor, shift) = reciprocal(unit as u128, bits);
    let factor = Uint::constant(factor as i128, bits + 1);
    let product = b.mul_wide(&size, &factor);
    let count = product.slice(shift.min(product.width())..product.width());
    let count = count.resize(count.width() + 1).as_int();
    let negative = number.bits().last().copied().unwrap_or(Bit::ZERO);
    let minus = b.neg(&count);
    b.mux(negative, &minus, &count)
}

/// A factor and a shift that divide numbers of so many bits by `unit` (Granlund and Montgomery 1994, theorem 4.2): the
/// factor is 2^shift / unit, rounded up, and has a bit more than the numbers.
fn reciprocal(unit: u128, bits: usize) -> (u128, usize) {
    let shift = bits + (u128::BITS - (unit - 1).leading_zeros()) as usize;
    // 2^shift - 1 divided by the unit, and one more.
    let (mut rest, mut quotient) = (0, 0_u128);
    for _ in 0..shift {
        rest = rest << 1 | 1;
        let fits = rest >= unit;
        if fits {
            rest -= unit;
        }
        quotient = quotient << 1 | u128::from(fits);
    }
    (quotient + 1, shift)
}

/// What is shown of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Its index among the question's groups.
    pub group: usize,
    /// The value of each measure that the result has, in the order of [`Question::opened`]; nothing where there is none.
    pub values: Vec<Option<i128>>,
}

/// A question as circuits.
pub(super) struct Circuits<'q> {
    question: &'q Question,
    opened: Vec<usize>,
    hows: Vec<How>,
}

impl<'q> Circuits<'q> {
    pub(super) fn new(question: &'q Question) -> Self {
        let range = |number: &Number| {
            number.range(&|at| match question.fields.get(at).map(|field| &field.kind) {
                Some(Kind::Number { least, most }) => Some((*least, *most)),
                _ => None,
            })
        };
        let how = |measure: &Measure| match measure {
            Measure::Rows => How::Rows,
            Measure::Count(_) => How::Count,
            Measure::Sum(of) => How::Sum { range: range(of).unwrap_or((0, 0)), sparse: is_nullable(of) },
            Measure::Min(of) => How::Extreme { range: range(of).unwrap_or((0, 0)), largest: false },
            Measure::Max(of) => How::Extreme { range: range(of).unwrap_or((0, 0)), largest: true },
        };
        let hows = question.measures.iter().map(how).collect();
        Circuits { question, opened: question.opened(), hows }
    }

    /// An error where a row would make more bits, of all groups together, than are held for each row.
    pub(super) fn check(&self) -> Result<()> {
        let of = |how: &How| match how {
            How::Rows => 0,
            How::Count => 1,
            How::Sum { range, .. } => width(*range) as u64 + 1,
            How::Extreme { range, .. } => {
                u64::from(u128::BITS - range.1.abs_diff(range.0).leading_zeros()) + 1
            }
        };
        let group = 1 + self.hows.iter().map(of).sum::<u64>();
        let groups = self.question.group_count() as u64;
        match group.saturating_mul(groups) <= MOST_ROW_BITS {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "the question: {} of {} in each of {} are more than the {MOST_ROW_BITS} that fit; ask for fewer groups or \
                 numbers, or write narrower bounds",
                counted(self.hows.len() as u64, "number"),
                counted(group, "bit"),
                counted(groups, "group")
            ))),
        }
    }

    /// Bits of a row: both blocks, and whether there is a common key.
    pub(super) fn row_bits(&self) -> usize {
        Side::BOTH.iter().map(|&side| self.question.bits(side) as usize).sum::<usize>() + 1
    }

    /// The fold of so many places.
    pub(super) fn fold(&self, places: usize) -> Result<Fold> {
        let row = |b: &mut Builder, row: &Uint| self.row(b, row);
        let last = |b: &mut Builder, totals: &[Uint], coins: &Uint| self.last(b, totals, coins);
        Fold::with_coins(places, self.row_bits(), &row, self.coins(), &last).map_err(Error::from)
    }

    /// Bits that the noise of all groups is drawn from.
    pub(super) fn coins(&self) -> usize {
        let digits: usize = self.question.noise.iter().map(Vec::len).sum();
        2 * digits * COIN_BITS * self.question.group_count()
    }

    /// The bits of a field in a row.
    fn bits_of<'u>(&self, row: &'u Uint, field: usize) -> &'u [Bit] {
        let place = self.question.place(field);
        let from = match self.question.fields[field].side {
            Side::Ours => 0,
            Side::Theirs => self.question.bits(Side::Ours) as usize,
        };
        &row.bits()[from + place.start as usize..from + place.end as usize]
    }

    /// A field's number, whatever its side has put in: one outside the bounds counts as the nearer of them.
    fn number(&self, b: &mut Builder, row: &Uint, field: usize) -> Value {
        let bits = self.bits_of(row, field);
        let (Kind::Number { least, most }, Some((&there, bits))) =
            (&self.question.fields[field].kind, bits.split_last())
        else {
            return Value::constant(0, Bit::ZERO);
        };
        let room = most.abs_diff(*least);
        let mut above = Uint::from_bits(bits.to_vec());
        if !(room + 1).is_power_of_two() {
            above = b.min(&above, &Uint::constant(room as i128, bits.len()));
        }
        let range = (*least, *most);
        let bits = width(range).max(above.width() + 1);
        let number = b.add(&above.resize(bits).as_int(), &Int::constant(*least, bits));
        Value::of(&number, range, there)
    }

    /// A field's truth value: what is said to be true but not known is neither.
    fn truth(&self, b: &mut Builder, row: &Uint, field: usize) -> Truth {
        let &[yes, known] = self.bits_of(row, field) else { return Truth::UNKNOWN };
        let yes = b.and(yes, known);
        Truth { yes, no: b.xor(yes, known) }
    }

    /// Which group a row is of: a bit for each, none of which is set unless `counts` is.
    fn groups(&self, b: &mut Builder, row: &Uint, counts: Bit) -> Vec<Bit> {
        let mut all = vec![counts];
        for group in &self.question.groups {
            let Kind::Code(values) = &self.question.fields[group.field].kind else { continue };
            let code = self.bits_of(row, group.field);
            let mut next = Vec::with_capacity(all.len() * values.len());
            for one in all {
                // From the highest bit on; codes that no value has are not followed.
                let mut parts = vec![one];
                for (level, &bit) in code.iter().enumerate().rev() {
                    let mut halves = Vec::with_capacity(2 * parts.len());
                    for part in parts {
                        let high = b.and(part, bit);
                        halves.extend([b.xor(part, high), high]);
                    }
                    halves.truncate((values.len().saturating_sub(1) >> level) + 1);
                    parts = halves;
                }
                next.extend(parts);
            }
            all = next;
        }
        all
    }

    /// What a row makes of each group: whether it is in it, and what it adds to each measure.
    pub(super) fn row(&self, b: &mut Builder, row: &Uint) -> Vec<Part> {
        let question = self.question;
        let (value, truth) = (
            |b: &mut Builder, at: usize| self.number(b, row, at),
            |b: &mut Builder, at: usize| self.truth(b, row, at),
        );
        let scope = Scope { value: &value, truth: &truth };
        let passes = [0, question.bits(Side::Ours) as usize, self.row_bits() - 1].map(|at| row.bits()[at]);
        let mut counts = b.all(&passes);
        if let Some(filter) = &question.filter {
            let passes = scope.test(b, filter).yes;
            counts = b.and(counts, passes);
        }
        let values: Vec<Option<Value>> = question
            .measures
            .iter()
            .map(|measure| match measure {
                Measure::Rows => None,
                Measure::Count(of) | Measure::Sum(of) | Measure::Min(of) | Measure::Max(of) => {
                    Some(scope.value(b, of))
                }
            })
            .collect();
        // What is kept of an extreme is the same for all groups.
        let values: Vec<Option<(Uint, Bit)>> = values
            .into_iter()
            .zip(&self.hows)
            .map(|(value, how)| value.map(|value| (how.addend(b, &value), value.there)))
            .collect();
        let mut parts = Vec::new();
        for here in self.groups(b, row, counts) {
            parts.push(Part::Sum(bit(here)));
            for (how, value) in self.hows.iter().zip(&values) {
                let Some((number, there)) = value else { continue };
                let there = b.and(here, *there);
                match how {
                    How::Rows => {}
                    How::Count => parts.push(Part::Sum(bit(there))),
                    How::Sum { sparse, .. } => {
                        let number = gated(b, number, there);
                        parts.push(if how.is_signed() { Part::SignedSum(number) } else { Part::Sum(number) });
                        if *sparse {
                            parts.push(Part::Sum(bit(there)));
                        }
                    }
                    How::Extreme { .. } => {
                        let number = gated(b, number, there);
                        parts.push(Part::Largest(Uint::concat(&number, &bit(there))));
                    }
                }
            }
        }
        parts
    }

    /// What is opened of all totals: of each group whether it is shown, and then of each measure that the result has
    /// whether there is one and what it is, all of it zero unless it is there.
    pub(super) fn last(&self, b: &mut Builder, totals: &[Uint], coins: &Uint) -> Vec<Uint> {
        let question = self.question;
        let (mut totals, mut outputs) = (totals.iter(), Vec::new());
        let mut coins = Coins { bits: coins, used: 0 };
        for _ in 0..question.group_count() {
            let Some(rows) = totals.next() else { break };
            let mut values = Vec::with_capacity(self.hows.len());
            for (at, how) in self.hows.iter().enumerate() {
                let total = how.total(b, rows, &mut totals);
                values.push(match question.noise.get(at) {
                    None => Total::Exact(total.0, total.1),
                    Some(thresholds) => {
                        let whole = how.whole(b, &total);
                        Total::Noised(coins.added(b, &whole, thresholds))
                    }
                });
            }
            let mut shown = self.enough(b, rows, &values);
            if let Some(having) = &question.having {
                let value = |b: &mut Builder, at: usize| values[at].whole(b, self.hows[at]);
                let passes = Scope { value: &value, truth: &|_, _| Truth::UNKNOWN }.test(b, having).yes;
                shown = b.and(shown, passes);
            }
            outputs.push(bit(shown));
            for &measure in &self.opened {
                let (number, there) = self.shown_number(b, &values[measure], measure);
                let there = b.and(shown, there);
                outputs.push(bit(there));
                outputs.push(gated(b, &number, there));
            }
        }
        outputs
    }

    /// Whether a group has the least number of rows that are shown, by the number that has noise if there is some.
    fn enough(&self, b: &mut Builder, rows: &Uint, values: &[Total]) -> Bit {
        let Some(least) = self.question.shown_from() else { return Bit::ONE };
        match self.question.measures.iter().position(|measure| *measure == Measure::Rows) {
            Some(at) if let Total::Noised(rows) = &values[at] => {
                let bits = rows.number.width().max(u64::BITS as usize + 2);
                b.le(&Int::constant(least.into(), bits), &rows.number.resize(bits))
            }
            _ => enough(b, rows, least),
        }
    }

    /// What is opened of a measure if its group is shown, and whether there is one.
    fn shown_number(&self, b: &mut Builder, total: &Total, measure: usize) -> (Uint, Bit) {
        match (self.question.unit(measure), total) {
            (None, Total::Exact(number, there)) => (number.clone(), *there),
            (None, Total::Noised(value)) => (value.number.as_uint(), value.there),
            (Some(unit), total) => {
                let value = total.whole(b, self.hows[measure]);
                (steps(b, &value.number, unit).as_uint(), value.there)
            }
        }
    }

    /// Reads what [`last`](Self::last) opened.
    pub(super) fn read(&self, outputs: &[BitVec]) -> Vec<Shown> {
        let each = 1 + 2 * self.opened.len();
        let mut all = Vec::new();
        for (group, outputs) in outputs.chunks(each).enumerate() {
            let [shown, values @ ..] = outputs else { continue };
            if !shown.get(0) {
                continue;
            }
            let value = |(pair, &measure): (&[BitVec], &usize)| {
                let [there, number] = pair else { return None };
                there.get(0).then(|| match (self.question.unit(measure), self.question.noise.get(measure)) {
                    (None, None) => self.hows[measure].read(number),
                    (unit, _) => signed(number) * unit.unwrap_or(1),
                })
            };
            let values = values.chunks(2).zip(&self.opened).map(value).collect();
            all.push(Shown { group, values });
        }
        all
    }

    /// Bits that are opened.
    pub(super) fn opened_bits(&self, places: usize) -> u64 {
        let count = u64::from(usize::BITS - places.leading_zeros());
        let of = |measure: usize| {
            let bits = match self.hows[measure] {
                How::Rows | How::Count => count,
                how @ How::Sum { range, .. } => width(range) as u64 - u64::from(!how.is_signed()) + count,
                How::Extreme { range, .. } => {
                    u64::from(u128::BITS - range.1.abs_diff(range.0).leading_zeros())
                }
            };
            // A sign, and what noise can add; of steps the fewer bits.
            let noise = self.question.noise.get(measure).map_or(0, |digits| 2 + digits.len() as u64);
            let unit = self.question.unit(measure).map_or(0, |unit| u64::from(unit.ilog2()));
            (bits + noise + u64::from(unit > 0)).saturating_sub(unit).max(1)
        };
        let group = 1 + self.opened.iter().map(|&measure| 1 + of(measure)).sum::<u64>();
        group * self.question.group_count() as u64
    }
}

impl How {
    /// What a row's value adds.
    fn addend(self, b: &mut Builder, value: &Value) -> Uint {
        match self {
            How::Rows | How::Count => Uint::from_bits(Vec::new()),
            How::Sum { range, .. } => {
                // Numbers that cannot be negative need no sign.
                let bits = width(range) - usize::from(!self.is_signed());
                value.number.resize(bits).as_uint()
            }
            How::Extreme { range: (least, most), largest } => {
                let bits = width((least, most)) + 1;
                let edge = Int::constant(if largest { least } else { most }, bits);
                let number = value.number.resize(bits);
                let above = if largest { b.sub(&number, &edge) } else { b.sub(&edge, &number) };
                above.as_uint().resize((u128::BITS - most.abs_diff(least).leading_zeros()) as usize)
            }
        }
    }

    /// What is opened of a group with so many rows, and whether there is a value.
    fn total<'u>(
        self,
        b: &mut Builder,
        rows: &Uint,
        totals: &mut impl Iterator<Item = &'u Uint>,
    ) -> (Uint, Bit) {
        let mut next = || totals.next().cloned().unwrap_or_else(|| Uint::from_bits(Vec::new()));
        match self {
            How::Rows => (rows.clone(), Bit::ONE),
            How::Count => (next(), Bit::ONE),
            How::Sum { sparse, .. } => {
                let sum = next();
                // Of no rows there is no sum.
                let counted = if sparse { next() } else { rows.clone() };
                (sum, b.any(counted.bits()))
            }
            How::Extreme { .. } => {
                let mut bits = next().bits().to_vec();
                let there = bits.pop().unwrap_or(Bit::ZERO);
                (Uint::from_bits(bits), there)
            }
        }
    }

    /// A total as the number that it stands for.
    fn whole(self, b: &mut Builder, (total, there): &(Uint, Bit)) -> Value {
        let bits = total.width();
        let (below, above) = ((-1_i128) << bits.saturating_sub(1), (1_i128 << bits) - 1);
        match self {
            How::Sum { .. } if self.is_signed() => Value::of(&total.as_int(), (below, !below), *there),
            How::Extreme { range: (least, most), largest } => {
                let bits = width((least, most)).max(bits + 1) + 1;
                let edge = Int::constant(if largest { least } else { most }, bits);
                let total = total.resize(bits).as_int();
                let number = if largest { b.add(&edge, &total) } else { b.sub(&edge, &total) };
                Value::of(&number, (least, most), *there)
            }
            _ => Value::of(&total.resize(bits + 1).as_int(), (0, above), *there),
        }
    }

    /// What an opened total stands for.
    fn read(self, bits: &BitVec) -> i128 {
        let number =
            bits.iter().enumerate().fold(0_u128, |sum, (at, bit)| sum | u128::from(bit) << at) as i128;
        match self {
            How::Sum { .. } if self.is_signed() => signed(bits),
            How::Extreme { range: (least, _), largest: true } => least + number,
            How::Extreme { range: (_, most), largest: false } => most - number,
            _ => number,
        }
    }
}
