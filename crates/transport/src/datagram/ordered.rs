//! Datagrams that have an order beside the streams of their session.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use courser_wire::StreamId;

use super::queue::{Outgoing, Sizeable as _};

/// The datagrams of a session, the highest order first, and of equal ones the oldest.
type Line = BTreeMap<(Reverse<i64>, u64), Outgoing>;

/// Datagrams with an order that wait to be sent, by session.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    sessions: BTreeMap<Option<StreamId>, Line>,
    bytes: usize,
    len: usize,
    /// The number of the latest datagram.
    number: u64,
    /// The session that was considered last: the next one has its turn.
    last: Option<StreamId>,
}

impl Ordered {
    /// Returns the number of datagrams.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of all datagrams.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a datagram.
    pub(super) fn push(&mut self, order: i64, datagram: Outgoing) {
        self.number += 1;
        self.len += 1;
        self.bytes += datagram.size();
        let line = self.sessions.entry(datagram.session).or_default();
        line.insert((Reverse(order), self.number), datagram);
    }

    /// Returns the session whose turn it is of those whose first datagram may be sent: `may_send` gets the session and
    /// the order. Considers some sessions at a time, and others the next time.
    pub(super) fn turn(
        &mut self,
        mut may_send: impl FnMut(Option<StreamId>, i64) -> bool,
    ) -> Option<Option<StreamId>> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let sessions = self.sessions.range(behind);
        let sessions = sessions.chain(self.sessions.range(..=self.last));
        let mut considered = self.last;
        for (session, line) in sessions.take(CONSIDERED) {
            considered = *session;
            if let Some((&(Reverse(order), _), _)) = line.first_key_value()
                && may_send(*session, order)
            {
                self.last = considered;
                return Some(*session);
            }
        }
        self.last = considered;
        None
    }

    /// Returns the first datagram of a session.
    pub(super) fn first(&self, session: Option<StreamId>) -> Option<&Outgoing> {
        let (_, first) = self.sessions.get(&session)?.first_key_value()?;
        Some(first)
    }

    /// Removes and returns the first datagram of a session.
    pub(super) fn pop(&mut self, session: Option<StreamId>) -> Option<Outgoing> {
        self.take(session, |line| line.pop_first())
    }

    /// Removes and returns the last datagram of a session: the newest of the lowest order.
    pub(super) fn pop_last(&mut self, session: Option<StreamId>) -> Option<Outgoing> {
        self.take(session, |line| line.pop_last())
    }

    fn take(
        &mut self,
        session: Option<StreamId>,
        take: impl FnOnce(&mut Line) -> Option<((Reverse<i64>, u64), Outgoing)>,
    ) -> Option<Outgoing> {
        let line = self.sessions.get_mut(&session)?;
        let (_, datagram) = take(line)?;
        if line.is_empty() {
            self.sessions.remove(&session);
        }
        self.on_removed(&datagram);
        Some(datagram)
    }

    fn on_removed(&mut self, datagram: &Outgoing) {
        self.len -= 1;
        self.bytes -= datagram.size();
    }

    /// Removes and returns the chosen datagrams.
    pub(super) fn take_if(&mut self, chosen: impl Fn(&Outgoing) -> bool) -> Vec<Outgoing> {
        let mut taken = Vec::new();
        self.sessions.retain(|_, line| {
            for (place, datagram) in std::mem::take(line) {
                if chosen(&datagram) {
                    taken.push(datagram);
                } else {
                    line.insert(place, datagram);
                }
            }
            !line.is_empty()
        });
        for datagram in &taken {
            self.on_removed(datagram);
        }
        taken
    }

    /// Returns all datagrams.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Outgoing> {
        self.sessions.values().flat_map(BTreeMap::values)
    }
}

/// Sessions whose first datagrams are compared with streams for each packet at most (limit K647). Other sessions follow
/// with the next packets.
const CONSIDERED: usize = 16;
