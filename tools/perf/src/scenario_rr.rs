//! The rr and latency scenarios: requests and responses, many or one at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_base::Mutex;
use courser_measure::Failure;

use crate::bench::{Bench, Outcome, Quota, run_all};
use crate::link::Link;
use crate::meter::Meter;
use crate::session::Session;
use crate::wire::Request;

/// The shape of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) connections: u64,
    /// Requests in flight over all connections.
    pub(crate) in_flight: u64,
    pub(crate) request_size: u64,
    pub(crate) response_size: u64,
    /// True to send requests and responses on unidirectional streams.
    pub(crate) uni: bool,
}

/// Sends requests until the amount is reached.
pub(crate) async fn run(bench: &mut Bench<'_>, shape: Shape) -> Result<Outcome, Failure> {
    let mut session = Session::open(bench.remote, shape.connections).await?;
    let lanes = session.lanes(bench.remote, shape.in_flight).await?;
    let request = Arc::new(Request::new(shape.request_size, shape.response_size));
    let meter = session.meter();
    let start = bench.start(session.io()).await;
    let quota = Quota::new(bench.work);
    let waiting = Arc::new(Waiting::default());
    let tasks = lanes.into_iter().map(|lane| {
        let (request, quota, meter) = (request.clone(), quota.clone(), meter.clone());
        let waiting = waiting.clone();
        async move {
            if shape.uni {
                send_requests_uni(lane, &request, &quota, &meter, &waiting).await
            } else {
                send_requests(lane, &request, &quota, &meter).await
            }
        }
    });
    let finished = bench
        .run(
            start,
            run_all(tasks),
            &meter,
            || session.io(),
            Some(&session),
        )
        .await?;
    Ok(bench.outcome(finished, Some(session), &meter).await)
}

async fn send_requests(
    mut lane: Link,
    request: &Request,
    quota: &Quota,
    meter: &Meter,
) -> Result<(), Failure> {
    while quota.take() {
        let began = Instant::now();
        lane.exchange(request, meter).await?;
        meter.on_done(began.elapsed());
    }
    Ok(())
}

/// Sends requests on unidirectional streams. Responses do not identify their request: each counts as that
/// to the oldest request, because servers answer in order.
async fn send_requests_uni(
    mut lane: Link,
    request: &Request,
    quota: &Quota,
    meter: &Meter,
    waiting: &Waiting,
) -> Result<(), Failure> {
    while quota.take() {
        waiting.lock().push_back(Instant::now());
        lane.exchange_uni(request, meter).await?;
        let began = waiting.lock().pop_front();
        meter.on_done(began.map_or(Duration::ZERO, |began| began.elapsed()));
    }
    Ok(())
}

/// The times at which unanswered requests began.
type Waiting = Mutex<VecDeque<Instant>>;
