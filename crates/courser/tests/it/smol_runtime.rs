//! courser on smol, beside tokio in the same process. The runtime is that of `examples/smol_echo.rs`.

#[path = "../../../../examples/smol_echo/runtime.rs"]
mod runtime;

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::runtime::{JoinError, now, sleep_until, spawn, timeout, within};
use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, TransportConfig};

use self::runtime::Smol;
use crate::common::{loopback, pattern};
use crate::turns::{longest_run, unlimited};

/// Runs a test on smol. This thread has no tokio runtime, so code that requires one fails.
fn on_smol<T>(test: impl Future<Output = T>) -> T {
    smol::block_on(within(Arc::new(Smol), async {
        timeout(Duration::from_secs(60), test)
            .await
            .expect("not in time")
    }))
}

struct Ends {
    server: Endpoint,
    client: Endpoint,
    config: ClientConfig,
}

fn ends(settings: TransportConfig) -> Ends {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["h3"])
        .transport_config(Arc::new(settings));
    let config_of_client = ClientConfig::with_roots([identity.certificate()]);
    Ends {
        server: Endpoint::server(config, loopback()).expect("a port"),
        client: Endpoint::client(loopback()).expect("a port"),
        config: config_of_client.expect("a certificate").alpn(["h3"]),
    }
}

impl Ends {
    async fn connect(&self) -> (Connection, Connection) {
        let address = self.server.local_addr().expect("bound");
        let connecting = self
            .client
            .connect_with(self.config.clone(), address, "localhost");
        let accept = async { self.server.accept().await.expect("open").await };
        let (client, server) = tokio::join!(connecting.expect("configured"), accept);
        (client.expect("handshake"), server.expect("handshake"))
    }
}

#[test]
fn streams_and_datagrams_travel_on_smol() {
    on_smol(async {
        let ends = ends(TransportConfig::default());
        let (client, server) = ends.connect().await;
        let content = pattern(3, 4 << 20);
        let expected = content.clone();
        let reader = spawn({
            let server = server.clone();
            async move {
                let mut receive = server.accept_uni().await.expect("open");
                receive.read_to_end(8 << 20).await.expect("complete")
            }
        });
        let mut send = client.open_uni().await.expect("open");
        send.write_all(&content).await.expect("open");
        send.finish().expect("open");
        assert!(
            reader.await.expect("no panic") == expected,
            "the data differs"
        );

        server
            .send_datagram(bytes::Bytes::from_static(b"one way"))
            .expect("enough room");
        assert_eq!(client.read_datagram().await.expect("open"), "one way");

        // Batches, marks and the interface's MTU come from the system, as on tokio.
        let counters = ends.client.socket_counters();
        assert!(counters.sent_bytes > 4 << 20, "{counters:?}");
        if ends.client.capabilities().gso_segments > 1 {
            assert!(
                counters.send_calls < counters.sent_datagrams,
                "{counters:?}"
            );
        }
        assert!(client.stats().path.mtu > 1472, "loopback has more");
        ends.client.close(0u32.into(), b"");
        ends.client.wait_idle().await;
    });
}

#[test]
fn timers_and_tasks_run_on_smol() {
    on_smol(async {
        let begin = Instant::now();
        sleep_until(now() + Duration::from_millis(20)).await;
        assert!(begin.elapsed() >= Duration::from_millis(20));
        assert!(now() >= begin + Duration::from_millis(20), "the same clock");
        assert!(
            timeout(Duration::from_millis(5), std::future::pending::<()>())
                .await
                .is_err()
        );
        let endless = spawn(std::future::pending::<()>());
        endless.abort();
        assert_eq!(endless.await, Err(JoinError::Cancelled));

        // A connection without an answer: probes, and the end by the idle timeout.
        let silent = std::net::UdpSocket::bind(loopback()).expect("a port");
        let settings = TransportConfig {
            max_idle_timeout: Some(Duration::from_millis(700)),
            ..TransportConfig::default()
        };
        let ends = ends(TransportConfig::default());
        let config = ends.config.clone().transport_config(Arc::new(settings));
        let address = silent.local_addr().expect("bound");
        let begin = Instant::now();
        let connecting = ends.client.connect_with(config, address, "localhost");
        let error = connecting.expect("configured").await.expect_err("silence");
        assert_eq!(error, courser::ConnectionError::TimedOut);
        assert!(begin.elapsed() >= Duration::from_millis(700));
        let probes = ends.client.socket_counters().sent_datagrams;
        assert!(probes >= 2, "{probes} datagrams");
    });
}

