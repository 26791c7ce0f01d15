//! Both ends on tokio, in one process.

use courser::{ClientConfig, Endpoint, Identity, ServerConfig};
use {{crate_name}}::{ALPN, Result, ask, serve};

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([ALPN]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(serve(server));

    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([ALPN]);
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = client.connect_with(config, address, "localhost")?.await?;
    println!("{}", ask(&connection, b"how long is this?").await?);
    connection.close(0u32.into(), b"done");
    client.wait_idle().await;
    Ok(())
}
