//! Our CONNECTION_CLOSE frame. RFC 9000 §10.2, §19.19.

use std::time::Duration;

use bytes::Bytes;
use courser_base::Time;
use courser_telemetry::CloseCause;
use courser_wire::frame::{CloseKind, ConnectionClose};
use courser_wire::{ApplicationErrorCode, TransportErrorCode, Writer};

use crate::error::TransportError;
use crate::space::SpaceId;

/// Longest reason that we send; more would not fit beside other packets.
const MAX_REASON: usize = 512;

/// Our CONNECTION_CLOSE frame, and the packets that requested a repetition.
#[derive(Clone, Debug)]
pub(crate) struct Closing {
    cause: Cause,
    pub(crate) until: Time,
    /// Length of the closing period.
    period: Duration,
    progress: Progress,
    /// True while a packet with the frame is due.
    pub(crate) is_due: bool,
    received: u32,
    /// Number of received packets that cause the next repetition: 1, 2, 4, ... (§10.2.1).
    answer_after: u32,
}

/// The progress of the first CONNECTION_CLOSE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Waiting,
    /// It was not sent within the closing period, which has begun again.
    Late,
    Sent,
}

/// The reason for which we end a connection.
#[derive(Clone, Debug)]
pub(super) enum Cause {
    Transport(TransportError),
    Application {
        code: ApplicationErrorCode,
        reason: Bytes,
    },
}

impl Closing {
    pub(super) fn new(cause: Cause, now: Time, period: Duration) -> Self {
        Self {
            cause,
            until: now + period,
            period,
            progress: Progress::Waiting,
            is_due: true,
            received: 0,
            answer_after: 1,
        }
    }

    /// Returns the code, and the reason for humans.
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

    /// Records whether a packet with the frame has left.
    pub(super) fn on_sent(&mut self, has_left: bool) {
        self.is_due = !has_left;
        if has_left {
            self.progress = Progress::Sent;
        }
    }

    /// Returns true if the closing period has ended. It starts again once if no frame has left yet: on a busy
    /// machine it can end before the first frame could be sent, and the peer would never receive one.
    pub(super) fn is_over(&mut self, now: Time) -> bool {
        if self.progress != Progress::Waiting {
            return true;
        }
        self.progress = Progress::Late;
        self.until = now + self.period;
        false
    }

    /// Counts a packet that arrived while closing. The intervals between repetitions of the frame double.
    pub(crate) fn on_packet(&mut self) {
        self.received += 1;
        if self.received >= self.answer_after {
            self.received = 0;
            self.answer_after = self.answer_after.saturating_mul(2);
            self.is_due = true;
        }
    }

    /// Encodes the frame for a packet of this space. Initial and Handshake packets contain a general
    /// code and no reason instead of those of the application, which only 1-RTT packets protect (§10.2.3).
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

/// Cuts a reason for humans to a length that fits beside other packets.
pub(super) fn cut(reason: &[u8]) -> &[u8] {
    &reason[..reason.len().min(MAX_REASON)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closing(code: u64, reason: &'static [u8]) -> Closing {
        let cause = Cause::Application {
            code: ApplicationErrorCode(code),
            reason: Bytes::from_static(reason),
        };
        Closing::new(cause, Time::ZERO, Duration::from_secs(3))
    }

    #[test]
    fn repetitions_follow_after_twice_as_many_packets_each_time() {
        let mut closing = closing(1, b"");
        closing.is_due = false;
        let answers = (1..=20).filter(|_| {
            closing.on_packet();
            std::mem::take(&mut closing.is_due)
        });
        assert_eq!(answers.collect::<Vec<u32>>(), [1, 3, 7, 15]);
    }

    #[test]
    fn the_reason_of_an_application_stays_inside_1_rtt_packets() {
        for (space, shown) in [(SpaceId::Handshake, false), (SpaceId::Application, true)] {
            let mut room = [0; 100];
            let mut writer = Writer::new(&mut room);
            closing(7, b"secret").encode(space, &mut writer);
            let len = writer.position();
            let is_shown = room[..len].windows(6).any(|bytes| bytes == b"secret");
            assert_eq!(is_shown, shown, "{space:?}");
        }
    }

    #[test]
    fn a_reason_that_does_not_fit_is_left_out() {
        let mut room = [0; 4];
        let mut writer = Writer::new(&mut room);
        closing(7, b"too long").encode(SpaceId::Application, &mut writer);
        assert_eq!(writer.position(), 3);
    }
}
