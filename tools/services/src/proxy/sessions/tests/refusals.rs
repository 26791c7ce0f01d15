//! Sessions that are not opened.

use http_body_util::BodyExt as _;

use super::*;

async fn text(response: Response<h3::Body>) -> String {
    let content = within(response.into_body().collect()).await;
    let content = content.expect("whole").to_bytes();
    String::from_utf8_lossy(&content).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_of_the_upstream_server_is_passed_on() {
    let upstream = Upstream::start(Config::new());
    let gate = Gate::to(upstream.handle.local_addr(), &upstream.identity);
    let client = gate.client().await;
    // The echo explains what is wrong with a query.
    let response = client.refused(client.request("/echo?open=many")).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(text(response).await.contains("many"));
    // The upstream server decides about origins.
    let origin = HeaderValue::from_static("https://evil.test");
    let response = client.refused(client.request("/echo").origin(origin)).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let response = client.refused(client.request("/other")).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    let stats = gate.sessions.stats();
    assert_eq!(
        (stats.open, stats.refused_upstream, stats.failed),
        (0, 3, 0)
    );
    assert!(gate.reports.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_servers_are_reported_with_what_to_do() {
    let identity = Identity::dev().expect("random numbers");
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    let gate = Gate::to_url(&format!("https://{address}"), &identity, 10);
    let client = gate.client().await;
    let response = client.refused(client.request("/echo")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let report = gate.report();
    assert!(
        report.contains("check that the server runs and listens at this address"),
        "{report}"
    );
    assert!(report.contains("upstream_refused"), "{report}");
    assert_eq!(gate.sessions.stats().failed, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_sessions_and_untrusted_ones_get_502() {
    let identity = Identity::dev().expect("random numbers");
    // HTTP/3 without WebTransport.
    let bound = courser::serve("127.0.0.1:0", identity.clone()).bind();
    let bound = bound.expect("a port");
    let plain = bound.handle();
    let service = files().into_service(false, Recorder::default());
    tokio::spawn(async move { bound.service(service).await });
    let gate = Gate::to(plain.local_addr(), &identity);
    let client = gate.client().await;
    let response = client.refused(client.request("/echo")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let report = gate.report();
    assert!(
        report.contains("enable HTTP/3 and WebTransport in the server")
            && report.contains("upstream_without_sessions"),
        "{report}"
    );
    // A certificate of somebody else.
    let upstream = Upstream::start(any_origin());
    let gate = Gate::to(upstream.handle.local_addr(), &identity);
    let client = gate.client().await;
    let response = client.refused(client.request("/echo")).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
    let report = gate.report();
    assert!(
        report.contains("name the authority or the hash to trust")
            && report.contains("upstream_untrusted"),
        "{report}"
    );
}

/// A site that forwards requests and has no server for sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_without_a_server_for_sessions_answer_501() {
    let (sender, reports) = mpsc::channel();
    let backend = crate::proxy::Backend::parse("http://127.0.0.1:1").expect("a URL");
    let proxy = crate::proxy::Proxy::new(backend, times());
    let proxy = proxy.on_failure(move |text| drop(sender.send(text.to_owned())));
    let identity = Identity::dev().expect("random numbers");
    let bound = server(&identity, any_origin());
    let handle = bound.handle();
    let service = Site::Proxy(Box::new(proxy)).into_service(false, Recorder::default());
    tokio::spawn(async move { bound.service(service).await });
    let client = Client::to(handle.local_addr(), &identity).await;
    let response = client.refused(client.request("/chat")).await;
    assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
    assert!(text(response).await.contains("WebTransport"));
    let report = reports.recv_timeout(Duration::from_secs(5));
    let report = report.expect("a report");
    assert!(
        report.contains("name an upstream server for sessions of WebTransport"),
        "{report}"
    );
}

/// K666.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_limited() {
    let upstream = Upstream::start(any_origin());
    let gate = Gate::with_limit(upstream.handle.local_addr(), &upstream.identity, 5);
    let client = gate.client().await;
    let mut open = Vec::new();
    // One address gets at most four fifths.
    for _ in 0..4 {
        open.push(client.open("/echo").await);
    }
    let response = client.refused(client.request("/echo")).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    open.pop();
    within(async {
        while gate.sessions.stats().open > 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.open("/echo").await;
}
