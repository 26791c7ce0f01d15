//! The state behind the lock of a shard: the transport, the facade's part of each connection,
//! and what waits to leave.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use courser_base::Time;
use courser_transport::{
    Connection, ConnectionError, ConnectionHandle, Endpoint, Streams, TransportError,
};
use courser_wire::TransportErrorCode;
use slab::Slab;

use crate::outbox::Outbox;
use crate::runtime::Socket;
use crate::slot::{Remains, Slot};
use crate::wakers::{List, Waiters};

/// The state behind the lock of a shard.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    slots: Slab<Slot>,
    /// Slot of each connection of the transport, by its index there.
    keys: Vec<usize>,
    pub(crate) outbox: Outbox,
    /// Connections that may have something to send.
    queue: VecDeque<usize>,
    /// Connections of clients whose handshake has just completed.
    pub(crate) connected: Vec<usize>,
    pub(crate) accepting: Waiters,
    idle: Waiters,
    /// To be woken when the lock is released.
    pub(crate) woken: Vec<Waker>,
    pub(crate) driver: DriverState,
    /// TLS work that runs on other threads.
    pub(crate) tls_running: usize,
    /// Something was written or changed that nobody has tried to send yet.
    pub(crate) has_unflushed: bool,
    /// Connections that are not over, or whose peers do not know yet.
    busy: usize,
    /// `Endpoint::close` was called.
    pub(crate) is_closed: bool,
    /// The last handle of the endpoint is gone.
    pub(crate) is_abandoned: bool,
    /// Nothing moves any more, for this reason.
    pub(crate) stopped: Option<ConnectionError>,
}

/// The state that the task of the driver shares with other tasks.
#[derive(Debug, Default)]
pub(crate) struct DriverState {
    waker: Option<Waker>,
    /// It is to be woken when the lock is released.
    pub(crate) is_wanted: bool,
    /// It was woken and has not run since.
    is_notified: bool,
    /// It has woken tasks and waits for what they write, to send it with its own.
    pub(crate) is_turn_open: bool,
    /// When its alarm will ring.
    pub(crate) alarm: Option<Time>,
    /// Clients that the application may still accept before the driver's next turn.
    pub(crate) accepts_left: usize,
}

/// Batches that one connection sends before the next one has its turn.
const BATCHES_PER_TURN: usize = 4;
/// Answers without a connection (Retry, refusals, resets) sent in one go: as many as one turn receives
/// datagrams that need one.
const STATELESS_PER_TURN: usize = 256;
/// Maximum of TLS tasks that run at a time on one endpoint (limit K91): a quarter of the threads
/// that tokio has for blocking work. Further tasks wait in order.
const MAX_RUNNING: usize = 128;
/// No connection.
const NO_KEY: usize = usize::MAX;

impl State {
    pub(crate) fn new(endpoint: Endpoint, max_segments: usize) -> Self {
        Self {
            endpoint,
            slots: Slab::new(),
            keys: Vec::new(),
            outbox: Outbox::new(max_segments),
            queue: VecDeque::new(),
            connected: Vec::new(),
            accepting: Waiters::default(),
            idle: Waiters::default(),
            woken: Vec::new(),
            driver: DriverState::default(),
            tls_running: 0,
            has_unflushed: false,
            busy: 0,
            is_closed: false,
            is_abandoned: false,
            stopped: None,
        }
    }

    pub(crate) fn waiters(&mut self, list: List) -> &mut Waiters {
        match list {
            List::Incoming => &mut self.accepting,
            List::Idle => &mut self.idle,
            List::Connection(key, topic) => self.slots[key].wakers.waiters(topic),
        }
    }

    /// Makes room for a connection that the transport has just begun.
    pub(crate) fn insert(&mut self, handle: ConnectionHandle) -> usize {
        let key = self.slots.insert(Slot::new(handle));
        if self.keys.len() <= handle.index() {
            self.keys.resize(handle.index() + 1, NO_KEY);
        }
        self.keys[handle.index()] = key;
        self.busy += 1;
        self.touch(key);
        key
    }

    pub(crate) fn slot(&mut self, key: usize) -> &mut Slot {
        &mut self.slots[key]
    }

    pub(crate) fn keys_in_use(&self) -> Vec<usize> {
        self.slots.iter().map(|(key, _)| key).collect()
    }

    /// The connection in the transport, until that has forgotten it.
    pub(crate) fn connection(&mut self, key: usize) -> Option<&mut Connection> {
        let slot = &self.slots[key];
        if slot.in_transport {
            self.endpoint.connection_mut(slot.handle)
        } else {
            None
        }
    }

    /// The connection, if it is not over.
    pub(crate) fn open_connection(
        &mut self,
        key: usize,
    ) -> Result<&mut Connection, ConnectionError> {
        let slot = &self.slots[key];
        match &slot.error {
            Some(error) => Err(error.clone()),
            None if slot.in_transport
                && let Some(fault) = self.endpoint.fault(slot.handle) =>
            {
                Err(fault.clone())
            }
            None => self.connection(key).ok_or(ConnectionError::LocallyClosed),
        }
    }

