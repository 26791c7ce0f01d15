//! Datagrams in one process: a clock sends the time to each client. A message expires after 50 ms, and
//! the fate of each is reported. `cargo run -p courser --example datagrams`.

use std::time::{Duration, Instant};

use bytes::Bytes;
use courser::{ClientConfig, DatagramFate, DatagramOptions, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const TICKS: u32 = 50;

/// Prints the datagrams that arrive, until the clock stops.
async fn listen(endpoint: Endpoint) -> Result<u32> {
    let incoming = endpoint.accept().await.ok_or("closed")?;
    let connection = incoming.await?;
    let mut heard = 0;
    while let Ok(time) = connection.read_datagram().await {
        if heard % 10 == 0 {
            println!("heard: {}", String::from_utf8_lossy(&time));
        }
        heard += 1;
    }
    Ok(heard)
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["clock"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let listener = tokio::spawn(listen(server));

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["clock"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let max = connection.max_datagram_size();
    println!(
        "datagrams of up to {} bytes",
        max.ok_or("the server takes none")?
    );

    let begun = Instant::now();
    let mut fates = Vec::new();
    for _ in 0..TICKS {
        let time = Bytes::from(format!("{:?} since the start", begun.elapsed()));
        let options = DatagramOptions::new().max_age(Duration::from_millis(50));
        fates.push(connection.send_datagram_tracked(time, options)?);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut acked = 0;
    for fate in fates {
        acked += u32::from(fate.await? == DatagramFate::Acked);
    }
    let stats = connection.stats().datagrams;
    println!(
        "{} sent: {acked} arrived, {} lost, {} expired before they left",
        stats.sent, stats.lost, stats.expired
    );
    connection.close(0u32.into(), b"done");
    let heard = listener.await??;
    client.wait_idle().await;
    // On an idle loopback interface none should be missing, but that is not guaranteed.
    assert!(heard >= acked, "{heard} heard of {acked} that arrived");
    Ok(())
}
