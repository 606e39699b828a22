//! Identifiers that match where keys do, in front of a table's rows.

use crate::fault;
use crate::intersect::{Keys, Rows};
use crate::peer::Peer;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tacit::crypto::hex;
use tacit::job::link::{Job, MAX_ELEMENTS, cells};

/// Runs a link; returns what it gave as a dictionary.
#[pyfunction]
#[pyo3(signature = (peer, keys, *, id_column, max_peer_keys=None, progress=None))]
pub(crate) fn link<'py>(
    py: Python<'py>,
    peer: &Peer,
    keys: &Keys,
    id_column: &str,
    max_peer_keys: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let column = id_column.trim();
    if column.is_empty() {
        return Err(fault::usage(py, "id_column: the column needs a name"));
    }
    if keys.schema.fields().iter().any(|field| field.name().trim() == column) {
        let what = format!("id_column: the table has a column {column} already; choose another name");
        return Err(fault::usage(py, what));
    }
    let job = Job { key: Some(keys.spec.clone()), most_peer_keys: max_peer_keys, ..Job::new(peer.security) };
    job.check().map_err(|error| fault::raise(py, &error))?;
    let (ours, set) = (job.clone(), keys.set.clone());
    let ran = peer.run(py, progress, move |session, desk| {
        let most = ours.most_peer_keys.unwrap_or(MAX_ELEMENTS as u64);
        session.run_link(&ours, set.elements(), most, desk)
    })?;
    let own = keys.set.elements().len() as u64;
    let dict = fault::passed(py, &ran.stats, Some(ran.wall.as_secs_f64()))?;
    dict.set_item("run", hex(&ran.result.run))?;
    dict.set_item("peer_keys", ran.result.peer_elements)?;
    let learned = job.has_learned(own, ran.result.peer_elements);
    dict.set_item("peer_learned", learned.map_err(|error| fault::raise(py, &error))?)?;
    let rows = py.detach(|| {
        let mut cell = cells(&ran.result.identifiers);
        Rows::ahead(keys, column, |row| cell(keys.set.element_of(row)))
    });
    dict.set_item("rows", Py::new(py, rows.map_err(|what| fault::input(py, what))?)?)?;
    Ok(dict)
}
