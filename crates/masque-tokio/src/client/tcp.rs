//! Connections to a proxy over TCP, with HTTP/2 or HTTP/1.1.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use courser_masque::Carrier;
use courser_masque::request::UPGRADE_TOKEN;
use courser_quic::runtime;
use courser_tls::rustls;
use courser_tls::rustls::pki_types::ServerName;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{OpenError, check_upgrade};

/// A proxy that is reached over TCP.
#[derive(Debug)]
pub(super) struct TcpProxy {
    tls: Arc<rustls::ClientConfig>,
    host: String,
    addresses: Vec<SocketAddr>,
    /// The connection of HTTP/2, which all tunnels share. Each tunnel of HTTP/1.1 has one of its own.
    http2: Option<http2::SendRequest<Empty<Bytes>>>,
}

impl TcpProxy {
    /// Connects with HTTP/2, or prepares connections with HTTP/1.1.
    pub(super) async fn connect(
        carrier: Carrier,
        tls: rustls::ClientConfig,
        host: &str,
        addresses: Vec<SocketAddr>,
    ) -> Result<Self, OpenError> {
        let mut proxy = Self {
            tls: Arc::new(tls),
            host: host.to_owned(),
            addresses,
            http2: None,
        };
        if carrier == Carrier::Http2 {
            let stream = TokioIo::new(proxy.dial().await?);
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW);
            let (send, connection) = builder.handshake(stream).await?;
            // Its errors are those of requests.
            runtime::spawn(async move { drop(connection.await) });
            proxy.http2 = Some(send);
        }
        Ok(proxy)
    }

    pub(super) const fn carrier(&self) -> Carrier {
        match self.http2 {
            Some(_) => Carrier::Http2,
            None => Carrier::Http1,
        }
    }

    /// Sends a request, and returns its stream.
    pub(super) async fn open(&self, request: Request<()>) -> Result<Upgraded, OpenError> {
        let mut request = request.map(|()| Empty::new());
        let carrier = self.carrier();
        let response = match &self.http2 {
            Some(send) => {
                let protocol = hyper::ext::Protocol::from_static(UPGRADE_TOKEN);
                request.extensions_mut().insert(protocol);
                let mut send = send.clone();
                send.ready().await?;
                send.send_request(request).await?
            }
            None => {
                let stream = TokioIo::new(self.dial().await?);
                let (mut send, connection) = http1::handshake(stream).await?;
                runtime::spawn(async move { drop(connection.with_upgrades().await) });
                send.send_request(request).await?
            }
        };
        check_upgrade(carrier, &response)?;
        Ok(hyper::upgrade::on(response).await?)
    }

    /// Connects to the first address that answers.
    async fn dial(&self) -> Result<TlsStream<TcpStream>, OpenError> {
        let unreachable = |reason: String| OpenError::Unreachable {
            proxy: self.host.clone(),
            reason,
        };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|error| unreachable(error.to_string()))?;
        let mut last = unreachable("there is no address".to_owned());
        for address in &self.addresses {
            let connected = match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Small packets must not wait for acknowledgements. If this fails, they are only slower.
                    let _ = stream.set_nodelay(true);
                    let connector = TlsConnector::from(self.tls.clone());
                    connector.connect(name.clone(), stream).await
                }
                Err(error) => Err(error),
            };
            match connected {
                Ok(stream) => return Ok(stream),
                Err(error) => last = unreachable(format!("{address}: {error}")),
            }
        }
        Err(last)
    }
}

/// Credit for streams and connections of HTTP/2, in bytes.
const WINDOW: u32 = 4 * 1024 * 1024;
