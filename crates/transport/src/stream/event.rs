//! What the application is told about streams, and what its calls can fail with.

use std::fmt;

use courser_wire::{Direction, StreamId};

/// Something about streams that the application may want to react to.
///
/// Events are edges: one is queued only after the application has found the stream blocked,
/// empty or absent, so that the queue is bounded by what the application asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened streams; [`Streams::accept`](super::Streams::accept) until `None`.
    Opened {
        /// Which kind.
        direction: Direction,
    },
    /// A read that was blocked would now give bytes, the end or a reset.
    Readable {
        /// Which stream.
        id: StreamId,
    },
    /// A write that was blocked would now take bytes.
    Writable {
        /// Which stream.
        id: StreamId,
    },
    /// The peer does not want the rest of what we send; the stream has been reset. It may come
    /// for a stream of the peer that is not accepted yet.
    Stopped {
        /// Which stream.
        id: StreamId,
        /// The application error code the peer gave.
        code: u64,
        /// [`Streams::finish`](super::Streams::finish) had been called.
        was_finished: bool,
    },
    /// The sending part is over: all data acknowledged, or the reset acknowledged. After
    /// [`StreamEvent::Stopped`] it may come before the stream is accepted too.
    Finished {
        /// Which stream.
        id: StreamId,
    },
    /// The peer allows more streams after [`Streams::open`](super::Streams::open) had to
    /// refuse one.
    Available {
        /// Which kind.
        direction: Direction,
    },
}

/// What became of the bytes of a STREAM frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stored {
    /// They are kept, were known already or are not wanted: the packet may be acknowledged.
    Kept,
    /// There is no room for another gap (attack limit K02): the packet must not be
    /// acknowledged, so that the peer repeats it.
    Refused,
}

/// The stream is over, or this part of it was given up, or it never existed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosedStream;

/// Why nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// Too much is waiting already; a [`StreamEvent::Writable`] follows.
    Blocked,
    /// The peer sent STOP_SENDING with this application error code.
    Stopped(u64),
    /// The stream is finished, reset or gone.
    ClosedStream,
}

/// Why nothing was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// Nothing is there yet; a [`StreamEvent::Readable`] follows.
    Blocked,
    /// The peer sent RESET_STREAM with this application error code.
    Reset(u64),
    /// Reading was stopped, or the stream is gone, or the connection is over and all that had
    /// arrived is read.
    ClosedStream,
}

/// Why a stream could not be finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinishError {
    /// The peer sent STOP_SENDING with this application error code; the stream was reset.
    Stopped(u64),
    /// The stream is finished already, reset or gone.
    ClosedStream,
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
