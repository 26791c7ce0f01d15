//! The mixed scenario: bytes, small requests and datagrams at the same time on one connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_measure::Failure;
use tokio::task::{JoinError, JoinHandle};

use crate::bench::{Bench, Outcome, Quota, run_all};
use crate::datagram::{self, Datagrams};
use crate::link::Link;
use crate::meter::{Amount, Meter};
use crate::plan::{Direction, Mixed, Plan};
use crate::session::Session;
use crate::side::Side;
use crate::transfer::Until;
use crate::wire::Request;

/// The work of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Upload,
    Download,
    Requests,
}

/// The requests of all tasks.
#[derive(Debug)]
struct Requests {
    request: Request,
    quota: Arc<Quota>,
    /// Counts the bytes of requests, which are not part of throughput.
    bytes: Arc<Meter>,
}

/// Transfers bytes, and measures requests and datagrams on the same connection. Datagrams begin after the
/// warm-up.
pub(crate) async fn run(
    bench: &mut Bench<'_>,
    load: Mixed,
    plan: &Plan,
) -> Result<Outcome, Failure> {
    let mut session = Session::open(bench.remote, 1).await?;
    datagram::check_version(session.server_report().await.as_ref(), "mixed")?;
    let parts = parts(load);
    let mut lanes = session.lanes(bench.remote, parts.len() as u64 + 1).await?;
    let Some(link @ (Link::Quic(_) | Link::WebTransport(_))) = lanes.pop() else {
        return Err(Failure::new("datagrams need QUIC"));
    };
    let Amount::Time(time) = bench.work else {
        return Err(Failure::new("the scenario mixed needs a time as its limit"));
    };
    let meter = session.meter();
    let start = bench.start(session.io()).await;
    let until = Until::At(Instant::now() + time);
    let requests = Arc::new(Requests {
        request: Request::new(load.request_size, load.response_size),
        quota: Quota::new(bench.work),
        bytes: Meter::new(),
    });
    let datagrams = datagram::Shape {
        direction: load.direction,
        size: load.datagram_size,
        rate: load.datagram_rate,
        amount: plan.amount,
    };
    let warm_up = plan.warm_up.unwrap_or_default();
    let mut sending = tokio::spawn(measure_datagrams(link, datagrams, warm_up));
    let tasks = lanes.into_iter().zip(parts).map(|(lane, part)| {
        let (requests, meter) = (requests.clone(), meter.clone());
        async move { part.run(lane, until, &requests, &meter).await }
    });
    let mut counts = None;
    let work = with_datagrams(run_all(tasks), &mut sending, &mut counts);
    let finished = bench
        .run(start, work, &meter, || session.io(), Some(&session))
        .await;
    let finished = finished.inspect_err(|_| sending.abort())?;
    // The time for the last datagrams to arrive does not count.
    if counts.is_none() && finished.is_whole() {
        let late = tokio::time::timeout(DATAGRAM_TIMEOUT, &mut sending).await;
        let late = late.map_err(|_| {
            Failure::new("the server did not report the end of its datagrams in time")
        })?;
        counts = Some(joined(late)?);
    }
    sending.abort();
    let outcome = bench.outcome(finished, Some(session), &meter).await;
    Ok(Outcome {
        datagrams: counts,
        client: without_unit_costs(outcome.client),
        server: outcome.server.map(without_unit_costs),
        ..outcome
    })
}

/// Returns the work of each task: requests, and streams with bytes.
fn parts(load: Mixed) -> Vec<Part> {
    let mut parts = vec![Part::Requests; usize::try_from(load.in_flight).unwrap_or(1)];
    for (part, other) in [
        (Part::Upload, Direction::Download),
        (Part::Download, Direction::Upload),
    ] {
        let streams = if load.direction == other {
            0
        } else {
            load.streams
        };
        parts.extend((0..streams).map(|_| part));
    }
    parts
}

impl Part {
    async fn run(
        self,
        mut lane: Link,
        until: Until,
        requests: &Requests,
        meter: &Meter,
    ) -> Result<(), Failure> {
        match self {
            Self::Upload => lane.upload(until, meter).await,
            Self::Download => lane.download(until, meter).await,
            Self::Requests => {
                while requests.quota.take() {
                    let began = Instant::now();
                    lane.exchange(&requests.request, &requests.bytes).await?;
                    meter.on_done(began.elapsed());
                }
                Ok(())
            }
        }
    }
}

async fn measure_datagrams(
    link: Link,
    shape: datagram::Shape,
    warm_up: Duration,
) -> Result<Datagrams, Failure> {
    tokio::time::sleep(warm_up).await;
    link.measure_datagrams(shape, &Meter::new()).await
}

/// Runs `work` until it ends, or until the datagrams fail. Writes their counts to `counts` if they end
/// first.
async fn with_datagrams(
    work: impl Future<Output = Result<(), Failure>>,
    sending: &mut JoinHandle<Result<Datagrams, Failure>>,
    counts: &mut Option<Datagrams>,
) -> Result<(), Failure> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return result,
            ended = &mut *sending, if counts.is_none() => *counts = Some(joined(ended)?),
        }
    }
}

fn joined(ended: Result<Result<Datagrams, Failure>, JoinError>) -> Result<Datagrams, Failure> {
    ended.map_err(|error| Failure::new(format!("a task panicked: {error}")))?
}

/// Removes the costs per request and per byte, because the CPU time covers bytes, requests and datagrams
/// together.
fn without_unit_costs(side: Side) -> Side {
    Side {
        cpu_us_each: None,
        cpu_seconds_per_gb: None,
        mbits_per_second_per_cpu_percent: None,
        ..side
    }
}

/// Time limit for the last datagrams after the bytes, well above the limits of each end.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_requests_and_the_streams_of_each_direction() {
        let count = |direction| {
            let parts = parts(Mixed {
                direction,
                streams: 3,
                in_flight: 2,
                request_size: 1,
                response_size: 1,
                datagram_size: 100,
                datagram_rate: None,
            });
            [Part::Requests, Part::Upload, Part::Download]
                .map(|part| parts.iter().filter(|it| **it == part).count())
        };
        assert_eq!(count(Direction::Upload), [2, 3, 0]);
        assert_eq!(count(Direction::Download), [2, 0, 3]);
        assert_eq!(count(Direction::Both), [2, 3, 3]);
    }

    #[tokio::test]
    async fn datagrams_that_fail_end_the_measurement() {
        let mut sending = tokio::spawn(async { Err(Failure::new("no datagrams")) });
        let mut counts = None;
        let failed = with_datagrams(std::future::pending(), &mut sending, &mut counts).await;
        assert_eq!(failed, Err(Failure::new("no datagrams")));
        let mut sending = tokio::spawn(async { Ok(Datagrams::default()) });
        let work = tokio::time::sleep(Duration::from_millis(20));
        let work = async {
            work.await;
            Ok(())
        };
        assert_eq!(
            with_datagrams(work, &mut sending, &mut counts).await,
            Ok(())
        );
        assert_eq!(counts, Some(Datagrams::default()));
    }
}
