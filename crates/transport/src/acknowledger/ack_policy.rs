//! Decides when to acknowledge. RFC 9000 §13.2, draft-ietf-quic-ack-frequency-12 §6.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::AckFrequency;

use crate::acknowledger::received::Received;
use crate::error::TransportError;

/// Decides when an ACK frame is sent.
///
/// A batch of 45 packets gets one ACK instead of 22: an ACK costs both ends more than everything
/// else about two data packets together. Between batches every second packet is acknowledged, as
/// RFC 9000 §13.2.2 recommends, until the peer requests another frequency.
#[derive(Debug)]
pub struct AckPolicy {
    terms: Terms,
    unacknowledged: u64,
    due: bool,
    deadline: Option<Time>,
    /// True if a packet that is not acknowledged yet ended a stream.
    has_end: bool,
    /// True if the last packet had a CE mark.
    was_marked: bool,
    /// The largest ack-eliciting number that arrived: Largest Unacked of the draft's §6.2.
    largest_eliciting: u64,
    /// The largest number in an ACK that was sent.
    largest_acked: Option<u64>,
    last_sent: Time,
    /// Packets sent since our last ack-eliciting one.
    streak: u32,
}

/// The peer's terms for acknowledgements. draft-ietf-quic-ack-frequency-12 §4.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// Sequence number of the frame that set the terms.
    sequence: Option<u64>,
    /// Ack-eliciting packets that may arrive without an ACK.
    threshold: u64,
    /// The delay that the peer requested; `None` while our own applies.
    max_ack_delay: Option<Duration>,
    /// Reordering threshold: 1 acknowledges at once for any gap, 0 for none.
    reordering: u64,
}

/// An ack-eliciting packet of the application space.
#[derive(Clone, Copy, Debug)]
pub struct AckEliciting {
    pub number: u64,
    /// True if this packet was expected next.
    pub is_in_order: bool,
    /// True if the packet had a CE mark.
    pub is_marked: bool,
    /// True if the packet ends a stream.
    pub ends_stream: bool,
    /// True if the packet has an IMMEDIATE_ACK frame.
    pub has_immediate_ack: bool,
}

impl AckPolicy {
    /// Handles an ack-eliciting packet of the handshake. It is acknowledged at once, because the
    /// peer takes its first round-trip time sample from it (RFC 9000 §13.2.1).
    pub fn on_handshake_packet(&mut self) {
        self.unacknowledged += 1;
        self.due = true;
    }

    /// Handles an ack-eliciting packet that `received` contains already. `max_ack_delay` is the
    /// delay that our transport parameters promise.
    pub fn on_ack_eliciting(
        &mut self,
        now: Time,
        packet: &AckEliciting,
        received: &Received,
        max_ack_delay: Duration,
    ) {
        self.unacknowledged += 1;
        self.largest_eliciting = self.largest_eliciting.max(packet.number);
        // Each change of the mark is acknowledged at once, so that the sender detects the
        // beginning and the end of a queue. While ACKs are not thinned, every mark is acknowledged
        // at once (RFC 9000 §13.2.1, draft-ietf-quic-ack-frequency-12 §6.3).
        let changes = packet.is_marked != self.was_marked;
        self.was_marked = packet.is_marked;
        self.due |= packet.has_immediate_ack
            || changes
            || packet.is_marked && self.terms.threshold <= DEFAULT_THRESHOLD
            || self.is_reordered(packet, received);
        let mut delay = self.terms.max_ack_delay.unwrap_or(max_ack_delay);
        if packet.ends_stream {
            self.has_end = true;
            delay = delay.min(END_DELAY);
        }
        let deadline = now + delay;
        self.deadline = Some(
            self.deadline
                .map_or(deadline, |before| before.min(deadline)),
        );
    }

    /// Returns true when this packet, or one still missing, is behind by the reordering threshold
    /// or more. draft-ietf-quic-ack-frequency-12 §6.2.
    fn is_reordered(&self, packet: &AckEliciting, received: &Received) -> bool {
        let threshold = self.terms.reordering;
        match threshold {
            0 => return false,
            1 => return !packet.is_in_order,
            _ => {}
        }
        // Gaps below were reported by an earlier ACK.
        let start = self
            .largest_acked
            .map_or(0, |acked| (acked + 1).saturating_sub(threshold));
        if packet.number < start {
            return true;
        }
        received
            .first_missing(start)
            .is_some_and(|missing| self.largest_eliciting.saturating_sub(missing) >= threshold)
    }

