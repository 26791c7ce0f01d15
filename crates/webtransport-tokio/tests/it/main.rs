//! Sessions on loopback, both ends ours.

mod browsers;
mod facts;
#[cfg(feature = "axum")]
mod handlers;
mod hostile;
mod listener;
mod media;
mod refusals;
mod sessions;
mod streams;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::{
    ClientConfig, Connection, Endpoint, Identity, ServerConfig, Side, TransportConfig,
};
use courser_webtransport_tokio::{self as webtransport, Config, Session, SessionRequest};
use http::{Request, Response};
use tokio::task::JoinHandle;

/// Both endpoints, which must outlive their connection.
struct Pair {
    client: h3::Client,
    _endpoints: [Endpoint; 2],
}

/// Creates a connection whose server answers with `service`.
async fn serve<F>(
    configs: [Config; 2],
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) -> Pair
where
    F: Future<Output = Response<h3::Empty>> + Send + 'static,
{
    let never = std::future::pending();
    serve_until(configs, service, never).await.0
}

/// Creates a connection like [`serve`], and returns the monitor of the server.
async fn serve_with<F>(
    config: Config,
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) -> (Pair, webtransport::Monitor)
where
    F: Future<Output = Response<h3::Empty>> + Send + 'static,
{
    let never = std::future::pending();
    let (pair, monitor, _) = start(
        TransportConfig::default(),
        [Config::new(), config],
        service,
        never,
    )
    .await;
    (pair, monitor)
}

/// Creates a connection whose server answers with `service`, and drains when `signal` completes.
async fn serve_until<F>(
    configs: [Config; 2],
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
    signal: impl Future<Output = ()> + Send + 'static,
) -> (Pair, JoinHandle<Result<(), h3::Error>>)
where
    F: Future<Output = Response<h3::Empty>> + Send + 'static,
{
    serve_on(TransportConfig::default(), configs, service, signal).await
}

/// Like [`serve_until`], with settings of QUIC.
async fn serve_on<F>(
    transport: TransportConfig,
    configs: [Config; 2],
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
    signal: impl Future<Output = ()> + Send + 'static,
) -> (Pair, JoinHandle<Result<(), h3::Error>>)
where
    F: Future<Output = Response<h3::Empty>> + Send + 'static,
{
    let (pair, _, serving) = start(transport, configs, service, signal).await;
    (pair, serving)
}

async fn start<F>(
    transport: TransportConfig,
    [client_config, server_config]: [Config; 2],
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
    signal: impl Future<Output = ()> + Send + 'static,
) -> (
    Pair,
    webtransport::Monitor,
    JoinHandle<Result<(), h3::Error>>,
)
where
    F: Future<Output = Response<h3::Empty>> + Send + 'static,
{
    let (near, far, endpoints) = connections(transport).await;
    let mut settings = h3::Config::new(Side::Server);
    let monitor = webtransport::enable(&mut settings, Side::Server, server_config);
    let monitor = monitor.expect("free numbers");
    let service = tower::service_fn(move |request| {
        let answer = service(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let serving = h3::serve(far, service).config(settings).drain(signal);
    let serving = tokio::spawn(serving.into_future());
    let mut settings = h3::Config::new(Side::Client);
    webtransport::enable(&mut settings, Side::Client, client_config).expect("free numbers");
    let pair = Pair {
        client: h3::Client::with_config(near, settings),
        _endpoints: endpoints,
    };
    (pair, monitor, serving)
}

async fn connections(transport: TransportConfig) -> (Connection, Connection, [Endpoint; 2]) {
    let transport = Arc::new(transport);
    let identity = Identity::dev().expect("an identity");
    let config = ServerConfig::with_identity(&identity).expect("valid");
    let address = "127.0.0.1:0".parse().expect("an address");
    let config = config.transport_config(transport.clone());
    let server = Endpoint::server(config.alpn([h3::ALPN]), address).expect("a free port");
    let client = Endpoint::client(address).expect("a free port");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("valid");
    let config = config.transport_config(transport);
    let to = server.local_addr().expect("bound");
    let connecting = client.connect_with(config.alpn([h3::ALPN]), to, "localhost");
    let connecting = connecting.expect("valid");
    let incoming = within(server.accept()).await.expect("open");
    let (near, far) = tokio::join!(connecting, incoming.into_future());
    (
        near.expect("connected"),
        far.expect("connected"),
        [client, server],
    )
}

/// Opens a session, both ends of which are returned.
async fn session_with(configs: [Config; 2]) -> (Pair, Session, Session) {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let service = move |mut request| {
        let sender = sender.clone();
        async move {
            let upgrade = webtransport::upgrade(&mut request).protocols(["two", "one"]);
            let accepted = upgrade.accept(|session| async move { sender.send(session).is_ok() });
            accepted.await
        }
    };
    let never = std::future::pending();
    let (pair, _) = serve_until(configs, service, never).await;
    let near = within(webtransport::connect(&pair.client, wish())).await;
    let near = near.expect("accepted");
    let far = within(receiver.recv()).await.expect("accepted");
    (pair, near, far)
}

async fn session() -> (Pair, Session, Session) {
    session_with([Config::new(), Config::new()]).await
}

fn wish() -> SessionRequest {
    SessionRequest::new("https://localhost/chat".parse().expect("a URI"))
}

async fn within<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, future).await.expect("in time")
}
