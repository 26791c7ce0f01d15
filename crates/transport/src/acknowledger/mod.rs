//! Acknowledges received packets: remembers which have arrived, and decides when an ACK frame is
//! due. RFC 9000 §13.2.

pub mod ack_policy;
pub mod received;

use std::time::Duration;

use courser_base::{Ecn, Time};
use courser_wire::PathId;
use courser_wire::frame::{Ack, AckFrequency, PathAck};

use self::ack_policy::{AckEliciting, AckPolicy};
pub(crate) use self::received::Arrivals;
use self::received::Received;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;
use crate::space::SpaceId;
use crate::space::sent::SentFrame;

/// The packets that arrived in each packet number space, and their acknowledgements.
#[derive(Debug)]
pub(crate) struct Acknowledger {
    initial: Option<Box<ReceivedPackets>>,
    handshake: Option<Box<ReceivedPackets>>,
    application: ReceivedPackets,
    promise: Promise,
    /// The path of 1-RTT packets, if the ends have agreed on several: its ACK frames name it.
    path: Option<PathId>,
    /// ACK frames written in all spaces; survives [`Acknowledger::free`].
    sent: u64,
    /// The arrivals before [`Acknowledger::free`].
    arrivals: Arrivals,
}

/// The delays that our transport parameters promise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    /// The longest time by which we delay acknowledgements.
    pub(crate) max_ack_delay: Duration,
    /// The shortest delay that the peer may request; `None` if we do not offer the extension.
    pub(crate) min_ack_delay: Option<Duration>,
}

/// The receiving half of a packet number space.
#[derive(Debug, Default)]
pub(crate) struct ReceivedPackets {
    received: Received,
    policy: AckPolicy,
}

/// A packet that was opened and processed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) number: u64,
    /// The time of arrival. The packet may have waited for its keys since.
    pub(crate) at: Time,
    pub(crate) ecn: Ecn,
    pub(crate) ack_eliciting: bool,
    pub(crate) ends_stream: bool,
    /// True if the packet has an IMMEDIATE_ACK frame.
    pub(crate) has_immediate_ack: bool,
}

/// An ACK frame that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenAck {
    /// True if so many packets were sent without an ack-eliciting one that a PING should elicit
    /// an acknowledgement.
    pub(crate) needs_ping: bool,
}

impl Acknowledger {
    /// Creates the state of a connection that has received nothing.
    pub(crate) fn new(promise: Promise) -> Self {
        Self {
            initial: None,
            handshake: None,
            application: ReceivedPackets::default(),
            promise,
            path: None,
            sent: 0,
            arrivals: Arrivals::default(),
        }
    }

    /// Names the path of 1-RTT packets in their acknowledgements from now on (RFC 10069 §2.3).
    pub(crate) fn name_path(&mut self, path: PathId) {
        self.path = Some(path);
    }

    /// Exchanges the 1-RTT packets of the path at hand for those of another one.
    pub(crate) fn exchange_application(&mut self, other: &mut ReceivedPackets) {
        std::mem::swap(&mut self.application, other);
    }

    /// Returns the longest time by which we delay an acknowledgement, as announced to the peer.
    pub(crate) fn announced_max_ack_delay(&self) -> Duration {
        self.promise.max_ack_delay
    }

    /// Creates a packet number space when its keys become available.
    pub(crate) fn create_space(&mut self, id: SpaceId) {
        match id {
            SpaceId::Initial => {
                self.initial.get_or_insert_default();
            }
            SpaceId::Handshake => {
                self.handshake.get_or_insert_default();
            }
            SpaceId::Application => {}
        }
    }

    /// Discards a packet number space together with its keys.
    pub(crate) fn discard(&mut self, id: SpaceId) {
        match id {
            SpaceId::Initial => self.initial = None,
            SpaceId::Handshake => self.handshake = None,
            SpaceId::Application => {}
        }
    }

    /// Frees the numbers of received packets. Counters stay.
    pub(crate) fn free(&mut self) {
        *self = Self {
            sent: self.sent,
            arrivals: self.arrivals(),
            path: self.path,
            ..Self::new(self.promise)
        };
    }

    /// Returns the 1-RTT packets that have not arrived, and those that arrived late.
    pub(crate) fn arrivals(&self) -> Arrivals {
        match self.application.received.largest() {
            Some(_) => self.application.received.arrivals(),
            None => self.arrivals,
        }
    }

    /// Frees the spare capacity of the list of ranges.
    pub(crate) fn shrink(&mut self) {
        self.application.received.shrink();
    }

