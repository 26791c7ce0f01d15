//! Tests of the end of requests and connections, and of the error codes that each side receives.

use std::task::Poll;

use bytes::{Buf as _, Bytes};
use courser::{ConnectionError, VarInt, h3 as own};
use h3::error::{Code, StreamError};
use h3::quic::{self, OpenStreams as _, RecvStream as _, SendStream as _};
use h3::server::RequestStream;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};

use super::setup::{Pair, within};

type Server = h3::server::Connection<courser_hyperium_h3::Connection, Bytes>;
type Client = h3::client::SendRequest<courser_hyperium_h3::OpenStreams, Bytes>;
type Answering = RequestStream<courser_hyperium_h3::BidiStream<Bytes>, Bytes>;
type Driver = h3::client::Connection<courser_hyperium_h3::Connection, Bytes>;

async fn server(connection: courser::Connection) -> Server {
    Server::new(courser_hyperium_h3::Connection::new(connection))
        .await
        .expect("a connection")
}

async fn client(connection: courser::Connection) -> (Driver, Client) {
    h3::client::new(courser_hyperium_h3::Connection::new(connection))
        .await
        .expect("a connection")
}

async fn next(server: &mut Server) -> (Request<()>, Answering) {
    let resolver = server.accept().await.expect("open").expect("a request");
    resolver
        .resolve_request()
        .await
        .expect("a complete message")
}

fn request(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}"))
        .body(())
        .expect("a request")
}

fn is_terminated(error: &StreamError, with: Code) -> bool {
    matches!(error, StreamError::RemoteTerminate { code, .. } if *code == with)
}

/// RFC 9114 §4.1.1: each side receives the error code of a reset or stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_and_stops_carry_their_codes() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let (mut driver, mut client) = client(client_end).await;
    tokio::spawn(async move { driver.wait_idle().await });
    let mut server = server(server_end).await;

    let mut sent = client.send_request(request("/")).await.expect("sent");
    let (_, mut stream) = within(next(&mut server)).await;
    stream.stop_stream(Code::H3_REQUEST_REJECTED);
    let error = within(sent.recv_response()).await.expect_err("rejected");
    assert!(
        is_terminated(&error, Code::H3_REQUEST_REJECTED),
        "{error:?}"
    );

    let mut sent = client.send_request(request("/")).await.expect("sent");
    let (_, mut stream) = within(next(&mut server)).await;
    stream.stop_sending(Code::H3_NO_ERROR);
    let error = within(async {
        loop {
            if let Err(error) = sent.send_data(Bytes::from_static(&[0; 10_000])).await {
                return error;
            }
        }
    })
    .await;
    assert!(is_terminated(&error, Code::H3_NO_ERROR), "{error:?}");

    let mut sent = client.send_request(request("/")).await.expect("sent");
    let (_, mut stream) = within(next(&mut server)).await;
    sent.stop_stream(Code::H3_REQUEST_CANCELLED);
    let error = match within(stream.recv_data()).await {
        Err(error) => error,
        Ok(_) => panic!("the stream was reset before any data"),
    };
    assert!(
        is_terminated(&error, Code::H3_REQUEST_CANCELLED),
        "{error:?}"
    );
}

/// RFC 9114 §5.2: earlier requests are answered, later ones are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goaway_lets_requests_finish() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let (mut driver, mut client) = client(client_end).await;
    let driven = tokio::spawn(async move { driver.wait_idle().await });
    let mut server = server(server_end).await;
    let mut sent = client.send_request(request("/")).await.expect("sent");
    sent.finish().await.expect("open");
    let (_, mut stream) = within(next(&mut server)).await;
    server.shutdown(0).await.expect("open");
    let answering = async {
        stream
            .send_response(Response::new(()))
            .await
            .expect("the client still reads");
        stream
            .send_data(Bytes::from("still here"))
            .await
            .expect("the client still reads");
        stream.finish().await.expect("the client still reads");
        // Drives the server until no request is left.
        while let Ok(Some(_)) = server.accept().await {}
    };
    let reading = async {
        sent.recv_response().await.expect("answered");
        let mut data = sent
            .recv_data()
            .await
            .expect("a complete message")
            .expect("content");
        assert_eq!(
            data.copy_to_bytes(data.remaining()),
            Bytes::from("still here")
        );
        // GOAWAY is sent on another stream and may arrive after the response.
        while client.send_request(request("/late")).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop((sent, client));
        driven.await.expect("no panic")
    };
    let ((), end) = within(async { tokio::join!(answering, reading) }).await;
    assert!(end.is_h3_no_error(), "{end}");
}

/// courser drains with a GOAWAY that a client with `h3` understands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coursers_own_server_drains_a_client_on_h3() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let (start, started) = tokio::sync::oneshot::channel::<()>();
    let service = tower::service_fn(|_| async {
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("fine"))))
    });
    // courser sometimes closes with a reserved code. RFC 9114 §8.1 requires treating it as
    // H3_NO_ERROR, which this version of `h3` does not.
    let mut config = own::Config::new(courser::Side::Server);
    config.grease = false;
    let serving = own::serve(server_end, service)
        .config(config)
        .drain(async { drop(started.await) });
    let serving = tokio::spawn(serving.into_future());
    let (mut driver, mut client) = client(client_end).await;
    let driven = tokio::spawn(async move { driver.wait_idle().await });
    let mut sent = client.send_request(request("/")).await.expect("sent");
    // The response may arrive first, together with a STOP_SENDING for the rest of the request.
    let _ = sent.finish().await;
    within(sent.recv_response()).await.expect("answered");
    start.send(()).expect("the drain signal is awaited");
    let end = within(driven).await.expect("no panic");
    assert!(end.is_h3_no_error(), "{end}");
    within(serving).await.expect("no panic").expect("drained");
}

