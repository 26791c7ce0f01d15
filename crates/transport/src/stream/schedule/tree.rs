//! Streams of several sessions or groups.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use super::line::{Item, Key, Line};
use super::share::Share;
use super::turns::Turns;

/// The groups of one session, by their priorities.
type Levels = BTreeMap<Reverse<i32>, Turns<Line>>;

/// Streams in the order of class, session, priority, group and order. It has a node for each class, session and group
/// with data to send, and for no other.
#[derive(Debug, Default)]
pub(super) struct Tree {
    classes: BTreeMap<Reverse<i8>, Turns<Levels>>,
}

impl Tree {
    pub(super) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the stream whose turn it is.
    pub(super) fn first(&self) -> Option<u32> {
        let (_, sessions) = self.classes.first_key_value()?;
        let (_, levels) = sessions.first()?;
        let (_, groups) = levels.first_key_value()?;
        groups.first()?.1.first()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Item> {
        let sessions = self.classes.values().flat_map(Turns::iter);
        let groups = sessions.flat_map(BTreeMap::values);
        groups.flat_map(Turns::iter).flat_map(Line::iter)
    }

    /// Returns true if all other streams of its group have lower places than this one, and none of its session a
    /// higher priority.
    pub(super) fn is_led_by(&self, class: i8, share: &Share, stream: u32) -> bool {
        let Some(sessions) = self.classes.get(&Reverse(class)) else {
            return true;
        };
        let Some((Reverse(highest), groups)) = sessions
            .get(share.session)
            .and_then(BTreeMap::first_key_value)
        else {
            return true;
        };
        match share.priority.cmp(highest) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => groups
                .get(share.group)
                .is_none_or(|line| line.is_led_by(key(share.order, 0), stream)),
        }
    }

    /// Returns true if a stream of the session and the group, or of the session with a higher priority, has a higher place
    /// than this share.
    pub(super) fn precede(&self, class: i8, share: &Share) -> bool {
        let sessions = self.classes.get(&Reverse(class));
        let levels = sessions.and_then(|sessions| sessions.get(share.session));
        let Some((Reverse(highest), groups)) = levels.and_then(BTreeMap::first_key_value) else {
            return false;
        };
        match share.priority.cmp(highest) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => groups
                .get(share.group)
                .is_some_and(|line| line.has_before(key(share.order, 0))),
        }
    }

    /// Adds a stream.
    pub(super) fn push(&mut self, class: i8, share: &Share, number: u64, stream: u32) {
        let sessions = self.classes.entry(Reverse(class)).or_default();
        let levels = sessions.enter(share.session);
        let groups = levels.entry(Reverse(share.priority)).or_default();
        groups
            .enter(share.group)
            .push(key(share.order, number), stream);
    }

    /// Counts `len` bytes of the stream whose turn it is, and removes the stream.
    pub(super) fn pop_first(&mut self, len: u64) {
        let Some((class, session, priority, group)) = self.path() else {
            return;
        };
        self.remove_with(class, session, priority, group, Line::pop_first);
        self.count(class, session, priority, group, len);
    }

    /// Counts bytes of a group, if it still exists.
    fn count(&mut self, class: i8, session: u32, priority: i32, group: u32, len: u64) {
        let Some(sessions) = self.classes.get_mut(&Reverse(class)) else {
            return;
        };
        if let Some(levels) = sessions.get_mut(session)
            && let Some(groups) = levels.get_mut(&Reverse(priority))
        {
            groups.charge(group, len);
        }
        sessions.charge(session, len);
    }

    /// Returns class, session, priority and group of the stream whose turn it is.
    fn path(&self) -> Option<(i8, u32, i32, u32)> {
        let (class, sessions) = self.classes.first_key_value()?;
        let (session, levels) = sessions.first()?;
        let (priority, groups) = levels.first_key_value()?;
        let (group, _) = groups.first()?;
        Some((class.0, session, priority.0, group))
    }

    /// Removes a stream, wherever it is.
    pub(super) fn remove(&mut self, class: i8, share: &Share, number: u64) {
        let (session, priority, group) = (share.session, share.priority, share.group);
        let remove = |line: &mut Line| line.remove(key(share.order, number));
        self.remove_with(class, session, priority, group, remove);
    }

    /// Removes a stream from a line, and the nodes that are empty afterwards.
    fn remove_with(
        &mut self,
        class: i8,
        session: u32,
        priority: i32,
        group: u32,
        remove: impl FnOnce(&mut Line),
    ) {
        let Some(sessions) = self.classes.get_mut(&Reverse(class)) else {
            return;
        };
        let Some(levels) = sessions.get_mut(session) else {
            return;
        };
        let Some(groups) = levels.get_mut(&Reverse(priority)) else {
            return;
        };
        let Some(line) = groups.get_mut(group) else {
            return;
        };
        remove(line);
        if !line.is_empty() {
            return;
        }
        groups.remove(group);
        if groups.is_empty() {
            levels.remove(&Reverse(priority));
        }
        if levels.is_empty() {
            sessions.remove(session);
        }
        if sessions.is_empty() {
            self.classes.remove(&Reverse(class));
        }
    }

    /// Counts bytes of the stream whose turn it is. Returns true if the turn has ended among its equals, and it has
    /// `number` from now on. With `is_in_order`, turns of streams do not end.
    pub(super) fn on_sent(&mut self, len: u64, number: u64, is_in_order: bool) -> bool {
        let Some((_, sessions)) = self.classes.iter_mut().next() else {
            return false;
        };
        let mut has_moved = false;
        if let Some((_, levels)) = sessions.first_mut()
            && let Some((_, groups)) = levels.iter_mut().next()
        {
            if let Some((_, line)) = groups.first_mut() {
                has_moved = line.on_sent(len) && !is_in_order && line.end_turn(number);
            }
            groups.on_sent(len);
        }
        sessions.on_sent(len);
        has_moved
    }

    /// Counts bytes that a session has sent outside of streams.
    pub(super) fn charge(&mut self, class: i8, session: u32, len: u64) {
        if let Some(sessions) = self.classes.get_mut(&Reverse(class)) {
            sessions.charge(session, len);
        }
    }

    /// Moves all streams of a session to another class.
    pub(super) fn move_session(&mut self, session: u32, from: i8, to: i8) {
        let Some(sessions) = self.classes.get_mut(&Reverse(from)) else {
            return;
        };
        let Some(levels) = sessions.remove(session) else {
            return;
        };
        if sessions.is_empty() {
            self.classes.remove(&Reverse(from));
        }
        let sessions = self.classes.entry(Reverse(to)).or_default();
        *sessions.enter(session) = levels;
    }
}

/// Returns the place in the line of a group, which has one class and priority.
fn key(order: i64, number: u64) -> Key {
    Key::new(0, 0, order, number)
}
