//! A peer that talks and acknowledges nothing. RFC 9000 §13.2.1.

use std::time::Duration;

use courser_base::Time;

/// Notices a peer that goes on sending but acknowledges nothing of what it has to.
///
/// Such a peer keeps alive a connection whose memory it never lets go (attack A24). A path that
/// is dead in one direction looks the same for a while, so patience is long, and only what was
/// heard during that time counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mute {
    /// The first packet heard since something was acknowledged, while something should be.
    since: Option<Time>,
    /// Packets heard since then.
    heard: u32,
}

impl Mute {
    /// An ack-eliciting packet was acknowledged, or nothing waits for it.
    #[inline]
    pub(crate) fn on_acked(&mut self) {
        *self = Self::default();
    }

    /// A packet was processed, while an ack-eliciting packet of ours waits. True when the peer
    /// has been heard for `patience` without acknowledging anything.
    pub(crate) fn is_over(&mut self, now: Time, patience: Duration) -> bool {
        let since = *self.since.get_or_insert(now);
        self.heard = self.heard.saturating_add(1);
        self.heard > MIN_HEARD && now - since >= patience
    }
}

/// The least patience with a peer; an idle timeout above it counts instead (limit K78).
pub(crate) const MUTE_PATIENCE: Duration = Duration::from_secs(30);

/// A peer is judged by more packets than this: it may have been away meanwhile.
const MIN_HEARD: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_peer_that_is_heard_for_long_without_acknowledging_is_cut() {
        let mut mute = Mute::default();
        assert!((0..30).all(|second| !mute.is_over(at(second), MUTE_PATIENCE)));
        assert!(mute.is_over(at(30), MUTE_PATIENCE));
    }

    #[test]
    fn a_peer_that_was_away_has_time_to_acknowledge() {
        let mut mute = Mute::default();
        assert!(!mute.is_over(at(0), MUTE_PATIENCE));
        assert!((0..15).all(|_| !mute.is_over(at(3600), MUTE_PATIENCE)));
    }

    #[test]
    fn an_acknowledgement_begins_anew() {
        let mut mute = Mute::default();
        for second in 0..1000 {
            assert!(!mute.is_over(at(second), MUTE_PATIENCE));
            if second % 29 == 0 {
                mute.on_acked();
            }
        }
    }
}
