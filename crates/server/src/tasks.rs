//! The background tasks of a server, and their restart after they end.
//!
//! A server whose socket has failed, or whose certificates are no longer renewed, must not appear to work. The
//! end of a task is reported as an event, the server is not ready until the task runs again, and the task is
//! restarted after a pause.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use courser_base::Mutex;
use tokio::time::{Instant, sleep};

use crate::events::{Event, Events, panic_message};

/// The reason why a task has ended.
pub(super) type Reason = Box<dyn std::error::Error + Send + Sync>;

/// The background tasks of a server.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// Number of names in `stopped`, readable without the lock.
    count: AtomicUsize,
    stopped: Mutex<Vec<String>>,
    ends: AtomicU64,
}

/// A background task that is running, stopped or waiting to be restarted.
#[derive(Debug)]
pub(super) struct Task {
    tasks: Arc<Tasks>,
    name: String,
    is_stopped: AtomicBool,
}

impl Tasks {
    pub(super) fn task(self: &Arc<Self>, name: impl Into<String>) -> Arc<Task> {
        Arc::new(Task {
            tasks: self.clone(),
            name: name.into(),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// Returns true while all tasks run.
    pub(super) fn all_run(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Returns the names of the tasks that do not run.
    pub(super) fn stopped(&self) -> Vec<String> {
        self.stopped.lock().clone()
    }

    /// Returns the number of times that a task has ended.
    pub(super) fn ends(&self) -> u64 {
        self.ends.load(Relaxed)
    }
}

impl Task {
    /// Returns a part of this task that can end separately. Its name consists of `words` and the name of this
    /// task.
    pub(super) fn subtask(&self, words: &str) -> Arc<Self> {
        self.tasks.task(format!("{words} {}", self.name))
    }

    /// Returns true from the end of the task until it runs again.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Records and reports the end of the task. It is restarted after `pause`, if known.
    pub(super) fn on_ended(&self, events: &Events, reason: String, pause: Option<Duration>) {
        self.tasks.ends.fetch_add(1, Relaxed);
        if !self.is_stopped.swap(true, Relaxed) {
            let mut stopped = self.tasks.stopped.lock();
            stopped.push(self.name.clone());
            self.tasks.count.store(stopped.len(), Relaxed);
        }
        events.report(Event::TaskEnded {
            task: self.name.clone(),
            reason,
            pause,
        });
    }

    /// Records and reports that the task runs again, if it had ended.
    pub(super) fn on_running(&self, events: &Events) {
        if self.remove_from_stopped() {
            events.report(Event::TaskResumed {
                task: self.name.clone(),
            });
        }
    }

    /// Removes the task from the stopped ones. Returns true if it was among them.
    fn remove_from_stopped(&self) -> bool {
        let was_stopped = self.is_stopped.swap(false, Relaxed);
        if was_stopped {
            let mut stopped = self.tasks.stopped.lock();
            if let Some(index) = stopped.iter().position(|name| *name == self.name) {
                stopped.swap_remove(index);
            }
            self.tasks.count.store(stopped.len(), Relaxed);
        }
        was_stopped
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.remove_from_stopped();
    }
}

/// Runs the future that `begin` returns. When it ends or panics, reports that and calls `begin` again after a
/// pause that doubles each time. Never completes.
///
/// A restarted task counts as running after [`SETTLED`], so that one that fails at once remains stopped.
pub(super) async fn keep_running<F>(task: &Task, events: &Events, mut begin: impl FnMut() -> F)
where
    F: Future<Output = Result<(), Reason>>,
{
    let mut pause = SHORTEST_PAUSE;
    loop {
        let began = Instant::now();
        let reason = {
            let mut running = pin!(outcome(&mut begin));
            let early = match task.is_stopped() {
                true => tokio::time::timeout(SETTLED, &mut running).await.ok(),
                false => None,
            };
            match early {
                Some(reason) => reason,
                None => {
                    task.on_running(events);
                    running.await
                }
            }
        };
        if began.elapsed() >= LONGEST_PAUSE {
            pause = SHORTEST_PAUSE;
        }
        task.on_ended(events, reason, Some(pause));
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Runs a task once. Returns the reason for its end.
async fn outcome<F>(begin: impl FnOnce() -> F) -> String
where
    F: Future<Output = Result<(), Reason>>,
{
    let mut running = match catch_unwind(AssertUnwindSafe(begin)) {
        Ok(running) => Box::pin(running),
        Err(panic) => return panicked(&*panic),
    };
    std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
        Poll::Ready(match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => "it has ended".to_owned(),
            Ok(Poll::Ready(Err(reason))) => reason.to_string(),
            Err(panic) => panicked(&*panic),
        })
    })
    .await
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    format!("it panicked: {}", panic_message(panic))
}

/// Shortest and longest pause before a task is restarted (limit K312). They also bound the rate of its events.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Time after which a restarted task counts as running (limit K312).
const SETTLED: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
