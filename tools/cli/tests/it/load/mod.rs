//! `courser load` against real servers: HTTP/3 by courser, HTTP/1.1 and 2 by hyper.

mod early_data;
mod handshakes;
#[cfg(target_os = "linux")]
mod interrupt;
mod mistakes;
mod moves;
mod rate;
mod restart;
mod servers;
mod tls12;
mod versions;
#[cfg(target_os = "linux")]
mod warnings;

use crate::common;
use serde_json::Value;

/// Runs `courser load` with JSON and returns its report.
fn report(arguments: &[&str]) -> Value {
    let output = common::run(&[&["load", "--json"], arguments].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|why| panic!("{why}: {text}, {arguments:?}: {error}"));
    // The exit code tells whether a request succeeded.
    let expected = if report["requests"]["succeeded"] == 0 {
        3
    } else {
        0
    };
    assert_eq!(
        output.status.code(),
        Some(expected),
        "{arguments:?}: {error}"
    );
    report
}

/// Runs `courser load` without `--json` and returns its output.
fn text(arguments: &[&str]) -> String {
    let output = common::run(&[&["load"], arguments].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let has_failed = text.contains("Success rate:\t0.00%") || text.contains(" 0 succeeded");
    let expected = if has_failed { 3 } else { 0 };
    assert_eq!(
        output.status.code(),
        Some(expected),
        "{arguments:?}: {error}"
    );
    text
}
