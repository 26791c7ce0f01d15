//! Statistics of a session.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_base::Rate;
use courser_quic::{Connection, DatagramStats};

/// The statistics of a session. Counts begin with the session. The round-trip time, the rate and the datagrams are those of its
/// connection, which sessions and requests share.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct SessionStats {
    /// The estimated round-trip time of the connection.
    pub rtt: Duration,
    /// The rate at which the connection delivers, in bytes per second. `None` before it is measured.
    pub rate: Option<Rate>,
    /// True if [`rate`](Self::rate) is lower than the path allows, because there was too little to send.
    pub rate_is_app_limited: bool,
    /// The datagrams of the connection: sent, lost, expired and dropped.
    pub datagrams: DatagramStats,
    /// Received datagrams of the session that were dropped because too many waited for the application (limit K587).
    pub datagrams_dropped: u64,
    /// Bytes of streams that this end has written, without headers and retransmissions.
    pub bytes_sent: u64,
    /// Bytes of streams that the application of this end has read, without headers.
    pub bytes_received: u64,
    /// Streams that this end has opened.
    pub streams_opened: u64,
    /// Streams of the peer that the application has accepted.
    pub streams_accepted: u64,
}

/// The counters of a session that is in use.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) streams_opened: AtomicU64,
    pub(crate) streams_accepted: AtomicU64,
}

impl Counters {
    /// Returns the counts with the statistics of the connection.
    pub(crate) fn stats(&self, quic: &Connection, datagrams_dropped: u64) -> SessionStats {
        let connection = quic.stats();
        SessionStats {
            rtt: connection.path.rtt,
            rate: connection.path.delivery_rate,
            rate_is_app_limited: connection.path.is_delivery_rate_app_limited,
            datagrams: connection.datagrams,
            datagrams_dropped,
            bytes_sent: self.bytes_sent.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            streams_opened: self.streams_opened.load(Relaxed),
            streams_accepted: self.streams_accepted.load(Relaxed),
        }
    }

    /// Returns the number of streams of both ends.
    pub(crate) fn streams(&self) -> u64 {
        self.streams_opened.load(Relaxed) + self.streams_accepted.load(Relaxed)
    }
}
