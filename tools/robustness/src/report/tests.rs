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
        has_ended: false,
        panics: Vec::new(),
        differences: Vec::new(),
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

fn changed(change: impl FnOnce(&mut Row)) -> Row {
    let mut row = row();
    change(&mut row);
    row
}

#[test]
fn a_victim_that_survives_passes() {
    let few = Some(Rate {
        per_second: 0.1,
        p99: f64::INFINITY,
    });
    let slow = changed(|row| row.beside = few);
    assert_eq!(verdict(&[row(), slow]), Ok(()));
}

#[test]
fn each_failure_of_a_victim_is_an_error_that_names_its_attack() {
    let nothing = Some(Rate {
        per_second: 0.0,
        p99: f64::INFINITY,
    });
    let panics = vec!["thread 'a' panicked at b.rs:1:2:".to_owned(); 2];
    for (failed, expected) in [
        (
            changed(|row| row.has_ended = true),
            "ack-storm: the victim ended",
        ),
        (
            changed(|row| row.panics = panics),
            "ack-storm: 2 panics, first: thread 'a' panicked at b.rs:1:2:",
        ),
        (
            changed(|row| row.beside = nothing),
            "ack-storm: honest clients got no response beside the attack",
        ),
        (
            changed(|row| row.alone = nothing),
            "ack-storm: honest clients got no response without the attack",
        ),
    ] {
        let error = verdict(&[row(), failed]).expect_err(expected);
        assert_eq!(error, format!("a victim failed\n{expected}"));
    }
    let both = changed(|row| {
        row.has_ended = true;
        row.beside = nothing;
    });
    let error = verdict(&[both]).expect_err("the victim failed twice");
    assert_eq!(error.lines().count(), 3, "{error}");
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
