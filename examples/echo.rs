//! An echo server and a client of it, in one process: `cargo run -p courser --example echo`.

use courser::{ClientConfig, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn serve(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            let connection = incoming.await?;
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    tokio::io::copy(&mut receive, &mut send).await?;
                    send.finish().map_err(std::io::Error::from)
                });
            }
            Result::Ok(())
        });
    }
}

async fn ask(endpoint: &Endpoint, server: std::net::SocketAddr, question: &[u8]) -> Result {
    let connection = endpoint.connect(server, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(question).await?;
    send.finish()?;
    let answer = receive.read_to_end(1 << 20).await?;
    println!(
        "{:?} after {:?}",
        String::from_utf8_lossy(&answer),
        connection.rtt()
    );
    assert_eq!(answer, question);
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["echo"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let trusted = [identity.certificate()];
    client.set_default_client_config(ClientConfig::with_roots(trusted)?.alpn(["echo"]));
    ask(&client, address, b"is anybody there?").await?;
    client.close(0u32.into(), b"thank you");
    client.wait_idle().await;
    Ok(())
}
