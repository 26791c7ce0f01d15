//! Round trips measured by packets, draft-ietf-ccwg-bbr §5.5.1.

use std::time::Duration;

/// Counts round trips and keeps measurements of each. A round ends with the acknowledgement of a
/// packet that was sent after its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`: round trips since the start of the connection.
    pub(super) count: u64,
    /// `BBR.round_start`: the present acknowledgement began a round.
    pub(super) is_start: bool,
    /// `BBR.next_round_delivered`: bytes delivered when the packets of the next round start.
    next_delivered: u64,
    /// True if the window was filled in this round and in the previous one.
    is_cwnd_limited: [bool; 2],
    /// The sum and the number of the round-trip time samples of this round.
    rtts: (Duration, u32),
    /// The mean of the samples of the last round.
    mean_rtt: Option<Duration>,
}

impl Rounds {
    /// `UpdateRound()` for the acknowledgement of a packet that was sent after `prior_delivered`
    /// bytes had been delivered. `delivered` is the total so far.
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

    /// `StartRound()`: lets the round end with a packet that is sent from now on.
    pub(super) fn start(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    pub(super) fn on_rtt_sample(&mut self, rtt: Duration) {
        self.rtts.0 = self.rtts.0.saturating_add(rtt);
        self.rtts.1 += 1;
    }

    /// Returns the mean round-trip time of the last round, if it had samples.
    pub(super) fn mean_rtt(&self) -> Option<Duration> {
        self.mean_rtt
    }

    pub(super) fn on_cwnd_limited(&mut self) {
        self.is_cwnd_limited[0] = true;
    }

    /// `C.is_cwnd_limited`: returns true if the window was filled at some point in the last round
    /// trip.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.is_cwnd_limited[0] || self.is_cwnd_limited[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_round_ends_with_a_packet_that_was_sent_after_it_began() {
        let mut rounds = Rounds::default();
        rounds.on_ack(Some(0), 1000);
        assert!(rounds.is_start, "the first packet ends the time before it");
        rounds.on_ack(Some(999), 2000);
        assert!(!rounds.is_start);
        rounds.on_ack(None, 3000);
        assert!(!rounds.is_start, "an acknowledgement without a sample");
        rounds.on_ack(Some(1000), 4000);
        assert!(rounds.is_start);
        assert_eq!(rounds.count, 2);
    }

    #[test]
    fn restarting_a_round_makes_it_longer() {
        let mut rounds = Rounds::default();
        rounds.on_ack(Some(0), 1000);
        rounds.start(1500);
        rounds.on_ack(Some(1000), 2000);
        assert!(!rounds.is_start);
        rounds.on_ack(Some(1500), 2500);
        assert!(rounds.is_start);
    }

    #[test]
    fn a_full_window_counts_for_this_round_and_the_next() {
        let mut rounds = Rounds::default();
        rounds.on_cwnd_limited();
        for is_limited in [true, true, false] {
            assert_eq!(rounds.is_cwnd_limited(), is_limited);
            rounds.on_ack(Some(u64::MAX), 0);
        }
    }

    #[test]
    fn the_mean_is_that_of_the_last_round() {
        let mut rounds = Rounds::default();
        rounds.on_rtt_sample(50 * MS);
        rounds.on_rtt_sample(60 * MS);
        assert_eq!(rounds.mean_rtt(), None);
        rounds.on_ack(Some(0), 1000);
        assert_eq!(rounds.mean_rtt(), Some(55 * MS));
        rounds.on_ack(Some(1000), 2000);
        assert_eq!(rounds.mean_rtt(), None, "the last round had no samples");
    }
}
