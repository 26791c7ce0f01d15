//! Delivery of claimed streams to the sessions that they name.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use courser_base::foreign::ForeignWaker;
use courser_base::{Mutex, Side, Time};
use courser_quic::hooks::{Ticket, Waiters};

use super::ClaimedStream;

/// The streams of one group by session. No other lock is taken while its lock is held, which is taken under that of the
/// endpoint too.
///
/// A queue of a session has no limit of its own: the peer gets credit for a stream when it has ended and its
/// halves are dropped, so that no more can wait than it was granted.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Session>,
    /// Streams of sessions that nobody has registered yet, oldest first.
    early: VecDeque<(u64, ClaimedStream, Time)>,
    /// Sessions that are over, oldest first, each with the number of streams that may still arrive without
    /// being counted as useless.
    over: VecDeque<(u64, u32)>,
    /// The largest number of sessions that were open at the same time.
    most: usize,
    /// True while a task removes early streams that have waited too long.
    is_watched: bool,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Session {
    lanes: [Lane; 2],
}

/// The streams of one direction that wait, and the tasks that wait for them.
#[derive(Debug, Default)]
struct Lane {
    streams: VecDeque<ClaimedStream>,
    waiting: Waiters,
}

/// The streams that a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lanes {
    Bidirectional,
    Unidirectional,
}

/// What happened to a stream.
#[derive(Debug)]
pub(crate) enum Routed {
    /// Its session has it, or it was dropped with the connection.
    Done,
    /// It waits for its session to be registered.
    Early {
        /// True if a task must begin to watch the time.
        is_first: bool,
    },
    /// It must be refused, because too many streams wait for unknown sessions.
    Unknown(ClaimedStream),
    /// It must be refused, because its session is over.
    Over {
        stream: ClaimedStream,
        /// True if the peer must know by now.
        is_useless: bool,
    },
}

impl Sessions {
    /// Delivers a stream to the session of this number. `side` is that of this end.
    pub(crate) fn route(
        &self,
        now: Time,
        side: Side,
        number: u64,
        stream: ClaimedStream,
    ) -> Routed {
        let mut table = self.table.hold();
        if table.has_ended {
            return Routed::Done;
        }
        if let Some(session) = table.open.get_mut(&number) {
            let lane = session.lane(Lanes::of(&stream));
            lane.add(stream);
            let mut woken = Vec::new();
            lane.waiting.wake_all(&mut woken);
            drop(table);
            woken.into_iter().for_each(Waker::wake);
            return Routed::Done;
        }
        if let Some((_, left)) = table.over.iter_mut().find(|(over, _)| *over == number) {
            let is_useless = *left == 0;
            *left = left.saturating_sub(1);
            return Routed::Over { stream, is_useless };
        }
        let most = match side {
            Side::Server => MAX_EARLY,
            Side::Client => MAX_EARLY_OF_SERVER,
        };
        if table.early.len() >= most {
            return Routed::Unknown(stream);
        }
        table.early.push_back((number, stream, now));
        let is_first = !std::mem::replace(&mut table.is_watched, true);
        Routed::Early { is_first }
    }

    /// Registers a session, and moves the streams to it that wait for it. Returns the number of open sessions if there were
    /// never as many, and 0 otherwise; `None` if this one is registered, or over.
    pub(crate) fn register(&self, number: u64) -> Option<usize> {
        let mut table = self.table.hold();
        let is_known = table.over.iter().any(|(over, _)| *over == number);
        if is_known || table.open.contains_key(&number) {
            return None;
        }
        let mut session = Session::default();
        for (owner, stream, at) in std::mem::take(&mut table.early) {
            if owner == number {
                session.lane(Lanes::of(&stream)).add(stream);
            } else {
                table.early.push_back((owner, stream, at));
            }
        }
        table.open.insert(number, session);
        let count = table.open.len();
        let is_most = count > table.most;
        table.most = table.most.max(count);
        Some(if is_most { count } else { 0 })
    }

