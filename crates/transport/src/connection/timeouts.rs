//! When something must happen without a packet, and what happens then.

use courser_base::Time;
use courser_recovery::LossTimer;
use courser_telemetry::PathState;

use super::Connection;
use super::error::ConnectionError;
use super::event::Event;
use super::state::State;
use crate::path::paths::PathsOutcome;
use crate::space::SpaceId;

/// Why a connection wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Timer {
    /// Packets pass the time threshold of loss detection (RFC 9002 §6.1.2).
    LossDetection,
    /// A probe is due (RFC 9002 §6.2).
    Probe,
    /// An acknowledgement is due (RFC 9000 §13.2.1).
    Ack,
    /// The pacer lets the next batch go (RFC 9002 §7.7).
    Pacing,
    /// The connection dies of silence (RFC 9000 §10.1).
    Idle,
    /// A keep-alive is due.
    KeepAlive,
    /// Credit has been missing for long (RFC 9000 §4.1).
    Credit,
    /// The handshake takes too long.
    Handshake,
    /// A path validation wants a new challenge, or has failed (RFC 9000 §8.2).
    PathValidation,
    /// The previous receive keys are erased (RFC 9001 §6.5).
    KeyDiscard,
    /// Something the streams wait for.
    Streams,
    /// A datagram that waits to be sent expires.
    Datagrams,
    /// Closing or draining is over (RFC 9000 §10.2).
    Close,
}

impl Connection {
    /// When to call [`Connection::handle_timeout`], and what for.
    pub fn next_timeout(&self) -> Option<(Time, Timer)> {
        match &self.state {
            State::Closing(closing) => return Some((closing.until, Timer::Close)),
            State::Draining { until, .. } => return Some((*until, Timer::Close)),
            State::Drained => return None,
            State::Handshaking | State::Complete | State::Confirmed => {}
        }
        let budget = self.paths.active().amplification.budget();
        let loss = self.recovery.loss_timer(budget).map(|timer| match timer {
            LossTimer::TimeThreshold { at, .. } => (at, Timer::LossDetection),
            LossTimer::Probe { at, .. } => (at, Timer::Probe),
        });
        let ack = self.acknowledger.next_timeout().map(|at| (at, Timer::Ack));
        let pacing = self.recovery.paced_until().map(|at| (at, Timer::Pacing));
        let idle = self.idle_deadline().map(|at| (at, Timer::Idle));
        let keep_alive = self.keep_alive_at().map(|at| (at, Timer::KeepAlive));
        let credit = self.credit_request_at().map(|at| (at, Timer::Credit));
        let handshake = self.handshake_deadline().map(|at| (at, Timer::Handshake));
        let path = self
            .paths
            .next_timeout()
            .map(|at| (at, Timer::PathValidation));
        let keys = self
            .protection
            .next_timeout()
            .map(|at| (at, Timer::KeyDiscard));
        let streams = self.streams.next_timeout().map(|at| (at, Timer::Streams));
        let datagrams = self
            .datagrams
            .next_timeout()
            .map(|at| (at, Timer::Datagrams));
        [
            loss, ack, pacing, idle, keep_alive, credit, handshake, path, keys, streams, datagrams,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::Closing(closing) if closing.until <= now => self.enter(now, State::Drained),
            State::Draining { until, .. } if *until <= now => self.enter(now, State::Drained),
            _ => {}
        }
        if !self.state.is_open() {
            return;
        }
        if self.idle_deadline().is_some_and(|at| at <= now) {
            return self.end_silently(now, ConnectionError::TimedOut);
        }
        if self.handshake_deadline().is_some_and(|at| at <= now) {
            return self.end_silently(now, ConnectionError::HandshakeTimedOut);
        }
        let outcome = self.paths.on_timeout(now);
        if outcome == PathsOutcome::Reverted {
            self.recovery.activate_route(self.paths.active().route);
        }
        self.forget_given_up_paths();
        match outcome {
            PathsOutcome::Unchanged => {}
            PathsOutcome::Reverted => {
                let old = *self.cids.peer.current();
                self.return_to_peer_id();
                self.record_peer_id(now, old);
                let index = self.paths.active_index();
                self.record_path(now, index, PathState::MigrationAbandoned);
                let peer = self.paths.active().tuple.peer;
                self.events.push_back(Event::PathChanged { peer });
            }
            PathsOutcome::NoneLeft => return self.end_silently(now, ConnectionError::TimedOut),
        }
        if self.keep_alive_at().is_some_and(|at| at <= now) {
            self.recovery.request_ping(SpaceId::Application);
        }
        if self.credit_request_at().is_some_and(|at| at <= now) {
            self.request_credit();
        }
        self.acknowledger.on_timeout(now);
        self.protection.on_timeout(now);
        self.streams.on_timeout(now);
        self.datagrams.on_timeout(now);
        let budget = self.paths.active().amplification.budget();
        let (recovery, mut owners) = self.recovery_and_owners();
        if recovery.on_timeout(now, budget, &mut owners) {
            self.on_path_too_small(now);
        }
        self.record_changes(now);
    }

