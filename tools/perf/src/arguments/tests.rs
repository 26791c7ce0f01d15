use clap::Parser;

use super::*;

/// A command line with the flags of a plan only.
#[derive(Parser, Debug)]
struct Program {
    #[command(flatten)]
    plan: PlanArguments,
    /// A flag that excludes CSV.
    #[arg(long)]
    json: bool,
}

fn parse(flags: &[&str]) -> Result<Program, clap::Error> {
    Program::try_parse_from(["program"].iter().chain(flags))
}

fn plan_of(flags: &[&str]) -> Result<Plan, Failure> {
    parse(flags).expect("flags that exist").plan.plan()
}

#[test]
fn reverse_swaps_either_direction() {
    let direction = |flags| match plan_of(flags).expect("valid").scenario {
        Scenario::Bulk { direction, .. } => direction,
        other => panic!("not bulk: {other:?}"),
    };
    assert_eq!(direction(&[]), Direction::Upload);
    assert_eq!(direction(&["-R"]), Direction::Download);
    assert_eq!(direction(&["--scenario", "download"]), Direction::Download);
    assert_eq!(
        direction(&["--scenario", "download", "-R"]),
        Direction::Upload
    );
    assert_eq!(direction(&["--bidir"]), Direction::Both);
}

#[test]
fn flags_without_effect_are_refused_by_name() {
    let error = plan_of(&["--scenario", "close", "-P", "2"]).expect_err("no streams");
    assert_eq!(
        error.to_string(),
        "--parallel cannot be used with --scenario close, only with upload, download, handshake, mixed"
    );
    assert!(plan_of(&["--scenario", "rr", "--uni", "--tcp"]).is_err());
}

#[test]
fn datagrams_have_a_size_a_rate_and_directions() {
    let datagram = |more: &[&str]| {
        let all = [&["--scenario", "datagram"], more].concat();
        plan_of(&all).map(|plan| plan.scenario)
    };
    let scenario = |direction, size, rate| Scenario::Datagram {
        direction,
        size,
        rate,
    };
    let usual = scenario(Direction::Upload, 1000, Some(1_000_000));
    assert_eq!(datagram(&[]).expect("valid"), usual);
    let fast = datagram(&["-R", "--datagram-size", "64", "--rate", "0"]);
    assert_eq!(
        fast.expect("valid"),
        scenario(Direction::Download, 64, None)
    );
    let both = datagram(&["--bidir", "--rate", "10M"]).expect("valid");
    assert_eq!(both, scenario(Direction::Both, 1000, Some(10_000_000)));
    assert!(datagram(&["--tcp"]).is_err());
    assert!(plan_of(&["--rate", "1M"]).is_err());
}

#[test]
fn amount_is_ten_seconds_by_default() {
    assert_eq!(
        plan_of(&[]).expect("valid").amount,
        Amount::Time(Duration::from_secs(10))
    );
    assert_eq!(
        plan_of(&["-n", "1G"]).expect("valid").amount,
        Amount::Number(1_000_000_000)
    );
    assert_eq!(
        plan_of(&["-t", "0.5"]).expect("valid").amount,
        Amount::Time(Duration::from_millis(500))
    );
}

#[test]
fn warm_up_must_be_shorter_than_the_time_and_is_refused_for_datagrams() {
    let plan = plan_of(&["-t", "10", "--warm-up", "2s"]).expect("valid");
    assert_eq!(plan.warm_up, Some(Duration::from_secs(2)));
    assert_eq!(plan.amount, Amount::Time(Duration::from_secs(10)));
    assert_eq!(plan_of(&["--omit", "2"]).expect("valid"), plan);
    for (time, seen) in [("2", "2.00 s"), ("2.5", "2.50 s")] {
        let error = plan_of(&["-t", "2", "--warm-up", time]).expect_err("too long");
        assert_eq!(
            error.to_string(),
            format!("a warm-up of {seen} must be shorter than the measured time of 2.00 s")
        );
    }
    // The default time is a limit as well.
    assert!(plan_of(&["--warm-up", "9.9"]).is_ok());
    assert!(plan_of(&["--warm-up", "10"]).is_err());
    let error = plan_of(&["-s", "datagram", "--warm-up", "1"]).expect_err("counted by two ends");
    assert_eq!(
        error.to_string(),
        "--warm-up cannot be used with --scenario datagram, only with upload, download, rr, handshake, close, \
         latency, mixed"
    );
    let error = parse(&["-n", "1G", "--warm-up", "1"]).expect_err("no time");
    assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict);
}

#[test]
fn mixed_combines_streams_requests_and_datagrams() {
    let mixed = |more: &[&str]| plan_of(&[&["-s", "mixed"], more].concat());
    let usual = mixed(&[]).expect("valid").scenario;
    let expected = Scenario::Mixed(Mixed {
        direction: Direction::Upload,
        streams: 1,
        in_flight: 1,
        request_size: 512,
        response_size: 4000,
        datagram_size: 1000,
        datagram_rate: Some(1_000_000),
    });
    assert_eq!(usual, expected);
    let flags = [
        "-R",
        "-P",
        "4",
        "--in-flight",
        "8",
        "--rate",
        "0",
        "--warm-up",
        "1",
    ];
    let plan = mixed(&flags).expect("valid");
    assert_eq!(plan.scenario.bulk(), Some(Direction::Download));
    assert_eq!(plan.warm_up, Some(Duration::from_secs(1)));
    for (flags, reason) in [
        (
            &["-n", "1G"][..],
            "--number cannot be used with --scenario mixed",
        ),
        (&["--tcp"], "--scenario mixed cannot be used with --tcp"),
        (
            &["--connections", "2"],
            "--connections cannot be used with --scenario mixed",
        ),
    ] {
        let error = mixed(flags).expect_err(reason).to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}
