//! Useless work of clients of HTTP/2, with frames written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use axum::Router;
use axum::routing::get;
use courser::server::{Limits, Server};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::tls;
use super::{Running, start_with, within};

/// Encodes a frame of HTTP/2.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("fits").to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PRIORITY: u8 = 2;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM_AND_HEADERS: u8 = 5;
pub(super) const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

/// An HTTP/2 connection to a server, on which frames are written by hand.
struct RawHttp2 {
    stream: tokio_rustls::client::TlsStream<tokio::net::TcpStream>,
    _running: Running,
}

/// WT-h2-002: a server of WebTransport over HTTP/3 does not announce it over HTTP/2, where it has none.
#[cfg(feature = "webtransport")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webtransport_is_not_announced_over_http2() {
    let app = Router::new().route("/", get(|| async { "served" }));
    let config = courser::webtransport::Config::new();
    let mut raw = RawHttp2::changed(app, |server| server.webtransport(config)).await;
    let mut head = [0; 9];
    within(raw.stream.read_exact(&mut head))
        .await
        .expect("open");
    assert_eq!(head[3], SETTINGS);
    let mut payload = vec![0; usize::from(head[2])];
    within(raw.stream.read_exact(&mut payload))
        .await
        .expect("open");
    let ids: Vec<u16> = payload
        .chunks_exact(6)
        .map(|setting| u16::from_be_bytes([setting[0], setting[1]]))
        .collect();
    // The settings are read: SETTINGS_MAX_HEADER_LIST_SIZE is one of them.
    assert!(ids.contains(&6), "{ids:x?}");
    assert!(!ids.contains(&0x2b60), "{ids:x?}");
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Answered,
    /// The code of RST_STREAM.
    Reset(u32),
    /// The code of GOAWAY, which ended the connection before.
    GoAway(u32),
}

impl RawHttp2 {
    async fn new() -> Self {
        Self::with(Router::new().route("/", get(|| async { "served" }))).await
    }

    async fn with(app: Router) -> Self {
        Self::changed(app, |server| server).await
    }

    async fn changed(app: Router, change: impl FnOnce(Server) -> Server) -> Self {
        let running = start_with(app, change);
        let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
        let stream = tls(address, certificate, &[b"h2"]).await;
        let mut raw = Self {
            stream: stream.expect("a server"),
            _running: running,
        };
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &[]));
        bytes.extend(frame(SETTINGS, ACK, 0, &[]));
        raw.write(&bytes).await;
        raw
    }

    async fn write(&mut self, bytes: &[u8]) {
        within(self.stream.write_all(bytes)).await.expect("open");
        within(self.stream.flush()).await.expect("open");
    }

    /// Reads to the end of a request.
    async fn outcome(&mut self, stream: u32) -> Outcome {
        loop {
            let mut head = [0; 9];
            within(self.stream.read_exact(&mut head))
                .await
                .expect("open");
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let id = number(&head[5..]);
            let mut payload = vec![0; len as usize];
            within(self.stream.read_exact(&mut payload))
                .await
                .expect("open");
            match head[3] {
                GOAWAY => return Outcome::GoAway(number(&payload[4..8])),
                HEADERS if id == stream => return Outcome::Answered,
                RST_STREAM if id == stream => return Outcome::Reset(number(&payload)),
                _ => {}
            }
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Entries 2, 7 and 4 of the static table: GET, https, and `/`; then an authority.
pub(super) const REQUEST: &[u8] = b"\x82\x87\x84\x01\x09localhost";

/// Limit K271: a browser that leaves a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_requests_over_http2_may_be_cancelled_at_once() {
    let mut raw = RawHttp2::new().await;
    let most = Limits::default().max_http2_streams;
    for round in 0..3 {
        let first = 2 * round * (most + 1) + 1;
        let streams = (0..most).map(|number| first + 2 * number);
        let mut bytes = Vec::new();
        for stream in streams.clone() {
            bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST));
        }
        for stream in streams {
            bytes.extend(frame(RST_STREAM, 0, stream, &CANCEL));
        }
        let last = first + 2 * most;
        bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, last, REQUEST));
        raw.write(&bytes).await;
        assert_eq!(raw.outcome(last).await, Outcome::Answered, "round {round}");
    }
    // The browser continues on the connection, and leaves the next page early too.
    let next = 2 * 3 * (most + 1) + 1;
    for stream in (next..).step_by(2).take(300) {
        let request = frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST);
        raw.write(&request).await;
        assert_eq!(raw.outcome(stream).await, Outcome::Answered, "{stream}");
    }
}

