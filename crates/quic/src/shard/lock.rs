//! One transport endpoint with its socket, one lock.
//!
//! The task of the driver and the calls of the application meet here. The one that holds the lock
//! does the work: a call that wrote enough for a good batch seals and sends it before it returns
//! (see [`timing`](crate::shard::timing)).

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use courser_base::Time;
use courser_base::foreign::{self, Hold, Remains, TaskWaker};
use courser_recovery::BASE_MTU;
use courser_transport::{ConnectionHandle, ShardPlace, TransportConfig};

use crate::runtime::{Current, Socket};
use crate::shard::clock::Clock;
use crate::shard::drop_queue::DropTask;
use crate::shard::offload::TlsTasks;
use crate::shard::state::ShardState;
use crate::shard::wakers::{List, Ticket};

/// One socket, the sockets that it has replaced, and the connections on them.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) runtime: Current,
    pub(crate) clock: Clock,
    /// Its place among other shards of the same endpoint, if there are any.
    pub(crate) place: Option<ShardPlace>,
    /// The thread that holds the lock; 0 if there is none.
    holder: AtomicUsize,
    state: Mutex<ShardState>,
}

impl Shard {
    pub(crate) fn new(state: ShardState, runtime: Current, place: Option<ShardPlace>) -> Self {
        Self {
            clock: state.clock.clone(),
            runtime,
            place,
            holder: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Returns the MTU of the interface towards `peer` for a connection that searches for its MTU, and
    /// whose first datagrams may be too large for the interface. Others request it when the search begins.
    pub(crate) fn interface_mtu(&self, config: &TransportConfig, peer: SocketAddr) -> Option<u32> {
        let asks = config.mtu_discovery && config.mtu > BASE_MTU;
        asks.then(|| self.socket().interface_mtu(peer)).flatten()
    }

    /// Returns the socket in use.
    pub(crate) fn socket(&self) -> Arc<Socket> {
        self.lock().outbox.sockets.newest().clone()
    }

    /// Locks for a caller that works for the endpoint, or for no connection of its own.
    ///
    /// # Panics
    /// Panics in code of users that runs under the lock, because it would wait for its own thread. The panic ends the
    /// connection that called the code.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.lock_for(None)
    }

    /// Locks for a call on a connection, whose task drops what has ended there.
    ///
    /// # Panics
    /// Panics like [`lock`](Self::lock).
    pub(crate) fn lock_for(&self, caller: Option<ConnectionHandle>) -> Locked<'_> {
        assert!(
            !self.is_held_here(),
            "a hook, such as a sink, controller, store or transport, has used the endpoint that called it"
        );
        let hold = foreign::hold();
        let state = match self.state.lock() {
            Ok(mut state) => {
                state.endpoint.forget_in_use();
                state
            }
            Err(poisoned) => self.recover(poisoned),
        };
        self.holder
            .store(foreign::thread_number(), Ordering::Relaxed);
        foreign::set_owner(caller.map_or(0, ConnectionHandle::to_bits));
        Locked {
            shard: self,
            caller,
            state: Some(state),
            _hold: hold,
        }
    }

    /// Returns true if this thread holds the lock: code of users is running under it.
    #[inline]
    pub(crate) fn is_held_here(&self) -> bool {
        // Another thread's number cannot become this one's meanwhile.
        self.holder.load(Ordering::Relaxed) == foreign::thread_number()
    }

