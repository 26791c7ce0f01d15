//! A client of one version.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::gateway::Gateway;
use crate::message::{Content, Ending, Request, Version};
use crate::seen::{End, Seen};
use crate::wire::Wire;
use crate::{h1, h2, h3};

/// A connection of one version to a gateway.
#[derive(Debug)]
pub enum Client {
    /// HTTP/1.1 over TLS.
    Http1(Box<Wire>),
    /// HTTP/2 over TLS.
    Http2(Box<h2::Connection>),
    /// HTTP/3.
    Http3(h3::Connection),
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    /// Panics if no server listens, or if its certificate is another one.
    pub async fn connect(version: Version, gateway: &Gateway) -> Self {
        match version {
            Version::Http1 => {
                let stream = connect_tls(gateway, &["http/1.1"]).await;
                Self::Http1(Box::new(Wire::from(stream)))
            }
            Version::Http2 => {
                let wire = Wire::from(connect_tls(gateway, &["h2"]).await);
                Self::Http2(Box::new(h2::Connection::client(wire).await))
            }
            Version::Http3 => {
                let certificate = gateway.certificate.clone();
                Self::Http3(h3::Connection::connect(gateway.address, certificate).await)
            }
        }
    }

    /// Sends a request and returns its response.
    pub async fn exchange(&mut self, request: &Request) -> Seen {
        match self {
            Self::Http1(wire) => {
                wire.send(&h1::request(request)).await;
                match request.ending {
                    Ending::Complete => {}
                    // No response can follow the end of TLS and TCP.
                    Ending::Cut => {
                        wire.close().await;
                        return Seen::nothing(End::Cut);
                    }
                    Ending::Reset => {
                        wire.reset();
                        return Seen::nothing(End::Reset(0));
                    }
                }
                let seen = h1::read_response(wire, request.control.method == b"HEAD").await;
                if seen.get("connection").contains("close") {
                    wire.close().await;
                }
                seen
            }
            Self::Http2(connection) => connection.exchange(request).await,
            Self::Http3(connection) => connection.exchange(request).await,
        }
    }

    /// Sends a request while a healthy one is in flight on the same connection, and returns the responses of both. HTTP/1.1
    /// has one request at a time, so that there is no healthy one.
    pub async fn exchange_beside(&mut self, request: &Request) -> (Seen, Option<Seen>) {
        let healthy = Request::new("POST", NEIGHBOUR);
        let mut begun = healthy.clone();
        begun.content = Content::unknown("a");
        match self {
            Self::Http1(_) => (self.exchange(request).await, None),
            Self::Http2(connection) => {
                let stream = connection.open();
                let mut frames = h2::request(&begun, stream);
                let last = frames.pop().expect("DATA");
                connection.send(&frames).await;
                let seen = connection.exchange(request).await;
                connection.send(&[last]).await;
                (seen, Some(connection.answer(stream).await))
            }
            Self::Http3(connection) => {
                let Ok(mut pending) = connection.open().await else {
                    return (Seen::nothing(End::Cut), None);
                };
                let bytes = h3::request(&begun);
                let (head, rest) = bytes.split_at(bytes.len() - 1);
                let _ = pending.send.write_all(head).await;
                pending.send.flush();
                let seen = connection.exchange(request).await;
                let _ = pending.send.write_all(rest).await;
                let _ = pending.send.finish();
                (seen, Some(pending.answer().await))
            }
        }
    }

    /// Returns true if further requests can be sent.
    pub async fn is_usable(&mut self) -> bool {
        match self {
            Self::Http1(wire) => {
                // Detects an end that has arrived, without waiting for one.
                wire.fill_within(Duration::ZERO).await;
                wire.end.is_none() && wire.unread.is_empty()
            }
            Self::Http2(connection) => connection.goaway.is_none() && connection.wire.end.is_none(),
            Self::Http3(connection) => !connection.is_over(),
        }
    }
}

/// The path of the healthy request of [`Client::exchange_beside`].
pub(crate) const NEIGHBOUR: &str = "/neighbour";

/// Opens a TLS connection that offers these protocols of ALPN.
///
/// # Panics
/// Panics if no server listens, or if its certificate is another one.
pub async fn connect_tls(gateway: &Gateway, protocols: &[&str]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots
        .add(gateway.certificate.clone())
        .expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(courser_quic::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
    config.alpn_protocols = protocols.collect();
    let stream = TcpStream::connect(gateway.address)
        .await
        .expect("a listener");
    let name = "localhost".try_into().expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.expect("TLS")
}
