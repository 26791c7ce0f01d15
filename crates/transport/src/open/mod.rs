//! From protected bytes to frames.

pub mod undecryptable;
