//! Restarts from idle, draft-ietf-ccwg-bbr §5.4.1.

use std::time::Duration;

use courser_base::Time;

/// Detects periods in which the path was empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    /// The time since which the pipe has been empty.
    empty_since: Option<Time>,
    /// `BBR.idle_restart`: nothing was delivered since the pipe was empty for lack of data.
    pub(super) is_restart: bool,
}

impl Idle {
    /// Records the bytes in flight after an acknowledgement.
    pub(super) fn on_ack(&mut self, now: Time, inflight: u64) {
        self.empty_since = (inflight == 0).then_some(now);
    }

    /// Records that packets are in flight.
    pub(super) fn on_sent(&mut self) {
        self.empty_since = None;
    }

    /// Returns true if packets are sent into a pipe that was empty for longer than `gap`.
    pub(super) fn restart(&mut self, now: Time, gap: Duration) -> bool {
        let is_idle = self
            .empty_since
            .take()
            .is_some_and(|since| now - since > gap);
        self.is_restart |= is_idle;
        is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pipe_that_was_empty_for_longer_than_the_gap_is_restarted() {
        let mut idle = Idle::default();
        assert!(
            !idle.restart(Time::ZERO + 100 * MS, MS),
            "the pipe was never empty"
        );
        idle.on_ack(Time::ZERO, 0);
        assert!(!idle.restart(Time::ZERO + MS, MS) && !idle.is_restart);
        idle.on_ack(Time::ZERO, 0);
        assert!(idle.restart(Time::ZERO + 2 * MS, MS) && idle.is_restart);
    }

    #[test]
    fn a_pipe_with_packets_in_flight_is_not_idle() {
        let mut idle = Idle::default();
        idle.on_ack(Time::ZERO, 1200);
        assert!(!idle.restart(Time::ZERO + 100 * MS, MS));
        idle.on_ack(Time::ZERO, 0);
        idle.on_sent();
        assert!(!idle.restart(Time::ZERO + 100 * MS, MS));
    }
}
