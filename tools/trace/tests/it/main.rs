//! Tests of the crate.

mod commands;
mod dialects;
mod hostile;
mod known_causes;
mod lab;
mod numbers_of_other_stacks;
mod other_stacks;
mod own_traces;
mod small_traces;
