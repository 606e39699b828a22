//! Rows of columns on their way to a workbook.
//!
//! What Excel would show otherwise goes as text: numbers of more than fifteen digits, points in time with more
//! than thousandths of a second or with a time zone (in UTC), days that it cannot count. Text is never taken for
//! a formula.

use super::days::{MILLIS_A_DAY, serial};
use super::limits::{SHEET_ROWS, SHORT_TEXT, is_too_long};
use crate::columnar::{NO_TEXT, plain, unwritable};
use crate::fault::{Error, Place, Result, guarded};
use crate::kept::NUMERIC;
use crate::unfit::Unfit;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::CastOptions;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use rust_xlsxwriter::{Format, Worksheet, XlsxError};
use std::io::Write;
use std::path::Path;

/// The largest number of fifteen digits.
const MOST_NUMBER: u64 = 999_999_999_999_999;

/// A workbook that grows, with sheets of at most [`SHEET_ROWS`] rows.
pub(crate) struct Workbook<'a, W: Write> {
    target: &'a Path,
    output: &'a mut W,
    schema: SchemaRef,
    book: rust_xlsxwriter::Workbook,
    sheet: Worksheet,
    /// Rows in the sheet, and in all.
    filled: u64,
    written: u64,
    /// Whether nothing is kept, and one sheet has to do.
    is_trial: bool,
    unfit: Unfit,
    day: Format,
    moment: Format,
}

impl<'a, W: Write> Workbook<'a, W> {
    /// Begins with the columns' names.
    pub(crate) fn new(
        target: &'a Path,
        schema: &SchemaRef,
        output: &'a mut W,
        is_trial: bool,
        unfit: Unfit,
    ) -> Result<Self> {
        let mut workbook = Workbook {
            target,
            output,
            schema: schema.clone(),
            book: rust_xlsxwriter::Workbook::new(),
            sheet: Worksheet::new(),
            filled: 0,
            written: 0,
            is_trial,
            unfit,
            day: Format::new().set_num_format("yyyy-mm-dd"),
            moment: Format::new().set_num_format("yyyy-mm-dd hh:mm:ss.000"),
        };
        workbook.names()?;
        Ok(workbook)
    }

    fn failed(&self, error: &XlsxError) -> Error {
        unwritable(self.target, error)
    }

    fn names(&mut self) -> Result<()> {
        for (at, field) in self.schema.clone().fields().iter().enumerate() {
            let written = self.sheet.write_string(0, at as u16, field.name().as_str()).map(|_| ());
            written.map_err(|error| self.failed(&error))?;
        }
        self.filled = 1;
        Ok(())
    }

    /// Appends these rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns: Vec<Cells> =
            (0..rows.num_columns()).map(|at| self.cells(rows, at)).collect::<Result<_>>()?;
        for row in 0..rows.num_rows() {
            if self.filled == SHEET_ROWS {
                if self.is_trial {
                    let what = "more than 1,048,575 rows";
                    let remedy = "name it .parquet, .arrow or .csv";
                    return Err(Error::NoRoom { path: self.target.to_owned(), what, remedy });
                }
                self.book.push_worksheet(std::mem::replace(&mut self.sheet, Worksheet::new()));
                self.names()?;
            }
            for (at, cells) in columns.iter().enumerate() {
                if let Cells::Text(texts) = cells
                    && texts.is_valid(row)
                    && is_too_long(texts.as_string::<i64>().value(row))
                {
                    if self.unfit.is_left_empty() {
                        self.unfit.add();
                        continue;
                    }
                    return Err(self.refused(at, row, SHORT_TEXT));
                }
                if !self.is_trial {
                    self.put(cells, row, at as u16).map_err(|error| self.failed(&error))?;
                }
            }
            self.filled += 1;
        }
        self.written += rows.num_rows() as u64;
        Ok(())
    }

    fn put(&mut self, cells: &Cells, row: usize, column: u16) -> std::result::Result<(), XlsxError> {
        let to = self.filled as u32;
        match cells {
            Cells::Bool(array) if array.is_valid(row) => {
                self.sheet.write_boolean(to, column, array.as_boolean().value(row))?;
            }
            Cells::Number(numbers) => match &numbers[row] {
                Some(Number::Plain(number)) => _ = self.sheet.write_number(to, column, *number)?,
                Some(Number::Day(number)) => {
                    self.sheet.write_number_with_format(to, column, *number, &self.day)?;
                }
                Some(Number::Moment(number)) => {
                    self.sheet.write_number_with_format(to, column, *number, &self.moment)?;
                }
                Some(Number::Text(text)) => _ = self.sheet.write_string(to, column, text.as_str())?,
                None => {}
            },
            Cells::Text(texts) if texts.is_valid(row) => {
                self.sheet.write_string(to, column, texts.as_string::<i64>().value(row))?;
            }
            Cells::Bool(_) | Cells::Text(_) => {}
        }
        Ok(())
    }

    fn refused(&self, at: usize, row: usize, what: &str) -> Error {
        Error::Unfit {
            path: self.target.to_owned(),
            place: Place::Row(self.written + row as u64 + 1),
            column: format!("`{}`", tacit_crypto::text::shown(self.schema.field(at).name())),
            what: what.to_owned(),
        }
    }

    /// A column's cells as a sheet has them.
    fn cells(&self, rows: &RecordBatch, at: usize) -> Result<Cells> {
        let (column, field) = (rows.column(at), self.schema.field(at));
        let is_decimal = field.metadata().get(NUMERIC.0).is_some_and(|name| name == NUMERIC.1);
        let of = |column: &ArrayRef| match plain(column, field)? {
            texts if is_decimal && texts.data_type().is_string() => decimals(&texts).map(Cells::Number),
            cells => Cells::of(&cells),
        };
        self.unfit.through(column, of).map_err(|row| self.refused(at, row, NO_TEXT))
    }

    /// Ends the workbook.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.is_trial {
            return Ok(());
        }
        self.book.push_worksheet(self.sheet);
        let made = guarded(|| self.book.save_to_buffer());
        let bytes = made.map_err(|error| unwritable(self.target, &error))?;
        let fault = |source| Error::Unwritable { path: self.target.to_owned(), source };
        self.output.write_all(&bytes).and_then(|()| self.output.flush()).map_err(fault)
    }
}

