//! Proxies and clients on loopback, over all versions of HTTP.

mod forwarding;
mod hostile;
mod ip;
mod isolation;
mod limits;
mod nested;
mod refusals;
mod tunnels;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use courser_http3_tokio as h3;
use courser_masque_tokio::{
    Carrier, Policy, Socket, Template, UdpClient, UdpClientBuilder, UdpProxy,
};
use courser_quic::{ClientConfig, Endpoint, Identity, Side, TransportConfig};
use tokio::net::UdpSocket;

const ALL: [Carrier; 3] = [Carrier::Http1, Carrier::Http2, Carrier::Http3];

/// A proxy behind `courser::serve`, with a route of axum.
struct Started {
    address: SocketAddr,
    identity: Identity,
}

impl Started {
    fn builder(&self, carrier: Carrier) -> UdpClientBuilder {
        let template = Template::of_proxy(&format!("localhost:{}", self.address.port()));
        let builder = UdpClient::builder(template.expect("valid").as_str()).expect("valid");
        builder
            .roots([self.identity.certificate()])
            .address(self.address)
            .carrier(carrier)
    }

    async fn client(&self, carrier: Carrier) -> UdpClient {
        within(self.builder(carrier).connect())
            .await
            .expect("connected")
    }

    async fn open(&self, carrier: Carrier, target: &str) -> Socket {
        let client = self.client(carrier).await;
        within(client.open(target)).await.expect("accepted")
    }
}

async fn start(proxy: UdpProxy) -> Started {
    start_at("/.well-known/masque/udp/{host}/{port}/", proxy).await
}

/// Starts a proxy at a path of axum.
async fn start_at<S>(path: &str, proxy: S) -> Started
where
    S: tower::Service<
            axum::extract::Request,
            Response = http::Response<h3::Empty>,
            Error = std::convert::Infallible,
            Future: Send,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    start_with(path, proxy, None).await
}

/// Starts a proxy whose connections have these parameters.
async fn start_with<S>(path: &str, proxy: S, transport: Option<TransportConfig>) -> Started
where
    S: tower::Service<
            axum::extract::Request,
            Response = http::Response<h3::Empty>,
            Error = std::convert::Infallible,
            Future: Send,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    let identity = Identity::dev().expect("an identity");
    let mut settings = h3::Config::new(Side::Server);
    courser_masque_tokio::enable(&mut settings, Side::Server);
    let mut server = courser_server::serve("127.0.0.1:0", identity.clone())
        .config(settings)
        .http2_extended_connect(true);
    if let Some(transport) = transport {
        server = server.transport(transport);
    }
    let server = server.bind().expect("a free port");
    let address = server.local_addr();
    let app: Router = Router::new().route_service(path, proxy);
    tokio::spawn(server.service(app).into_future());
    Started { address, identity }
}

/// Returns a client of HTTP/3 that supports no DATAGRAM frames, so that packets go into capsules.
async fn client_without_frames(started: &Started, transport: TransportConfig) -> h3::Client {
    let config = ClientConfig::with_roots([started.identity.certificate()])
        .expect("valid")
        .alpn([h3::ALPN])
        .transport_config(transport);
    let endpoint = Endpoint::client("0.0.0.0:0".parse().expect("valid")).expect("a free port");
    let connecting = endpoint.connect_with(config, started.address, "localhost");
    let connection = within(connecting.expect("valid").into_future())
        .await
        .expect("connected");
    h3::Client::with_config(connection, h3::Config::new(Side::Client))
}

fn connect_request(target: SocketAddr) -> http::Request<()> {
    let uri = format!(
        "https://localhost/.well-known/masque/udp/{}/{}/",
        target.ip(),
        target.port()
    );
    http::Request::connect(uri)
        .extension(h3::Protocol::new("connect-udp").expect("a token"))
        .body(())
        .expect("a URI")
}

/// Returns a capsule with a short packet.
fn capsule_of(payload: &[u8]) -> bytes::Bytes {
    let len = u8::try_from(payload.len() + 1).expect("short");
    [&[0, len, 0], payload].concat().into()
}

/// A policy for targets on this machine.
fn local() -> Policy {
    Policy::nothing().allow("127.0.0.0/8".parse().expect("valid"), 0..=65_535)
}

fn open_proxy() -> UdpProxy {
    UdpProxy::new(local()).open_to_all()
}

/// A target that returns each packet to its sender.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("a free port");
    let address = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    address
}

async fn within<F: Future>(future: F) -> F::Output {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, future).await.expect("in time")
}

/// Waits until a condition holds.
async fn until(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
