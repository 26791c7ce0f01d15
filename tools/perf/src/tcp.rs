//! The same measurements over TLS on TCP, for comparison.
//!
//! TCP has no streams, so a connection carries one exchange after the other. A request begins with the
//! requested length of the response, as over QUIC, and the length of the bytes that follow. The maximum
//! length means that bytes follow until the end of the connection.

mod client;
mod counted;
mod frame;
mod server;

pub(crate) use client::{TcpConnector, TcpLink};
pub(crate) use server::TcpServer;
