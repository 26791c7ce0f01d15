//! What an application has moved.

use std::time::Duration;

use courser_base::Time;
use courser_wire::StreamId;

/// What an application has moved so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Pattern bytes handed to the transport.
    pub written: u64,
    /// Pattern bytes read, all of them checked.
    pub received: u64,
    /// Streams read to their end.
    pub streams: u64,
    /// When the end of a stream was read last.
    pub finished_at: Option<Time>,
    /// The first bytes that were wrong.
    pub mismatch: Option<Mismatch>,
    /// Exchanges: when each ended, and how long it took; the first `MAX_EXCHANGES`.
    pub exchanges: Vec<(Time, Duration)>,
    /// Why connections ended, other than by our own close or the peer's with code 0.
    pub failures: Vec<String>,
}

/// Bytes that are not what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// On which stream.
    pub stream: StreamId,
    /// In the piece that begins here.
    pub offset: u64,
}

/// Exchanges that are kept.
pub const MAX_EXCHANGES: usize = 1_000_000;

/// Failures that are kept.
const MAX_FAILURES: usize = 16;

impl Tally {
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
