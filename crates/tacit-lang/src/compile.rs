//! From a text to a function of two parties.

use crate::bounds;
use crate::constants;
use crate::error::Error;
use crate::literal::{self, LiteralError, Part};
use crate::lower::{FAULTS, Lower};
use crate::types::{Type, Types};
use garble_lang::TypedProgram;
use garble_lang::ast;
use garble_lang::ast::ConstExprEnum;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use tacit_2pc::Owner;
use tacit_2pc::circuit::named::Function;
use tacit_2pc::circuit::value::Field;
use tacit_2pc::circuit::{Bit, Builder, Form, Uint};
use tacit_crypto::BitVec;
use tacit_crypto::fence::fenced;
use tacit_crypto::transcript::Transcript;

/// Bytes of a program, at most.
const MAX_SOURCE: usize = 1 << 20;
/// What the language's parser may need for a program that nests so deep, and our lowering behind it.
const STACK: usize = 256 << 20;
/// Time for the language's own checks, which for some patterns grow without bound.
const CHECKING: Duration = Duration::from_secs(4);

/// What a program leaves open.
#[derive(Clone, Debug)]
pub struct Options {
    /// The function to evaluate.
    pub entry: String,
    /// Parameters that are the garbler's; `None`: the first half, rounded up.
    pub garbler: Option<usize>,
    /// The values of constants of the form `PARTY::NAME`, as literals.
    pub constants: BTreeMap<String, String>,
    /// The form of the circuit.
    pub form: Form,
}

impl Default for Options {
    fn default() -> Self {
        Options { entry: "main".to_owned(), garbler: None, constants: BTreeMap::new(), form: Form::Small }
    }
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    function: Function,
    parameters: Vec<(String, Type)>,
    output: Type,
    digest: [u8; 32],
}

impl Program {
    /// The circuit, and whose its inputs are.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// A hash of the source (whatever ends its lines), the function's name, the constants, and whose each
    /// parameter is.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The parameters of one party, with their types.
    pub fn parameters(&self, owner: Owner) -> &[(String, Type)] {
        let (garbler, evaluator) = self.parameters.split_at(self.function.garbler.len());
        match owner {
            Owner::Garbler => garbler,
            Owner::Evaluator => evaluator,
        }
    }

    /// The type of the result.
    pub fn output(&self) -> &Type {
        &self.output
    }

    /// Bytes of a result as a literal, at most.
    pub fn longest(&self) -> usize {
        literal::longest(&self.output)
    }

    /// Reads literals for all parameters of `owner`, separated by commas.
    pub fn parse(&self, owner: Owner, text: &str) -> Result<Vec<BitVec>, LiteralError> {
        let types: Vec<(&str, &Type)> =
            self.parameters(owner).iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        literal::parse(&types, text)
    }

    /// Reads one literal of `owner`'s parameter `index`. Panics if there is no such parameter.
    pub fn parse_one(&self, owner: Owner, index: usize, text: &str) -> Result<BitVec, LiteralError> {
        let (name, ty) = &self.parameters(owner)[index];
        Ok(literal::parse(&[(name, ty)], text)?.swap_remove(0))
    }

    /// The result as a literal; [`faults`](Self::faults) says whether it means anything.
    ///
    /// Panics if `outputs` are not the circuit's.
    pub fn format(&self, outputs: &[BitVec]) -> String {
        literal::format(&self.output, &|at| outputs[0].get(at), 0)
    }

    /// The parts of the result that stand for themselves: of structs and tuples each field, of all else the
    /// whole.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        literal::parts(&self.output, String::new(), 0, &mut parts);
        parts
    }

    /// Whether anything can go wrong; [`faults`](Self::faults) says of a result whether it did.
    pub fn can_fail(&self) -> bool {
        self.function.outputs.len() > 1
    }

    /// What went wrong, of what can: overflow, division by zero, index out of bounds.
    pub fn faults(&self, outputs: &[BitVec]) -> Vec<&'static str> {
        let flags = self.function.outputs.iter().zip(outputs).skip(1);
        flags.filter(|(_, bits)| bits.iter().any(|bit| bit)).map(|(field, _)| field.name).collect()
    }
}

/// Compiles a program. Errors name the line of the source where there is one.
///
/// Time and memory are bounded whatever the program says: the source's bytes, gates, steps, bits of a value
/// and depth are limited, and a program beyond a limit is an error.
pub fn compile(source: &str, options: &Options) -> Result<Program, Error> {
    if source.len() > MAX_SOURCE {
        return Err(Error::whole(format!("the program has more than {MAX_SOURCE} bytes")));
    }
    let plain = bounds::checked(source)?;
    let (told, heard) = mpsc::sync_channel(2);
    let (whole, options) = (source.to_owned(), options.clone());
    // On a stack of its own: both parser and lowering follow the program's nesting. Nobody waits for the end
    // of a thread that is given up: it has the program and nothing else.
    let thread = std::thread::Builder::new().stack_size(STACK);
    let run = move || {
        let compiled = fenced(|| {
            let program = check(&plain)?;
            let _ = told.send(None);
            lower(&program, &whole, &options)
        });
        let failed = |panicked| Err(Error::whole(format!("the Garble compiler failed here: {panicked}")));
        // Whoever has given up does not listen.
        let _ = told.send(Some(compiled.unwrap_or_else(failed)));
    };
    thread.spawn(run).map_err(|e| Error::whole(format!("no thread to compile on: {e}")))?;
    outcome(&heard, CHECKING)
}

