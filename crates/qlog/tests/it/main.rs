//! Reads our traces with another crate, and traces of other stacks with ours.

mod other_stacks;
mod qlog_crate;
