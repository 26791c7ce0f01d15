//! The state under the lock of a shard: the transport, an entry for each connection, and the batch
//! that waits to be sent.
//!
//! This file has the parts and the queries about them. [`events`] processes the events of connections,
//! [`sending`] sends their packets, and [`closing`] ends them; each calls only those before it.

mod closing;
mod events;
mod migration;
mod sending;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Poll, Waker};

use courser_base::Time;
use courser_base::foreign::{ForeignWaker, Remains};
use courser_transport::{
    ClosedStream, Connection, ConnectionError, ConnectionHandle, EarlyData, Endpoint, ShardPlace,
    SocketId, Streams,
};
use courser_wire::StreamId;

use crate::runtime::Socket;
use crate::shard::clock::Clock;
use crate::shard::driver_state::DriverState;
use crate::shard::drop_queue::{DropQueue, DropTask};
use crate::shard::entries::Entries;
use crate::shard::entry::ConnectionEntry;
use crate::shard::offload::{TlsOffload, TlsTasks};
use crate::shard::outbox::Outbox;
use crate::shard::stream::Stream;
use crate::shard::wakers::{List, Waiters};

/// The state under the lock of a shard.
#[derive(Debug)]
pub(crate) struct ShardState {
    pub(crate) endpoint: Endpoint,
    pub(crate) entries: Entries,
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
    /// Connections that need the MTU of their interface.
    mtu_queries: Vec<MtuQuery>,
    accepting: Waiters,
    idle: Waiters,
    socket_events: Waiters,
    /// The place of the shard among others of the same endpoint, if there are any.
    place: Option<ShardPlace>,
    /// Tasks to wake when the lock is released.
    pub(crate) woken: Vec<Waker>,
    pub(crate) drops: DropQueue,
    pub(crate) driver: DriverState,
    pub(crate) tls: TlsOffload,
    pub(crate) is_closed: bool,
    /// The last handle of the endpoint is gone.
    pub(crate) is_abandoned: bool,
    /// The reason why nothing is sent or received any more.
    pub(crate) stopped: Option<ConnectionError>,
}

/// A connection that needs the MTU of the interface of its path.
#[derive(Debug)]
struct MtuQuery {
    connection: ConnectionHandle,
    peer: SocketAddr,
    socket: SocketId,
}

impl ShardState {
    /// Creates the state of one of `shards` shards, with its place among them if there are several.
    pub(crate) fn new(
        endpoint: Endpoint,
        socket: Socket,
        clock: Clock,
        shards: usize,
        place: Option<ShardPlace>,
    ) -> Self {
        Self {
            endpoint,
            entries: Entries::default(),
            outbox: Outbox::new(Arc::new(socket)),
            clock,
            mtu_queries: Vec::new(),
            accepting: Waiters::default(),
            idle: Waiters::default(),
            socket_events: Waiters::default(),
            place,
            woken: Vec::new(),
            drops: DropQueue::default(),
            driver: DriverState::default(),
            tls: TlsOffload::new(shards),
            is_closed: false,
            is_abandoned: false,
            stopped: None,
        }
    }

    pub(crate) fn waiters(&mut self, list: List) -> &mut Waiters {
        match list {
            List::Incoming => &mut self.accepting,
            List::Idle => &mut self.idle,
            List::SocketEvents => &mut self.socket_events,
            List::Connection(handle, topic) => self.entry(handle).wakers.waiters(topic),
        }
    }

    /// Adds a connection that the transport has just begun. Returns the mark of a silent path.
    pub(crate) fn insert(&mut self, handle: ConnectionHandle) -> Arc<AtomicBool> {
        let silence = self.entries.insert(handle).silence.clone();
        self.endpoint.mark_ready(handle);
        silence
    }

    /// Returns the entry of a connection of which a handle exists.
    #[inline]
    pub(crate) fn entry(&mut self, handle: ConnectionHandle) -> &mut ConnectionEntry {
        let entry = self.entries.get_mut(handle);
        entry.expect("kept while a handle exists")
    }

    /// Changes the entry of a connection of which a handle exists, and wakes the tasks that `change` adds.
    pub(crate) fn wake(
        &mut self,
        handle: ConnectionHandle,
        change: impl FnOnce(&mut ConnectionEntry, &mut Vec<Waker>),
    ) {
        let entry = self.entries.get_mut(handle);
        change(entry.expect("kept while a handle exists"), &mut self.woken);
    }

