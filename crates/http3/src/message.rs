//! What may follow what on a request stream, RFC 9114 §4.1.

use bytes::Bytes;
use courser_base::Side;
use http::{Method, StatusCode};

use crate::error::{Code, Error};
use crate::fields::FieldLimits;
use crate::frame_order::{Order, Place};
use crate::frame_reader::{FrameReader, Piece};

/// Reads the message of one direction of a request stream: on a server the request, on a client
/// the response with the interim ones before it.
///
/// Takes chunks of the stream as they come and gives sections and content. It keeps no content,
/// and of a section no more than [`FieldLimits`] allow, so whoever does not call it exerts
/// back-pressure by not reading the stream.
#[derive(Debug)]
pub struct MessageReader {
    frames: FrameReader,
    order: Order,
    /// `content-length`, when it binds.
    expected: Option<u64>,
    received: u64,
    interim: u32,
    /// Content of a tiny frame that was counted and not handed out.
    counted: Option<Bytes>,
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// The section of a head, encoded: to be given to
    /// [`Connection::decode_request`](crate::Connection::decode_request) or
    /// [`decode_response`](crate::Connection::decode_response), and what that makes of it to
    /// [`on_request`](MessageReader::on_request) or [`on_response`](MessageReader::on_response).
    Head(Bytes),
    /// Content, not empty.
    Data(Bytes),
    /// The section of the trailers, encoded.
    Trailers(Bytes),
    /// A frame that brings nothing, beyond the two that any message may have, or next to nothing,
    /// beyond the 256 tiny DATA frames that any request may have: to be counted by
    /// [`Connection::on_empty_frame`](crate::Connection::on_empty_frame).
    Nothing,
}

impl MessageReader {
    /// Reads what the peer of `side`, our role, sends.
    pub fn new(side: Side, limits: FieldLimits) -> Self {
        Self {
            frames: FrameReader::default(),
            order: Order::new(side, limits),
            expected: None,
            received: 0,
            interim: 0,
            counted: None,
        }
    }

    /// Takes the next chunk of the stream. [`poll`](Self::poll) must have returned `None` before.
    pub fn push(&mut self, chunk: Bytes) {
        self.frames.push(chunk);
    }

    /// The next part; `None` when another chunk is needed.
    ///
    /// # Errors
    ///
    /// Of the connection for frames that may not be there or are too long, of the stream for more
    /// content than `content-length` says.
    pub fn poll(&mut self) -> Result<Option<Part>, Error> {
        debug_assert!(self.order.place != Place::Head, "a head was not told of");
        if let Some(data) = self.counted.take() {
            return self.on_content(data).map(Some);
        }
        let piece = loop {
            match self.frames.poll(&mut self.order)? {
                None => return Ok(None),
                Some(Piece::EmptyData | Piece::Skipping) if !self.order.counts_empty() => {}
                Some(piece) => break piece,
            }
        };
        Ok(Some(match piece {
            Piece::Data(data) if self.order.counts_tiny() => {
                self.counted = Some(data);
                Part::Nothing
            }
            Piece::Data(data) => self.on_content(data)?,
            // Only HEADERS have passed the rules.
            Piece::Frame(_, section) if self.order.place == Place::BeforeHead => {
                self.order.place = Place::Head;
                Part::Head(section)
            }
            Piece::Frame(_, section) => {
                self.order.place = Place::AfterTrailers;
                Part::Trailers(section)
            }
            Piece::EmptyData | Piece::Skipping => Part::Nothing,
        }))
    }

    fn on_content(&mut self, data: Bytes) -> Result<Part, Error> {
        self.received += data.len() as u64;
        if self
            .expected
            .is_some_and(|expected| self.received > expected)
        {
            return Err(Error::malformed("more content than content-length says"));
        }
        Ok(Part::Data(data))
    }

    /// Says what the head was, on a server.
    pub fn on_request(&mut self, method: &Method, is_extended: bool, content_length: Option<u64>) {
        if *method == Method::CONNECT && !is_extended {
            self.order.place = Place::Tunnel;
            return;
        }
        self.order.place = Place::Content;
        self.expected = content_length;
    }

    /// Says what the head was, on a client. `method` is that of the request.
    ///
    /// # Errors
    ///
    /// Of the stream, for too many interim responses.
    pub fn on_response(
        &mut self,
        status: StatusCode,
        method: &Method,
        content_length: Option<u64>,
    ) -> Result<(), Error> {
        if status.is_informational() {
            self.order.place = Place::BeforeHead;
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err(Error::stream(
                    Code::EXCESSIVE_LOAD,
                    "more than 8 interim responses",
                ));
            }
            return Ok(());
        }
        self.order.place = Place::Content;
        if *method == Method::CONNECT && status.is_success() {
            self.order.place = Place::Tunnel;
        } else if *method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
            // The length that content would have, of which there is none (RFC 9110 §8.6).
            self.expected = Some(0);
        } else {
            self.expected = content_length;
        }
        Ok(())
    }

    /// Says that the stream has ended and all of it was read.
    ///
    /// # Errors
    ///
    /// Of the connection inside a frame, of the stream before the message is whole.
    pub fn finish(&self) -> Result<(), Error> {
        self.frames.finish()?;
        match (self.order.place, self.order.side()) {
            (Place::BeforeHead, Side::Server) => Err(Error::stream(
                Code::REQUEST_INCOMPLETE,
                "stream ended before the request",
            )),
            (Place::BeforeHead, Side::Client) => {
                Err(Error::malformed("stream ended before a final response"))
            }
            _ if self
                .expected
                .is_some_and(|expected| self.received < expected) =>
            {
                Err(Error::malformed("less content than content-length says"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the message can be over before the stream is: all content that `content-length`
    /// announces is here.
    pub fn has_all_content(&self) -> bool {
        self.expected == Some(self.received)
    }

    /// Bytes held back.
    pub fn memory(&self) -> usize {
        self.frames.memory() + self.counted.as_ref().map_or(0, Bytes::len)
    }
}

/// Interim responses before a final one.
const MOST_INTERIM: u32 = 8;

#[cfg(test)]
mod tests;
