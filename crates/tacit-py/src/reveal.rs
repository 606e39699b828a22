//! What an intersection reveals beside rows: what we give out of a table's columns, and what came of it.

use crate::fault;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch, UInt64Array};
use arrow_cast::CastOptions;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tacit::job::psi::{
    Aggregate, AggregateOutcome, Column, Duplicates, Found, Job, Match, Owned, Reveal, Revealed, Table,
};
use tacit_data::columnar::has_digits;
use tacit_data::records::KeySet;
use tacit_data::values::{self, Form};

/// The table of this side.
#[derive(Clone, Copy)]
pub(crate) struct Ours<'a> {
    pub schema: &'a SchemaRef,
    pub batches: &'a [RecordBatch],
    /// Whether amounts in text have a comma before the fraction.
    pub decimal_comma: bool,
}

impl Ours<'_> {
    /// The column that numbers are taken from by this name, which may end in `:decimalN`: an amount with so many
    /// digits behind the point.
    fn number_column(&self, name: &str) -> values::Column {
        match values::Column::parse(name) {
            column if matches!(column.form, Form::Decimal(_)) && self.schema.index_of(name).is_err() => {
                column
            }
            _ => values::Column { name: name.to_owned(), form: Form::Plain },
        }
    }
}

/// What we give in `job` out of the columns of `table`, whose rows have the keys of `set`.
pub(crate) fn given(
    job: &Job,
    duplicates: Duplicates,
    table: Ours<'_>,
    set: &KeySet,
) -> Result<Owned, String> {
    let Ours { schema, batches, decimal_comma } = table;
    let (reveal, names) = (&job.reveal, &job.give);
    if names.is_empty() {
        return Ok(Owned::None);
    }
    let column = table.number_column(&names[0]);
    if reveal.column().is_some() && column.form != reveal.form() {
        return Err(format!(
            "give: the table has a column called {}, whose end would be read as a number of decimal places; rename it",
            column.name
        ));
    }
    let names = &if reveal.column().is_some() { vec![column.name.clone()] } else { names.clone() };
    let amounts = |batch: &ArrayRef| match column.form {
        Form::Plain => whole(&column.name, batch),
        form => decimals(&column.name, batch, form, decimal_comma),
    };
    let place = |name: &String| {
        schema.index_of(name).map_err(|_| format!("give: there is no column {name} in the table"))
    };
    let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let mut row = 0;
    let mut elements = |batch: &RecordBatch| {
        let first = row;
        row += batch.num_rows() as u64;
        (first..row).map(|row| set.elements_of(row).flatten().collect()).collect::<Vec<Vec<usize>>>()
    };
    let keys = set.elements().len();
    match reveal {
        Reveal::Rows | Reveal::Payload(_) | Reveal::Count | Reveal::Shares => {
            let given = shown(job, names, &places, batches, &mut elements)?;
            Ok(Owned::Table(given, duplicates))
        }
        Reveal::Of(statistic, _) => {
            let mut numbers = vec![statistic.absent(); keys];
            for batch in batches {
                let column = amounts(batch.column(places[0]))?;
                let column = column.as_primitive::<Int64Type>();
                let found = elements(batch).into_iter().enumerate();
                let each =
                    found.flat_map(|(at, elements)| elements.into_iter().map(move |element| (at, element)));
                for (at, element) in each.filter(|(at, _)| column.is_valid(*at)) {
                    if column.value(at) == statistic.absent() {
                        return Err(format!(
                            "column {}: has the number that means an empty cell; change it",
                            names[0]
                        ));
                    }
                    numbers[element] = statistic.of_rows(numbers[element], column.value(at));
                }
            }
            Ok(Owned::Numbers(numbers))
        }
        _ => {
            let mut sums = Column::new(keys);
            for batch in batches {
                let column = amounts(batch.column(places[0]))?;
                let column = column.as_primitive::<Int64Type>();
                for (at, elements) in elements(batch).into_iter().enumerate() {
                    let number = column.is_valid(at).then(|| column.value(at));
                    for element in elements {
                        sums.add(element as u32, number).map_err(|e| e.to_string())?;
                    }
                }
            }
            Ok(Owned::Column(sums))
        }
    }
}

