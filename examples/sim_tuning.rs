//! The effect of two settings on simulated paths: `cargo run -p courser-sim --example sim_tuning`.
//!
//! Time is virtual, so that the figures are the same on every machine.

use std::sync::Arc;
use std::time::Duration;

use courser::{
    ClientConfig, Connection, Endpoint, PathMemory, ServerConfig, TransportConfig, runtime,
};
use courser_sim::{World, identity::identity};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ADDRESS: &str = "10.0.0.2:4433";

/// Sends as many bytes on each stream as the client asks for.
async fn server(transport: TransportConfig) -> Result {
    let config = ServerConfig::with_identity(&identity())?.alpn(["bytes"]);
    let endpoint = Endpoint::server(config.transport_config(transport), ADDRESS.parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        answer(&incoming.await?).await?;
    }
    Ok(())
}

async fn answer(connection: &Connection) -> Result {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut length = [0; 8];
        receive.read_exact(&mut length).await?;
        let length = u64::from_be_bytes(length).try_into()?;
        send.write_all(&vec![0; length]).await?;
        send.finish()?;
    }
    Ok(())
}

/// Downloads these numbers of bytes, each over a connection of its own. Returns the time of each, with its handshake.
async fn client(transport: TransportConfig, lengths: Vec<u64>) -> Result<Vec<Duration>> {
    let endpoint = Endpoint::client("10.0.0.1:0".parse()?)?;
    let mut times = Vec::new();
    for length in lengths {
        let config = ClientConfig::with_roots([identity().certificate()])?.alpn(["bytes"]);
        let config = config.transport_config(transport.clone());
        let begin = runtime::now();
        let connecting = endpoint.connect_with(config, ADDRESS.parse()?, "localhost")?;
        let connection = connecting.await?;
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&length.to_be_bytes()).await?;
        send.finish()?;
        let received = receive.read_to_end(length.try_into()?).await?;
        assert_eq!(received.len(), usize::try_from(length)?);
        times.push(runtime::now() - begin);
        connection.close(0u32.into(), b"done");
        // A path is remembered once the connection has ended.
        runtime::sleep(Duration::from_secs(3)).await;
    }
    Ok(times)
}

/// Runs the client and the server on a path, with the settings of each.
fn run(path: &str, [near, far]: [TransportConfig; 2], lengths: &[u64]) -> Result<Vec<Duration>> {
    let mut world = World::new(1);
    let client_machine = world.machine("client", [10, 0, 0, 1]);
    let server_machine = world.machine("server", [10, 0, 0, 2]);
    world.join_machines(&client_machine, &server_machine, &path.parse()?);
    server_machine.spawn(server(far));
    world.run_until_done(client_machine.spawn(client(near, lengths.to_vec())))?
}

fn milliseconds(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}

/// Returns the default settings with a first window for each stream, and four times as much for all.
fn with_window(bytes: u64) -> TransportConfig {
    TransportConfig {
        stream_receive_window: bytes,
        receive_window: 4 * bytes,
        ..TransportConfig::default()
    }
}

fn main() -> Result {
    println!("first window of the receiver, 100 Mbit/s and 100 ms:");
    println!("{:>12} {:>12} {:>12}", "window", "500 kB", "5 MB");
    for kib in [64, 256, 1024] {
        let settings = [with_window(kib * 1024), TransportConfig::default()];
        let times = run("100mbit,50ms,queue=1bdp", settings, &[500_000, 5_000_000])?;
        let [short, long] = [times[0], times[1]].map(milliseconds);
        println!("{:>12} {short:>12} {long:>12}", format!("{kib} KiB"));
    }
    println!("2 MB before and after 20 MB with path memory, 50 Mbit/s and 200 ms:");
    println!("{:>12} {:>12} {:>12}", "window", "before", "after");
    for kib in [256, 1024] {
        let far = TransportConfig {
            path_memory: Some(Arc::new(PathMemory::new())),
            ..TransportConfig::default()
        };
        let settings = [with_window(kib * 1024), far];
        let lengths = [2_000_000, 20_000_000, 2_000_000];
        let times = run("50mbit,100ms,queue=1bdp", settings, &lengths)?;
        let [before, after] = [times[0], times[2]].map(milliseconds);
        println!("{:>12} {before:>12} {after:>12}", format!("{kib} KiB"));
    }
    Ok(())
}
