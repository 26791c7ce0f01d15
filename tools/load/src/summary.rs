//! The figures of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use courser::EarlyData;
use courser_measure::{IoCounters, MovesReport, Stats, Times, sockets};
use courser_units::to_f64;

use crate::counts::{Agreed, ConnectionRecord, Finished, QuicRecord};
use crate::plan::{Amount, Plan, Resume};

/// Returns the warnings about the sockets of all connections, without duplicates. Empty without QUIC.
fn warnings(connections: &[ConnectionRecord]) -> Vec<String> {
    let Some(io) = io(connections) else {
        return Vec::new();
    };
    let machine = sockets::capabilities();
    let dropped = sockets::describe_drops(io.kernel_drops.unwrap_or(0), &machine);
    machine.warnings.into_iter().chain(dropped).collect()
}

/// Returns the sums of the counters of all sockets; `None` without QUIC.
fn io(connections: &[ConnectionRecord]) -> Option<IoCounters> {
    let all = connections.iter().filter_map(|one| Some(one.quic?.io));
    all.reduce(|sum, next| sum.plus(&next))
}

/// The figures of a run. Times are in seconds.
#[derive(Debug)]
pub struct Summary {
    /// The duration of the measurement.
    pub elapsed: f64,
    /// Requests that the plan requires, if it has a number or a rate.
    pub requested: Option<u64>,
    /// Requests sent, including those without a response.
    pub sent: u64,
    /// Requests with a complete response.
    pub done: u64,
    /// Requests with a status from 200 to 399.
    pub succeeded: u64,
    /// Requests without a complete response.
    pub errored: u64,
    /// Requests among the errored ones that exceeded their time limit.
    pub timeouts: u64,
    /// Number of complete responses, by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response and connections that could not be opened, by the label of the error.
    pub errors: BTreeMap<String, u64>,
    /// Bytes of content received.
    pub data: u64,
    /// Bytes of field lines received: uncompressed names and values.
    pub fields: u64,
    /// Bytes of HTTP received, without TLS and the layers below it.
    pub received: u64,
    /// Bytes of HTTP sent, without TLS and the layers below it.
    pub sent_bytes: u64,
    /// Times from the moment when a request was due, or sent, to the end of its response.
    pub latency: Times,
    /// Times from sending a request to the end of its response, if `latency` counts from the due time.
    pub service: Times,
    /// Times from sending a request to the header section of its response.
    pub head: Times,
    /// Complete responses per second, for each tenth of a second.
    pub rates: Vec<f64>,
    /// Connections that were established.
    pub connections: Vec<ConnectionRecord>,
    /// Connections that could not be opened.
    pub refused: u64,
    /// Connections that were lost before the end of the run.
    pub lost: u64,
    /// Counts of handshakes by kind; `None` with [`Resume::Never`].
    pub handshakes: Option<Handshakes>,
    /// The protocols of the first connection.
    pub agreed: Option<Agreed>,
    /// CPU time of this process during the measurement.
    pub cpu_seconds: f64,
    /// True if the run was stopped before its end.
    pub is_interrupted: bool,
    /// True if the run ended early because no connection could be opened any more. Requests that were not sent
    /// count as errored.
    pub is_abandoned: bool,
    /// Moves of the connections to other sockets, if they move.
    pub moves: Option<MovesReport>,
    /// The rate of the plan in requests per second, if it has one.
    pub rate: Option<f64>,
    /// True if latency counts from the time at which a request was due.
    pub is_corrected: bool,
    /// Reasons why the client may have limited the run, not the server.
    pub warnings: Vec<String>,
}

/// Counts of handshakes by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handshakes {
    /// Handshakes that did not resume a session.
    pub full: u64,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Connections whose early data the server accepted.
    pub early_accepted: u64,
    /// Connections whose early data the server rejected.
    pub early_rejected: u64,
}

impl Handshakes {
    fn of(connections: &[ConnectionRecord]) -> Self {
        let count = |is_counted: fn(&ConnectionRecord) -> bool| {
            connections.iter().filter(|one| is_counted(one)).count() as u64
        };
        Self {
            full: count(|one| !one.is_resumed),
            resumed: count(|one| one.is_resumed),
            early_accepted: count(|one| one.early_data == EarlyData::Accepted),
            early_rejected: count(|one| one.early_data == EarlyData::Rejected),
        }
    }
}

impl fmt::Display for Handshakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} full, {} resumed", self.full, self.resumed)?;
        if self.early_accepted + self.early_rejected > 0 {
            let (accepted, rejected) = (self.early_accepted, self.early_rejected);
            write!(f, "; early data {accepted} accepted, {rejected} rejected")?;
        }
        Ok(())
    }
}

/// Returns the number of requests of a run to its end that were not sent. `counted` are those with an outcome.
const fn unsent(amount: Amount, counted: u64) -> u64 {
    match amount {
        Amount::Requests(count) => count.saturating_sub(counted),
        Amount::Time { .. } => 0,
    }
}

/// Returns true if a run to its end took less than its time.
fn ends_early(amount: Amount, elapsed: Duration) -> bool {
    matches!(amount, Amount::Time { measured, .. } if elapsed + EARLY < measured)
}

