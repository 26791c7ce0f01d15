//! Warnings about sockets are in the report once.

use std::process::Stdio;

use serde_json::Value;

use super::servers::{App, Server};
use crate::common::overflow::{SlowServer, overflow, unprivileged};
use crate::common::{courser, number};

fn warnings(report: &Value, with: &str) -> usize {
    let all = report["warnings"].as_array().expect("a list").iter();
    all.filter(|text| text.as_str().is_some_and(|text| text.contains(with)))
        .count()
}

#[test]
fn dropped_datagrams_are_in_the_report_once() {
    let server = SlowServer::start();
    let url = server.url();
    let arguments = ["load", "--json", "--h3", "-k", "-n", "2", "-c", "2", &url];
    let child = courser(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("the binary starts");
    overflow(&child, server.next_client());
    overflow(&child, server.next_client());
    let output = child.wait_with_output().expect("a child");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["requests"]["succeeded"], 2, "{report:#}");
    assert!(
        number(&report, "connections.kernelDrops") >= 2.0,
        "{report:#}"
    );
    assert_eq!(warnings(&report, "the kernel dropped "), 1, "{report:#}");
}

#[test]
fn small_buffers_are_in_the_report_once() {
    let server = Server::http3(App::default());
    let url = server.https("/");
    let load = |style: &str, flags: &[&str]| {
        let common = [
            "load", "--style", style, "--h3", "-n", "8", "-c", "4", "-k", &url,
        ];
        let (mut command, is_small) = unprivileged(&[&common[..], flags].concat());
        let output = command.output().expect("the binary starts");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        (text, usize::from(is_small))
    };
    let (text, expected) = load("h2load", &["--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        warnings(&report, "net.core.rmem_max"),
        expected,
        "{report:#}"
    );
    assert_eq!(warnings(&report, "dropped "), 0, "{report:#}");
    for style in ["h2load", "oha"] {
        let (text, expected) = load(style, &[]);
        let lines = text.lines();
        let warnings = lines.filter(|line| line.contains("net.core.rmem_max is "));
        assert_eq!(warnings.count(), expected, "{style}: {text}");
    }
    let server = Server::tls(App::default());
    let report = super::report(&["-n", "1", "-k", &server.https("/")]);
    assert_eq!(report["warnings"], Value::Array(Vec::new()), "over TCP");
}
