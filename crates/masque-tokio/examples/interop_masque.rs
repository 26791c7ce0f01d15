//! The ends of courser for `interop/masque/run`.
//!
//! ```text
//! interop_masque proxy CERTIFICATE KEY                       a proxy for targets on loopback: prints its port
//! interop_masque client ROOT VERSION PROXY TARGET COUNT      COUNT datagrams through the proxy and back
//! interop_masque quic ROOT VERSION PROXY TARGET              a QUIC connection of courser inside of the tunnel
//! ```

use std::time::Duration;

use courser_http3_tokio as h3;
use courser_masque_tokio::{
    self as masque, Carrier, Policy, Socket, Template, UdpClient, UdpProxy,
};
use courser_quic::runtime::timeout;
use courser_quic::{ClientConfig, Endpoint, Identity, Side};
use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::pki_types::pem::PemObject as _;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn proxy(certificate: &str, key: &str) -> Result {
    let identity = Identity::from_pem_files(certificate, key)?;
    let mut settings = h3::Config::new(Side::Server);
    masque::enable(&mut settings, Side::Server);
    let policy = Policy::nothing().allow("127.0.0.0/8".parse()?, 1..=65_535);
    let server = courser_server::serve("127.0.0.1:0", identity)
        .config(settings)
        .http2_extended_connect(true)
        .bind()?;
    println!("{}", server.local_addr().port());
    server.service(UdpProxy::new(policy).open_to_all()).await?;
    Ok(())
}

async fn open(root: &str, version: &str, proxy: &str, target: &str) -> Result<(UdpClient, Socket)> {
    let carrier = match version {
        "1" => Carrier::Http1,
        "2" => Carrier::Http2,
        _ => Carrier::Http3,
    };
    let template = Template::of_proxy(&format!("localhost:{proxy}"))?;
    let client = UdpClient::builder(template.as_str())?
        .roots([CertificateDer::from_pem_file(root)?])
        .address(format!("127.0.0.1:{proxy}").parse()?)
        .carrier(carrier)
        .connect()
        .await?;
    let socket = client.open(&format!("127.0.0.1:{target}")).await?;
    Ok((client, socket))
}

/// Sends datagrams one by one, each of another length.
async fn packets(socket: &Socket, count: usize) -> Result {
    for number in 0..count {
        let sent = vec![number as u8; number % 1000];
        socket.send(&sent)?;
        let received = timeout(Duration::from_secs(5), socket.recv()).await??;
        if received != sent {
            return Err(format!("another answer to datagram {number}").into());
        }
    }
    println!("{count} datagrams");
    Ok(())
}

/// Exchanges a megabyte on a QUIC connection inside of the tunnel.
async fn inner(socket: Socket, root: &str) -> Result {
    let transport = socket.into_transport();
    let peer = transport.peer_addr();
    let endpoint = Endpoint::builder().transport(transport)?;
    let config = ClientConfig::with_roots([CertificateDer::from_pem_file(root)?])?.alpn(["echo"]);
    let connection = endpoint.connect_with(config, peer, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let sent = b"courser ".repeat(125_000);
    let copy = sent.clone();
    let writing = courser_quic::runtime::spawn(async move {
        send.write_all(&copy).await?;
        Result::Ok(send.finish()?)
    });
    let received = receive.read_to_end(2_000_000).await?;
    writing.await??;
    if received != sent {
        return Err(format!("{} other bytes", received.len()).into());
    }
    println!("{} bytes of QUIC", sent.len());
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["proxy", certificate, key] => proxy(certificate, key).await,
        ["client", root, version, at, target, count] => {
            let (_client, socket) = open(root, version, at, target).await?;
            packets(&socket, count.parse()?).await
        }
        ["quic", root, version, at, target] => {
            let (_client, socket) = open(root, version, at, target).await?;
            timeout(Duration::from_secs(30), inner(socket, root)).await?
        }
        _ => Err("expected proxy, client or quic".into()),
    }
}
