//! A timer with microsecond precision. tokio's timers have millisecond precision, which would add to the
//! latency of every scheduled request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use courser_base::Mutex;
use tokio::sync::{Notify, oneshot};

/// Wakes tasks at given times. Each thread has one.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    sleepers: Mutex<BinaryHeap<Reverse<Sleeper>>>,
    /// Notified when a task waits for an earlier time than all others.
    is_earlier: Notify,
}

#[derive(Debug)]
struct Sleeper {
    due: Instant,
    waker: oneshot::Sender<()>,
}

impl Alarm {
    /// Waits until `due`, while [`Self::run`] runs.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the wait and has no other effect.
    pub(crate) async fn wait(&self, due: Instant) {
        let (waker, woken) = oneshot::channel();
        let is_first = {
            let mut sleepers = self.sleepers.lock();
            let is_first = sleepers.peek().is_none_or(|first| due < first.0.due);
            sleepers.push(Reverse(Sleeper { due, waker }));
            is_first
        };
        if is_first {
            self.is_earlier.notify_one();
        }
        // The sender is dropped only with the alarm.
        let _ = woken.await;
    }

    /// Wakes tasks when they are due. Never returns.
    pub(crate) async fn run(&self) {
        let clock = clock::Clock::new();
        loop {
            match self.wake_due(Instant::now()) {
                None => self.is_earlier.notified().await,
                Some(next) => tokio::select! {
                    () = clock.until(next) => {}
                    () = self.is_earlier.notified() => {}
                },
            }
        }
    }

    /// Wakes the tasks that are due. Returns the time at which the next one is due.
    fn wake_due(&self, now: Instant) -> Option<Instant> {
        let mut sleepers = self.sleepers.lock();
        while let Some(Reverse(first)) = sleepers.peek() {
            if first.due > now {
                return Some(first.due);
            }
            if let Some(Reverse(sleeper)) = sleepers.pop() {
                // A cancelled task has dropped its receiver.
                let _ = sleeper.waker.send(());
            }
        }
        None
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Sleeper {}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

#[cfg(target_os = "linux")]
mod clock {
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel (timerfd), whose descriptor becomes readable when it expires. `None` if it cannot be
    /// created, in which case tokio's timer is used.
    pub(crate) struct Clock(Option<AsyncFd<OwnedFd>>);

    #[expect(
        deprecated,
        reason = "its replacement is unsafe; no other code has this descriptor"
    )]
    fn register(timer: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
        AsyncFd::new(timer).ok()
    }

    impl Clock {
        pub(crate) fn new() -> Self {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags);
            Self(timer.ok().and_then(register))
        }

        pub(crate) async fn until(&self, due: Instant) {
            if self.try_until(due).await.is_none() {
                tokio::time::sleep_until(due.into()).await;
            }
        }

        async fn try_until(&self, due: Instant) -> Option<()> {
            let timer = self.0.as_ref()?;
            let left = due.saturating_duration_since(Instant::now());
            let zero = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            let once = Itimerspec {
                it_interval: zero,
                it_value: Timespec {
                    tv_sec: left.as_secs().try_into().ok()?,
                    // A value of zero would disarm the timer.
                    tv_nsec: left.subsec_nanos().max(1).into(),
                },
            };
            timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).ok()?;
            let mut readable = timer.readable().await.ok()?;
            let mut count = [0; 8];
            // The timer may have expired with an earlier setting: the caller reads the clock.
            let _ = rustix::io::read(timer.get_ref(), &mut count);
            readable.clear_ready();
            Some(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod clock {
    use std::time::Instant;

    /// The timer of tokio, with a precision of a millisecond.
    pub(crate) struct Clock;

    impl Clock {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) async fn until(&self, due: Instant) {
            tokio::time::sleep_until(due.into()).await;
        }
    }
}
