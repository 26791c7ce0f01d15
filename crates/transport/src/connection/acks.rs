//! An ACK frame: what it acknowledges, what it proves lost, what it says about the path.
//! RFC 9002 §5 to §7, appendix A.7.

use std::time::Duration;

use courser_base::Time;
use courser_recovery::{AckSample, Controller, LossSample, Sent};
use courser_wire::frame::Ack;

use super::Connection;
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::space::sent::SentFrames;

/// All packets that one ACK frame newly acknowledged.
#[derive(Debug)]
struct NewlyAcked {
    /// Bytes that were in flight on the active path.
    bytes: u64,
    /// The largest of them in bytes.
    largest_size: u16,
    largest: u64,
    largest_sent: Time,
    earliest_sent: Time,
    /// The largest packet was sent on the active path.
    largest_on_path: bool,
    any_ack_eliciting: bool,
    any: bool,
    ecn_marked: u64,
}

impl Connection {
    pub(crate) fn on_ack_frame(
        &mut self,
        now: Time,
        id: SpaceId,
        frame: &Ack<'_>,
    ) -> Result<(), TransportError> {
        self.stats.acks_received += 1;
        self.check_ack(id, frame)?;
        let newly = self.take_acked(id, frame);
        let Some(space) = self.spaces.get_mut(id) else {
            return Ok(());
        };
        let largest_increased = space.loss.on_ack_received(frame.largest);
        if id == SpaceId::Application && !self.recovery.lately_lost.is_empty() {
            self.find_spurious_losses(now, frame);
        }
        if !newly.any {
            return Ok(());
        }
        let in_flight_before = self.paths.active().bytes_in_flight;
        self.take_from_flight(newly.bytes);
        let sample = self.sample_rtt(now, id, frame, &newly);
        let ce = match self.spaces.get_mut(id) {
            Some(space) => space
                .ecn
                .on_ack(newly.ecn_marked, frame.ecn, largest_increased),
            None => Default::default(),
        };
        self.paths.active_mut().search.on_acked(newly.largest_size);
        let lost = self.detect_lost(now, id);
        let path = self.paths.active_mut();
        if ce.ce_increase > 0 && newly.largest_on_path {
            let bytes_in_flight = path.bytes_in_flight;
            path.congestion.on_congestion(&LossSample {
                now,
                lost_bytes: 0,
                largest_lost_sent: newly.largest_sent,
                persistent: false,
                is_ecn: true,
                bytes_in_flight,
                packets: &[],
            });
            self.stats.congestion_events += 1;
        }
        let path = self.paths.active_mut();
        let rate = path.delivery.sample(now, path.rtt.min());
        // What was sent before the window collapsed must not open it again at once.
        if newly.bytes > 0 && !lost.is_persistent {
            path.congestion.on_ack(&AckSample {
                now,
                acked_bytes: newly.bytes,
                largest_acked: newly.largest,
                largest_acked_sent: newly.largest_sent,
                earliest_acked_sent: newly.earliest_sent,
                rtt: &path.rtt,
                rtt_sample: sample,
                app_limited: path.app_limited,
                bytes_in_flight_before: in_flight_before,
                bytes_in_flight: path.bytes_in_flight,
                lost_bytes: lost.bytes,
                delivered: path.delivery.delivered(),
                rate,
                ecn_capable_packets: newly.ecn_marked,
                ce_packets: ce.ce_increase,
            });
            path.set_pacing_rate();
        }
        let window = self.paths.active().congestion.window();
        self.streams.on_congestion_window(window);
        self.forget_snapshots(id);
        self.after_ack(now, id, &newly);
        Ok(())
    }

