//! The integration tests of `tacit`, one binary: a module is a file.

mod gateway_support;

mod buckets;
mod folded;
mod gateway;
mod jobs;
mod long_functions;
mod near;
mod pair;
mod programs;
mod recordings;
mod resume;
mod shared;
mod tampered;
mod threads;
