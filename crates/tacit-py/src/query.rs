//! Questions in SQL about both sides' joined tables.

use crate::intersect::Keys;
use crate::peer::Peer;
use crate::{fault, reveal};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use tacit::job::Ran;
use tacit::job::query::{Answer, Cell, Job, MOST_KEYS, Purpose, Rows, Side};
use tacit::query::Output;

/// A question, read, and which of its tables is ours.
#[pyclass(frozen)]
pub struct Question {
    question: tacit::query::Question,
    side: Side,
}

#[pymethods]
impl Question {
    /// Reads a text; `side` is `ours` or `theirs`, and follows from who listens where it is left out.
    #[new]
    #[pyo3(signature = (text, peer, side=None))]
    fn new(py: Python<'_>, text: &str, peer: &Peer, side: Option<&str>) -> PyResult<Self> {
        let question =
            tacit::query::parse(text).map_err(|what| fault::usage(py, format!("the question: {what}")))?;
        let side = match (side, peer.listens) {
            (Some("ours"), _) | (None, Some(true)) => Side::Ours,
            (Some("theirs"), _) | (None, Some(false)) => Side::Theirs,
            (Some(_), _) => return Err(fault::usage(py, "side is \"ours\" or \"theirs\"")),
            (None, None) => {
                let what = "side: say which of the question's tables is yours, \"ours\" or \"theirs\"";
                return Err(fault::usage(py, what));
            }
        };
        Ok(Question { question, side })
    }

    /// The canonical text.
    #[getter]
    fn text(&self) -> &str {
        &self.question.text
    }

    /// The columns of our key, each with its type.
    #[getter]
    fn key(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        key_of(py, &self.question, self.side)
    }
}

/// The columns of a side's key, each with its type.
pub(crate) fn key_of(
    py: Python<'_>,
    question: &tacit::query::Question,
    side: Side,
) -> PyResult<Vec<(String, String)>> {
    let named = |column: &String| {
        let named = tacit_data::keys::Named::parse(column);
        let named = named.map_err(|what| fault::usage(py, format!("the question: {what}")))?;
        Ok((named.column, named.key_type.to_string()))
    };
    question.tables[side as usize].key.iter().map(named).collect()
}

/// What columns may be used for.
pub(crate) fn uses(py: Python<'_>, allow: Vec<(String, String)>) -> PyResult<Vec<(String, Purpose)>> {
    let allowed = |(column, name): (String, String)| {
        let purpose = Purpose::named(&name);
        let what = "allow: a column is used to join, filter, group or aggregate";
        Ok((column, purpose.ok_or_else(|| fault::usage(py, what))?))
    };
    allow.into_iter().map(allowed).collect()
}

/// Asks a question; returns what it gave as a dictionary.
#[pyfunction]
#[pyo3(signature = (peer, keys, question, *, result="me", min_group=None, allow=None, result_to_owner=false,
    first=false, max_peer_keys=None, progress=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn query<'py>(
    py: Python<'py>,
    peer: &Peer,
    keys: &Keys,
    question: &Question,
    result: &str,
    min_group: Option<u64>,
    allow: Option<Vec<(String, String)>>,
    result_to_owner: bool,
    first: bool,
    max_peer_keys: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learns = crate::peer::learns(py, result)?;
    if peer.security != tacit::Security::SemiHonest {
        let what = "security: a question is secure only against a peer that follows the protocol; set \"semi-honest\" \
                    on both sides";
        return Err(fault::usage(py, what));
    }
    let allowed = allow.map(|all| uses(py, all)).transpose()?;
    let Question { question, side } = question;
    let job = Job::new(question.clone(), *side, learns, keys.spec.normalisation);
    let job = job.map_err(|error| fault::raise(py, &error))?;
    let job = Job {
        key: keys.spec.clone(),
        least: min_group.unwrap_or(job.least),
        allowed,
        result_to_owner,
        most_peer_keys: max_peer_keys,
        ..job
    };
    job.check().map_err(|error| fault::raise(py, &error))?;
    let rows = py.detach(|| gathered(&job, keys, first)).map_err(|what| fault::input(py, what))?;
    let (ours, set) = (job.clone(), Arc::clone(&keys.set));
    let ran = peer.run(py, progress, move |session, desk| {
        let most = ours.most_peer_keys.unwrap_or(MOST_KEYS);
        session.run_query(&ours, set.elements(), &rows, most, desk)
    })?;
    told(py, &job, keys, ran)
}

/// What a run gave, as a dictionary.
pub(crate) fn told<'py>(
    py: Python<'py>,
    job: &Job,
    keys: &Keys,
    ran: Ran<Answer>,
) -> PyResult<Bound<'py, PyDict>> {
    let question = &job.question;
    let dict = PyDict::new(py);
    dict.set_item("question", &question.text)?;
    dict.set_item("peer_keys", ran.result.peer_keys)?;
    dict.set_item("peer_learned", job.will_learn(keys.set.elements().len() as u64))?;
    dict.set_item("seconds", ran.wall.as_secs_f64())?;
    dict.set_item("bytes_sent", ran.stats.bytes_sent)?;
    dict.set_item("bytes_received", ran.stats.bytes_received)?;
    dict.set_item("rounds", ran.stats.rounds)?;
    let columns: Vec<(&str, &str)> =
        question.outputs.iter().map(|(name, output)| (name.as_str(), kind(output))).collect();
    dict.set_item("columns", columns)?;
    let Some(shown) = ran.result.shown else {
        dict.set_item("rows", py.None())?;
        return Ok(dict);
    };
    let rows = PyList::empty(py);
    for one in shown {
        let cells = PyList::empty(py);
        for cell in question.render(one.group, &one.values) {
            match cell {
                Cell::Null => cells.append(py.None())?,
                Cell::Truth(is) => cells.append(is)?,
                Cell::Integer(number) => cells.append(number)?,
                Cell::Text(text) => cells.append(text)?,
            }
        }
        rows.append(cells)?;
    }
    dict.set_item("rows", rows)?;
    Ok(dict)
}

/// What a cell of an output is, in a word.
fn kind(output: &Output) -> &'static str {
    match output {
        Output::Group(_) => "group",
        Output::Count(_) | Output::Number { scale: 0, .. } => "integer",
        Output::Number { .. } | Output::Mean { .. } => "decimal",
        Output::Date(_) => "date",
    }
}

/// What the rows of a table put in.
pub(crate) fn gathered(job: &Job, keys: &Keys, first: bool) -> Result<Rows, String> {
    let names = &job.question.tables[job.side as usize].columns;
    let place = |name: &String| {
        let there = keys.schema.index_of(name);
        there.map_err(|_| format!("the question: there is no column {name} in the table"))
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let is_null = |cell: &str| keys.spec.nulls.iter().any(|null| null == cell.trim());
    let mut gathered = job.gather(keys.set.elements().len(), first);
    let mut row = 0;
    for batch in &keys.batches {
        let columns: Vec<ArrayRef> = places
            .iter()
            .zip(names)
            .map(|(&place, name)| reveal::cast(name, batch.column(place), &DataType::LargeUtf8))
            .collect::<Result<_, _>>()?;
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i64>()).collect();
        for at in 0..batch.num_rows() {
            let cells: Vec<Option<&str>> = columns
                .iter()
                .map(|column| column.is_valid(at).then(|| column.value(at)).filter(|cell| !is_null(cell)))
                .collect();
            for element in keys.set.elements_of(row).flatten() {
                gathered.add(element, &cells).map_err(|what| format!("row {}: {what}", row + 1))?;
            }
            row += 1;
        }
    }
    gathered.finish()
}
