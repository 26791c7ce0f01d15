// The beginning of doc tests: both ends of a connection over loopback with the protocol h3.

mod courser {
    pub use courser_http3_tokio as h3;
    pub use courser_webtransport_tokio as webtransport;
    pub use courser_quic::*;
}

use courser::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, Side, h3};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the client end and the server end of a connection.
async fn pair() -> Result<(Connection, Connection)> {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn([h3::ALPN]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
    let incoming = server.accept().await.ok_or("closed")?;
    let (client, server) = tokio::join!(connecting, incoming.into_future());
    Ok((client?, server?))
}
