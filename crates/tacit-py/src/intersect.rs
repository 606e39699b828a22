//! Intersections of tables: keys out of Arrow columns, and the rows that match.

use crate::key::{spec, texts};
use crate::reveal::Behind;
use crate::{fault, peer::Peer, reveal};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, LargeStringArray, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::PyTable;
use pyo3_arrow::ffi::to_stream_pycapsule;
use std::path::PathBuf;
use std::sync::Arc;
use tacit::crypto::text::counted;
use tacit::job::Ran;
use tacit::job::psi::{
    Duplicates, Gained, Job, MAX_ELEMENTS, Owned, Protocol, Reveal, Revealed, USUAL_KEY, owner,
};
use tacit_data::columnar::{Texts, elements_of_rows};
use tacit_data::csv::{Delimiter, Encoding, ErrorCells, Header, MaxRow, Options, Quote};
use tacit_data::keys::{KeyType, Reason, Tally};
use tacit_data::records::{KeyHasher, KeySet, KeySpec, Listing, MAX_IDENTIFIERS, Normalisation};
use tacit_data::table::Source;

/// A table, and the keys of its rows.
#[pyclass(frozen)]
pub struct Keys {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) spec: KeySpec,
    pub(crate) set: Arc<KeySet>,
    /// Of what was read, if a record is to commit to it.
    pub(crate) digest: Option<[u8; 32]>,
    /// Whether amounts in text have a comma before the fraction.
    decimal_comma: bool,
    /// Why rows have no key, and what is odd about the keys.
    tally: Tally,
}

/// Rows of a table, as an Arrow stream.
#[pyclass(frozen)]
pub struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    digest: Option<[u8; 32]>,
}

