//! Functions of both parties' inputs.

use crate::function::Circuit;
use crate::{fault, peer::Peer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use std::sync::Arc;
use tacit::catalogue::computations;
use tacit::job::eval::{Job, Options, PROGRAM, load, load_program};
use tacit_2pc::circuit::named::Function;
use tacit_2pc::circuit::value::{self, Field, Format};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::BitVec;

/// A function by its name or its file, or one that was traced.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Named(String),
    #[pyo3(transparent)]
    Traced(Py<Circuit>),
}

/// Evaluates a function on our rows of text; returns the outputs of every row, or nothing if we get none.
#[pyfunction]
#[pyo3(signature = (peer, function, role, rows, *, output_to="both", signed=false, protocol="auto", progress=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    peer: &Peer,
    function: Source,
    role: &str,
    rows: Vec<String>,
    output_to: &str,
    signed: bool,
    protocol: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
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
    let raised = |error| fault::raise(py, &error);
    let known = computations().find(|entry| entry.name == protocol);
    if known.is_none() && protocol != "auto" {
        let names: Vec<&str> = computations().map(|entry| entry.name).collect();
        return Err(fault::usage(py, format!("protocol is auto or one of {}", names.join(", "))));
    }
    let mut program = None;
    let function: Arc<Function> = match function {
        Source::Named(name) if name.ends_with(PROGRAM) => {
            let loaded = load_program(Path::new(&name), &tacit::lang::Options::default()).map_err(raised)?;
            Arc::new(program.insert(loaded).function().clone())
        }
        Source::Named(name) => Arc::new(load(&name).map_err(raised)?),
        Source::Traced(circuit) => circuit.get().function(),
    };
    let prepared = Prepared::from_function(&function).map_err(|error| raised(error.into()))?;
    let prepared = match &program {
        Some(program) => prepared.from_source(program.digest()),
        None => prepared,
    };
    let fields = function.fields(role);
    let parse = |text: &String| match &program {
        Some(program) => program.parse(role, text).map_err(|error| error.to_string()),
        None => value::parse(fields, text).map_err(|error| error.to_string()),
    };
    let rows = rows
        .iter()
        .map(|text| parse(text).map_err(|what| fault::input(py, what)))
        .collect::<PyResult<Vec<_>>>()?;
    let security = peer.security;
    let (evaluated, stats) = peer.run(py, progress, move |session, desk| {
        let options = Options { protocol: known, ..Options::default() };
        let job = Job { function: &prepared, role, output_to, security, options };
        session.evaluate(&job, &rows, desk)
    })?;
    let dict = fault::passed(py, &stats, None)?;
    let shown = |(field, bits): (&Field, &BitVec)| {
        let field = if signed { field.in_twos_complement() } else { *field };
        value::format(&field, bits, Format::Decimal)
    };
    if let (Some(program), Some(rows)) = (&program, &evaluated.outputs) {
        let literal = |row: &Vec<BitVec>| match &program.faults(row)[..] {
            [] => vec![program.format(row)],
            faults => vec![format!("fault: {}", faults.join(", "))],
        };
        dict.set_item("literals", rows.iter().map(literal).collect::<Vec<_>>())?;
    }
    let outputs = evaluated.outputs.map(|rows| {
        let row = |row: Vec<BitVec>| function.outputs.iter().zip(&row).map(shown).collect::<Vec<String>>();
        rows.into_iter().map(row).collect::<Vec<_>>()
    });
    dict.set_item("protocol", evaluated.protocol)?;
    dict.set_item("outputs", outputs)?;
    Ok(dict)
}

/// The functions that have a name: the name, its width if it has one, and what it does.
#[pyfunction]
pub(crate) fn functions() -> Vec<(&'static str, Option<u32>, &'static str)> {
    tacit::catalogue::functions().map(|entry| (entry.name, entry.size, entry.about)).collect()
}
