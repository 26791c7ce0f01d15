//! Every scenario of `courser perf`, with its own server.

mod csv;
mod mixed;
mod warm_up;

use crate::common;
use crate::common::{Server, number, run};

/// True where the CPU time of processes is known.
const HAS_CPU_CLOCK: bool = cfg!(unix);

/// Checks that both ends report their work and its cost.
fn assert_both_ends_count(report: &serde_json::Value) {
    for end in ["client", "server"] {
        assert!(
            number(report, &format!("{end}.cpu_seconds")) > 0.0 || !HAS_CPU_CLOCK,
            "{end}: {report:#}"
        );
        assert!(
            number(report, &format!("{end}.io.send_calls")) > 0.0,
            "{end}: {report:#}"
        );
        let sent = number(report, &format!("{end}.datagrams_per_send_call"));
        assert!(sent >= 1.0, "{end}: {sent}");
    }
}

#[test]
fn upload_reports_both_ends() {
    let server = Server::start(&["--mtu", "1452"]);
    let report = server.report(&["-n", "5M", "--mtu", "1452"]);
    assert_both_ends_count(&report);
    assert_eq!(report["settings"]["transport"], "quic");
    assert_eq!(report["settings"]["mtu"], 1452);
    assert!((number(&report, "end.sum_sent.bytes") - 5e6).abs() < 0.5);
    assert!(number(&report, "end.sum_sent.bits_per_second") > 0.0);
    assert!(number(&report, "handshake.seconds") > 0.0);
    for end in ["client", "server"] {
        assert!(number(&report, &format!("{end}.connection.rtt_us")) > 0.0);
        assert!(number(&report, &format!("{end}.connection.congestion_window")) > 0.0);
        let cpu = number(&report, &format!("{end}.cpu_seconds_per_gb"));
        assert!(cpu > 0.0 || !HAS_CPU_CLOCK);
    }
    // The upload takes more than 3000 packets with data; the server sends ACKs.
    assert!(number(&report, "server.connection.ack_eliciting_received") > 3000.0);
    assert!(number(&report, "server.acks_per_data_packet") > 0.0);
}

#[test]
fn download_and_reversed_upload_receive_the_requested_bytes() {
    let server = Server::start(&[]);
    for flags in [
        &["--scenario", "download", "-n", "2MiB"],
        &["-R", "-n", "2MiB", "-P", "3"][..],
    ] {
        let report = server.report(flags);
        assert_both_ends_count(&report);
        assert_eq!(report["end"]["received_bytes"], 2 << 20, "{flags:?}");
        assert_eq!(report["settings"]["scenario"]["direction"], "download");
    }
}

#[test]
fn without_offload_each_datagram_is_one_call() {
    let server = Server::start(&["--mtu", "1452", "--no-udp-gso"]);
    let flags = ["--bidir", "-n", "2M", "--mtu", "1452", "--no-udp-gso"];
    let report = server.report(&flags);
    for end in ["client", "server"] {
        let calls = number(&report, &format!("{end}.io.send_calls"));
        let datagrams = number(&report, &format!("{end}.io.sent_datagrams"));
        assert!(datagrams > 1000.0, "{end}: {report:#}");
        assert!((calls - datagrams).abs() < 0.5, "{end}: {report:#}");
    }
}

