//! Rules of RFC 9114 and 9204 that need a transport to be observed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser::telemetry::{FrameRecord, Record};
use courser::{
    ClientConfig, Connection, ConnectionError, ReadError, RecvStream, SendStream, Side,
    TransportConfig, h3,
};
use http::{Request, Response};
use http_body_util::BodyExt as _;

use super::{full, get, pair, text, tower_of, within};
use crate::common::pair_with;
use crate::common::relay::Relay;

/// RFC 9114 §10.2: an HTTP/3-only server accepts no connections with other protocols.
#[tokio::test]
async fn http3_requires_its_alpn_name() {
    let pair = pair_with(TransportConfig::default(), |config| config.alpn([h3::ALPN]));
    for other in ["h2", "h3-29", "hq-interop"] {
        let config = pair.client_config.clone().alpn([other]);
        let connecting = pair
            .client
            .connect_with(config, pair.address, "localhost")
            .expect("configured");
        let accept = async { pair.server.accept().await.expect("open").await };
        let (client, server) = within(async { tokio::join!(connecting, accept) }).await;
        for end in [client, server] {
            let error = end.expect_err("no common protocol");
            assert!(error.is_protocol_mismatch(), "{other}: {error}");
            assert_eq!(transport_code(&error), Some(0x178), "{other}: {error}");
        }
    }
}

/// RFC 9114 §3.1: a server is trusted for the names in its certificate.
#[tokio::test]
async fn a_certificate_for_another_origin_ends_the_connection() {
    let pair = pair_with(TransportConfig::default(), |config| config.alpn([h3::ALPN]));
    let config: ClientConfig = pair.client_config.clone().alpn([h3::ALPN]);
    let connecting = pair
        .client
        .connect_with(config, pair.address, "example.org")
        .expect("configured");
    let accept = async { pair.server.accept().await.expect("open").await };
    let (client, server) = within(async { tokio::join!(connecting, accept) }).await;
    for end in [client, server] {
        let error = end.expect_err("not its name");
        // CRYPTO_ERROR with bad_certificate.
        assert_eq!(transport_code(&error), Some(0x12a), "{error}");
    }
}

fn transport_code(error: &ConnectionError) -> Option<u64> {
    match error {
        ConnectionError::TransportError(error) => Some(error.code.value()),
        ConnectionError::ConnectionClosed(close) => Some(close.code.value()),
        _ => None,
    }
}

/// RFC 9114 §5.4: if the connection ends without a GOAWAY, it is unknown whether a request was
/// processed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_abrupt_end_requests_may_have_been_processed() {
    for code in [h3::Code::NO_ERROR, h3::Code::INTERNAL_ERROR] {
        let pair = super::pair();
        let (client, server) = pair.connect().await;
        let client = h3::Client::new(client);
        let raw = server.clone();
        let served = h3::ServerConnection::new(server, h3::Config::new(Side::Server));
        let ending = async {
            let _request = served.accept().await.expect("a request");
            raw.close(courser::VarInt::from_u64(code.value()).expect("fits"), b"");
        };
        let (response, ()) = within(async { tokio::join!(client.send(get("/")), ending) }).await;
        let error = response.expect_err("no answer");
        assert!(!error.is_unprocessed(), "{error:?}");
    }
}

/// RFC 9114 §4.6, §7.2.5: a client that allows no pushes refuses all of them before it reads the
/// promised request or response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promised_requests_are_refused_before_they_are_read() {
    // Frames of a response: promises of `GET /` and of `POST /`, with the same number, and a header
    // section.
    let safe = [0x05, 0x06, 0x00, 0x00, 0x00, 0xd1, 0xd7, 0xc1];
    let unsafe_ = [0x05, 0x06, 0x00, 0x00, 0x00, 0xd4, 0xd7, 0xc1];
    let head = [0x01, 0x03, 0x00, 0x00, 0xd9];
    let cases: [Vec<u8>; 4] = [
        safe.to_vec(),
        unsafe_.to_vec(),
        [&safe[..], &unsafe_].concat(),
        [&head[..], &safe].concat(),
    ];
    for bytes in cases {
        let pair = super::pair();
        let (client, server) = pair.connect().await;
        let client = h3::Client::new(client);
        let answering = async {
            let (mut send, _receive) = server.accept_bi().await.expect("a request");
            send.write_all(&bytes).await.expect("open");
            server.closed().await
        };
        let sending = async {
            let response = client.send(get("/")).await?;
            response.into_body().collect().await.map(drop)
        };
        let (result, reason) = within(async { tokio::join!(sending, answering) }).await;
        let error = result.expect_err("refused");
        assert_eq!(error.code(), Some(h3::Code::ID_ERROR), "{bytes:x?}");
        let error = h3::Error::from(reason);
        assert_eq!(error.code(), Some(h3::Code::ID_ERROR), "{bytes:x?}");
    }
}

