//! The order in which streams send.

mod line;
mod share;
mod tree;
mod turns;

use std::num::NonZeroU64;

use self::line::{Key, Line};
pub use self::share::Level;
pub(crate) use self::share::Share;
use self::tree::Tree;

/// Streams with data to send, in the order of their [`Share`].
///
/// A turn lasts 16 KiB: long enough that packets carry one stream each, short enough
/// that a small response does not wait for a large one.
///
/// Most connections have no sessions and groups. While all streams belong to one session and group they are in one line,
/// and they move to a tree when others come.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The streams of one session and group. Empty while there is a tree.
    line: Line,
    /// The session and the group of the line.
    session: u32,
    group: u32,
    tree: Option<Box<Tree>>,
    /// The number of the latest addition.
    number: u64,
    /// The number of streams.
    streams: u32,
    /// True if a turn lasts until the stream has nothing to send.
    is_in_order: bool,
}

/// The place of a stream in a [`Schedule`], which removing it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place(NonZeroU64);

impl Schedule {
    /// Creates an order without streams, in which equal ones take turns if it is fair.
    pub(super) fn new(is_fair: bool) -> Self {
        Self {
            is_in_order: !is_fair,
            ..Self::default()
        }
    }

    /// Returns true if no stream waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.streams == 0
    }

    /// Returns the stream whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        match &self.tree {
            None => self.line.first(),
            Some(tree) => tree.first(),
        }
    }

    /// Returns the stream that waits if it is the only one.
    #[inline]
    pub(super) fn only(&self) -> Option<u32> {
        self.first().filter(|_| self.streams == 1)
    }

    /// Returns the streams and their number, unless there are more than `N`.
    #[inline(never)]
    pub(super) fn few<const N: usize>(&self) -> Option<([u32; N], usize)> {
        let mut streams = [0; N];
        let count = self.streams as usize;
        let places = streams.get_mut(..count)?;
        match &self.tree {
            None => self.line.copy_to(places),
            Some(tree) => {
                for (place, item) in places.iter_mut().zip(tree.iter()) {
                    *place = item.stream;
                }
            }
        }
        Some((streams, count))
    }

    /// Returns true if all other streams of its session and group have lower places than this one.
    pub(super) fn is_led_by(&self, class: i8, share: &Share, stream: u32) -> bool {
        match &self.tree {
            None if (self.session, self.group) != (share.session, share.group) => true,
            None => {
                let key = Key::new(class, share.priority, share.order, 0);
                self.line.is_led_by(key, stream)
            }
            Some(tree) => tree.is_led_by(class, share, stream),
        }
    }

    /// Returns true if a stream of the session and the group, or of the session with a higher priority, has a higher place
    /// than this share.
    pub(super) fn precede(&self, class: i8, share: &Share) -> bool {
        match &self.tree {
            None if self.session != share.session => false,
            None => {
                let order = match self.group == share.group {
                    true => share.order,
                    // Only those of a higher priority count.
                    false => i64::MAX,
                };
                self.line
                    .has_before(Key::new(class, share.priority, order, 0))
            }
            Some(tree) => tree.precede(class, share),
        }
    }

    /// Returns all streams.
    #[cfg(test)]
    fn all(&self) -> impl Iterator<Item = u32> {
        let tree = self.tree.iter().flat_map(|tree| tree.iter());
        self.line.iter().chain(tree).map(|item| item.stream)
    }

    /// Adds a stream behind its equals. `class` is that of its session, or its own if it has none.
    #[inline]
    pub(super) fn push(&mut self, class: i8, share: &Share, stream: u32) -> Place {
        let place = self.next();
        self.streams += 1;
        if self.tree.is_none() {
            if self.line.is_empty() {
                (self.session, self.group) = (share.session, share.group);
            }
            if (self.session, self.group) == (share.session, share.group) {
                let key = Key::new(class, share.priority, share.order, place.0.get());
                self.line.push(key, stream);
                return place;
            }
        }
        self.plant().push(class, share, place.0.get(), stream);
        place
    }

    fn next(&mut self) -> Place {
        self.number += 1;
        Place(NonZeroU64::new(self.number).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the tree, to which the streams of the line are moved.
    #[inline(never)]
    fn plant(&mut self) -> &mut Tree {
        let line = std::mem::take(&mut self.line);
        let tree = self.tree.get_or_insert_default();
        for item in line.iter() {
            let (class, priority, order) = item.key.parts();
            let share = Share {
                class,
                session: self.session,
                priority,
                group: self.group,
                order,
            };
            tree.push(class, &share, item.key.number, item.stream);
        }
        tree
    }

    /// Removes the tree if it is empty.
    fn fell(&mut self) {
        if self.tree.as_ref().is_some_and(|tree| tree.is_empty()) {
            self.tree = None;
        }
    }

    /// Removes a stream, wherever it is in the order.
    pub(super) fn remove(&mut self, class: i8, share: &Share, place: Place) {
        debug_assert!(self.streams > 0, "a stream with a place waits");
        self.streams -= 1;
        let number = place.0.get();
        match &mut self.tree {
            None => {
                let key = Key::new(class, share.priority, share.order, number);
                self.line.remove(key);
            }
            Some(tree) => {
                tree.remove(class, share, number);
                self.fell();
            }
        }
    }

    /// Counts `len` bytes sent by the stream whose turn it is. Returns its new place if its turn has ended.
    #[inline]
    pub(super) fn on_sent(&mut self, len: u64) -> Option<Place> {
        if self.tree.is_some() {
            return self.on_sent_in_tree(len);
        }
        if !self.line.on_sent(len) || self.is_in_order {
            return None;
        }
        self.end_turn()
    }

    #[inline(never)]
    fn end_turn(&mut self) -> Option<Place> {
        let place = self.next();
        self.line.end_turn(place.0.get()).then_some(place)
    }

    #[inline(never)]
    fn on_sent_in_tree(&mut self, len: u64) -> Option<Place> {
        let place = self.next();
        let tree = self.tree.as_mut()?;
        let has_moved = tree.on_sent(len, place.0.get(), self.is_in_order);
        has_moved.then_some(place)
    }

    /// Counts `len` bytes that were sent by the stream whose turn it is, and removes the stream.
    #[inline]
    pub(super) fn on_last_sent(&mut self, len: u64) {
        self.streams = self.streams.saturating_sub(1);
        match &mut self.tree {
            None => self.line.pop_first(),
            Some(_) => self.on_last_sent_in_tree(len),
        }
    }

    #[inline(never)]
    fn on_last_sent_in_tree(&mut self, len: u64) {
        if let Some(tree) = &mut self.tree {
            tree.pop_first(len);
            self.fell();
        }
    }

    /// Counts bytes that a session has sent outside of streams, such as datagrams.
    pub(super) fn charge(&mut self, class: i8, session: u32, len: u64) {
        if let Some(tree) = &mut self.tree {
            tree.charge(class, session, len);
        }
    }

    /// Moves all streams of a session to another class.
    pub(super) fn move_session(&mut self, session: u32, from: i8, to: i8) {
        if self.tree.is_some() || (self.session == session && !self.line.is_empty()) {
            self.plant().move_session(session, from, to);
            self.fell();
        }
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.line.shrink();
    }
}

#[cfg(test)]
mod tests;
