use clap::Parser;
use peers::latency::Latency;
use peers::process::CpuTime;
use peers::{ClientResult, Datagrams, PathCounts, ServerResult};

use super::super::host::Disturbance;
use super::super::link::LinkReport;
use super::super::registry::{Client, Kind};
use super::*;

fn measurement(stack: &str, pair: usize, seconds: f64) -> Measurement {
    Measurement {
        pair,
        workload: Workload::Up,
        stack: stack.to_owned(),
        client: ClientResult {
            version: "1.2".to_owned(),
            scenario: Workload::Up.scenario(),
            bytes: 1_000_000_000,
            count: 0,
            seconds,
            latency: None,
            peak_rss_kib: 2048,
            path: None,
            socket_drops: Some(0),
        },
        server: ServerResult {
            version: String::new(),
            connections: 1,
            answers: 1,
            received: 1_000_000_000,
            sent: 0,
            peak_rss_kib: 4096,
            path: None,
            is_uncounted: false,
            cpu: None,
            datagrams: None,
            socket_drops: Some(pair as u64),
        },
        client_cpu: CpuTime {
            user: seconds,
            system: 0.0,
        },
        server_cpu: CpuTime {
            user: 0.0,
            system: 1.0,
        },
        disturbance: Disturbance::default(),
        link: None,
        idle_kib: None,
    }
}

fn plan() -> Plan {
    Plan::parse_from(["peers", "--workloads", "up"])
}

fn stacks() -> Vec<Stack> {
    ["fast", "quinn"]
        .map(|name| Stack {
            name: name.to_owned(),
            server: "x".into(),
            server_arguments: Vec::new(),
            client: Client::Peer("x".into()),
            family: Family::Perf,
            kind: Kind::Quic,
        })
        .to_vec()
}

#[test]
fn a_row_holds_medians() {
    let measurements = [
        measurement("fast", 0, 1.0),
        measurement("fast", 1, 4.0),
        measurement("fast", 2, 2.0),
    ];
    let summary = Summary::new(&plan(), &stacks(), &measurements);
    assert_eq!(summary.rows.len(), 1);
    let row = &summary.rows[0];
    assert!((row.speed - 4.0).abs() < 1e-9, "{row:?}");
    assert!((row.slowest - 2.0).abs() < 1e-9, "{row:?}");
    assert!((row.client_cost - 2.0).abs() < 1e-9, "{row:?}");
    assert!((row.server_mib - 4.0).abs() < 1e-9, "{row:?}");
}

#[test]
fn the_most_drops_of_a_run_are_shown() {
    let measurements = [measurement("fast", 0, 1.0), measurement("fast", 3, 1.0)];
    let plan = plan();
    let summary = Summary::new(&plan, &stacks(), &measurements);
    assert_eq!(summary.rows[0].most_drops, Some(3));
    let text = render(&plan, &summary, &[]);
    assert!(text.contains("| dropped | runs |"), "{text}");
    assert!(text.contains("|       3 |    2 |"), "{text}");
}

#[test]
fn special_workloads_have_tables_of_their_own() {
    let plan =
        Plan::parse_from("peers --workloads latency-down,datagrams,idle-1000 --veth".split(' '));
    let of = |workload: &str, stack| Measurement {
        workload: workload.parse().unwrap(),
        ..measurement(stack, 0, 2.0)
    };
    let mut measurements = Vec::new();
    for (stack, factor) in [("fast", 1.0), ("quinn", 2.0)] {
        let mut latency = of("latency-down", stack);
        latency.client.latency = Some(Latency {
            p50_us: 300.0,
            p99_us: 900.0 * factor,
        });
        let mut datagrams = of("datagrams", stack);
        datagrams.client.count = 1000;
        datagrams.server.datagrams = Some(Datagrams {
            received: 950,
            seconds: factor,
        });
        let mut idle = of("idle-1000", stack);
        idle.client.count = 1000;
        idle.idle_kib = Some(8000.0 * factor);
        measurements.extend([latency, datagrams, idle]);
    }
    let summary = Summary::new(&plan, &stacks(), &measurements);
    let ratios = Ratio::all(&plan, &stacks(), &measurements);
    let text = render(&plan, &summary, &ratios);
    for part in [
        "a veth pair",
        "| p50 us | p99 us |",
        "|    300 |    900 |",
        "| received per second |",
        "|                 950 | ",
        "5.00 %",
        "| KiB a connection |",
        "|             8.00 |",
        " p99 [95 %] |",
        " memory [95 %] |",
        " speed [95 %] |",
        "2.00 [2.00, 2.00]",
        "0.50 [0.50, 0.50]",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("dropped by link"), "{text}");
}