/// A client that writes its own frames, and records the credit that the server grants.
struct Raw {
    connection: Connection,
    /// Carries the settings, and must not end.
    _control: SendStream,
    instructions: SendStream,
    /// The largest MAX_DATA received.
    granted: Arc<AtomicUsize>,
    /// Bytes sent on all streams.
    sent: usize,
}

/// Windows of the server, which do not grow. A limit is announced after an eighth.
const WINDOW: usize = 256 * 1024;

impl Raw {
    async fn new(pair: &super::Pair) -> Self {
        // Less than by default, so that a few sections fill it.
        let mut config = h3::Config::new(courser::Side::Server);
        config.blocked_bytes = 64 * 1024;
        let (connection, server) = pair.connect().await;
        let service = tower::service_fn(|request: Request<h3::Body>| async move {
            let body = request.into_body().collect().await?.to_bytes();
            Ok::<_, h3::Error>(Response::new(full(body.len().to_string())))
        });
        // Blocked requests end for other reasons than time.
        let serving = h3::serve(server, service)
            .config(config)
            .head_timeout(Duration::from_secs(1000));
        crate::common::spawn(serving.into_future());
        let granted = Arc::new(AtomicUsize::new(0));
        let highest = granted.clone();
        connection.set_sink(Some(Box::new(move |_now, record: &Record| {
            let Record::PacketReceived(packet) = record else {
                return;
            };
            for frame in &packet.frames {
                if let FrameRecord::MaxData { maximum } = frame {
                    highest.fetch_max(*maximum as usize, Ordering::Relaxed);
                }
            }
        })));
        let mut control = connection.open_uni().await.expect("allowed");
        let settings = [0x00, 0x04, 0x00];
        control.write_all(&settings).await.expect("open");
        let mut instructions = connection.open_uni().await.expect("allowed");
        // The type of the stream, and a capacity of 4096.
        let begin = [0x02, 0x3f, 0xe1, 0x1f];
        instructions.write_all(&begin).await.expect("open");
        Self {
            connection,
            _control: control,
            instructions,
            granted,
            sent: settings.len() + begin.len(),
        }
    }

    async fn open(&mut self, bytes: &[u8], fin: bool) -> (SendStream, RecvStream) {
        let (mut send, receive) = self.connection.open_bi().await.expect("allowed");
        send.write_all(bytes).await.expect("open");
        if fin {
            send.finish().expect("open");
        }
        self.sent += bytes.len();
        (send, receive)
    }

    /// Opens four requests, which is the limit of blocked streams.
    async fn open_four(&mut self) -> Vec<(SendStream, RecvStream)> {
        let mut streams = Vec::new();
        for _ in 0..4 {
            streams.push(self.open(&head(1, SECTION), true).await);
        }
        streams
    }

    /// Inserts the next entry.
    async fn insert(&mut self) {
        let entry = [0x41, b'k', 1, b'v'];
        self.instructions.write_all(&entry).await.expect("open");
        self.sent += entry.len();
    }

    /// Sends content that the service reads.
    async fn upload(&mut self, len: usize) {
        let mut bytes = head(0, 0);
        bytes.extend_from_slice(&[0x00, 0x80, (len >> 16) as u8, (len >> 8) as u8, len as u8]);
        bytes.resize(bytes.len() + len, 7);
        let (_send, mut receive) = self.open(&bytes, true).await;
        let answer = within(receive.read_to_end(1000)).await.expect("answered");
        assert!(answer.ends_with(len.to_string().as_bytes()));
    }

    fn granted(&self) -> usize {
        self.granted.load(Ordering::Relaxed)
    }
}

