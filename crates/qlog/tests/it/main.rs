//! Reads our traces with another crate.

mod qlog_crate;
