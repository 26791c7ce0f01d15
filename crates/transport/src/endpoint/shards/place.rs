//! Queues through which the shards of an endpoint forward datagrams to each other, and their common end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use super::outbox::MisroutedBatch;
use crate::endpoint::Endpoint;
use courser_base::{Mutex, Time};

/// Maximum of batches that wait for a shard (limit K220). Further ones are dropped, as at a full socket, and
/// their frames are retransmitted.
const MAX_MISROUTED_BATCHES: usize = 1024;
/// Maximum of bytes of these batches (limit K220).
const MAX_MISROUTED_BYTES: usize = 1 << 20;

/// The state that all shards of an endpoint share. An endpoint with one shard has none.
#[derive(Debug)]
struct AllShards {
    queues: Box<[StrayQueue]>,
    /// Shards that may still have connections.
    open: AtomicUsize,
    /// Shards that have not failed.
    living: AtomicUsize,
}

/// The access of one shard to the others. The driver of each of several shards has one.
#[derive(Clone, Debug)]
pub struct ShardPlace {
    all: Arc<AllShards>,
    number: usize,
}

/// The batches that wait for one shard.
#[derive(Debug, Default)]
struct StrayQueue {
    waiting: Mutex<Waiting>,
    is_filled: AtomicBool,
    /// True if the shard has failed and accepts no more batches.
    has_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<MisroutedBatch>,
    bytes: usize,
    /// Wakes the driver of the shard.
    driver: Option<Waker>,
}

impl StrayQueue {
    /// Adds a batch. Returns false if it exceeds a limit or the shard has failed.
    fn add(&self, batch: MisroutedBatch) -> bool {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + batch.len();
        // Checked under the lock, so that no batch is added after the queue was cleared.
        if self.has_failed()
            || waiting.batches.len() >= MAX_MISROUTED_BATCHES
            || bytes > MAX_MISROUTED_BYTES
        {
            return false;
        }
        waiting.bytes = bytes;
        waiting.batches.push_back(batch);
        let was_filled = self.is_filled.swap(true, Ordering::AcqRel);
        let driver = waiting.driver.clone().filter(|_| !was_filled);
        drop(waiting);
        if let Some(driver) = driver {
            driver.wake();
        }
        true
    }

    /// Swaps the batches with an empty list, and stores `driver` to wake it for later ones.
    fn take(&self, driver: &Waker, into: &mut VecDeque<MisroutedBatch>) {
        debug_assert!(into.is_empty(), "batches that were not handled");
        let mut waiting = self.waiting.lock();
        match &mut waiting.driver {
            Some(known) => known.clone_from(driver),
            None => waiting.driver = Some(driver.clone()),
        }
        self.is_filled.store(false, Ordering::Release);
        waiting.bytes = 0;
        std::mem::swap(&mut waiting.batches, into);
    }

    /// Drops the batches of a shard that has failed.
    fn clear(&self) {
        let mut waiting = self.waiting.lock();
        let batches = std::mem::take(&mut *waiting);
        self.is_filled.store(false, Ordering::Release);
        drop(waiting);
        drop(batches);
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    fn wake(&self) {
        let driver = self.waiting.lock().driver.clone();
        driver.into_iter().for_each(Waker::wake);
    }
}

impl ShardPlace {
    /// Creates the places of this many shards, in the order of their numbers; `None` for a single one.
    pub fn of_all(count: usize) -> Vec<Option<Self>> {
        if count == 1 {
            return vec![None];
        }
        let all = Arc::new(AllShards {
            queues: std::iter::repeat_with(StrayQueue::default)
                .take(count)
                .collect(),
            open: AtomicUsize::new(count),
            living: AtomicUsize::new(count),
        });
        let place = |number| Self {
            all: all.clone(),
            number,
        };
        (0..count).map(|number| Some(place(number))).collect()
    }

    /// Forwards the datagrams that have arrived at this shard for others. Those of a shard that has failed
    /// are processed here, so that their peers get a stateless reset.
    pub fn forward(&self, now: Time, endpoint: &mut Endpoint) {
        while let Some(batch) = endpoint.poll_misrouted() {
            let count = batch.datagrams();
            match self.all.queues.get(batch.shard()) {
                Some(queue) if queue.has_failed() => endpoint.handle_misrouted(now, batch),
                Some(queue) if queue.add(batch) => {}
                _ => endpoint.on_misrouted_dropped(count),
            }
        }
    }

    /// Takes the datagrams that other shards have forwarded to this one. `driver` is woken for later ones.
    pub fn take(&self, driver: &Waker, into: &mut VecDeque<MisroutedBatch>) {
        self.own().take(driver, into);
    }

    /// Returns true if other shards have forwarded datagrams to this one.
    pub fn has_misrouted(&self) -> bool {
        self.own().is_filled.load(Ordering::Acquire)
    }

    /// Records that this shard has no connections and accepts no further ones. Call it once.
    pub fn on_over(&self) {
        if self.all.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_all();
        }
    }

    /// Returns true when all shards are over. Until then each one forwards datagrams from its socket.
    pub fn are_all_over(&self) -> bool {
        self.all.open.load(Ordering::Acquire) == 0
    }

    /// Records that this shard has failed, although it may have connections. The others continue and answer
    /// its datagrams.
    pub fn on_failed(&self) {
        if !self.own().has_failed.swap(true, Ordering::AcqRel) {
            self.own().clear();
            self.all.living.fetch_sub(1, Ordering::AcqRel);
            self.on_over();
        }
    }

    /// Returns true if this shard has failed.
    pub fn has_failed(&self) -> bool {
        self.own().has_failed()
    }

    /// Returns true if there is a shard that has not failed.
    pub fn has_living(&self) -> bool {
        self.all.living.load(Ordering::Acquire) > 0
    }

    fn own(&self) -> &StrayQueue {
        &self.all.queues[self.number]
    }

    fn wake_all(&self) {
        self.all.queues.iter().for_each(StrayQueue::wake);
    }
}

#[cfg(test)]
mod tests;
