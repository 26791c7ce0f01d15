//! `serve --early-data` and `get --early-data` (RFC 8470), over a link that is slow enough for requests to arrive
//! in early data.

use serde_json::{Value, json};

use super::running::{admin, start};
use super::serving::Serving;
use crate::common::{Folder, certificate, refusal, run};
use crate::proxy::Proxy;

/// Fetches a file and returns the output. The handshake takes a round trip of 100 ms; requests that are
/// sent before its end are early data.
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
fn request_with_a_session_is_sent_early() {
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
    let log = text(&first.stderr);
    assert!(log.ends_with("[accepted]"), "{log}");
    assert!(log.contains("0-RTT), which the server accepted"), "{log}");
    let unsafe_method = ["--early-data=first", "--data", "x"];
    let posted = get(&proxy, &unsafe_method);
    assert_eq!(
        text(&posted.stderr),
        "[]",
        "an unsafe request waits for the handshake"
    );
    let expected = json!({
        "connections_accepted": 2, "connections_refused": 0, "requests_accepted": 1, "requests_too_early": 0,
        "connections_without_token": 0,
    });
    assert_eq!(counts(&serving), expected);
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
    assert_eq!(drained["early_data"], expected);
}

#[test]
fn early_data_with_client_certificates_is_a_warning() {
    let folder = Folder::new();
    let authority = certificate(2200);
    let mut serving = start(&folder, &["--early-data", "--client-ca", &authority.cert]);
    // Warnings about sockets may come first.
    let events = (0..4).map(|_| serving.next_of_all_events()["text"].to_string());
    let mut events = events.filter(|text| text.contains("--early-data"));
    let warning = events.next().expect("a warning");
    assert!(warning.contains("--client-ca"), "{warning}");
}

#[test]
fn servers_without_the_flag_reject_early_data() {
    let folder = Folder::new();
    folder.file("a.txt", "content");
    let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
    assert_eq!(serving.announced["early_data"], false);
    let proxy = Proxy::start(serving.address, "50ms", &[]);
    let output = get(&proxy, &["--early-data=first", "-v"]);
    assert_eq!(text(&output.stdout), "content");
    assert!(
        text(&output.stderr).ends_with("[]"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(counts(&serving)["connections_accepted"], 0);
}

#[test]
fn early_data_with_conflicting_flags_is_rejected() {
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
