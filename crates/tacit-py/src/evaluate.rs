//! Functions of both parties' inputs.

use crate::function::Circuit;
use crate::{fault, peer::Peer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tacit::catalogue::{BATCH, Entry, computations};
use tacit::job::eval::layout::{Inputs, Layout, called};
use tacit::job::eval::{Evaluated, FileOptions, Job, Options, PROGRAM, load_program, load_with};
use tacit::job::long;
use tacit::lang::{self, Program};
use tacit_2pc::circuit::bristol::Bits;
use tacit_2pc::circuit::named::Function;
use tacit_2pc::circuit::value::{self, Field, Format};
use tacit_2pc::circuit::{Circuit as Gates, Form as CircuitForm, LongFunction};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::BitVec;
use tacit_data::values::{Column, Form, each_row};
use tacit_net::Stats;

/// A function by its name or its file, or one that was traced.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Named(String),
    #[pyo3(transparent)]
    Traced(Py<Circuit>),
}

/// Rows of inputs: texts, or a table and which of its columns.
#[derive(FromPyObject)]
pub(crate) enum Rows {
    Texts(Vec<String>),
    #[pyo3(transparent)]
    Table(PyTable),
}

/// The inputs of every row; what is wrong with one names it and never shows it.
pub(crate) fn inputs(
    rows: Rows,
    columns: Option<Vec<String>>,
    inputs: Inputs<'_>,
) -> Result<Vec<Vec<BitVec>>, tacit::Error> {
    let (batches, schema) = match rows {
        Rows::Texts(texts) => {
            let parse = |text: &String| match inputs {
                Inputs::Literals(program, role) => {
                    program.parse(role, text).map_err(|error| tacit::Error::Input(error.to_string()))
                }
                Inputs::Numbers(fields) => {
                    value::parse(fields, text).map_err(|error| tacit::Error::Input(error.to_string()))
                }
            };
            return texts.iter().map(parse).collect();
        }
        Rows::Table(table) => table.into_inner(),
    };
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let found = match inputs {
        Inputs::Literals(program, role) => called(program, role, &names),
        Inputs::Numbers(_) => None,
    };
    let plain = |name: &str| Column { name: name.to_owned(), form: Form::Plain };
    let (columns, shares) = match (columns, found) {
        (Some(columns), _) => (columns.iter().map(|text| Column::parse(text)).collect(), None),
        (None, Some((columns, shares))) => (columns.iter().map(|name| plain(name)).collect(), Some(shares)),
        (None, None) => (names.iter().map(|name| plain(name)).collect::<Vec<_>>(), None),
    };
    let mut places = Vec::new();
    for column in columns {
        let place = schema.index_of(&column.name).map_err(|_| {
            let what = format!("there is no column {}; the table has {}", column.name, names.join(", "));
            tacit::Error::Parameter { name: "columns", what }
        })?;
        places.push((place, column));
    }
    let given: Vec<String> = places.iter().map(|(_, column)| column.name.clone()).collect();
    let at: Vec<usize> = places.iter().map(|(place, _)| *place).collect();
    let layout = match shares {
        Some(shares) => Layout::of(inputs, &at, &given, shares),
        None => Layout::new(inputs, &at, &given)?,
    };
    let mut rows = Vec::new();
    each_row(&schema, &batches, &places, |place, cells| {
        let row = layout.read(cells);
        rows.push(row.map_err(|what| tacit::Error::Input(format!("table, {place}: {what}")))?);
        Ok::<_, tacit::Error>(())
    })?;
    Ok(rows)
}