impl Summary {
    pub(crate) fn new(plan: &Plan, finished: Finished) -> Self {
        let elapsed = finished.elapsed.as_secs_f64();
        let requested = match (plan.amount, plan.rate) {
            (Amount::Requests(count), _) => Some(count),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate and a time that were given as numbers of some digits"
            )]
            // A run may end late on a busy machine, and early if it is interrupted.
            (Amount::Time { measured, .. }, Some(rate)) => {
                Some((rate * elapsed.min(measured.as_secs_f64())).floor() as u64)
            }
            (Amount::Time { .. }, None) => None,
        };
        let counts = finished.counts;
        let (unsent, is_early) = match finished.is_interrupted {
            true => (0, false),
            false => (
                unsent(plan.amount, counts.done + counts.errored),
                ends_early(plan.amount, finished.elapsed),
            ),
        };
        let mut errors = counts.errors;
        if unsent > 0 {
            errors.insert(UNSENT.to_owned(), unsent);
        }
        let warnings = warnings(&counts.connections);
        let handshakes = Handshakes::of(&counts.connections);
        let sum = |of: fn(&ConnectionRecord) -> u64| counts.connections.iter().map(of).sum();
        let succeeded = counts.statuses.iter();
        let succeeded = succeeded.filter(|(status, _)| (200..400).contains(*status));
        // The last tenth is incomplete.
        let whole = counts.tenths.len().saturating_sub(1);
        Self {
            elapsed,
            requested,
            sent: finished.sent,
            done: counts.done,
            succeeded: succeeded.map(|(_, count)| count).sum(),
            errored: counts.errored + unsent,
            timeouts: counts.timeouts,
            data: counts.data,
            fields: counts.fields,
            received: sum(|connection| connection.received),
            sent_bytes: sum(|connection| connection.sent),
            rates: counts.tenths[..whole]
                .iter()
                .map(|count| to_f64(*count) * 10.0)
                .collect(),
            statuses: counts.statuses,
            errors,
            latency: counts.latency,
            service: counts.service,
            head: counts.head,
            connections: counts.connections,
            refused: counts.refused,
            lost: counts.lost,
            handshakes: (plan.resume != Resume::Never).then_some(handshakes),
            agreed: counts.agreed,
            cpu_seconds: finished.cpu_seconds,
            is_interrupted: finished.is_interrupted,
            is_abandoned: unsent > 0 || is_early,
            moves: finished.moves,
            rate: plan.rate,
            is_corrected: plan.is_corrected,
            warnings,
        }
    }

    /// Returns the complete responses per second over the whole measurement.
    pub fn per_second(&self) -> f64 {
        self.over_time(self.done)
    }

    /// Returns `count` per second of the measurement.
    pub fn over_time(&self, count: u64) -> f64 {
        if self.elapsed > 0.0 {
            to_f64(count) / self.elapsed
        } else {
            0.0
        }
    }

    /// Returns the number of responses with a status of one class: 2 stands for 200 to 299.
    pub fn class(&self, class: u16) -> u64 {
        let of_class = self
            .statuses
            .iter()
            .filter(|(status, _)| *status / 100 == class);
        of_class.map(|(_, count)| count).sum()
    }

    /// Returns the statistics of the times from the first packet to the end of the handshake.
    pub fn connects(&self) -> Stats {
        Stats::of(self.connections.iter().map(|one| one.connect.as_secs_f64()))
    }

    /// Returns the statistics of the times from the first packet of a connection to the header section
    /// of its first response.
    pub fn first_bytes(&self) -> Stats {
        let times = self.connections.iter().filter_map(|one| one.first_byte);
        Stats::of(times.map(|time| time.as_secs_f64()))
    }

    /// Returns the statistics of the responses per second on each connection.
    pub fn rates_of_connections(&self) -> Stats {
        let measured = self.connections.iter();
        let measured = measured.filter(|one| one.measured > Duration::ZERO);
        Stats::of(measured.map(|one| to_f64(one.requests) / one.measured.as_secs_f64()))
    }

    /// Returns the statistics of a counter of QUIC over all connections; `None` without QUIC.
    pub fn quic(&self, of: impl Fn(&QuicRecord) -> f64) -> Option<Stats> {
        let records: Vec<_> = self.connections.iter().filter_map(|one| one.quic).collect();
        (!records.is_empty()).then(|| Stats::of(records.iter().map(of)))
    }

    /// Returns the sums of the counters of all sockets; `None` without QUIC.
    pub fn io(&self) -> Option<IoCounters> {
        io(&self.connections)
    }

    /// Returns the CPU time of this process per response, in seconds.
    pub fn cpu_per_answer(&self) -> Option<f64> {
        (self.done > 0).then(|| self.cpu_seconds / to_f64(self.done))
    }
}

/// The label of requests that were not sent because no connection could be opened any more.
const UNSENT: &str = "not sent: no connection could be opened";
/// A run with a duration that ends by more than this too early has been abandoned.
const EARLY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_were_not_sent_are_counted() {
        let time = Amount::Time {
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(5),
            waits: false,
        };
        assert_eq!(unsent(Amount::Requests(10), 7), 3);
        assert_eq!(unsent(Amount::Requests(10), 12), 0);
        assert_eq!(unsent(time, 7), 0);
    }

    #[test]
    fn run_that_ends_before_its_time_is_abandoned() {
        let time = Amount::Time {
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(5),
            waits: false,
        };
        assert!(ends_early(time, Duration::from_secs(4)));
        assert!(!ends_early(time, Duration::from_millis(4900)));
        assert!(!ends_early(Amount::Requests(10), Duration::ZERO));
    }
}
