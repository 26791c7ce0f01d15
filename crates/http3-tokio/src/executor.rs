//! Execution of the response futures of a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::Mutex;
use courser_base::foreign::ForeignWaker;
use courser_quic::runtime;

use crate::first_poll::{First, FirstPolls};

/// Runs the response futures of one connection: those that are ready at the first poll in the task that reads
/// the connection, and all others in tasks of their own.
#[derive(Debug)]
pub(super) struct Executor<F> {
    active: Arc<ActiveRequests>,
    first: FirstPolls,
    /// The memory of the previous future, recycled for the next one.
    recycled: Option<Pin<Box<F>>>,
    /// Number of responses since the task that reads the connection last yielded.
    consecutive: u32,
}

/// Number of responses after which other tasks of the thread may run.
const MAX_CONSECUTIVE: u32 = 64;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> {
    pub(super) fn new(active: Arc<ActiveRequests>) -> Self {
        Self {
            active,
            first: FirstPolls::default(),
            recycled: None,
            consecutive: 0,
        }
    }

    /// Responds to a request at once, or in a task.
    pub(super) fn begin(&mut self, answer: F) {
        if self.first.is_careful() {
            self.spawn(Box::pin(answer));
            return;
        }
        let answer = match self.recycled.take() {
            Some(mut recycled) => {
                recycled.set(answer);
                recycled
            }
            None => Box::pin(answer),
        };
        match self.first.poll(answer) {
            First::Done(answer) => self.recycled = Some(answer),
            First::Waits(answer) => self.spawn(answer),
            First::Panicked => {}
        }
        self.consecutive += 1;
    }

    /// Releases the recycled memory, because the next request has not arrived yet.
    pub(super) fn pause(&mut self) {
        self.recycled = None;
        self.first.pause();
    }

    /// Lets other tasks of the thread run after many consecutive responses.
    pub(super) async fn yield_if_due(&mut self) {
        if self.consecutive >= MAX_CONSECUTIVE {
            self.consecutive = 0;
            self.pause();
            yield_now().await;
        }
    }

    fn spawn(&self, answer: Pin<Box<F>>) {
        let active = ActiveRequest::new(&self.active);
        runtime::spawn(async move {
            answer.await;
            drop(active);
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

/// Counts the requests of a connection whose response futures run in tasks of their own.
#[derive(Debug, Default)]
pub(super) struct ActiveRequests(Mutex<ActiveCount>);

#[derive(Debug, Default)]
struct ActiveCount {
    requests: usize,
    /// The task that waits until there are none.
    waiting: Option<ForeignWaker>,
}

impl ActiveRequests {
    /// Returns `Ready` if there are none.
    pub(super) fn poll_none(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = ForeignWaker::of(cx);
        let mut count = self.0.hold();
        if count.requests == 0 {
            return Poll::Ready(());
        }
        count.waiting = Some(waker);
        Poll::Pending
    }
}

/// A request that counts as active until this is dropped.
struct ActiveRequest(Arc<ActiveRequests>);

impl ActiveRequest {
    fn new(active: &Arc<ActiveRequests>) -> Self {
        active.0.hold().requests += 1;
        Self(active.clone())
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut count = self.0.0.hold();
        count.requests -= 1;
        let woken = match count.requests {
            0 => count.waiting.take(),
            _ => None,
        };
        drop(count);
        woken.into_iter().for_each(ForeignWaker::wake);
    }
}

#[cfg(test)]
mod tests;
