//! Time, rates, sides, ECN and range sets: the ground every courser crate stands on.
//!
//! A thing enters here when two crates need it. Nothing in here reads a clock or a socket:
//! [`Time`] is a number that somebody hands in.

mod ecn;
mod four_tuple;
mod range_set;
mod rate;
mod side;
mod time;

pub use ecn::{Ecn, EcnCounts};
pub use four_tuple::FourTuple;
pub use range_set::RangeSet;
pub use rate::Rate;
pub use side::Side;
pub use time::Time;
