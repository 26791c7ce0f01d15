//! ICMP Packet Too Big messages about datagrams of the connection. RFC 9000 §14.2.1, RFC 8899
//! §4.6.
//!
//! Routers are not authenticated. A report counts only if it quotes a packet of ours that is
//! neither acknowledged nor lost and was larger than the reported size.

use courser_base::Time;
use courser_wire::packet_number;

use super::refused::Refused;
use super::{FrameOwners, LossRecovery};
use crate::space::SpaceId;

/// The packet that a report quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Quoted {
    /// A packet with this number, which is neither acknowledged nor lost.
    Packet(u64),
    /// The quote ends before the packet number can be read.
    TooShort,
    /// No packet of ours has this number, or it was acknowledged or declared lost.
    Unknown,
}

impl LossRecovery {
    /// Decodes a packet number that a report quotes, as the peer would, and finds the packet.
    pub(crate) fn quoted(&self, truncated: u64, len: usize) -> Quoted {
        let space = &self.spaces.application.space;
        let expected = space.loss.largest_acked().map_or(0, |largest| largest + 1);
        let number = packet_number::expand(truncated, len, expected);
        match space.sent.get(number) {
            Some(_) => Quoted::Packet(number),
            None => Quoted::Unknown,
        }
    }

    /// Processes a report that a packet of ours does not fit a link which carries `claimed` bytes of UDP payload.
    /// Returns true if the report is accepted.
    pub(crate) fn on_router_report(
        &mut self,
        now: Time,
        quoted: Quoted,
        claimed: u16,
        owners: &mut impl FrameOwners,
    ) -> bool {
        match quoted {
            Quoted::Packet(number) => self.on_packet_refused(now, number, claimed, owners),
            Quoted::TooShort => self.on_probe_refused(now, claimed),
            Quoted::Unknown => false,
        }
    }

    /// Declares the packet lost for a known reason: its data is sent again at once, and congestion
    /// control does not count the loss.
    fn on_packet_refused(
        &mut self,
        now: Time,
        number: u64,
        claimed: u16,
        owners: &mut impl FrameOwners,
    ) -> bool {
        let space = &mut self.spaces.application.space;
        let path = self.paths.active_mut();
        let fits = |size, on| size <= claimed || on != path.key;
        let Some(sent) = space.sent.get(number) else {
            return false;
        };
        if fits(sent.size, sent.path) || !sent.in_flight || !path.search.is_searching() {
            return false;
        }
        if path.search.on_packet_too_big(now, sent.size, claimed) {
            path.refused = Refused::new(space.next_number, claimed);
            path.follow_search();
        }
        if let Some(mut sent) = space.sent.take(number) {
            sent.is_mtu_probe = true;
            self.on_packet_lost(now, SpaceId::Application, number, sent, owners);
            self.drop_snapshots(SpaceId::Application);
        }
        true
    }

    /// Processes a quote without a packet number. An attacker can forge it, so it affects only the size of the
    /// next MTU probe.
    fn on_probe_refused(&mut self, now: Time, claimed: u16) -> bool {
        let path = self.paths.active_mut();
        match path.search.probe_in_flight() {
            Some(size) if size > claimed && claimed >= path.mtu => {
                path.search.on_packet_too_big(now, size, claimed);
                true
            }
            _ => false,
        }
    }
}
