//! A request in the first packets of a connection, and its answer after one round trip (0-RTT and
//! 0.5-RTT): `cargo run -p courser --example early_data`.

use std::net::SocketAddr;

use courser::{ClientConfig, EarlyData, EarlyDataOptions, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Answers each stream, even before the handshakes are complete. Requests may be replays, so that answering one twice
/// must be harmless.
async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.accept()?.early().await?;
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let question = receive.read_to_end(100).await?;
                let when = match receive.is_early() {
                    true => "early",
                    false => "late",
                };
                println!("server: {when} {:?}", String::from_utf8_lossy(&question));
                send.write_all(b"noon").await?;
                send.finish()?;
            }
            Result::Ok(())
        });
    }
}

/// Sends a request on a new connection, and returns the fate of its early data.
async fn ask(endpoint: &Endpoint, server: SocketAddr) -> Result<EarlyData> {
    let connection = endpoint.connect(server, "localhost")?.early().await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"what time is it?").await?;
    send.finish()?;
    let answer = receive.read_to_end(100).await;
    let fate = connection.authenticated().await?;
    println!("client: {answer:?}, early data: {fate:?}");
    if fate != EarlyData::Rejected {
        assert_eq!(answer?, b"noon");
    }
    connection.close(0u32.into(), b"thank you");
    Ok(fate)
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?
        .alpn(["time"])
        .early_data(EarlyDataOptions::default());
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["time"]);
    client.set_default_client_config(config.early_data(true));
    // The first connection brings tickets.
    assert_eq!(ask(&client, address).await?, EarlyData::None);
    assert_eq!(ask(&client, address).await?, EarlyData::Accepted);
    client.wait_idle().await;
    Ok(())
}
