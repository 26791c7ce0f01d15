//! Fates of datagrams, events for the application, and counters.

use std::time::Duration;

/// Identifies a datagram whose fate is reported; unique within its connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DatagramId(pub(super) u64);

/// The fate of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatagramFate {
    /// The peer's QUIC implementation received it. Its application may still never read it (RFC
    /// 9221 §5.2).
    Acked,
    /// Its packet was declared lost. It may still have arrived late.
    Lost,
    /// It expired before it could be sent.
    Expired,
    /// It was not sent, because newer datagrams needed its place in the queue, or because the path
    /// now carries only smaller ones.
    Dropped,
}

/// An event about datagrams that the application may want to handle.
///
/// [`Readable`](Self::Readable) and [`Room`](Self::Room) are edge-triggered: one is queued only
/// after the application found nothing to read or the send queue full. Fates are reported only for
/// datagrams that requested it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramEvent {
    /// A datagram can be read.
    Readable,
    /// The send queue has room for more datagrams.
    Room,
    /// The fate of a datagram is known.
    Fate {
        /// The ID that `send_datagram` returned.
        id: DatagramId,
        /// The outcome, which is final: a lost datagram is not sent again.
        fate: DatagramFate,
    },
}

/// Counters of the DATAGRAM frames of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramStats {
    /// Datagrams sent; each is sent once.
    pub sent: u64,
    /// Bytes of these, without headers.
    pub sent_bytes: u64,
    /// Datagrams received, including those dropped unread.
    pub received: u64,
    /// Bytes of these, without headers.
    pub received_bytes: u64,
    /// The jitter of the datagrams received: the smoothed mean deviation of the time between two arrivals
    /// from its running mean, both with the weight 1/16 of RFC 3550 §6.4.1. Zero until there are three.
    ///
    /// RFC 3550 subtracts the times at which the peer sent, which a DATAGRAM frame does not contain. For a
    /// peer that sends at a constant interval the result is close to that of RFC 3550, and lost datagrams
    /// raise it by their gaps. For any other peer its own rhythm counts as jitter. Datagrams that one packet
    /// or one system call brought arrive at the same time. Gaps of more than a second count as pauses, and
    /// not as jitter.
    pub arrival_jitter: Duration,
    /// Datagrams sent whose packet was acknowledged.
    pub acked: u64,
    /// Datagrams sent whose packet was declared lost.
    pub lost: u64,
    /// Datagrams that expired before they were sent.
    pub expired: u64,
    /// Datagrams dropped before they were sent, because newer ones filled the queue or the path's
    /// datagram size fell.
    pub unsent_dropped: u64,
    /// Datagrams received and dropped unread, because newer ones arrived.
    pub unread_dropped: u64,
}
