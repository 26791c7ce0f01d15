//! Connections move between sockets under load.

use super::servers::{App, Server};
use super::{report, text};
use crate::common::{number, refusal};

#[test]
fn connections_move_and_no_request_is_lost() {
    let server = Server::http3(App::default());
    let url = server.https("/");
    let load = ["--h3", "-k", "-D", "1.5", "-c", "2", "-m", "4"];
    let report = report(&[&load[..], &["--rebind-every", "0.2", &url]].concat());
    assert!(number(&report, "moves.count") >= 4.0, "{report:#}");
    assert_eq!(report["moves"]["failed"], 0, "{report:#}");
    let stall = number(&report, "moves.stall.max_us");
    assert!(stall > 0.0 && stall < 1.5e6, "{report:#}");
    assert_eq!(report["requests"]["errored"], 0, "{report:#}");
    assert_eq!(report["connections"]["lost"], 0, "{report:#}");
}

#[test]
fn moves_are_in_the_text_reports() {
    let server = Server::http3(App::default());
    let url = server.https("/");
    let load = ["--h3", "-k", "-D", "1", "--migrate-every", "0.2", &url];
    let h2load = text(&load);
    assert!(h2load.contains("\nmoves: "), "{h2load}");
    assert!(h2load.contains(", stalls p50 "), "{h2load}");
    let oha = [
        "--style",
        "oha",
        "--h3",
        "-k",
        "-z",
        "1s",
        "--rebind-every",
        "200ms",
        &url,
    ];
    let oha = text(&oha);
    assert!(oha.contains("\n  Moves:\t"), "{oha}");
    // Without the flag there is no such line.
    let still = text(&["--h3", "-k", "-n", "1", &url]);
    assert!(!still.contains("moves"), "{still}");
}

#[test]
fn tcp_connections_cannot_move() {
    let line = refusal(&["load", "--rebind-every", "1", "-k", "https://127.0.0.1:1/"]);
    assert!(
        line.contains("--rebind-every moves QUIC connections: use it with --h3"),
        "{line}"
    );
}
