//! A queue that is bounded in number and bytes.

use std::collections::VecDeque;

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

    pub(super) fn has_room(&self, size: usize) -> bool {
        self.items.len() < self.max_items && size <= self.max_bytes - self.bytes
    }

    pub(super) fn is_half_full(&self) -> bool {
        2 * self.items.len() > self.max_items || 2 * self.bytes > self.max_bytes
    }

    /// Adds an item for which there is room.
    pub(super) fn push(&mut self, item: T) {
        debug_assert!(self.has_room(item.size()), "room was made");
        self.bytes += item.size();
        let last = self.items.back();
        self.changes += usize::from(last.is_some_and(|last| last.session() != item.session()));
        self.items.push_back(item);
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.items.front()
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.bytes -= item.size();
        let next = self.items.front();
        self.changes -= usize::from(next.is_some_and(|next| next.session() != item.session()));
        Some(item)
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
        let mut sums: Vec<(Option<StreamId>, usize)> = Vec::new();
        for item in &self.items {
            match sums.iter_mut().find(|(name, _)| *name == item.session()) {
                Some((_, bytes)) => *bytes += item.size(),
                None => sums.push((item.session(), item.size())),
            }
        }
        // Of equal ones that of the oldest item.
        let most = sums.iter().map(|(_, bytes)| *bytes).max()?;
        let (largest, _) = *sums.iter().find(|(_, bytes)| *bytes == most)?;
        let at = self
            .items
            .iter()
            .position(|item| item.session() == largest)?;
        let item = self.items.remove(at)?;
        self.bytes -= item.size();
        let pairs = self.items.iter().zip(self.items.iter().skip(1));
        let changes = pairs.filter(|(one, next)| one.session() != next.session());
        self.changes = changes.count();
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
        (self.bytes, self.changes) = (0, 0);
    }
}