    /// Pending while the connection is not over.
    pub(crate) fn poll_open<T>(&mut self, key: usize) -> Poll<Result<T, ConnectionError>> {
        match self.open_connection(key) {
            Ok(_) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// The streams of a connection, as far as they are known: when it is over, those with
    /// something that had arrived.
    pub(crate) fn streams(&mut self, key: usize) -> Option<&mut Streams> {
        if self.slots[key].unread.is_some() {
            return self.slots[key].unread.as_deref_mut();
        }
        self.connection(key).map(Connection::streams)
    }

    /// Returns a fact about a connection, open or not.
    pub(crate) fn view<T>(
        &mut self,
        key: usize,
        alive: impl FnOnce(&Connection) -> T,
        over: impl FnOnce(&Remains) -> T,
    ) -> T {
        match self.connection(key) {
            Some(connection) => alive(connection),
            None => over(self.slots[key].remains.get_or_insert_with(Box::default)),
        }
    }

    pub(crate) fn touch(&mut self, key: usize) {
        let slot = &self.slots[key];
        if slot.in_transport {
            self.endpoint.touched(slot.handle);
        }
    }

    /// No connection is left that a peer should hear of.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy == 0 || self.stopped.is_some()
    }

    /// Clients wait, and the application has accepted as many as one turn allows.
    pub(crate) fn is_accepting_held(&self) -> bool {
        self.driver.accepts_left == 0 && self.endpoint.has_incoming()
    }

    /// There is more to send than one turn allows.
    pub(crate) fn has_more(&self) -> bool {
        let has_more = !self.queue.is_empty() || self.endpoint.has_replies();
        has_more && !self.outbox.is_blocked()
    }

    /// There is TLS work, and room for it to run.
    #[inline]
    pub(crate) fn wants_tls(&self) -> bool {
        self.endpoint.has_tls_tasks() && self.tls_running < MAX_RUNNING
    }

    /// Something is due before the driver's alarm rings.
    pub(crate) fn is_alarm_late(&self) -> bool {
        let is_earlier = |next: Time| self.driver.alarm.is_none_or(|alarm| next < alarm);
        self.endpoint.next_timeout().is_some_and(is_earlier)
    }

    /// Asks connections that something happened to for their events, and queues them to send.
    pub(crate) fn collect(&mut self, now: Time) {
        while let Some(handle) = self.endpoint.next_touched() {
            let key = self.keys.get(handle.index()).copied().unwrap_or(NO_KEY);
            if self.slots.get(key).is_none_or(|slot| slot.handle != handle) {
                continue;
            }
            self.guarded_events(key);
            if let Some(slot) = self.slots.get_mut(key)
                && slot.in_transport
                && !slot.is_queued
            {
                slot.is_queued = true;
                self.queue.push_back(key);
            }
        }
        if self.is_closed || self.is_abandoned {
            while let Some(incoming) = self.endpoint.poll_incoming() {
                self.endpoint.refuse(now, incoming);
            }
        } else if self.endpoint.has_incoming() {
            // They stay in the endpoint, where networks take turns.
            self.accepting.wake_all(&mut self.woken);
        }
    }

    /// Hands on the events of a connection; one that panics is dropped.
    fn guarded_events(&mut self, key: usize) {
        let handle = self.slots[key].handle;
        // The connection is dropped without another look; of its slot nothing is left half done
        // that its end would need.
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_events(key)));
        if let Err(payload) = taken {
            self.endpoint.drop_faulty(handle, payload);
            self.on_forgotten(key);
        }
    }

    /// Hands on what a connection has to tell.
    fn take_events(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        let Some(connection) = self.endpoint.connection_mut(slot.handle) else {
            return self.on_forgotten(key);
        };
        while let Some(event) = connection.poll_event() {
            if matches!(event, courser_transport::Event::Connected) && connection.side().is_server()
            {
                self.connected.push(key);
            }
            slot.on_event(event, &mut self.woken);
        }
        if !connection.is_closed() {
            return;
        }
        if slot.is_held && (slot.remains.is_none() || connection.is_drained()) {
            slot.remains = Some(Box::new(Remains::of(connection)));
        }
        if slot.is_held && slot.unread.is_none() {
            slot.unread = connection.take_unread().map(Box::new);
        }
        while let Some(datagram) = connection.datagrams().receive()
            && slot.is_held
        {
            slot.unread_datagrams.push_back(datagram);
        }
        if connection.is_quiet() {
            self.on_quiet(key);
        }
    }

    /// Ends a connection for the application; the first reason stays.
    pub(crate) fn end(&mut self, key: usize, error: ConnectionError) {
        self.slots[key].end(error, &mut self.woken);
    }

    /// The peer knows that the connection is over.
    fn on_quiet(&mut self, key: usize) {
        if !std::mem::replace(&mut self.slots[key].is_quiet, true) {
            self.busy -= 1;
        }
        if self.busy == 0 {
            self.idle.wake_all(&mut self.woken);
        }
    }

    /// The transport has forgotten a connection.
    fn on_forgotten(&mut self, key: usize) {
        self.on_quiet(key);
        let fault = self.endpoint.take_fault(self.slots[key].handle);
        self.end(key, fault.unwrap_or(ConnectionError::LocallyClosed));
        let slot = &mut self.slots[key];
        slot.in_transport = false;
        self.keys[slot.handle.index()] = NO_KEY;
        self.forget_if_over(key);
    }

    pub(crate) fn forget_if_over(&mut self, key: usize) {
        let slot = &self.slots[key];
        // One that is queued is dropped when its turn comes.
        if !slot.in_transport && !slot.is_held && !slot.is_queued {
            self.slots.remove(key);
        }
    }

    /// Sends a few batches for each connection in the queue.
    ///
    /// # Errors
    /// When the socket is of no use any more.
    pub(crate) fn transmit_all(&mut self, socket: &Socket, now: Time) -> io::Result<()> {
        for _ in 0..STATELESS_PER_TURN {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_stateless_transmit(buffer) else {
                break;
            };
            if !self.outbox.send(socket, transmit)? {
                return Ok(());
            }
        }
        for _ in 0..self.queue.len() {
            let Some(key) = self.queue.pop_front() else {
                break;
            };
            if self.transmit_connection(socket, now, key)? {
                self.queue.push_back(key);
            } else {
                self.slots[key].is_queued = false;
                self.forget_if_over(key);
            }
            if self.outbox.is_blocked() {
                break;
            }
        }
        Ok(())
    }

    /// Sends batches of one connection while it has at least `enough` bytes for one.
    ///
    /// # Errors
    /// When the socket is of no use any more.
    pub(crate) fn transmit_batches(
        &mut self,
        socket: &Socket,
        now: Time,
        (key, enough): (usize, usize),
    ) -> io::Result<()> {
        let handle = self.slots[key].handle;
        while self.slots[key].unflushed >= enough && !self.outbox.is_blocked() {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_transmit(now, handle, buffer) else {
                // Whatever is left has to wait for the peer or for its time.
                self.slots[key].unflushed = 0;
                break;
            };
            let slot = &mut self.slots[key];
            slot.unflushed = slot.unflushed.saturating_sub(transmit.len);
            self.outbox.send(socket, transmit)?;
        }
        // What has left makes room for writers.
        self.guarded_events(key);
        Ok(())
    }

    /// Sends a few batches of one connection. True if it has more, or may have.
    fn transmit_connection(&mut self, socket: &Socket, now: Time, key: usize) -> io::Result<bool> {
        let (handle, in_transport) = (self.slots[key].handle, self.slots[key].in_transport);
        if !in_transport {
            return Ok(false);
        }
        let mut has_more = true;
        for _ in 0..BATCHES_PER_TURN {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_transmit(now, handle, buffer) else {
                has_more = false;
                self.slots[key].unflushed = 0;
                break;
            };
            if !self.outbox.send(socket, transmit)? {
                break;
            }
        }
        // What has left makes room for writers.
        self.guarded_events(key);
        if self
            .connection(key)
            .is_some_and(|connection| connection.is_drained())
        {
            // It had events: only now can the transport forget it, when it is asked again.
            self.endpoint.touched(handle);
        }
        Ok(has_more)
    }

    /// Nothing can move any more: ends everything that waits.
    pub(crate) fn stop(&mut self, reason: &str) {
        if self.stopped.is_some() {
            return;
        }
        let reason = format!("the endpoint has stopped: {reason}");
        let error = TransportError::new(TransportErrorCode::INTERNAL_ERROR, reason);
        let error = ConnectionError::TransportError(error);
        for (_, slot) in &mut self.slots {
            slot.end(error.clone(), &mut self.woken);
        }
        self.stopped = Some(error);
        self.accepting.wake_all(&mut self.woken);
        self.idle.wake_all(&mut self.woken);
        self.driver.is_wanted = true;
    }
}

impl DriverState {
    /// The driver runs: what others left for it is being looked at.
    pub(crate) fn on_running(&mut self, waker: &Waker) {
        (self.is_wanted, self.is_notified) = (false, false);
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
    }

    /// The driver's waker, if it has to be woken and was not yet.
    pub(crate) fn take_wakeup(&mut self) -> Option<Waker> {
        let is_wanted = std::mem::take(&mut self.is_wanted);
        if !is_wanted || std::mem::replace(&mut self.is_notified, true) {
            return None;
        }
        self.waker.clone()
    }
}
