//! The environment in which scenarios run: the server, the limit, progress, and the cost at both ends.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use courser_measure::{ConnectionCounters, Failure, IoCounters, Latency, MovesReport};
use tokio::task::JoinSet;

use crate::datagram::Datagrams;
use crate::meter::{Amount, Interval, Meter, Watch, Watched};
use crate::network::Network;
use crate::plan::Plan;
use crate::remote::Remote;
use crate::server_report::ServerReport;
use crate::server_side::{Answer, Baseline, ServerGap};
use crate::session::{Handshake, Session};
use crate::side::{Done, Side};
use crate::spread::Spread;

/// The environment of a scenario.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) remote: &'a Remote,
    /// The limit of the measured part.
    amount: Amount,
    /// The limit of all work, including the warm-up.
    pub(crate) work: Amount,
    warm_up: Option<Duration>,
    watch: Watch<'a>,
    control: Control,
}

/// A separate connection for requests of the server's counters, so that neither the requests nor a server
/// that fails on them affects the measurement.
#[derive(Debug)]
struct Control {
    session: Session,
    is_supported: bool,
}

/// The figures of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// True if the measurement ended before its time or number was reached.
    pub interrupted: bool,
    /// The duration of the measurement, without the warm-up.
    pub seconds: f64,
    /// Bytes sent by the client.
    pub sent: u64,
    /// Bytes received by the client.
    pub received: u64,
    /// Number of requests, handshakes, datagrams or closes.
    pub count: u64,
    /// Distribution of the durations of requests, handshakes or closes.
    pub latency: Option<Latency>,
    /// The intervals, if [`Watch::interval`] is set.
    pub intervals: Vec<Interval>,
    /// The distribution of throughput over the intervals, or over samples if [`Watch::interval`] is not set.
    pub spread: Spread,
    /// The handshake of the first connection.
    pub handshake: Handshake,
    /// The QUIC version and socket features in use; `None` over TCP.
    pub network: Option<Network>,
    /// Number of handshakes that resumed a session; `None` in other scenarios.
    pub resumed: Option<u64>,
    /// Number of requests in early data that the server accepted; `None` without early data.
    pub early_accepted: Option<u64>,
    /// Datagrams sent, received and lost; `None` in other scenarios.
    pub datagrams: Option<Datagrams>,
    /// Moves of the connections to other sockets, if [`Remote::rebind_every`] is set.
    pub moves: Option<MovesReport>,
    /// The cost at the client.
    pub client: Side,
    /// The cost at the server, if it is known.
    pub server: Option<Side>,
    /// The reason for which counters of the server are missing, if any are.
    pub server_gap: Option<ServerGap>,
}

/// The counters at the beginning of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StartCounters {
    client: ClientCounters,
    server: Baseline,
}

/// The end of a measurement, before the cost at both ends is computed.
#[derive(Debug)]
pub(crate) struct Finished {
    start: StartCounters,
    end: ClientCounters,
    watched: Watched<()>,
}

impl Finished {
    /// Returns false if the measurement ended early.
    pub(crate) fn is_whole(&self) -> bool {
        !self.watched.interrupted
    }
}

/// The counters of this end.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct ClientCounters {
    io: IoCounters,
    connection: Option<ConnectionCounters>,
    cpu_seconds: f64,
}

impl<'a> Bench<'a> {
    pub(crate) async fn open(
        remote: &'a Remote,
        plan: &Plan,
        watch: Watch<'a>,
    ) -> Result<Self, Failure> {
        plan.check()?;
        let mut session = Session::open(remote, 1).await?;
        let is_supported = session.server_report().await.is_some();
        let control = Control {
            session,
            is_supported,
        };
        Ok(Self {
            remote,
            amount: plan.amount,
            work: plan.whole_amount(),
            warm_up: plan.warm_up,
            watch,
            control,
        })
    }

    /// Reads the counters at the beginning of a measurement; `io` are those of its sockets.
    pub(crate) async fn start(&mut self, io: IoCounters) -> StartCounters {
        let server = self.control.begin().await;
        StartCounters {
            client: self.client_counters(io, None),
            server,
        }
    }

    /// Runs `work` until it ends or is stopped. `io` returns the counters of the sockets, and `session` has
    /// the connections.
    ///
    /// After a warm-up, all counters restart: first those of this end, then those of the server, whose answer
    /// arrives while the work continues. The work of the server until its answer is missing in its figures,
    /// so a late answer is not used ([`ServerGap::Late`]). At the end, the counters of the server are
    /// requested after the work.
    pub(crate) async fn run(
        &mut self,
        mut start: StartCounters,
        work: impl Future<Output = Result<(), Failure>>,
        meter: &Meter,
        io: impl Fn() -> IoCounters,
        session: Option<&Session>,
    ) -> Result<Finished, Failure> {
        let connection = || session.and_then(Session::counters);
        let mut work = pin!(work);
        let warm_up = self.warm_up;
        if let Some(time) = warm_up {
            self.watch.warm_up(work.as_mut(), time).await?;
            meter.restart();
            start.client = self.client_counters(io(), connection());
        }
        let (watch, amount, clock) = (self.watch, self.amount, self.remote.clock);
        let measured = async {
            let watched = watch.run(work, meter, amount, connection).await;
            let end = ClientCounters {
                io: io(),
                connection: connection(),
                cpu_seconds: clock.seconds(),
            };
            (watched, end)
        };
        let control = &mut self.control;
        let restarted = async {
            if warm_up.is_some() {
                start.server = control.restart(session).await;
            }
        };
        let ((watched, end), ()) = tokio::join!(measured, restarted);
        Ok(Finished {
            start,
            end,
            watched: watched.transpose()?,
        })
    }

