//! Memory of sessions. This is a separate binary, because the counting allocator applies to the whole process.

#[path = "../../../courser/tests/memory/counting.rs"]
#[expect(dead_code, reason = "blocks are not counted here")]
mod counting;

use std::convert::Infallible;
use std::time::Duration;

use courser_http3_tokio as h3;
use courser_quic::{ClientConfig, Endpoint, Identity, ServerConfig, Side};
use courser_webtransport_tokio::{self as webtransport, Config, Session, SessionRequest, upgrade};
use http::{Request, Response};

/// Sessions and upgrades before the counted ones, so that shared memory is allocated.
const FIRST: usize = 5;
const COUNTED: usize = 40;
/// Bytes of both ends for an open session without streams, beyond those of a CONNECT that was upgraded. 4400 were measured,
/// 2600 of them at the server, with the task of its handler.
const BUDGET: isize = 5500;

fn config() -> Config {
    Config {
        max_sessions: 1000,
        ..Config::new()
    }
}

async fn answer(mut request: Request<h3::Body>) -> Result<Response<h3::Empty>, Infallible> {
    if request.extensions().get::<h3::Protocol>() != Some(&h3::Protocol::WEBSOCKET) {
        let upgrade = upgrade(&mut request);
        let accepted = upgrade.accept(|session: Session| async move { session.accept_bi().await });
        return Ok(accepted.await);
    }
    let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
    tokio::spawn(async move {
        let mut stream = upgrade.await.expect("accepted");
        stream.read_chunk().await.expect("open")
    });
    Ok(Response::new(h3::Empty))
}

/// Starts both ends on this thread.
async fn start() -> (h3::Client, [Endpoint; 2]) {
    let identity = Identity::dev().expect("an identity");
    let address = "127.0.0.1:0".parse().expect("an address");
    let quic = ServerConfig::with_identity(&identity).expect("valid");
    let server = Endpoint::server(quic.alpn([h3::ALPN]), address).expect("a free port");
    let quic = ClientConfig::with_roots([identity.certificate()]).expect("valid");
    let client = Endpoint::client(address).expect("a free port");
    let to = server.local_addr().expect("bound");
    let connecting = client.connect_with(quic.alpn([h3::ALPN]), to, "localhost");
    let connecting = connecting.expect("valid");
    let incoming = server.accept().await.expect("open");
    let (near, far) = tokio::join!(connecting, incoming.into_future());
    let mut settings = h3::Config::new(Side::Server);
    webtransport::enable(&mut settings, Side::Server, config()).expect("free numbers");
    let serving = h3::serve(far.expect("connected"), tower::service_fn(answer)).config(settings);
    tokio::spawn(serving.into_future());
    let mut settings = h3::Config::new(Side::Client);
    webtransport::enable(&mut settings, Side::Client, config()).expect("free numbers");
    let http3 = h3::Client::with_config(near.expect("connected"), settings);
    (http3, [client, server])
}

/// Returns the bytes of each of many things that are open, which are added to `kept`.
async fn bytes_of_each<T>(kept: &mut Vec<T>, mut open: impl AsyncFnMut() -> T) -> isize {
    kept.reserve(FIRST + COUNTED);
    for _ in 0..FIRST {
        kept.push(open().await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = counting::live();
    for _ in 0..COUNTED {
        kept.push(open().await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let count = isize::try_from(COUNTED).expect("small");
    (counting::live() - before) / count
}

#[tokio::test]
async fn idle_session_costs_at_most_5500_bytes_of_both_ends() {
    let (client, _endpoints) = start().await;
    let mut upgrades = Vec::new();
    let upgraded = bytes_of_each(&mut upgrades, async || {
        let request = Request::connect("https://localhost/").extension(h3::Protocol::WEBSOCKET);
        let connected = client.connect(request.body(()).expect("valid")).await;
        connected.expect("accepted")
    });
    let upgraded = upgraded.await;
    let mut sessions = Vec::new();
    let session = bytes_of_each(&mut sessions, async || {
        let request = SessionRequest::new("https://localhost/".parse().expect("a URI"));
        let opened = webtransport::connect(&client, request).await;
        opened.expect("accepted")
    });
    let session = session.await;
    println!("a session takes {session} bytes, an upgrade {upgraded}");
    assert!(
        session - upgraded <= BUDGET,
        "a session takes {session} bytes, an upgrade {upgraded}"
    );
}
