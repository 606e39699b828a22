//! Data as users have it, without a protocol and without a socket.
//!
//! - [`records`], [`csv`]: tables of records, their keys, and the files they come from.
//! - [`table`], [`columnar`]: tables of every format, Parquet and Arrow among them.
//! - [`values`]: tables to compute on, which get columns of results.
//! - [`place`], [`object`]: tables in databases, in stores and on servers, by their addresses.
//! - [`file_id`]: which file a name leads to.
//! - [`input`]: files and streams, packed or not, that can be read twice.
//! - [`keys`]: the types of keys, and when two spellings are one key.
//! - [`generate`]: realistic test data from a seed.
//! - [`npz`]: NumPy archives, written as a stream.
#![forbid(unsafe_code)]

#[cfg_attr(any(not(feature = "adbc"), target_feature = "crt-static"), path = "adbc/absent.rs")]
mod adbc;
mod ahead;
mod batch;
mod behind;
mod bounds;
pub use behind::{By, Written, named};

/// What digests of answers by ADBC are hashed for.
pub const ANSWER_DIGEST: &str = "tacit rows of a query by ADBC v1";

pub mod columnar;
pub mod columns;
mod convert;
pub mod csv;
#[cfg_attr(not(feature = "postgres"), path = "database/absent.rs")]
mod database;
mod distinct;
mod encoding;
mod excel;
mod fault;
pub mod file_id;
mod first_line;
mod form;
pub mod generate;
pub mod give;
pub mod input;
mod join;
mod json;
mod kept;
pub mod keys;
mod kind;
mod lines;
pub mod machine;
pub mod npz;
#[cfg_attr(not(feature = "s3"), path = "object/absent.rs")]
pub mod object;
mod opened;
mod pinned;
pub mod place;
#[cfg(any(feature = "postgres", feature = "s3"))]
mod profile;
pub mod records;
mod reread;
pub mod table;
mod unfit;
pub mod values;
#[cfg_attr(not(feature = "s3"), path = "web/absent.rs")]
mod web;
mod within;
mod zipped;

// What a build without databases and stores says, tried in one with both.
#[cfg(all(test, feature = "postgres", feature = "s3"))]
#[path = "adbc/absent.rs"]
mod absent_adbc;
#[cfg(all(test, feature = "postgres", feature = "s3"))]
#[path = "database/absent.rs"]
mod absent_database;
#[cfg(all(test, feature = "postgres", feature = "s3"))]
#[allow(dead_code, unreachable_pub)]
#[path = "object/absent.rs"]
mod absent_object;
#[cfg(all(test, feature = "postgres", feature = "s3"))]
#[path = "web/absent.rs"]
mod absent_web;

#[cfg(all(test, feature = "postgres", feature = "s3"))]
mod tests {
    use super::{absent_adbc, absent_database, absent_object, absent_web};
    use std::path::Path;

    #[test]
    fn a_build_without_databases_and_stores_says_so_in_a_line() {
        let query = Path::new("postgresql://ann:hunter2@db.example/crm#table a");
        let object = Path::new("s3://bucket/key");
        let faults = [
            absent_database::read(query).err(),
            absent_object::Upload::check(object, false).err(),
            absent_object::Upload::begin(object, false).err(),
            absent_object::Object::open(object).err(),
            absent_adbc::read(Path::new("adbc:d?uri=hunter2#table a")).err(),
            absent_web::read(Path::new("https://ann:hunter2@host/x.csv")).err(),
        ];
        for fault in faults {
            let fault = fault.unwrap();
            let text = fault.to_string();
            assert!(fault.is_usage() && text.contains("this build") && text.lines().count() == 1, "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
