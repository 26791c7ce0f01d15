use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use courser::h3::OnInterim;
use courser::server::Protocol;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use http_body_util::{Full, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::client::{BoxBody, Client, request};
use super::serving::Serving;
use super::within;
use crate::common::refusal;

/// An upstream server that describes the request and returns its content and trailers.
async fn backend(http2: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = hyper::service::service_fn(|request| async {
                Ok::<_, Infallible>(respond(request).await)
            });
            let io = TokioIo::new(stream);
            tokio::spawn(async move {
                if http2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    drop(server.serve_connection(io, service).await);
                } else {
                    let server = hyper::server::conn::http1::Builder::new();
                    drop(server.serve_connection(io, service).with_upgrades().await);
                }
            });
        }
    });
    address
}

async fn respond(mut request: Request<Incoming>) -> Response<BoxBody> {
    let full = |text: String| {
        Full::new(Bytes::from(text))
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    match request.uri().path() {
        "/echo" => {
            let collected = request.into_body().collect().await.expect("a body");
            let trailers = collected.trailers().cloned().unwrap_or_default();
            let frames = [
                Ok(Frame::data(collected.to_bytes())),
                Ok(Frame::trailers(trailers)),
            ];
            let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
            Response::builder()
                .header("trailer", "x-sum")
                .body(body)
                .expect("a response")
        }
        "/slow" => std::future::pending().await,
        "/up" => {
            let upgraded = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgraded.await.expect("upgraded"));
                let mut word = [0; 4];
                io.read_exact(&mut word).await.expect("four bytes");
                word.reverse();
                io.write_all(&word).await.expect("open");
                io.shutdown().await.expect("open");
            });
            let response = Response::builder()
                .status(101)
                .header("connection", "upgrade");
            response
                .header("upgrade", "reverse")
                .body(full(String::new()))
                .expect("a response")
        }
        _ => {
            let mut fields: Vec<String> = request
                .headers()
                .iter()
                .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
                .collect();
            fields.sort();
            let text = format!(
                "{} {}\n{}\n",
                request.method(),
                request.uri(),
                fields.join("\n")
            );
            let response = Response::builder()
                .header("connection", "x-hop")
                .header("x-hop", "1");
            response
                .header("x-kept", "1")
                .body(full(text))
                .expect("a response")
        }
    }
}

