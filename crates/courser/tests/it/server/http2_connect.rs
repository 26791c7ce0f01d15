//! Extended CONNECT over HTTP/2 (RFC 8441), with hyper's client.

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use courser::server::{Protocol, Server, TunnelReset};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::client::{BoxBody, Client, empty, request};
use super::http2::{HEADERS, RST_STREAM, SETTINGS, frame};
use super::raw::{DATA, Fields, Http2, over_http1};
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

/// What a tunnel has read, or the kind of the error at its end.
type Ended = Result<Vec<u8>, std::io::ErrorKind>;

/// Accepts tunnels, and reports how each of them ends.
fn tunnels(ends: mpsc::UnboundedSender<Ended>) -> Router {
    let accept = move |mut request: Request| async move {
        let upgrade = hyper::upgrade::on(&mut request);
        crate::common::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.expect("accepted"));
            let mut content = Vec::new();
            let ended = stream.read_to_end(&mut content).await;
            let _ = ends.send(ended.map(|_| content).map_err(|error| error.kind()));
        });
        StatusCode::OK
    };
    Router::new().route("/tunnel", any(accept))
}

const TUNNEL: Fields<'static> = &[
    (":method", "CONNECT"),
    (":protocol", "websocket"),
    (":scheme", "https"),
    (":authority", "localhost"),
    (":path", "/tunnel"),
];

/// Waits for the response, without which a reset ends a request and not a tunnel.
async fn is_accepted(client: &mut Http2, stream: u32) {
    loop {
        let (kind, _, id, _) = client.read_frame().await.expect("a frame");
        if kind == HEADERS && id == stream {
            return;
        }
    }
}

/// Fault F180: hyper reads a reset with NO_ERROR or CANCEL as the end, so that what was cut off looks whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_of_a_tunnel_is_not_its_end() {
    let (sender, mut ends) = mpsc::unbounded_channel();
    let running = start_with(tunnels(sender), enabled);
    let mut client = Http2::connect(&running).await;
    for code in [0_u32, 8, 2] {
        let stream = client.begin(TUNNEL, 0).await;
        is_accepted(&mut client, stream).await;
        client.write(&frame(DATA, 0, stream, b"a part")).await;
        client
            .write(&frame(RST_STREAM, 0, stream, &code.to_be_bytes()))
            .await;
        let ended = within(ends.recv()).await.expect("a tunnel");
        assert!(ended.is_err(), "{code}: {ended:?}");
    }
    let stream = client.begin(TUNNEL, 0).await;
    is_accepted(&mut client, stream).await;
    client.write(&frame(DATA, 1, stream, b"all of it")).await;
    let ended = within(ends.recv()).await.expect("a tunnel");
    assert_eq!(ended, Ok(b"all of it".to_vec()));
}

/// Fault F181: a stream that is dropped would end, and its client take what it has received for all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnel_that_is_reset_does_not_end() {
    let accept = |mut request: Request| async move {
        let reset = TunnelReset::default();
        let at_end = reset.clone();
        let upgrade = hyper::upgrade::on(&mut request);
        crate::common::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.expect("accepted"));
            stream.write_all(b"a part").await.expect("open");
            stream.read_u8().await.expect("the client has it");
            at_end.reset();
        });
        (StatusCode::OK, Extension(reset))
    };
    let running = start_with(Router::new().route("/tunnel", any(accept)), enabled);
    let mut client = Http2::connect(&running).await;
    let stream = client.begin(TUNNEL, 0).await;
    loop {
        let (kind, flags, id, payload) = client.read_frame().await.expect("a frame");
        match kind {
            DATA if id == stream => {
                assert_eq!((flags & 1, &payload[..]), (0, &b"a part"[..]));
                client.write(&frame(DATA, 0, stream, b"x")).await;
            }
            RST_STREAM => {
                // CANCEL.
                assert_eq!((id, payload), (stream, vec![0, 0, 0, 8]));
                return;
            }
            HEADERS => assert_eq!(flags & 1, 0),
            _ => {}
        }
    }
}

/// Limit K665: hyper takes no more of a tunnel than this, whatever credit its client grants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnel_whose_client_does_not_read_keeps_little() {
    let (sender, mut sizes) = mpsc::unbounded_channel();
    let accept = move |mut request: Request| async move {
        let upgrade = hyper::upgrade::on(&mut request);
        crate::common::spawn(async move {
            let mut stream = TokioIo::new(upgrade.await.expect("accepted"));
            while stream.write_all(&[7; 16 * 1024]).await.is_ok() {
                let _ = sender.send(16 * 1024);
            }
        });
        StatusCode::OK
    };
    let running = start_with(Router::new().route("/tunnel", any(accept)), enabled);
    let mut client = Http2::connect(&running).await;
    // SETTINGS_INITIAL_WINDOW_SIZE, and as much for the connection.
    let credit = [&[0, 4][..], &LARGE.to_be_bytes()].concat();
    client.write(&frame(SETTINGS, 0, 0, &credit)).await;
    const WINDOW_UPDATE: u8 = 8;
    let all = frame(WINDOW_UPDATE, 0, 0, &LARGE.to_be_bytes());
    client.write(&all).await;
    for _ in 0..TUNNELS {
        client.begin(TUNNEL, 0).await;
    }
    let mut written = 0;
    let pause = std::time::Duration::from_secs(1);
    while let Ok(Some(size)) = tokio::time::timeout(pause, sizes.recv()).await {
        written += size;
    }
    // What the system keeps, and 64 KiB, three writes and a frame of each tunnel: not 400 KiB of each.
    let most = SYSTEM + TUNNELS * (64 + 4 * 16 + 16) * 1024;
    assert!(written <= most, "{written} {most}");
}

/// Credit for streams and the connection, in bytes.
const LARGE: u32 = 1 << 30;
/// Tunnels whose client reads nothing.
const TUNNELS: usize = 60;
/// Bytes of a connection that the system keeps for both ends at most, in bytes.
const SYSTEM: usize = 10 << 20;

/// Attack A404: what follows a refused CONNECT may come from a program behind the client (RFC 9931 §8).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_behind_a_refused_connect() {
    let running = start_with(app(), |server| server);
    for target in ["localhost:443", "no-port"] {
        let bytes = format!(
            "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\nGET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
        );
        let answer = over_http1(&running, bytes.as_bytes()).await;
        let answer = answer.to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 4"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(!answer.contains("served"), "{answer}");
    }
}
