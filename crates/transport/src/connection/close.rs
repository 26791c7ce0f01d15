//! CONNECTION_CLOSE: saying it, hearing it, and the time after. RFC 9000 §10.2.

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_telemetry::CloseCause;
use courser_wire::frame::{CloseKind, ConnectionClose};
use courser_wire::{ApplicationErrorCode, MAX_VARINT, TransportErrorCode, Writer};

use super::Connection;
use super::error::{ConnectionError, PeerClose};
use super::event::Event;
use super::state::State;
use crate::error::TransportError;
use crate::space::SpaceId;

/// Longest reason that we send; more would not fit beside other packets.
const MAX_REASON: usize = 512;

/// What our CONNECTION_CLOSE says, and how often it was asked for.
#[derive(Debug)]
pub(crate) struct Closing {
    cause: Cause,
    pub(crate) until: Time,
    /// A packet should leave now.
    pub(crate) wants_to_send: bool,
    received: u32,
    /// The next answer comes after this many packets: 1, 2, 4, ... (§10.2.1).
    answer_after: u32,
}

#[derive(Clone, Debug)]
enum Cause {
    Transport(TransportError),
    Application {
        code: ApplicationErrorCode,
        reason: Bytes,
    },
}

impl Closing {
    fn new(cause: Cause, until: Time) -> Self {
        Self {
            cause,
            until,
            wants_to_send: true,
            received: 0,
            answer_after: 1,
        }
    }

    /// What is said, and the words for humans.
    pub(crate) fn cause(&self) -> (CloseCause, &[u8]) {
        match &self.cause {
            Cause::Transport(error) => {
                let code = error.code;
                (CloseCause::Transport { code }, error.reason.as_bytes())
            }
            Cause::Application { code, reason } => {
                (CloseCause::Application { code: *code }, reason)
            }
        }
    }

    /// A packet arrived while closing. Answers become rarer.
    pub(crate) fn on_packet(&mut self) {
        self.received += 1;
        if self.received >= self.answer_after {
            self.received = 0;
            self.answer_after = self.answer_after.saturating_mul(2);
            self.wants_to_send = true;
        }
    }

    /// Encodes the frame for a packet of this space. An application's close must not leave
    /// before the handshake protects it: Initial and Handshake packets carry a general code
    /// and no reason (§10.2.3).
    pub(crate) fn encode(&self, space: SpaceId, writer: &mut Writer<'_>) {
        let room = writer.remaining();
        let frame = match &self.cause {
            Cause::Transport(error) => ConnectionClose {
                kind: CloseKind::Transport {
                    error_code: error.code,
                    frame_type: error.frame_type.unwrap_or(0),
                },
                reason: cut(error.reason.as_bytes()),
            },
            Cause::Application { code, reason } if space == SpaceId::Application => {
                ConnectionClose {
                    kind: CloseKind::Application { error_code: *code },
                    reason: cut(reason),
                }
            }
            Cause::Application { .. } => ConnectionClose {
                kind: CloseKind::Transport {
                    error_code: TransportErrorCode::APPLICATION_ERROR,
                    frame_type: 0,
                },
                reason: &[],
            },
        };
        if frame.encoded_len() <= room {
            frame.encode(writer);
        } else if (ConnectionClose {
            reason: &[],
            ..frame
        })
        .encoded_len()
            <= room
        {
            ConnectionClose {
                reason: &[],
                ..frame
            }
            .encode(writer);
        }
    }
}

fn cut(reason: &[u8]) -> &[u8] {
    &reason[..reason.len().min(MAX_REASON)]
}

impl Connection {
    /// Ends the connection with an application error code.
    ///
    /// The peer sees `code` and `reason` (at most 512 bytes of it) once the handshake is done,
    /// and APPLICATION_ERROR before. A code past 2^62-1, which no frame can carry, becomes that.
    /// Does nothing when the connection is over already.
    pub fn close(&mut self, now: Time, code: u64, reason: &[u8]) {
        let code = ApplicationErrorCode(code.min(MAX_VARINT));
        let cause = Cause::Application {
            code,
            reason: Bytes::copy_from_slice(cut(reason)),
        };
        self.start_closing(now, cause, ConnectionError::LocallyClosed);
    }

