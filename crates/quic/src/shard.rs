//! Shards: one socket, one transport endpoint and one lock each, and the task that drives them.

pub(crate) mod lock;
pub(crate) mod shard_sockets;
pub(crate) mod shards;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod wait;
pub(crate) mod wakers;
pub(crate) mod yielding;

mod blocked_socket;
mod clock;
mod driver;
mod driver_state;
mod drop_queue;
mod ended_values;
mod entries;
mod entry;
mod health;
mod offload;
mod outbox;
mod pause;
mod receive_buffer;
mod receiver;
mod socket_event;
pub(crate) mod sockets;
mod timing;

pub use socket_event::{SocketCall, SocketEvent};
