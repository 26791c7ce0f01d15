//! The tasks that wait, and the events that they wait for.
//!
//! A wakeup is collected under the shard's lock and given after the lock is released: a task
//! that wakes on another core would find it taken. Wakers may have code of other executors, so they are
//! cloned before the lock is taken and dropped after its release. All tables keep their memory, so that waiting
//! and waking allocate nothing once a connection has found its size.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use courser_base::foreign::ForeignWaker;
use courser_transport::{ConnectionHandle, DatagramFate, DatagramId};
use courser_wire::{Direction, StreamId, VarInt};
use foldhash::fast::RandomState;
use slab::Slab;

use self::stops::Stops;
pub(crate) use self::watchers::Watch;
use self::watchers::Watchers;
use crate::error::WriteError;

mod stops;
mod watchers;

/// Tasks that wait for the same event. Each holds a ticket, so that a task that stops waiting can remove its
/// waker.
#[derive(Debug, Default)]
pub struct Waiters {
    wakers: Slab<Option<ForeignWaker>>,
}

/// The key of a waker in [`Waiters`], if there is one.
pub type Ticket = Option<usize>;

impl Waiters {
    /// Registers `waker` for the next [`wake_all`](Self::wake_all), and replaces an earlier one of the same
    /// ticket.
    pub fn register(&mut self, ticket: &mut Ticket, waker: ForeignWaker) {
        match ticket.and_then(|key| self.wakers.get_mut(key)) {
            Some(registered) => *registered = Some(waker),
            None => {
                // Most lists have one waker at a time. The default capacity is four.
                self.wakers
                    .reserve_exact(usize::from(self.wakers.capacity() == 0));
                *ticket = Some(self.wakers.insert(Some(waker)));
            }
        }
    }

    /// Removes the waker of a ticket.
    pub fn forget(&mut self, ticket: &mut Ticket) {
        if let Some(key) = ticket.take() {
            self.wakers.try_remove(key);
        }
    }

    /// Wakes all tasks. Their tickets remain valid.
    pub fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        let wakers = self.wakers.iter_mut().filter_map(|(_, waker)| waker.take());
        woken.extend(wakers.map(ForeignWaker::into_inner));
    }
}

/// The events other than bytes that tasks of one connection wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    /// Progress of the handshake.
    Handshake,
    /// The end of the connection.
    Closed,
    /// Permission to open a stream.
    Open(Direction),
    /// A stream that the peer opened.
    Accept(Direction),
    /// A datagram from the peer.
    Datagram,
    /// Room for a datagram.
    DatagramRoom,
    /// The answer to a PING.
    Ping,
    /// The end of a move to another path.
    Migration,
    /// The beginning or the end of the silence of the path.
    Silence,
    /// A change of the largest size of a datagram.
    DatagramSize,
}

/// A list of waiting tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    /// For connections to accept.
    Incoming,
    /// For the end of all connections.
    Idle,
    /// For events of the sockets.
    SocketEvents,
    /// For something on one connection.
    Connection(ConnectionHandle, Topic),
}

impl List {
    /// Returns the connection, if the list belongs to one.
    pub(crate) fn connection(self) -> Option<ConnectionHandle> {
        match self {
            Self::Connection(handle, _) => Some(handle),
            Self::Incoming | Self::Idle | Self::SocketEvents => None,
        }
    }
}

/// The result for a task that waits for the end of a stream.
#[derive(Debug)]
enum StreamEnd {
    /// The waker is taken when the task is woken.
    Awaited(Option<ForeignWaker>),
    Stopped(VarInt),
}

impl StreamEnd {
    fn take_waker(&mut self) -> Option<Waker> {
        match self {
            Self::Awaited(waker) => waker.take().map(ForeignWaker::into_inner),
            Self::Stopped(_) => None,
        }
    }
}

/// The state of a tracked datagram.
#[derive(Debug)]
enum TrackedFate {
    Open(Option<ForeignWaker>),
    Known(DatagramFate),
}

