//! One client, which replaces its connection when it is lost.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use courser::EarlyData;
use courser_units::to_f64;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connect::{Carrier, ConnectFailure, Link};
use crate::counts::ConnectionRecord;
use crate::label::REFUSED;
use crate::plan::Resume;
use crate::request::HttpVersion;
use crate::request_stream::{self, StreamEnd, StreamsState};
use crate::sessions::Sessions;
use crate::worker::Worker;

/// Sends requests on a connection, and replaces it when it is lost, until the run is over.
pub(crate) async fn run(worker: Arc<Worker>, number: u64, mut stop: watch::Receiver<bool>) {
    if let Some(rate) = worker.plan.connection_rate {
        let turn = to_f64(number) / rate;
        let at = worker.schedule.began() + Duration::from_secs_f64(turn);
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            () = over(&worker, &mut stop) => return,
        }
    }
    let mut state = Arc::new(StreamsState::default());
    let mut backoff = Backoff::new();
    let mut sessions = worker.connector.sessions();
    while !worker.schedule.is_over(Instant::now()) {
        if worker.plan.closes {
            tokio::select! {
                is_left = next_is_due(&worker, &state) => if !is_left { return },
                () = over(&worker, &mut stop) => return,
            }
        }
        let began = Instant::now();
        let connected = tokio::select! {
            connected = worker.connector.connect(&sessions) => connected,
            () = over(&worker, &mut stop) => return,
        };
        let continues = match connected {
            Ok(link) => {
                worker.on_connected(&link.agreed);
                match load(&worker, &state, link, began, &mut sessions, &mut stop).await {
                    StreamEnd::Finished => return,
                    StreamEnd::Spent => {
                        state = Arc::new(state.successor());
                        backoff = Backoff::new();
                        continue;
                    }
                    StreamEnd::Lost => {}
                }
                worker.counts().lost += 1;
                let was_used = state.was_used.load(Relaxed);
                if state.first_byte.lock().is_some() {
                    backoff = Backoff::new();
                }
                state = Arc::new(state.successor());
                if began.elapsed() >= MIN_LIFETIME {
                    continue;
                }
                // A server that closes each connection at once is treated as unreachable.
                was_used || fail_next_request(&worker, &state, began, CLOSED_BY_SERVER.to_owned())
            }
            Err(error) => on_refused(&worker, &state, began, error),
        };
        let pause = backoff.pause().filter(|_| continues);
        let Some(pause) = pause else { return };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = over(&worker, &mut stop) => return,
        }
    }
}

/// Waits until the next request is due, so that its connection is opened at that time. Returns false if no
/// request is left.
async fn next_is_due(worker: &Worker, state: &StreamsState) -> bool {
    let Some(ticket) = state.next(worker) else {
        return false;
    };
    let due = ticket.due;
    state.store(ticket);
    if let Some(due) = due
        && due > Instant::now()
    {
        worker.alarm.wait(due).await;
    }
    true
}

/// Counts a connection that could not be opened. Returns false if the run cannot continue.
fn on_refused(
    worker: &Worker,
    state: &StreamsState,
    began: Instant,
    error: ConnectFailure,
) -> bool {
    worker.counts().refused += 1;
    if !worker.was_ever_connected() {
        worker.counts().failure.get_or_insert(error.failure);
        return false;
    }
    fail_next_request(worker, state, began, error.label)
}

/// Counts a request without a connection as failed, so that a run with a number of requests ends even if the
/// server does not answer. Returns false if no request is left.
fn fail_next_request(worker: &Worker, state: &StreamsState, began: Instant, label: String) -> bool {
    if state.next(worker).is_none() {
        return false;
    }
    worker
        .counts()
        .on_error(began, Instant::now(), label, false);
    true
}

