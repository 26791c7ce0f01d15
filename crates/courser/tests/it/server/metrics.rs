//! The metrics of a server.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, post};
use courser::observe::Metrics;
use courser::server::{Limits, Protocol};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::client::{Client, empty, request, text};
use super::{Running, start_with, within};
use crate::common::until;

fn app() -> Router {
    async fn panics() -> String {
        panic!("a service that fails")
    }
    async fn hangs() -> String {
        std::future::pending().await
    }
    Router::new()
        .route("/", get(|| async { "served" }))
        .route("/echo", post(|body: Body| async { body }))
        .route("/panics", get(panics))
        .route("/hangs", get(hangs))
}

fn start(metrics: &Metrics) -> Running {
    start_with(app(), |server| server.metrics(metrics))
}

async fn connect(protocol: Protocol, running: &Running) -> Client {
    let address = running.handle.local_addr();
    let client = within(Client::connect(protocol, address, &running.identity)).await;
    client.expect("a server")
}

/// Returns true if the metrics have this line.
fn has(metrics: &Metrics, line: &str) -> bool {
    metrics.text().lines().any(|it| it == line)
}

/// Waits for a line, because requests are counted when their last part was given to the connection or dropped.
async fn wait_for(metrics: &Metrics, line: &str) {
    until(|| has(metrics, line)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_counted_by_protocol_method_and_code() {
    let metrics = Metrics::new();
    let running = start(&metrics);
    assert!(has(&metrics, "courser_ready 1.0"));
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        for _ in 0..3 {
            assert_eq!(within(client.text("/")).await, "served");
        }
        for (method, path, status) in [
            ("POST", "/echo", 200),
            ("HEAD", "/", 200),
            ("GET", "/missing", 404),
            ("GET", "/panics", 500),
            ("BREW", "/", 405),
            ("TEA", "/", 405),
        ] {
            let response = within(client.send(request(method, path, empty()))).await;
            let response = response.expect("an answer");
            assert_eq!(response.status(), status, "{protocol} {method} {path}");
            within(text(response)).await;
        }
        for (labels, count) in [
            (r#"method="GET",code="200""#, 3),
            (r#"method="POST",code="200""#, 1),
            (r#"method="HEAD",code="200""#, 1),
            (r#"method="GET",code="404""#, 1),
            (r#"method="GET",code="500""#, 1),
            (r#"method="other",code="405""#, 2),
        ] {
            let line =
                format!(r#"courser_http_requests_total{{protocol="{protocol}",{labels}}} {count}"#);
            wait_for(&metrics, &line).await;
        }
        for (name, count) in [
            ("http_request_duration_seconds_count", 9),
            ("http_response_content_bytes_total", 3 * 6),
            ("http_responses_incomplete_total", 0),
            ("connections_total", 1),
        ] {
            let line = format!(r#"courser_{name}{{protocol="{protocol}"}} {count}"#);
            wait_for(&metrics, &line).await;
        }
        for (name, value) in [("connections_open", "1.0"), ("requests_in_flight", "0.0")] {
            let line = format!(r#"courser_{name}{{protocol="{protocol}"}} {value}"#);
            wait_for(&metrics, &line).await;
        }
    }
    assert!(has(&metrics, "courser_handler_panics_total 3"));
    let address = running.handle.local_addr();
    let established =
        format!(r#"courser_connections_established_total{{endpoint="{address}",side="server"}} 1"#);
    assert!(has(&metrics, &established), "{}", metrics.text());
    is_well_formed(&metrics.text());
}

/// Every series is there once, and each has a type.
fn is_well_formed(text: &str) {
    let mut seen = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(kind) => {
                let name = kind.split(' ').next().expect("a name");
                assert!(kinds.insert(name), "{name} is there twice");
            }
            None if line.starts_with('#') => {}
            None => {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                assert!(seen.insert(series), "{series} is there twice");
                value.parse::<f64>().expect("a number");
                let name = series.split('{').next().expect("a name");
                let known = ["", "_total", "_bucket", "_sum", "_count"];
                let base = |suffix: &&str| name.strip_suffix(*suffix);
                let is_known = known.iter().filter_map(base).any(|it| kinds.contains(it));
                assert!(is_known, "{name} has no type");
            }
        }
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_and_services_that_hang_are_counted() {
    let metrics = Metrics::new();
    let running = start_with(app(), |server| server.metrics(&metrics));
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        let leaving = async {
            tokio::select! {
                biased;
                answered = client.get("/hangs") => panic!("{:?}", answered.map(|it| it.status())),
                () = until(|| running.handle.stats().of(protocol).requests_in_flight == 1) => {}
            }
        };
        within(leaving).await;
        drop(client);
        let line = format!(
            r#"courser_http_requests_total{{protocol="{protocol}",method="GET",code="499"}} 1"#
        );
        wait_for(&metrics, &line).await;
        let line = format!(r#"courser_http_responses_incomplete_total{{protocol="{protocol}"}} 1"#);
        wait_for(&metrics, &line).await;
    }
    let slow = Metrics::new();
    let mut limits = Limits::default();
    limits.handler_timeout = Some(std::time::Duration::from_millis(50));
    let running = start_with(app(), |server| server.metrics(&slow).limits(limits));
    for protocol in Protocol::ALL {
        let mut client = connect(protocol, &running).await;
        let response = within(client.get("/hangs")).await.expect("an answer");
        assert_eq!(response.status(), 503);
        let line = format!(
            r#"courser_http_requests_total{{protocol="{protocol}",method="GET",code="503"}} 1"#
        );
        wait_for(&slow, &line).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_the_service_does_not_get_are_counted() {
    let metrics = Metrics::new();
    let running = start(&metrics);
    let address = running.handle.local_addr();
    let plain = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within(plain).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let refused = r#"courser_http_requests_refused_total{cause="plain_http"} 1"#;
    wait_for(&metrics, refused).await;
    let line = r#"courser_http_requests_total{protocol="none",method="other",code="400"} 1"#;
    assert!(has(&metrics, line), "{}", metrics.text());
}

/// A program may have several servers, one after the other too. Counters never decrease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_several_servers_are_added() {
    let metrics = Metrics::new();
    let (first, second) = (start(&metrics), start(&metrics));
    for (running, requests) in [(&first, 1), (&second, 2)] {
        let mut client = connect(Protocol::Http2, running).await;
        for _ in 0..requests {
            assert_eq!(within(client.text("/")).await, "served");
        }
    }
    let requests = r#"courser_http_requests_total{protocol="h2",method="GET",code="200"} 3"#;
    wait_for(&metrics, requests).await;
    let connections = r#"courser_connections_total{protocol="h2"} 2"#;
    assert!(has(&metrics, connections), "{}", metrics.text());
    assert!(has(&metrics, "courser_ready 1.0"), "both are");
    is_well_formed(&metrics.text());

    let handle = first.handle.clone();
    first.drained().await;
    assert!(has(&metrics, "courser_ready 0.0"), "one is not");
    drop(handle);
    wait_for(&metrics, "courser_ready 1.0").await;
    assert!(has(&metrics, connections), "the past counts");
    second.drained().await;
    wait_for(&metrics, connections).await;
    assert!(has(&metrics, requests));
    is_well_formed(&metrics.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_is_reported_while_it_lasts() {
    let metrics = Metrics::new();
    let begun = Arc::new(Notify::new());
    let go_on = Arc::new(Notify::new());
    let (begin, end) = (begun.clone(), go_on.clone());
    let waits = get(move || {
        let (begin, end) = (begin.clone(), end.clone());
        async move {
            begin.notify_one();
            end.notified().await;
            "late"
        }
    });
    let running = start_with(app().route("/waits", waits), |server| {
        server.metrics(&metrics)
    });
    let mut client = connect(Protocol::Http2, &running).await;
    let waiting = crate::common::spawn(async move {
        let response = client.get("/waits").await.expect("an answer");
        response
            .into_body()
            .collect()
            .await
            .expect("complete")
            .to_bytes()
    });
    within(begun.notified()).await;
    running.handle.drain();
    wait_for(&metrics, "courser_draining 1.0").await;
    wait_for(&metrics, "courser_drain_connections 1.0").await;
    wait_for(&metrics, "courser_drain_deadline_seconds 30.0").await;
    wait_for(&metrics, r#"courser_requests_in_flight{protocol="h2"} 1.0"#).await;
    go_on.notify_one();
    assert_eq!(within(waiting).await.expect("no panic"), "late");
    within(running.task).await.expect("no panic");
    wait_for(&metrics, "courser_draining 0.0").await;
}
