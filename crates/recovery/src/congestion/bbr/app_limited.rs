//! Packets that count as app-limited.

/// Packets that are app-limited regardless of the delivery-rate sampler.
///
/// Their samples are low because little was sent, not because the path is slow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AppLimited {
    /// The bytes delivered when the first and the last of them were sent.
    range: Option<(u64, u64)>,
}

impl AppLimited {
    /// `MarkConnectionAppLimited()`: marks packets sent before the bytes in flight are delivered.
    pub(super) fn mark(&mut self, delivered: u64, inflight: u64) {
        let last = delivered.saturating_add(inflight);
        let first = match self.range {
            Some((first, before)) if before >= delivered => first,
            _ => delivered,
        };
        self.range = Some((first, last));
    }

    /// Returns true for a packet that was sent after `prior_delivered` bytes had been delivered.
    pub(super) fn covers(&self, prior_delivered: u64) -> bool {
        self.range
            .is_some_and(|(first, last)| (first..=last).contains(&prior_delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_sent_before_the_flight_is_delivered_are_covered() {
        let mut app_limited = AppLimited::default();
        assert!(!app_limited.covers(1000));
        app_limited.mark(1000, 500);
        for (prior, is_covered) in [(999, false), (1000, true), (1500, true), (1501, false)] {
            assert_eq!(app_limited.covers(prior), is_covered, "{prior}");
        }
    }

    #[test]
    fn adjacent_marks_extend_the_range_and_others_replace_it() {
        let mut app_limited = AppLimited::default();
        app_limited.mark(1000, 500);
        app_limited.mark(1500, 500);
        assert!(app_limited.covers(1000) && app_limited.covers(2000));
        app_limited.mark(2001, 10);
        assert!(!app_limited.covers(2000) && app_limited.covers(2011));
    }
}
