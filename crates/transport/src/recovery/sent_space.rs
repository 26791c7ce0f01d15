//! The sending part of a packet number space: numbers, records of sent packets, probes.

use courser_base::{Ecn, Time};
use courser_recovery::{EcnValidation, LossDetector, Sent, SentPackets, SpaceTimes};
use courser_wire::frame::Ack;

use super::built::Built;
use super::path_recovery::Flight;
use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::space::sent::SentFrames;

/// Sent packets of one packet number space.
#[derive(Debug)]
pub(super) struct SentSpace {
    /// Number of the first packet.
    first_number: u64,
    /// Number of the next packet.
    pub(super) next_number: u64,
    /// Packets that are neither acknowledged nor lost.
    pub(super) sent: SentPackets<SentFrames>,
    /// Detects losses among `sent`.
    pub(super) loss: LossDetector,
    /// Validates that ECN marks arrive. Peers count them per space.
    pub(super) ecn: EcnValidation,
    /// The number of ack-eliciting packets in `sent`.
    pub(super) ack_eliciting: usize,
    /// Time at which the last ack-eliciting packet was sent.
    pub(super) last_ack_eliciting: Option<Time>,
    /// Probe packets that are due (RFC 9002 §6.2.4).
    pub(super) probes: u8,
    /// True if the probes are due after a timeout, and not because a loss has closed the window.
    pub(super) is_after_timeout: bool,
    /// True if a PING is due: for a probe without data, a keep-alive, or after many ACK-only packets.
    pub(super) ping: bool,
}

impl SentSpace {
    /// Creates a space in which nothing was sent. The first packet will have `first_number`.
    pub(super) fn new(config: &TransportConfig, first_number: u64) -> Self {
        let ecn = if config.ecn {
            EcnValidation::new()
        } else {
            EcnValidation::disabled()
        };
        Self {
            first_number,
            next_number: first_number,
            sent: SentPackets::starting_at(first_number),
            loss: LossDetector::with_thresholds(config.loss_thresholds()),
            ecn,
            ack_eliciting: 0,
            last_ack_eliciting: None,
            probes: 0,
            is_after_timeout: false,
            ping: false,
        }
    }

    /// Returns the times on which the timer of loss recovery depends.
    pub(super) fn times(&self) -> SpaceTimes {
        SpaceTimes {
            loss_time: self.loss.loss_time(),
            last_ack_eliciting: self.last_ack_eliciting.filter(|_| self.ack_eliciting > 0),
        }
    }

    /// Adds the record of a packet. `is_on_active` is false for a packet on a path that is not in use.
    #[inline]
    pub(super) fn on_packet_sent(
        &mut self,
        now: Time,
        built: &Built,
        ecn: Ecn,
        flight: Flight,
        is_on_active: bool,
    ) {
        self.next_number = built.number + 1;
        self.ecn.on_sent(ecn);
        self.sent.push(
            built.number,
            Sent {
                time: now,
                size: u16::try_from(built.len).unwrap_or(u16::MAX),
                path: flight.path,
                snapshot: flight.snapshot,
                tx_in_flight: flight.tx_in_flight,
                ack_eliciting: built.ack_eliciting,
                in_flight: built.in_flight,
                ecn_marked: ecn != Ecn::NotEct,
                follows_in_batch: built.follows_in_batch,
                quic_bit_cleared: built.quic_bit_cleared,
                order: 0,
                is_mtu_probe: built.frames.is_mtu_probe(),
                frames: built.frames,
            },
        );
        if built.ack_eliciting {
            // Challenges on other paths have their own timers. If they delayed the probe timeout,
            // lost data would never be sent again to a client that moves often.
            if is_on_active || self.ack_eliciting == 0 {
                self.last_ack_eliciting = Some(now);
            }
            self.ack_eliciting += 1;
            self.probes = self.probes.saturating_sub(1);
            self.is_after_timeout &= self.probes > 0;
        }
    }

    /// Requests probes because of a timeout.
    pub(super) fn probe(&mut self, probes: u8) {
        self.probes = self.probes.max(probes);
        self.is_after_timeout = true;
    }

    /// Checks that an ACK frame acknowledges only packets that were sent (RFC 9000 §13.1, attacks
    /// A22 and A23).
    pub(super) fn check_ack(&self, frame: &Ack<'_>) -> Result<(), TransportError> {
        if frame.largest >= self.next_number {
            return Err(TransportError::protocol_violation(format!(
                "packet {} acknowledged, {} sent",
                frame.largest, self.next_number
            )));
        }
        let unsent = frame.ranges().find_map(|range| {
            let is_before = *range.start() < self.first_number;
            let before = is_before.then_some(*range.start());
            before.or_else(|| self.sent.skipped_in(&range))
        });
        if let Some(number) = unsent {
            let reason = format!("packet {number} acknowledged, it was never sent");
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }
}
