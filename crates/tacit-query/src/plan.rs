//! From a question's expressions to its plan: what each side computes of its own rows, and what is left inside.

mod group;
mod lower;
mod noise;

use crate::fault::{Fault, Result, counted, fail, quoted};
use crate::local;
use crate::part::{Local, Part};
use crate::question::{
    Field, Group, Kind, MOST_BITS, MOST_GROUPS, Measure, Output, Purpose, Question, Table, Test, Use,
};
use crate::range::{BOUNDED_ROWS, TooWide, of_field};
use crate::read::{self, End, Read, bare_name};
use crate::side::Side;
use crate::tree::{Aggregate, Base, Expr, Names, Operator};
use crate::types::{self, check};
use std::collections::BTreeSet;

/// Reads a text as a question.
///
/// # Errors
///
/// One line that says what is wrong, quoting the part of the text, and what to write instead.
pub fn parse(text: &str) -> Result<Question> {
    let mut read = read::read(text)?;
    let truth = Some(Base::Truth);
    let outputs = read.outputs.iter().map(|(expr, _)| (expr, None));
    let groups = read.groups.iter().map(|expr| (expr, None));
    let conditions = read.filter.iter().chain(&read.having).map(|expr| (expr, truth));
    types::infer(&mut read.names, outputs.chain(groups).chain(conditions));
    let Read { names, keys, outputs, filter, groups, having, end } = read;
    let text =
        canonical(&names, &keys, &outputs, filter.as_ref(), &groups, having.as_ref()) + &end.to_string();
    for (condition, clause) in [(&filter, "WHERE"), (&having, "HAVING")] {
        if let Some(condition) = condition
            && let Some(base) = check(&names, condition)?.filter(|base| *base != Base::Truth)
        {
            return fail(format!("{clause} has {}, not a condition; compare it with something", base.name()));
        }
    }
    let mut planner = Planner { end, ..Planner::new(names) };
    planner.keys(&keys);
    let conjuncts = filter.map_or(vec![], conjuncts);
    let domains = planner.groups(&groups, &outputs, &conjuncts)?;
    planner.filters(conjuncts, &domains)?;
    let outputs = planner.outputs(&outputs, &groups)?;
    planner.having(having)?;
    planner.finish(text, &keys, outputs)
}

/// The text in its canonical form.
fn canonical(
    names: &Names,
    keys: &[Vec<String>; 2],
    outputs: &[(Expr, Option<String>)],
    filter: Option<&Expr>,
    groups: &[Expr],
    having: Option<&Expr>,
) -> String {
    let identifier = crate::tree::identifier;
    let selected = outputs.iter().map(|(expr, name)| match name {
        Some(name) => format!("{} AS {}", expr.text(names), identifier(name)),
        None => expr.text(names),
    });
    let [ours, theirs] = names.alias.each_ref().map(|alias| identifier(alias));
    let on = keys[0].iter().zip(&keys[1]);
    let on = on.map(|(a, b)| format!("{ours}.{} = {theirs}.{}", identifier(a), identifier(b)));
    let table = |side: Side| match &names.alias[side as usize] {
        alias if names.sums[side as usize].is_some() => {
            let sums = names.sums[side as usize].as_deref();
            format!("({}) {}", sums.map_or_else(String::new, |sums| sums.text(side)), identifier(alias))
        }
        alias if alias == side.name() => alias.clone(),
        alias => format!("{} {}", side.name(), identifier(alias)),
    };
    let mut text = format!(
        "SELECT {} FROM {} JOIN {} ON {}",
        selected.collect::<Vec<_>>().join(", "),
        table(Side::Ours),
        table(Side::Theirs),
        on.collect::<Vec<_>>().join(" AND ")
    );
    if let Some(filter) = filter {
        text.push_str(&format!(" WHERE {}", filter.text(names)));
    }
    if !groups.is_empty() {
        let groups: Vec<String> = groups.iter().map(|group| group.text(names)).collect();
        text.push_str(&format!(" GROUP BY {}", groups.join(", ")));
    }
    if let Some(having) = having {
        text.push_str(&format!(" HAVING {}", having.text(names)));
    }
    text
}

/// The conditions that a condition is all of.
fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::All(all) => all.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// What has been planned so far.
struct Planner {
    names: Names,
    fields: Vec<Field>,
    parts: Vec<Part>,
    filters: [Vec<Expr>; 2],
    filter: Option<Test>,
    groups: Vec<Group>,
    measures: Vec<Measure>,
    /// Digits after the point of each measure's unit.
    scales: Vec<u8>,
    having: Option<Test>,
    least: u64,
    says_least: bool,
    uses: [BTreeSet<Use>; 2],
    /// Numbers and conditions that may still be planned.
    left: usize,
    end: End,
}

