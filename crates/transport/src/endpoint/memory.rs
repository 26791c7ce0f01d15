//! A budget for all memory that peers can make an endpoint hold (limit K81).

pub mod ledger;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use courser_base::Time;

use super::shards::ShardId;
use super::shared::Shared;
use crate::flow::WindowBudget;

/// Counts the memory that the connections of an endpoint hold against one budget.
///
/// The budget covers everything that a peer can cause: unacknowledged bytes, unread bytes, datagrams,
/// packet records, handshakes. The measures under pressure, in order:
///
/// 1. A connection accepts at most a quarter of the memory left from its application.
/// 2. Receive windows do not grow ([`TIGHT`]).
/// 3. New clients are refused ([`SHORT`]).
/// 4. The connection that holds the most bytes for the least progress is closed.
#[derive(Debug)]
pub struct Memory {
    budget: u64,
    used: u64,
    /// Bytes that the application holds for its peers.
    outside: Arc<AtomicU64>,
    /// The time at which a connection was last closed for lack of memory.
    shed: Time,
    /// The growth of receive windows, which ends while memory is tight.
    windows: WindowBudget,
    /// The other shards of the endpoint.
    others: Option<Box<Others>>,
}

/// The memory of the other shards, as one shard has last read it.
#[derive(Debug)]
struct Others {
    shared: Arc<Shared>,
    shard: usize,
    /// The bytes that the other shards held when they were last read.
    used: u64,
    /// Changes until they are read again.
    changes_left: u32,
    /// The time since which the budget is exceeded.
    over_since: Option<Time>,
}

/// The memory that one connection holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    bytes: u64,
    /// Bytes that it had transferred when a connection was last closed.
    moved: u64,
}

impl Memory {
    /// Creates the memory of a shard. The budget is that of all shards together.
    pub fn new(budget: u64, shard: ShardId, shared: Arc<Shared>) -> Self {
        Self {
            budget,
            used: 0,
            outside: Arc::default(),
            shed: Time::ZERO,
            windows: shared.windows.clone(),
            others: (!shard.is_alone()).then(|| {
                Box::new(Others {
                    shared,
                    shard: usize::from(shard.number),
                    used: 0,
                    changes_left: 0,
                    over_since: None,
                })
            }),
        }
    }

    /// Returns the budget for the growth of receive windows.
    pub fn windows(&self) -> &WindowBudget {
        &self.windows
    }

    /// Sets the counter of bytes that the application holds for its peers.
    pub fn share(&mut self, outside: Arc<AtomicU64>) {
        self.outside = outside;
    }

    /// Returns the bytes that connections and the application hold.
    #[inline]
    fn total(&self) -> u64 {
        let others = self.others.as_ref().map_or(0, |it| it.used);
        let used = self.used.saturating_add(others);
        used.saturating_add(self.outside.load(Relaxed))
    }

    /// Sets the bytes that a connection holds.
    #[inline]
    pub fn set(&mut self, held: &mut Held, bytes: u64) {
        self.used = self.used - held.bytes + bytes;
        held.bytes = bytes;
        if let Some(others) = &mut self.others {
            others.on_change(self.used);
        }
    }

    /// Returns the bytes that all connections hold.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Returns the budget in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// Returns the free bytes.
    #[inline]
    pub fn left(&self) -> u64 {
        self.budget.saturating_sub(self.total())
    }

    /// Returns true if receive windows should not grow.
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.total() > percent(self.budget, TIGHT)
    }

    /// Returns true if a client that adds `more` bytes should not be accepted.
    pub fn is_short(&self, more: u64) -> bool {
        self.total().saturating_add(more) > percent(self.budget, SHORT)
    }

    /// Returns true if a connection must be closed.
    #[inline]
    pub fn is_over(&mut self) -> bool {
        let is_over = self.total() > self.budget;
        if let Some(others) = self.others.as_mut().filter(|_| !is_over) {
            others.over_since = None;
        }
        is_over
    }

    /// Returns true if a connection of this shard must be closed now, because the budget is exceeded and no
    /// connection was closed just before.
    ///
    /// Of several shards, the one that holds the most bytes closes a connection. If it does not, because its
    /// connections are idle, another one closes a connection of its own after a while.
    pub fn may_shed(&mut self, now: Time) -> bool {
        if now < self.shed + SHED_INTERVAL {
            return false;
        }
        if let Some(others) = &mut self.others
            && !others.may_shed(now, self.used)
        {
            return false;
        }
        self.shed = now;
        true
    }
}

/// Removes the bytes of this shard from the sum of all shards.
impl Drop for Others {
    fn drop(&mut self) {
        self.shared.memory.used[self.shard].0.store(0, Relaxed);
    }
}

impl Others {
    fn on_change(&mut self, used: u64) {
        self.shared.memory.used[self.shard].0.store(used, Relaxed);
        if self.changes_left > 0 {
            self.changes_left -= 1;
            return;
        }
        self.changes_left = READ_EVERY;
        self.used = self.each_other().sum();
    }

    /// Returns the bytes of each other shard.
    fn each_other(&self) -> impl Iterator<Item = u64> {
        let all = self.shared.memory.used.iter().enumerate();
        let others = all.filter(|(shard, _)| *shard != self.shard);
        others.map(|(_, it)| it.0.load(Relaxed))
    }

