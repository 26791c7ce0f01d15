//! The state under the lock of a shard: the transport, an entry for each connection, and the batch
//! that waits to be sent.
//!
//! The verbs that send are in [`sending`](crate::shard::sending).

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Poll, Waker};

use courser_base::Time;
use courser_base::foreign::ForeignWaker;
use courser_transport::{
    Connection, ConnectionError, ConnectionHandle, EarlyData, Endpoint, Event, ShardPlace,
    SocketId, StreamEvent, Streams, TransportError,
};
use courser_wire::{StreamId, TransportErrorCode, VarInt};

use crate::runtime::Socket;
use crate::shard::clock::Clock;
use crate::shard::ended::Ended;
use crate::shard::entry::ConnectionEntry;
use crate::shard::make_way::Run;
use crate::shard::outbox::Outbox;
use crate::shard::stream::Stream;
use crate::shard::timing::SendTiming;
use crate::shard::wakers::{List, Waiters};

/// The state under the lock of a shard.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    /// The entry of each connection, by the index of its handle, until the last handle of the
    /// application is gone.
    entries: Vec<Option<ConnectionEntry>>,
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
    /// Connections that need to know the MTU of their interface, with the peer and the socket of the path.
    searching: Vec<(ConnectionHandle, SocketAddr, SocketId)>,
    accepting: Waiters,
    idle: Waiters,
    pub(crate) socket_events: Waiters,
    /// The shard's place among others of the same endpoint, if there are any.
    place: Option<ShardPlace>,
    /// To be woken when the lock is released.
    pub(crate) woken: Vec<Waker>,
    /// Values of users that wait to be dropped.
    pub(crate) ended: Ended,
    pub(crate) driver: DriverState,
    /// TLS work that runs on other threads.
    pub(crate) tls_running: usize,
    /// Maximum of these.
    max_tls_running: usize,
    /// `Endpoint::close` was called.
    pub(crate) is_closed: bool,
    /// The last handle of the endpoint is gone.
    pub(crate) is_abandoned: bool,
    /// The reason why nothing is sent or received any more.
    pub(crate) stopped: Option<ConnectionError>,
}

/// The state that the task of the driver and other tasks share.
#[derive(Debug, Default)]
pub(crate) struct DriverState {
    waker: Option<ForeignWaker>,
    call: Call,
    /// When its alarm will ring.
    pub(crate) alarm: Option<Time>,
    /// Clients that the application may still accept before the driver's next turn.
    pub(crate) accepts_left: usize,
    pub(crate) run: Run,
}

/// Maximum of TLS tasks that run at a time on one endpoint (limit K91): a quarter of the threads
/// that tokio has for blocking work. Further tasks wait in order. Each shard has its part.
const MAX_RUNNING: usize = 128;

/// A call for the driver to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Call {
    /// Nothing is left for it to do.
    #[default]
    None,
    /// It is to be woken when the lock is released.
    Wanted,
    /// It was woken and has not run since.
    Given,
}