/// Fields that a refusal lists.
const MOST_SHOWN: usize = 5;
/// Numbers and conditions that a question has inside, at most.
const MOST_PLANNED: usize = 50_000;

impl Planner {
    fn new(names: Names) -> Self {
        Planner {
            names,
            fields: vec![],
            parts: vec![],
            filters: [vec![], vec![]],
            filter: None,
            groups: vec![],
            measures: vec![],
            scales: vec![],
            having: None,
            least: 0,
            says_least: false,
            uses: [BTreeSet::new(), BTreeSet::new()],
            left: MOST_PLANNED,
            end: End::default(),
        }
    }

    fn keys(&mut self, keys: &[Vec<String>; 2]) {
        for ((uses, sums), columns) in self.uses.iter_mut().zip(&self.names.sums).zip(&self.names.columns) {
            let Some(sums) = sums else { continue };
            // Cells of a column that nothing uses are read too, and can be such that a run does not begin.
            let used: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let idle = sums.made.iter().filter(|(name, ..)| !used.contains(&name.as_str()));
            for expr in sums.filters.iter().chain(idle.map(|(_, expr, _)| expr)) {
                expr.columns(&mut |side, at| {
                    let column = sums.names.column(side, at).name.clone();
                    uses.insert(Use { column, purpose: Purpose::Filter });
                });
            }
        }
        for (uses, key) in self.uses.iter_mut().zip(keys) {
            let of_key = key.iter().map(|name| bare_name(name).to_owned());
            uses.extend(of_key.map(|column| Use { column, purpose: Purpose::Join }));
        }
    }

    /// Notes what the columns of an expression are used for.
    fn used(&mut self, expr: &Expr, purpose: Purpose) {
        let (names, uses) = (&self.names, &mut self.uses);
        expr.columns(&mut |side, at| {
            let uses = &mut uses[side as usize];
            let column = names.column(side, at);
            match names.sums[side as usize].as_deref().filter(|_| column.is_made) {
                None => drop(uses.insert(Use { column: column.name.clone(), purpose })),
                Some(sums) => uses
                    .extend(sums.columns_of(&column.name).into_iter().map(|column| Use { column, purpose })),
            }
        });
    }

    fn text(&self, expr: &Expr) -> String {
        quoted(expr.text(&self.names))
    }

    /// The refusal of an expression whose numbers may have too many bits.
    fn too_wide(&self, expr: &Expr) -> impl Fn(TooWide) -> Fault + use<> {
        let text = self.text(expr);
        move |TooWide| {
            Fault::new(format!(
                "{text} may leave 100 bits over {BOUNDED_ROWS} rows; write narrower bounds in CLIP, or fewer digits after \
                 the point"
            ))
        }
    }

    fn filters(&mut self, conjuncts: Vec<Expr>, domains: &[usize]) -> Result<()> {
        let mut inside = vec![];
        for (at, condition) in conjuncts.into_iter().enumerate() {
            if condition.has_aggregate() {
                return fail(format!(
                    "WHERE has an aggregate in {}; write it in HAVING",
                    self.text(&condition)
                ));
            }
            // What a group may be is not a use of its own: the result shows each of these groups.
            if !domains.contains(&at) {
                self.used(&condition, Purpose::Filter);
            }
            match condition.sides() {
                [true, true] => {
                    let test = self.row_test(&condition)?;
                    test.check(&|at| self.fields.get(at).and_then(of_field))
                        .map_err(self.too_wide(&condition))?;
                    inside.push(test);
                }
                [false, true] => self.filters[1].push(condition),
                [true, false] => self.filters[0].push(condition),
                [false, false] => {
                    let holds = local::truth(&condition, &[]);
                    if holds.map_err(|_| self.too_large(&condition))? != Some(true) {
                        self.filters.iter_mut().for_each(|filter| filter.push(Expr::Truth(false)));
                    }
                }
            }
        }
        self.filter = match inside.len() {
            0 => None,
            1 => inside.pop(),
            _ => Some(Test::All(inside)),
        };
        Ok(())
    }

    fn too_large(&self, expr: &Expr) -> Fault {
        Fault::new(format!("numbers in {} are too large; write smaller ones", self.text(expr)))
    }

