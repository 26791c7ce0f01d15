use std::sync::Mutex;

use courser_base::Side;
use courser_telemetry::{Record, Sink};
use courser_wire::ConnectionId;

use super::*;
use crate::scenario::Bound;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text).expect("the scenario is valid")
}

fn report(text: &str, seed: u64) -> RunReport {
    run(&scenario(text), seed, RunOptions::default()).expect("the world does not stall")
}

const BULK: &str = r#"
name = "bulk"
duration = "10s"
measure_from = "2s"
link = "10mbit,20ms,queue=1bdp"
[[flow]]
way = "down"
[[flow]]
kind = "ping"
name = "ping"
"#;

#[test]
fn bulk_fills_the_link_and_the_numbers_agree() {
    let report = report(BULK, 1);
    let measures = &report.measures;
    let share = measures.goodput_share.expect("the link has a rate");
    // Data that arrived earlier behind a gap counts when it is read.
    assert!((0.9..=1.01).contains(&share), "{measures:?}");
    let used = measures.utilization.expect("the link has a rate");
    assert!((0.93..=1.001).contains(&used), "{measures:?}");
    assert_eq!(measures.failures, Some(0.0));
    // A queue of one BDP delays by one round trip at most.
    let median = measures
        .queue_delay_median
        .expect("the run has samples of the delay");
    assert!((0.001..=0.041).contains(&median), "{measures:?}");
    let ping = measures.exchange_median.expect("the run has pings");
    assert!((0.040..=0.090).contains(&ping), "{measures:?}");

    let flow = report.flow("bulk").expect("the report contains this name");
    assert_eq!(flow.bytes_delivered, flow.delivered.total());
    assert_eq!(flow.received.last(), Some(flow.bytes_delivered));
    assert!(flow.sent.last() >= flow.acked.last());
    assert!(flow.congestion_window.points().len() > 1000);
    assert!(flow.min_rtt.last() >= Some(40_000_000));
    assert_eq!(flow.losses.len() as u64, flow.packets_lost);
    assert!(flow.packets_lost > 0, "slow start overshoots this queue");
    let back = report
        .link("link back")
        .expect("the report contains this name");
    let dropped: u64 = back.dropped.iter().map(|(_, count)| count).sum();
    // A packet with only an acknowledgement that finds the queue full is dropped without being
    // lost.
    let lost = flow.packets_lost - flow.spurious_losses.unwrap_or(0);
    assert!((lost..=lost + 2).contains(&dropped), "{dropped} of {lost}");
    assert!(
        back.queue_bytes_max <= 50_000 + 1500,
        "{}",
        back.queue_bytes_max
    );
    assert_eq!(back.capacity.last(), Some(10_000_000));
}

#[test]
fn sampling_interval_does_not_change_the_digest() {
    let first = report(BULK, 3);
    assert_eq!(first, report(BULK, 3));
    assert_ne!(first.digest, report(BULK, 4).digest);
    let coarse = RunOptions {
        points: 50,
        ..RunOptions::default()
    };
    let coarse = run(&scenario(BULK), 3, coarse).expect("the world does not stall");
    assert_eq!(
        first.digest, coarse.digest,
        "the sampling interval does not change the run"
    );
    assert!(coarse.flows[0].sent.points().len() <= 52);
}

#[test]
fn finite_flows_end_the_run_and_report_their_time() {
    let report = report(
        r#"
name = "short"
duration = "60s"
link = "10mbit,20ms"
[[flow]]
name = "up"
bytes = "100k"
[[flow]]
name = "down"
way = "down"
bytes = "100k"
[[flow]]
kind = "requests"
repeat = 5
"#,
        1,
    );
    assert!(
        report.duration < Duration::from_secs(2),
        "{:?}",
        report.duration
    );
    for name in ["up", "down"] {
        let flow = report.flow(name).expect("the report contains this name");
        assert_eq!(flow.bytes_delivered, 100_000, "{name}");
        let took = flow.completion_time.expect("the transfer completed");
        // Handshake, request, and some round trips of slow start.
        let allowed = Duration::from_millis(150)..Duration::from_millis(500);
        assert!(allowed.contains(&took), "{name}: {took:?}");
    }
    assert_eq!(report.flows[2].exchanges.points().len(), 5);
    assert_eq!(report.measures.unfinished, Some(0.0));
}

#[test]
fn unfinished_transfer_is_reported() {
    let report = report(
        "name = \"slow\"\nduration = \"2s\"\nlink = \"1mbit,20ms\"\n[[flow]]\nbytes = \"1M\"\n",
        1,
    );
    assert_eq!(report.measures.unfinished, Some(1.0));
    assert_eq!(report.measures.completion_time, None);
}

#[test]
fn dead_link_is_reported_as_handshake_timeout() {
    let report = report(
        "name = \"dead\"\nduration = \"30s\"\nlink = \"1mbit,20ms,100%\"\n[[flow]]\n",
        1,
    );
    assert_eq!(report.measures.failures, Some(1.0));
    let failure = report.flows[0]
        .failure
        .as_deref()
        .expect("the failure has a reason");
    assert_eq!(failure, "client: timed out: the handshake did not finish");
    assert!(
        report.duration < Duration::from_secs(11),
        "{:?}",
        report.duration
    );
}

