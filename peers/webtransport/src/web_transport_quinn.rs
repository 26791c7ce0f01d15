//! web-transport-quinn.

use std::net::SocketAddr;

use bytes::Bytes;
use peers_common::command_line::{ClientOptions, ServerOptions};
use peers_common::{Failure, PathCounts, locked_version};
use url::Url;
use web_transport_quinn::{RecvStream, SendStream};

use crate::session::{Dialer, Library, Receiving, Sending, Server, Session};
use crate::wtransport::{ALPN, counts};

/// The library web-transport-quinn.
#[derive(Debug)]
pub struct WebTransportQuinn;

impl Library for WebTransportQuinn {
    type Server = Listening;
    type Dialer = Client;

    fn version() -> String {
        locked_version("web-transport-quinn")
    }

    fn server(options: &ServerOptions) -> Result<Listening, Failure> {
        let endpoint = peers_quinn::endpoint::server(options, ALPN)?;
        Ok(Listening {
            address: endpoint.local_addr()?,
            server: web_transport_quinn::Server::new(endpoint),
        })
    }

    fn dialer(options: &ClientOptions) -> Result<Client, Failure> {
        let endpoint = peers_quinn::endpoint::client(options, ALPN)?;
        let config = peers_quinn::endpoint::client_config(options, ALPN)?;
        let url = format!("https://localhost:{}/", options.server.port());
        Ok(Client {
            client: web_transport_quinn::Client::new(endpoint, config),
            url: Url::parse(&url)?,
        })
    }
}

/// A server of web-transport-quinn.
pub struct Listening {
    server: web_transport_quinn::Server,
    address: SocketAddr,
}

impl Server for Listening {
    type Session = web_transport_quinn::Session;

    fn address(&self) -> Result<SocketAddr, Failure> {
        Ok(self.address)
    }

    async fn accept(
        &mut self,
    ) -> Option<impl Future<Output = Result<Self::Session, Failure>> + Send + 'static> {
        let request = self.server.accept().await?;
        Some(async move { Ok(request.ok().await?) })
    }
}

/// A client of web-transport-quinn.
#[derive(Clone)]
pub struct Client {
    client: web_transport_quinn::Client,
    url: Url,
}

impl Dialer for Client {
    type Session = web_transport_quinn::Session;

    async fn dial(&self) -> Result<Self::Session, Failure> {
        Ok(self.client.connect(self.url.clone()).await?)
    }
}

impl Session for web_transport_quinn::Session {
    type Sending = SendStream;
    type Receiving = RecvStream;

    async fn open(&self) -> Result<(SendStream, RecvStream), Failure> {
        Ok(self.open_bi().await?)
    }

    async fn accept(&self) -> Option<(SendStream, RecvStream)> {
        self.accept_bi().await.ok()
    }

    async fn send_datagram(&self, payload: Bytes) -> Result<(), Failure> {
        Ok(self.send_datagram_wait(payload).await?)
    }

    fn datagram_room(&self) -> usize {
        self.datagram_send_buffer_space()
    }

    async fn datagrams(&self) -> Option<u64> {
        self.read_datagram().await.ok().map(|_| 1)
    }

    fn counts(&self) -> PathCounts {
        counts(self)
    }

    fn close(&self) {
        Self::close(self, 0, b"");
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
