//! The requests of a connection that wait to be accepted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;
use courser_http3::Priority;
use courser_quic::hooks::RecvStreamHooks as _;
use courser_quic::{RecvStream, SendStream};

use super::waiting::WaitingResponses;

/// The requests of a connection that wait to be accepted, and the number of those that were.
///
/// Extensions may allow the peer more streams than QUIC does by default. The requests that run at the same time remain as
/// many as QUIC allowed before (limit K591); the streams of further ones wait, and give no credit for what was read of them.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// False on most connections, which need not take the lock for each request.
    is_limited: AtomicBool,
    /// True while a request waits.
    has_waiting: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of requests that may run.
    limit: u64,
    running: u64,
    /// As many as the streams that the peer may open, at most.
    waiting: VecDeque<Arrival>,
    /// The task that accepts requests.
    acceptor: Option<ForeignWaker>,
    /// Time for the first bytes of a stream.
    longest: Option<Duration>,
    /// Streams whose first bytes have not arrived.
    unread: usize,
}

/// The stream of a request, with the bytes that were read.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
    pub(super) first: Bytes,
    /// The priority of a PRIORITY_UPDATE frame before the request.
    pub(super) update: Option<Priority>,
}

impl Arrivals {
    /// Limits the number of requests that run at the same time.
    pub(super) fn set_limit(&self, requests: u64) {
        self.state.hold().limit = requests.max(1);
        self.is_limited.store(true, Relaxed);
    }

    /// Returns the number of requests that may run at the same time, or 0 if they are not counted.
    pub(super) fn limit(&self) -> u64 {
        self.state.hold().limit
    }

    /// Returns true if requests are counted.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }

    /// Returns true if a request waits.
    pub(super) fn has_waiting(&self) -> bool {
        self.has_waiting.load(Relaxed)
    }

    /// Counts a stream whose first bytes are read by a task of its own.
    pub(super) fn on_unread(&self) {
        self.state.hold().unread += 1;
    }

    /// Returns the longest time for the first bytes of a stream, if requests have one.
    pub(super) fn longest(&self) -> Option<Duration> {
        self.state.hold().longest
    }

    /// Limits the time for the first bytes of a stream.
    pub(super) fn set_longest(&self, limit: Duration) {
        self.state.hold().longest = Some(limit);
    }

    /// Counts a request that ends.
    pub(super) fn on_ended(&self) {
        let mut state = self.state.hold();
        state.running = state.running.saturating_sub(1);
        let woken = match state.waiting.is_empty() {
            true => None,
            false => state.acceptor.take(),
        };
        drop(state);
        woken.into_iter().for_each(ForeignWaker::wake);
    }

    /// Returns true if no stream waits to be read or to be accepted.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state.hold();
        state.waiting.is_empty() && state.unread == 0
    }

    /// Drops the streams of a closed connection.
    pub(super) fn on_end(&self) {
        let waiting = std::mem::take(&mut self.state.hold().waiting);
        drop(waiting);
    }

    /// Adds a request. Returns it instead if it may run at once.
    pub(super) fn add(
        &self,
        arrival: Arrival,
        responses: &WaitingResponses,
        cx: &Context<'_>,
    ) -> Option<Arrival> {
        let mut state = self.state.hold();
        let is_first = state.waiting.is_empty();
        if is_first && state.may_run(self.is_limited()) && responses.poll_accept(cx).is_ready() {
            state.running += 1;
            return Some(arrival);
        }
        drop(state);
        arrival.hold();
        self.state.hold().waiting.push_back(arrival);
        self.has_waiting.store(true, Relaxed);
        None
    }

    /// Adds the request, if it is one, whose beginning another task has read than the one that accepts requests.
    pub(super) fn on_read(&self, request: Option<Arrival>) {
        request.iter().for_each(Arrival::hold);
        let mut state = self.state.hold();
        state.unread -= 1;
        if let Some(arrival) = request {
            state.waiting.push_back(arrival);
            self.has_waiting.store(true, Relaxed);
        }
        let woken = state.acceptor.take();
        drop(state);
        woken.into_iter().for_each(ForeignWaker::wake);
    }

    /// Takes a request that may run now. Otherwise the task is woken when there may be one.
    pub(super) fn poll_take(
        &self,
        responses: &WaitingResponses,
        cx: &Context<'_>,
    ) -> Poll<Arrival> {
        let waker = ForeignWaker::of(cx);
        let mut state = self.state.hold();
        let may_run = !state.waiting.is_empty() && state.may_run(self.is_limited());
        if may_run
            && responses.poll_accept(cx).is_ready()
            && let Some(arrival) = state.waiting.pop_front()
        {
            state.running += 1;
            self.has_waiting.store(!state.waiting.is_empty(), Relaxed);
            drop(state);
            arrival.release();
            return Poll::Ready(arrival);
        }
        state.acceptor = Some(waker);
        Poll::Pending
    }
}

impl Arrival {
    /// Withholds the bytes that were read from flow control while the request waits, so that it takes no more memory than
    /// an unread one.
    fn hold(&self) {
        if !self.first.is_empty() {
            self.receive.hold_credit(self.first.len() as u64);
        }
    }

    fn release(&self) {
        if !self.first.is_empty() {
            self.receive.release_credit(self.first.len() as u64);
        }
    }
}

impl State {
    const fn may_run(&self, is_limited: bool) -> bool {
        !is_limited || self.running < self.limit
    }
}
