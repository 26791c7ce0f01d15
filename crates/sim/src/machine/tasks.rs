//! Tasks, and which of them is polled next.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use courser::runtime::Task;
use courser_base::Time;
use courser_crypto::Rng;

use super::bell::Bell;

/// All tasks of a machine that are not over.
#[derive(Default)]
pub(super) struct Tasks {
    known: BTreeMap<u64, Entry>,
    spawned: u64,
}

/// One task.
struct Entry {
    /// Away while it is being polled.
    task: Option<Task>,
    waker: Arc<TaskWaker>,
    pending: PendingTask,
}

/// A task that is not over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingTask {
    /// Counts from 1 in the order of spawning.
    pub number: u64,
    /// The line that spawned it; for the task of an endpoint the line that bound that.
    pub origin: &'static Location<'static>,
    /// How many times it was polled.
    pub polls: u64,
    /// When it was polled last; its birth if never.
    pub last_poll: Time,
}

impl fmt::Display for PendingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} ({})", self.number, self.origin)
    }
}

/// A task on its way to a poll.
pub(super) struct Ready {
    pub(super) number: u64,
    pub(super) task: Task,
    pub(super) waker: Waker,
}

impl Tasks {
    /// Takes a task, ready to be polled.
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

    /// Draws one of the tasks that are ready, for its poll.
    pub(super) fn take_next(
        &mut self,
        queue: &ReadyQueue,
        rng: &mut Rng,
        now: Time,
    ) -> Option<Ready> {
        loop {
            let number = queue.draw(rng)?;
            // One that is over may have been woken before.
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

    /// Takes back a task that waits again. `Err` gives back one that is not known any more.
    pub(super) fn put_back(&mut self, number: u64, task: Task) -> Result<(), Task> {
        match self.known.get_mut(&number) {
            Some(entry) => {
                entry.task = Some(task);
                Ok(())
            }
            None => Err(task),
        }
    }

    /// Forgets a task that is over.
    pub(super) fn forget(&mut self, number: u64) -> Option<PendingTask> {
        self.known.remove(&number).map(|entry| entry.pending)
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = &PendingTask> {
        self.known.values().map(|entry| &entry.pending)
    }

    /// Forgets all; they are for the caller to drop, outside of any lock.
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

/// Numbers of the tasks that are ready. Apart from everything else, since a waker may be called
/// from anywhere.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue(Mutex<ReadyList>);

#[derive(Debug, Default)]
struct ReadyList {
    numbers: Vec<u64>,
    /// Rung when a task becomes ready while the machine rests.
    bell: Option<Bell>,
    is_running: bool,
}

impl ReadyQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.lock().numbers.is_empty()
    }

    /// Rings `bell` from now on, and now if somebody is ready.
    pub(super) fn set_bell(&self, bell: Bell) {
        let mut list = self.lock();
        if !list.numbers.is_empty() {
            bell.ring();
        }
        list.bell = Some(bell);
    }

    /// The machine begins to poll, or has polled all.
    pub(super) fn set_running(&self, is_running: bool) {
        self.lock().is_running = is_running;
    }

    fn draw(&self, rng: &mut Rng) -> Option<u64> {
        let ready = &mut self.lock().numbers;
        let count = ready.len();
        if count <= 1 {
            return ready.pop();
        }
        let place = usize::try_from(rng.below(count as u64)).expect("below a length");
        Some(ready.swap_remove(place))
    }

    fn push(&self, number: u64) {
        let mut list = self.lock();
        list.numbers.push(number);
        if !list.is_running
            && list.numbers.len() == 1
            && let Some(bell) = &list.bell
        {
            bell.ring();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReadyList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts its task among those that are ready, once until it is polled.
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
        // Relaxed: the queue's lock orders what matters.
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.push(self.number);
        }
    }
}
