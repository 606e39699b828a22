//! Questions with parameters: a text in which values are left open, what each may be, and whether a question is that text
//! with such values.
//!
//! A value that is asked for is read out of the asked question's canonical text, judged, and written into the template
//! anew; only if this gives the very same canonical text is the question one of the template's. So a value can be nothing
//! but a value, whatever it holds: a structure that differs from the template's shows in the text.

mod token;

use crate::fault::{Fault, Result, counted, fail, quoted};
use crate::part::Part;
use crate::plan::parse;
use crate::question::Question;
use crate::side::Side;
use crate::value::{self, Decimal, MOST_DIGITS};
use std::cmp::Ordering;
use std::fmt;
use token::{Token, placed, tokens};

/// Values that a parameter lists, at most.
const MOST_VALUES: usize = 1000;
/// Values of a list that are tried before any is asked with: each makes a question that is read.
const TRIED_VALUES: usize = 32;
/// Values of a list that are shown, and characters of each.
const SHOWN_VALUES: usize = 20;
const SHOWN_CHARACTERS: usize = 40;
/// Parameters of a template, at most.
const MOST_PARAMETERS: usize = 32;

/// A value that a text writes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Literal {
    Number(Decimal),
    /// Days since 1970-01-01.
    Date(i128),
    Text(String),
}

impl fmt::Display for Literal {
    /// As a question has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Number(number) => write!(f, "{number}"),
            Literal::Date(days) => write!(f, "DATE '{}'", value::date(*days)),
            Literal::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

impl Literal {
    /// How two values of one type compare.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Literal::Number(a), Literal::Number(b)) => a.compare(*b),
            (Literal::Date(a), Literal::Date(b)) => Some(a.cmp(b)),
            (Literal::Text(a), Literal::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// A value as messages show it.
fn shortened(value: &Literal) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// What a parameter's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Numbers with so many digits after the point, at most.
    Number(u8),
    Date,
    Text,
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "integer" => Some(Kind::Number(0)),
            "date" => Some(Kind::Date),
            "text" => Some(Kind::Text),
            _ => {
                let digits = name.strip_prefix("decimal")?;
                let scale = digits.parse::<u8>().ok().filter(|scale| (1..=MOST_DIGITS).contains(scale))?;
                (scale.to_string() == digits).then_some(Kind::Number(scale))
            }
        }
    }

    /// As [`named`](Self::named) has it.
    fn written(self) -> String {
        match self {
            Kind::Number(0) => "integer".to_owned(),
            Kind::Number(scale) => format!("decimal{scale}"),
            Kind::Date => "date".to_owned(),
            Kind::Text => "text".to_owned(),
        }
    }

    fn name(self) -> String {
        match self {
            Kind::Number(0) => "an integer".to_owned(),
            Kind::Number(1) => "a number with up to 1 digit after the point".to_owned(),
            Kind::Number(digits) => format!("a number with up to {digits} digits after the point"),
            Kind::Date => "a date".to_owned(),
            Kind::Text => "a text".to_owned(),
        }
    }

    /// Reads a value as a policy writes it: without quotes.
    fn read(self, text: &str) -> Option<Literal> {
        match self {
            Kind::Number(_) => Decimal::parse(text).map(Literal::Number),
            Kind::Date => value::days(text).map(Literal::Date),
            Kind::Text => Some(Literal::Text(text.to_owned())),
        }
        .filter(|literal| self.is_of(literal))
    }

