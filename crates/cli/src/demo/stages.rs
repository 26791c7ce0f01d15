//! What the demonstration measures, one after the other.

use std::cell::Cell;
use std::time::Duration;

use courser_measure::sockets;
use courser_perf::{Amount, Direction, Outcome, Plan, Remote, Scenario, Watch, measure};

use super::pair::Pair;
use crate::error::Failure;
use crate::output::{self, Progress};
use crate::perf::{describe_agreed, micros};

/// One demonstration.
#[derive(Debug)]
pub(crate) struct Stages<'a> {
    pub(crate) pair: &'a Pair,
    pub(crate) progress: &'a Progress,
    /// Received datagrams that the kernel dropped so far, at both ends.
    pub(crate) kernel_drops: Cell<u64>,
}

impl Stages<'_> {
    pub(crate) async fn handshakes(&self) -> Result<(), Failure> {
        let plan = |resume| {
            plan(
                Scenario::Handshake {
                    parallel: 1,
                    resume,
                },
                HANDSHAKE_TIME,
            )
        };
        let full = self.run("handshakes", &self.pair.quic, plan(false)).await?;
        let resumed = self
            .run("handshakes, resumed", &self.pair.quic, plan(true))
            .await?;
        let tcp = self
            .run("handshakes over TCP", &self.pair.tcp, plan(false))
            .await?;
        self.say(
            "handshake",
            &format!(
                "full {}, resumed {} (medians of {} and {}; {})",
                median(&full),
                median(&resumed),
                full.count,
                resumed.count,
                describe_agreed(&full.handshake.agreed),
            ),
        );
        self.say("  over TCP", &format!("full {}", median(&tcp)));
        Ok(())
    }

    /// Bulk transfer both ways, QUIC and TCP in turn so that a busy moment of the machine hits
    /// both alike.
    pub(crate) async fn bulk(&self) -> Result<(), Failure> {
        let bytes = self.fitting_size().await?;
        for direction in [Direction::Upload, Direction::Download] {
            let (mut quic, mut tcp) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let name = direction.name();
                let plan = bulk_plan(direction, Amount::Number(bytes));
                quic.push(self.run(name, &self.pair.quic, plan).await?);
                tcp.push(
                    self.run(&format!("{name} over TCP"), &self.pair.tcp, plan)
                        .await?,
                );
            }
            self.say_bulk(direction.name(), &middle(quic));
            self.say_bulk("  over TCP", &middle(tcp));
        }
        Ok(())
    }

    /// As many bytes as take a while, but not long, on this machine.
    async fn fitting_size(&self) -> Result<u64, Failure> {
        let plan = bulk_plan(Direction::Upload, Amount::Time(TRIAL_TIME));
        let trial = self.run("trial", &self.pair.quic, plan).await?;
        let share = ROUND_TIME.as_secs_f64() / trial.seconds.max(1e-3);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and a float too large becomes the largest number"
        )]
        let bytes = (output::to_f64(trial.sent) * share) as u64;
        Ok((bytes / GRAIN * GRAIN).clamp(GRAIN, MOST_BYTES))
    }

    fn say_bulk(&self, label: &str, outcome: &Outcome) {
        let bytes = outcome.sent + outcome.received;
        let cpu = |side: Option<f64>| side.map_or("?".to_owned(), output::three_digits);
        let server = outcome.server.as_ref();
        let mut text = format!(
            "{:>6} at {:>11}, CPU s/GB {} client, {} server",
            output::size(bytes),
            output::rate(bytes, outcome.seconds),
            cpu(outcome.client.cpu_seconds_per_gb),
            cpu(server.and_then(|server| server.cpu_seconds_per_gb)),
        );
        let sender = if outcome.sent > 0 {
            Some(&outcome.client)
        } else {
            server
        };
        if let Some(batch) = sender.and_then(|sender| sender.datagrams_per_send_call) {
            text += &format!("; {} datagrams per send call", output::three_digits(batch));
        }
        self.say(label, &text);
    }

    pub(crate) async fn requests(&self) -> Result<(), Failure> {
        let many = plan(
            Scenario::Rr {
                connections: 1,
                in_flight: IN_FLIGHT,
                request_size: REQUEST,
                response_size: REQUEST,
                uni: false,
            },
            REQUEST_TIME,
        );
        let one = plan(
            Scenario::Latency {
                request_size: REQUEST,
                response_size: REQUEST,
                uni: false,
            },
            LATENCY_TIME,
        );
        let quic = self.run("requests", &self.pair.quic, many).await?;
        let tcp = self.run("requests over TCP", &self.pair.tcp, many).await?;
        let single = self.run("single requests", &self.pair.quic, one).await?;
        let single_tcp = self
            .run("single requests over TCP", &self.pair.tcp, one)
            .await?;
        for (label, many, single) in [
            ("requests", &quic, &single),
            ("  over TCP", &tcp, &single_tcp),
        ] {
            self.say(
                label,
                &format!(
                    "{} with {IN_FLIGHT} in flight, {}; one at a time {}",
                    output::per_second(output::to_f64(many.count) / many.seconds.max(1e-9)),
                    percentiles(many),
                    percentiles(single),
                ),
            );
        }
        Ok(())
    }

    pub(crate) async fn closes(&self) -> Result<(), Failure> {
        let plan = Plan {
            scenario: Scenario::Close,
            amount: Amount::Number(CLOSES),
            interval: None,
        };
        let quic = self.run("closes", &self.pair.quic, plan).await?;
        let tcp = self.run("closes over TCP", &self.pair.tcp, plan).await?;
        self.say(
            "close",
            &format!("{} until both ends have closed", percentiles(&quic)),
        );
        self.say("  over TCP", &percentiles(&tcp));
        Ok(())
    }

    async fn run(&self, what: &str, remote: &Remote, plan: Plan) -> Result<Outcome, Failure> {
        self.progress.begin(what);
        let watch = Watch {
            progress: &|share| self.progress.at(share),
            interval: None,
            on_interval: &|_| {},
        };
        let outcome = measure(remote, &plan, watch).await?;
        let sides = outcome.server.iter().chain([&outcome.client]);
        let drops = sides.filter_map(|side| side.io.kernel_drops).sum::<u64>();
        self.kernel_drops.set(self.kernel_drops.get() + drops);
        Ok(outcome)
    }

    /// Warns if the kernel dropped datagrams of any stage: they explain low figures.
    pub(crate) fn warn_of_drops(&self) {
        let drops = self.kernel_drops.get();
        if let Some(warning) = sockets::describe_drops(drops, &self.pair.capabilities) {
            self.say("warning", &warning);
        }
    }

    pub(crate) fn say(&self, label: &str, text: &str) {
        self.progress.line(format!("{label:<12}{text}"));
    }
}

