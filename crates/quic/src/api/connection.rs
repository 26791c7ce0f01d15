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
/// Cloning makes another handle to the same connection. When the last handle is gone, streams
/// included, the connection is closed with code 0 and no reason, which gives up what the peer
/// has not received yet.
#[derive(Clone, Debug)]
pub struct Connection(pub(crate) Arc<ConnectionRef>);

impl Connection {
    /// Opens a stream to send on.
    ///
    /// Costs nothing on the wire: the peer learns of the stream when something is sent on it.
    /// Waits while the peer allows no further stream.
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
    /// When the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let stream = self.open(Direction::Unidirectional).await?;
        Ok(SendStream::new(self.0.clone(), stream))
    }

    /// Opens a stream to send and receive on.
    ///
    /// As with [`Connection::open_uni`], the peer learns of it when something is sent. A task that
    /// waits for an answer before it writes waits until the connection is over.
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
    /// When the connection is over.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has opened nothing.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let stream = self.open(Direction::Bidirectional).await?;
        Ok((
            SendStream::new(self.0.clone(), stream),
            RecvStream::new(self.0.clone(), stream),
        ))
    }

    /// Accepts the next stream that the peer sends on, in the order of their opening.
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
    /// When the connection is over, and all streams that came before that are accepted.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let stream = self.accept(Direction::Unidirectional).await?;
        Ok(RecvStream::new(self.0.clone(), stream))
    }

    /// Accepts the next stream for both directions, in the order of their opening.
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
    /// When the connection is over, and all streams that came before that are accepted.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, it has taken nothing.
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
                    // The peer is told that its limit is in the way (RFC 9000 §4.6).
                    locked.used(handle, 0);
                    Poll::Pending
                }
            }
        };
        self.0.wait(Topic::Open(direction), open).await
    }

    async fn accept(&self, direction: Direction) -> Result<Stream, ConnectionError> {
        let handle = self.0.handle;
        // Those that had come before the end are there after it.
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
    /// Safe; the reason can be asked for again.
    pub async fn closed(&self) -> ConnectionError {
        let handle = self.0.handle;
        let check = move |locked: &mut Locked<'_>| match locked.end_of(handle) {
            Some(error) => Poll::Ready(error.clone()),
            None => Poll::Pending,
        };
        self.0.wait(Topic::Closed, check).await
    }

    /// Why the connection is over; `None` while it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().end_of(self.0.handle).cloned()
    }

    /// Closes the connection at once.
    ///
    /// Everything that waits on it fails with [`ConnectionError::LocallyClosed`], what was not read
    /// is dropped, and nothing is repeated any more: the peer's application can read what has
    /// arrived there, and what was lost on the way never does. To lose nothing, let the end that
    /// receives last close, or wait for [`stopped`](SendStream::stopped). A second call does
    /// nothing.
    ///
    /// The peer's application gets `code` and the first 512 bytes of `reason`.
    /// [`Endpoint::wait_idle`](crate::Endpoint::wait_idle) waits until the peer knows.
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

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// Returns the peer's address, which may change during the connection.
    ///
    /// The new address of a peer that moves is returned once the peer has answered from there. On a server, the
    /// first address may be forged before the handshake is complete: see [`Connecting::early`](crate::Connecting::early).
    pub fn remote_address(&self) -> SocketAddr {
        let path = self.read(transport::Connection::proven_path);
        path.map_or(NO_ADDRESS, |path| path.peer)
    }

    /// Our address on the path in use, where the system tells.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.read(transport::Connection::path)?.local
    }

    /// The smoothed round-trip time.
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

    /// Counters and the state of the path. They stay after the end of the connection.
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
    /// From then on the peer is one that the TLS configuration accepts, and no data is a replay.
    /// Before that, a connection from [`Connecting::early`](crate::Connecting::early) may be with an attacker who repeats what
    /// a client has sent. Ready at once on other connections. A completed handshake counts even if
    /// the peer has left since.
    ///
    /// # Errors
    /// When the handshake fails.
    ///
    /// # Cancel safety
    /// Safe; can be asked again.
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

    /// The peer's certificate chain, its own certificate first; `None` if it sent none.
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

    /// Reads from the connection, alive or not. `None` if a panic has ended it.
    fn read<T>(&self, get: impl FnOnce(&transport::Connection) -> T) -> Option<T> {
        let mut locked = self.0.lock();
        locked.connection(self.0.handle).map(|it| get(it))
    }

    /// Fills `output` with keying material that both ends derive alike from the same `label` and
    /// `context` (RFC 8446 §7.5).
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
    /// When the connection is over, or label or output are too long.
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

    /// Begins a key update. Updates also come by themselves, long before keys wear out.
    ///
    /// # Errors
    /// Returns [`KeyUpdateBlocked`] if the handshake is not confirmed, the last update is not
    /// acknowledged, or it was within three probe timeouts (RFC 9001 §6.1, §6.5). The keys in use stay
    /// good, and a later call succeeds. Calling this often is harmless.
    pub fn force_key_update(&self) -> Result<(), KeyUpdateBlocked> {
        let now = self.0.shard.now();
        let mut locked = self.0.lock();
        let updated = match locked.open_connection(self.0.handle) {
            Ok(connection) => connection.initiate_key_update(now),
            // Nothing is sent any more: no keys are needed.
            Err(_) => Ok(()),
        };
        locked.used(self.0.handle, 0);
        updated
    }

    /// Goes on with another congestion controller than that of
    /// [`TransportConfig::congestion`](crate::TransportConfig::congestion): with the window as it
    /// is, past slow start if that is over, and without a burst. A controller of your own, from
    /// a factory, is given up. Does nothing when it is in use already or the connection is over.
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

    /// Keeps the connection alive while an answer is waited for: while a stream for both directions
    /// is open that this end has opened, a PING leaves after a third of the idle timeout of silence.
    /// Off at first; `courser::h3::Client` switches it on (RFC 9114 §5.1). For all of
    /// the time there is
    /// [`TransportConfig::keep_alive_interval`](crate::TransportConfig::keep_alive_interval).
    pub fn keep_alive_while_busy(&self, is_on: bool) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.keep_alive_while_busy(is_on);
        }
        locked.used(self.0.handle, 0);
    }

    /// Has everything that happens on the connection recorded from now on, or nothing any more.
    ///
    /// Records are typed; see [`crate::telemetry`]. The sink is called under the endpoint's lock
    /// while packets move: it must not block, and a use of the endpoint panics, which ends this connection.
    /// When the sink is dropped, no lock is held. Without a sink
    /// recording costs a branch.
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
    pub fn set_sink(&self, sink: Option<Box<dyn crate::telemetry::Sink>>) {
        let mut locked = self.0.lock();
        if let Ok(connection) = locked.open_connection(self.0.handle) {
            connection.tap().set(sink);
        }
    }

    /// A number that no other connection of this process has while a handle exists.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// The address of a peer about which nothing is known any more.
const NO_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
