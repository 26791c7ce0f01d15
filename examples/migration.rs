//! A client that changes its local address and its socket during a connection:
//! `cargo run -p courser --example migration`.
//!
//! The connection is the same all the time. Only the address that the server sees changes.

use std::net::SocketAddr;

use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Answers each stream with the address that its bytes came from.
async fn serve(endpoint: Endpoint) -> Result {
    let incoming = endpoint.accept().await.ok_or("closed")?;
    let connection = incoming.await?;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        receive.read_to_end(100).await?;
        let address = connection.remote_address().to_string();
        send.write_all(address.as_bytes()).await?;
        send.finish()?;
    }
    Ok(())
}

/// Asks for the address that the server sees, until it is one that `is_expected`.
async fn ask(connection: &Connection, is_expected: impl Fn(SocketAddr) -> bool) -> Result {
    loop {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(b"where am I?").await?;
        send.finish()?;
        let answer = String::from_utf8(receive.read_to_end(100).await?)?;
        // The server trusts a new address a round trip after the first packet from there.
        if is_expected(answer.parse()?) {
            println!("the server sees {answer}");
            return Ok(());
        }
    }
}

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["where"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    // A socket without an address of its own can send from each address of the machine.
    let client = Endpoint::client("0.0.0.0:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["where"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    ask(&connection, |_| true).await?;

    // Another address, on Linux: the path is validated first.
    match connection.migrate("127.0.0.2".parse()?).await {
        Ok(()) => ask(&connection, |seen| seen.ip().to_string() == "127.0.0.2").await?,
        Err(error) => println!("not moved: {error}"),
    }

    // Another socket, as after a change from one network to another: the connection moves at once.
    client.rebind_to("127.0.0.1:0".parse()?)?;
    let port = client.local_addr()?.port();
    ask(&connection, |seen| seen.port() == port).await?;

    client.close(0u32.into(), b"thank you");
    client.wait_idle().await;
    Ok(())
}
