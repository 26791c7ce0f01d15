//! What the lock of a shard guards: the transport, its connections' slots, what waits to leave.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use bytes::Bytes;
use courser_base::Time;
use courser_transport::{
    Connection, ConnectionError, ConnectionHandle, Endpoint, Incoming, TransportError,
};
use courser_udp::UdpSocket;
use courser_wire::TransportErrorCode;
use slab::Slab;

use crate::VarInt;
use crate::outbox::Outbox;
use crate::shard::List;
use crate::slot::{Remains, Slot};
use crate::wakers::Waiters;

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    slots: Slab<Slot>,
    /// Slot of each connection of the transport, by its index there.
    keys: Vec<usize>,
    pub(crate) outbox: Outbox,
    /// Connections that may have something to send.
    queue: VecDeque<usize>,
    pub(crate) incoming: VecDeque<Incoming>,
    accepting: Waiters,
    idle: Waiters,
    woken: Vec<Waker>,
    pub(crate) driver: DriverState,
    /// Bytes written and neither sent nor handed to the driver's turn.
    unflushed: Option<usize>,
    /// Connections whose peers do not know yet that they are over.
    busy: usize,
    /// Set by `Endpoint::close`: what later comers are told.
    pub(crate) closed: Option<(VarInt, Bytes)>,
    /// The last handle of the endpoint is gone.
    pub(crate) is_abandoned: bool,
    /// Nothing moves any more, for this reason.
    stopped: Option<ConnectionError>,
}

/// What the task of the driver and the others tell each other.
#[derive(Debug, Default)]
pub(crate) struct DriverState {
    pub(crate) waker: Option<Waker>,
    /// It is to be woken when the lock is released.
    is_wanted: bool,
    /// It was woken and has not run since.
    is_notified: bool,
    /// It has woken tasks and waits for what they write, to send it with its own.
    pub(crate) is_turn_open: bool,
    /// When its alarm will ring.
    pub(crate) alarm: Option<Time>,
}

/// Batches that one connection sends before the next one has its turn.
const BATCHES_PER_TURN: usize = 4;
/// Answers without a connection (Retry, refusals, resets) sent in one turn.
const STATELESS_PER_TURN: usize = 64;
/// No connection.
const NO_KEY: usize = usize::MAX;

impl State {
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
        match &self.slots[key].error {
            Some(error) => Err(error.clone()),
            None => self.connection(key).ok_or(ConnectionError::LocallyClosed),
        }
    }

    /// What is known of a connection, alive or not.
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

    /// Has the driver look at something once the lock is released.
    pub(crate) fn wake_driver(&mut self) {
        self.driver.is_wanted = true;
    }

    /// The reason why nothing moves any more.
    pub(crate) fn stopped(&self) -> Option<&ConnectionError> {
        self.stopped.as_ref()
    }

    /// No connection is left that a peer should hear of.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy == 0 || self.stopped.is_some()
    }

    /// Somebody waits to be woken.
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// There is more to send than one turn allows.
    pub(crate) fn has_more(&self) -> bool {
        !self.queue.is_empty() && !self.outbox.is_blocked()
    }

    /// Asks connections that something happened to for their events, and queues them to send.
    pub(crate) fn collect(&mut self, now: Time) {
        while let Some(handle) = self.endpoint.next_touched() {
            let key = self.keys.get(handle.index()).copied().unwrap_or(NO_KEY);
            if self.slots.get(key).is_none_or(|slot| slot.handle != handle) {
                continue;
            }
            self.take_events(key);
            if let Some(slot) = self.slots.get_mut(key)
                && slot.in_transport
                && !slot.is_queued
            {
                slot.is_queued = true;
                self.queue.push_back(key);
            }
        }
        while let Some(incoming) = self.endpoint.poll_incoming() {
            if self.closed.is_some() || self.is_abandoned {
                self.endpoint.refuse(now, incoming);
            } else {
                self.incoming.push_back(incoming);
                self.accepting.wake_all(&mut self.woken);
            }
        }
    }

    /// Hands on what a connection has to tell.
    fn take_events(&mut self, key: usize) {
        let slot = &mut self.slots[key];
        let Some(connection) = self.endpoint.connection_mut(slot.handle) else {
            return self.on_forgotten(key);
        };
        while let Some(event) = connection.poll_event() {
            slot.on_event(event, &mut self.woken);
        }
        if !connection.is_closed() {
            return;
        }
        if slot.is_held && (slot.remains.is_none() || connection.is_drained()) {
            slot.remains = Some(Box::new(Remains::of(connection)));
        }
        if connection.is_drained() {
            // The next call for datagrams makes the transport forget it.
            self.endpoint.touched(slot.handle);
        }
        if connection.is_quiet() {
            self.on_quiet(key);
        }
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

    /// The transport has forgotten a connection, or is about to.
    fn on_forgotten(&mut self, key: usize) {
        self.on_quiet(key);
        let slot = &mut self.slots[key];
        slot.end(ConnectionError::LocallyClosed, &mut self.woken);
        slot.in_transport = false;
        self.keys[slot.handle.index()] = NO_KEY;
        self.forget_if_over(key);
    }

    fn forget_if_over(&mut self, key: usize) {
        let slot = &self.slots[key];
        // A queued key is dropped when its turn comes.
        if !slot.in_transport && !slot.is_held && !slot.is_queued {
            self.slots.remove(key);
        }
    }

    fn transmit_all(&mut self, socket: &UdpSocket, now: Time) -> io::Result<()> {
        for _ in 0..STATELESS_PER_TURN {
            let Some(transmit) = self.endpoint.poll_stateless_transmit(self.outbox.buffer()) else {
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
            let has_more = self.transmit_connection(socket, now, key)?;
            if has_more {
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

    /// Sends a few batches of one connection. True if it has more, or may have.
    fn transmit_connection(
        &mut self,
        socket: &UdpSocket,
        now: Time,
        key: usize,
    ) -> io::Result<bool> {
        let (handle, in_transport) = (self.slots[key].handle, self.slots[key].in_transport);
        if !in_transport {
            return Ok(false);
        }
        let mut has_more = true;
        for _ in 0..BATCHES_PER_TURN {
            let Some(transmit) = self
                .endpoint
                .poll_transmit(now, handle, self.outbox.buffer())
            else {
                has_more = false;
                break;
            };
            if !self.outbox.send(socket, transmit)? {
                break;
            }
        }
        // What has left makes room for writers.
        self.take_events(key);
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

    fn take_wakeup(&mut self) -> Option<Waker> {
        let wanted = std::mem::take(&mut self.is_wanted);
        if !wanted || std::mem::replace(&mut self.is_notified, true) {
            return None;
        }
        self.waker.clone()
    }
}