/// The names of a table's columns.
#[pyfunction]
pub(crate) fn table_columns(table: PyTable) -> Vec<String> {
    let (_, schema) = table.into_inner();
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The cells of the named columns as text, row by row.
#[pyfunction]
pub(crate) fn table_texts(
    py: Python<'_>,
    table: PyTable,
    columns: Vec<String>,
) -> PyResult<Vec<Vec<String>>> {
    let (batches, schema) = table.into_inner();
    let mut places = Vec::new();
    for name in columns {
        let Ok(place) = schema.index_of(&name) else {
            return Err(fault::usage(py, format!("the table has no column {name}")));
        };
        places.push((place, Column { name, form: Form::Plain }));
    }
    let mut rows = Vec::new();
    let read = each_row(&schema, &batches, &places, |_, cells| {
        rows.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
        Ok::<_, tacit_data::csv::Error>(())
    });
    read.map_err(|error| fault::raise(py, &error.into()))?;
    Ok(rows)
}

/// Which side this is, who learns the outputs, and by which protocol.
#[derive(Clone, Copy)]
struct Terms {
    role: Owner,
    output_to: OutputTo,
    protocol: Option<&'static Entry>,
}

impl Terms {
    fn new(py: Python<'_>, role: &str, output_to: &str, protocol: &str) -> PyResult<Self> {
        let role = match role {
            "garbler" => Owner::Garbler,
            "evaluator" => Owner::Evaluator,
            _ => return Err(fault::usage(py, "role is \"garbler\" or \"evaluator\"")),
        };
        let output_to = match output_to {
            "garbler" => OutputTo::Garbler,
            "evaluator" => OutputTo::Evaluator,
            "both" => OutputTo::Both,
            _ => return Err(fault::usage(py, "output_to is \"garbler\", \"evaluator\" or \"both\"")),
        };
        let known = computations().find(|entry| entry.name == protocol);
        if known.is_none() && protocol != "auto" {
            let names: Vec<&str> = computations().map(|entry| entry.name).collect();
            return Err(fault::usage(py, format!("protocol is auto or one of {}", names.join(", "))));
        }
        Ok(Terms { role, output_to, protocol: known })
    }
}

/// What a program or a circuit's file leaves open.
pub(crate) struct LeftOpen {
    entry: Option<String>,
    garbler_inputs: Option<usize>,
    constants: BTreeMap<String, String>,
    bits: Bits,
}

impl LeftOpen {
    pub(crate) fn new(
        py: Python<'_>,
        entry: Option<String>,
        garbler_inputs: Option<usize>,
        constants: BTreeMap<String, String>,
        bits: &str,
    ) -> PyResult<Self> {
        let bits = match bits {
            "usual" => Bits::Usual,
            "reversed" => Bits::Reversed,
            _ => return Err(fault::usage(py, "bits is \"usual\" or \"reversed\"")),
        };
        Ok(LeftOpen { entry, garbler_inputs, constants, bits })
    }
}

/// Whether nothing was said of what is left open.
pub(crate) fn usual(open: &LeftOpen) -> bool {
    let LeftOpen { entry, garbler_inputs, constants, bits } = open;
    entry.is_none() && garbler_inputs.is_none() && constants.is_empty() && *bits == Bits::Usual
}

/// What a function is before it is evaluated.
pub(crate) enum Found {
    Program(Box<Program>),
    Held(Arc<Function>),
    Long(LongFunction),
}

/// What a program is compiled with.
fn options(
    entry: Option<String>,
    garbler: Option<usize>,
    constants: BTreeMap<String, String>,
    form: CircuitForm,
) -> lang::Options {
    let entry = entry.unwrap_or_else(|| lang::Options::default().entry);
    lang::Options { entry, garbler, constants, form }
}

impl Source {
    /// The circuit of few levels of a program, where `terms` may take it.
    fn shallow(&self, open: &LeftOpen, terms: Terms) -> Result<Option<Gates>, tacit::Error> {
        let Source::Named(name) = self else { return Ok(None) };
        if !name.ends_with(PROGRAM) || terms.protocol.is_none_or(|entry| entry.name != BATCH.name) {
            return Ok(None);
        }
        let LeftOpen { entry, garbler_inputs, constants, .. } = open;
        let options = options(entry.clone(), *garbler_inputs, constants.clone(), CircuitForm::Shallow);
        Ok(Some(load_program(Path::new(name), &options)?.function().circuit.clone()))
    }

    /// The function, with what is said of a program and of a circuit's file.
    pub(crate) fn find(self, open: LeftOpen) -> Result<Found, tacit::Error> {
        let LeftOpen { entry, garbler_inputs, constants, bits } = open;
        let file = FileOptions { garbler_inputs, bits };
        let fault = |what: String| Err(tacit::Error::Usage(what));
        match self {
            Source::Named(name) if name.ends_with(PROGRAM) => {
                if bits == Bits::Reversed {
                    return fault("bits is for circuit files".into());
                }
                let options = options(entry, garbler_inputs, constants, CircuitForm::Small);
                Ok(Found::Program(Box::new(load_program(Path::new(&name), &options)?)))
            }
            _ if entry.is_some() || !constants.is_empty() => {
                fault(format!("entry and constants are for programs, in files that end with {PROGRAM}"))
            }
            Source::Named(name) => match LongFunction::find(&name) {
                Some(function) if file == FileOptions::default() => Ok(Found::Long(function)),
                _ => load_with(&name, file).map(|function| Found::Held(Arc::new(function))),
            },
            Source::Traced(_) if file != FileOptions::default() => {
                fault("garbler_inputs and bits are for programs and circuits' files".into())
            }
            Source::Traced(circuit) => Ok(Found::Held(circuit.get().function())),
        }
    }
}

impl Found {
    /// What one side gives.
    fn takes(&self, role: Owner) -> Inputs<'_> {
        match self {
            Found::Program(program) => Inputs::Literals(program, role),
            Found::Held(function) => Inputs::Numbers(function.fields(role)),
            Found::Long(function) => Inputs::Numbers(function.fields(role)),
        }
    }

    fn outputs(&self) -> &[Field] {
        match self {
            Found::Program(program) => &program.function().outputs,
            Found::Held(function) => &function.outputs,
            Found::Long(function) => &function.outputs,
        }
    }

    /// Evaluates it on our rows; what it gave, and what passed.
    fn evaluate(
        &self,
        py: Python<'_>,
        peer: &Peer,
        terms: Terms,
        rows: Vec<Vec<BitVec>>,
        shallow: Option<Gates>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Evaluated, Stats)> {
        let prepared = match self {
            Found::Program(program) => {
                Prepared::from_function(program.function()).map(|made| made.from_source(program.digest()))
            }
            Found::Held(function) => Prepared::from_function(function),
            Found::Long(function) => return evaluate_long(py, peer, function.clone(), terms, rows, progress),
        };
        let prepared = prepared.and_then(|prepared| match shallow {
            Some(circuit) => prepared.with_shallow(circuit),
            None => Ok(prepared),
        });
        let prepared = prepared.map_err(|error| fault::raise(py, &error.into()))?;
        let security = peer.security;
        peer.run(py, progress, move |session, desk| {
            let Terms { role, output_to, protocol } = terms;
            let options = Options { protocol, ..Options::default() };
            let job = Job { function: &prepared, role, output_to, security, options };
            session.evaluate(&job, &rows, desk)
        })
    }
}

