//! Counters of an application.

use std::time::Duration;

use courser_base::Time;
use courser_wire::StreamId;

/// Counters of an application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AppCounters {
    /// Bytes of the pattern passed to the transport.
    pub written: u64,
    /// Bytes of the pattern that were read and checked.
    pub received: u64,
    /// Streams that were read to their end.
    pub streams: u64,
    /// The time at which the end of a stream was last read.
    pub finished_at: Option<Time>,
    /// The first bytes that differ from the pattern.
    pub mismatch: Option<Mismatch>,
    /// The end and the duration of the first 1 000 000 exchanges.
    pub exchanges: Vec<(Time, Duration)>,
    /// The errors with which connections ended, except for a close by this application or by the
    /// peer with code 0.
    pub failures: Vec<String>,
}

/// Received bytes that differ from the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The stream on which they were received.
    pub stream: StreamId,
    /// The offset of the received chunk that contains them.
    pub offset: u64,
}

/// Maximum number of exchanges that are recorded.
pub const MAX_EXCHANGES: usize = 1_000_000;

/// Maximum number of failures that are recorded.
const MAX_FAILURES: usize = 16;

impl AppCounters {
    pub(super) fn on_closed(&mut self, error: &courser_transport::ConnectionError) {
        use courser_transport::ConnectionError as E;
        let is_orderly = match error {
            E::LocallyClosed => true,
            E::ApplicationClosed { code, .. } => code.0 == 0,
            _ => false,
        };
        if !is_orderly && self.failures.len() < MAX_FAILURES {
            self.failures.push(error.to_string());
        }
    }

    pub(super) fn on_exchange(&mut self, now: Time, begun: Time) {
        if self.exchanges.len() < MAX_EXCHANGES {
            self.exchanges.push((now, now - begun));
        }
    }
}
