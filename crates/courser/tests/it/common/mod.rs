//! Helpers shared by all tests of the facade.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod pace;
pub mod relay;

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, TransportConfig};
use tokio::task::JoinHandle;

/// A server and a client that trusts it, on loopback with ports chosen by the system.
pub struct Pair {
    pub server: Endpoint,
    pub client: Endpoint,
    pub address: SocketAddr,
    pub client_config: ClientConfig,
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub fn pair() -> Pair {
    pair_with(TransportConfig::default(), |config| config)
}

/// Creates a pair with the same transport settings on both sides, and a server modified by
/// `change`.
pub fn pair_with(
    transport: TransportConfig,
    change: impl FnOnce(ServerConfig) -> ServerConfig,
) -> Pair {
    pair_between(transport.clone(), transport, change)
}

/// Creates a pair with separate transport settings for the client and the server, and a server
/// modified by `change`.
pub fn pair_between(
    of_client: TransportConfig,
    of_server: TransportConfig,
    change: impl FnOnce(ServerConfig) -> ServerConfig,
) -> Pair {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["test"])
        .transport_config(Arc::new(of_server));
    let server = Endpoint::server(change(config), loopback()).expect("a port");
    let mut client = Endpoint::client(loopback()).expect("a port");
    let client_config = ClientConfig::with_roots([identity.certificate()])
        .expect("a certificate")
        .alpn(["test"])
        .transport_config(Arc::new(of_client));
    client.set_default_client_config(client_config.clone());
    let address = server.local_addr().expect("bound");
    Pair {
        server,
        client,
        address,
        client_config,
    }
}

impl Pair {
    /// Returns both ends of a new connection, the client's first.
    pub async fn connect(&self) -> (Connection, Connection) {
        let connecting = self
            .client
            .connect(self.address, "localhost")
            .expect("configured");
        let accept = async {
            self.server
                .accept()
                .await
                .expect("open")
                .await
                .expect("handshake")
        };
        let (client, server) = tokio::join!(connecting, accept);
        (client.expect("handshake"), server)
    }

    /// Closes both and waits for the end.
    pub async fn finish(self) {
        self.client.close(0u32.into(), b"");
        self.server.close(0u32.into(), b"");
        self.client.wait_idle().await;
        self.server.wait_idle().await;
    }
}

/// Like `tokio::spawn`, but with one type for all futures with the same output: for each additional
/// type, tokio's functions for both of its schedulers would be compiled again.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    tokio::spawn(future)
}

/// Fails instead of hanging. The limit is that of an idle machine, and grows with other work on this one.
pub async fn within<T>(seconds: u64, future: impl IntoFuture<Output = T>) -> T {
    let limit = Duration::from_secs(seconds);
    let mut future = std::pin::pin!(future.into_future());
    if let Ok(value) = tokio::time::timeout(limit, &mut future).await {
        return value;
    }
    let slowdown = pace::slowdown();
    match tokio::time::timeout(limit.mul_f64(slowdown), &mut future).await {
        Ok(value) => value,
        Err(_) => panic!(
            "took longer than {seconds} s, on a machine that is {slowdown:.1} times slower than idle"
        ),
    }
}

/// Waits until `holds` returns true through the work of other tasks or the network. Checks every millisecond,
/// so that waiting tests leave the processor to others. Fails after a time that allows for a machine under load.
pub async fn until(mut holds: impl FnMut() -> bool) {
    within(20, async {
        let mut checks = tokio::time::interval(Duration::from_millis(1));
        while !holds() {
            checks.tick().await;
        }
    })
    .await;
}

/// Returns bytes that reveal their position: a function of the seed and the offset.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed | 1);
    (0..len).map(|_| random.next() as u8).collect()
}

/// A small random number generator, so that a failing test can be repeated.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
