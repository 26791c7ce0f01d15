//! Pooled connections whose path falls silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser::Client;
use courser::client::{Body, HttpVersion};
use http::{Method, Request, Response, Version};

use super::server::{Protocols, Server, Service, echo, full, service};
use super::{builder, text, timing};
use crate::common::relay::Relay;
use crate::common::until;

/// Fails a test that hangs. Probe timeouts are long where a busy machine has made the round trip of the
/// handshake long.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    crate::common::within(150, future).await
}

/// A client that already uses HTTP/3. Its QUIC packets pass a relay, and its TCP connections do not.
struct Upgraded {
    server: Server,
    relay: Relay,
    client: Client,
    file: std::path::PathBuf,
}

impl Upgraded {
    async fn new(name: &str, service: Service) -> Self {
        let server = Server::start(Protocols::Both, service).await;
        let relay = Relay::new(server.address);
        let file = format!("courser-silent-{name}-{}", std::process::id());
        let file = std::env::temp_dir().join(file);
        let line = format!(
            "h2 localhost {} h3 localhost {} \"20991231 00:00:00\" 0 0\n",
            server.address.port(),
            relay.address.port()
        );
        std::fs::write(&file, line).expect("writable");
        let client = builder(&server)
            .attempt_delay(Duration::from_secs(2))
            .alt_svc_file(&file)
            .build()
            .expect("a client");
        let this = Self {
            server,
            relay,
            client,
            file,
        };
        this.use_http3().await;
        this
    }

    async fn get(&self) -> Response<Body> {
        let response = within(self.client.get(self.server.url("/"))).await;
        response.expect("answered").into()
    }

    /// Sends requests until one is carried by HTTP/3.
    async fn use_http3(&self) {
        while self.get().await.version() != Version::HTTP_3 {
            tokio::task::yield_now().await;
        }
    }

    /// Drops all datagrams in both directions from now on.
    fn break_path(&self) {
        self.relay.hold_finished();
        self.relay.hold_answers();
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_on_a_silent_path_is_answered_over_tcp() {
    let this = Upgraded::new("tcp", echo()).await;
    this.break_path();
    let response = this.get().await;
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(timing(&response).retries, 1);
    let response = this.get().await;
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(
        timing(&response).retries,
        0,
        "no request chooses a silent connection"
    );
    assert!(timing(&response).is_reused);
    assert_eq!(
        this.server.connections.counts().1,
        1,
        "one connection for all"
    );
    // The connection was kept, and carries requests again once its path answers.
    this.relay.release().await;
    this.use_http3().await;
    assert!(timing(&this.get().await).is_reused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_on_a_silent_path_share_the_second_lane() {
    let this = Upgraded::new("many", echo()).await;
    this.break_path();
    let requests = (0..20).map(|_| this.get());
    for response in futures_util::future::join_all(requests).await {
        assert_eq!(response.version(), Version::HTTP_2);
    }
    assert_eq!(this.server.connections.counts().1, 1);
}

/// The server has lost its state and its reset key, so that clients do not recognise its stateless resets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_on_a_silent_path_is_answered_on_a_new_quic_connection() {
    let server = Server::start(Protocols::Quic, echo()).await;
    let relay = Relay::new(server.address);
    let client = builder(&server)
        .version(HttpVersion::Http3Only)
        .build()
        .expect("a client");
    let url = format!("https://localhost:{}/", relay.address.port());
    let response = within(client.get(&url)).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    relay.hold_answers();
    server.restart(Protocols::Quic).await;
    relay.discard_answers();
    let response = within(client.get(&url)).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    assert_eq!(timing(&response).retries, 1);
    assert!(!timing(&response).is_reused);
    assert_eq!(server.connections.counts().0, 2);
}

/// RFC 9110 §9.2.2: the server may have processed it, although no acknowledgement has arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_that_must_not_be_repeated_waits_for_its_path() {
    let posts = Arc::new(AtomicUsize::new(0));
    let seen = posts.clone();
    let counting = service(move |request| {
        let seen = seen.clone();
        async move {
            if request.method() == Method::POST {
                seen.fetch_add(1, Ordering::SeqCst);
            }
            Response::new(full(format!("{:?}", request.version())))
        }
    });
    let this = Upgraded::new("post", counting).await;
    // The server receives the request, and its answers are lost.
    this.relay.hold_answers();
    let post = Request::post(this.server.url("/")).body("once".to_owned());
    let post = this.client.send(post.expect("a request"));
    let mut post = std::pin::pin!(within(post));
    // Others are answered over TCP meanwhile.
    let others = async {
        assert_eq!(this.get().await.version(), Version::HTTP_2);
        assert_eq!(this.get().await.version(), Version::HTTP_2);
        until(|| posts.load(Ordering::SeqCst) == 1).await;
    };
    tokio::select! {
        _ = &mut post => panic!("nothing has answered"),
        () = others => {}
    }
    this.relay.release_answers().await;
    let response = post.await.expect("answered");
    assert_eq!(timing(&response).retries, 0);
    assert_eq!(text(response).await, "HTTP/3.0");
    assert_eq!(posts.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_without_repetitions_waits_for_the_path() {
    let server = Server::start(Protocols::Both, echo()).await;
    let relay = Relay::new(server.address);
    let client = builder(&server)
        .version(HttpVersion::Http3Only)
        .retries(0)
        .build()
        .expect("a client");
    let url = format!("https://localhost:{}/", relay.address.port());
    within(client.get(&url)).await.expect("answered");
    relay.hold_answers();
    relay.hold_finished();
    let get = std::pin::pin!(within(client.get(&url)));
    // The request, and two probes for each of at least four timeouts.
    let many_probes = until(|| relay.held_finished() > 8);
    let get = match futures_util::future::select(get, std::pin::pin!(many_probes)).await {
        futures_util::future::Either::Left(_) => panic!("nothing has answered"),
        futures_util::future::Either::Right(((), get)) => get,
    };
    relay.release().await;
    let response = get.await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    assert!(timing(&response).is_reused);
    assert_eq!(server.connections.counts().0, 1);
}
