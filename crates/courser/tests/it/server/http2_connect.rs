//! Extended CONNECT over HTTP/2 (RFC 8441), with hyper's client.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use courser::server::{Protocol, Server};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{BoxBody, Client, empty, request};
use super::{Running, start_with, within};
use crate::common::pattern;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

fn app() -> Router {
    Router::new()
        .route("/", get(|| async { "served" }))
        .route("/socket", any(echo))
        .route("/forbidden", any(|| async { StatusCode::FORBIDDEN }))
        .route("/content", any(|| async { "not a tunnel" }))
}

/// Accepts WebSocket, and returns each message.
async fn echo(mut request: Request) -> Response {
    let protocol = request.extensions().get::<hyper::ext::Protocol>();
    if protocol.is_none_or(|protocol| protocol.as_str() != "websocket") {
        return StatusCode::NOT_IMPLEMENTED.into_response();
    }
    let upgrade = hyper::upgrade::on(&mut request);
    crate::common::spawn(async move {
        let stream = TokioIo::new(upgrade.await.expect("accepted"));
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
                return;
            }
        }
    });
    StatusCode::OK.into_response()
}

fn connect(path: &str, protocol: &'static str) -> http::Request<BoxBody> {
    let mut request = request("CONNECT", path, empty());
    request.headers_mut().insert(
        "sec-websocket-version",
        http::HeaderValue::from_static("13"),
    );
    let protocol = hyper::ext::Protocol::from_static(protocol);
    request.extensions_mut().insert(protocol);
    request
}

/// Connects, and waits for the settings of the server.
async fn client(running: &Running) -> Client {
    let address = running.handle.local_addr();
    let client = Client::connect(Protocol::Http2, address, &running.identity).await;
    let mut client = client.expect("a server");
    assert_eq!(within(client.text("/")).await, "served");
    client
}

fn enabled(server: Server) -> Server {
    server.http2_extended_connect(true)
}

async fn open(client: &mut Client) -> Socket {
    let response = within(client.send(connect("/socket", "websocket"))).await;
    let response = response.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    let stream = within(hyper::upgrade::on(response))
        .await
        .expect("a tunnel");
    WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Client, None).await
}

async fn assert_echoes(socket: &mut Socket, message: Message) {
    within(socket.send(message.clone())).await.expect("open");
    let back = within(socket.next()).await.expect("open");
    assert!(
        back.expect("no error") == message,
        "another message came back"
    );
}

/// Closes a WebSocket. The server ends the stream with RST_STREAM (NO_ERROR) behind its Close frame, which may arrive while
/// the client still flushes its own (RFC 9113 §8.1).
async fn close(mut socket: Socket) {
    let _ = within(socket.close(None)).await;
    while let Some(Ok(message)) = within(socket.next()).await {
        assert!(message.is_close(), "{message:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websockets_run_beside_requests() {
    let running = start_with(app(), enabled);
    let mut client = client(&running).await;
    let mut sockets = [open(&mut client).await, open(&mut client).await];
    for socket in &mut sockets {
        assert_echoes(socket, Message::text("hello")).await;
        assert_echoes(socket, Message::binary(pattern(7, 3_000_000))).await;
    }
    assert_eq!(within(client.text("/")).await, "served");
    for socket in sockets {
        close(socket).await;
    }
}

/// A tunnel counts as a request until it ends, so that its connection is not idle and its memory is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnel_is_in_flight_until_it_ends() {
    let running = start_with(app(), enabled);
    let in_flight = || running.handle.stats().http2.requests_in_flight;
    let mut client = client(&running).await;
    let mut socket = open(&mut client).await;
    assert_echoes(&mut socket, Message::text("hello")).await;
    assert_eq!(in_flight(), 1);
    close(socket).await;
    within(async {
        while in_flight() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_waits_for_tunnels() {
    let running = start_with(app(), enabled);
    let mut client = client(&running).await;
    let mut socket = open(&mut client).await;
    running.handle.drain();
    for text in ["still", "there"] {
        assert_echoes(&mut socket, Message::text(text)).await;
    }
    close(socket).await;
    let drained = within(running.task).await.expect("no panic");
    assert_eq!(drained.cut, 0, "{drained}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_ordinary_answers() {
    let running = start_with(app(), enabled);
    let mut client = client(&running).await;
    for (path, protocol, wanted) in [
        ("/forbidden", "websocket", StatusCode::FORBIDDEN),
        ("/socket", "connect-udp", StatusCode::NOT_IMPLEMENTED),
        ("/", "websocket", StatusCode::METHOD_NOT_ALLOWED),
        ("/missing", "websocket", StatusCode::NOT_FOUND),
    ] {
        let response = within(client.send(connect(path, protocol))).await;
        assert_eq!(response.expect("an answer").status(), wanted, "{path}");
    }
    // A 200 without a tunnel ends its stream alone, without its content.
    let response = within(client.send(connect("/content", "websocket"))).await;
    let stream = within(hyper::upgrade::on(response.expect("an answer"))).await;
    let mut content = Vec::new();
    let ended = within(TokioIo::new(stream.expect("200")).read_to_end(&mut content)).await;
    assert!(content.is_empty(), "{ended:?} {content:?}");
    assert_eq!(within(client.text("/")).await, "served");
}

/// RFC 8441 §3: a client must not send it without the setting, and a server that has not enabled it gets none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extended_connect_is_off_by_default() {
    let running = start_with(app(), |server| server);
    let mut client = client(&running).await;
    let request = connect("/socket", "websocket");
    assert_eq!(request.method(), Method::CONNECT);
    let response = within(client.send(request)).await;
    assert!(response.is_err(), "{response:?}");
    assert_eq!(within(client.text("/")).await, "served");
}
