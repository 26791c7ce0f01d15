//! A UDP proxy (MASQUE, RFC 9298) in an axum router, over HTTP/3, HTTP/2 and HTTP/1.1.
//! `cargo run -p courser --features masque --example masque_proxy`, with an address as an optional argument. With
//! `selftest` it opens a tunnel to itself, runs QUIC through it, and ends.

use std::net::SocketAddr;

use axum::{Router, routing::get};
use courser::masque::{self, Client, Denied, Policy, Template, UdpClient, UdpProxy, WellKnown};
use courser::{ClientConfig, Endpoint, Identity, Side, h3};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Knows one client by its token.
fn client_of(request: &http::request::Parts) -> std::result::Result<Client, Denied> {
    match request.headers.get("proxy-authorization") {
        Some(token) if token == "Bearer example" => Ok(Client::new("somebody")),
        _ => Err(Denied::challenge("Bearer")),
    }
}

/// Requests a page of the server through its own proxy: HTTP/3 inside of HTTP/3.
async fn selftest(address: SocketAddr, identity: &Identity) -> Result {
    let template = Template::of_proxy(&format!("localhost:{}", address.port()))?;
    let client = UdpClient::builder(template.as_str())?
        .roots([identity.certificate()])
        .header("proxy-authorization", "Bearer example")?
        .address(address)
        .connect()
        .await?;
    let socket = client.open(&address.to_string()).await?;
    println!("a tunnel to {}", socket.target());

    let transport = socket.into_transport();
    let peer = transport.peer_addr();
    let endpoint = Endpoint::builder().transport(transport)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(config, peer, "localhost")?.await?;
    let request = http::Request::get("https://localhost/").body(h3::Empty)?;
    let response = h3::Client::new(connection).send(request).await?;
    println!("{} through it", response.status());

    let refused = client.open("169.254.169.254:80").await;
    println!("{}", refused.err().ok_or("not refused")?);
    Ok(())
}

#[tokio::main]
async fn main() -> Result {
    let argument = std::env::args().nth(1);
    let is_test = argument.as_deref() == Some("selftest");
    let mut policy = Policy::public_only().deny_ports(WellKnown::AMPLIFIERS);
    if is_test {
        policy = policy.allow("127.0.0.0/8".parse()?, 1024..=65_535);
    }
    let proxy = UdpProxy::new(policy).authenticate(client_of);
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route_service("/.well-known/masque/udp/{host}/{port}/", proxy);

    let mut settings = h3::Config::new(Side::Server);
    masque::enable(&mut settings, Side::Server);
    let identity = Identity::dev()?;
    let address = if is_test {
        "127.0.0.1:0"
    } else {
        argument.as_deref().unwrap_or("127.0.0.1:4433")
    };
    let server = courser::serve(address, identity.clone())
        .config(settings)
        .http2_extended_connect(true)
        .bind()?;
    let address = server.local_addr();
    let serving = server.service(app);
    if is_test {
        tokio::spawn(serving.into_future());
        return selftest(address, &identity).await;
    }
    println!(
        "https://localhost:{}{}",
        address.port(),
        Template::WELL_KNOWN
    );
    serving.await?;
    Ok(())
}
