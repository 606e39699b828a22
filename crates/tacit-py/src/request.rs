//! Requests to a service: the offer, and the run that both sides sign.

use crate::course::{self, Desk, Listener};
use crate::intersect::Keys;
use crate::key::spec;
use crate::peer::Peer;
use crate::{fault, query, reveal};
use arrow_ipc::writer::FileWriter;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tacit::job::psi::{Job, USUAL_KEY};
use tacit::job::query::{Job as Asking, USUAL_LEAST};
use tacit::job::{Observer, Ran};
use tacit::{Error, Security};
use tacit_data::records::{KeySpec, Normalisation};
use tacit_net::{Cancel, Identity};
use tacit_serve::json::{from_hex, hex};
use tacit_serve::records::Records;
use tacit_serve::request::{self, AnswerFloor, Ask, Floor, ToOwner};
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

/// Asks the service at `peer` for the job of this name: with a text of `sql`, or with the name of a `question` of the
/// service's own and the values of its parameters, for an answer in SQL.
#[pyfunction]
#[pyo3(signature = (peer, job, *, reveal=None, result=None, sql=None, question=None, progress=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn ask(
    py: Python<'_>,
    peer: &Peer,
    job: String,
    reveal: Option<String>,
    result: Option<&str>,
    sql: Option<&str>,
    question: Option<(String, Vec<(String, String)>)>,
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
    let read = |sql| tacit::query::parse(sql).map(|question| question.text);
    let text = sql.map(read).transpose();
    let text = text.map_err(|what| fault::usage(py, format!("the question: {what}")))?;
    let ask = Ask { job, reveal, result: result.map(str::to_owned), key: None, question: text };
    let signs = Identity::load(&identity).map_err(|error| fault::raise(py, &error.into()))?;
    let (listener, desk) = (Listener::new(py, progress)?, Desk::default());
    let (session, cancel) = peer.session(&desk);
    // What a run protects against is in its terms.
    let session = session.security(Security::Malicious);
    let held = course::run(py, &listener, &desk, &cancel, move |_| {
        let text = match (ask.question, question) {
            (None, Some((name, values))) => {
                let jobs = request::list(session.open(request::agreement())?)?;
                let listed = jobs.iter().find(|listed| listed.job == ask.job);
                let names: Vec<String> = jobs.iter().map(|listed| tacit_net::shown(&listed.job)).collect();
                let none = || {
                    Error::Usage(format!("the service offers you no such job; it has {}", names.join(", ")))
                };
                let filled = listed.ok_or_else(none)?.question(&name)?.filled(&values);
                Some(filled.map_err(|error| match error {
                    Error::Parameter { name: "set", what } => Error::Parameter { name: "values", what },
                    other => other,
                })?)
            }
            (text, _) => text,
        };
        let ask = Ask { question: text, ..ask };
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

    /// Refuses terms below what the caller takes: `on`, `types` and `further` say what makes our keys, `give` the
    /// columns that may go into the result, `max_peer_keys` the most keys that the service may have,
    /// `seen` whether somebody looks at the terms, `bounds` else the widest with which the owner of a column may get
    /// what is made of it, and
    /// `terms` the hash of terms that were reviewed; `unattended` where nobody looks at the terms and nobody
    /// named who gets the result.
    #[pyo3(signature = (on, types, further, give, *, unattended, seen=true, bounds=None, max_peer_keys=None,
        terms=None, max_cell=None))]
    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    fn admit(
        &self,
        py: Python<'_>,
        on: Vec<String>,
        types: Option<Vec<String>>,
        further: Vec<usize>,
        give: Vec<String>,
        unattended: bool,
        seen: bool,
        bounds: Option<String>,
        max_peer_keys: Option<u64>,
        terms: Option<&str>,
        max_cell: Option<u64>,
    ) -> PyResult<()> {
        let floor = Floor {
            security: self.floor,
            gives: &give,
            result_to_owner: match (seen, bounds.as_deref()) {
                (true, _) => ToOwner::AsOffered,
                (false, Some(bounds)) => ToOwner::Within(bounds),
                (false, None) => ToOwner::Never,
            },
            post_quantum: self.post_quantum,
            most_service_keys: max_peer_keys,
            terms: terms.map(|text| hash(py, text)).transpose()?,
            unattended,
        };
        let named = spec(on, types, Normalisation::default()).map_err(|what| fault::usage(py, what))?;
        let key = KeySpec { further, ..named };
        self.with(py, |offered| {
            let job = offered.job(&key)?;
            let job = Job { max_cell: max_cell.unwrap_or(USUAL_KEY), ..job };
            offered.admit(&job, &floor)
        })
    }

    /// Refuses an offer of an answer below what the caller takes: `min_group` is the least group that it may show,
    /// `allow` what our columns may be used for, and the rest is as for [`admit`](Self::admit).
    #[pyo3(signature = (*, unattended, min_group=None, allow=None, result_to_owner=false, max_peer_keys=None,
        terms=None))]
    #[allow(clippy::too_many_arguments)] // They are Python's keywords.
    fn admit_answer(
        &self,
        py: Python<'_>,
        unattended: bool,
        min_group: Option<u64>,
        allow: Option<Vec<(String, String)>>,
        result_to_owner: bool,
        max_peer_keys: Option<u64>,
        terms: Option<&str>,
    ) -> PyResult<()> {
        let allowed = allow.map(|all| query::uses(py, all)).transpose()?;
        let floor = AnswerFloor {
            security: self.floor,
            min_group: min_group.unwrap_or(USUAL_LEAST),
            allowed: allowed.as_deref(),
            result_to_owner,
            post_quantum: self.post_quantum,
            most_service_keys: max_peer_keys,
            terms: terms.map(|text| hash(py, text)).transpose()?,
            unattended,
        };
        self.with(py, |offered| offered.admit_answer(&floor).map(|_| ()))
    }

    /// The columns of the key that the question names in our table, each with its type.
    fn answer_key(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let job = self.with(py, request::Offered::answer_job)?;
        query::key_of(py, &job.question, job.side)
    }

    /// Takes the offer of an answer and runs with these keys, which were read to be recorded. Returns what the run gave,
    /// and of the record what [`run`](Self::run) does.
    #[pyo3(signature = (keys, *, first=false, records=None))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        keys: &Keys,
        first: bool,
        records: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.with(py, |offered| offered.admit_keys(keys.set.elements().len() as u64))?;
        let job = self.with(py, request::Offered::answer_job)?;
        let job = Asking { key: keys.spec.clone(), ..job };
        let rows = py.detach(|| query::gathered(&job, keys, first)).map_err(|what| fault::input(py, what))?;
        let (ours, set) = (job.clone(), Arc::clone(&keys.set));
        let (ran, record) = self.taken(py, keys, records, move |offered, digest, signs, desk| {
            offered.ask(&ours, digest, (&set, &rows), signs, desk)
        })?;
        let dict = query::told(py, &job, keys, ran)?;
        record.tell(&dict)?;
        Ok(dict)
    }

    /// Declines the offer.
    fn decline(&self, py: Python<'_>) -> PyResult<()> {
        let offered = self.take(py)?;
        py.detach(|| offered.decline()).map_err(|error| fault::raise(py, &error))
    }

    /// Takes the offer and runs with these keys, which were read to be recorded. Returns what the run gave, and
    /// the record's run, folder, whether both have signed, and what kept it from being written, if it was not.
    #[pyo3(signature = (keys, *, duplicates="refuse", records=None, max_cell=None, allow_line_ends=false, rest=false,
        all_rows=false, matched_by=None))]
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
        matched_by: Option<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (_, duplicates) = reveal::kinds(py, "rows", duplicates)?;
        let raised = |error: Error| fault::raise(py, &error);
        keys.check_matched_by(py, matched_by.as_deref())?;
        self.with(py, |offered| offered.admit_types(&keys.spec))?;
        let job = self.with(py, |offered| offered.job(&keys.spec))?;
        let max_cell = max_cell.unwrap_or(USUAL_KEY);
        let job = Job { max_cell, line_ends: allow_line_ends, ..job };
        let gift = keys.given(py, &job, duplicates)?;
        let width = gift.bytes_a_key(keys.set.elements().len() as u64).map_err(raised)?;
        self.with(py, |offered| offered.admit_width(width))?;
        let (ours, set) = (job.clone(), Arc::clone(&keys.set));
        let (ran, record) = self.taken(py, keys, records, move |offered, digest, signs, desk| {
            offered.run(&ours, digest, (&*set, gift.borrowed()), signs, desk)
        })?;
        let dict = keys.gained(py, &job, &ran, (rest, all_rows, matched_by.as_deref()))?;
        record.tell(&dict)?;
        Ok(dict)
    }
}

