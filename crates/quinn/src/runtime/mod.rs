//! Runtimes and sockets other than those of courser.

mod adapter;
mod socket;
mod tokio;
mod traits;

pub(crate) use self::adapter::entered;
pub(crate) use self::socket::SocketAdapter;
pub use self::tokio::{TokioRuntime, default_runtime};
pub use self::traits::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};
