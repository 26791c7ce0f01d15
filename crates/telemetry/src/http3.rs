//! Records of HTTP/3 (RFC 9114).

use crate::FieldSection;

/// An event of HTTP/3 on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Http3Record {
    /// The settings of one end were sent or received (RFC 9114 §7.2.4).
    ParametersSet {
        /// True if they are the peer's, false if they are ours.
        by_peer: bool,
        /// The settings of that end, with the default for each that it did not send.
        parameters: Http3Parameters,
    },
    /// A client uses the settings stored with a session for early data (RFC 9114 §7.2.4.2).
    ParametersRestored {
        /// The remembered settings of the server.
        parameters: Http3Parameters,
    },
    /// The type of a stream was determined (RFC 9114 §6).
    StreamTypeSet {
        /// True if the peer has opened the stream.
        by_peer: bool,
        /// The ID of the stream.
        stream: u64,
        /// The purpose of the stream.
        stream_type: Http3StreamType,
    },
    /// The priority of a response was set or changed (RFC 9218).
    PriorityUpdated {
        /// The ID of the request's stream.
        stream: u64,
        /// The value of a `priority` field for it, empty for the defaults.
        new: String,
        /// True if the peer has requested it, false if this end has.
        by_peer: bool,
    },
    /// A frame is about to be sent.
    FrameCreated {
        /// The ID of the stream that carries the frame.
        stream: u64,
        /// The frame, without the content of DATA.
        frame: Http3Frame,
    },
    /// A frame, or the header of a DATA frame, was received.
    FrameParsed {
        /// The ID of the stream that carries the frame.
        stream: u64,
        /// The frame, without the content of DATA.
        frame: Http3Frame,
    },
    /// An HTTP Datagram was passed to the transport (RFC 9297 §2.1).
    DatagramCreated {
        /// The ID of the request's stream.
        stream: u64,
        /// The length of its payload in bytes, without the identifier of the stream.
        len: usize,
    },
    /// An HTTP Datagram was received (RFC 9297 §2.1).
    DatagramParsed {
        /// The ID of the request's stream.
        stream: u64,
        /// The length of its payload in bytes, without the identifier of the stream.
        len: usize,
    },
    /// The state of a session of WebTransport has changed.
    SessionUpdated {
        /// The ID of its CONNECT stream.
        session: u64,
        /// The change.
        change: SessionChange,
    },
}

/// A change of the state of a session of WebTransport.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SessionChange {
    /// The session is established.
    Opened {
        /// The dialect of the connection, such as `draft-14`.
        dialect: &'static str,
        /// The application protocol.
        protocol: Option<String>,
    },
    /// A server has refused the session.
    Refused {
        /// The reason.
        reason: String,
    },
    /// An end asks to end the session soon.
    Draining {
        /// True if the peer asks.
        by_peer: bool,
    },
    /// The session has ended.
    Closed {
        /// True if the peer has caused it, and `None` if the connection was lost.
        by_peer: Option<bool>,
        /// The code of the application that has closed it.
        code: Option<u32>,
        /// The message of the application, or the reason of another end.
        reason: String,
        /// Streams of both ends in the session.
        streams: u64,
        /// Received datagrams that were dropped because too many waited.
        datagrams_dropped: u64,
    },
}

/// The settings of one end, as far as courser implements them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Http3Parameters {
    /// The largest field section in bytes, counting 32 bytes for each line in addition. `None`
    /// without a limit.
    pub max_field_section_size: Option<u64>,
    /// The capacity of the dynamic table of the decoder in bytes (RFC 9204 §5).
    pub max_table_capacity: u64,
    /// The number of streams that may be blocked on that table (RFC 9204 §5).
    pub blocked_streams: u64,
    /// True if extended CONNECT is accepted (RFC 9220).
    pub extended_connect: bool,
    /// True if HTTP Datagrams are accepted (RFC 9297).
    pub datagrams: bool,
}

/// The type of a stream (RFC 9114 §6, RFC 9204 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Http3StreamType {
    /// A request and its response.
    Request,
    /// The control stream of one end.
    Control,
    /// A push stream of a server (RFC 9114 §6.2.2).
    Push,
    /// The stream with the instructions of a QPACK encoder.
    QpackEncoder,
    /// The stream with the instructions of a QPACK decoder.
    QpackDecoder,
    /// Another type, with its number.
    Other(u64),
}

/// A frame of HTTP/3 (RFC 9114 §7). Lengths are those of the payload in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Http3Frame {
    /// DATA, without its content.
    Data {
        /// The length of the content.
        len: u64,
    },
    /// HEADERS, with the field lines that may be recorded (RFC 9114 §7.2.2).
    Headers {
        /// The length of the encoded section.
        len: u64,
        /// The field lines, as far as they may be recorded.
        section: FieldSection,
    },
    /// CANCEL_PUSH (RFC 9114 §7.2.3).
    CancelPush {
        /// The ID of the push that is cancelled.
        push: u64,
    },
    /// SETTINGS, with the identifiers and values in their order, at most 64.
    Settings {
        /// The pairs of identifier and value.
        settings: Vec<(u64, u64)>,
    },
    /// GOAWAY, which starts a graceful shutdown (RFC 9114 §7.2.6).
    GoAway {
        /// The ID of the first stream, or of the first push, that is not processed.
        id: u64,
    },
    /// MAX_PUSH_ID, by which a client permits pushes (RFC 9114 §7.2.7).
    MaxPushId {
        /// The largest push ID that is accepted.
        push: u64,
    },
    /// PRIORITY_UPDATE for a request (RFC 9218 §7).
    PriorityUpdate {
        /// The ID of the request's stream.
        stream: u64,
        /// The value for its `priority` field, empty for the defaults.
        value: String,
    },
    /// ORIGIN, the list of origins of the server (RFC 9412).
    Origin {
        /// The length of the payload.
        len: u64,
        /// The number of origins.
        origins: usize,
    },
    /// A frame of another type, including unknown and reserved types.
    Other {
        /// The type on the wire.
        frame_type: u64,
        /// The length of the payload.
        len: u64,
    },
}
