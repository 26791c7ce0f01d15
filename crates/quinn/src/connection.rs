//! Connections.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use courser_quic::{self as quic, Direction};

use crate::config::WINDOW_AT_ONCE;
use crate::congestion::{Controller, Snapshot};
use crate::crypto::ExportKeyingMaterialError;
use crate::crypto::rustls::HandshakeData;
use crate::{
    AcceptBi, AcceptUni, ConnectionError, ConnectionStats, OpenBi, OpenUni, ReadDatagram,
    RecvStream, SendDatagram, SendDatagramError, SendStream, Side, VarInt,
};

/// A connection to a peer. Clones are handles to the same one; when the last is dropped, including streams, it is
/// closed with code 0.
#[derive(Clone, Debug)]
pub struct Connection(quic::Connection);

impl Connection {
    pub(crate) fn new(inner: quic::Connection) -> Self {
        Self(inner)
    }

    /// Returns the connection of courser, which offers more.
    pub fn as_courser(&self) -> &quic::Connection {
        &self.0
    }

    /// Opens a unidirectional stream. Waits while the peer allows no further one.
    ///
    /// The future returns an error when the connection is over. It has opened nothing if it is dropped before
    /// it is ready.
    pub fn open_uni(&self) -> OpenUni<'_> {
        OpenUni::new(async { Ok(SendStream::new(self.0.open_uni().await?)) })
    }

    /// Opens a bidirectional stream, like [`Connection::open_uni`]. The peer learns of it when
    /// something is sent.
    pub fn open_bi(&self) -> OpenBi<'_> {
        OpenBi::new(async {
            let (send, receive) = self.0.open_bi().await?;
            Ok((SendStream::new(send), RecvStream::new(receive)))
        })
    }

    /// Accepts the next unidirectional stream.
    ///
    /// The future returns an error when the connection is over. It has taken nothing if it is dropped before
    /// it is ready.
    pub fn accept_uni(&self) -> AcceptUni<'_> {
        AcceptUni::new(async { Ok(RecvStream::new(self.0.accept_uni().await?)) })
    }

    /// Accepts the next bidirectional stream, like [`Connection::accept_uni`].
    pub fn accept_bi(&self) -> AcceptBi<'_> {
        AcceptBi::new(async {
            let (send, receive) = self.0.accept_bi().await?;
            Ok((SendStream::new(send), RecvStream::new(receive)))
        })
    }

    /// Takes the datagram that was received first, and waits if there is none.
    ///
    /// The future returns an error when the connection is over. It has taken nothing if it is dropped before
    /// it is ready.
    pub fn read_datagram(&self) -> ReadDatagram<'_> {
        ReadDatagram::new(async { Ok(self.0.read_datagram().await?) })
    }

    /// Waits until the connection is over, and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        self.0.closed().await.into()
    }

    /// Returns the reason why the connection is over, or `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.close_reason().map(Into::into)
    }

    /// Closes the connection at once. Data that has not arrived at the peer is lost.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.0.close(error_code.into(), reason);
    }

    /// Sends a datagram once. If the queue is full, the oldest datagram in it is dropped.
    ///
    /// # Errors
    /// Returns [`SendDatagramError`] if the peer accepts no datagrams, or none of this size, or the connection is
    /// over.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        Ok(self.0.send_datagram(data)?)
    }

    /// Sends a datagram like [`Connection::send_datagram`], but waits for room in the queue.
    pub fn send_datagram_wait(&self, data: Bytes) -> SendDatagram<'_> {
        SendDatagram::new(async { Ok(self.0.send_datagram_wait(data).await?) })
    }

    /// Returns the bytes of the largest datagram that can be sent now; `None` if none can be.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.0.max_datagram_size()
    }

    /// Returns the bytes that a datagram may have without dropping another.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.0.datagram_send_buffer_space()
    }

    /// Returns the side of this end.
    pub fn side(&self) -> Side {
        self.0.side().into()
    }

    /// Returns the address of the peer, which may change.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.remote_address()
    }

    /// Returns the local address of the path, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.0.local_ip()
    }

    /// Returns the smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.0.rtt()
    }

    /// Returns the smallest round-trip time.
    pub fn min_rtt(&self) -> Duration {
        self.0.stats().path.min_rtt
    }

    /// Returns the counters of the connection, and the state of its path.
    pub fn stats(&self) -> ConnectionStats {
        self.0.stats().into()
    }

    /// Returns a snapshot of the congestion controller: its window and figures. It cannot be converted to a type
    /// of quinn.
    pub fn congestion_state(&self) -> Box<dyn Controller> {
        Box::new(Snapshot::of(&self.0.stats().path))
    }

    /// Returns the results of the handshake, a [`HandshakeData`].
    pub fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let data = self.0.handshake_data()?;
        Some(Box::new(HandshakeData::new(data, self.0.side())))
    }

    /// Returns the certificate chain of the peer, a `Vec<CertificateDer>`; `None` if it has presented none.
    pub fn peer_identity(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(self.0.peer_identity()?))
    }

    /// Returns a number that no other connection of the process has while a handle exists.
    pub fn stable_id(&self) -> usize {
        self.0.stable_id()
    }

    /// Starts a key update, if the last one is complete.
    pub fn force_key_update(&self) {
        // A call before the last update is complete has no effect, which is not an error.
        let _ = self.0.force_key_update();
    }

    /// Fills `output` with keying material that both ends derive (RFC 8446 §7.5).
    ///
    /// # Errors
    /// Returns an error when the connection is over, or label or output are too long.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.0
            .export_keying_material(output, label, context)
            .map_err(|_| ExportKeyingMaterialError)
    }

    /// Changes how many unidirectional streams the peer may have open.
    pub fn set_max_concurrent_uni_streams(&self, count: VarInt) {
        self.0
            .set_max_concurrent_streams(Direction::Unidirectional, count.into_inner());
    }

    /// Changes how many bidirectional streams the peer may have open.
    pub fn set_max_concurrent_bi_streams(&self, count: VarInt) {
        self.0
            .set_max_concurrent_streams(Direction::Bidirectional, count.into_inner());
    }

    /// Sets the flow-control window of the connection in bytes, at most 128 MiB.
    pub fn set_receive_window(&self, receive_window: VarInt) {
        let bytes = receive_window.into_inner().min(WINDOW_AT_ONCE);
        self.0.set_receive_window(bytes);
    }

    /// Changes the maximum of bytes kept for sending, over all streams; at least 4096.
    pub fn set_send_window(&self, send_window: u64) {
        self.0.set_send_buffer_max(send_window);
    }
}
