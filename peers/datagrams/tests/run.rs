//! Short runs of both programs over both libraries.

use std::process::{Command, Output};

fn run(scenarios: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_datagram-programs"))
        .args(["--pairs", "1", "--seconds", "1", "--scenarios", scenarios])
        .output()
        .expect("the program is built with its tests")
}

/// The rows of a table by their first cell, as numbers of courser and of quinn.
fn figure(text: &str, name: &str) -> [f64; 2] {
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("| {name} |")));
    let cells: Vec<&str> = row
        .unwrap_or_else(|| panic!("{name}: {text}"))
        .split('|')
        .collect();
    [2, 3].map(|cell| {
        cells[cell]
            .trim()
            .parse()
            .unwrap_or_else(|_| panic!("{name}: {text}"))
    })
}

/// Only root can make namespaces; others have the message that says so.
fn text_of(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    if text.starts_with("SKIPPED: ") {
        assert!(
            text.contains("need") || text.contains("is missing"),
            "{text}"
        );
        return None;
    }
    Some(text)
}

#[test]
fn packets_of_1280_bytes_fit_into_datagrams_of_both() {
    let Some(text) = text_of(&run("vpn")) else {
        return;
    };
    for size in figure(&text, "largest datagram at last") {
        assert!(size > 1280.0, "{text}");
    }
    for rate in figure(&text, "Mbit/s through the tunnel") {
        assert!(rate > 10.0, "{text}");
    }
}

#[test]
fn narrow_path_is_noticed_by_both() {
    let Some(text) = text_of(&run("vpn-narrow,vpn-silent-far")) else {
        return;
    };
    for table in text.split("\n\n").filter(|part| part.starts_with("| ")) {
        for size in figure(table, "largest datagram at last") {
            assert!(size < 1280.0, "{table}");
        }
    }
}

#[test]
fn frames_arrive_beside_a_stream() {
    let Some(text) = text_of(&run("voice-bulk-far")) else {
        return;
    };
    for rate in figure(&text, "Mbit/s of the stream") {
        assert!(rate > 1.0, "{text}");
    }
    for delay in figure(&text, "delay ms, median") {
        assert!(delay > 20.0, "{text}");
    }
}
