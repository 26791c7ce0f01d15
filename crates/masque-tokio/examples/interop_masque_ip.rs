//! The ends of courser for `interop/masque/ip/run`.
//!
//! ```text
//! interop_masque_ip proxy CERTIFICATE KEY               a proxy, whose hosts answer pings: prints its port
//! interop_masque_ip client ROOT VERSION PROXY COUNT     COUNT pings through the proxy and back
//! ```

use std::net::IpAddr;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_masque::ip::{Header, icmp};
use courser_masque_tokio::{self as masque, Carrier, IpClient, IpProxy, IpRequest, Policy};
use courser_quic::runtime::timeout;
use courser_quic::{Identity, Side};
use courser_tls::rustls::pki_types::CertificateDer;
use courser_tls::rustls::pki_types::pem::PemObject as _;

/// The device of the doc tests.
mod echo {
    mod courser {
        pub(crate) use courser_masque_tokio as masque;
    }
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/echo.rs"));
}

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn proxy(certificate: &str, key: &str) -> Result {
    let identity = Identity::from_pem_files(certificate, key)?;
    let mut settings = h3::Config::new(Side::Server);
    masque::enable(&mut settings, Side::Server);
    let policy = Policy::nothing()
        .allow("192.0.2.0/24".parse()?, 0..=65_535)
        .allow("2001:db8::/32".parse()?, 0..=65_535);
    let pool = ["10.89.0.0/24".parse()?, "fd00:89::/64".parse()?];
    let service = IpProxy::new(pool, policy, echo::Echo::default())
        .path("/vpn")?
        .open_to_all();
    let server = courser_server::serve("127.0.0.1:0", identity)
        .config(settings)
        .http2_extended_connect(true)
        .bind()?;
    println!("{}", server.local_addr().port());
    server.service(service).await?;
    Ok(())
}

/// Sends pings of both versions one by one, each of another length.
async fn client(root: &str, version: &str, proxy: &str, count: usize) -> Result {
    let carrier = match version {
        "1" => Carrier::Http1,
        "2" => Carrier::Http2,
        _ => Carrier::Http3,
    };
    let client = IpClient::builder(&format!("https://localhost:{proxy}/vpn"))?
        .roots([CertificateDer::from_pem_file(root)?])
        .address(format!("127.0.0.1:{proxy}").parse()?)
        .carrier(carrier)
        .connect()
        .await?;
    let tunnel = client.open(IpRequest::default()).await?;
    tunnel.configured().await?;
    let (mut assigned, routes) = (tunnel.assigned(), tunnel.routes().get());
    let hosts: [IpAddr; 2] = ["192.0.2.1".parse()?, "2001:db8::1".parse()?];
    let mut packets = Vec::new();
    for number in 0..count {
        let host = hosts[number % 2];
        let addresses = assigned.get();
        let mut own = addresses
            .iter()
            .filter(|prefix| prefix.is_ipv4() == host.is_ipv4());
        let own = own.next().ok_or("no address of a version")?.first();
        let data = vec![number as u8; number % 1000];
        let sent = icmp::echo_request(own, host, &data).ok_or("two versions")?;
        tunnel.send(sent.into())?;
        packets.clear();
        timeout(Duration::from_secs(5), tunnel.recv_many(&mut packets, 1)).await??;
        let header = Header::parse(&packets[0])?;
        let is_answer = (header.source, header.destination) == (host, own);
        if !is_answer || !packets[0].ends_with(&data) || packets[0][header.payload] % 129 != 0 {
            return Err(format!("another answer to ping {number}: {header:?}").into());
        }
    }
    let stats = tunnel.stats();
    println!(
        "{count} pings, addresses {:?}, {} routes, {} received",
        assigned.get(),
        routes.len(),
        stats.received
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["proxy", certificate, key] => proxy(certificate, key).await,
        ["client", root, version, at, count] => client(root, version, at, count.parse()?).await,
        _ => Err("expected proxy or client".into()),
    }
}
