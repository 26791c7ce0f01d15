//! Connections move between sockets during transfers.

use serde_json::Value;

use super::run;
use super::server::Server;
use crate::common::{self, refusal};

#[test]
fn transfers_succeed_while_connections_move() {
    let server = Server::start();
    // One transfer after the other, for as long as the moves take.
    let url = server.url("/echo?[1-500]");
    let flags = ["--http3-only", "--cacert", &server.cert, "-o", "/dev/null"];
    let moved = |more: &[&str]| {
        let output = run(&[&flags[..], more, &[&url]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{more:?}: {error}");
        (String::from_utf8(output.stdout).expect("UTF-8"), error)
    };
    let (_, error) = moved(&["--rebind-every", "0.05"]);
    assert!(error.starts_with("courser: moves: "), "{error}");
    assert!(error.contains(", stalls p50 "), "{error}");
    let (lines, error) = moved(&["--migrate-every", "0.05", "--timing-json", "-s"]);
    assert_eq!(error, "", "no output with --silent");
    let last = lines.lines().last().expect("a line for each transfer");
    let facts: Value = serde_json::from_str(last).expect("JSON");
    assert!(common::number(&facts, "moves.count") >= 1.0, "{facts:#}");
    assert_eq!(facts["moves"]["failed"], 0, "{facts:#}");
}

#[test]
fn protocols_over_tcp_cannot_move() {
    for version in ["--http2", "--http1.1"] {
        let line = refusal(&["get", version, "--rebind-every", "1", "https://localhost/"]);
        assert!(
            line.contains("--rebind-every") && line.contains(version),
            "{line}"
        );
    }
}
