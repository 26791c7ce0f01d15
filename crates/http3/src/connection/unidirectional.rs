//! The peer's unidirectional streams, RFC 9114 §6.2.

use std::collections::HashMap;

use bytes::{Buf as _, Bytes};
use courser_base::{Side, Time};
use courser_wire::Reader;

use super::{Connection, Event};
use crate::error::{Code, Error};
use crate::stream_type::StreamType;

/// What to do with a stream from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UniFate {
    /// Read on.
    Read,
    /// Stop it with this code; what still arrives is for nobody.
    Stop(Code),
    /// It has ended, and nothing is to be done.
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct Unidirectional {
    /// Streams whose type has not arrived as a whole.
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
    /// Takes what arrived on a unidirectional stream of the peer's, in order; `fin` with its end.
    ///
    /// # Errors
    ///
    /// Of the connection, for all that may not be.
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
        // Ending before its type is nothing that matters (§6.2).
        self.unidirectional.untyped.remove(&stream);
        Ok(UniFate::Ended)
    }

    /// A unidirectional stream of the peer's was reset.
    ///
    /// # Errors
    ///
    /// Of the connection, for those that must stay.
    pub fn handle_uni_reset(&mut self, now: Time, stream: u64) -> Result<(), Error> {
        if self.unidirectional.is_critical(stream) {
            return Err(closed_critical_stream());
        }
        self.unidirectional.untyped.remove(&stream);
        self.budget.spend(now)
    }

    /// The peer has opened a bidirectional stream: a server's is refused by all clients without an
    /// extension (§6.1).
    ///
    /// # Errors
    ///
    /// Of the connection, on a client.
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
        // At most what is missing of eight bytes.
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

    /// The peer has to take what our decoder says.
    pub(super) fn check_answers(&mut self) -> Result<(), Error> {
        if self.decoder.answers().len() > MOST_ANSWERS {
            return Err(Error::connection(
                Code::EXCESSIVE_LOAD,
                "instructions of the decoder pile up, for nobody takes them",
            ));
        }
        Ok(())
    }
}

const fn closed_critical_stream() -> Error {
    Error::connection(Code::CLOSED_CRITICAL_STREAM, "a critical stream was closed")
}

/// §4.6, §6.2.2.
const fn push_refused(side: Side) -> Error {
    match side {
        Side::Client => Error::connection(Code::ID_ERROR, "a push without a MAX_PUSH_ID"),
        Side::Server => Error::connection(Code::STREAM_CREATION_ERROR, "a push of a client"),
    }
}

/// RFC 9204 §7.3: what waits to leave on the decoder stream.
const MOST_ANSWERS: usize = 64 * 1024;