/// Runs the streams of a connection until it is lost or no request is left.
async fn load(
    worker: &Arc<Worker>,
    state: &Arc<StreamsState>,
    link: Link,
    began: Instant,
    sessions: &mut Sessions,
    stop: &mut watch::Receiver<bool>,
) -> StreamEnd {
    let connected = Instant::now();
    let Link {
        sender, carrier, ..
    } = link;
    let mut streams = JoinSet::new();
    let count = match sender.version() {
        _ if worker.plan.closes => 1,
        HttpVersion::Http1 => 1,
        HttpVersion::Http2 | HttpVersion::Http3 => worker.plan.streams,
    };
    let others = (1..count)
        .filter_map(|_| sender.another())
        .collect::<Vec<_>>();
    let last = (worker.plan.resume == Resume::EarlyData).then(|| sender.another());
    for sender in others.into_iter().chain([sender]) {
        streams.spawn(request_stream::run(worker.clone(), state.clone(), sender));
    }
    let mut end = StreamEnd::Finished;
    loop {
        tokio::select! {
            joined = streams.join_next() => match joined {
                Some(Ok(StreamEnd::Finished)) => {}
                Some(Ok(other)) => end = other,
                // Streams are aborted only in the arms below.
                Some(Err(error)) => worker.counts().count_error(format!("bug: {error}")),
                None => break,
            },
            () = carrier.port_closed() => {
                let in_flight = streams.len() as u64;
                streams.shutdown().await;
                on_port_closed(worker, in_flight);
                end = StreamEnd::Lost;
                break;
            }
            () = over(worker, stop) => {
                streams.shutdown().await;
                end = StreamEnd::Finished;
                break;
            }
        }
    }
    if let (StreamEnd::Spent, Some(sender)) = (end, last.flatten()) {
        let settings = carrier.settings(&sender).await;
        sessions.settings = settings.or(sessions.settings);
    }
    let (_, early_data) = carrier.resumption();
    if early_data == EarlyData::Rejected && end == StreamEnd::Lost {
        // After a rejection, HTTP/3 needs another connection (RFC 9001 §4.6.2).
        end = StreamEnd::Spent;
    }
    record(worker, state, began, connected, &carrier);
    if end == StreamEnd::Spent {
        // The next connection does not wait for this one to close.
        tokio::spawn(carrier.close());
        return end;
    }
    carrier.close().await;
    let has_more = !state.unfinished.lock().is_empty();
    if end == StreamEnd::Lost && !has_more && worker.schedule.is_exhausted(Instant::now()) {
        // The server closed the connection after the last request.
        return StreamEnd::Finished;
    }
    end
}

/// Counts a connection that has ended.
fn record(
    worker: &Worker,
    state: &StreamsState,
    began: Instant,
    connected: Instant,
    carrier: &Carrier,
) {
    let (is_resumed, early_data) = carrier.resumption();
    if let Some(refusal) = carrier.refusal() {
        let mut counts = worker.counts();
        // A request may have failed with the same error, which counts once.
        if !counts.errors.contains_key(refusal) {
            counts.count_error(refusal.to_owned());
        }
    }
    let (received, sent, quic) = carrier.counters();
    let measured_from = worker.schedule.measured_from().max(began);
    let first_byte = *state.first_byte.lock();
    worker.counts().connections.push(ConnectionRecord {
        connect: carrier.handshake_time().unwrap_or(connected - began),
        is_resumed,
        early_data,
        first_byte: first_byte.map(|at| at - began),
        requests: state.answered.load(Relaxed),
        measured: Instant::now().saturating_duration_since(measured_from),
        received,
        sent,
        quic,
    });
}

/// Counts the requests in flight as failed, because the port of the server is closed.
fn on_port_closed(worker: &Worker, in_flight: u64) {
    let now = Instant::now();
    let mut counts = worker.counts();
    for _ in 0..in_flight {
        counts.on_error(now, now, REFUSED.to_owned(), false);
    }
}

/// Resolves when requests in flight must be abandoned.
async fn over(worker: &Worker, stop: &mut watch::Receiver<bool>) {
    let cut = async {
        match worker.schedule.cuts_at() {
            Some(at) => tokio::time::sleep_until(at.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cut => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// A connection with a shorter lifetime is replaced after a pause.
const MIN_LIFETIME: Duration = Duration::from_millis(20);

const CLOSED_BY_SERVER: &str = "connection closed by the server";

/// The growing pauses between attempts to reconnect, and their time limit.
#[derive(Debug)]
struct Backoff {
    began: Instant,
    next: Duration,
}

impl Backoff {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            next: FIRST_PAUSE,
        }
    }

    /// Returns the pause before the next attempt, or `None` after the time limit.
    fn pause(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(MAX_PAUSE);
        (self.began.elapsed() < RECONNECT_TIMEOUT).then_some(pause)
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Time limit of attempts, which suffices for a server to restart.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(30);
