//! Tests of the crate.

mod commands;
mod dialects;
mod known_causes;
mod lab;
mod small_traces;
