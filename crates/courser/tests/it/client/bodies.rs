//! Bodies: streams, trailers, codings, time limits.

use std::time::Duration;

use bytes::Bytes;
use courser::client::{ErrorKind, HttpVersion};
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::server::{Content, Protocols, Server, Service, full, service};
use super::{builder, client, collect, text, within};

const ALL: [HttpVersion; 3] = [
    HttpVersion::Http3Only,
    HttpVersion::Http2,
    HttpVersion::Http1,
];

fn frames<S>(stream: S) -> Content
where
    S: futures_util::Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send + 'static,
{
    StreamBody::new(stream).map_err(Into::into).boxed_unsync()
}

/// Returns a service that echoes bodies, including trailers.
fn mirror() -> Service {
    service(|request| async move {
        let mut response = Response::new(request.into_body());
        let announced = HeaderValue::from_static("x-sum");
        response.headers_mut().insert(header::TRAILER, announced);
        response
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_and_trailers_stream_in_both_directions_over_all_protocols() {
    let server = Server::start(Protocols::Both, mirror()).await;
    for version in ALL {
        let client = builder(&server).version(version).build().expect("a client");
        let chunk = Bytes::from(vec![7; 50_000]);
        let count = 100;
        let sent = chunk.clone();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("42"));
        let data = (0..count).map(move |_| Ok(Frame::data(sent.clone())));
        let all = data.chain([Ok(Frame::trailers(trailers))]);
        let request = Request::post(server.url("/"))
            .header(header::TE, "trailers")
            .header(header::TRAILER, "x-sum")
            .body(frames(stream::iter(all)))
            .expect("a request");
        let response = within(client.send(request)).await.expect("answered");
        let collected = within(response.into_body().collect())
            .await
            .expect("a body");
        let trailers = collected.trailers().cloned().unwrap_or_default();
        assert_eq!(
            trailers.get("x-sum"),
            Some(&HeaderValue::from_static("42")),
            "{version:?}"
        );
        assert_eq!(
            collected.to_bytes().len(),
            count * chunk.len(),
            "{version:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_length_is_sent_as_content_length() {
    let server = Server::start(
        Protocols::Both,
        service(|request| async move {
            let length = request.headers().get(header::CONTENT_LENGTH).cloned();
            Response::new(full(format!("{length:?}")))
        }),
    )
    .await;
    for version in ALL {
        let client = builder(&server).version(version).build().expect("a client");
        let request = Request::post(server.url("/"))
            .body(http_body_util::Full::<Bytes>::from("12345"))
            .expect("a request");
        let response = within(client.send(request)).await.expect("answered");
        assert_eq!(collect(response).await, "Some(\"5\")", "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_read_is_not_received() {
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = sent.clone();
    let server = Server::start(
        Protocols::Both,
        service(move |request| {
            let counter = counter.clone();
            let is_other = request.uri().path() == "/other";
            let chunks = (0..4000).map(move |_| {
                counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                Ok(Frame::data(Bytes::from(vec![0; 65_536])))
            });
            async move {
                if is_other {
                    return Response::new(full("other"));
                }
                Response::new(frames(stream::iter(chunks)))
            }
        }),
    )
    .await;
    for version in ALL {
        sent.store(0, std::sync::atomic::Ordering::SeqCst);
        let client = builder(&server).version(version).build().expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        // Gives the server time to continue the response. The client has another connection, because the first one
        // may have no credit left.
        let other = builder(&server).version(version).build().expect("a client");
        for _ in 0..50 {
            let response = within(other.get(server.url("/other"))).await;
            assert_eq!(within(text(response.expect("answered"))).await, "other");
        }
        let chunks = sent.load(std::sync::atomic::Ordering::SeqCst);
        assert!(
            chunks < 400,
            "{version:?}: {chunks} of 4000 chunks, without a reader"
        );
        drop(response);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_content_codings_are_decoded() {
    use tower::Layer as _;
    use tower::Service as _;
    let plain: String = "all of this again and again. ".repeat(1000);
    let content = plain.clone();
    let server = Server::start(
        Protocols::Both,
        service(move |request| {
            let content = content.clone();
            async move {
                let inner = tower::service_fn(move |_: Request<Content>| {
                    let response = Response::new(full(content.clone()));
                    async move { Ok::<_, std::convert::Infallible>(response) }
                });
                let layer = tower_http::compression::CompressionLayer::new();
                let Ok(response) = layer.layer(inner).call(request).await;
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            }
        }),
    )
    .await;
    let client = client(&server);
    let undecoded = builder(&server)
        .decompress(false)
        .build()
        .expect("a client");
    let optional = [
        ("br", cfg!(feature = "brotli")),
        ("zstd", cfg!(feature = "zstd")),
    ];
    let optional = optional.into_iter().filter(|(_, is_built)| *is_built);
    for coding in ["gzip", "deflate"]
        .into_iter()
        .chain(optional.map(|(coding, _)| coding))
    {
        let request = || {
            Request::get(server.url("/"))
                .header(header::ACCEPT_ENCODING, coding)
                .body(courser::h3::Empty)
                .expect("a request")
        };
        let response = within(undecoded.send(request())).await.expect("answered");
        assert_eq!(response.headers()[header::CONTENT_ENCODING], coding);
        assert!(collect(response).await.len() < plain.len() / 10, "{coding}");
        let response = within(client.send(request())).await.expect("answered");
        assert!(
            !response.headers().contains_key(header::CONTENT_ENCODING),
            "{coding}"
        );
        assert_eq!(collect(response).await, plain, "{coding}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_coding_is_an_error_of_its_own() {
    let server = Server::start(
        Protocols::Both,
        service(|_| async {
            let mut response = Response::new(full("this is not gzip at all"));
            let coding = HeaderValue::from_static("gzip");
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, coding);
            response
        }),
    )
    .await;
    let response = within(client(&server).get(server.url("/")))
        .await
        .expect("answered");
    let error = within(response.into_body().collect())
        .await
        .expect_err("not gzip");
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    assert_eq!(error.url(), Some(server.url("/").as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_and_body_length_are_limited() {
    let server = Server::start(
        Protocols::Both,
        service(|request| async move {
            match request.uri().path() {
                // One piece, then nothing.
                "/silent" => Response::new(frames(stream::unfold(0, |state| async move {
                    if state > 0 {
                        std::future::pending::<()>().await;
                    }
                    Some((Ok(Frame::data(Bytes::from_static(b"x"))), state + 1))
                }))),
                "/endless" => Response::new(frames(stream::unfold((), |()| async {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    Some((Ok(Frame::data(Bytes::from_static(b"x"))), ()))
                }))),
                _ => std::future::pending().await,
            }
        }),
    )
    .await;
    for version in ALL {
        let impatient = builder(&server)
            .version(version)
            .read_timeout(Duration::from_secs(1))
            .build()
            .expect("a client");
        let response = within(impatient.get(server.url("/silent")))
            .await
            .expect("a header section");
        let error = within(response.into_body().collect())
            .await
            .expect_err("silence");
        assert!(error.is_timeout(), "{version:?}: {error}");
        let short = builder(&server)
            .version(version)
            .timeout(Duration::from_secs(1))
            .build()
            .expect("a client");
        let response = within(short.get(server.url("/endless")))
            .await
            .expect("a header section");
        let error = within(response.into_body().collect())
            .await
            .expect_err("too long");
        assert!(error.is_timeout(), "{version:?}: {error}");
        let error = within(short.get(server.url("/never")))
            .await
            .expect_err("no header section");
        assert!(
            error.is_timeout() && !error.is_connect(),
            "{version:?}: {error}"
        );
    }
}

/// The URL is that of the last redirect, and of the content after decompression too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_content_name_the_url() {
    let answer = service(|request| async move {
        let path = request.uri().path().to_owned();
        let mut response = Response::new(full("this is not gzip at all, and no JSON"));
        let mut set = |name, value| {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        };
        match path.as_str() {
            "/moved" => {
                set(header::LOCATION, "/lost");
                *response.status_mut() = http::StatusCode::FOUND;
            }
            "/coded" => set(header::CONTENT_ENCODING, "gzip"),
            "/lost" => {
                *response.body_mut() = frames(stream::unfold(0, |state| async move {
                    match state {
                        0 => Some((Ok(Frame::data(Bytes::from_static(b"x"))), 1)),
                        1 => {
                            // The header section must arrive before the stream is reset.
                            tokio::time::sleep(Duration::from_millis(300)).await;
                            Some((Err(std::io::Error::other("broken")), 2))
                        }
                        _ => None,
                    }
                }));
            }
            _ => {}
        }
        response
    });
    let server = Server::start(Protocols::Both, answer).await;
    for version in ALL {
        let client = builder(&server).version(version).build().expect("a client");
        for (asked, answered) in [
            ("/moved", "/lost"),
            ("/lost", "/lost"),
            ("/coded", "/coded"),
        ] {
            let response = within(client.get(server.url(asked)))
                .await
                .expect("answered");
            let error = within(response.bytes()).await.expect_err("no content");
            let expected = server.url(answered);
            assert_eq!(error.url(), Some(expected.as_str()), "{version:?}: {error}");
            assert!(!error.is_retryable(), "a part was received");
        }
        let response = within(client.get(server.url("/large")))
            .await
            .expect("answered");
        let error = within(response.limit(3).bytes())
            .await
            .expect_err("too large");
        assert_eq!(error.url(), Some(server.url("/large").as_str()), "{error}");
    }
}
