//! Black-hole detection for optional features of packets: batches, ECN marks, the cleared QUIC bit.

use std::time::Duration;

use courser_base::Time;

/// What is known about a feature on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// No packet with the feature was acknowledged or lost.
    Unknown,
    /// As `Unknown`, but the feature is used for trials only until one is acknowledged, for example
    /// because it has failed on other paths from the same socket.
    Unproven,
    /// Packets with the feature arrive.
    Confirmed,
    /// Packets with the feature were lost, and the peer received packets without it that were sent
    /// later.
    Doubtful,
    /// Packets with the feature were lost again, and none was acknowledged in between.
    Failed,
}

/// Finds out whether a path carries packets that use an optional feature, or drops them without an
/// error.
///
/// Some devices lose whole batches of segmentation offload, some networks drop packets with an ECN
/// mark or with a cleared QUIC bit. No error reports that: packets with the feature are lost, and
/// others arrive. A sender that uses the feature for every packet never recovers, so probes must be
/// sent without it. Their acknowledgement declares the earlier packets lost, which is the evidence
/// used here:
///
/// ```text
///   Unknown     acknowledged                 lost
///   Unproven -----------------> Confirmed ---------.
///      |                         ^     ^           |
///      | lost       acknowledged |     | trial     |
///      |                         |     | acknowledged
///      '---------------------> Doubtful|<----------'
///                                |     |
///                           lost |     |
///                                v     |
///                               Failed-'
/// ```
///
/// A loss counts only if no packet with the feature that was sent later has arrived, and no packet
/// without it that was sent later was lost too, as in an outage. Losses of one round trip count
/// once. The feature has failed after two such rounds with `FAILURE_LOSSES` packets. Random loss
/// seldom affects all of these packets and no others. If it does, the next trial restores the
/// feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathSupport {
    state: Support,
    /// True if a packet with the feature was ever acknowledged.
    was_confirmed: bool,
    /// True while a packet with the feature is in flight that decides about a state other than
    /// `Confirmed`.
    has_trial_in_flight: bool,
    /// Failures so far, each of which doubles the time to the next trial.
    failures: u8,
    /// Packets with the feature that were lost since one was acknowledged.
    lost: u32,
    /// The time at which the newest acknowledged packet with the feature was sent.
    newest_acked: Time,
    /// Losses of packets sent before this time are already counted.
    since: Time,
    /// The earliest time of the next trial in `Failed`.
    retry_at: Time,
}

/// Packets that were declared lost at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeatureLoss {
    /// The number of packets with the feature.
    pub count: u32,
    /// The time at which the newest of them was sent.
    pub sent: Time,
    /// The time at which the newest packet without the feature was sent, if there is one.
    pub others: Option<Time>,
}

impl PathSupport {
    /// Creates the state of a new path.
    pub const fn new() -> Self {
        Self {
            state: Support::Unknown,
            was_confirmed: false,
            has_trial_in_flight: false,
            failures: 0,
            lost: 0,
            newest_acked: Time::ZERO,
            since: Time::ZERO,
            retry_at: Time::ZERO,
        }
    }

    /// Creates the state of a path on which the feature is withheld until a trial is acknowledged.
    pub const fn unproven() -> Self {
        Self {
            state: Support::Unproven,
            ..Self::new()
        }
    }

    /// Returns what is known about the feature on this path.
    pub fn state(&self) -> Support {
        self.state
    }

    /// Returns true if the feature is used for trials only.
    #[inline]
    pub fn is_withheld(&self) -> bool {
        self.state == Support::Unproven || self.is_ruled_out()
    }

    /// Returns true if the feature has failed, or if it is in doubt and has never worked on this
    /// path.
    #[inline]
    pub fn is_ruled_out(&self) -> bool {
        match self.state {
            Support::Unknown | Support::Unproven | Support::Confirmed => false,
            Support::Doubtful => !self.was_confirmed,
            Support::Failed => true,
        }
    }

    /// Returns true if packets with the feature are known to arrive.
    #[inline]
    pub fn is_confirmed(&self) -> bool {
        self.state == Support::Confirmed
    }

    /// Returns true if a packet with the feature may be sent to find out whether it arrives. There
    /// is one trial at a time.
    pub fn allows_trial(&self, now: Time) -> bool {
        match self.state {
            Support::Confirmed => false,
            Support::Unknown | Support::Unproven | Support::Doubtful => !self.has_trial_in_flight,
            Support::Failed => !self.has_trial_in_flight && self.retry_at <= now,
        }
    }

    /// Records that an ack-eliciting packet with the feature was sent.
    #[inline]
    pub fn on_sent(&mut self) {
        self.has_trial_in_flight = self.state != Support::Confirmed;
    }

    /// Records that packets with the feature were acknowledged, the newest of which was sent at
    /// `sent`. Returns true if that confirms the feature.
    #[inline]
    pub fn on_acked(&mut self, sent: Time) -> bool {
        self.newest_acked = self.newest_acked.max(sent);
        if self.state == Support::Confirmed || sent < self.since {
            return false;
        }
        self.confirm();
        true
    }

    /// Records that packets with the feature were declared lost. Returns true if that makes the feature
    /// doubtful or failed.
    pub fn on_lost(&mut self, now: Time, loss: &FeatureLoss) -> bool {
        let is_overtaken = self.was_confirmed && loss.sent <= self.newest_acked;
        if is_overtaken || loss.sent < self.since {
            return false;
        }
        (self.since, self.has_trial_in_flight) = (now, false);
        if loss.others.is_some_and(|others| others > loss.sent) {
            return false;
        }
        self.lost = self.lost.saturating_add(loss.count);
        self.state = match self.state {
            Support::Unknown | Support::Unproven | Support::Confirmed => Support::Doubtful,
            Support::Doubtful if self.lost < FAILURE_LOSSES => return false,
            Support::Doubtful | Support::Failed => {
                let wait = RETRY_AFTER.saturating_mul(1 << self.failures.min(MAX_DOUBLINGS));
                self.retry_at = now + wait;
                self.failures = self.failures.saturating_add(1);
                Support::Failed
            }
        };
        true
    }

    /// Records that a loss which [`on_lost`](Self::on_lost) reported was spurious: the packet with the
    /// feature was late.
    pub fn on_spurious_loss(&mut self) {
        self.confirm();
    }

    /// Records that sent packets were discarded, so that the fate of a trial may stay unknown.
    pub fn on_packets_discarded(&mut self) {
        self.has_trial_in_flight = false;
    }

    fn confirm(&mut self) {
        self.state = Support::Confirmed;
        (self.was_confirmed, self.has_trial_in_flight, self.lost) = (true, false, 0);
    }
}

impl Default for PathSupport {
    fn default() -> Self {
        Self::new()
    }
}

/// Packets with the feature that must be lost, and none acknowledged, for the feature to fail. With
/// a loss of one tenth, small windows lose two batches of two datagrams in a row every few hundred
/// packets.
const FAILURE_LOSSES: u32 = 5;

/// The time after the first failure at which the feature is tried again. A trial costs one or two
/// packets if the feature still fails. Not using a feature because of random loss costs processor
/// time.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Maximum number of doublings of that time, which reaches 16 minutes.
const MAX_DOUBLINGS: u8 = 4;

#[cfg(test)]
mod tests;