/// Encodes a HEADERS frame: `POST https://localhost/` with a value of `len` bytes, and a reference
/// to the last of `entries` entries if there is one.
fn head(entries: u8, len: usize) -> Vec<u8> {
    let encoded = if entries == 0 { 0 } else { entries + 1 };
    let mut section = vec![encoded, 0, 0xd4, 0xd7, 0xc1, 0x50, 9];
    section.extend_from_slice(b"localhost");
    if entries > 0 {
        section.push(0x80);
    }
    if len > 0 {
        let rest = len - 127;
        section.extend_from_slice(&[0x21, b'x', 0x7f]);
        section.extend_from_slice(&[rest as u8 | 0x80, (rest >> 7) as u8]);
        section.resize(section.len() + len, b'v');
    }
    let mut frame = vec![
        0x01,
        0x80,
        0,
        (section.len() >> 8) as u8,
        section.len() as u8,
    ];
    frame.append(&mut section);
    frame
}

const SECTION: usize = 15_000;

/// RFC 9204 §2.2.1, A75. With several threads, the credit for a section may be announced after it
/// is read and before it turns out to be blocked, and is offset only later. So this runs on one
/// thread.
#[tokio::test]
async fn blocked_sections_count_against_flow_control() {
    let window = WINDOW as u64;
    let transport = TransportConfig {
        receive_window: window,
        receive_window_max: window,
        stream_receive_window: window,
        stream_receive_window_max: window,
        ..TransportConfig::default()
    };
    let pair = pair_with(transport, |config| config);
    let mut raw = Raw::new(&pair).await;
    for round in 1..=4 {
        let mut waiting = Vec::new();
        for _ in 0..4 {
            waiting.push(raw.open(&head(round, SECTION), true).await);
        }
        raw.upload(200_000).await;
        let most = raw.sent - 4 * SECTION + WINDOW;
        assert!(
            raw.granted() > WINDOW && raw.granted() <= most,
            "round {round}: {} granted of {most}",
            raw.granted()
        );
        raw.insert().await;
        for (_send, mut receive) in waiting {
            let answer = within(receive.read_to_end(1000)).await.expect("answered");
            assert!(answer.ends_with(b"0"), "{answer:?}");
        }
        // All is credited again: closer to the window than the bytes that were held.
        raw.upload(200_000).await;
        within(async {
            while raw.granted() + WINDOW / 8 < raw.sent + WINDOW {
                raw.upload(5_000).await;
            }
        })
        .await;
    }
}

/// K25: a request beyond the limit is refused, alone; the others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_64_kib_of_blocked_sections_are_refused() {
    let pair = super::pair();
    let mut raw = Raw::new(&pair).await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(raw.open(&head(1, SECTION), true).await);
    }
    // Of five requests of this size one is refused; which one depends on the order of the tasks.
    waiting.push(raw.open(&head(1, SECTION), true).await);
    let mut refused = 0;
    let mut ended = tokio::task::JoinSet::new();
    for (send, mut receive) in waiting {
        ended.spawn(async move {
            let result = receive.read_to_end(1000).await;
            drop(send);
            result
        });
    }
    let first = within(ended.join_next())
        .await
        .expect("five")
        .expect("no panic");
    match first {
        Err(courser::ReadToEndError::Read(ReadError::Reset(code))) => {
            assert_eq!(code.into_inner(), h3::Code::EXCESSIVE_LOAD.value());
            refused += 1;
        }
        result => panic!("{result:?}"),
    }
    raw.insert().await;
    while let Some(result) = within(ended.join_next()).await {
        let answer = result.expect("no panic").expect("answered");
        assert!(answer.ends_with(b"0"), "{answer:?}");
    }
    assert_eq!(refused, 1);
    assert!(raw.connection.close_reason().is_none());
}

