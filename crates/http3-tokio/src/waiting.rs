//! A limit on the requests of a connection that wait for their client (attacks A24, A88).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;

/// Counts the responses of a connection that have waited for their client to take more, until they end, and the requests
/// whose header section is incomplete, until their service has to wait.
///
/// A response in progress takes a few kilobytes, and a client may open hundreds of requests without reading
/// any response. Beyond [`MAX_WAITING`] further requests are therefore accepted in proportion to the bytes that
/// the client has taken of these responses. Until then a request costs no more than its stream.
#[derive(Debug, Default)]
pub(super) struct WaitingResponses {
    /// False on most connections, which need not take the lock for each request.
    is_full: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Responses that have waited, requests without their whole header section, and those whose futures were not polled
    /// yet and may have to wait.
    waiting: u64,
    /// Bytes of these responses that were written since they first waited.
    taken: u64,
    /// The task that accepts requests, if there are too many waiting responses.
    accepting: Option<ForeignWaker>,
}

impl State {
    const fn is_full(&self) -> bool {
        self.waiting >= MAX_WAITING + self.taken / TAKEN_PER_WAITING
    }
}

impl WaitingResponses {
    /// Returns `Ready` if another request may be accepted.
    pub(super) fn poll_accept(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_full.load(Relaxed) {
            return Poll::Ready(());
        }
        let waker = ForeignWaker::of(cx);
        let mut state = self.state.hold();
        if !state.is_full() {
            return Poll::Ready(());
        }
        state.accepting = Some(waker);
        Poll::Pending
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.hold();
        change(&mut state);
        let is_full = state.is_full();
        self.is_full.store(is_full, Relaxed);
        let woken = match is_full {
            true => None,
            false => state.accepting.take(),
        };
        drop(state);
        woken.into_iter().for_each(ForeignWaker::wake);
    }
}

/// The part of one response in the [`WaitingResponses`] of its connection.
#[derive(Debug, Default)]
pub(super) struct Waiting(Option<u64>);

impl Waiting {
    /// Counts the response, because it waits for the client.
    pub(super) fn on_waiting(&mut self, all: &WaitingResponses) {
        if self.0.is_none() {
            self.0 = Some(0);
            all.change(|state| state.waiting += 1);
        }
    }

    /// Counts bytes that the client takes, if the response has waited.
    pub(super) fn on_written(&mut self, bytes: usize, all: &WaitingResponses) {
        if let Some(taken) = &mut self.0 {
            *taken += bytes as u64;
            all.change(|state| state.taken += bytes as u64);
        }
    }

    /// Ends the part of the response.
    pub(super) fn end(&mut self, all: &WaitingResponses) {
        if let Some(taken) = self.0.take() {
            all.change(|state| {
                state.waiting -= 1;
                state.taken -= taken;
            });
        }
    }
}

/// A response whose future was not polled yet, which counts like one that waits until this is dropped.
#[derive(Debug)]
pub(super) struct Unpolled(Arc<WaitingResponses>);

impl Unpolled {
    pub(super) fn new(all: &Arc<WaitingResponses>) -> Self {
        all.change(|state| state.waiting += 1);
        Self(all.clone())
    }
}

impl Drop for Unpolled {
    fn drop(&mut self) {
        self.0.change(|state| state.waiting -= 1);
    }
}

/// Number of responses that may wait for a client that takes nothing (limit K430): the requests that a client may
/// expect to be answered at the same time (RFC 9114 §6.1).
const MAX_WAITING: u64 = 100;

/// Number of bytes taken for which another response may wait.
const TAKEN_PER_WAITING: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn waiting(all: &WaitingResponses, count: u64) -> Vec<Waiting> {
        let one = |_| {
            let mut waiting = Waiting::default();
            waiting.on_waiting(all);
            // A response counts once, however often it waits.
            waiting.on_waiting(all);
            waiting
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn requests_wait_while_too_many_responses_do() {
        let (all, wakes) = (WaitingResponses::default(), Arc::new(Wakes::default()));
        let waker = Waker::from(wakes.clone());
        let cx = Context::from_waker(&waker);
        let mut responses = waiting(&all, MAX_WAITING - 1);
        assert_eq!(all.poll_accept(&cx), Poll::Ready(()));
        responses.extend(waiting(&all, 1));
        assert_eq!(all.poll_accept(&cx), Poll::Pending);
        responses[3].end(&all);
        assert_eq!(wakes.0.load(Relaxed), 1);
        assert_eq!(all.poll_accept(&cx), Poll::Ready(()));
        responses[3].end(&all);
        responses.iter_mut().for_each(|waiting| waiting.end(&all));
        let state = all.state.hold();
        assert_eq!((state.waiting, state.taken), (0, 0));
    }

    #[test]
    fn responses_that_were_not_polled_yet_count() {
        let all = Arc::new(WaitingResponses::default());
        let cx = Context::from_waker(Waker::noop());
        let mut unpolled: Vec<_> = (0..MAX_WAITING).map(|_| Unpolled::new(&all)).collect();
        assert_eq!(all.poll_accept(&cx), Poll::Pending);
        unpolled.pop();
        assert_eq!(all.poll_accept(&cx), Poll::Ready(()));
    }

    #[test]
    fn client_that_reads_may_have_more_responses() {
        let (all, wakes) = (WaitingResponses::default(), Arc::new(Wakes::default()));
        let waker = Waker::from(wakes.clone());
        let cx = Context::from_waker(&waker);
        let mut responses = waiting(&all, MAX_WAITING);
        let taken = usize::try_from(TAKEN_PER_WAITING).expect("small");
        responses[0].on_written(taken - 1, &all);
        assert_eq!(all.poll_accept(&cx), Poll::Pending);
        responses[1].on_written(1, &all);
        assert_eq!(wakes.0.load(Relaxed), 1);
        assert_eq!(all.poll_accept(&cx), Poll::Ready(()));
        // What a response has taken counts until it ends, and not if it never waited.
        responses[0].end(&all);
        Waiting::default().on_written(10 * taken, &all);
        responses.extend(waiting(&all, 1));
        assert_eq!(all.poll_accept(&cx), Poll::Pending);
    }
}
