//! The plan of a measurement, from its flags.

use std::time::Duration;

use courser_perf::{Amount, Direction, Plan, Scenario};

use crate::args::{ClientArguments, ScenarioName};
use crate::error::Failure;

/// Makes the plan of a measurement from the flags.
pub(crate) fn plan(arguments: &ClientArguments) -> Result<Plan, Failure> {
    refuse_what_has_no_meaning(arguments)?;
    let amount = match (arguments.number, arguments.time) {
        (Some(number), _) => Amount::Number(number),
        (None, time) => Amount::Time(time.unwrap_or(DEFAULT_TIME)),
    };
    let scenario = scenario(arguments);
    Ok(Plan {
        scenario,
        amount,
        interval: arguments.interval,
    })
}

fn scenario(arguments: &ClientArguments) -> Scenario {
    let connections = arguments.connections.unwrap_or(1);
    let (request_size, response_size, uni) = (
        arguments.request_size.unwrap_or(DEFAULT_REQUEST),
        arguments.response_size.unwrap_or(DEFAULT_RESPONSE),
        arguments.uni,
    );
    let parallel = arguments.parallel.unwrap_or(1);
    let bulk = |direction| Scenario::Bulk {
        direction,
        connections,
        streams: parallel,
    };
    match (arguments.scenario, arguments.reverse) {
        (ScenarioName::Upload | ScenarioName::Download, _) if arguments.bidir => {
            bulk(Direction::Both)
        }
        (ScenarioName::Upload, false) | (ScenarioName::Download, true) => bulk(Direction::Upload),
        (ScenarioName::Upload, true) | (ScenarioName::Download, false) => bulk(Direction::Download),
        (ScenarioName::Rr, _) => {
            let in_flight = arguments.in_flight.unwrap_or(DEFAULT_IN_FLIGHT);
            Scenario::Rr {
                connections,
                in_flight,
                request_size,
                response_size,
                uni,
            }
        }
        (ScenarioName::Latency, _) => Scenario::Latency {
            request_size,
            response_size,
            uni,
        },
        (ScenarioName::Handshake, _) => Scenario::Handshake {
            parallel,
            resume: arguments.resume || arguments.early_data,
            early_data: arguments.early_data,
        },
        (ScenarioName::Datagram, is_reversed) => Scenario::Datagram {
            direction: match (arguments.bidir, is_reversed) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Download,
                (false, false) => Direction::Upload,
            },
            size: arguments.datagram_size.unwrap_or(DEFAULT_DATAGRAM),
            rate: Some(arguments.rate.unwrap_or(DEFAULT_RATE)).filter(|rate| *rate > 0),
        },
        (ScenarioName::Close, _) => Scenario::Close,
    }
}

/// Refuses flags without an effect in the scenario, which are misunderstandings.
fn refuse_what_has_no_meaning(arguments: &ClientArguments) -> Result<(), Failure> {
    use ScenarioName::{Datagram, Download, Handshake, Latency, Rr, Upload};
    let given: [(&str, bool, &[ScenarioName]); 12] = [
        (
            "--reverse",
            arguments.reverse,
            &[Upload, Download, Datagram],
        ),
        ("--bidir", arguments.bidir, &[Upload, Download, Datagram]),
        (
            "--parallel",
            arguments.parallel.is_some(),
            &[Upload, Download, Handshake],
        ),
        (
            "--connections",
            arguments.connections.is_some(),
            &[Upload, Download, Rr],
        ),
        (
            "--request-size",
            arguments.request_size.is_some(),
            &[Rr, Latency],
        ),
        (
            "--response-size",
            arguments.response_size.is_some(),
            &[Rr, Latency],
        ),
        ("--in-flight", arguments.in_flight.is_some(), &[Rr]),
        ("--uni", arguments.uni, &[Rr, Latency]),
        ("--resume", arguments.resume, &[Handshake]),
        ("--early-data", arguments.early_data, &[Handshake]),
        (
            "--datagram-size",
            arguments.datagram_size.is_some(),
            &[Datagram],
        ),
        ("--rate", arguments.rate.is_some(), &[Datagram]),
    ];
    for (flag, is_given, scenarios) in given {
        if is_given && !scenarios.contains(&arguments.scenario) {
            let names: Vec<String> = scenarios
                .iter()
                .map(|name| format!("{name:?}").to_lowercase())
                .collect();
            return Err(Failure::new(format!(
                "{flag} cannot be used with --scenario {}, only with {}",
                format!("{:?}", arguments.scenario).to_lowercase(),
                names.join(", "),
            )));
        }
    }
    if arguments.uni && arguments.tcp {
        return Err(Failure::new(
            "--uni cannot be used with --tcp: TCP has no streams",
        ));
    }
    if arguments.scenario == Datagram && arguments.tcp {
        return Err(Failure::new(
            "--scenario datagram cannot be used with --tcp: TCP has no datagrams",
        ));
    }
    Ok(())
}

const DEFAULT_TIME: Duration = Duration::from_secs(10);

/// The sizes and the number in flight of secnetperf's requests.
const DEFAULT_REQUEST: u64 = 512;
const DEFAULT_RESPONSE: u64 = 4000;
const DEFAULT_IN_FLIGHT: u64 = 100;

/// The rate of iperf3 over UDP, in bits per second.
const DEFAULT_RATE: u64 = 1_000_000;

/// A size that fits into the smallest packets.
const DEFAULT_DATAGRAM: u16 = 1000;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command, PerfCommand};

    fn plan_of(flags: &[&str]) -> Result<Plan, Failure> {
        let all = ["courser", "perf", "client", "host"].iter().chain(flags);
        let arguments = Arguments::try_parse_from(all).expect("flags that exist");
        match arguments.command {
            Some(Command::Perf(PerfCommand::Client(client))) => super::plan(&client),
            other => panic!("not a client: {other:?}"),
        }
    }

    #[test]
    fn reverse_turns_either_direction_round() {
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
    fn flags_without_meaning_are_refused_by_name() {
        let error = plan_of(&["--scenario", "close", "-P", "2"]).expect_err("no streams");
        assert_eq!(
            error.to_string(),
            "--parallel cannot be used with --scenario close, only with upload, download, handshake"
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
    fn amount_is_ten_seconds_unless_told_otherwise() {
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
}
