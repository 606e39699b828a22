//! One dictionary a column, where a file has one a row group: Arrow's file format knows no other. Of dictionaries
//! within lists, structures and the like each has one as well.

use crate::within::parts;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, RunEndIndexType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, OffsetSizeTrait, RunArray, UInt32Array, UInt64Array,
    downcast_primitive_array, make_array,
};
use arrow_cast::CastOptions;
use arrow_schema::{ArrowError, DataType};
use std::collections::HashMap;
use std::sync::Arc;

/// What is wrong where a value is in none of the dictionaries that were gathered.
pub(super) const CHANGED: &str = "the input changed while it was read; run again";

/// What is gathered of a column's dictionaries, in the order in which its type has them.
pub(super) struct Gathered(Vec<Values>);

impl Gathered {
    /// Nothing yet, of a column of this type.
    pub(super) fn of(data: &DataType) -> Self {
        Gathered((0..count(data)).map(|_| Values::default()).collect())
    }

    /// Takes the dictionaries of a batch's column.
    pub(super) fn add(&mut self, column: &ArrayRef) -> Result<(), ArrowError> {
        let mut gathered = self.0.iter_mut();
        each(column, &mut |dictionary| gathered.next().map_or(Ok(()), |values| values.add(dictionary)))
    }

    pub(super) fn end(self) -> Result<Option<Dictionaries>, ArrowError> {
        let ended: Vec<Option<Dictionary>> = self.0.into_iter().map(Values::end).collect::<Result<_, _>>()?;
        Ok(ended.into_iter().collect::<Option<_>>().map(Dictionaries))
    }
}

/// One dictionary for each that a column's type has.
pub(super) struct Dictionaries(Vec<Dictionary>);

impl Dictionaries {
    /// A batch's column by these dictionaries.
    pub(super) fn apply(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let mut own = self.0.iter();
        with(column, column.data_type(), &mut |dictionary, _| {
            own.next().map_or_else(|| Ok(dictionary.clone()), |own| own.apply(dictionary))
        })
    }
}

/// How many dictionaries a column of this type has, what is within their values aside.
pub(super) fn count(data: &DataType) -> usize {
    match data {
        DataType::Dictionary(..) => 1,
        other => parts(other).into_iter().map(count).sum(),
    }
}

/// The column with the keys of a type that differs in these alone.
pub(super) fn keyed_as(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    with(column, to, &mut |dictionary, to| arrow_cast::cast(dictionary, to))
}

/// Hands each dictionary to `visit`.
fn each(
    array: &ArrayRef,
    visit: &mut dyn FnMut(&ArrayRef) -> Result<(), ArrowError>,
) -> Result<(), ArrowError> {
    match array.data_type() {
        DataType::Dictionary(..) => visit(array),
        other if count(other) == 0 => Ok(()),
        _ => {
            array.to_data().child_data().iter().try_for_each(|child| each(&make_array(child.clone()), visit))
        }
    }
}

/// What a dictionary becomes that is to have a type.
type Made<'a> = dyn FnMut(&ArrayRef, &DataType) -> Result<ArrayRef, ArrowError> + 'a;

/// The array with what `of` makes of each dictionary; `to` is its type then.
fn with(array: &ArrayRef, to: &DataType, of: &mut Made<'_>) -> Result<ArrayRef, ArrowError> {
    let data = match array.data_type() {
        DataType::Dictionary(..) => return of(array, to),
        other if count(other) == 0 => return Ok(array.clone()),
        // A list that is a part of another has all of its elements.
        _ if has_more(array) => {
            let all = UInt64Array::from_iter_values(0..array.len() as u64);
            arrow_select::take::take(array, &all, None)?.to_data()
        }
        _ => array.to_data(),
    };
    let (kinds, children) = (parts(to), data.child_data());
    // The ends of runs come first, and are no part of the type.
    let before = children.len().saturating_sub(kinds.len());
    let mut made = children[..before].to_vec();
    for (child, kind) in children[before..].iter().zip(kinds) {
        made.push(with(&make_array(child.clone()), kind, of)?.to_data());
    }
    Ok(make_array(data.into_builder().data_type(to.clone()).child_data(made).build()?))
}

/// Whether there are elements of these lists, or entries of these maps, that are in none of them.
fn has_more(array: &ArrayRef) -> bool {
    fn is_less<O: OffsetSizeTrait>(offsets: &[O], all: usize) -> bool {
        offsets.first().zip(offsets.last()).is_some_and(|(a, b)| b.as_usize() - a.as_usize() < all)
    }
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            is_less(list.value_offsets(), list.values().len())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            is_less(list.value_offsets(), list.values().len())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            is_less(map.value_offsets(), map.entries().len())
        }
        _ => false,
    }
}

/// The values of dictionaries that stand for each other, each once.
#[derive(Default)]
struct Values {
    places: HashMap<Vec<u8>, usize>,
    arrays: Vec<ArrayRef>,
    chosen: Vec<(usize, usize)>,
}

/// The one dictionary in their place.
struct Dictionary {
    places: HashMap<Vec<u8>, usize>,
    values: ArrayRef,
}

