//! Reads and writes literals of the language: `5`, `-3i32`, `true`, `[1, 2]`, `[0; 8]`, `(1, true)`,
//! `Bid { amount: 5, lot: 2 }`, `Plan::Basic`, `Plan::Paid(7)`.

use crate::types::{Type, tag_bits};
use tacit_crypto::BitVec;
use tacit_crypto::text::counted;

/// Why a text is no value of its type. Never shows the text: it is secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub struct LiteralError {
    /// What was being read: a parameter, or a part of it, as `bid.amount` or `slots[3]`.
    pub place: String,
    /// What was expected there.
    pub what: String,
}

type Result<T> = core::result::Result<T, LiteralError>;

/// Reads values of `types` from `text`, separated by commas.
pub(crate) fn parse(types: &[(&str, &Type)], text: &str) -> Result<Vec<BitVec>> {
    let mut reader = Reader { text, at: 0 };
    let mut values = Vec::with_capacity(types.len());
    for (i, (name, ty)) in types.iter().enumerate() {
        let given = types.len();
        if i > 0 && !reader.take(",") {
            let what = match reader.done() {
                true => format!(
                    "missing: {given} are expected, separated by commas, and {i} given",
                    given = counted(given, "value")
                ),
                false => "a comma is expected before it".to_owned(),
            };
            return Err(LiteralError { place: (*name).to_owned(), what });
        }
        let mut bits = BitVec::zeros(ty.bits());
        reader.value(&mut Target { bits: &mut bits, at: 0 }, ty, &mut (*name).to_owned())?;
        values.push(bits);
    }
    reader.take(",");
    match reader.done() {
        true => Ok(values),
        false => Err(LiteralError {
            place: types.last().map_or("the input", |(name, _)| name).to_owned(),
            what: match types.len() {
                0 => "this side has no parameters: give no input".to_owned(),
                n => format!("the input goes on after {n}; remove the rest", n = counted(n, "value")),
            },
        }),
    }
}

/// Where the next bit goes.
struct Target<'a> {
    bits: &'a mut BitVec,
    at: usize,
}

