//! Tables behind `https://`, in a build that reads none.

use crate::fault::{Error, Result};
use crate::kept::Kept;
use std::path::Path;

pub(crate) fn read(path: &Path) -> Result<Kept> {
    Err(Error::NotBuilt { path: crate::place::shown(path), kind: "tables behind https://" })
}
