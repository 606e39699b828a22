//! Programs of the Garble language, as `tacit eval` takes them.

use std::collections::BTreeMap;
use std::path::Path;
use tacit::catalogue::BATCH;
use tacit::crypto::BitVec;
use tacit::job::eval::{FileOptions, PROGRAM, load_program, load_with};
use tacit::lang::{Options, Program};
use tacit::net::shown as printable;
use tacit::two_pc::Prepared;
use tacit::two_pc::circuit::bristol::Bits;
use tacit::two_pc::circuit::named::Function;
use tacit::two_pc::circuit::{Circuit, Form};
use tacit::{Blame, Error, Result};

/// A function as both sides compare it: of a program its source too.
pub(crate) fn prepared(function: &Function, program: Option<&Program>) -> Result<Prepared> {
    let prepared = Prepared::from_function(function)?;
    Ok(match program {
        Some(program) => prepared.from_source(program.digest()),
        None => prepared,
    })
}

/// What a program leaves open.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// For a program: the function to evaluate (default: main)
    #[arg(long = "function", value_name = "FN")]
    entry: Option<String>,
    /// For a program or a circuit file: the garbler provides the first N inputs (default: half of them,
    /// rounded up). Must match on both sides
    #[arg(long, value_name = "N")]
    garbler_inputs: Option<usize>,
    /// For a program: the value of a constant PARTY::NAME; repeat it for more
    #[arg(long = "constant", value_name = "PARTY::NAME=VALUE", value_parser = constant)]
    constants: Vec<(String, String)>,
    /// For a circuit file: whether the lowest or the highest bit of a value has its first wire; must match on
    /// both sides
    #[arg(long, value_enum, default_value = "usual")]
    bits: BitsArg,
}

/// `--bits`, as the command line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum BitsArg {
    /// The lowest bit first
    Usual,
    /// The highest bit first, as in the old files of AES and SHA
    Reversed,
}

/// How the error for a missing constant begins; what to give follows.
const NO_VALUE: &str = "has no value; give ";

fn constant(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err("a constant is PARTY::NAME=VALUE".to_owned()),
    }
}

impl ProgramArgs {
    /// An error if options describe a function and none is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        let usual = self.entry.is_none()
            && self.garbler_inputs.is_none()
            && self.constants.is_empty()
            && self.bits == BitsArg::Usual;
        match usual {
            true => Ok(()),
            false => Err(Error::Usage(
                "--function, --garbler-inputs, --constant and --bits describe the function of --eval, which is missing"
                    .into(),
            )),
        }
    }

    /// The function of that name, or of a circuit's file with what it leaves open.
    pub(crate) fn circuit(&self, name: &str) -> Result<Function> {
        let bits = if self.bits == BitsArg::Reversed { Bits::Reversed } else { Bits::Usual };
        let options = FileOptions { garbler_inputs: self.garbler_inputs, bits };
        load_with(name, options).map_err(|error| match error.blame() {
            Blame::Usage if options == FileOptions::default() => {
                Error::Usage(format!("{error}; tacit eval --list shows the functions"))
            }
            _ => error,
        })
    }

    /// The circuit of few levels of the program in the file `name`, where `protocol` may take it.
    pub(crate) fn shallow(&self, name: &str, protocol: &str) -> Result<Option<Circuit>> {
        if protocol != BATCH.name {
            return Ok(None);
        }
        let program = self.load_in(name, Form::Shallow)?;
        Ok(program.map(|program| program.function().circuit.clone()))
    }

    /// The program in the file `name`, if it is called as one.
    pub(crate) fn load(&self, name: &str) -> Result<Option<Program>> {
        self.load_in(name, Form::Small)
    }

    fn load_in(&self, name: &str, form: Form) -> Result<Option<Program>> {
        if !name.ends_with(PROGRAM) {
            return match self.entry.is_some() || !self.constants.is_empty() {
                false => Ok(None),
                true => Err(Error::Usage(format!(
                    "--function and --constant are for programs, in files that end with {PROGRAM}"
                ))),
            };
        }
        if self.bits == BitsArg::Reversed {
            return Err(Error::Usage("--bits is for circuit files; a program's numbers have types".into()));
        }
        let mut constants = BTreeMap::new();
        for (name, value) in &self.constants {
            if constants.insert(name.clone(), value.clone()).is_some() {
                return Err(Error::Usage(format!("--constant {} is given twice", printable(name))));
            }
        }
        let entry = self.entry.clone().unwrap_or_else(|| Options::default().entry);
        let options = Options { entry, garbler: self.garbler_inputs, constants, form };
        let program = load_program(Path::new(name), &options).map_err(|error| match error {
            // The library knows no options.
            Error::Input(fault) => Error::Input(fault.replace(NO_VALUE, &format!("{NO_VALUE}--constant "))),
            other => other,
        })?;
        Ok(Some(program))
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
