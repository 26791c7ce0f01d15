//! Transfers 256 MB over loopback, or the number of MB in the first argument, and prints the rate:
//! `cargo run --profile dist -p courser --example bulk`.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, TransportConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const CHUNK: usize = 64 * 1024;

/// Sends zeros, and waits until the client closes, because the client receives last.
async fn serve(endpoint: Endpoint, chunks: usize) -> Result {
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut send = connection.open_uni().await?;
    let chunk = Bytes::from(vec![0; CHUNK]);
    for _ in 0..chunks {
        send.write_chunk(chunk.clone()).await?;
    }
    send.finish()?;
    connection.closed().await;
    report("server", &connection);
    println!("server {:?}", endpoint.socket_counters());
    Ok(())
}

async fn receive(endpoint: &Endpoint, server: SocketAddr) -> Result<usize> {
    let connection = endpoint.connect(server, "localhost")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
        received += chunk.len();
    }
    report("client", &connection);
    connection.close(0u32.into(), b"done");
    Ok(received)
}

fn report(who: &str, connection: &Connection) {
    let stats = connection.stats();
    println!("{who} sent {:?}", stats.udp_sent);
    println!("{who} received {:?}", stats.udp_received);
    println!("{who} lost {}, path {:?}", stats.packets_lost, stats.path);
}

#[tokio::main]
async fn main() -> Result {
    let megabytes = std::env::args().nth(1);
    let megabytes: usize = megabytes.map_or(Ok(256), |text| text.parse())?;
    let chunks = megabytes * 1_000_000 / CHUNK;
    let transport = TransportConfig {
        mtu: 1472,
        ..TransportConfig::default()
    };
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["bulk"]);
    let config = config.transport_config(transport.clone());
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    for warning in server.capabilities().warnings {
        println!("note: {warning}");
    }
    let server = tokio::spawn(serve(server, chunks));

    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["bulk"]);
    client.set_default_client_config(config.transport_config(transport));
    let start = Instant::now();
    let received = receive(&client, address).await?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = received as f64 / seconds / 1e6;
    println!("{received} bytes in {seconds:.3} s: {rate:.1} MB/s");
    assert_eq!(received, chunks * CHUNK);
    server.await??;
    client.wait_idle().await;
    Ok(())
}
