//! The alert rules and the dashboard of `packaging/`.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::running::{admin, start};
use crate::common::{Folder, run};

const RULES: &str = include_str!("../../../../../packaging/prometheus/courser.rules.yml");
const DASHBOARD: &str = include_str!("../../../../../packaging/grafana/courser.json");

/// `packaging/monitoring` checks the same with Prometheus; this test does not need it.
#[test]
fn rules_and_dashboard_use_existing_metrics() {
    let folder = Folder::new();
    folder.file("page", "counted");
    let serving = start(&folder, &["--admin", "127.0.0.1:0"]);
    // Requests and causes have series from the first one on.
    let url = format!("https://{}/page", serving.address);
    let output = run(&["get", "--http3-only", "-k", "-s", &url]);
    assert!(output.status.success(), "{output:?}");
    let begun = Instant::now();
    let metrics = loop {
        let metrics = admin(&serving, "/metrics").1;
        if metrics.contains("courser_connections_closed_total{") {
            break metrics;
        }
        assert!(begun.elapsed() < CLOSE_TIMEOUT, "{metrics}");
    };
    let types: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    for (file, text) in [("rules", RULES), ("dashboard", DASHBOARD)] {
        let names = metrics_in(text);
        assert!(names.len() > 10, "{file}: {names:?}");
        for name in names {
            let stem = SUFFIXES.iter().find_map(|end| name.strip_suffix(end));
            let is_known = types.contains(name) || stem.is_some_and(|stem| types.contains(stem));
            assert!(is_known, "{file}: no metric {name}");
        }
    }
}

#[test]
fn panels_of_the_dashboard_do_not_overlap() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("a list") {
        let grid = &panel["gridPos"];
        let place = (grid["x"].as_u64(), grid["y"].as_u64());
        assert!(places.insert(place), "{}", panel["title"]);
    }
    assert!(places.len() > 15, "{places:?}");
}

/// Time for a connection to end, on a machine that is busy.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Suffixes of the names of counters and histograms.
const SUFFIXES: [&str; 4] = ["_total", "_bucket", "_sum", "_count"];

/// Returns the words with the prefix of metrics.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.starts_with("courser_")).collect()
}
