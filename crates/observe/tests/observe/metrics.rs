//! Tests of metrics as text and through the facade of the crate `metrics`.

use std::sync::Arc;
use std::time::Duration;

use courser_observe::Metrics;
use courser_quic::telemetry::SinkFactory;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use tower::ServiceExt as _;

use super::Pair;

/// Returns metrics of a server whose client has closed its connection.
async fn measured() -> Metrics {
    let metrics = Metrics::new();
    let sinks: Arc<dyn SinkFactory> = metrics.sinks();
    let pair = Pair::connect(&sinks).await;
    metrics.watch("public", &pair.server);
    let text = metrics.text();
    assert_eq!(SIDES.map(|side| active(&text, side)), [1.0, 1.0], "{text}");
    // The endpoints live until the connections have drained.
    let _endpoints = pair.exchange().await;
    let drained = async {
        while SIDES.iter().any(|side| active(&metrics.text(), side) > 0.0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let drained = tokio::time::timeout(Duration::from_secs(10), drained).await;
    drained.expect("connections drain");
    metrics
}

const SIDES: [&str; 2] = ["client", "server"];

fn active(text: &str, side: &str) -> f64 {
    value(
        text,
        &format!("courser_connections_active{{side=\"{side}\"}}"),
    )
}

#[track_caller]
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn text_counts_connections_and_the_causes_of_their_ends() {
    let text = measured().await.text();
    for (series, expected) in [
        (r#"courser_connections_started_total{side="client"}"#, 1.0),
        (
            r#"courser_connections_established_total{side="server"}"#,
            1.0,
        ),
        (r#"courser_connections_active{side="server"}"#, 0.0),
        (
            r#"courser_handshake_duration_seconds_count{side="server"}"#,
            1.0,
        ),
        (r#"courser_smoothed_rtt_seconds_count{family="ipv4"}"#, 2.0),
        (r#"courser_smoothed_rtt_seconds_count{family="ipv6"}"#, 0.0),
        (
            r#"courser_connections_closed_total{side="server",by="peer",cause="application error 0x7"}"#,
            1.0,
        ),
        (
            r#"courser_connections_closed_total{side="client",by="local",cause="application error 0x7"}"#,
            1.0,
        ),
        (
            r#"courser_endpoint_accepted_total{endpoint="public",shard="0"}"#,
            1.0,
        ),
        (
            r#"courser_endpoint_connections{endpoint="public",shard="0"}"#,
            0.0,
        ),
        (
            r#"courser_endpoint_refused_total{endpoint="public",shard="0",reason="memory"}"#,
            0.0,
        ),
    ] {
        let seen = value(&text, series);
        assert!((seen - expected).abs() < f64::EPSILON, "{series} {seen}");
    }
    let received = r#"courser_socket_bytes_total{endpoint="public",direction="received"}"#;
    assert!(value(&text, received) > 1200.0);
    let wanted = r#"courser_socket_buffer_wanted_bytes{endpoint="public",direction="received"}"#;
    assert!(value(&text, wanted) > 0.0);
    assert!(
        value(
            &text,
            r#"courser_send_limited_seconds_total{by="application",family="ipv4"}"#
        ) > 0.0
    );
    for histogram in [
        "handshake_duration_seconds",
        "smoothed_rtt_seconds",
        "datagram_size_bytes",
    ] {
        let last = text.lines().filter(|line| {
            line.starts_with(&format!("courser_{histogram}_bucket")) && line.contains("le=\"+Inf\"")
        });
        assert!(last.count() >= 1, "{histogram}\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn connections_of_named_endpoints_are_counted_separately() {
    let metrics = Metrics::new();
    for name in ["public", "internal"] {
        let sinks: Arc<dyn SinkFactory> = metrics.sinks_named(name);
        let pair = Pair::connect(&sinks).await;
        metrics.watch(name, &pair.server);
        let _endpoints = pair.exchange().await;
    }
    let text = metrics.text();
    for name in ["public", "internal"] {
        let closed = format!(
            "courser_connections_closed_total{{endpoint=\"{name}\",side=\"server\",by=\"peer\",cause=\"application error 0x7\"}}"
        );
        assert!((value(&text, &closed) - 1.0).abs() < f64::EPSILON, "{text}");
        let handshakes = format!(
            "courser_handshake_duration_seconds_count{{endpoint=\"{name}\",side=\"client\"}}"
        );
        assert!(
            (value(&text, &handshakes) - 1.0).abs() < f64::EPSILON,
            "{text}"
        );
        let limited = format!(
            "courser_send_limited_seconds_total{{endpoint=\"{name}\",by=\"application\",family=\"ipv4\"}}"
        );
        assert!(value(&text, &limited) > 0.0, "{text}");
    }
    // All series belong to an endpoint.
    let without = "courser_connections_started_total{side";
    assert!(!text.contains(without), "{text}");
}

#[tokio::test]
async fn every_family_is_contiguous_and_described_once() {
    let text = measured().await.text();
    let kinds: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let mut names: Vec<_> = kinds.iter().map(|line| line.split(' ').next()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "{text}");
    assert!(all > 25, "{text}");
}

#[tokio::test]
async fn unwatched_endpoint_is_not_reported() {
    let metrics = measured().await;
    assert!(metrics.unwatch("public"));
    assert!(!metrics.unwatch("public"));
    assert!(!metrics.text().contains("public"));
}

#[tokio::test]
async fn service_answers_only_get_and_head() {
    let metrics = measured().await;
    let ask = |method: &str| {
        let request = Request::builder()
            .method(method)
            .uri("/metrics")
            .body(())
            .unwrap();
        metrics.service().oneshot(request)
    };
    let response = ask("GET").await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let kind = &response.headers()["content-type"];
    assert_eq!(
        kind,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"# HELP courser_"));
    let response = ask("POST").await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[tokio::test]
async fn facade_has_the_values_of_the_text() {
    let measured = measured().await;
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        measured.publish();
        measured.publish();
    });
    let found = |name: &str, labels: &[(&str, &str)]| {
        snapshots
            .snapshot()
            .into_vec()
            .into_iter()
            .find_map(|(key, _, _, value)| {
                let key = key.key();
                let has = |(name, of): &(&str, &str)| {
                    key.labels()
                        .any(|it| it.key() == *name && it.value() == *of)
                };
                (key.name() == name && labels.iter().all(has)).then_some(value)
            })
    };
    let accepted = found("courser_endpoint_accepted_total", &[("endpoint", "public")]);
    assert_eq!(accepted, Some(DebugValue::Counter(1)));
    metrics::with_local_recorder(&recorder, || measured.publish());
    let count = found(
        "courser_handshake_duration_seconds_count",
        &[("side", "server")],
    );
    assert_eq!(count, Some(DebugValue::Counter(1)));
}