/// Each small request waits here once or twice, so the hash must be cheap. A peer can choose few bits of an ID,
/// and does not know the seed.
type ByStream = HashMap<StreamId, ForeignWaker, RandomState>;

/// All tasks that wait for something on one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionWakers {
    handshake: Waiters,
    closed: Waiters,
    open: [Waiters; 2],
    accept: [Waiters; 2],
    /// Waiters for datagrams, room for datagrams, answers to PING, migration, silence, and the size of datagrams.
    /// Allocated at first use.
    rare: Option<Box<[Waiters; 6]>>,
    /// Allocated when a task first watches a stream.
    watchers: Option<Box<Watchers>>,
    // A stream half belongs to one handle that is borrowed while it waits: one waker each.
    readers: ByStream,
    writers: ByStream,
    // Any number of tasks may wait for the end of one stream. The number distinguishes them.
    ends: BTreeMap<(StreamId, u64), StreamEnd>,
    next_end: u64,
    stops: Option<Box<Stops>>,
    // Datagrams whose fate will be asked for, until it is asked for or given up.
    fates: BTreeMap<DatagramId, TrackedFate>,
}

impl ConnectionWakers {
    pub(crate) fn waiters(&mut self, topic: Topic) -> &mut Waiters {
        match topic {
            Topic::Handshake => &mut self.handshake,
            Topic::Closed => &mut self.closed,
            Topic::Open(direction) => &mut self.open[index_of(direction)],
            Topic::Accept(direction) => &mut self.accept[index_of(direction)],
            Topic::Datagram => &mut self.rare.get_or_insert_default()[0],
            Topic::DatagramRoom => &mut self.rare.get_or_insert_default()[1],
            Topic::Ping => &mut self.rare.get_or_insert_default()[2],
            Topic::Migration => &mut self.rare.get_or_insert_default()[3],
            Topic::Silence => &mut self.rare.get_or_insert_default()[4],
            Topic::DatagramSize => &mut self.rare.get_or_insert_default()[5],
        }
    }

    pub(crate) fn wait_to_read(&mut self, id: StreamId, waker: ForeignWaker) {
        self.readers.insert(id, waker);
    }

    pub(crate) fn wait_to_write(&mut self, id: StreamId, waker: ForeignWaker) {
        self.writers.insert(id, waker);
    }

    pub(crate) fn wait_for_end(
        &mut self,
        id: StreamId,
        ticket: &mut Option<u64>,
        waker: ForeignWaker,
    ) {
        let number = *ticket.get_or_insert_with(|| {
            self.next_end += 1;
            self.next_end
        });
        self.ends
            .insert((id, number), StreamEnd::Awaited(Some(waker)));
    }

    /// Returns the code with which the peer stopped a stream whose handle exists, or stopped it while the holder
    /// of the ticket waited. The transport may no longer have the stream.
    pub(crate) fn stop_code(&self, id: StreamId, ticket: Option<u64>) -> Option<VarInt> {
        if let Some(StreamEnd::Stopped(code)) =
            ticket.and_then(|ticket| self.ends.get(&(id, ticket)))
        {
            return Some(*code);
        }
        self.stops.as_ref()?.code(id)
    }

    pub(crate) fn forget_reader(&mut self, id: StreamId) {
        self.readers.remove(&id);
    }

    /// Removes what is kept for the sending handle of a stream, which was dropped.
    pub(crate) fn forget_writer(&mut self, id: StreamId) {
        self.writers.remove(&id);
        if let Some(stops) = &mut self.stops {
            stops.forget(id);
        }
        if let Some(watchers) = &mut self.watchers {
            watchers.forget_deadline(id);
        }
    }

    pub(crate) fn forget_end(&mut self, id: StreamId, ticket: u64) {
        self.ends.remove(&(id, ticket));
        if self.ends.is_empty() {
            self.ends = BTreeMap::new(); // An empty map keeps a node.
        }
    }

