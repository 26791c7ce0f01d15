//! courser as a peer: `peer-courser server|client`.

#[path = "../../quinn/src/quic_program.rs"]
pub mod quic_program;

use courser as api;

fn main() -> Result<(), peers::Failure> {
    quic_program::run()
}

/// courser with the shared settings.
mod stack {
    use std::sync::Arc;

    use bytes::Bytes;
    use courser::{
        Algorithm, ClientConfig, Connection, Endpoint, RecvStream, RetryPolicy, ServerConfig,
        TransportConfig,
    };
    use peers::command_line::{ClientOptions, ServerOptions, TransportOptions};
    use peers::{Failure, PathCounts, settings, tls};

    /// Datagrams of the shared payload that fill the shared buffer.
    const DATAGRAM_QUEUE: usize = settings::DATAGRAM_BUFFER / settings::DATAGRAM_PAYLOAD;

    pub(crate) fn version() -> String {
        peers::locked_version("courser")
    }

    /// Starts a server without Retry and tokens; quinn sends none by default either.
    pub(crate) fn server(options: &ServerOptions, alpn: &[u8]) -> Result<Endpoint, Failure> {
        let tls = tls::server(&options.identity, &[alpn])?;
        let config = ServerConfig::with_rustls(Arc::new(tls))
            .transport_config(transport(options.transport, options.streams))
            .retry(RetryPolicy::Never)
            .new_tokens(0);
        Ok(Endpoint::server(config, options.listen)?)
    }

    pub(crate) fn client(options: &ClientOptions, alpn: &[u8]) -> Result<Endpoint, Failure> {
        let tls = tls::client(&options.identity, &[alpn])?;
        let config = ClientConfig::with_rustls(Arc::new(tls))
            .transport_config(transport(options.transport, 0));
        let mut endpoint = Endpoint::client(options.local())?;
        endpoint.set_default_client_config(config);
        Ok(endpoint)
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
        PathCounts {
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            packets_spuriously_lost: stats.packets_spuriously_lost,
            datagrams_received: stats.udp_received.datagrams,
            congestion_events: stats.congestion_events,
            datagram: stats.path.mtu,
            rtt_ms: stats.path.rtt.as_secs_f64() * 1e3,
        }
    }

    /// Windows begin at the shared size and stay there. How much waits to be sent stays courser's
    /// own.
    fn transport(options: TransportOptions, streams: u32) -> TransportConfig {
        let own = TransportConfig {
            max_bidi_streams: streams.into(),
            max_uni_streams: 0,
            max_idle_timeout: Some(settings::IDLE_TIMEOUT),
            congestion: Algorithm::Cubic,
            ..TransportConfig::default()
        };
        if options.own_settings {
            return own;
        }
        TransportConfig {
            stream_receive_window: settings::STREAM_WINDOW.into(),
            stream_receive_window_max: settings::STREAM_WINDOW.into(),
            receive_window: settings::CONNECTION_WINDOW.into(),
            receive_window_max: settings::CONNECTION_WINDOW.into(),
            datagram_receive_buffer_size: Some(settings::DATAGRAM_BUFFER),
            datagram_receive_queue: DATAGRAM_QUEUE,
            datagram_send_buffer_size: settings::DATAGRAM_BUFFER,
            datagram_send_queue: DATAGRAM_QUEUE,
            mtu: options.datagram,
            mtu_discovery: false,
            ..own
        }
    }
}
