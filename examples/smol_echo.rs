//! An echo server and a client of it on smol instead of tokio:
//! `cargo run -p courser --example smol_echo`. `smol_echo/runtime.rs` connects courser to smol.

#[path = "smol_echo/runtime.rs"]
mod runtime;

use std::sync::Arc;
use std::time::Duration;

use courser::runtime::{sleep, spawn, within};
use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn echo(connection: Connection) -> Result {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let request = receive.read_to_end(1 << 20).await?;
        send.write_all(&request).await?;
        send.finish()?;
    }
    Ok(())
}

async fn program() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["echo"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    spawn(async move {
        while let Some(incoming) = server.accept().await {
            spawn(async move { echo(incoming.await?).await });
        }
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["echo"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    for question in ["is anybody there?", "still there?"] {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(question.as_bytes()).await?;
        send.finish()?;
        let answer = receive.read_to_end(1 << 20).await?;
        println!(
            "{:?} after {:?}",
            String::from_utf8_lossy(&answer),
            connection.rtt()
        );
        assert_eq!(answer, question.as_bytes());
        sleep(Duration::from_millis(10)).await;
    }
    client.close(0u32.into(), b"thank you");
    client.wait_idle().await;
    Ok(())
}

fn main() -> Result {
    smol::block_on(within(Arc::new(runtime::Smol), program()))
}
