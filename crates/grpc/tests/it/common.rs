//! Servers and channels for tests.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use courser_grpc::{Channel, ChannelBuilder, ServerLayer};
use courser_quic::Identity;
use courser_server::{Drained, ServerHandle, serve};
use tokio::task::JoinHandle;
use tower_layer::Layer as _;

use super::pb::test_service_client::TestServiceClient;
use super::service::Test;

pub type Client = TestServiceClient<Channel>;

/// The identity of all servers, so that one can take the place of another.
pub static IDENTITY: LazyLock<Identity> =
    LazyLock::new(|| Identity::dev().expect("random numbers"));

pub struct Server {
    pub test: Test,
    pub handle: ServerHandle,
    pub address: SocketAddr,
    serving: JoinHandle<Result<Drained, courser_server::Error>>,
}

/// Starts a server of the test service on a free port.
pub fn start() -> Server {
    start_at(
        "127.0.0.1:0".parse().expect("an address"),
        ServerLayer::new(),
    )
}

pub fn start_at(address: SocketAddr, layer: ServerLayer) -> Server {
    let test = Test::default();
    let bind = || {
        serve(address, &*IDENTITY)
            .deadline(Duration::from_millis(300))
            .reset_secret([7; 32])
            .bind()
    };
    let end = Instant::now() + Duration::from_secs(10);
    let bound = loop {
        match bind() {
            Ok(bound) => break bound,
            // The sockets of a server that was stopped close a little later.
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => panic!("no port: {error}"),
        }
    };
    let (handle, address) = (bound.handle(), bound.local_addr());
    let serving = bound.service(layer.layer(test.service()));
    let serving = tokio::spawn(serving.into_future());
    Server {
        test,
        handle,
        address,
        serving,
    }
}

impl Server {
    pub fn uri(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// Stops at once, without a farewell to clients of TCP.
    pub async fn stop(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }

    /// Ends when the calls have ended.
    pub async fn drain(self) {
        self.handle.drain();
        self.serving.await.expect("no panic").expect("no error");
    }
}

/// Returns a builder for a channel that trusts the servers, all of which are on this address.
pub fn to(uri: &str) -> ChannelBuilder {
    Channel::builder(uri)
        .root(IDENTITY.certificate())
        .configure(|client| {
            client
                .platform_roots(false)
                .family(courser_client::Family::V4)
        })
}

pub fn channel(server: &Server) -> Channel {
    to(&server.uri()).build().expect("valid settings")
}

/// Fails instead of hanging.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future)
        .await
        .expect("it takes no half minute")
}

/// Waits for something that another task does.
pub async fn until(mut holds: impl FnMut() -> bool) {
    within(async {
        let mut checks = tokio::time::interval(Duration::from_millis(1));
        while !holds() {
            checks.tick().await;
        }
    })
    .await;
}
