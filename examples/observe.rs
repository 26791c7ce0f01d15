//! A server with observability: events of `tracing` on standard error, and metrics for
//! Prometheus.
//!
//! ```sh
//! RUST_LOG=courser=debug cargo run --example observe --features metrics,tracing
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use courser::observe::{Metrics, TracingSinks};
use courser::telemetry::Tee;
use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // A server with much to do writes through `tracing_appender::non_blocking`: subscribers run under the lock of
    // the endpoint.
    let filter = match std::env::var("RUST_LOG") {
        Ok(levels) => levels.parse()?,
        Err(_) => Targets::new().with_target("courser", LevelFilter::INFO),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .init();

    let metrics = Metrics::new();
    let sinks = Arc::new(Tee(TracingSinks::new(), metrics.sinks_named("greetings")));
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?;
    let config = config.alpn(["greeting"]).sinks(sinks);
    let server = Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = server.local_addr()?;
    metrics.watch("greetings", &server);
    let work = tokio::spawn(greet(server));

    // A program of one's own mounts this where its operators can reach it, as any service of tower.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("metrics at http://{}/metrics", listener.local_addr()?);
    let router = axum::Router::new().route_service("/metrics", metrics.service());
    tokio::spawn(async move { axum::serve(listener, router).await });

    let client = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["greeting"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.finish()?;
    assert_eq!(receive.read_to_end(100).await?, b"hello");
    connection.close(0_u32.into(), b"done");
    client.wait_idle().await;
    work.await??;

    let text = metrics.text();
    let closed = text
        .lines()
        .find(|line| line.starts_with("courser_connections_closed_total"));
    println!("{}", closed.ok_or("no connection was counted")?);
    Ok(())
}

/// Answers one request of one client.
async fn greet(server: Endpoint) -> std::io::Result<()> {
    let incoming = server
        .accept()
        .await
        .ok_or(std::io::ErrorKind::BrokenPipe)?;
    let connection = incoming.await.map_err(std::io::Error::other)?;
    let (mut send, _receive) = connection
        .accept_bi()
        .await
        .map_err(std::io::Error::other)?;
    send.write_all(b"hello")
        .await
        .map_err(std::io::Error::other)?;
    send.finish().map_err(std::io::Error::other)?;
    connection.closed().await;
    Ok(())
}
