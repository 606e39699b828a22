//! What all silent protocols do alike.

pub(crate) mod seeds;
pub(crate) mod source;
pub(crate) mod stock;
