//! Processing of ACK frames: acknowledged packets, losses, and the state of the path.
//! RFC 9002 §5 to §7, appendix A.7.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::{EcnOutcome, Sent};
use courser_wire::frame::Ack;

use super::ack_request::Situation;
use super::features::NewestByFeature;
use super::losses::Losses;
use super::path_recovery::AckedOnPath;
use super::{FrameOwners, LossRecovery, Phase};
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

/// The result of an ACK frame, for the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Acknowledged {
    /// The largest packet that the frame newly acknowledged; `None` when there is none.
    pub(crate) largest: Option<u64>,
    /// True if an ack-eliciting packet is newly acknowledged.
    pub(crate) is_ack_eliciting: bool,
    /// True if a packet was acknowledged or declared lost, or its record was dropped.
    pub(crate) has_settled: bool,
    /// True if the path does not carry datagrams of the smallest size.
    pub(crate) is_path_too_small: bool,
}

/// All packets that one ACK frame newly acknowledged.
#[derive(Debug)]
struct NewlyAcked {
    /// Bytes that were in flight on the active path.
    bytes: u64,
    /// The size of the largest of these packets in bytes. 32 bits although a size has 16: it is read as 32 bits
    /// for the next packet.
    largest_size: u32,
    largest: u64,
    largest_sent: Time,
    earliest_sent: Time,
    /// True if the packet with the largest number was sent on the active path.
    largest_on_path: bool,
    any_ack_eliciting: bool,
    any: bool,
    /// True if records of lost ACK-only packets were dropped.
    any_forgotten: bool,
    ecn_marked: u64,
    /// The newest packets on the active path with each optional feature.
    newest: NewestByFeature,
    /// True if the frame acknowledges a larger number than any frame before.
    largest_increased: bool,
    /// Bytes in flight on the active path before the frame.
    in_flight_before: u64,
    rtt_sample: Option<Duration>,
}

impl NewlyAcked {
    const fn new() -> Self {
        Self {
            bytes: 0,
            largest_size: 0,
            largest: 0,
            largest_sent: Time::ZERO,
            earliest_sent: Time::MAX,
            largest_on_path: false,
            any_ack_eliciting: false,
            any: false,
            any_forgotten: false,
            ecn_marked: 0,
            newest: NewestByFeature::NONE,
            largest_increased: false,
            in_flight_before: 0,
            rtt_sample: None,
        }
    }
}

impl LossRecovery {
    /// Checks that an ACK frame acknowledges only packets that were sent.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a packet that was never sent.
    pub(crate) fn check_ack(&self, id: SpaceId, frame: &Ack<'_>) -> Result<(), TransportError> {
        self.spaces
            .get(id)
            .map_or(Ok(()), |space| space.check_ack(frame))
    }

    /// Processes an ACK frame that [`LossRecovery::check_ack`] has accepted.
    pub(crate) fn on_ack_frame(
        &mut self,
        now: Time,
        id: SpaceId,
        frame: &Ack<'_>,
        owners: &mut impl FrameOwners,
    ) -> Acknowledged {
        self.stats.acks_received += 1;
        let mut newly = self.take_acked(id, frame, owners);
        let mut acknowledged = Acknowledged {
            is_ack_eliciting: newly.any_ack_eliciting,
            has_settled: newly.any || newly.any_forgotten,
            ..Acknowledged::default()
        };
        if let Some(space) = self.spaces.get_mut(id) {
            newly.largest_increased = space.loss.on_ack_received(frame.largest);
            if id == SpaceId::Application && self.spaces.application.remembers_losses() {
                self.find_spurious_losses(now, frame, owners);
            }
            if newly.any {
                let lost = self.on_newly_acked(now, id, frame, &mut newly, owners);
                acknowledged.largest = Some(newly.largest);
                acknowledged.is_path_too_small = lost.is_path_too_small;
            }
        }
        self.review_ack_request(now, id);
        acknowledged
    }

