//! wtransport. It lets programs reach quinn, and they read and write chunks there, which its own streams copy.

use std::net::SocketAddr;

use bytes::{BufMut as _, Bytes, BytesMut};
use peers_common::command_line::{ClientOptions, ServerOptions};
use peers_common::{Failure, PathCounts, locked_version};
use wtransport::{Connection, Endpoint, RecvStream, SendStream, VarInt};

use crate::session::{Dialer, Library, Receiving, Sending, Server, Session};

/// The library wtransport.
#[derive(Debug)]
pub struct Wtransport;

impl Library for Wtransport {
    type Server = Endpoint<wtransport::endpoint::endpoint_side::Server>;
    type Dialer = Client;

    fn version() -> String {
        locked_version("wtransport")
    }

    fn server(options: &ServerOptions) -> Result<Self::Server, Failure> {
        let config = wtransport::ServerConfig::builder()
            .with_bind_socket(peers_common::sockets::udp(options.listen)?)
            .build_with_quic_config(peers_quinn::endpoint::server_config(options, ALPN)?);
        Ok(Endpoint::server(config)?)
    }

    fn dialer(options: &ClientOptions) -> Result<Client, Failure> {
        let config = wtransport::ClientConfig::builder()
            .with_bind_socket(peers_common::sockets::udp(options.local())?)
            .build_with_quic_config(peers_quinn::endpoint::client_config(options, ALPN)?);
        Ok(Client {
            endpoint: std::sync::Arc::new(Endpoint::client(config)?),
            server: options.server,
        })
    }
}

/// The protocol of HTTP/3.
pub(crate) const ALPN: &[u8] = b"h3";

impl Server for Endpoint<wtransport::endpoint::endpoint_side::Server> {
    type Session = Connection;

    fn address(&self) -> Result<SocketAddr, Failure> {
        Ok(self.local_addr()?)
    }

    async fn accept(
        &mut self,
    ) -> Option<impl Future<Output = Result<Connection, Failure>> + Send + 'static> {
        let incoming = Self::accept(self).await;
        Some(async move { Ok(incoming.await?.accept().await?) })
    }
}

/// A client of wtransport.
#[derive(Clone)]
pub struct Client {
    endpoint: std::sync::Arc<Endpoint<wtransport::endpoint::endpoint_side::Client>>,
    server: SocketAddr,
}

impl Dialer for Client {
    type Session = Connection;

    async fn dial(&self) -> Result<Connection, Failure> {
        let url = format!("https://localhost:{}/", self.server.port());
        Ok(self.endpoint.connect(url).await?)
    }
}

impl Session for Connection {
    type Sending = SendStream;
    type Receiving = RecvStream;

    async fn open(&self) -> Result<(SendStream, RecvStream), Failure> {
        Ok(self.open_bi().await?.await?)
    }

    async fn accept(&self) -> Option<(SendStream, RecvStream)> {
        self.accept_bi().await.ok()
    }

    /// Writes the number of the session itself: the library drops the oldest datagram instead of waiting.
    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        let mut datagram = BytesMut::with_capacity(payload.len() + 1);
        datagram.put_u8(0);
        datagram.put(payload);
        let quic = self.quic_connection();
        Ok(quic.send_datagram_wait(datagram.freeze()).await?)
    }

    fn datagram_room(&self) -> usize {
        self.quic_connection().datagram_send_buffer_space()
    }

    async fn datagrams(&self) -> Option<u64> {
        self.receive_datagram().await.ok().map(|_| 1)
    }

    fn counts(&self) -> PathCounts {
        counts(self.quic_connection())
    }

    fn close(&self) {
        Self::close(self, VarInt::from_u32(0), b"");
    }
}

/// Returns the counts of a connection of quinn.
pub(crate) fn counts(connection: &quinn::Connection) -> PathCounts {
    let stats = connection.stats();
    PathCounts {
        packets_sent: stats.path.sent_packets,
        packets_lost: stats.path.lost_packets,
        packets_spuriously_lost: 0,
        datagrams_received: stats.udp_rx.datagrams,
        congestion_events: stats.path.congestion_events,
        datagram: stats.path.current_mtu,
        rtt_ms: stats.path.rtt.as_secs_f64() * 1e3,
    }
}

impl Sending for SendStream {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Failure> {
        Ok(self.quic_stream_mut().write_chunk(bytes).await?)
    }

    /// The method of the library waits for the acknowledgment.
    async fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.quic_stream_mut().finish()?)
    }
}

impl Receiving for RecvStream {
    async fn read(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, Failure> {
        Ok(self.quic_stream_mut().read_chunks(chunks).await?)
    }
}
