//! Requests to a service: the offer, and the run that both sides sign.

use crate::course::{self, Desk, Listener};
use crate::intersect::Keys;
use crate::peer::Peer;
use crate::{fault, reveal};
use arrow_ipc::writer::FileWriter;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tacit::job::psi::{Bounds, Job, USUAL_KEY};
use tacit::{Error, Security};
use tacit_data::records::{KeySpec, Normalisation};
use tacit_net::{Cancel, Identity};
use tacit_serve::json::{from_hex, hex};
use tacit_serve::records::Records;
use tacit_serve::request::{self, Ask, Floor, ToOwner};
use tacit_serve::terms::Side;

/// An offer, until it is taken or declined.
#[pyclass(frozen)]
pub struct Offered {
    held: Mutex<Option<request::Offered>>,
    listener: Listener,
    desk: Desk,
    cancel: Cancel,
    floor: Security,
    post_quantum: bool,
    identity: PathBuf,
}

/// Asks the service at `peer` for the job of this name.
#[pyfunction]
#[pyo3(signature = (peer, job, *, reveal=None, result=None, progress=None))]
pub(crate) fn ask(
    py: Python<'_>,
    peer: &Peer,
    job: String,
    reveal: Option<String>,
    result: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Offered> {
    let Some(identity) = peer.identity.clone() else {
        return Err(fault::usage(
            py,
            "a request needs identity= and peer=: your private key file and the service's public one",
        ));
    };
    let result = match result {
        None => None,
        Some("me") => Some("client"),
        Some("peer") => Some("service"),
        Some("both") => Some("both"),
        Some(_) => return Err(fault::usage(py, "result is \"me\", \"peer\" or \"both\"")),
    };
    let ask = Ask { job, reveal, result: result.map(str::to_owned), key: None };
    let signs = Identity::load(&identity).map_err(|error| fault::raise(py, &error.into()))?;
    let (listener, desk) = (Listener::new(py, progress)?, Desk::default());
    let (session, cancel) = peer.session(&desk);
    // What a run protects against is in its terms.
    let session = session.security(Security::Malicious);
    let held = course::run(py, &listener, &desk, &cancel, move |_| {
        request::ask(session.open(request::agreement())?, &ask, &signs)
    })?;
    let (floor, post_quantum) = (peer.security, peer.post_quantum);
    let held = Mutex::new(Some(held));
    Ok(Offered { held, listener, desk, cancel, floor, post_quantum, identity })
}

#[pymethods]
impl Offered {
    /// The terms, as JSON.
    fn terms(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |offered| {
            serde_json::to_string(&offered.offer).map_err(|error| Error::Other(format!("an offer: {error}")))
        })
    }

    /// The terms for people, if we have `keys` keys.
    fn words(&self, py: Python<'_>, keys: u64) -> PyResult<Vec<String>> {
        self.with(py, |offered| offered.offer.words(keys))
    }

    /// The hash of the terms without run, budgets and sizes, in hexadecimal digits.
    fn terms_hash(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |offered| Ok(hex(&offered.offer.hash()?)))
    }

    /// Refuses terms below what the caller takes: `columns` is the number of our key columns, `give` the
    /// columns that may go into the result, `max_peer_keys` the most keys that the service may have,
    /// `seen` whether somebody looks at the terms, `bounds` else the widest with which the owner of a column may get
    /// what is made of it, and
    /// `terms` the hash of terms that were reviewed; `unattended` where nobody looks at the terms and nobody
    /// named who gets the result.
    #[pyo3(signature = (columns, give, *, unattended, seen=true, bounds=None, max_peer_keys=None, terms=None,
        max_cell=None))]
    fn admit(
        &self,
        py: Python<'_>,
        columns: usize,
        give: Vec<String>,
        unattended: bool,
        seen: bool,
        bounds: Option<(i64, i64)>,
        max_peer_keys: Option<u64>,
        terms: Option<&str>,
        max_cell: Option<u64>,
    ) -> PyResult<()> {
        let hash = terms.map(|text| {
            from_hex(text).ok_or_else(|| fault::usage(py, "terms is a hash of 64 hexadecimal digits"))
        });
        let bounds = bounds.map(|(least, most)| {
            Bounds::new(least, most)
                .map_err(|_| fault::usage(py, "bounds are (least, most), the lower one first"))
        });
        let floor = Floor {
            security: self.floor,
            gives: &give,
            result_to_owner: match (seen, bounds.transpose()?) {
                (true, _) => ToOwner::AsOffered,
                (false, Some(bounds)) => ToOwner::Within(bounds),
                (false, None) => ToOwner::Never,
            },
            post_quantum: self.post_quantum,
            most_service_keys: max_peer_keys,
            terms: hash.transpose()?,
            unattended,
        };
        self.with(py, |offered| {
            let spec = KeySpec::text(vec![String::new(); columns], Normalisation::default());
            let job = Job { max_cell: max_cell.unwrap_or(USUAL_KEY), ..offered.job(&spec)? };
            offered.admit(&job, &floor)
        })
    }

    /// Declines the offer.
    fn decline(&self, py: Python<'_>) -> PyResult<()> {
        let offered = self.take(py)?;
        py.detach(|| offered.decline()).map_err(|error| fault::raise(py, &error))
    }

    /// Takes the offer and runs with these keys, which were read to be recorded. Returns what the run gave, and
    /// the record's run, folder, whether both have signed, and what kept it from being written, if it was not.
    #[pyo3(signature = (keys, *, duplicates="refuse", records=None, max_cell=None, allow_line_ends=false, rest=false,
        all_rows=false))]
    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    fn run<'py>(
        &self,
        py: Python<'py>,
        keys: &Keys,
        duplicates: &str,
        records: Option<PathBuf>,
        max_cell: Option<u64>,
        allow_line_ends: bool,
        rest: bool,
        all_rows: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (_, duplicates) = reveal::kinds(py, "rows", duplicates)?;
        let raised = |error: Error| fault::raise(py, &error);
        self.with(py, |offered| offered.admit_types(&keys.spec))?;
        let job = self.with(py, |offered| offered.job(&keys.spec))?;
        let max_cell = max_cell.unwrap_or(USUAL_KEY);
        let job = Job { max_cell, line_ends: allow_line_ends, ..job };
        let gift = keys.given(py, &job, duplicates)?;
        let width = gift.bytes_a_key(keys.set.elements().len() as u64).map_err(raised)?;
        self.with(py, |offered| offered.admit_width(width))?;
        let identity = Identity::load(&self.identity).map_err(|error| raised(error.into()))?;
        let folder = records.unwrap_or_else(|| self.identity.with_extension("records"));
        let digest = keys.digest.ok_or_else(|| fault::internal("keys of a run that has no digest"))?;
        let (records, _) = Records::open(&folder, &identity, Side::Client).map_err(raised)?;
        let offered = self.take(py)?;
        let run = offered.offer.run.clone();
        let (ours, set) = (job.clone(), Arc::clone(&keys.set));
        let (ran, signed) = course::run(py, &self.listener, &self.desk, &self.cancel, move |desk| {
            let input = (&*set, gift.borrowed());
            let mut done = offered.run(&ours, &digest, input, (&identity, &records), desk)?;
            // The run is over and charged: a record that cannot be written takes no result away.
            let signed = done.record().map_err(|error| error.to_string());
            Ok((done.ran, signed))
        })?;
        let dict = keys.gained(py, &job, &ran, (rest, all_rows))?;
        dict.set_item("run", run)?;
        dict.set_item("records", folder)?;
        dict.set_item("signed", matches!(signed, Ok(true)))?;
        dict.set_item("record_fault", signed.err())?;
        Ok(dict)
    }
}

