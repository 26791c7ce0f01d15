//! Timers of a connection: the next one to expire, and the work that is due then.

use courser_base::Time;
use courser_recovery::LossTimer;

use super::Connection;
use super::close::path_too_small;
use super::error::ConnectionError;
use super::life::Ending;
use super::progress::discard_early_keys;
use super::timer::Timer;
use crate::space::SpaceId;

impl Connection {
    /// Returns the time at which to call [`Connection::handle_timeout`], and the timer that is due
    /// then.
    pub fn next_timeout(&self) -> Option<(Time, Timer)> {
        if !self.life.is_open() {
            return self.life.next_timeout().map(|at| (at, Timer::Close));
        }
        let path = self.parts.paths.active();
        let loss = self.packets.recovery.loss_timer(path.budget());
        let loss = loss.map(|timer| match timer {
            LossTimer::TimeThreshold { at, .. } => (at, Timer::LossDetection),
            LossTimer::Probe { at, .. } => (at, Timer::Probe),
        });
        let handshake = self
            .parts
            .handshake
            .deadline(self.idle.heard(), path.is_validated());
        let keep_alive = self.keep_alive_at();
        let silence = self.silence_probe_at();
        let credit = self.credit_request_at();
        // Compared one by one, because a list of them takes four times as long, several times per
        // request. Of timers at the same time, the first one is named.
        let mut next = loss;
        let mut consider = |at: Option<Time>, timer| {
            if let Some(at) = at
                && next.is_none_or(|(earliest, _)| at < earliest)
            {
                next = Some((at, timer));
            }
        };
        consider(self.parts.acknowledger.next_timeout(), Timer::Ack);
        consider(self.packets.recovery.paced_until(), Timer::Pacing);
        consider(self.idle.deadline(self.packets.recovery.pto()), Timer::Idle);
        consider(keep_alive, Timer::KeepAlive);
        consider(silence, Timer::KeepAlive);
        consider(credit, Timer::Credit);
        consider(handshake, Timer::Handshake);
        consider(self.parts.paths.next_timeout(), Timer::PathValidation);
        consider(self.packets.protection.next_timeout(), Timer::KeyDiscard);
        consider(self.parts.streams.next_timeout(), Timer::Streams);
        consider(self.parts.datagrams.next_timeout(), Timer::Datagrams);
        consider(self.parts.pings.next_timeout(), Timer::Ping);
        next
    }

    /// Runs what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.life.is_open() {
            return self.life.on_timeout(now, &mut self.parts.trace);
        }
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.idle.deadline(self.packets.recovery.pto())) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        let is_validated = self.parts.paths.active().is_validated();
        if is_due(
            self.parts
                .handshake
                .deadline(self.idle.heard(), is_validated),
        ) {
            return self.end(now, Ending::Silence(ConnectionError::HandshakeTimedOut));
        }
        if self.migrations().on_timeout(now) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        if is_due(self.keep_alive_at()) {
            self.packets.recovery.request_ping(SpaceId::Application);
        }
        if is_due(self.silence_probe_at()) {
            self.silence.on_asked(now);
            self.packets.recovery.on_question(now);
        }
        if is_due(self.credit_request_at()) {
            let sent = self.parts.streams.counters().data_sent;
            self.idle.on_credit_requested(sent);
            self.parts.streams.repeat_blocked();
        }
        self.parts.acknowledger.on_timeout(now);
        if self.packets.protection.on_timeout(now) {
            discard_early_keys(now, &mut self.packets.protection, &mut self.parts);
        }
        self.parts.streams.on_timeout(now);
        self.parts.datagrams.on_timeout(now);
        self.parts.pings.on_timeout(now);
        let budget = self.parts.paths.active().budget();
        let is_too_small = self
            .packets
            .recovery
            .on_timeout(now, budget, &mut self.parts);
        if is_too_small && self.life.is_confirmed() {
            self.end(now, path_too_small());
        }
        self.report_silence(now);
        if self.packets.recovery.has_too_many_ptos() {
            let ptos = self.packets.recovery.unanswered();
            self.end(now, Ending::Unanswered { ptos });
        }
        self.parts.trace.changes(now, &self.packets.recovery);
    }

    /// Returns the time at which a keep-alive is due.
    fn keep_alive_at(&self) -> Option<Time> {
        if self.life.is_handshaking() || self.packets.recovery.wants_ping(SpaceId::Application) {
            return None;
        }
        self.idle
            .keep_alive_at(self.parts.streams.has_own_exchanges())
    }

    /// Returns the time at which to ask for credit again. Nothing is in flight whose loss would be
    /// detected, and the peer may have sent the credit to an address that is no longer ours
    /// (RFC 9000 §4.1).
    fn credit_request_at(&self) -> Option<Time> {
        let may_ask =
            self.life.is_confirmed() && !self.packets.recovery.is_waiting(SpaceId::Application);
        if !may_ask || !self.parts.streams.was_ever_blocked() {
            return None;
        }
        self.idle.credit_request_at(
            self.parts.streams.counters().data_sent,
            self.packets.recovery.pto(),
        )
    }

    /// Returns the time at which an end that waits for content asks whether the peer is still there.
    #[inline]
    fn silence_probe_at(&self) -> Option<Time> {
        if !self.parts.streams.awaits_content() || !self.life.is_confirmed() {
            return None;
        }
        self.silence.next(
            self.idle.heard(),
            self.packets.recovery.pto(),
            self.idle.timeout(),
        )
    }
}
