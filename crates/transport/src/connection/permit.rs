//! What may leave now, and why not more.

use courser_base::Time;
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
    /// This many bytes, which the pacer keeps for them until it hears what was sent.
    Bytes(u64),
}

impl Connection {
    /// What may be sent in a space on the active path.
    pub(crate) fn permit(&mut self, now: Time, id: SpaceId) -> SendPermit {
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
        if room < mtu || space.sent.is_full() {
            return SendPermit::AckOnly;
        }
        let window = path.congestion.window();
        let wanted = room.min(budget);
        let granted = path.pacer.reserve(now, wanted, &path.rtt, window, path.mtu);
        if granted == 0 {
            return SendPermit::PacedUntil(
                path.pacer.next_release(now, &path.rtt, window, path.mtu),
            );
        }
        SendPermit::Bytes(granted)
    }
}
