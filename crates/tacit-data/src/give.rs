//! Columns that go to the other side, out of a table of columns: what a cell is, by what it is given for.
//!
//! To be shown, a cell is the text that it has in a CSV file (`convert`); to be added up or compared, a
//! whole number, which a decimal or a float may be too; to be computed on, a value
//! ([`values`]). A null is nothing. A column of cells that cannot be so is refused before any
//! is read.

use crate::columnar::{self, NO_TEXT, Source};
use crate::fault::{Error, Place, Result, guarded};
use crate::kept::NUMERIC;
use crate::records::KeySet;
use crate::values::{self, Cells, Form};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, FieldRef};
use std::fmt::Write;

/// What cells are given for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To be shown to the other side.
    Shown,
    /// To be added up or compared, as what its text means.
    Number(Form),
    /// To be what a function takes.
    Value,
}

impl Purpose {
    /// What to do about a column of this type; `None` if its cells can be given so.
    fn refuses(self, data: &DataType) -> Option<&'static str> {
        match (self, data) {
            (Purpose::Shown, _) => columnar::without_text(data).map(|_| "convert it to text"),
            (Purpose::Value, _) => values::refused(data, Form::Plain),
            (Purpose::Number(_), DataType::Dictionary(_, of)) => self.refuses(of),
            (
                Purpose::Number(_),
                DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View,
            ) => None,
            (Purpose::Number(_), data) if data.is_numeric() => None,
            (Purpose::Number(_), _) => Some("convert it to whole numbers, amounts in their smallest unit"),
        }
    }
}

/// Tells the cells of every row with a key, of the columns called so, to `visit`, with the row's element and
/// where it stands, once for each identifier that the row has. Errors: a column that is missing, there twice, or
/// of cells that cannot be given for this; a cell that is none of those; and a table whose rows are not those of `keys`.
pub(crate) fn each<E: From<Error>>(
    source: &Source,
    keys: &KeySet,
    columns: &[String],
    purpose: Purpose,
    mut visit: impl FnMut(usize, Place, &[Option<&str>]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let path = || source.path().to_owned();
    let shown = |column: &String| format!("`{}`", tacit_crypto::text::shown(column));
    let places: Vec<usize> = columns.iter().map(|column| source.position(column)).collect::<Result<_>>()?;
    for (column, &at) in columns.iter().zip(&places) {
        let found = source.schema().field(at).data_type();
        if let Some(remedy) = purpose.refuses(found) {
            let (column, found) = (shown(column), found.to_string());
            return Err(Error::ValueType { path: path(), column, found, remedy }.into());
        }
    }
    // The keys too: a row that stands elsewhere than before would give its cells as another's.
    let ((mut hasher, key), mut again) = (source.key(), keys.again());
    let mut needed = [&places[..], key].concat();
    needed.sort_unstable();
    needed.dedup();
    let key: Vec<usize> = key.iter().map(|at| needed.binary_search(at).unwrap_or(0)).collect();
    let (mut row, mut texts) = (0, vec![String::new(); columns.len()]);
    for batch in source.batches(Some(needed.clone()))? {
        let batch = batch.map_err(|error| source.failed(error))?;
        let arrays = places.iter().map(|at| batch.columns().get(needed.binary_search(at).unwrap_or(0)));
        let arrays: Option<Vec<&ArrayRef>> = arrays.collect();
        let arrays = arrays.ok_or_else(|| source.changed())?;
        let plain = |(column, &at): (&ArrayRef, &usize)| {
            let plain = guarded(|| columnar::plain(column, source.schema().field(at)));
            plain.map_err(|_| source.textless(at, column, row))
        };
        let plain: Vec<ArrayRef> = arrays.into_iter().zip(&places).map(plain).collect::<Result<_>>()?;
        let given: Vec<Given<'_>> = plain
            .iter()
            .zip(&places)
            .map(|(column, &at)| {
                let comma = source.has_decimal_comma();
                let given = guarded(|| Given::of(column, source.schema().field(at), purpose, comma));
                given.map_err(|_| source.textless(at, column, row))
            })
            .collect::<Result<_>>()?;
        let named = |(field, at): (&FieldRef, &usize)| field.name() == source.schema().field(*at).name();
        if !batch.schema().fields().iter().zip(&needed).all(named) {
            return Err(source.changed().into());
        }
        let elements = source.elements(&mut hasher, &batch, &key, row)?;
        for (at, elements) in source.listing().rows(&elements).enumerate() {
            let number = again.row(elements).map_err(|_| source.changed())?;
            row += 1;
            if elements.iter().all(Option::is_none) {
                continue;
            }
            let place = Place::Row(row);
            let mut there = vec![false; columns.len()];
            for (((column, given), text), there) in columns.iter().zip(&given).zip(&mut texts).zip(&mut there)
            {
                text.clear();
                *there = guarded(|| given.read(at, text)).map_err(|what| {
                    let (column, (path, place)) = (shown(column), source.place(row));
                    Error::Cell { path, place, column, what }
                })? && !source.is_null(text);
            }
            let cells: Vec<Option<&str>> =
                texts.iter().zip(&there).map(|(text, there)| there.then_some(text.as_str())).collect();
            for element in keys.elements_of(number).flatten() {
                visit(element, place, &cells)?;
            }
        }
    }
    if again.is_whole() { Ok(()) } else { Err(source.changed().into()) }
}

/// A column's cells as what they are given for.
enum Given<'a> {
    Text(ArrayFormatter<'a>, &'a ArrayRef),
    Value(Cells, Form),
}

impl<'a> Given<'a> {
    fn of(
        column: &'a ArrayRef,
        field: &Field,
        purpose: Purpose,
        comma: bool,
    ) -> std::result::Result<Self, arrow_schema::ArrowError> {
        if purpose == Purpose::Shown {
            return Ok(Given::Text(ArrayFormatter::try_new(column, &OPTIONS)?, column));
        }
        let cells = Cells::of(column)?.with_comma(comma);
        let is_numeric = field.metadata().get(NUMERIC.0).is_some_and(|name| name == NUMERIC.1);
        let form = if let Purpose::Number(form) = purpose { form } else { Form::Plain };
        Ok(Given::Value(if is_numeric { cells.of_numbers() } else { cells }, form))
    }

    /// Appends the text of a row's cell; `false` if it is null. Says what was expected where there is none.
    fn read(&self, row: usize, out: &mut String) -> std::result::Result<bool, String> {
        match self {
            Given::Text(_, column) if column.is_null(row) => Ok(false),
            Given::Text(texts, _) => match write!(out, "{}", texts.value(row)) {
                Ok(()) => Ok(true),
                Err(_) => Err(NO_TEXT.to_owned()),
            },
            Given::Value(cells, form) => cells.read(*form, row, out),
        }
    }
}

const OPTIONS: FormatOptions<'static> = FormatOptions::new().with_display_error(false);