    fn is_of(self, literal: &Literal) -> bool {
        match (self, literal) {
            (Kind::Number(digits), Literal::Number(number)) => number.scale <= digits,
            (Kind::Date, Literal::Date(_)) | (Kind::Text, Literal::Text(_)) => true,
            _ => false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Allowed {
    Values(Vec<Literal>),
    Bounds(Literal, Literal),
}

/// A value that a template leaves open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    name: String,
    kind: Kind,
    allowed: Allowed,
}

impl Parameter {
    /// Of values of the type `integer`, `decimal2` (with that many digits after the point), `date` or `text`: one of
    /// `values`, if there are any, or from the first to the second of `bounds`.
    ///
    /// # Errors
    ///
    /// A name or a type that cannot be, values that are not of the type, and neither values nor bounds, or both.
    pub fn new(name: &str, kind: &str, values: &[String], bounds: [Option<&str>; 2]) -> Result<Self> {
        let title = quoted(format!(":{name}"));
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return fail(format!("{title}: a parameter's name has letters, digits and _, a letter first"));
        }
        let Some(kind_of) = Kind::named(kind) else {
            return fail(format!(
                "{title}: there is no type {}; write integer, decimal2 (digits after the point), date or text",
                quoted(kind)
            ));
        };
        let read = |text: &str| {
            let wrong = || Fault::new(format!("{title}: {} is not {}", quoted(text), kind_of.name()));
            kind_of.read(text).ok_or_else(wrong)
        };
        let allowed = match (values, bounds) {
            ([], [Some(_), Some(_)]) if kind_of == Kind::Text => {
                return fail(format!("{title}: a text has no least and no most; list its `values`"));
            }
            ([], [Some(least), Some(most)]) => {
                let (least, most) = (read(least)?, read(most)?);
                if least.compare(&most).is_none_or(Ordering::is_gt) {
                    return fail(format!("{title}: `least` {least} is above `most` {most}; exchange them"));
                }
                Allowed::Bounds(least, most)
            }
            ([_, ..], [None, None]) if values.len() <= MOST_VALUES => {
                Allowed::Values(values.iter().map(|text| read(text)).collect::<Result<_>>()?)
            }
            ([_, ..], [None, None]) => {
                return fail(format!("{title}: more than {MOST_VALUES} values; give bounds, or fewer"));
            }
            _ => {
                return fail(format!(
                    "{title}: give what it may be, either as a list `values` or as `least` and `most`"
                ));
            }
        };
        Ok(Parameter { name: name.to_owned(), kind: kind_of, allowed })
    }

    /// Two values that it may have, as far apart as they are known.
    fn ends(&self) -> [&Literal; 2] {
        match &self.allowed {
            Allowed::Bounds(least, most) => [least, most],
            Allowed::Values(values) => {
                let first = &values[0];
                let other = values.iter().rev().find(|value| value.compare(first) != Some(Ordering::Equal));
                [first, other.unwrap_or(first)]
            }
        }
    }

    /// The first of the values that it may have, if they are listed; else the least and the most.
    fn known(&self) -> Vec<&Literal> {
        match &self.allowed {
            Allowed::Values(values) => values.iter().take(TRIED_VALUES).collect(),
            Allowed::Bounds(least, most) => vec![least, most],
        }
    }

    /// Whether a value is one of those that it may have.
    fn allows(&self, value: &Literal) -> bool {
        self.kind.is_of(value)
            && match &self.allowed {
                Allowed::Values(values) => {
                    values.iter().any(|other| other.compare(value) == Some(Ordering::Equal))
                }
                Allowed::Bounds(least, most) => {
                    least.compare(value).is_some_and(Ordering::is_le)
                        && value.compare(most).is_some_and(Ordering::is_le)
                }
            }
    }

    /// Its name, without the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its values, as [`new`](Self::new) takes it.
    pub fn kind_name(&self) -> String {
        self.kind.written()
    }

    /// Whether it has more than one value.
    pub fn is_open(&self) -> bool {
        let [first, other] = self.ends();
        first != other
    }

    /// What it may be, in words.
    pub fn words(&self) -> String {
        let may = match &self.allowed {
            Allowed::Bounds(least, most) => format!("from {least} to {most}"),
            Allowed::Values(values) => {
                let shown: Vec<String> = values.iter().take(SHOWN_VALUES).map(shortened).collect();
                let more = match values.len().saturating_sub(SHOWN_VALUES) {
                    0 => String::new(),
                    more => format!(" and {}", counted(more, "further value")),
                };
                format!("one of {}{more}", shown.join(", "))
            }
        };
        format!(":{} is {}, {may}", self.name, self.kind.name())
    }
}

/// A part of a template's text.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Text(String),
    /// The parameter of this index.
    Open(usize),
}

/// A question with parameters: `:name` in its text is the value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Template {
    text: String,
    parameters: Vec<Parameter>,
    pieces: Vec<Piece>,
    /// The canonical text of a question of it, in tokens, and which of them is which parameter.
    tokens: Vec<(Token, Option<usize>)>,
}

/// A text filled in, read.
struct Filled {
    tokens: Vec<Token>,
    values: Vec<Literal>,
}

impl Template {
    /// Reads a text with its parameters.
    ///
    /// # Errors
    ///
    /// A text that is no question with values that its parameters may have, a parameter that is not in the text or that
    /// is more than a value of the question, and one that the text has and nothing is said of.
    pub fn new(text: &str, parameters: Vec<Parameter>) -> Result<Self> {
        if parameters.len() > MOST_PARAMETERS {
            return fail(format!("a template has at most {MOST_PARAMETERS} parameters; give fewer"));
        }
        let pieces = pieces(text, &parameters)?;
        for (at, parameter) in parameters.iter().enumerate() {
            if !pieces.contains(&Piece::Open(at)) {
                let name = quoted(format!(":{}", parameter.name));
                return fail(format!("{name} is not in the text; write it where its value belongs"));
            }
        }
        let mut template = Template { text: text.to_owned(), parameters, pieces, tokens: Vec::new() };
        let ends = [0, 1].map(|end| template.filled(&template.all(end)));
        let mut slots: Vec<(usize, usize)> = Vec::new();
        for at in 0..template.parameters.len() {
            slots.extend(template.slots_of(at)?.into_iter().map(|token| (token, at)));
        }
        let mut found = None;
        let mut fault = None;
        for filled in ends {
            match filled {
                Ok(filled) => found = Some(template.checked(filled, &slots, found)?),
                Err(error) => fault = fault.or(Some(error)),
            }
        }
        match (found, fault) {
            (Some(tokens), _) => template.tokens = tokens,
            (None, Some(fault)) => return Err(fault),
            (None, None) => return fail("the template has no text; write a question"),
        }
        Ok(template)
    }

