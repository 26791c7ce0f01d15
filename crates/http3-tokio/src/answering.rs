//! Execution of the futures that answer requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_base::foreign::ForeignWaker;
use courser_base::{Held, Mutex};
use courser_quic::runtime;

use crate::first_poll::{First, FirstPolls};

/// Answers the requests of one connection: requests that can be answered at once in the task that
/// reads the connection, all others in tasks of their own.
#[derive(Debug)]
pub(super) struct Answering<F> {
    active: Arc<Active>,
    first: FirstPolls,
    /// The memory of the last answer, recycled for the next one.
    place: Option<Pin<Box<F>>>,
    /// Number of answers since the task that reads the connection last yielded.
    in_a_row: u32,
}

/// Number of answers after which other tasks of the thread may run.
const MOST_IN_A_ROW: u32 = 64;

impl<F: Future<Output = ()> + Send + 'static> Answering<F> {
    pub(super) fn new(active: Arc<Active>) -> Self {
        Self {
            active,
            first: FirstPolls::default(),
            place: None,
            in_a_row: 0,
        }
    }

    /// Answers a request at once, or in a task.
    pub(super) fn begin(&mut self, answer: F) {
        if self.first.is_careful() {
            self.spawn(Box::pin(answer));
            return;
        }
        let answer = match self.place.take() {
            Some(mut place) => {
                place.set(answer);
                place
            }
            None => Box::pin(answer),
        };
        match self.first.poll(answer) {
            First::Done(place) => self.place = Some(place),
            First::Waits(answer) => self.spawn(answer),
            First::Panicked => {}
        }
        self.in_a_row += 1;
    }

    /// Notes that the next request has not arrived yet. An idle connection keeps no memory for it.
    pub(super) fn pause(&mut self) {
        self.place = None;
        self.first.pause();
    }

    /// Lets other tasks run if they have waited long enough.
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
pub(super) struct Active(Mutex<(usize, Option<ForeignWaker>)>);

impl Active {
    /// Returns `Ready` if there are none.
    pub(super) fn poll_none(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = ForeignWaker::of(cx);
        let mut active = self.lock();
        if active.0 == 0 {
            return Poll::Ready(());
        }
        active.1 = Some(waker);
        Poll::Pending
    }

    fn lock(&self) -> Held<'_, (usize, Option<ForeignWaker>)> {
        self.0.hold()
    }
}

/// Counts one of them until it is dropped.
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
        woken.into_iter().for_each(ForeignWaker::wake);
    }
}

#[cfg(test)]
mod tests;
