//! The integration tests of `tacit-data`, one binary: a module is a file.

mod columns;
mod damaged;
mod dialects;
mod dictionaries;
mod excel;
mod exports;
mod faithful;
mod inputs;
mod json;
mod keys;
mod pieces;
mod records;
mod several;
mod values;
