//! Extended CONNECT (RFC 9220) and protocols over it.

use std::convert::Infallible;

use bytes::Bytes;
use courser::h3::{Code, Protocol};
use courser::{Side, h3};
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Answer, Pair, full, serve_as, tower_of, within};
use crate::common::{pair, pattern};

fn websocket() -> Request<()> {
    Request::connect("https://localhost/chat")
        .header("sec-websocket-version", "13")
        .extension(Protocol::WEBSOCKET)
        .body(())
        .expect("a request")
}

/// Starts a server that enables only WebSocket, and answers with `service`.
async fn serve<F>(
    service: impl Fn(Request<h3::Body>) -> F + Clone + Send + 'static,
) -> (Pair, h3::Client)
where
    F: Future<Output = Answer> + Send + 'static,
{
    serve_as(|server| h3::serve(server, tower_of(service)).protocols([Protocol::WEBSOCKET])).await
}

/// Echoes the bytes that it receives.
async fn echo(mut request: Request<h3::Body>) -> Answer {
    let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
    crate::common::spawn(async move {
        let stream = upgrade.await?;
        let (mut read, mut write) = tokio::io::split(stream);
        tokio::io::copy(&mut read, &mut write).await?;
        write.shutdown().await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    });
    Response::new(full(""))
}

