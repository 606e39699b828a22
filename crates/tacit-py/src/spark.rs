//! What Spark's driver and tasks call: keys into digests and buckets, and buckets through the party's
//! gateway.

use crate::fault;
use crate::key::{spec, texts};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use pyo3_arrow::{PyArray, PyRecordBatch};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tacit::job::psi::gateway::{Given, Planned, Ran, Throw, Token};
use tacit::job::psi::{Job, MAX_BUCKETS, USUAL_KEY};
use tacit::{Error, Security};
use tacit_data::columnar::Texts;
use tacit_data::records::{KeyHasher, KeySpec, Normalisation};
use zeroize::Zeroizing;

/// What makes a row's key.
#[pyclass(frozen)]
pub struct Key(KeySpec);

#[pymethods]
impl Key {
    #[new]
    #[pyo3(signature = (on, *, types=None, nfc=true, trim=true, case_fold=true, nulls=Vec::new()))]
    fn new(
        py: Python<'_>,
        on: Vec<String>,
        types: Option<Vec<String>>,
        nfc: bool,
        trim: bool,
        case_fold: bool,
        nulls: Vec<String>,
    ) -> PyResult<Self> {
        spec(on, types, Normalisation { nfc, trim, case_fold })
            .and_then(|spec| match spec.types.iter().find(|kind| kind.is_near()) {
                None => Ok(spec),
                Some(kind) => Err(format!(
                    "on: {kind} makes several keys of a row, and a cluster takes one of each; use {}",
                    kind.exact()
                )),
            })
            .map(|spec| Key(KeySpec { nulls, ..spec }))
            .map_err(|what| fault::usage(py, what))
    }

    /// What stands for the key of each row of a batch of the columns: 32 bytes, or null where there is no
    /// key.
    fn digests(&self, py: Python<'_>, batch: PyRecordBatch) -> PyResult<PyArray> {
        let batch = batch.into_inner();
        let made = py.detach(|| digests(&self.0, &batch));
        made.map(|array| handed(Arc::new(array), DataType::Binary)).map_err(|what| fault::input(py, what))
    }
}

fn digests(spec: &KeySpec, batch: &RecordBatch) -> Result<BinaryArray, String> {
    let columns: Vec<Texts> = spec
        .columns
        .iter()
        .zip(batch.columns())
        .zip(batch.schema_ref().fields())
        .zip(&spec.types)
        .map(|(((name, column), field), &key_type)| texts(name, column, field, key_type))
        .collect::<Result<_, _>>()?;
    let (mut hasher, throw) = (KeyHasher::of(spec), Throw::ahead());
    let rows = (0..batch.num_rows()).map(|row| {
        hasher.hash(columns.iter().map(|column| column.get(row))).map(|element| throw.digest(&element))
    });
    Ok(rows.collect())
}

fn handed(array: ArrayRef, kind: DataType) -> PyArray {
    PyArray::new(array, Arc::new(Field::new("", kind, true)))
}

/// The digests in a column of binaries, of which nulls are left out.
fn told(column: &ArrayRef) -> Result<Vec<[u8; 32]>, String> {
    let no_digest = || "a digest of a key has 32 bytes".to_owned();
    let each = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).map_err(|_| no_digest());
    match column.data_type() {
        DataType::Binary => column.as_binary::<i32>().iter().flatten().map(each).collect(),
        DataType::LargeBinary => column.as_binary::<i64>().iter().flatten().map(each).collect(),
        _ => Err(no_digest()),
    }
}

/// A column of cells that are given.
enum Cells<'a> {
    Short(&'a StringArray),
    Long(&'a LargeStringArray),
}

fn cells_of(column: &ArrayRef) -> Result<Cells<'_>, String> {
    match column.data_type() {
        DataType::Utf8 => Ok(Cells::Short(column.as_string())),
        DataType::LargeUtf8 => Ok(Cells::Long(column.as_string())),
        kind => Err(format!("cells are given as text, not as {kind}")),
    }
}

impl<'a> Cells<'a> {
    fn get(&self, at: usize) -> Option<&'a [u8]> {
        match self {
            Cells::Short(array) => array.is_valid(at).then(|| array.value(at).as_bytes()),
            Cells::Long(array) => array.is_valid(at).then(|| array.value(at).as_bytes()),
        }
    }
}

/// How many buckets suit so many keys and so many tasks at once.
#[pyfunction]
pub(crate) fn buckets_for(own: u64, at_once: u64) -> u64 {
    tacit::job::psi::gateway::buckets_for(own, at_once)
}

/// A job that was opened at the gateway.
#[pyclass(frozen)]
pub struct Plan(Planned);

