//! A queue that is bounded in number and bytes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use courser_base::Time;
use courser_base::foreign::ForeignBytes;
use courser_wire::StreamId;

use super::event::DatagramId;
use super::prefix::DatagramPrefix;

/// A datagram that waits to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) prefix: DatagramPrefix,
    pub(super) data: ForeignBytes,
    pub(super) queued_at: Time,
    pub(super) expires_at: Option<Time>,
    pub(super) id: Option<DatagramId>,
    /// The session to which it belongs, if any.
    pub(super) session: Option<StreamId>,
}

impl Outgoing {
    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// An item with a size.
pub(super) trait Sizeable {
    fn size(&self) -> usize;

    /// Returns the session of the item, whose items share the queue with those of others.
    fn session(&self) -> Option<StreamId> {
        None
    }
}

impl Sizeable for Outgoing {
    fn size(&self) -> usize {
        self.prefix.as_bytes().len() + self.data.len()
    }

    fn session(&self) -> Option<StreamId> {
        self.session
    }
}

impl Sizeable for Bytes {
    fn size(&self) -> usize {
        self.len()
    }
}

/// A first-in, first-out queue.
#[derive(Debug)]
pub(super) struct Queue<T> {
    items: VecDeque<T>,
    bytes: usize,
    /// The number of items whose session is another one than that of the item before.
    changes: usize,
    /// The bytes of each session, once the queue was full with items of several, until it is empty: a sender that is faster
    /// than the path makes room for each of its datagrams.
    sums: Option<BTreeMap<Option<StreamId>, usize>>,
    max_items: usize,
    max_bytes: usize,
}

impl<T: Sizeable> Queue<T> {
    /// Returns the bytes of all waiting items.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn new(max_items: usize, max_bytes: usize) -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            changes: 0,
            sums: None,
            max_items,
            max_bytes,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the largest size of another item; 0 if the number of items is at its maximum.
    pub(super) fn space(&self) -> usize {
        if self.items.len() < self.max_items {
            self.max_bytes - self.bytes
        } else {
            0
        }
    }

    pub(super) fn fits(&self, size: usize) -> bool {
        self.items.len() < self.max_items && size <= self.max_bytes - self.bytes
    }

    pub(super) fn is_half_full(&self) -> bool {
        2 * self.items.len() > self.max_items || 2 * self.bytes > self.max_bytes
    }

    /// Adds an item for which there is room.
    pub(super) fn push(&mut self, item: T) {
        debug_assert!(self.fits(item.size()), "room was made");
        self.bytes += item.size();
        let last = self.items.back();
        self.changes += usize::from(last.is_some_and(|last| last.session() != item.session()));
        if let Some(sums) = &mut self.sums {
            *sums.entry(item.session()).or_default() += item.size();
        }
        self.items.push_back(item);
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.items.front()
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        let next = self.items.front();
        self.changes -= usize::from(next.is_some_and(|next| next.session() != item.session()));
        self.on_removed(&item);
        Some(item)
    }

