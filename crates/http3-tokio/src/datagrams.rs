//! HTTP Datagrams of requests (RFC 9297 §2).

mod registry;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use courser_quic::hooks::ConnectionHooks as _;
use courser_quic::telemetry::Http3Record;
use courser_quic::{
    ConnectionError, DatagramOptions, DatagramSizeWatch, SendDatagramError, StreamId,
};

pub(super) use self::registry::{Delivery, Registry, UNUSED_DATAGRAM};
use super::shared::Guard;

/// The datagrams of one request, in both directions.
///
/// It is in the extensions of a request on a server, and of its response on a client, if
/// [`Config::datagrams`](super::Config::datagrams) is on; [`Upgraded::datagrams`] returns it too. The protocol
/// of the request defines the meaning of datagrams.
///
/// A request uses datagrams after the first call of [`accept`](Self::accept), [`negotiated`](Self::negotiated),
/// or a method that sends or receives. If the last clone is dropped before that, the request does not use them,
/// and a datagram from the peer aborts the request (`H3_DATAGRAM_ERROR`, RFC 9297 §2).
///
/// Up to 64 datagrams per request and 256 KiB over all requests wait to be received. Beyond that, the oldest
/// ones of the request are dropped. [`set_receive_limits`](Self::set_receive_limits) gives a request bounds of its
/// own, and [`dropped`](Self::dropped) counts.
///
/// Programs that exchange many datagrams do so in batches, which cost less than single ones:
///
/// ```
/// # mod courser { pub use courser_quic::*; pub use courser_http3_tokio as h3; }
/// # use courser::h3;
/// /// Echoes datagrams.
/// async fn echo(datagrams: h3::Datagrams) -> Result<(), h3::DatagramError> {
///     datagrams.set_receive_limits(1024, 1024 * 1024);
///     let mut batch = Vec::new();
///     while datagrams.receive_many(&mut batch, 64).await.is_some() {
///         datagrams.send_many(&mut batch)?;
///     }
///     Ok(())
/// }
/// ```
///
/// [`Upgraded::datagrams`]: super::Upgraded::datagrams
#[derive(Clone, Debug)]
pub struct Datagrams(Arc<Handle>);

#[derive(Debug)]
struct Handle {
    guard: Arc<Guard>,
    stream: u64,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.guard.datagrams.on_handle_dropped(self.stream) == Delivery::Refused {
            self.guard.refuse_datagram(self.stream);
        }
    }
}

/// The reason why a datagram was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// Datagrams are not enabled at both ends, in the settings of HTTP/3 or in QUIC. Capsules may work instead;
    /// see [`Capsules`](super::Capsules).
    #[error(
        "datagrams are not negotiated: both ends must send SETTINGS_H3_DATAGRAM and \
         max_datagram_frame_size"
    )]
    NotNegotiated,
    /// The datagram exceeds the largest size that can be sent.
    #[error("datagram of {size} bytes exceeds the limit of {max}: see max_size")]
    TooLarge {
        /// Size of the datagram in bytes.
        size: usize,
        /// Largest size in bytes that can be sent at present.
        max: usize,
    },
    /// The sending direction of the request stream has ended, or the stream does not belong to a request.
    #[error("the request stream has ended")]
    StreamOver,
    /// The QUIC connection is closed.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl DatagramError {
    /// Returns the reason why the connection is over, if that is the cause.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self {
            Self::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }

    /// Returns true if the connection was lost because of a timeout.
    pub fn is_timeout(&self) -> bool {
        self.connection_error()
            .is_some_and(ConnectionError::is_timeout)
    }
}

impl Datagrams {
    pub(super) fn new(guard: Arc<Guard>, stream: u64) -> Self {
        Self(Arc::new(Handle { guard, stream }))
    }

    /// Returns the stream of the request.
    pub fn stream(&self) -> StreamId {
        StreamId::from_value(self.0.stream)
    }

