//! The Python package's native half: jobs run on threads of their own while the interpreter's lock is free.
//!
//! Names here are those of `tacit._tacit`, which `python/tacit` wraps: what a user sees is documented there.

mod course;
mod evaluate;
mod fault;
mod function;
mod intersect;
mod key;
mod link;
mod nisc;
mod peer;
mod query;
mod request;
mod reveal;
mod spark;
mod transfer;

use pyo3::prelude::*;

/// The native half of the package `tacit`.
#[pymodule]
fn _tacit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<peer::Peer>()?;
    module.add_class::<intersect::Keys>()?;
    module.add_class::<intersect::Rows>()?;
    module.add_class::<request::Offered>()?;
    module.add_class::<query::Question>()?;
    module.add_class::<spark::Key>()?;
    module.add_class::<spark::Plan>()?;
    module.add_class::<function::Circuit>()?;
    module.add_class::<function::Tracer>()?;
    module.add_class::<function::Wires>()?;
    module.add_function(wrap_pyfunction!(peer::keygen, module)?)?;
    module.add_function(wrap_pyfunction!(peer::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(intersect::intersect, module)?)?;
    module.add_function(wrap_pyfunction!(link::link, module)?)?;
    module.add_function(wrap_pyfunction!(query::query, module)?)?;
    module.add_function(wrap_pyfunction!(request::ask, module)?)?;
    module.add_function(wrap_pyfunction!(request::keep, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::functions, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::table_columns, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::table_texts, module)?)?;
    module.add_function(wrap_pyfunction!(spark::buckets_for, module)?)?;
    module.add_function(wrap_pyfunction!(transfer::ot, module)?)?;
    module.add_function(wrap_pyfunction!(transfer::vole, module)?)?;
    module.add_function(wrap_pyfunction!(transfer::triples, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_keygen, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_answer, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_ask, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_reply, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_open, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_eval_ask, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_eval_reply, module)?)?;
    module.add_function(wrap_pyfunction!(nisc::nisc_eval_open, module)?)?;
    Ok(())
}