    /// The peer broke a rule, or TLS gave up: says so and ends.
    pub(crate) fn fail(&mut self, now: Time, error: TransportError) {
        self.start_closing(now, Cause::Transport(error.clone()), error.into());
    }

    /// The fault is ours: the peer gets INTERNAL_ERROR without a reason, the application `error`.
    pub(crate) fn fail_internally(&mut self, now: Time, error: ConnectionError) {
        let cause = Cause::Transport(TransportError::internal(""));
        self.start_closing(now, cause, error);
    }

    fn start_closing(&mut self, now: Time, cause: Cause, error: ConnectionError) {
        if !self.state.is_open() {
            return;
        }
        let until = now + self.drain_period();
        self.end(now, State::Closing(Closing::new(cause, until)), error);
    }

    /// The peer sent CONNECTION_CLOSE.
    pub(crate) fn on_connection_close_frame(&mut self, now: Time, frame: &ConnectionClose<'_>) {
        let reason = Bytes::copy_from_slice(cut(frame.reason));
        let error = match frame.kind {
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
        };
        let until = now + self.drain_period();
        match self.state {
            State::Handshaking | State::Complete | State::Confirmed => {
                // One answer lets the peer see after one round trip that we know (§10.2.2).
                let no_error = TransportError::new(TransportErrorCode::NO_ERROR, "");
                let answer = Some(Closing::new(Cause::Transport(no_error), until));
                self.end(now, State::Draining { until, answer }, error);
            }
            State::Closing(_) => self.enter(
                now,
                State::Draining {
                    until,
                    answer: None,
                },
            ),
            State::Draining { .. } | State::Drained => {}
        }
    }

    /// The peer has lost its state (§10.3.1): nothing is sent any more.
    pub(crate) fn on_stateless_reset(&mut self, now: Time) {
        let until = now + self.drain_period();
        let state = State::Draining {
            until,
            answer: None,
        };
        if self.state.is_open() {
            self.end(now, state, ConnectionError::Reset);
        } else if matches!(self.state, State::Closing(_)) {
            self.enter(now, state);
        }
    }

    /// Ends without a packet: silence for too long, no path left (§10.1).
    pub(crate) fn end_silently(&mut self, now: Time, error: ConnectionError) {
        if self.state.is_open() {
            self.end(now, State::Drained, error);
        }
    }

    fn end(&mut self, now: Time, state: State, error: ConnectionError) {
        self.record_closed(now, &state, &error);
        self.enter(now, state);
        let is_lost = matches!(
            error,
            ConnectionError::ConnectionClosed(_)
                | ConnectionError::ApplicationClosed { .. }
                | ConnectionError::Reset
                | ConnectionError::TimedOut
        );
        if is_lost {
            self.streams.on_lost();
        } else {
            self.streams.on_close();
        }
        self.datagrams.on_end(is_lost);
        self.recovery.forget_all();
        self.handshake.on_close();
        self.protection.on_close();
        self.close_error = Some(error.clone());
        self.events.push_back(Event::Lost(error));
    }

    /// Closing and draining last three probe timeouts (§10.2), as far as [`MAX_DRAIN`] allows.
    fn drain_period(&self) -> Duration {
        self.recovery.pto().saturating_mul(3).min(MAX_DRAIN)
    }
}

/// The longest time in which a closed connection is remembered (limit K82).
///
/// Deviates: RFC 9000 §10.2 wants three probe timeouts, whose length the peer decides by
/// acknowledging late (attack A51). Later packets get a stateless reset.
const MAX_DRAIN: Duration = Duration::from_secs(60);
