//! When to acknowledge. RFC 9000 §13.2.

use std::time::Duration;

use courser_base::Time;

/// Ack-eliciting packets after which an ACK is due at the end of a receive batch.
///
/// A batch of 45 packets gets one ACK instead of 22: an ACK costs both ends more than
/// everything else about two data packets together. Between batches every second packet is
/// still acknowledged, as RFC 9000 §13.2.2 recommends.
const THRESHOLD: u32 = 2;

/// Non-ack-eliciting packets in a row after which one PING asks for an ACK (limit K29).
const STREAK: u32 = 19;

/// Decides when an ACK frame leaves.
#[derive(Debug, Default)]
pub struct AckPolicy {
    unacknowledged: u32,
    due: bool,
    deadline: Option<Time>,
    /// Packets since the last ack-eliciting one we sent.
    streak: u32,
}

impl AckPolicy {
    /// An ack-eliciting packet arrived. `immediately` when it is out of order, leaves a gap,
    /// carries a CE mark or belongs to the handshake (RFC 9000 §13.2.1).
    pub fn on_ack_eliciting(&mut self, now: Time, max_ack_delay: Duration, immediately: bool) {
        self.unacknowledged += 1;
        self.due |= immediately;
        if self.deadline.is_none() {
            self.deadline = Some(now + max_ack_delay);
        }
    }

    /// All packets of a receive batch are processed.
    pub fn on_batch_end(&mut self) {
        self.due |= self.unacknowledged >= THRESHOLD;
    }

    /// An ACK must leave now, in a packet of its own if need be.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// An ACK may ride along: something new arrived since the last one.
    pub fn is_pending(&self) -> bool {
        self.unacknowledged > 0
    }

    /// When a pending ACK becomes due.
    pub fn deadline(&self) -> Option<Time> {
        if self.due { None } else { self.deadline }
    }

    /// The deadline may have passed.
    pub fn on_timeout(&mut self, now: Time) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.due = true;
        }
    }

    /// An ACK frame was written. True when the packet should carry a PING too, because the
    /// peer has not been asked for an ACK for long (RFC 9000 §13.2.4).
    pub fn on_ack_sent(&mut self, packet_is_ack_eliciting: bool) -> bool {
        self.unacknowledged = 0;
        self.due = false;
        self.deadline = None;
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

#[cfg(test)]
mod tests;
