//! Warnings about sockets go to standard error, unless they are silenced.

use std::process::{Output, Stdio};

use super::command;
use crate::common::overflow::{SlowServer, has_small_buffers, overflow, unprivileged};

/// Runs a transfer during which the kernel drops datagrams.
fn get_with_drops(flags: &[&str]) -> Output {
    let server = SlowServer::start();
    let url = server.url();
    let mut command = command(&[&["-k", "--http3-only", &url], flags].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary starts");
    overflow(&child, server.next_client());
    child.wait_with_output().expect("a child")
}

fn stderr(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"done", "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn dropped_datagrams_are_one_line_at_the_end() {
    let warnings = stderr(&get_with_drops(&[]));
    assert_eq!(warnings.lines().count(), 1, "{warnings}");
    assert!(
        warnings.starts_with("courser: the kernel dropped "),
        "{warnings}"
    );
    let command = "sysctl -w net.core.rmem_max=7340032";
    assert_eq!(
        warnings.contains(command),
        has_small_buffers(),
        "{warnings}"
    );
}

#[test]
fn silent_transfers_do_not_warn() {
    assert_eq!(stderr(&get_with_drops(&["-s"])), "");
}

#[test]
fn small_buffers_are_reported_with_verbose() {
    let server = SlowServer::start();
    let url = server.url();
    let get = |flags: &[&str]| {
        let common = ["get", "-k", "--http3-only", &url];
        let (mut command, is_small) = unprivileged(&[&common[..], flags].concat());
        (
            stderr(&command.output().expect("the binary starts")),
            is_small,
        )
    };
    assert_eq!(get(&[]).0, "");
    let (log, is_small) = get(&["-v"]);
    let warnings = log.matches("* net.core.rmem_max is ").count();
    assert_eq!(warnings, usize::from(is_small), "{warnings}");
}
