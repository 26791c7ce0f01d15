//! The sans-IO QUIC v1 transport: endpoint, connections, streams. RFC 8999, 9000, 9001, 9002.
//!
//! An [`Endpoint`] takes datagrams and points in time, and returns datagrams, deadlines and events.
//! It has no clock, no socket and no task: a driver provides them. The `courser` crate has a driver
//! for tokio; a simulator may provide a virtual network.
//!
//! # A driver
//!
//! A driver repeats these steps in this order:
//!
//! 1. [`Endpoint::handle_datagrams`] with each buffer of datagrams that a socket returned, and
//!    [`Endpoint::handle_timeout`] when the time of [`Endpoint::next_timeout`] has come. Calling it earlier does no harm.
//! 2. [`Endpoint::poll_incoming`], and for each client [`Endpoint::accept`], [`Endpoint::retry`],
//!    [`Endpoint::refuse`] or [`Endpoint::ignore`].
//! 3. For each connection that [`Endpoint::next_ready`] returns: [`Connection::poll_event`] until it returns
//!    `None`, the calls of the application, and then [`Endpoint::poll_transmit`] until it returns `None`, which also
//!    sets the timers of the connection. When [`Connection::is_drained`] is true, [`Endpoint::release`].
//! 4. [`Endpoint::poll_stateless_transmit`] until it returns `None`.
//! 5. Wait for a datagram, for the time of [`Endpoint::next_timeout`], or for the application. After a call on a
//!    connection at another time, such as [`Streams::write`], [`Endpoint::mark_ready`] brings it back in step 3.
//!
//! `examples/sans_io_loop.rs` is such a driver of sixty lines, with a blocking socket.
//!
//! # Time
//!
//! [`Time`](courser_base::Time) counts nanoseconds since an origin that the driver chooses, and must not run backwards.
//! One reading of the clock suffices for a turn of the loop. Datagrams that arrived together should have the same time.
//!
//! # Kinds of methods
//!
//! - For the driver: the ones above, and [`Endpoint::on_packet_too_big`] for ICMP messages.
//! - For the application: [`Endpoint::connect`], [`Connection::close`], and the parts of a connection, which own their state:
//!   [`Connection::streams`], [`Connection::datagrams`], [`Connection::pings`], [`Connection::migrations`].
//! - Queries: [`Connection::stats`], [`Connection::rtt`], [`Connection::path`], [`Connection::handshake_data`].
//!
//! Nothing blocks, and nothing is sent before the driver asks for it.

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
mod multipath;
mod nat;
mod observed;
mod path;
mod pings;
mod protection;
mod recovery;
mod rng;
mod space;
mod stream;
#[cfg(test)]
mod testing;
mod traffic;

pub use build::transmit::{MAX_BATCH, SocketId, Transmit, TransmitBuffer};
pub use cid::{
    ConnectionIdError, ConnectionIdGenerator, ConnectionIdRotation, RandomIdGenerator,
    ServerIdError, ServerIdGenerator,
};
pub use config::{
    ClientConfig, ConfigError, EndpointConfig, InitialDestination, MemoryTokenStore, PathMemory,
    PathSchedulerChoice, ReplyLimits, RetryPolicy, ServerConfig, TimeOfDay, TokenLog, TokenStore,
    TransportConfig,
};
pub use connection::{
    Candidates, Connection, ConnectionError, ConnectionStats, DirectAddress, EarlyData, Event,
    Fallbacks, KeyUpdateBlocked, MigrateError, Migrations, MultipathPaths, PathInfo, PathStats,
    PeerClose, Timer, TlsResult, TlsTask, WithheldFeatures,
};
pub use datagram::{
    DatagramEvent, DatagramFate, DatagramId, DatagramPrefix, DatagramStats, Datagrams,
    SendDatagramError, SendOptions,
};
pub use endpoint::{
    AddressFilter, AddressListError, AddressPrefix, ConnectError, ConnectionHandle,
    CreationLimiter, Endpoint, EndpointStats, Incoming, MAX_SHARDS, MisroutedBatch, PacketTooBig,
    ReceiveMeta, ShardPlace, UnreachableReport,
};
pub use error::{PanicPayload, TransportError};
pub use frame_counts::FrameCounts;
pub use multipath::{OpenPathError, PathPreference};
pub use nat::{CandidateError, CandidateStats};
pub use observed::{AddressObservations, ObservedPath};
pub use path::{MigrationState, NewPath};
pub use pings::Pings;
pub use rng::Rng;
pub use stream::{
    BlockedBy, ClosedStream, FinishError, Level, ReadError, RecvStreamStats, ResetAtError,
    SendStreamStats, StreamEvent, Streams, Undelivered, WriteError,
};
pub use traffic::{PathTraffic, UdpStats};
