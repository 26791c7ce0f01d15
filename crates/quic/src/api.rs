//! The handles of applications: endpoints, connections, streams and datagrams.
//!
//! A handle locks the [shard](crate::shard) of its connection, changes its state, and waits for events.
//! No lower module depends on the handles.

mod builder;
mod candidates;
mod connecting;
mod connection;
mod datagram;
mod datagram_size;
mod endpoint;
mod handles;
mod handshake_failure;
#[doc(hidden)]
pub mod hooks;
mod incoming;
mod limits;
mod migrate;
mod observed;
mod order;
mod paths;
mod ping;
mod progress;
mod receive_stream;
mod send_half;
mod send_stream;
mod silence;
mod stopped;
mod weak;
mod write;

pub use builder::EndpointBuilder;
pub use connecting::Connecting;
pub use connection::Connection;
pub use datagram::{DatagramOptions, PendingFate};
pub use datagram_size::DatagramSizeWatch;
pub use endpoint::Endpoint;
pub use handshake_failure::HandshakeFailure;
pub use incoming::{Incoming, IncomingFuture, RetryError};
pub use observed::agreed_address;
pub use order::{SendGroup, SendRate, SetGroupError};
pub use receive_stream::RecvStream;
pub use send_stream::SendStream;
pub use weak::WeakConnection;
pub use write::Written;