#[test]
fn ratios_are_taken_within_pairs() {
    // The machine is ten times slower in the second pair; the ratio does not see it.
    let measurements = [
        measurement("fast", 0, 1.0),
        measurement("quinn", 0, 2.0),
        measurement("fast", 1, 10.0),
        measurement("quinn", 1, 20.0),
    ];
    let ratios = Ratio::all(&plan(), &stacks(), &measurements);
    assert_eq!(ratios.len(), 1);
    assert_eq!(ratios[0].pairs, 2);
    let speed = ratios[0].speed;
    assert!(
        (speed.median - 2.0).abs() < 1e-9 && (speed.high - 2.0).abs() < 1e-9,
        "{speed:?}"
    );
    assert!((ratios[0].client_cost.median - 0.5).abs() < 1e-9);
}

#[test]
fn half_a_pair_is_left_out() {
    let measurements = [
        measurement("fast", 0, 1.0),
        measurement("fast", 1, 1.0),
        measurement("quinn", 1, 3.0),
    ];
    let ratios = Ratio::all(&plan(), &stacks(), &measurements);
    assert_eq!(ratios[0].pairs, 1);
    assert!((ratios[0].speed.median - 3.0).abs() < 1e-9);
}

#[test]
fn tables_without_rows_are_left_out() {
    let measurements = [measurement("fast", 0, 1.0), measurement("quinn", 0, 2.0)];
    let plan = plan();
    let summary = Summary::new(&plan, &stacks(), &measurements);
    let text = render(
        &plan,
        &summary,
        &Ratio::all(&plan, &stacks(), &measurements),
    );
    assert!(text.contains("| up       | fast 1.2  |   8.00 |"), "{text}");
    assert!(text.contains("2.00 [2.00, 2.00]"), "{text}");
    assert!(!text.contains("per second"), "{text}");
}

#[test]
fn a_link_has_a_table_of_its_own() {
    let mut one = measurement("fast", 0, 100.0);
    one.client.path = Some(PathCounts {
        packets_sent: 1000,
        packets_lost: 15,
        packets_spuriously_lost: 0,
        datagrams_received: 500,
        congestion_events: 4,
        datagram: 1452,
        rtt_ms: 50.0,
    });
    let mut link = LinkReport::default();
    link.there.packets_in = 1000;
    link.there.dropped_total = 10;
    link.back.packets_in = 500;
    link.back.dropped_total = 500;
    one.link = Some(link);
    let plan = Plan::parse_from("peers --workloads up --link 100mbit --datagram 1200".split(' '));
    let summary = Summary {
        discarded: 2,
        ..Summary::new(&plan, &stacks(), &[one])
    };
    let text = render(&plan, &summary, &[]);
    assert!(text.contains("UDP payload 1200"), "{text}");
    assert!(text.contains("2 measurements were discarded"), "{text}");
    assert!(text.contains("| up       | fast 1.2 |  80.00 |"), "{text}");
    assert!(
        text.contains("|     1452 |          1.00 % |       1.50 % |      4 |"),
        "{text}"
    );
    assert!(!text.contains("Gbit/s"), "{text}");
}
