//! Programs of the Garble language, as `tacit eval` takes them.

use std::collections::BTreeMap;
use std::path::Path;
use tacit::crypto::BitVec;
use tacit::job::eval::{PROGRAM, load_program};
use tacit::lang::{Options, Program};
use tacit::net::shown as printable;
use tacit::two_pc::circuit::named::Function;
use tacit::{Error, Result};

/// What a program leaves open.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// Of a program: the function to evaluate; main unless given
    #[arg(long = "function", value_name = "FN")]
    entry: Option<String>,
    /// Of a program: so many parameters, the first ones, are the garbler's; half of them, rounded up, unless
    /// given
    #[arg(long, value_name = "N")]
    garbler_inputs: Option<usize>,
    /// Of a program: what a constant PARTY::NAME is worth; may be given again for another
    #[arg(long = "constant", value_name = "PARTY::NAME=VALUE", value_parser = constant)]
    constants: Vec<(String, String)>,
}

fn constant(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err("a constant is PARTY::NAME=VALUE".to_owned()),
    }
}

impl ProgramArgs {
    /// The program in the file `name`, if it is called as one.
    pub(crate) fn load(&self, name: &str) -> Result<Option<Program>> {
        if !name.ends_with(PROGRAM) {
            let given = self.entry.is_some() || self.garbler_inputs.is_some() || !self.constants.is_empty();
            return match given {
                false => Ok(None),
                true => Err(Error::Usage(format!(
                    "--function, --garbler-inputs and --constant are for programs, in files that end with {PROGRAM}"
                ))),
            };
        }
        let mut constants = BTreeMap::new();
        for (name, value) in &self.constants {
            if constants.insert(name.clone(), value.clone()).is_some() {
                return Err(Error::Usage(format!("--constant {} is given twice", printable(name))));
            }
        }
        let entry = self.entry.clone().unwrap_or_else(|| Options::default().entry);
        load_program(Path::new(name), &Options { entry, garbler: self.garbler_inputs, constants }).map(Some)
    }
}

/// The program's function, called after its file and itself.
pub(crate) fn function(file: &str, program: &Program) -> Function {
    let function = program.function().clone();
    Function { name: format!("{file}:{}", function.name), ..function }
}

/// A row's result as a literal; what went wrong in its place, where something did.
pub(crate) fn shown(program: &Program, row: &[BitVec]) -> String {
    match &program.faults(row)[..] {
        [] => program.format(row),
        faults => fault(&faults.join(", ")),
    }
}

/// What stands in place of a result that went wrong.
pub(crate) fn fault(what: &str) -> String {
    format!("fault: {what}")
}
