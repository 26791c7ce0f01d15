//! Computes the cost at the server from its counters at the beginning and at the end of a measurement.

use std::fmt;
use std::time::Duration;

use courser_measure::ConnectionCounters;
use serde::Serialize;

use crate::server_report::ServerReport;
use crate::side::{Done, Side};

/// The counters of the server at the beginning of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Baseline {
    /// The server does not report counters.
    Unsupported,
    /// The counters without a warm-up. Those of the connections start at zero.
    Fresh(Option<ServerReport>),
    /// The counters at the end of a warm-up.
    Warm {
        report: Answer<ServerReport>,
        /// Has no value over TCP, and in scenarios whose connections end.
        connections: Answer<ConnectionCounters>,
    },
}

/// The answer to a request for counters that was sent during the work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: Option<T>,
    /// The time from the end of the warm-up until the answer. The work of the server in this time may be
    /// missing in the figures.
    pub(crate) took: Duration,
}

/// A reason for which counters of the server are missing in a report.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ServerGap {
    /// The server does not report counters at all.
    Unsupported,
    /// The server did not report its counters at the beginning of the measurement.
    Beginning,
    /// The server reported its counters too late after the warm-up.
    Late,
    /// The server did not report its counters at the end.
    End,
    /// Only the counters of the QUIC connections are missing: they were not reported at the beginning or at
    /// the end, or too late after the warm-up.
    Connections,
}

impl fmt::Display for ServerGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "the server's counters are unknown: only courser reports them",
            Self::Beginning => {
                "the server's counters are unknown: it did not report them at the beginning"
            }
            Self::Late => {
                "the server's counters are unknown: after the warm-up it reported them too late, when more than \
                 10 % of the measurement was over"
            }
            Self::End => "the server's counters are unknown: it did not report them at the end",
            Self::Connections => {
                "the server's counters of its connections are unknown: it did not report them in time after the \
                 warm-up, or not at the end"
            }
        })
    }
}

impl Baseline {
    /// Computes the cost at the server. `report` and `connections` are its counters at the end, and `seconds`
    /// is the duration of the measurement. Also returns the reason if counters are missing.
    pub(crate) fn cost(
        self,
        report: Option<ServerReport>,
        connections: Option<ConnectionCounters>,
        seconds: f64,
        done: Done,
    ) -> (Option<Side>, Option<ServerGap>) {
        let (before, is_complete, connection) = match self {
            Self::Unsupported => return (None, Some(ServerGap::Unsupported)),
            Self::Fresh(before) => (before.ok_or(ServerGap::Beginning), true, connections),
            Self::Warm {
                report,
                connections: before,
            } => {
                let is_late = report.is_late(seconds);
                let known = report.value.ok_or(ServerGap::Beginning);
                let timely = known.and_then(|it| {
                    if is_late {
                        Err(ServerGap::Late)
                    } else {
                        Ok(it)
                    }
                });
                let since = before.difference(connections, seconds);
                (timely, since.is_ok(), since.ok().flatten())
            }
        };
        let both = before.and_then(|before| Ok((before, report.ok_or(ServerGap::End)?)));
        match both {
            Ok((before, after)) => {
                let cpu_seconds = (after.cpu_seconds - before.cpu_seconds).max(0.0);
                let side = Side::new(cpu_seconds, after.io.since(&before.io), connection, done);
                let gap = (!is_complete).then_some(ServerGap::Connections);
                (Some(side), gap)
            }
            Err(gap) => (None, Some(gap)),
        }
    }
}

impl<T> Answer<T> {
    /// Returns true if the answer arrived so late that figures without that time would mislead.
    fn is_late(&self, seconds: f64) -> bool {
        self.took.as_secs_f64() > seconds * LATEST
    }
}

