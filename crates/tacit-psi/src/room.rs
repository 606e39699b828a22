//! Memory that may not be there.

use crate::{Error, Result};

/// An empty vector with room for `count`, or an error where the machine has no such room.
pub(crate) fn reserve<T>(count: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(count).map_err(|_| Error::Usage("not enough memory for sets of these sizes"))?;
    Ok(vector)
}