    pub(crate) fn wake_reader(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        woken.extend(self.readers.remove(&id).map(ForeignWaker::into_inner));
    }

    pub(crate) fn wake_writer(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        woken.extend(self.writers.remove(&id).map(ForeignWaker::into_inner));
    }

    /// Wakes the tasks that wait for the end of a stream, because the peer has received everything or a reset.
    pub(crate) fn wake_finished(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        let ends = self.ends.range_mut((id, 0)..=(id, u64::MAX));
        woken.extend(ends.filter_map(|(_, end)| end.take_waker()));
    }

    /// Keeps the code with which the peer stopped a stream, for the handle of the stream.
    pub(crate) fn on_stopped(&mut self, id: StreamId, code: VarInt, was_finished: bool) {
        let stops = self.stops.get_or_insert_default();
        stops.keep(id, code, was_finished);
    }

    /// Wakes the tasks that wait for the end of a stream that the peer stopped.
    pub(crate) fn wake_stopped(&mut self, id: StreamId, code: VarInt, woken: &mut Vec<Waker>) {
        for (_, end) in self.ends.range_mut((id, 0)..=(id, u64::MAX)) {
            woken.extend(end.take_waker());
            *end = StreamEnd::Stopped(code);
        }
    }

    /// Keeps the fate of a datagram for a later call of [`fate`](Self::fate).
    pub(crate) fn await_fate(&mut self, id: DatagramId) {
        self.fates.insert(id, TrackedFate::Open(None));
    }

    /// Returns the fate of a datagram, or registers `waker` for the time when it is known.
    pub(crate) fn fate(&mut self, id: DatagramId, waker: ForeignWaker) -> Option<DatagramFate> {
        match self.fates.get_mut(&id)? {
            TrackedFate::Known(fate) => Some(*fate),
            TrackedFate::Open(known) => {
                *known = Some(waker);
                None
            }
        }
    }

    pub(crate) fn forget_fate(&mut self, id: DatagramId) {
        self.fates.remove(&id);
    }

    /// Stores the fate of a datagram, unless its handle is gone.
    pub(crate) fn on_fate(&mut self, id: DatagramId, fate: DatagramFate, woken: &mut Vec<Waker>) {
        if let Some(state) = self.fates.get_mut(&id)
            && let TrackedFate::Open(Some(waker)) =
                std::mem::replace(state, TrackedFate::Known(fate))
        {
            woken.push(waker.into_inner());
        }
    }

    /// Keeps the result for a task that waits until `len` bytes of a stream are acknowledged.
    pub(crate) fn await_acked(&mut self, id: StreamId, len: u64) -> Watch {
        let watchers = self.watchers.get_or_insert_default();
        watchers.await_acked(id, len)
    }

    /// Returns the result of a watch, or registers `waker` for the time when it is known.
    pub(crate) fn acked(
        &mut self,
        watch: Watch,
        waker: ForeignWaker,
    ) -> Option<Result<(), WriteError>> {
        self.watchers.as_mut()?.acked(watch, waker)
    }

    /// Returns the smallest number of bytes of a stream whose acknowledgement is waited for.
    pub(crate) fn next_awaited(&self, id: StreamId) -> Option<u64> {
        self.watchers.as_ref()?.next_awaited(id)
    }

    /// Sets the result of all watches for at most `up_to` bytes of a stream.
    pub(crate) fn settle(
        &mut self,
        id: StreamId,
        up_to: u64,
        result: &Result<(), WriteError>,
        woken: &mut Vec<Waker>,
    ) {
        if let Some(watchers) = &mut self.watchers {
            watchers.settle_if(id, |len| len <= up_to, result, woken);
        }
    }

    /// Ends watches for more than `len` bytes of a stream, which are no longer delivered.
    pub(crate) fn give_up_beyond(&mut self, id: StreamId, len: u64, woken: &mut Vec<Waker>) {
        if let Some(watchers) = &mut self.watchers {
            watchers.settle_if(
                id,
                |awaited| awaited > len,
                &Err(WriteError::ClosedStream),
                woken,
            );
        }
    }