#[pymethods]
impl Keys {
    /// The keys of a table in the columns `on`, of these types; of text unless said. Where `further` has places in `on`,
    /// another identifier begins at each.
    #[new]
    #[pyo3(signature = (table, on, *, types=None, further=Vec::new(), nfc=true, trim=true, case_fold=true, nulls=Vec::new(), digest=None,
        decimal_comma=false))]
    fn new(
        py: Python<'_>,
        table: PyTable,
        on: Vec<String>,
        types: Option<Vec<String>>,
        further: Vec<usize>,
        nfc: bool,
        trim: bool,
        case_fold: bool,
        nulls: Vec<String>,
        digest: Option<[u8; 32]>,
        decimal_comma: bool,
    ) -> PyResult<Self> {
        let (batches, schema) = table.into_inner();
        if on.is_empty() {
            return Err(fault::usage(py, "on: name at least one column"));
        }
        let mut places = Vec::new();
        for name in &on {
            let place = schema.index_of(name).map_err(|_| {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                fault::usage(py, format!("there is no column {name}; the table has {}", names.join(", ")))
            })?;
            places.push(place);
        }
        let normalisation = Normalisation { nfc, trim, case_fold };
        let named = spec(on.clone(), types, normalisation).map_err(|what| fault::usage(py, what))?;
        if further.len() >= MAX_IDENTIFIERS {
            let what = format!("or_keys: a row has at most {MAX_IDENTIFIERS} identifiers; give fewer");
            return Err(fault::usage(py, what));
        }
        let spec = KeySpec { nulls, further, ..named };
        let set = py.detach(|| {
            let (mut set, mut hasher) = (KeySet::listed(Listing::of(&spec)), KeyHasher::of(&spec));
            let mut before = 0;
            for batch in &batches {
                let columns: Vec<Texts> = on
                    .iter()
                    .zip(&places)
                    .zip(&spec.types)
                    .map(|((name, &place), &key_type)| {
                        texts(name, batch.column(place), schema.field(place), key_type)
                    })
                    .collect::<Result<_, _>>()?;
                let rows = batch.num_rows();
                let elements = elements_of_rows(&spec, &mut hasher, &columns, rows, before);
                set.push_all(&elements).map_err(|error| error.to_string())?;
                before += rows as u64;
            }
            Ok::<_, String>((set, hasher.take_tally()))
        });
        let (set, tally) = set.map_err(|what| fault::input(py, what))?;
        Ok(Keys { schema, batches, spec, set: Arc::new(set), digest, decimal_comma, tally })
    }

    /// Rows read.
    #[getter]
    fn rows(&self) -> u64 {
        self.set.rows()
    }

    /// Distinct keys.
    #[getter]
    fn distinct(&self) -> usize {
        self.set.elements().len()
    }

    /// Rows without a key.
    #[getter]
    fn without_key(&self) -> u64 {
        self.set.rows_without_key()
    }

    /// Rows whose key an earlier row has.
    #[getter]
    fn duplicates(&self) -> u64 {
        self.set.duplicate_rows()
    }

    /// Whether a row may have several variants, each of which counts as a key.
    #[getter]
    fn has_variants(&self) -> bool {
        self.spec.has_variants()
    }

    /// What the table has of each identifier: its name, rows that have it, and its distinct values.
    #[getter]
    fn identifiers(&self) -> Vec<(String, u64, u64)> {
        let each = self.spec.identifier_names().into_iter().zip(self.set.counts());
        each.map(|(name, of)| (name, of.rows, of.distinct)).collect()
    }

    /// Why rows have no key: column, type, reason in words, and rows.
    #[getter]
    fn refused(&self) -> Vec<(String, String, String, u64)> {
        let each = |((part, reason), rows): (&(usize, Reason), &u64)| {
            let kind = self.spec.types.get(*part).unwrap_or(&KeyType::TEXT);
            let column = self.spec.columns.get(*part).cloned().unwrap_or_default();
            (column, kind.to_string(), kind.refusal(*reason), *rows)
        };
        self.tally.refused.iter().map(each).collect()
    }

    /// What is odd about the keys, with the argument that helps.
    #[getter]
    fn hints(&self) -> Vec<String> {
        let column = |part: usize| self.spec.columns.get(part).cloned().unwrap_or_default();
        let words = self.tally.signs.words(self.tally.rows).into_iter().map(|(part, word, rows)| {
            let rows = counted(rows, "row");
            format!(
                "{}: `{word}` in {rows} is a key like others; null=[\"{word}\"] leaves it out",
                column(part)
            )
        });
        let looks = self.tally.signs.looks().into_iter().map(|(part, name)| {
            let name = if name == "phone" { "phone:NL" } else { name };
            let column = column(part);
            format!("{column}: compared as text; on={{\"{column}\": \"{name}\"}} on both sides matches other spellings")
        });
        words.chain(looks).collect()
    }
}

impl Keys {
    /// What we give in `job`.
    pub(crate) fn given(&self, py: Python<'_>, job: &Job, duplicates: Duplicates) -> PyResult<Owned> {
        let table =
            reveal::Ours { schema: &self.schema, batches: &self.batches, decimal_comma: self.decimal_comma };
        let read = || reveal::given(job, duplicates, table, &self.set);
        py.detach(read).map_err(|what| fault::input(py, what))
    }