    fn may_shed(&mut self, now: Time, used: u64) -> bool {
        let since = *self.over_since.get_or_insert(now);
        let holds_most = self.each_other().all(|other| other <= used);
        if !holds_most && now < since + SHED_INTERVAL * 2 {
            return false;
        }
        let last = self.shared.memory.shed.load(Relaxed);
        if now < Time::from_nanos(last) + SHED_INTERVAL {
            return false;
        }
        let mine = now.as_nanos();
        let shed = &self.shared.memory.shed;
        shed.compare_exchange(last, mine, Relaxed, Relaxed).is_ok()
    }
}

impl Held {
    /// Returns the bytes held, reduced by the bytes transferred since the last
    /// [`restart`](Self::restart): a connection that transfers as much as it holds counts half. `moved`
    /// is the total transferred.
    pub fn burden(&self, moved: u64) -> u64 {
        let moved = moved.saturating_sub(self.moved);
        let bytes = u128::from(self.bytes);
        let burden = bytes * bytes / (bytes + u128::from(moved)).max(1);
        u64::try_from(burden).unwrap_or(self.bytes)
    }

    /// Restarts the count of transferred bytes.
    pub fn restart(&mut self, moved: u64) {
        self.moved = moved;
    }
}

const fn percent(budget: u64, part: u64) -> u64 {
    budget / 100 * part
}

/// Time between two connections that are closed for lack of memory, in which the first one frees its
/// memory.
const SHED_INTERVAL: Duration = Duration::from_millis(10);

/// Changes of the memory of a shard between two reads of that of the other shards (limit K222).
const READ_EVERY: u32 = 15;

/// Use of the budget from which on no receive window grows, in per cent.
const TIGHT: u64 = 75;

/// Use of the budget from which on new clients are refused, in per cent.
const SHORT: u64 = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_is_counted_once() {
        let mut memory = alone();
        let (mut one, mut other) = (Held::default(), Held::default());
        memory.set(&mut one, 500);
        memory.set(&mut other, 200);
        memory.set(&mut one, 300);
        assert_eq!((memory.used(), memory.left()), (500, 500));
        memory.set(&mut one, 0);
        memory.set(&mut other, 0);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn pressure_rises_in_steps() {
        let mut memory = alone();
        let mut held = Held::default();
        let mut at = |bytes| {
            memory.set(&mut held, bytes);
            (memory.is_tight(), memory.is_short(0), memory.is_over())
        };
        assert_eq!(at(750), (false, false, false));
        assert_eq!(at(751), (true, false, false));
        assert_eq!(at(901), (true, true, false));
        assert_eq!(at(1001), (true, true, true));
    }

    #[test]
    fn memory_of_unread_data_counts() {
        let mut memory = alone();
        let outside = Arc::new(AtomicU64::new(0));
        memory.share(outside.clone());
        memory.set(&mut Held::default(), 500);
        let mut at = |bytes| {
            outside.store(bytes, Relaxed);
            (memory.is_tight(), memory.is_short(0), memory.is_over())
        };
        assert_eq!(at(250), (false, false, false));
        assert_eq!(at(251), (true, false, false));
        assert_eq!(at(401), (true, true, false));
        assert_eq!(at(501), (true, true, true));
        assert_eq!((memory.used(), memory.left()), (500, 0));
    }

    #[test]
    fn connection_that_transfers_data_is_a_smaller_burden() {
        let mut memory = alone();
        let (mut idle, mut busy) = (Held::default(), Held::default());
        memory.set(&mut idle, 300);
        memory.set(&mut busy, 500);
        busy.restart(1000);
        assert_eq!(idle.burden(0), 300);
        assert_eq!(busy.burden(1000), 500);
        assert_eq!(busy.burden(1500), 250);
    }

    /// Returns the memory of so many shards with one budget of 1000 bytes.
    fn shards(count: u16) -> Vec<Memory> {
        let shared = Shared::of_test(count);
        let each = (0..count).map(|number| {
            let shard = ShardId { number, count };
            Memory::new(1000, shard, shared.clone())
        });
        each.collect()
    }

    fn alone() -> Memory {
        shards(1).remove(0)
    }

    /// Makes a shard read the bytes of the others.
    fn read_others(memory: &mut Memory) {
        for _ in 0..=READ_EVERY {
            memory.set(&mut Held::default(), 0);
        }
    }

    #[test]
    fn budget_is_that_of_all_shards() {
        let mut shards = shards(4);
        for memory in &mut shards {
            memory.set(&mut Held::default(), 200);
        }
        for memory in &mut shards {
            read_others(memory);
            assert_eq!((memory.used(), memory.left()), (200, 200));
            assert!(memory.is_tight() && !memory.is_short(0) && !memory.is_over());
        }
        shards[0].set(&mut Held::default(), 201);
        assert!(shards[0].is_over());
        read_others(&mut shards[3]);
        assert!(shards[3].is_over());
    }

    #[test]
    fn shard_that_holds_the_most_bytes_closes_a_connection() {
        let at = |millis| Time::ZERO + Duration::from_secs(1) + Duration::from_millis(millis);
        let mut shards = shards(2);
        shards[0].set(&mut Held::default(), 300);
        shards[1].set(&mut Held::default(), 800);
        shards.iter_mut().for_each(read_others);
        assert!(
            shards[0].is_over() && !shards[0].may_shed(at(0)),
            "the other holds more"
        );
        assert!(shards[1].is_over() && shards[1].may_shed(at(1)));
        assert!(!shards[1].may_shed(at(10)), "one at a time");
        assert!(!shards[0].may_shed(at(10)));
        assert!(shards[0].may_shed(at(21)), "the other one closes none");
        assert!(!shards[1].may_shed(at(30)), "of all shards");
        assert!(shards[1].may_shed(at(31)));
    }
}
