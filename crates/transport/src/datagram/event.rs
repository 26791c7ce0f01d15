//! Fates of datagrams, events for the application, and counters.

/// A datagram whose fate is told; unique within its connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DatagramId(pub(super) u64);

/// What became of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DatagramFate {
    /// The peer's QUIC implementation has it. Whether its application ever reads it is another
    /// question (RFC 9221 §5.2).
    Acked,
    /// The packet that held it counts as lost. It may yet have arrived, only late.
    Lost,
    /// It was not sent in time, so it was not sent.
    Expired,
    /// It was not sent, because newer ones had to have its place in the queue, or because the path
    /// carries only smaller ones by now.
    Dropped,
}

/// Something about datagrams that the application may want to react to.
///
/// [`Readable`](Self::Readable) and [`Room`](Self::Room) are edges: one is queued only after the
/// application has found nothing to read or no room. Fates are only told where they were asked
/// for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramEvent {
    /// There is a datagram to read.
    Readable,
    /// There is more room for datagrams to be sent.
    Room,
    /// What became of a datagram.
    Fate {
        /// Which one.
        id: DatagramId,
        /// What became of it.
        fate: DatagramFate,
    },
}

/// Counters of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramStats {
    /// Sent.
    pub sent: u64,
    /// Bytes of these, without headers.
    pub sent_bytes: u64,
    /// Received.
    pub received: u64,
    /// Bytes of these, without headers.
    pub received_bytes: u64,
    /// Sent, and the packet that held it was acknowledged.
    pub acked: u64,
    /// Sent, and the packet that held it counts as lost.
    pub lost: u64,
    /// Not sent, because the time for it was over.
    pub expired: u64,
    /// Not sent, because the queue was full of newer ones or the path has become too narrow.
    pub unsent_dropped: u64,
    /// Received and dropped, because nobody read them and newer ones came.
    pub unread_dropped: u64,
}
