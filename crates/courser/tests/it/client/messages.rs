//! The bytes of requests over HTTP/1.1, and what they mean over later versions.

use courser::client::{Error, ErrorKind, HttpVersion};
use http::{HeaderName, Method, Request, header};
use http_body_util::{Empty, Full, StreamBody};

use super::raw::Raw;
use super::server::{Content, Protocols, full, service};
use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

fn plain_client() -> Client {
    let client = Client::builder().proxy(Proxy::Direct).decompress(false);
    client.build().expect("a client")
}

/// Returns content whose length is unknown before its end.
fn stream(
    text: &'static str,
) -> impl http_body::Body<Data = Bytes, Error = std::io::Error> + Send + 'static {
    let frame = Ok(http_body::Frame::data(Bytes::from_static(text.as_bytes())));
    StreamBody::new(futures_util::stream::iter([frame]))
}

fn request<B>(method: &Method, url: &str, fields: &[(HeaderName, &str)], body: B) -> Request<B> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in fields {
        request = request.header(name, *value);
    }
    request.body(body).expect("a request")
}

async fn send<B>(client: &Client, request: Request<B>) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    within(client.send(request)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_of_unknown_length_is_chunked_with_every_method() {
    for method in [
        Method::GET,
        Method::HEAD,
        Method::DELETE,
        Method::OPTIONS,
        Method::POST,
        Method::from_bytes(b"QUERY").expect("a token"),
    ] {
        let mut server = Raw::start(b"0\r\n\r\n", &[OK]).await;
        let sent = request(&method, &server.url("/x"), &[], stream("abc"));
        send(&plain_client(), sent).await.expect("a response");
        let seen = server.request().await;
        assert!(
            seen.starts_with(&format!("{method} /x HTTP/1.1\r\nhost: ")),
            "{seen}"
        );
        assert!(
            seen.ends_with("\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            "{method}: {seen}"
        );
        assert!(!seen.contains("content-length"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_of_known_length_has_content_length_with_every_method() {
    for method in [Method::GET, Method::HEAD, Method::DELETE, Method::POST] {
        let mut server = Raw::start(b"abc", &[OK]).await;
        let body = Full::new(Bytes::from_static(b"abc"));
        let sent = request(&method, &server.url("/"), &[], body);
        send(&plain_client(), sent).await.expect("a response");
        let seen = server.request().await;
        assert!(
            seen.ends_with("\r\ncontent-length: 3\r\n\r\nabc"),
            "{method}: {seen}"
        );
        assert!(!seen.contains("transfer-encoding"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_that_define_content_report_that_there_is_none() {
    for (method, length) in [
        (Method::POST, true),
        (Method::PUT, true),
        (Method::PATCH, true),
        (Method::GET, false),
        (Method::DELETE, false),
    ] {
        let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
        let sent = request(&method, &server.url("/"), &[], Empty::<Bytes>::new());
        send(&plain_client(), sent).await.expect("a response");
        let seen = server.request().await;
        assert_eq!(seen.contains("content-length: 0"), length, "{seen}");
        assert!(!seen.contains("transfer-encoding"), "{seen}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_is_the_first_field_and_the_only_host() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let fields = [
        (header::ACCEPT, "*/*"),
        (header::HOST, "a.test"),
        (header::HOST, "b.test"),
    ];
    let sent = request(
        &Method::GET,
        &server.url("/x?y=z"),
        &fields,
        Empty::<Bytes>::new(),
    );
    send(&plain_client(), sent).await.expect("a response");
    let seen = server.request().await;
    assert_eq!(
        seen,
        "GET /x?y=z HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\n\r\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_information_and_fragments_stay_out_of_requests() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let url = format!("http://user:secret@127.0.0.1:{}/x#part", server.port);
    let fields = [(header::REFERER, "http://user:secret@a.test/y#part")];
    let sent = request(&Method::GET, &url, &fields, Empty::<Bytes>::new());
    send(&plain_client(), sent).await.expect("a response");
    let seen = server.request().await;
    assert!(!seen.contains("secret") && !seen.contains("part"), "{seen}");
    assert!(seen.contains("referer: http://a.test/y\r\n"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn te_is_listed_in_connection_and_is_never_chunked() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let fields = [(header::TE, "chunked, trailers")];
    let sent = request(
        &Method::GET,
        &server.url("/"),
        &fields,
        Empty::<Bytes>::new(),
    );
    send(&plain_client(), sent).await.expect("a response");
    let seen = server.request().await;
    assert!(
        seen.contains("\r\nte: trailers\r\n") && seen.contains("\r\nconnection: TE\r\n"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upgrade_is_listed_in_connection_and_nothing_is_expected_without_content() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let fields = [(header::UPGRADE, "x"), (header::EXPECT, "100-continue")];
    let sent = request(
        &Method::GET,
        &server.url("/"),
        &fields,
        Empty::<Bytes>::new(),
    );
    send(&plain_client(), sent).await.expect("a response");
    let seen = server.request().await;
    assert!(seen.contains("\r\nconnection: upgrade\r\n"), "{seen}");
    assert!(!seen.contains("expect"), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trace_requests_have_neither_content_nor_credentials() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let client = plain_client();
    let with_content = request(&Method::TRACE, &server.url("/"), &[], stream("abc"));
    let error = send(&client, with_content).await.expect_err("content");
    assert_eq!(error.kind(), ErrorKind::Send, "{error}");
    for name in [
        header::AUTHORIZATION,
        header::COOKIE,
        header::PROXY_AUTHORIZATION,
    ] {
        let text = name.to_string();
        let fields = [(name, "secret")];
        let sent = request(
            &Method::TRACE,
            &server.url("/"),
            &fields,
            Empty::<Bytes>::new(),
        );
        let error = send(&client, sent).await.expect_err("a credential");
        assert!(error.to_string().contains(&text), "{error}");
    }
    let sent = request(&Method::TRACE, &server.url("/"), &[], Empty::<Bytes>::new());
    send(&client, sent).await.expect("a response");
    assert!(server.request().await.starts_with("TRACE / HTTP/1.1\r\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_can_concern_the_whole_server() {
    let mut server = Raw::start(b"\r\n\r\n", &[OK]).await;
    let uri = || {
        let authority = format!("127.0.0.1:{}", server.port);
        let uri = http::Uri::builder().scheme("http").authority(authority);
        uri.path_and_query("*").build().expect("a URI")
    };
    let client = plain_client();
    let get = Request::get(uri()).body(Empty::<Bytes>::new());
    let error = send(&client, get.expect("a request")).await;
    assert_eq!(error.expect_err("not for GET").kind(), ErrorKind::Send);
    let options = Request::options(uri()).body(Empty::<Bytes>::new());
    send(&client, options.expect("a request"))
        .await
        .expect("a response");
    let seen = server.request().await;
    assert!(
        seen.starts_with("OPTIONS * HTTP/1.1\r\nhost: 127"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_of_the_caller_becomes_the_authority_beyond_http1() {
    let seen = service(|request: Request<Content>| async move {
        let seen = format!(
            ":authority {:?}\n{:?}",
            request.uri().authority(),
            request.headers()
        );
        Response::new(full(seen))
    });
    let server = Server::start(Protocols::Both, seen).await;
    for version in [HttpVersion::Http2, HttpVersion::Http3Only] {
        let client = builder(&server).version(version).build().expect("a client");
        let url = server.url("/headers");
        let fields = [
            (header::HOST, "other.test"),
            (header::TE, "gzip, trailers"),
            (header::CONNECTION, "keep-alive"),
        ];
        let sent = request(&Method::GET, &url, &fields, Empty::<Bytes>::new());
        let seen = text(send(&client, sent).await.expect("a response")).await;
        assert!(
            seen.starts_with(":authority Some(other.test)\n"),
            "{version:?}: {seen}"
        );
        assert!(!seen.contains("\"host\""), "{version:?}: {seen}");
        assert!(!seen.contains("\"connection\""), "{version:?}: {seen}");
        assert!(seen.contains("\"te\": \"trailers\""), "{version:?}: {seen}");
    }
}
