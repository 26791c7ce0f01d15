//! Servers on their own threads and runtimes. They run until they are stopped or the process ends.

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::{Endpoint, Identity, ServerConfig, h3};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::oneshot;

/// The responses of the servers, which depend on the path.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// Requests received.
    pub seen: Arc<AtomicU64>,
    /// Bytes of content received.
    pub received: Arc<AtomicU64>,
    /// A pause without responses: its start after the first request, and its length.
    pub stall: Option<(Duration, Duration)>,
    /// The time of the first request.
    pub first: Arc<OnceLock<Instant>>,
}

impl App {
    async fn answer<B>(self, request: Request<B>) -> Result<Response<Full<Bytes>>, Infallible>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Debug,
    {
        self.seen.fetch_add(1, Relaxed);
        let first = *self.first.get_or_init(Instant::now);
        let path = request.uri().path().to_owned();
        let has_agent = request.headers().contains_key("user-agent");
        let body = request
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        self.received.fetch_add(body.len() as u64, Relaxed);
        if let Some((after, time)) = self.stall {
            let (from, end) = (first + after, first + after + time);
            if (from..end).contains(&Instant::now()) {
                tokio::time::sleep_until(end.into()).await;
            }
        }
        let mut parts = path.trim_start_matches('/').split('/');
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut response = Response::new(Full::default());
        match parts.next() {
            Some("status") => {
                let status = u16::try_from(number(parts.next())).expect("three digits");
                *response.status_mut() = status.try_into().expect("a status");
            }
            Some("bytes") => {
                let body = vec![b'x'; usize::try_from(number(parts.next())).expect("a size")];
                *response.body_mut() = Full::new(Bytes::from(body));
            }
            Some("slow") => {
                tokio::time::sleep(Duration::from_millis(number(parts.next()))).await;
            }
            Some("echo") => *response.body_mut() = Full::new(body),
            Some("agent") if !has_agent => *response.status_mut() = http::StatusCode::BAD_REQUEST,
            _ => {}
        }
        Ok(response)
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub app: App,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts HTTP/3 on a port that the system chooses.
    pub fn http3(app: App) -> Self {
        Self::http3_at(app, LOCAL)
    }

    /// Starts HTTP/3 on this port.
    pub fn http3_at(app: App, address: SocketAddr) -> Self {
        Self::start(app, move |app, ready| async move {
            let identity = Identity::dev().expect("random numbers");
            let config = ServerConfig::with_identity(&identity).expect("its own key");
            let endpoint = Endpoint::server(config.alpn([h3::ALPN]), address).expect("a port");
            ready
                .send(endpoint.local_addr().expect("bound"))
                .expect("a receiver");
            while let Some(incoming) = endpoint.accept().await {
                let app = app.clone();
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    let service = tower::service_fn(move |request| app.clone().answer(request));
                    // Clients may disconnect at any time.
                    let _ = h3::serve(connection, service).await;
                });
            }
        })
    }

    /// Starts HTTP/2 and HTTP/1.1 over TLS.
    pub fn tls(app: App) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
        let made = made.expect("a name");
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.into()], key.into())
            .expect("its own key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self::with_tls(app, config)
    }

    /// Starts HTTP/2 and HTTP/1.1 over TLS with this configuration.
    pub fn with_tls(app: App, config: rustls::ServerConfig) -> Self {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        Self::tcp(app, LOCAL, Some(acceptor))
    }

    /// Starts HTTP/1.1, or HTTP/2 with prior knowledge, without TLS.
    pub fn clear(app: App) -> Self {
        Self::clear_at(app, LOCAL)
    }

    /// Starts the same server on this port.
    pub fn clear_at(app: App, address: SocketAddr) -> Self {
        Self::tcp(app, address, None)
    }

    fn tcp(app: App, address: SocketAddr, tls: Option<tokio_rustls::TlsAcceptor>) -> Self {
        Self::start(app, move |app, ready| async move {
            let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
            socket.set_reuseaddr(true).expect("allowed");
            socket.bind(address).expect("a port");
            let listener = socket.listen(1024).expect("a port");
            ready
                .send(listener.local_addr().expect("bound"))
                .expect("a receiver");
            loop {
                let (stream, _) = listener.accept().await.expect("a client");
                let (app, tls) = (app.clone(), tls.clone());
                tokio::spawn(async move {
                    let service =
                        hyper::service::service_fn(move |request| app.clone().answer(request));
                    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    // Clients may disconnect at any time.
                    match tls {
                        Some(tls) => {
                            let stream = match tls.accept(stream).into_fallible().await {
                                Ok(stream) => stream,
                                Err((_, stream)) => {
                                    // An immediate reset could arrive before the alert.
                                    tokio::time::sleep(Duration::from_secs(1)).await;
                                    return drop(stream);
                                }
                            };
                            let _ = server.serve_connection(TokioIo::new(stream), service).await;
                        }
                        None => {
                            let _ = server.serve_connection(TokioIo::new(stream), service).await;
                        }
                    }
                });
            }
        })
    }

    fn start<F>(
        app: App,
        serve: impl FnOnce(App, mpsc::Sender<SocketAddr>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()>,
    {
        let (sender, receiver) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let for_thread = app.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = serve(for_thread, sender) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address: receiver.recv().expect("an address"),
            app,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Returns `https://127.0.0.1:PORT/path`.
    pub fn https(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Returns `http://127.0.0.1:PORT/path`.
    pub fn http(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for a number of requests. Returns false after two minutes without them.
    pub fn has_seen(&self, count: u64) -> bool {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.seen() < count && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.seen() >= count
    }

    /// Returns the number of requests received.
    pub fn seen(&self) -> u64 {
        self.app.seen.load(Relaxed)
    }

    /// Ends like a killed process: clients are not notified, and the port is free.
    pub fn kill(mut self) -> SocketAddr {
        self.end();
        self.address
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

const LOCAL: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
