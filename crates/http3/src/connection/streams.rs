//! Processing of the peer's unidirectional streams (RFC 9114 §6.2, §7.2).

use bytes::Bytes;
use courser_base::{Side, Time};
use courser_telemetry::Http3Frame;
use courser_wire::Direction;

use super::control::{decode_origins, integer};
use super::recording::control_frame;
use super::unidirectional::Critical;
use super::{Connection, Event};
use crate::error::{Code, Error};
use crate::frame::FrameType;
use crate::frame_reader::Piece;
use crate::settings::Settings;
use crate::stream_type::StreamType;

/// What happens with a unidirectional stream, or with a bidirectional stream of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UniFate {
    /// Continue to read the stream.
    Read,
    /// Stop the stream with this code and ignore further bytes.
    Stop(Code),
    /// The stream has ended, and its state is removed.
    Ended,
    /// The stream belongs to the application, even if it has ended ([`Extensions`](crate::Extensions)).
    Claimed {
        /// The stream type, or the integer at the start of a bidirectional stream.
        stream_type: u64,
        /// The length of that type or integer on the wire, in bytes.
        len: usize,
        /// The bytes after it that have arrived.
        first: Bytes,
    },
}

impl Connection {
    /// Processes bytes of a unidirectional stream of the peer, and its end if `fin` is true.
    ///
    /// # Errors
    ///
    /// Returns a connection error for each violation.
    pub fn handle_uni(
        &mut self,
        now: Time,
        stream: u64,
        chunk: Bytes,
        fin: bool,
    ) -> Result<UniFate, Error> {
        let fate = match self.unidirectional.critical(stream) {
            Some(role) => {
                self.on_critical(now, role, chunk)?;
                UniFate::Read
            }
            None => self.on_untyped(now, stream, chunk)?,
        };
        if !fin || matches!(fate, UniFate::Claimed { .. }) {
            return Ok(fate);
        }
        if self.unidirectional.critical(stream).is_some() {
            return Err(closed_critical_stream());
        }
        // A stream may end before its type (§6.2).
        self.unidirectional.forget(stream);
        Ok(UniFate::Ended)
    }

    /// Processes the reset of a unidirectional stream of the peer.
    ///
    /// # Errors
    ///
    /// Returns a connection error for critical streams.
    pub fn handle_uni_reset(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        if self.unidirectional.critical(stream).is_some() {
            return Err(closed_critical_stream());
        }
        self.unidirectional.forget(stream);
        self.budget.spend(now)
    }

    fn on_untyped(&mut self, now: Time, stream: u64, mut chunk: Bytes) -> Result<UniFate, Error> {
        let Some((value, len)) = self.unidirectional.read_type(stream, &mut chunk) else {
            return Ok(UniFate::Read);
        };
        self.record_stream_type(stream, value);
        let role = match StreamType::from_value(value) {
            StreamType::Control => Critical::Control,
            StreamType::QpackEncoder => Critical::Encoder,
            StreamType::QpackDecoder => Critical::Decoder,
            StreamType::Push => return Err(push_refused(self.side)),
            StreamType::Unknown if self.is_claimed(value, Direction::Unidirectional) => {
                return Ok(UniFate::Claimed {
                    stream_type: value,
                    len,
                    first: chunk,
                });
            }
            StreamType::Unknown => {
                self.budget.spend(now)?;
                return Ok(UniFate::Stop(Code::STREAM_CREATION_ERROR));
            }
        };
        self.unidirectional.open(role, stream)?;
        self.on_critical(now, role, chunk)?;
        Ok(UniFate::Read)
    }

    fn on_critical(&mut self, now: Time, role: Critical, chunk: Bytes) -> Result<(), Error> {
        match role {
            Critical::Control => self.on_control(now, chunk),
            Critical::Decoder => self.compression.on_decoder_stream(&chunk),
            Critical::Encoder => {
                self.compression.on_encoder_stream(&chunk)?;
                while let Some(stream) = self.compression.poll_unblocked() {
                    self.events.push_back(Event::Unblocked { stream });
                }
                self.compression.check_answers()
            }
        }
    }

    fn on_control(&mut self, now: Time, chunk: Bytes) -> Result<(), Error> {
        self.control.push(chunk);
        while let Some(piece) = self.control.poll()? {
            match piece {
                Piece::Frame(frame_type, payload) => {
                    self.on_control_frame(now, frame_type, payload)?;
                }
                Piece::Skipping { frame_type, len } => {
                    self.record_control_parsed(|| Http3Frame::Other { frame_type, len });
                    self.budget.spend(now)?;
                }
                // Not admitted.
                Piece::Data(_) | Piece::EmptyData | Piece::Oversized { .. } => {}
            }
        }
        Ok(())
    }

    fn on_control_frame(
        &mut self,
        now: Time,
        frame_type: FrameType,
        payload: Bytes,
    ) -> Result<(), Error> {
        self.record_control_parsed(|| control_frame(frame_type, &payload));
        match frame_type {
            FrameType::Settings => {
                let mut others = Vec::new();
                let settings = Settings::decode(&payload, &mut others)?;
                if !self.config.extensions.is_none() {
                    self.on_other_settings(others);
                }
                self.on_settings(settings)
            }
            FrameType::Claimed(frame_type) => self.on_claimed_frame(now, frame_type, payload),
            FrameType::GoAway => {
                let id = integer(&payload)?;
                self.events
                    .push_back(match self.goaway.on_received(self.side, id)? {
                        Some(first_refused) => Event::GoAway { first_refused },
                        None => Event::ClientGoAway,
                    });
                self.budget.spend(now)
            }
            FrameType::CancelPush => {
                // This implementation neither promises nor accepts pushes.
                integer(&payload)?;
                Err(Error::connection(
                    Code::ID_ERROR,
                    "CANCEL_PUSH for a push that was not promised",
                ))
            }
            FrameType::MaxPushId => {
                let id = integer(&payload)?;
                if self.max_push_id.is_some_and(|before| id < before) {
                    return Err(Error::connection(
                        Code::ID_ERROR,
                        "MAX_PUSH_ID lower than the previous one",
                    ));
                }
                self.max_push_id = Some(id);
                self.budget.spend(now)
            }
            FrameType::PriorityUpdateRequest => {
                let (stream, priority) = self.priorities.on_update(&payload)?;
                if let Some(stream) = stream {
                    self.record_priority(stream, priority, true);
                }
                self.events
                    .extend(stream.map(|stream| Event::Priority { stream, priority }));
                self.budget.spend_update(now)
            }
            FrameType::PriorityUpdatePush => Err(Error::connection(
                Code::ID_ERROR,
                "PRIORITY_UPDATE for a push that was not promised",
            )),
            FrameType::Origin => {
                if self.side.is_client() {
                    self.events
                        .push_back(Event::Origins(decode_origins(&payload)?));
                }
                self.budget.spend(now)
            }
            // Not admitted.
            _ => Ok(()),
        }
    }
}

const fn closed_critical_stream() -> Error {
    Error::connection(Code::CLOSED_CRITICAL_STREAM, "a critical stream was closed")
}

/// Returns the error of a push (§4.6, §6.2.2).
const fn push_refused(side: Side) -> Error {
    match side {
        Side::Client => Error::connection(Code::ID_ERROR, "a push without a MAX_PUSH_ID"),
        Side::Server => Error::connection(Code::STREAM_CREATION_ERROR, "a push of a client"),
    }
}
