//! The records, one struct per thing that can happen.

use std::time::Duration;

use courser_wire::packet::PacketKind;

/// Something that happened on a connection.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Record {
    /// A packet left.
    PacketSent(PacketSent),
    /// A packet arrived, was opened and processed.
    PacketReceived(PacketReceived),
    /// A packet arrived and was dropped.
    PacketDropped(PacketDropped),
    /// A packet that we sent counts as lost.
    PacketLost(PacketLost),
    /// Round-trip time or congestion state changed.
    MetricsUpdated(MetricsUpdated),
    /// The 1-RTT keys changed.
    KeyUpdated(KeyUpdated),
    /// The connection entered another state.
    StateChanged(StateChanged),
}

/// A packet left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketSent {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
    /// The peer must acknowledge it.
    pub ack_eliciting: bool,
}

/// A packet arrived, was opened and processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketReceived {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No keys for it yet, or not any more.
    KeysUnavailable,
    /// It did not authenticate.
    NotAuthentic,
    /// It was processed before, or may have been.
    Duplicate,
    /// A header rule says so.
    Header,
    /// It came from an address the connection does not take packets from.
    UnknownPath,
}

/// A packet arrived and was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketDropped {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Bytes on the wire.
    pub len: usize,
    /// Why.
    pub reason: Reason,
}

/// A packet that we sent counts as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketLost {
    /// Kind of its header.
    pub kind: PacketKind,
    /// Its number.
    pub packet_number: u64,
    /// Bytes on the wire.
    pub len: usize,
}

/// Round-trip time or congestion state changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetricsUpdated {
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Latest sample.
    pub latest_rtt: Duration,
    /// Lowest sample.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes whose fate is open.
    pub bytes_in_flight: u64,
    /// Slow-start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
    /// Probe timeouts in a row.
    pub pto_count: u32,
}

/// The 1-RTT keys changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyUpdated {
    /// The new value of the key phase bit.
    pub key_phase: bool,
    /// The peer began the update.
    pub by_peer: bool,
}

/// The connection entered another state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateChanged {
    /// Name of the state: `handshaking`, `complete`, `confirmed`, `closing`, `draining`, `drained`.
    pub state: &'static str,
}
