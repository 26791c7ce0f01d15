//! Limits on clients: flags, reloaded address lists, the busy switch.

use courser::server::Protocol;
use serde_json::Value;

use super::client::Client;
use super::running::{admin, admin_request, start};
use super::serving::Serving;
use crate::common::{Folder, refusal};

/// Returns true if a client is served within four seconds.
async fn is_served(serving: &Serving, protocol: Protocol) -> bool {
    let client = Client::connect(protocol, serving.address, serving.certificate());
    let timeout = std::time::Duration::from_secs(4);
    matches!(tokio::time::timeout(timeout, client).await, Ok(Ok(_)))
}

#[test]
fn invalid_limits_are_rejected() {
    let folder = Folder::new();
    let list = folder.file("list", "192.0.2.1\n192.0.2.0/33\n");
    let allow = folder.file("allow", "");
    let cases: [(&[&str], &[&str]); 9] = [
        (&["--max-connections", "0"], &["--max-connections", "'0'"]),
        (
            &["--connection-rate", "0"],
            &["--connection-rate", "'0'", "1000000"],
        ),
        (
            &["--loaded-connection-rate", "x"],
            &["--loaded-connection-rate", "'x'"],
        ),
        (
            &["--reply-rate", "1000001"],
            &["--reply-rate", "1000001", "1000000"],
        ),
        (&["--reset-rate", "-1"], &["-1"]),
        (
            &[
                "--max-connections",
                "10",
                "--max-connections-per-address",
                "11",
            ],
            &["max_connections_per_address", "11", "1 to 10"],
        ),
        (
            &["--block", &list],
            &["--block", &list, "line 2", "192.0.2.0/33", "0 to 32"],
        ),
        (
            &["--block", "/no/such/list"],
            &["--block", "/no/such/list", "No such file"],
        ),
        (&["--allow", &allow], &["--block"]),
    ];
    for (flags, parts) in cases {
        let listen = ["serve", ".", "--listen", "127.0.0.1:0"];
        let error = refusal(&[&listen[..], flags].concat());
        for part in parts {
            assert!(error.contains(part), "no {part} in {error}");
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn address_lists_are_reloaded_on_sighup_and_when_they_change() {
    use rustix::process::Signal;
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let lists = Folder::new();
    let block = lists.file("block", "# empty\n");
    let mut serving = start(&folder, &["--block", &block, "--admin", "127.0.0.1:0"]);
    let mut client = serving.client(Protocol::Http2).await;
    assert_eq!(client.get("/a.txt", &[]).await.status, 200);
    lists.file("block", "127.0.0.0/8\n");
    serving.signal(Signal::HUP);
    let event = serving.next_event();
    assert_eq!(event["event"], "address_lists_replaced", "{event}");
    assert_eq!(event["blocked"], 1, "{event}");
    for protocol in Protocol::ALL {
        assert!(!is_served(&serving, protocol).await, "{protocol}");
    }
    let metrics = admin(&serving, "/metrics").1;
    let blocked = metrics
        .lines()
        .find_map(|line| line.strip_prefix("courser_refused_total{reason=\"blocked\"} "));
    assert_ne!(blocked.expect("a counter"), "0");
    // The file is reloaded without a signal.
    lists.file("block", "127.0.0.0/8\n127.0.0.1/33\n");
    let event = loop {
        let event = serving.next_event();
        if event["event"] != "address_lists_replaced" {
            break event;
        }
    };
    assert_eq!(event["event"], "address_lists_kept", "{event}");
    let text = event["text"].as_str().expect("text");
    assert!(
        text.contains("line 2") && text.contains("0 to 32"),
        "{text}"
    );
    assert!(!is_served(&serving, Protocol::Http3).await, "the old list");
    lists.file("block", "");
    let event = serving.next_event();
    assert_eq!(event["event"], "address_lists_replaced", "{event}");
    for protocol in Protocol::ALL {
        assert!(is_served(&serving, protocol).await, "{protocol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admin_endpoint_sets_and_clears_busy() {
    let folder = Folder::new();
    folder.file("a.txt", "12345");
    let secrets = Folder::new();
    let token = secrets.file("token", "s3cret-s3cret-s3cret\n");
    let flags = ["--admin", "127.0.0.1:0", "--admin-token-file", &token];
    let serving = start(&folder, &flags);
    let authorized = "host: localhost\r\nauthorization: Bearer s3cret-s3cret-s3cret";
    let mut client = serving.client(Protocol::Http2).await;
    assert_eq!(
        admin_request(&serving, "POST", "/busy", "host: localhost").0,
        401
    );
    assert_eq!(admin(&serving, "/ready").0, 200);
    assert_eq!(admin_request(&serving, "POST", "/busy", authorized).0, 200);
    assert_eq!(admin(&serving, "/ready").0, 503);
    assert_eq!(
        client.get("/a.txt", &[]).await.status,
        200,
        "an open connection was closed"
    );
    for protocol in Protocol::ALL {
        assert!(!is_served(&serving, protocol).await, "{protocol}");
    }
    let (_, status) = admin_request(&serving, "GET", "/status", authorized);
    let status: Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!(status["busy"], true, "{status}");
    assert!(status["refused"]["busy"].as_u64() >= Some(3), "{status}");
    assert_eq!(
        admin_request(&serving, "DELETE", "/busy", authorized).0,
        200
    );
    assert_eq!(admin(&serving, "/ready").0, 200);
    for protocol in Protocol::ALL {
        assert!(is_served(&serving, protocol).await, "{protocol}");
    }
}

/// A web page could make a browser send this request.
#[test]
fn busy_mode_needs_a_token() {
    let folder = Folder::new();
    let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
    let (status, text) = admin_request(&serving, "POST", "/busy", "host: localhost");
    assert_eq!(status, 403);
    assert!(text.contains("--admin-token-file"), "{text}");
    assert_eq!(admin(&serving, "/ready").0, 200);
    assert_eq!(admin(&serving, "/busy").0, 405);
}
