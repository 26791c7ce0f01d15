//! The sockets of QUIC.

use std::net::SocketAddr;

use courser_quic::{BindError, Endpoint, ServerConfig};

use super::moves::Moves;
use super::sinks::MakeSinks;

/// The settings of the sockets at all addresses.
#[derive(Debug)]
pub(crate) struct QuicSockets {
    pub(crate) config: ServerConfig,
    /// The number of shards for each address.
    pub(crate) shards: usize,
    pub(crate) moves: Moves,
    /// Makes the sinks of connections, in place of those of `config`.
    pub(crate) sinks: Option<MakeSinks>,
}

/// The settings of an endpoint of QUIC, with which it is opened, and opened again.
#[derive(Debug)]
pub(crate) struct QuicSocket {
    config: ServerConfig,
    shards: usize,
    greases_quic_bit: bool,
}

impl QuicSocket {
    /// Takes these settings, with a configuration for one address.
    pub(crate) fn new(config: ServerConfig, settings: &QuicSockets) -> Self {
        Self {
            config,
            shards: settings.shards,
            greases_quic_bit: settings.moves.greases_quic_bit,
        }
    }

    pub(crate) fn open(&self, address: SocketAddr) -> Result<Endpoint, BindError> {
        Endpoint::builder()
            .server(self.config.clone())
            .shards(self.shards)
            .grease_quic_bit(self.greases_quic_bit)
            .bind(address)
    }
}