enum Cells {
    Bool(ArrayRef),
    Number(Vec<Option<Number>>),
    /// Of long text.
    Text(ArrayRef),
}

enum Number {
    Plain(f64),
    Day(f64),
    Moment(f64),
    /// One that a sheet would not hold as it is.
    Text(String),
}

impl Cells {
    /// Of a column without a dictionary.
    fn of(column: &ArrayRef) -> std::result::Result<Self, arrow_schema::ArrowError> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |to: &DataType| arrow_cast::cast_with_options(column, to, &strict);
        let short = |number: i64| match number.unsigned_abs() <= MOST_NUMBER {
            true => Number::Plain(number as f64),
            false => Number::Text(number.to_string()),
        };
        Ok(match column.data_type() {
            DataType::Boolean => Cells::Bool(column.clone()),
            DataType::UInt64 => {
                let each = |number: u64| {
                    i64::try_from(number).map_or_else(|_| Number::Text(number.to_string()), short)
                };
                Cells::Number(column.as_primitive::<UInt64Type>().iter().map(|cell| cell.map(each)).collect())
            }
            data if data.is_integer() => {
                let cells = cast(&DataType::Int64)?;
                Cells::Number(cells.as_primitive::<Int64Type>().iter().map(|cell| cell.map(short)).collect())
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Cells::Number(floats(column)?),
            data if data.is_decimal() => Cells::Number(decimals(column)?),
            DataType::Date32 => {
                let days = column.as_primitive::<Date32Type>();
                let texts = ArrayFormatter::try_new(column, &TEXTS)?;
                let each = |row: usize| match serial(i64::from(days.value(row)) * MILLIS_A_DAY) {
                    Some(number) => Ok(Number::Day(number)),
                    None => texts.value(row).try_to_string().map(Number::Text),
                };
                Cells::Number(filled(column, each)?)
            }
            DataType::Timestamp(_, None) => {
                let micros = cast(&DataType::Timestamp(TimeUnit::Microsecond, None));
                let texts = ArrayFormatter::try_new(column, &TEXTS)?;
                let is_fine = matches!(column.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
                let each = |row: usize| {
                    let whole =
                        micros.as_ref().ok().map(|m| m.as_primitive::<TimestampMicrosecondType>().value(row));
                    let text = texts.value(row).try_to_string()?;
                    // Thousandths and nothing behind them.
                    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                    let number = whole.filter(|m| m % 1000 == 0 && !(is_fine && fraction > 3));
                    Ok(number.and_then(|m| serial(m / 1000)).map_or(Number::Text(text), Number::Moment))
                };
                Cells::Number(filled(column, each)?)
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Cells::Text(cast(&DataType::LargeUtf8)?)
            }
            _ => {
                let texts = ArrayFormatter::try_new(column, &TEXTS)?;
                let text = |row: usize| match column.is_null(row) {
                    true => Ok(None),
                    false => texts.value(row).try_to_string().map(Some),
                };
                let all: arrow_array::LargeStringArray =
                    (0..column.len()).map(text).collect::<std::result::Result<_, _>>()?;
                Cells::Text(std::sync::Arc::new(all))
            }
        })
    }
}

/// Numbers as they are where a sheet has them, and where reading them back gives the same.
fn floats(column: &ArrayRef) -> std::result::Result<Vec<Option<Number>>, arrow_schema::ArrowError> {
    let wide = arrow_cast::cast(column, &DataType::Float64)?;
    let (wide, texts) =
        (wide.as_primitive::<arrow_array::types::Float64Type>(), ArrayFormatter::try_new(column, &TEXTS)?);
    filled(column, |row| {
        let number = wide.value(row);
        let text = texts.value(row).try_to_string()?;
        // A float of 32 bits has another text than the same one of 64, which is what others would read.
        let same = number.is_finite() && text.parse::<f64>().is_ok_and(|read| read == number);
        let close = text.parse::<f64>().ok().filter(|read| read.is_finite());
        Ok(match (same, close) {
            (true, _) => Number::Plain(number),
            (false, Some(read)) if column.data_type() != &DataType::Float64 => Number::Plain(read),
            _ => Number::Text(text),
        })
    })
}

/// Decimals, and text that holds some.
fn decimals(column: &ArrayRef) -> std::result::Result<Vec<Option<Number>>, arrow_schema::ArrowError> {
    let texts = ArrayFormatter::try_new(column, &TEXTS)?;
    filled(column, |row| {
        let text = texts.value(row).try_to_string()?;
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && digits <= 15);
        Ok(number.map_or(Number::Text(text), Number::Plain))
    })
}

fn filled(
    column: &ArrayRef,
    mut each: impl FnMut(usize) -> std::result::Result<Number, arrow_schema::ArrowError>,
) -> std::result::Result<Vec<Option<Number>>, arrow_schema::ArrowError> {
    (0..column.len()).map(|row| if column.is_null(row) { Ok(None) } else { each(row).map(Some) }).collect()
}

const TEXTS: FormatOptions<'static> = FormatOptions::new().with_display_error(false);
