//! The parts that own the frames in packets.

use courser_base::Time;
use courser_wire::{ConnectionId, PathId};

use super::header_bits::HeaderBits;
use super::trace::Trace;
use crate::acknowledger::Acknowledger;
use crate::cid::ConnectionIds;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::multipath::Multipath;
use crate::observed::Observed;
use crate::path::paths::Paths;
use crate::pings::Pings;
use crate::recovery::LossRecovery;
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
    /// The other paths, while the ends have agreed on several.
    pub(super) multipath: Option<Box<Multipath>>,
    /// The addresses that both ends report, while they have agreed on that.
    pub(super) observed: Option<Box<Observed>>,
}

impl Parts {
    /// Returns the path whose state the parts have at hand.
    #[inline]
    pub(super) fn path_at_hand(&self) -> PathId {
        let multipath = self.multipath.as_ref();
        multipath.map_or(PathId::ZERO, |multipath| multipath.current())
    }

    /// Takes the state of another path at hand. Returns false if it has none.
    pub(super) fn go_to(&mut self, path: PathId, recovery: &mut LossRecovery) -> bool {
        let Some(multipath) = &mut self.multipath else {
            return path == PathId::ZERO;
        };
        if multipath.current() == path {
            return true;
        }
        let (paths, ids, acknowledger) = (&mut self.paths, &mut self.ids, &mut self.acknowledger);
        let is_open = multipath.exchange(path, recovery, paths, ids, acknowledger);
        if is_open {
            acknowledger.name_path(path);
        }
        is_open
    }

    /// Addresses the packets of the handshake to another ID of the peer.
    pub(super) fn set_handshake_id(&mut self, now: Time, destination: ConnectionId) {
        let old = self.ids.destination();
        self.ids.set_handshake_id(destination);
        self.trace.destination(now, old, destination);
    }
}
