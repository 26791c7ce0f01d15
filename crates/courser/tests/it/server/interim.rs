use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Extension, Request};
use axum::routing::get;
use courser::h3::{Interim, OnInterim};
use courser::server::Protocol;
use http::{Response, StatusCode};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Client, empty, request, text, tls};
use super::http2::{HEADERS, SETTINGS, frame};
use super::raw::{Http2, Outcome, VALID, over_http1, with};
use super::{start, start_with, within};

/// Sends a valid and an invalid interim response, and returns the results.
async fn page(Extension(interim): Extension<Interim>) -> String {
    let mut seen = Vec::new();
    for status in [StatusCode::EARLY_HINTS, StatusCode::OK] {
        let response = Response::builder()
            .status(status)
            .header("link", "</style.css>; rel=preload");
        let sent = interim.send(response.body(()).expect("a response")).await;
        seen.push(sent.map_or_else(|error| error.to_string(), |outcome| format!("{outcome:?}")));
    }
    seen.join(", ")
}

/// Handlers need not check the protocol: the extractor always succeeds, and sending is not an error where it is
/// unsupported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_can_send_hints_over_every_protocol() {
    let app = Router::new().route("/", get(page));
    let running = start_with(app, |server| server.interim_responses(true));
    let refused = "status 200 OK is not an interim status: use 100 or 102 to 199";
    for (protocol, outcome, expected) in [
        // hyper's client passes interim responses to a callback of its own, or drops them.
        (Protocol::Http1, "Sent", &[][..]),
        (Protocol::Http2, "Sent", &[]),
        (
            Protocol::Http3,
            "Sent",
            &[(103, "</style.css>; rel=preload")],
        ),
    ] {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let mut asked = request("GET", "/", empty());
        asked
            .extensions_mut()
            .insert(OnInterim::new(move |interim| {
                let link = interim.headers()["link"].to_str().expect("text").to_owned();
                let mut noted = noted.lock().expect("no panic");
                noted.push((interim.status().as_u16(), link));
            }));
        let response = within(client.send(asked)).await.expect("an answer");
        assert_eq!(response.status(), 200, "{protocol}");
        let answer = within(text(response)).await;
        assert_eq!(answer, format!("{outcome}, {refused}"), "{protocol}");
        let expected: Vec<_> = expected
            .iter()
            .map(|(s, link)| (*s, link.to_string()))
            .collect();
        assert_eq!(*seen.lock().expect("no panic"), expected, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_off_by_default() {
    let has = |request: Request| async move {
        let is_there = request.extensions().get::<Interim>().is_some();
        is_there.to_string()
    };
    let running = start(Router::new().route("/", get(has)));
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let seen = within(client.expect("a server").text("/")).await;
        assert_eq!(seen, "false", "{protocol}");
    }
}

/// RFC 8297 §2, RFC 9110 §15.2: the bytes of a connection whose second request is sent at once, and of HTTP/1.0.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_over_http1_precede_their_final_response() {
    let app = Router::new()
        .route("/", get(page))
        .route("/other", get(|| async { "other" }));
    let running = start_with(app, |server| server.interim_responses(true));
    let requests = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n\
                     GET /other HTTP/1.1\r\nhost: localhost\r\n\r\n\
                     GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let responses = over_http1(&running, requests).await;
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";
    let starts: Vec<_> = responses
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| &responses[at..])
        .collect();
    assert_eq!(starts.len(), 5, "{responses}");
    for (at, expected) in [
        hint,
        "HTTP/1.1 200 ",
        "HTTP/1.1 200 ",
        hint,
        "HTTP/1.1 200 ",
    ]
    .iter()
    .enumerate()
    {
        assert!(starts[at].starts_with(expected), "{at}: {responses}");
    }
    let old = over_http1(&running, b"GET / HTTP/1.0\r\nhost: localhost\r\n\r\n").await;
    assert!(
        old.starts_with("HTTP/1.0 200 ") && old.contains("Unsupported"),
        "{old}"
    );
}

