//! Functions of both parties' inputs.

use crate::function::Circuit;
use crate::{fault, peer::Peer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tacit::job::eval::{Job, Options, load};
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
#[pyo3(signature = (peer, function, role, rows, *, output_to="both", signed=false, progress=None))]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    peer: &Peer,
    function: Source,
    role: &str,
    rows: Vec<String>,
    output_to: &str,
    signed: bool,
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
    let function: Arc<Function> = match function {
        Source::Named(name) => Arc::new(load(&name).map_err(raised)?),
        Source::Traced(circuit) => circuit.get().function(),
    };
    let prepared = Prepared::from_function(&function).map_err(|error| raised(error.into()))?;
    let fields = function.fields(role);
    let rows = rows
        .iter()
        .map(|text| value::parse(fields, text).map_err(|error| fault::input(py, error.to_string())))
        .collect::<PyResult<Vec<_>>>()?;
    let security = peer.security;
    let (outputs, stats) = peer.run(py, progress, move |session, desk| {
        let job = Job { function: &prepared, role, output_to, security, options: Options::default() };
        session.evaluate(&job, &rows, desk)
    })?;
    let dict = fault::passed(py, &stats, None)?;
    let shown = |(field, bits): (&Field, &BitVec)| {
        let field = if signed { field.in_twos_complement() } else { *field };
        value::format(&field, bits, Format::Decimal)
    };
    let outputs = outputs.map(|rows| {
        let row = |row: Vec<BitVec>| function.outputs.iter().zip(&row).map(shown).collect::<Vec<String>>();
        rows.into_iter().map(row).collect::<Vec<_>>()
    });
    dict.set_item("outputs", outputs)?;
    Ok(dict)
}

/// The functions that have a name: the name, its width if it has one, and what it does.
#[pyfunction]
pub(crate) fn functions() -> Vec<(&'static str, Option<u32>, &'static str)> {
    tacit::catalogue::functions().map(|entry| (entry.name, entry.size, entry.about)).collect()
}
