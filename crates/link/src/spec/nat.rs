//! The specification of an address translator.

use std::time::Duration;

/// A NAT at the client's end whose mappings change at given times.
///
/// At each change every client is mapped to another public port, and replies to the old one are
/// dropped. As text: `rebind=5s` (after 5 s and every 5 s), `rebind=1s:5s` (after 1 s, then every 5
/// s), `rebind=1s:never` (once). The prefix `addr:` changes the address too.
///
/// With `rebind=idle:30s` mappings expire instead: a client that was idle for 30 s is mapped to
/// another port when it sends again. Until then packets to it are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatSpec {
    /// The time of the first change.
    pub first: Duration,
    /// The time from one change to the next, above zero; `None` if there is only one change.
    pub every: Option<Duration>,
    /// True if the address changes as well, within the same /24 (IPv4) or /64 (IPv6).
    pub address: bool,
    /// The time without outbound packets after which a mapping expires. If set, `first` and `every`
    /// are ignored. Inbound packets do not keep a mapping alive (RFC 4787 §4.3).
    pub idle: Option<Duration>,
}

impl NatSpec {
    /// Creates a NAT that changes ports with this period.
    pub const fn every(every: Duration) -> Self {
        Self {
            first: every,
            every: Some(every),
            address: false,
            idle: None,
        }
    }

    /// Creates a NAT whose mappings expire after this time without outbound packets.
    pub const fn idle(after: Duration) -> Self {
        Self {
            first: after,
            every: None,
            address: false,
            idle: Some(after),
        }
    }

    /// Returns the time of the first change later than `elapsed`.
    pub fn next_after(&self, elapsed: Duration) -> Option<Duration> {
        if elapsed < self.first {
            return Some(self.first);
        }
        let every = self.every.filter(|every| !every.is_zero())?.as_nanos();
        let rounds = (elapsed - self.first).as_nanos() / every + 1;
        let offset = u64::try_from(rounds.checked_mul(every)?).ok()?;
        self.first.checked_add(Duration::from_nanos(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_follow_the_first_time_and_the_period() {
        let seconds = Duration::from_secs;
        let nat = NatSpec {
            first: seconds(1),
            every: Some(seconds(5)),
            address: false,
            idle: None,
        };
        assert_eq!(nat.next_after(Duration::ZERO), Some(seconds(1)));
        assert_eq!(nat.next_after(seconds(1)), Some(seconds(6)));
        assert_eq!(nat.next_after(seconds(10)), Some(seconds(11)));
        assert_eq!(nat.next_after(seconds(11)), Some(seconds(16)));
        assert_eq!(nat.next_after(Duration::MAX), None);
        let once = NatSpec { every: None, ..nat };
        assert_eq!(once.next_after(seconds(1)), None);
    }
}
