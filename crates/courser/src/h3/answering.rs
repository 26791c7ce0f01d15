//! Where requests are answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::runtime;

/// Answers requests of one connection: at once those that can be, the others in tasks.
///
/// A task costs as much as the rest of a small request. So an answer is tried where the connection
/// is read; what has to wait moves to a task, and what took long has the next requests begin in
/// tasks, where other cores can take them.
#[derive(Debug)]
pub(super) struct Answering<F> {
    active: Arc<Active>,
    /// Where the last one was, for the next one.
    place: Option<Pin<Box<F>>>,
    /// When the last one was done.
    last: Option<Instant>,
    /// As many requests begin in tasks before the next is tried at once.
    in_tasks: u32,
    /// Answered since the reader of the connection let others run.
    in_a_row: u32,
}

/// A computation of this length is worth a task.
const LONG: Duration = Duration::from_micros(50);

/// Requests that begin in tasks after one that was not answered at once, or not soon.
const CAREFUL: u32 = 15;

/// Answers after which other tasks of the thread have their turn.
const MOST_IN_A_ROW: u32 = 64;

impl<F: Future<Output = ()> + Send + 'static> Answering<F> {
    pub(super) fn new(active: Arc<Active>) -> Self {
        Self {
            active,
            place: None,
            last: None,
            in_tasks: 0,
            in_a_row: 0,
        }
    }

    /// Answers a request or has it answered.
    pub(super) fn begin(&mut self, answer: F) {
        if self.in_tasks > 0 {
            self.in_tasks -= 1;
            self.spawn(Box::pin(answer));
            return;
        }
        let began = match self.last.take() {
            // To look at the clock is not free.
            Some(last) => last,
            None => runtime::now(),
        };
        let mut answer = match self.place.take() {
            Some(mut place) => {
                place.set(answer);
                place
            }
            None => Box::pin(answer),
        };
        // Whoever spawns it polls it again, with a waker that counts.
        let mut cx = Context::from_waker(Waker::noop());
        // A service that panics ends its own request, as it would in a task.
        let poll = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut cx)));
        match poll {
            Ok(Poll::Pending) => {
                self.in_tasks = CAREFUL;
                self.spawn(answer);
            }
            Ok(Poll::Ready(())) => {
                let now = runtime::now();
                if now - began > LONG {
                    self.in_tasks = CAREFUL;
                }
                (self.place, self.last) = (Some(answer), Some(now));
            }
            Err(_) => {}
        }
        self.in_a_row += 1;
    }

    /// The next request has to be waited for.
    pub(super) fn pause(&mut self) {
        self.last = None;
    }

    /// Lets other tasks run when they have waited long enough.
    pub(super) async fn rest(&mut self) {
        if self.in_a_row >= MOST_IN_A_ROW {
            self.in_a_row = 0;
            self.pause();
            yield_now().await;
        }
    }

    fn spawn(&self, answer: Pin<Box<F>>) {
        let counted = Counted::new(&self.active);
        runtime::spawn(async move {
            answer.await;
            drop(counted);
        });
    }
}

async fn yield_now() {
    let mut has_yielded = false;
    std::future::poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Requests that are being answered.
#[derive(Debug, Default)]
pub(super) struct Active(Mutex<(usize, Option<Waker>)>);

impl Active {
    /// Ready when there is none.
    pub(super) fn poll_none(&self, cx: &Context<'_>) -> Poll<()> {
        let mut active = self.lock();
        if active.0 == 0 {
            return Poll::Ready(());
        }
        active.1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
struct Counted(Arc<Active>);

impl Counted {
    fn new(active: &Arc<Active>) -> Self {
        active.lock().0 += 1;
        Self(active.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut active = self.0.lock();
        active.0 -= 1;
        let woken = if active.0 == 0 { active.1.take() } else { None };
        drop(active);
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
