//! Requests in early data (0-RTT): `serve --early-data` and `get --early-data`, with a link between them
//! that is slow enough for requests to be early. RFC 8470.

use serde_json::{Value, json};

use super::running::{admin, start};
use super::serving::Serving;
use crate::common::{Folder, certificate, refusal, run};
use crate::proxy::Proxy;

/// Fetches a file and returns the output. The handshake takes a round trip of 100 ms, and a request that
/// leaves meanwhile is early.
fn get(proxy: &Proxy, flags: &[&str]) -> std::process::Output {
    let port = proxy.address.port();
    let resolve = format!("localhost:{port}:127.0.0.1");
    let url = format!("https://localhost:{port}/a.txt");
    let fixed = ["get", "--http3-only", "--insecure"];
    let place = [
        "--resolve",
        &resolve,
        "--write-out",
        "%{stderr}[%{early_data}]",
    ];
    run(&[&fixed[..], &place, flags, &[&url]].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn counts(serving: &Serving) -> Value {
    let status: Value = serde_json::from_str(&admin(serving, "/status").1).expect("JSON");
    status["early_data"].clone()
}

#[test]
fn a_request_is_early_once_a_session_is_known() {
    let folder = Folder::new();
    folder.file("a.txt", "content");
    let mut serving = start(&folder, &["--early-data", "--admin", "127.0.0.1:0"]);
    assert_eq!(serving.announced["early_data"], true);
    let proxy = Proxy::start(serving.address, "50ms", &[]);
    let plain = get(&proxy, &["--early-data"]);
    assert_eq!(text(&plain.stdout), "content");
    assert_eq!(
        text(&plain.stderr),
        "[]",
        "the first connection has no session"
    );
    let first = get(&proxy, &["--early-data=first", "-v"]);
    assert_eq!(text(&first.stdout), "content");
    let told = text(&first.stderr);
    assert!(told.ends_with("[accepted]"), "{told}");
    assert!(
        told.contains("0-RTT), which the server has accepted"),
        "{told}"
    );
    let unsafe_method = ["--early-data=first", "--data", "x"];
    let posted = get(&proxy, &unsafe_method);
    assert_eq!(text(&posted.stderr), "[]", "it waits for the handshake");
    let wanted = json!({
        "connections_accepted": 2, "connections_refused": 0, "requests_accepted": 1, "requests_too_early": 0,
        "connections_without_token": 0,
    });
    assert_eq!(counts(&serving), wanted);
    let metrics = admin(&serving, "/metrics").1;
    for line in [
        "courser_early_data_connections_total{result=\"accepted\"} 2",
        "courser_early_data_requests_total{result=\"accepted\"} 1",
        "courser_early_data_requests_total{result=\"too_early\"} 0",
    ] {
        assert!(
            metrics.lines().any(|seen| seen == line),
            "no {line} in {metrics}"
        );
    }
    serving.signal(rustix::process::Signal::TERM);
    assert_eq!(serving.next_event()["event"], "draining");
    let drained = serving.next_event();
    assert_eq!(drained["event"], "drained");
    assert_eq!(drained["early_data"], wanted);
}

#[test]
fn early_data_with_client_certificates_is_warned_of() {
    let folder = Folder::new();
    let authority = certificate(2200);
    let mut serving = start(&folder, &["--early-data", "--client-ca", &authority.cert]);
    // Warnings about sockets may come before it.
    let told = (0..4).map(|_| serving.next_of_all_events()["text"].to_string());
    let mut told = told.filter(|text| text.contains("--early-data"));
    let warning = told.next().expect("a warning");
    assert!(warning.contains("--client-ca"), "{warning}");
}

#[test]
fn servers_without_the_flag_accept_nothing_early() {
    let folder = Folder::new();
    folder.file("a.txt", "content");
    let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
    assert_eq!(serving.announced["early_data"], false);
    let proxy = Proxy::start(serving.address, "50ms", &[]);
    let asked = get(&proxy, &["--early-data=first", "-v"]);
    assert_eq!(text(&asked.stdout), "content");
    assert!(
        text(&asked.stderr).ends_with("[]"),
        "{}",
        text(&asked.stderr)
    );
    assert_eq!(counts(&serving)["connections_accepted"], 0);
}

#[test]
fn flags_that_exclude_early_data_are_refused() {
    for other in ["--http2", "--http1.1"] {
        let get = refusal(&["get", "--early-data", other, "https://localhost/"]);
        let names_both = get.contains("--early-data") && get.contains(other);
        assert!(names_both, "{get}");
    }
    let serve = refusal(&["serve", "--early-data", "--no-quic"]);
    assert!(serve.contains("--no-quic"), "{serve}");
    let when = refusal(&[
        "get",
        "--http3-only",
        "--early-data=never",
        "https://localhost/",
    ]);
    assert!(when.contains("never"), "{when}");
}