/// A hash of terms out of its text.
fn hash(py: Python<'_>, text: &str) -> PyResult<[u8; 32]> {
    from_hex(text).ok_or_else(|| fault::usage(py, "terms is a hash of 64 hexadecimal digits"))
}

/// A run's record.
struct Record {
    run: String,
    folder: PathBuf,
    /// Whether both have signed it, or what kept it from being written.
    signed: Result<bool, String>,
}

impl Record {
    fn tell(self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        dict.set_item("run", self.run)?;
        dict.set_item("records", self.folder)?;
        dict.set_item("signed", matches!(self.signed, Ok(true)))?;
        dict.set_item("record_fault", self.signed.err())
    }
}

impl Offered {
    /// Takes the offer, makes the `run`, whose arguments are the digest of the keys' file and what signs the record, and
    /// writes the record to `folder`, or else beside the private key.
    fn taken<R: Send + 'static>(
        &self,
        py: Python<'_>,
        keys: &Keys,
        folder: Option<PathBuf>,
        run: impl FnOnce(
            request::Offered,
            &[u8; 32],
            (&Identity, &Records),
            &dyn Observer,
        ) -> tacit::Result<request::Done<R>>
        + Send
        + 'static,
    ) -> PyResult<(Ran<R>, Record)> {
        let raised = |error: Error| fault::raise(py, &error);
        let identity = Identity::load(&self.identity).map_err(|error| raised(error.into()))?;
        let folder = folder.unwrap_or_else(|| self.identity.with_extension("records"));
        let (records, _) = Records::open(&folder, &identity, Side::Client).map_err(raised)?;
        let digest = keys.digest.ok_or_else(|| fault::internal("keys of a run that has no digest"))?;
        let offered = self.take(py)?;
        let name = offered.offer.run.clone();
        let (ran, signed) = course::run(py, &self.listener, &self.desk, &self.cancel, move |desk| {
            let mut done = run(offered, &digest, (&identity, &records), desk)?;
            // The run is over and charged: a record that cannot be written takes no result away.
            let signed = done.record().map_err(|error| error.to_string());
            Ok((done.ran, signed))
        })?;
        Ok((ran, Record { run: name, folder, signed }))
    }

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
