//! Functions of both parties' inputs.

use crate::function::Circuit;
use crate::{fault, peer::Peer};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;
use std::path::Path;
use std::sync::Arc;
use tacit::catalogue::computations;
use tacit::job::eval::layout::{Inputs, Layout, called};
use tacit::job::eval::{Job, Options, PROGRAM, load, load_program};
use tacit_2pc::circuit::named::Function;
use tacit_2pc::circuit::value::{self, Field, Format};
use tacit_2pc::{OutputTo, Owner, Prepared};
use tacit_crypto::BitVec;
use tacit_data::values::{Column, Form, each_row};

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
fn inputs(
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

/// Evaluates a function on our rows; returns a dictionary with the outputs of every row, or none if we get
/// none.
#[pyfunction]
#[pyo3(signature = (peer, function, role, rows, *, columns=None, output_to="both", signed=false, protocol="auto", progress=None))]
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
    let taken = match &program {
        Some(program) => Inputs::Literals(program, role),
        None => Inputs::Numbers(function.fields(role)),
    };
    let rows = inputs(rows, columns, taken).map_err(raised)?;
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
