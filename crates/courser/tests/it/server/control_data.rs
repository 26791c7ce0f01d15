//! The control data of requests: one valid host, whatever the version.

use axum::Router;
use axum::extract::Request;
use courser::server::{Limits, Protocol, authority};
use http::header::{CONTENT_LENGTH, COOKIE, DATE, HOST};

use super::client::Client;
use super::raw::{self, Fields, Http2, Http3, Outcome, VALID, over_http1, status_of, with};
use super::{Running, start, start_with, within};

/// Returns what services see of a request.
async fn seen(request: Request) -> String {
    let all = |name| {
        let values = request.headers().get_all(name).iter();
        let values: Vec<_> = values.map(|value| value.to_str().expect("text")).collect();
        values.join("|")
    };
    let authority = authority(&request).unwrap_or("none").to_owned();
    let path = request.uri().path();
    format!(
        "{authority} {path} cookie={} length={} host={}",
        all(COOKIE),
        all(CONTENT_LENGTH),
        all(HOST)
    )
}

fn app() -> Router {
    Router::new().fallback(seen)
}

async fn over_http1_status(running: &Running, lines: &str) -> Option<u16> {
    let request = format!("{lines}connection: close\r\n\r\n");
    status_of(&over_http1(running, request.as_bytes()).await)
}

/// RFC 9112 §3.2, RFC 9110 §4.2.4, §7.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_requests_have_one_valid_host() {
    let running = start(app());
    for (expected, lines) in [
        (200, "GET / HTTP/1.1\r\nhost: localhost\r\n"),
        (200, "GET / HTTP/1.1\r\nhost: [::1]:8443\r\n"),
        (
            200,
            "GET https://localhost/ HTTP/1.1\r\nhost: LOCALHOST:443\r\n",
        ),
        (200, "GET / HTTP/1.0\r\n"),
        (200, "OPTIONS * HTTP/1.1\r\nhost: localhost\r\n"),
        (400, "GET / HTTP/1.1\r\n"),
        (400, "GET / HTTP/1.1\r\nhost:\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: user@localhost\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: localhost/path\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: local host\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: localhost:x\r\n"),
        (400, "GET / HTTP/1.1\r\nhost: localhost:70000\r\n"),
        (400, "GET https://localhost/ HTTP/1.1\r\n"),
        (400, "GET https://localhost/ HTTP/1.1\r\nhost: other\r\n"),
        (200, "GET http://localhost/ HTTP/1.1\r\nhost: localhost\r\n"),
        (421, "GET ftp://localhost/ HTTP/1.1\r\nhost: localhost\r\n"),
        (400, "GET * HTTP/1.1\r\nhost: localhost\r\n"),
        (400, "GET localhost HTTP/1.1\r\nhost: localhost\r\n"),
        (400, "CONNECT localhost HTTP/1.1\r\nhost: localhost\r\n"),
        (400, "CONNECT localhost: HTTP/1.1\r\nhost: localhost\r\n"),
    ] {
        let status = over_http1_status(&running, lines).await;
        assert_eq!(status, Some(expected), "{lines}");
    }
}

/// RFC 9113 §8.3.1, RFC 9114 §4.3.1. HTTP/3 resets malformed requests, and HTTP/2 resets those that it cannot
/// represent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_versions_have_one_valid_host() {
    let running = start(app());
    let valid: [Vec<_>; 4] = [
        VALID.to_vec(),
        with("host", Some("LOCALHOST")),
        with(":authority", Some("[::1]:8443")),
        [with(":authority", None), vec![("host", "localhost")]].concat(),
    ];
    let invalid: [Vec<_>; 14] = [
        with(":authority", None),
        with(":authority", Some("")),
        with(":authority", Some("user@localhost")),
        with(":authority", Some("local host")),
        with(":authority", Some("localhost/path")),
        with(":authority", Some("localhost:70000")),
        with("host", Some("other")),
        with("host", Some("")),
        [VALID, &[("host", "localhost"), ("host", "localhost")]].concat(),
        [with(":authority", None), vec![("host", "a"), ("host", "a")]].concat(),
        with(":path", Some("*")),
        with(":path", Some("path")),
        with(":path", Some("")),
        with("x-field", Some(" padded ")),
    ];
    for protocol in [Protocol::Http2, Protocol::Http3] {
        for fields in &valid {
            let outcome = raw::status(&running, protocol, fields).await;
            assert_eq!(outcome.status(), Some(200), "{protocol}: {fields:?}");
        }
        for fields in &invalid {
            let outcome = raw::status(&running, protocol, fields).await;
            let is_refused = matches!(outcome, Outcome::Status(400, _) | Outcome::Reset(_));
            assert!(is_refused, "{protocol}: {fields:?}: {outcome:?}");
        }
        // Gateways that receive plain HTTP keep its scheme.
        for (scheme, status) in [("http", 200), ("ftp", 421)] {
            let other = with(":scheme", Some(scheme));
            let outcome = raw::status(&running, protocol, &other).await;
            assert_eq!(outcome.status(), Some(status), "{protocol}: {scheme}");
        }
    }
}

