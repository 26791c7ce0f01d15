//! `courser doctor`.

use std::net::{Ipv4Addr, UdpSocket};

use serde_json::Value;

use crate::common::{certificate, refusal, run};

/// The exit codes without errors; those of a machine depend on its settings.
const WITHOUT_ERRORS: [Option<i32>; 2] = [Some(0), Some(3)];

fn findings(arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let output = run(&[&["doctor", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list").clone();
    (output.status.code(), findings)
}

fn named<'a>(findings: &'a [Value], check: &str) -> &'a Value {
    let found = findings.iter().find(|it| it["check"] == check);
    found.unwrap_or_else(|| panic!("{check} in {findings:?}"))
}

#[test]
fn checks_of_this_machine_are_printed() {
    let output = run(&["doctor"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let code = output.status.code();
    assert!(
        code == Some(4) || WITHOUT_ERRORS.contains(&code),
        "{code:?}"
    );
    for part in ["receive buffer", "GSO", "ECN", "clock", " ok"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn loopback_datagrams_arrive() {
    let (_, findings) = findings(&[]);
    for check in ["GRO", "ECN"] {
        let finding = named(&findings, check);
        assert_ne!(finding["severity"], "error", "{finding}");
    }
}

#[test]
fn port_in_use_is_an_error_with_its_owner() {
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    let (code, findings) = findings(&["--listen", &address]);
    assert_eq!(code, Some(4));
    let finding = named(&findings, &format!("udp {address}"));
    assert_eq!(finding["severity"], "error");
    if cfg!(target_os = "linux") {
        let process = format!("(process {})", std::process::id());
        assert!(
            finding["saw"].as_str().expect("text").contains(&process),
            "{finding}"
        );
    }
    assert!(
        finding["fix"]
            .as_str()
            .expect("a command")
            .starts_with("ss -u"),
        "{finding}"
    );
}

#[test]
fn certificates_and_routes_are_checked() {
    let made = certificate(2200);
    let (_, findings) = findings(&["--cert", &made.cert, "127.0.0.1"]);
    let route = named(&findings, "route");
    assert_ne!(route["severity"], "error", "{route}");
    let dates = findings.iter().find(|it| {
        it["check"]
            .as_str()
            .is_some_and(|it| it.ends_with(" dates"))
    });
    assert_eq!(dates.expect("dates")["severity"], "ok");
}

#[test]
fn invalid_arguments_are_reported() {
    for (arguments, expected) in [
        (
            &["doctor", "--listen", "443"][..],
            "use [::]:443 for all interfaces",
        ),
        (&["doctor", "--jsn"], "'--json'"),
        (&["doctor", "host:0"], "a port is a number from 1 to 65535"),
        (
            &["doctor", "no-such-host.invalid"],
            "cannot resolve 'no-such-host.invalid'",
        ),
    ] {
        let line = refusal(arguments);
        assert!(line.contains(expected), "{line}");
    }
}
