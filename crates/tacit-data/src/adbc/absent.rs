//! Databases by ADBC, in a build that loads no drivers: one without them, or one that is linked statically.

use crate::fault::{Error, Result};
use crate::kept::Kept;
use std::path::Path;

pub(crate) fn read(path: &Path) -> Result<(Kept, [u8; 32])> {
    let kind = "databases by ADBC, because it cannot load their drivers";
    Err(Error::NotBuilt { path: crate::place::shown(path), kind })
}
