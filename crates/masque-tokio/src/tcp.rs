//! Connections to a proxy over TCP, with HTTP/2 or HTTP/1.1.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use courser_masque::Carrier;
use courser_quic::runtime;
use courser_tls::rustls;
use courser_tls::rustls::pki_types::ServerName;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::{http1, http2};
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::open_error::OpenError;
use crate::protocol::Protocol;

/// A proxy that is reached over TCP.
#[derive(Debug)]
pub(crate) struct TcpProxy {
    tls: Arc<rustls::ClientConfig>,
    host: String,
    addresses: Vec<SocketAddr>,
    /// The connection of HTTP/2, which all tunnels share. Each tunnel of HTTP/1.1 has one of its own.
    http2: Option<http2::SendRequest<Empty<Bytes>>>,
}

impl TcpProxy {
    /// Connects with HTTP/2, or prepares connections with HTTP/1.1.
    pub(crate) async fn connect(
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
            let mut connection = Box::pin(connection);
            wait_for_settings(&mut connection).await?;
            // Its errors are those of requests.
            runtime::spawn(async move { drop(connection.await) });
            proxy.http2 = Some(send);
        }
        Ok(proxy)
    }

    pub(crate) const fn carrier(&self) -> Carrier {
        match self.http2 {
            Some(_) => Carrier::Http2,
            None => Carrier::Http1,
        }
    }

    /// Sends a request, and returns its stream.
    pub(crate) async fn open(
        &self,
        request: Request<()>,
        protocol: &Protocol,
    ) -> Result<Upgraded, OpenError> {
        let mut message = request.map(|()| Empty::new());
        let carrier = self.carrier();
        let response = match &self.http2 {
            Some(send) => {
                let token = hyper::ext::Protocol::from_static(protocol.token());
                message.extensions_mut().insert(token);
                let mut send = send.clone();
                send.ready().await?;
                send.send_request(message).await?
            }
            None => {
                let stream = TokioIo::new(self.dial().await?);
                let (mut send, connection) = http1::handshake(stream).await?;
                runtime::spawn(async move { drop(connection.with_upgrades().await) });
                send.send_request(message).await?
            }
        };
        protocol.check_response(carrier, &response)?;
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
                    prepare(&stream);
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

/// Sets the options of a connection: small packets do not wait for acknowledgements, and a proxy that has vanished is noticed
/// while nothing is sent. If this fails, tunnels are slower, or end later.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE)
        .with_interval(KEEP_ALIVE);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Drives a connection until the setting that allows extended CONNECT has arrived, with the first bytes of the proxy (RFC
/// 8441 §3).
async fn wait_for_settings(connection: &mut Pin<Box<Connection>>) -> Result<(), OpenError> {
    let is_allowed = poll_fn(|cx| {
        let has_ended = connection.as_mut().poll(cx).is_ready();
        match connection.is_extended_connect_protocol_enabled() {
            true => Poll::Ready(true),
            false if has_ended => Poll::Ready(false),
            false => Poll::Pending,
        }
    });
    match runtime::timeout(LONGEST_SETTINGS, is_allowed).await {
        Ok(true) => Ok(()),
        _ => Err(OpenError::Unsupported),
    }
}

/// The connection of HTTP/2.
type Connection = http2::Connection<TokioIo<TlsStream<TcpStream>>, Empty<Bytes>, TokioExecutor>;

/// Time without a byte after which TCP asks whether the proxy is there, and the interval of these probes (limit K566).
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time for the settings of a proxy.
const LONGEST_SETTINGS: Duration = Duration::from_secs(2);

/// Credit for streams and connections of HTTP/2, in bytes.
const WINDOW: u32 = 4 * 1024 * 1024;