    /// Returns true while a session is open.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        self.table.hold().open.contains_key(&number)
    }

    /// Ends a session. Returns its streams, which must be refused.
    pub(crate) fn end(&self, number: u64) -> Vec<ClaimedStream> {
        let mut table = self.table.hold();
        let session = table.open.remove(&number);
        let mut refused = Vec::new();
        let mut woken = Vec::new();
        for lane in session.into_iter().flat_map(|session| session.lanes) {
            refused.extend(lane.streams);
            let mut waiting = lane.waiting;
            waiting.wake_all(&mut woken);
        }
        for (owner, stream, at) in std::mem::take(&mut table.early) {
            if owner == number {
                refused.push(stream);
            } else {
                table.early.push_back((owner, stream, at));
            }
        }
        if !table.over.iter().any(|(over, _)| *over == number) {
            if table.over.len() == MAX_OVER {
                table.over.pop_front();
            }
            table.over.push_back((number, LATE_STREAMS));
        }
        drop(table);
        woken.into_iter().for_each(Waker::wake);
        refused
    }

    /// Polls for the next stream of a session. Returns `None` if the session or the connection has ended.
    pub(crate) fn poll_stream(
        &self,
        cx: &Context<'_>,
        number: u64,
        lanes: Lanes,
        ticket: &mut Ticket,
    ) -> Poll<Option<ClaimedStream>> {
        let taken = self.table.hold().take(number, lanes);
        if taken.is_ready() {
            return taken;
        }
        // Only a task that has to wait needs a waker, which is not made under the lock.
        let waker = ForeignWaker::of(cx);
        let mut table = self.table.hold();
        let taken = table.take(number, lanes);
        if taken.is_ready() {
            return taken;
        }
        if let Some(session) = table.open.get_mut(&number) {
            session.lane(lanes).waiting.register(ticket, waker);
        }
        Poll::Pending
    }

    /// Removes a task that waits for streams of a session.
    pub(crate) fn forget(&self, number: u64, lanes: Lanes, ticket: &mut Ticket) {
        if ticket.is_some()
            && let Some(session) = self.table.hold().open.get_mut(&number)
        {
            session.lane(lanes).waiting.forget(ticket);
        }
    }

    /// Removes the streams that have waited too long for their session. Returns the time until the next one, or
    /// `None` if no stream waits.
    pub(crate) fn expire(&self, now: Time) -> (Vec<ClaimedStream>, Option<Duration>) {
        let mut table = self.table.hold();
        let mut expired = Vec::new();
        while let Some((_, _, at)) = table.early.front() {
            let waited = now - *at;
            if waited < LONGEST_EARLY {
                return (expired, Some(LONGEST_EARLY.saturating_sub(waited)));
            }
            expired.extend(table.early.pop_front().map(|early| early.1));
        }
        table.is_watched = false;
        (expired, None)
    }

    /// Removes all streams, because the peer does not support the extension.
    pub(crate) fn take_streams(&self) -> Vec<ClaimedStream> {
        let mut table = self.table.hold();
        let mut streams: Vec<_> = table.early.drain(..).map(|early| early.1).collect();
        for session in table.open.values_mut() {
            for lane in &mut session.lanes {
                streams.extend(lane.streams.drain(..));
            }
        }
        streams
    }

    /// Drops the streams of a closed connection, and wakes all tasks.
    pub(crate) fn on_end(&self) {
        let mut table = self.table.hold();
        table.has_ended = true;
        let mut dropped: Vec<_> = table.early.drain(..).map(|early| early.1).collect();
        let mut woken = Vec::new();
        for session in table.open.values_mut() {
            for lane in &mut session.lanes {
                dropped.extend(lane.streams.drain(..));
                lane.waiting.wake_all(&mut woken);
            }
        }
        drop(table);
        drop(dropped);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Table {
    /// Takes the next stream of a session, or `None` if the session or the connection has ended.
    fn take(&mut self, number: u64, lanes: Lanes) -> Poll<Option<ClaimedStream>> {
        let Some(session) = self.open.get_mut(&number) else {
            return Poll::Ready(None);
        };
        match session.lane(lanes).streams.pop_front() {
            None if !self.has_ended => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}

impl Session {
    const fn lane(&mut self, lanes: Lanes) -> &mut Lane {
        let [bidirectional, unidirectional] = &mut self.lanes;
        match lanes {
            Lanes::Bidirectional => bidirectional,
            Lanes::Unidirectional => unidirectional,
        }
    }
}

impl Lane {
    /// Adds a stream. Those that wait are taken in the order in which the peer has opened them: their headers are read
    /// by several tasks, which end in any order.
    fn add(&mut self, stream: ClaimedStream) {
        let is_before = |other: &ClaimedStream| other.id() < stream.id();
        let at = self.streams.iter().rposition(is_before);
        self.streams.insert(at.map_or(0, |at| at + 1), stream);
    }
}

impl Lanes {
    const fn of(stream: &ClaimedStream) -> Self {
        match stream.send {
            Some(_) => Self::Bidirectional,
            None => Self::Unidirectional,
        }
    }
}

/// Largest number of streams of a connection that wait for a session to be registered (limit K585).
const MAX_EARLY: usize = 16;
/// Largest number on a client (limit K589). A server opens streams as soon as it has sent its response, which another
/// task reads.
const MAX_EARLY_OF_SERVER: usize = 2048;
/// Time for which they wait (limit K585).
const LONGEST_EARLY: Duration = Duration::from_secs(5);
/// Number of sessions that are remembered when they are over (limit K581).
const MAX_OVER: usize = 64;
/// Number of streams of a session that may arrive after its end without being counted as useless (limit K581):
/// as many as a peer that has not heard of the end may have opened.
const LATE_STREAMS: u32 = 1024;
