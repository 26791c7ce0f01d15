//! Detects idle connections, and peers that are silent, mute or wasteful. RFC 9000 §10.1, §21.9,
//! RFC 9002 §6.2, RFC 8085 §5.2.
//!
//! The rest of the connection reports to the [`Watchdog`] what is received and sent. It decides when the
//! connection has been idle for too long, which packets show whether the peer is still there, and which
//! behaviour of a peer ends the connection. It sends nothing itself.

mod idle;
mod liveness;
mod mute;
pub(super) mod suspicion;

use std::time::Duration;

use courser_base::{Time, Unreachable};

use self::idle::Idle;
use self::liveness::LivenessProbes;
use self::mute::Mute;
use self::suspicion::Suspicion;
use super::effects::ReceivedFrames;
use super::event::Event;
use super::timer::Timer;
use crate::config::TransportConfig;
use crate::error::TransportError;

/// The timers and limits for a peer that sends no packets, or packets without progress.
#[derive(Debug)]
pub(super) struct Watchdog {
    idle: Idle,
    liveness: LivenessProbes,
    mute: Mute,
    suspicion: Suspicion,
    /// True between [`Event::PathSilent`] and [`Event::PathAnswers`].
    is_path_silent: bool,
    /// True once [`Event::Unreachable`] has occurred.
    is_unreachable: bool,
}

/// The state of the connection that determines the timers of a [`Watchdog`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Situation {
    /// The probe timeout without backoff.
    pub(super) pto: Duration,
    /// True if a keep-alive may be sent: the handshake is complete, and no PING waits already.
    pub(super) may_keep_alive: bool,
    /// True while the application waits for an answer.
    pub(super) is_busy: bool,
    /// True while the rest of the content of a stream is missing.
    pub(super) awaits_content: bool,
    /// The stream bytes sent so far, if the sender may be blocked and has nothing in flight whose loss would be
    /// detected: the peer may have sent credit to an address that is no longer ours (RFC 9000 §4.1).
    pub(super) blocked_at: Option<u64>,
}

/// The packets that are due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Due {
    /// True if a keep-alive is due.
    pub(super) keep_alive: bool,
    /// True if a PING that tests whether the peer is reachable is due.
    pub(super) liveness_probe: bool,
    /// True if a request for credit is due.
    pub(super) credit_request: bool,
}

impl Watchdog {
    /// Creates the watchdog of a connection that begins.
    pub(super) fn new(now: Time, config: &TransportConfig) -> Self {
        Self {
            idle: Idle::new(now, config.max_idle_timeout, config.keep_alive_interval),
            liveness: LivenessProbes::default(),
            mute: Mute::default(),
            suspicion: Suspicion::new(now),
            is_path_silent: false,
            is_unreachable: false,
        }
    }

    /// Applies the peer's idle timeout in milliseconds; zero means none.
    pub(super) fn on_peer_timeout(&mut self, millis: u64) {
        self.idle.on_peer_timeout(millis);
    }

    /// Switches keep-alives on or off for the time in which the application waits for an answer.
    pub(super) fn keep_alive_while_busy(&mut self, is_on: bool) {
        self.idle.keep_while_busy(is_on);
    }

    /// Records that a packet was received and processed. `pto` returns the probe timeout without backoff.
    #[inline]
    pub(super) fn on_packet_received(&mut self, now: Time, pto: impl FnOnce() -> Duration) {
        self.idle.on_received(now);
        self.liveness.on_received(now, pto);
    }

