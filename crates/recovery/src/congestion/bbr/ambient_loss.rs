//! Ambient loss, which occurs regardless of the sending rate.

use std::time::Duration;

/// Measures the share of packets that are lost while there is no queue.
///
/// Counts only whole rounds that are quiet: sent no faster than the network delivers, and with
/// round-trip times near the minimum. Their losses are not due to our queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AmbientLoss {
    /// Bytes lost in quiet rounds. Older rounds count less.
    lost: u64,
    /// Bytes that arrived in quiet rounds.
    arrived: u64,
    round_lost: u64,
    round_arrived: u64,
    /// The largest of the minimum round-trip times by which rounds counted as quiet.
    quiet_rtt: Duration,
}

impl AmbientLoss {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.round_lost = self.round_lost.saturating_add(bytes);
    }

    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.round_arrived = self.round_arrived.saturating_add(bytes);
    }

    /// Updates the round-trip time of the empty path.
    ///
    /// A flow that joins a full queue takes the queue for a part of the path, and its overflow for
    /// ambient loss. Once a shorter round-trip time is found, those rounds do not count as quiet.
    pub(super) fn on_min_rtt(&mut self, min_rtt: Duration) {
        if self.quiet_rtt > min_rtt + min_rtt / 8 {
            self.lost = 0;
            self.arrived = 0;
            self.quiet_rtt = Duration::ZERO;
        }
    }

    /// Ends a round. `min_rtt` is the minimum round-trip time of the path.
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

    /// Returns the share of lost bytes in millionths; zero if too few bytes were counted.
    fn share(&self, mtu: u64) -> u64 {
        let all = self.lost + self.arrived;
        if all < LEAST * mtu {
            return 0;
        }
        let share = u128::from(self.lost) * u128::from(MILLION) / u128::from(all);
        u64::try_from(share).map_or(MOST, |share| share.min(MOST))
    }

    /// Returns the bytes out of `bytes` whose loss is ambient: the share that is always lost, and
    /// twice its standard deviation. Zero if nothing is lost without a queue.
    pub(super) fn allowance(&self, bytes: u64, mtu: u64) -> u64 {
        let expected = u128::from(bytes) * u128::from(self.share(mtu)) / u128::from(MILLION);
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        if expected == 0 {
            return 0;
        }
        // Packets are lost independently, so their number follows a Poisson distribution.
        let deviation = expected.saturating_mul(mtu).isqrt();
        expected.saturating_add(2 * deviation).saturating_add(mtu)
    }

    /// Returns the allowance for a probe, which causes queues. It is zero unless the share alone is
    /// near the loss that a probe tolerates. Flows that share a full queue take some of each
    /// other's losses for ambient, and with an allowance for such small shares the largest flow
    /// would stay the largest.
    pub(super) fn probe_allowance(&self, bytes: u64, mtu: u64) -> u64 {
        if self.share(mtu) < LEAST_FOR_PROBES {
            return 0;
        }
        self.allowance(bytes, mtu)
    }
}

const MILLION: u64 = 1_000_000;

/// The largest share, five of a hundred. More is not noise: the path is too narrow for the flow,
/// for example because of a policer.
const MOST: u64 = 50_000;

/// The smallest share with an allowance for probes: three of four hundred. From there on, random
/// loss may exceed the draft's bound of two of a hundred.
const LEAST_FOR_PROBES: u64 = 7_500;

/// The fewest packets from which a share is computed.
const LEAST: u64 = 150;
/// The most packets counted before older ones are halved.
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
    fn losses_in_a_queue_that_looked_like_the_path_are_forgotten() {
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
    fn old_losses_are_forgotten() {
        let mut ambient = after(50, 3, 97, true);
        for _ in 0..200 {
            ambient.on_acked(100 * MTU);
            ambient.on_round_end(true, MIN_RTT, MTU);
        }
        assert!(ambient.share(MTU) < 10_000, "{}", ambient.share(MTU));
    }
}
