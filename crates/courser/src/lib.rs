//! QUIC for tokio: endpoints, connections and streams.
//!
//! An [`Endpoint`] is one UDP socket. It [connects](Endpoint::connect) to servers and
//! [accepts](Endpoint::accept) clients. Both result in a [`Connection`] with any number of streams,
//! each a [`SendStream`], a [`RecvStream`] or both. The endpoint's task on the caller's tokio
//! runtime handles datagrams and timers; there is nothing else to start. The same code runs in a
//! simulated network, see [`runtime`].
//!
//! # A server and a client
//!
//! A server needs a certificate and the names of its application protocols. For development,
//! [`Identity::dev`] creates a certificate in memory:
//!
//! ```
//! use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::dev()?;
//! let config = ServerConfig::with_identity(&identity)?.alpn(["greeting"]);
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! let address = server.local_addr()?;
//!
//! tokio::spawn(async move {
//!     while let Some(incoming) = server.accept().await {
//!         let connection = incoming.await?;
//!         let (mut send, mut receive) = connection.accept_bi().await?;
//!         let name = receive.read_to_end(100).await?;
//!         send.write_all(b"hello, ").await?;
//!         send.write_all(&name).await?;
//!         send.finish()?;
//!         connection.closed().await;
//!     }
//!     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let client = Endpoint::client("127.0.0.1:0".parse()?)?;
//! let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["greeting"]);
//! let connection = client.connect_with(config, address, "localhost")?.await?;
//! let (mut send, mut receive) = connection.open_bi().await?;
//! send.write_all(b"world").await?;
//! send.finish()?;
//! assert_eq!(receive.read_to_end(100).await?, b"hello, world");
//!
//! client.close(0u32.into(), b"done");
//! client.wait_idle().await;
//! # Ok(()) }
//! ```
//!
//! # Effects of dropping
//!
//! | dropped | effect |
//! |---|---|
//! | [`SendStream`] | the stream is finished; written data is still delivered |
//! | [`RecvStream`] before its end | the stream is stopped with code 0 |
//! | last handle of a [`Connection`], streams included | closed with code 0 |
//! | [`Connecting`] | the handshake is abandoned |
//! | [`Incoming`] | refused |
//! | last [`Endpoint`] | no more clients are accepted; connections continue |
//! | a future of a method | nothing is lost if the method is documented as cancel-safe |
//!
//! Closing a connection discards data that its peer has not received. To end it without loss, the
//! end that receives last must close it, and its process must wait for [`Endpoint::wait_idle`].
//!
//! # Performance
//!
//! There is no queue between a handle and the wire. A call takes the endpoint's lock, which is
//! never held while waiting. A write of 32 KiB or more seals its packets and passes them to the
//! kernel in one call before it returns. Bulk data is fastest with
//! [`write_chunk`](SendStream::write_chunk) and [`read_chunk`](RecvStream::read_chunk), which do
//! not copy. [`Endpoint::capabilities`] reports the cost of the machine's settings.
//!
//! With the default build of AWS-LC, a program's first random number takes 25 ms and more, because
//! AWS-LC gathers timing jitter first. Short-lived programs can be built with
//! `AWS_LC_SYS_NO_JITTER_ENTROPY=1` in the environment; the operating system's seed and the
//! processor's random numbers remain.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `http3` | yes | `h3`: HTTP/3 on a connection, as server and as client |
//! | `server` | yes | `serve`: any tower service over HTTP/3, HTTP/2 and HTTP/1.1 |
//! | `client` | no | `Client`: an HTTP client with a connection pool |
//! | `json`, `form`, `cookies`, `charset` | no | JSON, queries and forms, a cookie jar, other charsets than UTF-8, for `client` |
//! | `grpc` | no | `grpc`: a channel and a server layer for tonic |
//! | `webtransport` | no | `webtransport`: sessions of WebTransport beside requests |
//! | `masque` | no | `masque`: UDP and IP proxies over HTTP as tower services, and their clients (RFC 9298, RFC 9484) |
//! | `tun` | no | `masque::Tun`: TUN devices for IP tunnels and proxies, on Linux |
//! | `acme` | no | certificates from Let's Encrypt and other ACME servers, for `server` |
//! | `axum` | no | `ConnectInfo` and `webtransport::Upgrade` in handlers of axum, for `server` |
//! | `files` | no | `files`: a directory as a tower service |
//! | `dns` | no | HTTPS records and custom name servers, for `client` |
//! | `brotli`, `zstd` | no | these codings for `client` and `files`; gzip and deflate are included |
//! | `certificate-compression`, `certificate-brotli` | no | certificate compression (RFC 8879) with zlib, and with brotli |
//! | `tracing` | no | `observe`: spans and events of connections, paths and streams |
//! | `metrics` | no | `observe`: counters of connections, endpoints and servers in the text format of OpenMetrics |
//! | `metrics-facade` | no | the same counters for the recorder of the crate `metrics` |
//! | `fused` | no | faster AES-GCM for packets on x86-64, AWS-LC elsewhere |
//! | `fips` | no | the FIPS module of AWS-LC and its algorithms only; needs CMake and Go |
//!
//! # Further reading
//!
//! `docs/guide` in the repository leads from a first program to operation. [`congestion`] describes custom
//! congestion controllers, [`runtime`] other runtimes and transports, and [`telemetry`] the records of connections.
//!
//! # Coming from quinn
//!
//! The crate `courser-quinn` provides the API of quinn 0.11 on courser, for programs that should not change. In this
//! crate, equal names have equal meanings. The differences are:
//! - [`RecvStream::read_chunk`] takes no `ordered` flag and returns [`Bytes`](https://docs.rs/bytes/latest/bytes/struct.Bytes.html).
//! - [`ServerConfig`] and [`ClientConfig`] require [`alpn`](ServerConfig::alpn), or a rustls
//!   configuration that names protocols.
//! - [`TransportConfig`] has public fields.
//! - [`Connection::handshake_data`] and [`Connection::peer_identity`] return types of their own
//!   instead of [`Any`](std::any::Any).
//! - Queues of datagrams are bounded in number too, see [`TransportConfig::datagram_send_queue`].
//! - [`Endpoint::rebind`] keeps the earlier socket until no connection needs it, and
//!   [`Connection::migrate`] moves one connection to another local address.
//! - 0-RTT begins with [`Connecting::early`] instead of `into_0rtt`.

// Shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
pub mod client;
pub mod congestion;
#[cfg(feature = "http3")]
pub mod h3;
#[cfg(feature = "server")]
pub mod server;

#[doc(no_inline)]
pub use congestion::{Controller, ControllerFactory};
pub use courser_base::{EcnCounts, Rate, Side, Unreachable};
pub use courser_crypto::{CipherSuite, HandshakeData};
#[cfg(feature = "files")]
#[doc(inline)]
pub use courser_files as files;
#[cfg(feature = "grpc")]
#[doc(inline)]
pub use courser_grpc as grpc;
#[cfg(any(feature = "metrics", feature = "tracing"))]
#[doc(inline)]
pub use courser_observe as observe;
#[doc(inline)]
pub use courser_quic::{
    BindError, CertificateRequests, ClientConfig, ClosedStream, ConfigError, ConnectError,
    Connecting, Connection, DatagramOptions, DatagramSizeWatch, Endpoint, EndpointBuilder,
    ExportKeyingMaterialError, HandshakeFailure, HandshakeFailureKind, HandshakeOffer, Identity,
    Incoming, IncomingFuture, MigrateError, OfferCandidateError, OpenPathError, PendingFate,
    ReadError, ReadExactError, ReadToEndError, RecvStream, RetryError, SendDatagramError,
    SendGroup, SendRate, SendStream, ServerConfig, SetGroupError, SocketCall, SocketEvent,
    StoppedError, TooLarge, VarInt, Via, WeakConnection, WriteError, Written, agreed_address,
    default_memory_budget, runtime,
};
pub use courser_recovery::{
    Algorithm, PathChoice, PathDemand, PathSchedule, PathScheduler, PathSchedulerFactory, PathView,
    SavedPath,
};
#[doc(inline)]
pub use courser_telemetry as telemetry;
pub use courser_tls::{
    CertificateHashVerifier, ClientAuthentication, Cryptography, EarlyDataOptions, Ech,
    EchRejection, KeyExchange, MemoryReplayFilter, QueuedKeyLog, RawKeyVerifier, ReplayFilter,
    UnknownAlgorithm, crypto_provider, rustls, ticketer,
};
pub use courser_transport::{
    AddressFilter, AddressListError, AddressObservations, AddressPrefix, BlockedBy, CandidateError,
    CandidateStats, ConnectionError, ConnectionIdError, ConnectionIdGenerator,
    ConnectionIdRotation, ConnectionStats, DatagramFate, DatagramStats, DirectAddress, EarlyData,
    EndpointConfig, EndpointStats, Fallbacks, FrameCounts, KeyUpdateBlocked, MemoryTokenStore,
    ObservedPath, PathInfo, PathMemory, PathPreference, PathSchedulerChoice, PathStats,
    PathTraffic, PeerClose, RandomIdGenerator, RecvStreamStats, ReplyLimits, ResetAtError,
    RetryPolicy, Rng, SendStreamStats, ServerIdError, ServerIdGenerator, TimeOfDay, TokenLog,
    TokenStore, TransportConfig, TransportError, UdpStats, WithheldFeatures,
};
pub use courser_udp::{Capabilities, Counters, ErrorCause, ErrorCounts};
pub use courser_wire::{
    ApplicationErrorCode, ConnectionId, DatagramProtocol, Direction, PathId, StreamId,
    TransportErrorCode, Version as QuicVersion,
};

#[cfg(feature = "masque")]
#[doc(inline)]
pub use courser_masque_tokio as masque;
#[cfg(feature = "webtransport")]
#[doc(inline)]
pub use courser_webtransport_tokio as webtransport;

#[cfg(feature = "client")]
#[doc(no_inline)]
pub use client::Client;
#[cfg(feature = "server")]
#[doc(no_inline)]
pub use server::{Server, serve};

/// Compiles and runs the code of the README.
#[cfg(all(doctest, feature = "client", feature = "server"))]
#[doc = include_str!("../README.md")]
struct Readme;
