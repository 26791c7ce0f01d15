//! The parts that own the frames in packets.

use courser_base::Time;
use courser_wire::ConnectionId;

use super::header_bits::HeaderBits;
use super::trace::Trace;
use crate::acknowledger::Acknowledger;
use crate::cid::ConnectionIds;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::paths::Paths;
use crate::pings::Pings;
use crate::rng::Rng;
use crate::stream::Streams;

/// The parts that own the frames in packets. Three files match over frames: `dispatch` passes received
/// frames to their owner, `fill` collects frames to send, and `fate` reports their acknowledgement or loss.
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
    /// Generates the data of challenges, and decides where to grease.
    pub(super) rng: Rng,
    pub(super) trace: Trace,
}

impl Parts {
    /// Addresses the packets of the handshake to another ID of the peer.
    pub(super) fn set_handshake_id(&mut self, now: Time, destination: ConnectionId) {
        let old = self.ids.destination();
        self.ids.set_handshake_id(destination);
        self.trace.destination(now, old, destination);
    }
}
