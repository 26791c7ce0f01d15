//! HTTP Datagrams of requests (RFC 9297 §2).

mod registry;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use courser_http3::{self as http3, Code, Scope};

pub(super) use self::registry::{Delivery, Registry};
use super::shared::Guard;
use crate::{ConnectionError, DatagramOptions, SendDatagramError};

/// The datagrams of one request, both ways.
///
/// Among the extensions of a request on a server, and of its response on a client, while
/// [`Config::datagrams`](super::Config::datagrams) is on; [`Upgraded::datagrams`] has it too. What
/// a datagram means is for the protocol that the request names to say.
///
/// A request has a use for datagrams from [`accept`](Self::accept), [`negotiated`](Self::negotiated)
/// or the first attempt to send or receive on. When the last clone is dropped before that, it has
/// none, and a peer that sends one loses the request (`H3_DATAGRAM_ERROR`, RFC 9297 §2).
///
/// Up to 64 datagrams of a request and 256 KiB of all requests wait to be received; then the oldest
/// of the request are dropped.
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

/// Why a datagram was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatagramError {
    /// One of the ends has not switched them on, in the settings of HTTP/3 or in QUIC. Capsules
    /// may do: see [`Capsules`](super::Capsules).
    #[error(
        "datagrams are not negotiated: both ends have to send SETTINGS_H3_DATAGRAM and \
         max_datagram_frame_size"
    )]
    NotNegotiated,
    /// It would never fit.
    #[error("datagram of {size} bytes exceeds the limit of {max}: see max_size")]
    TooLarge {
        /// Bytes of the datagram.
        size: usize,
        /// Bytes that fit at present.
        max: usize,
    },
    /// We have finished or reset the stream of the request, or it was never that of one.
    #[error("the request stream has ended")]
    StreamOver,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl Datagrams {
    pub(super) fn new(guard: Arc<Guard>, stream: u64) -> Self {
        Self(Arc::new(Handle { guard, stream }))
    }

    /// Says that the request has a use for datagrams, before any was sent or received.
    pub fn accept(&self) {
        self.0.guard.datagrams.claim(self.0.stream);
    }

    /// Sends a datagram. It may be lost, and it may be dropped for a newer one before it leaves: see
    /// [`Connection::send_datagram`](crate::Connection::send_datagram).
    ///
    /// # Errors
    /// [`DatagramError`].
    pub fn send(&self, payload: &[u8]) -> Result<(), DatagramError> {
        self.send_with(payload, DatagramOptions::default())
    }

    /// As [`Datagrams::send`], for a limited time.
    ///
    /// # Errors
    /// [`DatagramError`].
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
        sent.map_err(|error| match error {
            SendDatagramError::TooLarge { max, .. } => DatagramError::TooLarge {
                size: payload.len(),
                max: max.saturating_sub(header.len()),
            },
            SendDatagramError::ConnectionLost(error) => DatagramError::ConnectionLost(error),
            _ => DatagramError::NotNegotiated,
        })
    }

    /// Waits for the next datagram; `None` when there will be none: the peer has ended the request,
    /// or the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn receive(&self) -> Option<Bytes> {
        std::future::poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// As [`Datagrams::receive`]. One task waits at a time: the one that asked last.
    pub fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.guard.datagrams.poll_receive(cx, self.0.stream)
    }

    /// Bytes of the largest datagram that can be sent now; `None` while datagrams are not
    /// negotiated. Changes as
    /// [`Connection::max_datagram_size`](crate::Connection::max_datagram_size) does.
    pub fn max_size(&self) -> Option<usize> {
        let Handle { guard, stream } = &*self.0;
        if !guard.has_datagrams() {
            return None;
        }
        let header = http3::Connection::datagram_header(*stream).len();
        guard.quic.max_datagram_size()?.checked_sub(header)
    }

    /// True when datagrams can be sent: both ends have switched them on. The peer's word comes with
    /// its settings, shortly after the connection has begun; see [`Datagrams::negotiated`].
    pub fn is_negotiated(&self) -> bool {
        self.max_size().is_some()
    }

    /// Waits for the peer's settings: true when datagrams can be sent, false when they cannot or the
    /// connection is over.
    ///
    /// The first request of a connection may be there before the settings of its client, which may
    /// be lost and sent again. A service that sends before it has received a datagram waits here. A
    /// server waits for 10 s at most, then it closes the connection of such a client; a client waits
    /// until the connection ends. Says that the request has a use for datagrams.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn negotiated(&self) -> bool {
        self.accept();
        self.0.guard.peer_settings().await.is_some() && self.is_negotiated()
    }
}

/// The error of a request whose peer sends datagrams although it does not use them (RFC 9297 §2).
pub(super) const UNWANTED_DATAGRAM: http3::Error = http3::Error {
    code: Code::DATAGRAM_ERROR,
    scope: Scope::Stream,
    reason: "datagram for a request that does not use datagrams",
};
