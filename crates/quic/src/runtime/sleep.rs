//! Waiting for a point in time.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::current::Current;
use super::traits::Timer;

/// A timer that can be set again.
#[derive(Debug)]
pub(crate) enum Alarm {
    Tokio(Pin<Box<tokio::time::Sleep>>),
    Runtime(Box<dyn Timer>),
}

impl Alarm {
    pub(crate) fn new(runtime: &Current) -> Self {
        match runtime {
            Current::Tokio => {
                let now = runtime.now();
                Self::Tokio(Box::pin(tokio::time::sleep_until(now.into())))
            }
            Current::Entered(runtime) => Self::Runtime(runtime.timer()),
        }
    }

    /// Wakes the task at `deadline`, which costs two locks of the runtime, so it should be set
    /// rarely. Returns `Ready` if it has already passed.
    pub(crate) fn set(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tokio(sleep) => {
                sleep.as_mut().reset(deadline.into());
                sleep.as_mut().poll(cx)
            }
            Self::Runtime(timer) => timer.set(deadline, cx),
        }
    }

    /// Returns true if the last deadline has passed and no task will be woken any more.
    pub(crate) fn is_elapsed(&self) -> bool {
        match self {
            Self::Tokio(sleep) => sleep.is_elapsed(),
            Self::Runtime(timer) => timer.is_elapsed(),
        }
    }
}

/// Waits for `duration`, on tokio with its accuracy of a millisecond, in a world exactly.
///
/// A duration beyond the range of the clock never ends.
///
/// # Cancel safety
/// Safe; a later call starts again.
///
/// # Panics
/// Panics if there is no runtime, neither tokio's nor an [entered](super::enter) one.
pub fn sleep(duration: Duration) -> Sleep {
    let runtime = Current::get();
    // The same limit as tokio's: clocks of some systems end not much later.
    let never = Duration::from_secs(86_400 * 365 * 30);
    let deadline = runtime.now() + duration.min(never);
    Sleep::new(&runtime, deadline)
}

/// Waits until `deadline`, an instant of [`now`](super::now).
///
/// # Cancel safety
/// Safe.
///
/// # Panics
/// Panics under the conditions of [`sleep`].
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(&Current::get(), deadline)
}

/// The future of [`sleep`], which resolves at its deadline.
#[derive(Debug)]
#[must_use = "nothing waits until it is awaited"]
pub struct Sleep {
    alarm: Alarm,
    deadline: Instant,
    is_over: bool,
}

impl Sleep {
    fn new(runtime: &Current, deadline: Instant) -> Self {
        Self {
            alarm: Alarm::new(runtime),
            deadline,
            is_over: false,
        }
    }

    /// Waits until `deadline` instead.
    pub(super) fn reset(&mut self, deadline: Instant) {
        self.deadline = deadline;
        self.is_over = false;
    }

    /// Returns the time at which it resolves.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(());
        }
        let poll = this.alarm.set(this.deadline, cx);
        this.is_over = poll.is_ready();
        poll
    }
}

/// Waits for `future`, at most for `duration`.
///
/// # Errors
/// Returns [`Elapsed`] if the time runs out first; the future is then dropped. A future that is
/// ready at once completes even with a duration of zero.
///
/// # Cancel safety
/// The same as for `future`.
///
/// # Panics
/// Panics under the conditions of [`sleep`].
pub async fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future.into_future());
    let mut sleep = sleep(duration);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut sleep).poll(cx).map(|()| Err(Elapsed))
    })
    .await
}

/// The error of a [`timeout`] whose time ran out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timeout has elapsed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}