/// A75, RFC 9204 §2.2.2.2: cancelling a blocked request releases all of its state, in every round, by a reset and by
/// STOP_SENDING.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_requests_can_be_cancelled() {
    let pair = super::pair();
    let mut raw = Raw::new(&pair).await;
    for round in 0..9 {
        let mut waiting = Vec::new();
        for _ in 0..4 {
            waiting.push(raw.open(&head(1, SECTION), round % 2 == 1).await);
        }
        for (mut send, mut receive) in waiting {
            if round % 2 == 1 {
                // All of it has arrived: a reset would come too late.
                receive.stop(0x10c_u32.into()).expect("open");
                let reset = within(send.stopped()).await;
                assert!(reset.is_ok(), "{reset:?}");
            } else {
                send.reset(0x10c_u32.into()).expect("open");
                let result = within(receive.read_to_end(1000)).await;
                assert!(result.is_err(), "{result:?}");
            }
        }
        raw.upload(1000).await;
    }
    // There is room for four again. A stopped request is released by a task of the server, which
    // cannot be observed here, so it gets ten times the time of twenty requests; a leak would stay.
    let mut waiting = raw.open_four().await;
    for _ in 0..10 {
        let pause = async {
            for _ in 0..20 {
                raw.upload(1000).await;
            }
        };
        let refused = futures_util::future::select_all(
            waiting
                .iter_mut()
                .map(|(_send, receive)| Box::pin(receive.read_to_end(1000))),
        );
        tokio::select! {
            () = pause => break,
            (result, ..) = refused => assert!(result.is_err(), "{result:?}"),
        }
        waiting = raw.open_four().await;
    }
    raw.upload(1000).await;
    raw.insert().await;
    for (_send, mut receive) in waiting {
        let answer = within(receive.read_to_end(1000)).await.expect("answered");
        assert!(answer.ends_with(b"0"), "{answer:?}");
    }
}

/// RFC 9114 §4.1: a second request on a stream can only be trailers, and makes the request
/// malformed. The client is notified in both directions, whatever the service does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_request_on_a_stream_is_malformed() {
    let pair = super::pair();
    let mut raw = Raw::new(&pair).await;
    let twice = [head(0, 0), head(0, 0)].concat();
    let (send, mut receive) = raw.open(&twice, false).await;
    let result = within(receive.read_to_end(1000)).await;
    let Err(courser::ReadToEndError::Read(ReadError::Reset(code))) = result else {
        panic!("{result:?}");
    };
    assert_eq!(code.into_inner(), h3::Code::MESSAGE_ERROR.value());
    let stopped = within(send.stopped()).await.expect("the connection lives");
    assert_eq!(
        stopped.map(courser::VarInt::into_inner),
        Some(h3::Code::MESSAGE_ERROR.value())
    );
    raw.upload(10).await;
}

/// RFC 9114 §4.1: a trailer section without fields means nothing, and some QPACK decoders refuse it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailer_section_without_fields_is_not_sent() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    let body = super::frames(futures_util::stream::iter([
        Ok(http_body::Frame::data("abc".into())),
        Ok(http_body::Frame::trailers(http::HeaderMap::new())),
    ]));
    let request = Request::post("https://localhost/").body(body);
    let sending = client.send(request.expect("a request"));
    let receiving = async {
        let (_send, mut receive) = server.accept_bi().await.expect("a request");
        receive.read_to_end(1000).await.expect("the whole request")
    };
    let received = within(async {
        tokio::select! {
            answer = sending => panic!("{answer:?}"),
            received = receiving => received,
        }
    });
    let received = received.await;
    assert!(received.ends_with(b"\x00\x03abc"), "{received:?}");
}

/// RFC 9114 §4.1: nothing follows trailers. A service that reads only up to them does not receive
/// them before this is checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_after_trailers_are_detected() {
    let pair = super::pair();
    let mut raw = Raw::new(&pair).await;
    let trailers = [0x01, 6, 0, 0, 0x21, b'x', 1, b'v'];
    let bytes = [&head(0, 0)[..], &trailers].concat();
    let (mut send, mut receive) = raw.open(&bytes, false).await;
    // Long enough for the server to have read all frames.
    raw.upload(10).await;
    let answer = receive.read_to_end(1000);
    let early = tokio::time::timeout(Duration::from_millis(50), answer).await;
    assert!(early.is_err(), "answered before the end: {early:?}");
    send.write_all(&[0x00, 1, b'a']).await.expect("open");
    let error = h3::Error::from(within(raw.connection.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::FRAME_UNEXPECTED), "{error}");
    // Trailers followed only by the end are correct.
    let mut raw = Raw::new(&pair).await;
    let (_send, mut receive) = raw.open(&bytes, true).await;
    let answer = within(receive.read_to_end(1000)).await.expect("answered");
    assert!(answer.ends_with(b"0"), "{answer:?}");
}

