//! `tacit eval --batch --aggregate`: of all rows a sum or a count, made inside the protocol.

use super::batch::Table;
use super::{AggregateArg, Form};
use tacit::crypto::BitVec;
use tacit::lang::Type;
use tacit::two_pc::Prepared;
use tacit::two_pc::circuit::Aggregate;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::circuit::value::Format;
use tacit::{Error, Result};

/// The function of all rows at once, and our one row of inputs.
pub struct Total {
    pub function: Function,
    pub prepared: Prepared,
    pub form: Form,
    pub rows: [Vec<BitVec>; 1],
}

impl Total {
    /// The aggregate of `function` over as many rows as the table has.
    pub fn new(which: AggregateArg, function: &Function, form: &Form, table: &Table) -> Result<Self> {
        let which = match which {
            AggregateArg::Sum => Aggregate::Sum,
            AggregateArg::Count => Aggregate::Count,
        };
        let signed = match form.program.as_ref().map(|program| program.output()) {
            None | Some(Type::Bool) => false,
            Some(Type::Number { signed, .. }) => *signed,
            Some(other) => {
                return Err(Error::Usage(format!(
                    "--aggregate adds up numbers, and counts what is true or not zero; this program's result is {other}"
                )));
            }
        };
        let all = function
            .over_rows(table.rows().len(), which, signed)
            .map_err(|e| Error::Usage(format!("--aggregate: {e}")))?;
        let prepared = Prepared::from_function(&all)?;
        let prepared = match &form.program {
            Some(program) => prepared.from_source(program.digest()),
            None => prepared,
        };
        let format = if form.program.is_some() { Format::Decimal } else { form.format };
        let form = Form { fields: all.outputs.clone(), format, program: None };
        Ok(Total { function: all, prepared, form, rows: [table.rows().concat()] })
    }
}
