//! A question's answer of joined rows' blocks in the clear, and the cells of its result.

use crate::noise::drawn;
use crate::question::{Code, Comparison, Kind, Measure, Number, Output, Question, Test};
use crate::value::{self, Decimal};

/// A cell of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A truth value.
    Truth(bool),
    /// A whole number.
    Integer(i128),
    /// Text, a date such as `2026-11-28`, or an exact decimal such as `12.50`.
    Text(String),
}

/// Digits that a mean is shown with beyond those of what it is of.
const MEAN_DIGITS: u8 = 6;

impl Question {
    /// How many groups there may be: the product of how many values each has that rows are grouped by; 1 without any.
    pub fn group_count(&self) -> usize {
        self.groups.iter().map(|group| self.values(group.field).len()).product()
    }

    /// Which value of each of [`groups`](Question::groups) a group has. The last one's change fastest.
    pub fn group_codes(&self, group: usize) -> Vec<usize> {
        let mut rest = group;
        let mut codes = vec![0; self.groups.len()];
        for (code, group) in codes.iter_mut().zip(&self.groups).rev() {
            let count = self.values(group.field).len();
            (*code, rest) = (rest % count, rest / count);
        }
        codes
    }

    fn values(&self, field: usize) -> &[Code] {
        match &self.fields[field].kind {
            Kind::Code(values) => values,
            _ => &[Code::Null],
        }
    }

    /// The measures that the result shows, ascending.
    pub fn opened(&self) -> Vec<usize> {
        let shown = self.outputs.iter().flat_map(|(_, output)| match *output {
            Output::Group(_) => vec![],
            Output::Count(measure) | Output::Number { measure, .. } | Output::Date(measure) => vec![measure],
            Output::Mean { sum, count, .. } => vec![sum, count],
        });
        let mut shown: Vec<usize> = shown.collect();
        shown.sort_unstable();
        shown.dedup();
        shown
    }

    /// A row of the result: one cell for each of [`outputs`](Question::outputs), of a group's values of the
    /// [opened](Question::opened) measures in their order. A mean has six digits more than what it is of, and is rounded
    /// to the nearest, halves away from zero.
    pub fn render(&self, group: usize, values: &[Option<i128>]) -> Vec<Cell> {
        let (codes, opened) = (self.group_codes(group), self.opened());
        let value = |measure: usize| {
            let at = opened.binary_search(&measure).ok()?;
            values.get(at).copied().flatten()
        };
        let number = |units: i128, scale: u8| match scale {
            0 => Cell::Integer(units),
            scale => Cell::Text(Decimal { units, scale }.to_string()),
        };
        let cell = |output: &Output| match *output {
            Output::Group(at) => match &self.values(self.groups[at].field)[codes[at]] {
                Code::Null => Cell::Null,
                Code::Truth(value) => Cell::Truth(*value),
                Code::Integer(value) => Cell::Integer(*value),
                Code::Text(text) => Cell::Text(text.clone()),
            },
            Output::Count(measure) => value(measure).map_or(Cell::Null, Cell::Integer),
            Output::Number { measure, scale } => {
                value(measure).map_or(Cell::Null, |value| number(value, scale))
            }
            Output::Date(measure) => value(measure).map_or(Cell::Null, |days| Cell::Text(value::date(days))),
            Output::Mean { sum, count, scale } => match (value(sum), value(count)) {
                (Some(sum), Some(count)) if count > 0 => {
                    Cell::Text(Decimal { units: mean(sum, count), scale: scale + MEAN_DIGITS }.to_string())
                }
                _ => Cell::Null,
            },
        };
        self.outputs.iter().map(|(_, output)| cell(output)).collect()
    }

    /// The answer in the clear: of joined rows' blocks, those of `ours` first, the groups that the result has, ascending,
    /// each with the values of the [opened](Question::opened) measures. `coins` gives words of 64 uniform bits for the
    /// [noise](Question::noise), and is asked for none without it: of each group in order, of each measure, of the
    /// number that is added and then of the one that is subtracted, for each digit one.
    pub fn answer(
        &self,
        rows: &[[u128; 2]],
        coins: &mut dyn FnMut() -> u64,
    ) -> Vec<(usize, Vec<Option<i128>>)> {
        let mut groups: Vec<Vec<Tally>> =
            vec![vec![Tally::default(); self.measures.len() + 1]; self.group_count()];
        for row in rows {
            let row = Row { question: self, blocks: row };
            let passes = self.filter.as_ref().is_none_or(|filter| row.test(filter) == Some(true));
            if row.blocks.iter().all(|block| block & 1 == 1) && passes {
                let tallies = &mut groups[row.group()];
                for (tally, measure) in tallies.iter_mut().zip(&self.measures) {
                    match measure {
                        Measure::Rows => tally.add(Some(0)),
                        Measure::Count(x) | Measure::Sum(x) | Measure::Min(x) | Measure::Max(x) => {
                            tally.add(row.number(x));
                        }
                    }
                }
                if let Some(all) = tallies.last_mut() {
                    all.add(Some(0));
                }
            }
        }
        let opened = self.opened();
        let answered = groups.iter().enumerate().filter_map(|(at, tallies)| {
            let mut values: Vec<Option<i128>> =
                self.measures.iter().zip(tallies).map(|(m, tally)| tally.value(m)).collect();
            for (value, thresholds) in values.iter_mut().zip(&self.noise) {
                *value = Some(value.unwrap_or(0) + drawn(thresholds, coins));
            }
            let counted = self.measures.iter().position(|measure| *measure == Measure::Rows);
            let rows = match counted {
                Some(measure) => values[measure].unwrap_or(0),
                None => tallies.last().map_or(0, |all| all.count),
            };
            let values = Values(values);
            let least = self.shown_from();
            let passes = self.having.as_ref().is_none_or(|having| values.test(having) == Some(true));
            let shown = || opened.iter().map(|measure| self.rounded(*measure, values.0[*measure])).collect();
            (passes && least.is_none_or(|least| rows >= i128::from(least))).then(|| (at, shown()))
        });
        answered.collect()
    }
}

