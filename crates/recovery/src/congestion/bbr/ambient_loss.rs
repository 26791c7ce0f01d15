//! Ambient loss, which occurs regardless of the sending rate.

use std::time::Duration;

/// Measures the share of packets that are lost while there is no queue.
///
/// Counts only whole uncongested rounds: those in which packets were sent no faster than the
/// network delivers, and round-trip times were near the minimum. Their losses are not due to our
/// queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AmbientLoss {
    /// Bytes lost in uncongested rounds. Older rounds count less.
    lost: u64,
    /// Bytes that arrived in uncongested rounds.
    arrived: u64,
    round_lost: u64,
    round_arrived: u64,
    /// The largest of the minimum round-trip times by which rounds counted as uncongested.
    empty_path_rtt: Duration,
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
    /// ambient loss. Once a shorter round-trip time is found, those rounds no longer count as
    /// uncongested.
    pub(super) fn on_min_rtt(&mut self, min_rtt: Duration) {
        if self.empty_path_rtt > min_rtt + min_rtt / 8 {
            self.lost = 0;
            self.arrived = 0;
            self.empty_path_rtt = Duration::ZERO;
        }
    }

    /// Ends a round. `min_rtt` is the minimum round-trip time of the path.
    pub(super) fn on_round_end(&mut self, is_uncongested: bool, min_rtt: Duration, mtu: u64) {
        if is_uncongested {
            self.empty_path_rtt = self.empty_path_rtt.max(min_rtt);
            self.lost += self.round_lost;
            self.arrived += self.round_arrived;
            while self.lost + self.arrived > MAX_PACKETS * mtu {
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
        if all < MIN_PACKETS * mtu {
            return 0;
        }
        let share = u128::from(self.lost) * u128::from(MILLION) / u128::from(all);
        u64::try_from(share).map_or(MAX_SHARE, |share| share.min(MAX_SHARE))
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
        if self.share(mtu) < MIN_SHARE_FOR_PROBES {
            return 0;
        }
        self.allowance(bytes, mtu)
    }
}

const MILLION: u64 = 1_000_000;

/// The largest share that counts as ambient: 5 %. A higher share shows that the path is too narrow
/// for the flow, for example because of a policer.
const MAX_SHARE: u64 = 50_000;

/// The smallest share with an allowance for probes: 0.75 %. From there on, random loss may exceed
/// the draft's bound of 2 %.
const MIN_SHARE_FOR_PROBES: u64 = 7_500;

/// Minimum number of packets from which a share is computed.
const MIN_PACKETS: u64 = 150;
/// Number of packets above which the counts are halved, so that older rounds weigh less.
const MAX_PACKETS: u64 = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1200;
    const MIN_RTT: Duration = Duration::from_millis(50);

    fn after(rounds: u64, lost: u64, arrived: u64, is_uncongested: bool) -> AmbientLoss {
        let mut ambient = AmbientLoss::default();
        for _ in 0..rounds {
            ambient.on_lost(lost * MTU);
            ambient.on_acked(arrived * MTU);
            ambient.on_round_end(is_uncongested, MIN_RTT, MTU);
        }
        ambient
    }

    #[test]
    fn only_uncongested_rounds_count() {
        assert_eq!(after(20, 3, 97, false).allowance(100 * MTU, MTU), 0);
        assert_eq!(after(20, 3, 97, true).share(MTU), 30_000);
    }

    #[test]
    fn losses_in_a_queue_do_not_count_once_a_shorter_rtt_is_found() {
        let mut ambient = after(20, 3, 97, true);
        ambient.on_min_rtt(MIN_RTT * 9 / 10);
        assert_eq!(ambient.share(MTU), 30_000, "within the tolerance");
        ambient.on_min_rtt(MIN_RTT * 8 / 10);
        assert_eq!(ambient.share(MTU), 0);
    }

    #[test]
    fn a_path_without_loss_has_no_allowance() {
        assert_eq!(after(20, 0, 100, true).allowance(1_000_000, MTU), 0);
    }

    #[test]
    fn few_packets_give_no_share() {
        assert_eq!(after(1, 3, 90, true).share(MTU), 0);
    }

    #[test]
    fn the_share_of_heavy_loss_is_limited() {
        assert_eq!(after(100, 40, 60, true).share(MTU), MAX_SHARE);
    }

    #[test]
    fn older_losses_count_less() {
        let mut ambient = after(50, 3, 97, true);
        for _ in 0..200 {
            ambient.on_acked(100 * MTU);
            ambient.on_round_end(true, MIN_RTT, MTU);
        }
        assert!(ambient.share(MTU) < 10_000, "{}", ambient.share(MTU));
    }
}
