//! Full or blocked disks (A99, F47), and a lack of descriptors (A100, F43).

use std::fs::OpenOptions;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use courser::server::Protocol;
use rustix::process::Signal;

use super::client::Client;
use super::running::{admin, start};
use super::serving::Serving;
use super::within;
use crate::common::Folder;

const DROPS: &str = "are dropped";

fn dropped(serving: &Serving) -> u64 {
    let (_, metrics) = admin(serving, "/metrics");
    let name = "courser_access_log_dropped_total ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(name));
    value.expect("a counter").parse().expect("a number")
}

/// Sends requests with long log lines until some lines are dropped.
async fn request_until_drops(serving: &Serving, client: &mut Client) -> u64 {
    let long = "\"".repeat(1000);
    let fields = [("user-agent", &*long), ("referer", &long)];
    for _ in 0..100 {
        for _ in 0..200 {
            assert_eq!(client.get("/a.txt", &fields).await.status, 200);
        }
        if dropped(serving) > 0 {
            return dropped(serving);
        }
    }
    panic!("no line of 20 000 was dropped");
}

/// Reads events until the server has drained. Returns the warnings of dropped lines.
fn warnings_until_drained(serving: &mut Serving) -> Vec<String> {
    let mut warnings = Vec::new();
    loop {
        let event = serving.next_of_all_events();
        let text = event["text"].as_str().unwrap_or_default();
        if text.contains(DROPS) {
            warnings.push(text.to_owned());
        }
        if event["event"] == "drained" {
            return warnings;
        }
    }
}

fn logging_to(folder: &Folder, file: &str) -> Serving {
    folder.file("a.txt", "12345");
    let arguments = ["--access-log=combined", "--admin", "127.0.0.1:0"];
    start(
        folder,
        &[&arguments[..], &["--access-log-file", file]].concat(),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_log_disk_is_reported_once_and_counted() {
    let folder = Folder::new();
    let mut serving = logging_to(&folder, "/dev/full");
    let mut client = serving.client(Protocol::Http2).await;
    request_until_drops(&serving, &mut client).await;
    drop(client);
    serving.signal(Signal::TERM);
    let warnings = warnings_until_drained(&mut serving);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("No space left"), "{warnings:?}");
    serving.ended();
}

/// The log is a pipe without a reader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_log_disk_does_not_delay_requests() {
    let folder = Folder::new();
    let logs = Folder::new();
    let pipe = logs.path().join("log");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    let mut options = OpenOptions::new();
    let reader = options.read(true).write(true).open(&pipe).expect("a pipe");
    let mut serving = logging_to(&folder, pipe.to_str().expect("UTF-8"));
    let mut client = serving.client(Protocol::Http2).await;
    let first = request_until_drops(&serving, &mut client).await;
    let before = resident(&serving);
    assert!(request_until_drops(&serving, &mut client).await > first);
    let after = resident(&serving);
    assert!(after < before + 4096, "{before} KiB became {after} KiB");
    // The writing thread cannot reopen the file now, but no task waits for it.
    serving.signal(Signal::HUP);
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        assert_eq!(client.get("/a.txt", &[]).await.status, 200, "{protocol}");
    }
    drop(client);
    serving.signal(Signal::TERM);
    let warnings = warnings_until_drained(&mut serving);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("too slow"), "{warnings:?}");
    serving.ended();
    drop(reader);
}

/// Returns the resident memory of the server in KiB.
pub(super) fn resident(serving: &Serving) -> u64 {
    let path = format!("/proc/{}/status", serving.child().id());
    let status = std::fs::read_to_string(path).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.expect("a size").parse().expect("a number")
}

/// Limit K373: silent connections of one address leave descriptors to others, and for files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_leave_descriptors_to_others() {
    let folder = Folder::new();
    for number in 0..20 {
        folder.file(&format!("{number}.txt"), "12345");
    }
    let path = folder.path().to_str().expect("UTF-8");
    let serving = Serving::start_with_descriptors(128, &[path, "--cache-size", "0"]);
    let mut held = Vec::new();
    for _ in 0..300 {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 1, 0, 1], 0).into()).expect("loopback");
        let connecting = socket.connect(serving.address);
        held.push(within(connecting).await.expect("the backlog has room"));
    }
    for protocol in Protocol::ALL {
        let mut client = serving.client(protocol).await;
        for number in 0..20 {
            let status = client.get(&format!("/{number}.txt"), &[]).await.status;
            assert_eq!(status, 200, "{number} over {protocol}");
        }
    }
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_without_descriptors_recovers() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let path = folder.path().to_str().expect("UTF-8");
    let mut serving = Serving::start(&[path]);
    let mut first = serving.client(Protocol::Http2).await;
    assert_eq!(first.get("/a.txt", &[]).await.status, 200);
    // Less than what the server saw when it started, so that its reserve is no longer one.
    serving.limit_descriptors(64);
    let held: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(serving.address).expect("the backlog has room"))
        .collect();
    while serving.next_event()["event"] != "accept_failed" {}
    // Requests on open connections get responses, and a QUIC connection needs no descriptor. A file needs one:
    // without it the response is 503, or from the cache.
    let mut others = Vec::new();
    for _ in 0..20 {
        others.push(serving.client(Protocol::Http3).await);
    }
    for client in others.iter_mut().chain([&mut first]) {
        let status = client.get("/a.txt", &[]).await.status;
        assert!(status == 200 || status == 503, "{status}");
    }
    // A client over TCP waits in the backlog of the listener.
    let (address, certificate) = (serving.address, serving.certificate());
    let waits = tokio::spawn(async move {
        let client = Client::connect(Protocol::Http1, address, certificate).await;
        client.map_err(|error| error.to_string())
    });
    let mut another = serving.client(Protocol::Http3).await;
    let status = another.get("/a.txt", &[]).await.status;
    assert!(status == 200 || status == 503, "{status}");
    assert!(!waits.is_finished(), "accepted without a descriptor");
    drop(held);
    let mut waited = within(waits).await.expect("no panic").expect("a server");
    within(async {
        let mut second = serving.client(Protocol::Http2).await;
        for client in [&mut second, &mut waited, &mut first] {
            while client.get("/a.txt", &[]).await.status != 200 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    })
    .await;
    drop((first, waited, another, others));
    serving.signal(Signal::TERM);
    // The error was reported only once.
    loop {
        let event = serving.next_event();
        assert_ne!(event["event"], "accept_failed");
        if event["event"] == "drained" {
            break;
        }
    }
    serving.ended();
}
