//! A sequence of requests on a connection, each sent after the response to the last one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

use courser_base::Mutex;
use tokio::sync::Notify;

use crate::counts::RequestTimes;
use crate::schedule::Ticket;
use crate::sender::{Answer, ExchangeError, Sender};
use crate::worker::Worker;

/// The state that the streams of one connection share.
#[derive(Debug, Default)]
pub(crate) struct StreamsState {
    /// Requests that must be sent again on the next connection.
    pub(crate) unfinished: Mutex<Vec<Ticket>>,
    /// True if the connection accepts no more requests.
    is_lost: AtomicBool,
    loss: Notify,
    /// True if a request was sent on the connection.
    pub(crate) was_used: AtomicBool,
    /// Requests with a response that count in the measurement.
    pub(crate) answered: AtomicU64,
    /// The time at which the first response began.
    pub(crate) first_byte: Mutex<Option<Instant>>,
}

/// The reason why a stream has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamEnd {
    /// No request is left.
    Finished,
    /// The connection accepts no more requests.
    Lost,
    /// The only request of the connection was sent ([`Plan::closes`](crate::Plan::closes)).
    Spent,
}

impl StreamsState {
    /// Notifies all streams that the connection accepts no more requests.
    pub(crate) fn mark_lost(&self) {
        self.is_lost.store(true, Relaxed);
        self.loss.notify_waiters();
    }

    /// Stores a request for the next connection.
    pub(crate) fn store(&self, ticket: Ticket) {
        self.unfinished.lock().push(ticket);
    }

    /// Returns the state for the next connection, with the requests that this one did not complete.
    pub(crate) fn successor(&self) -> Self {
        Self {
            unfinished: Mutex::new(std::mem::take(&mut *self.unfinished.lock())),
            ..Self::default()
        }
    }

    /// Returns the next request to send, if one is left.
    pub(crate) fn next(&self, worker: &Worker) -> Option<Ticket> {
        let left = self.unfinished.lock().pop();
        left.or_else(|| worker.schedule.next_ticket())
    }
}

/// Sends requests until none is left or the connection accepts no more.
pub(crate) async fn run(
    worker: Arc<Worker>,
    state: Arc<StreamsState>,
    mut sender: Sender,
) -> StreamEnd {
    let end = serve(&worker, &state, &mut sender).await;
    if end == StreamEnd::Lost {
        state.mark_lost();
    }
    end
}

async fn serve(worker: &Worker, state: &StreamsState, sender: &mut Sender) -> StreamEnd {
    let version = sender.version();
    let mut is_first = true;
    loop {
        if !sender.is_ready().await || state.is_lost.load(Relaxed) {
            return StreamEnd::Lost;
        }
        let Some(mut ticket) = state.next(worker) else {
            return StreamEnd::Finished;
        };
        if let Some(due) = ticket.due
            && due > Instant::now()
        {
            tokio::select! {
                () = worker.alarm.wait(due) => {}
                () = state.loss.notified() => {
                    state.store(ticket);
                    return StreamEnd::Lost;
                }
            }
        }
        let sent = Instant::now();
        if worker.schedule.is_over(sent) {
            return StreamEnd::Finished;
        }
        worker.on_sent(sent);
        state.was_used.store(true, Relaxed);
        let request = worker.plan.requests.get(ticket.number, version);
        let result = {
            // Pinned on the stack, because moving this large future costs as much as a lock.
            let mut exchange = pin!(sender.exchange(request));
            match worker.plan.timeout {
                None => exchange.await.map_err(Failed::Exchange),
                // Dropping the exchange cancels the request.
                Some(limit) => match tokio::time::timeout(limit, exchange.as_mut()).await {
                    Ok(result) => result.map_err(Failed::Exchange),
                    Err(_) => Err(Failed::TimedOut),
                },
            }
        };
        let over = match &result {
            Ok(answer) => answer.over,
            Err(_) => Instant::now(),
        };
        let times = RequestTimes {
            due: ticket.due,
            sent,
            over,
        };
        match result {
            Ok(answer) => {
                if std::mem::take(&mut is_first) {
                    state.first_byte.lock().get_or_insert(answer.head);
                }
                on_answer(worker, state, times, &answer);
            }
            Err(Failed::Exchange(error)) if error.is_unprocessed && ticket.tries < MAX_TRIES => {
                ticket.tries += 1;
                worker.on_unsent(sent);
                state.store(ticket);
            }
            Err(failed) => on_failed(worker, times, failed),
        }
        if worker.plan.closes {
            return StreamEnd::Spent;
        }
    }
}

enum Failed {
    Exchange(ExchangeError),
    TimedOut,
}

fn on_answer(worker: &Worker, state: &StreamsState, times: RequestTimes, answer: &Answer) {
    let counts = worker
        .counts()
        .on_answer(times, answer, worker.plan.is_corrected);
    if counts {
        state.answered.fetch_add(1, Relaxed);
    }
    log(worker, times, Some(answer.status));
}

fn on_failed(worker: &Worker, times: RequestTimes, failed: Failed) {
    let (label, timed_out) = match failed {
        Failed::Exchange(error) => (error.label, false),
        Failed::TimedOut => ("request timed out".to_owned(), true),
    };
    worker
        .counts()
        .on_error(times.sent, times.over, label, timed_out);
    log(worker, times, None);
}

/// Writes a line to the log, if there is one.
fn log(worker: &Worker, times: RequestTimes, status: Option<u16>) {
    let Some(log) = &worker.log else { return };
    let began = SystemTime::now()
        .checked_sub(times.sent.elapsed())
        .and_then(|began| began.duration_since(SystemTime::UNIX_EPOCH).ok())
        .unwrap_or_default();
    let status = status.map_or(-1, i32::from);
    let took = times.over - times.sent;
    log.write(&format!(
        "{}\t{status}\t{}\n",
        began.as_micros(),
        took.as_micros()
    ));
}

/// The number of retries of a request. A server that refuses it more often is faulty rather than shutting
/// down.
const MAX_TRIES: u8 = 3;
