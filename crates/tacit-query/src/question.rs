//! What a question is once it has been read: its parts.

use crate::part::Local;
use crate::read::epsilon_text;
use crate::side::Side;

/// Bits of a row that a side puts in, at most.
pub const MOST_BITS: u32 = 128;

/// Groups that a question may have, at most.
pub const MOST_GROUPS: usize = 1024;

/// What a column is used for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Purpose {
    /// Rows are joined by it.
    Join,
    /// It decides which rows count.
    Filter,
    /// Rows are grouped by it: its values that the question lists are in the result.
    Group,
    /// Its numbers are added up, or the largest or smallest of them is in the result.
    Aggregate,
}

impl Purpose {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Purpose; 4] = [Purpose::Join, Purpose::Filter, Purpose::Group, Purpose::Aggregate];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
    }

    /// The word for it, as `--allow COL:USE` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Purpose::Join => "join",
            Purpose::Filter => "filter",
            Purpose::Group => "group",
            Purpose::Aggregate => "aggregate",
        }
    }
}

/// A column of a side, and what it is used for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Use {
    /// The column's name, without a type.
    pub column: String,
    /// What for.
    pub purpose: Purpose,
}

/// What a question uses of one side's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// What the text calls it.
    pub alias: String,
    /// The columns of the key, each with its type if it has one (`email:email`), in the order of the conditions of `ON`.
    pub key: Vec<String>,
    /// The columns whose cells [`Question::row`](crate::Question::row) takes, in this order, without types.
    pub columns: Vec<String>,
    /// Every column with what it is used for, ascending, each pair once.
    pub uses: Vec<Use>,
}

/// What a field holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A number from `least` to `most`, in units of 10^-scale: as many bits as `most - least` has, and after them one
    /// that says whether it is there. A null has zeros.
    Number {
        /// The least value.
        least: i128,
        /// The largest value.
        most: i128,
    },
    /// A truth value: a bit that says whether it is true, and one that says whether it is known.
    Truth,
    /// Which of a list of values: as many bits as the last index has.
    Code(Vec<Code>),
}

/// A value of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Code {
    /// Nothing.
    Null,
    /// A truth value.
    Truth(bool),
    /// A whole number.
    Integer(i128),
    /// Text; dates as `2026-11-28`, and decimals.
    Text(String),
}

/// What a side puts in for each of its rows: made of that side's columns alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Whose columns it is made of.
    pub side: Side,
    /// What it holds.
    pub kind: Kind,
}

impl Question {
    /// The least joined rows of a group in the result, after noise; `None` where every group is shown. SQL has no group
    /// without rows, but with noise it is not known which have some.
    pub fn shown_from(&self) -> Option<u64> {
        let least = self.least.max(u64::from(!self.groups.is_empty()));
        match self.epsilon {
            None => Some(least).filter(|least| *least > 0),
            Some(_) => self.says_least.then_some(self.least),
        }
    }

    /// What a measure of the result is rounded to multiples of, in its units.
    pub fn unit(&self, measure: usize) -> Option<i128> {
        self.units.get(measure).copied()
    }

    /// How far a column of the result is off by noise on average, in the column's unit; `None` without noise, of groups and
    /// of means.
    pub fn mean_noise(&self, output: &Output) -> Option<f64> {
        let (measure, scale) = match *output {
            Output::Count(measure) => (measure, 0),
            Output::Number { measure, scale } => (measure, scale),
            _ => return None,
        };
        let change = self.measures[measure].change(&self.fields)?;
        let numbers = self.measures.len() as f64;
        let rate = self.epsilon? as f64 / 1e6 / numbers / change as f64;
        // Twice the geometric series of z·e^(-rate·z), of which each z has (1 - e^-rate)/(1 + e^-rate).
        let mean = if change == 0 { 0.0 } else { 1.0 / rate.sinh() };
        Some(mean / 10f64.powi(scale.into()))
    }

    /// Whether a number of the result, or a condition on a group, is the smallest or largest of single rows.
    pub fn tells_of_one_row(&self) -> bool {
        self.measures.iter().any(|measure| matches!(measure, Measure::Min(_) | Measure::Max(_)))
    }

    /// The noise's epsilon as a text has it.
    pub fn epsilon_text(&self) -> Option<String> {
        self.epsilon.map(epsilon_text)
    }
}

impl Field {
    /// The bits that it takes.
    pub fn bits(&self) -> u32 {
        match &self.kind {
            Kind::Number { least, most } => width(most.abs_diff(*least)) + 1,
            Kind::Truth => 2,
            Kind::Code(values) => width(values.len().saturating_sub(1) as u128),
        }
    }
}

