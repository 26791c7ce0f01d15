//! The types on which every courser crate builds: time, rates, sides, ECN, addresses, range sets, locks, files
//! that are replaced as a whole, and values of users.
//!
//! A type belongs here if at least two crates need it. Nothing in this crate reads a clock or a
//! socket: [`Time`] is a number that the caller supplies.

mod address;
pub mod demand;
mod ecn;
pub mod foreign;
mod four_tuple;
mod lock;
mod pace;
mod range_set;
mod rate;
mod replaced_file;
mod side;
mod source;
mod time;
mod unreachable;

pub use address::{ScopedIp, canonical, is_same_host, with_port};
pub use ecn::{Ecn, EcnCounts};
pub use four_tuple::FourTuple;
pub use lock::{Held, Mutex, RwLock};
pub use pace::Pace;
pub use range_set::RangeSet;
pub use rate::Rate;
pub use replaced_file::replace_file;
pub use side::Side;
pub use source::Source;
pub use time::Time;
pub use unreachable::Unreachable;
