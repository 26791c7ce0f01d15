//! Futures that are polled where they are created, and become tasks only if they have to wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_quic::runtime;

/// Decides which answers of a connection are polled at once, and which begin in tasks.
///
/// A task costs as much as the rest of a small request. So an answer is polled in the task that
/// reads the connection, and becomes a task of its own if it has to wait. After one that waited or
/// took long, the next ones begin in tasks, where other cores can take them: 1, and 3, 7 and 15 if
/// that happens again.
#[derive(Clone, Copy, Default, Debug)]
pub struct FirstPolls {
    /// The time at which the last one was done.
    last: Option<Instant>,
    /// Number of answers that begin in tasks before the next is polled at once.
    in_tasks: u32,
    /// The value of `in_tasks` after the last answer that was not done soon; 0 if the last one was.
    patience: u32,
}

/// The result of a first poll.
pub enum First<F> {
    /// The answer is complete. Its memory can be reused.
    Done(Pin<Box<F>>),
    /// The answer has to wait. It must be spawned and polled again, with a waker of its task.
    Waits(Pin<Box<F>>),
    /// The answer panicked and was dropped, as it would have been in a task.
    Panicked,
}

/// A computation of this length is worth a task.
pub(crate) const LONG: Duration = Duration::from_micros(50);

/// Maximum of answers that begin in tasks after several that were not done at once, or not soon.
pub(crate) const CAREFUL: u32 = 15;

impl FirstPolls {
    /// Returns true if the next answer should begin in a task.
    pub fn is_careful(&mut self) -> bool {
        let is_careful = self.in_tasks > 0;
        self.in_tasks = self.in_tasks.saturating_sub(1);
        is_careful
    }

    /// Polls an answer for the first time.
    pub fn poll<F: Future<Output = ()>>(&mut self, mut answer: Pin<Box<F>>) -> First<F> {
        // Reading the clock has a cost, so the end of one answer is the beginning of the next.
        let began = self.last.take().unwrap_or_else(runtime::now);
        let mut cx = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => {
                self.grow_careful();
                First::Waits(answer)
            }
            Ok(Poll::Ready(())) => {
                let now = runtime::now();
                match now - began > LONG {
                    true => self.grow_careful(),
                    false => self.patience = 0,
                }
                self.last = Some(now);
                First::Done(answer)
            }
            Err(_) => First::Panicked,
        }
    }

    /// Makes more answers begin in tasks. One in fifty that waits, for a disk or a lock, is a weak
    /// hint about the next; several in succession are a strong one.
    fn grow_careful(&mut self) {
        self.patience = (2 * self.patience + 1).min(CAREFUL);
        self.in_tasks = self.patience;
    }

    /// Records that the next answer does not begin when the last one ended.
    pub fn pause(&mut self) {
        self.last = None;
    }
}
