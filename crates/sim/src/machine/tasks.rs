//! Tasks, and the choice of the next one to poll.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::{Wake, Waker};

use courser::runtime::Task;
use courser_base::{Mutex, Time};
use courser_crypto::Rng;

use super::notifier::Notifier;

/// All tasks of a machine that have not ended.
#[derive(Default)]
pub(super) struct Tasks {
    known: BTreeMap<u64, Entry>,
    spawned: u64,
}

/// A task that has not ended, with its future and its waker.
struct Entry {
    /// The future; `None` while it is polled.
    task: Option<Task>,
    waker: Arc<TaskWaker>,
    pending: PendingTask,
}

/// A task that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingTask {
    /// Its number, counted from 1 in the order of spawning.
    pub number: u64,
    /// The line that spawned it, or that bound the endpoint it belongs to.
    pub origin: &'static Location<'static>,
    /// The number of its polls.
    pub polls: u64,
    /// The time of its last poll, or of its creation.
    pub last_poll: Time,
}

impl fmt::Display for PendingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} ({})", self.number, self.origin)
    }
}

/// A task that is about to be polled.
pub(super) struct Ready {
    pub(super) number: u64,
    pub(super) task: Task,
    pub(super) waker: Waker,
}

impl Tasks {
    /// Adds a ready task.
    pub(super) fn insert(
        &mut self,
        task: Task,
        origin: &'static Location<'static>,
        (now, queue): (Time, &Arc<ReadyQueue>),
    ) {
        self.spawned += 1;
        let number = self.spawned;
        let waker = Arc::new(TaskWaker {
            number,
            is_queued: AtomicBool::new(false),
            queue: queue.clone(),
        });
        waker.wake_by_ref();
        let pending = PendingTask {
            number,
            origin,
            polls: 0,
            last_poll: now,
        };
        let entry = Entry {
            task: Some(task),
            waker,
            pending,
        };
        self.known.insert(number, entry);
    }

    /// Chooses a ready task and removes its future for polling.
    pub(super) fn take_next(
        &mut self,
        queue: &ReadyQueue,
        rng: &mut Rng,
        now: Time,
    ) -> Option<Ready> {
        loop {
            let number = queue.draw(rng)?;
            // An ended task may have been woken earlier.
            let Some(entry) = self.known.get_mut(&number) else {
                continue;
            };
            entry.waker.is_queued.store(false, Ordering::Relaxed);
            let Some(task) = entry.task.take() else {
                continue;
            };
            entry.pending.polls += 1;
            entry.pending.last_poll = now;
            return Some(Ready {
                number,
                task,
                waker: entry.waker.clone().into(),
            });
        }
    }

    /// Stores the future of a task that waits again. Returns it as `Err` if the task has been
    /// removed.
    pub(super) fn put_back(&mut self, number: u64, task: Task) -> Result<(), Task> {
        match self.known.get_mut(&number) {
            Some(entry) => {
                entry.task = Some(task);
                Ok(())
            }
            None => Err(task),
        }
    }

    /// Removes a task that has ended.
    pub(super) fn remove(&mut self, number: u64) -> Option<PendingTask> {
        self.known.remove(&number).map(|entry| entry.pending)
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &PendingTask> {
        self.known.values().map(|entry| &entry.pending)
    }

    /// Removes all tasks. The caller must drop them after releasing the lock.
    #[must_use]
    pub(super) fn take_all(&mut self) -> Vec<Task> {
        let known = std::mem::take(&mut self.known);
        known.into_values().filter_map(|entry| entry.task).collect()
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pending()).finish()
    }
}

/// The numbers of ready tasks. They have a separate lock, because wakers may be called from any
/// thread.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue(Mutex<ReadyList>);

#[derive(Debug, Default)]
struct ReadyList {
    numbers: Vec<u64>,
    /// The notifier for tasks that become ready while the machine does not run.
    notifier: Option<Notifier>,
    is_running: bool,
}

impl ReadyQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().numbers.is_empty()
    }

    /// Sets the notifier, and notifies it if a task is ready.
    pub(super) fn set_notifier(&self, notifier: Notifier) {
        let mut list = self.lock();
        if !list.numbers.is_empty() {
            notifier.notify();
        }
        list.notifier = Some(notifier);
    }

    /// Records that the machine starts or stops polling.
    pub(super) fn set_running(&self, is_running: bool) {
        self.lock().is_running = is_running;
    }

    fn draw(&self, rng: &mut Rng) -> Option<u64> {
        let ready = &mut self.lock().numbers;
        let count = ready.len();
        if count <= 1 {
            return ready.pop();
        }
        let index =
            usize::try_from(rng.below(count as u64)).expect("the index is below the length");
        Some(ready.swap_remove(index))
    }

    fn push(&self, number: u64) {
        let mut list = self.lock();
        list.numbers.push(number);
        if !list.is_running
            && list.numbers.len() == 1
            && let Some(notifier) = &list.notifier
        {
            notifier.notify();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadyList> {
        self.0.lock()
    }
}

/// Adds the task to the ready queue, at most once until it is polled.
#[derive(Debug)]
struct TaskWaker {
    number: u64,
    is_queued: AtomicBool,
    queue: Arc<ReadyQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Relaxed: the lock of the queue provides the ordering.
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.push(self.number);
        }
    }
}
