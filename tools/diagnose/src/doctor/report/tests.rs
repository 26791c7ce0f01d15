use super::*;
use crate::doctor::machine::Unseen;

fn report(findings: Vec<Finding>) -> Report {
    Report::new("linux 6.18 x86_64, 2 cores".to_owned(), findings)
}

#[test]
fn exit_codes_follow_the_worst_finding() {
    let (ok, note) = (
        Finding::good("a", "x"),
        Finding::fact("b", "x").because("y"),
    );
    let (warning, error) = (Finding::weak("c", "x", "y"), Finding::bad("d", "x", "y"));
    for (findings, code) in [
        (vec![], 0),
        (vec![ok.clone(), note.clone()], 0),
        (vec![ok.clone(), warning.clone(), note], 3),
        (vec![error, warning, ok], 4),
    ] {
        assert_eq!(report(findings).exit_code(), code);
    }
}

#[test]
fn text_shows_reason_and_command_of_each_problem() {
    let findings = vec![
        Finding::good("kernel", "Linux 6.18").because("not shown"),
        Finding::weak("receive buffer", "208 KiB", "drops").fix("sysctl -w a=1\nsysctl -w b=2"),
        Unseen::Forbidden("the output of 'nft'".to_owned()).finding("firewall"),
    ];
    let expected = "\
linux 6.18 x86_64, 2 cores

ok       kernel          Linux 6.18
warning  receive buffer  208 KiB
                         why: drops
                         fix: sysctl -w a=1
                              sysctl -w b=2
note     firewall        not visible: the output of 'nft' may only be read by root
                         fix: run courser doctor as root to see it

0 errors, 1 warning, 1 note, 1 ok; 1 check could not be completed";
    assert_eq!(report(findings).to_string(), expected);
}

#[test]
fn json_has_every_field() {
    let text = report(vec![Finding::weak("a", "b", "c").fix("d")]).to_json();
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["severity"], "warning");
    let finding = &value["findings"][0];
    for (name, expected) in [
        ("check", "a"),
        ("severity", "warning"),
        ("saw", "b"),
        ("why", "c"),
        ("fix", "d"),
    ] {
        assert_eq!(finding[name], expected, "{name}");
    }
    assert_eq!(finding["visible"], true);
}