    /// Numbers that were never sent cannot have arrived (RFC 9000 §13.1, attacks A22 and A23).
    fn check_ack(&self, id: SpaceId, frame: &Ack<'_>) -> Result<(), TransportError> {
        let Some(space) = self.spaces.get(id) else {
            return Ok(());
        };
        if frame.largest >= space.next_packet_number {
            return Err(TransportError::protocol_violation(format!(
                "packet {} acknowledged, {} sent",
                frame.largest, space.next_packet_number
            )));
        }
        let skipped = frame
            .ranges()
            .find_map(|range| space.sent.skipped_in(&range));
        if let Some(number) = skipped {
            let reason = format!("packet {number} acknowledged, it was never sent");
            return Err(TransportError::protocol_violation(reason));
        }
        if id == SpaceId::Application
            && let Some(keys) = &self.key_phase.keys
            && keys.acknowledgment_breaks_phase(frame.largest)
        {
            // RFC 9001 §6.2: whoever acknowledges the new phase must have followed.
            let code = courser_wire::TransportErrorCode::KEY_UPDATE_ERROR;
            let reason = "acknowledged the new key phase in packets of the old one";
            return Err(TransportError::new(code, reason));
        }
        Ok(())
    }

    /// Takes the acknowledged packets out of the ring and tells the owners of their frames.
    fn take_acked(&mut self, id: SpaceId, frame: &Ack<'_>) -> NewlyAcked {
        let mut newly = NewlyAcked {
            bytes: 0,
            largest_size: 0,
            largest: 0,
            largest_sent: Time::ZERO,
            earliest_sent: Time::MAX,
            largest_on_path: false,
            any_ack_eliciting: false,
            any: false,
            ecn_marked: 0,
        };
        for range in frame.ranges() {
            let Some(space) = self.spaces.get(id) else {
                break;
            };
            // Ranges come newest first: the rest was settled long ago.
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
                self.on_packet_acked(id, number, sent, &mut newly);
            }
        }
        self.take_acked_acks(id, frame, &mut newly);
        newly
    }

    /// Packets with nothing but an ACK, as far as they are remembered.
    fn take_acked_acks(&mut self, id: SpaceId, frame: &Ack<'_>, newly: &mut NewlyAcked) {
        for range in frame.ranges() {
            while let Some(space) = self.spaces.get_mut(id)
                && let Some((number, sent)) = space.sent.ack_only_mut().take_newest(&range)
            {
                self.on_packet_acked(id, number, sent, newly);
            }
            let oldest = self
                .spaces
                .get_mut(id)
                .and_then(|space| space.sent.ack_only_mut().oldest());
            if oldest.is_none_or(|oldest| *range.start() <= oldest) {
                break;
            }
        }
        if let Some(space) = self.spaces.get_mut(id) {
            let marked = space.sent.ack_only_mut().forget_through(frame.largest);
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
    ) {
        let on_path = self.paths.active().id;
        let Some(space) = self.spaces.get_mut(id) else {
            return;
        };
        newly.any = true;
        if sent.ack_eliciting {
            space.ack_eliciting_in_flight -= 1;
            newly.any_ack_eliciting = true;
            self.recovery.mute.on_acked();
        }
        newly.ecn_marked += u64::from(sent.ecn_marked);
        let on_path = sent.path == on_path;
        if sent.in_flight && on_path {
            newly.bytes += u64::from(sent.size);
            newly.largest_size = newly.largest_size.max(sent.size);
            self.paths.active_mut().delivery.on_acked(
                u64::from(sent.size),
                sent.snapshot,
                sent.time,
                u64::from(sent.tx_in_flight),
            );
            newly.earliest_sent = newly.earliest_sent.min(sent.time);
        } else if sent.in_flight {
            self.take_from_other(&sent);
        } else {
            self.paths.active_mut().persistent.reset();
        }
        if number >= newly.largest {
            (newly.largest, newly.largest_sent) = (number, sent.time);
            newly.largest_on_path = on_path;
        }
        if sent.frames.is_only_stream() {
            // Nearly every packet of a bulk transfer.
            if let Some(stream) = sent.frames.stream() {
                self.streams.on_frame_acked(stream);
            }
            return;
        }
        self.settle(id, sent, Self::on_frame_acked);
    }

    /// Tells the owner of each frame of a packet its fate and gives the record back.
    pub(super) fn settle(
        &mut self,
        id: SpaceId,
        sent: Sent<SentFrames>,
        each: fn(&mut Self, SpaceId, crate::space::sent::SentFrame),
    ) {
        let mut lists = std::mem::take(&mut self.recovery.lists);
        sent.frames.for_each(&lists, |frame| each(self, id, frame));
        sent.frames.release(&mut lists);
        self.recovery.lists = lists;
    }

    pub(super) fn take_from_flight(&mut self, bytes: u64) {
        let path = self.paths.active_mut();
        debug_assert!(
            path.bytes_in_flight >= bytes,
            "more acknowledged than in flight"
        );
        path.bytes_in_flight = path.bytes_in_flight.saturating_sub(bytes);
    }

    /// A packet that left on a path which is not in use: it counts there, in case we return.
    #[cold]
    pub(super) fn take_from_other(&mut self, sent: &Sent<SentFrames>) {
        if let Some(path) = self.paths.by_id(sent.path) {
            path.bytes_in_flight = path.bytes_in_flight.saturating_sub(u64::from(sent.size));
        }
    }

    /// RFC 9002 §5.1: only when the largest is new and something ack-eliciting is among the new.
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
        let confirmed = self.state.is_confirmed();
        let max_ack_delay = self.peer_max_ack_delay();
        let ack_delay = match (&self.handshake.peer_parameters, id) {
            (Some(peer), SpaceId::Application) => {
                let micros = frame
                    .delay
                    .saturating_mul(1 << peer.ack_delay_exponent.min(20));
                Duration::from_micros(micros)
            }
            // Initial and Handshake packets are acknowledged at once (§5.3). What comes later says
            // again what was lost: it would make a first sample of seconds.
            _ if handshake_ack_delay(frame) > IMMEDIATE => return None,
            _ => Duration::ZERO,
        };
        let sample = now - newly.largest_sent;
        let limit = confirmed.then_some(max_ack_delay);
        self.paths
            .active_mut()
            .rtt
            .on_sample(now, sample, ack_delay, limit);
        Some(sample)
    }

    fn after_ack(&mut self, now: Time, id: SpaceId, newly: &NewlyAcked) {
        if let (SpaceId::Application, Some(keys)) = (id, &mut self.key_phase.keys) {
            keys.on_packet_acked(newly.largest);
        }
        self.recovery.quiet_since = now;
        if self.side.is_client() && id == SpaceId::Application {
            // Who reads 1-RTT packets has our Finished. HANDSHAKE_DONE may have been lost, and
            // until it comes again nothing but the handshake would be probed (RFC 9001 §4.1.2).
            self.confirm(now);
        }
        // A client that does not know whether the server has validated its address keeps its
        // back-off (RFC 9002 §6.2.1).
        if self.peer_validated_us() {
            self.recovery.pto.reset();
        }
    }

    /// A server's peer has always been validated by what it sent; a client knows once a
    /// Handshake packet was acknowledged or the handshake is confirmed (RFC 9002 §6.2.2.1).
    pub(crate) fn peer_validated_us(&self) -> bool {
        self.side.is_server()
            || !self.state.is_handshaking()
            || self
                .spaces
                .handshake
                .as_ref()
                .is_some_and(|space| space.loss.largest_acked().is_some())
    }
}

/// What an ACK of an Initial or Handshake packet says it was held back. RFC 9000 §18.2: the
/// exponent is 3 while the peer's parameters are not known.
fn handshake_ack_delay(frame: &Ack<'_>) -> Duration {
    Duration::from_micros(frame.delay.saturating_mul(1 << 3))
}

/// An ACK within this time was sent at once: the delay that peers may take by default
/// (RFC 9000 §18.2).
const IMMEDIATE: Duration = Duration::from_millis(25);