/// Limit K271, CVE-2023-44487: requests that are cancelled as fast as they are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_resets_over_http2_end_the_connection() {
    let mut raw = RawHttp2::new().await;
    let mut bytes = Vec::new();
    for number in 0..4000 {
        let stream = 2 * number + 1;
        bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST));
        bytes.extend(frame(RST_STREAM, 0, stream, &CANCEL));
    }
    // The end may come before all is written.
    let _ = within(raw.stream.write_all(&bytes)).await;
    let _ = within(raw.stream.flush()).await;
    assert_eq!(
        raw.outcome(u32::MAX).await,
        Outcome::GoAway(ENHANCE_YOUR_CALM)
    );
}

/// Limits K270, K320: a client that cancels what the service has received, as fast as it may and without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_cancellations_over_http2_are_refused_and_then_end_the_connection() {
    let received = Arc::new(AtomicU64::new(0));
    let count = received.clone();
    let slow = get(move || {
        count.fetch_add(1, Relaxed);
        std::future::pending::<&str>()
    });
    let app = Router::new().route("/", get(|| async { "served" }));
    let mut raw = RawHttp2::with(app.route("/slow", slow)).await;
    // Entry 4 of the static table is the path.
    let slow = b"\x82\x87\x04\x05/slow\x01\x09localhost";
    let began = Instant::now();
    let (mut sent, mut answered, mut refused) = (0, 0, 0);
    let end = 'end: loop {
        let first = 2 * sent + 1;
        // All of them are open before any is cancelled, so that h2 passes them on.
        let mut opened = Vec::new();
        let mut cancelled = Vec::new();
        for stream in (first..).step_by(2).take(100) {
            opened.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, slow));
            cancelled.extend(frame(RST_STREAM, 0, stream, &CANCEL));
        }
        let probes = [first + 200, first + 202];
        for (bytes, probe) in [(opened, probes[0]), (cancelled, probes[1])] {
            let probing = frame(HEADERS, END_STREAM_AND_HEADERS, probe, REQUEST);
            raw.write(&[bytes, probing].concat()).await;
            match raw.outcome(probe).await {
                Outcome::Answered => answered += 1,
                Outcome::Reset(code) => {
                    assert_eq!(code, REFUSED_STREAM);
                    refused += 1;
                }
                Outcome::GoAway(code) => break 'end code,
            }
        }
        sent += 102;
        assert!(sent < 1_000_000, "never ended");
    };
    assert_eq!(end, ENHANCE_YOUR_CALM);
    assert!(refused > 0, "the connection comes last");
    // What was received is what was paid for: at first, by answers, by time, and within one read.
    let paid = 2000 + 4 * answered + began.elapsed().as_millis() as u64 / 20;
    let received = received.load(Relaxed);
    assert!(
        received <= paid + 256,
        "{received} received, {paid} paid for"
    );
}

/// Limits K17, K320: frames without progress, which neither hyper nor h2 count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_useless_frames_over_http2_end_the_connection() {
    let floods = [
        frame(PING, 0, 0, &[7; 8]),
        frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
        frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 9]),
    ];
    for flood in floods {
        let mut raw = RawHttp2::new().await;
        let _ = within(raw.stream.write_all(&flood.repeat(20_000))).await;
        let _ = within(raw.stream.flush()).await;
        let end = raw.outcome(u32::MAX).await;
        assert_eq!(end, Outcome::GoAway(ENHANCE_YOUR_CALM), "{flood:?}");
    }
}

/// Limit K271: a gateway passes on malformed requests of some of its many clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_over_http2_do_not_end_a_connection_that_lives_long() {
    let mut raw = RawHttp2::new().await;
    // `content-length: 1` without content (RFC 9113 §8.1.1).
    let malformed = [REQUEST, b"\x0f\x0d\x011"].concat();
    for round in 0..32 {
        let first = 2 * round * 80 + 1;
        let mut bytes = Vec::new();
        for number in 0..64 {
            let stream = first + 2 * number;
            bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, &malformed));
        }
        // One good request pays for four.
        for number in 64..80 {
            let stream = first + 2 * number;
            bytes.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST));
        }
        raw.write(&bytes).await;
        assert_eq!(
            raw.outcome(first + 158).await,
            Outcome::Answered,
            "round {round}"
        );
    }
}