    /// What a run gave, as a dictionary.
    pub(crate) fn gained<'py>(
        &self,
        py: Python<'py>,
        job: &Job,
        ran: &Ran<Revealed>,
        (rest, all_rows, matched_by): (bool, bool, Option<&str>),
    ) -> PyResult<Bound<'py, PyDict>> {
        let outcome = ran.result.outcome(job.learns);
        let dict = fault::passed(py, &ran.stats, Some(ran.wall.as_secs_f64()))?;
        let own = self.set.elements().len() as u64;
        dict.set_item("protocol", outcome.protocol)?;
        dict.set_item("peer_keys", outcome.peer_elements)?;
        let learned = job.has_learned(own, &outcome).map_err(|error| fault::raise(py, &error))?;
        dict.set_item("peer_learned", learned)?;
        reveal::put_number(py, &ran.result, &dict)?;
        if let Some(matches) = &outcome.matches {
            dict.set_item("matches", matches.len())?;
            let matched = py.detach(|| self.set.matched(matches));
            dict.set_item("matching_rows", matched.iter().map(|of| of.rows).sum::<u64>())?;
            let matched: Vec<(u64, u64)> = matched.iter().map(|of| (of.distinct, of.rows)).collect();
            dict.set_item("identifiers", matched)?;
            let by = matched_by.map(|column| (column, self.spec.identifier_names()));
            let behind = match (&ran.result, &job.reveal) {
                (Revealed::Payload(Gained { received: Some(received), .. }), Reveal::Payload(asked)) => {
                    Some(Behind::of(&self.set, asked, &received.matches))
                }
                _ => None,
            };
            let behind = match (behind, &by) {
                (Some(behind), _) => Some(Behind { by: by.clone(), ..behind }),
                (None, Some(_)) => {
                    Some(Behind { is_left: false, by: by.clone(), ..Behind::marks(&self.set, matches) })
                }
                (None, None) => None,
            };
            let rows = py.detach(|| match &behind {
                Some(behind) => self.joined(behind),
                None => self.of(matches, true),
            });
            let put = |name: &str, rows: Result<Rows, String>| {
                dict.set_item(name, Py::new(py, rows.map_err(|what| fault::input(py, what))?)?)
            };
            put("rows", rows)?;
            if rest {
                put("rest", py.detach(|| self.of(matches, false)))?;
            }
            if all_rows {
                let behind = behind.unwrap_or_else(|| Behind::marks(&self.set, matches));
                put("all_rows", py.detach(|| self.joined(&Behind { is_left: true, ..behind })))?;
            }
        }
        Ok(dict)
    }

    /// Refuses a column that the table has already, as the one that says by which identifier a row matches.
    pub(crate) fn check_matched_by(&self, py: Python<'_>, column: Option<&str>) -> PyResult<()> {
        let what = match column {
            None => return Ok(()),
            Some(_) if !self.spec.has_several() => {
                "matched_by: goes with or_keys, more identifiers than one".to_owned()
            }
            Some(name) if self.schema.index_of(name).is_ok() => {
                format!("matched_by: the table has a column {name} already; choose another name")
            }
            Some(_) => return Ok(()),
        };
        Err(fault::usage(py, what))
    }

    /// Rows of ours with what comes behind them.
    fn joined(&self, behind: &Behind<'_>) -> Result<Rows, String> {
        let Keys { schema, batches, set, .. } = self;
        let (schema, batches) = reveal::joined(schema, batches, set, behind)?;
        Ok(Rows { schema, batches, digest: None })
    }

    /// The rows whose keys are among `matches`, or the others.
    fn of(&self, matches: &[u32], matching: bool) -> Result<Rows, String> {
        let mut hit = vec![false; self.set.elements().len()];
        for &at in matches {
            if let Some(flag) = hit.get_mut(at as usize) {
                *flag = true;
            }
        }
        let mut first = 0;
        let mut batches = Vec::new();
        for batch in &self.batches {
            let rows = batch.num_rows() as u64;
            let wanted = |row| self.set.first_of(row, |at| hit[at]).is_some() == matching;
            let mask: BooleanArray = (first..first + rows).map(|row| Some(wanted(row))).collect();
            first += rows;
            let kept = arrow_select::filter::filter_record_batch(batch, &mask).map_err(|e| e.to_string())?;
            if kept.num_rows() > 0 {
                batches.push(kept);
            }
        }
        Ok(Rows { schema: self.schema.clone(), batches, digest: None })
    }
}

impl Rows {
    /// All rows of a table behind a column of this name, which has the text that `cell` gives of each row's number.
    pub(crate) fn ahead(
        keys: &Keys,
        name: &str,
        mut cell: impl FnMut(u64) -> String,
    ) -> Result<Self, String> {
        let first = Arc::new(Field::new(name, DataType::LargeUtf8, true));
        let fields: Vec<_> = std::iter::once(first).chain(keys.schema.fields().iter().cloned()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, keys.schema.metadata().clone()));
        let mut row = 0;
        let mut extended = |batch: &RecordBatch| {
            let rows = row..row + batch.num_rows() as u64;
            row = rows.end;
            let texts = Arc::new(LargeStringArray::from_iter_values(rows.map(&mut cell))) as ArrayRef;
            let columns = std::iter::once(texts).chain(batch.columns().iter().cloned()).collect();
            RecordBatch::try_new(schema.clone(), columns).map_err(|error| error.to_string())
        };
        let batches = keys.batches.iter().map(&mut extended).collect::<Result<_, _>>()?;
        Ok(Rows { schema, batches, digest: None })
    }
}

