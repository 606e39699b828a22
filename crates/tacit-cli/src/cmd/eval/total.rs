//! `tacit eval --batch --aggregate`: of all rows a sum or a count, made inside the protocol.

use super::batch::Table;
use super::{AggregateArg, Form};
use tacit::crypto::BitVec;
use tacit::lang::{Program, Type};
use tacit::two_pc::Prepared;
use tacit::two_pc::circuit::Aggregate;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::circuit::value::Format;
use tacit::{Error, Result};

impl From<AggregateArg> for Aggregate {
    fn from(which: AggregateArg) -> Self {
        match which {
            AggregateArg::Sum => Aggregate::Sum,
            AggregateArg::Count => Aggregate::Count,
        }
    }
}

/// Whether the results of a function, the program's if it is one, are signed whatever their field says. An
/// error if they are nothing that can be added up or counted.
pub(crate) fn is_signed(program: Option<&Program>) -> Result<bool> {
    match program.map(|program| program.output()) {
        None | Some(Type::Bool) => Ok(false),
        Some(Type::Number { signed, .. }) => Ok(*signed),
        Some(other) => Err(Error::Usage(format!(
            "--aggregate adds up numbers, and counts results that are true or not zero; this program's \
             result is {other}"
        ))),
    }
}

/// The function of all rows at once, and our one row of inputs.
pub(crate) struct Total {
    pub function: Function,
    pub prepared: Prepared,
    pub form: Form,
    pub rows: [Vec<BitVec>; 1],
}

impl Total {
    /// The aggregate of `function` over as many rows as the table has.
    pub(crate) fn new(which: AggregateArg, function: &Function, form: &Form, table: &Table) -> Result<Self> {
        let (which, rows) = (which.into(), table.rows().len());
        let signed = is_signed(form.program.as_ref())?;
        let all =
            function.over_rows(rows, which, signed).map_err(|e| Error::Usage(format!("--aggregate: {e}")))?;
        let prepared = Prepared::from_function(&all)?.from_rows_of(function, which, rows);
        let prepared = match &form.program {
            Some(program) => prepared.from_source(program.digest()),
            None => prepared,
        };
        let format = if form.program.is_some() { Format::Decimal } else { form.format };
        let form = Form { fields: all.outputs.clone(), format, program: None };
        Ok(Total { function: all, prepared, form, rows: [table.rows().concat()] })
    }
}
