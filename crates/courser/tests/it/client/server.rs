//! Servers of our HTTP/3 and of hyper's HTTP/2 and HTTP/1.1, with the same service.

use std::convert::Infallible;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use courser::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use courser::rustls::{self};
use courser::{Endpoint, Identity, ServerConfig, h3};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub type Content = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;
pub type Answering = Pin<Box<dyn Future<Output = Response<Content>> + Send>>;
pub type Service = Arc<dyn Fn(Request<Content>) -> Answering + Send + Sync>;

/// The protocols of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocols {
    Quic,
    Tcp,
    Both,
    /// TLS with only HTTP/1.1.
    Http1,
    /// HTTP/1.1 without TLS.
    Plain,
}

/// A server, which ends when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub identity: Identity,
    pub connections: Arc<Connections>,
    pair: (Vec<u8>, Vec<u8>),
    tasks: Mutex<Vec<JoinHandle<()>>>,
    endpoint: Mutex<Option<Endpoint>>,
    service: Service,
}

/// The number of accepted connections.
#[derive(Debug, Default)]
pub struct Connections {
    pub quic: AtomicUsize,
    pub tcp: AtomicUsize,
    pub resumed: AtomicUsize,
    pub open: AtomicUsize,
}

/// Counts a connection as open until it is dropped.
struct Open(Arc<Connections>);

impl Open {
    fn new(connections: &Arc<Connections>) -> Self {
        connections.open.fetch_add(1, Ordering::SeqCst);
        Self(connections.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connections {
    pub fn counts(&self) -> (usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (count(&self.quic), count(&self.tcp))
    }

    /// Waits until the clients have closed all connections.
    pub async fn closed(&self) {
        crate::common::until(|| self.open.load(Ordering::SeqCst) == 0).await;
    }
}

pub fn full(bytes: impl Into<Bytes>) -> Content {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

pub fn empty() -> Content {
    Empty::new()
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// Creates a service from a function.
pub fn service<F>(answer: impl Fn(Request<Content>) -> F + Send + Sync + 'static) -> Service
where
    F: Future<Output = Response<Content>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)))
}

/// Returns a service that answers with the request and its protocol.
pub fn echo() -> Service {
    service(|request| async move {
        let seen = format!(
            "{:?} {} {}",
            request.version(),
            request.method(),
            request.uri().path()
        );
        Response::new(full(seen))
    })
}

impl Server {
    pub async fn start(protocols: Protocols, service: Service) -> Self {
        // A key of its own, because two configurations use it.
        let names = ["localhost", "example.test", "127.0.0.1"].map(str::to_owned);
        let generated = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let pair = (
            generated.cert.der().to_vec(),
            generated.signing_key.serialize_der(),
        );
        let identity = identity(&pair);
        let mut server = Self {
            address: ([127, 0, 0, 1], 0).into(),
            identity,
            connections: Arc::default(),
            pair,
            tasks: Mutex::default(),
            endpoint: Mutex::default(),
            service,
        };
        // Searches a port that is free for both.
        for _ in 0..100 {
            let tcp = TcpListener::bind(server.address).await.expect("a port");
            let address = tcp.local_addr().expect("bound");
            if UdpSocket::bind(address).is_ok() {
                server.address = address;
                drop(tcp);
                server.listen(protocols).await;
                return server;
            }
        }
        panic!("no port is free for both");
    }

    /// Stops everything at once, and listens on the same address again.
    pub async fn restart(&self, protocols: Protocols) {
        self.stop().await;
        self.listen(protocols).await;
    }

    /// Stops everything at once, which breaks connections.
    pub async fn stop(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("no panic"));
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
        let endpoint = self.endpoint.lock().expect("no panic").take();
        if let Some(endpoint) = endpoint {
            endpoint.close(0x100_u32.into(), b"restart");
            endpoint.wait_idle().await;
            drop(endpoint);
            // Its socket closes with the task that drives it.
            crate::common::until(|| UdpSocket::bind(self.address).is_ok()).await;
        }
    }

    pub async fn listen(&self, protocols: Protocols) {
        let mut tasks = Vec::new();
        if matches!(protocols, Protocols::Quic | Protocols::Both) {
            let config = ServerConfig::with_identity(&self.identity)
                .expect("matching key")
                .alpn([h3::ALPN]);
            let endpoint = Endpoint::server(config, self.address).expect("the port is free");
            *self.endpoint.lock().expect("no panic") = Some(endpoint.clone());
            let task = serve_quic(endpoint, self.service.clone(), self.connections.clone());
            tasks.push(crate::common::spawn(task));
        }
        if protocols != Protocols::Quic {
            let listener = TcpListener::bind(self.address).await.expect("a free port");
            let tls = self.tls(protocols);
            let task = serve_tcp(
                listener,
                tls,
                self.service.clone(),
                self.connections.clone(),
            );
            tasks.push(crate::common::spawn(task));
        }
        self.tasks.lock().expect("no panic").extend(tasks);
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    fn tls(&self, protocols: Protocols) -> Option<tokio_rustls::TlsAcceptor> {
        let alpn: &[&[u8]] = match protocols {
            Protocols::Plain => return None,
            Protocols::Http1 => &[b"http/1.1"],
            _ => &[b"h2", b"http/1.1"],
        };
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.pair.1.clone()));
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.pair.0.clone().into()], key)
            .expect("matching key");
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Some(Arc::new(config).into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in self.tasks.get_mut().expect("no panic") {
            task.abort();
        }
        if let Some(endpoint) = self.endpoint.get_mut().expect("no panic") {
            endpoint.close(0x100_u32.into(), b"");
        }
    }
}

fn identity((certificate, key): &(Vec<u8>, Vec<u8>)) -> Identity {
    let key = PrivatePkcs8KeyDer::from(key.clone());
    Identity::new(vec![certificate.clone().into()], key.into())
}

async fn serve_quic(endpoint: Endpoint, service: Service, connections: Arc<Connections>) {
    let mut tasks = tokio::task::JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        let (service, connections) = (service.clone(), connections.clone());
        tasks.spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            connections.quic.fetch_add(1, Ordering::SeqCst);
            let _open = Open::new(&connections);
            let service = tower::service_fn(move |request: Request<h3::Body>| {
                let answer = service(request.map(|body| body.map_err(Into::into).boxed_unsync()));
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let _ = h3::serve(connection, service).await;
        });
    }
}

async fn serve_tcp(
    listener: TcpListener,
    tls: Option<tokio_rustls::TlsAcceptor>,
    service: Service,
    connections: Arc<Connections>,
) {
    // Dropped with the server, which breaks its connections.
    let mut tasks = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, service, connections) = (tls.clone(), service.clone(), connections.clone());
        tasks.spawn(async move {
            connections.tcp.fetch_add(1, Ordering::SeqCst);
            let _open = Open::new(&connections);
            let service =
                hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let answer =
                        service(request.map(|body| body.map_err(Into::into).boxed_unsync()));
                    async move { Ok::<_, Infallible>(answer.await) }
                });
            let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            match tls {
                None => drop(
                    http.serve_connection_with_upgrades(TokioIo::new(stream), service)
                        .await,
                ),
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else {
                        return;
                    };
                    if stream.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed) {
                        connections.resumed.fetch_add(1, Ordering::SeqCst);
                    }
                    let io = TokioIo::new(stream);
                    let _ = http.serve_connection_with_upgrades(io, service).await;
                }
            }
        });
    }
}
