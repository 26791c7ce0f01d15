//! Small runs of the whole: every stack under every workload, and a stack that fails.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn run(options: &str, peers: &[&str]) -> Output {
    command("0.002", options, peers)
        .output()
        .expect("the runner is built with its tests")
}

/// Both ends on one core, so that the test runs on any machine.
fn command(gigabytes: &str, options: &str, peers: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peers"));
    command
        .args("--no-build --json --retries 0 --server-core 0 --client-core 0".split(' '))
        .args("--handshakes 5 --requests 50 --datagrams 2000".split(' '))
        .args(["--gigabytes", gigabytes])
        .args(options.split(' '))
        .args(peers.iter().flat_map(|peer| ["--peer", peer]));
    command
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
    let of_pipe = rows.iter().filter(|row| row["stack"] == "pipe");
    assert_eq!(of_pipe.count(), 2, "up and down alone: {rows:?}");
    assert_eq!((rows.len() - 2) % 5, 0, "{rows:?}");
    let has_ktls = rows.iter().any(|row| row["stack"] == "ktls");
    let error = String::from_utf8_lossy(&output.stderr);
    let is_left_out = error.contains("left out ktls: this kernel has no TLS");
    assert_ne!(has_ktls, is_left_out, "{error}");
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

/// The stacks that did a workload, without those that are not everywhere.
fn stacks_of<'a>(measurements: &[&'a Value], workload: &str) -> BTreeSet<&'a str> {
    let of_workload = measurements
        .iter()
        .filter(|line| line["workload"] == workload);
    of_workload
        .filter_map(|line| line["stack"].as_str())
        .filter(|stack| !["ktls", "msquic", "tquic"].contains(stack))
        .collect()
}

#[test]
fn parallel_transfers_are_shared_out() {
    let workloads = "streams-3-up,streams-3-down,connections-3-up,connections-3-down";
    let output = run(&format!("--pairs 1 --workloads {workloads}"), &[]);
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    for way in ["up", "down"] {
        let streams = stacks_of(&measurements, &format!("streams-3-{way}"));
        assert_eq!(
            streams,
            BTreeSet::from(["courser", "noq", "quinn", "s2n-quic"])
        );
        let connections = stacks_of(&measurements, &format!("connections-3-{way}"));
        let tcp = BTreeSet::from(["tcp", "tls-tcp"]);
        assert_eq!(connections, &streams | &tcp);
    }
    for line in &measurements {
        assert_eq!(line["client"]["bytes"], 1_999_998, "{line}");
        assert_eq!(line["server"]["answers"], 3, "{line}");
        let has_connections = line["workload"]
            .as_str()
            .is_some_and(|name| name.starts_with("connections"));
        let connections = if has_connections { 3 } else { 1 };
        assert_eq!(line["server"]["connections"], connections, "{line}");
        for end in ["client", "server"] {
            assert!(line[end]["socket_drops"].is_u64(), "{line}");
        }
    }
}

#[test]
fn datagrams_are_sent_by_those_that_have_them() {
    let output = run("--pairs 1 --workloads datagrams", &[]);
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    let stacks = stacks_of(&measurements, "datagrams");
    assert_eq!(stacks, BTreeSet::from(["courser", "noq", "pipe", "quinn"]));
    for line in measurements {
        assert_eq!(line["client"]["count"], 2000, "{line}");
        let received = line["server"]["datagrams"]["received"].as_u64();
        assert!(received.is_some_and(|received| received > 1000), "{line}");
    }
}

#[test]
fn idle_connections_take_memory_and_answer_afterwards() {
    let output = run("--pairs 1 --workloads idle-200", &[]);
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    let stacks = stacks_of(&measurements, "idle-200");
    assert!(
        stacks.contains("courser") && stacks.contains("tcp"),
        "{stacks:?}"
    );
    assert!(!stacks.contains("pipe"), "{stacks:?}");
    for line in measurements {
        assert_eq!(line["server"]["answers"], 200, "{line}");
        let grown = line["idle_kib"].as_f64();
        assert!(grown.is_some_and(|grown| grown > 0.0), "{line}");
    }
}

