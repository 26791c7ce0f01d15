//! A call in one process: frames of 20 ms in datagrams (RFC 9221), with their loss and jitter.
//! `cargo run -p courser --example voice`. The test `voice` of `courser-sim` runs the same on simulated links.

#[path = "voice/call.rs"]
mod call;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const FRAMES: u32 = 100;

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["voice"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let listener = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("closed")?.await?;
        Result::Ok(call::listen(&connection).await)
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["voice"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let expired = call::speak(&connection, FRAMES).await?;
    let path = connection.stats().path;
    connection.close(0u32.into(), b"goodbye");
    let heard = listener.await??;
    println!("{FRAMES} frames, {expired} of them expired before they left");
    println!(
        "{} played, {} late, {} lost, jitter {:?} ({:?} by arrival)",
        heard.played,
        heard.late,
        heard.lost(),
        heard.jitter,
        heard.arrival_jitter
    );
    println!("round trip {:?} ± {:?}", path.rtt, path.rtt_variance);
    client.wait_idle().await;
    // On an idle loopback interface none should be missing, but that is not guaranteed.
    assert!(heard.played + heard.late > FRAMES / 2, "{heard:?}");
    Ok(())
}