impl State {
    /// Creates the state of one of so many shards.
    pub(crate) fn new(
        endpoint: Endpoint,
        socket: Socket,
        clock: Clock,
        (shards, place): (usize, Option<ShardPlace>),
    ) -> Self {
        Self {
            endpoint,
            entries: Vec::new(),
            outbox: Outbox::new(Arc::new(socket)),
            clock,
            searching: Vec::new(),
            accepting: Waiters::default(),
            idle: Waiters::default(),
            socket_events: Waiters::default(),
            place,
            woken: Vec::new(),
            ended: Ended::default(),
            driver: DriverState::default(),
            tls_running: 0,
            max_tls_running: MAX_RUNNING.div_ceil(shards),
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

    /// Makes room for a connection that the transport has just begun. Returns the mark of a silent path.
    pub(crate) fn insert(&mut self, handle: ConnectionHandle) -> Arc<AtomicBool> {
        let index = handle.index();
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        let entry = self.entries[index].insert(ConnectionEntry::default());
        let silence = entry.silence.clone();
        self.endpoint.touched(handle);
        silence
    }

    /// Returns the entry of a connection of which a handle exists.
    #[inline]
    pub(crate) fn entry(&mut self, handle: ConnectionHandle) -> &mut ConnectionEntry {
        self.entries[handle.index()]
            .as_mut()
            .expect("kept while a handle exists")
    }

    /// Returns the entry of a connection, if a handle of it exists and no panic has ended it.
    #[inline]
    pub(crate) fn find_entry(&mut self, handle: ConnectionHandle) -> Option<&mut ConnectionEntry> {
        // The index may have had another connection before.
        self.endpoint.connection(handle)?;
        self.entries.get_mut(handle.index())?.as_mut()
    }

    /// Returns the connection, open or not, or `None` if a panic has ended it.
    #[inline]
    pub(crate) fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.endpoint.connection_mut(handle)
    }

    /// Returns the reason why a connection is over, or `None` while it is not. The first reason stays.
    #[inline]
    pub(crate) fn end_of(&self, handle: ConnectionHandle) -> Option<&ConnectionError> {
        let entry = self.entries.get(handle.index()).and_then(Option::as_ref);
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

    /// Returns true for a stream that is gone, because the server has refused the early data.
    #[inline]
    pub(crate) fn is_rejected(&mut self, handle: ConnectionHandle, stream: Stream) -> bool {
        stream.is_early
            && self
                .connection(handle)
                .is_some_and(|it| it.stats().early_data == EarlyData::Rejected)
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

    /// Returns `Pending` until the handshake is complete. One that was completed counts, even if the
    /// peer has left since.
    pub(crate) fn poll_connected(
        &mut self,
        handle: ConnectionHandle,
    ) -> Poll<Result<(), ConnectionError>> {
        if self.entry(handle).is_connected {
            return Poll::Ready(Ok(()));
        }
        self.poll_open(handle)
    }

    /// Returns the streams of a connection. When it is over, those with unread data remain.
    pub(crate) fn streams(&mut self, handle: ConnectionHandle) -> Option<&mut Streams> {
        self.connection(handle).map(Connection::streams)
    }

    /// Returns true when no connection is left whose end a peer should learn of.
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

    /// Returns true when there is a TLS task, and room for it to run.
    #[inline]
    pub(crate) fn wants_tls(&self) -> bool {
        self.endpoint.has_tls_tasks() && self.tls_running < self.max_tls_running
    }

    /// Returns true when something is due before the driver's alarm rings.
    pub(crate) fn is_alarm_late(&self) -> bool {
        let is_earlier = |next: Time| self.driver.alarm.is_none_or(|alarm| next < alarm);
        self.endpoint.next_timeout().is_some_and(is_earlier)
    }

    /// Asks connections that something happened to for their events, and queues them to send.
    ///
    /// An interface is asked for its MTU when a connection begins to search for larger datagrams. That
    /// costs several system calls, which short connections and forged first packets must not cause.
    pub(crate) fn collect_events(&mut self, now: Time) {
        while let Some(handle) = self.endpoint.next_touched() {
            self.take_events(handle);
            self.endpoint.queue_sender(handle);
        }
        if self.is_closed || self.is_abandoned {
            self.refuse_all(now);
        } else if self.endpoint.has_incoming() {
            // They stay in the endpoint, where networks take turns.
            self.accepting.wake_all(&mut self.woken);
        }
        while let Some((handle, peer, socket)) = self.searching.pop() {
            let socket = self.outbox.sockets.get(socket);
            let mtu = socket.and_then(|socket| socket.interface_mtu(peer));
            self.set_interface_mtu(handle, mtu);
        }
    }

    /// Passes on the events of a connection, and drops the connection if that panics. Wakes the tasks
    /// that wait for the end of all connections, if no other is left.
    pub(crate) fn take_events(&mut self, handle: ConnectionHandle) {
        // The connection is dropped without another look; of its entry nothing is left half done
        // that its end would need.
        let taken = catch_unwind(AssertUnwindSafe(|| self.poll_events(handle)));
        if let Err(payload) = taken {
            self.endpoint.drop_faulty(handle, payload);
        }
        self.wake_if_idle();
    }

    /// Lets time pass for connections that wait for their turn to send, while none can have it.
    pub(crate) fn settle_senders(&mut self, now: Time) {
        self.endpoint.settle_senders(now);
        self.collect_events(now);
        self.wake_if_idle();
    }

    fn wake_if_idle(&mut self) {
        if self.endpoint.is_idle() {
            self.idle.wake_all(&mut self.woken);
        }
    }

    fn poll_events(&mut self, handle: ConnectionHandle) {
        let Some(entry) = self
            .entries
            .get_mut(handle.index())
            .and_then(Option::as_mut)
        else {
            // No handle is left, so no task waits for its events.
            return;
        };
        let Some(connection) = self.endpoint.connection_mut(handle) else {
            // A panic has ended it.
            return entry.on_end(&mut self.woken);
        };
        while let Some(event) = connection.poll_event() {
            if let Event::InterfaceMtuWanted { peer, socket } = event {
                self.searching.push((handle, peer, socket));
            }
            let acknowledged = match event {
                Event::Stream(StreamEvent::Acknowledged { id, .. }) => Some(id),
                _ => None,
            };
            entry.on_event(event, &mut self.woken);
            if let Some(id) = acknowledged
                && let Some(len) = entry.wakers.next_awaited(id)
            {
                // The end of a stream has an event of its own.
                let _ = connection.streams().await_acknowledged(id, len);
            }
        }
    }

    /// Has `waker` called when there is room for the writer of a stream, and wakes those who wait
    /// until the writer waits.
    pub(crate) fn wait_to_write(
        &mut self,
        handle: ConnectionHandle,
        id: StreamId,
        waker: ForeignWaker,
    ) {
        if let Some(Some(entry)) = self.entries.get_mut(handle.index()) {
            entry.wakers.wait_to_write(id, waker);
            entry.wakers.wake_blocked(id, &mut self.woken);
        }
    }

    /// Resets the count of unsent bytes: the peer or a timer must allow more first.
    pub(crate) fn forget_unsent(&mut self, handle: ConnectionHandle) {
        let entry = self
            .entries
            .get_mut(handle.index())
            .and_then(Option::as_mut);
        if let Some(entry) = entry {
            entry.unsent = 0;
            entry.uses = 0;
        }
    }

    /// Sets the size of packets that the interface of a connection takes.
    pub(crate) fn set_interface_mtu(&mut self, handle: ConnectionHandle, mtu: Option<u32>) {
        if let (Some(mtu), Some(connection)) = (mtu, self.connection(handle)) {
            connection.set_interface_mtu(mtu);
        }
    }

    /// Ends a connection for the application, and sends its end to the peer.
    pub(crate) fn close(&mut self, handle: ConnectionHandle, code: VarInt, reason: &[u8]) {
        // What was written before gets its chance to leave before.
        self.send_now();
        self.begin_close(handle, code, reason);
        self.send_now();
    }

    /// Ends all connections, now and to come.
    pub(crate) fn close_all(&mut self, code: VarInt, reason: &[u8]) {
        self.is_closed = true;
        self.send_now();
        self.refuse_all(self.clock.now());
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            self.begin_close(handle, code, reason);
        }
        self.send_now();
        self.accepting.wake_all(&mut self.woken);
    }

    fn begin_close(&mut self, handle: ConnectionHandle, code: VarInt, reason: &[u8]) {
        let now = self.clock.now();
        if let Some(connection) = self.connection(handle) {
            connection.close(now, code.into_inner(), reason);
            self.endpoint.touched(handle);
        }
    }

    /// Refuses all clients that wait to be accepted.
    pub(crate) fn refuse_all(&mut self, now: Time) {
        while let Some(incoming) = self.endpoint.poll_incoming() {
            self.endpoint.refuse(now, incoming);
        }
    }

    /// Closes and releases a connection whose last handle is gone.
    pub(crate) fn on_handles_gone(&mut self, handle: ConnectionHandle) {
        if self.end_of(handle).is_none() {
            self.close(handle, VarInt::default(), b"");
        }
        if let Some(entry) = self.entries[handle.index()].take() {
            self.keep_remains_of(entry);
        }
        // Low indexes are used first, so the list is short again after a burst.
        while let Some(None) = self.entries.last() {
            self.entries.pop();
        }
        // As the tables of the transport do (limit K258).
        if self.entries.capacity() >= 4096 && self.entries.len() <= self.entries.capacity() / 8 {
            self.entries.shrink_to(2 * self.entries.len());
        }
        self.endpoint.release(handle);
    }

    /// Ends everything that waits, because nothing can be sent or received any more. Other shards go on,
    /// and get later datagrams. Returns the sockets, for the caller to drop without the lock.
    #[must_use = "the sockets are dropped without the lock"]
    pub(crate) fn stop(&mut self, reason: &str) -> Vec<Arc<Socket>> {
        if self.stopped.is_some() {
            return Vec::new();
        }
        self.outbox.health.on_stopped(reason);
        self.endpoint.leave_shards();
        let reason = format!("the endpoint has stopped: {reason}");
        let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
        self.stopped = Some(ConnectionError::TransportError(error));
        self.outbox.timing = SendTiming::Stopped;
        for entry in self.entries.iter_mut().flatten() {
            entry.wakers.wake_all(&mut self.woken);
        }
        self.accepting.wake_all(&mut self.woken);
        self.idle.wake_all(&mut self.woken);
        self.socket_events.wake_all(&mut self.woken);
        self.driver.call();
        self.outbox.sockets.close()
    }
}

impl DriverState {
    /// Has the driver run after the lock is released.
    #[inline]
    pub(crate) fn call(&mut self) {
        if self.call == Call::None {
            self.call = Call::Wanted;
        }
    }

    /// Notes that the driver runs, and processes all that other tasks left for it.
    ///
    /// `waker` is taken if there is none from an earlier run, or one of another task.
    pub(crate) fn on_running(&mut self, waker: &mut Option<ForeignWaker>) {
        self.call = Call::None;
        let is_known = match (&self.waker, &waker) {
            (Some(known), Some(waker)) => known.as_waker().will_wake(waker.as_waker()),
            (known, None) => known.is_some(),
            (None, Some(_)) => false,
        };
        if !is_known {
            std::mem::swap(&mut self.waker, waker);
        }
    }

    /// Returns the driver's waker, if it has to be woken and was not yet.
    pub(crate) fn take_wakeup(&mut self) -> Option<Waker> {
        if self.call != Call::Wanted {
            return None;
        }
        self.call = Call::Given;
        // The driver brings another one when it runs.
        self.waker.take().map(ForeignWaker::into_inner)
    }
}
