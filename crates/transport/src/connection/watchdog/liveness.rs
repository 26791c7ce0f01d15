//! PINGs of an end that waits for the rest of a stream, to resume sooner after an outage.

use std::time::Duration;

use courser_base::Time;

/// Decides when an end that waits for content sends a PING to test whether the peer is reachable.
///
/// During an outage the sender of content doubles its probe timeout (RFC 9002 §6.2.1), and may detect
/// its end only after twice the time that it lasted. The end that waits for the content often has
/// nothing in flight, so it would wait too. It sends a small PING from time to time instead, whose
/// arrival makes the sender probe at once: see `LossRecovery::on_packet_received`.
///
/// If the peer answers at once, the path works and the peer has no content to send. After each of these
/// answers the interval to the next PING doubles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LivenessProbes {
    /// PINGs since the last packet from the peer, and the times of the first and the last one.
    requested: Option<Requested>,
    /// Consecutive PINGs that were answered at once, up to [`MAX_PROMPT`].
    prompt: u8,
}

#[derive(Clone, Copy, Debug)]
struct Requested {
    count: u8,
    first: Time,
    last: Time,
}

impl LivenessProbes {
    /// Records that a packet of the peer has been processed. `pto` returns the probe timeout without
    /// backoff.
    #[inline]
    pub(super) fn on_received(&mut self, now: Time, pto: impl FnOnce() -> Duration) {
        if let Some(requested) = self.requested.take() {
            let is_prompt = now - requested.first <= pto().saturating_mul(2);
            self.prompt = match is_prompt {
                true => (self.prompt + 1).min(MAX_PROMPT),
                false => 0,
            };
        }
    }

    /// Returns the time of the next PING. `last_received` is the time of the last packet from the peer.
    #[inline]
    pub(super) fn next(
        &self,
        last_received: Time,
        pto: Duration,
        idle: Option<Duration>,
    ) -> Option<Time> {
        let interval = pto.saturating_mul(3).max(MIN_INTERVAL) * (1 << self.prompt);
        // The usual keep-alive would be sent as early.
        if idle.is_some_and(|idle| interval > idle / 3) {
            return None;
        }
        match self.requested {
            None => Some(last_received + interval),
            Some(requested) => (requested.count < MAX_PINGS).then(|| requested.last + interval),
        }
    }

    /// Records that a PING was requested.
    pub(super) fn on_ping_requested(&mut self, now: Time) {
        let requested = self.requested.get_or_insert(Requested {
            count: 0,
            first: now,
            last: now,
        });
        requested.count += 1;
        requested.last = now;
    }
}

/// The shortest time between two PINGs (limit K230).
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// The maximum number of PINGs without a packet from the peer (limit K230). They cover the default idle
/// timeout.
const MAX_PINGS: u8 = 120;

/// The maximum number of doublings of the interval, which raise 250 ms to 16 s.
const MAX_PROMPT: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);
    const IDLE: Option<Duration> = Some(Duration::from_secs(30));

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn pings_are_due_every_three_probe_timeouts() {
        let mut probes = LivenessProbes::default();
        assert_eq!(probes.next(at(1000), PTO, IDLE), Some(at(1300)));
        probes.on_ping_requested(at(1300));
        assert_eq!(probes.next(at(1000), PTO, IDLE), Some(at(1600)));
        let short = Duration::from_millis(1);
        assert_eq!(probes.next(at(1000), short, IDLE), Some(at(1550)));
    }

    /// Checks the limit on PINGs without an answer (limit K230).
    #[test]
    fn number_of_unanswered_pings_is_limited() {
        let mut probes = LivenessProbes::default();
        for count in 0..120 {
            let due = probes.next(at(0), PTO, None);
            assert_eq!(due, Some(at(300 * (count + 1))));
            probes.on_ping_requested(at(300 * (count + 1)));
        }
        assert_eq!(probes.next(at(0), PTO, None), None);
    }

    #[test]
    fn prompt_answers_double_the_interval_until_an_outage() {
        let mut probes = LivenessProbes::default();
        let mut last_received = 0;
        for interval in [300, 600, 1200, 2400, 4800, 9600] {
            let due = probes.next(at(last_received), PTO, IDLE);
            assert_eq!(due, Some(at(last_received + interval)));
            probes.on_ping_requested(at(last_received + interval));
            last_received += interval + 50;
            probes.on_received(at(last_received), || PTO);
        }
        assert_eq!(probes.next(at(last_received), PTO, IDLE), None, "19.2 s");
        assert!(probes.next(at(last_received), PTO, None).is_some());
        // A further PING, whose answer takes longer.
        probes.on_ping_requested(at(last_received));
        probes.on_received(at(last_received + 201), || PTO);
        assert_eq!(
            probes.next(at(last_received + 201), PTO, IDLE),
            Some(at(last_received + 501))
        );
    }

    #[test]
    fn packets_without_a_pending_ping_change_nothing() {
        let mut probes = LivenessProbes::default();
        probes.on_received(at(10), || PTO);
        assert_eq!(probes.next(at(10), PTO, IDLE), Some(at(310)));
    }
}
