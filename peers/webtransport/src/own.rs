//! courser.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use courser::webtransport::{
    self, Config, Limits, Listener, RecvStream, SendStream, SessionRequest,
};
use courser::{
    Algorithm, ClientConfig, Endpoint, RetryPolicy, ServerConfig, Side, TransportConfig, h3,
};
use peers_common::command_line::{ClientOptions, ServerOptions, TransportOptions};
use peers_common::{Failure, PathCounts, locked_version, settings, tls};

use crate::session::{Dialer, Library, Receiving, Sending, Server, Session};

/// The library courser.
#[derive(Debug)]
pub struct Courser;

impl Library for Courser {
    type Server = Listener;
    type Dialer = Client;

    fn version() -> String {
        locked_version("courser")
    }

    fn server(options: &ServerOptions) -> Result<Listener, Failure> {
        let tls = tls::server(&options.identity, &[h3::ALPN.as_bytes()])?;
        let config = ServerConfig::with_rustls(Arc::new(tls))
            .transport_config(transport(options.transport, options.streams))
            .retry(RetryPolicy::Never)
            .new_tokens(0);
        let endpoint = Endpoint::server(config, options.listen)?;
        Ok(Listener::on(endpoint, config_of_sessions())?)
    }

    fn dialer(options: &ClientOptions) -> Result<Client, Failure> {
        let tls = tls::client(&options.identity, &[h3::ALPN.as_bytes()])?;
        let config = ClientConfig::with_rustls(Arc::new(tls))
            .transport_config(transport(options.transport, 0));
        let mut endpoint = Endpoint::client(options.local())?;
        endpoint.set_default_client_config(config);
        Ok(Client {
            endpoint,
            server: options.server,
        })
    }
}

/// The limits of QUIC are those of the measurement.
fn config_of_sessions() -> Config {
    Config {
        limits: Limits::NONE,
        ..Config::new()
    }
}

/// Windows begin at the shared size and stay there.
fn transport(options: TransportOptions, streams: u32) -> TransportConfig {
    let own = TransportConfig {
        max_bidi_streams: u64::from(streams) + 1,
        max_uni_streams: 10,
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

impl Server for Listener {
    type Session = Opened;

    fn address(&self) -> Result<SocketAddr, Failure> {
        Ok(self.local_addr()?)
    }

    async fn accept(
        &mut self,
    ) -> Option<impl Future<Output = Result<Opened, Failure>> + Send + 'static> {
        let pending = Self::accept(self).await?;
        Some(async move {
            let session = pending.accept().await?;
            Ok(Opened {
                session,
                http3: None,
            })
        })
    }
}

/// A client of courser.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl Dialer for Client {
    type Session = Opened;

    async fn dial(&self) -> Result<Opened, Failure> {
        let connecting = self.endpoint.connect(self.server, settings::SERVER_NAME)?;
        let connection = connecting.await?;
        let mut settings = h3::Config::new(Side::Client);
        webtransport::enable(&mut settings, Side::Client, config_of_sessions())?;
        let http3 = h3::Client::with_config(connection, settings);
        let uri = format!("https://localhost:{}/", self.server.port()).parse()?;
        let session = webtransport::connect(&http3, SessionRequest::new(uri)).await?;
        Ok(Opened {
            session,
            http3: Some(http3),
        })
    }
}

/// A session of courser.
#[derive(Clone, Debug)]
pub struct Opened {
    session: webtransport::Session,
    /// Keeps the connection of a client.
    http3: Option<h3::Client>,
}

impl Session for Opened {
    type Sending = SendStream;
    type Receiving = RecvStream;

    async fn open(&self) -> Result<(SendStream, RecvStream), Failure> {
        Ok(self.session.open_bi().await?)
    }

    async fn accept(&self) -> Option<(SendStream, RecvStream)> {
        self.session.accept_bi().await.ok()
    }

    /// Writes the number of the session itself, as the other libraries do: the datagrams of a session drop the oldest
    /// one instead of waiting.
    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        let mut datagram = BytesMut::with_capacity(payload.len() + 1);
        datagram.put_u8(0);
        datagram.put(payload);
        let quic = self.session.quic();
        Ok(quic.send_datagram_wait(datagram.freeze()).await?)
    }

    fn datagram_room(&self) -> usize {
        self.session.quic().datagram_send_buffer_space()
    }

    async fn datagrams(&self) -> Option<u64> {
        let mut batch = Vec::new();
        let count = self.session.datagrams().receive_many(&mut batch, 64).await;
        count.map(|count| count as u64)
    }

    fn counts(&self) -> PathCounts {
        let stats = self.session.quic().stats();
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

    fn close(&self) {
        self.session.close(0, "");
        if let Some(http3) = &self.http3 {
            http3.quic().close(0x100_u32.into(), b"");
        }
    }
}

impl Sending for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failure> {
        Ok(self.write_chunk(bytes).await?)
    }

    async fn finish(&mut self) -> Result<(), Failure> {
        Ok(Self::finish(self)?)
    }
}

impl Receiving for RecvStream {
    async fn read(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, Failure> {
        Ok(self.read_chunks(chunks).await?)
    }
}

/// Datagrams that fill the shared buffer, small ones too.
const DATAGRAM_QUEUE: usize = settings::DATAGRAM_BUFFER / 64;