#[pymethods]
impl Plan {
    /// Opens the job at the party's own gateway, and waits for the peer's driver. `give` has columns with the
    /// bytes of each one's longest cell, and `rows` is how many rows a key has at most; the peer's columns may take
    /// `max_cell` bytes for each of its keys, and those of a bucket's matches `memory`.
    #[staticmethod]
    #[pyo3(signature = (gateway, token, job, key, own, *, buckets, result="me", reveal="rows", give=Vec::new(), rows=0,
        security="malicious", base_ot=None, patience=600.0, max_peer_keys=None, max_cell=None, memory=None))]
    fn open(
        py: Python<'_>,
        gateway: String,
        token: PathBuf,
        job: String,
        key: &Key,
        own: u64,
        buckets: u64,
        result: &str,
        reveal: &str,
        give: Vec<(String, u64)>,
        rows: u64,
        security: &str,
        base_ot: Option<String>,
        patience: f64,
        max_peer_keys: Option<u64>,
        max_cell: Option<u64>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        let learns = crate::peer::learns(py, result)?;
        let security = match security {
            "malicious" => Security::Malicious,
            "semi-honest" => Security::SemiHonest,
            _ => return Err(fault::usage(py, "security is \"malicious\" or \"semi-honest\"")),
        };
        if !buckets.is_power_of_two() || buckets > MAX_BUCKETS {
            let what = format!("buckets is a power of two from 1 to {MAX_BUCKETS}");
            return Err(fault::usage(py, what));
        }
        let patience = Duration::try_from_secs_f64(patience).ok().filter(|time| time.as_secs() >= 1);
        let patience =
            patience.ok_or_else(|| fault::usage(py, "timeout is a number of seconds, 1 or more"))?;
        let (reveal, _) = crate::reveal::kinds(py, reveal, "refuse")?;
        let names = give.iter().map(|(name, _)| name.clone()).collect();
        let about = Job {
            reveal,
            give: names,
            key: Some(key.0.clone()),
            max_cell: max_cell.unwrap_or(USUAL_KEY),
            row_memory: memory.unwrap_or(u64::MAX),
            most_peer_keys: max_peer_keys,
            ..Job::new(learns, security)
        };
        let given = Given { columns: give, rows };
        let opened = py.detach(|| {
            about.check_by_gateways()?;
            let token = Token::from_file(&token)?;
            let base = tacit::ot::base_ot(base_ot.as_deref(), security)?;
            Planned::open(&gateway, &token, &job, &about, &*base, (own, buckets), given, patience)
        });
        opened.map(Plan).map_err(|error| fault::raise(py, &error))
    }

    /// The plan for tasks, as bytes; they hold the job's token.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Planned::from_bytes(bytes).map(Plan).map_err(|error| fault::raise(py, &error))
    }

    #[getter]
    fn own(&self) -> u64 {
        self.0.own
    }

    #[getter]
    fn peer(&self) -> u64 {
        self.0.peer
    }

    #[getter]
    fn buckets(&self) -> u64 {
        self.0.buckets
    }

    /// For each digest the place of its bucket among those of `todo`, in ascending order; null where it is in
    /// none of them.
    fn slots(&self, py: Python<'_>, digests: PyArray, todo: Vec<u64>) -> PyResult<PyArray> {
        let mut places = vec![None; self.0.buckets as usize];
        for (slot, number) in (0..).zip(&todo) {
            let place = places.get_mut(*number as usize);
            *place.ok_or_else(|| fault::internal("there is no such bucket"))? = Some(slot);
        }
        let (array, _) = digests.into_inner();
        let slots = py.detach(|| {
            let throw = self.0.throw();
            let slot = |digest: &[u8; 32]| places[throw.bucket(digest) as usize];
            Ok::<Int32Array, String>(told(&array)?.iter().map(slot).collect())
        });
        slots.map(|array| handed(Arc::new(array), DataType::Int32)).map_err(|what| fault::input(py, what))
    }

    /// Runs a bucket of these rows, each a digest and the cells that are given; the digests that the peer has
    /// too, the columns asked for, and how many keys did not open. Nothing if the task is to come again.
    fn run(
        &self,
        py: Python<'_>,
        gateway: &str,
        number: u64,
        rows: Vec<PyRecordBatch>,
    ) -> PyResult<Option<(PyArray, Vec<PyArray>, u64)>> {
        let batches: Vec<RecordBatch> = rows.into_iter().map(PyRecordBatch::into_inner).collect();
        let ran = py.detach(|| {
            let mut all = Zeroizing::new(Vec::new());
            // The place in `all` at which each batch begins.
            let mut starts = Vec::with_capacity(batches.len());
            for batch in &batches {
                starts.push(all.len());
                all.extend(told(batch.column(0)).map_err(Error::Input)?);
                if all.len() - starts[starts.len() - 1] != batch.num_rows() {
                    return Err(Error::Input("a row without a key was given to a bucket".to_owned()));
                }
            }
            let cells = batches.iter().map(|batch| batch.columns()[1..].iter().map(cells_of).collect());
            let cells = cells.collect::<Result<Vec<Vec<Cells<'_>>>, String>>().map_err(Error::Input)?;
            self.0.run(gateway, number, all, &|row, column| {
                let at = starts.partition_point(|start| *start <= row) - 1;
                cells[at][column].get(row - starts[at])
            })
        });
        let handed_text = |array: LargeStringArray| handed(Arc::new(array), DataType::LargeUtf8);
        Ok(match ran.map_err(|error| fault::raise(py, &error))? {
            Ran::Matches { digests, cells, unopened } => {
                let array: BinaryArray = digests.iter().map(|digest| Some(&digest[..])).collect();
                let columns = cells.first().map_or(0, Vec::len);
                let text = |cell: &Option<Vec<u8>>| {
                    cell.as_ref().map(|cell| String::from_utf8_lossy(cell).into_owned())
                };
                let columns = (0..columns).map(|at| cells.iter().map(|row| text(&row[at])).collect());
                let columns = columns.map(handed_text).collect();
                Some((handed(Arc::new(array), DataType::Binary), columns, unopened))
            }
            Ran::Deferred => None,
        })
    }

    /// What the run came to.
    fn ran<'py>(&self, py: Python<'py>, gateway: &str, common: u64) -> PyResult<Bound<'py, PyDict>> {
        let ran = py.detach(|| self.0.ran(gateway, common)).map_err(|error| fault::raise(py, &error))?;
        let dict = PyDict::new(py);
        dict.set_item("own_keys", ran.own)?;
        dict.set_item("peer_keys", ran.peer)?;
        dict.set_item("buckets", ran.buckets)?;
        dict.set_item("repeated", ran.repeated)?;
        dict.set_item("matches", ran.common)?;
        dict.set_item("peer_learned", self.0.has_learned(&ran))?;
        Ok(dict)
    }
}