/// The columns that the other side is shown; `elements` gives those of a batch's rows.
fn shown(
    job: &Job,
    names: &[String],
    places: &[usize],
    batches: &[RecordBatch],
    elements: &mut dyn FnMut(&RecordBatch) -> Vec<Vec<usize>>,
) -> Result<Table, String> {
    let mut given = Table::new(names.iter().map(String::as_str)).map_err(|e| e.to_string())?;
    let nulls = job.key.as_ref().map_or(&[][..], |key| &key.nulls);
    let is_null = |cell: &str| nulls.iter().any(|null| null == cell.trim());
    for batch in batches {
        let columns = places.iter().zip(names);
        let columns: Vec<ArrayRef> = columns
            .map(|(&place, name)| cast(name, batch.column(place), &DataType::LargeUtf8))
            .collect::<Result<_, _>>()?;
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i64>()).collect();
        for (at, elements) in elements(batch).into_iter().enumerate() {
            if elements.is_empty() {
                continue;
            }
            for (name, column) in names.iter().zip(&columns) {
                let unfit = column.is_valid(at).then(|| job.unfit(column.value(at))).flatten();
                if let Some(what) = unfit {
                    return Err(format!("give: column {name}, row {} of its batch: {what}", at + 1));
                }
            }
            for element in elements {
                let cells = columns.iter().map(|column| {
                    let cell = column.is_valid(at).then(|| column.value(at));
                    cell.filter(|cell| !is_null(cell)).map(str::as_bytes)
                });
                given.push(element as u32, cells).map_err(|e| e.to_string())?;
            }
        }
    }
    Ok(given)
}

/// A column of decimals with so many digits behind the point as whole numbers.
fn decimals(name: &str, column: &ArrayRef, form: Form, comma: bool) -> Result<ArrayRef, String> {
    let numbers = values::numbers(column, form, comma).map_err(|what| format!("column {name}: {what}"))?;
    Ok(Arc::new(Int64Array::from(numbers)))
}

/// A column of whole numbers of 64 bits: no cell is rounded or lost.
fn whole(name: &str, column: &ArrayRef) -> Result<ArrayRef, String> {
    if column.data_type().is_integer() || matches!(column.data_type(), DataType::Null) {
        return cast(name, column, &DataType::Int64);
    }
    let kind = column.data_type();
    Err(format!(
        "column {name} has the type {kind}, and only whole numbers of 64 bits are added up; name it as \
         {name}:decimal2 to read two decimal places, or convert it to amounts in their smallest unit"
    ))
}

pub(crate) fn cast(name: &str, column: &ArrayRef, kind: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = |column: &ArrayRef| {
        has_digits(column)?;
        arrow_cast::cast_with_options(column, kind, &options)
    };
    cast(column).map_err(|_| {
        let is_bad = |row: &usize| cast(&column.slice(*row, 1)).is_err();
        let row = (0..column.len()).find(is_bad).map_or(0, |row| row + 1);
        format!("column {name}, row {row} of its batch: a cell that cannot be given; leave it empty")
    })
}

/// What comes behind rows of ours: the elements that match, each with the peer's rows, and the names of the
/// peer's columns.
pub(crate) struct Behind<'a> {
    pub asked: &'a [String],
    pub found: Vec<Option<Rows<'a>>>,
    /// Whether every row of ours comes, with a column that says whether it matches.
    pub is_left: bool,
    /// The column that says by which identifier a row matches, and the identifiers' names.
    pub by: Option<(&'a str, Vec<String>)>,
}

/// Rows of the peer's.
pub(crate) type Rows<'a> = &'a [Vec<Option<Vec<u8>>>];

impl<'a> Behind<'a> {
    /// Of matches with the peer's columns `asked`.
    pub(crate) fn of(set: &KeySet, asked: &'a [String], matches: &'a [Match]) -> Self {
        let mut found = vec![None; set.elements().len()];
        for one in matches {
            found[one.element as usize] = Some(one.rows.as_slice());
        }
        Behind { asked, found, is_left: false, by: None }
    }

    /// Of these elements, for every row of ours.
    pub(crate) fn marks(set: &KeySet, matches: &[u32]) -> Self {
        let mut found = vec![None; set.elements().len()];
        for at in matches {
            found[*at as usize] = Some(NO_CELLS);
        }
        Behind { asked: &[], found, is_left: true, by: None }
    }
}

/// One row without a cell.
const NO_CELLS: Rows<'static> = &[Vec::new()];

