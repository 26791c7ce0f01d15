//! A server of WebTransport that echoes streams and datagrams, beside ordinary requests of an axum router.
//! `cargo run -p courser --features webtransport --example webtransport_echo`, with an address as an optional
//! argument. With `selftest` it connects to itself and ends.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{any, get};
use courser::webtransport::{self, Config, Origins, Session, SessionRequest};
use courser::{ClientConfig, Endpoint, Identity, Side, h3};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Answers a request for a session.
async fn echo(mut request: Request) -> Response {
    let upgrade = webtransport::upgrade(&mut request).protocols(["echo"]);
    upgrade.accept(serve_session).await
}

async fn serve_session(session: Session) {
    println!("session {} in {}", session.id(), session.dialect());
    tokio::spawn(echo_bidirectional(session.clone()));
    tokio::spawn(echo_unidirectional(session.clone()));
    tokio::spawn(echo_datagrams(session.clone()));
    println!("session {}: {}", session.id(), session.closed().await);
}

/// Returns the bytes of each bidirectional stream on the stream itself.
async fn echo_bidirectional(session: Session) -> Result {
    loop {
        let (mut send, mut receive) = session.accept_bi().await?;
        tokio::spawn(async move {
            tokio::io::copy(&mut receive, &mut send).await?;
            Result::Ok(send.finish()?)
        });
    }
}

/// Returns the bytes of each unidirectional stream on a new one.
async fn echo_unidirectional(session: Session) -> Result {
    loop {
        let mut receive = session.accept_uni().await?;
        let session = session.clone();
        tokio::spawn(async move {
            let mut send = session.open_uni().await?;
            tokio::io::copy(&mut receive, &mut send).await?;
            Result::Ok(send.finish()?)
        });
    }
}

async fn echo_datagrams(session: Session) -> Result {
    let mut batch = Vec::new();
    while session
        .datagrams()
        .receive_many(&mut batch, 64)
        .await
        .is_some()
    {
        session.datagrams().send_many(&mut batch)?;
    }
    Ok(())
}

/// Opens a session, and sends a line through each kind of stream and a datagram.
async fn selftest(address: SocketAddr, identity: &Identity) -> Result {
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::with_roots([identity.certificate()])?.alpn([h3::ALPN]);
    let connection = endpoint.connect_with(config, address, "localhost")?.await?;
    let mut settings = h3::Config::new(Side::Client);
    webtransport::enable(&mut settings, Side::Client, Config::new())?;
    let client = h3::Client::with_config(connection, settings);

    let request = SessionRequest::new("https://localhost/echo".parse()?);
    let session = webtransport::connect(&client, request).await?;
    let (mut send, mut receive) = session.open_bi().await?;
    send.write_all(b"through a bidirectional stream").await?;
    send.finish()?;
    print(&receive.read_to_end(1000).await?);
    let mut send = session.open_uni().await?;
    send.write_all(b"through unidirectional streams").await?;
    send.finish()?;
    print(&session.accept_uni().await?.read_to_end(1000).await?);
    session.datagrams().send(b"in a datagram")?;
    print(&session.datagrams().receive().await.ok_or("closed")?);
    session.close(0, "enough");
    println!("client: {}", session.closed().await);
    Ok(())
}

fn print(bytes: &[u8]) {
    println!("echo {}", String::from_utf8_lossy(bytes));
}

#[tokio::main]
async fn main() -> Result {
    let argument = std::env::args().nth(1);
    let identity = Identity::dev()?;
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", any(echo));
    // Pages of any site may use an echo.
    let config = Config {
        origins: Origins::any(),
        ..Config::new()
    };
    let (address, is_test) = match argument.as_deref() {
        Some("selftest") => ("127.0.0.1:0", true),
        other => (other.unwrap_or("127.0.0.1:4433"), false),
    };
    let server = courser::serve(address, identity.clone())
        .webtransport(config)
        .bind()?;
    let address = server.local_addr();
    let serving = server.service(app);
    if is_test {
        tokio::spawn(serving.into_future());
        return selftest(address, &identity).await;
    }
    println!("https://localhost:{}/echo", address.port());
    serving.await?;
    Ok(())
}