/// RFC 9114 §4.1.1: a request that the application has not seen was not processed, and may be sent
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unresolved_request_was_not_processed() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    let served = h3::ServerConnection::new(server, h3::Config::new(Side::Server));
    let dropping = async { drop(served.accept().await.expect("a request")) };
    let (response, ()) = within(async { tokio::join!(client.send(get("/")), dropping) }).await;
    let error = response.expect_err("no answer");
    assert_eq!(error.code(), Some(h3::Code::REQUEST_REJECTED), "{error}");
    assert!(error.is_unprocessed());
}

/// RFC 9114 §4.1.2: only the request of a malformed response fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_response_ends_its_request_alone() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let client = h3::Client::new(client);
    // Only a content-length, and a status of two digits.
    let malformed: [&[u8]; 2] = [
        &[0x01, 0x03, 0x00, 0x00, 0xc4],
        &[0x01, 0x07, 0x00, 0x00, 0x5f, 0x09, 0x02, b'2', b'0'],
    ];
    for bytes in malformed {
        let answering = async {
            let (mut send, _receive) = server.accept_bi().await.expect("a request");
            send.write_all(bytes).await.expect("open");
            send.stopped().await.expect("the connection lives")
        };
        let (response, stopped) =
            within(async { tokio::join!(client.send(get("/")), answering) }).await;
        let error = response.expect_err("malformed");
        assert_eq!(error.code(), Some(h3::Code::MESSAGE_ERROR), "{error}");
        let code = stopped.map(courser::VarInt::into_inner);
        assert_eq!(code, Some(h3::Code::MESSAGE_ERROR.value()), "{bytes:x?}");
    }
    assert!(client.quic().close_reason().is_none());
}

/// A81, K17: 500 useless frames are allowed, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_useless_frames_end_the_connection() {
    let empty_data = (
        [&head(0, 0)[..], &[0x00, 0x00].repeat(2000)].concat(),
        "empty DATA",
    );
    let unknown = ([0x21, 0x00].repeat(2000), "unknown frames");
    for (bytes, what) in [empty_data, unknown] {
        let pair = super::pair();
        let mut raw = Raw::new(&pair).await;
        let _streams = raw.open(&bytes, false).await;
        let error = h3::Error::from(within(raw.connection.closed()).await);
        assert_eq!(
            error.code(),
            Some(h3::Code::EXCESSIVE_LOAD),
            "{what}: {error}"
        );
    }
    let pair = super::pair();
    let mut raw = Raw::new(&pair).await;
    let most = [&[0x21, 0x00].repeat(450)[..], &head(0, 0)].concat();
    let (_send, mut receive) = raw.open(&most, true).await;
    let answer = within(receive.read_to_end(1000)).await.expect("answered");
    assert!(answer.ends_with(b"0"));
}

/// A79: a client must send its settings in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_settings_end_the_connection() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|_| async { Ok::<_, Infallible>(Response::new(full("late"))) });
    let limit = Duration::from_millis(300);
    let serving = h3::serve(server, service).settings_timeout(limit);
    crate::common::spawn(serving.into_future());
    let began = std::time::Instant::now();
    let reason = tokio::time::timeout(Duration::from_secs(20), client.closed()).await;
    let error = h3::Error::from(reason.expect("closed in time"));
    assert_eq!(error.code(), Some(h3::Code::MISSING_SETTINGS), "{error}");
    assert!(began.elapsed() >= limit);
}

/// A server that starts with the first packet of a client does not count the time of a slow handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_for_settings_begins_after_the_handshake() {
    let pair = super::pair();
    let relay = Relay::new(pair.address);
    relay.hold_answers();
    let connecting = pair.client.connect(relay.address, "localhost");
    let connecting = connecting.expect("configured");
    let incoming = within(pair.server.accept()).await.expect("open");
    let early = incoming.accept().expect("accepted").early();
    let server = within(early).await.expect("half of a handshake");
    let service = super::boxed(|_| async { Ok::<_, Infallible>(Response::new(full("fine"))) });
    let limit = Duration::from_millis(300);
    let serving = h3::serve(server.clone(), service).settings_timeout(limit);
    crate::common::spawn(serving.into_future());
    let closed = tokio::time::timeout(limit * 2, server.closed()).await;
    assert!(closed.is_err(), "{closed:?}");
    relay.release().await;
    let client = within(connecting).await.expect("connected");
    let response = within(h3::Client::new(client).send(get("/"))).await;
    assert_eq!(response.expect("not closed").status(), 200);
}

