//! Compares QUIC and TLS over TCP with the same measurements.

use std::cell::Cell;
use std::time::Duration;

use courser_measure::Failure;
use courser_units::to_f64;

use crate::bench::Outcome;
use crate::loopback::Loopback;
use crate::measure::measure;
use crate::meter::{Amount, Watch};
use crate::plan::{Direction, Plan, Scenario};
use crate::remote::Remote;

/// Short measurements over QUIC and over TLS on TCP against a server in this process.
///
/// All of them together take about ten seconds.
pub struct Comparison<'a> {
    server: &'a Loopback,
    on_begin: &'a dyn Fn(&str),
    progress: &'a dyn Fn(f64),
    kernel_drops: Cell<u64>,
}

/// One measurement over both protocols.
#[derive(Clone, PartialEq, Debug)]
pub struct Both {
    /// The figures over QUIC.
    pub quic: Outcome,
    /// The figures over TLS on TCP.
    pub tcp: Outcome,
}

/// The results of [`Comparison::handshakes`].
#[derive(Clone, PartialEq, Debug)]
pub struct Handshakes {
    /// Handshakes without resumption, over both protocols.
    pub full: Both,
    /// Resumed handshakes over QUIC.
    pub resumed: Outcome,
    /// Requests in early data over QUIC.
    pub early: Outcome,
}

impl<'a> Comparison<'a> {
    /// Requests in flight in [`requests`](Self::requests).
    pub const IN_FLIGHT: u64 = 100;

    /// Prepares a comparison. `on_begin` is called with the name of each measurement, and `progress` with the
    /// completed share of it, from 0 to 1.
    pub fn new(
        server: &'a Loopback,
        on_begin: &'a dyn Fn(&str),
        progress: &'a dyn Fn(f64),
    ) -> Self {
        Self {
            server,
            on_begin,
            progress,
            kernel_drops: Cell::default(),
        }
    }

    /// Measures full handshakes over both protocols. Over QUIC, also measures resumed handshakes, and
    /// requests in early data (0-RTT) until their response.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn handshakes(&self) -> Result<Handshakes, Failure> {
        let plan = |resume, early_data| {
            let scenario = Scenario::Handshake {
                parallel: 1,
                resume,
                early_data,
            };
            timed(scenario, HANDSHAKE_TIME)
        };
        let (quic, tcp) = (&self.server.quic, &self.server.tcp);
        let full = Both {
            quic: self.run("handshakes", quic, plan(false, false)).await?,
            tcp: self
                .run("handshakes over TCP", tcp, plan(false, false))
                .await?,
        };
        let resumed = self.run("handshakes, resumed", quic, plan(true, false));
        let resumed = resumed.await?;
        let early = self.run("early data", quic, plan(true, true)).await?;
        Ok(Handshakes {
            full,
            resumed,
            early,
        })
    }

    /// Measures a download over QUIC whose client changes its port repeatedly, as behind a NAT whose mapping
    /// expires.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn moves(&self) -> Result<Outcome, Failure> {
        let remote = Remote {
            rebind_every: Some(MOVE_EVERY),
            via: None,
            ..self.server.quic.clone()
        };
        let plan = bulk(Direction::Download, Amount::Time(MOVES_TIME));
        self.run("moves", &remote, plan).await
    }

    /// Measures datagrams at a constant rate in both directions.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn datagrams(&self) -> Result<Outcome, Failure> {
        let scenario = Scenario::Datagram {
            direction: Direction::Both,
            size: DATAGRAM,
            rate: Some(DATAGRAM_RATE),
        };
        let plan = timed(scenario, DATAGRAM_TIME);
        self.run("datagrams", &self.server.quic, plan).await
    }

    /// Returns a number of bytes whose transfer takes some tenths of a second over QUIC on this machine.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn fitting_size(&self) -> Result<u64, Failure> {
        let plan = bulk(Direction::Upload, Amount::Time(TRIAL_TIME));
        let trial = self.run("trial", &self.server.quic, plan).await?;
        let share = ROUND_TIME.as_secs_f64() / trial.seconds.max(1e-3);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and a float too large becomes the largest number"
        )]
        let bytes = (to_f64(trial.sent) * share) as u64;
        Ok((bytes / GRAIN * GRAIN).clamp(GRAIN, MAX_BYTES))
    }

    /// Transfers bytes over both protocols in turn, so that other load on the machine affects both alike.
    /// Returns the transfers of median duration.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn bulk(&self, direction: Direction, bytes: u64) -> Result<Both, Failure> {
        let (mut quic, mut tcp) = (Vec::new(), Vec::new());
        let name = direction.name();
        let over_tcp = format!("{name} over TCP");
        let plan = bulk(direction, Amount::Number(bytes));
        for _ in 0..ROUNDS {
            quic.push(self.run(name, &self.server.quic, plan).await?);
            tcp.push(self.run(&over_tcp, &self.server.tcp, plan).await?);
        }
        Ok(Both {
            quic: median(quic),
            tcp: median(tcp),
        })
    }

    /// Measures small requests: many in flight, then one at a time.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn requests(&self) -> Result<(Both, Both), Failure> {
        let many = Scenario::Rr {
            connections: 1,
            in_flight: Self::IN_FLIGHT,
            request_size: REQUEST,
            response_size: REQUEST,
            uni: false,
        };
        let single = Scenario::Latency {
            request_size: REQUEST,
            response_size: REQUEST,
            uni: false,
        };
        let many = self
            .over_quic_and_tcp("requests", timed(many, REQUEST_TIME))
            .await?;
        let single = timed(single, LATENCY_TIME);
        Ok((
            many,
            self.over_quic_and_tcp("single requests", single).await?,
        ))
    }

    /// Measures the time until both ends have closed a connection.
    ///
    /// # Errors
    /// Returns an error if a connection breaks.
    pub async fn closes(&self) -> Result<Both, Failure> {
        let plan = Plan {
            scenario: Scenario::Close,
            amount: Amount::Number(CLOSES),
            warm_up: None,
            interval: None,
        };
        self.over_quic_and_tcp("closes", plan).await
    }

    /// Returns the received datagrams that the kernel dropped at both ends so far.
    pub fn kernel_drops(&self) -> u64 {
        self.kernel_drops.get()
    }

    async fn over_quic_and_tcp(&self, what: &str, plan: Plan) -> Result<Both, Failure> {
        let quic = self.run(what, &self.server.quic, plan).await?;
        let over_tcp = format!("{what} over TCP");
        let tcp = self.run(&over_tcp, &self.server.tcp, plan).await?;
        Ok(Both { quic, tcp })
    }

    async fn run(&self, what: &str, remote: &Remote, plan: Plan) -> Result<Outcome, Failure> {
        (self.on_begin)(what);
        let watch = Watch {
            progress: self.progress,
            interval: None,
            on_interval: &|_| {},
            is_stopped: &|| false,
        };
        let outcome = measure(remote, &plan, watch).await?;
        let sides = outcome.server.iter().chain([&outcome.client]);
        let drops = sides.filter_map(|side| side.io.kernel_drops).sum::<u64>();
        self.kernel_drops.set(self.kernel_drops.get() + drops);
        Ok(outcome)
    }
}