impl Target<'_> {
    fn push(&mut self, bit: bool) {
        self.bits.set(self.at, bit);
        self.at += 1;
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

fn error<T>(place: &str, what: impl Into<String>) -> Result<T> {
    Err(LiteralError { place: place.to_owned(), what: what.into() })
}

impl<'a> Reader<'a> {
    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn done(&mut self) -> bool {
        self.rest().is_empty()
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn expect(&mut self, sign: &str, place: &str, ty: &Type) -> Result<()> {
        match self.take(sign) {
            true => Ok(()),
            false => error(place, format!("`{sign}` is expected here, in a value of type {ty}")),
        }
    }

    /// A name or a number: letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn value(&mut self, target: &mut Target<'_>, ty: &Type, place: &mut String) -> Result<()> {
        match ty {
            Type::Bool => match self.word() {
                "true" => target.push(true),
                "false" => target.push(false),
                _ => return error(place, "true or false is expected"),
            },
            Type::Number { width, signed, name } => self.number(target, *width, *signed, name, place)?,
            Type::Array(each, count) => self.array(target, each, *count, ty, place)?,
            Type::Tuple(types) => {
                self.expect("(", place, ty)?;
                self.fields(target, types, ty, place)?;
            }
            Type::Struct(name, fields) => self.structure(target, name, fields, ty, place)?,
            Type::Enum(name, variants) => {
                let names = variants.iter().map(|(variant, _)| format!("{name}::{variant}"));
                let expected = format!("one of {} is expected", names.collect::<Vec<_>>().join(", "));
                let first = self.word();
                let word = if first == name && self.take("::") { self.word() } else { first };
                let Some(number) = variants.iter().position(|(variant, _)| variant == word) else {
                    return error(place, expected);
                };
                let end = target.at + ty.bits();
                (0..tag_bits(variants.len())).for_each(|bit| target.push(number >> bit & 1 == 1));
                if !variants[number].1.is_empty() {
                    self.expect("(", place, ty)?;
                    self.fields(target, &variants[number].1, ty, place)?;
                }
                target.at = end;
            }
        }
        Ok(())
    }

    /// What stands behind an opening parenthesis.
    fn fields(
        &mut self,
        target: &mut Target<'_>,
        types: &[Type],
        ty: &Type,
        place: &mut String,
    ) -> Result<()> {
        for (i, each) in types.iter().enumerate() {
            if i > 0 {
                self.expect(",", place, ty)?;
            }
            let length = place.len();
            place.push_str(&format!(".{i}"));
            self.value(target, each, place)?;
            place.truncate(length);
        }
        self.take(",");
        self.expect(")", place, ty)
    }

    fn array(
        &mut self,
        target: &mut Target<'_>,
        each: &Type,
        count: usize,
        ty: &Type,
        place: &mut String,
    ) -> Result<()> {
        self.expect("[", place, ty)?;
        let length = place.len();
        let start = target.at;
        for i in 0..count {
            if i > 0 && !self.take(",") {
                if i == 1 && self.take(";") {
                    return self.repeat(target, start, each, count, ty, place);
                }
                return error(
                    place,
                    format!("{count} are expected, and {i} given", count = counted(count, "value")),
                );
            }
            if self.rest().starts_with(']') {
                return error(
                    place,
                    format!("{count} are expected, and {i} given", count = counted(count, "value")),
                );
            }
            place.push_str(&format!("[{i}]"));
            self.value(target, each, place)?;
            place.truncate(length);
        }
        if count == 1 && self.take(";") {
            return self.repeat(target, start, each, count, ty, place);
        }
        self.take(",");
        match self.take("]") {
            true => Ok(()),
            false => {
                error(place, format!("{count} are expected, and more given", count = counted(count, "value")))
            }
        }
    }

    /// What stands behind the semicolon of `[value; count]`.
    fn repeat(
        &mut self,
        target: &mut Target<'_>,
        start: usize,
        each: &Type,
        count: usize,
        ty: &Type,
        place: &str,
    ) -> Result<()> {
        let given = self.word();
        if given.strip_suffix("usize").unwrap_or(given).parse() != Ok(count) {
            return error(
                place,
                format!("a value of type {ty} has {count}", count = counted(count, "value")),
            );
        }
        for i in target.at..start + count * each.bits() {
            let bit = target.bits.get(i - each.bits());
            target.bits.set(i, bit);
        }
        target.at = start + count * each.bits();
        self.expect("]", place, ty)
    }

    fn structure(
        &mut self,
        target: &mut Target<'_>,
        name: &str,
        fields: &[(String, Type)],
        ty: &Type,
        place: &mut String,
    ) -> Result<()> {
        if self.word() != name {
            return error(place, format!("{name} {{ … }} is expected"));
        }
        self.expect("{", place, ty)?;
        let start = target.at;
        let mut given = vec![false; fields.len()];
        for i in 0..fields.len() {
            if i > 0 && !self.take(",") {
                break;
            }
            if self.rest().starts_with('}') {
                break;
            }
            let word = self.word();
            let Some(number) = fields.iter().position(|(field, _)| field == word) else {
                return error(place, format!("{name} has the fields {}", names(fields)));
            };
            if std::mem::replace(&mut given[number], true) {
                return error(place, format!("{} is given twice", fields[number].0));
            }
            self.expect(":", place, ty)?;
            let length = place.len();
            place.push_str(&format!(".{}", fields[number].0));
            target.at = start + fields[..number].iter().map(|(_, ty)| ty.bits()).sum::<usize>();
            self.value(target, &fields[number].1, place)?;
            place.truncate(length);
        }
        self.take(",");
        if let Some(missing) = given.iter().position(|given| !given) {
            return error(place, format!("{} is missing", fields[missing].0));
        }
        target.at = start + ty.bits();
        self.expect("}", place, ty)
    }

    fn number(
        &mut self,
        target: &mut Target<'_>,
        width: usize,
        signed: bool,
        name: &str,
        place: &str,
    ) -> Result<()> {
        let (low, high) = match signed {
            true => (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1),
            false => (0, (1i128 << width) - 1),
        };
        let expected = format!("a number of type {name} is expected, {low} to {high}");
        let negative = self.take("-");
        let word = self.word();
        let word = word.strip_suffix(name).unwrap_or(word);
        let (radix, digits) = match word.strip_prefix("0x") {
            Some(digits) => (16, digits),
            None => (10, word),
        };
        let mut value = 0i128;
        for digit in digits.bytes().filter(|&c| c != b'_') {
            let Some(digit) = char::from(digit).to_digit(radix) else {
                return error(place, expected);
            };
            // Beyond every value that fits, and far from overflow.
            value = (value * i128::from(radix) + i128::from(digit)).min(1 << 65);
        }
        let value = if negative { -value } else { value };
        if !digits.bytes().any(|c| c != b'_') || !(low..=high).contains(&value) {
            return error(place, expected);
        }
        (0..width).for_each(|bit| target.push(value >> bit & 1 == 1));
        Ok(())
    }
}

fn names(fields: &[(String, Type)]) -> String {
    fields.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Writes the value of type `ty` that the bits from `at` on hold, as the language writes it. Bits that are no
/// variant of an enum are written `Name::?`.
pub(crate) fn format(ty: &Type, bit: &dyn Fn(usize) -> bool, at: usize) -> String {
    let list = |types: &mut dyn Iterator<Item = &Type>, start: usize| {
        let mut at = start;
        let each = types.map(|ty| {
            at += ty.bits();
            format(ty, bit, at - ty.bits())
        });
        each.collect::<Vec<_>>().join(", ")
    };
    match ty {
        Type::Bool => bit(at).to_string(),
        Type::Number { width, signed, .. } => number(*width, *signed, &|i| bit(at + i)).to_string(),
        Type::Array(each, count) => format!("[{}]", list(&mut (0..*count).map(|_| &**each), at)),
        Type::Tuple(types) => format!("({})", list(&mut types.iter(), at)),
        Type::Struct(name, fields) => {
            let mut at = at;
            let each = fields.iter().map(|(field, ty)| {
                at += ty.bits();
                format!("{field}: {}", format(ty, bit, at - ty.bits()))
            });
            format!("{name} {{ {} }}", each.collect::<Vec<_>>().join(", "))
        }
        Type::Enum(name, variants) => {
            let tag = tag_bits(variants.len());
            let number = (0..tag).map(|i| usize::from(bit(at + i)) << i).sum::<usize>();
            match variants.get(number) {
                None => format!("{name}::?"),
                Some((variant, types)) if types.is_empty() => format!("{name}::{variant}"),
                Some((variant, types)) => {
                    format!("{name}::{variant}({})", list(&mut types.iter(), at + tag))
                }
            }
        }
    }
}

/// A part of a result that stands for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// What it is called: `price`, `offer.price` where structs are nested, `result.0` of a tuple, `result` of
    /// a result without parts.
    pub name: String,
    /// Its type, neither struct nor tuple.
    pub ty: &'a Type,
    at: usize,
}

impl Part<'_> {
    /// Its value in `outputs`, as the language writes it. Panics if they are not the program's.
    pub fn format(&self, outputs: &[BitVec]) -> String {
        format(self.ty, &|at| outputs[0].get(at), self.at)
    }

    /// Its value in `outputs` if it is a number or a truth value. Panics if they are not the program's.
    pub fn number(&self, outputs: &[BitVec]) -> Option<i128> {
        let bit = |i: usize| outputs[0].get(self.at + i);
        match self.ty {
            Type::Bool => Some(i128::from(bit(0))),
            Type::Number { width, signed, .. } => Some(number(*width, *signed, &bit)),
            _ => None,
        }
    }

    /// Bytes of what [`format`](Self::format) writes, at most.
    pub fn longest(&self) -> usize {
        longest(self.ty)
    }
}

