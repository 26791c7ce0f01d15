//! Round trips counted in packets, draft-ietf-ccwg-bbr §5.5.1.

use std::time::Duration;

/// Counts round trips: each ends with the acknowledgement of a packet that was sent after it
/// began. Notes what BBR wants to know of each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub(super) count: u64,
    /// `BBR.round_start`: the acknowledgement at hand began a round.
    pub(super) is_start: bool,
    /// `BBR.next_round_delivered`.
    next_delivered: u64,
    /// The window was filled in this round, and in the one before.
    is_cwnd_limited: [bool; 2],
    /// Sum and number of the round-trip times sampled in this round.
    rtts: (Duration, u32),
    /// The mean of those of the last round.
    mean_rtt: Option<Duration>,
}

impl Rounds {
    /// `UpdateRound()`: a packet was acknowledged that left when `prior_delivered` bytes had
    /// been delivered; by now it is `delivered`.
    pub(super) fn on_ack(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        self.is_start = prior_delivered.is_some_and(|prior| prior >= self.next_delivered);
        if !self.is_start {
            return;
        }
        self.start(delivered);
        self.count += 1;
        self.is_cwnd_limited = [false, self.is_cwnd_limited[0]];
        let (sum, samples) = std::mem::take(&mut self.rtts);
        self.mean_rtt = sum.checked_div(samples);
    }

    /// `StartRound()`: the round ends with a packet that leaves from now on.
    pub(super) fn start(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    pub(super) fn on_rtt_sample(&mut self, rtt: Duration) {
        self.rtts.0 = self.rtts.0.saturating_add(rtt);
        self.rtts.1 += 1;
    }

    /// The mean round-trip time in the round that ended last, if any was sampled in it.
    pub(super) fn mean_rtt(&self) -> Option<Duration> {
        self.mean_rtt
    }

    pub(super) fn on_cwnd_limited(&mut self) {
        self.is_cwnd_limited[0] = true;
    }

    /// `C.is_cwnd_limited`: the window was filled at some point in the last round trip.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.is_cwnd_limited[0] || self.is_cwnd_limited[1]
    }
}
