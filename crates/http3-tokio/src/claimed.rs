//! Streams and frames that arrived for an extension of the application.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes, BytesMut};
use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;
use courser_http3::{self as http3, Code, Scope};
use courser_quic::hooks::{Ticket, Waiters};
use courser_quic::{ReadError, RecvStream, SendStream, StreamId};

use super::failure::var_int;

/// A stream of the peer that the application has claimed.
///
/// Dropping it ends our half in order (FIN) and stops the peer's half with the code 0; use
/// [`refuse`](Self::refuse) for another code.
#[derive(Debug)]
pub struct ClaimedStream {
    /// The type of a unidirectional stream, or the first integer of a bidirectional one.
    pub stream_type: u64,
    /// Our half of a bidirectional stream, `None` for unidirectional ones.
    pub send: Option<SendStream>,
    /// The peer's half, behind the type.
    pub receive: ClaimedReceive,
}

impl ClaimedStream {
    /// Returns the number of the stream.
    pub fn id(&self) -> StreamId {
        self.receive.stream.id()
    }

    /// Stops the stream, and resets our half.
    pub fn refuse(mut self, code: Code) {
        // It may be over already.
        let _ = self.receive.stream.stop(var_int(code));
        if let Some(send) = &mut self.send {
            let _ = send.reset(var_int(code));
        }
    }
}

/// The peer's half of a claimed stream.
#[derive(Debug)]
pub struct ClaimedReceive {
    /// Bytes that were read together with the type.
    first: Bytes,
    stream: RecvStream,
}

impl ClaimedReceive {
    pub(super) const fn new(first: Bytes, stream: RecvStream) -> Self {
        Self { first, stream }
    }

    /// Reads a variable-length integer (RFC 9000 §16), such as the session ID of WebTransport.
    /// Returns `None` if the stream ends before it.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream, or if the connection is over.
    ///
    /// # Cancel safety
    /// Safe: a future that is dropped before it is ready has taken nothing.
    pub async fn read_varint(&mut self) -> Result<Option<u64>, ReadError> {
        loop {
            if let Some(value) = take_varint(&mut self.first) {
                return Ok(Some(value));
            }
            let Some(more) = self.stream.read_chunk(usize::MAX).await? else {
                return Ok(None);
            };
            if self.first.is_empty() {
                self.first = more;
                continue;
            }
            // Less than one integer, and rarely at all.
            let mut joined = BytesMut::from(&self.first[..]);
            joined.extend_from_slice(&more);
            self.first = joined.freeze();
        }
    }

    /// Returns up to `max_length` of the next bytes without copying them; `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the peer has reset the stream, or if the connection is over.
    ///
    /// # Cancel safety
    /// Safe: a future that is dropped before it is ready has read nothing.
    pub async fn read_chunk(&mut self, max_length: usize) -> Result<Option<Bytes>, ReadError> {
        if self.first.is_empty() {
            return self.stream.read_chunk(max_length).await;
        }
        let len = self.first.len().min(max_length);
        Ok(Some(self.first.split_to(len)))
    }

    /// Returns the bytes that were read already, and the stream for those behind them.
    pub fn into_parts(self) -> (Bytes, RecvStream) {
        (self.first, self.stream)
    }
}

fn take_varint(bytes: &mut Bytes) -> Option<u64> {
    let first = *bytes.first()?;
    let len = 1 << (first >> 6);
    let whole = bytes.get(..len)?;
    let rest = whole.iter().skip(1);
    let value = rest.fold(u64::from(first & 0x3f), |value, byte| {
        (value << 8) | u64::from(*byte)
    });
    bytes.advance(len);
    Some(value)
}

/// A frame of a type that the application has claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtensionFrame {
    /// The request stream of the frame, or `None` for the control stream.
    pub stream: Option<StreamId>,
    /// The type of the frame.
    pub frame_type: u64,
    /// Its payload, no longer than was claimed.
    pub payload: Bytes,
}

/// The streams and frames that wait for the application.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<ClaimedState>,
}

#[derive(Debug, Default)]
struct ClaimedState {
    streams: VecDeque<ClaimedStream>,
    frames: VecDeque<ExtensionFrame>,
    /// The bytes of all payloads.
    frame_bytes: usize,
    waiting: Waiters,
    is_over: bool,
}

impl Queue {
    /// Adds a stream. Returns it if there are too many, or the connection is over.
    pub(super) fn add_stream(&self, stream: ClaimedStream) -> Result<(), ClaimedStream> {
        let mut state = self.state.hold();
        if state.is_over || state.streams.len() == MOST_STREAMS {
            return Err(stream);
        }
        state.streams.push_back(stream);
        let woken = state.wake();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Adds a frame, and the tasks to wake to `woken`.
    ///
    /// # Errors
    /// Returns an error of this scope if too many frames wait.
    pub(super) fn add_frame(
        &self,
        frame: ExtensionFrame,
        woken: &mut Vec<Waker>,
    ) -> Result<(), http3::Error> {
        let mut state = self.state.hold();
        let bytes = state.frame_bytes + frame.payload.len();
        if state.frames.len() == MOST_FRAMES || bytes > MOST_FRAME_BYTES {
            return Err(http3::Error {
                code: Code::EXCESSIVE_LOAD,
                scope: match frame.stream {
                    Some(_) => Scope::Stream,
                    None => Scope::Connection,
                },
                reason: "frames of an extension pile up",
            });
        }
        if !state.is_over {
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

    /// Takes everything out, because the peer does not support the extension.
    pub(super) fn take_streams(&self) -> VecDeque<ClaimedStream> {
        let mut state = self.state.hold();
        state.frames.clear();
        state.frame_bytes = 0;
        std::mem::take(&mut state.streams)
    }

    /// Drops streams, whose connection is over. Frames that have arrived can still be taken.
    pub(super) fn on_end(&self) {
        let mut state = self.state.hold();
        state.is_over = true;
        let streams = std::mem::take(&mut state.streams);
        let woken = state.wake();
        drop(state);
        drop(streams);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl ClaimedState {
    fn wait<T>(&mut self, waker: ForeignWaker, ticket: &mut Ticket) -> Poll<Option<T>> {
        if self.is_over {
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

/// The maximum number of claimed streams that wait to be accepted (limit K202, attack A122).
const MOST_STREAMS: usize = 64;
/// The maximum number of claimed frames that wait for the application (limit K203).
const MOST_FRAMES: usize = 256;
/// The maximum number of their bytes (limit K203): one longest payload always fits.
const MOST_FRAME_BYTES: usize = 65_536;

#[cfg(test)]
mod tests;