async fn chat(mut request: Request<h3::Body>) -> Answer {
    let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
    crate::common::spawn(async move {
        let stream = upgrade.await.expect("accepted");
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() || message.is_binary() {
                socket.send(message).await.expect("open");
            }
        }
    });
    Response::new(full(""))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn websocket_runs_over_extended_connect() {
    let (_pair, client) = serve(chat).await;
    let response = within(client.connect(websocket())).await.expect("accepted");
    assert_eq!(response.status(), 200);
    let stream = response.into_body();
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let large = pattern(7, 3_000_000);
    for message in [
        Message::text("hello"),
        Message::binary(Bytes::new()),
        Message::binary(large),
    ] {
        within(socket.send(message.clone())).await.expect("open");
        let back = within(socket.next())
            .await
            .expect("open")
            .expect("no error");
        assert!(back == message, "another message came back");
    }
    within(socket.close(None)).await.expect("open");
    while let Some(message) = within(socket.next()).await {
        assert!(message.expect("an orderly end").is_close());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_of_a_tunnel_carry_data_and_end_independently() {
    let (_pair, client) = serve(echo).await;
    let response = within(client.connect(websocket())).await.expect("accepted");
    let (mut read, mut write) = tokio::io::split(response.into_body());
    let sent = pattern(3, 2_000_000);
    let expected = sent.clone();
    let send = async move {
        // Pieces of all sizes.
        let (mut rest, mut size) = (&sent[..], 1);
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            write.write_all(piece).await.expect("open");
            (rest, size) = (behind, size * 3 % 200_001 + 1);
        }
        write.shutdown().await.expect("open");
    };
    let receive = async move {
        let mut received = Vec::new();
        read.read_to_end(&mut received)
            .await
            .expect("an orderly end");
        received
    };
    let ((), received) = within(async { tokio::join!(send, receive) }).await;
    assert!(received == expected, "other bytes came back");
}

/// RFC 9220 §3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocol_that_is_not_supported_is_answered_with_501() {
    let (_pair, client) = serve(|_| async { panic!("the service received a request") }).await;
    let mut request = websocket();
    let other = Protocol::new("connect-udp").expect("a token");
    request.extensions_mut().insert(other);
    let error = within(client.connect(request)).await.expect_err("refused");
    let h3::Error::Refused(response) = &error else {
        panic!("{error}");
    };
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert_eq!(
        error.to_string(),
        "the server rejected the CONNECT request with 501 Not Implemented"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_has_a_body_and_the_upgrade_fails() {
    let (report, reported) = tokio::sync::oneshot::channel();
    let report = std::sync::Arc::new(std::sync::Mutex::new(Some(report)));
    let (_pair, client) = serve(move |mut request| {
        let report = report.lock().expect("no panic").take();
        async move {
            let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
            assert!(h3::upgrade(&mut request).is_none(), "the second time");
            crate::common::spawn(async move {
                report.expect("first request").send(upgrade.await.is_err())
            });
            let mut response = Response::new(full("members only"));
            *response.status_mut() = StatusCode::FORBIDDEN;
            response
        }
    })
    .await;
    let error = within(client.connect(websocket()))
        .await
        .expect_err("refused");
    let h3::Error::Refused(response) = error else {
        panic!("{error}");
    };
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let body = within(response.into_body().collect())
        .await
        .expect("a body");
    assert_eq!(body.to_bytes(), "members only");
    assert_eq!(within(reported).await, Ok(true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extended_connect_is_not_sent_without_the_setting() {
    let (_pair, client) = super::serve(|_| async { Response::new(full("")) }).await;
    let error = within(client.connect(websocket()))
        .await
        .expect_err("disabled");
    let text = error.to_string();
    assert!(text.contains("SETTINGS_ENABLE_CONNECT_PROTOCOL"), "{text}");
    assert!(error.is_unprocessed());
}

/// RFC 9220 §3: a reset is H3_REQUEST_CANCELLED.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_reaches_the_other_end() {
    let (_pair, client) = serve(|mut request| async move {
        let upgrade = h3::upgrade(&mut request).expect("a CONNECT");
        crate::common::spawn(async move {
            let mut stream = upgrade.await?;
            stream.read_chunk().await?;
            stream.reset(Code::REQUEST_CANCELLED);
            Ok::<_, h3::Error>(())
        });
        Response::new(full(""))
    })
    .await;
    let response = within(client.connect(websocket())).await.expect("accepted");
    let mut stream = response.into_body();
    stream.write_all(b"hello").await.expect("open");
    let error = within(stream.read_chunk()).await.expect_err("reset");
    assert_eq!(error.code(), Some(Code::REQUEST_CANCELLED));
    let error = within(stream.read_u8()).await.expect_err("still reset");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// A draining server waits for streams that were handed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn draining_waits_for_the_stream() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|request| async { Ok::<_, Infallible>(echo(request).await) });
    let (signal, signalled) = tokio::sync::oneshot::channel::<()>();
    let serving = h3::serve(server, service)
        .protocols([Protocol::WEBSOCKET])
        .drain(async { drop(signalled.await) });
    let serving = crate::common::spawn(serving.into_future());
    let client = h3::Client::new(client);
    let response = within(client.connect(websocket())).await.expect("accepted");
    let mut stream = response.into_body();
    drop(signal);
    while !client.goes_away() {
        tokio::task::yield_now().await;
    }
    for word in [&b"still"[..], b"there"] {
        stream.write_all(word).await.expect("open");
        let chunk = within(stream.read_chunk()).await.expect("open");
        assert_eq!(chunk.as_deref(), Some(word));
    }
    stream.shutdown().await.expect("open");
    assert_eq!(within(stream.read_chunk()).await.expect("clean end"), None);
    drop(stream);
    let drained = within(serving).await.expect("no panic");
    assert!(drained.is_ok(), "{drained:?}");
}

/// Requests are handled one by one, without a service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_without_a_service_accepts_tunnels_too() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let mut config = h3::Config::new(Side::Server);
    config.extended_connect = true;
    let server = h3::ServerConnection::new(server, config);
    let serving = async {
        let (request, respond) = server.accept().await?.resolve().await?;
        let response = Response::new(());
        let mut stream = respond.upgrade(response, request.into_body()).await?;
        let chunk = stream.read_chunk().await?.unwrap_or_default();
        stream.write_chunk(chunk).await
    };
    let client = h3::Client::new(client);
    let asking = async {
        let response = client.connect(websocket()).await?;
        let mut stream = response.into_body();
        stream.write_chunk(Bytes::from_static(b"word")).await?;
        stream.read_chunk().await
    };
    let (served, chunk) = within(async { tokio::join!(serving, asking) }).await;
    served.expect("no error");
    assert_eq!(chunk.expect("no error").as_deref(), Some(&b"word"[..]));
}
