//! Tests of the admin endpoints of a running server with clients.

mod json;
mod page;
mod qlog;
mod sessions;

use std::net::SocketAddr;

use bytes::Bytes;
use courser::client::{Client, HttpVersion, Proxy as ClientProxy};
use courser::server::{Body as RequestBody, Server};
use courser::{Identity, TransportConfig};
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::body::boxed;

/// A server, its admin endpoints, and the certificate that its clients trust.
struct Scene {
    endpoints: Arc<Endpoints>,
    admin: SocketAddr,
    server: ServerHandle,
    identity: Identity,
}

impl Scene {
    /// Starts a server that responds to `/endless` with endless content, and to other paths with one word.
    async fn start(guard: Guard) -> Self {
        let identity = Identity::dev().expect("random numbers");
        let observer = Observer::new();
        let transport = TransportConfig {
            sinks: Some(observer.sinks()),
            ..TransportConfig::default()
        };
        let server: Server = courser::serve("127.0.0.1:0", identity.clone());
        let metrics = courser::observe::Metrics::new();
        let server = server.transport(transport).metrics(&metrics);
        let server = server.webtransport(courser::webtransport::Config::new());
        let bound = server.bind().expect("a port");
        let handle = bound.handle();
        let serving = bound.service(tower::service_fn(answer));
        tokio::spawn(async move { serving.await });
        let admin = Arc::new(Admin {
            handle: handle.clone(),
            metrics: Metrics::new(
                &metrics,
                crate::MetricsSources {
                    sessions: handle.sessions(),
                    ..crate::MetricsSources::default()
                },
            ),
            what: "<b>public</b>".to_owned(),
            began: Instant::now(),
            guard,
            observer,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let endpoints = Arc::new(Endpoints::new(admin));
        tokio::spawn(accept(listener, endpoints.clone()));
        Self {
            endpoints,
            admin: address,
            server: handle,
            identity,
        }
    }

    fn client(&self, version: HttpVersion) -> Client {
        let client = Client::builder()
            .platform_roots(false)
            .root(self.identity.certificate())
            .proxy(ClientProxy::Direct)
            .version(version)
            .resolve("localhost", 0, [self.server.local_addr().ip()]);
        client.build().expect("a client")
    }

    fn url(&self, path: &str) -> String {
        format!(
            "https://localhost:{}{path}",
            self.server.local_addr().port()
        )
    }

    /// Sends a request over plain HTTP. Returns the status and the content.
    async fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin).await.expect("listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("open");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("UTF-8");
        let status = text.get(9..12).and_then(|status| status.parse().ok());
        let (_, content) = text.split_once("\r\n\r\n").expect("a header section");
        (status.expect("a status"), content.to_owned())
    }

    async fn json(&self, path: &str) -> Value {
        let (status, content) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {content}");
        serde_json::from_str(&content).expect("JSON")
    }

    /// Repeats a request until the response satisfies `is_expected`.
    async fn until(&self, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let answer = self.json(path).await;
            if is_expected(&answer) {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{answer:#}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn answer(mut request: Request<RequestBody>) -> Result<Response<Body>, Infallible> {
    if courser::webtransport::is_session_request(&request) {
        let upgrade = courser::webtransport::upgrade(&mut request);
        let accepted = upgrade.accept::<(), _, _>(|session| async move { session.closed().await });
        return Ok(accepted.await.map(|()| crate::body::Body::empty()));
    }
    let body = match request.uri().path() {
        "/endless" => {
            let chunk = Bytes::from_static(&[0; 16 * 1024]);
            let frames = std::iter::repeat_with(move || {
                Ok::<_, Infallible>(http_body::Frame::data(chunk.clone()))
            });
            boxed(StreamBody::new(futures_util::stream::iter(frames)))
        }
        _ => Body::full("hello"),
    };
    Ok(Response::new(body))
}

/// Sends a request and reads the whole response, so that the connection stays open.
async fn hello(scene: &Scene, client: &Client) {
    let response = client.get(scene.url("/")).await.expect("an answer");
    response.into_body().collect().await.expect("a body");
}

/// Reads some megabytes per second until the body ends.
async fn read_slowly(body: &mut courser::client::Body) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > 20_000 {
            read = 0;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}
