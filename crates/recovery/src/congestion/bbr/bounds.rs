//! Bounds on rate and flight, draft-ietf-ccwg-bbr §5.5.10.

use courser_base::Rate;

/// The bounds set by congestion; `None` is infinite.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bounds {
    /// `BBR.bw_shortterm` and `BBR.inflight_shortterm`. Both are infinite at the same time.
    pub(super) short_term: Option<ShortTerm>,
    /// `BBR.inflight_longterm`: the flight above which a probe lost too much.
    pub(super) long_term: Option<u64>,
}

/// The rate and the flight that the path delivered after losses in the present cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortTerm {
    pub(super) bw: Rate,
    pub(super) inflight: u64,
}

impl Bounds {
    /// Returns the higher of each bound, to restore those that spurious losses have lowered.
    pub(super) fn max(self, other: Self) -> Self {
        let higher = |one: ShortTerm, other: ShortTerm| ShortTerm {
            bw: one.bw.max(other.bw),
            inflight: one.inflight.max(other.inflight),
        };
        let short_term = self.short_term.zip(other.short_term);
        let long_term = self.long_term.zip(other.long_term);
        Self {
            short_term: short_term.map(|(one, other)| higher(one, other)),
            long_term: long_term.map(|(one, other)| one.max(other)),
        }
    }

    /// `InitLowerBounds()` and `LossLowerBounds()`: lowers the short-term bounds by three tenths,
    /// but not below `delivered`. Infinite bounds start from `start`.
    pub(super) fn lower_short_term(&mut self, start: ShortTerm, delivered: ShortTerm) {
        let before = self.short_term.unwrap_or(start);
        self.short_term = Some(ShortTerm {
            bw: before.bw.scaled(BETA as u32, 100).max(delivered.bw),
            inflight: (before.inflight * BETA / 100).max(delivered.inflight),
        });
    }

    /// Bounds the flight to that in which a probe lost too much, but not below seven tenths of the
    /// target.
    pub(super) fn limit_long_term(&mut self, tx_in_flight: u64, target: u64) {
        self.long_term = Some(tx_in_flight.max(target * BETA / 100));
    }

    /// Returns `InflightWithHeadroom()`, but not less than `minimum`; `None` is infinite.
    pub(super) fn with_headroom(&self, smss: u64, minimum: u64) -> Option<u64> {
        let long_term = self.long_term?;
        let headroom = smss.max(long_term * HEADROOM / 100);
        Some(long_term.saturating_sub(headroom).max(minimum))
    }
}

/// `BBR.Beta` in percent: the part of a bound that remains after a round with losses.
const BETA: u64 = 70;

/// `BBR.Headroom` in percent: the part of the long-term bound left to other flows.
const HEADROOM: u64 = 15;

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1200;

    fn short(bw: u64, inflight: u64) -> ShortTerm {
        ShortTerm {
            bw: Rate::from_bytes_per_second(bw),
            inflight,
        }
    }

    #[test]
    fn the_higher_of_two_bounds_is_infinite_if_either_is() {
        let finite = Bounds {
            short_term: Some(short(10, 900)),
            long_term: Some(5),
        };
        let other = Bounds {
            short_term: Some(short(20, 300)),
            long_term: None,
        };
        let higher = finite.max(other);
        assert_eq!(higher.short_term, Some(short(20, 900)));
        assert_eq!(higher.long_term, None);
        assert_eq!(finite.max(Bounds::default()), Bounds::default());
    }

    #[test]
    fn short_term_bounds_fall_by_at_most_three_tenths_and_not_below_delivery() {
        let mut bounds = Bounds::default();
        bounds.lower_short_term(short(1000, 100_000), short(900, 20_000));
        assert_eq!(bounds.short_term, Some(short(900, 70_000)));
        bounds.lower_short_term(short(1000, 100_000), short(0, 60_000));
        assert_eq!(bounds.short_term, Some(short(630, 60_000)));
    }

    #[test]
    fn the_long_term_bound_is_at_least_seven_tenths_of_the_target() {
        let mut bounds = Bounds::default();
        bounds.limit_long_term(50_000, 100_000);
        assert_eq!(bounds.long_term, Some(70_000));
        bounds.limit_long_term(90_000, 100_000);
        assert_eq!(bounds.long_term, Some(90_000));
    }

    #[test]
    fn headroom_is_fifteen_percent_and_a_datagram_at_least() {
        let with_headroom = |long_term| {
            let bounds = Bounds {
                long_term,
                ..Bounds::default()
            };
            bounds.with_headroom(SMSS, 4 * SMSS)
        };
        assert_eq!(with_headroom(None), None);
        assert_eq!(with_headroom(Some(100 * SMSS)), Some(85 * SMSS));
        assert_eq!(with_headroom(Some(6 * SMSS)), Some(5 * SMSS));
        assert_eq!(with_headroom(Some(0)), Some(4 * SMSS));
    }
}
