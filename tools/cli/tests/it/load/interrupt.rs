//! Runs are interrupted by a signal.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::servers::{App, Server};
use crate::common;

/// Interrupts a long run after some responses. Returns its output.
fn interrupted(signal: Signal, flags: &[&str]) -> String {
    let server = Server::http3(App::default());
    let url = server.https("/");
    let all = [&["load", "--h3", "-k", "--duration", "600", &url], flags].concat();
    let mut child = common::courser(&all)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    // More than can be in flight, so that some have a response.
    while !server.has_seen(1000) {
        assert_eq!(
            child.try_wait().expect("a child"),
            None,
            "the run ended early"
        );
        thread::sleep(Duration::from_millis(5));
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("a running process");
    let output = child.wait_with_output().expect("an exit status");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(130), "{flags:?}: {text}");
    text
}

#[test]
fn interrupted_run_reports_its_figures_and_exits_with_130() {
    let text = interrupted(Signal::INT, &[]);
    assert!(text.contains("\nfinished in "), "{text}");
    assert!(text.contains(" 0 failed, 0 errored, 0 timeout"), "{text}");
    assert!(
        text.ends_with("interrupted: the figures cover the time until then\n"),
        "{text}"
    );
    let text = interrupted(Signal::INT, &["--style", "oha"]);
    assert!(text.contains("Success rate:\t100.00%"), "{text}");
}

#[test]
fn json_report_states_that_the_run_was_interrupted() {
    let text = interrupted(Signal::TERM, &["--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON and nothing else");
    assert_eq!(report["interrupted"], true, "{report:#}");
    assert!(
        common::number(&report, "summary.total") < 60.0,
        "{report:#}"
    );
}