impl std::fmt::Debug for Comparison<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Comparison")
            .field("server", &self.server)
            .field("kernel_drops", &self.kernel_drops)
            .finish_non_exhaustive()
    }
}

fn timed(scenario: Scenario, time: Duration) -> Plan {
    Plan {
        scenario,
        amount: Amount::Time(time),
        warm_up: None,
        interval: None,
    }
}

fn bulk(direction: Direction, amount: Amount) -> Plan {
    let scenario = Scenario::Bulk {
        direction,
        connections: 1,
        streams: 1,
    };
    Plan {
        scenario,
        amount,
        warm_up: None,
        interval: None,
    }
}

/// Returns the outcome of median duration; there is at least one.
fn median(mut outcomes: Vec<Outcome>) -> Outcome {
    outcomes.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let middle = outcomes.len() / 2;
    outcomes.swap_remove(middle)
}

const HANDSHAKE_TIME: Duration = Duration::from_millis(400);
const TRIAL_TIME: Duration = Duration::from_millis(250);
const ROUND_TIME: Duration = Duration::from_millis(400);
const REQUEST_TIME: Duration = Duration::from_millis(800);
const LATENCY_TIME: Duration = Duration::from_millis(400);
const CLOSES: u64 = 100;
const MOVES_TIME: Duration = Duration::from_millis(500);
const MOVE_EVERY: Duration = Duration::from_millis(100);
const DATAGRAM_TIME: Duration = Duration::from_millis(500);
/// Bytes of a datagram that every path carries.
const DATAGRAM: u16 = 1100;
/// Bits of content per second in each direction.
const DATAGRAM_RATE: u64 = 200_000_000;

/// Transfers in each direction over each protocol.
const ROUNDS: usize = 3;
/// Sizes of transfers are multiples of this.
const GRAIN: u64 = 50_000_000;
const MAX_BYTES: u64 = 1_000_000_000;

/// Bytes of a request and of its response.
const REQUEST: u64 = 64;
