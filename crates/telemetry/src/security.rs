//! Records of keys that are installed, updated and discarded. They never contain the keys.

use courser_wire::packet::PacketKind;

/// The keys of an encryption level were installed, for both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyInstalled {
    /// The kind of packets that the keys protect.
    pub kind: PacketKind,
}

/// The 1-RTT keys were updated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyUpdated {
    /// The new value of the key phase bit.
    pub key_phase: bool,
    /// True if the peer initiated the update.
    pub by_peer: bool,
}

/// The keys of an encryption level were discarded (RFC 9001 §4.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyDiscarded {
    /// The kind of packets that the keys protected.
    pub kind: PacketKind,
}
