//! quinn as a peer: `peer-quinn server|client`.

#[path = "../quic_program.rs"]
mod quic_program;

fn main() -> Result<(), peers::Failure> {
    quic_program::run()
}

/// quinn with the shared settings.
mod stack {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use bytes::Bytes;
    use peers::command_line::{ClientOptions, ServerOptions, TransportOptions};
    use peers::{Failure, PathCounts, settings, sockets, tls};
    use quinn::congestion::CubicConfig;
    use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    use quinn::{
        ClientConfig, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig, VarInt,
    };

    pub(crate) use quinn::{
        Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream,
    };

    pub(crate) const NO_ERROR: VarInt = VarInt::from_u32(0);

    pub(crate) fn version() -> String {
        peers::locked_version("quinn")
    }

    pub(crate) fn server(options: &ServerOptions) -> Result<Endpoint, Failure> {
        let tls = tls::server(&options.identity, &[settings::ALPN])?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        config.transport_config(Arc::new(transport(options.transport, options.streams)?));
        endpoint(Some(config), options.listen)
    }

    pub(crate) fn client(options: &ClientOptions) -> Result<Endpoint, Failure> {
        let tls = tls::client(&options.identity, &[settings::ALPN])?;
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(Arc::new(transport(options.transport, 0)?));
        let mut endpoint = endpoint(None, options.local())?;
        endpoint.set_default_client_config(config);
        Ok(endpoint)
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

    /// Reads what has come, `None` at the end.
    pub(crate) async fn read(
        receive: &mut RecvStream,
        chunks: &mut [Bytes],
    ) -> Result<Option<usize>, Failure> {
        Ok(receive.read_chunks(chunks).await?)
    }

    pub(crate) fn counts(connection: &Connection) -> PathCounts {
        let stats = connection.stats();
        let path = stats.path;
        PathCounts {
            packets_sent: path.sent_packets,
            packets_lost: path.lost_packets,
            packets_spuriously_lost: 0,
            datagrams_received: stats.udp_rx.datagrams,
            congestion_events: path.congestion_events,
            datagram: path.current_mtu,
            rtt_ms: path.rtt.as_secs_f64() * 1e3,
        }
    }

    /// The send window stays quinn's own, 10 MB.
    fn transport(options: TransportOptions, streams: u32) -> Result<TransportConfig, Failure> {
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(VarInt::from_u32(streams))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .max_idle_timeout(Some(settings::IDLE_TIMEOUT.try_into()?))
            .congestion_controller_factory(Arc::new(CubicConfig::default()));
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
}