#[pymethods]
impl Rows {
    /// A table of one column, `value`.
    #[staticmethod]
    fn of_strings(values: Vec<String>) -> PyResult<Self> {
        let column = Arc::new(LargeStringArray::from_iter_values(values)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("value", column)])
            .map_err(|error| fault::internal(&error.to_string()))?;
        Ok(Rows { schema: batch.schema(), batches: vec![batch], digest: None })
    }

    /// The table in files or at addresses that the command takes too, which has the columns `on`, and is
    /// written so, with rows of at most so many mebibytes; 16 unless given. With `recorded` its digest is that of
    /// the very bytes that are read.
    #[staticmethod]
    #[pyo3(signature = (paths, on, types=None, *, delimiter="auto", quote="\"", escape=None, header=true, encoding=None,
        skip_lines=0, max_row_mib=None, binary_as_text=false, error_cells="refuse", recorded=false))]
    #[allow(clippy::too_many_arguments)] // How a file is written has as many parts.
    fn of_files(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        on: Vec<String>,
        types: Option<Vec<String>>,
        delimiter: &str,
        quote: &str,
        escape: Option<&str>,
        header: bool,
        encoding: Option<&str>,
        skip_lines: u64,
        max_row_mib: Option<u64>,
        binary_as_text: bool,
        error_cells: &str,
        recorded: bool,
    ) -> PyResult<Self> {
        if paths.is_empty() {
            return Err(fault::usage(py, "a table has a file at least"));
        }
        let spec = spec(on, types, Normalisation::default()).map_err(|what| fault::usage(py, what))?;
        let sign = |name: &str, said: &str| match said.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\r' | b'\n') => Ok(*byte),
            _ => Err(fault::usage(py, format!("{name}: one character of ASCII is expected"))),
        };
        let encoding = encoding.map(|name| {
            let unknown = || fault::usage(py, format!("encoding: {name} is unknown; try windows-1252"));
            Encoding::named(name).ok_or_else(unknown)
        });
        let max_row = match max_row_mib {
            None => MaxRow::default(),
            Some(mib @ 1..=65_536) => MaxRow::new(mib << 20),
            Some(_) => return Err(fault::usage(py, "max_row_mib is a number of mebibytes from 1 to 65536")),
        };
        let options = Options {
            delimiter: match delimiter {
                "auto" => Delimiter::Auto,
                said => Delimiter::Byte(sign("delimiter", said)?),
            },
            quote: match quote {
                "none" => Quote::None,
                said => Quote::Byte(sign("quote", said)?),
            },
            escape: escape.map(|said| sign("escape", said)).transpose()?,
            header: if header { Header::Names } else { Header::None },
            encoding: encoding.transpose()?,
            skip_lines,
            max_row,
            binary_as_text,
            error_cells: match error_cells {
                "refuse" => ErrorCells::Refuse,
                "null" => ErrorCells::Null,
                _ => return Err(fault::usage(py, "error_cells: give refuse or null")),
            },
            ..Options::default()
        };
        let read = py.detach(|| {
            let open = if recorded { Source::open_all_pinned } else { Source::open_all };
            let source = open(&paths, spec, options)?;
            let table = source.read_whole()?;
            let digest = recorded.then(|| source.digest()).transpose()?;
            Ok((table, digest))
        });
        let read = read.map_err(|error: tacit_data::csv::Error| fault::raise(py, &error.into()));
        let ((schema, batches), digest) = read?;
        Ok(Rows { schema, batches, digest })
    }

    /// What a driver of ADBC answered, with a digest as the command has it.
    #[staticmethod]
    fn of_answer(py: Python<'_>, table: PyTable) -> PyResult<Self> {
        let (batches, schema) = table.into_inner();
        let digest = py.detach(|| answer_digest(&schema, &batches));
        let digest = digest.map_err(|what| fault::input(py, what))?;
        Ok(Rows { schema, batches, digest: Some(digest) })
    }

    /// A digest of what was read, if a record is to commit to it.
    #[getter]
    fn digest(&self) -> Option<[u8; 32]> {
        self.digest
    }

    /// The cells of a table of one column of strings.
    fn strings(&self) -> Vec<String> {
        let columns = self.batches.iter().filter_map(|batch| batch.columns().first()?.as_string_opt::<i64>());
        columns.flat_map(|column| column.iter().flatten().map(str::to_owned)).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The Arrow stream, without a copy.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let arrays = pyo3_arrow::ffi::ArrayIterator::new(
            reader
                .map(|batch| batch.map(|batch| Arc::new(arrow_array::StructArray::from(batch)) as ArrayRef)),
            Arc::new(arrow_schema::Field::new_struct("", self.schema.fields().clone(), false)),
        );
        Ok(to_stream_pycapsule(py, Box::new(arrays), requested_schema)?)
    }
}

