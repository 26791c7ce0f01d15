use std::collections::BTreeMap;

use super::*;

fn row() -> Row {
    Row {
        plan: "ack-storm",
        labels: "A22,A25".to_owned(),
        sent: 120_000,
        dropped: 7,
        rss: [10_240, 20_480, 15_360],
        hostile_us: Some(1.5),
        honest_us: None,
        alone: Some(Rate {
            per_second: 400.0,
            p99: 0.002,
        }),
        beside: None,
        closes: BTreeMap::from([("PROTOCOL_VIOLATION".to_owned(), 3)]),
    }
}

#[test]
fn table_aligns_numbers_to_the_right() {
    let text = table(&[row()]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let end_of = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
    assert_eq!(
        end_of(lines[0], "sent"),
        end_of(lines[1], "120000"),
        "{text}"
    );
    assert_eq!(end_of(lines[0], "peak"), end_of(lines[1], "20.0"), "{text}");
    assert!(lines[1].ends_with("PROTOCOL_VIOLATION x3"), "{text}");
}

#[test]
fn json_has_every_number_with_its_unit() {
    let report: Value = serde_json::from_str(&json(&[row()])).expect("valid");
    let first = &report[0];
    assert_eq!(first["rssKib"]["peak"], 20_480);
    assert_eq!(first["cpuPerDatagramUs"]["hostile"], 1.5);
    assert_eq!(first["honest"]["beside"], Value::Null);
    assert_eq!(first["closes"]["PROTOCOL_VIOLATION"], 3);
    assert_eq!(first["labels"][1], "A25");
}

#[test]
fn rounds_without_a_response_have_no_percentile() {
    let mut row = row();
    row.beside = Some(Rate {
        per_second: 0.0,
        p99: f64::INFINITY,
    });
    assert!(table(&[row.clone()]).contains(" none "), "{row:?}");
    let report: Value = serde_json::from_str(&json(&[row])).expect("valid");
    assert_eq!(report[0]["honest"]["beside"]["p99"], Value::Null);
}
