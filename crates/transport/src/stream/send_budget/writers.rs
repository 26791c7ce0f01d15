//! The writers that wait for memory of the connection.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use courser_wire::StreamId;

/// The writers that wait for memory of the connection, and the memory that sessions hold.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// Streams without a session whose writers wait.
    plain: VecDeque<StreamId>,
    /// Streams of sessions whose writers wait, by session.
    of_sessions: BTreeMap<u32, VecDeque<StreamId>>,
    /// Bytes that are kept until they are acknowledged by session, without those of streams that have none.
    held: BTreeMap<u32, u64>,
    /// The session whose writer was woken last while others waited too.
    woken: u32,
    /// The streams among those above that precede all others of their groups, at most [`MOST_LEADS`].
    leads: Vec<StreamId>,
}

impl Writers {
    /// Returns true if none waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.of_sessions.is_empty()
    }

    /// Returns true if none waits, and no session holds bytes.
    pub(super) fn is_unused(&self) -> bool {
        self.is_empty() && self.held.is_empty()
    }

    /// Returns the number of sessions that hold bytes or whose writers wait. All streams without a session count as one
    /// if their writers wait.
    pub(super) fn sessions(&self) -> usize {
        self.held.len().max(self.waiting_sessions())
    }

    fn waiting_sessions(&self) -> usize {
        self.of_sessions.len() + usize::from(!self.plain.is_empty())
    }

    /// Returns the bytes that a session holds.
    pub(super) fn held(&self, session: u32) -> u64 {
        self.held.get(&session).copied().unwrap_or_default()
    }

    /// Changes the bytes that a session holds, from those of one of its streams before to those after.
    pub(super) fn on_held(&mut self, session: u32, before: u64, after: u64) {
        let held = self.held.entry(session);
        match held {
            Entry::Vacant(held) if after > before => {
                held.insert(after - before);
            }
            Entry::Vacant(_) => {}
            Entry::Occupied(mut held) => {
                let left = (held.get() + after).saturating_sub(before);
                match left {
                    0 => held.remove(),
                    left => held.insert(left),
                };
            }
        }
    }

    /// Adds the writer of a stream to those of its session, if it is not among them.
    pub(super) fn wait(&mut self, session: u32, id: StreamId) {
        let writers = match session {
            0 => &mut self.plain,
            session => self.of_sessions.entry(session).or_default(),
        };
        if !writers.contains(&id) {
            writers.push_back(id);
        }
    }

    /// Removes the writer of a stream that was woken otherwise, is over or in another session: it would count as one that
    /// waits, and the session with it.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.plain.retain(|&other| other != id);
        self.of_sessions.retain(|_, writers| {
            writers.retain(|&other| other != id);
            !writers.is_empty()
        });
    }

    /// Removes and returns the next writer of a stream without a session, if sessions neither wait nor hold bytes.
    pub(super) fn next_plain(&mut self) -> Option<StreamId> {
        if !self.of_sessions.is_empty() || !self.held.is_empty() {
            return None;
        }
        self.plain.pop_front()
    }

    /// Removes and returns the writers to wake: all of them if there is no choice or nearly all memory is free, else one
    /// of each session that holds less than three quarters of its share.
    pub(super) fn next(&mut self, is_nearly_free: bool, share: u64) -> Vec<StreamId> {
        if is_nearly_free || self.waiting_sessions() <= 1 && self.held.len() <= 1 {
            let mut all: Vec<StreamId> = std::mem::take(&mut self.plain).into();
            let of_sessions = std::mem::take(&mut self.of_sessions);
            all.extend(of_sessions.into_values().flatten());
            return all;
        }
        let mut sessions: Vec<u32> = Vec::with_capacity(self.waiting_sessions());
        sessions.extend((!self.plain.is_empty()).then_some(0));
        sessions.extend(self.of_sessions.keys());
        // Those behind the session that was first before are first now.
        let behind = sessions.partition_point(|session| *session <= self.woken);
        sessions.rotate_left(behind);
        if let Some(first) = sessions.first() {
            self.woken = *first;
        }
        let mut woken = Vec::with_capacity(sessions.len());
        for session in sessions {
            if session == 0 {
                woken.extend(self.plain.pop_front());
                continue;
            }
            if self.held(session) > share / 4 * 3 {
                continue;
            }
            if let Entry::Occupied(mut writers) = self.of_sessions.entry(session) {
                woken.extend(writers.get_mut().pop_front());
                if writers.get().is_empty() {
                    writers.remove();
                }
            }
        }
        woken
    }

    /// Returns the streams whose writers wait, those of each session that have begun last first.
    pub(super) fn waiting(&self) -> impl Iterator<Item = StreamId> {
        let of_sessions = self.of_sessions.values().flat_map(|it| it.iter().rev());
        self.plain.iter().rev().chain(of_sessions).copied()
    }

    /// Returns the streams whose writers wait although they precede all others of their groups.
    pub(super) fn leads(&self) -> &[StreamId] {
        &self.leads
    }

    /// Adds a stream to those that precede all others of their groups, and keeps the others for which `stays` returns
    /// true. A stream for which there is no place waits like the others.
    pub(super) fn wait_to_lead(&mut self, id: StreamId, mut stays: impl FnMut(StreamId) -> bool) {
        self.leads.retain(|&other| other != id && stays(other));
        if self.leads.len() < MOST_LEADS {
            self.leads.push(id);
        }
    }

    /// Removes and returns the stream that has waited longest of these.
    pub(super) fn next_lead(&mut self) -> Option<StreamId> {
        (!self.leads.is_empty()).then(|| self.leads.remove(0))
    }
}

/// Streams that are woken before others because they precede all others of their groups, one of each group (limit
/// K647): each blocked write of such a stream compares it with all of them.
const MOST_LEADS: usize = 16;