pub(crate) async fn start(scheme: &str, arguments: &[&str]) -> Serving {
    let url = format!("{scheme}://{}", backend(scheme == "h2c").await);
    Serving::start(&[&["--proxy", &url], arguments].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_forwarded_with_the_address_of_the_client() {
    let serving = start("http", &[]).await;
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        let fields = [
            ("x-mine", "1"),
            ("x-forwarded-for", "6.6.6.6"),
            ("te", "trailers"),
        ];
        let answer = client.get("/path?a=b%20c", &fields).await;
        let text = answer.text();
        assert!(
            text.starts_with("GET /path?a=b%20c\n"),
            "{protocol}: {text}"
        );
        for line in [
            "x-mine: 1",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-proto: https",
            "x-forwarded-host: localhost",
            "forwarded: for=127.0.0.1;host=\"localhost\";proto=https",
            "host: localhost",
        ] {
            assert!(
                text.lines().any(|seen| seen == line),
                "{protocol}: no {line} in {text}"
            );
        }
        assert!(
            !text.contains("6.6.6.6") && !text.contains("transfer-encoding"),
            "{protocol}: {text}"
        );
        assert_eq!(answer.header("x-kept"), "1");
        assert_eq!(answer.header("x-hop"), "", "{protocol}");
        let via = answer.header("via");
        assert!(via.starts_with("1.1 courser-"), "{protocol}: {via}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_and_trailers_are_forwarded_in_both_directions() {
    for scheme in ["http", "h2c"] {
        let serving = start(scheme, &["--no-compress"]).await;
        for protocol in Protocol::ALL {
            let mut client = serving.client(protocol).await;
            let content = Bytes::from(vec![b'x'; 3_000_000]);
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", HeaderValue::from_static("42"));
            let frames = [
                Ok(Frame::data(content.clone())),
                Ok(Frame::trailers(trailers)),
            ];
            let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
            let fields = [("te", "trailers"), ("trailer", "x-sum")];
            let post = request(Method::POST, "/echo", &fields, "").map(|_| body);
            let answer = within(client.send(post)).await.expect("an answer");
            assert!(
                answer.content == content,
                "{scheme} {protocol}: {} bytes",
                answer.content.len()
            );
            let sum = answer
                .trailers
                .as_ref()
                .and_then(|trailers| trailers.get("x-sum"));
            assert_eq!(
                sum,
                Some(&HeaderValue::from_static("42")),
                "{scheme} {protocol}"
            );
        }
    }
}

/// Interim responses (RFC 9110 §15.2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_forwarded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    // The response is sent only after the test has seen the interim responses.
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let (proceed, mut may_proceed) = tokio::sync::mpsc::channel::<()>(1);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await.expect("open");
            let hints = "HTTP/1.1 100 Continue\r\n\r\n\
                HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nconnection: x-hop\r\nx-hop: 1\r\n\r\n\
                HTTP/1.1 103 Early Hints\r\nlink: </b>\r\n\r\n";
            stream.write_all(hints.as_bytes()).await.expect("open");
            may_proceed.recv().await;
            // Another interim response is in the same segment.
            let rest = "HTTP/1.1 102 Processing\r\nlink: </c>\r\n\r\n\
                HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi";
            stream.write_all(rest.as_bytes()).await.expect("open");
        }
    });
    let serving = Serving::start(&["--proxy", &url]);
    let mut request = request(Method::GET, "/", &[], "");
    request
        .extensions_mut()
        .insert(OnInterim::new(move |interim| {
            let _ = sender.send(interim);
        }));
    let mut client = serving.client(Protocol::Http3).await;
    let reading = async {
        let mut links = Vec::new();
        for status in [103, 103, 102] {
            let interim = received.recv().await.expect("an interim response");
            assert_eq!(interim.status().as_u16(), status);
            let fields = interim.headers();
            let via = fields["via"].to_str().expect("text");
            assert!(via.starts_with("1.1 courser-"), "{via}");
            assert_eq!(fields.len(), 2, "{fields:?}");
            links.push(fields["link"].to_str().expect("text").to_owned());
            if links.len() == 2 {
                proceed.send(()).await.expect("the server waits");
            }
        }
        assert_eq!(links, ["</a>", "</b>", "</c>"]);
    };
    let (answer, ()) = within(async { tokio::join!(client.send(request), reading) }).await;
    let answer = answer.expect("an answer");
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (200, "hi")
    );
    assert!(
        received.recv().await.is_none(),
        "an unexpected interim response"
    );
    // Other clients get the final response only.
    for protocol in [Protocol::Http1, Protocol::Http2] {
        proceed.send(()).await.expect("the server waits");
        let answer = serving.client(protocol).await.get("/", &[]).await;
        assert_eq!(answer.text(), "hi", "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrades_are_forwarded() {
    let serving = start("http", &["--proxy-upgrade", "reverse"]).await;
    let Client::Http1(mut send) = serving.client(Protocol::Http1).await else {
        panic!("not HTTP/1.1")
    };
    let fields = [
        ("connection", "upgrade"),
        ("upgrade", "reverse"),
        ("host", "localhost"),
    ];
    let mut up = request(Method::GET, "/up", &fields, "");
    *up.uri_mut() = "/up".parse().expect("a path");
    let response = within(send.send_request(up)).await.expect("an answer");
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()["upgrade"], "reverse");
    let mut io = TokioIo::new(
        within(hyper::upgrade::on(response))
            .await
            .expect("upgraded"),
    );
    io.write_all(b"abcd").await.expect("open");
    let mut answer = String::new();
    within(io.read_to_string(&mut answer)).await.expect("open");
    assert_eq!(answer, "dcba");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absent_and_slow_upstream_servers_are_reported() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", closed.local_addr().expect("bound"));
    drop(closed);
    let serving = Serving::start(&["--proxy", &url]);
    let answer = serving.client(Protocol::Http3).await.get("/", &[]).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (502, "502 Bad Gateway\n")
    );
    let serving = start("http", &["--proxy-timeout", "0.3"]).await;
    let answer = serving
        .client(Protocol::Http3)
        .await
        .get("/slow", &[])
        .await;
    assert_eq!(answer.status, 504);
}

