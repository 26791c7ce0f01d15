//! Rules of RFC 9112 and RFC 9110 that a server of HTTP/1.1 keeps, tested by bytes.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use courser::server::Protocol;

use super::client::{Client, text};
use super::raw::{over_http1, status_of};
use super::{Running, start, within};

/// Answers with what it has received: method, fields and content.
async fn echo(request: Request) -> Response {
    let status = request.uri().path().trim_start_matches('/').parse();
    let (head, body) = request.into_parts();
    let content = match body.collect().await {
        Ok(content) => String::from_utf8_lossy(&content.to_bytes()).into_owned(),
        Err(_) => "broken".to_owned(),
    };
    let text = format!(
        "<{} {:?} {content}>",
        head.method,
        head.headers.keys().collect::<Vec<_>>()
    );
    let response = Response::builder().status(status.unwrap_or(200));
    response.body(Body::from(text)).expect("a response")
}

fn echoing() -> Running {
    start(Router::new().fallback(echo))
}

/// Completes the lines of a request with a host and the end of the connection.
fn closing(lines: &str) -> String {
    lines.replacen('\n', "\nhost: localhost\r\nconnection: close\r\n", 1)
}

/// Invalid requests, with the status of their response. The connection ends after it.
const REFUSED: &[(u16, &str)] = &[
    // RFC 9110 §5.5, RFC 9112 §2.2: NUL and bare CR in a value.
    (400, "GET / HTTP/1.1\r\nx: a\0b\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nx: a\rb\r\n\r\n"),
    // RFC 9112 §2.2: whitespace before the first field.
    (400, "GET / HTTP/1.1\r\n x: a\r\n\r\n"),
    // RFC 9112 §3: invalid request lines.
    (400, "GET  / HTTP/1.1\r\n\r\n"),
    (400, "GET /\r\n\r\n"),
    (400, "GET / HTTP/1.1 \r\n\r\n"),
    (400, "G(T / HTTP/1.1\r\n\r\n"),
    (400, "\x16\x03\x01 / HTTP/1.1\r\n\r\n"),
    // RFC 9112 §5, §5.1: no colon, no name, whitespace before the colon.
    (400, "GET / HTTP/1.1\r\nname\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\n: a\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nname : a\r\n\r\n"),
    // RFC 9112 §5.2: a folded line.
    (400, "GET / HTTP/1.1\r\nname: a\r\n b\r\n\r\n"),
    // RFC 9110 §8.6, RFC 9112 §6.3: lengths that are no number, or differ.
    (400, "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\na"),
    (
        400,
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    ),
    (
        400,
        "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
    ),
    // RFC 9112 §6.3: a last coding other than chunked.
    (400, "POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n"),
    (
        400,
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
    ),
    // RFC 9112 §6.1: a coding that is not understood.
    (
        501,
        "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    // RFC 9112 §6.1: HTTP/1.0 has no transfer codings.
    (
        400,
        "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_refused() {
    let running = echoing();
    for (status, request) in REFUSED {
        // A host in front of the fields would hide the first line.
        let request = match request.contains("\r\n x") {
            true => (*request).to_owned(),
            false => request.replacen("\r\n\r\n", "\r\nhost: localhost\r\n\r\n", 1),
        };
        let request = match status {
            501 => request.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1),
            _ => request,
        };
        let response = over_http1(&running, request.as_bytes()).await;
        assert_eq!(
            status_of(&response),
            Some(*status),
            "{request:?}: {response}"
        );
    }
    let (all, refused) = (running.handle.stats().http1.requests, 1);
    assert_eq!(
        all, refused,
        "only the unknown coding has reached the admission"
    );
}

/// Valid requests, with a part of their response.
const ACCEPTED: &[(&str, &str)] = &[
    // RFC 9112 §2.2: an empty line before the request.
    ("<GET ", "\r\nGET / HTTP/1.1\r\n\r\n"),
    // RFC 9112 §3.1, RFC 9110 §9.1: methods are compared with regard to case.
    ("<get ", "get / HTTP/1.1\r\n\r\n"),
    ("<M-SEARCH ", "M-SEARCH / HTTP/1.1\r\n\r\n"),
    // RFC 9110 §5.1: names are not.
    (
        " content>",
        "POST / HTTP/1.1\r\nCoNtEnT-LeNgTh: 7\r\n\r\ncontent",
    ),
    // RFC 9112 §7, §7.1, §7.1.1: chunks, with extensions.
    (
        " content>",
        "POST / HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3\r\ncon\r\n4;x=\"y\"\r\ntent\r\n0\r\n\r\n",
    ),
    // RFC 9112 §7.1.2, RFC 9110 §6.5: trailers do not become fields.
    (
        "\"transfer-encoding\"] a>",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\ncookie: c\r\nx-user: u\r\n\r\n",
    ),
    // RFC 9110 §7.8: HTTP/1.0 has no Upgrade.
    (
        "HTTP/1.0 200 ",
        "GET / HTTP/1.0\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ),
    // RFC 9110 §10.1.1: nor 100-continue.
    (
        "HTTP/1.0 200 ",
        "POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\na",
    ),
    // RFC 9112 §4: the space is sent without a reason.
    ("HTTP/1.1 299 ", "GET /299 HTTP/1.1\r\n\r\n"),
    // RFC 9112 §7.1, §7.1.1: sizes that overflow, and content after a chunk.
    (
        " broken>",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\na\r\n0\r\n\r\n",
    ),
    (
        " broken>",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    ),
    (
        " broken>",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusual_requests_are_processed() {
    let running = echoing();
    for (expected, request) in ACCEPTED {
        let request = match request.strip_prefix("\r\n") {
            Some(request) => format!("\r\n{}", closing(request)),
            None => closing(request),
        };
        let response = over_http1(&running, request.as_bytes()).await;
        assert!(response.contains(expected), "{request:?}: {response}");
        assert!(
            !response.contains("HTTP/1.1 100"),
            "{request:?}: {response}"
        );
        assert!(!response.contains("x-user"), "{request:?}: {response}");
    }
}

/// RFC 9112 §3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_targets_are_accepted_and_longer_ones_are_414() {
    let running = echoing();
    // A target that does not arrive at once fills the buffer before its end is known.
    for (len, expected) in [(8_000, &[200][..]), (40_000, &[200]), (65_600, &[414, 431])] {
        let request = closing(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(len)));
        let response = over_http1(&running, request.as_bytes()).await;
        let status = status_of(&response).expect("a status");
        assert!(expected.contains(&status), "{len}: {status}");
    }
}

/// RFC 9112 §7.1.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_are_limited() {
    let running = echoing();
    let trailers = "x: y\r\n".repeat(20_000);
    let request = closing(&format!(
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n{trailers}\r\n"
    ));
    let response = over_http1(&running, request.as_bytes()).await;
    assert!(response.contains(" broken>"), "{response}");
}

/// RFC 9110 §9.3.2, §15.3.5, §15.3.6, §15.4.5, RFC 9112 §6.1, §6.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_without_content_end_with_their_fields() {
    let running = echoing();
    for (request, has_length) in [
        ("HEAD / HTTP/1.1\r\n\r\n", true),
        ("GET /204 HTTP/1.1\r\n\r\n", false),
        ("GET /304 HTTP/1.1\r\n\r\n", true),
    ] {
        let response = over_http1(&running, closing(request).as_bytes()).await;
        assert!(response.ends_with("\r\n\r\n"), "{request}: {response}");
        assert!(
            !response.contains("transfer-encoding"),
            "{request}: {response}"
        );
        let is_announced = response.contains("content-length: ");
        assert!(has_length || !is_announced, "{request}: {response}");
    }
    for protocol in Protocol::ALL {
        let address = running.handle.local_addr();
        let client = Client::connect(protocol, address, &running.identity).await;
        let mut client = client.expect("a server");
        for (path, allowed) in [("/204", &[None][..]), ("/205", &[None, Some("0")])] {
            let response = within(client.get(path)).await.expect("a response");
            let length = response.headers().get("content-length");
            let length = length.map(|length| length.to_str().expect("digits"));
            assert!(allowed.contains(&length), "{protocol} {path}: {length:?}");
            assert_eq!(within(text(response)).await, "", "{protocol} {path}");
        }
    }
    let reset = over_http1(&running, closing("GET /205 HTTP/1.1\r\n\r\n").as_bytes()).await;
    assert!(
        reset.ends_with("\r\n\r\n") && reset.contains("content-length: 0"),
        "{reset}"
    );
}

