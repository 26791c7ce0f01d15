//! Tests of the crate.

mod commands;
mod dialects;
mod hostile;
mod known_causes;
mod lab;
mod other_stacks;
mod small_traces;
