//! Responses that no well-behaved server sends, or that are larger than most.

use courser::client::{Error, ErrorKind, HttpVersion};
use http::{Method, Request, header};
use http_body_util::{Empty, Full};

use super::raw::{GOAWAY, REFUSED_STREAM, RST_STREAM, Raw, RawHttp2, frame, header_section};
use super::*;

fn plain_client() -> Client {
    let client = Client::builder().proxy(Proxy::Direct);
    client.build().expect("a client")
}

async fn get(url: &str) -> Result<Response<Body>, Error> {
    within(plain_client().get(url)).await.map(Into::into)
}

async fn over_http2(server: &RawHttp2, method: Method) -> Result<Response<Body>, Error> {
    let client = Client::builder()
        .platform_roots(false)
        .root(server.certificate.clone())
        .proxy(Proxy::Direct)
        .version(HttpVersion::Http2)
        .build()
        .expect("a client");
    let request = Request::builder().method(method).uri(server.url("/"));
    let request = request.body(Empty::<Bytes>::new()).expect("a request");
    within(client.send(request)).await
}

/// Makes text that lives as long as the test.
fn leaked(text: String) -> &'static [u8] {
    Box::leak(text.into_bytes().into_boxed_slice())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfer_codings_other_than_chunked_are_errors_over_http1() {
    for coding in ["gzip, chunked", "gzip"] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        let answers = Box::leak(Box::new([leaked(answer)]));
        let server = Raw::start(b"\r\n\r\n", answers).await;
        let error = get(&server.url("/")).await.expect_err(coding);
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(error.to_string().contains("gzip"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switching_protocols_without_a_request_is_an_error() {
    const SWITCH: &[u8] =
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let server = Raw::start(b"\r\n\r\n", &[SWITCH]).await;
    let error = get(&server.url("/")).await.expect_err("not requested");
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_limited_over_http1_and_http2() {
    const END: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let interim = |count: usize, size: usize| {
        let one = format!(
            "HTTP/1.1 103 Early Hints\r\nx: {}\r\n\r\n",
            "y".repeat(size)
        );
        let answers = Box::leak(Box::new([leaked(one.repeat(count) + END)]));
        Raw::start(b"\r\n\r\n", answers)
    };
    for (count, size, is_accepted) in [
        (8, 10, true),
        (9, 10, false),
        (100_000, 10, false),
        (2, 200_000, false),
    ] {
        let server = interim(count, size).await;
        match get(&server.url("/")).await {
            Ok(response) => {
                assert!(is_accepted, "{count} of {size}");
                assert_eq!(text(response).await, "ok");
            }
            Err(error) => {
                assert!(!is_accepted, "{error}");
                assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
                assert!(error.to_string().contains("interim"), "{error}");
            }
        }
    }
    let few = RawHttp2::start(|_, id| {
        let mut frames = header_section(id, false, &[(":status", "103")]).repeat(8);
        frames.extend(header_section(id, true, &[(":status", "204")]));
        frames
    })
    .await;
    let response = over_http2(&few, Method::GET).await.expect("a response");
    assert_eq!(response.status(), 204);
    let many =
        RawHttp2::start(|_, id| header_section(id, false, &[(":status", "103")]).repeat(5000));
    let many = many.await;
    let error = over_http2(&many, Method::GET).await.expect_err("too many");
    assert!(error.to_string().contains("interim"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_header_sections_are_accepted_up_to_a_limit() {
    let fields = |count: usize, size: usize| {
        let lines: String = (0..count)
            .map(|number| format!("x-{number}: {}\r\n", "y".repeat(size)))
            .collect();
        let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok");
        let answers = Box::leak(Box::new([leaked(answer)]));
        Raw::start(b"\r\n\r\n", answers)
    };
    for (count, size) in [(1000, 10), (1, 250_000), (2, 130_000)] {
        let server = fields(count, size).await;
        let response = get(&server.url("/")).await.expect("a response");
        assert_eq!(response.headers().len(), count + 1);
        assert_eq!(text(response).await, "ok");
    }
    for (count, size) in [(1100, 1), (1, 310_000)] {
        let server = fields(count, size).await;
        let error = get(&server.url("/")).await.expect_err("too large");
        assert!(error.to_string().contains("300 KiB"), "{error}");
    }
    let accepted = RawHttp2::start(|_, id| {
        let value = "y".repeat(250_000);
        header_section(id, true, &[(":status", "204"), ("x", &value)])
    })
    .await;
    let response = over_http2(&accepted, Method::GET)
        .await
        .expect("a response");
    assert_eq!(response.headers()["x"].len(), 250_000);
    let refused = RawHttp2::start(|_, id| {
        let value = "y".repeat(310_000);
        header_section(id, true, &[(":status", "204"), ("x", &value)])
    })
    .await;
    let error = over_http2(&refused, Method::GET)
        .await
        .map(|response| response.status());
    let error = error.expect_err("too large");
    assert!(error.to_string().contains("300 KiB"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_header_sections_are_accepted_over_http3() {
    use super::server::{Protocols, empty, service};
    let sizes = service(|request: Request<_>| async move {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let (count, size) = path.split_once('x').expect("two numbers");
        let [count, size] = [count, size].map(|text| text.parse().expect("a number"));
        let mut response = Response::new(empty());
        for number in 0..count {
            let name = header::HeaderName::try_from(format!("x-{number}")).expect("a name");
            let value = header::HeaderValue::try_from("y".repeat(size)).expect("a value");
            response.headers_mut().insert(name, value);
        }
        response
    });
    let server = Server::start(Protocols::Quic, sizes).await;
    let client = builder(&server).version(HttpVersion::Http3Only).build();
    let client = client.expect("a client");
    for path in ["/1000x10", "/1x250000"] {
        let response = within(client.get(server.url(path))).await;
        response.expect("a response");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folded_lines_and_strange_status_lines_are_read() {
    for (answer, status, value) in [
        (
            &b"HTTP/1.1 200\r\nx: a\r\n\tb\r\ncontent-length: 0\r\n\r\n"[..],
            200,
            "a b",
        ),
        (
            b"HTTP/1.1 299 \xe4\xf6\r\nX:  a b \r\ncontent-length: 0\r\n\r\n",
            299,
            "a b",
        ),
        (b"HTTP/1.0 599 ?\r\nx: a b\r\n\r\n", 599, "a b"),
    ] {
        let answers = Box::leak(Box::new([answer]));
        let server = Raw::start(b"\r\n\r\n", answers).await;
        let response = get(&server.url("/")).await.expect("a response");
        assert_eq!(response.status(), status);
        let seen = response.headers()["x"].to_str().expect("text");
        assert_eq!(seen.split_whitespace().collect::<Vec<_>>().join(" "), value);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_expectation_is_dropped_once() {
    const FAILED: &[u8] =
        b"HTTP/1.1 417 Expectation Failed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let mut server = Raw::start(b"\r\n\r\n", &[FAILED, OK]).await;
    let request = Request::post(server.url("/"))
        .header(header::EXPECT, "100-continue")
        .body(Full::new(Bytes::from_static(b"abc")))
        .expect("a request");
    let response = within(plain_client().send(request)).await;
    assert_eq!(response.expect("a response").status(), 200);
    assert!(server.request().await.contains("expect: 100-continue"));
    assert!(!server.request().await.contains("expect"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_streams_are_repeated_even_if_they_are_not_idempotent() {
    let mut server = RawHttp2::start(|number, id| match number % 2 {
        0 => frame(RST_STREAM, 0, id, &REFUSED_STREAM.to_be_bytes()),
        _ => header_section(id, true, &[(":status", "204")]),
    })
    .await;
    for method in [Method::GET, Method::POST] {
        let response = over_http2(&server, method).await.expect("repeated");
        assert_eq!(response.status(), 204);
    }
    assert!(server.connections() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_after_the_last_one_of_goaway_are_repeated_elsewhere() {
    let mut server = RawHttp2::start(|number, id| match number {
        // The last stream is 0, and there is no error.
        0 => frame(GOAWAY, 0, 0, &[0; 8]),
        _ => header_section(id, true, &[(":status", "204")]),
    })
    .await;
    let response = over_http2(&server, Method::POST).await.expect("repeated");
    assert_eq!(response.status(), 204);
    assert_eq!(server.connections(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_may_have_been_processed_are_not_repeated() {
    const INTERNAL_ERROR: u32 = 2;
    let mut server =
        RawHttp2::start(|_, id| frame(RST_STREAM, 0, id, &INTERNAL_ERROR.to_be_bytes())).await;
    let error = over_http2(&server, Method::POST).await.expect_err("reset");
    assert!(!error.is_unprocessed(), "{error}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_without_content_have_none_whatever_their_fields_say() {
    for (method, head) in [
        (Method::HEAD, "200 OK"),
        (Method::GET, "204 No Content"),
        (Method::GET, "304 Not Modified"),
    ] {
        let interim = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\ncontent-length: 9\r\n\r\n";
        let answer = format!("{interim}HTTP/1.1 {head}\r\ncontent-length: 5\r\n\r\n");
        let answers = Box::leak(Box::new([leaked(answer)]));
        let server = Raw::start(b"\r\n\r\n", answers).await;
        let request = Request::builder().method(method).uri(server.url("/"));
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let response = within(plain_client().send(request)).await;
        let response = response.expect("a response");
        assert!(!response.headers().contains_key("link"), "{head}");
        assert_eq!(text(response).await, "", "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_and_complete_responses_over_http2_are_told_apart() {
    let nameless = RawHttp2::start(|_, id| header_section(id, true, &[("x", "y")])).await;
    let error = over_http2(&nameless, Method::GET).await;
    assert_eq!(error.expect_err("no status").kind(), ErrorKind::Http2);
    // The server has answered and does not want the rest of the request.
    let early = RawHttp2::start(|_, id| {
        let mut frames = header_section(id, true, &[(":status", "204")]);
        frames.extend(frame(RST_STREAM, 0, id, &[0; 4]));
        frames
    })
    .await;
    let response = over_http2(&early, Method::POST).await.expect("complete");
    assert_eq!(response.status(), 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alternatives_of_misdirected_requests_are_ignored() {
    let server = RawHttp2::start(|_, id| {
        let fields = [(":status", "421"), ("alt-svc", "h3=\":9\"; persist=1")];
        header_section(id, true, &fields)
    })
    .await;
    let name = format!("courser-alt-svc-{}", server.port);
    let file = std::env::temp_dir().join(name);
    let client = Client::builder()
        .platform_roots(false)
        .root(server.certificate.clone())
        .proxy(Proxy::Direct)
        .alt_svc_file(&file)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await;
    assert_eq!(response.expect("a response").status(), 421);
    client.save_alt_svc().expect("saved");
    let saved = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    assert!(!saved.contains("h3"), "{saved}");
}
