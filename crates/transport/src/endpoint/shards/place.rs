//! Datagrams that the shards of an endpoint hand on to each other, and the end that they have in common.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use super::outbox::MisroutedBatch;
use crate::endpoint::Endpoint;
use courser_base::{Mutex, Time};

/// Maximum of batches that wait for a shard (limit K220). A shard that does not keep up loses further ones,
/// as it would at its socket, and QUIC repeats them.
const MAX_MISROUTED_BATCHES: usize = 1024;
/// Maximum of bytes of these batches (limit K220).
const MAX_MISROUTED_BYTES: usize = 1 << 20;

/// All shards of an endpoint, as seen by each other. An endpoint with one shard has none.
#[derive(Debug)]
struct Neighbours {
    rings: Box<[Ring]>,
    /// Shards that may still have connections.
    open: AtomicUsize,
    /// Shards that have not failed.
    living: AtomicUsize,
}

/// One shard among its neighbours. A driver has one for each of several shards.
#[derive(Clone, Debug)]
pub struct ShardPlace {
    all: Arc<Neighbours>,
    number: usize,
}

/// The batches that wait for one shard.
#[derive(Debug, Default)]
struct Ring {
    waiting: Mutex<Waiting>,
    is_filled: AtomicBool,
    /// The shard has failed, and takes nothing any more.
    has_failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<MisroutedBatch>,
    bytes: usize,
    /// Wakes the driver of the shard.
    driver: Option<Waker>,
}

impl Ring {
    /// Adds a batch. Returns false if there is no room.
    fn add(&self, batch: MisroutedBatch) -> bool {
        let mut waiting = self.waiting.lock();
        let bytes = waiting.bytes + batch.len();
        // Under the lock, so that nothing is added after it was cleared.
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

    /// Swaps the batches with an empty list, and has `driver` woken for later ones.
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
    /// Returns the places of so many shards, in the order of their numbers, or none for a single one.
    pub fn of_all(count: usize) -> Vec<Option<Self>> {
        if count == 1 {
            return vec![None];
        }
        let all = Arc::new(Neighbours {
            rings: std::iter::repeat_with(Ring::default).take(count).collect(),
            open: AtomicUsize::new(count),
            living: AtomicUsize::new(count),
        });
        let place = |number| Self {
            all: all.clone(),
            number,
        };
        (0..count).map(|number| Some(place(number))).collect()
    }

    /// Hands on the datagrams that have arrived at this shard for others. Those of a shard that has failed
    /// stay here, so that their peers learn of it by a stateless reset.
    pub fn hand_on(&self, now: Time, endpoint: &mut Endpoint) {
        while let Some(batch) = endpoint.poll_misrouted() {
            let count = batch.datagrams();
            match self.all.rings.get(batch.shard()) {
                Some(ring) if ring.has_failed() => endpoint.handle_misrouted(now, batch),
                Some(ring) if ring.add(batch) => {}
                _ => endpoint.on_misrouted_dropped(count),
            }
        }
    }

    /// Takes the datagrams that others have handed on to this shard. `driver` is woken for later ones.
    pub fn take(&self, driver: &Waker, into: &mut VecDeque<MisroutedBatch>) {
        self.own().take(driver, into);
    }

    /// Returns true if others have handed datagrams on to this shard.
    pub fn has_misrouted(&self) -> bool {
        self.own().is_filled.load(Ordering::Acquire)
    }

    /// Records that this shard has no connections and gets no further ones. Call it once.
    pub fn on_over(&self) {
        if self.all.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake_all();
        }
    }

    /// Returns true when all shards are over. Until then each one hands on what arrives at its socket.
    pub fn are_all_over(&self) -> bool {
        self.all.open.load(Ordering::Acquire) == 0
    }

    /// Records that this shard has failed, although it may have connections. The others go on: they answer
    /// what arrives for it.
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

    fn own(&self) -> &Ring {
        &self.all.rings[self.number]
    }

    fn wake_all(&self) {
        self.all.rings.iter().for_each(Ring::wake);
    }
}

#[cfg(test)]
mod tests;
