//! The steps by which a caller drives a request stream.

use bytes::Bytes;
use http::HeaderMap;

/// The next action for a [`RequestStream`](crate::RequestStream).
#[derive(Debug)]
pub enum Step {
    /// More bytes of the stream are needed.
    Read,
    /// A header or trailer section is complete. Call [`RequestStream::decode`](crate::RequestStream::decode).
    Decode,
    /// A frame without progress or an error must be counted. Call
    /// [`RequestStream::charge`](crate::RequestStream::charge).
    Charge,
    /// The header section of the message or of an interim response was decoded. It remains in the stream until
    /// it is taken.
    Headers,
    /// The header section of a request exceeds [`FieldLimits`](crate::FieldLimits). A server responds with 431
    /// (§4.2.2) and calls [`RequestStream::abandon`](crate::RequestStream::abandon), because the section may not
    /// have been decoded.
    TooLarge(&'static str),
    /// Content of the message, not empty.
    Content(Bytes),
    /// The trailers of the message, after which the stream has ended.
    Trailers(Box<HeaderMap>),
    /// The message has ended.
    End,
    /// A frame of a type that the application claims for request streams. It may occur anywhere in the message.
    Frame {
        /// The type of the frame.
        frame_type: u64,
        /// The payload, within the claimed length.
        payload: Bytes,
    },
    /// The stream starts with an integer that the application claims. It carries no request, and its other bytes
    /// belong to the application.
    Claimed {
        /// The first integer of the stream.
        signal: u64,
        /// The bytes after it that have arrived.
        first: Bytes,
    },
}

/// The result of [`RequestStream::decode`](crate::RequestStream::decode).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoding {
    /// The section was decoded or has failed. Poll for the next step.
    Done,
    /// The stream is blocked (RFC 9204 §2.2.1). Decode again after
    /// [`Event::Unblocked`](crate::Event::Unblocked); earlier attempts are harmless.
    Blocked {
        /// The number of further bytes to withhold from flow control until
        /// [`RequestStream::take_held`](crate::RequestStream::take_held) returns them. Zero from the second
        /// attempt on.
        hold: u64,
    },
}
