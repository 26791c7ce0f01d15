//! Address translation that forgets.

use std::time::Duration;

/// A NAT at the client's end whose mappings change at given times.
///
/// At each of them every client gets another public port, and replies to the old one are
/// dropped. As text: `rebind=5s` (after 5 s and every 5 s), `rebind=1s:5s` (after 1 s, then
/// every 5 s), `rebind=1s:never` (once); `addr:` before it changes the address too.
///
/// Or one whose mappings expire: `rebind=idle:30s` gives a client that has sent nothing for so
/// long another port when it sends again, and until then drops what comes for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatSpec {
    /// When the first change comes.
    pub first: Duration,
    /// From one change to the next, more than nothing; `None`: there is only one.
    pub every: Option<Duration>,
    /// The address changes as well, within the same /24 (IPv4) or /64 (IPv6).
    pub address: bool,
    /// Mappings expire when nothing has left by them for so long, and at no given time: `first`
    /// and `every` do not count then. What comes in keeps no mapping alive (RFC 4787 §4.3).
    pub idle: Option<Duration>,
}

impl NatSpec {
    /// Another port after `every`, and then each time `every` has passed.
    pub const fn every(every: Duration) -> Self {
        Self {
            first: every,
            every: Some(every),
            address: false,
            idle: None,
        }
    }

    /// Mappings that expire after so long without a packet from inside.
    pub const fn idle(after: Duration) -> Self {
        Self {
            first: after,
            every: None,
            address: false,
            idle: Some(after),
        }
    }

    /// The first change that is later than `elapsed`, and later than a change at `elapsed`.
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
    fn changes_come_at_first_and_then_every_period() {
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
