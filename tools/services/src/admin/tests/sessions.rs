//! Sessions of WebTransport in the status and in the metrics.

use courser::webtransport::Client as SessionClient;
use http::HeaderValue;

use super::*;

/// K672, WT-v-018.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_lists_sessions() {
    let scene = Scene::start(Guard::default()).await;
    let client = SessionClient::new().trust_roots([scene.identity.certificate()]);
    let client = client.expect("a certificate");
    let url = scene.url("/chat?token=secret");
    let session = client.connect(&url).await.expect("a session");
    let evil = client.origin(HeaderValue::from_static("https://evil.test"));
    evil.connect(&url).await.expect_err("another origin");
    let status = scene
        .until("/status", |it| it["webtransport"]["refused"]["origin"] == 1)
        .await;
    let sessions = &status["webtransport"];
    assert_eq!(sessions["open"], 1, "{sessions:#}");
    assert_eq!(sessions["opened_by_dialect"]["draft-16"], 1);
    assert_eq!(sessions["limit"], 65_536);
    let listed = &sessions["sessions"][0];
    assert_eq!(listed["uri"], scene.url("/chat"), "{listed:#}");
    assert_eq!(listed["dialect"], "draft-16");
    let (_, metrics) = scene.get("/metrics").await;
    for line in [
        "courser_webtransport_sessions_open 1",
        "courser_webtransport_sessions_total{dialect=\"draft-16\"} 1",
        "courser_webtransport_sessions_refused_total{reason=\"origin\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    session.close(0, "");
    scene
        .until("/status", |it| it["webtransport"]["open"] == 0)
        .await;
}
