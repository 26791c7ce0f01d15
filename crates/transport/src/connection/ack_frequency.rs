//! The extension by which a sender says when it wants acknowledgements.
//! draft-ietf-quic-ack-frequency-12.

use courser_base::Time;
use courser_recovery::Controller;
use courser_wire::frame::AckFrequency;

use super::Connection;
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::space::ack_request::Situation;

impl Connection {
    /// The peer says when it wants acknowledgements.
    pub(super) fn on_ack_frequency_frame(
        &mut self,
        frame: &AckFrequency,
    ) -> Result<(), TransportError> {
        self.check_ack_extension()?;
        let least = self.config.min_ack_delay();
        let acks = &mut self.spaces.application.acks;
        acks.on_ack_frequency_frame(frame, least)
    }

    /// Without our `min_ack_delay` the frames of the extension are unknown ones (§3).
    pub(super) fn check_ack_extension(&self) -> Result<(), TransportError> {
        if self.config.ack_frequency {
            return Ok(());
        }
        let reason = "a frame of an extension that was not offered";
        Err(TransportError::frame_encoding(reason))
    }

    /// Considers after an ACK whether another frequency would serve better.
    pub(super) fn review_ack_request(&mut self, now: Time, id: SpaceId) {
        if id != SpaceId::Application || !self.recovery.ack_request.is_offered() {
            return;
        }
        let path = self.paths.active();
        self.recovery.ack_request.review(&Situation {
            now,
            window: path.congestion.window() / u64::from(path.mtu),
            rtt: path.rtt.smoothed(),
            // A window that is not used up does not grow (RFC 9002 §7.8).
            in_slow_start: path.congestion.in_slow_start() && !path.app_limited,
            congestion_events: self.stats.congestion_events,
            packet_threshold: self.spaces.application.loss.packet_threshold(),
        });
    }
}