    /// Recovers from a panic under the lock. The connection that it worked on may be inconsistent and is dropped;
    /// the others continue.
    #[cold]
    fn recover<'a>(
        &self,
        poisoned: PoisonError<MutexGuard<'a, ShardState>>,
    ) -> MutexGuard<'a, ShardState> {
        let mut state = poisoned.into_inner();
        state.endpoint.drop_in_use();
        // The driver wakes the tasks of the connection.
        state.driver.call();
        self.state.clear_poison();
        state
    }

    /// Checks a condition and waits in `list` while it does not hold.
    pub(crate) fn poll_list<T>(
        &self,
        list: List,
        ticket: &mut Ticket,
        cx: &mut Context<'_>,
        check: impl FnOnce(&mut Locked<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut waker = TaskWaker::of(cx);
        let mut locked = self.lock_for(list.connection());
        let poll = check(&mut locked);
        let mut is_stopped = false;
        match poll {
            Poll::Ready(_) => locked.waiters(list).forget(ticket),
            Poll::Pending => {
                locked.waiters(list).register(ticket, waker.take());
                locked.about_to_wait();
                // Packets that the check sent may have stopped the shard, and the other tasks were woken before.
                is_stopped = locked.stopped.is_some();
            }
        }
        drop(locked);
        if is_stopped {
            cx.waker().wake_by_ref();
        }
        poll
    }

    /// Runs TLS tasks on threads that may block. The lock must not be held.
    pub(crate) fn run_tls_tasks(self: &Arc<Self>, tasks: TlsTasks) {
        for (handle, task) in tasks {
            let shard = self.clone();
            self.runtime.spawn_blocking(Box::new(move || {
                let result = task.run();
                let mut locked = shard.lock();
                locked.tls.on_done();
                locked.change(|state, now| state.endpoint.finish_tls_task(now, handle, result));
                // Waiting tasks may run now, and connections that are over may let the driver end.
                locked.driver.call();
            }));
        }
    }

    /// Drops values of users on threads that may block. The lock must not be held.
    pub(crate) fn run_drop_tasks(self: &Arc<Self>, tasks: Vec<DropTask>) {
        for DropTask { connection, values } in tasks {
            let shard = self.clone();
            let mut values = values;
            self.runtime.spawn_blocking(Box::new(move || {
                while !values.is_empty() {
                    values.drain(..).for_each(Remains::end);
                    values = shard.lock().next_ended(connection);
                }
            }));
        }
    }
}

/// The locked state of a shard. Wakes, when it is released, all tasks whose wait is over, and drops values
/// of users that have ended under the lock.
///
/// It is only a guard: [`ShardState`] has the operations under the lock.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
    /// The connection whose task holds the lock.
    caller: Option<ConnectionHandle>,
    /// Taken only by what releases the lock.
    state: Option<MutexGuard<'a, ShardState>>,
    // Ends when the lock is released.
    _hold: Hold,
}

impl Deref for Locked<'_> {
    type Target = ShardState;
    fn deref(&self) -> &ShardState {
        self.state.as_deref().expect("held until it is dropped")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut ShardState {
        self.state.as_deref_mut().expect("held until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let Some(mut state) = self.state.take() else {
            return;
        };
        // While a panic unwinds, the values of the connection are left to others.
        let caller = self.caller.filter(|_| !std::thread::panicking());
        state.sort_ended(caller);
        let driver = state.driver.take_wakeup();
        self.shard.holder.store(0, Ordering::Relaxed);
        if driver.is_none() && state.woken.is_empty() {
            return;
        }
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        driver.into_iter().chain(woken).for_each(foreign::wake);
    }
}

impl Locked<'_> {
    /// Releases the lock like dropping it, but keeps the memory of the list of wakeups.
    pub(crate) fn release(mut self, spare: &mut Vec<Waker>) {
        debug_assert!(spare.is_empty(), "wakeups were not delivered");
        std::mem::swap(&mut self.woken, spare);
        drop(self);
        spare.drain(..).for_each(foreign::wake);
    }

    /// Releases the lock, and leaves the rest to the caller, who holds another lock: tasks are
    /// woken and bytes leave when the result is dropped.
    pub(crate) fn release_later(mut self, shard: &Shard) -> Afterwards<'_> {
        let mut woken = std::mem::take(&mut self.woken);
        woken.extend(self.driver.take_wakeup());
        Afterwards {
            shard,
            woken,
            is_pending: self.outbox.timing.is_pending(),
        }
    }
}

/// The tasks to wake and the bytes to send after a call. Dropping it does both, and must happen when the task holds
/// no lock and is about to wait.
#[derive(Debug)]
#[must_use = "it has to be dropped when no lock is held"]
pub struct Afterwards<'a> {
    shard: &'a Shard,
    woken: Vec<Waker>,
    is_pending: bool,
}

impl Drop for Afterwards<'_> {
    fn drop(&mut self) {
        self.woken.drain(..).for_each(foreign::wake);
        if self.is_pending {
            self.shard.lock().about_to_wait();
        }
    }
}