/// A digest of these batches as an Arrow file.
fn answer_digest(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<[u8; 32], String> {
    struct Digest(blake3::Hasher);
    impl std::io::Write for Digest {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let write = || {
        let digest = Digest(blake3::Hasher::new_derive_key(tacit_data::ANSWER_DIGEST));
        let mut writer = arrow_ipc::writer::FileWriter::try_new(digest, schema)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.into_inner()
    };
    let Digest(digest) = write().map_err(|error: arrow_schema::ArrowError| error.to_string())?;
    Ok(*digest.finalize().as_bytes())
}

/// Runs an intersection; returns what it gave as a dictionary.
#[pyfunction]
#[pyo3(signature = (peer, keys, *, result="me", reveal="rows", give=Vec::new(), duplicates="refuse", min_matches=0,
    bounds=None, result_to_owner=false, protocol="auto", max_peer_keys=None, max_cell=None, allow_line_ends=false,
    rest=false, all_rows=false, matched_by=None, progress=None))]
#[allow(clippy::too_many_arguments)] // They are Python's keywords.
pub(crate) fn intersect<'py>(
    py: Python<'py>,
    peer: &Peer,
    keys: &Keys,
    result: &str,
    reveal: &str,
    give: Vec<String>,
    duplicates: &str,
    min_matches: u64,
    bounds: Option<String>,
    result_to_owner: bool,
    protocol: &str,
    max_peer_keys: Option<u64>,
    max_cell: Option<u64>,
    allow_line_ends: bool,
    rest: bool,
    all_rows: bool,
    matched_by: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let learns = crate::peer::learns(py, result)?;
    let protocols = [Protocol::Auto, Protocol::Paxos, Protocol::Vole];
    let Some(protocol) = protocols.into_iter().find(|one| one.name() == protocol) else {
        let names = protocols.map(Protocol::name).join(", ");
        return Err(fault::usage(py, format!("protocol is one of {names}")));
    };
    let (kind, duplicates) = reveal::kinds(py, reveal, duplicates)?;
    let bounds = bounds.map(|text| owner::bounds(&text, kind.form())).transpose();
    let bounds = bounds.map_err(|what| fault::usage(py, format!("bounds: {what}")))?;
    let job = Job {
        protocol,
        key: Some(keys.spec.clone()),
        most_peer_keys: max_peer_keys,
        max_cell: max_cell.unwrap_or(USUAL_KEY),
        line_ends: allow_line_ends,
        reveal: kind,
        give,
        min_matches,
        bounds,
        result_to_owner,
        ..Job::new(learns, peer.security)
    };
    job.check().map_err(|error| fault::raise(py, &error))?;
    keys.check_matched_by(py, matched_by.as_deref())?;
    let given = keys.given(py, &job, duplicates)?;
    let (ours, set) = (job.clone(), keys.set.clone());
    let ran = peer.run(py, progress, move |session, desk| {
        let most = ours.most_peer_keys.unwrap_or(MAX_ELEMENTS as u64);
        session.run_psi_with(&ours, set.elements(), given.borrowed(), most, desk)
    })?;
    keys.gained(py, &job, &ran, (rest, all_rows, matched_by.as_deref()))
}
