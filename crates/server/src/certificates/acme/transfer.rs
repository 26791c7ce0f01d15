//! The HTTP client that talks to the ACME server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use courser_base::Mutex;
use courser_tls::rustls;
use courser_tls::rustls::pki_types::ServerName;
use http::header::{HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::uri::{PathAndQuery, Scheme};
use http::{Request, StatusCode, Uri};
use http_body::Body as _;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Sends each request over a connection of its own: an order takes a dozen, and then there are none for weeks.
#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
    /// The time before which the last refused request must not be repeated (RFC 8555 §6.6).
    retry_after: Arc<Mutex<Option<SystemTime>>>,
}

/// A request that got no answer of an ACME server.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    #[error("{0} is not an https URL")]
    Url(Uri),
    #[error("the address of {0} cannot be found: {1}")]
    Resolve(String, io::Error),
    #[error("{0} cannot be reached: {1}")]
    Connect(String, io::Error),
    #[error("{0} has no certificate that is trusted here: {1}")]
    Untrusted(String, io::Error),
    #[error("TLS with {0} failed: {1}")]
    Tls(String, io::Error),
    #[error("{0} did not answer as HTTP: {1}")]
    Http(String, hyper::Error),
    #[error("{0} answered {1} without an explanation")]
    Status(String, StatusCode),
    #[error("{0} answered with more than {MAX_ANSWER} bytes")]
    TooLong(String),
    #[error("{0} did not answer within {seconds} s", seconds = REQUEST_TIMEOUT.as_secs())]
    TimedOut(String),
}

impl Client {
    pub(super) fn new(tls: TlsConnector) -> Self {
        Self {
            tls,
            retry_after: Arc::default(),
        }
    }

    /// Returns the time before which the last refused request must not be repeated, and forgets it.
    pub(super) fn take_retry_after(&self) -> Option<SystemTime> {
        self.retry_after.lock().take()
    }

    async fn exchange(
        self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<BytesResponse, TransferError> {
        let uri = std::mem::take(request.uri_mut());
        let is_https = uri.scheme() == Some(&Scheme::HTTPS);
        let Some(authority) = uri.authority().cloned().filter(|_| is_https) else {
            return Err(TransferError::Url(uri));
        };
        let server = authority.to_string();
        let path = uri.path_and_query().cloned();
        *request.uri_mut() = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
        let host = HeaderValue::from_str(&server).map_err(|_| TransferError::Url(uri))?;
        request.headers_mut().insert(HOST, host);
        let agent = HeaderValue::from_static(concat!("courser/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let host = authority.host().trim_matches(['[', ']']);
        let stream = self.connect(host, authority.port_u16().unwrap_or(443), &server);
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream.await?)).await;
        let failed = |error| TransferError::Http(server.clone(), error);
        let (mut sender, connection) = handshake.map_err(failed)?;
        let connection = AbortOnDrop(tokio::spawn(async move { drop(connection.await) }));
        let response = sender.send_request(request).await.map_err(failed)?;
        let (parts, mut body) = response.into_parts();
        let mut bytes = BytesMut::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
        {
            let Ok(data) = frame.map_err(failed)?.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > MAX_ANSWER {
                return Err(TransferError::TooLong(server));
            }
            bytes.extend_from_slice(&data);
        }
        drop(connection);
        if !parts.status.is_success() {
            *self.retry_after.lock() = parts.headers.get(RETRY_AFTER).and_then(retry_after);
            // The explanation of an ACME server is a JSON object (RFC 8555 §6.7).
            if !bytes.trim_ascii_start().starts_with(b"{") {
                return Err(TransferError::Status(server, parts.status));
            }
        }
        Ok(BytesResponse {
            parts,
            body: Box::new(bytes.freeze()),
        })
    }

    async fn connect(
        &self,
        host: &str,
        port: u16,
        server: &str,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, TransferError> {
        let found = tokio::net::lookup_host((host, port)).await;
        let found = found.map_err(|error| TransferError::Resolve(host.to_owned(), error))?;
        let unreachable = |error| TransferError::Connect(server.to_owned(), error);
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        let mut connected = None;
        for address in found {
            match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    connected = Some(stream);
                    break;
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        let stream = connected.ok_or_else(|| unreachable(last))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| unreachable(io::Error::other(error)))?;
        let connected = self.tls.connect(name, stream).await;
        connected.map_err(|error| match is_about_a_certificate(&error) {
            true => TransferError::Untrusted(server.to_owned(), error),
            false => TransferError::Tls(server.to_owned(), error),
        })
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let server = request.uri().to_string();
            match tokio::time::timeout(REQUEST_TIMEOUT, client.exchange(request)).await {
                Ok(result) => result.map_err(|error| Error::Other(Box::new(error))),
                Err(_) => Err(Error::Other(Box::new(TransferError::TimedOut(server)))),
            }
        })
    }
}

