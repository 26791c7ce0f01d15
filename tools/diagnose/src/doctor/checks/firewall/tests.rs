use super::*;
use crate::doctor::checks::testing::Tree;
use crate::finding::Verdict::{Fact, Good, Unknown, Weak};

/// Returns the chain `input` of a table with one rule for each list of statements, the first with handle 5.
fn chain(policy: &str, rules: &[&str]) -> String {
    let rules = rules.iter().zip(5..).map(|(expr, handle)| {
        format!(
            r#",{{"rule":{{"family":"inet","table":"filter","chain":"input","handle":{handle},"expr":[{expr}]}}}}"#
        )
    });
    format!(
        r#"{{"nftables":[{{"metainfo":{{"version":"1.0.6","json_schema_version":1}}}},
        {{"table":{{"family":"inet","name":"filter","handle":1}}}},
        {{"chain":{{"family":"inet","table":"filter","name":"forward","handle":2,"type":"filter","hook":"forward","prio":0,"policy":"drop"}}}},
        {{"chain":{{"family":"inet","table":"filter","name":"input","handle":4,"type":"filter","hook":"input","prio":0,"policy":"{policy}"}}}}{}]}}"#,
        rules.collect::<String>()
    )
}

fn judge(text: &str) -> Fate {
    nft::judge(&serde_json::from_str(text).expect("JSON"), 443)
}

/// Judges a chain with one rule.
fn assert_judged(policy: &str, statements: &str, expected: &str) {
    let name = match judge(&chain(policy, &[statements])) {
        Fate::NoChain => "none",
        Fate::Accepted => "open",
        Fate::Unclear { .. } => "unclear",
        Fate::Dropped { .. } => "closed",
    };
    assert_eq!(name, expected, "{policy}: {statements}");
}

/// Returns a comparison of a field of a packet.
fn field(protocol: &str, field: &str, op: &str, right: &str) -> String {
    format!(
        r#"{{"match":{{"op":"{op}","left":{{"payload":{{"protocol":"{protocol}","field":"{field}"}}}},"right":{right}}}}}"#
    )
}

fn udp_port(right: &str) -> String {
    field("udp", "dport", "==", right)
}

