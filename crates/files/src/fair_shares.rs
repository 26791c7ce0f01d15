//! Fair shares of a resource with a maximum, and the queue for it.

use std::collections::{BTreeMap, HashMap};

use courser_base::{ScopedIp, Source};

/// Counts the units of a resource that are in use, and keeps those who wait for one.
///
/// A source may take a unit while it holds less than a multiple of the units left ([`Source::shares`]), so that it never
/// excludes another source. The last unit is for sources that hold none. The first eighth of the units is not counted by
/// source, which saves the cost while the resource is idle. The same shares apply to the places in the queue. Sources in
/// the queue take turns, and those that have their share are skipped.
///
/// Users without an address have no share. They are limited by the maximum only.
#[derive(Debug)]
pub(crate) struct FairShares<W> {
    capacity: usize,
    queue_capacity: usize,
    used: Counts,
    waiting: Counts,
    /// The sources that wait, in the order of their turns.
    turns: BTreeMap<u64, Option<Source>>,
    places: HashMap<Option<Source>, Places<W>>,
    /// The number of the next turn and of the next place.
    next: u64,
}

/// A unit that was taken; see [`FairShares::release`].
#[derive(Debug)]
#[must_use = "a unit that is not released is lost"]
pub(crate) struct Unit {
    /// The address whose sources are counted. `None` if the unit was taken while the resource was idle.
    counted: Option<ScopedIp>,
}

/// A place in the queue; see [`FairShares::leave`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    source: Option<Source>,
    number: u64,
}

/// The places of one source.
#[derive(Debug)]
struct Places<W> {
    /// The turn of the source.
    turn: u64,
    waiters: BTreeMap<u64, Waiter<W>>,
}

#[derive(Debug)]
struct Waiter<W> {
    address: Option<ScopedIp>,
    waiter: W,
}

impl<W> FairShares<W> {
    /// Creates a resource with `capacity` units, for which at most `queue_capacity` users wait.
    pub(crate) fn new(capacity: usize, queue_capacity: usize) -> Self {
        Self {
            capacity,
            queue_capacity,
            used: Counts::default(),
            waiting: Counts::default(),
            turns: BTreeMap::new(),
            places: HashMap::new(),
            next: 0,
        }
    }

    /// Returns the number of units in use.
    pub(crate) const fn used(&self) -> usize {
        self.used.total
    }

    /// Returns the number of users that wait.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting.total
    }

    /// Takes a unit for this client. Returns `None` if it has to wait: all units are in use, the client's sources have
    /// their share, or others of its source wait already.
    pub(crate) fn take(&mut self, address: Option<ScopedIp>) -> Option<Unit> {
        let source = address.map(Source::host);
        if !self.may_take(address) || self.places.contains_key(&source) {
            return None;
        }
        let is_idle = self.used.total < self.capacity / UNCOUNTED_PART;
        Some(self.use_one(address.filter(|_| !is_idle)))
    }

    /// Lets a client wait. Returns its place, or `None` if the queue or the share of its sources is full.
    pub(crate) fn wait(&mut self, address: Option<ScopedIp>, waiter: W) -> Option<Place> {
        let left = self.queue_capacity.saturating_sub(self.waiting.total);
        if self.waiting.is_over_share(address, left) {
            return None;
        }
        self.waiting.add(address);
        let source = address.map(Source::host);
        let number = self.next;
        self.next += 1;
        let places = self.places.entry(source).or_insert_with(|| {
            self.turns.insert(number, source);
            Places {
                turn: number,
                waiters: BTreeMap::new(),
            }
        });
        places.waiters.insert(number, Waiter { address, waiter });
        Some(Place { source, number })
    }

    /// Removes a client from the queue, if it still waits.
    pub(crate) fn leave(&mut self, place: Place) {
        self.remove(place);
    }

    /// Returns a unit.
    pub(crate) fn release(&mut self, unit: Unit) {
        self.used.remove(unit.counted);
    }

    /// Takes a unit for the client whose turn it is. Call this after a unit was released, until it returns `None`.
    pub(crate) fn next_waiter(&mut self) -> Option<(W, Unit)> {
        // Bounds the work if very many sources wait that have their share. Others have their turn at the next call.
        for _ in 0..self.turns.len().min(MAX_SKIPPED) {
            if self.used.total >= self.capacity {
                return None;
            }
            let (turn, source) = self.turns.pop_first()?;
            let places = self.places.get_mut(&source)?;
            let number = self.next;
            self.next += 1;
            self.turns.insert(number, source);
            debug_assert_eq!(places.turn, turn, "a source has one turn");
            places.turn = number;
            let (&number, Waiter { address, .. }) = places.waiters.first_key_value()?;
            let address = *address;
            if self.may_take(address) {
                let waiter = self.remove(Place { source, number })?;
                return Some((waiter, self.use_one(address)));
            }
        }
        None
    }

    fn may_take(&self, address: Option<ScopedIp>) -> bool {
        let left = self.capacity.saturating_sub(self.used.total);
        let is_last_of_another = left == 1 && self.used.has_any(address);
        !is_last_of_another && !self.used.is_over_share(address, left)
    }

    fn use_one(&mut self, counted: Option<ScopedIp>) -> Unit {
        self.used.add(counted);
        Unit { counted }
    }

    fn remove(&mut self, place: Place) -> Option<W> {
        let places = self.places.get_mut(&place.source)?;
        let removed = places.waiters.remove(&place.number)?;
        self.waiting.remove(removed.address);
        if places.waiters.is_empty() {
            self.turns.remove(&places.turn);
            self.places.remove(&place.source);
        }
        Some(removed.waiter)
    }
}

/// A number of units or of places, in total and by source.
#[derive(Debug, Default)]
struct Counts {
    total: usize,
    by_source: HashMap<Source, usize>,
}

impl Counts {
    fn add(&mut self, address: Option<ScopedIp>) {
        self.total += 1;
        for (source, _) in shares(address) {
            *self.by_source.entry(source).or_default() += 1;
        }
    }

    fn remove(&mut self, address: Option<ScopedIp>) {
        self.total = self.total.saturating_sub(1);
        for (source, _) in shares(address) {
            if let Some(count) = self.by_source.get_mut(&source) {
                *count -= 1;
                if *count == 0 {
                    self.by_source.remove(&source);
                }
            }
        }
    }

    fn of(&self, source: Source) -> usize {
        self.by_source.get(&source).copied().unwrap_or(0)
    }

    fn has_any(&self, address: Option<ScopedIp>) -> bool {
        shares(address).any(|(source, _)| self.of(source) > 0)
    }

    /// Returns true if none is left, or if a source of the address has its share while this many are left.
    fn is_over_share(&self, address: Option<ScopedIp>, left: usize) -> bool {
        left == 0
            || shares(address)
                .any(|(source, multiple)| self.of(source) >= left.saturating_mul(multiple))
    }
}

fn shares(address: Option<ScopedIp>) -> impl Iterator<Item = (Source, usize)> {
    address.into_iter().flat_map(Source::shares)
}

/// Divisor of the units that yields those that are not counted by source (limit K436).
const UNCOUNTED_PART: usize = 8;
/// Largest number of sources that are skipped in one call (limit K436).
const MAX_SKIPPED: usize = 64;

#[cfg(test)]
mod tests;
