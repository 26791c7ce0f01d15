//! Sockets that a server hands over to the next one.

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use courser::serve;
use courser::server::{ListeningSockets, Protocol};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::Notify;

use super::client::{BoxError, Client, text};
use super::{Running, start_with, within};

/// Returns an application that answers with its name, and at `/paused` with a response that ends when `resume` is
/// notified.
fn app(name: &'static str, resume: &Arc<Notify>) -> Router {
    let resume = resume.clone();
    let paused = move || {
        let resume = resume.clone();
        async move {
            let begin = Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"begin")));
            let end = async move {
                resume.notified().await;
                Ok(Frame::data(Bytes::from(vec![b'x'; 1_000_000])))
            };
            let first = futures_util::stream::iter([begin]);
            let frames = futures_util::StreamExt::chain(first, futures_util::stream::once(end));
            Body::new(StreamBody::new(frames))
        }
    };
    Router::new()
        .route("/paused", get(paused))
        .route("/", get(move || async move { name }))
}

async fn connect(protocol: Protocol, running: &Running) -> Client {
    let address = running.handle.local_addr();
    let client = Client::connect(protocol, address, &running.identity).await;
    client.expect("a server")
}

/// A response of the first server continues, and new clients are answered by the second one, on the same address.
/// No client is refused in between.
async fn next_server_answers(shards: usize) {
    for protocol in [Protocol::Http3, Protocol::Http2, Protocol::Http1] {
        let resume = Arc::new(Notify::new());
        let first = start_with(app("first", &resume), |server| server.shards(shards));
        let mut old = connect(protocol, &first).await;
        let mut paused = within(old.get("/paused")).await.expect("a response");
        let begin = within(paused.body_mut().frame()).await.expect("a frame");
        let begin = begin.expect("no error").into_data().expect("data");
        assert_eq!(begin, "begin");
        let sockets = within(first.handle.hand_over()).await.expect("Linux");
        // This client arrives while no server receives.
        let (address, identity) = (first.handle.local_addr(), first.identity.clone());
        let early = crate::common::spawn(async move {
            Client::connect(protocol, address, &identity)
                .await
                .expect("served")
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let second = serve(address, &first.identity).inherit(sockets).bind();
        let second = second.expect("the same address");
        let handle = second.handle();
        assert_eq!(handle.local_addr(), address);
        let serving = second.service(app("second", &resume)).into_future();
        let serving = crate::common::spawn(serving);
        first.handle.retire();
        let mut early = within(early).await.expect("no panic");
        let got = within(early.text("/")).await;
        // Both may accept TCP clients until the first server retires.
        assert!(got == "second" || protocol != Protocol::Http3, "{got}");
        for _ in 0..5 {
            let mut new = connect(protocol, &first).await;
            assert_eq!(within(new.text("/")).await, "second", "{protocol}");
        }
        crate::common::until(|| first.handle.stats().draining).await;
        resume.notify_one();
        let rest = within(text(paused)).await;
        assert_eq!(rest.len(), 1_000_000, "{protocol}");
        drop(old);
        let drained = first.drained().await;
        assert_eq!((drained.finished, drained.cut), (1, 0), "{protocol}");
        handle.drain();
        within(serving).await.expect("no panic").expect("served");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_server_takes_new_clients_while_the_first_one_finishes() {
    next_server_answers(1).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_server_takes_the_sockets_of_all_shards() {
    next_server_answers(4).await;
}

/// If the next process fails, the first server receives from all clients again.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_can_be_taken_back() {
    let resume = Arc::new(Notify::new());
    let running = start_with(app("first", &resume), |server| server);
    let sockets = within(running.handle.hand_over()).await.expect("Linux");
    drop(sockets);
    running.handle.take_back();
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        assert_eq!(within(client.text("/")).await, "first", "{protocol}");
    }
    running.drained().await;
}

/// Opens the sockets of an address as a service manager does, which keeps them: returns those for a server each time.
fn sockets_of_manager() -> impl Fn() -> ListeningSockets {
    let (tcp, udp) = loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = tcp.local_addr().expect("bound");
        if let Ok(udp) = UdpSocket::bind(address) {
            break (tcp, udp);
        }
    };
    move || {
        let address = tcp.local_addr().expect("bound");
        let udp = vec![udp.try_clone().expect("a descriptor")];
        let tcp = tcp.try_clone().expect("a descriptor");
        let mut sockets = ListeningSockets::new(address, Some(tcp), udp);
        sockets.stay_open = true;
        sockets
    }
}

/// While a server drains, clients wait for the next one, and its own clients are served to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_wait_for_the_next_server_if_sockets_stay_open() {
    for protocol in [Protocol::Http3, Protocol::Http2, Protocol::Http1] {
        let resume = Arc::new(Notify::new());
        let sockets = sockets_of_manager();
        let address = sockets().address;
        let identity = courser::Identity::dev().expect("random numbers");
        let serve_next = |name| {
            let server = serve(address, &identity).inherit([sockets()]);
            let bound = server.bind().expect("usable sockets");
            let handle = bound.handle();
            let serving = bound.service(app(name, &resume)).into_future();
            (handle, crate::common::spawn(serving))
        };
        let (first, task) = serve_next("first");
        let mut old = Client::connect(protocol, address, &identity)
            .await
            .expect("a server");
        let mut paused = within(old.get("/paused")).await.expect("a response");
        let begin = within(paused.body_mut().frame()).await.expect("a frame");
        assert_eq!(begin.expect("no error").into_data().expect("data"), "begin");
        first.drain();
        crate::common::until(|| first.stats().draining).await;
        let of_early = identity.clone();
        let mut early = crate::common::spawn(async move {
            Client::connect(protocol, address, &of_early)
                .await
                .expect("served")
        });
        let waiting = tokio::time::timeout(Duration::from_millis(200), &mut early).await;
        assert!(waiting.is_err(), "{protocol}: a client did not wait");
        let (second, next_task) = serve_next("second");
        let mut early = within(early).await.expect("no panic");
        assert_eq!(within(early.text("/")).await, "second", "{protocol}");
        resume.notify_one();
        let rest = within(text(paused)).await;
        assert_eq!(rest.len(), 1_000_000, "{protocol}");
        drop(old);
        let drained = within(task).await.expect("no panic").expect("served");
        assert_eq!((drained.finished, drained.cut), (1, 0), "{protocol}");
        second.drain();
        within(next_task).await.expect("no panic").expect("served");
    }
}

#[tokio::test]
async fn socket_of_no_address_is_refused() {
    let sockets = sockets_of_manager();
    let identity = courser::Identity::dev().expect("random numbers");
    let error = serve("127.0.0.2:0", &identity).inherit([sockets()]).bind();
    let error = error.expect_err("another address").to_string();
    let address = sockets().address;
    assert!(
        error.contains(&address.to_string()) && error.contains("does not listen"),
        "{error}"
    );
    let without = serve(address, &identity).without_quic();
    let error = without.inherit([sockets()]).bind();
    let error = error.expect_err("UDP is unused").to_string();
    assert!(error.contains(&format!("UDP {address}")), "{error}");
}

/// A listener of plain HTTP is handed over too: the next server could not open it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_server_takes_the_listener_of_plain_http() {
    let resume = Arc::new(Notify::new());
    let redirecting = |server: courser::server::Server| server.redirect_http("127.0.0.1:0");
    let first = start_with(app("first", &resume), redirecting);
    let sockets = within(first.handle.hand_over()).await.expect("Linux");
    let [https, plain] = &sockets[..] else {
        panic!("{sockets:?}");
    };
    let (https, plain) = (https.address, plain.address);
    let second = serve(https, &first.identity).redirect_http(plain);
    let second = second.inherit(sockets).bind().expect("the same addresses");
    assert_eq!(second.redirect_addrs(), [plain]);
    first.drained().await;
}
