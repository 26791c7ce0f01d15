//! The peer's unidirectional streams, RFC 9114 §6.2.

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use courser_base::{Side, Time};
use courser_wire::Reader;

use super::{Connection, Event};
use crate::error::{Code, Error};
use crate::stream_type::StreamType;

/// The fate of a unidirectional stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniFate {
    /// Continue to read it.
    Read,
    /// Stop it with this code and ignore the rest.
    Stop(Code),
    /// It has ended.
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct Unidirectional {
    /// The streams whose type is incomplete, with its first bytes.
    pub(super) untyped: HashMap<u64, Vec<u8>>,
    control: Option<u64>,
    encoder: Option<u64>,
    decoder: Option<u64>,
}

impl Unidirectional {
    fn is_critical(&self, stream: u64) -> bool {
        [self.control, self.encoder, self.decoder].contains(&Some(stream))
    }
}

impl Connection {
    /// Takes the next bytes of a unidirectional stream of the peer, and its end with `fin`.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection for every violation.
    pub fn handle_uni(
        &mut self,
        now: Time,
        stream: u64,
        chunk: Bytes,
        fin: bool,
    ) -> Result<UniFate, Error> {
        let fate = if self.unidirectional.is_critical(stream) {
            self.on_critical(now, stream, chunk)?;
            UniFate::Read
        } else {
            self.on_untyped(now, stream, chunk)?
        };
        if !fin {
            return Ok(fate);
        }
        if self.unidirectional.is_critical(stream) {
            return Err(closed_critical_stream());
        }
        // A stream may end before its type (§6.2).
        self.unidirectional.untyped.remove(&stream);
        Ok(UniFate::Ended)
    }

    /// Takes the reset of a unidirectional stream of the peer.
    ///
    /// # Errors
    ///
    /// Returns an error of the connection for critical streams.
    pub fn handle_uni_reset(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        if self.unidirectional.is_critical(stream) {
            return Err(closed_critical_stream());
        }
        self.unidirectional.untyped.remove(&stream);
        self.budget.spend(now)
    }

    /// Checks that the peer may open a bidirectional stream. A server must not without an extension
    /// (§6.1).
    ///
    /// # Errors
    ///
    /// Returns an error of the connection on a client.
    pub const fn check_bidirectional(&self) -> Result<(), Error> {
        match self.side {
            Side::Server => Ok(()),
            Side::Client => Err(Error::connection(
                Code::STREAM_CREATION_ERROR,
                "a bidirectional stream of a server",
            )),
        }
    }

    fn on_untyped(&mut self, now: Time, stream: u64, mut chunk: Bytes) -> Result<UniFate, Error> {
        let partial = self.unidirectional.untyped.entry(stream).or_default();
        let held = partial.len();
        // A type has at most eight bytes.
        partial.extend_from_slice(&chunk[..chunk.len().min(8 - held)]);
        let mut reader = Reader::new(partial);
        let Ok(value) = reader.varint() else {
            return Ok(UniFate::Read);
        };
        chunk.advance(reader.offset() - held);
        self.unidirectional.untyped.remove(&stream);
        let place = match StreamType::from_value(value) {
            StreamType::Control => &mut self.unidirectional.control,
            StreamType::QpackEncoder => &mut self.unidirectional.encoder,
            StreamType::QpackDecoder => &mut self.unidirectional.decoder,
            StreamType::Push => return Err(push_refused(self.side)),
            StreamType::Unknown => {
                self.budget.spend(now)?;
                return Ok(UniFate::Stop(Code::STREAM_CREATION_ERROR));
            }
        };
        if place.replace(stream).is_some() {
            return Err(Error::connection(
                Code::STREAM_CREATION_ERROR,
                "a critical stream twice",
            ));
        }
        self.on_critical(now, stream, chunk)?;
        Ok(UniFate::Read)
    }

    fn on_critical(&mut self, now: Time, stream: u64, chunk: Bytes) -> Result<(), Error> {
        let streams = &self.unidirectional;
        if streams.control == Some(stream) {
            return self.on_control(now, chunk);
        }
        if streams.decoder == Some(stream) {
            let before = self.encoder.cancellations();
            self.encoder.on_decoder_stream(&chunk)?;
            let count = self.encoder.cancellations() - before;
            return self.instructions.spend_cancellations(count);
        }
        let before = self.decoder.state();
        self.decoder.on_encoder_stream(&chunk)?;
        self.has_prompt_answers |= self.decoder.has_answers();
        self.instructions
            .spend_inserts(self.decoder.state() - before)?;
        while let Some(stream) = self.decoder.poll_unblocked() {
            self.events.push_back(Event::Unblocked { stream });
        }
        self.check_answers()
    }

    /// Checks that the peer takes the instructions of our decoder.
    pub(super) fn check_answers(&mut self) -> Result<(), Error> {
        if self.decoder.answers().len() > MOST_ANSWERS {
            return Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "decoder instructions pile up unread",
            ));
        }
        Ok(())
    }
}

const fn closed_critical_stream() -> Error {
    Error::connection(Code::CLOSED_CRITICAL_STREAM, "a critical stream was closed")
}

/// Returns the error of a push, §4.6, §6.2.2.
const fn push_refused(side: Side) -> Error {
    match side {
        Side::Client => Error::connection(Code::ID_ERROR, "a push without a MAX_PUSH_ID"),
        Side::Server => Error::connection(Code::STREAM_CREATION_ERROR, "a push of a client"),
    }
}

/// The maximum number of bytes that wait for the decoder stream, RFC 9204 §7.3.
const MOST_ANSWERS: usize = 64 * 1024;
