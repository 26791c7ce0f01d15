//! The parts whose frames packets carry, and the two that make packets of them.

use super::header_bits::HeaderBits;
use super::trace::Trace;
use crate::acknowledger::Acknowledger;
use crate::cid::ConnectionIds;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::paths::Paths;
use crate::pings::Pings;
use crate::protection::PacketProtection;
use crate::recovery::LossRecovery;
use crate::rng::Rng;
use crate::stream::Streams;

/// The parts whose frames packets carry. Three files match over frames: `dispatch` gives received ones to
/// their part, `fill` asks each part for those to be sent, and `fate` says what became of them.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) acknowledger: Acknowledger,
    pub(super) handshake: Handshake,
    pub(super) paths: Paths,
    pub(super) ids: ConnectionIds,
    pub(super) streams: Streams,
    pub(super) datagrams: Datagrams,
    pub(super) pings: Pings,
    pub(super) bits: HeaderBits,
    /// For the data of challenges, and for greasing.
    pub(super) rng: Rng,
    pub(super) trace: Trace,
}

/// The parts that number, protect and remember packets, whatever frames they carry.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) recovery: LossRecovery,
    pub(super) protection: PacketProtection,
}
