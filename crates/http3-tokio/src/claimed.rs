//! Streams and frames received for an extension of the application.

mod groups;
mod sessions;

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes, BytesMut};
use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;
use courser_http3::{self as http3, Code, Scope};
use courser_quic::hooks::{RecvStreamHooks as _, Ticket, Waiters};
use courser_quic::{ReadError, RecvStream, SendStream, StreamId};

pub(super) use self::groups::Groups;
pub(super) use self::sessions::{Lanes, Routed};
use super::failure::var_int;

/// A stream of the peer that belongs to an extension of the application.
///
/// Dropping it finishes the sending direction (FIN) and stops the receiving direction with code 0; use
/// [`refuse`](Self::refuse) for another code.
#[derive(Debug)]
pub struct ClaimedStream {
    /// The type of a unidirectional stream, or the first integer of a bidirectional one.
    pub stream_type: u64,
    /// The sending direction of a bidirectional stream; `None` for unidirectional ones.
    pub send: Option<SendStream>,
    /// The receiving direction, after the type.
    pub receive: ClaimedReceive,
    /// True if what is sent on it counts for its session already.
    pub(super) is_in_session: bool,
}

impl ClaimedStream {
    /// Returns the stream ID.
    pub fn id(&self) -> StreamId {
        self.receive.stream.id()
    }

    /// Stops the receiving direction and resets the sending direction.
    pub fn refuse(mut self, code: Code) {
        self.receive.release();
        // Fails if the stream has ended.
        let _ = self.receive.stream.stop(var_int(code));
        if let Some(send) = &mut self.send {
            let _ = send.reset(var_int(code));
        }
    }
}

/// The receiving direction of a claimed stream.
#[derive(Debug)]
pub struct ClaimedReceive {
    /// Bytes before `first`, which are the type and integers that were taken.
    header: u64,
    /// Bytes that were read together with the type.
    first: Bytes,
    stream: RecvStream,
    /// Bytes that were withheld from flow control.
    held: u64,
}

impl ClaimedReceive {
    pub(super) const fn new(header: usize, first: Bytes, stream: RecvStream) -> Self {
        Self {
            header: header as u64,
            first,
            stream,
            held: 0,
        }
    }

    /// Withholds the bytes that were read from flow control while the stream waits to be accepted, unless they are few.
    pub(super) fn hold(&mut self) {
        let len = self.first.len() as u64;
        if len > MOST_WITH_CREDIT {
            self.stream.hold_credit(len);
            self.held = len;
        }
    }

    /// Grants credit for bytes that were withheld.
    pub(super) fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        if held > 0 {
            self.stream.release_credit(held);
        }
    }

    /// Returns the number of bytes before the next ones: those of the type, and of the integers that were read. The peer
    /// may have encoded them longer than necessary.
    pub const fn header_len(&self) -> u64 {
        self.header
    }

    /// Reads a variable-length integer (RFC 9000 §16), such as the session ID of WebTransport. Returns `None` if
    /// the stream ends before it.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream or the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read_varint(&mut self) -> Result<Option<u64>, ReadError> {
        loop {
            if let Some(value) = self.take_varint() {
                return Ok(Some(value));
            }
            let Some(more) = self.stream.read_chunk(usize::MAX).await? else {
                return Ok(None);
            };
            if self.first.is_empty() {
                self.first = more;
                continue;
            }
            // Incomplete integers are short and rare, so they are copied.
            let mut joined = BytesMut::from(&self.first[..]);
            joined.extend_from_slice(&more);
            self.first = joined.freeze();
        }
    }

    /// Returns the integer at the start if it was already read.
    pub(super) fn take_varint(&mut self) -> Option<u64> {
        let before = self.first.len();
        let value = take_varint(&mut self.first);
        self.header += (before - self.first.len()) as u64;
        value
    }

    /// Returns up to `max_length` of the next bytes without copying them, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream or the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn read_chunk(&mut self, max_length: usize) -> Result<Option<Bytes>, ReadError> {
        if self.first.is_empty() {
            return self.stream.read_chunk(max_length).await;
        }
        let len = self.first.len().min(max_length);
        Ok(Some(self.first.split_to(len)))
    }

    /// Returns the bytes that were already read, and the stream for the following ones.
    pub fn into_parts(self) -> (Bytes, RecvStream) {
        (self.first, self.stream)
    }
}

fn take_varint(bytes: &mut Bytes) -> Option<u64> {
    let (value, len) = peek_varint(bytes)?;
    bytes.advance(len);
    Some(value)
}

