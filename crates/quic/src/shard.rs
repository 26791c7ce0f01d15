//! One socket, one transport endpoint, one lock.
//!
//! The task of the driver and the calls of the application meet here. Whoever holds the lock
//! does the work: a call that wrote enough for a good batch seals and sends it before it
//! returns. Small writes wait for company until their task waits for something, so that a
//! request and its end share a packet; the driver is told, in case that never happens.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use courser_base::Time;
use courser_transport::{ConnectionError, Endpoint, TransportConfig};

use crate::VarInt;
use crate::runtime::{Current, Socket};
use crate::state::State;
use crate::wakers::{List, Ticket};

/// One socket and everything that goes over it.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) socket: Socket,
    pub(crate) runtime: Current,
    epoch: Instant,
    state: Mutex<State>,
}

/// Bytes from which on a write is sent by the caller itself: half a batch, so that the system
/// call is worth it. When every write was sent at once, requests cost twice as much and small
/// writes in a row up to nine times; between 16 and 64 KiB there was no difference.
const INLINE_BYTES: usize = 32 * 1024;

/// Times that what was sent may lead to more within one call: new connection IDs follow a
/// handshake, a drained connection is forgotten. The driver does what is left.
const ROUNDS: usize = 3;

impl Shard {
    pub(crate) fn new(socket: Socket, endpoint: Endpoint, runtime: Current) -> Self {
        let state = State::new(endpoint, socket.gso_segments());
        Self {
            socket,
            epoch: runtime.now(),
            runtime,
            state: Mutex::new(state),
        }
    }

    pub(crate) fn now(&self) -> Time {
        let since = self.runtime.now().saturating_duration_since(self.epoch);
        let nanos = since.as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How large packets may be on the interface towards `peer`, for a connection that has a use
    /// for it.
    pub(crate) fn interface_mtu(&self, config: &TransportConfig, peer: SocketAddr) -> Option<u32> {
        config
            .mtu_discovery
            .then(|| self.socket.interface_mtu(peer))
            .flatten()
    }

    /// The runtime's name for a point in time, at most a day ahead.
    pub(crate) fn instant_of(&self, time: Time, now: Time) -> Instant {
        let ahead = (time - now).min(Duration::from_secs(24 * 3600));
        self.epoch + Duration::from_nanos(now.as_nanos()) + ahead
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let state = match self.state.lock() {
            Ok(mut state) => {
                state.endpoint.forget_in_use();
                state
            }
            Err(poisoned) => self.recover(poisoned),
        };
        Locked {
            shard: self,
            state: Some(state),
        }
    }

    /// A call has panicked under the lock. The connection that it worked on may be inconsistent and
    /// is dropped; the others go on.
    #[cold]
    fn recover<'a>(&self, poisoned: PoisonError<MutexGuard<'a, State>>) -> MutexGuard<'a, State> {
        let mut state = poisoned.into_inner();
        state.endpoint.drop_in_use();
        // The driver wakes those who wait on it.
        state.driver.is_wanted = true;
        self.state.clear_poison();
        state
    }

    /// Checks a condition and waits in `list` while it does not hold.
    pub(crate) fn poll_list<T>(
        &self,
        (list, ticket): (List, &mut Ticket),
        cx: &mut Context<'_>,
        check: impl FnOnce(&mut Locked<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut locked = self.lock();
        let poll = check(&mut locked);
        match poll {
            Poll::Ready(_) => locked.waiters(list).forget(ticket),
            Poll::Pending => {
                locked.waiters(list).register(ticket, cx.waker());
                locked.flush_before_wait();
            }
        }
        poll
    }
}

/// The locked shard. Wakes, when it is released, everybody whose wait is over.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
    // Taken only by what releases the lock.
    state: Option<MutexGuard<'a, State>>,
}

impl Deref for Locked<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        self.state.as_deref().expect("held until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_deref_mut().expect("held until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut state) = self.state.take() else {
            return;
        };
        let driver = state.driver.take_wakeup();
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        driver.into_iter().chain(woken).for_each(Waker::wake);
    }
}