/// A88: the server does not wait for a header section that never arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_header_section_is_refused() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let service = super::boxed(|_: Request<h3::Body>| async {
        Ok::<_, Infallible>(Response::new(full("fine")))
    });
    let serving = h3::serve(server, service).head_timeout(Duration::from_millis(50));
    crate::common::spawn(serving.into_future());
    let (mut send, mut receive) = client.open_bi().await.expect("allowed");
    let head = head(0, 0);
    send.write_all(&head[..head.len() - 1]).await.expect("open");
    let result = within(receive.read_to_end(1000)).await;
    let Err(courser::ReadToEndError::Read(ReadError::Reset(code))) = result else {
        panic!("{result:?}");
    };
    assert_eq!(code.into_inner(), h3::Code::REQUEST_REJECTED.value());
    let response = within(h3::Client::new(client).send(get("/"))).await;
    assert_eq!(response.expect("the connection goes on").status(), 200);
}

/// A client that cancels during the body of its response, or sends no further requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unwanted_body_is_dropped() {
    let (report, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let (_pair, client) = super::serve(move |_| {
        let report = report.clone();
        async move {
            struct ReportsDrop(tokio::sync::mpsc::UnboundedSender<()>);
            impl Drop for ReportsDrop {
                fn drop(&mut self) {
                    let _ = self.0.send(());
                }
            }
            let report = ReportsDrop(report);
            let stream = futures_util::stream::unfold(report, |report| async {
                std::future::pending::<()>().await;
                Some((Ok(http_body::Frame::data(bytes::Bytes::new())), report))
            });
            Response::new(super::frames(stream))
        }
    })
    .await;
    let response = within(client.send(get("/")))
        .await
        .expect("a header section");
    drop(response);
    within(reported.recv()).await.expect("dropped");
    assert!(client.quic().close_reason().is_none());
}

/// A71, by STOP_SENDING: complete requests whose responses are not wanted, while the service works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_stops_end_the_connection() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let at_once = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (counting, peak) = (at_once.clone(), most.clone());
    let service = super::boxed(move |_: Request<h3::Body>| {
        struct Counted(Arc<AtomicUsize>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let running = counting.fetch_add(1, Ordering::Relaxed) + 1;
        peak.fetch_max(running, Ordering::Relaxed);
        let counted = Counted(counting.clone());
        async move {
            let _counted = counted;
            std::future::pending::<()>().await;
            Ok::<_, Infallible>(Response::new(full("never")))
        }
    });
    crate::common::spawn(h3::serve(server, service).into_future());
    let attack = async {
        let mut stopped = 0;
        while let Ok((mut send, mut receive)) = client.open_bi().await {
            let _ = send.write_all(&head(0, 0)).await;
            let _ = send.finish();
            let _ = receive.stop(0x10c_u32.into());
            stopped += 1;
        }
        stopped
    };
    let stopped = within(attack).await;
    let error = h3::Error::from(within(client.closed()).await);
    assert_eq!(error.code(), Some(h3::Code::EXCESSIVE_LOAD), "{error}");
    assert!(stopped > 500, "{stopped} is no flood");
    assert!(most.load(Ordering::Relaxed) <= 100, "streams that are open");
}

/// RFC 9114 §7.2.4.2: remembered settings bind a server only if early data is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_early_data_remembered_settings_do_not_apply() {
    let pair = pair();
    let (client, server) = pair.connect().await;
    assert_eq!(client.early_data(), courser::EarlyData::None);
    let service = tower_of(|_| async { Response::new(full("fine")) });
    crate::common::spawn(h3::serve(server, service).into_future());
    let remembered = h3::Settings {
        h3_datagram: true,
        max_field_section_size: Some(u64::from(u32::MAX)),
        ..h3::Settings::default()
    };
    let config = h3::Config::new(courser::Side::Client);
    let client = h3::Client::resume(client, config, remembered);
    let settings = within(client.settings()).await.expect("they are allowed");
    assert!(!settings.h3_datagram);
    let response = within(client.send(get("/"))).await.expect("a response");
    assert_eq!(text(response).await, "fine");
}
