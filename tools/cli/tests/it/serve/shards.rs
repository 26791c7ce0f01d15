//! QUIC connections on several sockets and tasks.

use std::time::{Duration, Instant};

use super::running::{admin, start};
use super::serving::Serving;
use crate::common::{Folder, run};

/// Each client has its own socket, which the system assigns to one of the shards.
#[test]
fn clients_are_served_by_several_shards() {
    let folder = Folder::new();
    folder.file("page", "the same from each");
    let mut serving = start(&folder, &["--shards", "3", "--admin", "127.0.0.1:0"]);
    let url = format!("https://{}/page", serving.address);
    for _ in 0..12 {
        let output = run(&["get", "--http3-only", "-k", "-s", &url]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"the same from each");
    }
    let accepted: Vec<u64> = (0..3)
        .map(|shard| of_shard(&serving, "accepted_total", shard))
        .collect();
    assert_eq!(accepted.iter().sum::<u64>(), 12, "{accepted:?}");
    assert!(
        accepted.iter().filter(|count| **count > 0).count() > 1,
        "{accepted:?}"
    );
    serving.signal(rustix::process::Signal::TERM);
    serving.ended();
}

#[test]
fn numbers_of_shards_out_of_range_are_rejected() {
    for number in ["0", "257"] {
        let output = run(&["serve", "--shards", number]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        let expected =
            format!("invalid value '{number}' for '--shards <N>': {number} is not in 1..=256");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn each_core_has_a_shard_by_default() {
    let serving = start(&Folder::new(), &["--admin", "127.0.0.1:0"]);
    let cores = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(256);
    let metrics = admin(&serving, "/metrics").1;
    let shards = metrics
        .lines()
        .filter(|line| line.starts_with("courser_quic_shard_accepted_total{"));
    assert_eq!(shards.count(), cores, "{metrics}");
}

#[test]
fn metrics_count_connections_of_each_address_by_the_cause_of_their_end() {
    let folder = Folder::new();
    folder.file("page", "counted");
    let more = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let serving = start(&folder, &more);
    let addresses = serving.announced["addresses"].as_array().expect("a list");
    let addresses: Vec<_> = addresses.iter().filter_map(|it| it.as_str()).collect();
    let [one, other] = addresses[..] else {
        panic!("two addresses in {addresses:?}");
    };
    for (address, requests) in [(one, 1), (other, 2)] {
        for _ in 0..requests {
            let url = format!("https://{address}/page");
            let output = run(&["get", "--http3-only", "-k", "-s", &url]);
            assert!(output.status.success(), "{output:?}");
        }
    }
    let labels = r#"side="server",by="peer",cause="H3_NO_ERROR""#;
    let closed = [(one, 1), (other, 2)].map(|(address, count)| {
        format!("courser_connections_closed_total{{endpoint=\"{address}\",{labels}}} {count}\n")
    });
    let mut metrics = admin(&serving, "/metrics").1;
    let begun = Instant::now();
    while !closed.iter().all(|line| metrics.contains(line)) {
        assert!(
            begun.elapsed() < CLOSE_TIMEOUT,
            "no {closed:?} in\n{metrics}"
        );
        metrics = admin(&serving, "/metrics").1;
    }
    for (address, count) in [(one, 1), (other, 2)] {
        for (name, labels, value) in [
            ("connections_established_total", r#"side="server""#, count),
            (
                "handshake_duration_seconds_count",
                r#"side="server""#,
                count,
            ),
            (
                "packets_lost_total",
                r#"trigger="time_threshold",family="ipv6""#,
                0,
            ),
        ] {
            let series = format!("courser_{name}{{endpoint=\"{address}\",{labels}}} {value}\n");
            assert!(metrics.contains(&series), "no {series} in\n{metrics}");
        }
        let limited = format!("courser_send_limited_seconds_total{{endpoint=\"{address}\",by=");
        assert!(metrics.contains(&limited), "no {limited} in\n{metrics}");
        let shard = format!("courser_quic_shard_accepted_total{{address=\"{address}\",");
        assert!(metrics.contains(&shard), "no {shard} in\n{metrics}");
    }
    let ends = metrics.lines().filter(|line| *line == "# EOF").count();
    assert_eq!(ends, 1, "{metrics}");
}

/// Returns a number of a shard from the metrics.
fn of_shard(serving: &Serving, name: &str, shard: usize) -> u64 {
    let metrics = admin(serving, "/metrics").1;
    let start = format!(
        "courser_quic_shard_{name}{{address=\"{}\",shard=\"{shard}\"}} ",
        serving.address
    );
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    let value = value.unwrap_or_else(|| panic!("{start} in {metrics}"));
    value.parse().expect("a number")
}

/// Time for a connection to drain, on a machine that is busy.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(120);
