// The beginning of doc tests: both ends of a connection on loopback.

extern crate courser_quic as courser;

use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns a server that accepts connections, and a client that trusts it and has a default configuration.
#[allow(dead_code)]
fn endpoints() -> Result<(Endpoint, Endpoint)> {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["example"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["example"]);
    client.set_default_client_config(config);
    Ok((client, server))
}

/// Returns a connection at the client, and the same one at the server.
#[allow(dead_code)]
async fn pair() -> Result<(Connection, Connection)> {
    let (client, server) = endpoints()?;
    let connecting = client.connect(server.local_addr()?, "localhost")?;
    let incoming = server.accept().await.ok_or("closed")?;
    let (client, server) = tokio::join!(connecting, incoming.into_future());
    Ok((client?, server?))
}
