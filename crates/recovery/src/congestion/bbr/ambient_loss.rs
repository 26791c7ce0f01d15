//! Loss that is there whatever we send.

use std::time::Duration;

/// Measures the share of packets that get lost while there is no queue.
///
/// Counts only whole rounds that the caller knows to be quiet: no faster than the network
/// delivers, and with round-trip times as short as they get. What is lost then is not lost to
/// a queue of ours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AmbientLoss {
    /// Bytes lost in quiet rounds, older ones counting less.
    lost: u64,
    /// Bytes that arrived in them.
    arrived: u64,
    round_lost: u64,
    round_arrived: u64,
    /// The longest of the minima that quiet rounds were told by.
    quiet_rtt: Duration,
}

impl AmbientLoss {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round_lost = self.round_lost.saturating_add(bytes);
    }

    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.round_arrived = self.round_arrived.saturating_add(bytes);
    }

    /// The round-trip time of the empty path is at most this.
    ///
    /// A flow that joins a full queue takes the queue for a part of the path, and what overflows
    /// for ambient loss. Once it has seen a shorter path, those rounds were not quiet.
    pub(super) fn on_min_rtt(&mut self, min_rtt: Duration) {
        if self.quiet_rtt > min_rtt + min_rtt / 8 {
            self.lost = 0;
            self.arrived = 0;
            self.quiet_rtt = Duration::ZERO;
        }
    }

    /// A round is over, at whose end the minimum of all round-trip times was `min_rtt`.
    pub(super) fn on_round_end(&mut self, is_quiet: bool, min_rtt: Duration, mtu: u64) {
        if is_quiet {
            self.quiet_rtt = self.quiet_rtt.max(min_rtt);
            self.lost += self.round_lost;
            self.arrived += self.round_arrived;
            while self.lost + self.arrived > MEMORY * mtu {
                self.lost /= 2;
                self.arrived /= 2;
            }
        }
        self.round_lost = 0;
        self.round_arrived = 0;
    }

    /// Millionths of all bytes; zero while too few were seen.
    fn share(&self, mtu: u64) -> u64 {
        let all = self.lost + self.arrived;
        if all < LEAST * mtu {
            return 0;
        }
        let share = u128::from(self.lost) * u128::from(MILLION) / u128::from(all);
        u64::try_from(share).map_or(MOST, |share| share.min(MOST))
    }

    /// How many of `bytes` may be lost before it means anything: the share that always is, and
    /// twice its standard deviation. Zero where nothing is lost without a queue.
    pub(super) fn allowance(&self, bytes: u64, mtu: u64) -> u64 {
        let expected = u128::from(bytes) * u128::from(self.share(mtu)) / u128::from(MILLION);
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        if expected == 0 {
            return 0;
        }
        // Packets are lost one by one, so their number varies as Poisson's distribution does.
        let deviation = expected.saturating_mul(mtu).isqrt();
        expected.saturating_add(2 * deviation).saturating_add(mtu)
    }

    /// The same for judging a probe, which makes queues: only if the share by itself comes near
    /// what a probe may lose. Flows that share a full queue take some of each other's losses for
    /// ambient, and with any allowance for so little the largest of them stays the largest.
    pub(super) fn probe_allowance(&self, bytes: u64, mtu: u64) -> u64 {
        if self.share(mtu) < LEAST_FOR_PROBES {
            return 0;
        }
        self.allowance(bytes, mtu)
    }
}

const MILLION: u64 = 1_000_000;

/// Five of a hundred. More than that is no noise but a path too narrow for us, a policer for one.
const MOST: u64 = 50_000;

/// Three of four hundred, where the draft's bound of two of a hundred begins to be met by chance.
const LEAST_FOR_PROBES: u64 = 7_500;

/// Packets that make a share believable, and how many are remembered.
const LEAST: u64 = 150;
const MEMORY: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1200;
    const MIN_RTT: Duration = Duration::from_millis(50);

    fn after(rounds: u64, lost: u64, arrived: u64, is_quiet: bool) -> AmbientLoss {
        let mut ambient = AmbientLoss::default();
        for _ in 0..rounds {
            ambient.on_lost(lost * MTU);
            ambient.on_acked(arrived * MTU);
            ambient.on_round_end(is_quiet, MIN_RTT, MTU);
        }
        ambient
    }

    #[test]
    fn only_quiet_rounds_count() {
        assert_eq!(after(20, 3, 97, false).allowance(100 * MTU, MTU), 0);
        assert_eq!(after(20, 3, 97, true).share(MTU), 30_000);
    }

    #[test]
    fn what_was_lost_in_a_queue_that_looked_like_the_path_is_forgotten() {
        let mut ambient = after(20, 3, 97, true);
        ambient.on_min_rtt(MIN_RTT * 9 / 10);
        assert_eq!(ambient.share(MTU), 30_000, "within the tolerance for quiet");
        ambient.on_min_rtt(MIN_RTT * 8 / 10);
        assert_eq!(ambient.share(MTU), 0);
    }

    #[test]
    fn a_path_that_loses_nothing_allows_nothing() {
        assert_eq!(after(20, 0, 100, true).allowance(1_000_000, MTU), 0);
    }

    #[test]
    fn a_few_packets_prove_nothing() {
        assert_eq!(after(1, 3, 90, true).share(MTU), 0);
    }

    #[test]
    fn heavy_loss_is_never_taken_for_noise() {
        assert_eq!(after(100, 40, 60, true).share(MTU), MOST);
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut ambient = after(50, 3, 97, true);
        for _ in 0..200 {
            ambient.on_acked(100 * MTU);
            ambient.on_round_end(true, MIN_RTT, MTU);
        }
        assert!(ambient.share(MTU) < 10_000, "{}", ambient.share(MTU));
    }
}