    /// Checks the frames of a processed packet against the limits. `is_waiting` is true while an ack-eliciting
    /// packet of ours is neither acknowledged nor lost.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION for a peer that has sent too many frames without progress, or has acknowledged
    /// nothing for too long.
    #[inline]
    pub(super) fn judge(
        &mut self,
        now: Time,
        received: &ReceivedFrames,
        is_waiting: bool,
        pto: impl FnOnce() -> Duration,
    ) -> Result<(), TransportError> {
        self.suspicion.judge(now, received)?;
        if received.acknowledges {
            self.mute.on_acked();
        }
        if is_waiting && self.mute.is_over(now, self.idle.timeout(), pto()) {
            let reason = "packets arrive, but none of ours is acknowledged";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }

    /// Records a packet that was sent.
    #[inline]
    pub(super) fn on_packet_sent(&mut self, now: Time, is_ack_eliciting: bool) {
        self.idle.on_packet_sent(now, is_ack_eliciting);
    }

    /// Returns the time at which a packet of the peer was last processed, or the connection began.
    #[inline]
    pub(super) fn last_received(&self) -> Time {
        self.idle.last_received()
    }

    /// Returns the first timer to expire, and its time.
    #[inline]
    pub(super) fn next_timeout(&self, situation: &Situation) -> Option<(Time, Timer)> {
        let mut next = self
            .idle
            .deadline(situation.pto)
            .map(|at| (at, Timer::Idle));
        // One by one: this runs several times per request, and a list of them takes longer.
        let mut consider = |at: Option<Time>, timer| {
            if let Some(at) = at
                && next.is_none_or(|(earliest, _)| at < earliest)
            {
                next = Some((at, timer));
            }
        };
        consider(self.keep_alive_at(situation), Timer::KeepAlive);
        consider(self.liveness_probe_at(situation), Timer::KeepAlive);
        consider(self.credit_request_at(situation), Timer::Credit);
        next
    }

    /// Returns true once the idle timeout has expired (RFC 9000 §10.1).
    pub(super) fn is_timed_out(&self, now: Time, pto: Duration) -> bool {
        is_due(now, self.idle.deadline(pto))
    }

    /// Runs the timers and returns the packets that are due.
    pub(super) fn on_timeout(&mut self, now: Time, situation: &Situation) -> Due {
        let due = Due {
            keep_alive: is_due(now, self.keep_alive_at(situation)),
            liveness_probe: is_due(now, self.liveness_probe_at(situation)),
            credit_request: is_due(now, self.credit_request_at(situation)),
        };
        if due.liveness_probe {
            self.liveness.on_ping_requested(now);
        }
        if due.credit_request
            && let Some(data_sent) = situation.blocked_at
        {
            self.idle.on_credit_requested(data_sent);
        }
        due
    }

    #[inline]
    fn keep_alive_at(&self, situation: &Situation) -> Option<Time> {
        match situation.may_keep_alive {
            true => self.idle.keep_alive_at(situation.is_busy),
            false => None,
        }
    }

    #[inline]
    fn liveness_probe_at(&self, situation: &Situation) -> Option<Time> {
        match situation.awaits_content {
            true => self.liveness.next(
                self.idle.last_received(),
                situation.pto,
                self.idle.timeout(),
            ),
            false => None,
        }
    }

    #[inline]
    fn credit_request_at(&self, situation: &Situation) -> Option<Time> {
        let data_sent = situation.blocked_at?;
        self.idle.credit_request_at(data_sent, situation.pto)
    }

    /// Returns true between [`Event::PathSilent`] and [`Event::PathAnswers`].
    #[inline]
    pub(super) fn is_path_silent(&self) -> bool {
        self.is_path_silent
    }

    /// Returns the event for a path that became silent, or answers again.
    pub(super) fn on_path_silence(&mut self, is_silent: bool) -> Event {
        self.is_path_silent = is_silent;
        match is_silent {
            true => Event::PathSilent,
            false => Event::PathAnswers,
        }
    }

    /// Returns the event for first packets that do not reach the server, once.
    pub(super) fn on_unreachable(&mut self, cause: Unreachable) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.is_unreachable, true);
        is_first.then_some(Event::Unreachable(cause))
    }

    /// Returns the counters of frames without progress.
    #[cfg(test)]
    pub(super) fn suspicion(&mut self) -> &mut Suspicion {
        &mut self.suspicion
    }
}