    fn client_counters(
        &self,
        io: IoCounters,
        connection: Option<ConnectionCounters>,
    ) -> ClientCounters {
        ClientCounters {
            io,
            connection,
            cpu_seconds: self.remote.clock.seconds(),
        }
    }

    /// Ends a measurement and computes the cost at both ends.
    pub(crate) async fn outcome(
        &mut self,
        finished: Finished,
        session: Option<Session>,
        meter: &Meter,
    ) -> Outcome {
        let Finished {
            start,
            end,
            watched,
        } = finished;
        let after = self.control.server_report().await;
        let at_server = at_server(session.as_ref(), after.is_some()).await;
        let done = Done {
            bytes: meter.sent() + meter.received(),
            count: meter.count(),
        };
        let cpu_seconds = end.cpu_seconds - start.client.cpu_seconds;
        // Without a warm-up, the counters of the connections started at zero.
        let before = start.client.connection.unwrap_or_default();
        let connection = end.connection.map(|now| now.since(&before));
        let client = Side::new(
            cpu_seconds,
            end.io.since(&start.client.io),
            connection,
            done,
        );
        let (server, server_gap) = start.server.cost(after, at_server, watched.seconds, done);
        let used = session.as_ref().unwrap_or(&self.control.session);
        let network = used.network(self.remote.segmentation_offload);
        let handshake = match session {
            Some(session) => {
                let handshake = session.handshake.clone();
                session.close().await;
                handshake
            }
            None => self.control.session.handshake.clone(),
        };
        Outcome {
            interrupted: watched.interrupted,
            seconds: watched.seconds,
            sent: meter.sent(),
            received: meter.received(),
            count: meter.count(),
            latency: meter.latency(),
            spread: Spread::of(&watched.intervals, watched.every, &watched.load),
            intervals: match self.watch.interval {
                Some(_) => watched.intervals,
                None => Vec::new(),
            },
            handshake,
            network,
            resumed: None,
            early_accepted: None,
            datagrams: None,
            moves: watched.moves,
            client,
            server,
            server_gap,
        }
    }

    /// Closes the connection that requests the server's counters.
    pub(crate) async fn close(self) {
        self.control.session.close().await;
    }
}

/// Returns the counters of the connections at the server, if it reports them in time.
async fn at_server(session: Option<&Session>, is_known: bool) -> Option<ConnectionCounters> {
    let request = session.filter(|_| is_known)?.server_counters();
    tokio::time::timeout(COUNTERS_TIMEOUT, request)
        .await
        .ok()
        .flatten()
}

impl Control {
    async fn server_report(&mut self) -> Option<ServerReport> {
        if self.is_supported {
            self.session.server_report().await
        } else {
            None
        }
    }

    /// Requests the counters before a measurement.
    async fn begin(&mut self) -> Baseline {
        match self.is_supported {
            true => Baseline::Fresh(self.session.server_report().await),
            false => Baseline::Unsupported,
        }
    }

    /// Requests the counters at the end of a warm-up, and those of the connections of `session` at the same time.
    async fn restart(&mut self, session: Option<&Session>) -> Baseline {
        if !self.is_supported {
            return Baseline::Unsupported;
        }
        let ended = Instant::now();
        let report = async {
            Answer {
                value: self.session.server_report().await,
                took: ended.elapsed(),
            }
        };
        let connections = async {
            Answer {
                value: at_server(session, true).await,
                took: ended.elapsed(),
            }
        };
        let (report, connections) = tokio::join!(report, connections);
        Baseline::Warm {
            report,
            connections,
        }
    }
}

/// Time limit for the counters of all connections at the server.
const COUNTERS_TIMEOUT: Duration = Duration::from_secs(10);

/// The remaining work, shared by several tasks.
#[derive(Debug)]
pub(crate) struct Quota {
    deadline: Option<Instant>,
    left: AtomicU64,
}

impl Quota {
    pub(crate) fn new(amount: Amount) -> Arc<Self> {
        let (deadline, left) = match amount {
            Amount::Time(time) => (Some(Instant::now() + time), u64::MAX),
            Amount::Number(number) => (None, number),
        };
        Arc::new(Self {
            deadline,
            left: AtomicU64::new(left),
        })
    }

    /// Takes one unit of work; returns false when none is left.
    pub(crate) fn take(&self) -> bool {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return false;
        }
        self.left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }
}

/// Runs all tasks to their end. The first failure ends the others.
pub(crate) async fn run_all<F>(tasks: impl IntoIterator<Item = F>) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let mut set: JoinSet<_> = tasks.into_iter().collect();
    while let Some(result) = set.join_next().await {
        result.map_err(|error| Failure::new(format!("a task panicked: {error}")))??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_returns_each_unit_once() {
        let quota = Quota::new(Amount::Number(2));
        assert_eq!(
            [quota.take(), quota.take(), quota.take()],
            [true, true, false]
        );
    }
}