    /// Its canonical text, with `:name` for each parameter that has more than one value.
    pub fn form(&self) -> String {
        let Some(sample) = self.samples().into_iter().next() else { return self.text.clone() };
        let mut form = sample.text.clone();
        let slots = placed(&sample.text).into_iter().zip(&self.tokens);
        for ((_, place), (_, slot)) in slots.rev() {
            if let Some(at) = slot {
                form.replace_range(place, &format!(":{}", self.parameters[*at].name));
            }
        }
        form
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The questions of it with the least, or first, of each parameter's values, and with the most, or last, as far as
    /// they are questions; one at least.
    pub fn samples(&self) -> Vec<Question> {
        [0, 1].iter().filter_map(|end| parse(&self.written(&self.all(*end))).ok()).collect()
    }

    /// A parameter whose value changes what is asked about a row of a side beside whether the row passes that side's own
    /// filter: what it puts in, the numbers that it is compared or added up with, or what is shown. Conditions and groups of
    /// the other side's columns count for nothing: that side can put in what it likes anyway.
    pub fn changes_rows(&self, side: Side) -> Option<&Parameter> {
        let asked = |values: &[Literal]| parse(&self.written(values)).ok().map(|one| about(&one, side));
        self.parameters.iter().enumerate().find_map(|(at, parameter)| {
            let changes = |end: usize| {
                let one = asked(&self.all(end));
                one.is_some()
                    && parameter.known().into_iter().any(|value| {
                        let mut other = self.all(end);
                        other[at] = value.clone();
                        asked(&other).is_some_and(|two| Some(two) != one)
                    })
            };
            (changes(0) || changes(1)).then_some(parameter)
        })
    }

    /// Whether a question of this template asks the same about rows of a side as the template with its first values does,
    /// in the sense of [`changes_rows`](Self::changes_rows), which does not try all values between a least and a most, nor
    /// all of a long list.
    pub fn asks_alike(&self, question: &Question, side: Side) -> bool {
        let asked = about(question, side);
        self.samples().first().is_some_and(|sample| about(sample, side) == asked)
    }

    /// Whether a question is this template with some values: `None` if it is another question, and a fault if a value is
    /// not one of those that its parameter may have.
    pub fn matches(&self, question: &Question) -> Option<Result<()>> {
        let asked = tokens(&question.text);
        if asked.len() != self.tokens.len() {
            return None;
        }
        let mut values: Vec<Option<Literal>> = vec![None; self.parameters.len()];
        for (token, (expected, slot)) in asked.iter().zip(&self.tokens) {
            match slot {
                None if token == expected => {}
                None => return None,
                Some(at) => {
                    let value = token.literal()?;
                    match &values[*at] {
                        // A parameter has one value.
                        Some(other) if *other != value => return None,
                        _ => values[*at] = Some(value),
                    }
                }
            }
        }
        for (parameter, value) in self.parameters.iter().zip(&values) {
            if let Some(value) = value
                && !parameter.allows(value)
            {
                return Some(fail(format!("{}, and the question has {value}", parameter.words())));
            }
        }
        let values: Vec<Literal> = values
            .into_iter()
            .zip(&self.parameters)
            .map(|(value, parameter)| value.unwrap_or_else(|| parameter.ends()[0].clone()))
            .collect();
        // What was read of the question counts for nothing: what is made of the template anew does.
        let again = parse(&self.written(&values)).ok()?;
        (again.text == question.text).then_some(Ok(()))
    }

    /// One value for each parameter: the first or the second of its ends.
    fn all(&self, end: usize) -> Vec<Literal> {
        self.parameters.iter().map(|parameter| parameter.ends()[end].clone()).collect()
    }

    /// The text with these values. Blanks around them keep them from joining what is beside them.
    fn written(&self, values: &[Literal]) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Open(at) => format!(" {} ", values[*at]),
        });
        pieces.collect()
    }

    fn filled(&self, values: &[Literal]) -> Result<Filled> {
        let question = parse(&self.written(values))?;
        Ok(Filled { tokens: tokens(&question.text), values: values.to_vec() })
    }

    /// The tokens of the canonical text that change with a parameter; none of one that has a single value.
    fn slots_of(&self, at: usize) -> Result<Vec<usize>> {
        let parameter = &self.parameters[at];
        let ends = parameter.ends();
        if ends[0] == ends[1] {
            return Ok(Vec::new());
        }
        let mut fault = None;
        for end in [0, 1] {
            let mut other = self.all(end);
            other[at] = ends[1 - end].clone();
            let pair = self.filled(&self.all(end)).and_then(|one| Ok((one, self.filled(&other)?)));
            let (one, two) = match pair {
                Ok(pair) => pair,
                Err(error) => {
                    fault = fault.or(Some(error));
                    continue;
                }
            };
            let changed =
                (0..one.tokens.len()).filter(|token| two.tokens.get(*token) != one.tokens.get(*token));
            let changed: Vec<usize> = changed.collect();
            let is_value = |filled: &Filled, token: &usize| {
                filled.tokens.get(*token).and_then(Token::literal).as_ref() == Some(&filled.values[at])
            };
            let is_slot = |token: &usize| is_value(&one, token) && is_value(&two, token);
            if one.tokens.len() != two.tokens.len() || changed.is_empty() || !changed.iter().all(is_slot) {
                return fail(format!(
                    "{} is more than a value of the question, or has a sign before it; write it where a number, a text \
                     or a date is compared, listed or a bound",
                    quoted(format!(":{}", parameter.name))
                ));
            }
            return Ok(changed);
        }
        Err(fault.unwrap_or_else(|| Fault::new("the template has no text; write a question")))
    }

    /// The tokens of a filled text, each with its parameter, if the rest is what it was with other values.
    fn checked(
        &self,
        filled: Filled,
        slots: &[(usize, usize)],
        before: Option<Vec<(Token, Option<usize>)>>,
    ) -> Result<Vec<(Token, Option<usize>)>> {
        let Filled { tokens, values } = filled;
        let slot = |at: usize| slots.iter().find(|(token, _)| *token == at).map(|(_, parameter)| *parameter);
        let found: Vec<(Token, Option<usize>)> =
            tokens.into_iter().enumerate().map(|(at, token)| (token, slot(at))).collect();
        let is_value = |(token, slot): &(Token, Option<usize>)| {
            slot.is_none_or(|at| token.literal().as_ref() == Some(&values[at]))
        };
        let is_alike = before.is_none_or(|before| {
            before.len() == found.len()
                && before
                    .iter()
                    .zip(&found)
                    .all(|(one, two)| one.1 == two.1 && (one.1.is_some() || one.0 == two.0))
        });
        match found.iter().all(is_value) && is_alike {
            true => Ok(found),
            false => {
                fail("the values of the parameters change more than themselves; make a template of each form")
            }
        }
    }
}

