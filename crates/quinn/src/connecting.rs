//! Handshakes in progress.

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use courser_quic as quic;

use crate::crypto::rustls::HandshakeData;
use crate::{Connection, ConnectionError};

/// A handshake in progress. Resolves to the connection.
#[derive(Debug)]
#[must_use = "the connection is given up when this is dropped"]
pub struct Connecting {
    inner: quic::Connecting,
    side: quic::Side,
}

impl Connecting {
    pub(crate) fn new(inner: quic::Connecting, side: quic::Side) -> Self {
        Self { inner, side }
    }

    /// Returns the connection before the handshake is complete, for early data (0-RTT and 0.5-RTT).
    ///
    /// A client gets it if it resumes a session that permits early data; a server always gets it. Early data can
    /// be replayed: send only what may be processed twice.
    ///
    /// # Errors
    /// Returns this value on a client without such a session.
    pub fn into_0rtt(self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let side = self.side;
        match self.inner.early_now() {
            Ok(connection) => {
                let accepted = ZeroRttAccepted::new(connection.clone());
                Ok((Connection::new(connection), accepted))
            }
            Err(inner) => Err(Self { inner, side }),
        }
    }

    /// Waits for the results of the handshake that are known before its end: a
    /// [`HandshakeData`] of [`crate::crypto::rustls`].
    ///
    /// # Errors
    /// Returns the reason if the handshake fails.
    pub async fn handshake_data(&mut self) -> Result<Box<dyn Any>, ConnectionError> {
        let data = self.inner.handshake_data().await?;
        Ok(Box::new(HandshakeData::new(data, self.side)))
    }

    /// Returns the local address, if the system reports it.
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// Returns the address of the peer.
    ///
    /// # Panics
    /// Panics after the future has resolved.
    pub fn remote_address(&self) -> SocketAddr {
        self.inner.remote_address()
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connected = Pin::new(&mut self.inner).poll(cx);
        connected.map(|result| Ok(Connection::new(result?)))
    }
}

/// Resolves when the handshake is complete: to true on a client whose early data was accepted.
pub struct ZeroRttAccepted(Pin<Box<dyn Future<Output = bool> + Send + Sync>>);

impl ZeroRttAccepted {
    fn new(connection: quic::Connection) -> Self {
        Self(Box::pin(async move {
            connection.authenticated().await == Ok(quic::EarlyData::Accepted)
        }))
    }
}

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ZeroRttAccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ZeroRttAccepted")
    }
}
