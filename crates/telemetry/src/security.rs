//! Keys: made, changed, gone. Never the keys themselves.

use courser_wire::packet::PacketKind;

/// Keys of a level exist, for both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyInstalled {
    /// The packets that they protect.
    pub kind: PacketKind,
}

/// The 1-RTT keys changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyUpdated {
    /// The new value of the key phase bit.
    pub key_phase: bool,
    /// The peer began the update.
    pub by_peer: bool,
}

/// Keys of a level are gone (RFC 9001 §4.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyDiscarded {
    /// The packets that they protected.
    pub kind: PacketKind,
}
