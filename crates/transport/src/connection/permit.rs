//! What may leave now, and why not more.

use courser_base::{Ecn, Time};
use courser_recovery::Controller;

use super::Connection;
use crate::space::SpaceId;

/// The answer to "may I send?", so that pacing, congestion, amplification and probes are not
/// sprinkled over a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendPermit {
    /// The peer's address is not proven and has got all it may get.
    Nothing,
    /// Only packets that do not count as in flight.
    AckOnly,
    /// A probe packet, whatever the window says (RFC 9002 §7.5).
    Probe,
    /// The window is open, the pacer is not.
    PacedUntil(Time),
    /// This many bytes, which the pacer keeps for them until it hears what was sent; less than a
    /// datagram only when there is not more to send, or an unproven address may not get more.
    Bytes(u64),
}

impl Connection {
    /// What may be sent in a space on the active path.
    pub(crate) fn permit(&mut self, now: Time, id: SpaceId) -> SendPermit {
        let little = match id {
            SpaceId::Application => self.little_left(),
            _ => None,
        };
        let path = self.paths.active_mut();
        let budget = path.amplification.budget();
        if budget == 0 {
            return SendPermit::Nothing;
        }
        let Some(space) = self.spaces.get(id) else {
            return SendPermit::Nothing;
        };
        if space.probes > 0 {
            return SendPermit::Probe;
        }
        let mtu = u64::from(path.mtu);
        let room = path.congestion_room();
        let size = little.map_or(mtu, |little| mtu.min(little));
        // An ACK may be large, and need not wait: it goes first where the datagram is a small one.
        let ack_first = room < mtu && space.acks.is_due();
        if room < size || ack_first || space.sent.is_full() {
            return SendPermit::AckOnly;
        }
        let window = path.congestion.window();
        let wanted = if size < mtu { size } else { room.min(budget) };
        if path.bytes_in_flight == 0 && path.congestion.ecn_codepoint() != Ecn::Ect1 {
            path.pacer.on_quiescent(window, path.mtu);
        }
        let granted = path.pacer.reserve(now, wanted, &path.rtt, window, path.mtu);
        if granted == 0 {
            let least = if size < mtu { size } else { u64::MAX };
            return SendPermit::PacedUntil(
                path.pacer
                    .next_release(now, least, &path.rtt, window, path.mtu),
            );
        }
        SendPermit::Bytes(granted.max(room.min(mtu)))
    }

    /// Bytes of a datagram with all that there is to send, if they are few. It need not wait until
    /// there is room for a whole one, nor for a quantum: the end of a message has a short way.
    fn little_left(&mut self) -> Option<u64> {
        // Datagrams of the handshake are as long as they have to be.
        if self.spaces.in_handshake() || self.wants_control() || self.datagrams.wants_to_send() {
            return None;
        }
        let mtu = u64::from(self.paths.active().mtu);
        let left = self.streams.little_left(mtu)?;
        Some(left + BESIDE_STREAMS)
    }
}

/// Header, tag, and some room for an ACK, which may take more.
const BESIDE_STREAMS: u64 = 128;