fn is_about_a_certificate(error: &io::Error) -> bool {
    let source = error.get_ref();
    let tls = source.and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// Returns the time of a Retry-After field (RFC 9110 §10.2.3). A date in another form than IMF-fixdate is
/// ignored.
fn retry_after(value: &HeaderValue) -> Option<SystemTime> {
    let seconds = value.to_str().ok()?.trim();
    match seconds.parse::<u32>() {
        Ok(seconds) => Some(SystemTime::now() + Duration::from_secs(seconds.into())),
        Err(_) => httpdate::parse_http_date(seconds).ok(),
    }
}

/// Ends the task of a connection with its request.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Time limits for each request to the ACME server and for each connection attempt, and the longest answer
/// (limit K401).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use courser_quic::Identity;
    use courser_tls::{ClientOptions, Trust};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::certificates::acme::failure::{Failure, Kind};
    use crate::certificates::resolver::Resolver;

    /// Starts a server that answers one request with these bytes, and returns its port and a client that trusts
    /// it or not.
    async fn serve(answer: Vec<u8>, is_trusted: bool) -> (u16, Client) {
        let identity = Identity::self_signed(["localhost"]).expect("random numbers");
        let mut roots = rustls::RootCertStore::empty();
        let trusted = match is_trusted {
            true => identity.certificate(),
            false => Identity::self_signed(["localhost"])
                .expect("random numbers")
                .certificate(),
        };
        roots.add(trusted).expect("a root");
        let options = ClientOptions::new(Trust::Roots(roots), vec![b"http/1.1".to_vec()]);
        let client = courser_tls::client_config(options).expect("a configuration");
        let provider = courser_tls::crypto_provider();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_cert_resolver(Resolver::holding(&identity).expect("a certificate"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a client");
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        });
        (port, Client::new(TlsConnector::from(client)))
    }

    async fn get(client: &Client, url: &str) -> Result<BytesResponse, Failure> {
        let request = Request::get(url).body(BodyWrapper::default());
        client
            .request(request.expect("a request"))
            .await
            .map_err(Failure::from)
    }

    fn answer(head: &str, content: &[u8]) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n",
            content.len()
        );
        [head.as_bytes(), content].concat()
    }

    #[tokio::test]
    async fn answers_beyond_the_limit_are_not_read() {
        for (len, is_read) in [(MAX_ANSWER, true), (MAX_ANSWER + 1, false)] {
            let (port, client) = serve(answer("200 OK", &vec![b' '; len]), true).await;
            let result = get(&client, &format!("https://localhost:{port}/dir")).await;
            assert_eq!(result.is_ok(), is_read, "{len}");
            let text = result.err().map(|failure| failure.to_string());
            assert!(text.is_none_or(|text| text.contains("more than")));
        }
    }

    #[tokio::test]
    async fn retry_after_of_a_refused_request_is_known_once() {
        let refused = answer("429 Too Many Requests\r\nretry-after: 40", b" {}");
        let (port, client) = serve(refused, true).await;
        let response = get(&client, &format!("https://localhost:{port}/order")).await;
        assert_eq!(response.expect("an explanation").parts.status, 429);
        let wait = client.take_retry_after().expect("a time");
        let wait = wait.duration_since(SystemTime::now()).expect("later");
        assert!(wait > Duration::from_secs(30) && wait <= Duration::from_secs(40));
        assert_eq!(client.take_retry_after(), None);
    }

    #[tokio::test]
    async fn each_failure_says_what_is_wrong() {
        let (port, client) = serve(answer("503 Busy", b"<html>"), true).await;
        let busy = get(&client, &format!("https://localhost:{port}/")).await;
        let (untrusted_port, other) = serve(answer("200 OK", b""), false).await;
        let untrusted = get(&other, &format!("https://localhost:{untrusted_port}/")).await;
        let (not_http_port, third) = serve(b"220 mail ready\r\n".to_vec(), true).await;
        let not_http = get(&third, &format!("https://localhost:{not_http_port}/")).await;
        let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let closed_port = closed.local_addr().expect("bound").port();
        drop(closed);
        let refused = get(&third, &format!("https://127.0.0.1:{closed_port}/")).await;
        let plain = get(&third, "http://localhost/").await;
        for (result, words) in [
            (
                busy,
                "answered 503 Service Unavailable without an explanation",
            ),
            (untrusted, "trust its root certificate"),
            (not_http, "did not answer as HTTP"),
            (refused, "cannot be reached"),
            (plain, "not an https URL"),
        ] {
            let failure = result.err().expect(words);
            let text = failure.to_string();
            assert!(text.contains(words), "{text}");
            assert_eq!(failure.kind, Kind::Uncounted);
        }
    }
}
