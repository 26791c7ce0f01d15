//! The steps in which a caller drives a request stream.

use bytes::Bytes;
use http::HeaderMap;

/// The next thing to do for a [`RequestStream`](crate::RequestStream).
#[derive(Debug)]
pub enum Step {
    /// More bytes of the stream are needed.
    Read,
    /// A header or trailer section is complete: call
    /// [`RequestStream::decode`](crate::RequestStream::decode).
    Decode,
    /// A frame without progress or an error has to be counted: call
    /// [`RequestStream::charge`](crate::RequestStream::charge).
    Charge,
    /// The header section of the message or of an interim response was decoded. It stays in the
    /// stream until it is taken.
    Headers,
    /// The header section of a request exceeds [`FieldLimits`](crate::FieldLimits). A server answers
    /// with 431 (§4.2.2) and calls
    /// [`RequestStream::abandon`](crate::RequestStream::abandon): the section may not be decoded.
    TooLarge(&'static str),
    /// Some content of the message, not empty.
    Content(Bytes),
    /// The trailers of the message, whose stream has ended behind them.
    Trailers(Box<HeaderMap>),
    /// The message is over.
    End,
    /// A frame of a type that the application claims for request streams. It may come anywhere in the
    /// message.
    Frame {
        /// The type of the frame.
        frame_type: u64,
        /// Its payload, no longer than was claimed.
        payload: Bytes,
    },
    /// The stream begins with an integer that the application claims. It carries no request, and its
    /// other bytes belong to the application.
    Claimed {
        /// The first integer of the stream.
        signal: u64,
        /// The bytes behind it that have arrived.
        first: Bytes,
    },
}

/// The outcome of [`RequestStream::decode`](crate::RequestStream::decode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoding {
    /// The section was decoded or has failed. Poll for the next step.
    Done,
    /// The stream is blocked (RFC 9204 §2.2.1). Decode again after
    /// [`Event::Unblocked`](crate::Event::Unblocked); an earlier attempt is harmless.
    Blocked {
        /// The bytes to withhold from flow control, in addition to those that are withheld, until
        /// [`RequestStream::take_held`](crate::RequestStream::take_held) returns them. Zero from the
        /// second attempt on.
        hold: u64,
    },
}