    fn on_removed(&mut self, item: &T) {
        self.bytes -= item.size();
        if self.items.is_empty() {
            self.sums = None;
            return;
        }
        if let Some(sums) = &mut self.sums
            && let Some(sum) = sums.get_mut(&item.session())
        {
            *sum -= item.size();
            if *sum == 0 {
                // Items of this session that are left have no bytes.
                sums.remove(&item.session());
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// Removes and returns the oldest item of the session with the most bytes, so that one that sends too much loses its
    /// own items and not those of others.
    pub(super) fn pop_of_largest(&mut self) -> Option<T> {
        if self.changes == 0 {
            return self.pop();
        }
        let items = &self.items;
        let sums = self.sums.get_or_insert_with(|| sums_of(items));
        let most = sums.values().copied().max().unwrap_or(0);
        if most == 0 {
            return self.pop();
        }
        let mut largest = sums.iter().filter(|(_, bytes)| **bytes == most);
        let at = match (largest.next(), largest.next()) {
            (Some((name, _)), None) => items.iter().position(|item| item.session() == *name)?,
            // Of equal ones that of the oldest item.
            _ => items
                .iter()
                .position(|item| sums.get(&item.session()) == Some(&most))?,
        };
        self.remove(at)
    }

    /// Returns the session with the most bytes in this queue and in `others`: of equal ones that of the oldest item.
    pub(super) fn largest_session<'i>(
        &'i self,
        others: impl Iterator<Item = &'i T>,
    ) -> Option<Option<StreamId>> {
        let mut sums: Vec<(Option<StreamId>, usize)> = Vec::new();
        for item in self.items.iter().chain(others) {
            match sums.iter_mut().find(|(name, _)| *name == item.session()) {
                Some((_, bytes)) => *bytes += item.size(),
                None => sums.push((item.session(), item.size())),
            }
        }
        let most = sums.iter().map(|(_, bytes)| *bytes).max()?;
        let (largest, _) = *sums.iter().find(|(_, bytes)| *bytes == most)?;
        Some(largest)
    }

    /// Removes and returns the oldest item of a session.
    pub(super) fn pop_of(&mut self, session: Option<StreamId>) -> Option<T> {
        let at = self
            .items
            .iter()
            .position(|item| item.session() == session)?;
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        let session = |at: usize| self.items.get(at).map(T::session);
        let differ = |one: Option<_>, next: Option<_>| {
            usize::from(one.is_some() && next.is_some() && one != next)
        };
        let (item, next) = (session(at), session(at + 1));
        let before = at.checked_sub(1).and_then(session);
        let removed = differ(before, item) + differ(item, next);
        self.changes = self.changes + differ(before, next) - removed;
        let item = self.items.remove(at)?;
        self.on_removed(&item);
        Some(item)
    }

    /// Removes and returns the chosen items, the oldest first.
    pub(super) fn take_if(&mut self, chosen: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        for _ in 0..self.items.len() {
            let Some(item) = self.pop() else { break };
            if chosen(&item) {
                taken.push(item);
            } else {
                self.push(item);
            }
        }
        taken
    }

    /// Frees the spare capacity.
    pub(super) fn shrink(&mut self) {
        self.items.shrink_to_fit();
    }

    /// Empties the queue and frees its memory.
    pub(super) fn clear(&mut self) {
        self.items = VecDeque::new();
        (self.bytes, self.changes, self.sums) = (0, 0, None);
    }
}

/// Returns the bytes of each session.
fn sums_of<T: Sizeable>(items: &VecDeque<T>) -> BTreeMap<Option<StreamId>, usize> {
    let mut sums = BTreeMap::new();
    for item in items {
        *sums.entry(item.session()).or_default() += item.size();
    }
    sums
}

#[cfg(test)]
mod tests {
    use courser_base::Side;
    use courser_wire::Direction;
    use proptest::prelude::*;

    use super::*;

    /// A session, and a size.
    type Item = (u8, usize);

    impl Sizeable for Item {
        fn size(&self) -> usize {
            self.1
        }

        fn session(&self) -> Option<StreamId> {
            let index = u64::from(self.0).checked_sub(1)?;
            Some(StreamId::new(Side::Client, Direction::Bidirectional, index))
        }
    }

    /// The same without sums that are kept.
    fn largest(items: &[Item]) -> Option<usize> {
        let sum = |of: u8| -> usize {
            let own = items.iter().filter(|it| it.0 == of);
            own.map(|it| it.1).sum()
        };
        let most = items.iter().map(|it| sum(it.0)).max()?;
        items.iter().position(|it| sum(it.0) == most)
    }

    proptest! {
        /// Attack A387.
        #[test]
        fn room_is_made_by_the_oldest_item_of_the_largest_session(
            steps in proptest::collection::vec((0..3_u8, 0..4_u8, 0..5_usize), 1..200),
        ) {
            let (mut queue, mut model) = (Queue::new(20, 50), Vec::<Item>::new());
            for (step, session, size) in steps {
                let item = (session, size);
                match step {
                    0 => prop_assert_eq!(queue.pop(), (!model.is_empty()).then(|| model.remove(0))),
                    1 => {
                        let at = largest(&model);
                        prop_assert_eq!(queue.pop_of_largest(), at.map(|at| model.remove(at)));
                    }
                    _ if queue.fits(size) => {
                        queue.push(item);
                        model.push(item);
                    }
                    _ => {}
                }
                let changes = model.windows(2).filter(|it| it[0].0 != it[1].0).count();
                prop_assert_eq!((queue.len(), queue.changes), (model.len(), changes));
                prop_assert_eq!(queue.bytes(), model.iter().map(|it| it.1).sum::<usize>());
            }
        }
    }
}
