//! Services that hang: attack A103, fault F51.

use std::convert::Infallible;
use std::future::{Ready, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use courser::Identity;
use courser::server::{Body, Limits, Protocol};
use http::{Request, Response};

use super::client::{Client, empty, request, text};
use super::{Running, start_with, within};
use crate::common::until;

/// Counts the running services.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn now(&self) -> usize {
        self.0.load(SeqCst)
    }

    async fn reaches(&self, count: usize) {
        until(|| self.now() == count).await;
    }
}

struct Counted(Count);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}

/// Starts a server whose `/hang` never answers, and returns the count of its hanging services.
fn start(limits: Limits) -> (Running, Count) {
    let count = Count::default();
    let hanging = count.clone();
    let app = Router::new().route("/", get(|| async { "served" })).route(
        "/hang",
        get(move || {
            hanging.0.fetch_add(1, SeqCst);
            let counted = Counted(hanging.clone());
            async move {
                pending::<()>().await;
                drop(counted);
            }
        }),
    );
    (start_with(app, |server| server.limits(limits)), count)
}

async fn connect(running: &Running, protocol: Protocol) -> Client {
    let address = running.handle.local_addr();
    let client = within(Client::connect(protocol, address, &running.identity)).await;
    client.expect("a server")
}

/// Returns another handle of the same connection; HTTP/1.1 has none.
fn share(client: &Client) -> Option<Client> {
    match client {
        Client::Http1(_) => None,
        Client::Http2(send) => Some(Client::Http2(send.clone())),
        Client::Http3(client) => Some(Client::Http3(client.clone())),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_services_are_ended_and_others_continue() {
    let mut limits = Limits::default();
    limits.handler_timeout = Some(Duration::from_millis(1500));
    let (running, count) = start(limits);
    for protocol in Protocol::ALL {
        let mut client = connect(&running, protocol).await;
        let mut other = connect(&running, protocol).await;
        let mut beside = share(&client);
        let hanging = async {
            let answer = within(client.get("/hang")).await.expect("an answer");
            assert_eq!(answer.status(), 503, "{protocol}");
            assert_eq!(count.now(), 0, "{protocol}: the service is dropped");
            client
        };
        let meanwhile = async {
            count.reaches(1).await;
            assert_eq!(within(other.text("/")).await, "served", "{protocol}");
            if let Some(beside) = &mut beside {
                assert_eq!(within(beside.text("/")).await, "served", "{protocol}");
            }
            assert_eq!(count.now(), 1, "{protocol}: still hanging");
        };
        let (mut client, ()) = tokio::join!(hanging, meanwhile);
        assert_eq!(within(client.text("/")).await, "served", "{protocol}");
    }
}

/// At most as many run as a connection may have requests, and none run for disconnected clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_services_are_bounded_by_the_streams_of_a_connection() {
    let (running, count) = start(Limits::default());
    let http2 = Limits::default().max_http2_streams as usize;
    for (protocol, most) in [(Protocol::Http2, http2), (Protocol::Http3, MAX_HTTP3)] {
        let client = connect(&running, protocol).await;
        let mut waiting = Vec::new();
        for _ in 0..most + 20 {
            let mut client = share(&client).expect("it can be shared");
            waiting.push(crate::common::spawn(async move {
                client.send(request("GET", "/hang", empty())).await
            }));
        }
        count.reaches(most).await;
        // Another connection is answered, and meanwhile the rest is not begun.
        let mut other = connect(&running, protocol).await;
        for _ in 0..20 {
            assert_eq!(within(other.text("/")).await, "served", "{protocol}");
        }
        assert_eq!(count.now(), most, "{protocol}");
        // A cancelled request makes room for another.
        waiting.swap_remove(0).abort();
        assert_eq!(within(other.text("/")).await, "served", "{protocol}");
        count.reaches(most).await;
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        drop(client);
        count.reaches(0).await;
    }
}

/// Concurrent streams of a connection over HTTP/3 (K14).
const MAX_HTTP3: usize = 256;

/// A service that is never ready.
#[derive(Clone)]
struct Busy;

impl tower::Service<Request<Body>> for Busy {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Pending
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        panic!("called before it was ready")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_that_are_never_ready_time_out() {
    let mut limits = Limits::default();
    limits.handler_timeout = Some(Duration::from_millis(300));
    let identity = Identity::dev().expect("random numbers");
    let server = courser::serve("127.0.0.1:0", &identity).limits(limits);
    let server = server.bind().expect("a free port");
    let address = server.handle().local_addr();
    crate::common::spawn(server.service(Busy).into_future());
    for protocol in Protocol::ALL {
        let client = within(Client::connect(protocol, address, &identity)).await;
        let mut client = client.expect("a server");
        let answer = within(client.get("/")).await.expect("an answer");
        assert_eq!(answer.status(), 503, "{protocol}");
        assert_eq!(within(text(answer)).await, "", "{protocol}");
    }
}