impl Locked<'_> {
    /// Releases the lock like dropping it, but keeps the memory of the list of wakeups.
    pub(crate) fn release(mut self, spare: &mut Vec<Waker>) {
        debug_assert!(spare.is_empty(), "wakeups that were never given");
        std::mem::swap(&mut self.woken, spare);
        drop(self);
        spare.drain(..).for_each(Waker::wake);
    }

    /// Releases the lock, and leaves it to the caller to wake those whose wait is over.
    pub(crate) fn release_into(mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.woken);
        woken.extend(self.driver.take_wakeup());
    }

    /// Something was written or changed on a connection. What fills a batch is sent now; the rest
    /// leaves when the caller waits, or the driver runs.
    pub(crate) fn on_used(&mut self, key: usize, written: usize) {
        self.touch(key);
        self.has_unflushed = true;
        let slot = self.slot(key);
        slot.unflushed += written;
        let is_much = slot.unflushed >= INLINE_BYTES;
        if self.driver.is_turn_open || self.stopped.is_some() {
            return;
        }
        if is_much {
            self.send_batches(key);
        }
        let has_rest = !is_much || self.slot(key).unflushed > 0 || self.outbox.is_blocked();
        self.driver.is_wanted |= has_rest || self.is_alarm_late();
    }

    /// Sends batches of one connection while there is enough for good ones.
    fn send_batches(&mut self, key: usize) {
        let (now, socket) = (self.shard.now(), &self.shard.socket);
        let state = &mut **self;
        if let Err(error) = state.transmit_batches(socket, now, (key, INLINE_BYTES)) {
            state.stop(&format!("the socket failed: {error}"));
        }
        state.driver.is_wanted |= socket.has_packet_too_big();
    }

    /// The calling task is about to wait: what it wrote leaves now. True if anything was tried.
    pub(crate) fn flush_before_wait(&mut self) -> bool {
        let wanted = self.is_unflushed();
        if wanted {
            self.flush_now();
        }
        wanted
    }

    /// True when something was written that the driver is not about to send.
    pub(crate) fn is_unflushed(&self) -> bool {
        self.has_unflushed && !self.driver.is_turn_open
    }

    /// Sends what is ready, unless the driver is about to do so with more to come.
    pub(crate) fn flush(&mut self) {
        if !self.driver.is_turn_open {
            self.flush_now();
        }
    }

    /// Sends what is ready.
    pub(crate) fn flush_now(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        self.send_rounds(self.shard.now());
        self.driver.is_wanted |= self.has_more() || self.is_alarm_late() || self.wants_tls();
    }

    /// Takes events, and asks for the interface of each client that has just connected. To ask
    /// costs several system calls, which a first packet with a forged address must not cause.
    pub(crate) fn collect_events(&mut self, now: Time) {
        self.collect(now);
        while let Some(key) = self.connected.pop() {
            let peer = self
                .connection(key)
                .map(|connection| connection.path().peer);
            if let Some(peer) = peer {
                let mtu = self.shard.socket.interface_mtu(peer);
                self.set_interface_mtu(key, mtu);
            }
        }
    }

    /// Takes events and sends until nothing is left, the socket is full or enough was done.
    pub(crate) fn send_rounds(&mut self, now: Time) {
        for _ in 0..ROUNDS {
            self.collect_events(now);
            self.transmit(now);
            if !self.has_more() {
                break;
            }
        }
    }

    /// Sends for every connection in the queue, a few batches each. A socket that fails stops
    /// everything; one that is full leaves the rest to the driver.
    fn transmit(&mut self, now: Time) {
        let socket = &self.shard.socket;
        let state = &mut **self;
        state.has_unflushed = false;
        if state.outbox.is_blocked() {
            return;
        }
        match state.transmit_all(socket, now) {
            Ok(()) if state.outbox.is_blocked() => state.driver.is_wanted = true,
            Ok(()) => {}
            Err(error) => state.stop(&format!("the socket failed: {error}")),
        }
        state.driver.is_wanted |= socket.has_packet_too_big();
    }

    /// Tells a new connection how large packets its interface takes.
    pub(crate) fn set_interface_mtu(&mut self, key: usize, mtu: Option<u32>) {
        if let (Some(mtu), Some(connection)) = (mtu, self.connection(key)) {
            connection.set_interface_mtu(mtu);
        }
    }

    /// Ends a connection for the application and tells the peer.
    pub(crate) fn close(&mut self, key: usize, code: VarInt, reason: &[u8]) {
        // What was written before gets its chance to leave before.
        self.flush_now();
        self.begin_close(key, code, reason);
        self.flush_now();
    }

    /// Ends all connections, now and to come.
    pub(crate) fn close_all(&mut self, code: VarInt, reason: &[u8]) {
        self.is_closed = true;
        self.flush_now();
        self.refuse_all();
        let keys = self.keys_in_use();
        keys.into_iter()
            .for_each(|key| self.begin_close(key, code, reason));
        self.flush_now();
        let State {
            accepting, woken, ..
        } = &mut **self;
        accepting.wake_all(woken);
    }

    /// Refuses everybody who waits to be accepted.
    pub(crate) fn refuse_all(&mut self) {
        let now = self.shard.now();
        while let Some(incoming) = self.endpoint.poll_incoming() {
            self.endpoint.refuse(now, incoming);
        }
    }

    fn begin_close(&mut self, key: usize, code: VarInt, reason: &[u8]) {
        let now = self.shard.now();
        if let Some(connection) = self.connection(key) {
            connection.close(now, code.into_inner(), reason);
            self.touch(key);
        }
        self.end(key, ConnectionError::LocallyClosed);
    }

    /// The last handle of a connection is gone.
    pub(crate) fn on_handles_gone(&mut self, key: usize) {
        if self.slot(key).error.is_none() {
            self.close(key, VarInt::default(), b"");
        }
        self.slot(key).is_held = false;
        self.slot(key).unread = None;
        self.slot(key).unread_datagrams.clear();
        self.forget_if_over(key);
    }
}
