//! A VPN in one process: IP packets of 1280 bytes through datagrams (RFC 9221), in two halves while the path carries
//! less. `cargo run -p courser --example vpn`. The test `vpn` of `courser-sim` runs the same on simulated links.

#[path = "vpn/hosts.rs"]
mod hosts;
#[path = "vpn/packets.rs"]
mod packets;
#[path = "vpn/tunnel.rs"]
mod tunnel;

use courser::{ClientConfig, Endpoint, Identity, ServerConfig};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const COUNT: u32 = 50;

#[tokio::main]
async fn main() -> Result {
    let identity = Identity::dev()?;
    let config = ServerConfig::with_identity(&identity)?.alpn(["tunnel"]);
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let far = tokio::spawn(async move {
        let incoming = server.accept().await.ok_or("closed")?;
        Result::Ok(hosts::far(incoming.await?).await)
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn(["tunnel"]);
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let report = hosts::near(connection, COUNT).await;
    println!("client: {report:?}");
    println!("server: {:?}", far.await??);
    client.wait_idle().await;
    assert_eq!(report.sent.whole + report.sent.halved, COUNT);
    assert!(report.sent.whole > 0, "whole packets fit after the first");
    assert_eq!(report.reported_mtu, Some(1280));
    Ok(())
}
