//! `load --disable-keepalive` with resumed sessions and early data (0-RTT).

use serde_json::{Value, json};

use super::{report, text};
use crate::common::{Folder, refusal};
use crate::serve::serving::Serving;

/// Starts a server, whose folder has to outlive it.
fn start(flags: &[&str]) -> (Serving, Folder) {
    let folder = Folder::new();
    folder.file("a.txt", "content");
    let path = folder.path().to_str().expect("UTF-8").to_owned();
    let serving = Serving::start(&[&[&path[..]], flags].concat());
    (serving, folder)
}

const REQUESTS: u64 = 20;

/// Sends 20 requests of two clients to a server, each on its own connection.
fn load(serving: &Serving, flags: &[&str]) -> Value {
    let url = format!("https://{}/a.txt", serving.address);
    let fixed = ["--insecure", "-n", "20", "-c", "2", "--disable-keepalive"];
    let report = report(&[&fixed[..], flags, &[&url]].concat());
    assert_eq!(report["requests"]["succeeded"], REQUESTS, "{report}");
    assert_eq!(report["connections"]["made"], REQUESTS, "{report}");
    assert_eq!(report["connections"]["lost"], 0, "{report}");
    report["connections"]["handshakes"].clone()
}

fn handshakes(full: u64, accepted: u64) -> Value {
    json!({
        "full": full,
        "resumed": REQUESTS - full,
        "earlyDataAccepted": accepted,
        "earlyDataRejected": 0,
    })
}

#[test]
fn connections_resume_and_send_early_data() {
    let (serving, _folder) = start(&["--early-data"]);
    assert_eq!(
        load(&serving, &["--h3"]),
        Value::Null,
        "no resumption without the flag"
    );
    // The first connection of each client has no ticket.
    let resumed = load(&serving, &["--h3", "--resume"]);
    assert_eq!(resumed, handshakes(2, 0));
    let early = load(&serving, &["--h3", "--early-data"]);
    assert_eq!(early, handshakes(2, REQUESTS - 2));
    let over_tcp = load(&serving, &["--h2", "--resume"]);
    assert_eq!(over_tcp, handshakes(2, 0));
    let url = format!("https://{}/a.txt", serving.address);
    let flags = ["--h3", "-n", "5", "--disable-keepalive", "--early-data"];
    let output = text(&[&["--insecure"], &flags[..], &[&url]].concat());
    let expected = "handshakes: 1 full, 4 resumed; early data 4 accepted, 0 rejected";
    assert!(output.contains(expected), "{output}");
}

#[test]
fn sessions_are_resumed_without_early_data() {
    let (serving, _folder) = start(&[]);
    let early = load(&serving, &["--h3", "--early-data"]);
    assert_eq!(early, handshakes(2, 0));
}

/// Requests at a rate are early too: a connection begins when its request is due.
#[test]
fn requests_at_a_rate_have_their_own_connections() {
    let (serving, _folder) = start(&["--early-data"]);
    let early = load(&serving, &["--h3", "--early-data", "--qps", "100"]);
    assert_eq!(early, handshakes(2, REQUESTS - 2));
}

#[test]
fn early_data_with_conflicting_flags_is_rejected() {
    let with = |flags: &[&str]| {
        let url = ["https://localhost/"];
        refusal(&[&["load", "--disable-keepalive"], flags, &url].concat())
    };
    let tcp = with(&["--h2", "--early-data"]);
    assert!(tcp.contains("needs HTTP/3"), "{tcp}");
    for flags in [["-d", "/dev/null"], ["--method", "POST"]] {
        let posted = with(&[&["--h3", "--early-data"], &flags[..]].concat());
        assert!(posted.contains("safe method"), "{posted}");
    }
    let clear = [
        "load",
        "--disable-keepalive",
        "--resume",
        "http://localhost/",
    ];
    let clear = refusal(&clear);
    assert!(clear.contains("https://"), "{clear}");
    let alone = refusal(&["load", "--h3", "--early-data", "https://localhost/"]);
    assert!(alone.contains("--disable-keepalive"), "{alone}");
}
