//! Workbooks of Excel: a sheet, or a part of it, as a table, and results written as one.
//!
//! A workbook is known by its content. What a cell shows and what it holds differ, and what it holds counts:
//! a number that is whole is one (`12345.0` is `12345`), a date is a date. A column whose cells are of one
//! kind has its type; one of several kinds is text. Cells that hold an error, such as `#N/A`, are refused, or
//! count as empty and are counted.

mod days;
mod limits;
mod old;
mod part;
mod read;
mod records;
mod title;
mod write;

pub(crate) use limits::{MOST_TEXT, SHEET_COLUMNS, SHEET_ROWS, SHORT_TEXT, is_too_long, is_workbook};
pub(crate) use read::{Kind, read};
pub(crate) use write::Workbook;
