//! Replacement of our connection IDs after a time or a number of datagrams.

use std::time::Duration;

use courser_base::Time;

use super::ConnectionIdRotation;

/// Decides when the IDs of one connection are replaced.
///
/// There is no timer: only the arrival of a datagram replaces IDs. Otherwise the frames with the new
/// IDs would keep an idle connection alive, and there is nothing to hide while no datagrams are sent.
#[derive(Debug)]
pub(super) struct Rotation {
    conditions: ConnectionIdRotation,
    /// The time at which the present IDs came into use.
    since: Time,
    /// Datagrams of the connection that had arrived before then.
    received: u64,
}

impl Rotation {
    /// Starts with the IDs of the handshake. Returns `None` if there are no conditions.
    pub(super) fn new(conditions: ConnectionIdRotation, now: Time) -> Option<Self> {
        (conditions != ConnectionIdRotation::default()).then_some(Self {
            conditions,
            since: now,
            received: 0,
        })
    }

    /// Returns true if the present IDs are to be replaced. `received` counts all datagrams of the
    /// connection.
    pub(super) fn is_due(&self, now: Time, received: u64) -> bool {
        let age = now - self.since;
        let (lifetime, datagrams) = (self.conditions.lifetime, self.conditions.datagrams);
        let is_old = lifetime.is_some_and(|lifetime| age >= lifetime);
        let is_used = datagrams.is_some_and(|most| received - self.received >= most);
        age >= MIN_LIFETIME && (is_old || is_used)
    }

    /// Records that the present IDs are replaced.
    pub(super) fn on_rotated(&mut self, now: Time, received: u64) {
        self.since = now;
        self.received = received;
    }
}

/// The shortest time between two replacements (limit K175): peers may end connections whose IDs are
/// replaced faster than they can retire them.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::ZERO;

    fn after(millis: u64) -> Time {
        START + Duration::from_millis(millis)
    }

    fn rotation(lifetime: Option<u64>, datagrams: Option<u64>) -> Rotation {
        let lifetime = lifetime.map(Duration::from_millis);
        let conditions = ConnectionIdRotation {
            lifetime,
            datagrams,
        };
        Rotation::new(conditions, START).expect("there are conditions")
    }

    #[test]
    fn ids_without_conditions_are_kept() {
        assert!(Rotation::new(ConnectionIdRotation::default(), START).is_none());
    }

    #[test]
    fn lifetime_counts_from_the_last_replacement() {
        let mut rotation = rotation(Some(5000), None);
        assert!(!rotation.is_due(after(4999), u64::MAX));
        assert!(rotation.is_due(after(5000), 0));
        rotation.on_rotated(after(6000), 0);
        assert!(!rotation.is_due(after(10_999), 0));
        assert!(rotation.is_due(after(11_000), 0));
    }

    #[test]
    fn datagrams_count_from_the_last_replacement() {
        let mut rotation = rotation(None, Some(100));
        assert!(!rotation.is_due(after(5000), 99));
        assert!(rotation.is_due(after(5000), 100));
        rotation.on_rotated(after(5000), 100);
        assert!(!rotation.is_due(after(50_000), 199));
        assert!(rotation.is_due(after(50_000), 200));
    }

    #[test]
    fn ids_are_kept_for_at_least_a_second() {
        for rotation in [rotation(Some(0), None), rotation(None, Some(0))] {
            assert!(!rotation.is_due(after(999), 1_000_000), "{rotation:?}");
            assert!(rotation.is_due(after(1000), 1_000_000), "{rotation:?}");
        }
    }
}
