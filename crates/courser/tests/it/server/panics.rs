//! Panics of services and of the content of their responses have one effect over all protocols.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use courser::server::{Event, Protocol};
use http::Response;
use http_body::Frame;
use http_body_util::BodyExt as _;
use tower::Service;

use super::client::{BoxError, Client};
use super::{Running, start_with, within};

/// The events of panics, as text.
type Panics = Arc<Mutex<Vec<String>>>;

fn start(app: Router) -> (Running, Panics) {
    let panics = Panics::default();
    let noted = panics.clone();
    let running = start_with(app, |server| {
        server.on_event(move |event| {
            if let Event::HandlerPanicked { .. } = event {
                noted.lock().expect("no panic").push(event.to_string());
            }
        })
    });
    (running, panics)
}

fn take(panics: &Panics) -> Vec<String> {
    std::mem::take(&mut *panics.lock().expect("no panic"))
}

async fn connect(protocol: Protocol, running: &Running) -> Client {
    let address = running.handle.local_addr();
    let client = within(Client::connect(protocol, address, &running.identity)).await;
    client.expect("a server")
}

/// Content that panics after `good` frames.
struct Failing {
    good: usize,
}

impl http_body::Body for Failing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        assert!(self.good > 0, "the content fails");
        self.good -= 1;
        let frame = Frame::data(Bytes::from_static(b"good"));
        Poll::Ready(Some(Ok(frame)))
    }
}

/// A service that panics when it is asked whether it is ready, or called.
#[derive(Clone)]
struct Broken {
    is_ready: bool,
}

impl Service<http::Request<Body>> for Broken {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        assert!(self.is_ready, "not ready");
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        panic!("called")
    }
}

fn app() -> Router {
    async fn early() -> String {
        panic!("early\nline")
    }
    async fn late() -> String {
        tokio::task::yield_now().await;
        let number = std::hint::black_box(7);
        panic!("late {number}")
    }
    let broken = |is_ready| Broken { is_ready };
    Router::new()
        .route("/early", get(early))
        .route("/late", get(late))
        .route_service("/called", broken(true))
        .route_service("/unready", broken(false))
        .route("/fine", get(|| async { "fine" }))
        .route(
            "/content",
            get(|| async { Response::new(Body::new(Failing { good: 1 })) }),
        )
}

/// A connection survives panics before the response over all protocols, and the client gets 500.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panic_before_the_response_is_answered_with_500() {
    let (running, panics) = start(app());
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        for (path, message) in [
            ("/early", "early\\nline"),
            ("/late", "late 7"),
            ("/called", "called"),
            ("/unready", "not ready"),
        ] {
            let target = format!("{path}?secret=1");
            let response = within(client.get(&target)).await;
            let response = response.expect("an answer");
            assert_eq!(response.status(), 500, "{protocol} {path}");
            let content = within(response.into_body().collect()).await;
            let content = content.expect("complete").to_bytes();
            assert!(content.is_empty(), "{protocol} {path}");
            let seen = take(&panics);
            let [seen] = &seen[..] else {
                panic!("{protocol} {path}: {seen:?}");
            };
            let start = format!("the service panicked during GET {path} from 127.0.0.1:");
            let end = format!(" over {protocol}, and it was answered with 500: {message}");
            assert!(seen.starts_with(&start) && seen.ends_with(&end), "{seen}");
            assert_eq!(within(client.text("/fine")).await, "fine", "{protocol}");
        }
    }
    assert_eq!(running.handle.stats().handler_panics, 12);
}

/// A truncated response must not look complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panic_in_the_content_aborts_the_response() {
    let (running, panics) = start(app());
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        let response = within(client.get("/content")).await;
        let failed = match response {
            Ok(response) => {
                assert_eq!(response.status(), 200, "{protocol}");
                let content = within(response.into_body().collect()).await;
                describe(&content.expect_err("the content is cut"))
            }
            // The abort may overtake the response over TCP.
            Err(error) => describe(&error),
        };
        let code = match protocol {
            Protocol::Http3 => "H3_INTERNAL_ERROR",
            Protocol::Http2 => "unexpected internal error encountered",
            Protocol::Http1 => "",
        };
        assert!(failed.contains(code), "{protocol}: {failed}");
        let seen = take(&panics);
        assert_eq!(seen.len(), 1, "{protocol}: {seen:?}");
        let end = "and its response was aborted: the content fails";
        assert!(seen[0].ends_with(end), "{seen:?}");
        if protocol != Protocol::Http1 {
            assert_eq!(within(client.text("/fine")).await, "fine", "{protocol}");
        }
    }
}

/// Returns an error with its sources.
fn describe(error: &BoxError) -> String {
    let first: &(dyn std::error::Error + 'static) = &**error;
    let chain = std::iter::successors(Some(first), |error| error.source());
    let texts: Vec<_> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}

/// What a panicked future holds may panic again when it is dropped, which must not end the process or the
/// connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panic_while_a_panicked_future_is_dropped_ends_nothing_else() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            // A panic during unwinding would abort the process.
            assert!(std::thread::panicking(), "dropped after the panic");
        }
    }
    struct Twice {
        _bomb: Bomb,
    }
    impl Future for Twice {
        type Output = Result<Response<Body>, Infallible>;
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
            panic!("once")
        }
    }
    let broken = tower::service_fn(|_: http::Request<Body>| Twice { _bomb: Bomb });
    let (running, panics) = start(app().route_service("/twice", broken));
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        let response = within(client.get("/twice")).await.expect("an answer");
        assert_eq!(response.status(), 500, "{protocol}");
        assert_eq!(take(&panics).len(), 1, "{protocol}");
        assert_eq!(within(client.text("/fine")).await, "fine", "{protocol}");
    }
}