    fn outputs(
        &mut self,
        outputs: &[(Expr, Option<String>)],
        groups: &[Expr],
    ) -> Result<Vec<(String, Output)>> {
        let distinct = group::distinct(groups);
        let mut made: Vec<(String, Output)> = vec![];
        for (expr, name) in outputs {
            check(&self.names, expr)?;
            let output = match distinct.iter().position(|group| *group == expr) {
                Some(at) => Output::Group(at),
                None => self.output(expr)?,
            };
            let name = name.clone().unwrap_or_else(|| self.default_name(expr));
            if made.iter().any(|(other, _)| *other == name) {
                return fail(format!(
                    "two columns of the result are called {}; write AS and another name behind one",
                    quoted(&name)
                ));
            }
            made.push((name, output));
        }
        Ok(made)
    }

    /// What a column of the result is called that the text gives no name.
    fn default_name(&self, expr: &Expr) -> String {
        match expr {
            Expr::Column(side, at) => self.names.column(*side, *at).name.clone(),
            other => other.text(&self.names),
        }
    }

    fn output(&mut self, expr: &Expr) -> Result<Output> {
        Ok(match expr {
            Expr::Rows | Expr::Keys(..) | Expr::Aggregate(Aggregate::Count, _) => {
                Output::Count(self.aggregate(expr)?.0)
            }
            Expr::Aggregate(Aggregate::Avg, x) => {
                let (sum, scale) = self.aggregate(&Expr::Aggregate(Aggregate::Sum, x.clone()))?;
                Output::Mean { sum, count: self.values_of(expr, x)?, scale }
            }
            Expr::Aggregate(_, x) => {
                let (measure, scale) = self.aggregate(expr)?;
                match check(&self.names, x)? {
                    Some(Base::Date) => Output::Date(measure),
                    _ => Output::Number { measure, scale },
                }
            }
            other if other.has_aggregate() => {
                return fail(format!(
                    "{} computes with aggregates; select them, and compute with the result",
                    self.text(other)
                ));
            }
            other => {
                return fail(format!(
                    "{} is neither an aggregate nor what rows are grouped by; write it in GROUP BY, or an aggregate \
                     of it",
                    self.text(other)
                ));
            }
        })
    }

    /// The measure that an aggregate is, and digits after the point of its unit.
    fn aggregate(&mut self, expr: &Expr) -> Result<(usize, u8)> {
        check(&self.names, expr)?;
        let (aggregate, x) = match expr {
            Expr::Aggregate(aggregate, x) => (*aggregate, x),
            _ => return Ok((self.measure(Measure::Rows, 0), 0)),
        };
        self.used(x, Purpose::Aggregate);
        if aggregate == Aggregate::Count {
            let measure = self.counted(x)?;
            return Ok((self.checked(expr, measure, 0)?, 0));
        }
        let (number, scale) = self.row_number(x)?;
        let measure = match aggregate {
            Aggregate::Min => Measure::Min(number),
            Aggregate::Max => Measure::Max(number),
            _ => Measure::Sum(number),
        };
        Ok((self.checked(expr, measure, scale)?, scale))
    }

    /// The measure of how many numbers a mean is of.
    fn values_of(&mut self, expr: &Expr, x: &Expr) -> Result<usize> {
        let (number, _) = self.row_number(x)?;
        self.checked(expr, Measure::Count(number), 0)
    }

    fn checked(&mut self, expr: &Expr, measure: Measure, scale: u8) -> Result<usize> {
        let leaf = |at: usize| self.fields.get(at).and_then(of_field);
        let number = match &measure {
            Measure::Rows => None,
            Measure::Count(x) | Measure::Sum(x) | Measure::Min(x) | Measure::Max(x) => Some(x),
        };
        let is_within = match number {
            Some(number) => number.check(&leaf).and(measure.fitting_range(&self.fields, BOUNDED_ROWS)),
            None => measure.fitting_range(&self.fields, BOUNDED_ROWS),
        };
        is_within.map_err(self.too_wide(expr))?;
        Ok(self.measure(measure, scale))
    }

    /// The index of a measure: equal ones are one, unless they are rounded in different units.
    fn measure(&mut self, measure: Measure, scale: u8) -> usize {
        let is_rounded = self.end.step.is_some();
        let mut known = self.measures.iter().zip(&self.scales);
        match known.position(|(other, unit)| *other == measure && (!is_rounded || *unit == scale)) {
            Some(at) => at,
            None => {
                self.measures.push(measure);
                self.scales.push(scale);
                self.measures.len() - 1
            }
        }
    }