    /// Declares that the request uses datagrams before any is sent or received.
    pub fn accept(&self) {
        self.0.guard.datagrams.claim(self.0.stream);
    }

    /// Sends a datagram. It may be lost, or dropped in favour of a newer one before it is sent; see
    /// [`Connection::send_datagram`](courser_quic::Connection::send_datagram).
    ///
    /// # Errors
    /// Returns a [`DatagramError`] if the datagram cannot be sent.
    pub fn send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        self.send_with(payload, DatagramOptions::default())
    }

    /// Like [`Datagrams::send`], with options such as an expiry time.
    ///
    /// # Errors
    /// Returns a [`DatagramError`] if the datagram cannot be sent.
    pub fn send_with(&self, payload: &[u8], options: DatagramOptions) -> Result<(), DatagramError> {
        self.send_bytes(Bytes::copy_from_slice(payload), options)
    }

    /// Sends a datagram like [`send_with`](Self::send_with), without copying it.
    ///
    /// # Errors
    /// Returns a [`DatagramError`] if the datagram cannot be sent.
    pub fn send_bytes(
        &self,
        payload: Bytes,
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        self.check_open()?;
        let Handle { guard, stream } = &*self.0;
        let len = payload.len();
        let sent = guard.quic.send_datagram_after(stream / 4, payload, options);
        sent.map_err(|error| self.error_of(error, len))?;
        self.record_sent(len);
        Ok(())
    }

    /// Sends all datagrams of `payloads` in order, and empties it. They are not copied, and a batch costs less
    /// than its datagrams one by one.
    ///
    /// # Errors
    /// Returns a [`DatagramError`] if a datagram cannot be sent, which then remains in `payloads` with those
    /// after it.
    pub fn send_many(&self, payloads: &mut Vec<Bytes>) -> Result<(), DatagramError> {
        self.check_open()?;
        let Handle { guard, stream } = &*self.0;
        let lens: Vec<_> = match guard.records.are_recorded() {
            true => payloads.iter().map(Bytes::len).collect(),
            false => Vec::new(),
        };
        let mut queue = VecDeque::from(std::mem::take(payloads));
        let options = DatagramOptions::default();
        let sent = guard.quic.send_datagrams(stream / 4, &mut queue, options);
        let count = lens.len().saturating_sub(queue.len());
        lens.into_iter()
            .take(count)
            .for_each(|len| self.record_sent(len));
        *payloads = queue.into();
        let len = payloads.first().map_or(0, Bytes::len);
        sent.map_err(|error| self.error_of(error, len))
    }

    /// Checks that datagrams can be sent for the request, which uses them from now on.
    fn check_open(&self) -> Result<(), DatagramError> {
        let Handle { guard, stream } = &*self.0;
        let is_open = guard.datagrams.claim(*stream);
        if !guard.has_datagrams() {
            return Err(DatagramError::NotNegotiated);
        }
        match is_open {
            true => Ok(()),
            false => Err(DatagramError::StreamOver),
        }
    }

    fn record_sent(&self, len: usize) {
        let Handle { guard, stream } = &*self.0;
        let created = || Http3Record::DatagramCreated {
            stream: *stream,
            len,
        };
        guard.records.record(&guard.quic, created);
    }

    /// Returns the error of a datagram with `size` bytes of payload.
    fn error_of(&self, error: SendDatagramError, size: usize) -> DatagramError {
        match error {
            SendDatagramError::TooLarge { max, .. } => DatagramError::TooLarge {
                size,
                max: max.saturating_sub(prefix_len(self.0.stream)),
            },
            SendDatagramError::ConnectionLost(error) => DatagramError::ConnectionLost(error),
            _ => DatagramError::NotNegotiated,
        }
    }

    /// Waits for the next datagram. Returns `None` if no more can arrive, because the peer has ended the request
    /// or the connection is closed.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn receive(&self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// Polls for a datagram like [`Datagrams::receive`]. Only the task that polled last is woken.
    pub fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut received = None;
        let registry = &self.0.guard.datagrams;
        let polled = registry.poll_receive(cx, self.0.stream, 1, |payload| {
            received = Some(payload);
        });
        polled.map(|_| received)
    }

    /// Waits for datagrams, and appends up to `most` of those that have arrived to `datagrams`. Returns their
    /// number, at least one, or `None` like [`receive`](Self::receive).
    ///
    /// # Panics
    /// Panics if `most` is 0.
    ///
    /// # Cancel safety
    /// Safe: dropping the future before it is ready loses nothing.
    pub async fn receive_many(&self, datagrams: &mut Vec<Bytes>, most: usize) -> Option<usize> {
        std::future::poll_fn(|cx| self.poll_receive_many(cx, datagrams, most)).await
    }

    /// Polls for datagrams like [`receive_many`](Self::receive_many). Only the task that polled last is woken.
    ///
    /// # Panics
    /// Panics if `most` is 0.
    pub fn poll_receive_many(
        &self,
        cx: &mut Context<'_>,
        datagrams: &mut Vec<Bytes>,
        most: usize,
    ) -> Poll<Option<usize>> {
        assert!(most > 0, "a batch of no datagrams");
        let registry = &self.0.guard.datagrams;
        // Memory is reserved before the lock is taken, where all tasks of the connection would wait for it.
        datagrams.reserve(most.min(LARGEST_RESERVE));
        registry.poll_receive(cx, self.0.stream, most, |payload| datagrams.push(payload))
    }

    /// Bounds the datagrams of this request that wait to be received, in number and bytes, instead of the bounds
    /// that all requests share. The memory of a connection is then bounded by the number of requests for which
    /// this is called.
    pub fn set_receive_limits(&self, datagrams: usize, bytes: usize) {
        let registry = &self.0.guard.datagrams;
        registry.set_limits(self.0.stream, datagrams, bytes);
    }

    /// Returns the number of received datagrams that were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.0.guard.datagrams.dropped(self.0.stream)
    }

    /// Returns the size in bytes of the largest datagram that can be sent now, or `None` until datagrams are
    /// negotiated. Changes with [`Connection::max_datagram_size`](courser_quic::Connection::max_datagram_size).
    pub fn max_size(&self) -> Option<usize> {
        let Handle { guard, stream } = &*self.0;
        if !guard.has_datagrams() {
            return None;
        }
        let header = prefix_len(*stream);
        guard.quic.max_datagram_size()?.checked_sub(header)
    }

    /// Returns a watch that reports changes of the size of QUIC's datagrams, on which [`max_size`](Self::max_size)
    /// depends. It keeps the connection open.
    pub fn watch_size(&self) -> DatagramSizeWatch {
        self.0.guard.quic.watch_datagram_size()
    }

    /// Returns true if datagrams can be sent because both ends have enabled them. The peer's settings arrive
    /// shortly after the connection has started; see [`Datagrams::negotiated`].
    pub fn is_negotiated(&self) -> bool {
        self.max_size().is_some()
    }

    /// Waits for the peer's settings. Returns true if datagrams can be sent, and false if they cannot or the
    /// connection is closed.
    ///
    /// The first request of a connection may arrive before the settings of its client, which may be lost and
    /// retransmitted. A service that sends a datagram before it has received one should call this first. A
    /// server waits for 30 s by default and then closes the connection; a client waits until the connection
    /// ends. This call declares that the request uses datagrams.
    ///
    /// # Cancel safety
    /// Safe: dropping the future loses nothing.
    pub async fn negotiated(&self) -> bool {
        self.accept();
        self.0.guard.peer_settings().await.is_some() && self.is_negotiated()
    }
}

/// Returns the bytes before the payload of a datagram.
const fn prefix_len(stream: u64) -> usize {
    match stream / 4 {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Largest number of datagrams for which memory is reserved before they are read.
const LARGEST_RESERVE: usize = 256;
