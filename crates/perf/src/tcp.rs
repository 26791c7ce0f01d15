//! The same measurements over TLS on TCP, as the yardstick.
//!
//! TCP has no streams, so a connection carries one exchange after the other. A request begins
//! with the wanted response length, as over QUIC, and the length of what follows; with the
//! latter at its maximum, bytes follow until the end of the connection.

mod client;
mod counted;
mod frame;
mod server;

pub(crate) use client::{TcpConnector, TcpLink};
pub(crate) use server::TcpServer;