#[test]
fn events_change_the_path_and_recovery_is_measured() {
    let text = r#"
name = "events"
duration = "20s"
measure_from = "2s"
link = "20mbit,20ms,queue=1bdp"
[[flow]]
name = "a"
[[event]]
at = "5s"
rate = "5mbit"
[[event]]
at = "10s"
blackhole = "1s"
[[event]]
at = "12s"
key_update = "a"
[[event]]
at = "15s"
rebind = "port"
[[event]]
at = "18s"
close = "a"
"#;
    let report = report(text, 1);
    let labels: Vec<&str> = report
        .marks
        .iter()
        .map(|mark| mark.label.as_str())
        .collect();
    let expected = [
        "rate 5mbit",
        "blackhole of 1s",
        "a updates its keys",
        "rebinding of the port",
        "a closes",
    ];
    assert_eq!(labels, expected);
    let recovery = report.measures.recovery_time.expect("the flow recovers");
    assert!((0.05..4.0).contains(&recovery), "{recovery}");
    let flow = &report.flows[0];
    let in_hole = |point: &&crate::report::Point| {
        let hole = Duration::from_millis(10_300)..Duration::from_secs(11);
        hole.contains(&(point.at - Time::ZERO)) && point.value > 0
    };
    let rates = flow.delivered.rates();
    assert_eq!(rates.iter().find(in_hole), None);
    let after_close = Time::ZERO + Duration::from_millis(18_500);
    let late = flow.delivered.between(after_close, Time::MAX);
    assert_eq!(late, 0);
    assert_eq!(report.measures.failures, Some(0.0), "{:?}", flow.failure);
}

/// Counts the records of each end.
#[derive(Debug, Default)]
struct Counts(Arc<Mutex<[u64; 2]>>);

impl SinkFactory for Counts {
    fn sink(&self, _: &ConnectionId, side: Side) -> Option<Box<dyn Sink>> {
        let counts = Arc::clone(&self.0);
        Some(Box::new(move |_: Time, _: &Record| {
            counts.lock().expect("the lock is not poisoned")[usize::from(side == Side::Server)] +=
                1;
        }))
    }
}

#[test]
fn sinks_get_the_records_of_both_ends() {
    let counts = Arc::new(Counts::default());
    let options = RunOptions {
        sinks: Some(Arc::clone(&counts) as Arc<dyn SinkFactory>),
        ..RunOptions::default()
    };
    let with = run(&scenario(BULK), 1, options).expect("the world does not stall");
    let counts = counts.0.lock().expect("the lock is not poisoned");
    assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    assert_eq!(with, report(BULK, 1), "sinks do not change the run");
}

fn bound(text: &str) -> Bound {
    let measure = crate::report::Measure::named("jain").expect("the measure exists");
    Bound::parse(measure, text).expect(text)
}

#[test]
fn quantifiers_select_the_runs_that_must_satisfy_a_bound() {
    let mut runs: Vec<RunReport> = Vec::new();
    let empty = report(BULK, 1);
    for (seed, jain) in (1..).zip([0.5, 0.8, 0.9, 0.95, 1.0]) {
        let mut run = empty.clone();
        (run.seed, run.measures.jain) = (seed, Some(jain));
        runs.push(run);
    }
    let check = |text: &str| bound(text).check(&runs, Duration::ZERO);
    assert!(check(">=0.9").holds);
    assert!(!check(">0.9").holds);
    assert!(!check("all >=0.9").holds);
    assert_eq!(check("all >=0.9").worst_seed, Some(1));
    assert_eq!(check("all >=0.9").value, Some(0.5));
    assert!(check("60% >=0.9").holds);
    assert!(!check("61% >=0.9").holds);
    assert_eq!(check("<=100%").worst_seed, None);
    runs[0].measures.jain = None;
    let absent = bound("all <=1").check(&runs, Duration::ZERO);
    assert!(
        !absent.holds,
        "a run without the measure violates the bound"
    );
    assert_eq!(absent.worst_seed, Some(1));
}

#[test]
fn loss_in_a_short_queue_is_repaired_without_a_burst() {
    // Some 17 packets fit into this path and its queue: most packets of a burst after the first
    // loss would be lost.
    let text = r#"
name = "short-queue"
duration = "10s"
measure_from = "1s"
link = "10mbit,rtt=10ms,queue=1bdp"
[transport]
mtu = 1452
[[flow]]
way = "down"
controller = "cubic"
"#;
    let report = report(text, 1);
    let used = report.measures.utilization.expect("the link has a rate");
    assert!(used >= 0.95, "{:?}", report.measures);
    let lost = report.measures.loss_rate.expect("packets were sent");
    assert!(lost < 0.02, "{:?}", report.measures);
}
