//! HTTP Datagrams of requests (RFC 9297 §2).

mod registry;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_http3 as http3;
use courser_quic::telemetry::Http3Record;
use courser_quic::{ConnectionError, DatagramOptions, SendDatagramError};

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
/// ones of the request are dropped.
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
        let Handle { guard, stream } = &*self.0;
        let is_open = guard.datagrams.claim(*stream);
        if !guard.has_datagrams() {
            return Err(DatagramError::NotNegotiated);
        }
        if !is_open {
            return Err(DatagramError::StreamOver);
        }
        let header = http3::Connection::datagram_header(*stream);
        let mut data = BytesMut::with_capacity(header.len() + payload.len());
        data.put_slice(&header);
        data.put_slice(payload);
        let sent = guard.quic.send_datagram_with(data.freeze(), options);
        if sent.is_ok() {
            guard
                .records
                .record(&guard.quic, || Http3Record::DatagramCreated {
                    stream: *stream,
                    len: payload.len(),
                });
        }
        sent.map_err(|error| match error {
            SendDatagramError::TooLarge { max, .. } => DatagramError::TooLarge {
                size: payload.len(),
                max: max.saturating_sub(header.len()),
            },
            SendDatagramError::ConnectionLost(error) => DatagramError::ConnectionLost(error),
            _ => DatagramError::NotNegotiated,
        })
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
        self.0.guard.datagrams.poll_receive(cx, self.0.stream)
    }

    /// Returns the size in bytes of the largest datagram that can be sent now, or `None` until datagrams are
    /// negotiated. Changes with [`Connection::max_datagram_size`](courser_quic::Connection::max_datagram_size).
    pub fn max_size(&self) -> Option<usize> {
        let Handle { guard, stream } = &*self.0;
        if !guard.has_datagrams() {
            return None;
        }
        let header = http3::Connection::datagram_header(*stream).len();
        guard.quic.max_datagram_size()?.checked_sub(header)
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
