//! The integration tests of `tacit-data`, one binary: a module is a file.

mod ahead;
mod columns;
mod damaged;
mod dialects;
mod dictionaries;
mod excel;
mod exports;
mod faithful;
mod identifiers;
mod inputs;
mod json;
mod keys;
mod near;
mod pieces;
mod records;
mod several;
mod values;
