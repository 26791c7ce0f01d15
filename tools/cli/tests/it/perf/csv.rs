//! `courser perf client --csv`.

use std::collections::HashMap;

use crate::common::{Server, refusal};

/// Runs a client, and returns its rows as maps from column names to values.
fn rows(server: &Server, flags: &[&str]) -> Vec<HashMap<String, String>> {
    let output = server.client(&[flags, &["--csv"]].concat());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{flags:?}: {text}");
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    let row = |line: &str| {
        let names = header.split(',').map(str::to_owned);
        assert_eq!(names.clone().count(), line.split(',').count(), "{line}");
        names.zip(line.split(',').map(str::to_owned)).collect()
    };
    lines.map(row).collect()
}

fn number(row: &HashMap<String, String>, name: &str) -> f64 {
    let cell = &row[name];
    let parsed = cell.parse();
    parsed.unwrap_or_else(|_| panic!("no number in {name}: {cell:?} in {row:#?}"))
}

#[test]
fn rows_of_intervals_add_up_to_the_summary() {
    let server = Server::start(&["--tcp"]);
    for (flags, scenario, transport) in [
        (&["-R"][..], "download", "quic"),
        (&["--bidir"], "bidir", "quic"),
        (&["--tcp"], "upload", "tcp"),
    ] {
        let time = ["-t", "2", "-i", "0.1", "--warm-up", "0.1"];
        let rows = rows(&server, &[flags, &time].concat());
        let (summary, intervals) = rows.split_last().expect("rows");
        assert_eq!(summary["row"], "summary");
        assert!(intervals.len() >= 5, "{flags:?}: {}", intervals.len());
        for row in &rows {
            assert_eq!(row["scenario"], scenario);
            assert_eq!(row["transport"], transport);
        }
        for column in ["sent_bytes", "received_bytes"] {
            let sum: f64 = intervals.iter().map(|row| number(row, column)).sum();
            let whole = number(summary, column);
            assert!((sum - whole).abs() < 0.5, "{flags:?}: {column}: {sum}");
        }
        assert!(intervals.iter().all(|row| row["row"] == "interval"));
        assert_eq!(summary["warm_up_seconds"], "0.100000");
        assert_eq!(summary["interval_seconds"], "0.100000");
        assert_eq!(summary["interrupted"], "false");
        let is_up = scenario != "download";
        let (used, other) = match is_up {
            true => ("upload_p50_bits_per_second", "download_p50_bits_per_second"),
            false => ("download_p50_bits_per_second", "upload_p50_bits_per_second"),
        };
        assert!(number(summary, used) >= 0.0, "{flags:?}");
        assert_eq!(summary[other].is_empty(), scenario != "bidir", "{flags:?}");
        // Over TCP only the kernel knows the round-trip time.
        assert_eq!(summary["rtt_us"].is_empty(), transport == "tcp");
        assert!(summary["count"].is_empty() && summary["latency_p99_us"].is_empty());
    }
}

#[test]
fn requests_and_datagrams_have_their_columns() {
    let server = Server::start(&[]);
    let all = rows(&server, &["-s", "rr", "-n", "100"]);
    let [summary] = &all[..] else {
        panic!("more than the summary: {all:?}");
    };
    assert_eq!(summary["count"], "100");
    assert!(number(summary, "count_per_second") > 0.0);
    assert!(number(summary, "latency_p99_us") >= number(summary, "latency_p50_us"));
    assert!(number(summary, "server_cpu_percent") > 0.0 || !super::HAS_CPU_CLOCK);

    let flags = ["-s", "datagram", "-n", "100", "--rate", "0", "-R"];
    let all = rows(&server, &flags);
    assert_eq!(all[0]["download_datagrams_sent"], "100");
    assert_eq!(all[0]["download_datagrams_lost"], "0");
    assert!(all[0]["upload_datagrams_sent"].is_empty());
}

#[test]
fn csv_and_json_exclude_each_other() {
    let line = refusal(&["perf", "client", "host", "--csv", "--json"]);
    assert!(
        line.contains("'--csv' cannot be used with '--json'"),
        "{line}"
    );
}

#[test]
fn help_lists_the_columns() {
    let output = crate::common::run(&["perf", "client", "--help"]);
    let help = String::from_utf8(output.stdout).expect("UTF-8");
    for column in ["  upload_p10_bits_per_second: ", "  interrupted: "] {
        assert!(help.contains(column), "{column} in\n{help}");
    }
}
