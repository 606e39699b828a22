//! What the other side gave, on its way behind our rows.

use crate::excel::{is_too_long, is_workbook};
use crate::fault::Result;
use crate::records::Found;
use std::path::Path;

/// A cell that the other side gave; nothing where it is null.
pub(crate) type Cell = Option<String>;

/// What goes behind our rows.
pub(crate) struct Behind<'a, 'm> {
    /// The columns' names, and what goes in front of one that we have already.
    pub names: &'a [String],
    pub prefix: &'a str,
    /// The rows of an element.
    pub rows: &'a dyn Fn(usize) -> &'m [Vec<Cell>],
    /// Whether every row of ours goes out, with a first column that says whether it matches.
    pub is_left: bool,
    /// The column that says by which identifier a row matches, if there is to be one.
    pub by: Option<By<'a>>,
    /// Cells that the output could not hold, and that were left empty.
    pub emptied: &'a std::cell::Cell<u64>,
    /// Whether cells go to a workbook, which holds no long ones.
    pub is_workbook: bool,
}

/// A column that says by which identifier a row matches.
#[derive(Clone, Copy, Debug)]
pub struct By<'a> {
    /// The column's name.
    pub column: &'a str,
    /// The identifiers' names, which are its cells.
    pub names: &'a [String],
}

/// The column of a left join that says whether a row matches.
const MATCHED: &str = "matched";

impl<'a, 'm> Behind<'a, 'm> {
    /// Of matching rows alone, for an output called `target`.
    pub(crate) fn new(
        names: &'a [String],
        prefix: &'a str,
        rows: &'a dyn Fn(usize) -> &'m [Vec<Cell>],
        emptied: &'a std::cell::Cell<u64>,
        target: &Path,
    ) -> Self {
        let is_workbook = is_workbook(target);
        Behind { names, prefix, rows, is_left: false, by: None, emptied, is_workbook }
    }
}

impl Behind<'_, '_> {
    /// A cell of the other side's, or nothing if a workbook is to hold it and cannot.
    fn cell<'c>(&self, cell: &'c Cell) -> Option<&'c str> {
        let cell = cell.as_deref()?;
        if self.is_workbook && is_too_long(cell) {
            self.emptied.set(self.emptied.get() + 1);
            return None;
        }
        Some(cell)
    }

    /// The names, next to `own` columns: no two are the same.
    pub(crate) fn named<'o>(&self, own: impl Iterator<Item = &'o str> + Clone) -> Vec<String> {
        let flags: Vec<&str> =
            self.is_left.then_some(MATCHED).into_iter().chain(self.by.map(|by| by.column)).collect();
        let flags = beside(own.clone(), &flags);
        let mut taken: Vec<&str> = own.collect();
        taken.extend(flags.iter().map(String::as_str));
        let more = named(taken.iter().copied(), self.names, self.prefix);
        flags.iter().cloned().chain(more).collect()
    }

    /// How many columns come behind our own.
    pub(crate) fn columns(&self) -> usize {
        self.names.len() + usize::from(self.is_left) + usize::from(self.by.is_some())
    }

    /// Whether a row that matches by this goes out.
    pub(crate) fn goes_out(&self, found: Option<Found>) -> bool {
        self.is_left || !self.rows_of(found).is_empty()
    }

    /// Hands what goes behind a row that matches by this to `visit`, once for each time that the row goes out.
    pub(crate) fn each(
        &self,
        found: Option<Found>,
        mut visit: impl FnMut(&[Option<&str>]) -> Result<()>,
    ) -> Result<()> {
        let rows = self.rows_of(found);
        let flag = |text| self.is_left.then_some(Some(text));
        for row in rows {
            let by = self.by.map(|by| found.and_then(|found| Some(by.names.get(found.identifier)?.as_str())));
            let cells = row.iter().map(|cell| self.cell(cell));
            let cells: Vec<_> = flag("true").into_iter().chain(by).chain(cells).collect();
            visit(&cells)?;
        }
        if rows.is_empty() && self.is_left {
            let nothing = std::iter::repeat_n(None, self.columns() - 1);
            let cells: Vec<_> = flag("false").into_iter().chain(nothing).collect();
            visit(&cells)?;
        }
        Ok(())
    }

    fn rows_of(&self, found: Option<Found>) -> &[Vec<Cell>] {
        found.map_or(&[], |found| (self.rows)(found.element))
    }
}

/// The `names`, each with a number behind it where a column in front of it is called so.
pub(crate) fn beside<'a>(columns: impl Iterator<Item = &'a str> + Clone, names: &[&str]) -> Vec<String> {
    let mut header: Vec<String> = Vec::new();
    for name in names {
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let mut names = std::iter::once((*name).to_owned()).chain(numbered);
        let taken = |name: &str| {
            columns.clone().any(|taken| taken.trim() == name) || header.iter().any(|taken| taken == name)
        };
        let free = names.find(|name| !taken(name));
        header.extend(free);
    }
    header
}

/// What was written of rows with something behind them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Cells of the other side's that the output could not hold, and that were left empty.
    pub emptied: u64,
}

/// The `names` of columns that come behind `own`: one that is taken already gets the prefix, and a number if
/// that is taken too. No two are the same.
pub fn named<'o>(own: impl Iterator<Item = &'o str> + Clone, names: &[String], prefix: &str) -> Vec<String> {
    let mut given: Vec<String> = Vec::new();
    for name in names {
        let name = name.trim();
        let prefixed = format!("{prefix}{name}");
        let numbered = (2..).map(|number| format!("{prefixed}_{number}"));
        let mut free = [name.to_owned(), prefixed.clone()].into_iter().chain(numbered);
        let is_taken = |name: &String| {
            own.clone().any(|taken| taken.trim() == name) || given.iter().any(|taken| taken == name)
        };
        let found = free.find(|name| !is_taken(name));
        given.extend(found);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn no_two_columns_bear_one_name() {
        let of = |own: &[&str], names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            named(own.iter().copied(), &names, "peer_")
        };
        assert_eq!(of(&["k"], &["y"]), ["y"]);
        assert_eq!(of(&["k", "y "], &["y"]), ["peer_y"]);
        assert_eq!(of(&["y", "peer_y"], &["y", "z"]), ["peer_y_2", "z"]);
        assert_eq!(of(&["y"], &["peer_y", "y"]), ["peer_y", "peer_y_2"]);
        assert_eq!(of(&["y", "peer_y", "peer_y_2"], &["y", "y"]), ["peer_y_3", "peer_y_4"]);
    }
}
