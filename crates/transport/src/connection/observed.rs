//! Address discovery on a connection. draft-ietf-quic-address-discovery-00.

use courser_base::Time;
use courser_wire::ObservedAddress;

use super::Connection;
use super::effects::FrameProgress;
use super::parts::Parts;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::observed::{ObservedPath, not_requested};
use crate::path::paths::PathIndex;

impl Connection {
    /// Returns the addresses of ours that the peer has reported, the latest one last: at most one for each path, and
    /// none unless [`TransportConfig::address_observations`](crate::TransportConfig::address_observations) asks for them.
    /// They are claims of the peer.
    pub fn observed_addresses(&self) -> impl Iterator<Item = ObservedPath> + '_ {
        let observed = self.parts.observed.iter();
        observed.flat_map(|observed| observed.claims())
    }

    /// Decides whether a report is due on the path at hand.
    #[inline]
    pub(super) fn refresh_observations(&mut self, now: Time) {
        if self.parts.observed.is_some() {
            self.refresh_report(now);
        }
    }

    #[cold]
    fn refresh_report(&mut self, now: Time) {
        let path = self.parts.path_at_hand();
        let rtt = self.packets.recovery.path().rtt().smoothed();
        let Parts {
            observed, paths, ..
        } = &mut self.parts;
        if let Some(observed) = observed {
            observed.refresh(now, path, paths.active().tuple().peer, rtt);
        }
    }

    /// Returns the time from which a delayed report may be sent.
    #[inline]
    pub(super) fn next_observation(&self) -> Option<Time> {
        self.parts.observed.as_ref()?.next_timeout()
    }

    /// Finds the reports that may be sent from now on.
    pub(super) fn run_observations(&mut self, now: Time) {
        if let Some(observed) = &mut self.parts.observed {
            observed.on_timeout(now);
        }
    }
}

impl Parts {
    /// Processes OBSERVED_ADDRESS. The address is a claim, which changes nothing but what the application reads (§6.1).
    pub(super) fn on_observed_address_frame(
        &mut self,
        frame: ObservedAddress,
    ) -> Result<FrameProgress, TransportError> {
        let path = self.path_at_hand();
        let observed = self.observed.as_mut().ok_or_else(not_requested)?;
        observed.on_frame(path, frame)?;
        // Honest peers send a frame for each change of the address, one per second at most. So nothing is lost if
        // each one counts against the peer.
        Ok(FrameProgress::Nothing)
    }

    /// Returns true if a report on the path at hand is due.
    #[inline]
    pub(super) fn is_observation_due(&self) -> bool {
        let observed = self.observed.as_ref();
        observed.is_some_and(|observed| observed.is_due(self.path_at_hand()))
    }

    /// Writes a report of the address at the other end of a network path, if it is due.
    #[inline]
    pub(super) fn fill_observed_address(
        &mut self,
        packet: &mut PacketBuilder<'_>,
        now: Time,
        index: PathIndex,
    ) {
        if self.observed.is_some() {
            self.report_address(packet, now, index);
        }
    }

    #[inline(never)]
    fn report_address(&mut self, packet: &mut PacketBuilder<'_>, now: Time, index: PathIndex) {
        let path = self.path_at_hand();
        if let Some(observed) = &mut self.observed
            && let Some(network_path) = self.paths.get_mut(index)
        {
            observed.write(now, path, network_path.tuple().peer, packet);
        }
    }
}