/// RFC 9112 §9.3, §9.3.2, §9.6, RFC 9110 §10.1.1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_persist_as_the_version_says() {
    let running = echoing();
    let get = |version: &str, connection: &str| {
        let line = match connection {
            "" => String::new(),
            value => format!("connection: {value}\r\n"),
        };
        format!("GET / HTTP/{version}\r\nhost: localhost\r\n{line}\r\n")
    };
    for (first, responses) in [
        (get("1.1", ""), 2),
        (get("1.1", "close"), 1),
        (get("1.0", ""), 1),
        (get("1.0", "keep-alive"), 2),
    ] {
        let both = format!("{first}{}", get("1.1", "close"));
        let seen = over_http1(&running, both.as_bytes()).await;
        assert_eq!(
            seen.matches("HTTP/1.").count(),
            responses,
            "{first}: {seen}"
        );
        let announces = first.contains("keep-alive") || first.contains("close");
        assert!(
            !announces || seen.contains("connection: "),
            "{first}: {seen}"
        );
    }
    let post = "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\na";
    let seen = over_http1(&running, closing(post).as_bytes()).await;
    let versions: Vec<_> = seen
        .match_indices("HTTP/1.1 ")
        .map(|(at, _)| &seen[at + 9..at + 12])
        .collect();
    assert!(versions == ["100", "200"] || versions == ["200"], "{seen}");
}

/// RFC 9112 §6.1: a request with both lengths is an attempt to smuggle another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_lengths_end_the_connection() {
    let (sender, mut methods) = mpsc::unbounded_channel();
    let note = |State(sender): State<mpsc::UnboundedSender<String>>, request: Request| async move {
        let method = request.method().to_string();
        let content = request.into_body().collect().await;
        sender.send(method).expect("the test waits");
        content
            .map_or(0, |content| content.to_bytes().len())
            .to_string()
    };
    let running = start(Router::new().fallback(note).with_state(sender));
    let request = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\
                   transfer-encoding: chunked\r\n\r\n0\r\n\r\n\
                   DELETE / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let response = over_http1(&running, request.as_bytes()).await;
    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    let mut seen = Vec::new();
    while let Ok(method) = methods.try_recv() {
        seen.push(method);
    }
    assert!(!seen.contains(&"DELETE".to_owned()), "{seen:?}");
}
