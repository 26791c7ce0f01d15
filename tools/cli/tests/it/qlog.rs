//! `courser qlog` on traces of other implementations.

use std::path::PathBuf;
use std::process::{Command, Output};

fn trace(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/data");
    format!("{folder}/{name}")
}

fn courser(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_courser"))
        .arg("qlog")
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn summary_reports_the_events_of_the_connection() {
    let output = courser(&["summary", &trace("quic-go-0.65-client.sqlog")]);
    assert!(output.status.success());
    let shown = text(&output.stdout);
    for part in [
        "(client, JSON-SEQ, quic-14)",
        "handshake      23.4 ms",
        "52 packets, 61.8 kB",
        "2 packets, 3.85 % of those sent, 1 by the packet threshold, 1 by the time threshold",
        "closed         locally, error 0, \"bye\"",
    ] {
        assert!(shown.contains(part), "no {part:?} in\n{shown}");
    }
}

#[test]
fn json_summary_has_one_line_per_file() {
    let files = [
        trace("quiche-0.22-client.sqlog"),
        trace("quic-go-0.48-client.sqlog"),
    ];
    let output = courser(&["summary", "--json", &files[0], &files[1]]);
    let lines: Vec<serde_json::Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["sent"]["packets"], 65);
    assert_eq!(lines[1]["lost"]["reordering_threshold"], 2);
}

#[test]
fn invalid_file_is_reported_and_the_others_are_read() {
    let this = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = courser(&["summary", this, &trace("quiche-0.30-client.sqlog")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("67 packets"));
    let error = text(&output.stderr);
    assert!(
        error.contains("Cargo.toml: line 1: not a qlog trace"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn plots_are_images_and_pages() {
    let folder = std::env::temp_dir().join(format!("courser-plots-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    let plot = |what: &str, name: &str| {
        let path: PathBuf = folder.join(name);
        let shown = path.to_string_lossy().into_owned();
        let file = trace("quic-go-0.65-client.sqlog");
        let output = courser(&["plot", &file, "-o", &shown, "--what", what]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::read_to_string(path).expect("written")
    };
    for what in ["time-sequence", "cwnd", "rtt", "throughput", "all"] {
        let image = plot(what, "a.svg");
        assert!(image.starts_with("<svg"), "{what}");
    }
    let page = plot("all", "a.html");
    assert!(page.contains("<svg") && page.contains("Congestion window"));
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn unknown_plot_format_is_rejected() {
    let output = courser(&["plot", &trace("quiche-0.30-client.sqlog"), "-o", "x.png"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ends neither in .svg nor in .html"));
}
