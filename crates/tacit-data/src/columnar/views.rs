//! Views on their way to an Arrow file: the library writes with each batch all bytes that its views were cut from,
//! those of the rows of other batches too.

use crate::within::parts;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteViewType;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericByteViewArray, GenericListArray, MapArray, OffsetSizeTrait,
    StructArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

fn has_views(data: &DataType) -> bool {
    match data {
        DataType::Utf8View | DataType::BinaryView => true,
        // Its values go out once.
        DataType::Dictionary(..) => false,
        other => parts(other).into_iter().any(has_views),
    }
}

/// The same cells, whose views have no more bytes behind them than they show.
pub(super) fn compact(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    // A list that is a part of another has all of its elements.
    let whole = || {
        let all = UInt64Array::from_iter_values(0..array.len() as u64);
        arrow_select::take::take(array, &all, None)
    };
    Ok(match array.data_type() {
        data if !has_views(data) => array.clone(),
        DataType::Utf8View => shown(array.as_string_view()),
        DataType::BinaryView => shown(array.as_binary_view()),
        DataType::Struct(_) => Arc::new(of_struct(array.as_struct())?),
        DataType::List(_) => of_list(whole()?.as_list::<i32>())?,
        DataType::LargeList(_) => of_list(whole()?.as_list::<i64>())?,
        DataType::FixedSizeList(..) => {
            let (field, size, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            Arc::new(FixedSizeListArray::try_new_with_length(
                field,
                size,
                compact(&values)?,
                nulls,
                array.len(),
            )?)
        }
        DataType::Map(..) => {
            let (field, offsets, entries, nulls, sorted) = whole()?.as_map().clone().into_parts();
            Arc::new(MapArray::try_new(field, offsets, of_struct(&entries)?, nulls, sorted)?)
        }
        _ => array.clone(),
    })
}

/// Views that share what they show stay.
fn shown<T: ByteViewType + ?Sized>(views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    match held > views.total_buffer_bytes_used() {
        true => Arc::new(views.gc()),
        false => Arc::new(views.clone()),
    }
}

fn of_list<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Result<ArrayRef, ArrowError> {
    let (field, offsets, values, nulls) = list.clone().into_parts();
    Ok(Arc::new(GenericListArray::try_new(field, offsets, compact(&values)?, nulls)?))
}

fn of_struct(records: &StructArray) -> Result<StructArray, ArrowError> {
    let (fields, columns, nulls) = records.clone().into_parts();
    let columns = columns.iter().map(compact).collect::<Result<_, _>>()?;
    StructArray::try_new(fields, columns, nulls)
}