/// Our matching rows with the peer's columns behind them as `peer_COL`, once for each of the peer's rows with the
/// same key; of a left join every row of ours.
pub(crate) fn joined(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    set: &KeySet,
    behind: &Behind<'_>,
) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
    let Behind { asked, found: theirs, is_left, by } = behind;
    let mut fields = schema.fields().to_vec();
    if *is_left {
        let own = schema.fields().iter().map(|field| field.name().as_str());
        let names = tacit_data::named(own, &["matched".to_owned()], "");
        fields.extend(names.into_iter().map(|name| Arc::new(Field::new(name, DataType::Boolean, false))));
    }
    if let Some((column, _)) = by {
        let taken = fields.clone();
        let own = taken.iter().map(|field| field.name().as_str());
        let names = tacit_data::named(own, &[(*column).to_owned()], "");
        fields.extend(names.into_iter().map(|name| Arc::new(Field::new(name, DataType::LargeUtf8, true))));
    }
    let prefixed: Vec<String> = asked.iter().map(|name| format!("peer_{name}")).collect();
    let taken = fields.clone();
    let own = taken.iter().map(|field| field.name().as_str());
    let names = tacit_data::named(own, &prefixed, "");
    fields.extend(names.into_iter().map(|name| Arc::new(Field::new(name, DataType::LargeUtf8, true))));
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let (mut first, mut out) = (0, Vec::new());
    for batch in batches {
        let (mut own, mut more) = (Vec::new(), vec![Vec::new(); asked.len()]);
        let (mut marks, mut by_each) = (Vec::new(), Vec::new());
        for at in 0..batch.num_rows() as u64 {
            let found = set.first_of(first + at, |element| theirs[element].is_some());
            let rows = found.and_then(|found| theirs[found.element]);
            let name = by.as_ref().zip(found).and_then(|((_, names), found)| names.get(found.identifier));
            if rows.is_none() && *is_left {
                own.push(at);
                marks.push(false);
                by_each.push(None);
                more.iter_mut().for_each(|column: &mut Vec<Option<String>>| column.push(None));
            }
            for row in rows.into_iter().flatten() {
                own.push(at);
                marks.push(true);
                by_each.push(name.map(String::as_str));
                for (column, cell) in more.iter_mut().zip(row) {
                    // A peer that keeps to the protocol gives text.
                    column.push(cell.as_ref().and_then(|cell| String::from_utf8(cell.clone()).ok()));
                }
            }
        }
        first += batch.num_rows() as u64;
        if own.is_empty() {
            continue;
        }
        let own = UInt64Array::from(own);
        let mut columns =
            arrow_select::take::take_arrays(batch.columns(), &own, None).map_err(|e| e.to_string())?;
        if *is_left {
            columns.push(Arc::new(BooleanArray::from(marks)));
        }
        if by.is_some() {
            columns.push(Arc::new(LargeStringArray::from(by_each)));
        }
        columns.extend(more.into_iter().map(|cells| Arc::new(LargeStringArray::from(cells)) as ArrayRef));
        out.push(RecordBatch::try_new(schema.clone(), columns).map_err(|e| e.to_string())?);
    }
    Ok((schema, out))
}

/// Puts what a number over all common keys came to into `dict`.
pub(crate) fn put_number(py: Python<'_>, revealed: &Revealed, dict: &Bound<'_, PyDict>) -> PyResult<()> {
    let (withheld, value, counted) = match revealed {
        Revealed::Aggregate(AggregateOutcome { result: Some(found), .. }) => match found {
            Aggregate::Withheld => (true, py.None(), None),
            Aggregate::Count(count) => (false, count.into_pyobject(py)?.into_any().unbind(), None),
            Aggregate::Sum(sum) => (false, sum.into_pyobject(py)?.into_any().unbind(), None),
            Aggregate::Mean { sum, rows } => (false, sum.into_pyobject(py)?.into_any().unbind(), Some(*rows)),
        },
        Revealed::Statistic(Some(found), _) => match found {
            Found::Withheld => (true, py.None(), None),
            Found::Nothing => (false, py.None(), None),
            Found::Number(number) => (false, number.into_pyobject(py)?.into_any().unbind(), None),
        },
        _ => return Ok(()),
    };
    dict.set_item("withheld", withheld)?;
    dict.set_item("value", value)?;
    dict.set_item("counted", counted)
}

/// Reads `reveal` and `duplicates`.
pub(crate) fn kinds(py: Python<'_>, reveal: &str, duplicates: &str) -> PyResult<(Reveal, Duplicates)> {
    let kind = reveal.parse().map_err(|what: String| fault::usage(py, format!("reveal: {what}")))?;
    let duplicates = match duplicates {
        "refuse" => Duplicates::Refuse,
        "first" => Duplicates::First,
        "all" => Duplicates::All,
        _ => return Err(fault::usage(py, "duplicates is \"refuse\", \"first\" or \"all\"")),
    };
    Ok((kind, duplicates))
}
