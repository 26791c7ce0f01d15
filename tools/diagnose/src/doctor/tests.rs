use super::*;
use crate::Verdict;
use crate::doctor::checks::testing::Tree;

#[test]
fn machine_without_visible_facts_has_a_complete_report() {
    let tree = Tree::new();
    let report = examine(&tree.machine(), &Arguments::default()).expect("no host");
    if cfg!(target_os = "linux") {
        let unseen = report
            .findings
            .iter()
            .filter(|it| it.verdict == Verdict::Unknown)
            .count();
        assert!(unseen > 10, "{report}");
        assert!(report.to_string().contains("checks could not be completed"));
    }
}

#[test]
fn invalid_host_is_a_failure() {
    let arguments = Arguments {
        host: Some("host:0".to_owned()),
        ..Arguments::default()
    };
    let failure = examine(&Machine::this(), &arguments).expect_err("no port");
    assert!(
        failure.to_string().contains("'host:0' is not HOST:PORT"),
        "{failure}"
    );
}

#[test]
fn route_to_loopback_has_no_errors() {
    let found = route_to("127.0.0.1").expect("loopback");
    let is_error = |it: &Finding| it.verdict == Verdict::Bad;
    assert!(!found.iter().any(is_error), "{found:?}");
    assert!(found.len() > 1, "a connection was tried: {found:?}");
}

#[test]
fn address_and_certificate_are_checked_on_request() {
    let arguments = Arguments {
        listen: Some(([127, 0, 0, 1], 0).into()),
        cert: vec!["/absent.pem".into()],
        ..Arguments::default()
    };
    let report = examine(&Machine::this(), &arguments).expect("no host");
    let named = |name: &str| report.findings.iter().any(|it| it.name == name);
    assert!(named("udp 127.0.0.1:0") && named("tcp 127.0.0.1:0") && named("/absent.pem"));
    assert_eq!(report.exit_code(), 4);
}