    /// Returns true from the creation of a space until it is discarded.
    pub(crate) fn has_space(&self, id: SpaceId) -> bool {
        self.get(id).is_some()
    }

    /// Returns true while the Initial or the Handshake space exists.
    pub(crate) fn is_in_handshake(&self) -> bool {
        self.initial.is_some() || self.handshake.is_some()
    }

    /// Returns the packet number expected next in a space, for expanding truncated ones.
    #[inline]
    pub(crate) fn expected(&self, id: SpaceId) -> Option<u64> {
        Some(self.get(id)?.received.expected())
    }

    /// Returns true when a packet was received before, or is too old to decide.
    #[inline]
    pub(crate) fn is_duplicate(&self, id: SpaceId, number: u64) -> bool {
        self.get(id)
            .is_none_or(|space| space.received.is_duplicate(number))
    }

    /// Records a packet that was processed in full: it may be acknowledged now (RFC 9000 §13.1).
    /// Returns true when it is the largest of its space so far.
    pub(crate) fn on_packet(&mut self, now: Time, id: SpaceId, packet: &Arrived) -> bool {
        let max_ack_delay = self.promise.max_ack_delay;
        let Some(space) = self.get_mut(id) else {
            return false;
        };
        let expected = space.received.expected();
        // The wait for keys must not raise the peer's round-trip time (RFC 9000 §13.2.5).
        space.received.insert(packet.number, packet.at, packet.ecn);
        if packet.ack_eliciting && id == SpaceId::Application {
            let packet = AckEliciting {
                number: packet.number,
                is_in_order: packet.number == expected,
                is_marked: packet.ecn == Ecn::Ce,
                ends_stream: packet.ends_stream,
                has_immediate_ack: packet.has_immediate_ack,
            };
            let received = &space.received;
            space
                .policy
                .on_ack_eliciting(now, &packet, received, max_ack_delay);
        } else if packet.ack_eliciting {
            space.policy.on_handshake_packet();
        }
        packet.number >= expected
    }

    /// Ends a batch of received packets. `rtt` is the round-trip time of their path.
    pub(crate) fn on_batch_end(&mut self, now: Time, rtt: Duration) {
        self.application.policy.on_batch_end(now, rtt);
    }

    /// Applies the peer's request for another ACK frequency.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a delay that is not allowed, FRAME_ENCODING_ERROR if we did not offer the
    /// extension.
    pub(crate) fn on_ack_frequency_frame(
        &mut self,
        frame: &AckFrequency,
    ) -> Result<(), TransportError> {
        let least = self.check_extension()?;
        self.application.policy.on_ack_frequency_frame(frame, least)
    }

    /// Returns the `min_ack_delay` by which we offered draft-ietf-quic-ack-frequency-12. If we did not,
    /// frames of the extension are unknown ones (§3).
    ///
    /// # Errors
    ///
    /// FRAME_ENCODING_ERROR if we did not offer the extension.
    pub(crate) fn check_extension(&self) -> Result<Duration, TransportError> {
        let reason = "a frame of an extension that was not offered";
        self.promise
            .min_ack_delay
            .ok_or_else(|| TransportError::frame_encoding(reason))
    }

    /// Handles the acknowledgement of an ACK frame up to `largest`.
    pub(crate) fn on_ack_acknowledged(&mut self, id: SpaceId, largest: u64) {
        if let Some(space) = self.get_mut(id) {
            space.received.on_ack_acknowledged(largest);
        }
    }

    /// Returns true when an ACK frame is due in a space.
    #[inline]
    pub(crate) fn is_due(&self, id: SpaceId) -> bool {
        self.get(id).is_some_and(|space| space.policy.is_due())
    }

    /// Returns the time at which an acknowledgement of 1-RTT packets is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.application.policy.deadline()
    }

    /// Makes a pending acknowledgement due if its deadline has passed.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.application.policy.on_timeout(now);
    }

    /// Writes an ACK frame, if one is due, or if one is pending and other frames may follow it.
    /// `is_repeated` lets a probe repeat the last ACK, but only if one was due before: a server may
    /// acknowledge half a ClientHello before it has a connection, as Envoy does, and drops packets that
    /// acknowledge this ACK.
    pub(crate) fn write_frame(
        &mut self,
        now: Time,
        id: SpaceId,
        packet: &mut PacketBuilder<'_>,
        written: AckContext,
    ) -> Option<WrittenAck> {
        let path = self.path.filter(|_| id == SpaceId::Application);
        let written = self.get_mut(id)?.write_frame(now, path, packet, written)?;
        self.sent += 1;
        Some(written)
    }

    /// Returns the number of ACK frames written since the connection began.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the numbers of the 1-RTT packets that arrived.
    #[cfg(test)]
    pub(crate) fn received(&self) -> &Received {
        &self.application.received
    }

    #[inline]
    fn get(&self, id: SpaceId) -> Option<&ReceivedPackets> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Application => Some(&self.application),
        }
    }

    #[inline]
    fn get_mut(&mut self, id: SpaceId) -> Option<&mut ReceivedPackets> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Application => Some(&mut self.application),
        }
    }
}

