//! Raw QUIC streams with bytes that our own peers would not send.

use std::convert::Infallible;
use std::time::Duration;

use courser::{Connection, h3};
use http::{Request, Response};

use super::{full, get, pair, within};

/// Creates a server, and a raw connection to it.
async fn raw() -> (super::Pair, Connection) {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|request: Request<h3::Body>| async move {
        drop(request);
        Ok::<_, Infallible>(Response::new(full("fine")))
    });
    crate::common::spawn(h3::serve(server, service).into_future());
    (pair, client)
}

/// Returns the code with which the server ends the connection after these bytes on a new stream.
async fn connection_code(bytes: &[u8], is_request: bool) -> h3::Code {
    let (_pair, client) = raw().await;
    // Kept open, because dropping it would end the stream.
    let _streams;
    if is_request {
        let (mut send, receive) = client.open_bi().await.expect("allowed");
        send.write_all(bytes).await.expect("open");
        _streams = (send, Some(receive));
    } else {
        let mut send = client.open_uni().await.expect("allowed");
        send.write_all(bytes).await.expect("open");
        _streams = (send, None);
    }
    let error = h3::Error::from(within(client.closed()).await);
    error
        .code()
        .unwrap_or_else(|| panic!("closed by the server, not {error}"))
}

/// Returns the code with which the server stops and resets the stream of a request.
async fn stream_code(bytes: &[u8]) -> (h3::Code, Connection) {
    let (_pair, client) = raw().await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    send.write_all(bytes).await.expect("open");
    let _ = send.finish();
    let code = match within(receive.read_to_end(1000)).await {
        Err(courser::ReadToEndError::Read(courser::ReadError::Reset(code))) => code.into_inner(),
        result => panic!("{result:?}"),
    };
    (h3::Code::from_value(code), client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_errors_close_the_connection() {
    let cases: [(&[u8], bool, h3::Code); 8] = [
        (&[0x00, 0x07, 0x01, 0x00], false, h3::Code::MISSING_SETTINGS),
        (
            &[0x00, 0x04, 0x02, 0x02, 0x00],
            false,
            h3::Code::SETTINGS_ERROR,
        ),
        (&[0x01, 0x00], false, h3::Code::STREAM_CREATION_ERROR),
        (
            &[0x02, 0xff, 0x24],
            false,
            h3::Code::QPACK_ENCODER_STREAM_ERROR,
        ),
        (&[0x03, 0x00], false, h3::Code::QPACK_DECODER_STREAM_ERROR),
        (&[0x00, 0x01, 0x00], true, h3::Code::FRAME_UNEXPECTED),
        (
            &[0x01, 0x02, 0x00, 0x80],
            true,
            h3::Code::QPACK_DECOMPRESSION_FAILED,
        ),
        // SETTINGS of 1 MiB.
        (
            &[0x00, 0x04, 0x80, 0x10, 0x00, 0x00],
            false,
            h3::Code::EXCESSIVE_LOAD,
        ),
    ];
    for (bytes, is_request, code) in cases {
        assert_eq!(connection_code(bytes, is_request).await, code, "{bytes:x?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_errors_end_only_their_request() {
    for (bytes, code) in [
        (&[][..], h3::Code::REQUEST_INCOMPLETE),
        (&[0x21, 0x00], h3::Code::REQUEST_INCOMPLETE),
    ] {
        let (seen, client) = stream_code(bytes).await;
        assert_eq!(seen, code, "{bytes:x?}");
        let client = h3::Client::new(client);
        let response = within(client.send(get("/")))
            .await
            .expect("the connection goes on");
        assert_eq!(response.status(), 200);
    }
    // Only :method GET: the request is answered, and its stream is not read further (RFC 9114 §4.1.2).
    let (_pair, client) = raw().await;
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    let malformed = [0x01, 0x03, 0x00, 0x00, 0xd1];
    send.write_all(&malformed).await.expect("open");
    let answer = within(receive.read_to_end(1000)).await.expect("a response");
    // :status 400 is entry 67.
    assert_eq!(answer[2..6], [0x00, 0x00, 0xff, 0x04], "{answer:x?}");
    let stopped = within(send.stopped()).await.expect("open");
    let code = stopped.map(courser::VarInt::into_inner);
    assert_eq!(code, Some(h3::Code::MESSAGE_ERROR.value()));
    let client = h3::Client::new(client);
    let response = within(client.send(get("/"))).await.expect("open");
    assert_eq!(response.status(), 200);
}

/// CVE-2023-44487 (A71): requests that are cancelled at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_resets_end_the_connection() {
    let (_pair, client) = raw().await;
    let attack = async {
        while let Ok((mut send, _receive)) = client.open_bi().await {
            // The beginning of a HEADERS frame.
            let _ = send.write_all(&[0x01, 0x10]).await;
            let _ = send.reset(0x10c_u32.into());
        }
    };
    within(attack).await;
    let error = h3::Error::from(within(client.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::EXCESSIVE_LOAD), "{error}");
}

/// Returns the code of the reset that a whole request gets in place of a response.
async fn ask(client: &Connection) -> Result<(), h3::Code> {
    let (mut send, mut receive) = client.open_bi().await.expect("the connection goes on");
    // Entries 17, 23 and 1 of the static table: GET, https, and `/`; then an authority.
    let request = b"\x01\x10\0\0\xd1\xd7\xc1\x50\x09localhost";
    let _ = send.write_all(request).await;
    let _ = send.finish();
    match receive.read_to_end(1000).await {
        Ok(_) => Ok(()),
        Err(courser::ReadToEndError::Read(courser::ReadError::Reset(code))) => {
            Err(h3::Code::from_value(code.into_inner()))
        }
        Err(error) => panic!("{error}"),
    }
}

/// K270: a client that cancels too many requests loses others, and later its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_rejected_before_the_connection_ends() {
    let (_pair, client) = raw().await;
    let rejected = async {
        loop {
            for _ in 0..50 {
                let opened = client.open_bi().await;
                let (mut send, _receive) = opened.expect("the connection goes on");
                let _ = send.write_all(&[0x01, 0x10]).await;
                let _ = send.reset(0x10c_u32.into());
            }
            if let Err(code) = ask(&client).await {
                return code;
            }
        }
    };
    assert_eq!(within(rejected).await, h3::Code::REQUEST_REJECTED);
    // Time pays for requests, though not for as many as a loop can send.
    let served = async {
        while ask(&client).await.is_err() {
            let pause = Duration::from_millis(50);
            let closed = tokio::time::timeout(pause, client.closed()).await;
            assert!(closed.is_err(), "{closed:?}");
        }
    };
    within(served).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_critical_stream_that_is_stopped_ends_the_connection() {
    let (_pair, client) = raw().await;
    let mut control = within(client.accept_uni())
        .await
        .expect("the server's control stream");
    within(control.read_chunk(100)).await.expect("settings");
    control.stop(0u32.into()).expect("open");
    let error = h3::Error::from(within(client.closed()).await);
    assert_eq!(
        error.code(),
        Some(h3::Code::CLOSED_CRITICAL_STREAM),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_refuses_streams_of_the_server() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    let _client = h3::Client::new(client);
    let (mut send, _receive) = within(server.open_bi())
        .await
        .expect("allowed by the transport");
    send.write_all(b"x").await.expect("open");
    let error = h3::Error::from(within(server.closed()).await);
    assert_eq!(
        error.code(),
        Some(h3::Code::STREAM_CREATION_ERROR),
        "{error}"
    );
}
