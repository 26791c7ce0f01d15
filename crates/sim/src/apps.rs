//! Applications: bulk transfers, requests, pings, paced writers, and the server to which they
//! connect.
//!
//! They use the format of `courser perf`: the first eight bytes of a client's stream are the length
//! of the requested response, big-endian. The rest is a pattern that the receiver checks byte by
//! byte.

mod bulk;
mod counters;
mod exchange;
mod paced;
mod pattern;
mod serve;
mod transfer;

pub use self::bulk::{Amount, Bulk, TransferDirection};
pub use self::counters::{AppCounters, Mismatch};
pub use self::exchange::Exchange;
pub use self::paced::Paced;
pub use self::pattern::{is_pattern_at, pattern_at};
pub use self::serve::Serve;

/// The response length that requests an endless response.
pub const ENDLESS: u64 = u64::MAX;

/// The length of the header before the pattern on a client's stream.
const HEADER_LEN: u64 = 8;

#[cfg(test)]
mod tests;
