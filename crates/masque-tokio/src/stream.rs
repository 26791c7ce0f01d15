//! The stream of a tunnel, which carries capsules: of HTTP/3, or an upgraded one of HTTP/2 and HTTP/1.1.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use courser_http3::{Capsule, CapsuleReader};
use courser_http3_tokio::{
    self as h3, CapsuleReceiver, CapsuleSender, Capsules, Code, Datagrams, Received, Upgraded,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::ended::LostStream;
use crate::protocol::Protocol;
use crate::reset::Reset;

/// Both directions of a stream of capsules.
pub(crate) enum Stream {
    Http3(Box<Http3Stream>),
    Bytes(Box<ByteStream>),
    /// After a reset.
    Closed,
}

/// The stream of a CONNECT over HTTP/3.
pub(crate) struct Http3Stream {
    receiver: CapsuleReceiver,
    sender: CapsuleSender,
}

/// A stream of HTTP/2 or HTTP/1.1.
pub(crate) struct ByteStream {
    accepted: Vec<(u64, usize)>,
    io: TokioIo<hyper::upgrade::Upgraded>,
    reader: CapsuleReader,
    has_ended: bool,
    reset: Reset,
    input: BytesMut,
    output: BytesMut,
}

impl Stream {
    /// Takes the stream of a CONNECT over HTTP/3, and its datagrams.
    pub(crate) fn of_http3(stream: Upgraded, protocol: &Protocol) -> (Self, Option<Datagrams>) {
        let accept =
            |capsules: Capsules, (kind, longest): &(u64, usize)| capsules.accept(*kind, *longest);
        let capsules = protocol
            .capsules()
            .iter()
            .fold(Capsules::new(stream), accept);
        let (sender, receiver) = capsules.split();
        let (receiver, datagrams) = receiver.without_datagrams();
        let stream = Http3Stream { receiver, sender };
        (Self::Http3(Box::new(stream)), datagrams)
    }

    pub(crate) fn of_hyper(
        stream: hyper::upgrade::Upgraded,
        protocol: &Protocol,
        reset: Reset,
    ) -> Self {
        // Longer datagrams are malformed, as are those of unknown contexts with more bytes than a packet can have.
        let mut accepted = vec![(Capsule::DATAGRAM, protocol.longest_payload() + 16)];
        accepted.extend_from_slice(protocol.capsules());
        Self::Bytes(Box::new(ByteStream {
            accepted,
            io: TokioIo::new(stream),
            reader: CapsuleReader::default(),
            has_ended: false,
            reset,
            input: BytesMut::new(),
            output: BytesMut::new(),
        }))
    }

    /// Polls for the next datagram or accepted capsule; `None` at the end of the direction.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Received>, Failed>> {
        match self {
            Self::Http3(stream) => {
                let next = ready!(stream.receiver.poll_next(cx));
                Poll::Ready(next.map_err(Failed::from))
            }
            Self::Bytes(stream) => stream.poll_next(cx),
            Self::Closed => Poll::Ready(Ok(None)),
        }
    }

    /// Polls until everything that was put is written, or there is room for more.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LostStream>> {
        match self {
            Self::Http3(stream) => {
                let flushed = ready!(stream.sender.poll_flush(cx));
                Poll::Ready(flushed.map_err(LostStream::from))
            }
            Self::Bytes(stream) => stream.poll_flush(cx),
            Self::Closed => Poll::Ready(Ok(())),
        }
    }

    /// Puts a capsule, such as one with a datagram, after [`poll_room`](Self::poll_room) was ready.
    pub(crate) fn put(&mut self, kind: u64, value: &[u8]) {
        match self {
            // One capsule always fits after a flush.
            Self::Http3(stream) => drop(stream.sender.queue(kind, value)),
            Self::Bytes(stream) => {
                let mut capsule = Vec::with_capacity(value.len() + 16);
                Capsule::encode(&mut capsule, kind, value);
                stream.output.extend_from_slice(&capsule);
            }
            Self::Closed => {}
        }
    }

    /// Returns true if further datagrams can be put before the next flush.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Http3(stream) => !stream.sender.is_waiting(),
            Self::Bytes(stream) => stream.output.len() < OUTPUT,
            Self::Closed => true,
        }
    }

    /// Ends the sending direction after what was put.
    pub(crate) fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = ready!(self.poll_room(cx));
        if let Self::Bytes(stream) = self {
            // An error means that the stream has ended anyway.
            let _ = ready!(Pin::new(&mut stream.io).poll_shutdown(cx));
        }
        // The stream of HTTP/3 finishes when its halves are dropped.
        *self = Self::Closed;
        Poll::Ready(())
    }

    /// Ends both directions at once, over HTTP/3 with a code.
    pub(crate) fn reset(&mut self, code: Code) {
        match std::mem::replace(self, Self::Closed) {
            Self::Http3(stream) => stream.sender.reset(code),
            // Dropped then. A connection of HTTP/1.1 is closed.
            Self::Bytes(stream) => stream.reset.reset(),
            Self::Closed => {}
        }
    }
}

/// The reason why a stream has no further capsules.
#[derive(Debug)]
pub(crate) enum Failed {
    Lost(LostStream),
    /// The other end has violated a rule, and has to be told so by a reset.
    Malformed {
        code: Code,
        reason: &'static str,
    },
}

impl From<courser_http3::Error> for Failed {
    fn from(error: courser_http3::Error) -> Self {
        Self::Malformed {
            code: error.code,
            reason: error.reason,
        }
    }
}

impl From<h3::Error> for Failed {
    fn from(error: h3::Error) -> Self {
        match error {
            h3::Error::Http {
                origin: h3::Origin::Local,
                code,
                reason,
            } => Self::Malformed { code, reason },
            error => Self::Lost(error.into()),
        }
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Lost(error.into())
    }
}

impl ByteStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Received>, Failed>> {
        loop {
            let accepted = &self.accepted;
            let longest = |kind| {
                let found = accepted.iter().find(|(known, _)| *known == kind);
                found.map(|(_, longest)| *longest)
            };
            match self.reader.poll(longest) {
                Ok(Some(capsule)) if capsule.kind == Capsule::DATAGRAM => {
                    return Poll::Ready(Ok(Some(Received::Datagram(capsule.value))));
                }
                Ok(Some(capsule)) => return Poll::Ready(Ok(Some(Received::Capsule(capsule)))),
                Ok(None) if self.has_ended => {
                    let whole = self.reader.finish();
                    return Poll::Ready(whole.map(|()| None).map_err(Failed::from));
                }
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
            self.input.resize(INPUT, 0);
            let mut buffer = ReadBuf::new(&mut self.input);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
            let len = buffer.filled().len();
            match len {
                0 => self.has_ended = true,
                len => {
                    self.input.truncate(len);
                    self.reader.push(self.input.split().freeze());
                }
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LostStream>> {
        while !self.output.is_empty() {
            match ready!(Pin::new(&mut self.io).poll_write(cx, &self.output))? {
                0 => return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into())),
                written => self.output.advance(written),
            }
        }
        Poll::Ready(Ok(ready!(Pin::new(&mut self.io).poll_flush(cx))?))
    }
}

/// Bytes that are read at a time.
const INPUT: usize = 16 * 1024;

/// Bytes of capsules that are written at a time.
const OUTPUT: usize = 16 * 1024;
