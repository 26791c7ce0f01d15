//! Applications that are ready to run: bulk transfers, requests, pings, paced writers, and the
//! server that all of them talk to.
//!
//! They speak the format of `courser perf`: the first eight bytes of a client's stream are the
//! length of the wanted response, big-endian. Everything behind is a pattern that the receiver
//! checks byte by byte.

mod bulk;
mod exchange;
mod paced;
mod pattern;
mod serve;
mod tally;
mod transfer;

pub use self::bulk::{Amount, Bulk, Way};
pub use self::exchange::Exchange;
pub use self::paced::Paced;
pub use self::pattern::{check, piece};
pub use self::serve::Serve;
pub use self::tally::{Mismatch, Tally};

/// The response length that asks for bytes without end.
pub const ENDLESS: u64 = u64::MAX;

/// Bytes in front of the pattern on a client's stream.
const HEADER_LEN: u64 = 8;

#[cfg(test)]
mod tests;
