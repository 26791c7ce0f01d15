//! The UDP sockets of a server.

use std::net::SocketAddr;

use courser_quic::{BindError, Endpoint, EndpointBuilder, ServerConfig, hooks};

use super::path_settings::PathSettings;
use super::sinks::MakeSinks;

/// The socket settings that all addresses share.
#[derive(Debug)]
pub(crate) struct QuicSockets {
    pub(crate) config: ServerConfig,
    /// Number of shards for each address.
    pub(crate) shards: usize,
    pub(crate) path_settings: PathSettings,
    /// Creates the sinks of connections, which replace those of `config`.
    pub(crate) sinks: Option<MakeSinks>,
}

/// The settings of one QUIC endpoint, with which it is opened and reopened.
#[derive(Debug)]
pub(crate) struct QuicSocket {
    config: ServerConfig,
    shards: usize,
    greases_quic_bit: bool,
}

impl QuicSocket {
    /// Combines these settings with the configuration for one address.
    pub(crate) fn new(config: ServerConfig, settings: &QuicSockets) -> Self {
        Self {
            config,
            shards: settings.shards,
            greases_quic_bit: settings.path_settings.greases_quic_bit,
        }
    }

    pub(crate) fn open(&self, address: SocketAddr) -> Result<Endpoint, BindError> {
        self.builder().shards(self.shards).bind(address)
    }

    /// Opens an endpoint on sockets that are bound to this address.
    pub(crate) fn inherit(
        &self,
        address: SocketAddr,
        sockets: Vec<std::net::UdpSocket>,
    ) -> Result<Endpoint, BindError> {
        hooks::inherit(self.builder(), address, sockets)
    }

    fn builder(&self) -> EndpointBuilder {
        Endpoint::builder()
            .server(self.config.clone())
            .grease_quic_bit(self.greases_quic_bit)
    }
}
