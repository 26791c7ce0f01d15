//! Response futures that are polled where they are created, and become tasks only if they must wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_quic::runtime;

/// Decides which response futures of a connection are polled at once, and which start in tasks.
///
/// A task costs as much as the rest of a small request. So a future is polled in the task that reads the
/// connection, and becomes a task of its own if it must wait. After a future that waited or took long, the next
/// ones start in tasks, where other cores can run them: 1, and then 3, 7 and 15 if that happens again.
#[derive(Clone, Copy, Default, Debug)]
pub struct FirstPolls {
    /// The time at which the last future was done.
    last: Option<Instant>,
    /// Number of futures that start in tasks before the next one is polled at once.
    in_tasks: u32,
    /// The value of `in_tasks` after the last future that was not done soon, or 0 if the last one was.
    penalty: u32,
}

/// The result of a first poll.
pub enum First<F: Future + ?Sized> {
    /// The future is complete with this output. Its memory can be reused.
    Done(Pin<Box<F>>, F::Output),
    /// The future must wait. It must be spawned and polled again with the waker of its task.
    Waits(Pin<Box<F>>),
    /// The future panicked and was dropped, as it would have been in a task.
    Panicked,
}

/// Duration of a computation that justifies a task.
pub(crate) const LONG: Duration = Duration::from_micros(50);

/// Largest number of futures that start in tasks after several were not done at once or not soon.
pub(crate) const CAREFUL: u32 = 15;

impl FirstPolls {
    /// Returns true if the next future should start in a task.
    pub fn is_careful(&mut self) -> bool {
        let is_careful = self.in_tasks > 0;
        self.in_tasks = self.in_tasks.saturating_sub(1);
        is_careful
    }

    /// Polls a future for the first time.
    pub fn poll<F: Future + ?Sized>(&mut self, mut answer: Pin<Box<F>>) -> First<F> {
        // Reading the clock has a cost, so the end of one future is the start of the next.
        let began = self.last.take().unwrap_or_else(runtime::now);
        let mut cx = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => {
                self.grow_careful();
                First::Waits(answer)
            }
            Ok(Poll::Ready(output)) => {
                let now = runtime::now();
                match now - began > LONG {
                    true => self.grow_careful(),
                    false => self.penalty = 0,
                }
                self.last = Some(now);
                First::Done(answer, output)
            }
            Err(_) => First::Panicked,
        }
    }

    /// Lets the next future decide alone, which belongs to the same response as one that was just polled. `before`
    /// is the state before the first of them.
    pub(crate) fn keep_penalty(&mut self, before: Self) {
        self.penalty = self.penalty.max(before.penalty);
    }

    /// Makes more futures start in tasks. One in fifty that waits, for a disk or a lock, is a weak hint about
    /// the next; several consecutive ones are a strong one.
    fn grow_careful(&mut self) {
        self.penalty = (2 * self.penalty + 1).min(CAREFUL);
        self.in_tasks = self.penalty;
    }

    /// Records that the next future does not start when the last one ended.
    pub fn pause(&mut self) {
        self.last = None;
    }
}