/// RFC 9113 §8.1.1: a malformed request ends only its own stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_requests_leave_the_connection_to_others() {
    let running = start(app());
    let mut http2 = Http2::connect(&running).await;
    let mut http3 = Http3::connect(&running).await;
    for fields in [
        with("host", Some("other")),
        with(":authority", None),
        with("x-field", Some("padded ")),
        with(":path", None),
        with("connection", Some("close")),
        with("te", Some("gzip")),
    ] {
        for outcome in [http2.exchange(&fields).await, http3.exchange(&fields).await] {
            assert!(!matches!(outcome.status(), Some(200)), "{fields:?}");
        }
        assert_eq!(
            http2.exchange(VALID).await.status(),
            Some(200),
            "{fields:?}"
        );
        assert_eq!(
            http3.exchange(VALID).await.status(),
            Some(200),
            "{fields:?}"
        );
    }
}

/// RFC 9113 §8.2.3, RFC 9114 §4.2.1, RFC 9110 §8.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_see_the_same_request_over_every_protocol() {
    let running = start(app());
    let split: Fields<'_> = &[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/x"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("content-length", "0"),
        ("content-length", "0"),
    ];
    let expected = |host| format!("localhost /x cookie=a=1; b=2 length=0 host={host}");
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let outcome = raw::status(&running, protocol, split).await;
        assert_eq!(outcome, Outcome::Status(200, expected("")), "{protocol}");
    }
    for target in ["/x", "https://localhost/x"] {
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: localhost\r\ncookie: a=1\r\ncookie: b=2\r\n\
             content-length: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let response = over_http1(&running, request.as_bytes()).await;
        assert!(response.ends_with(&expected("localhost")), "{response}");
    }
}

/// RFC 9110 §6.6.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_have_a_date_over_every_protocol() {
    let own = || async { ([("date", "Sun, 06 Nov 1994 08:49:37 GMT")], "") };
    let app = app().route("/own", axum::routing::get(own));
    let running = start_with(app, |server| server.only_names(true));
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        let response = within(client.get("/")).await.expect("a response");
        let date = response.headers()[DATE].to_str().expect("text");
        assert!(
            date.ends_with(" GMT") && date.len() == 29,
            "{protocol}: {date}"
        );
        let response = within(client.get("/own")).await.expect("a response");
        let dates: Vec<_> = response.headers().get_all(DATE).iter().collect();
        assert_eq!(dates, ["Sun, 06 Nov 1994 08:49:37 GMT"], "{protocol}");
    }
    // The server's own responses have one too: entry 6 of the static table of QPACK names the field.
    let mut http3 = Http3::connect(&running).await;
    let misdirected = http3.exchange(&with(":authority", Some("other"))).await;
    assert_eq!(misdirected.status(), Some(421));
}

/// Limits K24 and K57: 64 KiB and 1024 fields over every protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_limits_are_the_same_over_every_protocol() {
    let mut lower = Limits::default();
    lower.max_header_bytes = 16 * 1024;
    lower.max_header_fields = 50;
    let small = "v".repeat(12_000);
    let medium = "v".repeat(40_000);
    let large = "v".repeat(70_000);
    for (limits, count, value, expected) in [
        (Limits::default(), 1000, "v", 200),
        (Limits::default(), 1100, "v", 431),
        (Limits::default(), 1, &medium, 200),
        (Limits::default(), 1, &large, 431),
        (lower.clone(), 40, "v", 200),
        (lower.clone(), 60, "v", 431),
        (lower.clone(), 1, &small, 200),
        (lower.clone(), 1, &medium, 431),
    ] {
        let running = start_with(app(), |server| server.limits(limits));
        let names: Vec<_> = (0..count).map(|number| format!("x{number}")).collect();
        let more = names.iter().map(|name| (&**name, value));
        let fields: Vec<_> = VALID.iter().copied().chain(more.clone()).collect();
        let lines: String = more
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        // HTTP/1.1 reads ahead, and accepts up to twice as much.
        let lines = if value.len() > 65_536 {
            lines.repeat(2)
        } else {
            lines
        };
        let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{lines}");
        let status = over_http1_status(&running, &request).await;
        let case = format!("{count} fields of {} bytes", value.len());
        assert_eq!(status, Some(expected), "HTTP/1.1: {case}");
        let mut http3 = Http3::connect(&running).await;
        assert_eq!(
            http3.exchange(&fields).await.status(),
            Some(expected),
            "HTTP/3: {case}"
        );
        assert_eq!(
            http3.exchange(VALID).await.status(),
            Some(200),
            "HTTP/3 after {case}"
        );
        let mut http2 = Http2::connect(&running).await;
        assert_eq!(
            http2.exchange(&fields).await.status(),
            Some(expected),
            "HTTP/2: {case}"
        );
        assert_eq!(
            http2.exchange(VALID).await.status(),
            Some(200),
            "HTTP/2 after {case}"
        );
    }
}
