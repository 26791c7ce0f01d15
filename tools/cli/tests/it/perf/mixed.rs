//! `courser perf client --scenario mixed`.

use serde_json::Value;

use crate::common::{Server, number, refusal};

/// Runs the scenario for two seconds, and returns the report.
fn mixed(server: &Server, more: &[&str]) -> Value {
    let flags = ["-s", "mixed", "-t", "2", "--rate", "2M"];
    server.report(&[&flags, more].concat())
}

/// Checks the requests and the datagrams of a direction.
fn assert_all_parts(report: &Value, direction: &str) {
    assert!(number(report, "end.count") > 0.0, "{report:#}");
    let (p50, p99) = ("end.latency.p50_us", "end.latency.p99_us");
    assert!(
        number(report, p50) > 0.0 && number(report, p99) >= number(report, p50),
        "{report:#}"
    );
    let flow = &report["end"]["datagrams"][direction];
    // 2 Mbit/s for two seconds are 500 datagrams of 1000 bytes. A busy machine sends fewer, never more.
    let sent = number(flow, "sent");
    assert!((100.0..=510.0).contains(&sent), "{report:#}");
    assert_eq!(
        number(flow, "received") + number(flow, "lost"),
        sent,
        "{report:#}"
    );
    let seconds = number(report, "end.seconds");
    assert!(seconds > 1.0, "{report:#}");
    // The CPU time is for bytes, requests and datagrams together.
    for cost in [
        "cpu_us_each",
        "cpu_seconds_per_gb",
        "mbits_per_second_per_cpu_percent",
    ] {
        assert_eq!(report["client"][cost], Value::Null);
        assert_eq!(report["server"][cost], Value::Null);
    }
}

#[test]
fn bytes_requests_and_datagrams_share_a_connection_in_each_direction() {
    let server = Server::start(&[]);
    let report = mixed(&server, &[]);
    assert_all_parts(&report, "upload");
    assert_eq!(report["client"]["connection"]["connections"], 1);
    assert_eq!(report["settings"]["scenario"]["name"], "mixed");
    // The bytes are those of the stream, without requests and responses.
    assert!(number(&report, "end.sum_sent.bytes") > 0.0, "{report:#}");
    assert_eq!(report["end"]["received_bytes"], 0, "{report:#}");
    assert!(report["end"]["datagrams"]["download"].is_null());

    let report = mixed(&server, &["-R", "-P", "2", "--in-flight", "4"]);
    assert_all_parts(&report, "download");
    assert_eq!(report["end"]["sent_bytes"], 0, "{report:#}");
    assert!(number(&report, "end.received_bytes") > 0.0, "{report:#}");

    let report = mixed(&server, &["--bidir"]);
    assert_all_parts(&report, "upload");
    assert_all_parts(&report, "download");
    for path in ["end.sum_sent.bytes", "end.sum_sent_bidir_reverse.bytes"] {
        assert!(number(&report, path) > 0.0, "{report:#}");
    }
}

#[test]
fn datagrams_begin_after_the_warm_up() {
    let server = Server::start(&[]);
    let report = mixed(&server, &["--warm-up", "1.9", "-i", "0.1"]);
    assert_all_parts(&report, "upload");
    // With the warm-up it would be 3.9 s.
    let flow = number(&report, "end.datagrams.upload.seconds");
    assert!((1.9..3.8).contains(&flow), "{report:#}");
    let intervals = report["intervals"].as_array().expect("a list");
    let count: f64 = intervals.iter().map(|it| number(it, "count")).sum();
    assert!((count - number(&report, "end.count")).abs() < 0.5);
}

#[test]
fn text_has_bytes_requests_datagrams_and_latency() {
    let server = Server::start(&[]);
    let output = server.client(&["-s", "mixed", "-t", "2", "--bidir", "-P", "2"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{text}");
    for part in [
        "mixed over quic to ",
        ": upload and download on 2 streams, 1 request of 512 and 4000 bytes in flight, 1000-byte datagrams, \
         1.00 Mbit/s, ",
        "\nupload      ",
        "\ndownload    ",
        "\nrequests    ",
        "\ndatagrams   upload: ",
        "\ndatagrams   download: ",
        "\nlatency     p50 ",
        "  p99 ",
        "\nspread      upload p10 ",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    for column in ["us/op", "s/GB", "Mbit/s/%"] {
        assert!(!text.contains(column), "{column} in\n{text}");
    }
}

#[test]
fn datagrams_that_do_not_fit_end_the_measurement() {
    let server = Server::start(&[]);
    let address = server.address.to_string();
    let flags = ["--mtu", "1200", "-s", "mixed", "--datagram-size", "1400"];
    let client = ["perf", "client", &address, "--insecure", "-t", "60"];
    let begun = std::time::Instant::now();
    let line = refusal(&[&client[..], &flags].concat());
    assert!(
        line.contains("datagrams of 1400 bytes do not fit"),
        "{line}"
    );
    assert!(
        begun.elapsed().as_secs() < 30,
        "the client waited for the end"
    );
}

#[test]
fn interrupted_run_reports_bytes_and_requests() {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::Stdio;

    if !cfg!(unix) {
        return;
    }
    let server = Server::start(&[]);
    let address = server.address.to_string();
    let flags = ["--insecure", "-s", "mixed", "-t", "600", "-i", "0.1"];
    let mut child = crate::common::courser(&[&["perf", "client", &address], &flags[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut text = String::new();
    // The headline and two intervals.
    for _ in 0..3 {
        stdout.read_line(&mut text).expect("UTF-8");
    }
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), Signal::INT).expect("a running process");
    }
    stdout.read_to_string(&mut text).expect("UTF-8");
    assert_eq!(
        child.wait().expect("an exit status").code(),
        Some(130),
        "{text}"
    );
    for part in [
        "\nupload      ",
        "\nrequests    ",
        "\nlatency     p50 ",
        "\ninterrupted: ",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}
