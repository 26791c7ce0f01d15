//! Endpoints with the shared settings, of a library with quinn's method names.

use std::net::SocketAddr;
use std::sync::Arc;

use peers_common::command_line::{ClientOptions, ServerOptions, TransportOptions};
use peers_common::{Failure, settings, sockets, tls};

use crate::api::congestion::CubicConfig;
use crate::api::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::api::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use crate::stack;

/// Creates the server of a command line for an application protocol.
///
/// # Errors
/// Returns an error if the identity cannot be read or the address is taken.
pub fn server(options: &ServerOptions, alpn: &[u8]) -> Result<Endpoint, Failure> {
    endpoint(Some(server_config(options, alpn)?), options.listen)
}

/// Returns the configuration of [`server`].
///
/// # Errors
/// Returns an error if the identity cannot be read.
pub fn server_config(options: &ServerOptions, alpn: &[u8]) -> Result<ServerConfig, Failure> {
    let tls = tls::server(&options.identity, &[alpn])?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let transport = transport(options.transport, options.streams, alpn)?;
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Creates the client of a command line for an application protocol.
///
/// # Errors
/// Returns an error if the certificate cannot be read.
pub fn client(options: &ClientOptions, alpn: &[u8]) -> Result<Endpoint, Failure> {
    let config = client_config(options, alpn)?;
    Ok(stack::with_config(endpoint(None, options.local())?, config))
}

/// Returns the configuration of [`client`].
///
/// # Errors
/// Returns an error if the certificate cannot be read.
pub fn client_config(options: &ClientOptions, alpn: &[u8]) -> Result<ClientConfig, Failure> {
    let tls = tls::client(&options.identity, &[alpn])?;
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport(options.transport, 0, alpn)?));
    Ok(config)
}

fn endpoint(server: Option<ServerConfig>, address: SocketAddr) -> Result<Endpoint, Failure> {
    let socket = sockets::udp(address)?;
    Ok(Endpoint::new(
        EndpointConfig::default(),
        server,
        socket,
        Arc::new(TokioRuntime),
    )?)
}

/// The send window stays the library's own, 10 MB.
fn transport(
    options: TransportOptions,
    streams: u32,
    alpn: &[u8],
) -> Result<TransportConfig, Failure> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .max_idle_timeout(Some(settings::IDLE_TIMEOUT.try_into()?))
        .congestion_controller_factory(Arc::new(CubicConfig::default()));
    // HTTP/3 has unidirectional streams for its own ends.
    if alpn == settings::ALPN {
        config.max_concurrent_uni_streams(VarInt::from_u32(0));
    }
    if options.own_settings {
        return Ok(config);
    }
    config
        .stream_receive_window(VarInt::from_u32(settings::STREAM_WINDOW))
        .receive_window(VarInt::from_u32(settings::CONNECTION_WINDOW))
        .datagram_receive_buffer_size(Some(settings::DATAGRAM_BUFFER))
        .datagram_send_buffer_size(settings::DATAGRAM_BUFFER)
        .initial_mtu(options.datagram)
        .min_mtu(options.datagram)
        .mtu_discovery_config(None);
    Ok(config)
}