fn is_due(now: Time, at: Option<Time>) -> bool {
    at.is_some_and(|at| at <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn watchdog() -> Watchdog {
        Watchdog::new(
            at(0),
            &TransportConfig {
                max_idle_timeout: Some(Duration::from_secs(30)),
                keep_alive_interval: Some(Duration::from_secs(10)),
                ..TransportConfig::default()
            },
        )
    }

    fn idle() -> Situation {
        Situation {
            pto: PTO,
            may_keep_alive: false,
            is_busy: false,
            awaits_content: false,
            blocked_at: None,
        }
    }

    #[test]
    fn the_situation_decides_which_timer_is_next() {
        let may_keep_alive = Situation {
            may_keep_alive: true,
            ..idle()
        };
        let awaits_content = Situation {
            awaits_content: true,
            ..may_keep_alive
        };
        let is_blocked = Situation {
            blocked_at: Some(0),
            ..may_keep_alive
        };
        for (situation, millis, timer) in [
            (idle(), 30_000, Timer::Idle),
            (may_keep_alive, 10_000, Timer::KeepAlive),
            (awaits_content, 300, Timer::KeepAlive),
            (is_blocked, 300, Timer::Credit),
        ] {
            let next = watchdog().next_timeout(&situation);
            assert_eq!(next, Some((at(millis), timer)), "{situation:?}");
        }
    }

    #[test]
    fn due_packets_are_returned_once() {
        let situation = Situation {
            awaits_content: true,
            blocked_at: Some(0),
            ..idle()
        };
        let mut watchdog = watchdog();
        assert_eq!(watchdog.on_timeout(at(299), &situation), Due::default());
        let due = Due {
            liveness_probe: true,
            credit_request: true,
            ..Due::default()
        };
        assert_eq!(watchdog.on_timeout(at(900), &situation), due);
        assert_eq!(watchdog.on_timeout(at(901), &situation), Due::default());
    }

    #[test]
    fn an_unreachable_server_is_reported_once() {
        let mut watchdog = watchdog();
        let event = Event::Unreachable(Unreachable::Port);
        assert_eq!(watchdog.on_unreachable(Unreachable::Port), Some(event));
        assert_eq!(watchdog.on_unreachable(Unreachable::Port), None);
    }

    #[test]
    fn the_idle_timeout_expires_after_the_last_packet() {
        let mut watchdog = watchdog();
        assert!(!watchdog.is_timed_out(at(29_999), PTO));
        assert!(watchdog.is_timed_out(at(30_000), PTO));
        watchdog.on_packet_received(at(10_000), || PTO);
        assert!(!watchdog.is_timed_out(at(39_999), PTO));
        assert!(watchdog.is_timed_out(at(40_000), PTO));
    }

    /// Checks the limit on peers that acknowledge nothing (limit K78).
    #[test]
    fn mute_peer_is_tolerated_for_a_time_or_until_it_acknowledges() {
        let silent = ReceivedFrames::default();
        let acknowledging = ReceivedFrames {
            acknowledges: true,
            ..silent
        };
        for (at_twenty, is_tolerated) in [(&silent, false), (&acknowledging, true)] {
            let mut watchdog = watchdog();
            let mut judge = |second: u64, received| {
                let now = at(second * 1000);
                watchdog.judge(now, received, true, || PTO).is_ok()
            };
            assert!((0..20).all(|second| judge(second, &silent)));
            assert!(judge(20, at_twenty));
            assert!((21..30).all(|second| judge(second, &silent)));
            assert_eq!(judge(30, &silent), is_tolerated);
        }
    }

    #[test]
    fn mute_peer_is_tolerated_while_nothing_is_in_flight() {
        let mut watchdog = watchdog();
        let received = ReceivedFrames::default();
        assert!((0..100).all(|second| {
            let now = at(second * 1000);
            watchdog.judge(now, &received, false, || PTO).is_ok()
        }));
    }
}
