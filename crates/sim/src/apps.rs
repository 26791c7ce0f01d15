//! Ready-made applications: bulk transfers, requests, pings, paced writers, and the server that all
//! of them connect to.
//!
//! They use the format of `courser perf`: the first eight bytes of a client's stream are the length
//! of the wanted response, big-endian. The rest is a pattern that the receiver checks byte by byte.

mod bulk;
mod exchange;
mod paced;
mod pattern;
mod serve;
mod tally;
mod transfer;

pub use self::bulk::{Amount, Bulk, TransferDirection};
pub use self::exchange::Exchange;
pub use self::paced::Paced;
pub use self::pattern::{check, piece};
pub use self::serve::Serve;
pub use self::tally::{Mismatch, Tally};

/// The response length that requests an endless response.
pub const ENDLESS: u64 = u64::MAX;

/// The bytes before the pattern on a client's stream.
const HEADER_LEN: u64 = 8;

#[cfg(test)]
mod tests;
