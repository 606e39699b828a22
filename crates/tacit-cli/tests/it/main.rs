//! The integration tests of `tacit-cli`, one binary: a module is a file.

mod common;

mod bad_input;
mod bench;
mod deal;
mod errors;
mod eval;
mod eval_batch;
mod eval_pool;
mod faults;
mod first;
mod formats;
mod gateway;
mod keys;
mod kinds;
mod long;
mod manual;
mod messy;
mod nisc;
mod nisc_eval;
mod ot;
mod outputs;
mod plan;
mod pool;
mod programs;
mod psi;
mod relay;
mod resume;
mod reveal;
mod serve;
mod snapshots;
mod sources;
mod tables;
mod tags;
mod triples;
mod waiting;
