//! The state of a connection, and the reason for its end. RFC 9000 §10.

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_wire::frame::{CloseKind, ConnectionClose};
use courser_wire::{ApplicationErrorCode, TransportErrorCode};

use super::closing::{Cause, Closing, cut};
use super::error::{ConnectionError, PeerClose};
use super::state::State;
use super::trace::Trace;
use crate::error::TransportError;
use crate::path::AllowedMoves;

/// The state of a connection, and the reason for its end.
#[derive(Debug)]
pub(super) struct Life {
    state: State,
    /// Boxed, like the parts of the state that follow the end, to save memory in open connections.
    error: Option<Box<ConnectionError>>,
}

/// A cause that ends a connection.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Our application closes; the code and reason are sent in 1-RTT packets alone (§10.2.3).
    Application {
        code: ApplicationErrorCode,
        reason: Bytes,
    },
    /// The peer broke a rule, or TLS failed. The error is sent to the peer.
    Violation(TransportError),
    /// Our own side failed. INTERNAL_ERROR without a reason is sent to the peer, and the application
    /// gets the error.
    Internal(ConnectionError),
    /// The peer sent CONNECTION_CLOSE.
    PeerClosed(ConnectionError),
    /// The peer has lost its state. Nothing more is sent (§10.3.1).
    Reset,
    /// This many probe timeouts in a row brought no acknowledgement. Packets to the peer may still arrive,
    /// so NO_VIABLE_PATH is sent.
    Unanswered { ptos: u32 },
    /// Ends without a CONNECTION_CLOSE, for example after the idle timeout (§10.1).
    Silence(ConnectionError),
}

impl From<TransportError> for Ending {
    fn from(error: TransportError) -> Self {
        Self::Violation(error)
    }
}

impl Ending {
    /// Returns the end that a CONNECTION_CLOSE frame of the peer causes.
    pub(super) fn by_peer(frame: &ConnectionClose<'_>) -> Self {
        let reason = Bytes::copy_from_slice(cut(frame.reason));
        Self::PeerClosed(match frame.kind {
            CloseKind::Transport {
                error_code,
                frame_type,
            } => ConnectionError::ConnectionClosed(PeerClose {
                code: error_code,
                frame_type,
                reason,
            }),
            CloseKind::Application { error_code } => ConnectionError::ApplicationClosed {
                code: error_code,
                reason,
            },
        })
    }

    /// Returns the state after the end, and the error for the application.
    fn into_state(self, now: Time, period: Duration) -> (State, ConnectionError) {
        let until = now + period;
        match self {
            Self::Application { code, reason } => {
                let closing = Closing::new(Cause::Application { code, reason }, now, period);
                (
                    State::Closing(closing.into()),
                    ConnectionError::LocallyClosed,
                )
            }
            Self::Violation(error) => {
                let closing = Closing::new(Cause::Transport(error.clone()), now, period);
                (State::Closing(closing.into()), error.into())
            }
            Self::Internal(error) => {
                let cause = Cause::Transport(TransportError::internal(""));
                let closing = Closing::new(cause, now, period);
                (State::Closing(closing.into()), error)
            }
            Self::Unanswered { ptos } => {
                let code = TransportErrorCode::NO_VIABLE_PATH;
                let reason = format!("no answer to {ptos} probe timeouts in a row");
                let cause = Cause::Transport(TransportError::new(code, reason));
                let closing = Closing::new(cause, now, period);
                (State::Closing(closing.into()), ConnectionError::PathSilent)
            }
            Self::PeerClosed(error) => {
                // One answer confirms the close to the peer after one round trip (§10.2.2).
                let no_error = TransportError::new(TransportErrorCode::NO_ERROR, "");
                let answer = Closing::new(Cause::Transport(no_error), now, period);
                let answer = Some(answer.into());
                (State::Draining { until, answer }, error)
            }
            Self::Reset => {
                let answer = None;
                (State::Draining { until, answer }, ConnectionError::Reset)
            }
            Self::Silence(error) => (State::Drained, error),
        }
    }
}

