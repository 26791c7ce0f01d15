//! Handles of a connection.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use courser_base::Side;
use courser_crypto::HandshakeData;
use courser_recovery::Algorithm;
use courser_tls::rustls::pki_types::CertificateDer;
use courser_transport::{
    self as transport, ConnectionError, ConnectionStats, EarlyData, KeyUpdateBlocked,
};
use courser_wire::{Direction, VarInt};

use crate::api::handles::ConnectionRef;
use crate::api::receive_stream::RecvStream;
use crate::api::send_stream::SendStream;
use crate::error::ExportKeyingMaterialError;
use crate::shard::lock::Locked;
use crate::shard::stream::Stream;
use crate::shard::wakers::Topic;

/// A connection to a peer.
///
/// Clones are handles to the same connection. When the last handle is dropped, including those of streams,
/// the connection is closed with code 0 and no reason, and data that the peer has not received is lost.
#[derive(Clone, Debug)]
pub struct Connection(pub(crate) Arc<ConnectionRef>);

impl Connection {
    /// Opens a unidirectional stream.
    ///
    /// Sends nothing: the peer learns of the stream when data is sent on it. Waits while the peer allows no
    /// further stream.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let mut stream = client.open_uni().await?;
    /// stream.write_all(b"one way").await?;
    /// stream.finish()?;
    /// # assert_eq!(server.accept_uni().await?.read_to_end(100).await?, b"one way");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has opened nothing.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let stream = self.open(Direction::Unidirectional).await?;
        Ok(SendStream::new(self.0.clone(), stream))
    }

    /// Opens a bidirectional stream.
    ///
    /// As with [`Connection::open_uni`], the peer learns of it when data is sent. A task that waits for an
    /// answer before it has written waits until the connection is over.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # tokio::spawn(async move {
    /// #     let (mut send, mut receive) = server.accept_bi().await?;
    /// #     let question = receive.read_to_end(100).await?;
    /// #     send.write_all(&question).await?;
    /// #     send.finish()?;
    /// #     server.closed().await;
    /// #     Result::Ok(())
    /// # });
    /// let (mut send, mut receive) = client.open_bi().await?;
    /// send.write_all(b"a question").await?;
    /// send.finish()?;
    /// let answer = receive.read_to_end(1000).await?;
    /// # assert_eq!(answer, b"a question");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is over.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has opened nothing.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let stream = self.open(Direction::Bidirectional).await?;
        Ok((
            SendStream::new(self.0.clone(), stream),
            RecvStream::new(self.0.clone(), stream),
        ))
    }

    /// Accepts the next unidirectional stream, in the order in which the peer opened them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let mut stream = client.open_uni().await?;
    /// # stream.write_all(b"news").await?;
    /// # stream.finish()?;
    /// # let closer = server.clone();
    /// while let Ok(mut stream) = server.accept_uni().await {
    ///     let message = stream.read_to_end(1000).await?;
    ///     println!("{} bytes", message.len());
    ///     # closer.close(0u32.into(), b"");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is over and all streams that arrived before are accepted.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has accepted nothing.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let stream = self.accept(Direction::Unidirectional).await?;
        Ok(RecvStream::new(self.0.clone(), stream))
    }

    /// Accepts the next bidirectional stream, in the order in which the peer opened them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// # let (mut send, mut receive) = client.open_bi().await?;
    /// # send.write_all(b"echo").await?;
    /// # send.finish()?;
    /// let (mut send_back, mut question) = server.accept_bi().await?;
    /// while let Some(chunk) = question.read_chunk(usize::MAX).await? {
    ///     send_back.write_chunk(chunk).await?;
    /// }
    /// send_back.finish()?;
    /// # assert_eq!(receive.read_to_end(100).await?, b"echo");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is over and all streams that arrived before are accepted.
    ///
    /// # Cancel safety
    /// Safe. A future that is dropped before it is ready has accepted nothing.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let stream = self.accept(Direction::Bidirectional).await?;
        Ok((
            SendStream::new(self.0.clone(), stream),
            RecvStream::new(self.0.clone(), stream),
        ))
    }

    async fn open(&self, direction: Direction) -> Result<Stream, ConnectionError> {
        let handle = self.0.handle;
        let open = move |locked: &mut Locked<'_>| {
            let opened = match locked.open_connection(handle) {
                Ok(connection) => {
                    let streams = connection.streams();
                    let id = streams.open(direction);
                    id.map(|id| Stream::new(streams, id))
                }
                Err(error) => return Poll::Ready(Err(error)),
            };
            match opened {
                Some(stream) => Poll::Ready(Ok(stream)),
                None => {
                    // Sends STREAMS_BLOCKED (RFC 9000 §4.6).
                    locked.used(handle, 0);
                    Poll::Pending
                }
            }
        };
        self.0.wait(Topic::Open(direction), open).await
    }

    async fn accept(&self, direction: Direction) -> Result<Stream, ConnectionError> {
        let handle = self.0.handle;
        // Streams that arrived before the end can be accepted after it.
        let accept = move |locked: &mut Locked<'_>| {
            let accepted = locked.streams(handle).and_then(|streams| {
                let id = streams.accept(direction)?;
                Some(Stream::new(streams, id))
            });
            match accepted {
                Some(stream) => Poll::Ready(Ok(stream)),
                None => locked.poll_open(handle),
            }
        };
        self.0.wait(Topic::Accept(direction), accept).await
    }

    /// Waits until the connection is over, and returns the reason.
    ///
    /// The reason need not be a failure: see [`ConnectionError::LocallyClosed`] and
    /// [`ConnectionError::ApplicationClosed`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// use courser::ConnectionError;
    ///
    /// client.close(3u32.into(), b"done");
    /// match server.closed().await {
    ///     ConnectionError::ApplicationClosed { .. } => println!("the client has closed"),
    ///     error => panic!("{error}"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn closed(&self) -> ConnectionError {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| match locked.end_of(handle) {
            Some(error) => Poll::Ready(error.clone()),
            None => Poll::Pending,
        };
        self.0.wait(Topic::Closed, check).await
    }

    /// Returns the reason why the connection is over, or `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().end_of(self.0.handle).cloned()
    }

    /// Closes the connection at once.
    ///
    /// All calls that wait on it fail with [`ConnectionError::LocallyClosed`], and unread data is dropped.
    /// Nothing is retransmitted: the peer's application can read the data that has arrived there, and never
    /// gets what was lost. To lose nothing, let the end that receives last close, or wait for
    /// [`stopped`](SendStream::stopped). A second call does nothing.
    ///
    /// The peer's application gets `code` and the first 512 bytes of `reason`.
    /// [`Endpoint::wait_idle`](crate::Endpoint::wait_idle) waits until the peer has been informed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// client.close(0u32.into(), b"thank you");
    /// assert!(client.open_uni().await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        let mut locked = self.0.lock();
        if locked.end_of(self.0.handle).is_none() {
            locked.close(self.0.handle, code, reason);
        }
    }

    /// Returns the side of this end.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// Returns the peer's address, which may change during the connection.
    ///
    /// The new address of a peer that moves is returned once the peer has answered from there. On a server, the
    /// first address may be forged before the handshake is complete: see [`Connecting::early`](crate::Connecting::early).
    pub fn remote_address(&self) -> SocketAddr {
        let path = self.read(transport::Connection::validated_path);
        path.map_or(NO_ADDRESS, |path| path.peer)
    }

    /// Returns the local address of the path in use, if the system reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.read(transport::Connection::path)?.local
    }

    /// Returns the smoothed round-trip time.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// println!("the peer is {:?} away", client.rtt());
    /// # Ok(()) }
    /// ```
    pub fn rtt(&self) -> Duration {
        self.read(transport::Connection::rtt).unwrap_or_default()
    }

    /// Returns counters and the state of the path, also after the end of the connection.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let stats = client.stats();
    /// println!("{} of {} packets lost", stats.packets_lost, stats.packets_sent);
    /// println!("{} bytes may be in flight", stats.path.congestion_window);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> ConnectionStats {
        self.read(transport::Connection::stats).unwrap_or_default()
    }

    /// Returns the results of the handshake: protocol, server name, cipher suite.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let data = client.handshake_data().expect("the handshake is complete");
    /// assert_eq!(data.protocol.as_deref(), Some(b"example".as_slice()));
    /// # Ok(()) }
    /// ```
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        self.read(transport::Connection::handshake_data)?
    }

    /// Returns the state of the early data (0-RTT); see [`Connecting::early`](crate::Connecting::early).
    pub fn early_data(&self) -> EarlyData {
        self.read(|connection| connection.stats().early_data)
            .unwrap_or_default()
    }

    /// Waits until the handshake is complete, and returns the fate of the early data.
    ///
    /// From then on the TLS configuration has accepted the peer, and no data is a replay. Before that, a
    /// connection from [`Connecting::early`](crate::Connecting::early) may be with an attacker who replays what
    /// a client has sent. Ready at once on other connections. A completed handshake counts even if
    /// the peer has left since.
    ///
    /// # Errors
    /// Returns an error when the handshake fails.
    ///
    /// # Cancel safety
    /// Safe. The method can be called again.
    pub async fn authenticated(&self) -> Result<EarlyData, ConnectionError> {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| locked.poll_connected(handle);
        self.0.wait(Topic::Handshake, check).await?;
        Ok(self.early_data())
    }

    /// Returns true once the handshake is complete; see [`Connection::authenticated`].
    pub fn is_authenticated(&self) -> bool {
        self.0.lock().entry(self.0.handle).is_connected
    }

    /// Returns the certificate chain of the peer, its own certificate first, or `None` if it sent none.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let chain = client.peer_identity().expect("servers have a certificate");
    /// assert_eq!(chain.len(), 1);
    /// assert_eq!(server.peer_identity(), None);
    /// # Ok(()) }
    /// ```
    pub fn peer_identity(&self) -> Option<Vec<CertificateDer<'static>>> {
        let chain = self.read(transport::Connection::peer_certificates)??;
        Some(chain.into_iter().map(CertificateDer::from).collect())
    }

    /// Reads from the connection, open or not. Returns `None` if a panic has ended it.
    pub(super) fn read<T>(&self, get: impl FnOnce(&transport::Connection) -> T) -> Option<T> {
        let mut locked = self.0.lock();
        locked.connection(self.0.handle).map(|it| get(it))
    }

    /// Fills `output` with keying material, which both ends derive from the same `label` and `context`
    /// (RFC 8446 §7.5).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// let (mut ours, mut theirs) = ([0; 32], [0; 32]);
    /// client.export_keying_material(&mut ours, b"EXPORTER-example", b"")?;
    /// server.export_keying_material(&mut theirs, b"EXPORTER-example", b"")?;
    /// assert_eq!(ours, theirs);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns an error when the connection is over, or if label or output are too long.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let mut locked = self.0.lock();
        let connection = locked
            .open_connection(self.0.handle)
            .map_err(|error| ExportKeyingMaterialError(error.to_string()))?;
        connection
            .export_keying_material(output, label, Some(context))
            .map_err(|error| ExportKeyingMaterialError(error.to_string()))
    }

    /// Starts a key update. Updates also happen automatically, long before keys reach their limits.
    ///
    /// # Errors
    /// Returns [`KeyUpdateBlocked`] if the handshake is not confirmed, the last update is not
    /// acknowledged, or it was within three probe timeouts (RFC 9001 §6.1, §6.5). The keys in use remain
    /// valid, and a later call succeeds. Calling this often is harmless.
    pub fn force_key_update(&self) -> Result<(), KeyUpdateBlocked> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        let updated = match locked.open_connection(self.0.handle) {
            Ok(connection) => connection.initiate_key_update(now),
            // Nothing more is sent, so no keys are needed.
            Err(_) => Ok(()),
        };
        locked.used(self.0.handle, 0);
        updated
    }

    /// Switches to another congestion controller than that of
    /// [`TransportConfig::congestion`](crate::TransportConfig::congestion). The new one continues with the
    /// present window, past slow start if that is over, and without a burst. Replaces a custom controller
    /// too. Does nothing if the algorithm is already in use or the connection is over.
    ///
    /// ```no_run
    /// # extern crate courser_quic as courser;
    /// # fn on_far_network(connection: &courser::Connection) {
    /// connection.set_congestion_controller(courser::Algorithm::Bbr);
    /// # }
    /// ```
    pub fn set_congestion_controller(&self, algorithm: Algorithm) {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.set_congestion_controller(now, algorithm);
        }
        locked.used(self.0.handle, 0);
    }

    /// Keeps the connection alive while this end waits for answers. While a bidirectional stream is open that
    /// this end has opened, a PING is sent after a third of the idle timeout without packets. Off by default;
    /// `courser::h3::Client` switches it on (RFC 9114 §5.1).
    /// [`TransportConfig::keep_alive_interval`](crate::TransportConfig::keep_alive_interval) applies at all
    /// times.
    pub fn keep_alive_while_busy(&self, is_on: bool) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.keep_alive_while_busy(is_on);
        }
        locked.used(self.0.handle, 0);
    }

    /// Records the events of the connection in `sink` from now on. `None` stops recording.
    ///
    /// Records are typed; see [`crate::telemetry`]. The sink is called under the lock of the endpoint while
    /// packets are processed. It must not block, and if it uses the endpoint it panics, which ends this
    /// connection. It is dropped without the lock. Without a sink, recording costs a branch.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/pair.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result {
    /// # let (client, server) = pair().await?;
    /// use courser::telemetry::Record;
    ///
    /// let (records, received) = std::sync::mpsc::channel();
    /// client.set_sink(Some(Box::new(move |_, record: &Record| {
    ///     let _ = records.send(format!("{record:?}")); // another thread writes it
    /// })));
    /// client.ping().await?;
    /// assert!(received.try_recv().is_ok());
    /// # Ok(()) }
    /// ```
    pub fn set_sink(&self, sink: Option<Box<dyn courser_telemetry::Sink>>) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.tap().set(sink);
        }
    }

    /// Returns a number that no other connection of this process has while a handle exists.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// The address of a peer whose connection a panic has ended.
const NO_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
