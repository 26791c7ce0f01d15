use std::time::Duration;

use courser_base::Time;

use super::*;
use crate::apps::{Amount, TransferDirection};

/// A valid scenario, in which tests change one place.
const GOOD: &str = r#"name = "good"
duration = "30s"
measure_from = "3s"
link = "20mbit,25ms,queue=1bdp"

[transport]
mtu = 1452

[[flow]]
name = "bulk"
controller = "cubic"
way = "down"

[[event]]
at = "10s"
rate = "5mbit"

[bounds]
goodput_share = ">=0.95"
"#;

fn mistake(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    Scenario::parse(&text).expect_err(to).to_string()
}

#[test]
fn every_key_is_parsed() {
    let scenario = Scenario::parse(GOOD).expect("the scenario is valid");
    assert_eq!(scenario.name, "good");
    assert_eq!(scenario.duration, Duration::from_secs(30));
    assert_eq!(scenario.measured_from, Time::ZERO + Duration::from_secs(3));
    assert_eq!(scenario.base_rtt(), Duration::from_millis(50));
    assert_eq!(scenario.transport.mtu, 1452);
    let [flow] = &scenario.flows[..] else {
        panic!("{:?}", scenario.flows);
    };
    assert_eq!(flow.name, "bulk");
    let expected = Kind::Bulk {
        direction: TransferDirection::Down,
        amount: Amount::Endless,
    };
    assert_eq!(flow.kind, expected);
    let marks = scenario.marks();
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0].label, "rate 5mbit");
    assert_eq!(scenario.bounds[0].to_string(), "goodput_share >=0.95");
}

#[test]
fn unknown_field_is_reported_with_its_place_and_a_suggestion() {
    let error = mistake("duration =", "durtion =");
    assert!(error.starts_with("line 2, column 1: "), "{error}");
    assert!(error.contains("unknown field `durtion`"), "{error}");
    assert!(error.contains("did you mean `duration`?"), "{error}");
    let error = mistake("mtu = 1452", "receive_windw = 1452");
    assert!(error.starts_with("line 7, column 1: "), "{error}");
    assert!(error.contains("did you mean `receive_window`?"), "{error}");
}

/// The text in the valid scenario, its replacement, and the expected message.
const WRONG: &[(&str, &str, &str, &str)] = &[
    (
        "\"30s\"",
        "\"30\"",
        "line 2",
        "duration: '30' is not a time with its unit",
    ),
    (
        "\"30s\"",
        "\"30h\"",
        "line 2",
        "allowed is more than 0 to 24h",
    ),
    (
        "\"3s\"",
        "\"30s\"",
        "line 3",
        "measure_from is not before the end, 30s",
    ),
    ("20mbit,", "20mbot,", "line 4", "20mbot"),
    (
        "mtu = 1452",
        "mtu = 1000",
        "line 6",
        "is 1000, allowed is 1200 to 65507",
    ),
    (
        "\"cubic\"",
        "\"bic\"",
        "line 11",
        "unknown controller 'bic', known are newreno",
    ),
    ("\"down\"", "\"left\"", "line 12", "unknown variant `left`"),
    (
        "way =",
        "count = 0\nway =",
        "line 12",
        "count is 0, allowed is 1 to 250",
    ),
    (
        "way =",
        "interval = \"1s\"\nway =",
        "line 12",
        "interval does not apply to kind \"bulk\"",
    ),
    ("\"5mbit\"", "\"fast\"", "line 16", "'fast' is not a rate"),
    (
        "rate =",
        "close = \"x\"\nrate =",
        "line 16",
        "there is no flow 'x', there are bulk",
    ),
    (
        "rate = \"5mbit\"",
        "",
        "line 14",
        "the event changes nothing: give rate",
    ),
    (
        "\">=0.95\"",
        "\"0.95\"",
        "line 19",
        "there is no <, <=, >, >= or ==",
    ),
    (
        "\">=0.95\"",
        "\">=950\"",
        "line 19",
        "'950' is not a share from 0 to 1",
    ),
    (
        "\">=0.95\"",
        "\"most >=0.9\"",
        "line 19",
        "median, all or a percentage",
    ),
    (
        "goodput_share",
        "goodput_shares",
        "line 19",
        "did you mean `goodput_share`?",
    ),
    (
        "goodput_share",
        "speed",
        "line 19",
        "known are goodput, goodput_share",
    ),
    (
        "name = \"good\"",
        "name = \"so so\"",
        "line 1",
        "'so so' is not a valid name",
    ),
];

#[test]
fn wrong_values_are_reported_with_field_value_and_allowed_values() {
    for (from, to, line, message) in WRONG {
        let error = mistake(from, to);
        assert!(
            error.starts_with(&format!("{line}, column ")),
            "{to}: {error}"
        );
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn missing_parts_are_named() {
    assert!(mistake("duration = \"30s\"\n", "").contains("missing field `duration`"));
    let no_flow = GOOD.replacen("[[flow]]", "[[flows]]", 1);
    let error = Scenario::parse(&no_flow)
        .expect_err("a scenario without a flow is refused")
        .to_string();
    assert!(error.contains("did you mean `flow`?"), "{error}");
    let paced = mistake("way = \"down\"", "kind = \"paced\"\ninterval = \"1s\"");
    assert!(paced.contains("this flow needs size"), "{paced}");
}

#[test]
fn text_that_is_not_toml_is_reported_with_its_place() {
    let error = mistake("duration = \"30s\"", "duration = 30s");
    assert!(error.starts_with("line 2, column "), "{error}");
}

#[test]
fn flow_with_a_count_becomes_several() {
    let text = GOOD.replacen("way =", "count = 3\nspacing = \"2s\"\nway =", 1);
    let scenario = Scenario::parse(&text).expect("the scenario is valid");
    let names: Vec<&str> = scenario.flows.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["bulk-1", "bulk-2", "bulk-3"]);
    assert_eq!(scenario.flows[2].start, Time::ZERO + Duration::from_secs(4));
}

#[test]
fn bounds_file_replaces_bounds_by_measure() {
    let mut scenario = Scenario::parse(GOOD).expect("the scenario is valid");
    let file = BoundsFile::parse("[good]\ngoodput_share = \">=0.5\"\njain = \"all >=0.9\"\n");
    let file = file.expect("the scenario is valid");
    assert!(file.apply("good", &mut scenario.bounds));
    let bounds: Vec<String> = scenario.bounds.iter().map(ToString::to_string).collect();
    assert_eq!(bounds, ["goodput_share >=0.5", "jain all >=0.9"]);
    assert!(!file.apply("other", &mut scenario.bounds));
    let error = BoundsFile::parse("[good]\ngodput = \">=5mbit\"\n")
        .expect_err("the misspelt measure is refused");
    assert_eq!(error.line, 2);
}

#[test]
fn scenario_files_of_the_repository_are_valid() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut names = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(directory).expect("the directory exists") {
        let path = entry.expect("the file is readable").path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the file is readable");
        let scenario = Scenario::parse(&text);
        let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let stem = path
            .file_stem()
            .expect("the file has a name")
            .to_string_lossy();
        assert_eq!(scenario.name, stem, "the file is named after the scenario");
        assert!(!scenario.bounds.is_empty(), "{stem} has bounds");
        assert!(!scenario.about.is_empty(), "{stem} has a description");
        names.insert(scenario.name);
    }
    assert!(names.len() >= 12, "{names:?}");
}
