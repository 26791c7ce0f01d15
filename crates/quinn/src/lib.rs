//! The API of quinn 0.11 on courser.
//!
//! A program that uses quinn moves over by one line of its manifest, and back by the same line:
//!
//! ```toml
//! quinn = { package = "courser-quinn", path = "courser/crates/quinn" }
//! ```
//!
//! Types, methods, errors and features have the same names and meanings as in quinn. The README of this crate has a
//! table of the differences, and instructions for dependencies that use quinn themselves.
//! [`Endpoint::as_courser`] and [`Connection::as_courser`] return courser's own handles, which offer more.
//!
//! Settings without a counterpart in courser are accepted and have no effect. [`settings_without_effect`] lists them,
//! and a warning of `tracing` names each of them once.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! # let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! # let certificate = made.cert.der().clone();
//! # let key = quinn::rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
//! let server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
//! let server = quinn::Endpoint::server(server, "127.0.0.1:0".parse()?)?;
//! let mut roots = quinn::rustls::RootCertStore::empty();
//! roots.add(certificate)?;
//! let mut client = quinn::Endpoint::client("127.0.0.1:0".parse()?)?;
//! client.set_default_client_config(quinn::ClientConfig::with_root_certificates(Arc::new(roots))?);
//! let connecting = client.connect(server.local_addr()?, "localhost")?;
//! let accepted = async { server.accept().await.expect("the endpoint is open").await };
//! let (connection, _accepted) = tokio::try_join!(connecting, accepted)?;
//! # drop(connection);
//! # Ok(()) }
//! ```

// Shows the feature that each item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod cid;
mod close;
mod config;
pub mod congestion;
mod connecting;
mod connection;
pub mod crypto;
mod endpoint;
mod error;
mod futures;
mod ids;
mod incoming;
mod recv_stream;
mod runtime;
mod send_stream;
mod stats;
mod stream_error;
mod token;
mod unsupported;
mod unwind;
mod var_int;

pub use rustls;
pub use udp;

pub use self::cid::{
    ConnectionIdGenerator, HashedConnectionIdGenerator, InvalidCid, RandomConnectionIdGenerator,
};
pub use self::close::{
    ApplicationClose, ConnectionClose, FrameType, TransportError, TransportErrorCode,
};
pub use self::config::{
    AckFrequencyConfig, ClientConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, StdSystemTime, TimeSource, TransportConfig, ValidationTokenConfig,
};
#[cfg(feature = "qlog")]
pub use self::config::{QlogConfig, QlogStream};
pub use self::congestion::RttEstimator;
pub use self::connecting::{Connecting, ZeroRttAccepted};
pub use self::connection::Connection;
pub use self::endpoint::{Accept, Endpoint};
pub use self::error::{ConfigError, ConnectError, ConnectionError, SendDatagramError};
pub use self::futures::{AcceptBi, AcceptUni, OpenBi, OpenUni, ReadDatagram, SendDatagram};
pub use self::ids::{ConnectionId, Dir, Side, StreamId};
pub use self::incoming::{Incoming, IncomingFuture, RetryError};
pub use self::recv_stream::{Chunk, RecvStream};
pub use self::runtime::{
    AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller, default_runtime,
};
pub use self::send_stream::{SendStream, Written};
pub use self::stats::{ConnectionStats, EndpointStats, FrameStats, PathStats, UdpStats};
pub use self::stream_error::{
    ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError, StoppedError, WriteError,
};
pub use self::token::{
    NoneTokenLog, NoneTokenStore, TokenLog, TokenMemoryCache, TokenReuseError, TokenStore,
};
pub use self::unsupported::settings_without_effect;
pub use self::var_int::{VarInt, VarIntBoundsExceeded};
pub use udp::EcnCodepoint;
