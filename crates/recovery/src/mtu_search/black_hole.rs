//! Black holes: paths that drop large packets and carry smaller ones. RFC 8899 §4.3.

use courser_base::Time;

/// The rounds of losses that show a black hole, and what is known about the path after one.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlackHole {
    /// Rounds of losses since a packet of that size was last acknowledged.
    pub(super) rounds: u8,
    /// The next round consists of packets sent after this time.
    pub(super) since: Time,
    /// The smallest size that was lost.
    pub(super) size: u16,
    /// Black holes found so far, up to 255.
    pub(super) found: u8,
    /// The size that was lost when the search last fell back; zero if one of this size has passed since.
    fallen_from: u16,
    /// Sizes from this one on are not tried before the time below, which is zero for none.
    barred: u16,
    barred_until: Time,
}

impl BlackHole {
    pub(super) const NONE: Self = Self {
        rounds: 0,
        since: Time::ZERO,
        size: 0,
        found: 0,
        fallen_from: 0,
        barred: 0,
        barred_until: Time::ZERO,
    };

    /// Records that the search begins again at the base size, because datagrams of `size` bytes were lost.
    pub(super) fn on_fallen(&mut self, size: u16) {
        (self.rounds, self.fallen_from) = (0, size);
    }

    /// Records that a datagram of this size has passed.
    pub(super) fn on_passed(&mut self, size: u16) {
        if size >= self.fallen_from {
            self.fallen_from = 0;
        }
    }

    /// Returns true if the search has fallen back, and is below `size` since.
    pub(super) fn is_below(&self, size: u16) -> bool {
        self.fallen_from >= size
    }

    /// Returns true if datagrams of this size were lost when the search fell back. Its first probe only shows whether that
    /// had other causes.
    pub(super) fn has_lost(&self, size: u16) -> bool {
        self.fallen_from > 0 && size >= self.fallen_from
    }

    /// Excludes the size of this black hole and larger ones until that time.
    pub(super) fn bar_until(&mut self, until: Time) {
        (self.barred, self.barred_until) = (self.size, until);
    }

    /// Excludes no size any more.
    pub(super) fn unbar(&mut self) {
        self.barred_until = Time::ZERO;
    }

    /// Returns the smallest size that is not tried now, and the end of that.
    pub(super) fn bar(&self, now: Time) -> Option<(u16, Time)> {
        (self.barred_until > now).then_some((self.barred, self.barred_until))
    }
}