fn plan(scenario: Scenario, time: Duration) -> Plan {
    Plan {
        scenario,
        amount: Amount::Time(time),
        interval: None,
    }
}

fn bulk_plan(direction: Direction, amount: Amount) -> Plan {
    let scenario = Scenario::Bulk {
        direction,
        connections: 1,
        streams: 1,
    };
    Plan {
        scenario,
        amount,
        interval: None,
    }
}

/// The one of median duration.
fn middle(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let middle = outcomes.len() / 2;
    outcomes.swap_remove(middle)
}

fn median(outcome: &Outcome) -> String {
    outcome
        .latency
        .map_or("?".to_owned(), |latency| micros(latency.p50_us))
}

fn percentiles(outcome: &Outcome) -> String {
    match outcome.latency {
        Some(latency) => format!(
            "p50 {} p99 {}",
            micros(latency.p50_us),
            micros(latency.p99_us)
        ),
        None => "?".to_owned(),
    }
}

// All together stay below ten seconds.
const HANDSHAKE_TIME: Duration = Duration::from_millis(400);
const TRIAL_TIME: Duration = Duration::from_millis(250);
const ROUND_TIME: Duration = Duration::from_millis(400);
const REQUEST_TIME: Duration = Duration::from_millis(800);
const LATENCY_TIME: Duration = Duration::from_millis(400);
const CLOSES: u64 = 100;

const ROUNDS: usize = 3;
const GRAIN: u64 = 50_000_000;
const MOST_BYTES: u64 = 1_000_000_000;

const IN_FLIGHT: u64 = 100;
/// Bytes of a request and of its response.
const REQUEST: u64 = 64;
