//! The settings and names of quinn-proto, by courser.
pub use ::quinn::*;
