//! Members that share by turns.

use std::collections::BTreeMap;

/// Members that take turns of [`QUANTUM`] bytes. What a member sends beyond its turn counts in its next one, so that
/// all get the same number of bytes.
#[derive(Debug)]
pub(super) struct Turns<T> {
    members: BTreeMap<u32, Member<T>>,
    /// The members by the numbers of their turns.
    turns: BTreeMap<u64, u32>,
    /// The number of the next turn.
    next: u64,
}

#[derive(Debug)]
struct Member<T> {
    turn: u64,
    /// Bytes used of its turn, and beyond it.
    spent: u64,
    content: T,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
            turns: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T: Default> Turns<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the member whose turn it is.
    pub(super) fn first(&self) -> Option<(u32, &T)> {
        let (_, id) = self.turns.first_key_value()?;
        let member = self.members.get(id)?;
        Some((*id, &member.content))
    }

    /// Returns the member whose turn it is.
    pub(super) fn first_mut(&mut self) -> Option<(u32, &mut T)> {
        let (_, id) = self.turns.first_key_value()?;
        let member = self.members.get_mut(id)?;
        Some((*id, &mut member.content))
    }

    pub(super) fn get(&self, id: u32) -> Option<&T> {
        self.members.get(&id).map(|member| &member.content)
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.members.get_mut(&id).map(|member| &mut member.content)
    }

    /// Returns the members in the order of their turns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let members = self.turns.values().filter_map(|id| self.members.get(id));
        members.map(|member| &member.content)
    }

    /// Returns a member, which gets the last turn if it is new.
    pub(super) fn enter(&mut self, id: u32) -> &mut T {
        let (turns, next) = (&mut self.turns, &mut self.next);
        let member = self.members.entry(id).or_insert_with(|| {
            *next += 1;
            turns.insert(*next, id);
            Member {
                turn: *next,
                spent: 0,
                content: T::default(),
            }
        });
        &mut member.content
    }

    /// Removes a member.
    pub(super) fn remove(&mut self, id: u32) -> Option<T> {
        let member = self.members.remove(&id)?;
        self.turns.remove(&member.turn);
        self.settle();
        Some(member.content)
    }

    /// Counts bytes sent by the member whose turn it is.
    pub(super) fn on_sent(&mut self, len: u64) {
        if let Some((_, &id)) = self.turns.first_key_value() {
            self.charge(id, len);
        }
    }

    /// Counts bytes sent for a member, whose turn it need not be.
    pub(super) fn charge(&mut self, id: u32, len: u64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.spent = member.spent.saturating_add(len).min(MOST_SPENT);
            self.settle();
        }
    }

    /// Passes the turn on until it is that of a member with bytes left. Bytes of a member that is alone do not count:
    /// it takes them from no other.
    fn settle(&mut self) {
        if self.members.len() == 1
            && let Some(member) = self.members.values_mut().next()
        {
            member.spent = 0;
            return;
        }
        while let Some(mut first) = self.turns.first_entry() {
            let id = *first.get_mut();
            let Some(member) = self.members.get_mut(&id) else {
                return;
            };
            if member.spent < QUANTUM {
                return;
            }
            member.spent -= QUANTUM;
            self.next += 1;
            member.turn = self.next;
            first.remove();
            self.turns.insert(self.next, id);
        }
    }
}

/// The bytes that a stream, a group or a session sends in one turn (limit K657).
pub(super) const QUANTUM: u64 = 16 << 10;

/// Most bytes that count in later turns of a member, 16 of them: a burst must not keep it waiting for long (limit K658).
const MOST_SPENT: u64 = 256 << 10;
