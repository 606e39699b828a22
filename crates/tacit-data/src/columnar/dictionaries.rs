//! One dictionary a column, where a file has one a row group: Arrow's file format knows no other.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, UInt32Array};
use arrow_cast::CastOptions;
use arrow_schema::{ArrowError, DataType};
use std::collections::HashMap;
use std::sync::Arc;

/// The values of a column's dictionaries, each once.
#[derive(Default)]
pub(super) struct Gathered {
    places: HashMap<Option<Vec<u8>>, usize>,
    arrays: Vec<ArrayRef>,
    chosen: Vec<(usize, usize)>,
}

/// A column's one dictionary.
pub(super) struct Dictionary {
    places: HashMap<Option<Vec<u8>>, usize>,
    values: ArrayRef,
}

impl Gathered {
    /// Takes the dictionary of a batch's column.
    pub(super) fn add(&mut self, column: &ArrayRef) -> Result<(), ArrowError> {
        let Some(column) = column.as_any_dictionary_opt() else { return Ok(()) };
        let values = column.values();
        if self.arrays.last().is_some_and(|last| last.to_data().ptr_eq(&values.to_data())) {
            return Ok(());
        }
        for (at, cell) in cells(values)?.into_iter().enumerate() {
            let place = self.chosen.len();
            self.places.entry(cell).or_insert_with(|| {
                self.chosen.push((self.arrays.len(), at));
                place
            });
        }
        self.arrays.push(values.clone());
        Ok(())
    }

    pub(super) fn end(self) -> Result<Option<Dictionary>, ArrowError> {
        if self.arrays.is_empty() {
            return Ok(None);
        }
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        let values = arrow_select::interleave::interleave(&arrays, &self.chosen)?;
        Ok(Some(Dictionary { places: self.places, values }))
    }
}

impl Dictionary {
    /// A batch's column by this dictionary.
    pub(super) fn apply(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let Some(old) = column.as_any_dictionary_opt() else { return Ok(column.clone()) };
        let DataType::Dictionary(key, _) = column.data_type() else { return Ok(column.clone()) };
        let places: Vec<Option<usize>> =
            cells(old.values())?.iter().map(|cell| self.places.get(cell).copied()).collect();
        // Keys that are all null may have no value to name.
        let keys = if old.values().is_empty() { Vec::new() } else { old.normalized_keys() };
        let moved = |row: usize| match old.keys().is_null(row) {
            true => Ok(None),
            false => {
                let place = keys.get(row).and_then(|key| places.get(*key).copied().flatten());
                let place = place.and_then(|place| u32::try_from(place).ok());
                place.map(Some).ok_or_else(|| ArrowError::CastError("not in the dictionary".into()))
            }
        };
        let keys: UInt32Array = (0..column.len()).map(moved).collect::<Result<_, _>>()?;
        match key.as_ref() {
            DataType::Int8 => self.keyed::<Int8Type>(&keys),
            DataType::Int16 => self.keyed::<Int16Type>(&keys),
            DataType::Int32 => self.keyed::<Int32Type>(&keys),
            DataType::Int64 => self.keyed::<Int64Type>(&keys),
            DataType::UInt8 => self.keyed::<UInt8Type>(&keys),
            DataType::UInt16 => self.keyed::<UInt16Type>(&keys),
            DataType::UInt32 => self.keyed::<UInt32Type>(&keys),
            _ => self.keyed::<UInt64Type>(&keys),
        }
    }

    fn keyed<K: ArrowDictionaryKeyType>(&self, keys: &UInt32Array) -> Result<ArrayRef, ArrowError> {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let keys = arrow_cast::cast_with_options(keys, &K::DATA_TYPE, &options)?;
        let keys = keys.as_primitive::<K>().clone();
        Ok(Arc::new(DictionaryArray::<K>::try_new(keys, self.values.clone())?))
    }
}

/// What tells the values of a dictionary apart.
fn cells(values: &ArrayRef) -> Result<Vec<Option<Vec<u8>>>, ArrowError> {
    let bytes = match values.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            arrow_cast::cast(values, &DataType::LargeBinary)?
        }
        _ => {
            let text = arrow_cast::cast(values, &DataType::LargeUtf8)?;
            arrow_cast::cast(&text, &DataType::LargeBinary)?
        }
    };
    let bytes = bytes.as_binary::<i64>();
    Ok((0..bytes.len()).map(|at| bytes.is_valid(at).then(|| bytes.value(at).to_vec())).collect())
}
