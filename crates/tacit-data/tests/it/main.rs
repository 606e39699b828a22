//! The integration tests of `tacit-data`, one binary: a module is a file.

mod columns;
mod damaged;
mod dialects;
mod excel;
mod faithful;
mod keys;
mod records;
mod several;
mod values;