    fn having(&mut self, having: Option<Expr>) -> Result<()> {
        if !self.groups.is_empty() {
            self.least = 1;
        }
        let mut tests = vec![];
        for condition in having.map_or(vec![], conjuncts) {
            // A number of rows that has noise can be negative.
            let least = least_rows(&condition).filter(|least| *least > 0 || self.end.epsilon.is_none());
            if let Some(least) = least {
                self.least = self.least.max(least);
                self.says_least = true;
                continue;
            }
            if self.end.epsilon.is_some() && condition.has_mean() {
                return fail(format!(
                    "{} compares a mean, whose noise has no bounds; compare the sum, or the number of rows",
                    self.text(&condition)
                ));
            }
            tests.push(self.group_test(&condition)?);
            let leaf =
                |at: usize| self.measures.get(at).and_then(|m: &Measure| m.range(&self.fields, BOUNDED_ROWS));
            if let Some(test) = tests.last() {
                test.check(&leaf).map_err(self.too_wide(&condition))?;
            }
        }
        // What decides whether a group is shown has the noise that is shown.
        if self.end.epsilon.is_some() && self.says_least {
            self.measure(Measure::Rows, 0);
        }
        self.having = match tests.len() {
            0 => None,
            1 => tests.pop(),
            _ => Some(Test::All(tests)),
        };
        Ok(())
    }

    fn finish(
        self,
        text: String,
        keys: &[Vec<String>; 2],
        outputs: Vec<(String, Output)>,
    ) -> Result<Question> {
        let groups = self.groups.iter().map(|group| match &self.fields[group.field].kind {
            Kind::Code(values) => values.len(),
            _ => 1,
        });
        let count = groups.fold(1usize, usize::saturating_mul);
        if count > MOST_GROUPS {
            return fail(format!(
                "the question has {}, and at most {MOST_GROUPS} can be asked; list fewer values",
                counted(count, "group")
            ));
        }
        let units = self.rounding(&outputs)?;
        let noise = self.noise(count)?;
        let Planner {
            names,
            fields,
            parts,
            filters,
            filter,
            groups,
            measures,
            having,
            least,
            says_least,
            uses,
            end,
            ..
        } = self;
        let [ours, theirs] = uses;
        let tables = [(Side::Ours, ours), (Side::Theirs, theirs)].map(|(side, uses)| Table {
            alias: names.alias[side as usize].clone(),
            key: keys[side as usize].clone(),
            columns: names.read(side).iter().map(|column| column.name.clone()).collect(),
            uses: uses.into_iter().collect(),
        });
        let local = Local { names, filters, parts };
        let question = Question {
            text,
            tables,
            fields,
            filter,
            groups,
            measures,
            having,
            least,
            outputs,
            step: end.step,
            epsilon: end.epsilon,
            noise,
            units,
            says_least,
            local,
        };
        for side in Side::BOTH {
            if question.bits(side) > MOST_BITS {
                return Err(too_many_bits(&question, side));
            }
        }
        Ok(question)
    }
}

/// The refusal of a question whose fields are too many for a side, with what each takes.
fn too_many_bits(question: &Question, side: Side) -> Fault {
    let fields = question.fields.iter().zip(&question.local.parts);
    let own = fields.filter(|(field, _)| field.side == side);
    let mut each: Vec<String> = own
        .map(|(field, part)| format!("{} {}", quoted(part.expr().text(&question.local.names)), field.bits()))
        .collect();
    let more = each.len().saturating_sub(MOST_SHOWN);
    each.truncate(MOST_SHOWN);
    if more > 0 {
        each.push(format!("and {more} more"));
    }
    Fault::new(format!(
        "what is computed of a row of {} takes {}, and {MOST_BITS} are the most ({}); write narrower bounds in \
         CLIP, or ask two questions",
        side.name(),
        counted(question.bits(side) as usize, "bit"),
        each.join(", ")
    ))
}

/// The least number of rows, if that is all that a condition asks for.
fn least_rows(condition: &Expr) -> Option<u64> {
    let Expr::Compare(operator, x, y) = condition else { return None };
    let (operator, number) = match (&**x, &**y) {
        (Expr::Rows | Expr::Keys(..), Expr::Number(number)) => (*operator, number),
        (Expr::Number(number), Expr::Rows | Expr::Keys(..)) => (operator.swapped(), number),
        _ => return None,
    };
    let number = number.at(0)?;
    let least = match operator {
        Operator::AtLeast => number,
        Operator::Greater => number.checked_add(1)?,
        _ => return None,
    };
    u64::try_from(least.max(0)).ok()
}
