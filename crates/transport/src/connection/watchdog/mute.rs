//! A peer that talks and acknowledges nothing. RFC 9000 §13.2.1.

use std::time::Duration;

use courser_base::Time;

/// Notices a peer that goes on sending but acknowledges nothing of what it has to.
///
/// Such a peer keeps alive a connection whose memory it never lets go (attack A24). A path that
/// is dead in one direction looks the same for a while, so patience is long, and only what was
/// received during that time counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mute {
    /// The first packet received since something was acknowledged, while something should be.
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

/// The least patience with a peer; an idle timeout above it counts instead (limit K78).
const MUTE_PATIENCE: Duration = Duration::from_secs(30);

/// A peer is judged by more packets than this: it may have been away meanwhile.
const MIN_RECEIVED: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_peer_that_is_heard_for_long_without_acknowledging_is_cut() {
        let mut mute = Mute::default();
        assert!((0..30).all(|second| !mute.is_over(at(second), None, PTO)));
        assert!(mute.is_over(at(30), None, PTO));
    }

    #[test]
    fn patience_covers_the_idle_timeout_and_three_probe_timeouts() {
        for (idle_timeout, pto) in [(Some(60), 1), (None, 20), (Some(5), 20)] {
            let idle_timeout = idle_timeout.map(Duration::from_secs);
            let pto = Duration::from_secs(pto);
            let mut mute = Mute::default();
            assert!((0..60).all(|second| !mute.is_over(at(second), idle_timeout, pto)));
            assert!(mute.is_over(at(60), idle_timeout, pto));
        }
    }

    #[test]
    fn a_peer_that_was_away_has_time_to_acknowledge() {
        let mut mute = Mute::default();
        assert!(!mute.is_over(at(0), None, PTO));
        assert!((0..15).all(|_| !mute.is_over(at(3600), None, PTO)));
    }

    #[test]
    fn an_acknowledgement_begins_anew() {
        let mut mute = Mute::default();
        for second in 0..1000 {
            assert!(!mute.is_over(at(second), None, PTO));
            if second % 29 == 0 {
                mute.on_acked();
            }
        }
    }
}
