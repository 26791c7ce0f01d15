//! Servers that go away: requests that they refuse are sent on the next connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use courser::client::{HttpVersion, Proxy};
use courser::{Client, Endpoint, Identity, ServerConfig, h3};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::Notify;

use super::{text, until, within};

/// Returns an endpoint of a server, its URL, and a client that trusts it.
fn ends() -> (Endpoint, String, Client) {
    let identity = Identity::dev().expect("random numbers");
    let config = ServerConfig::with_identity(&identity)
        .expect("matching key")
        .alpn([h3::ALPN]);
    let address = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::server(config, address).expect("a port");
    let url = format!("https://{}/", endpoint.local_addr().expect("bound"));
    let client = Client::builder()
        .version(HttpVersion::Http3Only)
        .platform_roots(false)
        .proxy(Proxy::Direct)
        .root(identity.certificate())
        .build()
        .expect("a client");
    (endpoint, url, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_use_another_connection_when_a_server_drains() {
    let (endpoint, url, client) = ends();
    let (leave, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (signal, connections) = (leave.clone(), count.clone());
    crate::common::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(connection) = incoming.await else {
                continue;
            };
            let number = connections.fetch_add(1, Ordering::SeqCst);
            let service = tower::service_fn(move |request: Request<h3::Body>| async move {
                let body = request.into_body().collect().await;
                let body = body.map(|body| body.to_bytes()).unwrap_or_default();
                let body = [format!("{number} ").as_bytes(), &body].concat();
                Ok::<_, Infallible>(Response::new(Full::<bytes::Bytes>::from(body)))
            });
            let signal = signal.clone();
            let leaves = async move {
                match number {
                    // Later ones stay.
                    0 => signal.notified().await,
                    _ => std::future::pending().await,
                }
            };
            crate::common::spawn(h3::serve(connection, service).drain(leaves).into_future());
        }
    });
    let post = || {
        Request::post(url.as_str())
            .body(Full::<bytes::Bytes>::from("content"))
            .expect("a request")
    };
    let first = within(client.send(post())).await.expect("answered");
    assert_eq!(text(first).await, "0 content");
    leave.notify_one();
    // Some of these cross the GOAWAY: none may fail, whatever its method.
    for _ in 0..200 {
        let response = within(client.send(post())).await.expect("answered");
        let text = text(response).await;
        assert!(text.ends_with(" content"), "{text}");
        tokio::task::yield_now().await;
    }
    until(|| count.load(Ordering::SeqCst) == 2).await;
}

/// A server breaks a rule of HTTP/3 on its first connection while a request waits there. The request, which
/// has nothing to do with it, is sent on another connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_move_to_another_connection_after_a_protocol_error() {
    let (endpoint, url, client) = ends();
    crate::common::spawn(async move {
        for number in 0.. {
            let Some(incoming) = endpoint.accept().await else {
                return;
            };
            let connection = incoming.await.expect("a handshake");
            let quic = connection.clone();
            let service = tower::service_fn(move |request: Request<h3::Body>| {
                let quic = quic.clone();
                async move {
                    if number == 0 && request.uri().path() == "/again" {
                        // RFC 9114 §6.2.1: only one control stream is allowed.
                        let mut second = quic.open_uni().await.expect("credit");
                        second.write_all(&[0]).await.expect("written");
                        std::future::pending::<()>().await;
                    }
                    let body = Full::<bytes::Bytes>::from(number.to_string());
                    Ok::<_, Infallible>(Response::new(body))
                }
            });
            crate::common::spawn(h3::serve(connection, service).into_future());
        }
    });
    let first = within(client.get(&url)).await.expect("answered");
    assert_eq!(text(first).await, "0");
    let again = within(client.get(format!("{url}again"))).await;
    assert_eq!(text(again.expect("answered elsewhere")).await, "1");
}
