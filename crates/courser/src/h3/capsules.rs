//! Capsules on the stream of a CONNECT (RFC 9297 §3).

use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3::{Capsule, CapsuleReader};

use super::datagrams::DatagramError;
use super::error::Error;
use super::upgrade::Upgraded;

/// The capsule protocol on an [`Upgraded`] stream, with its datagrams.
///
/// Datagrams travel in QUIC's DATAGRAM frames where both ends have them, and in DATAGRAM capsules
/// (RFC 9297 §3.5) where not, in which case none is lost; both come out of [`Capsules::next`].
/// Capsules of types that nobody [accepts](Capsules::accept) are skipped and not kept.
#[derive(Debug)]
pub struct Capsules {
    stream: Upgraded,
    reader: CapsuleReader,
    /// Types that are wanted, and how long their values may be.
    accepted: Vec<(u64, usize)>,
    is_over: bool,
}

/// A datagram or capsule that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Received {
    /// An HTTP Datagram, whichever way it came.
    Datagram(Bytes),
    /// A capsule of an accepted type.
    Capsule(Capsule),
}

impl Capsules {
    /// Speaks the capsule protocol on a stream. Accepts datagrams of up to 64 KiB and no other
    /// capsules.
    pub fn new(stream: Upgraded) -> Self {
        if let Some(datagrams) = stream.datagrams() {
            datagrams.accept();
        }
        Self {
            stream,
            reader: CapsuleReader::default(),
            accepted: vec![(Capsule::DATAGRAM, LONGEST_DATAGRAM)],
            is_over: false,
        }
    }

    /// Accepts capsules of a type too, with values of up to `longest` bytes. A longer one ends the
    /// stream with `H3_EXCESSIVE_LOAD`.
    #[must_use]
    pub fn accept(mut self, kind: u64, longest: usize) -> Self {
        self.accepted.retain(|(known, _)| *known != kind);
        self.accepted.push((kind, longest));
        self
    }

    /// Sends a capsule.
    ///
    /// # Errors
    /// When the peer wants no more, or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has sent nothing, or all of it goes with what is sent next.
    pub async fn send(&mut self, kind: u64, value: &[u8]) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(value.len() + 16);
        Capsule::encode(&mut bytes, kind, value);
        self.stream.write_chunk(bytes.into()).await
    }

    /// Sends a datagram: in a DATAGRAM frame, or in a capsule if one of the ends has no such frames
    /// or the path does not carry one of this size.
    ///
    /// # Errors
    /// As [`Capsules::send`].
    ///
    /// # Cancel safety
    /// As [`Capsules::send`].
    pub async fn send_datagram(&mut self, payload: &[u8]) -> Result<(), Error> {
        match self
            .stream
            .datagrams()
            .map(|datagrams| datagrams.send(payload))
        {
            Some(Ok(())) => Ok(()),
            Some(Err(DatagramError::ConnectionLost(error))) => Err(error.into()),
            Some(Err(DatagramError::StreamOver)) => Err(Error::closed()),
            None | Some(Err(_)) => self.send(Capsule::DATAGRAM, payload).await,
        }
    }

    /// Waits for the next datagram or capsule; `None` when the peer has ended the stream.
    ///
    /// # Errors
    /// When a capsule is too long or cut off, which ends the stream; when the peer has given up;
    /// when the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn next(&mut self) -> Result<Option<Received>, Error> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Received>, Error>> {
        if let Some(datagrams) = self.stream.datagrams()
            && let Poll::Ready(Some(payload)) = datagrams.poll_receive(cx)
        {
            return Poll::Ready(Ok(Some(Received::Datagram(payload))));
        }
        while !self.is_over {
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
            match std::task::ready!(self.stream.poll_chunk(cx))? {
                Some(chunk) => self.reader.push(chunk),
                None => {
                    self.is_over = true;
                    if let Err(error) = self.reader.finish() {
                        return Poll::Ready(Err(self.fail(error)));
                    }
                }
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Both halves of the stream end with the error.
    fn fail(&mut self, error: courser_http3::Error) -> Error {
        self.is_over = true;
        self.stream.abort(error)
    }

    /// The stream beneath. What was read of a capsule is lost.
    pub fn into_inner(self) -> Upgraded {
        self.stream
    }
}

/// Every datagram that UDP carries.
const LONGEST_DATAGRAM: usize = 64 * 1024;
