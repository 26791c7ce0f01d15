//! quinn: its endpoints with the shared settings, and the program that measures it.
//!
//! Other libraries have the names of quinn's methods. Their crates include the sources of this one, and name their
//! library `api`: noq all of them, courser the program alone.

pub mod endpoint;
pub mod quic_program;
mod stack;

use quinn as api;
