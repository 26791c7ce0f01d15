//! Probes of an end that waits for the rest of a stream, for the time after an outage.

use std::time::Duration;

use courser_base::Time;

/// Decides when an end that waits for content asks whether the peer is still there.
///
/// During an outage the sender of content doubles its probe timeout (RFC 9002 §6.2.1), and may find
/// out only after twice the time that the outage has lasted. The end that waits for the content often
/// has nothing in flight, so it would wait too. It sends a PING from time to time instead, which is
/// small and whose arrival tells the sender that packets pass again: see
/// `LossRecovery::on_packet_received`.
///
/// If the peer answers at once, then the path is fine and the peer has a reason for its silence.
/// After each of these answers the next PING waits twice as long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LivenessProbes {
    /// PINGs since the last packet from the peer, and the times of the first and the last one.
    requested: Option<Requested>,
    /// PINGs that were answered at once, up to [`MAX_CALM`].
    calm: u8,
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
            self.calm = match is_prompt {
                true => (self.calm + 1).min(MAX_CALM),
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
        let interval = pto.saturating_mul(3).max(SHORTEST) * (1 << self.calm);
        // The usual keep-alive would come as early.
        if idle.is_some_and(|idle| interval > idle / 3) {
            return None;
        }
        match self.requested {
            None => Some(last_received + interval),
            Some(requested) => (requested.count < MOST_PINGS).then(|| requested.last + interval),
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
const SHORTEST: Duration = Duration::from_millis(250);

/// The maximum number of PINGs in one silence (limit K230). They last for the default idle timeout.
const MOST_PINGS: u8 = 120;

/// The maximum number of doublings of the time before a PING. 250 ms become 16 s.
const MAX_CALM: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);
    const IDLE: Option<Duration> = Some(Duration::from_secs(30));

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn pings_come_every_three_probe_timeouts() {
        let mut probes = LivenessProbes::default();
        assert_eq!(probes.next(at(1000), PTO, IDLE), Some(at(1300)));
        probes.on_ping_requested(at(1300));
        assert_eq!(probes.next(at(1000), PTO, IDLE), Some(at(1600)));
        let short = Duration::from_millis(1);
        assert_eq!(probes.next(at(1000), short, IDLE), Some(at(1550)));
    }

    /// K230.
    #[test]
    fn their_number_is_limited() {
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
    fn packets_without_a_question_change_nothing() {
        let mut probes = LivenessProbes::default();
        probes.on_received(at(10), || PTO);
        assert_eq!(probes.next(at(10), PTO, IDLE), Some(at(310)));
    }
}