/// Returns the integer at the start and its length, if it is complete.
pub(super) fn peek_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let len = 1 << (first >> 6);
    let whole = bytes.get(..len)?;
    let rest = whole.iter().skip(1);
    let value = rest.fold(u64::from(first & 0x3f), |value, byte| {
        (value << 8) | u64::from(*byte)
    });
    Some((value, len))
}

/// A frame of a type that the application has claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtensionFrame {
    /// The request stream of the frame, or `None` for the control stream.
    pub stream: Option<StreamId>,
    /// The frame type, as claimed with [`Extensions::frame`](courser_http3::Extensions::frame).
    pub frame_type: u64,
    /// The payload, within the claimed length.
    pub payload: Bytes,
}

/// The streams and frames of a group that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<ClaimedState>,
}

#[derive(Debug, Default)]
struct ClaimedState {
    streams: VecDeque<ClaimedStream>,
    frames: VecDeque<ExtensionFrame>,
    /// Total size of all payloads in bytes.
    frame_bytes: usize,
    waiting: Waiters,
    has_ended: bool,
}

impl Queue {
    /// Adds a stream. Returns it if the queue is full or the connection is closed.
    pub(super) fn add_stream(&self, stream: ClaimedStream) -> Option<ClaimedStream> {
        let mut state = self.state.hold();
        if state.has_ended || state.streams.len() == MAX_STREAMS {
            return Some(stream);
        }
        state.streams.push_back(stream);
        let woken = state.wake();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        None
    }

    /// Adds a frame, and appends the tasks to wake to `woken`.
    ///
    /// # Errors
    /// Returns an error of this scope if the queue is full.
    pub(super) fn add_frame(
        &self,
        frame: ExtensionFrame,
        woken: &mut Vec<Waker>,
    ) -> Result<(), http3::Error> {
        let mut state = self.state.hold();
        let bytes = state.frame_bytes + frame.payload.len();
        if state.frames.len() == MAX_FRAMES || bytes > MAX_FRAME_BYTES {
            return Err(http3::Error {
                code: Code::EXCESSIVE_LOAD,
                scope: match frame.stream {
                    Some(_) => Scope::Stream,
                    None => Scope::Connection,
                },
                reason: "too many unread frames of an extension",
            });
        }
        if !state.has_ended {
            state.frame_bytes = bytes;
            state.frames.push_back(frame);
            woken.append(&mut state.wake());
        }
        Ok(())
    }

    pub(super) fn poll_stream(
        &self,
        cx: &Context<'_>,
        ticket: &mut Ticket,
    ) -> Poll<Option<ClaimedStream>> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.state.hold();
        match state.streams.pop_front() {
            Some(stream) => Poll::Ready(Some(stream)),
            None => state.wait(waker, ticket),
        }
    }

    pub(super) fn poll_frame(
        &self,
        cx: &Context<'_>,
        ticket: &mut Ticket,
    ) -> Poll<Option<ExtensionFrame>> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.state.hold();
        match state.frames.pop_front() {
            Some(frame) => {
                state.frame_bytes -= frame.payload.len();
                Poll::Ready(Some(frame))
            }
            None => state.wait(waker, ticket),
        }
    }

    pub(super) fn forget(&self, ticket: &mut Ticket) {
        if ticket.is_some() {
            self.state.hold().waiting.forget(ticket);
        }
    }

    /// Removes all streams, because the peer does not support the extension.
    pub(super) fn take_streams(&self) -> VecDeque<ClaimedStream> {
        let mut state = self.state.hold();
        state.frames.clear();
        state.frame_bytes = 0;
        std::mem::take(&mut state.streams)
    }

    /// Drops the streams of a closed connection. Frames that have arrived can still be taken.
    pub(super) fn on_end(&self) {
        let mut state = self.state.hold();
        state.has_ended = true;
        let streams = std::mem::take(&mut state.streams);
        let woken = state.wake();
        drop(state);
        drop(streams);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl ClaimedState {
    fn wait<T>(&mut self, waker: ForeignWaker, ticket: &mut Ticket) -> Poll<Option<T>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.waiting.register(ticket, waker);
        Poll::Pending
    }

    fn wake(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        self.waiting.wake_all(&mut woken);
        woken
    }
}

/// Bytes of a stream of a session that may be read before it is accepted, and give credit (limit K594). Most streams bring
/// less, and need no lock for it.
const MOST_WITH_CREDIT: u64 = 1024;
/// Largest number of claimed streams that wait to be accepted (limit K202, attack A122).
const MAX_STREAMS: usize = 64;
/// Largest number of claimed frames that wait for the application (limit K203).
const MAX_FRAMES: usize = 256;
/// Largest size of their payloads in bytes (limit K203); one payload of the largest size always fits.
const MAX_FRAME_BYTES: usize = 65_536;

#[cfg(test)]
mod tests;