/// What a thread tells: nothing once types and patterns are checked, for which it has so much time, and then what it
/// compiled.
type Told = Option<Result<Program, Error>>;

fn outcome(heard: &mpsc::Receiver<Told>, checking: Duration) -> Result<Program, Error> {
    let ended = || Error::whole("the Garble compiler ended without a result");
    match heard.recv_timeout(checking) {
        Ok(Some(compiled)) => compiled,
        Ok(None) => heard.recv().map_err(|_| ended())?.ok_or_else(ended)?,
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(ended()),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(Error::whole(format!(
            "the types and patterns take more than {} s to check; a match with many patterns for a tuple can cause this; use several matches",
            checking.as_secs()
        ))),
    }
}

/// Scans, parses and types a program without comments.
fn check(plain: &str) -> Result<TypedProgram, Error> {
    // The scanner counts a line's first token to the line before, unless a blank stands before it.
    garble_lang::check(&plain.replace('\n', "\n ")).map_err(Error::found)
}

fn lower(program: &TypedProgram, source: &str, options: &Options) -> Result<Program, Error> {
    let Some(entry) = program.fn_defs.get(&options.entry) else {
        let mut names: Vec<&str> =
            program.fn_defs.values().filter(|f| f.is_pub).map(|f| f.identifier.as_str()).collect();
        names.sort_unstable();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Error::whole(format!("there is no function {}; public ones: {there}", options.entry)));
    };
    let mut types = Types::new(program);
    let constants = constants_of(program, &mut types, options)?;
    let parameters = entry
        .params
        .iter()
        .map(|param| Ok((param.name.clone(), Type::clone(&*types.resolve(&param.ty, entry.meta)?))))
        .collect::<Result<Vec<_>, Error>>()?;
    let output = Type::clone(&*types.resolve(&entry.ty, entry.meta)?);
    let garbler = options.garbler.unwrap_or(parameters.len().div_ceil(2));
    if garbler > parameters.len() {
        return Err(Error::at(
            entry.meta,
            format!("{} has {} parameters, and {garbler} are the garbler's", options.entry, parameters.len()),
        ));
    }
    if output.bits() == 0 || parameters.iter().any(|(_, ty)| ty.bits() == 0) {
        return Err(Error::at(entry.meta, "a parameter or the result has no bits"));
    }
    let mut builder = Builder::with_form(options.form);
    let inputs: Vec<Uint> = parameters.iter().map(|(_, ty)| builder.input(ty.bits() as u32)).collect();
    let mut lowering = Lower::new(program, types, builder, constants);
    for ((name, _), input) in parameters.iter().zip(&inputs) {
        lowering.bind(name, Rc::new(input.bits().to_vec()));
    }
    let result = lowering.block(&entry.body)?;
    if result.len() != output.bits() {
        return Err(Error::at(entry.meta, format!("{} does not end with its result", options.entry)));
    }
    let (builder, faults) = lowering.end();
    let mut outputs = vec![Uint::from_bits(result.to_vec())];
    let mut fields = vec![Field::number("result", output.bits() as u32)];
    for (name, flag) in FAULTS.into_iter().zip(faults) {
        // What cannot happen has no flag.
        if flag.known() != Some(false) {
            outputs.push(Uint::from_bits(vec![flag]));
            fields.push(Field::flag(name));
        }
    }
    let circuit = builder.finish(&outputs).map_err(|e| Error::whole(format!("no circuit: {e}")))?;
    let input = |(_, ty): &(String, Type)| Field::number("input", ty.bits() as u32);
    let function = Function {
        name: options.entry.clone(),
        about: "a program",
        circuit,
        garbler: parameters[..garbler].iter().map(input).collect(),
        evaluator: parameters[garbler..].iter().map(input).collect(),
        outputs: fields,
    };
    Ok(Program { function, parameters, output, digest: digest(source, garbler, options) })
}