/// The connection waits for nothing when another task sends the response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_over_http1_arrive_before_the_final_one_is_known() {
    let (release, released) = tokio::sync::watch::channel(false);
    let slow = move |Extension(interim): Extension<Interim>| {
        let mut released = released.clone();
        async move {
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                let hint = Response::builder().status(StatusCode::PROCESSING);
                interim.send(hint.body(()).expect("a response")).await
            });
            released.changed().await.expect("open");
            "final"
        }
    };
    let app = Router::new().route("/", get(slow));
    let running = start_with(app, |server| server.interim_responses(true));
    let (address, certificate) = (running.handle.local_addr(), running.identity.certificate());
    let mut stream = tls(address, certificate, &[b"http/1.1"])
        .await
        .expect("a server");
    let request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    within(stream.write_all(request)).await.expect("open");
    within(stream.flush()).await.expect("open");
    let expected = b"HTTP/1.1 102 Processing\r\n\r\n";
    let mut seen = vec![0; expected.len()];
    within(stream.read_exact(&mut seen))
        .await
        .expect("an interim response");
    assert_eq!(seen, expected);
    release.send(true).expect("waiting");
    let mut seen = vec![0; 13];
    within(stream.read_exact(&mut seen))
        .await
        .expect("a response");
    assert_eq!(seen, b"HTTP/1.1 200 ");
}

/// RFC 8297 §2, RFC 9113 §8.1: the frames of three requests at once, each with its own hint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_over_http2_precede_their_final_response() {
    let own = |uri: http::Uri, Extension(interim): Extension<Interim>| async move {
        let hint = Response::builder().status(StatusCode::EARLY_HINTS);
        let hint = hint.header("link", uri.path()).body(());
        let sent = interim.send(hint.expect("a response")).await;
        tokio::task::yield_now().await;
        format!("{sent:?}")
    };
    let app = Router::new().fallback(own);
    let running = start_with(app, |server| server.interim_responses(true));
    let mut http2 = Http2::connect(&running).await;
    // A malformed request is not passed on, so that requests and their services cannot be counted.
    http2.exchange(&with(":path", None)).await;
    let mut bytes = Vec::new();
    let paths: Vec<_> = (0..50).map(|number| format!("/{number}")).collect();
    let mut streams = Vec::new();
    for path in &paths {
        let (stream, request) = http2.encode(&with(":path", Some(path)), 5);
        streams.push(stream);
        bytes.extend(request);
    }
    http2.write(&bytes).await;
    let mut hinted = Vec::new();
    while hinted.len() < streams.len() {
        let (kind, flags, stream, payload) = http2.read_frame().await.expect("open");
        let Some(index) = streams.iter().position(|id| *id == stream) else {
            continue;
        };
        if kind == HEADERS && payload.starts_with(b"\x08\x03103") {
            assert_eq!(flags, 4, "END_HEADERS alone");
            assert!(payload.ends_with(paths[index].as_bytes()), "{payload:?}");
            hinted.push(stream);
        } else {
            assert!(hinted.contains(&stream), "a hint precedes its response");
        }
    }
    // A block in several frames has no tag, and a client that lowers its table gets no hints.
    let long = "v".repeat(20_000);
    let outcome = http2.exchange(&with("x-long", Some(&long))).await;
    assert_eq!(outcome, Outcome::Status(200, "Ok(Unsupported)".to_owned()));
    http2
        .write(&frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]))
        .await;
    let outcome = http2.exchange(VALID).await;
    assert_eq!(outcome, Outcome::Status(200, "Ok(Unsupported)".to_owned()));
}

/// Services must not see the field with which the server recognizes streams, and clients must not set it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_do_not_see_tags() {
    let count = |request: Request| async move { format!("{:?}", request.headers()) };
    let app = Router::new().fallback(count);
    let running = start_with(app, |server| server.interim_responses(true));
    let mut http2 = Http2::connect(&running).await;
    let outcome = http2.exchange(&with("courser-stream", Some("1"))).await;
    assert_eq!(outcome, Outcome::Status(200, "{}".to_owned()));
}