/// courser receives the code with which `h3` closes a connection, and vice versa.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn close_codes_pass_in_both_directions() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let mut connection = courser_hyperium_h3::Connection::new(client_end);
    quic::OpenStreams::<Bytes>::close(&mut connection, Code::H3_EXCESSIVE_LOAD, b"enough");
    match within(server_end.closed()).await {
        ConnectionError::ApplicationClosed { code, reason } => {
            assert_eq!(code.value(), Code::H3_EXCESSIVE_LOAD.value());
            assert_eq!(reason, "enough");
        }
        error => panic!("{error}"),
    }

    let (client_end, server_end) = pair.connect().await;
    let (mut driver, _client) = client(client_end).await;
    server_end.close(VarInt::from_u32(0x109), b"");
    let end = within(driver.wait_idle()).await;
    assert!(end.to_string().contains("H3_SETTINGS_ERROR"), "{end}");
}

/// A client with `h3` that violates the protocol receives the code of the violation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocol_violation_is_reported_with_its_code() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let service = tower::service_fn(|_| async {
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::new())))
    });
    tokio::spawn(own::serve(server_end, service).into_future());
    let mut connection = courser_hyperium_h3::Connection::new(client_end);
    // A second control stream.
    for _ in 0..2 {
        let mut stream = std::future::poll_fn(|cx| {
            quic::OpenStreams::<Bytes>::poll_open_send(&mut connection, cx)
        })
        .await
        .expect("allowed");
        let mut bytes = Bytes::from_static(&[0x00, 0x04, 0x00]);
        std::future::poll_fn(|cx| quic::SendStreamUnframed::poll_send(&mut stream, cx, &mut bytes))
            .await
            .expect("open");
        // Closing a control stream would be another violation.
        std::mem::forget(stream);
    }
    let error = within(std::future::poll_fn(
        |cx| match quic::Connection::<Bytes>::poll_accept_bidi(&mut connection, cx) {
            Poll::Ready(Ok(_)) => panic!("servers open no bidirectional streams"),
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Pending => Poll::Pending,
        },
    ))
    .await;
    assert!(
        matches!(error, quic::ConnectionErrorIncoming::ApplicationClose { error_code }
            if error_code == Code::H3_STREAM_CREATION_ERROR.value()),
        "{error:?}"
    );
}

/// Every operation on a stream reports the reason for which its connection was closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_report_why_their_connection_closed() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let mut connection = courser_hyperium_h3::Connection::new(client_end.clone());
    let mut stream: courser_hyperium_h3::BidiStream<Bytes> =
        std::future::poll_fn(|cx| connection.poll_open_bidi(cx))
            .await
            .expect("allowed");
    let mut opener = quic::Connection::<Bytes>::opener(&connection);
    server_end.close(VarInt::from_u32(0x102), b"");
    within(client_end.closed()).await;
    let is_close = |error: quic::StreamErrorIncoming| {
        matches!(
            error,
            quic::StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: quic::ConnectionErrorIncoming::ApplicationClose {
                    error_code: 0x102
                }
            }
        )
    };
    let finished = std::future::poll_fn(|cx| stream.poll_finish(cx)).await;
    assert!(is_close(finished.expect_err("closed")));
    let read = std::future::poll_fn(|cx| stream.poll_data(cx)).await;
    assert!(is_close(read.expect_err("closed")));
    let opened: Result<courser_hyperium_h3::BidiStream<Bytes>, _> =
        std::future::poll_fn(|cx| opener.poll_open_bidi(cx)).await;
    assert!(is_close(opened.expect_err("closed")));
}

/// A stream with a pending read can be stopped, because the read does not borrow it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_can_be_stopped_while_it_is_read() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    let mut connection = courser_hyperium_h3::Connection::new(client_end);
    let mut stream: courser_hyperium_h3::BidiStream<Bytes> =
        std::future::poll_fn(|cx| connection.poll_open_bidi(cx))
            .await
            .expect("allowed");
    std::future::poll_fn(|cx| {
        let polled = stream.poll_data(cx);
        assert!(polled.is_pending(), "no data was sent");
        Poll::Ready(())
    })
    .await;
    assert_eq!(stream.recv_id(), stream.send_id());
    stream.stop_sending(0x10c);
    stream.reset(0x10c);
    let (_send, mut receive) = within(server_end.accept_bi()).await.expect("opened");
    let error = within(receive.read_chunk(1)).await.expect_err("reset");
    assert!(matches!(error, courser::ReadError::Reset(code) if code.into_inner() == 0x10c));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn coursers_own_client_reports_a_reset_from_an_h3_server() {
    let pair = Pair::new();
    let (client_end, server_end) = pair.connect().await;
    tokio::spawn(async move {
        let mut server = server(server_end).await;
        loop {
            let (_, mut stream) = next(&mut server).await;
            stream.stop_stream(Code::H3_REQUEST_REJECTED);
        }
    });
    let client = own::Client::new(client_end);
    let request = Request::get("https://localhost/")
        .body(own::Empty)
        .expect("a request");
    let error = match within(client.send(request)).await {
        Err(error) => error,
        Ok(response) => within(response.into_body().collect())
            .await
            .expect_err("rejected"),
    };
    assert!(error.is_unprocessed(), "{error}");
}
