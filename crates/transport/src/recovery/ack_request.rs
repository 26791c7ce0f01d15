//! Requests an ACK frequency of the peer that matches the use of its ACKs.
//! draft-ietf-quic-ack-frequency-12 §4, §8.

use std::time::Duration;

use courser_base::Time;
use courser_wire::frame::AckFrequency;

use crate::build::packet_builder::PacketBuilder;
use crate::space::sent::SentFrame;

/// The ACK frequency that we request, and the requests that the peer has confirmed.
///
/// With a large window and without losses, an ACK for every second packet costs both ends work without
/// effect: eight in a round trip keep window, pacing and delivery rate exact. In slow start, after a loss and
/// with small windows every ACK is useful, and the default applies.
#[derive(Debug, Default)]
pub struct AckRequest {
    /// The peer's `min_ack_delay`; `None` if it accepts no requests.
    offer: Option<Duration>,
    /// The values that the program has fixed.
    fixed: FixedTerms,
    /// The peer's `max_ack_delay`.
    announced: Duration,
    /// The terms of the last request; `None` while the defaults apply.
    latest: Option<Terms>,
    next_sequence: u64,
    /// The newest request, while it is in flight.
    in_flight: Option<u64>,
    /// A request that is due.
    pending: Option<Terms>,
    /// The delay that the peer has confirmed.
    confirmed: Duration,
    /// The longest delay requested since, which the peer may be using.
    unconfirmed: Duration,
    /// The earliest time of the next request.
    next_at: Time,
    congestion_events: u64,
    careful_until: Time,
}

/// A request without its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Terms {
    threshold: u64,
    delay: Duration,
    reordering: u64,
}

/// Values of requests that do not follow the path, because the program has fixed them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FixedTerms {
    /// Ack-eliciting packets that the peer may receive without sending an ACK.
    pub threshold: Option<u64>,
    /// The longest time by which the peer delays an ACK.
    pub delay: Option<Duration>,
    /// Packets out of order after which the peer sends an ACK at once.
    pub reordering: Option<u64>,
}

/// The state of the path when a request is considered.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The current time.
    pub now: Time,
    /// Datagrams that fit into the congestion window.
    pub window: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// True while the window grows exponentially.
    pub in_slow_start: bool,
    /// The number of times that the window was lowered.
    pub congestion_events: u64,
    /// Newer packets after which loss detection declares a packet lost.
    pub packet_threshold: u64,
}

impl AckRequest {
    /// Creates the state of a connection whose peer is unknown.
    pub fn new(fixed: FixedTerms) -> Self {
        Self {
            fixed,
            ..Self::default()
        }
    }

    /// Returns the state for a further path: the same delay of the peer, and no requests, because those of the first
    /// path hold for all.
    pub fn of_path(&self) -> Self {
        Self {
            announced: self.announced,
            confirmed: self.max_ack_delay(),
            ..Self::default()
        }
    }

    /// Processes the peer's parameters. No request is sent unless the peer accepts requests and `is_enabled` is
    /// true.
    pub fn on_peer_parameters(
        &mut self,
        max_ack_delay: Duration,
        min_ack_delay: Option<Duration>,
        is_enabled: bool,
    ) {
        self.announced = max_ack_delay;
        self.confirmed = max_ack_delay;
        self.offer = min_ack_delay.filter(|_| is_enabled);
    }

    /// Returns true when the peer accepts ACK_FREQUENCY and IMMEDIATE_ACK frames.
    pub fn is_offered(&self) -> bool {
        self.offer.is_some()
    }

    /// Returns the longest time by which the peer may delay an ACK: the larger of the confirmed
    /// delay and the one in flight (draft-ietf-quic-ack-frequency-12 §7).
    pub fn max_ack_delay(&self) -> Duration {
        self.confirmed.max(self.unconfirmed)
    }

    /// Returns the longest time by which the peer delays an ACK without a request: `max_ack_delay` of its
    /// transport parameters.
    pub fn announced_max_ack_delay(&self) -> Duration {
        self.announced
    }

    /// Decides whether to request another frequency. Called after each ACK.
    pub fn review(&mut self, situation: &Situation) {
        let Some(min) = self.offer else { return };
        if situation.congestion_events != self.congestion_events {
            self.congestion_events = situation.congestion_events;
            self.careful_until = situation.now + situation.rtt * RECOVERY_RTTS;
        }
        let desired = self.desired(min, situation);
        if !self.differs_enough(&desired) {
            // A request that was lost stays due.
            self.pending = self.pending.filter(|terms| self.latest == Some(*terms));
            return;
        }
        // A return to every second packet is requested at once, any other change once per round
        // trip and one at a time.
        let is_free = self.in_flight.is_none() && situation.now >= self.next_at;
        if is_free || desired.threshold == DEFAULT_THRESHOLD {
            self.pending = Some(desired);
            self.next_at = situation.now + situation.rtt;
        }
    }

