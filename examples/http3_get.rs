//! Fetches a URL over HTTP/3: `cargo run -p courser --example http3_get -- URL [ROOT]`. Writes the body to
//! standard output, and a summary to standard error. Trusts the certificates of the system, or the one in
//! the PEM file ROOT.

use std::io::Write as _;
use std::net::ToSocketAddrs as _;
use std::time::Instant;

use courser::rustls::pki_types::{CertificateDer, pem::PemObject};
use courser::{ClientConfig, Endpoint, h3};
use http::{Request, Uri};
use http_body_util::BodyExt as _;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: http3_get URL [ROOT]";
    let uri: Uri = arguments.next().ok_or(usage)?.parse()?;
    let config = match arguments.next() {
        Some(root) => ClientConfig::with_roots([CertificateDer::from_pem_file(root)?])?,
        None => ClientConfig::with_platform_verifier()?,
    };
    let host = uri
        .host()
        .ok_or("the URL has to begin with https:// and a host")?;
    let name = host.trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(443);
    let addresses = (name, port).to_socket_addrs()?;

    let begun = Instant::now();
    let mut connected = Err("the host has no address".into());
    for address in addresses {
        connected = connect(config.clone(), address, name).await;
        if connected.is_ok() {
            break;
        }
    }
    let (endpoint, connection) = connected?;
    let client = h3::Client::new(connection);
    let response = client
        .send(Request::get(uri.clone()).body(h3::Empty)?)
        .await?;
    eprintln!("{:?} {}", response.version(), response.status());
    let mut body = response.into_body();
    let (mut out, mut length) = (std::io::stdout().lock(), 0);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            length += data.len();
            out.write_all(&data)?;
        }
    }
    eprintln!("{length} bytes in {:.2?}", begun.elapsed());
    client.close();
    endpoint.wait_idle().await;
    Ok(())
}

async fn connect(
    config: ClientConfig,
    address: std::net::SocketAddr,
    name: &str,
) -> Result<(Endpoint, courser::Connection)> {
    let any = if address.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let endpoint = Endpoint::client(any.parse()?)?;
    let connecting = endpoint.connect_with(config.alpn([h3::ALPN]), address, name)?;
    let connection = connecting.await?;
    Ok((endpoint, connection))
}