/// Bits of a number.
fn width(most: u128) -> u32 {
    u128::BITS - most.leading_zeros()
}

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
}

/// A number that is computed on shares: an integer, or null. The numbers of an expression have one unit.
///
/// Its leaves are fields of kind [`Kind::Number`] for what is computed of a row, and measures for what is computed of a
/// group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Number {
    /// The field, or the measure, of this index.
    Leaf(usize),
    /// A constant.
    Constant(i128),
    /// Nothing.
    Null,
    /// The negative of one.
    Negative(Box<Number>),
    /// The sum of two; nothing if one of them is.
    Add(Box<Number>, Box<Number>),
    /// The first less the second.
    Subtract(Box<Number>, Box<Number>),
    /// The product.
    Multiply(Box<Number>, Box<Number>),
    /// The first of these whose test is true; the last, if none is.
    Case(Vec<(Test, Number)>, Box<Number>),
    /// The first, or the second where that is nothing.
    Coalesce(Box<Number>, Box<Number>),
    /// The nearest number from the second to the third.
    Clip(Box<Number>, i128, i128),
    /// 1 if a test is true, 0 if it is false, and nothing if it is unknown.
    Truth(Box<Test>),
}

/// A condition inside: true, false, or unknown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Test {
    /// The field of this index, of kind [`Kind::Truth`].
    Field(usize),
    /// Always so.
    Constant(bool),
    /// Of two numbers; unknown if one of them is nothing.
    Compare(Comparison, Number, Number),
    /// Whether a number is nothing.
    IsNull(Number),
    /// Whether all are true: false if one is, unknown if one of the others is.
    All(Vec<Test>),
    /// Whether one is true.
    Any(Vec<Test>),
    /// The opposite.
    Not(Box<Test>),
}

/// What rows are grouped by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Its name in the result.
    pub name: String,
    /// The field, of kind [`Kind::Code`].
    pub field: usize,
}

/// What is computed of all joined rows of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// How many there are.
    Rows,
    /// How many have such a number.
    Count(Number),
    /// The sum of the numbers; nothing if no row has one.
    Sum(Number),
    /// The smallest; nothing if no row has one.
    Min(Number),
    /// The largest; nothing if no row has one.
    Max(Number),
}

/// A column of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// The value of a group, by its index.
    Group(usize),
    /// The measure of this index, a count.
    Count(usize),
    /// The measure of this index, in units of 10^-scale.
    Number {
        /// The measure.
        measure: usize,
        /// Digits after the point.
        scale: u8,
    },
    /// The measure of this index, days since 1970-01-01.
    Date(usize),
    /// The mean: the first measure over the second.
    Mean {
        /// The sum.
        sum: usize,
        /// How many were added up.
        count: usize,
        /// Digits after the point of the sum's unit.
        scale: u8,
    },
}

/// A question about the joined rows of two tables, read and planned.
#[derive(Clone, Debug)]
pub struct Question {
    /// The text in its canonical form, which both sides compare.
    pub text: String,
    /// What is used of each side's table, in the order of [`Side::BOTH`].
    pub tables: [Table; 2],
    /// What the sides put in.
    pub fields: Vec<Field>,
    /// What joined rows count must pass, of both sides' fields; what one side's columns say alone is that side's filter.
    pub filter: Option<Test>,
    /// What rows are grouped by, in order; without any, all rows are one group.
    pub groups: Vec<Group>,
    /// What is computed of each group.
    pub measures: Vec<Measure>,
    /// What a group must pass, whose leaves are measures, beside having the least number of rows.
    pub having: Option<Test>,
    /// The least number of joined rows of a group in the result.
    pub least: u64,
    /// The columns of the result and their names.
    pub outputs: Vec<(String, Output)>,
    /// What numbers of the result are rounded to multiples of, in the unit of each: of `ROUND TO`.
    pub step: Option<u64>,
    /// The differential privacy of the result for a key that is added or left out, in millionths: of `WITH NOISE`.
    pub epsilon: Option<u64>,
    /// With noise, for each measure the digits of the two numbers whose difference is added to it in each group: how many
    /// of the 2^64 words make a digit 1, lowest first. Without noise nothing.
    pub noise: Vec<Vec<u64>>,
    /// With `ROUND TO`, of each measure what it is rounded to multiples of, in its units.
    pub(crate) units: Vec<i128>,
    /// With noise, whether the text says how many rows a group has at least.
    pub(crate) says_least: bool,
    /// What the sides compute of their own rows.
    pub(crate) local: Local,
}