impl Question {
    /// The nearest multiple of the measure's unit, halves away from zero.
    fn rounded(&self, measure: usize, value: Option<i128>) -> Option<i128> {
        let (value, Some(unit)) = (value?, self.unit(measure)) else { return value };
        let steps = (value.abs() + unit / 2) / unit;
        Some(value.signum() * steps * unit)
    }
}

/// The sum over how many, to the nearest unit of six digits more.
fn mean(sum: i128, count: i128) -> i128 {
    let shifted = sum * 10i128.pow(MEAN_DIGITS.into());
    let (whole, rest) = (shifted / count, (shifted % count).abs());
    if rest * 2 >= count { whole + shifted.signum() } else { whole }
}

/// What has been seen of a measure.
#[derive(Clone, Default)]
struct Tally {
    count: i128,
    sum: i128,
    ends: Option<(i128, i128)>,
}

impl Tally {
    fn add(&mut self, number: Option<i128>) {
        if let Some(x) = number {
            self.count += 1;
            self.sum += x;
            self.ends = Some(self.ends.map_or((x, x), |(least, most)| (least.min(x), most.max(x))));
        }
    }

    fn value(&self, measure: &Measure) -> Option<i128> {
        match measure {
            Measure::Rows | Measure::Count(_) => Some(self.count),
            Measure::Sum(_) => self.ends.map(|_| self.sum),
            Measure::Min(_) => self.ends.map(|(least, _)| least),
            Measure::Max(_) => self.ends.map(|(_, most)| most),
        }
    }
}

/// What numbers and conditions are computed from.
trait Leaves {
    /// A number by its index; `None` if there is nothing.
    fn leaf(&self, at: usize) -> Option<i128>;
    /// A truth value by its index; `None` if it is unknown.
    fn truth(&self, at: usize) -> Option<bool>;

    fn number(&self, number: &Number) -> Option<i128> {
        match number {
            Number::Leaf(at) => self.leaf(*at),
            Number::Constant(value) => Some(*value),
            Number::Null => None,
            Number::Negative(x) => Some(-self.number(x)?),
            Number::Add(x, y) => Some(self.number(x)? + self.number(y)?),
            Number::Subtract(x, y) => Some(self.number(x)? - self.number(y)?),
            Number::Multiply(x, y) => Some(self.number(x)? * self.number(y)?),
            Number::Case(cases, last) => {
                let found = cases.iter().find(|(condition, _)| self.test(condition) == Some(true));
                self.number(found.map_or(last, |(_, result)| result))
            }
            Number::Truth(test) => self.test(test).map(i128::from),
            Number::Coalesce(x, y) => self.number(x).or_else(|| self.number(y)),
            Number::Clip(x, least, most) => Some(self.number(x)?.clamp(*least, *most)),
        }
    }

    fn test(&self, test: &Test) -> Option<bool> {
        match test {
            Test::Field(at) => self.truth(*at),
            Test::Constant(value) => Some(*value),
            Test::Compare(comparison, x, y) => {
                let (x, y) = (self.number(x)?, self.number(y)?);
                Some(match comparison {
                    Comparison::Equal => x == y,
                    Comparison::Less => x < y,
                    Comparison::AtMost => x <= y,
                })
            }
            Test::IsNull(x) => Some(self.number(x).is_none()),
            Test::All(all) => {
                let found: Vec<Option<bool>> = all.iter().map(|x| self.test(x)).collect();
                let is_false = found.contains(&Some(false));
                if is_false { Some(false) } else { (!found.contains(&None)).then_some(true) }
            }
            Test::Any(any) => {
                let found: Vec<Option<bool>> = any.iter().map(|x| self.test(x)).collect();
                let is_true = found.contains(&Some(true));
                if is_true { Some(true) } else { (!found.contains(&None)).then_some(false) }
            }
            Test::Not(x) => self.test(x).map(|x| !x),
        }
    }
}

/// The fields of a joined row.
struct Row<'a> {
    question: &'a Question,
    blocks: &'a [u128; 2],
}

impl Row<'_> {
    /// A field's bits.
    fn bits(&self, field: usize) -> u128 {
        let place = self.question.place(field);
        let block = self.blocks[self.question.fields[field].side as usize];
        match place.len() {
            0 => 0,
            len => block << (128 - place.end) >> (128 - len as u32),
        }
    }

    fn group(&self) -> usize {
        let groups = &self.question.groups;
        groups.iter().fold(0, |all, group| {
            all * self.question.values(group.field).len() + self.bits(group.field) as usize
        })
    }
}

impl Leaves for Row<'_> {
    fn leaf(&self, at: usize) -> Option<i128> {
        let field = &self.question.fields[at];
        let Kind::Number { least, .. } = field.kind else { return None };
        let (bits, there) = (self.bits(at), 1 << (field.bits() - 1));
        (bits & there != 0).then(|| least + (bits & !there) as i128)
    }

    fn truth(&self, at: usize) -> Option<bool> {
        let bits = self.bits(at);
        (bits & 0b10 != 0).then_some(bits & 1 != 0)
    }
}

/// The measures of a group.
struct Values(Vec<Option<i128>>);

impl Leaves for Values {
    fn leaf(&self, at: usize) -> Option<i128> {
        self.0[at]
    }

    fn truth(&self, _: usize) -> Option<bool> {
        None
    }
}
