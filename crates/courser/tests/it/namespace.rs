//! Tests inside a network namespace of their own, with link-local addresses.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// The link-local address of [`INTERFACE`], whose index is also that of its zone.
pub const ADDRESS: &str = "fe80::c0:1";
pub const INTERFACE: &str = "ll0";

/// Makes a pair of interfaces, the first with a link-local address, which is not checked for duplicates
/// because that takes two seconds.
const SET_UP: &str = "ip link set lo up && \
    ip link add ll0 type veth peer name ll1 && \
    ip link set ll0 addrgenmode none && \
    ip address add fe80::c0:1/64 dev ll0 nodad && \
    ip link set ll0 up && ip link set ll1 up && \
    exec \"$@\"";

/// Set to the name of the test that runs inside.
const INSIDE: &str = "COURSER_TEST_INSIDE";

/// Returns true in the namespace. Outside of one it runs the calling test again inside, fails as that run
/// does, and returns false. Where the system allows no namespaces, it reports that the test is skipped.
pub fn is_inside() -> bool {
    let test = std::thread::current().name().expect("a test").to_owned();
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == *test) {
        return true;
    }
    let variants = [&["--net"][..], &["--net", "--map-root-user"]];
    let mut reason = String::new();
    for options in variants {
        match enter(options, &["true"]).output() {
            Ok(output) if output.status.success() => {
                run_inside(
                    enter(options, &[&own_path(), "--exact", &test, "--nocapture"]),
                    &test,
                );
                return false;
            }
            Ok(output) => reason = String::from_utf8_lossy(&output.stderr).replace('\n', " "),
            Err(error) => reason = error.to_string(),
        }
    }
    skipped(&format!("no network namespace: {reason}"));
    false
}

/// Reports that the running test checks nothing on this machine. The line is not captured, so that
/// `.ci/run` can count it.
pub fn skipped(reason: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
}

/// Returns the command that runs a program in a new namespace.
fn enter(options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", SET_UP, "sh"]);
    command.args(program).stdin(Stdio::null());
    command
}

fn own_path() -> String {
    let own = std::env::current_exe().expect("the test binary");
    own.into_os_string().into_string().expect("UTF-8")
}

fn run_inside(mut command: Command, test: &str) {
    let output = command.env(INSIDE, test).output();
    let output = output.expect("it has just worked");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "inside the namespace:\n{text}");
    assert!(text.contains("1 passed"), "the test ran inside:\n{text}");
}

/// Returns the index of [`INTERFACE`].
pub fn zone() -> u32 {
    let table = std::fs::read_to_string("/proc/net/if_inet6").expect("IPv6");
    let line = table.lines().find(|line| line.ends_with(INTERFACE));
    let index = line.and_then(|line| line.split_whitespace().nth(1));
    let index = index.and_then(|index| u32::from_str_radix(index, 16).ok());
    index.expect("it exists")
}