impl Answer<ConnectionCounters> {
    /// Returns the difference of the counters from the end of the warm-up to `now`, or `None` without
    /// connections.
    fn difference(
        &self,
        now: Option<ConnectionCounters>,
        seconds: f64,
    ) -> Result<Option<ConnectionCounters>, ServerGap> {
        match (now, self.value) {
            (None, None) => Ok(None),
            (Some(now), Some(before)) if !self.is_late(seconds) => Ok(Some(now.since(&before))),
            _ => Err(ServerGap::Connections),
        }
    }
}

/// The share of a measurement after which counters for its beginning are too late.
const LATEST: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Done = Done {
        bytes: 1_000_000_000,
        count: 0,
    };

    fn report(cpu_seconds: f64) -> ServerReport {
        ServerReport {
            cpu_seconds,
            ..ServerReport::default()
        }
    }

    fn packets(packets_sent: u64) -> ConnectionCounters {
        ConnectionCounters {
            connections: 1,
            packets_sent,
            ..ConnectionCounters::default()
        }
    }

    /// Returns a baseline after a warm-up whose answers took `millis`.
    fn warm(
        report: Option<ServerReport>,
        connections: Option<ConnectionCounters>,
        millis: [u64; 2],
    ) -> Baseline {
        let [first, second] = millis.map(Duration::from_millis);
        Baseline::Warm {
            report: Answer {
                value: report,
                took: first,
            },
            connections: Answer {
                value: connections,
                took: second,
            },
        }
    }

    /// Returns the CPU time, the packets and the gap of a measurement of one second.
    fn cost(baseline: Baseline) -> (Option<f64>, Option<u64>, Option<ServerGap>) {
        let (report, connections) = (Some(report(3.0)), Some(packets(50)));
        let (side, gap) = baseline.cost(report, connections, 1.0, DONE);
        let connection = side.and_then(|side| side.connection);
        (
            side.map(|side| side.cpu_seconds),
            connection.map(|it| it.packets_sent),
            gap,
        )
    }

    #[test]
    fn counters_of_the_warm_up_are_subtracted() {
        let fresh = Baseline::Fresh(Some(report(1.0)));
        assert_eq!(cost(fresh), (Some(2.0), Some(50), None));
        let warm = warm(Some(report(2.0)), Some(packets(20)), [90, 99]);
        assert_eq!(cost(warm), (Some(1.0), Some(30), None));
    }

    #[test]
    fn missing_baseline_after_a_warm_up_is_reported_as_a_gap() {
        let connections = Some(ServerGap::Connections);
        let missing = warm(Some(report(2.0)), None, [1, 1]);
        assert_eq!(cost(missing), (Some(1.0), None, connections));
        let late = warm(Some(report(2.0)), Some(packets(20)), [1, 101]);
        assert_eq!(cost(late), (Some(1.0), None, connections));
        let late = warm(Some(report(2.0)), Some(packets(20)), [101, 1]);
        assert_eq!(cost(late), (None, None, Some(ServerGap::Late)));
        let missing = warm(None, Some(packets(20)), [2000, 1]);
        assert_eq!(cost(missing), (None, None, Some(ServerGap::Beginning)));
    }

    #[test]
    fn every_missing_report_has_a_reason() {
        let fresh = Baseline::Fresh(None);
        assert_eq!(cost(fresh), (None, None, Some(ServerGap::Beginning)));
        let other = cost(Baseline::Unsupported);
        assert_eq!(other, (None, None, Some(ServerGap::Unsupported)));
        let fresh = Baseline::Fresh(Some(report(1.0)));
        let ended = fresh.cost(None, None, 1.0, DONE);
        assert_eq!(ended, (None, Some(ServerGap::End)));
        // Connections over TCP never have counters, so this is not a gap.
        let tcp = warm(Some(report(1.0)), None, [1, 1]).cost(Some(report(3.0)), None, 1.0, DONE);
        assert!(tcp.0.is_some() && tcp.1.is_none(), "{tcp:?}");
    }
}