#[cfg(feature = "http3")]
#[test]
fn http3_runs_on_smol() {
    use courser::h3;
    use http_body_util::BodyExt as _;

    on_smol(async {
        let ends = ends(TransportConfig::default());
        let (client, server) = ends.connect().await;
        let service = tower::service_fn(|request: http::Request<h3::Body>| async move {
            // A request that waits gets a task of its own.
            smol::future::yield_now().await;
            let path = request.uri().path().to_owned();
            Ok::<_, std::convert::Infallible>(http::Response::new(path))
        });
        spawn(async move { h3::serve(server, service).await });
        let client = h3::Client::new(client);
        for path in ["/one", "/two"] {
            let request = http::Request::get(format!("https://localhost{path}"));
            let request = request.body(h3::Empty).expect("a request");
            let response = client.send(request).await.expect("answered");
            let body = response.into_body().collect().await.expect("a body");
            assert_eq!(body.to_bytes(), path);
        }
    });
}

/// A socket of the system is adopted, and a connection moves to another one.
#[test]
fn sockets_are_adopted_and_replaced_on_smol() {
    on_smol(async {
        let ends = ends(TransportConfig::default());
        let (client, server) = ends.connect().await;
        until(|| client.stats().frames_received.handshake_done > 0).await;
        let other = std::net::UdpSocket::bind(loopback()).expect("a port");
        let address = other.local_addr().expect("bound");
        ends.client.rebind(other).expect("a runtime that adopts");
        client.ping().await.expect("alive");
        until(|| server.remote_address() == address).await;
    });
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        smol::future::yield_now().await;
    }
}

/// Each endpoint belongs to the runtime in which it was created, and both talk to each other. A handle
/// may be used from the other runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smol_and_tokio_share_a_process() {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn(["both"]);
    let server = Endpoint::server(config, loopback()).expect("a port");
    let address = server.local_addr().expect("bound");
    let config = ClientConfig::with_roots([identity.certificate()]).expect("a certificate");

    let (sent, received) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || {
        on_smol(async move {
            let client = Endpoint::client(loopback()).expect("a port");
            let connecting = client.connect_with(config.alpn(["both"]), address, "localhost");
            let connection = connecting.expect("configured").await.expect("handshake");
            let mut send = connection.open_uni().await.expect("open");
            send.write_all(b"from smol").await.expect("open");
            send.finish().expect("open");
            // The test goes on with it on tokio.
            let _ = sent.send(connection.clone());
            connection.closed().await;
        });
    });
    let connection = server
        .accept()
        .await
        .expect("open")
        .await
        .expect("handshake");
    let mut receive = connection.accept_uni().await.expect("open");
    assert_eq!(
        receive.read_to_end(20).await.expect("complete"),
        b"from smol"
    );

    let of_smol = received.await.expect("sent");
    let mut send = of_smol.open_uni().await.expect("open");
    send.write_all(b"from tokio").await.expect("open");
    send.finish().expect("open");
    let mut receive = connection.accept_uni().await.expect("open");
    assert_eq!(
        receive.read_to_end(20).await.expect("complete"),
        b"from tokio"
    );
    connection.close(0u32.into(), b"");
    thread.join().expect("no panic");
}

/// Limit K215: a writer that has yielded is woken on any runtime.
#[test]
fn writer_that_never_blocks_yields_on_smol() {
    const BYTES: usize = 4 << 20;
    on_smol(async {
        let ends = ends(unlimited());
        let (client, server) = ends.connect().await;
        let reading = spawn(async move {
            let mut receive = server.accept_uni().await.expect("a stream");
            receive.read_to_end(BYTES).await.expect("complete")
        });
        let mut send = client.open_uni().await.expect("allowed");
        // The driver has other threads here, and each of its turns wakes the writer.
        assert!(longest_run(&mut send, BYTES).await >= 64 << 10);
        assert_eq!(reading.await.expect("no panic").len(), BYTES);
    });
}
