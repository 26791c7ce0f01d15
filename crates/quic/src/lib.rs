//! QUIC for tokio: endpoints, connections and streams.
//!
//! Programs use this crate through `courser`, which re-exports all of it. An [`Endpoint`] is one UDP
//! socket, a [`Connection`] leads to one peer, and each stream on it is a [`SendStream`], a
//! [`RecvStream`] or both. The [`runtime`] module is the only part that depends on tokio's reactor
//! and timers.

mod builder;
mod certificate_requests;
mod clock;
mod config;
mod connecting;
mod connection;
mod datagram;
mod driver;
mod ended;
mod endpoint;
mod error;
mod handles;
mod handshake_failure;
mod health;
#[doc(hidden)]
pub mod hooks;
mod identity;
mod incoming;
mod limits;
mod make_way;
mod migrate;
mod offload;
mod opening;
mod outbox;
mod pause;
mod ping;
mod progress;
mod receive_buffer;
mod receive_stream;
mod remains;
pub mod runtime;
mod send_stream;
mod sending;
mod shard;
mod shards;
mod silence;
mod slot;
mod socket_event;
mod sockets;
mod state;
mod stream;
mod timing;
mod tls_choices;
mod unfinished;
mod wait;
mod wakers;
mod weak;
mod write;

pub use courser_base::{EcnCounts, Rate, Side, Unreachable};
pub use courser_crypto::{CipherSuite, HandshakeData};
pub use courser_recovery::{Algorithm, SavedPath};
pub use courser_telemetry as telemetry;
pub use courser_tls::{
    ClientAuthentication, Cryptography, EarlyDataOptions, Ech, EchRejection, HandshakeFailureKind,
    HandshakeOffer, KeyExchange, MemoryReplayFilter, QueuedKeyLog, RawKeyVerifier, ReplayFilter,
    UnknownAlgorithm, rustls,
};
pub use courser_transport::{
    AddressFilter, AddressListError, AddressPrefix, BlockedBy, ClosedStream, ConnectionError,
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, ConnectionStats, DatagramFate,
    DatagramStats, EarlyData, EndpointConfig, EndpointStats, Fallbacks, FrameCounts,
    KeyUpdateBlocked, MemoryTokenStore, PathMemory, PathStats, PeerClose, RandomIdGenerator,
    RecvStreamStats, ReplyLimits, ResetAtError, RetryPolicy, Rng, SendStreamStats, ServerIdError,
    ServerIdGenerator, TokenStore, TransportConfig, TransportError, UdpStats, WithheldFeatures,
};
pub use courser_udp::{Capabilities, Counters, ErrorCause, ErrorCounts, default_memory_budget};
pub use courser_wire::{
    ApplicationErrorCode, ConnectionId, DatagramProtocol, Direction, StreamId, TooLarge,
    TransportErrorCode, VarInt, Version as QuicVersion,
};

pub use builder::EndpointBuilder;
pub use certificate_requests::CertificateRequests;
pub use config::{ClientConfig, ServerConfig};
pub use connecting::Connecting;
pub use connection::Connection;
pub use datagram::{DatagramOptions, PendingFate};
pub use endpoint::Endpoint;
pub use error::{
    BindError, ConfigError, ConnectError, ExportKeyingMaterialError, MigrateError, ReadError,
    ReadExactError, ReadToEndError, SendDatagramError, StoppedError, WriteError,
};
pub use handshake_failure::HandshakeFailure;
pub use identity::Identity;
pub use incoming::{Incoming, IncomingFuture, RetryError};
pub use receive_stream::RecvStream;
pub use send_stream::SendStream;
pub use socket_event::{SocketCall, SocketEvent};
pub use weak::WeakConnection;
pub use write::Written;
