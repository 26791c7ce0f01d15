use std::time::Duration;

use courser_base::Time;
use courser_plot::Unit;
use courser_sim::report::{
    Buckets, FlowReport, LinkReport, Mark, Measure, Measures, Point, RunReport, Series,
};
use courser_sim::scenario::{Bound, BoundResult};
use courser_units::to_f64;

use super::*;
use crate::sim::verdict::Judged;

const SECONDS: u64 = 20;
const CAPACITY: u64 = 20_000_000;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn series(step: u64, value: impl Fn(u64) -> u64) -> Series {
    let mut series = Series::default();
    for millis in (0..=SECONDS * 1000).step_by(usize::try_from(step).expect("small")) {
        series.push(at(millis), value(millis));
    }
    series
}

fn buckets(bytes_per_second: u64) -> Buckets {
    let mut buckets = Buckets::default();
    for millis in (0..SECONDS * 1000).step_by(10) {
        buckets.add(at(millis), bytes_per_second / 100);
    }
    buckets
}

/// A window that is cut every three seconds.
fn window(millis: u64) -> u64 {
    140_000 + millis % 3000 * 30
}

fn flow(name: &str, share: u64) -> FlowReport {
    let rate = CAPACITY / 8 / share;
    FlowReport {
        name: name.to_owned(),
        controller: "cubic".to_owned(),
        bytes_delivered: rate * SECONDS,
        delivered: buckets(rate),
        goodput: 8.0 * to_f64(rate),
        sent: series(10, |millis| millis * rate / 1000 + window(millis)),
        received: series(10, |millis| millis * rate / 1000),
        acked: series(10, |millis| millis.saturating_sub(40) * rate / 1000),
        congestion_window: series(10, window),
        bytes_in_flight: series(10, |millis| window(millis) - millis % 7 * 1200),
        ssthresh: series(3000, |_| 140_000),
        latest_rtt: series(20, |millis| 80_000_000 + millis % 3000 * 12_000),
        smoothed_rtt: series(20, |millis| 82_000_000 + millis % 3000 * 11_000),
        min_rtt: series(1000, |_| 80_000_000),
        losses: (1..6)
            .map(|cut| Point {
                at: at(cut * 3000),
                value: cut,
            })
            .collect(),
        packets_sent: 40_000,
        packets_lost: 5,
        ..FlowReport::default()
    }
}

fn run(scenario: &str, seed: u64, flows: &[&str]) -> RunReport {
    let link = LinkReport {
        name: "link forward".to_owned(),
        capacity: series(10_000, |_| CAPACITY),
        carried: buckets(CAPACITY / 8),
        queue_bytes: series(10, |millis| millis % 3000 * 30),
        queue_delay: series(10, |millis| millis % 3000 * 12_000),
        drops: series(3000, |millis| millis / 3000),
        dropped: vec![("queue full".to_owned(), 6)],
        queue_bytes_max: 90_000,
        ..LinkReport::default()
    };
    let share = u64::try_from(flows.len()).expect("few");
    RunReport {
        scenario: scenario.to_owned(),
        seed,
        duration: Duration::from_secs(SECONDS),
        measured_from: at(3000),
        flows: flows.iter().map(|name| flow(name, share)).collect(),
        links: vec![link],
        marks: vec![Mark {
            at: at(10_000),
            label: "rate step".to_owned(),
        }],
        digest: 0x1234_5678_9abc_def0 + seed,
        steps: 1000,
        measures: Measures {
            goodput: Some(18e6 + 1e4 * to_f64(seed)),
            goodput_share: Some(0.9),
            failures: Some(0.0),
            ..Measures::default()
        },
    }
}

/// The text of the only page.
fn index(runs: &[RunReport], judged: &[Judged]) -> String {
    let mut pages = pages(&[Group::new(1, "bulk", runs, judged)]);
    assert_eq!(pages.len(), 1);
    pages.remove(0).1
}

fn titles(run: &RunReport) -> Vec<String> {
    let charts = charts::all(run, "");
    charts
        .iter()
        .map(|chart| chart.title().to_owned())
        .collect()
}

