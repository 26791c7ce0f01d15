//! Our traces read by another crate, and the traces of other stacks read by ours.

mod other_stacks;
mod qlog_crate;
