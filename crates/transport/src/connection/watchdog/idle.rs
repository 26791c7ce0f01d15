//! Timers of an idle connection: idle timeout, keep-alive, requests for credit. RFC 9000 §4.1,
//! §10.1.

use std::time::Duration;

use courser_base::Time;

/// Measures how long the connection has been idle.
#[derive(Debug)]
pub(super) struct Idle {
    timeout: Option<Duration>,
    keep_alive: Option<Duration>,
    /// True if the connection is kept alive while the application waits for an answer.
    keep_while_busy: bool,
    last: Time,
    /// Time of the last packet from the peer.
    last_received: Time,
    /// True if sending has restarted the timer, once after each packet from the peer.
    sent_since: bool,
    credit: CreditRequests,
}

/// Requests for credit since data was last sent.
#[derive(Clone, Copy, Debug, Default)]
struct CreditRequests {
    count: u32,
    /// Stream bytes that had been sent at the last request.
    data_sent: u64,
    /// Value of `last_received` at the last request. Only one request is made for each value.
    last_request_after: Option<Time>,
}

impl Idle {
    pub(super) fn new(now: Time, timeout: Option<Duration>, keep_alive: Option<Duration>) -> Self {
        Self {
            timeout,
            keep_alive,
            keep_while_busy: false,
            last: now,
            last_received: now,
            sent_since: false,
            credit: CreditRequests::default(),
        }
    }

    /// Returns the smaller idle timeout of both ends; `None` if neither has one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the time at which a packet of the peer was last processed, or the connection began.
    pub(super) fn last_received(&self) -> Time {
        self.last_received
    }

    /// Applies the peer's timeout. The smaller one of both ends counts, and zero means none.
    pub(super) fn on_peer_timeout(&mut self, millis: u64) {
        if millis == 0 {
            return;
        }
        let peer = Duration::from_millis(millis);
        self.timeout = Some(self.timeout.map_or(peer, |own| own.min(peer)));
    }

    /// Records that a packet of the peer was processed.
    pub(super) fn on_received(&mut self, now: Time) {
        self.last = now;
        self.last_received = now;
        self.sent_since = false;
    }

    /// Records a packet that was sent.
    #[inline]
    pub(super) fn on_packet_sent(&mut self, now: Time, is_ack_eliciting: bool) {
        if is_ack_eliciting && !self.sent_since {
            self.last = now;
            self.sent_since = true;
        }
    }

    /// Returns the time of the idle timeout, which is at least three probe timeouts long, up to
    /// [`MAX_STRETCH`].
    pub(super) fn deadline(&self, pto: Duration) -> Option<Time> {
        let timeout = self.timeout?;
        let stretch = pto.saturating_mul(3).min(MAX_STRETCH);
        Some(self.last + timeout.max(stretch))
    }

    pub(super) fn keep_while_busy(&mut self, is_on: bool) {
        self.keep_while_busy = is_on;
    }

    /// Returns the time at which a keep-alive is due. `is_busy` is true while the application waits
    /// for an answer.
    pub(super) fn keep_alive_at(&self, is_busy: bool) -> Option<Time> {
        // After an unanswered packet the probe timer takes over.
        if self.sent_since {
            return None;
        }
        let busy = self.timeout.filter(|_| is_busy && self.keep_while_busy);
        let busy = busy.map(|timeout| timeout / 3);
        let interval = match (self.keep_alive, busy) {
            (Some(always), Some(busy)) => Some(always.min(busy)),
            (always, busy) => always.or(busy),
        };
        Some(self.last + interval?)
    }

    /// Returns the time at which a blocked sender requests credit again. Intervals double while the peer
    /// grants none, and after [`MAX_CREDIT_REQUESTS`] the idle timeout ends the connection. `data_sent` is
    /// the number of stream bytes sent so far.
    pub(super) fn credit_request_at(&self, data_sent: u64, pto: Duration) -> Option<Time> {
        let count = self.credit.since(data_sent).count;
        let is_due = self.credit.last_request_after != Some(self.last_received)
            && count < MAX_CREDIT_REQUESTS;
        is_due.then(|| self.last_received + pto.saturating_mul(3 << count))
    }

    /// Counts a request of a blocked sender for credit.
    pub(super) fn on_credit_requested(&mut self, data_sent: u64) {
        self.credit = self.credit.since(data_sent);
        self.credit.count += 1;
        self.credit.last_request_after = Some(self.last_received);
    }
}

impl CreditRequests {
    /// Returns the requests, or none if data was sent since.
    fn since(self, data_sent: u64) -> Self {
        if self.data_sent == data_sent {
            return self;
        }
        Self {
            data_sent,
            ..Self::default()
        }
    }
}

/// Maximum of requests for credit. The last is sent after more than 700 probe timeouts.
const MAX_CREDIT_REQUESTS: u32 = 8;

/// The longest time to which three probe timeouts prolong the idle timeout (limit K82).
///
/// The peer can prolong a probe timeout by late acknowledgements (attack A51). A minute is three
/// probe timeouts of a path of several seconds.
const MAX_STRETCH: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn idle() -> Idle {
        Idle::new(at(0), Some(Duration::from_secs(30)), None)
    }

    #[test]
    fn smaller_timeout_counts_and_zero_means_none() {
        let mut idle = idle();
        idle.on_peer_timeout(0);
        assert_eq!(idle.deadline(PTO), Some(at(30_000)));
        idle.on_peer_timeout(5_000);
        assert_eq!(idle.deadline(PTO), Some(at(5_000)));
    }

    #[test]
    fn probe_timeouts_prolong_the_idle_timeout_to_a_minute_at_most() {
        let idle = idle();
        let pto = Duration::from_secs(600);
        assert_eq!(idle.deadline(pto), Some(at(60_000)));
    }

    #[test]
    fn idle_timeout_is_at_least_three_probe_timeouts_long() {
        let mut idle = idle();
        idle.on_peer_timeout(1);
        assert_eq!(idle.deadline(PTO), Some(at(30)));
    }

    #[test]
    fn credit_is_requested_once_after_each_packet_at_growing_intervals() {
        let mut idle = idle();
        for count in 0..MAX_CREDIT_REQUESTS {
            let due = idle.last_received() + PTO * (3 << count);
            assert_eq!(idle.credit_request_at(1000, PTO), Some(due));
            idle.on_credit_requested(1000);
            assert_eq!(idle.credit_request_at(1000, PTO), None, "not answered");
            idle.on_received(due);
        }
        assert_eq!(
            idle.credit_request_at(1000, PTO),
            None,
            "the maximum is reached"
        );
        let sent_more = idle.credit_request_at(2000, PTO);
        assert_eq!(sent_more, Some(idle.last_received() + PTO * 3));
    }

    #[test]
    fn only_the_first_send_since_a_packet_restarts_the_timer() {
        let mut idle = idle();
        idle.on_packet_sent(at(50), false);
        idle.on_packet_sent(at(100), true);
        idle.on_packet_sent(at(200), true);
        assert_eq!(idle.deadline(PTO), Some(at(30_100)));
        idle.on_received(at(300));
        assert_eq!(idle.deadline(PTO), Some(at(30_300)));
    }
}
