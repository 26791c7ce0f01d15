//! Clients of a server that is killed and restarted.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use courser::rustls::pki_types::CertificateDer;
use courser::server::Protocol;
use courser::{ClientConfig, ConnectionError, Endpoint, Identity, h3};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use rustix::process::Signal;

use super::client::{Client, request};
use super::serving::Serving;
use super::within;
use crate::common::{Folder, certificate};

/// Returns a port that was free for both transports: the server has to restart on the same one.
fn address() -> SocketAddr {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = tcp.local_addr().expect("bound");
        if UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}

/// Connects a client and completes a request.
async fn connect(address: SocketAddr, certificate: CertificateDer<'static>) -> h3::Client {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let config = ClientConfig::with_roots([certificate]).expect("a certificate");
    let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, "localhost");
    let connection = within(connecting.expect("configured"))
        .await
        .expect("a server");
    let client = h3::Client::new(connection);
    let request = Request::get("https://localhost/");
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new());
    let answer = within(client.send(request.expect("a request"))).await;
    assert_eq!(answer.expect("an answer").status(), 200);
    client
}

/// Returns the error of a client after its server was killed and restarted, and the time until it.
async fn error_after_restart(
    arguments: &[&str],
    certificate: impl Fn() -> CertificateDer<'static>,
) -> (ConnectionError, Duration) {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let listen = address().to_string();
    let common = ["serve", &path, "--json", "--no-tcp", "--listen", &listen];
    let arguments = [&common[..], arguments].concat();
    let first = Serving::run(&arguments, Folder::new());
    let client = connect(first.address, certificate()).await;
    let connection = client.quic();
    // SIGKILL: no client is notified.
    drop(first);
    let _second = Serving::run(&arguments, Folder::new());
    let began = Instant::now();
    // The client may have received the error already, if it sent a packet before.
    if let Ok(mut stream) = within(connection.open_uni()).await {
        let _ = stream.write_all(b"x").await;
    }
    let error = within(connection.closed()).await;
    (error, began.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_restarted_server_are_reset() {
    let kept = Folder::new();
    let dev = kept.path().join("dev");
    let pem = certificate(2100);
    let dev_text = dev.to_str().expect("UTF-8");
    let of_dev = || Identity::from_pem_files(dev.join("cert.pem"), dev.join("key.pem"));
    let of_pem = || Identity::from_pem_files(&pem.cert, &pem.key);
    let (error, time) = error_after_restart(&["--tls-dev-dir", dev_text], || {
        of_dev().expect("written by the server").certificate()
    })
    .await;
    assert_eq!(error, ConnectionError::Reset, "--tls-dev-dir");
    // Far less than the idle timeout.
    assert!(time < Duration::from_secs(15), "--tls-dev-dir: {time:?}");
    let (error, time) = error_after_restart(&["--cert", &pem.cert, "--key", &pem.key], || {
        of_pem().expect("readable").certificate()
    })
    .await;
    assert_eq!(error, ConnectionError::Reset, "--cert");
    assert!(time < Duration::from_secs(15), "--cert: {time:?}");
}

/// After SIGTERM the address is free at once, however slow a client is.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_process_serves_while_the_former_drains() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    folder.file("small", "small");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let kept = Folder::new();
    let dev = kept.path().join("dev");
    let dev = dev.to_str().expect("UTF-8").to_owned();
    for (protocol, shards) in [
        (Protocol::Http3, "1"),
        (Protocol::Http3, "3"),
        (Protocol::Http2, "1"),
    ] {
        let listen = address().to_string();
        let arguments = [
            "serve",
            &path,
            "--json",
            "--tls-dev-dir",
            &dev,
            "--listen",
            &listen,
        ];
        let arguments = [&arguments[..], &["--shards", shards, "--no-compress"]].concat();
        let mut former = Serving::run(&arguments, Folder::new());
        let certificate = Identity::from_pem_files(
            kept.path().join("dev/cert.pem"),
            kept.path().join("dev/key.pem"),
        );
        let certificate = certificate.expect("written by the server").certificate();
        let mut slow = Client::connect(protocol, former.address, certificate.clone())
            .await
            .expect("a server");
        let response = within(slow.begin(request(Method::GET, "/large", &[], "")))
            .await
            .expect("an answer");
        former.signal(Signal::TERM);
        assert_eq!(
            former.next_event()["event"],
            "draining",
            "{protocol}, {shards}"
        );
        let next = Serving::run_next(&arguments);
        for other in Protocol::ALL {
            let client = Client::connect(other, next.address, certificate.clone());
            let mut client = within(client).await.expect("the next server");
            assert_eq!(
                client.get("/small", &[]).await.text(),
                "small",
                "{protocol}, {shards}, {other}"
            );
        }
        let content = within(response.into_body().collect())
            .await
            .expect("finished");
        assert_eq!(content.to_bytes().len(), 30_000_000, "{protocol}, {shards}");
        drop(slow);
        let drained = former.next_event();
        assert_eq!(
            drained["requests_cut"], 0,
            "{protocol}, {shards}: {drained}"
        );
        former.ended();
        next.signal(Signal::TERM);
    }
}
