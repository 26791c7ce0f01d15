//! Capsules on the stream of a CONNECT (RFC 9297 §3).

mod encoding;
mod sender;

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use courser_http3::{Capsule, CapsuleReader};
use courser_quic::StreamId;
use courser_quic::hooks::ConnectionHooks as _;

use self::encoding::{encode, in_frame};
pub use self::sender::{CapsuleSender, CapsulesWait};
use super::datagrams::Datagrams;
use super::error::Error;
use super::failure::var_int;
use super::shared::Guard;
use super::upgrade::{End, ReceivingPart, SendingPart, Upgraded};

/// The capsule protocol on an [`Upgraded`] stream, with its datagrams.
///
/// Datagrams are sent in QUIC DATAGRAM frames if both ends support them, and otherwise in DATAGRAM capsules (RFC
/// 9297 §3.5), which are reliable. [`Capsules::next`] returns both. Capsules of types that are not
/// [accepted](Capsules::accept) are skipped without being stored.
///
/// [`split`](Self::split) returns halves for two tasks, so that a peer that gives no credit does not stop the
/// reader.
#[derive(Debug)]
pub struct Capsules {
    sender: SendingPart,
    receiver: Receiving,
    end: Option<End>,
}

/// A received datagram or capsule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Received {
    /// An HTTP Datagram, from a DATAGRAM frame or a capsule.
    Datagram(Bytes),
    /// A capsule of an accepted type.
    Capsule(Capsule),
}

impl Capsules {
    /// Runs the capsule protocol on a stream. Accepts only datagrams, of up to 64 KiB.
    pub fn new(stream: Upgraded) -> Self {
        if let Some(datagrams) = stream.datagrams() {
            datagrams.accept();
        }
        let (sender, part, end) = stream.into_parts();
        Self {
            sender,
            receiver: Receiving {
                part,
                reader: CapsuleReader::default(),
                accepted: vec![(Capsule::DATAGRAM, LONGEST_DATAGRAM)],
                has_ended: false,
            },
            end,
        }
    }

    /// Also accepts capsules of a type with values of up to `longest` bytes. A longer value ends the stream with
    /// `H3_EXCESSIVE_LOAD`.
    #[must_use]
    pub fn accept(mut self, kind: u64, longest: usize) -> Self {
        self.receiver.accepted.retain(|(known, _)| *known != kind);
        self.receiver.accepted.push((kind, longest));
        self
    }

    /// Splits the stream into its directions. The request ends when both halves are dropped.
    pub fn split(self) -> (CapsuleSender, CapsuleReceiver) {
        let end = self.end.map(Arc::new);
        let receiver = CapsuleReceiver {
            stream: self.sender.stream(),
            guard: self.sender.guard().clone(),
            receiving: self.receiver,
            _end: end.clone(),
        };
        let datagrams = receiver.receiving.part.datagrams.clone();
        let sender = CapsuleSender::new(self.sender, datagrams, end);
        (sender, receiver)
    }

    /// Sends a capsule.
    ///
    /// # Errors
    /// Returns an error if the peer has stopped reading or the connection is closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing or, with the next write, the whole capsule.
    pub async fn send(&mut self, kind: u64, value: &[u8]) -> Result<(), Error> {
        self.sender.write_chunk(encode(kind, value)).await
    }

    /// Sends a datagram in a DATAGRAM frame, or in a capsule if one end does not support such frames or the path
    /// does not carry this size.
    ///
    /// # Errors
    /// The errors of [`Capsules::send`].
    ///
    /// # Cancel safety
    /// The same as for [`Capsules::send`].
    pub async fn send_datagram(&mut self, payload: &[u8]) -> Result<(), Error> {
        let datagrams = self.receiver.part.datagrams.as_ref();
        match in_frame(datagrams, payload) {
            Some(sent) => sent,
            None => self.send(Capsule::DATAGRAM, payload).await,
        }
    }

    /// Waits for the next datagram or capsule. Returns `None` when the peer has ended the stream.
    ///
    /// # Errors
    /// Returns an error if a capsule is too long or truncated, which ends the stream, if the peer has reset the
    /// stream, or if the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn next(&mut self) -> Result<Option<Received>, Error> {
        let next = std::future::poll_fn(|cx| self.receiver.poll_next(cx)).await;
        next.map_err(|fault| match fault {
            // Ends both directions of the stream.
            Fault::Capsule(error) => {
                self.sender.reset(error.code);
                self.receiver.part.abort(error)
            }
            Fault::Stream(error) => error,
        })
    }

    /// Returns the underlying stream. An incomplete capsule that was already read is lost.
    pub fn into_inner(self) -> Upgraded {
        Upgraded::from_parts(self.sender, self.receiver.part, self.end)
    }
}

/// The receiving half of [`Capsules::split`]. Dropping it stops the receiving direction.
#[derive(Debug)]
pub struct CapsuleReceiver {
    receiving: Receiving,
    stream: StreamId,
    guard: Arc<Guard>,
    _end: Option<Arc<End>>,
}

impl CapsuleReceiver {
    /// Waits for the next datagram or capsule, like [`Capsules::next`].
    ///
    /// # Errors
    /// The errors of [`Capsules::next`]. A capsule that is too long or truncated ends both directions.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn next(&mut self) -> Result<Option<Received>, Error> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next datagram or capsule, like [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Received>, Error>> {
        let next = ready!(self.receiving.poll_next(cx));
        Poll::Ready(next.map_err(|fault| match fault {
            Fault::Capsule(error) => {
                self.guard
                    .quic
                    .abort_stream(self.stream, var_int(error.code));
                self.receiving.part.abort(error)
            }
            Fault::Stream(error) => error,
        }))
    }

    /// Returns only capsules from now on, because another task receives the datagrams of the request with
    /// [`Datagrams`].
    #[must_use]
    pub fn without_datagrams(mut self) -> (Self, Option<Datagrams>) {
        let datagrams = self.receiving.part.datagrams.take();
        (self, datagrams)
    }

    /// Returns the stream ID.
    pub const fn stream(&self) -> StreamId {
        self.stream
    }
}

/// The reader of one stream.
#[derive(Debug)]
struct Receiving {
    part: ReceivingPart,
    reader: CapsuleReader,
    /// Accepted types with the longest allowed values.
    accepted: Vec<(u64, usize)>,
    has_ended: bool,
}

/// The reason why reading failed.
enum Fault {
    /// The peer has sent an invalid capsule, and the stream must be aborted.
    Capsule(courser_http3::Error),
    Stream(Error),
}

impl Receiving {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Received>, Fault>> {
        if let Some(datagrams) = &self.part.datagrams
            && let Poll::Ready(Some(payload)) = datagrams.poll_receive(cx)
        {
            return Poll::Ready(Ok(Some(Received::Datagram(payload))));
        }
        while !self.has_ended {
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
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
            match ready!(self.part.poll_chunk(cx)).map_err(Fault::Stream)? {
                Some(chunk) => self.reader.push(chunk),
                None => {
                    self.has_ended = true;
                    if let Err(error) = self.reader.finish() {
                        return Poll::Ready(Err(self.fail(error)));
                    }
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    const fn fail(&mut self, error: courser_http3::Error) -> Fault {
        self.has_ended = true;
        Fault::Capsule(error)
    }
}

/// Longest accepted datagram, above any that UDP can carry.
const LONGEST_DATAGRAM: usize = 64 * 1024;
