//! Which columns of a table make which inputs of a function.

use super::{Error, Result};
use std::borrow::Cow;
use tacit_2pc::Owner;
use tacit_2pc::circuit::value::{Field, parse};
use tacit_crypto::BitVec;
use tacit_crypto::text::counted;
use tacit_data::values::fraction;
use tacit_lang::{Program, Type};
use tacit_net::shown;
use zeroize::Zeroizing;

/// What a side's inputs are, and so how they are read.
#[derive(Clone, Copy)]
pub enum Inputs<'a> {
    /// Numbers of these fields.
    Numbers(&'a [Field]),
    /// Literals of a program's parameters, of this side.
    Literals(&'a Program, Owner),
}

/// The columns called as the program's parameters are, or in place of a struct as its fields are, if there
/// are such for all; and how each parameter is spread over them.
pub fn called(program: &Program, role: Owner, names: &[&str]) -> Option<(Vec<String>, Vec<Share>)> {
    let find = |name: &str| {
        let mut found = names.iter().filter(|known| known.trim() == name);
        (found.next().is_some() && found.next().is_none()).then(|| name.to_owned())
    };
    let (mut columns, mut shares) = (Vec::new(), Vec::new());
    for (name, ty) in program.parameters(role) {
        match (find(name), ty) {
            (Some(column), _) => {
                columns.push(column);
                shares.push(Share::Whole);
            }
            (None, Type::Struct(_, parts)) => {
                for (part, _) in parts {
                    columns.push(find(part).or_else(|| find(&format!("{name}.{part}")))?);
                }
                shares.push(Share::Parts(parts.len()));
            }
            _ => return None,
        }
    }
    (!columns.is_empty()).then_some((columns, shares))
}

/// How an input is spread over columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// It stands in one.
    Whole,
    /// Each of so many values has one, or each part of a struct, a tuple or an array.
    Parts(usize),
}

impl Share {
    fn columns(self) -> usize {
        match self {
            Share::Whole => 1,
            Share::Parts(count) => count,
        }
    }
}

/// Which columns make which input.
pub struct Layout<'a> {
    inputs: Inputs<'a>,
    columns: &'a [usize],
    /// The columns' names where the user gave them. Those in the file are never shown: of a file without a
    /// header they are data.
    given: &'a [String],
    shares: Vec<Share>,
}

impl<'a> Layout<'a> {
    /// The layout of these `columns`, by their places in the table, of which the caller named those `given`.
    /// Errors if they are as many as neither the inputs are nor their parts.
    pub fn new(inputs: Inputs<'a>, columns: &'a [usize], given: &'a [String]) -> Result<Self> {
        // What each input is, and how many columns it may have besides one.
        let wanted: Vec<(String, usize)> = match inputs {
            Inputs::Numbers(fields) => fields
                .iter()
                .map(|field| match field.count {
                    1 => (format!("{} ({})", field.name, field.range()), 1),
                    count => (
                        format!(
                            "{} ({count}, each {})",
                            field.name,
                            field.range(),
                            count = counted(count, "value")
                        ),
                        count as usize,
                    ),
                })
                .collect(),
            Inputs::Literals(program, role) => program
                .parameters(role)
                .iter()
                .map(|(name, ty)| match ty {
                    Type::Struct(_, parts) => {
                        let names: Vec<&str> = parts.iter().map(|(part, _)| part.as_str()).collect();
                        (format!("{name} ({ty}, or its fields {})", names.join(", ")), parts.len())
                    }
                    Type::Tuple(parts) => (format!("{name} ({ty}, or its parts)"), parts.len()),
                    Type::Array(_, count) => {
                        (format!("{name} ({ty}, or its {count})", count = counted(count, "value")), *count)
                    }
                    _ => (format!("{name} ({ty})"), 1),
                })
                .collect(),
        };
        let parts = |count: usize| if count == 1 { Share::Whole } else { Share::Parts(count) };
        let shares = match columns.len() {
            n if n == wanted.len() => vec![Share::Whole; n],
            n if n == wanted.iter().map(|(_, count)| count).sum::<usize>() => {
                wanted.iter().map(|(_, count)| parts(*count)).collect()
            }
            n => {
                let wanted: Vec<String> = wanted.into_iter().map(|(what, _)| what).collect();
                let wanted = if wanted.is_empty() { "none".to_owned() } else { wanted.join(", ") };
                let what = match inputs {
                    // The caller has looked for columns of the parameters' names.
                    Inputs::Literals(..) if given.is_empty() => format!(
                        "not every input has a column of its name (inputs: {wanted}); name one column for each"
                    ),
                    _ => format!(
                        "the inputs {wanted} do not match {columns}; name one column for each input",
                        columns = counted(n, "column")
                    ),
                };
                return Err(Error::Parameter { name: "columns", what });
            }
        };
        Ok(Layout { inputs, columns, given, shares })
    }

    /// The layout of `columns` that [`called`] found by the names `given`.
    pub fn of(inputs: Inputs<'a>, columns: &'a [usize], given: &'a [String], shares: Vec<Share>) -> Self {
        Layout { inputs, columns, given, shares }
    }

    /// What the user calls the column that is read at `at`: its name if it was given, else its number from 1.
    fn name(&self, at: usize) -> String {
        match self.given.get(at) {
            Some(name) => format!("`{}`", shown(name)),
            None => (self.columns[at] + 1).to_string(),
        }
    }