impl Life {
    /// Creates the state of a new connection.
    pub(super) fn new() -> Self {
        Self {
            state: State::Handshaking,
            error: None,
        }
    }

    /// Returns true in the states up to `Confirmed`.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.state.is_open()
    }

    /// Returns true until the handshake is complete.
    #[inline]
    pub(super) fn is_handshaking(&self) -> bool {
        self.state.is_handshaking()
    }

    /// Returns true once the handshake is complete and not confirmed.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Returns true once the handshake is confirmed, while the connection is open.
    #[inline]
    pub(super) fn is_confirmed(&self) -> bool {
        self.state.is_confirmed()
    }

    /// Returns true while we wait for late packets after our CONNECTION_CLOSE.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing(_))
    }

    /// Returns true once no packet will be sent any more, and late packets are dropped.
    pub(super) fn has_finished_sending(&self) -> bool {
        matches!(
            self.state,
            State::Draining { answer: None, .. } | State::Drained
        )
    }

    /// Returns true once the endpoint may forget the connection.
    pub(super) fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained)
    }

    /// Returns the reason for the end; `None` while the connection is open.
    pub(super) fn error(&self) -> Option<&ConnectionError> {
        self.error.as_deref()
    }

    /// Enters another state and records the change.
    pub(super) fn enter(&mut self, now: Time, state: State, trace: &mut Trace) {
        let old = Some(self.state.name());
        self.state = state;
        trace.state(now, old, self.state.name());
    }

    /// Ends an open connection. Returns the error for the application the first time. `period` is
    /// the length of the closing or draining period.
    pub(super) fn end(
        &mut self,
        now: Time,
        period: Duration,
        ending: Ending,
        trace: &mut Trace,
    ) -> Option<ConnectionError> {
        let until = now + period;
        if self.is_open() {
            let (state, error) = ending.into_state(now, period);
            trace.closed(now, &state, &error);
            self.enter(now, state, trace);
            self.error = Some(Box::new(error.clone()));
            return Some(error);
        }
        // The peer has closed too, or lost its state, and needs no more answers.
        if self.is_closing() && matches!(ending, Ending::PeerClosed(_) | Ending::Reset) {
            let answer = None;
            self.enter(now, State::Draining { until, answer }, trace);
        }
        None
    }

    /// Returns the moves of the peer that are allowed now (RFC 9000 §9).
    #[inline]
    pub(super) fn allowed_moves(&self) -> AllowedMoves {
        match self.state {
            State::Handshaking => AllowedMoves::Rebinding,
            State::Confirmed | State::Closing(_) => AllowedMoves::All,
            State::Complete | State::Draining { .. } | State::Drained => AllowedMoves::None,
        }
    }

    /// Records the arrival of a datagram. Returns false if it must be dropped unread.
    #[inline]
    pub(super) fn on_datagram(&mut self) -> bool {
        match &mut self.state {
            State::Closing(closing) => {
                closing.on_packet();
                true
            }
            State::Draining { .. } | State::Drained => false,
            State::Handshaking | State::Complete | State::Confirmed => true,
        }
    }

    /// Returns the end of the closing or draining period.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Closing(closing) => Some(closing.until),
            State::Draining { until, .. } => Some(*until),
            _ => None,
        }
    }

    /// Enters the drained state if the closing or draining period has ended.
    pub(super) fn on_timeout(&mut self, now: Time, trace: &mut Trace) {
        if self.next_timeout().is_none_or(|until| until > now) {
            return;
        }
        if let State::Closing(closing) = &mut self.state
            && !closing.is_over(now)
        {
            return;
        }
        self.enter(now, State::Drained, trace);
    }

    /// Returns the CONNECTION_CLOSE frame that is due.
    pub(super) fn closing(&self) -> Option<&Closing> {
        match &self.state {
            State::Closing(closing) => Some(&**closing).filter(|it| it.is_due),
            State::Draining { answer, .. } => answer.as_deref(),
            _ => None,
        }
    }

    /// Records an attempt to send [`Life::closing`]. `has_left` is false if the amplification limit prevented
    /// it: then the frame stays due, unless it is the answer to the peer's close.
    pub(super) fn on_closing_sent(&mut self, has_left: bool) {
        match &mut self.state {
            State::Closing(closing) => closing.on_sent(has_left),
            State::Draining { answer, .. } => *answer = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(3);

    fn end(life: &mut Life, ending: Ending) -> Option<ConnectionError> {
        life.end(Time::ZERO, PERIOD, ending, &mut Trace::default())
    }

    fn closed_by_peer() -> Ending {
        Ending::by_peer(&ConnectionClose {
            kind: CloseKind::Application {
                error_code: ApplicationErrorCode(7),
            },
            reason: b"done",
        })
    }

    #[test]
    fn only_the_first_cause_ends_the_connection() {
        let mut life = Life::new();
        let violation = TransportError::protocol_violation("first");
        let error = end(&mut life, Ending::Violation(violation.clone()));
        assert_eq!(error, Some(violation.clone().into()));
        let second = Ending::Silence(ConnectionError::TimedOut);
        assert_eq!(end(&mut life, second), None);
        assert_eq!(life.error(), Some(&violation.into()));
    }

    #[test]
    fn close_of_the_peer_is_answered_once() {
        let mut life = Life::new();
        assert!(end(&mut life, closed_by_peer()).is_some());
        assert!(life.closing().is_some());
        assert!(!life.has_finished_sending());
        life.on_closing_sent(false);
        assert!(life.closing().is_none() && life.has_finished_sending());
        assert!(!life.on_datagram(), "late packets are dropped unread");
    }

    #[test]
    fn our_close_is_repeated_until_the_peer_closes_too() {
        let mut life = Life::new();
        end(&mut life, Ending::Internal(ConnectionError::TimedOut));
        life.on_closing_sent(false);
        assert!(life.closing().is_some(), "it was not sent");
        life.on_closing_sent(true);
        assert!(life.closing().is_none());
        assert!(life.on_datagram());
        assert!(life.closing().is_some());
        assert_eq!(end(&mut life, closed_by_peer()), None);
        assert!(life.closing().is_none() && life.has_finished_sending());
    }

    #[test]
    fn draining_period_ends_in_the_drained_state() {
        let mut life = Life::new();
        let mut trace = Trace::default();
        assert_eq!(life.next_timeout(), None);
        end(&mut life, Ending::Reset);
        assert_eq!(life.next_timeout(), Some(Time::ZERO + PERIOD));
        life.on_timeout(Time::ZERO + PERIOD / 2, &mut trace);
        assert!(!life.is_drained());
        life.on_timeout(Time::ZERO + PERIOD, &mut trace);
        assert!(life.is_drained());
        assert_eq!(life.next_timeout(), None);
    }

    #[test]
    fn closing_period_starts_again_once_if_no_close_was_sent() {
        let at = |periods: u32| Time::ZERO + PERIOD * periods;
        let unsent = || {
            let mut life = Life::new();
            end(&mut life, Ending::Internal(ConnectionError::TimedOut));
            life.on_closing_sent(false);
            life.on_timeout(at(1), &mut Trace::default());
            assert!(life.closing().is_some() && !life.is_drained());
            life
        };
        let mut sent = unsent();
        sent.on_closing_sent(true);
        assert_eq!(sent.next_timeout(), Some(at(2)));
        for mut life in [sent, unsent()] {
            life.on_timeout(at(2), &mut Trace::default());
            assert!(life.is_drained());
        }
    }

    #[test]
    fn silent_end_is_drained_at_once() {
        let mut life = Life::new();
        end(&mut life, Ending::Silence(ConnectionError::TimedOut));
        assert!(life.is_drained() && life.closing().is_none());
    }
}
