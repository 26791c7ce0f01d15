//! Causes that limit a transfer.

use serde::Serialize;

/// A cause that limits a transfer.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The handshake was not complete.
    Handshake,
    /// The server could not send more than three times what it had received (RFC 9000 §8).
    Amplification,
    /// The sending application had nothing to send.
    Application,
    /// The receiver waited for data that the peer did not send, although nothing visible kept it from
    /// sending.
    PeerApplication,
    /// No data was sent for at least a second.
    Idle,
    /// The receiver's limit on a stream was reached (RFC 9000 §4).
    StreamFlowControl,
    /// The receiver's limit on the connection was reached (RFC 9000 §4).
    ConnectionFlowControl,
    /// The receiver had all data and granted no credit: its application reads slowly.
    SlowReader,
    /// A limit of flow control was reached because of a gap in the received data: the receiver could not
    /// read on until the lost data was retransmitted.
    HeadOfLine,
    /// The receiver's limit on the number of streams was reached (RFC 9000 §4.6).
    StreamLimit,
    /// The congestion window had not grown yet.
    SlowStart,
    /// Losses without a queue kept the congestion window small.
    Loss,
    /// Losses in bulk without a queue: a policer or a very short queue on the path.
    Policer,
    /// Packets that arrived late were declared lost, which kept the congestion window small.
    Reordering,
    /// The congestion window was reset to its minimum after an outage (RFC 9002 §7.6).
    PersistentCongestion,
    /// The path was saturated: packets waited in a queue.
    Bottleneck,
    /// Routers marked packets instead of dropping them (RFC 9000 §13.4).
    Ecn,
    /// The pacer delayed packets although the congestion window allowed more.
    Pacing,
    /// The peer acknowledged late.
    AckDelay,
    /// The congestion window was full, for a reason that the trace does not show.
    Window,
    /// The last packets of a flight were lost, and only a probe timeout repaired that.
    ProbeTimeout,
    /// Nothing arrived for several probe timeouts.
    Blackout,
    /// The path stopped carrying datagrams of the size in use.
    PathMtu,
    /// The connection migrated to another path.
    PathChange,
}

impl Cause {
    /// All causes, in the order of their discriminants.
    pub const ALL: [Self; 24] = [
        Self::Handshake,
        Self::Amplification,
        Self::Application,
        Self::PeerApplication,
        Self::Idle,
        Self::StreamFlowControl,
        Self::ConnectionFlowControl,
        Self::SlowReader,
        Self::HeadOfLine,
        Self::StreamLimit,
        Self::SlowStart,
        Self::Loss,
        Self::Policer,
        Self::Reordering,
        Self::PersistentCongestion,
        Self::Bottleneck,
        Self::Ecn,
        Self::Pacing,
        Self::AckDelay,
        Self::Window,
        Self::ProbeTimeout,
        Self::Blackout,
        Self::PathMtu,
        Self::PathChange,
    ];

    /// Returns the name for tables and headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Amplification => "amplification limit",
            Self::Application => "application",
            Self::PeerApplication => "peer's application",
            Self::Idle => "idle",
            Self::StreamFlowControl => "stream flow control",
            Self::ConnectionFlowControl => "connection flow control",
            Self::SlowReader => "slow reader",
            Self::HeadOfLine => "head-of-line blocking",
            Self::StreamLimit => "stream limit",
            Self::SlowStart => "slow start",
            Self::Loss => "loss",
            Self::Policer => "policer",
            Self::Reordering => "reordering",
            Self::PersistentCongestion => "persistent congestion",
            Self::Bottleneck => "capacity of the path",
            Self::Ecn => "ECN marks",
            Self::Pacing => "pacing",
            Self::AckDelay => "acknowledgement delay",
            Self::Window => "congestion window",
            Self::ProbeTimeout => "probe timeout",
            Self::Blackout => "blackout",
            Self::PathMtu => "path MTU",
            Self::PathChange => "path change",
        }
    }
}