impl ReceivedPackets {
    /// Returns the packets that have not arrived, and those that arrived late.
    pub(crate) fn arrivals(&self) -> Arrivals {
        self.received.arrivals()
    }

    /// Returns true when an ACK frame is due.
    pub(crate) fn is_due(&self) -> bool {
        self.policy.is_due()
    }

    /// Returns the time at which an acknowledgement is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.policy.deadline()
    }

    /// Ends a batch of received packets, as [`Acknowledger::on_batch_end`] does.
    pub(crate) fn on_batch_end(&mut self, now: Time, rtt: Duration) {
        self.policy.on_batch_end(now, rtt);
    }

    /// Handles the acknowledgement of an ACK frame up to `largest`.
    pub(crate) fn on_ack_acknowledged(&mut self, largest: u64) {
        self.received.on_ack_acknowledged(largest);
    }

    /// Writes an ACK frame, as [`Acknowledger::write_frame`] does, or PATH_ACK for `path`.
    #[inline(always)]
    pub(crate) fn write_frame(
        &mut self,
        now: Time,
        path: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
        written: AckContext,
    ) -> Option<WrittenAck> {
        let is_repeated = written.is_repeated && self.policy.has_sent();
        let may_be_added = self.policy.is_pending() || is_repeated;
        if !(self.policy.is_due() || may_be_added && !written.is_ack_only) {
            return None;
        }
        let received = &mut self.received;
        let largest = received.largest()?;
        let delay = (now - received.largest_time()).as_micros() >> ACK_DELAY_EXPONENT;
        let delay = u64::try_from(delay).unwrap_or(u64::MAX);
        let delay = delay.min(courser_wire::MAX_VARINT);
        let (ranges, ecn) = (received.ranges(), received.ecn());
        let count = received.ranges_to_report(USUAL_ACK_RANGES);
        let count = count.min(MAX_ACK_RANGES);
        let (is_written, record) = match path {
            None => (
                Ack::write(packet.writer(), ranges, delay, ecn, count),
                SentFrame::Ack { largest },
            ),
            Some(path) => {
                let path_id = path.value().into();
                let writer = packet.writer();
                (
                    PathAck::write(writer, path_id, ranges, delay, ecn, count),
                    SentFrame::PathAck { path, largest },
                )
            }
        };
        if !is_written {
            return None;
        }
        received.on_ack_sent();
        packet.record(record);
        let is_eliciting = written.is_ack_eliciting;
        let needs_ping = self.policy.on_ack_sent(now, largest, is_eliciting);
        Some(WrittenAck { needs_ping })
    }
}

/// Describes the packet that an ACK frame is written into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    /// True if no other frame may follow.
    pub(crate) is_ack_only: bool,
    /// True if a probe repeats the last ACK.
    pub(crate) is_repeated: bool,
    /// True if ack-eliciting frames follow.
    pub(crate) is_ack_eliciting: bool,
}

