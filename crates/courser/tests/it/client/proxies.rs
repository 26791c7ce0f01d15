//! Proxies: tunnels, plain ones, credentials.

use std::sync::{Arc, Mutex};

use courser::client::{ErrorKind, HttpVersion, Proxy};
use http::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::server::{Content, Protocols, Server, echo, empty, full, service};
use super::{builder, text, timing, within};

/// Starts a proxy that makes tunnels for clients with the password, and returns its requests.
async fn proxy() -> (Server, Arc<Mutex<Vec<String>>>) {
    start_proxy(Protocols::Plain).await
}

async fn start_proxy(protocols: Protocols) -> (Server, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let answer = move |request: Request<Content>| {
        log.lock()
            .expect("no panic")
            .push(format!("{} {}", request.method(), request.uri()));
        // The encoding of "user:word".
        let knows = request
            .headers()
            .get("proxy-authorization")
            .is_some_and(|value| value == "Basic dXNlcjp3b3Jk");
        async move {
            if !knows {
                let mut response = Response::new(full("who are you?"));
                *response.status_mut() = StatusCode::PROXY_AUTHENTICATION_REQUIRED;
                return response;
            }
            if request.method() != Method::CONNECT {
                return Response::new(full(format!("for {}", request.uri())));
            }
            let target = request.uri().to_string();
            crate::common::spawn(async move {
                let upgraded = hyper::upgrade::on(request).await.expect("a tunnel");
                let target = target.replace("localhost", "127.0.0.1");
                let mut out = tokio::net::TcpStream::connect(target)
                    .await
                    .expect("listening");
                let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(upgraded), &mut out).await;
            });
            Response::new(empty())
        }
    };
    (Server::start(protocols, service(answer)).await, seen)
}

