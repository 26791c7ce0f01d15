//! Detects a peer that sends packets and acknowledges none. RFC 9000 §13.2.1.

use std::time::Duration;

use courser_base::Time;

/// Detects a peer that keeps sending but acknowledges none of our ack-eliciting packets.
///
/// Such a peer keeps a connection alive whose memory is never freed (attack A24). A path that is dead
/// in one direction looks the same for a while, so the time limit is long, and only packets that were
/// received during that time count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mute {
    /// Receipt of the first packet since the last acknowledgement, while one of our packets is in flight.
    since: Option<Time>,
    /// Packets received since then.
    received: u32,
}

impl Mute {
    /// Starts over: an ack-eliciting packet was acknowledged.
    #[inline]
    pub(super) fn on_acked(&mut self) {
        *self = Self::default();
    }

    /// Counts a packet that was processed while an ack-eliciting packet of ours waits. Returns true if the
    /// peer has sent packets for too long without acknowledging anything (limit K78): longer than
    /// `idle_timeout`, three probe timeouts and [`MUTE_PATIENCE`].
    pub(super) fn is_over(
        &mut self,
        now: Time,
        idle_timeout: Option<Duration>,
        pto: Duration,
    ) -> bool {
        let idle = idle_timeout.unwrap_or_default();
        let patience = idle.max(MUTE_PATIENCE).max(pto.saturating_mul(3));
        let since = *self.since.get_or_insert(now);
        self.received = self.received.saturating_add(1);
        self.received > MIN_RECEIVED && now - since >= patience
    }
}

/// The shortest time limit; a longer idle timeout counts instead (limit K78).
const MUTE_PATIENCE: Duration = Duration::from_secs(30);

/// Packets that a peer may send without an acknowledgement, for example after an outage.
const MIN_RECEIVED: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn peer_that_sends_for_long_without_acknowledging_exceeds_the_limit() {
        let mut mute = Mute::default();
        assert!((0..30).all(|second| !mute.is_over(at(second), None, PTO)));
        assert!(mute.is_over(at(30), None, PTO));
    }

    #[test]
    fn limit_covers_the_idle_timeout_and_three_probe_timeouts() {
        for (idle_timeout, pto) in [(Some(60), 1), (None, 20), (Some(5), 20)] {
            let idle_timeout = idle_timeout.map(Duration::from_secs);
            let pto = Duration::from_secs(pto);
            let mut mute = Mute::default();
            assert!((0..60).all(|second| !mute.is_over(at(second), idle_timeout, pto)));
            assert!(mute.is_over(at(60), idle_timeout, pto));
        }
    }

    #[test]
    fn peer_may_acknowledge_late_after_an_outage() {
        let mut mute = Mute::default();
        assert!(!mute.is_over(at(0), None, PTO));
        assert!((0..15).all(|_| !mute.is_over(at(3600), None, PTO)));
    }

    #[test]
    fn acknowledgement_restarts_the_count() {
        let mut mute = Mute::default();
        for second in 0..1000 {
            assert!(!mute.is_over(at(second), None, PTO));
            if second % 29 == 0 {
                mute.on_acked();
            }
        }
    }
}
