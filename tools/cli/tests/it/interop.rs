//! `courser interop`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{courser, refusal, run};

#[test]
fn unsupported_test_has_the_exit_code_of_the_runner() {
    for role in ["server", "client"] {
        let output = courser(&["interop", role])
            .env("TESTCASE", "teleport")
            .output()
            .expect("the binary starts");
        assert_eq!(output.status.code(), Some(127), "{role}");
    }
}

#[test]
fn role_is_read_from_the_environment() {
    for (role, test, expected) in [
        ("client", "teleport", "this test is not supported"),
        ("server", "teleport", "this test is not supported"),
        ("client", "handshake", "REQUESTS is empty"),
        ("proxy", "handshake", "pass a command"),
        ("", "handshake", "pass a command"),
    ] {
        let mut command = courser(&["interop"]);
        let command = command.env("ROLE", role).env("TESTCASE", test);
        let output = command.env_remove("REQUESTS").output();
        let output = output.expect("the binary starts");
        let error = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(error.contains(expected), "{role}: {error}");
        assert!(!output.status.success(), "{role}");
    }
}

#[test]
fn invalid_arguments_are_reported() {
    for (arguments, expected) in [
        (&["interop", "client"][..], "TESTCASE is not set"),
        (
            &["interop", "matrix", "--cases", "H,X9"],
            "'X9' for '--cases <CASE,...>': known are H, DC",
        ),
        (
            &["interop", "matrix", "--peers", "absent", "--peer-dir", "/"],
            "no program /absent for the peer absent",
        ),
    ] {
        let line = refusal(arguments);
        assert!(line.contains(expected), "{line}");
    }
}

/// A matrix terminates clients that hang; their traces show why they did.
#[cfg(unix)]
#[test]
fn client_that_is_terminated_completes_its_trace() {
    use std::time::Duration;

    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let timeout = Some(Duration::from_secs(20));
    silent.set_read_timeout(timeout).expect("a timeout");
    let folder = Script::new("terminated", "");
    let address = silent.local_addr().expect("an address");
    let client = courser(&["interop", "client"])
        .env("TESTCASE", "handshake")
        .env("REQUESTS", format!("https://{address}/file"))
        .env("DOWNLOADS", &folder.0)
        .env("QLOGDIR", &folder.0)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    silent.recv(&mut [0; 2000]).expect("an Initial packet");
    let id = rustix::process::Pid::from_raw(i32::try_from(client.id()).expect("a small number"));
    let signal = rustix::process::Signal::TERM;
    rustix::process::kill_process(id.expect("a process"), signal).expect("a running process");
    let output = client.wait_with_output().expect("its output");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("stopped before all files arrived"),
        "{error}"
    );
    let entries = std::fs::read_dir(&folder.0).expect("a folder").flatten();
    let trace = entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|it| it == "sqlog"));
    let trace = std::fs::read_to_string(trace.expect("a trace")).expect("text");
    assert!(trace.contains("quic:packet_sent"), "{trace}");
    assert!(trace.contains("quic:connection_closed"), "{trace}");
}

/// Runs cases and returns the report, which is printed whether they pass or fail.
fn report(peers: &str, cases: &str) -> Value {
    let output = run(&[
        "interop", "matrix", "--peers", peers, "--cases", cases, "--jobs", "8", "--report", "json",
    ]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}\n{error}"))
}

#[test]
fn short_cases_pass_with_itself() {
    let report = report("courser", "H,C20,M,S,R,3,U,E,A,6,V2,V");
    let cells = report["pairs"][0]["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 12);
    for cell in cells {
        assert_eq!(cell["verdict"], "succeeded", "{cell:#}");
    }
}

/// A folder with a program, removed on drop.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("courser-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), text).expect("written");
        make_executable(&folder.join(name));
        Self(folder)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions).expect("changed");
}

#[cfg(not(unix))]
fn make_executable(_: &Path) {}

/// The peer runs a different test than requested: the files arrive, but the check of the case must fail.
#[cfg(unix)]
#[test]
fn checks_detect_a_peer_that_runs_another_test() {
    let binary = env!("CARGO_BIN_EXE_courser");
    let script = Script::new(
        "wrong-test",
        &format!(
            "#!/bin/sh\n\
             case $TESTCASE in\n\
             handshake) TESTCASE=retry ;;\n\
             *) TESTCASE=transfer ;;\n\
             esac\n\
             export TESTCASE\n\
             exec {binary} interop \"$1\"\n"
        ),
    );
    let peer = format!("wrong-test={}", script.0.join("wrong-test").display());
    let report = report(&peer, "H,C20,S,R,U,3");
    let failures = |server: &str| -> Vec<(String, String)> {
        let pairs = report["pairs"].as_array().expect("pairs");
        let pair = pairs.iter().find(|pair| pair["server"] == server);
        let cells = pair.expect("the pair")["cells"].as_array().expect("cells");
        let failed = cells.iter().filter(|cell| cell["verdict"] == "failed");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        failed
            .map(|cell| (text(&cell["letter"]), text(&cell["failures"][0])))
            .collect()
    };
    for (server, expected) in [
        (
            "wrong-test",
            &[
                ("H", "the server sent a Retry"),
                ("S", "the server sent no Retry"),
            ][..],
        ),
        (
            "courser",
            &[
                ("C20", "the client offered the suites"),
                ("R", "1 handshakes instead of 2"),
                ("U", "the client sent no packet with key phase 1"),
            ],
        ),
    ] {
        let found = failures(server);
        for (letter, part) in expected {
            let cell = found.iter().find(|(found, _)| found == letter);
            let (_, reason) = cell.unwrap_or_else(|| panic!("{letter} fails: {found:?}"));
            assert!(reason.contains(part), "{letter}: {reason}");
        }
        let letters: Vec<&str> = found.iter().map(|(letter, _)| letter.as_str()).collect();
        let known: Vec<&str> = expected.iter().map(|(letter, _)| *letter).collect();
        assert_eq!(letters, known, "{server}: {found:?}");
    }
}