#[test]
fn requests_are_answered_beside_a_transfer() {
    let output = command("0.05", "--pairs 1 --workloads latency-up,latency-down", &[])
        .output()
        .expect("the runner is built with its tests");
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    for workload in ["latency-up", "latency-down"] {
        let stacks = stacks_of(&measurements, workload);
        let expected = BTreeSet::from(["courser", "noq", "quinn", "s2n-quic"]);
        assert_eq!(stacks, expected, "{workload}");
    }
    for line in measurements {
        let count = line["client"]["count"].as_u64().expect("a count");
        assert!(count > 0, "{line}");
        assert_eq!(line["server"]["answers"], count + 1, "{line}");
        let p99 = line["client"]["latency"]["p99_us"].as_f64();
        assert!(p99.is_some_and(|time| time > 0.0), "{line}");
    }
}

#[test]
fn bars_are_drawn_into_a_file() {
    let file = std::env::temp_dir().join(format!("peers-bars-{}.svg", std::process::id()));
    let options = format!(
        "--pairs 1 --workloads up --stacks courser,quinn --svg {}",
        file.display()
    );
    let output = run(&options, &[]);
    let svg = fs::read_to_string(&file);
    let _ = fs::remove_file(&file);
    assert!(output.status.success(), "{output:?}");
    let svg = svg.expect("it was written");
    for part in ["<svg", ">courser</text>", ">quinn</text>", "Gbit/s"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert_eq!(svg.matches("class=\"stack\"").count(), 6, "{svg}");
}

/// True where this user may make network namespaces, and has the program that makes interfaces.
fn has_namespaces() -> bool {
    let works = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).output();
        status.is_ok_and(|output| output.status.success())
    };
    works("unshare", &["--net", "true"]) && works("ip", &["-V"])
}