fn digest(source: &str, garbler: usize, options: &Options) -> [u8; 32] {
    let mut transcript = Transcript::new("tacit program v1");
    transcript.append("source", source.replace("\r\n", "\n").as_bytes());
    transcript.append("entry", options.entry.as_bytes());
    transcript.append_u64("garbler's parameters", garbler as u64);
    transcript.append_u64("constants", options.constants.len() as u64);
    for (name, value) in &options.constants {
        transcript.append("name", name.as_bytes());
        transcript.append("value", value.trim().as_bytes());
    }
    let mut digest = [0; 32];
    transcript.challenge_bytes("digest", &mut digest);
    digest
}

/// The bits of every constant; the sizes among them go into `types`.
fn constants_of(
    program: &TypedProgram,
    types: &mut Types<'_>,
    options: &Options,
) -> Result<BTreeMap<String, Rc<Vec<Bit>>>, Error> {
    let mut bits: BTreeMap<String, Rc<Vec<Bit>>> = BTreeMap::new();
    let mut numbers: HashMap<String, i128> = HashMap::new();
    let mut wanted: Vec<_> = program
        .const_deps
        .iter()
        .flat_map(|(party, each)| {
            each.iter().map(move |(name, (ty, meta))| (format!("{party}::{name}"), ty, *meta))
        })
        .collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(name) = options.constants.keys().find(|name| !wanted.iter().any(|(known, ..)| known == *name))
    {
        return Err(Error::whole(format!("the program has no constant {name}")));
    }
    for (name, ty, meta) in wanted {
        let Some(text) = options.constants.get(&name) else {
            return Err(Error::at(meta, format!("the constant {name} has no value; give {name}=VALUE")));
        };
        let ty = types.resolve(ty, meta)?;
        let value = literal::parse(&[(&name, &ty)], text).map_err(|e| Error::at(meta, e.to_string()))?;
        if let Some(number) = number_of(&ty, &value[0]) {
            numbers.insert(name.clone(), number);
        }
        bits.insert(name, Rc::new(value[0].iter().map(Bit::constant).collect()));
    }
    let mut lines: Vec<_> = program.const_defs.iter().collect();
    lines.sort_by_key(|(_, line)| line.meta);
    for (name, line) in lines {
        let ty = types.resolve(&line.ty, line.meta)?;
        let value: Rc<Vec<Bit>> = match &line.value.0 {
            ConstExprEnum::True => Rc::new(vec![Bit::ONE]),
            ConstExprEnum::False => Rc::new(vec![Bit::ZERO]),
            ConstExprEnum::ExternalValue { party, identifier } => {
                let key = format!("{party}::{identifier}");
                bits.get(&key).cloned().ok_or_else(|| Error::at(line.meta, format!("{key} has no value")))?
            }
            ConstExprEnum::ConstExprIdent(other) if bits.contains_key(other) => bits[other].clone(),
            _ => {
                let number = constants::value(&line.value, &numbers)?;
                let Type::Number { width, signed, name: of } = &*ty else {
                    return Err(Error::at(line.meta, format!("{name} is not a number")));
                };
                let low = if *signed { -(1i128 << (width - 1)) } else { 0 };
                if number < low || number > low + ((1i128 << width) - 1) {
                    return Err(Error::at(line.meta, format!("{name} is {number}, which does not fit {of}")));
                }
                Rc::new((0..*width).map(|i| Bit::constant(number >> i & 1 == 1)).collect())
            }
        };
        let plain =
            BitVec::from_bools(&value.iter().map(|bit| bit.known() == Some(true)).collect::<Vec<_>>());
        if let Some(number) = number_of(&ty, &plain) {
            numbers.insert(name.clone(), number);
            if line.ty == ast::Type::Unsigned(garble_lang::token::UnsignedNumType::Usize) {
                types.sizes.insert(name.clone(), number as u64);
            }
        }
        bits.insert(name.clone(), value);
    }
    Ok(bits)
}

fn number_of(ty: &Type, bits: &BitVec) -> Option<i128> {
    let Type::Number { width, signed, .. } = ty else { return None };
    let value: i128 = bits.iter().enumerate().map(|(i, bit)| i128::from(bit) << i).sum();
    Some(if *signed && bits.get(width - 1) { value - (1 << width) } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_goes_on_is_given_up() {
        let (told, heard) = mpsc::sync_channel(2);
        let error = outcome(&heard, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("to check; a match with many patterns"), "{error}");
        // What is checked in time has as long as it takes.
        told.send(None).unwrap();
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            told.send(Some(Err(Error::whole("compiled late".to_owned())))).is_ok()
        });
        let error = outcome(&heard, Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("compiled late"), "{error}");
        assert!(late.join().unwrap());
    }

    #[test]
    fn a_thread_that_ends_without_a_word_is_an_error() {
        for words in 0..2 {
            let (told, heard) = mpsc::sync_channel(2);
            (0..words).for_each(|_| told.send(None).unwrap());
            drop(told);
            let error = outcome(&heard, Duration::from_millis(20)).unwrap_err();
            assert!(error.to_string().contains("ended without a result"), "{error}");
        }
    }
}