/// Evaluates a function whose gates are made while it runs.
fn evaluate_long(
    py: Python<'_>,
    peer: &Peer,
    function: LongFunction,
    terms: Terms,
    rows: Vec<Vec<BitVec>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Evaluated, Stats)> {
    let refuse = |name, what: &str| {
        let what = format!("{} is made while it runs, {what}", function.name);
        Err(fault::raise(py, &tacit::Error::Parameter { name, what }))
    };
    if rows.len() != 1 {
        return refuse("rows", "one evaluation a run; give one");
    }
    if peer.threads() != 1 {
        return refuse("threads", "by one thread; leave it out");
    }
    let security = peer.security;
    peer.run(py, progress, move |session, desk| {
        let Terms { role, output_to, protocol } = terms;
        let job = long::Job { function: &function, role, output_to, security, protocol };
        session.evaluate_long(&job, &rows[0], desk)
    })
}

/// Evaluates a function on our rows; returns a dictionary with the outputs of every row, or none if we get
/// none. `entry`, `garbler_inputs` and `constants` are what a program leaves open, `garbler_inputs` and `bits` what a
/// circuit's file does.
#[pyfunction]
#[pyo3(signature = (peer, function, role, rows, *, columns=None, output_to="both", signed=false, protocol="auto",
    entry=None, garbler_inputs=None, constants=BTreeMap::new(), bits="usual", progress=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    peer: &Peer,
    function: Source,
    role: &str,
    rows: Rows,
    columns: Option<Vec<String>>,
    output_to: &str,
    signed: bool,
    protocol: &str,
    entry: Option<String>,
    garbler_inputs: Option<usize>,
    constants: BTreeMap<String, String>,
    bits: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let terms = Terms::new(py, role, output_to, protocol)?;
    let raised = |error| fault::raise(py, &error);
    let open = LeftOpen::new(py, entry, garbler_inputs, constants, bits)?;
    let shallow = function.shallow(&open, terms).map_err(raised)?;
    let found = function.find(open).map_err(raised)?;
    let rows = inputs(rows, columns, found.takes(terms.role)).map_err(raised)?;
    let (evaluated, stats) = found.evaluate(py, peer, terms, rows, shallow, progress)?;
    let dict = fault::passed(py, &stats, None)?;
    let shown = |(field, bits): (&Field, &BitVec)| {
        let field = if signed { field.in_twos_complement() } else { *field };
        value::format(&field, bits, Format::Decimal)
    };
    if let (Found::Program(program), Some(rows)) = (&found, &evaluated.outputs) {
        let literal = |row: &Vec<BitVec>| match &program.faults(row)[..] {
            [] => vec![program.format(row)],
            faults => vec![format!("fault: {}", faults.join(", "))],
        };
        dict.set_item("literals", rows.iter().map(literal).collect::<Vec<_>>())?;
    }
    let outputs = evaluated.outputs.map(|rows| {
        let row = |row: Vec<BitVec>| found.outputs().iter().zip(&row).map(shown).collect::<Vec<String>>();
        rows.into_iter().map(row).collect::<Vec<_>>()
    });
    dict.set_item("protocol", evaluated.protocol)?;
    dict.set_item("outputs", outputs)?;
    Ok(dict)
}

/// The functions that have a name, those too large to hold at the end: the name, its width if it has one, and
/// what it does.
#[pyfunction]
pub(crate) fn functions() -> Vec<(String, Option<u32>, &'static str)> {
    let held = tacit::catalogue::functions().map(|entry| (entry.name.to_owned(), entry.size, entry.about));
    let long = LongFunction::names().filter_map(|name| LongFunction::find(&name));
    held.chain(long.map(|function| (function.name, None, function.about))).collect()
}