    fn on_newly_acked(
        &mut self,
        now: Time,
        id: SpaceId,
        frame: &Ack<'_>,
        newly: &mut NewlyAcked,
        owners: &mut impl FrameOwners,
    ) -> Losses {
        let path = self.paths.active_mut();
        newly.in_flight_before = path.bytes_in_flight;
        path.take_from_flight(newly.bytes);
        newly.rtt_sample = self.sample_rtt(now, id, frame, newly);
        let ce = self.spaces.get_mut(id).map(|space| {
            space
                .ecn
                .on_ack(newly.ecn_marked, frame.ecn, newly.largest_increased)
        });
        let ce = ce.unwrap_or_default();
        let largest_size = u16::try_from(newly.largest_size).unwrap_or(u16::MAX);
        self.paths.active_mut().search.on_acked(largest_size);
        self.resume_search(now);
        self.on_features_acked(&newly.newest);
        let lost = self.detect_lost(now, id, owners);
        self.inform_controller(now, newly, ce, &lost);
        self.drop_snapshots(id);
        let ends_backoff = self.is_validated_by_peer();
        self.probe_timer.on_acked(now, ends_backoff);
        lost
    }

    fn inform_controller(&mut self, now: Time, newly: &NewlyAcked, ce: EcnOutcome, lost: &Losses) {
        let path = self.paths.active_mut();
        if ce.ce_increase > 0 && newly.largest_on_path {
            path.on_ecn_congestion(now, newly.largest_sent);
            self.stats.congestion_events += 1;
        }
        let rate = path.delivery.sample(now, path.rtt.min());
        if let Some(sample) = &rate {
            let delivered = path.delivery.delivered();
            path.bandwidth.on_sample(sample, delivered);
        }
        // After persistent congestion, packets sent before must not enlarge the window again.
        if newly.bytes > 0 && !lost.is_persistent {
            let ack = AckedOnPath {
                acked_bytes: newly.bytes,
                largest_acked: newly.largest,
                largest_acked_sent: newly.largest_sent,
                earliest_acked_sent: newly.earliest_sent,
                rtt_sample: newly.rtt_sample,
                bytes_in_flight_before: newly.in_flight_before,
                lost_bytes: lost.bytes,
                rate,
                ecn_capable_packets: newly.ecn_marked,
                ce_packets: ce.ce_increase,
            };
            path.on_ack(now, &ack);
        }
    }

    /// Removes the acknowledged packets from the ring and notifies the owners of their frames.
    fn take_acked(
        &mut self,
        id: SpaceId,
        frame: &Ack<'_>,
        owners: &mut impl FrameOwners,
    ) -> NewlyAcked {
        let mut newly = NewlyAcked::new();
        for range in frame.ranges() {
            let Some(space) = self.spaces.get(id) else {
                break;
            };
            // Ranges are in descending order: the records of all lower ones were removed before.
            if space
                .sent
                .oldest()
                .is_none_or(|oldest| *range.end() < oldest)
            {
                break;
            }
            let mut walk = space.sent.walk(range);
            while let Some(space) = self.spaces.get_mut(id)
                && let Some((number, sent)) = space.sent.take_next(&mut walk)
            {
                self.on_packet_acked(id, number, sent, &mut newly, owners);
            }
        }
        self.take_acked_acks(id, frame, &mut newly, owners);
        newly
    }

    /// Removes the acknowledged packets that contain only an ACK, if there is a record of them.
    fn take_acked_acks(
        &mut self,
        id: SpaceId,
        frame: &Ack<'_>,
        newly: &mut NewlyAcked,
        owners: &mut impl FrameOwners,
    ) {
        for range in frame.ranges() {
            while let Some(space) = self.spaces.get_mut(id)
                && let Some((number, sent)) = space.sent.ack_only_mut().take_newest(&range)
            {
                self.on_packet_acked(id, number, sent, newly, owners);
            }
            let space = self.spaces.get_mut(id);
            let oldest = space.and_then(|space| space.sent.ack_only_mut().oldest());
            if oldest.is_none_or(|oldest| *range.start() <= oldest) {
                break;
            }
        }
        if let Some(space) = self.spaces.get_mut(id) {
            let ack_only = space.sent.ack_only_mut();
            newly.any_forgotten = ack_only.oldest().is_some_and(|at| at <= frame.largest);
            let marked = ack_only.remove_through(frame.largest);
            space.ecn.on_lost(marked);
        }
    }