#[test]
fn single_flow_has_every_chart() {
    let expected = [
        "Time and sequence",
        "Time and sequence of the first round trips",
        "Congestion window of cubic",
        "Round-trip time",
        "Throughput",
        "Queue delay",
        "Queue length",
    ];
    assert_eq!(titles(&run("bulk", 1, &["bulk"])), expected);
}

#[test]
fn several_flows_are_compared() {
    let titles = titles(&run("fair", 1, &["a", "b", "c"]));
    for expected in ["Congestion windows", "Share of each flow", "Throughput"] {
        assert!(
            titles.iter().any(|title| title == expected),
            "{expected} in {titles:?}"
        );
    }
}

#[test]
fn charts_without_data_are_left_out() {
    let mut empty = run("empty", 1, &["a"]);
    empty.flows = vec![FlowReport::default()];
    empty.links = Vec::new();
    assert!(titles(&empty).is_empty(), "{:?}", titles(&empty));
    empty.flows = Vec::new();
    assert!(index(&[empty], &[]).contains("Seed 1"));
}

#[test]
fn median_and_worst_seed_are_shown() {
    let runs: Vec<_> = (1..=9).map(|seed| run("bulk", seed, &["bulk"])).collect();
    let group = Group::new(1, "bulk", &runs, &[]);
    // Goodput grows with the seed.
    assert_eq!((group.median().seed, group.worst().seed), (5, 1));
    let html = index(&runs, &[]);
    assert!(html.contains("Seed 5, the median run") && html.contains("Seed 1, the worst run"));
}

#[test]
fn failed_run_is_the_worst() {
    let mut runs: Vec<_> = (1..=9).map(|seed| run("bulk", seed, &["bulk"])).collect();
    runs[6].measures.failures = Some(1.0);
    assert_eq!(Group::new(1, "bulk", &runs, &[]).worst().seed, 7);
}

#[test]
fn bounds_are_shown_as_met_or_violated() {
    let runs = [run("bulk", 1, &["bulk"])];
    let measure = Measure::named("goodput_share").expect("a measure");
    let judged = |holds| Judged {
        bound: Bound::parse(measure, ">=0.95").expect("a bound"),
        verdict: BoundResult {
            holds,
            value: Some(0.9),
            worst_seed: None,
        },
    };
    let html = index(&runs, &[judged(true), judged(false)]);
    assert!(html.contains("1 of 2 bounds violated") && html.contains("✗ 1 of 2 violated"));
    assert!(html.contains("goodput_share &gt;=0.95</td><td class=\"number\">90.00 %"));
    let html = index(&runs, &[judged(true)]);
    assert!(html.contains("the bound is met") && html.contains("✓ 1 met"));
}

#[test]
fn many_scenarios_get_a_page_each() {
    let names: Vec<_> = (0..6).map(|number| format!("Bulk/{number} <x>")).collect();
    let runs: Vec<_> = names.iter().map(|name| [run(name, 1, &["a"])]).collect();
    let groups = (1..).zip(names.iter().zip(&runs));
    let groups = groups.map(|(number, (name, runs))| Group::new(number, name, runs, &[]));
    let pages = pages(&groups.collect::<Vec<_>>());
    assert_eq!(pages.len(), 7);
    assert_eq!(pages[1].0, "001-bulk-0--x-.html");
    assert!(
        pages[0]
            .1
            .contains("<a href=\"001-bulk-0--x-.html\">Bulk/0 &lt;x&gt;</a>")
    );
    assert!(!pages[0].1.contains("<svg") && pages[1].1.contains("<svg"));
}

#[test]
fn queues_of_single_packets_are_not_drawn() {
    let mut run = run("bulk", 1, &["bulk"]);
    let back = LinkReport {
        name: "link back".to_owned(),
        queue_bytes: series(10, |_| 1200),
        queue_bytes_max: 1200,
        ..LinkReport::default()
    };
    run.links.push(back);
    let text = |run: &RunReport| {
        let charts = charts::all(run, "");
        let chart = charts.iter().find(|chart| chart.title() == "Queue length");
        chart.expect("a chart").to_text()
    };
    assert!(text(&run).contains("link forward:") && !text(&run).contains("link back"));
    run.links[1].queue_bytes_max = 12_000;
    assert!(text(&run).contains("link back:"), "{}", text(&run));
}

