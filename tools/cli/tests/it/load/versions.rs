//! Reports over each version of HTTP.

use super::servers::{App, Server};
use super::{report, text};
use crate::common::{Folder, number};

#[test]
fn all_requests_succeed_over_every_version() {
    let (quic, tls, clear) = (
        Server::http3(App::default()),
        Server::tls(App::default()),
        Server::clear(App::default()),
    );
    for (server, url, flags, protocol) in [
        (&quic, quic.https("/bytes/100"), &["--h3"][..], "h3"),
        (&tls, tls.https("/bytes/100"), &[], "h2"),
        (&tls, tls.https("/bytes/100"), &["--h1"], "http/1.1"),
        (
            &tls,
            tls.https("/bytes/100"),
            &["--alpn-list", "http/1.1,h2"],
            "h2",
        ),
        (&clear, clear.http("/bytes/100"), &[], "http/1.1"),
        (&clear, clear.http("/bytes/100"), &["--h2"], "h2"),
    ] {
        let before = server.seen();
        let common = ["-n", "300", "-c", "3", "-t", "2", "-m", "4", "-k", &url];
        let report = report(&[&common[..], flags].concat());
        assert_eq!(report["protocol"], protocol, "{flags:?}");
        for (path, expected) in [
            ("requests.done", 300.0),
            ("requests.started", 300.0),
            ("requests.succeeded", 300.0),
            ("requests.errored", 0.0),
            ("statusCodeDistribution.200", 300.0),
            ("connections.made", 3.0),
            ("traffic.data", 30_000.0),
        ] {
            assert!(
                (number(&report, path) - expected).abs() < 0.1,
                "{protocol}: {path}: {report:#}"
            );
        }
        assert_eq!(server.seen() - before, 300, "{protocol}");
        assert!(number(&report, "traffic.received") > 30_000.0, "{protocol}");
        let cpu = number(&report, "cpu.seconds");
        assert!(cpu > 0.0 || cfg!(not(unix)), "{protocol}");
        assert!(number(&report, "latency.min") > 0.0, "{protocol}");
    }
}

#[test]
fn versions_of_quic_are_those_of_the_flag() {
    let server = Server::http3(App::default());
    let url = server.https("/bytes/10");
    for (flags, version) in [
        (&[][..], "1"),
        (&["--quic-version", "2"], "2"),
        (&["--quic-version", "v1,v2"], "1"),
    ] {
        let common = ["-n", "10", "-c", "2", "--h3", "-k", &url];
        let report = report(&[&common[..], flags].concat());
        assert_eq!(report["quic_version"], version, "{flags:?}");
        let text = text(&[&common[..], flags].concat());
        let line = format!("QUIC version: {version}");
        assert!(text.contains(&line), "{flags:?}: {text}");
    }
}

#[test]
fn text_has_the_format_of_h2load() {
    let server = Server::http3(App::default());
    let url = server.https("/bytes/10");
    let text = text(&["-n", "50", "-c", "2", "-m", "2", "--h3", "-k", &url]);
    for expected in [
        "starting benchmark...",
        "spawning thread #0: 2 total client(s). 50 total requests",
        "Application protocol: h3",
        "\nfinished in ",
        "requests: 50 total, 50 started, 50 done, 50 succeeded, 0 failed, 0 errored, 0 timeout",
        "status codes: 50 2xx, 0 3xx, 0 4xx, 0 5xx",
        "500B (500) data",
        "UDP datagram: ",
        "\nrequest     : ",
        "\nconnect     : ",
        "\nTTFB        : ",
        "\nreq/s       : ",
        "\nmin RTT     : ",
        "\nsmoothed RTT: ",
        "\npackets sent: ",
        "\npackets recv: ",
        "\npackets lost: ",
        "\nclient CPU: ",
    ] {
        let has_no_clock = cfg!(not(unix)) && expected.contains("CPU");
        assert!(
            text.contains(expected) || has_no_clock,
            "{expected}: {text}"
        );
    }
}

