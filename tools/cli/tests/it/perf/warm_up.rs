//! The warm-up, which no figure covers, and the spread of throughput.

use serde_json::Value;

use super::HAS_CPU_CLOCK;
use crate::common::{Server, number, refusal};

/// Returns the bytes that a connection has moved by the count of the server.
fn moved(server: &mut Server) -> f64 {
    let event = server.next_event();
    assert_eq!(event["event"], "closed", "{event}");
    number(&event, "received_bytes") + number(&event, "sent_bytes")
}

/// Returns 2 if the counters of both ends are known, and 1 if the server was too busy to report its own in time.
fn ends_with_counters(report: &Value) -> usize {
    match (&report["server"]["connection"], &report["server_gap"]) {
        (_, Value::Null) => 2,
        (Value::Null, Value::String(gap)) => {
            assert!(
                ["late", "connections"].contains(&gap.as_str()),
                "{report:#}"
            );
            1
        }
        _ => panic!("counters and a reason for which they are missing: {report:#}"),
    }
}

#[test]
fn figures_exclude_bytes_and_costs_of_the_warm_up() {
    let mut server = Server::start(&["--tcp"]);
    for flags in [&[][..], &["-R"], &["--tcp"], &["--tcp", "-R"]] {
        let time = ["-t", "2", "--warm-up", "1.5", "-i", "0.25"];
        let report = server.report(&[&time[..], flags].concat());
        assert_eq!(report["settings"]["warm_up_seconds"], 1.5, "{report:#}");
        // A warm-up that is counted would make 3.5 s of it.
        let seconds = number(&report, "end.seconds");
        assert!((1.0..3.4).contains(&seconds), "{flags:?}: {seconds}");
        let counted = number(&report, "end.sent_bytes") + number(&report, "end.received_bytes");
        // The server does not count a response that the client has stopped.
        if !flags.contains(&"-R") {
            let all = moved(&mut server);
            assert!(
                counted > 0.0 && counted < all * 0.9,
                "{flags:?}: {counted} of {all}"
            );
            let ends = ["client.io.sent_bytes", "server.io.received_bytes"];
            for end in &ends[..ends_with_counters(&report)] {
                let bytes = number(&report, end);
                assert!(
                    bytes > 0.0 && bytes < all * 0.95,
                    "{flags:?}: {end}: {bytes} of {all}"
                );
            }
        }
        let intervals = report["intervals"].as_array().expect("a list");
        assert_eq!(intervals[0]["start"], 0.0, "{report:#}");
        let sum: f64 = intervals
            .iter()
            .map(|it| number(it, "sent_bytes") + number(it, "received_bytes"))
            .sum();
        assert!((sum - counted).abs() < 0.5, "{flags:?}: {sum} of {counted}");
        let percent = number(&report, "end.cpu_utilization_percent.host_total");
        assert!(percent > 0.0 || !HAS_CPU_CLOCK, "{report:#}");
    }
}

#[test]
fn figures_exclude_packets_of_the_warm_up() {
    let server = Server::start(&["--mtu", "1452"]);
    let flags = ["-t", "2", "--warm-up", "1.9", "--mtu", "1452"];
    let report = server.report(&flags);
    // Each packet carries at most 1452 bytes, so that these are the packets of the measured bytes. Those of the
    // warm-up are about as many again.
    let least = number(&report, "end.sent_bytes") / 1452.0;
    let paths = [
        "client.connection.packets_sent",
        "server.connection.packets_received",
    ];
    for path in &paths[..ends_with_counters(&report)] {
        let packets = number(&report, path);
        assert!(
            packets > least * 0.7 && packets < least * 1.6,
            "{path}: {packets} of {least}"
        );
    }
}

#[test]
fn requests_handshakes_and_closes_can_have_a_warm_up() {
    let server = Server::start(&[]);
    for scenario in ["rr", "latency", "handshake", "close"] {
        let flags = ["-s", scenario, "-t", "2", "--warm-up", "0.5"];
        let report = server.report(&flags);
        let (seconds, count) = (number(&report, "end.seconds"), number(&report, "end.count"));
        assert!(seconds > 1.0, "{scenario}: {seconds}");
        let rate = number(&report, "end.per_second");
        assert!((rate * seconds - count).abs() < 1.0, "{scenario}");
        if ends_with_counters(&report) == 2 {
            assert!(number(&report, "server.io.send_calls") > 0.0, "{scenario}");
        }
        let spread = &report["end"]["spread"];
        assert!(
            number(spread, "per_second.p90") > 0.0,
            "{scenario}: {spread:#}"
        );
    }
}

