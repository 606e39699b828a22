//! How outputs are written: as text, or as columns with types.

use super::{FormatArg, program};
use tacit::crypto::BitVec;
use tacit::data::values::{Kind, Value};
use tacit::job::eval::Rows;
use tacit::lang::{Program, Type};
use tacit::two_pc::circuit::named;
use tacit::two_pc::circuit::value::{self, Field, Format};

/// How outputs are written.
pub(crate) struct Form {
    pub fields: Vec<Field>,
    pub format: Format,
    pub program: Option<Program>,
}

impl Form {
    pub(crate) fn new(function: &named::Function, format: FormatArg, program: Option<Program>) -> Self {
        Self::of(&function.outputs, format, program)
    }

    /// Outputs of these fields.
    pub(crate) fn of(outputs: &[Field], format: FormatArg, program: Option<Program>) -> Self {
        let fields = format.fields(outputs);
        let format = if format == FormatArg::Hex { Format::Hex } else { Format::Decimal };
        Form { fields, format, program }
    }

    /// The names of what [`written`](Self::written) writes.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let written = if self.program.is_some() { 1 } else { self.fields.len() };
        self.fields[..written].iter().map(|field| field.name).collect()
    }

    /// The columns that a file of our rows gets: each of a type, or all of `text`.
    pub(crate) fn columns(&self, text: bool) -> Vec<(String, Kind)> {
        let text_or = |kind: Kind| if text { Kind::Text } else { kind };
        let Some(program) = &self.program else {
            let column = |field: &Field| (field.name.to_owned(), text_or(kind(field)));
            return self.fields.iter().map(column).collect();
        };
        let of = |ty: &Type| match ty {
            Type::Bool => Kind::Bool,
            Type::Number { width, signed, .. } => Kind::Integer { bits: *width as u32, signed: *signed },
            _ => Kind::Text,
        };
        let mut columns: Vec<_> =
            program.parts().into_iter().map(|part| (part.name.clone(), text_or(of(part.ty)))).collect();
        // In text the fault stands in place of the result.
        if !text && program.can_fail() {
            columns.push(("fault".to_owned(), Kind::Text));
        }
        columns
    }

    /// A row's cells of [`columns`](Self::columns).
    pub(crate) fn cells(&self, row: &[BitVec], text: bool) -> Vec<Value> {
        let Some(program) = &self.program else {
            return self.fields.iter().zip(row).map(|(field, bits)| self.cell(field, bits, text)).collect();
        };
        let faults = program.faults(row).join(", ");
        let mut cells = Vec::new();
        for part in program.parts() {
            cells.push(match (faults.is_empty(), text, part.number(row)) {
                (false, true, _) => Value::Text(program::fault(&faults)),
                (false, false, _) => Value::Null,
                (true, false, Some(number)) if *part.ty == Type::Bool => Value::Bool(number == 1),
                (true, false, Some(number)) => Value::Integer(number),
                (true, ..) => Value::Text(part.format(row)),
            });
        }
        cells.push(if faults.is_empty() { Value::Null } else { Value::Text(faults) });
        cells.truncate(self.columns(text).len());
        cells
    }

    fn cell(&self, field: &Field, bits: &BitVec, text: bool) -> Value {
        match kind(field) {
            Kind::Bool if !text => Value::Bool(bits.get(0)),
            Kind::Integer { .. } if !text => {
                let number = value::format(field, bits, Format::Decimal).parse();
                number.map_or(Value::Null, Value::Integer)
            }
            _ => Value::Text(value::format(field, bits, self.format)),
        }
    }

    /// Bytes of a row's cells as text, at most.
    pub(crate) fn longest(&self) -> u64 {
        // A value is hex with 0x in front or a decimal with its sign, and a separator; a cell of several is
        // quoted.
        let cell = |field: &Field| 3 + u64::from(field.count) * (4 + u64::from(field.width).div_ceil(3));
        match &self.program {
            Some(program) => program.parts().iter().map(|part| part.longest() as u64 + 64).sum(),
            None => self.fields.iter().map(cell).sum(),
        }
    }

    pub(crate) fn written(&self, row: &[BitVec], format: Format) -> Vec<String> {
        if let Some(program) = &self.program {
            return vec![program::shown(program, row)];
        }
        self.fields.iter().zip(row).map(|(field, bits)| value::format(field, bits, format)).collect()
    }

    /// Each flag of the outputs, and of how many rows it is set.
    pub(crate) fn flags<'a>(&'a self, rows: &'a Rows) -> impl Iterator<Item = (&'static str, usize)> + 'a {
        let flags = self.fields.iter().enumerate().filter(|(_, field)| field.kind == value::Kind::Flag);
        flags.map(|(at, field)| {
            let set = |row: &&Vec<BitVec>| row.get(at).is_some_and(|bits| bits.iter().any(|bit| bit));
            (field.name, rows.iter().filter(set).count())
        })
    }
}

/// The type of a file's column of this field: 64 bits are the most that one has.
fn kind(field: &Field) -> Kind {
    match field {
        Field { kind: value::Kind::Flag, .. } => Kind::Bool,
        Field { count: 1, width: bits @ ..=64, kind, .. } => {
            Kind::Integer { bits: *bits, signed: *kind == value::Kind::Signed }
        }
        _ => Kind::Text,
    }
}