#[test]
fn text_has_the_format_of_oha() {
    let server = Server::tls(App::default());
    let url = server.https("/status/404");
    let text = text(&["--style", "oha", "-n", "40", "-c", "4", "--insecure", &url]);
    for expected in [
        "Summary:\n  Success rate:\t100.00%\n  Total:\t",
        "  Requests/sec:\t",
        "Response time histogram:\n",
        "Response time distribution:\n  10.00% in ",
        "  99.99% in ",
        "  DNS+dialup:\t",
        "Status code distribution:\n  [404] 40 responses",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn statuses_are_counted_and_5xx_is_a_failure() {
    let server = Server::http3(App::default());
    let (good, bad) = (server.https("/"), server.https("/status/503"));
    let report = report(&["-n", "10", "--h3", "-k", &good, &bad]);
    assert_eq!(report["statusCodeDistribution"]["200"], 5);
    assert_eq!(report["statusCodeDistribution"]["503"], 5);
    assert_eq!(
        (
            &report["requests"]["done"],
            &report["requests"]["succeeded"]
        ),
        (&10.into(), &5.into())
    );
}

#[test]
fn bodies_and_fields_arrive() {
    let folder = Folder::new();
    let file = folder.file("body", "0123456789");
    for (server, flag) in [
        (Server::http3(App::default()), "--h3"),
        (Server::tls(App::default()), "--h2"),
        (Server::tls(App::default()), "--h1"),
    ] {
        let url = server.https("/echo");
        let report = report(&["-n", "20", "-d", &file, flag, "-k", &url]);
        assert_eq!(report["traffic"]["data"], 200, "{flag}");
        let received = server
            .app
            .received
            .load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(received, 200, "{flag}");
        let url = server.https("/agent");
        let report = super::report(&["-n", "1", flag, "-k", &url]);
        assert_eq!(report["statusCodeDistribution"]["200"], 1, "{flag}");
    }
}

#[test]
fn without_offload_each_datagram_is_one_call() {
    let folder = Folder::new();
    let file = folder.file("body", &"x".repeat(1_000_000));
    let server = Server::http3(App::default());
    let url = server.https("/bytes/10");
    let load = |flags: &[&str]| {
        let common = ["-n", "2", "--h3", "-k", "--max-udp-payload-size", "1200"];
        let report = report(&[&common[..], flags, &["-d", &file, &url]].concat());
        assert_eq!(report["requests"]["succeeded"], 2, "{report:#}");
        let datagrams = number(&report, "connections.datagramsSent");
        assert!(datagrams > 1600.0, "{report:#}");
        (datagrams, number(&report, "connections.sendCalls"))
    };
    let (datagrams, calls) = load(&["--no-udp-gso"]);
    assert!((datagrams - calls).abs() < 0.5, "{datagrams} in {calls}");
    let (datagrams, calls) = load(&[]);
    // Other systems may lack this capability.
    if cfg!(target_os = "linux") {
        assert!(calls < datagrams / 2.0, "{datagrams} in {calls}");
    }
}

#[test]
fn large_responses_are_read_completely() {
    let server = Server::http3(App::default());
    let url = server.https("/bytes/5000000");
    let report = report(&["-n", "4", "-m", "2", "--h3", "-k", &url]);
    assert_eq!(report["traffic"]["data"], 20_000_000);
}

#[test]
fn slow_requests_time_out() {
    for (server, flag) in [
        (Server::http3(App::default()), "--h3"),
        (Server::tls(App::default()), "--h1"),
    ] {
        let url = server.https("/slow/2000");
        let report = report(&["-n", "3", "-c", "1", "--timeout", "100ms", flag, "-k", &url]);
        assert_eq!(report["requests"]["timeout"], 3, "{flag}: {report:#}");
        assert_eq!(
            report["errorDistribution"]["request timed out"], 3,
            "{flag}"
        );
    }
}

#[test]
fn duration_excludes_the_warm_up() {
    let server = Server::http3(App::default());
    let url = server.https("/slow/20");
    let began = std::time::Instant::now();
    let report = report(&["-D", "1", "--warm-up-time", "1", "--h3", "-k", &url]);
    let took = began.elapsed().as_secs_f64();
    assert!((2.0..20.0).contains(&took), "{took}");
    // Requests of 20 ms or a little more, one at a time, for a second of the two.
    let done = number(&report, "requests.done");
    assert!((1.0..=50.0).contains(&done), "{done}");
    assert!(
        server.seen() as f64 > done * 1.3,
        "{} {done}",
        server.seen()
    );
    assert!(
        (1.0..1.5).contains(&number(&report, "summary.total")),
        "{report:#}"
    );
}

#[test]
fn log_has_a_line_for_each_request() {
    let folder = Folder::new();
    let log = folder.file("log", "");
    let server = Server::http3(App::default());
    let (good, bad) = (server.https("/"), server.https("/slow/1000"));
    let flags = [
        "-n",
        "4",
        "--timeout",
        "200ms",
        "--log-file",
        &log,
        "--h3",
        "-k",
    ];
    report(&[&flags[..], &[&good, &bad]].concat());
    let text = std::fs::read_to_string(&log).expect("written");
    let statuses: Vec<_> = text
        .lines()
        .map(|line| line.split('\t').nth(1).expect("three columns"))
        .collect();
    assert_eq!(statuses, ["200", "-1", "200", "-1"], "{text}");
}
