//! Warnings about sockets are printed once and counted in the metrics.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::running::{admin, start};
use super::serving::Serving;
use crate::common::Folder;
use crate::common::overflow::{overflow, unprivileged};

fn is_warning(event: &Value, with: &str) -> bool {
    event["event"] == "warning" && event["text"].as_str().is_some_and(|it| it.contains(with))
}

#[test]
fn small_buffers_are_reported_once_at_the_start() {
    let folder = Folder::new();
    let path = folder.path().to_str().expect("UTF-8");
    let listen = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    for (flags, expected) in [
        (&["--json"][..], r#""event":"warning""#),
        (&[], "courser: "),
    ] {
        let (mut command, is_small) =
            unprivileged(&[&["serve", path], &listen[..], flags].concat());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        // The first line is the address, before any warning.
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut first).expect("UTF-8");
        assert!(
            first.contains("listening") || first.contains("serving"),
            "{first}"
        );
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process"), Signal::TERM).expect("a running process");
        let mut output = String::new();
        stdout.read_to_string(&mut output).expect("UTF-8");
        let mut stderr = child.stderr.take().expect("piped");
        stderr.read_to_string(&mut output).expect("UTF-8");
        assert!(child.wait().expect("a child").success(), "{output}");
        let command = "sysctl -w net.core.rmem_max=7340032";
        let lines = output.lines().filter(|line| line.contains(command));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), usize::from(is_small), "{output}");
        assert!(lines.iter().all(|line| line.contains(expected)), "{output}");
    }
}

#[test]
fn drops_are_reported_once_and_counted() {
    let mut serving = start(&Folder::new(), &["--admin", "127.0.0.1:0"]);
    let metric = |serving: &Serving| {
        let (_, metrics) = admin(serving, "/metrics");
        let name = "courser_udp_dropped_datagrams_total ";
        let value = metrics.lines().find_map(|line| line.strip_prefix(name));
        value.expect("a counter").parse::<u64>().expect("a number")
    };
    assert_eq!(metric(&serving), 0);
    overflow(serving.child(), serving.address.port());
    while !is_warning(&serving.next_of_all_events(), "the kernel dropped ") {}
    let first = metric(&serving);
    assert!(first > 0);
    overflow(serving.child(), serving.address.port());
    assert!(metric(&serving) > first);
    serving.signal(Signal::TERM);
    loop {
        let event = serving.next_of_all_events();
        assert!(!is_warning(&event, "the kernel dropped "), "{event}");
        if event["event"] == "drained" {
            break;
        }
    }
    serving.ended();
}

/// The server checks for dropped datagrams once more at its end.
#[test]
fn drops_before_the_end_are_reported() {
    let mut serving = start(&Folder::new(), &[]);
    overflow(serving.child(), serving.address.port());
    serving.signal(Signal::TERM);
    let mut warnings = 0;
    loop {
        let event = serving.next_of_all_events();
        warnings += usize::from(is_warning(&event, "the kernel dropped "));
        if event["event"] == "drained" {
            break;
        }
    }
    assert_eq!(warnings, 1);
    serving.ended();
}