    /// What is wrong with cells that are read from the column at `at`, and what to do about a fraction in one.
    fn wrong(&self, at: usize, what: &str, cells: &[&str]) -> String {
        let column = self.name(at);
        match cells.iter().find_map(|cell| fraction(cell)) {
            Some(remedy) => format!("column {column}: {}; {remedy}", what.split(';').next().unwrap_or(what)),
            None => format!("column {column}: {what}"),
        }
    }

    /// One row's inputs out of its cells, or what is wrong with them, without a cell.
    pub fn read(&self, cells: &[&str]) -> std::result::Result<Vec<BitVec>, String> {
        let (mut at, mut row) = (0, Vec::with_capacity(self.shares.len()));
        for (input, &share) in self.shares.iter().enumerate() {
            let columns = share.columns();
            row.push(match self.inputs {
                Inputs::Numbers(fields) => self.numbers(&fields[input], cells, at, columns)?,
                Inputs::Literals(program, role) => {
                    let split = share != Share::Whole;
                    let text = match &program.parameters(role)[input].1 {
                        Type::Struct(name, parts) if split => {
                            structure(name, parts, self.given.get(at..at + columns), &cells[at..])
                        }
                        Type::Tuple(parts) if split => {
                            sequence(["(", ")"], parts.iter(), &cells[at..at + columns])
                        }
                        Type::Array(each, _) if split => {
                            let parts = std::iter::repeat_n(&**each, columns);
                            sequence(["[", "]"], parts, &cells[at..at + columns])
                        }
                        ty => Zeroizing::new(literal(cells[at], ty).into_owned()),
                    };
                    program
                        .parse_one(role, input, &text)
                        .map_err(|e| self.wrong(at, &e.to_string(), &cells[at..at + columns]))?
                }
            });
            at += columns;
        }
        Ok(row)
    }

    /// The values of a field from its columns.
    fn numbers(
        &self,
        field: &Field,
        cells: &[&str],
        at: usize,
        columns: usize,
    ) -> std::result::Result<BitVec, String> {
        let one = Field { count: field.count / columns.max(1) as u32, ..*field };
        let mut bits = BitVec::zeros(field.bits() as usize);
        for column in 0..columns {
            let value = parse(&[one], number(cells[at + column], &one))
                .map_err(|e| self.wrong(at + column, &e.to_string(), &cells[at + column..=at + column]))?;
            let offset = column * one.bits() as usize;
            value.iter().flat_map(BitVec::iter).enumerate().for_each(|(i, bit)| bits.set(offset + i, bit));
        }
        Ok(bits)
    }
}

/// The literal of a struct whose fields stand in a column each: those called as the fields are, or else by
/// place, the fields in the order of their names.
fn structure(
    name: &str,
    parts: &[(String, Type)],
    given: Option<&[String]>,
    cells: &[&str],
) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(
        name.len()
            + parts.iter().zip(cells).map(|((part, _), cell)| part.len() + cell.len() + 4).sum::<usize>()
            + 8,
    ));
    text.push_str(name);
    text.push_str(" {");
    let called = |part: &String| {
        let is_part = |column: &String| column.trim().rsplit('.').next() == Some(part.as_str());
        given.and_then(|given| given.iter().position(is_part))
    };
    let all_called = parts.iter().all(|(part, _)| called(part).is_some());
    for (place, (part, ty)) in parts.iter().enumerate() {
        let cell = cells[if all_called { called(part).unwrap_or(place) } else { place }];
        for piece in [" ", part, ": ", &*literal(cell, ty), ","] {
            text.push_str(piece);
        }
    }
    text.push('}');
    text
}

/// The literal of a tuple or an array whose values stand in a column each.
fn sequence<'t>(
    [open, close]: [&str; 2],
    types: impl Iterator<Item = &'t Type>,
    cells: &[&str],
) -> Zeroizing<String> {
    // All at once: a text that grows leaves copies behind.
    let longest = cells.iter().map(|cell| cell.len().max(FALSE.len()) + 2).sum::<usize>() + 2;
    let mut text = Zeroizing::new(String::with_capacity(longest));
    text.push_str(open);
    for (ty, cell) in types.zip(cells) {
        text.push_str(&literal(cell, ty));
        text.push_str(", ");
    }
    text.push_str(close);
    text
}

const TRUE: &str = "true";
const FALSE: &str = "false";

/// A cell as the language writes it: of truth values, which every writer of tables spells in its own case.
fn literal<'c>(cell: &'c str, ty: &Type) -> Cow<'c, str> {
    match ty {
        Type::Bool if cell.trim().eq_ignore_ascii_case(TRUE) => TRUE.into(),
        Type::Bool if cell.trim().eq_ignore_ascii_case(FALSE) => FALSE.into(),
        _ => cell.into(),
    }
}

/// A cell as values are written: a truth value of one bit as 1 or 0, a list without its brackets.
fn number<'c>(cell: &'c str, field: &Field) -> &'c str {
    let text = cell.trim();
    if field.bits() == 1 && text.eq_ignore_ascii_case(TRUE) {
        return "1";
    }
    if field.bits() == 1 && text.eq_ignore_ascii_case(FALSE) {
        return "0";
    }
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(cell)
}
