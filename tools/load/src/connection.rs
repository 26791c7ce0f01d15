//! One client, which replaces its connection when it breaks.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use courser::EarlyData;
use courser_units::to_f64;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connect::{CannotConnect, Carrier, Link};
use crate::label::REFUSED;
use crate::plan::Resume;
use crate::request::Spoken;
use crate::sessions::Sessions;
use crate::slot::{self, Lane, SlotEnd};
use crate::tally::ConnectionRecord;
use crate::worker::Worker;

/// Keeps a connection under load until the run is over.
pub(crate) async fn run(worker: Arc<Worker>, number: u64, mut stop: watch::Receiver<bool>) {
    if let Some(rate) = worker.plan.connection_rate {
        let turn = to_f64(number) / rate;
        let at = worker.schedule.began() + Duration::from_secs_f64(turn);
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            () = over(&worker, &mut stop) => return,
        }
    }
    let mut lane = Arc::new(Lane::default());
    let mut patience = Patience::new();
    let mut sessions = worker.connector.sessions();
    while !worker.schedule.is_over(Instant::now()) {
        if worker.plan.closes {
            tokio::select! {
                is_left = next_is_due(&worker, &lane) => if !is_left { return },
                () = over(&worker, &mut stop) => return,
            }
        }
        let began = Instant::now();
        let connected = tokio::select! {
            connected = worker.connector.connect(&sessions) => connected,
            () = over(&worker, &mut stop) => return,
        };
        let goes_on = match connected {
            Ok(link) => {
                worker.on_connected(&link.agreed);
                match load(&worker, &lane, link, began, (&mut sessions, &mut stop)).await {
                    SlotEnd::Finished => return,
                    SlotEnd::Spent => {
                        lane = Arc::new(lane.successor());
                        patience = Patience::new();
                        continue;
                    }
                    SlotEnd::Lost => {}
                }
                worker.tally().lost += 1;
                let was_used = lane.was_used.load(Relaxed);
                if lane.first_byte.lock().is_some() {
                    patience = Patience::new();
                }
                lane = Arc::new(lane.successor());
                if began.elapsed() >= SHORT {
                    continue;
                }
                // A server that always hangs up is treated like none.
                was_used || give_one_up(&worker, &lane, began, HUNG_UP.to_owned())
            }
            Err(error) => on_refused(&worker, &lane, began, error),
        };
        let pause = patience.pause().filter(|_| goes_on);
        let Some(pause) = pause else { return };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = over(&worker, &mut stop) => return,
        }
    }
}

/// Waits until the request of the next connection is due, so that the connection is made for it. Returns
/// false if no request is left.
async fn next_is_due(worker: &Worker, lane: &Lane) -> bool {
    let Some(ticket) = lane.next(worker) else {
        return false;
    };
    let due = ticket.due;
    lane.keep(ticket);
    if let Some(due) = due
        && due > Instant::now()
    {
        worker.alarm.wait(due).await;
    }
    true
}

/// Counts a connection that could not be made. Returns false when the run cannot continue.
fn on_refused(worker: &Worker, lane: &Lane, began: Instant, error: CannotConnect) -> bool {
    worker.tally().refused += 1;
    if !worker.was_ever_connected() {
        worker.tally().failure.get_or_insert(error.failure);
        return false;
    }
    give_one_up(worker, lane, began, error.label)
}

/// Counts a request without a connection as failed, so that a run with a number of requests ends although
/// the server does not answer. Returns false when no request is left.
fn give_one_up(worker: &Worker, lane: &Lane, began: Instant, label: String) -> bool {
    if lane.next(worker).is_none() {
        return false;
    }
    worker.tally().on_error(began, Instant::now(), label, false);
    true
}

