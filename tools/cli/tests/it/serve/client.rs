//! Client connections of all protocols.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use courser::server::Protocol;
use courser::{ClientConfig, Endpoint, h3, rustls};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type BoxBody = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) enum Client {
    Http1(http1::SendRequest<BoxBody>),
    Http2(http2::SendRequest<BoxBody>),
    Http3(h3::Client),
}

/// A response with its whole content.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) content: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.content.to_vec()).expect("text")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("text"))
    }
}

impl Client {
    pub(crate) async fn connect(
        protocol: Protocol,
        address: SocketAddr,
        certificate: CertificateDer<'static>,
    ) -> Result<Self, BoxError> {
        Ok(match protocol {
            Protocol::Http1 => {
                let io = TokioIo::new(tls(address, certificate, b"http/1.1").await?);
                let (send, connection) = http1::handshake(io).await?;
                tokio::spawn(connection.with_upgrades());
                Self::Http1(send)
            }
            Protocol::Http2 => {
                let io = TokioIo::new(tls(address, certificate, b"h2").await?);
                let (send, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                tokio::spawn(connection);
                Self::Http2(send)
            }
            Protocol::Http3 => {
                let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
                let config = ClientConfig::with_roots([certificate])?.alpn([h3::ALPN]);
                let connection = endpoint.connect_with(config, address, "localhost")?.await?;
                Self::Http3(h3::Client::new(connection))
            }
        })
    }

    /// Sends a request unchanged; HTTP/1.1 gets its own form.
    pub(crate) async fn begin(
        &mut self,
        request: Request<BoxBody>,
    ) -> Result<Response<BoxBody>, BoxError> {
        Ok(match self {
            Self::Http1(send) => {
                send.ready().await?;
                let (mut parts, body) = request.into_parts();
                parts.uri = parts
                    .uri
                    .path_and_query()
                    .expect("a path")
                    .to_string()
                    .parse()?;
                parts.headers.insert("host", "localhost".parse()?);
                boxed(send.send_request(Request::from_parts(parts, body)).await?)
            }
            Self::Http2(send) => {
                send.ready().await?;
                boxed(send.send_request(request).await?)
            }
            Self::Http3(client) => boxed(client.send(request).await?),
        })
    }

    pub(crate) async fn send(&mut self, request: Request<BoxBody>) -> Result<Answer, BoxError> {
        let response = self.begin(request).await?;
        let (parts, body) = response.into_parts();
        let collected = body.collect().await?;
        let trailers = collected.trailers().cloned();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            content: collected.to_bytes(),
            trailers,
        })
    }

    pub(crate) async fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let request = request(Method::GET, path, fields, "");
        super::within(self.send(request)).await.expect("an answer")
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    fields: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<BoxBody> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let body = Full::new(body.into()).map_err(|never| match never {});
    request.body(body.boxed_unsync()).expect("a request")
}

fn boxed<B>(response: Response<B>) -> Response<BoxBody>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

pub(super) async fn tls(
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    protocol: &[u8],
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, BoxError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = "localhost".try_into().expect("a name");
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}
