//! Effects of signals. Other systems than Unix have only the interrupt.

use courser::server::Protocol;
use http::Method;
use http_body_util::BodyExt as _;
use rustix::process::Signal;
use serde_json::Value;

use super::client::{Client, request};
use super::running::{admin, start};
use super::serving::Serving;
use super::within;
use crate::common::{Folder, certificate};

/// A response that has begun before the signal is finished.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_drains_and_counts() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    for protocol in Protocol::ALL {
        let mut serving = start(&folder, &["--no-compress"]);
        let mut client = serving.client(protocol).await;
        let request = request(Method::GET, "/large", &[], "");
        let response = within(client.begin(request)).await.expect("an answer");
        serving.signal(Signal::TERM);
        assert_eq!(serving.next_event()["event"], "draining");
        // The event is sent while the sockets are being closed.
        let mut attempts = 0;
        loop {
            let late = Client::connect(protocol, serving.address, serving.certificate());
            let late = tokio::time::timeout(std::time::Duration::from_secs(3), late).await;
            if !matches!(late, Ok(Ok(_))) {
                break;
            }
            attempts += 1;
            assert!(attempts < 10, "{protocol}: new connections are accepted");
        }
        let content = within(response.into_body().collect())
            .await
            .expect("finished");
        assert_eq!(content.to_bytes().len(), 30_000_000, "{protocol}");
        let drained = serving.next_event();
        assert_eq!(drained["event"], "drained", "{drained}");
        assert_eq!(drained["requests_finished"], 1, "{protocol}: {drained}");
        assert_eq!(drained["requests_cut"], 0, "{protocol}: {drained}");
        serving.ended();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deadline_and_second_signal_abort_requests() {
    let folder = Folder::new();
    folder.file("large", &"x".repeat(30_000_000));
    for (timeout, signals) in [("0.5", 1), ("3600", 2)] {
        let mut serving = start(&folder, &["--no-compress", "--drain-timeout", timeout]);
        let mut client = serving.client(Protocol::Http2).await;
        let request = request(Method::GET, "/large", &[], "");
        let _unread = within(client.begin(request)).await.expect("an answer");
        for _ in 0..signals {
            serving.signal(Signal::TERM);
            // Signals in quick succession are merged.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        assert_eq!(serving.next_event()["event"], "draining");
        let drained = serving.next_event();
        assert_eq!(drained["requests_cut"], 1, "{timeout}: {drained}");
        serving.ended();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sighup_reloads_the_certificate() {
    let folder = Folder::new();
    folder.file("index.html", "home");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let (old, new) = (certificate(2100), certificate(2101));
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
        "--cert",
        &old.cert,
        "--key",
        &old.key,
        &path,
    ];
    let mut serving = Serving::run(&arguments, Folder::new());
    let first = serving.announced["certificate"]["sha256"].clone();
    std::fs::copy(&new.key, &old.key).expect("our file");
    serving.signal(Signal::HUP);
    let event = serving.next_event();
    assert_eq!(event["event"], "certificate_kept", "{event} after {first}");
    std::fs::copy(&new.cert, &old.cert).expect("our file");
    serving.signal(Signal::HUP);
    let replaced = loop {
        let event = serving.next_event();
        if event["event"] != "certificate_kept" {
            break event;
        }
    };
    assert_eq!(replaced["event"], "certificate_replaced");
    let identity = courser::Identity::from_pem_files(&new.cert, &new.key).expect("readable");
    for protocol in Protocol::ALL {
        let client = Client::connect(protocol, serving.address, identity.certificate());
        let mut client = within(client).await.expect("the new certificate");
        assert_eq!(client.get("/", &[]).await.text(), "home", "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_logged() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let logs = Folder::new();
    let log = logs.path().join("access.log");
    let log_text = log.to_str().expect("UTF-8");
    for format in ["common", "combined", "json"] {
        let flag = format!("--access-log={format}");
        let mut serving = start(&folder, &[&flag, "--access-log-file", log_text]);
        let mut client = serving.client(Protocol::Http3).await;
        let fields = [("user-agent", "te\"st"), ("referer", "https://x/")];
        assert_eq!(client.get("/a.txt?q='1'", &fields).await.status, 200);
        drop(client);
        serving.signal(Signal::TERM);
        while serving.next_event()["event"] != "drained" {}
        serving.ended();
        let text = std::fs::read_to_string(&log).expect("written");
        std::fs::remove_file(&log).expect("our file");
        assert_eq!(text.lines().count(), 1, "{text}");
        let line = text.trim_end();
        if format == "json" {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(
                (&line["uri"], &line["status"]),
                (&"/a.txt?q='1'".into(), &200.into())
            );
            assert_eq!(
                (&line["bytes"], &line["protocol"]),
                (&5.into(), &"HTTP/3.0".into())
            );
            assert_eq!(line["complete"], true, "{line}");
        } else {
            let tail = "\"GET /a.txt?q='1' HTTP/3.0\" 200 5";
            assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
            assert!(line.contains(tail), "{line}");
            let has_agent = line.ends_with("\"https://x/\" \"te\\\"st\"");
            assert_eq!(has_agent, format == "combined", "{line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_ends_first() {
    let folder = Folder::new();
    let serving = start(
        &folder,
        &["--admin", "127.0.0.1:0", "--drain-delay", "3600"],
    );
    assert_eq!(admin(&serving, "/ready").0, 200);
    serving.signal(Signal::TERM);
    within(async {
        while admin(&serving, "/ready").0 != 503 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(admin(&serving, "/health").0, 200);
}
