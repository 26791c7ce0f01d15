//! Tests of the crate.

mod commands;
mod dialects;
mod hostile;
mod known_causes;
mod lab;
mod small_traces;
