//! Cells that an output cannot hold: refused, or left empty and counted.

use crate::fault::guarded;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What becomes of the cells of a table that an output cannot hold, and how many were left empty.
#[derive(Clone, Default)]
pub(crate) struct Unfit {
    is_left_empty: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Unfit {
    /// Leaves such cells empty from now on.
    pub(crate) fn leave_empty(&self) {
        self.is_left_empty.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_left_empty(&self) -> bool {
        self.is_left_empty.load(Ordering::Relaxed)
    }

    /// One cell was left empty.
    pub(crate) fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many cells were left empty.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The same for a trial, whose cells do not count.
    pub(crate) fn trial(&self) -> Self {
        Unfit { count: Arc::default(), ..self.clone() }
    }

    /// What `of` makes of a column. Where cells are left empty, it gets the column without those of which it can
    /// make nothing. Errors: the number of the first row that it refuses.
    pub(crate) fn through<T>(
        &self,
        column: &ArrayRef,
        of: impl Fn(&ArrayRef) -> Result<T, ArrowError>,
    ) -> Result<T, usize> {
        if let Ok(made) = guarded(|| of(column)) {
            return Ok(made);
        }
        let is_bad = |row: usize| guarded(|| of(&column.slice(row, 1))).is_err();
        let bad: Vec<bool> = (0..column.len()).map(is_bad).collect();
        let first = bad.iter().position(|bad| *bad).unwrap_or(0);
        if !self.is_left_empty() {
            return Err(first);
        }
        let emptied = bad.iter().filter(|bad| **bad).count();
        let rest = guarded(|| {
            // Runs have no nulls but in their values.
            let plain = match column.data_type() {
                DataType::RunEndEncoded(_, values) => arrow_cast::cast(column, values.data_type())?,
                _ => column.clone(),
            };
            arrow_select::nullif::nullif(&plain, &BooleanArray::from(bad))
        });
        let made = rest.and_then(|rest| guarded(|| of(&rest))).map_err(|_| first)?;
        self.count.fetch_add(emptied as u64, Ordering::Relaxed);
        Ok(made)
    }
}