/// Everything that a question computes of a row of a side, as text, but that side's own filter and the other side's
/// conditions and groups.
fn about(question: &Question, side: Side) -> String {
    let Question { text: _, tables: _, fields, filter, groups, measures, having, .. } = question;
    let Question { least, outputs, step, epsilon, noise, units, says_least, local, .. } = question;
    let seen = fields.iter().zip(&local.parts).map(|(field, part)| {
        let is_seen = field.side == side || matches!(part, Part::Number(..));
        (field.side, is_seen.then(|| (&field.kind, part.expr().text(&local.names))))
    });
    let sums = local.names.sums[side as usize].as_deref().map(|sums| sums.text(side));
    let joined = (filter, groups, measures, having, least);
    format!(
        "{:?}",
        (seen.collect::<Vec<_>>(), sums, joined, (outputs, step, epsilon, noise, units, says_least))
    )
}

/// The parts of a template's text: its parameters, and what is between them. What is in quotes, and in comments, names
/// none.
fn pieces(text: &str, parameters: &[Parameter]) -> Result<Vec<Piece>> {
    let (mut found, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            ':' if rest.starts_with("::") => 2,
            ':' => {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest[1..].find(|c| !is_of_name(c)).map_or(rest.len(), |end| end + 1);
                let name = &rest[1..end];
                let Some(at) = parameters.iter().position(|parameter| parameter.name == name) else {
                    let name = quoted(&rest[..end]);
                    return fail(format!(
                        "{name} is not a parameter that is described; describe what it may be"
                    ));
                };
                found.extend([Piece::Text(std::mem::take(&mut plain)), Piece::Open(at)]);
                rest = &rest[end..];
                continue;
            }
            c => c.len_utf8(),
        };
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.push(Piece::Text(plain));
    Ok(found)
}

#[cfg(test)]
mod tests;