    #[inline]
    fn on_packet_acked(
        &mut self,
        id: SpaceId,
        number: u64,
        sent: Sent<SentFrames>,
        newly: &mut NewlyAcked,
        owners: &mut impl FrameOwners,
    ) {
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        newly.any = true;
        if sent.ack_eliciting {
            space.ack_eliciting -= 1;
            newly.any_ack_eliciting = true;
        }
        newly.ecn_marked += u64::from(sent.ecn_marked);
        let path = self.paths.active_mut();
        let on_path = sent.path == path.key;
        if sent.in_flight && on_path {
            newly.newest.add(&sent);
            newly.bytes += u64::from(sent.size);
            newly.largest_size = newly.largest_size.max(u32::from(sent.size));
            path.on_packet_acked(&sent);
            newly.earliest_sent = newly.earliest_sent.min(sent.time);
        } else if sent.in_flight {
            self.take_from_other(&sent);
        } else {
            path.persistent.reset();
        }
        if number >= newly.largest {
            (newly.largest, newly.largest_sent) = (number, sent.time);
            newly.largest_on_path = on_path;
        }
        if sent.frames.is_only_stream() {
            // Nearly every packet of a bulk transfer.
            if let Some(stream) = sent.frames.stream() {
                owners.on_frame_acked(id, stream);
            }
            return;
        }
        self.settle_acked(id, sent.frames, owners);
    }

    /// Subtracts a packet from the bytes in flight of a path that is not in use, in case the connection returns
    /// to it.
    #[cold]
    pub(super) fn take_from_other(&mut self, sent: &Sent<SentFrames>) {
        if let Some(path) = self.paths.get_mut(sent.path) {
            path.bytes_in_flight = path.bytes_in_flight.saturating_sub(u64::from(sent.size));
        }
    }

    /// Samples the round-trip time, if the largest number is new and an ack-eliciting packet is
    /// among the new ones (RFC 9002 §5.1).
    fn sample_rtt(
        &mut self,
        now: Time,
        id: SpaceId,
        frame: &Ack<'_>,
        newly: &NewlyAcked,
    ) -> Option<Duration> {
        if newly.largest != frame.largest || !newly.any_ack_eliciting || !newly.largest_on_path {
            return None;
        }
        let ack_delay = match (self.ack_delay_exponent, id) {
            (Some(exponent), SpaceId::Application) => {
                Duration::from_micros(frame.delay.saturating_mul(1 << exponent.min(20)))
            }
            // Initial and Handshake packets are acknowledged at once (§5.3). A later ACK repeats
            // one that was lost: it would make a first sample of seconds.
            _ if handshake_ack_delay(frame) > IMMEDIATE => return None,
            _ => Duration::ZERO,
        };
        let sample = now - newly.largest_sent;
        let is_confirmed = self.phase == Phase::Confirmed;
        let limit = is_confirmed.then(|| self.ack_request.max_ack_delay());
        let rtt = &mut self.paths.active_mut().rtt;
        rtt.on_sample(now, sample, ack_delay, limit);
        Some(sample)
    }

    /// Decides whether to request another frequency of acknowledgements.
    fn review_ack_request(&mut self, now: Time, id: SpaceId) {
        if id != SpaceId::Application || !self.ack_request.is_offered() {
            return;
        }
        let path = self.paths.active();
        self.ack_request.review(&Situation {
            now,
            window: path.window() / u64::from(path.mtu),
            rtt: path.rtt.smoothed(),
            // A window that is not used up does not grow (RFC 9002 §7.8).
            in_slow_start: path.in_slow_start() && !path.app_limited,
            congestion_events: self.stats.congestion_events,
            packet_threshold: self.spaces.application.space.loss.packet_threshold(),
        });
    }
}

/// Returns the delay of an ACK of an Initial or Handshake packet, as the frame reports it. The exponent is 3
/// while the peer's parameters are not known (RFC 9000 §18.2).
fn handshake_ack_delay(frame: &Ack<'_>) -> Duration {
    Duration::from_micros(frame.delay.saturating_mul(1 << 3))
}

/// An ACK with at most this delay counts as immediate: the default of `max_ack_delay` (RFC 9000 §18.2).
const IMMEDIATE: Duration = Duration::from_millis(25);