/// Appends the parts of a value of type `ty`, called `name` (of the whole result: nothing), whose bits begin
/// at `at`.
pub(crate) fn parts<'a>(ty: &'a Type, name: String, at: usize, out: &mut Vec<Part<'a>>) {
    const WHOLE: &str = "result";
    let whole = if name.is_empty() { WHOLE } else { &name };
    let mut start = at;
    let mut each = |name: String, ty: &'a Type| {
        parts(ty, name, start, out);
        start += ty.bits();
    };
    match ty {
        Type::Struct(_, fields) if name.is_empty() => {
            fields.iter().for_each(|(field, ty)| each(field.clone(), ty));
        }
        Type::Struct(_, fields) => fields.iter().for_each(|(field, ty)| each(format!("{name}.{field}"), ty)),
        Type::Tuple(types) => types.iter().enumerate().for_each(|(i, ty)| each(format!("{whole}.{i}"), ty)),
        _ => out.push(Part { name: whole.to_owned(), ty, at }),
    }
}

fn number(width: usize, signed: bool, bit: &dyn Fn(usize) -> bool) -> i128 {
    let value = (0..width).map(|i| i128::from(bit(i)) << i).sum::<i128>();
    if signed && bit(width - 1) { value - (1 << width) } else { value }
}

/// Bytes of what [`format`] writes, at most.
pub(crate) fn longest(ty: &Type) -> usize {
    let list = |types: &mut dyn Iterator<Item = &Type>| types.map(|ty| longest(ty) + 2).sum::<usize>();
    match ty {
        Type::Bool => 5,
        Type::Number { .. } => 20,
        Type::Array(each, count) => 2 + count * (longest(each) + 2),
        Type::Tuple(types) => 2 + list(&mut types.iter()),
        Type::Struct(name, fields) => {
            name.len() + 5 + fields.iter().map(|(name, ty)| name.len() + 4 + longest(ty)).sum::<usize>()
        }
        Type::Enum(name, variants) => {
            let each = variants.iter().map(|(variant, types)| variant.len() + 2 + list(&mut types.iter()));
            name.len() + 3 + each.max().unwrap_or(0)
        }
    }
}