#[test]
fn throughput_is_compared_with_the_direction_of_the_payload() {
    let mut run = run("down", 1, &["bulk"]);
    let acknowledgements = LinkReport {
        name: "link forward".to_owned(),
        capacity: series(10_000, |_| CAPACITY),
        carried: buckets(1000),
        ..LinkReport::default()
    };
    run.links.insert(0, acknowledgements);
    let charts = charts::all(&run, "");
    let chart = charts.iter().find(|chart| chart.title() == "Throughput");
    let text = chart.expect("a chart").to_text();
    let line = text
        .lines()
        .find(|line| line.starts_with("carried"))
        .expect("a line");
    assert!(line.contains("median 20 Mbit/s"), "{line}");
}

#[test]
fn initial_round_trip_time_is_not_drawn() {
    let highest = |first: u64| {
        let mut run = run("bulk", 1, &["bulk"]);
        run.flows[0].smoothed_rtt =
            series(10, |millis| if millis < 100 { first } else { 80_000_000 });
        let charts = charts::all(&run, "");
        let mut texts = charts.iter().map(courser_plot::Chart::to_text);
        let text = texts
            .find(|text| text.starts_with("Round-trip time"))
            .expect("a chart");
        let line = text
            .lines()
            .find(|line| line.starts_with("smoothed"))
            .expect("a line");
        line.to_owned()
    };
    assert!(
        highest(333_000_000).contains("highest 80 ms"),
        "{}",
        highest(333_000_000)
    );
    assert!(
        highest(400_000_000).contains("highest 400 ms"),
        "{}",
        highest(400_000_000)
    );
}

#[test]
fn ranges_name_a_common_unit_once() {
    let range = tables::range;
    assert_eq!(
        range(Unit::Seconds, 0.0599, 0.0607).as_deref(),
        Some("59.9 to 60.7 ms")
    );
    assert_eq!(
        range(Unit::Seconds, 0.0009, 0.0011).as_deref(),
        Some("900 µs to 1.1 ms")
    );
    assert_eq!(range(Unit::Plain, 1.0, 2.0).as_deref(), Some("1 to 2"));
    assert_eq!(range(Unit::Share, 0.5, 0.5), None);
}

#[test]
fn rates_omit_an_incomplete_last_bucket() {
    let mut buckets = Buckets::new(Duration::from_millis(10), 5000);
    for millis in 0..1005 {
        buckets.add(at(millis), 1000);
    }
    let rates = values::rates(&buckets, Duration::from_millis(1005));
    assert_eq!(rates.len(), 100);
    assert!(
        rates.iter().all(|rate| (rate.1 - 8e6).abs() < 1.0),
        "{rates:?}"
    );
}

#[test]
fn report_is_written_into_a_new_directory() {
    let directory = std::env::temp_dir().join(format!("courser-report-{}", std::process::id()));
    let inner = directory.join("a/b");
    let runs = [run("bulk", 1, &["bulk"])];
    write_pages(&inner, &[Group::new(1, "bulk", &runs, &[])]).expect("written");
    let html = fs::read_to_string(inner.join("index.html")).expect("a page");
    fs::remove_dir_all(&directory).expect("removed");
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.len() < 1_000_000,
        "{}",
        html.len()
    );
}

#[test]
fn unwritable_directory_is_named() {
    let file = std::env::temp_dir().join(format!("courser-report-file-{}", std::process::id()));
    fs::write(&file, "").expect("written");
    let error = write_pages(&file.join("report"), &[]).expect_err("a file is not a directory");
    fs::remove_file(&file).expect("removed");
    let error = error.to_string();
    assert!(error.contains("courser-report-file"), "{error}");
    assert!(
        error.ends_with("choose another directory with --report"),
        "{error}"
    );
}