    /// Applies the peer's terms for acknowledgements. Our `min_ack_delay` bounds the delay.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for a delay below `min_ack_delay`, or of 2^14 ms and more.
    pub fn on_ack_frequency_frame(
        &mut self,
        frame: &AckFrequency,
        min_ack_delay: Duration,
    ) -> Result<(), TransportError> {
        let delay = Duration::from_micros(frame.requested_max_ack_delay);
        if delay < min_ack_delay || delay >= MAX_ACK_DELAY_END {
            return Err(TransportError::protocol_violation(format!(
                "a delay of {delay:?} is requested, allowed is {min_ack_delay:?} up to {MAX_ACK_DELAY_END:?}"
            )));
        }
        if self
            .terms
            .sequence
            .is_none_or(|newest| frame.sequence > newest)
        {
            self.terms = Terms {
                sequence: Some(frame.sequence),
                threshold: frame.ack_eliciting_threshold,
                max_ack_delay: Some(delay),
                reordering: frame.reordering_threshold,
            };
        }
        Ok(())
    }

    /// Ends a receive batch, all of whose packets are processed. `rtt` is the smoothed round-trip
    /// time.
    pub fn on_batch_end(&mut self, now: Time, rtt: Duration) {
        // After an idle period, and at the end of a stream, the peer waits for an ACK
        // (draft-ietf-quic-ack-frequency-12 §6.1).
        let peer_waits = self.has_end || now.saturating_since(self.last_sent) > rtt;
        let threshold = if peer_waits {
            self.terms.threshold.min(DEFAULT_THRESHOLD)
        } else {
            self.terms.threshold
        };
        self.due |= self.unacknowledged > threshold;
    }

    /// Returns true when an ACK must be sent now, if necessary in a packet without other frames.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Returns true when a packet with other frames may carry an ACK: something new arrived since
    /// the last one.
    pub fn is_pending(&self) -> bool {
        self.unacknowledged > 0
    }

    /// Returns true if an ACK was sent.
    pub fn has_sent(&self) -> bool {
        self.largest_acked.is_some()
    }

    /// Returns the time at which a pending ACK becomes due.
    pub fn deadline(&self) -> Option<Time> {
        if self.due { None } else { self.deadline }
    }

    /// Makes a pending ACK due if its deadline has passed.
    pub fn on_timeout(&mut self, now: Time) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.due = true;
        }
    }

    /// Handles an ACK frame up to `largest` that was written. Returns true when the packet should
    /// carry a PING too, because [`STREAK`] packets in a row were not ack-eliciting (RFC 9000 §13.2.4).
    pub fn on_ack_sent(&mut self, now: Time, largest: u64, packet_is_ack_eliciting: bool) -> bool {
        self.unacknowledged = 0;
        self.due = false;
        self.deadline = None;
        self.has_end = false;
        self.largest_acked = Some(largest);
        self.last_sent = now;
        self.streak = if packet_is_ack_eliciting {
            0
        } else {
            self.streak + 1
        };
        if self.streak >= STREAK {
            self.streak = 0;
            return true;
        }
        false
    }
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self {
            terms: Terms {
                sequence: None,
                threshold: DEFAULT_THRESHOLD,
                max_ack_delay: None,
                reordering: 1,
            },
            unacknowledged: 0,
            due: false,
            deadline: None,
            has_end: false,
            was_marked: false,
            largest_eliciting: 0,
            largest_acked: None,
            last_sent: Time::ZERO,
            streak: 0,
        }
    }
}

/// One packet may arrive without an ACK; every second one is acknowledged (RFC 9000 §13.2.2).
const DEFAULT_THRESHOLD: u64 = 1;

/// The longest delay of an ACK after the end of a stream. It lets a short response carry the ACK,
/// which saves a packet per request. A longer delay has no use, since nothing else follows.
const END_DELAY: Duration = Duration::from_millis(1);

/// Delays must be shorter than this (RFC 9000 §18.2).
const MAX_ACK_DELAY_END: Duration = Duration::from_millis(1 << 14);

/// Consecutive non-ack-eliciting packets after which one PING elicits an ACK (limit K29).
const STREAK: u32 = 19;

#[cfg(test)]
mod tests;
