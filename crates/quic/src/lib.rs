//! QUIC for tokio: endpoints, connections and streams.
//!
//! Programs use this crate through `courser`, which re-exports all of it. An [`Endpoint`] is one UDP
//! socket, a [`Connection`] leads to one peer, and each stream on it is a [`SendStream`], a
//! [`RecvStream`] or both. The [`runtime`] module is the only part that depends on tokio's reactor
//! and timers.

mod api;
mod config;
mod error;
pub mod runtime;
mod shard;
mod via;

pub use courser_base::{EcnCounts, Rate, Side, Unreachable};
pub use courser_crypto::{CipherSuite, HandshakeData};
pub use courser_recovery::{
    Algorithm, PathChoice, PathDemand, PathSchedule, PathScheduler, PathSchedulerFactory, PathView,
    SavedPath,
};
pub use courser_telemetry as telemetry;
pub use courser_tls::{
    ClientAuthentication, Cryptography, EarlyDataOptions, Ech, EchRejection, HandshakeFailureKind,
    HandshakeOffer, KeyExchange, MemoryReplayFilter, QueuedKeyLog, RawKeyVerifier, ReplayFilter,
    UnknownAlgorithm, crypto_provider, rustls, ticketer,
};
pub use courser_transport::{
    AddressFilter, AddressListError, AddressObservations, AddressPrefix, BlockedBy, CandidateError,
    CandidateStats, ClosedStream, ConnectionError, ConnectionIdError, ConnectionIdGenerator,
    ConnectionIdRotation, ConnectionStats, DatagramFate, DatagramStats, DirectAddress, EarlyData,
    EndpointConfig, EndpointStats, Fallbacks, FrameCounts, KeyUpdateBlocked, MemoryTokenStore,
    ObservedPath, PathInfo, PathMemory, PathPreference, PathSchedulerChoice, PathStats,
    PathTraffic, PeerClose, RandomIdGenerator, RecvStreamStats, ReplyLimits, ResetAtError,
    RetryPolicy, Rng, SendStreamStats, ServerIdError, ServerIdGenerator, TimeOfDay, TokenLog,
    TokenStore, TransportConfig, TransportError, UdpStats, WithheldFeatures,
};
pub use courser_udp::{Capabilities, Counters, ErrorCause, ErrorCounts, default_memory_budget};
pub use courser_wire::{
    ApplicationErrorCode, ConnectionId, DatagramProtocol, Direction, PathId, StreamId, TooLarge,
    TransportErrorCode, VarInt, Version as QuicVersion,
};

#[doc(hidden)]
pub use api::hooks;
pub use api::{
    Connecting, Connection, DatagramOptions, DatagramSizeWatch, Endpoint, EndpointBuilder,
    HandshakeFailure, Incoming, IncomingFuture, PendingFate, RecvStream, RetryError, SendGroup,
    SendRate, SendStream, SetGroupError, WeakConnection, Written, agreed_address,
};
pub use config::{CertificateRequests, ClientConfig, Identity, ServerConfig};
pub use error::{
    BindError, ConfigError, ConnectError, ExportKeyingMaterialError, MigrateError,
    OfferCandidateError, OpenPathError, ReadError, ReadExactError, ReadToEndError,
    SendDatagramError, StoppedError, WriteError,
};
pub use shard::{SocketCall, SocketEvent};
pub use via::Via;
