//! The perf protocol as other implementations use it, with requests of the library.

use std::net::{Ipv4Addr, SocketAddr};

use crate::common::{Server, number, run};
use courser::{ClientConfig, Connection, Endpoint, ReadToEndError, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const LOCAL: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

async fn connect(server: &Server) -> Result<(Endpoint, Connection)> {
    let endpoint = Endpoint::client(LOCAL)?;
    let config = ClientConfig::dangerous_insecure()?.alpn(["perf"]);
    let connection = endpoint
        .connect_with(config, server.address, "localhost")?
        .await?;
    Ok((endpoint, connection))
}

fn block_on(work: impl Future<Output = Result>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime")
        .block_on(work)
        .expect("no errors");
}

#[test]
fn bidirectional_request_gets_a_response_of_the_requested_length() {
    let server = Server::start(&[]);
    block_on(async {
        let (_endpoint, connection) = connect(&server).await?;
        for (upload, expected) in [(0, 0), (0, 1), (1, 0), (100_000, 3), (3, 100_000)] {
            let (mut send, mut receive) = connection.open_bi().await?;
            send.write_all(&u64::to_be_bytes(expected)).await?;
            send.write_all(&vec![0; upload]).await?;
            send.finish()?;
            let answer = receive.read_to_end(1 << 20).await?;
            assert_eq!(answer.len() as u64, expected, "for {upload} bytes");
        }
        Ok(())
    });
}

#[test]
fn unidirectional_request_gets_a_response_on_a_server_stream() {
    let server = Server::start(&[]);
    block_on(async {
        let (_endpoint, connection) = connect(&server).await?;
        let mut send = connection.open_uni().await?;
        send.write_all(&4321_u64.to_be_bytes()).await?;
        send.write_all(b"and some more").await?;
        send.finish()?;
        let answer = connection.accept_uni().await?.read_to_end(1 << 20).await?;
        assert_eq!(answer.len(), 4321);
        Ok(())
    });
}

#[test]
fn stream_with_an_incomplete_header_is_reset() {
    let server = Server::start(&[]);
    block_on(async {
        let (_endpoint, connection) = connect(&server).await?;
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&[0; 7]).await?;
        send.finish()?;
        let error = receive.read_to_end(10).await.expect_err("a reset");
        assert!(error.is_reset(), "{error}");
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&5_u64.to_be_bytes()).await?;
        send.finish()?;
        assert_eq!(receive.read_to_end(10).await?.len(), 5);
        Ok(())
    });
}

#[test]
fn response_ends_when_it_is_stopped() {
    let server = Server::start(&[]);
    block_on(async {
        let (_endpoint, connection) = connect(&server).await?;
        // The length that secnetperf requests if time is the limit.
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&u64::MAX.to_be_bytes()).await?;
        send.finish()?;
        let error = receive.read_to_end(100_000).await.expect_err("too long");
        assert!(matches!(error, ReadToEndError::TooLong { .. }), "{error}");
        receive.stop(0_u32.into())?;
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&5_u64.to_be_bytes()).await?;
        send.finish()?;
        assert_eq!(receive.read_to_end(10).await?.len(), 5);
        Ok(())
    });
}

/// A perf server without courser's special lengths: every length is the length of the response.
async fn plain_server(endpoint: Endpoint) -> Result {
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    let request = receive.read_to_end(1 << 24).await?;
                    let header = request.first_chunk().ok_or("no header")?;
                    let mut remaining = u64::from_be_bytes(*header);
                    while remaining > 0 {
                        let len = remaining.min(65_536);
                        send.write_all(&vec![0; usize::try_from(len)?]).await?;
                        remaining -= len;
                    }
                    Result::Ok(send.finish()?)
                });
            }
        });
    }
    Ok(())
}

#[test]
fn server_of_another_implementation_is_measured() {
    let (sender, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        block_on(async move {
            let config = ServerConfig::dev()?.alpn(["perf"]);
            let endpoint = Endpoint::server(config, LOCAL)?;
            sender.send(endpoint.local_addr()?)?;
            plain_server(endpoint).await
        });
    });
    let address = address.recv().expect("an address").to_string();
    for scenario in ["upload", "download"] {
        let output = run(&[
            "perf",
            "client",
            &address,
            "--insecure",
            "--scenario",
            scenario,
            "-n",
            "1M",
            "--json",
        ]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scenario}: {error}");
        let report = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(
            (number(&report, "end.sum_sent.bytes") - 1e6).abs() < 0.5,
            "{scenario}"
        );
        assert!(report["server"].is_null(), "{scenario}: {report:#}");
    }
}