fn through(proxy: &Server, credentials: &str) -> Proxy {
    Proxy::Url {
        url: format!("http://{credentials}{}", proxy.address),
        except: "direct.test".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secure_origins_are_reached_through_a_tunnel_and_never_over_quic() {
    let (proxy, seen) = proxy().await;
    let server = Server::start(Protocols::Both, echo()).await;
    let client = builder(&server)
        .proxy(through(&proxy, "user:word@"))
        .version(HttpVersion::Http3)
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/a")))
        .await
        .expect("answered");
    assert!(timing(&response).is_proxied);
    assert_eq!(text(response).await, "HTTP/2.0 GET /a");
    assert_eq!(server.connections.counts(), (0, 1));
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(
        seen,
        [format!("CONNECT localhost:{}", server.address.port())]
    );
}

/// Uses TLS to the proxy and, for secure origins, another TLS connection inside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_are_reached_over_tls() {
    let (proxy, seen) = start_proxy(Protocols::Http1).await;
    let server = Server::start(Protocols::Tcp, echo()).await;
    let secure = Proxy::Url {
        url: format!("https://user:word@localhost:{}", proxy.address.port()),
        except: String::new(),
    };
    let client = builder(&server).proxy(secure.clone());
    let client = client
        .root(proxy.identity.certificate())
        .build()
        .expect("a client");
    let response = within(client.get(server.url("/a")))
        .await
        .expect("answered");
    assert!(timing(&response).is_proxied);
    assert_eq!(text(response).await, "HTTP/2.0 GET /a");
    let response = within(client.get("http://example.test/b"))
        .await
        .expect("answered");
    assert_eq!(text(response).await, "for http://example.test/b");
    assert_eq!(seen.lock().expect("no panic").len(), 2);
    // A proxy with an untrusted certificate receives neither the request nor the password.
    let client = builder(&server).proxy(secure).build().expect("a client");
    let error = within(client.get(server.url("/c")))
        .await
        .expect_err("not trusted");
    assert_eq!(error.kind(), ErrorKind::Certificate, "{error}");
    assert_eq!(seen.lock().expect("no panic").len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_requests_are_sent_to_the_proxy() {
    let (proxy, _) = proxy().await;
    let client = builder(&proxy)
        .proxy(through(&proxy, "user:word@"))
        .build()
        .expect("a client");
    let response = within(client.get("http://example.test/a?b"))
        .await
        .expect("answered");
    assert_eq!(text(response).await, "for http://example.test/a?b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_of_a_proxy_names_the_remedy() {
    let (proxy, _) = proxy().await;
    let server = Server::start(Protocols::Tcp, echo()).await;
    let client = builder(&server)
        .proxy(through(&proxy, ""))
        .build()
        .expect("a client");
    let error = within(client.get(server.url("/")))
        .await
        .expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Proxy);
    assert!(
        error.to_string().contains("user name and password"),
        "{error}"
    );
    assert_eq!(server.connections.counts(), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn excepted_hosts_bypass_the_proxy() {
    let (proxy, seen) = proxy().await;
    let server = Server::start(Protocols::Plain, echo()).await;
    let client = builder(&server)
        .proxy(through(&proxy, ""))
        .resolve("direct.test", 0, [server.address.ip()])
        .build()
        .expect("a client");
    let url = format!("http://direct.test:{}/", server.address.port());
    let response = within(client.get(&url)).await.expect("answered");
    assert_eq!(text(response).await, "HTTP/1.1 GET /");
    assert!(seen.lock().expect("no panic").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsupported_proxy_schemes_are_refused_with_the_supported_ones() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    for (url, kind, allowed) in [
        ("ftp://127.0.0.1:21", ErrorKind::Unsupported, "socks5h"),
        ("socks6://127.0.0.1", ErrorKind::Unsupported, "socks5h"),
        ("http://", ErrorKind::Config, "http://host:port"),
    ] {
        let proxy = Proxy::Url {
            url: url.to_owned(),
            except: String::new(),
        };
        // The error is reported now, because on first use the proxy would be skipped.
        let error = builder(&server).proxy(proxy).build().expect_err(url);
        assert_eq!(error.kind(), kind, "{url}");
        assert!(error.to_string().contains(allowed), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn function_chooses_the_proxy_of_each_request() {
    let (proxy, seen) = proxy().await;
    let server = Server::start(Protocols::Plain, echo()).await;
    let urls = [
        format!("http://user:word@{}", proxy.address),
        format!("http://user:wrong@{}", proxy.address),
    ];
    let chosen = Proxy::function(move |url| match url.path() {
        "/direct" => None,
        "/wrong" => Some(urls[1].clone()),
        "/invalid" => Some("nowhere://".to_owned()),
        _ => Some(urls[0].clone()),
    });
    let client = builder(&server).proxy(chosen).build().expect("a client");
    let get = async |path: &str| {
        let url = format!("http://localhost:{}{path}", server.address.port());
        within(client.get(&url)).await
    };
    let direct = get("/direct").await.expect("answered");
    assert_eq!(text(direct).await, "HTTP/1.1 GET /direct");
    assert_eq!(seen.lock().expect("no panic").len(), 0);
    let proxied = get("/proxied").await.expect("answered");
    assert!(text(proxied).await.starts_with("for http://localhost"));
    // Other credentials need another connection, as the proxy may bind them to it.
    let wrong = get("/wrong").await.expect("answered");
    assert_eq!(wrong.status(), StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    assert_eq!(proxy.connections.counts(), (0, 2));
    let error = get("/invalid").await.expect_err("no URL");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_the_proxy_without_its_credentials() {
    let server = Server::start(Protocols::Tcp, echo()).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = closed.local_addr().expect("bound");
    drop(closed);
    for scheme in ["http", "https", "socks5h"] {
        let proxy = Proxy::all(format!("{scheme}://user:word@{place}"));
        let client = builder(&server).proxy(proxy).build().expect("a client");
        let url = server.url("/").replace("://", "://name:secret@");
        let error = within(client.get(&url)).await.expect_err("nothing listens");
        let expected = format!("the proxy {scheme}://{place} is not reachable: nothing listens");
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert!(error.is_connect() && error.is_retryable(), "{error}");
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("word") && !shown.contains("secret"),
            "{shown}"
        );
    }
}
