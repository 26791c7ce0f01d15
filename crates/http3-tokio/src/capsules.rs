//! Capsules on the stream of a CONNECT (RFC 9297 §3).

use std::task::{Context, Poll};

use bytes::Bytes;
use courser_http3::{Capsule, CapsuleReader};

use super::datagrams::DatagramError;
use super::error::Error;
use super::upgrade::Upgraded;

/// The capsule protocol on an [`Upgraded`] stream, with its datagrams.
///
/// Datagrams are sent in QUIC DATAGRAM frames if both ends support them, and otherwise in DATAGRAM capsules (RFC
/// 9297 §3.5), which are reliable. [`Capsules::next`] returns both. Capsules of types that are not
/// [accepted](Capsules::accept) are skipped without being stored.
#[derive(Debug)]
pub struct Capsules {
    stream: Upgraded,
    reader: CapsuleReader,
    /// Accepted types with the longest allowed values.
    accepted: Vec<(u64, usize)>,
    has_ended: bool,
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
        Self {
            stream,
            reader: CapsuleReader::default(),
            accepted: vec![(Capsule::DATAGRAM, LONGEST_DATAGRAM)],
            has_ended: false,
        }
    }

    /// Also accepts capsules of a type with values of up to `longest` bytes. A longer value ends the stream with
    /// `H3_EXCESSIVE_LOAD`.
    #[must_use]
    pub fn accept(mut self, kind: u64, longest: usize) -> Self {
        self.accepted.retain(|(known, _)| *known != kind);
        self.accepted.push((kind, longest));
        self
    }

    /// Sends a capsule.
    ///
    /// # Errors
    /// Returns an error if the peer has stopped reading or the connection is closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing or, with the next write, the whole capsule.
    pub async fn send(&mut self, kind: u64, value: &[u8]) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(value.len() + 16);
        Capsule::encode(&mut bytes, kind, value);
        self.stream.write_chunk(bytes.into()).await
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

    /// Waits for the next datagram or capsule. Returns `None` when the peer has ended the stream.
    ///
    /// # Errors
    /// Returns an error if a capsule is too long or truncated, which ends the stream, if the peer has reset the
    /// stream, or if the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn next(&mut self) -> Result<Option<Received>, Error> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Received>, Error>> {
        if let Some(datagrams) = self.stream.datagrams()
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
            match std::task::ready!(self.stream.poll_chunk(cx))? {
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

    /// Ends both directions of the stream with the error.
    fn fail(&mut self, error: courser_http3::Error) -> Error {
        self.has_ended = true;
        self.stream.abort(error)
    }

    /// Returns the underlying stream. An incomplete capsule that was already read is lost.
    pub fn into_inner(self) -> Upgraded {
        self.stream
    }
}

/// Longest accepted datagram, above any that UDP can carry.
const LONGEST_DATAGRAM: usize = 64 * 1024;