#[test]
fn connections_move_between_sockets_under_load() {
    let server = Server::start(&[]);
    let flags = ["--bidir", "-t", "2", "--rebind-every", "0.2"];
    let report = server.report(&flags);
    assert_both_ends_count(&report);
    for end in ["client", "server"] {
        let changes = number(&report, &format!("{end}.connection.path_changes"));
        assert!(changes >= 3.0, "{end}: {report:#}");
    }
    assert!(number(&report, "end.sum_sent.bytes") > 1e6, "{report:#}");
    assert!(number(&report, "end.moves.count") >= 3.0, "{report:#}");
    assert_eq!(report["end"]["moves"]["failed"], 0, "{report:#}");
    let stall = number(&report, "end.moves.stall.max_us");
    assert!(stall > 0.0 && stall < 2e6, "{report:#}");
    // The alias of the flag, with text output.
    let output = server.client(&["-t", "0.7", "--migrate-every", "0.2"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("\nmoves       "), "{text}");
    assert!(text.contains(", stalls p50 "), "{text}");
}

/// Measures datagrams, 200 each way at most, and returns the report.
fn datagrams(server: &Server, more: &[&str]) -> serde_json::Value {
    let flags = ["--scenario", "datagram", "-n", "200", "--rate", "4M"];
    server.report(&[&flags, more].concat())
}

#[test]
fn datagrams_are_counted_in_each_direction() {
    let server = Server::start(&[]);
    for (flags, directions) in [
        (&[][..], &["upload"][..]),
        (&["-R"], &["download"]),
        (&["--bidir"], &["upload", "download"]),
    ] {
        let report = datagrams(&server, flags);
        for direction in ["upload", "download"] {
            let flow = &report["end"]["datagrams"][direction];
            if !directions.contains(&direction) {
                assert!(flow.is_null(), "{flags:?}: {report:#}");
                continue;
            }
            for (name, expected) in [
                ("sent", 200),
                ("received", 200),
                ("lost", 0),
                ("reordered", 0),
                ("duplicated", 0),
                ("unsent", 0),
            ] {
                assert_eq!(flow[name], expected, "{flags:?}: {name}: {report:#}");
            }
            // 200 datagrams with 8000 bits at 4 Mbit/s take 0.4 s.
            let seconds = number(flow, "seconds");
            assert!(seconds > 0.38, "{flags:?}: {report:#}");
            assert!(number(flow, "jitter_ms") > 0.0, "{flags:?}: {report:#}");
        }
        assert_eq!(report["settings"]["scenario"]["rate"], 4_000_000);
        let counted = directions.len() * 200;
        assert_eq!(report["end"]["count"], counted, "{flags:?}");
    }
}

#[test]
fn datagrams_end_after_their_time_and_are_printed_as_two_lines() {
    let server = Server::start(&[]);
    let flags = ["-s", "datagram", "-t", "0.3", "--datagram-size", "500"];
    let output = server.client(&flags);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    for word in [
        "datagram over quic",
        "upload, 500-byte datagrams, 1.00 Mbit/s",
        " sent in ",
        " lost (0.00 %), 0 reordered, 0 duplicated, jitter ",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    // Several measurements on one server, one after the other.
    let report = server.report(&["-s", "datagram", "-t", "0.2", "--rate", "0", "-R"]);
    assert!(number(&report, "end.datagrams.download.sent") > 200.0);
    // A size that fits only after the search for the MTU is waited for.
    for direction in ["upload", "download"] {
        let flags = ["-s", "datagram", "-n", "20", "--datagram-size", "1400"];
        let reverse: &[&str] = if direction == "download" {
            &["-R"]
        } else {
            &[]
        };
        let report = server.report(&[&flags, reverse].concat());
        let received = format!("end.datagrams.{direction}.received");
        assert!(number(&report, &received) > 0.0, "{direction}");
    }
}

#[test]
fn impossible_datagram_settings_are_rejected() {
    let server = Server::start(&["--tcp", "--mtu", "1200"]);
    let address = server.address.to_string();
    for (flags, expected) in [
        (&["--tcp"][..], "TCP has no datagrams"),
        (
            &["--datagram-size", "1400", "--mtu", "1200"],
            "datagrams of 1400 bytes do not fit: at most 11",
        ),
        (&["--datagram-size", "15"], "15 is not between 16 and 65507"),
        (&["-P", "2"], "--parallel cannot be used with"),
    ] {
        let client = ["perf", "client", &address, "--insecure", "-s", "datagram"];
        let line = common::refusal(&[&client, flags].concat());
        assert!(line.contains(expected), "{flags:?}: {line}");
    }
}

#[test]
fn both_directions_at_once_over_several_connections() {
    let server = Server::start(&[]);
    let flags = [
        "--bidir",
        "-n",
        "1M",
        "-P",
        "2",
        "--connections",
        "2",
        "--cc",
        "newreno",
    ];
    let report = server.report(&flags);
    assert_eq!(report["end"]["sent_bytes"], 1_000_000);
    assert_eq!(report["end"]["received_bytes"], 1_000_000);
    assert_eq!(report["client"]["connection"]["connections"], 2);
    assert_eq!(report["server"]["connection"]["connections"], 2);
    assert_eq!(report["settings"]["congestion"], "newreno");
}

#[test]
fn time_limits_transfers_both_ways() {
    let server = Server::start(&["--tcp"]);
    for flags in [
        &["-t", "0.3"][..],
        &["-t", "0.3", "-R"],
        &["-t", "0.3", "--bidir"],
    ] {
        for over in [&[][..], &["--tcp"]] {
            let report = server.report(&[flags, over].concat());
            let moved = number(&report, "end.sent_bytes") + number(&report, "end.received_bytes");
            assert!(moved > 0.0, "{flags:?} {over:?}");
            assert!(number(&report, "end.seconds") >= 0.3, "{flags:?} {over:?}");
        }
    }
}

#[test]
fn intervals_add_up_to_the_total() {
    let server = Server::start(&[]);
    let report = server.report(&["-R", "-t", "0.5", "-i", "0.1"]);
    let intervals = report["intervals"].as_array().expect("a list");
    assert!(intervals.len() >= 2, "{intervals:?}");
    let sum: f64 = intervals
        .iter()
        .map(|interval| number(interval, "received_bytes"))
        .sum();
    assert!((sum - number(&report, "end.received_bytes")).abs() < 0.5);
}

#[test]
fn requests_are_counted_and_timed() {
    let server = Server::start(&["--tcp"]);
    let sizes = [
        "--request-size",
        "100",
        "--response-size",
        "1k",
        "--in-flight",
        "10",
    ];
    for over in [&[][..], &["--tcp"], &["--connections", "2"], &["--uni"]] {
        let flags = [&["--scenario", "rr", "-n", "200"][..], &sizes, over].concat();
        let report = server.report(&flags);
        assert_eq!(report["end"]["count"], 200, "{over:?}");
        assert_eq!(report["end"]["sent_bytes"], 20_000, "{over:?}");
        assert_eq!(report["end"]["received_bytes"], 200_000, "{over:?}");
        let (p50, p99) = ("end.latency.p50_us", "end.latency.p99_us");
        assert!(number(&report, p50) > 0.0 && number(&report, p99) >= number(&report, p50));
        assert!(number(&report, "client.cpu_us_each") > 0.0 || !HAS_CPU_CLOCK);
        assert!(number(&report, "server.cpu_us_each") > 0.0 || !HAS_CPU_CLOCK);
    }
}

#[test]
fn large_requests_and_empty_responses_work() {
    let server = Server::start(&["--tcp"]);
    for over in [&[][..], &["--tcp"]] {
        let sizes = ["--request-size", "200k", "--response-size", "0"];
        let flags = [
            &["--scenario", "rr", "-n", "5", "--in-flight", "2"][..],
            &sizes,
            over,
        ];
        let report = server.report(&flags.concat());
        if over.is_empty() {
            assert_eq!(report["end"]["sent_bytes"], 1_000_000);
        }
        assert_eq!(report["end"]["count"], 5, "{over:?}");
    }
}

#[test]
fn latency_has_one_request_at_a_time() {
    let server = Server::start(&["--tcp"]);
    for over in [&[][..], &["--tcp"]] {
        let report = server.report(&[&["--scenario", "latency", "-n", "50"][..], over].concat());
        assert_eq!(report["end"]["count"], 50);
        assert_eq!(report["end"]["received_bytes"], 50 * 4000);
    }
}

#[test]
fn handshakes_are_full_unless_resumption_is_requested() {
    let server = Server::start(&["--tcp"]);
    for over in [&[][..], &["--tcp"]] {
        let flags = [
            &["--scenario", "handshake", "-n", "20", "-P", "2"][..],
            over,
        ]
        .concat();
        let full = server.report(&flags);
        assert_eq!(full["end"]["count"], 20, "{over:?}");
        assert_eq!(full["end"]["resumed"], 0, "{over:?}");
        assert!(number(&full, "end.latency.p50_us") > 0.0);
        let resumed = server.report(&[&flags[..], &["--resume"]].concat());
        assert_eq!(resumed["end"]["resumed"], 20, "{over:?}");
    }
}

#[test]
fn requests_in_early_data_are_counted_and_timed() {
    let flags = ["--scenario", "handshake", "-n", "20", "-P", "2"];
    let flags = [&flags[..], &["--early-data"]].concat();
    for (server, accepted) in [
        (Server::start(&["--early-data"]), 20),
        (Server::start(&[]), 0),
    ] {
        let report = server.report(&flags);
        assert_eq!(report["end"]["count"], 20, "{report}");
        assert_eq!(report["end"]["resumed"], 20, "{report}");
        assert_eq!(report["end"]["early_accepted"], accepted, "{report}");
        assert!(number(&report, "end.latency.p50_us") > 0.0);
    }
}

#[test]
fn closes_are_counted_and_timed() {
    let server = Server::start(&["--tcp"]);
    for over in [&[][..], &["--tcp"]] {
        let report = server.report(&[&["--scenario", "close", "-n", "10"][..], over].concat());
        assert_eq!(report["end"]["count"], 10, "{over:?}");
        assert!(number(&report, "end.latency.p99_us") > 0.0, "{over:?}");
        assert!(number(&report, "server.io.send_calls") > 0.0, "{over:?}");
    }
}

#[test]
fn tcp_transfers_the_same_bytes() {
    let server = Server::start(&["--tcp"]);
    for flags in [&["-n", "3M"][..], &["-n", "3M", "-R", "-P", "2"]] {
        let report = server.report(&[flags, &["--tcp"]].concat());
        assert_eq!(report["settings"]["transport"], "tls over tcp");
        assert!((number(&report, "end.sum_sent.bytes") - 3e6).abs() < 0.5);
        assert!(number(&report, "server.cpu_seconds") > 0.0 || !HAS_CPU_CLOCK);
        assert!(number(&report, "server.io.receive_calls") > 0.0);
        // Over TCP the kernel builds the packets.
        assert!(report["client"]["datagrams_per_send_call"].is_null());
        assert!(report["client"]["connection"].is_null());
    }
}

#[test]
fn text_output_is_a_table() {
    let server = Server::start(&[]);
    let output = server.client(&["-n", "1M", "-i", "10"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for word in [
        "upload over quic",
        "1 connection, 1 stream",
        "bit/s",
        "s/GB",
        "client ",
        "server ",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    assert!(
        !text.contains('\u{1b}') && !text.contains('\r'),
        "escape sequences in a pipe:\n{text}"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "",
        "progress in a pipe"
    );
}

#[test]
fn own_certificate_is_trusted_through_ca() {
    let certificate = common::certificate(2200);
    let (cert, key) = (&certificate.cert, &certificate.key);
    let server = Server::start(&["--cert", cert, "--key", key, "--tcp"]);
    let address = format!("localhost:{}", server.address.port());
    for over in [&[][..], &["--tcp"]] {
        let flags = [
            &["perf", "client", &address, "--ca", cert, "-n", "10k"][..],
            over,
        ]
        .concat();
        let output = common::run(&flags);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{over:?}: {error}");
    }
}

#[test]
fn server_reports_clients_that_disconnect() {
    let mut server = Server::start(&[]);
    server.report(&["-n", "10k"]);
    let event = server.next_event();
    assert_eq!(
        (&event["event"], &event["received_bytes"]),
        (&"closed".into(), &10_016.into())
    );
}

#[test]
#[cfg(unix)]
fn server_ends_successfully_after_sigterm() {
    let mut server = Server::start(&["--tcp"]);
    server.report(&["-n", "10k"]);
    let child = server.child();
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let signal = rustix::process::Signal::TERM;
    rustix::process::kill_process(pid.expect("a process"), signal).expect("our process");
    assert!(child.wait().expect("our process").success());
}

#[test]
fn features_in_use_are_reported() {
    let server = Server::start(&["--tcp"]);
    let report = server.report(&["-n", "1M", "--quic-version", "2"]);
    let network = &report["network"];
    assert_eq!(network["quic_version"], "2", "{report:#}");
    assert!(network["gso_segments"].is_u64() && network["gro"].is_boolean());
    // Loopback delivers marks.
    assert!(
        network["ecn"] == true || !cfg!(target_os = "linux"),
        "{report:#}"
    );
    assert_eq!(report["interrupted"], false);

    let report = server.report(&["-n", "1M", "--no-udp-gso"]);
    assert_eq!(report["network"]["quic_version"], "1", "{report:#}");
    assert_eq!(report["network"]["gso_segments"], 1, "{report:#}");
    let report = server.report(&["-n", "1M", "--tcp"]);
    assert!(report["network"].is_null(), "{report:#}");

    let output = server.client(&["-n", "1M"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("network     QUIC v1, "), "{text}");
}

/// Returns true if the process has a handler for SIGTERM.
#[cfg(target_os = "linux")]
fn catches_sigterm(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("Linux");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    mask & 1 << 14 != 0
}

/// The figures of an interrupted measurement cover the time until then, and both ends.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_measurement_reports_its_figures() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use rustix::process::{Pid, Signal, kill_process};

    let server = Server::start(&["--tcp"]);
    let address = server.address.to_string();
    for flags in [
        &["-t", "600"][..],
        &["-t", "600", "-R", "--tcp"],
        &["-t", "600", "--scenario", "rr"],
        &["-t", "600", "--scenario", "handshake"],
        &["-t", "600", "--scenario", "close"],
    ] {
        for (json, signal) in [(false, Signal::INT), (true, Signal::TERM)] {
            let fixed = ["perf", "client", &address, "--insecure", "-i", "0.1"];
            let json: &[&str] = if json { &["--json"] } else { &[] };
            let mut child = common::courser(&[&fixed, flags, json].concat())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary starts");
            let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
            let mut text = String::new();
            if json.is_empty() {
                // After the headline and the first interval, the measurement is running.
                let begin = lines
                    .by_ref()
                    .take(2)
                    .map(|line| line.expect("UTF-8") + "\n");
                text.extend(begin);
            } else {
                // Nothing is printed before the end. The client can be interrupted while it connects, too.
                while !catches_sigterm(child.id()) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            kill_process(pid.expect("a process"), signal).expect("a running process");
            text.extend(lines.map(|line| line.expect("UTF-8") + "\n"));
            let status = child.wait().expect("an exit status");
            assert_eq!(status.code(), Some(130), "{flags:?}: {text}");
            if json.is_empty() {
                assert!(text.contains("interrupted: "), "{flags:?}: {text}");
                assert!(text.contains("\nserver "), "{flags:?}: {text}");
                continue;
            }
            let report: serde_json::Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{flags:?}: {error}: {text}"));
            assert_eq!(report["interrupted"], true, "{flags:?}");
            assert!(number(&report, "end.seconds") < 60.0, "{flags:?}");
        }
    }
}

/// Receive buffers that are smaller than requested limit a measurement: the client warns, with the command
/// to raise the limit.
#[cfg(target_os = "linux")]
#[test]
fn small_buffers_are_reported_once() {
    let server = Server::start(&[]);
    let address = server.address.to_string();
    for (flags, expected) in [(&[][..], 1), (&["--json"], 0)] {
        let fixed = ["perf", "client", &address, "--insecure", "-n", "100K"];
        let (mut command, is_small) = common::overflow::unprivileged(&[&fixed, flags].concat());
        let output = command.output().expect("the binary starts");
        let warnings = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{flags:?}: {warnings}");
        let count = warnings.matches("sysctl -w net.core.rmem_max=").count();
        assert_eq!(
            count,
            usize::from(is_small) * expected,
            "{flags:?}: {warnings}"
        );
    }
}

#[test]
fn commands_are_compared_in_pairs() {
    let prints = |rate: u32| format!(r#"echo '{{"end":{{"per_second":{rate}}}}}'"#);
    let (a, b) = (prints(200), prints(100));
    let flags = ["perf", "compare", "--pairs", "3", "--a", &a, "--b", &b];
    let output = run(&flags);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("ratio 0.500").count(), 3, "{text}");
    assert!(text.contains("b / a: 0.500 [0.500, 0.500]"), "{text}");
    assert!(
        text.ends_with("too few pairs for a verdict: at least 6 are needed\n"),
        "{text}"
    );
    let output = run(&[&flags[..], &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["ratio"]["median"], 0.5, "{report:#}");
    assert_eq!(report["pairs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn invalid_comparisons_are_rejected_with_the_reason() {
    for (flags, part) in [
        (&["--b", "exit 4"][..], "command b (exit 4) failed"),
        (&["--b", "true", "--figure", "bits"], "nor a JSON pointer"),
        (
            &["--b", "true", "--figure", "/bits"],
            "does it need --json?",
        ),
        (&["--b", "true", "--less-is-better"], "--figure"),
        (&["--b", "true", "--pairs", "0"], "0 is not in 1.."),
    ] {
        let output = run(&[&["perf", "compare", "--a", "true"], flags].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(part), "{text}");
    }
}
