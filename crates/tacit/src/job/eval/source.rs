//! Where functions come from: built in, a circuit's file, or a program's.

use crate::catalogue::functions;
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;
use tacit_2pc::circuit::LongFunction;
use tacit_2pc::circuit::bristol::{self, Bits};
use tacit_2pc::circuit::named::{self, Function};
use tacit_crypto::near::nearest;
use tacit_crypto::text::counted;
use tacit_data::file_id::open_fault;

/// The largest circuit or program that is read, in bytes.
const MAX_FILE: u64 = 1 << 31;

/// What a circuit's file leaves open; both sides must say the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FileOptions {
    /// How many of its inputs, the first ones, are the garbler's; `None`: half of them, rounded up.
    pub garbler_inputs: Option<usize>,
    /// The order of a value's bits.
    pub bits: Bits,
}

/// The function of that name, or of that file. An error if there is neither, or the file holds no circuit.
pub fn load(name: &str) -> Result<Function> {
    load_with(name, FileOptions::default())
}

/// As [`load`], of a file that leaves something open. An error of `options` for what is no file.
pub fn load_with(name: &str, options: FileOptions) -> Result<Function> {
    if options != FileOptions::default()
        && (named::find(name).is_some() || LongFunction::find(name).is_some())
    {
        return Err(Error::Usage(format!(
            "garbler-inputs and bits are for circuit files and programs, and {name} is built in; leave them out"
        )));
    }
    if let Some(function) = named::find(name) {
        return Ok(function);
    }
    if LongFunction::find(name).is_some() {
        return Err(Error::Usage(format!(
            "{name} is too large to hold as a circuit: it is made while it runs, in an evaluation of its own"
        )));
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(Error::Usage(format!(
            "{}: no function of that name and size, and no such file{}",
            tacit_net::shown(name),
            near_function(name)
        )));
    }
    let text = text_of(path, "reading the circuit")?;
    let circuit = bristol::read_with(&text, options.bits).map_err(|e| {
        let remedy = if name.ends_with(".rs") { RENAME } else { "" };
        Error::Input(format!("{}: {e}{remedy}", tacit_net::shown(name)))
    })?;
    let function = Function::from_circuit(name, circuit);
    let Some(garbler) = options.garbler_inputs else { return Ok(function) };
    let inputs = counted(function.owners().len(), "input");
    function.with_garbler_inputs(garbler).ok_or_else(|| Error::Parameter {
        name: "garbler-inputs",
        what: format!("{} has {inputs}; give no more than that", tacit_net::shown(name)),
    })
}

fn text_of(path: &Path, what: &'static str) -> Result<String> {
    let fault = |e| Error::file(path, what, e);
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| fault(open_fault(path, e)))?;
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(fault)?;
    if text.len() as u64 > MAX_FILE {
        return Err(Error::Input(format!(
            "{}: larger than {MAX_FILE} bytes",
            tacit_net::shown(&path.to_string_lossy())
        )));
    }
    Ok(text)
}

/// How files of programs end.
pub const PROGRAM: &str = ".garble.rs";
/// What is said of a file that may be a program and is not called as one.
const RENAME: &str = "; if it is a program, let its name end in .garble.rs";

/// The program in that file. An error names the file and the lines.
pub fn load_program(path: &Path, options: &tacit_lang::Options) -> Result<tacit_lang::Program> {
    let source = text_of(path, "reading the program")?;
    let fault = |e: tacit_lang::Error| {
        // What begins with its line goes on from the file's name.
        let joined = if e.faults.first().is_some_and(|fault| fault.line.is_some()) { "," } else { ":" };
        Error::Input(format!("{}{joined} {e}", tacit_net::shown(&path.to_string_lossy())))
    };
    tacit_lang::compile(&source, options).map_err(fault)
}

/// The function that is meant by a name of none, where one is near: its size is kept.
fn near_function(name: &str) -> String {
    let (stem, size) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    let whole = nearest(name, functions().map(|entry| entry.name)).map(str::to_owned);
    let sized = || {
        let near = nearest(stem, functions().filter(|entry| entry.size.is_some()).map(|entry| entry.name))?;
        Some(format!("{near}{size}")).filter(|name| named::stem(name).is_some())
    };
    let near = if size.is_empty() { whole } else { sized().or(whole) };
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
