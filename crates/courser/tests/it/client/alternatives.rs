//! Alternative services that responses announce.

use courser::client::HttpVersion;
use http::{Response, StatusCode, Version};

use super::server::{Protocols, Server, full, service};
use super::{builder, text, timing, within};

/// Starts a server that announces HTTP/3 at its own port, and answers with the protocol of the
/// request.
async fn announcing(value: &'static str) -> Server {
    let port = std::sync::Arc::new(std::sync::OnceLock::<u16>::new());
    let shared = port.clone();
    let server = Server::start(
        Protocols::Both,
        service(move |request| {
            let value = value.replace("PORT", &shared.get().copied().unwrap_or(0).to_string());
            async move {
                let used = request.headers().get("alt-used").cloned();
                let mut response = Response::new(full(format!("{used:?}")));
                let value = value.parse().expect("a value");
                response.headers_mut().insert("alt-svc", value);
                response
            }
        }),
    )
    .await;
    port.set(server.address.port()).expect("not set yet");
    server
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_http3_is_used_for_the_next_connection() {
    let server = announcing("h3=\":PORT\"; ma=60").await;
    let client = builder(&server)
        .idle_timeout(std::time::Duration::from_millis(40))
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(text(response).await, "None");
    server.connections.closed().await;
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    assert_eq!(text(response).await, "None", "it is the origin itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alt_svc_clear_withdraws_the_alternative() {
    let server = announcing("clear").await;
    let file = std::env::temp_dir().join(format!("courser-clear-{}", std::process::id()));
    let port = server.address.port();
    let line = format!("h2 localhost {port} h3 localhost {port} \"20991231 00:00:00\" 0 0\n");
    std::fs::write(&file, line).expect("writable");
    let client = builder(&server)
        .alt_svc_file(&file)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.version(), Version::HTTP_3);
    client.save_alt_svc().expect("writable");
    let left = std::fs::read_to_string(&file).expect("written");
    assert!(left.lines().all(|line| line.starts_with('#')), "{left}");
    std::fs::remove_file(&file).expect("removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn announced_alternatives_persist_in_a_file() {
    let server = announcing("h3=\":PORT\"; ma=60; persist=1").await;
    let file = std::env::temp_dir().join(format!("courser-file-{}", std::process::id()));
    for expected in [Version::HTTP_2, Version::HTTP_3] {
        let client = builder(&server)
            .alt_svc_file(&file)
            .build()
            .expect("a client");
        let response = within(client.get(server.url("/"))).await.expect("answered");
        assert_eq!(response.version(), expected);
        client.save_alt_svc().expect("writable");
    }
    std::fs::remove_file(&file).expect("exists");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alternative_that_does_not_serve_the_origin_is_forgotten() {
    let server = announcing("h2=\":1\"").await;
    let other = Server::start(
        Protocols::Quic,
        service(|_| async {
            let mut response = Response::new(full("not mine"));
            *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
            response
        }),
    )
    .await;
    let file = std::env::temp_dir().join(format!("courser-421-{}", std::process::id()));
    let (port, elsewhere) = (server.address.port(), other.address.port());
    let line = format!("h2 localhost {port} h3 localhost {elsewhere} \"20991231 00:00:00\" 0 0\n");
    std::fs::write(&file, line).expect("writable");
    let client = builder(&server)
        .root(other.identity.certificate())
        .alt_svc_file(&file)
        .version(HttpVersion::Auto)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/"))).await.expect("answered");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.version(), Version::HTTP_2);
    assert_eq!(timing(&response).retries, 1);
    assert_eq!(other.connections.counts(), (1, 0));
    drop(client);
    std::fs::remove_file(&file).expect("removed");
}
