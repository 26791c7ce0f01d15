//! Tests of the crate.

mod known_causes;
mod lab;
mod small_traces;
