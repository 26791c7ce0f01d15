use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use courser::h3;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

use super::{frames, full, get, serve, text, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_answered() {
    let (_pair, client) = serve(|request| async move {
        let seen = format!("{} {}", request.method(), request.uri());
        let mut response = Response::new(full(seen));
        response
            .headers_mut()
            .insert("x-agent", request.headers()["user-agent"].clone());
        response
    })
    .await;
    let mut request = get("/a?b=c");
    request
        .headers_mut()
        .insert("user-agent", "courser".parse().expect("a value"));
    let response = within(client.send(request)).await.expect("answered");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.version(), http::Version::HTTP_3);
    assert_eq!(response.headers()["x-agent"], "courser");
    assert_eq!(response.headers()["content-length"], "27");
    assert_eq!(response.body().size_hint().exact(), Some(27));
    assert_eq!(within(text(response)).await, "GET https://localhost/a?b=c");
}

/// Returns a body that behaves like a file: after its content, one more read on another thread
/// detects the end.
fn file_of(
    len: usize,
    end: impl Future<Output = ()> + Send + 'static,
) -> UnsyncBoxBody<Bytes, std::io::Error> {
    let content = stream::once(async move { Ok(Frame::data(Bytes::from(vec![7; len]))) });
    let end = stream::once(end).filter_map(|()| async { None });
    frames(content.chain(end))
}

/// Gives the server opportunities to continue another response, and time to send it.
async fn pass_time(client: &h3::Client) {
    for _ in 0..50 {
        let response = within(client.send(get("/other"))).await.expect("answered");
        let body = within(response.into_body().collect())
            .await
            .expect("complete");
        assert_eq!(body.to_bytes(), "other");
    }
}

/// A body that exceeds its length is sent only as far as its reader allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlong_body_is_still_subject_to_flow_control() {
    let polled = Arc::new(AtomicUsize::new(0));
    let counted = polled.clone();
    let (_pair, client) = serve(move |request| {
        let counted = counted.clone();
        let is_other = request.uri().path() == "/other";
        let chunk = Bytes::from(vec![7; 10_000]);
        let endless = stream::repeat_with(move || {
            counted.fetch_add(chunk.len(), Ordering::Relaxed);
            Ok(Frame::data(chunk.clone()))
        });
        let mut response = Response::new(frames(endless.take(100_000)));
        response
            .headers_mut()
            .insert("content-length", 10_000.into());
        if is_other {
            response = Response::new(full("other"));
        }
        async move { response }
    })
    .await;
    let response = within(client.send(get("/"))).await.expect("answered");
    pass_time(&client).await;
    let taken = polled.load(Ordering::Relaxed);
    assert!(taken <= MOST_AHEAD, "{taken} of 1 GB without a reader");
    drop(response);
}

/// The credit that a client grants for a stream at first, and the most that a server keeps unsent (K39).
const MOST_AHEAD: usize = (256 + 256) << 10;