#[test]
fn resumed_handshakes_of_the_warm_up_do_not_count() {
    let server = Server::start(&["--early-data"]);
    let flags = ["-s", "handshake", "-t", "2", "--warm-up", "0.5"];
    for (flag, path) in [
        ("--resume", "end.resumed"),
        ("--early-data", "end.early_accepted"),
    ] {
        let report = server.report(&[&flags[..], &[flag]].concat());
        let (count, found) = (number(&report, "end.count"), number(&report, path));
        // The one at the end of the warm-up may be counted in part.
        assert!((count - found).abs() < 1.5, "{flag}: {report:#}");
    }
}

#[test]
fn warm_up_that_is_not_shorter_than_the_measurement_is_refused() {
    let client = ["perf", "client", "127.0.0.1:9", "--insecure"];
    for (flags, expected) in [
        (
            &["-t", "2", "--warm-up", "2s"][..],
            "courser: a warm-up of 2.00 s must be shorter than the measured time of 2.00 s",
        ),
        (
            &["--warm-up", "1m"],
            "courser: a warm-up of 60.0 s must be shorter than the measured time of 10.0 s",
        ),
        (
            &["-s", "datagram", "--warm-up", "1"],
            "courser: --warm-up cannot be used with --scenario datagram, only with ",
        ),
        (
            &["-n", "1G", "--warm-up", "1"],
            "courser: the argument '--number <N>' cannot be used with '--warm-up <SECONDS>'",
        ),
    ] {
        let line = refusal(&[&client[..], flags].concat());
        assert!(line.starts_with(expected), "{flags:?}: {line}");
    }
}

#[test]
fn text_has_the_warm_up_and_the_spread() {
    let server = Server::start(&[]);
    let output = server.client(&["-t", "2", "--warm-up", "0.2", "--bidir", "-i", "0.1"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    for part in [
        ", after 200 ms of warm-up\n",
        "\nwarm-up     200 ms, not included below\n",
        "\nspread      upload p10 ",
        "\nspread      download p10 ",
        " intervals of 100 ms\n",
        "Mbit/s/%",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    // Too few intervals have no percentiles.
    let output = server.client(&["-t", "1.5", "-i", "0.5"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("\nspread      unknown: "), "{text}");
    assert!(text.contains(", at least 5 are needed\n"), "{text}");
    // Without --interval there is no line about missing samples.
    let output = server.client(&["-n", "1M"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!text.contains("spread "), "{text}");
}

#[test]
fn efficiency_is_the_rate_for_each_percent_of_cpu_at_both_ends() {
    let server = Server::start(&["--tcp"]);
    for flags in [&["-t", "2"][..], &["-t", "2", "--tcp", "-R"]] {
        let report = server.report(flags);
        let mbits = number(&report, "end.sum_sent.bits_per_second") / 1e6;
        for (end, percent) in [("client", "host_total"), ("server", "remote_total")] {
            let path = format!("{end}.mbits_per_second_per_cpu_percent");
            if !HAS_CPU_CLOCK {
                assert_eq!(report[end]["mbits_per_second_per_cpu_percent"], Value::Null);
                continue;
            }
            let percent = number(&report, &format!("end.cpu_utilization_percent.{percent}"));
            let (efficiency, expected) = (number(&report, &path), mbits / percent);
            assert!(
                (efficiency / expected - 1.0).abs() < 1e-6,
                "{path}: {efficiency}, not {expected}"
            );
        }
        let spread = &report["end"]["spread"];
        assert_eq!(spread["interval_seconds"], 0.1, "{spread:#}");
        assert!(number(spread, "intervals") >= 5.0, "{spread:#}");
        let direction = match flags.contains(&"-R") {
            true => "download_bits_per_second",
            false => "upload_bits_per_second",
        };
        let [p10, p50, p90] = ["p10", "p50", "p90"].map(|it| number(&spread[direction], it));
        // A busy machine may transfer nothing for 100 ms.
        assert!(
            0.0 <= p10 && p10 <= p50 && p50 <= p90 && p90 > 0.0,
            "{spread:#}"
        );
    }
}

/// A measurement that is interrupted within the warm-up has no figures.
#[cfg(target_os = "linux")]
#[test]
fn interruption_within_the_warm_up_leaves_no_figures() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;

    use rustix::process::{Pid, Signal, kill_process};

    let server = Server::start(&[]);
    let address = server.address.to_string();
    let flags = ["-t", "600", "--warm-up", "500"];
    let mut child =
        crate::common::courser(&[&["perf", "client", &address, "--insecure"], &flags[..]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut headline = String::new();
    stdout.read_line(&mut headline).expect("UTF-8");
    assert!(headline.contains("after 500 s of warm-up"), "{headline}");
    while !super::catches_sigterm(child.id()) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::TERM).expect("a running process");
    let mut output = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut output).expect("UTF-8");
    assert_eq!(
        child.wait().expect("an exit status").code(),
        Some(130),
        "{output}"
    );
    let expected = "interrupted during the warm-up, before the measurement began";
    assert!(output.contains(expected), "{output}");
}
