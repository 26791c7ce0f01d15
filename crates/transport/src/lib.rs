//! The sans-IO QUIC v1 transport: endpoint, connections, streams. RFC 8999, 9000, 9001, 9002.
//!
//! An [`Endpoint`] takes datagrams and points in time, and returns datagrams, deadlines and events.
//! It has no clock, no socket and no task: a driver provides them. The `courser` crate has a driver
//! for tokio; a simulator may provide a virtual network.
//!
//! A driver needs six methods: [`Endpoint::handle_datagrams`], [`Endpoint::handle_timeout`],
//! [`Endpoint::poll_transmit`], [`Connection::poll_event`], [`Endpoint::next_timeout`] and
//! [`Connection::close`].

mod acknowledger;
mod build;
mod cid;
mod config;
mod connection;
mod datagram;
mod endpoint;
mod error;
mod flow;
mod frame_counts;
mod handshake;
mod hasher;
mod path;
mod pings;
mod protection;
mod recovery;
mod rng;
mod space;
mod stream;
#[cfg(test)]
mod testing;

pub use build::transmit::{MAX_BATCH, SocketId, Transmit, TransmitBuffer};
pub use cid::{
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, RandomIdGenerator,
    ServerIdError, ServerIdGenerator,
};
pub use config::{
    ClientConfig, ConfigError, EndpointConfig, MemoryTokenStore, PathMemory, RetryPolicy,
    ServerConfig, TokenStore, TransportConfig,
};
pub use connection::{
    Connection, ConnectionError, ConnectionStats, EarlyData, Event, KeyUpdateBlocked, MigrateError,
    Migrations, PathStats, PeerClose, Timer, TlsResult, TlsTask, UdpStats,
};
pub use datagram::{
    DatagramEvent, DatagramFate, DatagramId, DatagramStats, Datagrams, SendDatagramError,
    SendOptions,
};
pub use endpoint::{
    AddressFilter, AddressListError, AddressPrefix, ConnectError, ConnectionHandle,
    CreationLimiter, Endpoint, EndpointStats, Incoming, MAX_SHARDS, PacketTooBig, ReceiveMeta,
    ReplyLimits, ShardPlace, Stray,
};
pub use error::{PanicPayload, TransportError};
pub use frame_counts::FrameCounts;
pub use path::{MigrationState, NewPath};
pub use pings::Pings;
pub use rng::Rng;
pub use stream::{
    BlockedBy, ClosedStream, FinishError, ReadError, RecvStreamStats, ResetAtError,
    SendStreamStats, StreamEvent, Streams, Undelivered, WriteError,
};