impl Values {
    /// Takes those of a dictionary.
    fn add(&mut self, column: &ArrayRef) -> Result<(), ArrowError> {
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

    fn end(self) -> Result<Option<Dictionary>, ArrowError> {
        if self.arrays.is_empty() {
            return Ok(None);
        }
        // One that all have is left as it is.
        if let ([one], true) = (&self.arrays[..], self.chosen.len() == self.arrays[0].len()) {
            return Ok(Some(Dictionary { places: self.places, values: one.clone() }));
        }
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        let values = arrow_select::interleave::interleave(&arrays, &self.chosen)?;
        Ok(Some(Dictionary { places: self.places, values }))
    }
}

impl Dictionary {
    /// An array by this dictionary.
    fn apply(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let Some(old) = column.as_any_dictionary_opt() else { return Ok(column.clone()) };
        let DataType::Dictionary(key, _) = column.data_type() else { return Ok(column.clone()) };
        if old.values().to_data().ptr_eq(&self.values.to_data()) {
            return Ok(column.clone());
        }
        let places: Vec<Option<usize>> =
            cells(old.values())?.iter().map(|cell| self.places.get(cell).copied()).collect();
        // Keys that are all null may have no value to name.
        let keys = if old.values().is_empty() { Vec::new() } else { old.normalized_keys() };
        let moved = |row: usize| match old.keys().is_null(row) {
            true => Ok(None),
            false => {
                let place = keys.get(row).and_then(|key| places.get(*key).copied().flatten());
                let place = place.and_then(|place| u32::try_from(place).ok());
                place.map(Some).ok_or_else(|| ArrowError::CastError(CHANGED.into()))
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

/// What tells values apart, as those of a dictionary: their own bytes, as not every value has a text, nor one alone.
pub(super) fn cells(values: &ArrayRef) -> Result<Vec<Vec<u8>>, ArrowError> {
    let cell = |at| {
        let mut cell = Vec::new();
        append(&**values, at, &mut cell)?;
        Ok(cell)
    };
    (0..values.len()).map(cell).collect()
}

/// Appends what tells a value of an array from the others, and from no value.
fn append(array: &dyn Array, at: usize, to: &mut Vec<u8>) -> Result<(), ArrowError> {
    to.push(u8::from(array.is_valid(at)));
    if array.is_null(at) {
        return Ok(());
    }
    let mut whole = |bytes: &[u8]| {
        to.extend((bytes.len() as u64).to_le_bytes());
        to.extend(bytes);
    };
    let list = |values: &dyn Array, to: &mut Vec<u8>| {
        to.extend((values.len() as u64).to_le_bytes());
        (0..values.len()).try_for_each(|at| append(values, at, to))
    };
    downcast_primitive_array!(
        array => {
            let width = array.data_type().primitive_width().unwrap_or(0);
            let bytes = array.values().inner().as_slice();
            to.extend(bytes.get(at * width..(at + 1) * width).unwrap_or_default());
        }
        DataType::Null => {}
        DataType::Boolean => to.push(u8::from(array.as_boolean().value(at))),
        DataType::Utf8 => whole(array.as_string::<i32>().value(at).as_bytes()),
        DataType::LargeUtf8 => whole(array.as_string::<i64>().value(at).as_bytes()),
        DataType::Utf8View => whole(array.as_string_view().value(at).as_bytes()),
        DataType::Binary => whole(array.as_binary::<i32>().value(at)),
        DataType::LargeBinary => whole(array.as_binary::<i64>().value(at)),
        DataType::BinaryView => whole(array.as_binary_view().value(at)),
        DataType::FixedSizeBinary(_) => whole(array.as_fixed_size_binary().value(at)),
        DataType::List(_) => list(&*array.as_list::<i32>().value(at), to)?,
        DataType::LargeList(_) => list(&*array.as_list::<i64>().value(at), to)?,
        DataType::ListView(_) => list(&*array.as_list_view::<i32>().value(at), to)?,
        DataType::LargeListView(_) => list(&*array.as_list_view::<i64>().value(at), to)?,
        DataType::FixedSizeList(..) => list(&*array.as_fixed_size_list().value(at), to)?,
        DataType::Map(..) => list(&array.as_map().value(at), to)?,
        DataType::Struct(_) => {
            let mut fields = array.as_struct().columns().iter();
            fields.try_for_each(|field| append(&**field, at, to))?;
        }
        DataType::Dictionary(..) => {
            let cell = array.slice(at, 1);
            let cell = cell.as_any_dictionary();
            // A key that is not null names a value.
            let key = if cell.values().is_empty() { None } else { cell.normalized_keys().first().copied() };
            key.map_or(Ok(()), |key| append(&**cell.values(), key, to))?;
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => append_run(array.as_run::<Int16Type>(), at, to)?,
            DataType::Int32 => append_run(array.as_run::<Int32Type>(), at, to)?,
            _ => append_run(array.as_run::<Int64Type>(), at, to)?,
        },
        DataType::Union(..) => {
            let union = array.as_union();
            to.extend(union.type_id(at).to_le_bytes());
            append(&*union.value(at), 0, to)?;
        }
        other => return Err(ArrowError::NotYetImplemented(format!("dictionaries of {other}"))),
    );
    Ok(())
}

fn append_run<R: RunEndIndexType>(
    array: &RunArray<R>,
    at: usize,
    to: &mut Vec<u8>,
) -> Result<(), ArrowError> {
    append(&**array.values(), array.get_physical_index(at), to)
}
