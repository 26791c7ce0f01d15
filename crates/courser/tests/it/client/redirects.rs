//! Following of redirects.

use courser::client::{ErrorKind, HttpVersion};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody};

use super::server::{Protocols, Server, Service, full, service};
use super::{builder, client, text, within};

/// Returns a service where `/go/STATUS/TARGET` redirects to TARGET, and all other requests are
/// echoed.
fn redirecting() -> Service {
    service(|request| async move {
        let path = request.uri().path().to_owned();
        let mut parts = path.splitn(4, '/').skip(1);
        if parts.next() == Some("go") {
            let status: u16 = parts.next().and_then(|s| s.parse().ok()).expect("a status");
            let target = parts.next().expect("a target").replace("%3A", ":");
            let mut response = Response::new(full("moved"));
            *response.status_mut() = StatusCode::from_u16(status).expect("a status");
            let target = target.parse().expect("a value");
            response.headers_mut().insert(header::LOCATION, target);
            return response;
        }
        let method = request.method().clone();
        let authorization = request.headers().contains_key(header::AUTHORIZATION);
        let kind = request.headers().contains_key(header::CONTENT_TYPE);
        let body = request
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Response::new(full(format!(
            "{method} {path} {authorization} {kind} {body}"
        )))
    })
}

fn post(url: String) -> Request<Full<bytes::Bytes>> {
    Request::post(url)
        .header(header::AUTHORIZATION, "secret")
        .header(header::CONTENT_TYPE, "text/plain")
        .body(Full::from("content"))
        .expect("a request")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_status_determines_method_and_body() {
    for protocols in [Protocols::Tcp, Protocols::Http1] {
        let server = Server::start(protocols, redirecting()).await;
        let client = client(&server);
        for (status, expected) in [
            (302, "GET /there true false "),
            (303, "GET /there true false "),
            (307, "POST /there true true content"),
            (308, "POST /there true true content"),
        ] {
            let url = server.url(&format!("/go/{status}//there"));
            let response = within(client.send(post(url))).await.expect("answered");
            assert_eq!(text(response).await, expected, "{protocols:?} {status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_do_not_leave_their_origin() {
    let other = Server::start(Protocols::Tcp, redirecting()).await;
    let server = Server::start(Protocols::Tcp, redirecting()).await;
    let client = builder(&server)
        .root(other.identity.certificate())
        .build()
        .expect("a client");
    let target = format!("https%3A//localhost%3A{}/there", other.address.port());
    let url = server.url(&format!("/go/307/{target}"));
    let response = within(client.send(post(url))).await.expect("answered");
    assert_eq!(text(response).await, "POST /there false true content");
    assert_eq!(other.connections.counts().1, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_loops_end() {
    let server = Server::start(
        Protocols::Tcp,
        service(|_| async {
            let mut response = Response::new(full(""));
            *response.status_mut() = StatusCode::FOUND;
            let target = "/again".parse().expect("a value");
            response.headers_mut().insert(header::LOCATION, target);
            response
        }),
    )
    .await;
    let error = within(client(&server).get(server.url("/")))
        .await
        .expect_err("too many redirects");
    assert_eq!(error.kind(), ErrorKind::Redirect);
    assert!(error.to_string().contains("more than 10"), "{error}");
    let patient = builder(&server).redirects(0).build().expect("a client");
    let response = within(patient.get(server.url("/")))
        .await
        .expect("answered");
    assert_eq!(response.status(), StatusCode::FOUND);
}

/// Reports whether the content of a redirect was taken to its end, or dropped before.
struct Taken {
    is_complete: bool,
    report: tokio::sync::mpsc::UnboundedSender<bool>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _ = self.report.send(self.is_complete);
    }
}

/// Many servers send the end of a redirect after its header section. A reset is an attack to some, and an error to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_whose_end_comes_later_is_not_cancelled() {
    use futures_util::{StreamExt as _, stream};

    for protocols in [Protocols::Quic, Protocols::Tcp] {
        let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
        let redirecting = service(move |request| {
            let report = report.clone();
            async move {
                if request.uri().path() == "/there" {
                    return Response::new(full("arrived"));
                }
                let taken = Taken {
                    is_complete: false,
                    report,
                };
                let end = stream::once(async move {
                    let mut taken = taken; // all of it
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    taken.is_complete = true;
                    Ok(http_body::Frame::data(bytes::Bytes::from_static(b"moved")))
                });
                let mut response = Response::new(StreamBody::new(end.boxed()).boxed_unsync());
                *response.status_mut() = StatusCode::FOUND;
                let target = "/there".parse().expect("a value");
                response.headers_mut().insert(header::LOCATION, target);
                response
            }
        });
        let server = Server::start(protocols, redirecting).await;
        let client = match protocols {
            Protocols::Quic => builder(&server).version(HttpVersion::Http3Only),
            _ => builder(&server),
        };
        let client = client.build().expect("a client");
        let began = std::time::Instant::now();
        let response = within(client.get(server.url("/"))).await;
        assert_eq!(text(response.expect("answered")).await, "arrived");
        assert_eq!(within(reports.recv()).await, Some(true), "{protocols:?}");
        let took = began.elapsed();
        assert!(took.as_secs() < 10, "{protocols:?}: {took:?}");
    }
}
