//! The programs of `peers-datagrams`, compiled against quinn.
//!
//! They, and the tunnel of courser's example, use the names of courser. Here these are quinn's types, with what differs.

extern crate self as courser;

#[path = "../../src/program/mod.rs"]
mod program;
mod stack;

pub use program::run;
pub use stack::{Connection, DatagramOptions, SendDatagramError, VarInt};
