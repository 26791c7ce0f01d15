//! Memory of endpoints that have no connections.

use std::net::SocketAddr;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig};

use tokio::sync::oneshot;

use crate::common::{loopback, until, within};
use crate::counting::live;

/// Endpoints that exist at the same time, as in a program with a socket for each peer.
const ENDPOINTS: usize = 200;
/// Bytes of each. quinn's take 14 kB.
const BUDGET: isize = 20_000;

/// Lets the drivers run until they wait.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

fn per_endpoint(before: isize) -> isize {
    (live() - before) / ENDPOINTS as isize
}

#[tokio::test]
async fn idle_endpoint_takes_little_memory() {
    let before = live();
    let mut clients = Vec::with_capacity(ENDPOINTS);
    for _ in 0..ENDPOINTS {
        clients.push(Endpoint::client(loopback()).expect("a port"));
    }
    settle().await;
    let each = per_endpoint(before);
    println!("a client without connections: {each} bytes");
    assert!(each <= BUDGET, "{each} bytes");
}

/// Runs a server on a thread of its own, whose memory does not count here. It ends when the sender is dropped.
fn serve(identity: &Identity) -> (SocketAddr, oneshot::Sender<()>) {
    let config = ServerConfig::with_identity(identity).expect("matching key");
    let config = config.alpn(["test"]);
    let (bound, address) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let server = Endpoint::server(config, loopback()).expect("a port");
            bound
                .send(server.local_addr().expect("bound"))
                .expect("the test waits");
            let accept = async {
                while let Some(incoming) = server.accept().await {
                    let connection = incoming.await.expect("handshake");
                    crate::common::spawn(async move { connection.closed().await });
                }
            };
            tokio::select! {
                () = accept => {}
                _ = stopped => {}
            }
        });
    });
    (address.recv().expect("a port"), stop)
}

/// The buffers of connections go with the last one.
#[tokio::test]
async fn memory_of_closed_connections_is_freed() {
    let identity = Identity::dev().expect("random numbers");
    let (address, stop) = serve(&identity);
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");
    let config = config.alpn(["test"]);
    let before = live();
    let mut clients = Vec::with_capacity(ENDPOINTS);
    for _ in 0..ENDPOINTS {
        let client = Endpoint::client(loopback()).expect("a port");
        let connecting = client.connect_with(config.clone(), address, "localhost");
        let connection = within(20, connecting.expect("an address")).await;
        connection.expect("handshake").close(0u32.into(), b"");
        within(20, client.wait_idle()).await;
        clients.push(client);
    }
    // Closed connections stay for three probe timeouts (RFC 9000 §10.2).
    within(60, until(|| per_endpoint(before) <= BUDGET)).await;
    println!(
        "a client whose connection is over: {} bytes",
        per_endpoint(before)
    );
    drop(stop);
}
