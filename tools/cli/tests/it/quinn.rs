//! The perf tools against servers and clients that behave like quinn-perf.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc;

use crate::common;
use crate::common::{Server, number, run};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const LOCAL: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

fn block_on(work: impl Future<Output = Result>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime")
        .block_on(work)
        .expect("no errors");
}

/// Reads a request to its end, and returns the requested length of the response.
///
/// All of it is read in order. quinn-perf reads what follows the header without an order, but quinn
/// 0.11 never reports the end of such a stream if a frame has arrived twice.
async fn read_request(mut receive: quinn::RecvStream) -> Result<u64> {
    let mut header = [0; 8];
    receive.read_exact(&mut header).await?;
    while receive.read_chunk(usize::MAX, true).await?.is_some() {}
    Ok(u64::from_be_bytes(header))
}

async fn respond(mut send: quinn::SendStream, mut remaining: u64) -> Result {
    while remaining > 0 {
        let len = remaining.min(1 << 20);
        send.write_all(&vec![42; usize::try_from(len)?]).await?;
        remaining -= len;
    }
    // Dropping the stream finishes it.
    Ok(())
}

async fn answer_uni(connection: quinn::Connection, receive: quinn::RecvStream) -> Result {
    let length = read_request(receive).await?;
    respond(connection.open_uni().await?, length).await
}

async fn answer_bi(send: quinn::SendStream, receive: quinn::RecvStream) -> Result {
    respond(send, read_request(receive).await?).await
}

async fn serve(connection: quinn::Connection) {
    loop {
        tokio::select! {
            Ok(receive) = connection.accept_uni() => {
                tokio::spawn(answer_uni(connection.clone(), receive));
            }
            Ok((send, receive)) = connection.accept_bi() => {
                tokio::spawn(answer_bi(send, receive));
            }
            else => return,
        }
    }
}

/// Starts a perf server of quinn on its own thread, and returns its address and the file with its
/// certificate.
fn quinn_server() -> (SocketAddr, common::Certificate) {
    let certificate = common::certificate(2200);
    let (cert, key) = (certificate.cert.clone(), certificate.key.clone());
    let (sender, address) = mpsc::channel();
    std::thread::spawn(move || {
        block_on(async move {
            let chain = vec![CertificateDer::from_pem_file(cert)?];
            let mut tls = rustls::ServerConfig::builder_with_provider(courser::crypto_provider())
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_no_client_auth()
                .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
            tls.alpn_protocols = vec![b"perf".to_vec()];
            let tls = QuicServerConfig::try_from(tls)?;
            let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
            let endpoint = quinn::Endpoint::server(config, LOCAL)?;
            sender.send(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                // A slow client must not delay the next one.
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        serve(connection).await;
                    }
                });
            }
            Ok(())
        });
    });
    (address.recv().expect("an address"), certificate)
}

#[test]
fn client_measures_a_quinn_perf_server() {
    let (address, certificate) = quinn_server();
    let address = address.to_string();
    let scenarios: [&[&str]; 7] = [
        &["-n", "5M"],
        &["-n", "5M", "-R", "-P", "2"],
        &["-t", "0.3", "-R"],
        &["--scenario", "rr", "-n", "100", "--in-flight", "10"],
        &[
            "--scenario",
            "rr",
            "-n",
            "100",
            "--in-flight",
            "10",
            "--uni",
        ],
        &["--scenario", "handshake", "-n", "5"],
        &["--scenario", "close", "-n", "5"],
    ];
    for flags in scenarios {
        let client = [
            "perf",
            "client",
            &address,
            "--ca",
            &certificate.cert,
            "--json",
        ];
        let output = run(&[&client[..], flags].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?}: {error}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(
            report["server"].is_null(),
            "{flags:?}: quinn-perf does not report counters"
        );
        assert!(number(&report, "end.seconds") > 0.0, "{flags:?}");
    }
}

async fn quinn_client(server: &Server, cert: &str) -> Result<(quinn::Endpoint, quinn::Connection)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(courser::crypto_provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"perf".to_vec()];
    let tls = QuicClientConfig::try_from(tls)?;
    let config = quinn::ClientConfig::new(Arc::new(tls));
    let endpoint = quinn::Endpoint::client(LOCAL)?;
    let connection = endpoint
        .connect_with(config, server.address, "localhost")?
        .await?;
    Ok((endpoint, connection))
}

/// Sends a request like a quinn-perf client.
async fn request(mut send: quinn::SendStream, upload: u64, download: u64) -> Result {
    send.write_all(&download.to_be_bytes()).await?;
    send.write_all(&vec![42; usize::try_from(upload)?]).await?;
    send.finish()?;
    let stopped = send.stopped().await?;
    assert_eq!(stopped, None, "the server reads to the end");
    Ok(())
}

#[test]
fn server_answers_a_quinn_perf_client() {
    let certificate = common::certificate(2200);
    let server = Server::start(&["--cert", &certificate.cert, "--key", &certificate.key]);
    block_on(async {
        let (endpoint, connection) = quinn_client(&server, &certificate.cert).await?;
        for (upload, download) in [(0, 0), (1 << 20, 1 << 20), (0, 3 << 20), (3 << 20, 0)] {
            let (send, mut receive) = connection.open_bi().await?;
            request(send, upload, download).await?;
            let answer = receive.read_to_end(4 << 20).await?;
            assert_eq!(answer.len() as u64, download, "bidirectional, {upload} up");

            let send = connection.open_uni().await?;
            request(send, upload, download).await?;
            let answer = connection.accept_uni().await?.read_to_end(4 << 20).await?;
            assert_eq!(answer.len() as u64, download, "unidirectional, {upload} up");
        }
        connection.close(0_u32.into(), b"done");
        endpoint.wait_idle().await;
        Ok(())
    });
}
