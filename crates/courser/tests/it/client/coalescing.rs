//! Requests on connections of other origins, RFC 9412, RFC 8336.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use courser::client::{ErrorKind, HttpVersion, Proxy, Resolve, Resolving, ScopedIp};
use courser::server::{Peer, Server};
use courser::{Client, Identity, h3, serve};
use http::StatusCode;

use super::{text, within};

/// All names are names of this machine.
struct Everything {
    lookups: Arc<AtomicUsize>,
}

impl Resolve for Everything {
    fn addresses(&self, _host: &str) -> Resolving<Vec<ScopedIp>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok::<_, io::Error>(vec![Ipv4Addr::LOCALHOST.into()]) })
    }
}

/// A server whose answers name the connection of the request, and a client.
struct Pair {
    client: Client,
    port: u16,
    lookups: Arc<AtomicUsize>,
}

impl Pair {
    /// The server has a certificate for `names`, and answers the first `misdirected` requests for
    /// `b.test` with 421.
    fn new(names: &[&str], misdirected: usize, setup: impl Fn(Server, u16) -> Server) -> Self {
        let left = Arc::new(AtomicUsize::new(misdirected));
        let answer = move |request: Request| {
            let left = left.clone();
            async move { answer(&request, &left) }
        };
        let identity = Identity::self_signed(names.iter().copied()).expect("names");
        // The port is part of the origins. Another test may take it meanwhile.
        let bind = || {
            let port = free_port();
            let server = setup(serve(("127.0.0.1", port), &identity), port);
            server.bind().ok().map(|bound| (bound, port))
        };
        let (bound, port) = (0..100).find_map(|_| bind()).expect("a free port");
        let serving = bound.service(Router::new().fallback(any(answer)));
        crate::common::spawn(async move { serving.into_future().await.map(drop) });
        let lookups = Arc::default();
        let resolver = Everything {
            lookups: Arc::clone(&lookups),
        };
        let client = Client::builder()
            .platform_roots(false)
            .root(identity.certificate())
            .proxy(Proxy::Direct)
            .resolver(resolver)
            .version(HttpVersion::Http3Only)
            .build()
            .expect("a client");
        Self {
            client,
            port,
            lookups,
        }
    }

    /// Returns the connection of `a.test`, on which the settings and claims of the server have arrived:
    /// they precede its responses, and the only thread has read them before the last one of three.
    async fn met(&self) -> String {
        let first = self.ask("a.test").await.expect("served");
        for _ in 0..2 {
            assert_eq!(self.ask("a.test").await.expect("served"), first);
        }
        first
    }

    /// Returns the connection that served a request for this host.
    async fn ask(&self, host: &str) -> Result<String, courser::client::Error> {
        let url = format!("https://{host}:{}/", self.port);
        let response = within(self.client.get(&url)).await?;
        assert_eq!(response.status(), StatusCode::OK);
        Ok(text(response).await)
    }
}

fn answer(request: &Request, misdirected: &AtomicUsize) -> Response {
    let is_other = request.uri().host() == Some("b.test");
    let spend = |left: usize| left.checked_sub(1);
    if is_other
        && misdirected
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend)
            .is_ok()
    {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    let peer = request.extensions().get::<Peer>().expect("a peer");
    peer.connection_id().to_string().into_response()
}

fn free_port() -> u16 {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("bound").port()
}

fn announcing(server: Server, _: u16) -> Server {
    server.announce_names(true)
}

/// RFC 8336 §2.4: without a lookup, too.
#[tokio::test]
async fn a_connection_serves_all_names_that_its_server_announces() {
    let pair = Pair::new(&["a.test", "b.test", "*.c.test"], 0, announcing);
    let first = pair.met().await;
    let lookups = pair.lookups.load(Ordering::SeqCst);
    assert_eq!(pair.ask("b.test").await.expect("served"), first);
    assert_eq!(pair.ask("b.test").await.expect("served"), first);
    assert_eq!(pair.lookups.load(Ordering::SeqCst), lookups);
    // A wildcard is no origin, although the certificate is valid for the name.
    assert_ne!(pair.ask("x.c.test").await.expect("served"), first);
}

#[tokio::test]
async fn without_origin_frames_each_origin_has_a_connection() {
    let pair = Pair::new(&["a.test", "b.test"], 0, |server, _| server);
    let first = pair.met().await;
    assert_ne!(pair.ask("b.test").await.expect("served"), first);
}

/// RFC 8336 §2.4: the certificate has to be valid for the origin as well.
#[tokio::test]
async fn claims_beyond_the_certificate_have_no_effect() {
    let pair = Pair::new(&["a.test"], 0, |server, port| {
        let mut config = h3::Config::new(courser::Side::Server);
        config.origins = vec![format!("https://b.test:{port}")];
        server.config(config)
    });
    pair.met().await;
    let error = pair.ask("b.test").await.expect_err("no certificate");
    // It was tried on a connection of its own.
    assert_eq!(error.kind(), ErrorKind::Certificate, "{error}");
}

/// RFC 8336 §2.3: the origin of the connection is always in the set.
#[tokio::test]
async fn a_set_without_the_first_origin_does_not_exclude_it() {
    let pair = Pair::new(&["a.test", "b.test", "c.test"], 0, |server, port| {
        let mut config = h3::Config::new(courser::Side::Server);
        config.origins = vec![format!("https://b.test:{port}")];
        server.config(config)
    });
    let first = pair.met().await;
    assert_eq!(pair.ask("b.test").await.expect("served"), first);
    assert_eq!(pair.ask("a.test").await.expect("served"), first);
    // It is not in the set.
    assert_ne!(pair.ask("c.test").await.expect("served"), first);
}

/// RFC 8336 §2.3.
#[tokio::test]
async fn a_misdirected_request_takes_the_origin_out_of_the_set() {
    let pair = Pair::new(&["a.test", "b.test"], 1, announcing);
    let first = pair.met().await;
    let second = pair.ask("b.test").await.expect("served");
    assert_ne!(second, first);
    assert_eq!(pair.ask("b.test").await.expect("served"), second);
    assert_eq!(pair.ask("a.test").await.expect("served"), first);
}
