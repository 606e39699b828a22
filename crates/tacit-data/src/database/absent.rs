//! Queries of databases, in a build that makes none.

use crate::fault::{Error, Result};
use crate::kept::Kept;
use std::path::Path;

/// See the module with the feature `postgres`.
pub(crate) fn read(path: &Path) -> Result<(Kept, [u8; 32])> {
    Err(Error::NotBuilt { path: crate::place::shown(path), kind: "PostgreSQL" })
}
