//! Tests of the client with real servers of all three protocols on loopback.

mod alternatives;
mod background;
mod bodies;
#[cfg(feature = "server")]
mod coalescing;
#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "server")]
mod early_data;
mod errors;
mod expectations;
mod going_away;
mod identities;
#[cfg(all(feature = "cookies", feature = "form", feature = "json"))]
mod library;
mod messages;
mod moving;
#[cfg(target_os = "linux")]
mod namespace;
mod pooling;
mod proxies;
mod racing;
mod raw;
mod received;
mod redirects;
mod retries;
mod server;
mod silence;
mod socks;
mod tickets;
mod token_file;
mod versions;

use bytes::Bytes;
use courser::Client;
use courser::client::{Body, ClientBuilder, Proxy, Timing};
use http::Response;
use http_body_util::BodyExt as _;

use self::server::Server;
use crate::common::until;

/// Returns the builder of a client that trusts the server and resolves `localhost` and
/// `example.test` to its address.
fn builder(server: &Server) -> ClientBuilder {
    Client::builder()
        .platform_roots(false)
        .root(server.identity.certificate())
        .proxy(Proxy::Direct)
        .resolve("localhost", 0, [server.address.ip()])
        .resolve("example.test", 0, [server.address.ip()])
}

fn client(server: &Server) -> Client {
    builder(server).build().expect("a client")
}

async fn text(response: impl Into<Response<Body>>) -> String {
    let bytes = collect(response).await;
    String::from_utf8(bytes.to_vec()).expect("text")
}

async fn collect(response: impl Into<Response<Body>>) -> Bytes {
    let body = response.into().into_body().collect().await;
    body.expect("a body").to_bytes()
}

fn timing(response: &Response<Body>) -> &Timing {
    response.extensions().get().expect("each response has one")
}

/// Fails a test that hangs.
async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    crate::common::within(20, future).await
}
