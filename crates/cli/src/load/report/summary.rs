//! The figures that all reports are made of.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_measure::sockets;
use hdrhistogram::Histogram;

use super::stats::{Stats, seconds, to_f64};
use crate::load::engine::{Agreed, ConnectionRecord, Finished, QuicRecord};
use crate::load::plan::{Amount, Plan};

/// Returns the warnings about the sockets of all connections, each once; none without QUIC.
fn warnings(connections: &[ConnectionRecord]) -> Vec<String> {
    let drops = connections.iter().filter_map(|one| one.quic);
    let drops = drops.map(|quic| quic.kernel_drops);
    let Some(drops) = drops.reduce(|sum, next| sum + next) else {
        return Vec::new();
    };
    let machine = sockets::capabilities();
    let dropped = sockets::describe_drops(drops, &machine);
    machine.warnings.into_iter().chain(dropped).collect()
}

/// The figures that all reports are made of. Times are in seconds.
#[derive(Debug)]
pub(in crate::load) struct Summary {
    pub(super) elapsed: f64,
    /// Requests that were to be sent, where that was said.
    pub(super) asked: Option<u64>,
    pub(super) sent: u64,
    pub(super) done: u64,
    pub(super) succeeded: u64,
    pub(super) errored: u64,
    pub(super) timeouts: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) data: u64,
    pub(super) fields: u64,
    pub(super) received: u64,
    pub(super) sent_bytes: u64,
    pub(super) latency: Histogram<u64>,
    pub(super) service: Histogram<u64>,
    pub(super) head: Histogram<u64>,
    /// Answers a second, tenth by tenth of a second.
    pub(super) rates: Vec<f64>,
    pub(super) connections: Vec<ConnectionRecord>,
    pub(super) refused: u64,
    pub(super) lost: u64,
    pub(super) agreed: Option<Agreed>,
    pub(super) cpu_seconds: f64,
    pub(super) rate: Option<f64>,
    pub(super) is_corrected: bool,
    /// Reasons why the run may have been slower than the server.
    pub(super) warnings: Vec<String>,
}

impl Summary {
    pub(in crate::load) fn new(plan: &Plan, finished: Finished) -> Self {
        let tally = finished.tally;
        let elapsed = finished.elapsed.as_secs_f64();
        let asked = match (plan.amount, plan.rate) {
            (Amount::Requests(count), _) => Some(count),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a rate and a time that were given as numbers of some digits"
            )]
            // A run ends late on a busy machine, and early when it is interrupted.
            (Amount::Time { measured, .. }, Some(rate)) => {
                Some((rate * elapsed.min(measured.as_secs_f64())).floor() as u64)
            }
            (Amount::Time { .. }, None) => None,
        };
        let warnings = warnings(&tally.connections);
        let sum = |of: fn(&ConnectionRecord) -> u64| tally.connections.iter().map(of).sum();
        let succeeded = tally.statuses.iter();
        let succeeded = succeeded.filter(|(status, _)| (200..400).contains(*status));
        // The last tenth is not whole.
        let whole = tally.tenths.len().saturating_sub(1);
        Self {
            elapsed,
            asked,
            sent: finished.sent,
            done: tally.done,
            succeeded: succeeded.map(|(_, count)| count).sum(),
            errored: tally.errored,
            timeouts: tally.timeouts,
            data: tally.data,
            fields: tally.fields,
            received: sum(|connection| connection.received),
            sent_bytes: sum(|connection| connection.sent),
            rates: tally.tenths[..whole]
                .iter()
                .map(|count| to_f64(*count) * 10.0)
                .collect(),
            statuses: tally.statuses,
            errors: tally.errors,
            latency: tally.latency,
            service: tally.service,
            head: tally.head,
            connections: tally.connections,
            refused: tally.refused,
            lost: tally.lost,
            agreed: tally.agreed,
            cpu_seconds: finished.cpu_seconds,
            rate: plan.rate,
            is_corrected: plan.is_corrected,
            warnings,
        }
    }

    /// Answers a second over all the time.
    pub(super) fn per_second(&self) -> f64 {
        self.over_time(self.done)
    }

    /// So many of anything, a second.
    pub(super) fn over_time(&self, count: u64) -> f64 {
        if self.elapsed > 0.0 {
            to_f64(count) / self.elapsed
        } else {
            0.0
        }
    }

    /// Statuses of one class: 2 for 200 to 299.
    pub(super) fn class(&self, class: u16) -> u64 {
        let of_class = self
            .statuses
            .iter()
            .filter(|(status, _)| *status / 100 == class);
        of_class.map(|(_, count)| count).sum()
    }

    /// Of all connections.
    pub(super) fn connects(&self) -> Stats {
        Stats::of(self.connections.iter().map(|one| one.connect.as_secs_f64()))
    }

    /// From the first packet of a connection to the head of its first response.
    pub(super) fn first_bytes(&self) -> Stats {
        let times = self.connections.iter().filter_map(|one| one.first_byte);
        Stats::of(times.map(|time| time.as_secs_f64()))
    }

    /// Answers a second on each connection.
    pub(super) fn rates_of_connections(&self) -> Stats {
        let measured = self.connections.iter();
        let measured = measured.filter(|one| one.measured > Duration::ZERO);
        Stats::of(measured.map(|one| to_f64(one.requests) / one.measured.as_secs_f64()))
    }

    /// A number of QUIC's, over all connections; `None` without QUIC.
    pub(super) fn quic(&self, of: impl Fn(&QuicRecord) -> f64) -> Option<Stats> {
        let records: Vec<_> = self.connections.iter().filter_map(|one| one.quic).collect();
        (!records.is_empty()).then(|| Stats::of(records.iter().map(of)))
    }

    /// Sums of a number of QUIC's; `None` without QUIC.
    pub(super) fn quic_sum(&self, of: impl Fn(&QuicRecord) -> u64) -> Option<u64> {
        let records: Vec<_> = self.connections.iter().filter_map(|one| one.quic).collect();
        (!records.is_empty()).then(|| records.iter().map(of).sum())
    }

    /// CPU time of this process for each answer.
    pub(super) fn cpu_per_answer(&self) -> Option<f64> {
        (self.done > 0).then(|| self.cpu_seconds / to_f64(self.done))
    }

    /// Seconds that so large a share of the latencies does not exceed.
    pub(super) fn latency_at(&self, share: f64) -> f64 {
        seconds(self.latency.value_at_quantile(share))
    }
}
