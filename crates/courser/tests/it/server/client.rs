//! A client for all protocols: one connection with its requests.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use courser::server::Protocol;
use courser::{ClientConfig, Endpoint, Identity, h3, rustls};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type BoxBody = UnsyncBoxBody<Bytes, BoxError>;

/// A connection of any protocol.
pub(crate) enum Client {
    Http1(http1::SendRequest<BoxBody>),
    Http2(http2::SendRequest<BoxBody>),
    Http3(h3::Client),
}

impl Client {
    /// Connects as `localhost`, trusting only this server.
    pub(crate) async fn connect(
        protocol: Protocol,
        address: SocketAddr,
        identity: &Identity,
    ) -> Result<Self, BoxError> {
        Self::connect_from("[::]:0".parse()?, protocol, address, identity).await
    }

    /// Connects from this address. Over TCP, the system chooses in place of an unspecified one.
    pub(crate) async fn connect_from(
        source: SocketAddr,
        protocol: Protocol,
        address: SocketAddr,
        identity: &Identity,
    ) -> Result<Self, BoxError> {
        Self::connect_as("localhost", source, protocol, address, identity).await
    }

    /// Connects like [`connect_from`](Self::connect_from), and asks for the certificate of this name.
    pub(crate) async fn connect_as(
        name: &str,
        source: SocketAddr,
        protocol: Protocol,
        address: SocketAddr,
        identity: &Identity,
    ) -> Result<Self, BoxError> {
        let certificate = identity.certificate();
        Ok(match protocol {
            Protocol::Http1 => {
                let stream = tls_from((name, source), address, certificate, &[b"http/1.1"]).await?;
                let (send, connection) = http1::handshake(TokioIo::new(stream)).await?;
                crate::common::spawn(connection.with_upgrades());
                Self::Http1(send)
            }
            Protocol::Http2 => {
                let stream = tls_from((name, source), address, certificate, &[b"h2"]).await?;
                let io = TokioIo::new(stream);
                let (send, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                crate::common::spawn(connection);
                Self::Http2(send)
            }
            Protocol::Http3 => {
                let endpoint = Endpoint::client(source)?;
                let config = ClientConfig::with_roots([certificate])?.alpn([h3::ALPN]);
                let connecting = endpoint.connect_with(config, address, name)?;
                Self::Http3(h3::Client::new(connecting.await?))
            }
        })
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<BoxBody>,
    ) -> Result<Response<BoxBody>, BoxError> {
        Ok(match self {
            Self::Http1(send) => {
                send.ready().await?;
                let (mut parts, body) = request.into_parts();
                let path = parts.uri.path_and_query().expect("a path").to_string();
                parts.uri = path.parse()?;
                parts.headers.insert("host", "localhost".parse()?);
                let request = Request::from_parts(parts, body);
                boxed(send.send_request(request).await?)
            }
            Self::Http2(send) => {
                send.ready().await?;
                boxed(send.send_request(request).await?)
            }
            Self::Http3(client) => boxed(client.send(request).await?),
        })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Response<BoxBody>, BoxError> {
        self.send(request("GET", path, empty())).await
    }

    /// Returns the content of a response, whose status must be 200.
    pub(crate) async fn text(&mut self, path: &str) -> String {
        let response = self.get(path).await.expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
        text(response).await
    }
}

fn boxed<B>(response: Response<B>) -> Response<BoxBody>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

pub(crate) fn request(method: &str, path: &str, body: BoxBody) -> Request<BoxBody> {
    Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .body(body)
        .expect("a request")
}

pub(crate) fn empty() -> BoxBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> BoxBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub(crate) async fn text(response: Response<BoxBody>) -> String {
    let bytes = response.into_body().collect().await.expect("a body");
    String::from_utf8(bytes.to_bytes().to_vec()).expect("text")
}

/// Connects with TLS over TCP, offering these protocols.
pub(crate) async fn tls(
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    protocols: &[&[u8]],
) -> Result<TlsStream<TcpStream>, BoxError> {
    let source = ("localhost", "[::]:0".parse()?);
    tls_from(source, address, certificate, protocols).await
}

/// Like [`tls`], with the certificate of a name and from an address; the system chooses in place of an unspecified
/// one.
async fn tls_from(
    (name, source): (&str, SocketAddr),
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    protocols: &[&[u8]],
) -> Result<TlsStream<TcpStream>, BoxError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if !source.ip().is_unspecified() {
        socket.bind(source)?;
    }
    let stream = socket.connect(address).await?;
    let name = ServerName::try_from(name.to_owned())?;
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}