/// The limit of a second begins at the end of an upload that takes three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_uploads_do_not_time_out() {
    let serving = start("http", &["--proxy-timeout", "1"]).await;
    let all = Protocol::ALL.map(|protocol| {
        let serving = &serving;
        async move {
            let pieces = futures_util::stream::iter(0..30).then(|_| async {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                Ok(Frame::data(Bytes::from_static(b"0123456789")))
            });
            let mut upload = request(Method::POST, "/echo", &[], "");
            *upload.body_mut() = StreamBody::new(pieces).boxed_unsync();
            let mut client = serving.client(protocol).await;
            let answer = within(client.send(upload)).await.expect("an answer");
            assert_eq!((answer.status.as_u16(), answer.content.len()), (200, 300));
        }
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upstream_servers_that_stall_within_a_response_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await.expect("open");
            let begun = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345";
            stream.write_all(begun.as_bytes()).await.expect("open");
            kept.push(stream);
        }
    });
    let serving = Serving::start(&["--proxy", &url, "--proxy-body-timeout", "0.3"]);
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        let response = within(client.begin(request(Method::GET, "/", &[], ""))).await;
        let response = response.expect("an answer");
        assert_eq!(response.status(), 200, "{protocol}");
        let content = within(response.into_body().collect()).await;
        assert!(
            content.is_err(),
            "{protocol}: an incomplete response ended without an error"
        );
    }
}

/// CGI reads an underscore and a hyphen as the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_underscores_are_forwarded_only_with_the_flag() {
    for (flags, is_forwarded) in [(&[][..], false), (&["--proxy-underscores"], true)] {
        let serving = start("h2c", flags).await;
        let fields = [("user_id", "1"), ("x_forwarded_for", "6.6.6.6")];
        let mut client = serving.client(Protocol::Http3).await;
        let text = client.get("/", &fields).await.text();
        assert_eq!(text.contains("user_id: 1"), is_forwarded, "{text}");
        assert!(!text.contains("6.6.6.6"), "{text}");
    }
}

#[test]
fn protocols_that_bypass_the_proxy_cannot_be_listed() {
    let arguments = [
        "serve",
        "--proxy",
        "http://localhost:1",
        "--proxy-upgrade",
        "h2c",
    ];
    let error = refusal(&arguments);
    assert!(error.contains("h2c://HOST"), "{error}");
}

/// Compressed sizes depend on the rest of the response too (BREACH).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_are_compressed_only_with_the_flag() {
    for (flags, coding) in [(&[][..], ""), (&["--proxy-compress"], "gzip")] {
        let serving = start("http", flags).await;
        let fields = [("accept-encoding", "gzip"), ("x-long", &*"x".repeat(500))];
        let mut client = serving.client(Protocol::Http2).await;
        let answer = client.get("/", &fields).await;
        assert_eq!(answer.header("content-encoding"), coding, "{flags:?}");
    }
}

/// One byte every 100 ms, for longer than the test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_send_too_slowly_get_408() {
    let serving = start("http", &["--body-rate", "1000", "--body-grace", "0.3"]).await;
    for protocol in Protocol::ALL {
        let drops = futures_util::stream::repeat(Bytes::from_static(b"x")).then(|drop| async {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            Ok(Frame::data(drop))
        });
        let mut slow = request(Method::POST, "/slow", &[], "");
        *slow.body_mut() = StreamBody::new(drops).boxed_unsync();
        let mut client = serving.client(protocol).await;
        let answer = within(client.begin(slow)).await.expect("an answer");
        assert_eq!(answer.status(), 408, "{protocol}");
    }
}
