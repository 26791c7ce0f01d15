//! An HTTP/3, HTTP/2 and HTTP/1.1 server on threads of the test.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use courser::{Endpoint, Identity, ServerConfig, h3};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::common::Folder;

/// A server that runs until the test ends.
pub struct Server {
    address: SocketAddr,
    /// The path of the PEM file with the certificate.
    pub cert: String,
    validated: Arc<AtomicUsize>,
    _folder: Folder,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Self {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let folder = Folder::new();
        let cert = folder.file("cert.pem", &made.cert.pem());
        let key = made.signing_key.serialize_der();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let validated = Arc::new(AtomicUsize::new(0));
        let listening = listen(made.cert.der().to_vec(), key, validated.clone());
        let address = runtime.block_on(listening);
        Self {
            address,
            cert,
            validated,
            _folder: folder,
            _runtime: runtime,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port())
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the number of QUIC connections that began with a valid token. There is no Retry.
    pub fn validated(&self) -> usize {
        self.validated.load(Ordering::SeqCst)
    }
}

/// Returns a port that no socket is bound to.
pub fn unused_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

/// Serves these bytes on each connection, without TLS, and closes it.
pub fn raw(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        }
    });
    port
}

async fn listen(cert: Vec<u8>, key: Vec<u8>, validated: Arc<AtomicUsize>) -> SocketAddr {
    let (tcp, address) = loop {
        let tcp = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = tcp.local_addr().expect("bound");
        if UdpSocket::bind(address).is_ok() {
            break (tcp, address);
        }
    };
    let der = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()));
    let identity = Identity::new(vec![cert.clone().into()], der());
    let config = ServerConfig::with_identity(&identity)
        .expect("our own")
        .alpn([h3::ALPN]);
    let endpoint = Endpoint::server(config, address).expect("the port is free");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.into()], der())
        .expect("our own");
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let port = address.port();
    let busy = Arc::new(AtomicUsize::new(0));
    let counter = busy.clone();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let is_validated = incoming.remote_address_validated();
            validated.fetch_add(usize::from(is_validated), Ordering::SeqCst);
            let busy = counter.clone();
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else {
                    return;
                };
                let service = tower::service_fn(move |request| answer(request, port, busy.clone()));
                let serving = h3::serve(connection, service).interim_responses(true);
                let _ = serving.await;
            });
        }
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = tcp.accept().await {
            let (tls, busy) = (tls.clone(), busy.clone());
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else {
                    return;
                };
                let service =
                    hyper::service::service_fn(move |request| answer(request, port, busy.clone()));
                let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    address
}

/// Returns the request as text, with all fields and the content.
async fn echo<B: http_body::Body>(request: Request<B>) -> Vec<u8> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut text = format!("{:?} {} {path}\n", head.version, head.method);
    for (name, value) in &head.headers {
        text.push_str(&format!(
            "{name}: {}\n",
            String::from_utf8_lossy(value.as_bytes())
        ));
    }
    text.push('\n');
    let content = body
        .collect()
        .await
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    [text.into_bytes(), content.to_vec()].concat()
}

async fn answer<B: http_body::Body>(
    request: Request<B>,
    port: u16,
    busy: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let range = request.headers().get(header::RANGE).cloned();
    let mut response = Response::builder().header("x-kind", "test");
    if let (Some(interim), "/hints") = (request.extensions().get::<h3::Interim>(), &*path) {
        let hints = Response::builder().status(StatusCode::EARLY_HINTS);
        let hints = hints.header("link", "</style.css>").body(());
        let sent = interim.send(hints.expect("a response")).await;
        sent.expect("an open connection");
    }
    let mut content = Bytes::from(echo(request).await);
    if let Some(status) = path.strip_prefix("/status/") {
        response = response.status(status.parse::<u16>().expect("a status"));
    }
    match path.as_str() {
        "/slow" => std::future::pending().await,
        "/circle" => response = response.status(302).header("location", "/circle"),
        "/to-a-file" => {
            response = response
                .status(302)
                .header("location", "file:///etc/passwd")
        }
        "/moved" => response = response.status(302).header("location", "/echo"),
        "/big" => content = vec![b'x'; 1_000_000].into(),
        "/attachment" => {
            response = response.header(
                "content-disposition",
                "attachment; filename=\"../chosen.txt\"",
            );
        }
        "/set-cookie" => response = response.header("set-cookie", "kept=1"),
        "/announce" => response = response.header("alt-svc", format!("h3=\":{port}\"; ma=60")),
        "/busy" if busy.fetch_add(1, Ordering::SeqCst) < 2 => {
            response = response.status(StatusCode::SERVICE_UNAVAILABLE);
            content = "too busy".into();
        }
        "/ranges" => {
            let start = range
                .and_then(|range| {
                    range
                        .to_str()
                        .ok()?
                        .strip_prefix("bytes=")?
                        .strip_suffix('-')?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if start >= 1_000_000 {
                response = response
                    .status(416)
                    .header("content-range", "bytes */1000000");
                content = Bytes::new();
            } else {
                response = response
                    .status(206)
                    .header("content-range", format!("bytes {start}-999999/1000000"));
                content = vec![b'x'; 1_000_000 - start].into();
            }
        }
        "/gzip" => {
            response = response.header("content-encoding", "gzip");
            content = Bytes::from_static(GZIP);
        }
        "/broken-gzip" => response = response.header("content-encoding", "gzip"),
        _ => tokio::time::sleep(Duration::ZERO).await,
    }
    Ok(response.body(Full::new(content)).expect("a response"))
}

/// `hello hello hello`, compressed.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
    0xc8, 0x40, 0x90, 0x00, 0x80, 0x88, 0xf9, 0xe5, 0x11, 0x00, 0x00, 0x00,
];