/// The exponent of our ACK delays. We announce the default (RFC 9000 §18.2).
pub(crate) const ACK_DELAY_EXPONENT: u32 = 3;
/// Ranges in one ACK frame (limit K03), so each range is repeated in this many frames.
const USUAL_ACK_RANGES: usize = 32;
/// Ranges in an ACK frame of half a packet, so that a packet that arrives very late is reported at
/// least once.
const MAX_ACK_RANGES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::sent::FrameLists;

    const DELAY: Duration = Duration::from_millis(25);
    const APPLICATION: SpaceId = SpaceId::Application;

    fn acknowledger() -> Acknowledger {
        Acknowledger::new(Promise {
            max_ack_delay: DELAY,
            min_ack_delay: None,
        })
    }

    fn arrived(number: u64) -> Arrived {
        Arrived {
            number,
            at: Time::ZERO,
            ecn: Ecn::NotEct,
            ack_eliciting: true,
            ends_stream: false,
            has_immediate_ack: false,
        }
    }

    fn write(acknowledger: &mut Acknowledger, id: SpaceId) -> usize {
        let context = AckContext {
            is_ack_only: true,
            is_repeated: false,
            is_ack_eliciting: false,
        };
        write_in(acknowledger, id, context)
    }

    fn write_in(acknowledger: &mut Acknowledger, id: SpaceId, context: AckContext) -> usize {
        let (mut room, mut lists) = ([0; 100], FrameLists::default());
        let mut packet = PacketBuilder::new(&mut room, &mut lists);
        acknowledger.write_frame(Time::ZERO, id, &mut packet, context);
        packet.len()
    }

    #[test]
    fn handshake_packet_is_acknowledged_at_once() {
        let mut acknowledger = acknowledger();
        acknowledger.create_space(SpaceId::Initial);
        assert!(acknowledger.on_packet(Time::ZERO, SpaceId::Initial, &arrived(0)));
        assert!(acknowledger.is_due(SpaceId::Initial));
        assert!(write(&mut acknowledger, SpaceId::Initial) > 0);
        assert!(!acknowledger.is_due(SpaceId::Initial));
        assert_eq!(acknowledger.sent(), 1);
    }

    #[test]
    fn probes_repeat_an_ack_only_if_one_was_sent() {
        let mut acknowledger = acknowledger();
        acknowledger.create_space(SpaceId::Initial);
        let context = AckContext {
            is_ack_only: false,
            is_repeated: true,
            is_ack_eliciting: true,
        };
        // Such as the ACK of a server that waits for the rest of a ClientHello and has no state yet.
        let ack_only = Arrived {
            ack_eliciting: false,
            ..arrived(0)
        };
        acknowledger.on_packet(Time::ZERO, SpaceId::Initial, &ack_only);
        assert_eq!(write_in(&mut acknowledger, SpaceId::Initial, context), 0);
        acknowledger.on_packet(Time::ZERO, SpaceId::Initial, &arrived(1));
        assert!(write_in(&mut acknowledger, SpaceId::Initial, context) > 0);
        assert!(write_in(&mut acknowledger, SpaceId::Initial, context) > 0);
    }

    #[test]
    fn one_application_packet_waits_for_the_promised_delay() {
        let mut acknowledger = acknowledger();
        assert!(acknowledger.on_packet(Time::ZERO, APPLICATION, &arrived(0)));
        assert!(!acknowledger.is_due(APPLICATION));
        assert_eq!(acknowledger.next_timeout(), Some(Time::ZERO + DELAY));
        assert_eq!(write(&mut acknowledger, APPLICATION), 0);
        acknowledger.on_timeout(Time::ZERO + DELAY);
        assert!(write(&mut acknowledger, APPLICATION) > 0);
    }

    #[test]
    fn repeated_number_is_a_duplicate_and_an_older_one_is_not_the_largest() {
        let mut acknowledger = acknowledger();
        assert!(acknowledger.on_packet(Time::ZERO, APPLICATION, &arrived(5)));
        assert!(acknowledger.is_duplicate(APPLICATION, 5));
        assert!(!acknowledger.on_packet(Time::ZERO, APPLICATION, &arrived(4)));
        assert_eq!(acknowledger.expected(APPLICATION), Some(6));
    }

    #[test]
    fn frames_of_an_extension_that_was_not_offered_are_unknown() {
        let frame = AckFrequency {
            sequence: 0,
            ack_eliciting_threshold: 1,
            requested_max_ack_delay: 25_000,
            reordering_threshold: 1,
        };
        let error = acknowledger().on_ack_frequency_frame(&frame);
        let code = courser_wire::TransportErrorCode::FRAME_ENCODING_ERROR;
        assert_eq!(error.map_err(|error| error.code), Err(code));
    }

    #[test]
    fn discarded_space_ignores_packets_and_writes_no_acks() {
        let mut acknowledger = acknowledger();
        acknowledger.create_space(SpaceId::Handshake);
        assert!(acknowledger.is_in_handshake());
        acknowledger.discard(SpaceId::Handshake);
        assert!(!acknowledger.is_in_handshake());
        assert!(!acknowledger.on_packet(Time::ZERO, SpaceId::Handshake, &arrived(0)));
        assert!(acknowledger.is_duplicate(SpaceId::Handshake, 7), "refused");
        assert_eq!(write(&mut acknowledger, SpaceId::Handshake), 0);
    }
}
