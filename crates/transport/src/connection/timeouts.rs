//! Timers of a connection: the next one to expire, and the work that is due then.

use courser_base::Time;
use courser_recovery::LossTimer;

use super::Connection;
use super::close::path_too_small;
use super::error::ConnectionError;
use super::idle::Idle;
use super::life::{Ending, Life};
use super::progress::discard_early_keys;
use super::silence::Silence;
use super::timer::Timer;
use crate::recovery::LossRecovery;
use crate::space::SpaceId;
use crate::stream::Streams;

impl Connection {
    /// Returns the time at which to call [`Connection::handle_timeout`], and the timer that is due
    /// then.
    pub fn next_timeout(&self) -> Option<(Time, Timer)> {
        if !self.life.is_open() {
            return self.life.next_timeout().map(|at| (at, Timer::Close));
        }
        let path = self.paths.active();
        let loss = self.recovery.loss_timer(path.budget());
        let loss = loss.map(|timer| match timer {
            LossTimer::TimeThreshold { at, .. } => (at, Timer::LossDetection),
            LossTimer::Probe { at, .. } => (at, Timer::Probe),
        });
        let handshake = self
            .handshake
            .deadline(self.idle.heard(), path.is_validated());
        let keep_alive = keep_alive_at(&self.life, &self.idle, &self.recovery, &self.streams);
        let silence = silence_probe_at(
            &self.silence,
            &self.life,
            &self.idle,
            &self.recovery,
            &self.streams,
        );
        let credit = credit_request_at(&self.life, &self.idle, &self.recovery, &self.streams);
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
        consider(self.acknowledger.next_timeout(), Timer::Ack);
        consider(self.recovery.paced_until(), Timer::Pacing);
        consider(self.idle.deadline(self.recovery.pto()), Timer::Idle);
        consider(keep_alive, Timer::KeepAlive);
        consider(silence, Timer::KeepAlive);
        consider(credit, Timer::Credit);
        consider(handshake, Timer::Handshake);
        consider(self.paths.next_timeout(), Timer::PathValidation);
        consider(self.protection.next_timeout(), Timer::KeyDiscard);
        consider(self.streams.next_timeout(), Timer::Streams);
        consider(self.datagrams.next_timeout(), Timer::Datagrams);
        consider(self.pings.next_timeout(), Timer::Ping);
        next
    }

    /// Runs what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.life.is_open() {
            return self.life.on_timeout(now, &mut self.trace);
        }
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if is_due(self.idle.deadline(self.recovery.pto())) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        let is_validated = self.paths.active().is_validated();
        if is_due(self.handshake.deadline(self.idle.heard(), is_validated)) {
            return self.end(now, Ending::Silence(ConnectionError::HandshakeTimedOut));
        }
        if self.migrations().on_timeout(now) {
            return self.end(now, Ending::Silence(ConnectionError::TimedOut));
        }
        if is_due(keep_alive_at(
            &self.life,
            &self.idle,
            &self.recovery,
            &self.streams,
        )) {
            self.recovery.request_ping(SpaceId::Application);
        }
        if is_due(silence_probe_at(
            &self.silence,
            &self.life,
            &self.idle,
            &self.recovery,
            &self.streams,
        )) {
            self.silence.on_asked(now);
            self.recovery.on_question(now);
        }
        if is_due(credit_request_at(
            &self.life,
            &self.idle,
            &self.recovery,
            &self.streams,
        )) {
            let sent = self.streams.counters().data_sent;
            self.idle.on_credit_requested(sent);
            self.streams.repeat_blocked();
        }
        self.acknowledger.on_timeout(now);
        if self.protection.on_timeout(now) {
            let (_, protection, mut owners) = self.split();
            discard_early_keys(now, protection, &mut owners);
        }
        self.streams.on_timeout(now);
        self.datagrams.on_timeout(now);
        self.pings.on_timeout(now);
        let budget = self.paths.active().budget();
        let (recovery, _, mut owners) = self.split();
        let is_too_small = recovery.on_timeout(now, budget, &mut owners);
        if is_too_small && self.life.is_confirmed() {
            self.end(now, path_too_small());
        }
        self.report_silence(now);
        if self.recovery.has_too_many_ptos() {
            let ptos = self.recovery.unanswered();
            self.end(now, Ending::Unanswered { ptos });
        }
        self.trace.changes(now, &self.recovery);
    }
}

/// Returns the time at which a keep-alive is due.
fn keep_alive_at(
    life: &Life,
    idle: &Idle,
    recovery: &LossRecovery,
    streams: &Streams,
) -> Option<Time> {
    if life.is_handshaking() || recovery.wants_ping(SpaceId::Application) {
        return None;
    }
    idle.keep_alive_at(streams.has_own_exchanges())
}

/// Returns the time at which to ask for credit again. Nothing is in flight whose loss would be
/// detected, and the peer may have sent the credit to an address that is no longer ours
/// (RFC 9000 §4.1).
fn credit_request_at(
    life: &Life,
    idle: &Idle,
    recovery: &LossRecovery,
    streams: &Streams,
) -> Option<Time> {
    let may_ask = life.is_confirmed() && !recovery.is_waiting(SpaceId::Application);
    if !may_ask || !streams.was_ever_blocked() {
        return None;
    }
    idle.credit_request_at(streams.counters().data_sent, recovery.pto())
}

/// Returns the time at which an end that waits for content asks whether the peer is still there.
#[inline]
fn silence_probe_at(
    silence: &Silence,
    life: &Life,
    idle: &Idle,
    recovery: &LossRecovery,
    streams: &Streams,
) -> Option<Time> {
    if !streams.awaits_content() || !life.is_confirmed() {
        return None;
    }
    silence.next(idle.heard(), recovery.pto(), idle.timeout())
}