/// The content does not wait forever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_is_sent_without_waiting_for_its_end() {
    let (_pair, client) = serve(|_| async {
        let mut response = Response::new(file_of(5, std::future::pending()));
        response.headers_mut().insert("content-length", 5.into());
        response
    })
    .await;
    let response = within(client.send(get("/"))).await.expect("answered");
    let mut body = response.into_body();
    let frame = within(body.frame())
        .await
        .expect("more data")
        .expect("content");
    assert_eq!(frame.into_data().expect("content").len(), 5);
    assert!(!body.is_end_stream());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_stream_in_both_directions_at_once() {
    let (_pair, client) = serve(|request| async move { Response::new(frames_of(request)) }).await;
    fn frames_of(request: Request<h3::Body>) -> UnsyncBoxBody<Bytes, std::io::Error> {
        request
            .into_body()
            .map_err(std::io::Error::other)
            .boxed_unsync()
    }
    // Longer than both windows: a service could not read all of it before answering.
    let chunk = Bytes::from(vec![7; 100_000]);
    let chunks = 400;
    let sent = chunk.clone();
    let body = frames(stream::iter(
        (0..chunks).map(move |_| Ok(Frame::data(sent.clone()))),
    ));
    let request = Request::post("https://localhost/echo")
        .body(body)
        .expect("a request");
    let response = within(client.send(request)).await.expect("answered");
    let mut body = response.into_body();
    let mut received = 0;
    while let Some(frame) = within(body.frame()).await {
        let data = frame.expect("a frame").into_data().expect("content");
        assert!(data.iter().all(|byte| *byte == 7));
        received += data.len();
    }
    assert_eq!(received, chunks * chunk.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_follow_the_body() {
    let (_pair, client) = serve(|request| async move {
        let collected = request.into_body().collect().await.expect("a body");
        let mut trailers = collected.trailers().cloned().expect("trailers");
        trailers.insert("x-len", collected.to_bytes().len().into());
        Response::new(frames(stream::iter([
            Ok(Frame::data(Bytes::from_static(b"content"))),
            Ok(Frame::trailers(trailers)),
        ])))
    })
    .await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1234".parse().expect("a value"));
    let body = frames(stream::iter([
        Ok(Frame::data(Bytes::from_static(b"12345"))),
        Ok(Frame::trailers(trailers)),
    ]));
    let request = Request::post("https://localhost/")
        .body(body)
        .expect("a request");
    let response = within(client.send(request)).await.expect("answered");
    let collected = within(response.into_body().collect())
        .await
        .expect("a body");
    let trailers = collected.trailers().expect("trailers");
    assert_eq!(
        (&trailers["x-sum"], &trailers["x-len"]),
        (&"1234".parse().expect("a value"), &5.into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_share_a_connection() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let (_pair, client) = serve(move |request| {
        counted.fetch_add(1, Ordering::Relaxed);
        async move { Response::new(full(request.uri().path().to_owned())) }
    })
    .await;
    let tasks: Vec<_> = (0..2000)
        .map(|n| {
            let client = client.clone();
            crate::common::spawn(async move {
                let path = format!("/{n}");
                let response = client.send(get(&path)).await.expect("answered");
                assert_eq!(text(response).await, path);
            })
        })
        .collect();
    for task in tasks {
        within(task).await.expect("no panic");
    }
    assert_eq!(count.load(Ordering::Relaxed), 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_to_head_has_no_content() {
    let (_pair, client) = serve(|_| async { Response::new(full("four")) }).await;
    let request = Request::head("https://localhost/")
        .body(h3::Empty)
        .expect("a request");
    let response = within(client.send(request)).await.expect("answered");
    assert_eq!(within(text(response)).await, "");
    let no_content = |_| async {
        let mut response = Response::new(full("never sent"));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response
    };
    let (_pair, client) = serve(no_content).await;
    let response = within(client.send(get("/"))).await.expect("answered");
    assert_eq!(within(text(response)).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_responses_are_reported() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let server = h3::ServerConnection::new(server, h3::Config::new(courser::Side::Server));
    let client = h3::Client::new(client);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let mut request = get("/");
    request
        .extensions_mut()
        .insert(h3::OnInterim::new(move |interim| {
            keep.lock()
                .expect("no panic")
                .push(interim.status().as_u16());
        }));
    let answering = async {
        let (_, mut respond) = server
            .accept()
            .await
            .expect("a request")
            .resolve()
            .await
            .expect("complete");
        for status in [102, 103] {
            let interim = Response::builder()
                .status(status)
                .body(())
                .expect("a response");
            respond.interim(interim).await.expect("sent");
        }
        respond
            .send(Response::new(Full::new(Bytes::new())))
            .await
            .expect("sent");
    };
    let (response, ()) = within(async { tokio::join!(client.send(request), answering) }).await;
    assert_eq!(response.expect("answered").status(), 200);
    assert_eq!(*seen.lock().expect("no panic"), [102, 103]);
}

/// Without a reader, at most a window is taken from the sender.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_not_read_is_not_sent() {
    let made = Arc::new(AtomicUsize::new(0));
    let counting = made.clone();
    let (_pair, client) = serve(move |request| {
        let counting = counting.clone();
        async move {
            if request.uri().path() == "/other" {
                return Response::new(full("other"));
            }
            Response::new(frames(stream::iter((0..10_000).map(move |_| {
                counting.fetch_add(1, Ordering::Relaxed);
                Ok(Frame::data(Bytes::from_static(&[0; 10_000])))
            }))))
        }
    })
    .await;
    let response = within(client.send(get("/"))).await.expect("answered");
    pass_time(&client).await;
    let before = made.load(Ordering::Relaxed);
    assert!(before < 4000, "{before} of 10000 frames without a reader");
    let body = within(response.into_body().collect())
        .await
        .expect("a body");
    assert_eq!(body.to_bytes().len(), 100_000_000);
}

/// RFC 9114 §4.1: a response may arrive before the request is complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_response_is_accepted() {
    let (_pair, client) = serve(|_| async { Response::new(full("enough")) }).await;
    let body = frames(stream::iter(
        (0..100_000).map(|_| Ok(Frame::data(Bytes::from_static(&[0; 10_000])))),
    ));
    let request = Request::post("https://localhost/")
        .body(body)
        .expect("a request");
    let response = within(client.send(request)).await.expect("answered");
    assert_eq!(within(text(response)).await, "enough");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_dropped_is_cancelled() {
    let dropped = Arc::new(tokio::sync::Notify::new());
    let report = dropped.clone();
    let (_pair, client) = serve(move |_| {
        let report = report.clone();
        async move {
            struct ReportsDrop(Arc<tokio::sync::Notify>);
            impl Drop for ReportsDrop {
                fn drop(&mut self) {
                    self.0.notify_one();
                }
            }
            let _report = ReportsDrop(report);
            std::future::pending().await
        }
    })
    .await;
    let sending = client.send(get("/"));
    let result = tokio::time::timeout(std::time::Duration::from_millis(100), sending).await;
    assert!(result.is_err(), "there is no answer");
    within(dropped.notified()).await;
    // The connection continues.
    assert!(client.quic().close_reason().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_body_resets_the_stream() {
    let arrived = Arc::new(tokio::sync::Notify::new());
    let seen = arrived.clone();
    let (_pair, client) = serve(move |_| {
        let seen = seen.clone();
        async move {
            let content = stream::once(async { Ok(Frame::data(Bytes::from_static(b"some"))) });
            let failure = stream::once(async move {
                // A reset discards unsent data.
                seen.notified().await;
                Err(std::io::Error::other("broken"))
            });
            Response::new(frames(content.chain(failure)))
        }
    })
    .await;
    let response = within(client.send(get("/"))).await.expect("answered");
    arrived.notify_one();
    let error = within(response.into_body().collect())
        .await
        .expect_err("broken");
    assert_eq!(error.code(), Some(h3::Code::INTERNAL_ERROR));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_fields_are_answered_with_431() {
    let (_pair, client) = serve(|_| async { Response::new(full("fine")) }).await;
    within(client.settings()).await.expect("settings");
    let mut request = get("/");
    for n in 0..1100 {
        let name = http::HeaderName::try_from(format!("x-{n}")).expect("a name");
        request
            .headers_mut()
            .insert(name, "v".parse().expect("a value"));
    }
    let response = within(client.send(request)).await.expect("answered");
    assert_eq!(
        response.status(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    );
    // A request beyond the server's limit is not even sent.
    let mut request = get("/");
    let value = "v".repeat(65_600).parse().expect("a value");
    request.headers_mut().insert("x", value);
    let error = within(client.send(request)).await.expect_err("too large");
    assert!(error.is_unprocessed(), "{error}");
    assert!(error.to_string().contains("65536"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsendable_requests_have_an_error() {
    let (_pair, client) = serve(|_| async { Response::new(full("")) }).await;
    let request = Request::get("/path").body(h3::Empty).expect("a request");
    let error = within(client.send(request))
        .await
        .expect_err("no authority");
    assert!(
        error.to_string().contains("https://example.org/path"),
        "{error}"
    );
}

/// RFC 9220: in both directions after the response, until both ends have finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extended_connect_is_a_tunnel() {
    let pair = super::pair();
    let (client, server) = pair.connect().await;
    let mut config = h3::Config::new(courser::Side::Server);
    config.extended_connect = true;
    let service = tower::service_fn(|request: Request<h3::Body>| async move {
        assert_eq!(request.method(), Method::CONNECT);
        assert_eq!(request.extensions().get(), Some(&h3::Protocol::WEBSOCKET));
        Ok::<_, std::convert::Infallible>(Response::new(request.into_body()))
    });
    crate::common::spawn(h3::serve(server, service).config(config).into_future());
    let client = h3::Client::new(client);
    let (feed, rest) = tokio::sync::mpsc::channel(4);
    let body = frames(stream::unfold(rest, |mut rest| async {
        rest.recv().await.map(|frame| (frame, rest))
    }));
    let mut request = Request::connect("https://localhost/chat")
        .body(body)
        .expect("a request");
    request.extensions_mut().insert(h3::Protocol::WEBSOCKET);
    let response = within(client.send(request)).await.expect("accepted");
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    for word in ["one", "two"] {
        feed.send(Ok(Frame::data(Bytes::from(word))))
            .await
            .expect("open");
        let frame = within(body.frame())
            .await
            .expect("a frame")
            .expect("no error");
        assert_eq!(frame.into_data().expect("content"), word);
    }
    drop(feed);
    assert!(within(body.frame()).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extended_connect_that_is_not_enabled_is_not_sent() {
    let (_pair, client) = serve(|_| async { Response::new(full("")) }).await;
    let mut request = Request::connect("https://localhost/chat")
        .body(h3::Empty)
        .expect("a request");
    request.extensions_mut().insert(h3::Protocol::WEBSOCKET);
    let error = within(client.send(request)).await.expect_err("not enabled");
    assert!(
        error
            .to_string()
            .contains("SETTINGS_ENABLE_CONNECT_PROTOCOL"),
        "{error}"
    );
}