    /// Records whether the deadline of a stream passes, while its handle exists.
    pub(crate) fn await_deadline(&mut self, id: StreamId) {
        self.watchers.get_or_insert_default().await_deadline(id);
    }

    /// Records that the deadline of a stream has passed.
    pub(crate) fn on_expired(&mut self, id: StreamId) {
        if let Some(watchers) = &mut self.watchers {
            watchers.on_expired(id);
        }
    }

    /// Returns true if the stream was reset because its deadline passed.
    pub(crate) fn has_expired(&self, id: StreamId) -> bool {
        let watchers = self.watchers.as_ref();
        watchers.is_some_and(|watchers| watchers.has_expired(id))
    }

    /// Registers `waker` for the next write to the stream that is refused, or for the end of the stream.
    pub(crate) fn wait_for_blocked(
        &mut self,
        id: StreamId,
        watch: &mut Option<Watch>,
        waker: ForeignWaker,
    ) {
        let watchers = self.watchers.get_or_insert_default();
        *watch = Some(watchers.wait_for_blocked(id, *watch, waker));
    }

    /// Wakes the tasks that wait until the writer of a stream waits.
    #[inline]
    pub(crate) fn wake_blocked(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        if let Some(watchers) = &mut self.watchers {
            watchers.wake_blocked(id, woken);
        }
    }

    pub(crate) fn forget_watch(&mut self, watch: Watch) {
        if let Some(watchers) = &mut self.watchers {
            watchers.forget(watch);
        }
    }

    /// Wakes the tasks that wait for the peer, because its path is silent: they may try another path.
    pub(crate) fn wake_for_silence(&mut self, woken: &mut Vec<Waker>) {
        let silence = self.rare.as_mut().map(|rare| &mut rare[4]);
        let waiters = [&mut self.handshake].into_iter().chain(&mut self.open);
        waiters
            .chain(silence)
            .for_each(|waiters| waiters.wake_all(woken));
        wake_in_order(&mut self.readers, woken);
        wake_in_order(&mut self.writers, woken);
    }

    /// Wakes the tasks that wait for another size of datagrams. Most connections have none.
    pub(crate) fn wake_for_datagram_size(&mut self, woken: &mut Vec<Waker>) {
        if let Some(rare) = &mut self.rare {
            rare[5].wake_all(woken);
        }
    }

    /// Wakes all tasks and frees the memory, because the connection is over.
    pub(crate) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        let [open_bi, open_uni] = &mut self.open;
        let [accept_bi, accept_uni] = &mut self.accept;
        let topics = [
            &mut self.handshake,
            &mut self.closed,
            open_bi,
            open_uni,
            accept_bi,
            accept_uni,
        ];
        let rare = self.rare.iter_mut().flat_map(|rare| rare.iter_mut());
        topics
            .into_iter()
            .chain(rare)
            .for_each(|waiters| waiters.wake_all(woken));
        if let Some(watchers) = &mut self.watchers {
            watchers.wake_all(woken);
        }
        wake_in_order(&mut self.readers, woken);
        wake_in_order(&mut self.writers, woken);
        let ends = std::mem::take(&mut self.ends).into_values();
        woken.extend(ends.filter_map(|mut end| end.take_waker()));
        for fate in self.fates.values_mut() {
            if let TrackedFate::Open(waker) = fate {
                woken.extend(waker.take().map(ForeignWaker::into_inner));
            }
        }
    }
}

fn index_of(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

/// Wakes all in the order of their streams: a table's own order differs from run to run, and a
/// simulated one has to be repeatable.
fn wake_in_order(wakers: &mut ByStream, woken: &mut Vec<Waker>) {
    let mut all: Vec<_> = std::mem::take(wakers).into_iter().collect();
    all.sort_unstable_by_key(|(id, _)| *id);
    woken.extend(all.into_iter().map(|(_, waker)| waker.into_inner()));
}

#[cfg(test)]
mod tests;