/// Runs the slots of a connection until it is lost or no request is left.
async fn load(
    worker: &Arc<Worker>,
    lane: &Arc<Lane>,
    link: Link,
    began: Instant,
    (sessions, stop): (&mut Sessions, &mut watch::Receiver<bool>),
) -> SlotEnd {
    let connected = Instant::now();
    let Link {
        sender, carrier, ..
    } = link;
    let mut slots = JoinSet::new();
    let count = match sender.spoken() {
        _ if worker.plan.closes => 1,
        Spoken::Http1 => 1,
        Spoken::Http2 | Spoken::Http3 => worker.plan.streams,
    };
    let others = (1..count)
        .filter_map(|_| sender.another())
        .collect::<Vec<_>>();
    let last = (worker.plan.resume == Resume::EarlyData).then(|| sender.another());
    for sender in others.into_iter().chain([sender]) {
        slots.spawn(slot::run(worker.clone(), lane.clone(), sender));
    }
    let mut end = SlotEnd::Finished;
    loop {
        tokio::select! {
            joined = slots.join_next() => match joined {
                Some(Ok(SlotEnd::Finished)) => {}
                Some(Ok(other)) => end = other,
                // Only the arms below abort slots.
                Some(Err(error)) => worker.tally().count_error(format!("bug: {error}")),
                None => break,
            },
            () = carrier.is_refused() => {
                let under_way = slots.len() as u64;
                slots.shutdown().await;
                on_gone(worker, under_way);
                end = SlotEnd::Lost;
                break;
            }
            () = over(worker, stop) => {
                slots.shutdown().await;
                end = SlotEnd::Finished;
                break;
            }
        }
    }
    if let (SlotEnd::Spent, Some(sender)) = (end, last.flatten()) {
        let settings = carrier.settings(&sender).await;
        sessions.settings = settings.or(sessions.settings);
    }
    let (_, early_data) = carrier.resumption();
    if early_data == EarlyData::Rejected && end == SlotEnd::Lost {
        // HTTP/3 needs another connection then (RFC 9001 §4.6.2).
        end = SlotEnd::Spent;
    }
    record(worker, lane, (began, connected), &carrier);
    if end == SlotEnd::Spent {
        // The next connection does not wait for the end of this one.
        tokio::spawn(carrier.close());
        return end;
    }
    carrier.close().await;
    let has_more = !lane.left_behind.lock().is_empty();
    if end == SlotEnd::Lost && !has_more && worker.schedule.is_exhausted(Instant::now()) {
        // The server closed the connection after the last request.
        return SlotEnd::Finished;
    }
    end
}

/// Counts a connection that is over.
fn record(worker: &Worker, lane: &Lane, (began, connected): (Instant, Instant), carrier: &Carrier) {
    let (is_resumed, early_data) = carrier.resumption();
    if let Some(refusal) = carrier.refusal() {
        let mut tally = worker.tally();
        // A request may have failed with the same error.
        if !tally.errors.contains_key(refusal) {
            tally.count_error(refusal.to_owned());
        }
    }
    let (received, sent, quic) = carrier.counters();
    let measured_from = worker.schedule.measured_from().max(began);
    let first_byte = *lane.first_byte.lock();
    worker.tally().connections.push(ConnectionRecord {
        connect: carrier.handshake_time().unwrap_or(connected - began),
        is_resumed,
        early_data,
        first_byte: first_byte.map(|at| at - began),
        requests: lane.answered.load(Relaxed),
        measured: Instant::now().saturating_duration_since(measured_from),
        received,
        sent,
        quic,
    });
}

/// Counts the requests in flight as failed, because the server's process has ended.
fn on_gone(worker: &Worker, under_way: u64) {
    let now = Instant::now();
    let mut tally = worker.tally();
    for _ in 0..under_way {
        tally.on_error(now, now, REFUSED.to_owned(), false);
    }
}

/// Resolves when requests in flight are to be abandoned.
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

/// A connection that lived for less time is not replaced at once.
const SHORT: Duration = Duration::from_millis(20);

const HUNG_UP: &str = "connection closed by the server";

/// The time limit and the pauses of attempts to reconnect.
#[derive(Debug)]
struct Patience {
    began: Instant,
    next: Duration,
}

impl Patience {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            next: FIRST_PAUSE,
        }
    }

    /// Returns the pause before the next attempt, or `None` to give up.
    fn pause(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST_PAUSE);
        (self.began.elapsed() < GIVE_UP).then_some(pause)
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time limit of attempts; a server that restarts is back by then.
const GIVE_UP: Duration = Duration::from_secs(30);