#[test]
fn ends_meet_over_a_veth_pair() {
    let output = run(
        "--veth --pairs 1 --workloads up,down,rr-2 --stacks courser,quinn,noq,s2n-quic,tls-tcp,tcp,pipe",
        &[],
    );
    if !has_namespaces() {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        // Before it stands that this is a debug build.
        let last = error.lines().last().unwrap_or_default();
        assert!(last.starts_with("peers: --veth needs "), "{error}");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    assert_eq!(of_type(&lines, "measurement").len(), 7 * 2 + 6);
}

#[test]
fn nothing_is_left_of_a_veth_pair_after_an_interrupt() {
    if !has_namespaces() {
        // There is nothing to leave behind; `ends_meet_over_a_veth_pair` reads the message.
        return;
    }
    let mut runner = command("1000", "--veth --workloads up --stacks courser", &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the runner is built with its tests");
    let own = fs::read_link("/proc/self/ns/net").expect("Linux has namespaces");
    let id = runner.id();
    let namespaces = wait_for(|| {
        let found: BTreeSet<PathBuf> = children(id)
            .into_iter()
            .filter_map(|child| fs::read_link(format!("/proc/{child}/ns/net")).ok())
            .filter(|namespace| *namespace != own)
            .collect();
        (found.len() == 2).then_some(found)
    });
    kill(
        Pid::from_raw(i32::try_from(id).expect("an id")),
        Signal::SIGINT,
    )
    .expect("it runs");
    runner.wait().expect("it is a child");
    // An interface lives as long as its namespace, and that as long as a process is in it.
    wait_for(|| {
        let is_left = fs::read_dir("/proc")
            .ok()?
            .filter_map(Result::ok)
            .filter_map(|process| fs::read_link(process.path().join("ns/net")).ok())
            .any(|namespace| namespaces.contains(&namespace));
        (!is_left).then_some(())
    });
}

fn children(id: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    list.split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// Asks again and again until there is something, for half a minute.
fn wait_for<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(Instant::now() < end, "it did not happen in time");
        thread::sleep(Duration::from_millis(20));
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

#[test]
fn msquic_does_what_it_is_measured_in_where_it_is_built() {
    check_optional("msquic", "datagrams");
}

#[test]
fn tquic_does_what_it_is_measured_in_where_it_is_built() {
    check_optional("tquic", "latency-up,latency-down");
}

/// A stack that is built does all that QUIC does, and `others`; one that is not built is missed.
fn check_optional(stack: &str, others: &str) {
    let workloads = "up,down,streams-3-up,streams-3-down,connections-3-up,connections-3-down,\
                     handshake,rr-1,rr-10,idle-20";
    let output = run(
        &format!("--pairs 1 --stacks {stack} --baseline {stack} --workloads {workloads},{others}"),
        &[],
    );
    let runner = Path::new(env!("CARGO_BIN_EXE_peers"));
    if !runner.with_file_name(format!("peer-{stack}")).is_file() {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(
            error.contains(&format!("{stack} has no program")),
            "{error}"
        );
        eprintln!("skipped: peer-{stack} is not built");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let measurements = of_type(&lines, "measurement");
    let count = 10 + others.split(',').count();
    assert_eq!(measurements.len(), count, "{output:?}");
    for line in measurements {
        let (client, server) = (&line["client"], &line["server"]);
        match line["workload"].as_str().unwrap_or_default() {
            "up" => assert_eq!(server["received"], 2_000_000, "{line}"),
            "down" => assert_eq!(server["sent"], 2_000_000, "{line}"),
            "streams-3-up" | "connections-3-up" => {
                assert_eq!(server["received"], 1_999_998, "{line}");
            }
            "rr-1" | "rr-10" => assert_eq!(server["answers"], 50, "{line}"),
            "idle-20" => assert_eq!(server["answers"], 20, "{line}"),
            "latency-up" | "latency-down" => {
                let count = client["count"].as_u64().expect("a count");
                assert_eq!(server["answers"], count + 1, "{line}");
            }
            "datagrams" => {
                assert_eq!(client["count"], 2000, "{line}");
                let received = server["datagrams"]["received"].as_u64();
                assert!(received.is_some_and(|count| count > 1000), "{line}");
            }
            _ => {}
        }
        if line["workload"] == "up" {
            assert_eq!(client["path"]["datagram"], 1452, "{line}");
        }
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

/// Runs workloads of servers that are measured as they are installed, and returns their measurements;
/// `None` if courser's own binary is not built, which the runner has to say.
fn run_installed(role: &str, workloads: &str, count: usize) -> Option<Vec<Value>> {
    let output = run(
        &format!("--pairs 1 --http-baseline {role}-courser-h2 --workloads {workloads}"),
        &[],
    );
    if !has_courser(Path::new(env!("CARGO_BIN_EXE_peers"))) {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(error.contains("has no program at"), "{error}");
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let mut measurements = lines(&output);
    measurements.retain(|line| line["type"] == "measurement");
    for protocol in ["h3", "h2", "h1"] {
        let stack = format!("{role}-courser-{protocol}");
        let of_stack = measurements.iter().filter(|line| line["stack"] == stack);
        assert_eq!(of_stack.count(), count, "{stack}: {output:?}");
    }
    for line in &measurements {
        assert_eq!(line["client"]["count"], 50, "{line}");
        let memory = line["server"]["peak_rss_kib"].as_u64();
        assert!(memory.is_some_and(|size| size > 1000), "{line}");
        let time = line["server_cpu"]["user"].as_f64();
        assert!(time.is_some_and(|time| time >= 0.0), "{line}");
    }
    Some(measurements)
}

#[test]
fn files_are_served_by_those_that_are_installed() {
    let workloads = "files-1,files-4x2,walk-4x2 --file-size 10k --files 30";
    for line in run_installed("files", workloads, 3).unwrap_or_default() {
        assert_eq!(line["client"]["bytes"], 500_000, "{line}");
        let is_nginx = line["stack"]
            .as_str()
            .is_some_and(|name| name.contains("nginx"));
        assert_eq!(line["server"]["is_uncounted"], !is_nginx, "{line}");
        if is_nginx {
            assert_eq!(line["server"]["answers"], 50, "{line}");
        }
    }
}

#[test]
fn requests_are_forwarded_by_those_that_are_installed() {
    let workloads = "proxy-1,proxy-4x2 --file-size 100k";
    for line in run_installed("proxy", workloads, 2).unwrap_or_default() {
        assert_eq!(line["client"]["bytes"], 5_000_000, "{line}");
        // The origin has seen each request.
        assert_eq!(line["server"]["is_uncounted"], false, "{line}");
        assert_eq!(line["server"]["answers"], 50, "{line}");
    }
}

#[test]
fn links_and_namespaces_are_not_for_installed_servers() {
    for (options, message) in [
        ("--link 10mbit", "--link is not for files and proxies"),
        ("--veth", "--veth is not for HTTP, files and proxies"),
    ] {
        let output = run(&format!("{options} --workloads proxy-1"), &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{output:?}");
        assert!(error.contains(message), "{error}");
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
fn kernel_tls_is_refused_where_there_is_none() {
    let output = run("--pairs 1 --workloads up --stacks quinn,ktls", &[]);
    let error = String::from_utf8_lossy(&output.stderr);
    let is_refused = error.starts_with("peers: ktls: this kernel has no TLS");
    assert_ne!(output.status.success(), is_refused, "{output:?}");
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
