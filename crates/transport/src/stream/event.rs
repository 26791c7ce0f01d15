//! Events of streams for the application, and errors of its calls.

use std::{fmt, io};

use courser_wire::{Direction, StreamId};

/// An event of a stream that the application may want to handle.
///
/// Events are edge-triggered: an event is queued only after a call of the application has reported that
/// the stream is blocked, empty or absent. So the application's own calls bound the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened streams. Call [`Streams::accept`](super::Streams::accept) until it returns
    /// `None`.
    Opened {
        /// The direction of the streams.
        direction: Direction,
    },
    /// A read that was blocked would now return bytes, the end or a reset.
    Readable {
        /// The stream.
        id: StreamId,
    },
    /// A write that was blocked would now accept bytes.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// The peer asked us to stop sending, and the stream has been reset. For a stream that the
    /// peer opened, this event may come before the application accepts the stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The application error code of the peer.
        code: u64,
        /// True if [`Streams::finish`](super::Streams::finish) had been called.
        was_finished: bool,
    },
    /// The peer has acknowledged the bytes that
    /// [`Streams::await_acknowledged`](super::Streams::await_acknowledged) asked for.
    Acknowledged {
        /// The stream.
        id: StreamId,
        /// All bytes below this offset are acknowledged.
        len: u64,
    },
    /// The deadline of the stream passed before the peer had received everything, and the stream
    /// was reset.
    Expired {
        /// The stream.
        id: StreamId,
    },
    /// The sending part is over: all data or the reset was acknowledged. After
    /// [`StreamEvent::Stopped`] it may come before the application accepts the stream.
    Finished {
        /// The stream.
        id: StreamId,
    },
    /// The peer allows more streams, after [`Streams::open`](super::Streams::open) has returned `None`.
    Available {
        /// The direction of the streams.
        direction: Direction,
    },
}

/// The outcome of a STREAM frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamOutcome {
    /// The frame contained new bytes or the end of the stream for the first time.
    Fresh,
    /// The content was received before, or the application has stopped reading.
    Known,
    /// The frame would open one more gap than allowed (attack limit K02). The packet must not be acknowledged, so
    /// that the peer repeats it.
    Refused,
}

/// The outcome for the bytes of a STREAM frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stored {
    /// The bytes are stored, were received before, or are not needed any more: the packet may be
    /// acknowledged.
    Kept,
    /// The frame would open one more gap than allowed (attack limit K02). The packet must not be acknowledged, so
    /// that the peer repeats it.
    Refused,
}

/// The error for a stream, or a part of it, that has ended, was abandoned or never existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClosedStream;

/// The error of a write that accepted no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// Too many bytes are queued already; a [`StreamEvent::Writable`] follows.
    Blocked,
    /// The peer sent STOP_SENDING with this application error code.
    Stopped(u64),
    /// The stream is finished, reset or gone.
    ClosedStream,
}

/// The error of a read that returned no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// Nothing has arrived yet; a [`StreamEvent::Readable`] follows.
    Blocked,
    /// The peer sent RESET_STREAM with this application error code.
    Reset(u64),
    /// Reading was stopped, the stream is gone, or the connection is over and all received bytes
    /// are read.
    ClosedStream,
    /// The stream was read without order before, and must be read so to its end.
    Unordered,
}

/// The error of [`Streams::finish`](super::Streams::finish).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinishError {
    /// The peer sent STOP_SENDING with this application error code; the stream was reset.
    Stopped(u64),
    /// The stream is already finished, reset or gone.
    ClosedStream,
}

/// The error of [`Streams::reset_at`](super::Streams::reset_at).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetAtError {
    /// The peer does not accept RESET_STREAM_AT. draft-ietf-quic-reliable-stream-reset-10 §3.
    Unsupported,
    /// The peer has received everything, or the stream was reset before.
    ClosedStream,
}

impl fmt::Display for ResetAtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("the peer does not accept RESET_STREAM_AT"),
            Self::ClosedStream => ClosedStream.fmt(f),
        }
    }
}

impl std::error::Error for ResetAtError {}

impl From<ClosedStream> for ResetAtError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl fmt::Display for ClosedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stream is closed")
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("the send buffer is full"),
            Self::Stopped(code) => write!(f, "the peer stopped reading with code {code}"),
            Self::ClosedStream => ClosedStream.fmt(f),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("nothing to read yet"),
            Self::Reset(code) => write!(f, "the peer reset the stream with code {code}"),
            Self::ClosedStream => ClosedStream.fmt(f),
            Self::Unordered => f.write_str("the stream is read without order"),
        }
    }
}

impl fmt::Display for FinishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(code) => write!(f, "the peer stopped reading with code {code}"),
            Self::ClosedStream => ClosedStream.fmt(f),
        }
    }
}

impl std::error::Error for ClosedStream {}
impl std::error::Error for WriteError {}
impl std::error::Error for ReadError {}
impl std::error::Error for FinishError {}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<ClosedStream> for ReadError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<ClosedStream> for FinishError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}
