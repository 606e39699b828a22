//! Data as users have it, without a protocol and without a socket.
//!
//! - [`records`], [`csv`]: tables of records, their keys, and the files they come from.
//! - [`table`], [`columnar`]: tables of every format, Parquet and Arrow among them.
//! - [`values`]: tables to compute on, which get columns of results.
//! - [`input`]: files and streams, packed or not, that can be read twice.
//! - [`keys`]: the types of keys, and when two spellings are one key.
//! - [`generate`]: realistic test data from a seed.
//! - [`npz`]: NumPy archives, written as a stream.
#![forbid(unsafe_code)]

pub mod columnar;
mod convert;
pub mod csv;
mod fault;
pub mod generate;
pub mod input;
pub mod keys;
pub mod npz;
pub mod records;
pub mod table;
pub mod values;