fn meta(key: &str, right: &str) -> String {
    format!(r#"{{"match":{{"op":"==","left":{{"meta":{{"key":"{key}"}}}},"right":{right}}}}}"#)
}

fn state(op: &str, right: &str) -> String {
    format!(r#"{{"match":{{"op":"{op}","left":{{"ct":{{"key":"state"}}}},"right":{right}}}}}"#)
}

const ACCEPT: &str = r#"{"accept":null}"#;
const DROP: &str = r#"{"drop":null}"#;
const REJECT: &str = r#"{"reject":{"type":"icmpx","expr":"admin-prohibited"}}"#;
const COUNTER: &str = r#"{"counter":{"packets":5,"bytes":77}}"#;

#[test]
fn conditions_on_ports_and_addresses_are_judged() {
    for (policy, condition, statement, expected) in [
        ("drop", udp_port("443"), ACCEPT, "open"),
        ("drop", udp_port(r#"{"set":[80,443]}"#), ACCEPT, "open"),
        ("drop", udp_port(r#"{"set":[80,8443]}"#), ACCEPT, "closed"),
        ("drop", udp_port(r#"{"range":[400,500]}"#), ACCEPT, "open"),
        (
            "drop",
            udp_port(r#"{"set":[80,{"range":[400,500]}]}"#),
            ACCEPT,
            "open",
        ),
        ("drop", udp_port("53"), ACCEPT, "closed"),
        ("drop", udp_port(r#""@open""#), ACCEPT, "unclear"),
        (
            "drop",
            field("udp", "dport", "!=", "443"),
            ACCEPT,
            "unclear",
        ),
        (
            "drop",
            field("udp", "sport", "==", "443"),
            ACCEPT,
            "unclear",
        ),
        ("drop", field("tcp", "dport", "==", "443"), ACCEPT, "closed"),
        ("drop", field("th", "dport", "==", "443"), ACCEPT, "open"),
        (
            "accept",
            field("ip", "saddr", "==", r#""192.0.2.1""#),
            DROP,
            "unclear",
        ),
        (
            "accept",
            field(
                "ip",
                "daddr",
                "==",
                r#"{"prefix":{"addr":"192.0.2.0","len":24}}"#,
            ),
            DROP,
            "unclear",
        ),
    ] {
        assert_judged(policy, &format!("{condition},{statement}"), expected);
    }
}

#[test]
fn conditions_on_protocols_interfaces_and_states_are_judged() {
    for (policy, condition, statement, expected) in [
        (
            "drop",
            field("ip", "protocol", "==", r#""icmp""#),
            r#"{"jump":{"target":"pings"}}"#,
            "closed",
        ),
        ("accept", meta("l4proto", r#""udp""#), REJECT, "closed"),
        (
            "accept",
            meta("l4proto", r#"{"set":["icmp","ipv6-icmp"]}"#),
            DROP,
            "open",
        ),
        (
            "accept",
            meta("l4proto", r#"{"set":["tcp","udp"]}"#),
            DROP,
            "closed",
        ),
        (
            "accept",
            meta("l4proto", r#"{"set":["tcp",253]}"#),
            DROP,
            "unclear",
        ),
        ("drop", meta("iifname", r#""lo""#), ACCEPT, "closed"),
        ("drop", meta("iif", r#""lo""#), ACCEPT, "closed"),
        ("drop", meta("iifname", r#""eth0""#), ACCEPT, "unclear"),
        (
            "drop",
            state("in", r#"["established","related"]"#),
            ACCEPT,
            "closed",
        ),
        ("drop", state("in", r#""new""#), ACCEPT, "open"),
        (
            "drop",
            state("==", r#"{"set":["established","new"]}"#),
            ACCEPT,
            "open",
        ),
        ("drop", state("in", r#""strange""#), ACCEPT, "unclear"),
    ] {
        assert_judged(policy, &format!("{condition},{statement}"), expected);
    }
}

#[test]
fn statements_are_judged() {
    for (policy, statements, expected) in [
        ("accept", "", "open"),
        ("drop", "", "closed"),
        ("drop", ACCEPT, "open"),
        ("accept", DROP, "closed"),
        ("accept", REJECT, "closed"),
        ("accept", COUNTER, "open"),
        ("accept", &format!("{COUNTER},{DROP}"), "closed"),
        (
            "accept",
            &format!(r#"{{"log":{{"prefix":"x"}}}},{DROP}"#),
            "closed",
        ),
        (
            "drop",
            &format!(r#"{{"limit":{{"rate":10}}}},{ACCEPT}"#),
            "unclear",
        ),
        ("drop", r#"{"jump":{"target":"services"}}"#, "unclear"),
        ("drop", r#"{"goto":{"target":"quic"}}"#, "unclear"),
        ("drop", r#"{"return":null}"#, "unclear"),
        (
            "drop",
            r#"{"vmap":{"key":{"ct":{"key":"state"}}}}"#,
            "unclear",
        ),
        (
            "drop",
            r#"{"mangle":{"key":{"meta":{"key":"mark"}},"value":1}}"#,
            "closed",
        ),
        // An extension of iptables.
        (
            "accept",
            &format!(r#"{{"xt":{{"type":"match","name":"geoip"}}}},{DROP}"#),
            "unclear",
        ),
    ] {
        assert_judged(policy, statements, expected);
    }
}

#[test]
fn rules_are_read_in_order() {
    let accepts = format!("{},{ACCEPT}", udp_port("443"));
    assert_eq!(judge(&chain("accept", &[&accepts, REJECT])), Fate::Accepted);
    let closed = judge(&chain("accept", &[COUNTER, REJECT, &accepts]));
    let chain = "inet filter input".to_owned();
    assert_eq!(
        closed,
        Fate::Dropped {
            rule: Some(6),
            chain
        }
    );
}

#[test]
fn packets_must_pass_all_chains() {
    let text = chain("accept", &[ACCEPT]);
    let second = r#"{"chain":{"family":"ip","table":"second","name":"in","handle":1,"type":"filter","hook":"input","prio":5,"policy":"drop"}}"#;
    let both = text.replace(r#"{"table""#, &format!(r#"{second},{{"table""#));
    let chain = "ip second in".to_owned();
    assert_eq!(judge(&both), Fate::Dropped { rule: None, chain });
    let arp = text.replace(r#""family":"inet""#, r#""family":"arp""#);
    assert_eq!(judge(&arp), Fate::NoChain);
}

#[test]
fn closed_port_has_the_rule_and_the_command_that_opens_it() {
    let tree = Tree::new();
    let rules = chain("accept", &[COUNTER, DROP]);
    let machine = tree.machine().with_output("nft -j list ruleset", &rules);
    let found = check(&machine, 8443);
    assert_eq!(found.verdict, Weak);
    assert_eq!(
        found.saw,
        "UDP port 8443 seems closed: rule 6 of inet filter input"
    );
    let listing = "table inet filter {\n\tchain input { # handle 4\n\t\tcounter # handle 5\n\t\tdrop # handle 6\n\t}\n}\n";
    let machine = machine.with_output("nft -a list chain inet filter input", listing);
    let found = check(&machine, 8443);
    assert_eq!(found.saw, "UDP port 8443 seems closed: drop");
    let fix = found.fix.expect("a command");
    assert_eq!(
        fix,
        "nft insert rule inet filter input udp dport 8443 accept"
    );
    let machine = tree
        .machine()
        .with_output("nft -j list ruleset", &chain("drop", &[]));
    let saw = check(&machine, 443).saw;
    let policy = "the policy of inet filter input is drop, and no rule accepts the packet";
    assert_eq!(saw, format!("UDP port 443 seems closed: {policy}"));
}

#[test]
fn rules_of_iptables_alone_are_not_judged() {
    let tree = Tree::new();
    for (rules, expected) in [
        ("-P INPUT ACCEPT\n", Good),
        ("-P INPUT DROP\n", Fact),
        ("-P INPUT ACCEPT\n-A INPUT -p udp -j DROP\n", Fact),
    ] {
        let machine = tree.machine().with_output("ip6tables -S INPUT", rules);
        let found = check(&machine, 443);
        assert_eq!((found.verdict, found.fix), (expected, None), "{rules}");
        // `nft` does not show these rules.
        let machine = machine.with_output("nft -j list ruleset", r#"{"nftables":[]}"#);
        assert_eq!(check(&machine, 443).verdict, expected, "{rules}");
    }
}

#[test]
fn rules_of_iptables_in_nftables_are_judged_there() {
    let tree = Tree::new();
    let rules = chain("drop", &[ACCEPT])
        .replace(r#""inet""#, r#""ip""#)
        .replace(r#""input","handle"#, r#""INPUT","handle"#);
    let machine = tree.machine().with_output("nft -j list ruleset", &rules);
    let machine = machine.with_output("iptables -S INPUT", "-P INPUT DROP\n-A INPUT -j ACCEPT\n");
    let found = check(&machine, 443);
    assert_eq!(
        (found.verdict, &*found.saw),
        (Good, "the rules do not drop UDP to port 443")
    );
}

#[test]
fn rules_that_cannot_be_read_are_unknown() {
    let tree = Tree::new();
    tree.write("/proc/net/ip_tables_names", "filter\nnat\n");
    let found = check(&tree.machine(), 443);
    assert_eq!(found.verdict, Unknown, "{found:?}");
    assert!(found.saw.contains("(filter, nat)"), "{found:?}");
    let machine = tree
        .machine()
        .with_output("nft -j list ruleset", "table inet");
    let found = check(&machine, 443);
    assert_eq!(found.verdict, Unknown, "{found:?}");
    assert!(
        found.saw.contains("cannot read the output of nft"),
        "{found:?}"
    );
    let machine = machine.with_output("iptables -S INPUT", "-P INPUT ACCEPT\n");
    let found = check(&machine, 443);
    assert_eq!(
        found.verdict, Unknown,
        "nft may show what iptables does not: {found:?}"
    );
}

#[test]
fn firewall_without_rules_is_open() {
    let tree = Tree::new();
    let empty = r#"{"nftables":[{"metainfo":{"version":"1.0.6"}}]}"#;
    let machine = tree.machine().with_output("nft -j list ruleset", empty);
    let found = check(&machine, 443);
    assert_eq!(
        (found.verdict, &*found.saw),
        (Good, "no rules for incoming packets")
    );
}

#[test]
fn rules_of_one_version_of_ip_are_unclear_in_chains_for_both() {
    let udp4 = field("ip", "protocol", "==", r#""udp""#);
    let udp6 = field("ip6", "nexthdr", "==", r#""udp""#);
    let tcp = field("ip", "protocol", "==", r#""tcp""#);
    assert_judged("drop", &format!("{udp6},{ACCEPT}"), "unclear");
    assert_judged("accept", &format!("{udp4},{DROP}"), "unclear");
    assert_judged("accept", &format!("{tcp},{DROP}"), "open");
}

#[test]
fn statements_without_a_decision_do_not_end_the_evaluation() {
    for statement in [
        r#"{"set":{"op":"update","elem":{"payload":{"protocol":"ip","field":"saddr"}},"set":"@seen"}}"#,
        r#"{"xt":{"type":"match","name":"conntrack"}}"#,
        r#"{"ct count":{"val":100}}"#,
        r#"{"last":null}"#,
    ] {
        assert_judged("accept", statement, "open");
        assert_judged("accept", &format!("{statement},{COUNTER}"), "open");
    }
    let rewritten =
        r#"{"mangle":{"key":{"payload":{"protocol":"udp","field":"dport"}},"value":80}}"#;
    assert_judged("accept", rewritten, "unclear");
    assert_judged(
        "accept",
        r#"{"xt":{"type":"target","name":"DROP"}}"#,
        "unclear",
    );
}

#[test]
fn headers_inside_packets_are_unclear() {
    let inner = r#"{"match":{"op":"==","left":{"payload":{"tunnel":"vxlan","protocol":"udp","field":"dport"}},"right":443}}"#;
    assert_judged("accept", &format!("{inner},{DROP}"), "unclear");
}

#[test]
fn connection_states_are_unclear_for_untracked_packets() {
    let untracked = state("in", r#"["established","untracked"]"#);
    let accept = format!("{untracked},{ACCEPT}");
    assert_judged("drop", &accept, "closed");
    let port = udp_port("443");
    let rules = chain("drop", &[&format!(r#"{port},{{"notrack":null}}"#), &accept]);
    assert!(matches!(judge(&rules), Fate::Unclear { rule: 6, .. }));
}

#[test]
fn dormant_tables_are_not_judged() {
    for flags in [r#""dormant""#, r#"["owner","dormant"]"#] {
        let rules = chain("drop", &[]);
        let rules = rules.replace(
            r#""name":"filter","handle":1"#,
            &format!(r#""name":"filter","handle":1,"flags":{flags}"#),
        );
        assert_eq!(judge(&rules), Fate::NoChain, "{flags}");
    }
}