impl Offered {
    fn with<T>(&self, py: Python<'_>, of: impl FnOnce(&request::Offered) -> tacit::Result<T>) -> PyResult<T> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let offered = held.as_ref().ok_or_else(|| fault::internal("an offer was answered twice"))?;
        of(offered).map_err(|error| fault::raise(py, &error))
    }

    fn take(&self, py: Python<'_>) -> PyResult<request::Offered> {
        let taken = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| fault::usage(py, "an offer is answered once"))
    }
}

/// Writes a table to a new Arrow file at `path`, which a record can commit to.
#[pyfunction]
pub(crate) fn keep(py: Python<'_>, table: PyTable, path: PathBuf) -> PyResult<()> {
    let (batches, schema) = table.into_inner();
    let write = || {
        let file = File::create_new(&path).map_err(|error| error.to_string())?;
        let written = || {
            let mut writer = FileWriter::try_new_buffered(&file, &schema)?;
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish()?;
            drop(writer);
            Ok::<_, arrow_schema::ArrowError>(file.sync_all()?)
        };
        written().map_err(|error| {
            // A half-written file is no evidence.
            let _ = std::fs::remove_file(&path);
            error.to_string()
        })
    };
    let name = tacit_net::shown(&path.to_string_lossy());
    py.detach(write).map_err(|what| fault::input(py, format!("{name} cannot be written: {what}")))
}
