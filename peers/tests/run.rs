//! Small runs of the whole: every stack under every workload, and a stack that fails.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Both ends on one core, so that the test runs on any machine.
fn run(options: &str, peers: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_peers"))
        .args("--no-build --json --retries 0 --server-core 0 --client-core 0".split(' '))
        .args("--gigabytes 0.002 --handshakes 5 --requests 50".split(' '))
        .args(options.split(' '))
        .args(peers.iter().flat_map(|peer| ["--peer", peer]))
        .output()
        .expect("the runner is built with its tests")
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

fn of_type<'a>(lines: &'a [Value], name: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == name).collect()
}

#[test]
fn every_stack_does_every_workload() {
    let output = run("--pairs 1 --workloads up,down,handshake,rr-1,rr-10", &[]);
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let summaries = of_type(&lines, "summary");
    let rows = summaries[0]["summary"]["rows"]
        .as_array()
        .expect("rows are a list");
    let ratios = summaries[0]["ratios"]
        .as_array()
        .expect("ratios are a list");
    assert_eq!(of_type(&lines, "measurement").len(), rows.len());
    assert_eq!(rows.len() % 5, 0, "{rows:?}");
    assert_eq!(ratios.len(), rows.len() - 5, "every stack but the baseline");
    for row in rows {
        for figure in [
            "speed",
            "client_cost",
            "server_cost",
            "client_mib",
            "server_mib",
        ] {
            assert!(
                row[figure].as_f64().is_some_and(|value| value > 0.0),
                "{figure}: {row}"
            );
        }
    }
}

#[test]
fn http_is_asked_for_and_answered() {
    let output = ask("--stacks from-courser,from-h3-quinn --http-baseline from-h3-quinn");
    check_answers(&output, 2);
}

#[test]
fn quiche_asks_where_it_is_built() {
    let output = ask("--stacks from-courser,from-quiche --http-baseline from-courser");
    let runner = Path::new(env!("CARGO_BIN_EXE_peers"));
    if runner.with_file_name("peer-http-quiche").is_file() {
        check_answers(&output, 2);
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(error.contains("from-quiche has no program"), "{error}");
    }
}

/// One pair of small HTTP workloads.
fn ask(clients: &str) -> Output {
    let workloads = "--pairs 1 --workloads http-1,http-4x2,http-down --response-size 3";
    run(&format!("{workloads} {clients}"), &[])
}

/// Both ends of so many stacks have counted what `ask` asks for.
fn check_answers(output: &Output, stacks: usize) {
    assert!(output.status.success(), "{output:?}");
    let lines = lines(output);
    let measurements = of_type(&lines, "measurement");
    assert_eq!(measurements.len(), 3 * stacks, "{output:?}");
    for line in measurements {
        let (sent, count) = match line["workload"].as_str() {
            Some("http-down") => (2_000_000, 1),
            _ => (150, 50),
        };
        assert_eq!(line["server"]["sent"], sent, "{line}");
        assert_eq!(line["client"]["bytes"], sent, "{line}");
        assert_eq!(line["server"]["answers"], count, "{line}");
        let connections = if line["workload"] == "http-4x2" { 2 } else { 1 };
        assert_eq!(line["server"]["connections"], connections, "{line}");
    }
    let summaries = of_type(&lines, "summary");
    let ratios = summaries[0]["ratios"].as_array().map(Vec::len);
    assert_eq!(ratios, Some(3 * (stacks - 1)));
}

#[test]
fn files_are_served_by_those_that_are_installed() {
    let runner = Path::new(env!("CARGO_BIN_EXE_peers"));
    let workloads = "--pairs 1 --workloads files-1,files-4x2,walk-4x2 --file-size 10k --files 30";
    let output = run(
        &format!("{workloads} --http-baseline files-courser-h2"),
        &[],
    );
    if !has_courser(runner) {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(error.contains("has no program at"), "{error}");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    for stack in ["files-courser-h3", "files-courser-h2", "files-courser-h1"] {
        let of_stack = measurements.iter().filter(|line| line["stack"] == stack);
        assert_eq!(of_stack.count(), 3, "{stack}: {output:?}");
    }
    for line in measurements {
        assert_eq!(line["client"]["count"], 50, "{line}");
        assert_eq!(line["client"]["bytes"], 500_000, "{line}");
        let is_nginx = line["stack"]
            .as_str()
            .is_some_and(|name| name.contains("nginx"));
        assert_eq!(line["server"]["is_uncounted"], !is_nginx, "{line}");
        if is_nginx {
            assert_eq!(line["server"]["answers"], 50, "{line}");
        }
        let memory = line["server"]["peak_rss_kib"].as_u64();
        assert!(memory.is_some_and(|size| size > 1000), "{line}");
        let time = line["server_cpu"]["user"].as_f64();
        assert!(time.is_some_and(|time| time >= 0.0), "{line}");
    }
}

/// True when courser's own binary is built where the runner looks for it.
fn has_courser(runner: &Path) -> bool {
    let folder = runner.parent().unwrap_or(runner);
    let folder = if folder.ends_with("release") {
        folder.with_file_name("dist")
    } else {
        folder.to_owned()
    };
    folder.join("courser").is_file()
}

#[test]
fn stacks_alternate() {
    let output = run("--pairs 2 --workloads up --stacks tls-tcp,quinn", &[]);
    let lines = lines(&output);
    let order: Vec<_> = of_type(&lines, "measurement")
        .iter()
        .map(|line| &line["stack"])
        .collect();
    assert_eq!(order, ["tls-tcp", "quinn", "tls-tcp", "quinn"]);
}

#[test]
fn a_failing_stack_is_named_and_the_others_go_on() {
    // The runner itself is no peer program: it refuses the command line.
    let broken = format!("broken={}", env!("CARGO_BIN_EXE_peers"));
    let output = run("--pairs 1 --workloads up --stacks broken,quinn", &[&broken]);
    assert!(!output.status.success(), "{output:?}");
    let lines = lines(&output);
    let failures = of_type(&lines, "failure");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["stack"], "broken");
    assert_eq!(failures[0]["failure"], "the server ended without a word");
    assert_eq!(of_type(&lines, "measurement").len(), 1);
}

#[test]
fn a_link_is_for_udp() {
    let output = run("--link 100mbit,rtt=50ms --stacks quinn,tls-tcp", &[]);
    assert!(!output.status.success(), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        error,
        "peers: --link is one of UDP: leave tls-tcp out of --stacks\n"
    );
}

#[test]
fn datagrams_have_the_size_that_is_asked_for() {
    for (options, least, most) in [
        ("--datagram 1300", 1300, 1300),
        ("--own-settings", 1200, 65_507),
    ] {
        let stacks = "--pairs 1 --workloads up --stacks courser,quinn";
        let output = run(&format!("{stacks} {options}"), &[]);
        let lines = lines(&output);
        let measurements = of_type(&lines, "measurement");
        assert_eq!(measurements.len(), 2, "{output:?}");
        for line in measurements {
            let size = line["client"]["path"]["datagram"].as_u64();
            assert!(
                size.is_some_and(|size| (least..=most).contains(&size)),
                "{options}: {line}"
            );
            let sent = line["client"]["path"]["packets_sent"].as_u64();
            let full = 2_000_000 / size.unwrap_or(1);
            assert!(sent.is_some_and(|sent| sent >= full), "{options}: {line}");
        }
    }
}
