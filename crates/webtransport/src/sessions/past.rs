//! Numbers of sessions that have ended or were refused.

use std::collections::VecDeque;

use courser_http3::Code;

use crate::code;
use crate::session_id::SessionId;

/// The last sessions of a connection, so that their late streams are told apart from those of sessions that never
/// were (draft-ietf-webtrans-http3-16 §4).
#[derive(Debug, Default)]
pub(super) struct Past(VecDeque<Entry>);

#[derive(Debug)]
struct Entry {
    session: SessionId,
    fate: Fate,
    late: u16,
}

impl Past {
    /// Adds a session, and forgets the oldest one beyond the limit.
    pub(super) fn add(&mut self, session: SessionId, fate: Fate) {
        if self.0.len() >= MAX_PAST {
            self.0.pop_front();
        }
        self.0.push_back(Entry {
            session,
            fate,
            late: 0,
        });
    }

    pub(super) fn fate(&self, session: SessionId) -> Option<Fate> {
        let found = self.0.iter().rev().find(|entry| entry.session == session);
        found.map(|entry| entry.fate)
    }

    /// Counts a late stream. Returns true for as many as may have been on their way when the session ended.
    pub(super) fn count_late(&mut self, session: SessionId) -> bool {
        let found = self
            .0
            .iter_mut()
            .rev()
            .find(|entry| entry.session == session);
        let Some(entry) = found else {
            return false;
        };
        entry.late = entry.late.saturating_add(1);
        entry.late <= MAX_LATE
    }
}

/// The end of a session number that is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The session has ended.
    Ended,
    /// The request was refused.
    Refused,
}

impl Fate {
    /// Returns the code for late streams.
    pub(super) const fn code(self) -> Code {
        match self {
            Self::Ended => code::SESSION_GONE,
            Self::Refused => code::BUFFERED_STREAM_REJECTED,
        }
    }
}

/// Sessions that are remembered by number (limit K306).
const MAX_PAST: usize = 64;
/// Late streams of such a session that are not charged (limit K306): as many as a peer may open at first.
const MAX_LATE: u16 = 1024;