    fn desired(&self, min: Duration, situation: &Situation) -> Terms {
        // An application that sometimes has too little to send may stay in slow start. Once the
        // window was large, that is no reason to acknowledge every second packet.
        let is_thinned = self
            .latest
            .is_some_and(|terms| terms.threshold > DEFAULT_THRESHOLD);
        let is_careful = situation.in_slow_start && !is_thinned
            || situation.window < LARGE_WINDOW
            || situation.now < self.careful_until;
        let threshold = if is_careful {
            DEFAULT_THRESHOLD
        } else {
            situation.window / ACKS_PER_WINDOW
        };
        Terms {
            threshold: self.fixed.threshold.unwrap_or(threshold),
            delay: match self.fixed.delay {
                Some(delay) => whole_micros(delay).max(min),
                // At most the delay that the peer announced, so that the last packets of a transfer
                // are acknowledged no later than without a request.
                None => whole_micros(situation.rtt / 4).clamp(min, self.announced.max(min)),
            },
            reordering: self.fixed.reordering.unwrap_or(situation.packet_threshold),
        }
    }

    /// Returns true when `desired` differs from the last request by a factor of two, or in kind.
    fn differs_enough(&self, desired: &Terms) -> bool {
        let Some(latest) = self.latest else {
            return desired.threshold > DEFAULT_THRESHOLD || self.fixed != FixedTerms::default();
        };
        let is_careful = |terms: &Terms| terms.threshold == DEFAULT_THRESHOLD;
        let far = |a: u64, b: u64| a.max(b) >= 2 * a.min(b).max(1);
        let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        is_careful(desired) != is_careful(&latest)
            || far(desired.threshold, latest.threshold)
            || !is_careful(desired)
                && (far(micros(desired.delay), micros(latest.delay))
                    || desired.reordering != latest.reordering)
    }

    /// Returns true when a request is due.
    pub fn has_frames_to_send(&self) -> bool {
        self.pending.is_some()
    }

    /// Writes the request that is due, if it fits.
    pub fn write_frames(&mut self, packet: &mut PacketBuilder<'_>) {
        let Some(terms) = self.pending else { return };
        let frame = AckFrequency {
            sequence: self.next_sequence,
            ack_eliciting_threshold: terms.threshold,
            requested_max_ack_delay: u64::try_from(terms.delay.as_micros()).unwrap_or(u64::MAX),
            reordering_threshold: terms.reordering,
        };
        if frame.encoded_len() > packet.remaining() {
            return;
        }
        frame.encode(packet.writer());
        packet.record(SentFrame::AckFrequency {
            sequence: frame.sequence,
        });
        self.pending = None;
        self.latest = Some(terms);
        self.in_flight = Some(frame.sequence);
        self.next_sequence += 1;
        self.unconfirmed = self.unconfirmed.max(terms.delay);
    }

    /// Processes the acknowledgement of a request. Ignores obsolete ones.
    pub fn on_acked(&mut self, sequence: u64) {
        if self.in_flight == Some(sequence)
            && let Some(latest) = self.latest
        {
            self.in_flight = None;
            self.confirmed = latest.delay;
            self.unconfirmed = Duration::ZERO;
        }
    }

    /// Processes the loss of a request. It is sent again with a new sequence number, unless a newer one has
    /// replaced it.
    pub fn on_lost(&mut self, sequence: u64) {
        if self.in_flight == Some(sequence) {
            self.in_flight = None;
            self.pending = self.pending.or(self.latest);
        }
    }
}

/// Rounds a delay down to the microseconds that the frame can carry.
fn whole_micros(delay: Duration) -> Duration {
    Duration::from_micros(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX))
}

/// The default: every second packet is acknowledged (RFC 9000 §13.2.2).
const DEFAULT_THRESHOLD: u64 = 1;

/// ACKs in a round trip of a full window: enough for smooth growth of the window, and for short
/// bursts without pacing.
const ACKS_PER_WINDOW: u64 = 8;

/// The size in datagrams from which a window counts as large. An eighth of a smaller one is hardly
/// more than the default.
const LARGE_WINDOW: u64 = 32;

/// Round trips after a loss with the default frequency: one to detect other losses, one to receive
/// acknowledgements of retransmissions.
const RECOVERY_RTTS: u32 = 2;

#[cfg(test)]
mod tests;
