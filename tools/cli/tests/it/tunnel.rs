//! `courser tunnel`: what it refuses. Tunnels themselves are tested by `courser-tunnel`, in network namespaces.

use crate::common::{refusal, run};

#[test]
fn mistakes_are_refused_with_what_is_allowed() {
    for (arguments, expected) in [
        (&["http://proxy.example"][..], "is no https URL"),
        (&["proxy.example", "--mtu", "100"], "576 to 65535"),
        (
            &["proxy.example", "--route", "10.0.0.1/8"],
            "without bits behind its length",
        ),
        (&["proxy.example", "--dns", "name"], "invalid IP address"),
        (&["proxy.example", "-H", "no-colon"], "is not NAME: VALUE"),
        (
            &["proxy.invalid", "--check", "--timeout", "5"],
            "cannot find the proxy proxy.invalid",
        ),
    ] {
        let line = refusal(&[&["tunnel"], arguments].concat());
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn proxy_that_does_not_answer_is_reported() {
    let line = refusal(&["tunnel", "127.0.0.1:9", "--check", "--timeout", "2", "-k"]);
    assert!(line.contains("127.0.0.1:9"), "{line}");
}

#[test]
fn help_names_the_privilege_and_what_is_taken_back() {
    let output = run(&["tunnel", "--help"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for part in ["CAP_NET_ADMIN", "taken back", "--default-route", "--check"] {
        assert!(text.contains(part), "{text}");
    }
}