    /// Returns the connection, open or not, or `None` if a panic has ended it.
    #[inline]
    pub(crate) fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.endpoint.connection_mut(handle)
    }

    /// Returns the reason why a connection is over, or `None` while it is not. The first reason stays.
    #[inline]
    pub(crate) fn end_of(&self, handle: ConnectionHandle) -> Option<&ConnectionError> {
        let entry = self.entries.get(handle);
        let is_over = entry.is_some_and(|entry| entry.is_over);
        let error = is_over.then(|| self.endpoint.close_error(handle));
        error.flatten().or(self.stopped.as_ref())
    }

    /// Returns the connection, if it is not over.
    pub(crate) fn open_connection(
        &mut self,
        handle: ConnectionHandle,
    ) -> Result<&mut Connection, ConnectionError> {
        if let Some(error) = self.end_of(handle) {
            return Err(error.clone());
        }
        if self.endpoint.connection(handle).is_none()
            && let Some(fault) = self.endpoint.close_error(handle)
        {
            return Err(fault.clone());
        }
        self.connection(handle)
            .ok_or(ConnectionError::LocallyClosed)
    }

    /// Returns true if the server has refused the stream with the early data.
    #[inline]
    pub(crate) fn is_rejected(&mut self, handle: ConnectionHandle, stream: Stream) -> bool {
        stream.is_early
            && self
                .connection(handle)
                .is_some_and(|it| it.stats().early_data == EarlyData::Rejected)
    }

    /// Returns the streams of a connection that is not over, for a call on one of them.
    ///
    /// # Errors
    /// Returns an error if the connection is over, or if the server has refused the stream with the early data.
    pub(crate) fn open_streams(
        &mut self,
        handle: ConnectionHandle,
        stream: Stream,
    ) -> Result<&mut Streams, ClosedStream> {
        if self.is_rejected(handle, stream) {
            return Err(ClosedStream);
        }
        let connection = self.open_connection(handle).map_err(|_| ClosedStream)?;
        Ok(connection.streams())
    }

    /// Returns the streams of a connection for a call on a received one, also after the end of the connection,
    /// or `None` if the server has refused the stream with the early data.
    pub(crate) fn received_streams(
        &mut self,
        handle: ConnectionHandle,
        stream: Stream,
    ) -> Option<&mut Streams> {
        if self.is_rejected(handle, stream) {
            return None;
        }
        self.streams(handle)
    }

    /// Returns `Pending` while the connection is not over.
    pub(crate) fn poll_open<T>(
        &self,
        handle: ConnectionHandle,
    ) -> Poll<Result<T, ConnectionError>> {
        match self.end_of(handle) {
            None => Poll::Pending,
            Some(error) => Poll::Ready(Err(error.clone())),
        }
    }

    /// Returns `Pending` until the handshake is complete. A completed handshake counts even if the connection is
    /// over.
    pub(crate) fn poll_connected(
        &mut self,
        handle: ConnectionHandle,
    ) -> Poll<Result<(), ConnectionError>> {
        if self.entry(handle).is_connected {
            return Poll::Ready(Ok(()));
        }
        self.poll_open(handle)
    }

    /// Returns the streams of a connection. After its end, only those with unread data remain.
    pub(crate) fn streams(&mut self, handle: ConnectionHandle) -> Option<&mut Streams> {
        self.connection(handle).map(Connection::streams)
    }

    /// Returns true when no connection is left that must still inform its peer.
    pub(crate) fn is_idle(&self) -> bool {
        self.endpoint.is_idle() || self.stopped.is_some()
    }

    /// Returns true when nothing is accepted any more, because all shards of the endpoint have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.stopped.is_some() && !self.place.as_ref().is_some_and(ShardPlace::has_living)
    }

    /// Returns true when clients wait, and the application has accepted as many as one turn allows.
    pub(crate) fn is_accepting_held(&self) -> bool {
        self.driver.accepts_left == 0 && self.endpoint.has_incoming()
    }

    /// Returns true when something is due before the driver's alarm rings.
    pub(crate) fn is_alarm_late(&self) -> bool {
        let is_earlier = |next: Time| self.driver.alarm.is_none_or(|alarm| next < alarm);
        self.endpoint.next_timeout().is_some_and(is_earlier)
    }

    /// Registers `waker` for the time when the stream accepts more, and wakes the tasks that wait until its writer
    /// waits.
    pub(crate) fn wait_to_write(
        &mut self,
        handle: ConnectionHandle,
        id: StreamId,
        waker: ForeignWaker,
    ) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.wakers.wait_to_write(id, waker);
            entry.wakers.wake_blocked(id, &mut self.woken);
        }
    }

    /// Resets the count of unsent bytes, because the peer or a timer must allow more first.
    pub(crate) fn forget_unsent(&mut self, handle: ConnectionHandle) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.unsent = 0;
            entry.uses = 0;
        }
    }

    /// Refuses all clients that wait to be accepted. If another process receives at the address, it gets their
    /// next datagrams, so they are not answered here.
    pub(crate) fn refuse_all(&mut self, now: Time) {
        while let Some(incoming) = self.endpoint.poll_incoming() {
            match self.outbox.sockets.is_given_away() {
                true => self.endpoint.ignore(incoming),
                false => self.endpoint.refuse(now, incoming),
            }
        }
    }

    /// Sorts the values of users that have ended under the lock; see [`DropQueue::sort`].
    pub(crate) fn sort_ended(&mut self, caller: Option<ConnectionHandle>) {
        if self.drops.sort(caller, &mut self.entries, &self.clock) {
            self.driver.call();
        }
    }

    /// Returns more values of a connection for the thread that has dropped the ones before.
    pub(crate) fn next_ended(&mut self, handle: Option<ConnectionHandle>) -> Vec<Remains> {
        let entry = handle.and_then(|handle| self.entries.get_mut(handle));
        let ended = entry.and_then(|entry| entry.ended.as_mut());
        ended.map(|ended| ended.take_next()).unwrap_or_default()
    }

    /// Takes the values of users that have waited long enough for the tasks of their connections.
    pub(crate) fn take_drop_tasks(&mut self, now: Time) -> Vec<DropTask> {
        self.drops.take_due(now, &mut self.entries)
    }

    /// Leaves the values of users to the thread, because the driver does not run any more.
    pub(crate) fn end_drops(&mut self) {
        self.drops.end(&mut self.entries);
    }

    /// Takes as many TLS tasks as may run.
    #[inline]
    pub(crate) fn take_tls_tasks(&mut self) -> TlsTasks {
        self.tls.take(&mut self.endpoint)
    }
}