    fn idle_deadline(&self) -> Option<Time> {
        self.idle.deadline(self.recovery.pto())
    }

    fn keep_alive_at(&self) -> Option<Time> {
        if self.state.is_handshaking() || self.recovery.wants_ping(SpaceId::Application) {
            return None;
        }
        self.idle.keep_alive_at(self.streams.has_own_exchanges())
    }

    /// When to ask for credit again: nothing is in flight whose loss would be noticed, and what
    /// would let us go on may have been sent to an address that is ours no more
    /// (RFC 9000 §4.1). Seldom if that does not help, and not for ever: a peer that grants
    /// nothing is left to the idle timeout.
    fn credit_request_at(&self) -> Option<Time> {
        let requests = &self.credit_requests;
        let sent = self.streams.counters().data_sent;
        let count = if requests.data_sent == sent {
            requests.count
        } else {
            0
        };
        let is_due = self.state.is_confirmed()
            && !self.recovery.is_waiting(SpaceId::Application)
            && self.streams.was_ever_blocked()
            && requests.made_after != Some(self.idle.heard())
            && count < MAX_CREDIT_REQUESTS;
        let pto = self.recovery.pto();
        is_due.then(|| self.idle.heard() + pto.saturating_mul(3 << count))
    }

    fn request_credit(&mut self) {
        let sent = self.streams.counters().data_sent;
        let requests = &mut self.credit_requests;
        if requests.data_sent != sent {
            *requests = CreditRequests {
                data_sent: sent,
                ..CreditRequests::default()
            };
        }
        requests.count += 1;
        requests.made_after = Some(self.idle.heard());
        self.streams.repeat_blocked();
    }

    /// The whole handshake has its time. A client that has not proven its address, and that a
    /// server hears nothing of, has half of it (limit K12): half-open connections are what
    /// attackers make. One that has proven it may only be on a path with many losses, where
    /// probe timeouts of four and eight seconds are what is left.
    fn handshake_deadline(&self) -> Option<Time> {
        if !matches!(self.state, State::Handshaking) {
            return None;
        }
        let timeout = self.config.handshake_timeout;
        let whole = self.handshake.started + timeout;
        let is_proven = self.paths.active().amplification.is_validated();
        Some(if self.side.is_server() && !is_proven {
            whole.min(self.idle.heard() + timeout / 2)
        } else {
            whole
        })
    }
}

/// Requests for credit since data was last sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreditRequests {
    count: u32,
    /// Stream bytes that had been sent by then.
    data_sent: u64,
    /// When the peer had last been heard then; one request for each time.
    made_after: Option<Time>,
}

/// The last comes after more than 700 probe timeouts.
const MAX_CREDIT_REQUESTS: u32 = 8;
