//! The task of a shard that receives, wakes tasks, sends and runs timers.
//!
//! In a turn it receives datagrams, wakes the tasks that wait for their content, lets these run if there are
//! several, and sends what they wrote together with the acknowledgements.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use courser_base::Time;
use courser_base::foreign::{self, ForeignWaker};
use courser_transport::ShardPlace;

use crate::runtime::{Alarm, Current};
use crate::shard::blocked_socket::BlockedSocket;
use crate::shard::health::Outlook;
use crate::shard::lock::{Locked, Shard};
use crate::shard::receiver::Receiver;
use crate::shard::state::ShardState;

/// Drives one shard until its endpoint is gone and its connections are over.
#[derive(Debug)]
pub(crate) struct Driver {
    shard: Arc<Shard>,
    receiver: Receiver,
    blocked: BlockedSocket,
    alarm: Alarm,
    first_step: FirstStep,
    /// The empty list of wakeups of the last turn, kept for its memory.
    spare: Vec<Waker>,
    /// A waker of its task, for callers of the driver.
    waker: Option<ForeignWaker>,
    /// The endpoint has no handles, and the shard no connections.
    is_over: bool,
}

/// The first step of the next poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstStep {
    Receive,
    Transmit,
}

/// Clients that the application may accept in one turn (limit K31), one while the socket has more.
/// Each begins a handshake of some 0.3 ms: thousands of them in a row would keep the driver from its
/// socket for seconds, and connections that are there are served between them.
const ACCEPTS_PER_TURN: usize = 4;
/// Number of woken tasks from which on the driver lets them run before it sends. A single task sends its
/// answer itself when it waits again. Yielding to it makes a runtime with several threads wake another
/// thread to continue here, which cost half as much again as the whole round trip of a request.
/// With 50 requests at a time, yielding halved the cost of each.
const YIELD_TO: usize = 2;

impl Driver {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self {
            receiver: Receiver::new(shard.socket()),
            blocked: BlockedSocket::default(),
            alarm: Alarm::new(&shard.runtime),
            shard,
            first_step: FirstStep::Receive,
            spare: Vec::new(),
            waker: None,
            is_over: false,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.first_step == FirstStep::Receive {
            self.receiver.run_turn(&self.shard, cx);
            if self.begin_turn(cx) {
                self.first_step = FirstStep::Transmit;
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
        }
        if std::mem::replace(&mut self.first_step, FirstStep::Receive) == FirstStep::Transmit {
            self.receiver.check_readable(self.shard.now(), cx);
        }
        self.end_turn(cx)
    }

    /// Runs timers that are due and wakes tasks. Returns true if the driver should let them run before it sends.
    fn begin_turn(&mut self, cx: &Context<'_>) -> bool {
        let now = self.shard.now();
        let has_more = self.receiver.has_more();
        self.prepare_waker(cx);
        let mut locked = self.shard.lock();
        locked.driver.on_running(&mut self.waker);
        locked.driver.run.end();
        locked.endpoint.on_socket_read(now, has_more);
        // Datagrams in the socket come before new handshakes: the queue of waiting clients is longer than that
        // of the socket, and the endpoint detects pressure only there.
        locked.driver.accepts_left = if has_more { 1 } else { ACCEPTS_PER_TURN };
        if locked.endpoint.next_timeout().is_some_and(|due| due <= now) {
            locked.endpoint.handle_timeout(now);
        }
        if locked.driver.alarm.is_some_and(|alarm| alarm <= now) {
            locked.driver.alarm = None;
        }
        locked.collect_events(now);
        let opens = locked.woken.len() >= YIELD_TO;
        if opens {
            locked.outbox.timing.open_turn(!has_more);
        }
        locked.release(&mut self.spare);
        opens
    }

    /// Clones the waker of its task if callers have used the last one, or if it belongs to another task. Callers
    /// must not clone it under the lock.
    fn prepare_waker(&mut self, cx: &Context<'_>) {
        let wakes_this_task = |waker: &ForeignWaker| waker.as_waker().will_wake(cx.waker());
        if !self.waker.as_ref().is_some_and(wakes_this_task) {
            if matches!(self.shard.runtime, Current::Tokio) {
                foreign::allow_clones_of(cx.waker());
            }
            self.waker = Some(ForeignWaker::of(cx));
        }
    }

    /// Sends, and schedules the next turn.
    fn end_turn(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let shard = self.shard.clone();
        let now = shard.now();
        self.prepare_waker(cx);
        let mut locked = shard.lock();
        if locked.outbox.health.is_due(now) {
            drop(locked);
            self.reopen_socket(now)?;
            locked = shard.lock();
        }
        locked.driver.on_running(&mut self.waker);
        locked.outbox.timing.close_turn();
        self.transmit(&mut locked, now, cx);
        self.blocked.run_timers(&mut locked, now);
        locked.sort_ended(None);
        if self.is_at_end(&locked) {
            locked.end_drops();
            return Ok(Poll::Ready(()));
        }
        if locked.endpoint.connections() == 0 {
            locked.outbox.give_back_buffer();
        }
        let drop_tasks = locked.take_drop_tasks(now);
        let is_due = self.set_alarm(&mut locked, now, cx);
        let ShardState {
            outbox, endpoint, ..
        } = &mut *locked;
        outbox.sockets.close_unused(now, endpoint);
        if self.receiver.follow(&outbox.sockets) {
            self.blocked.reset();
        }
        let has_more = self.receiver.take_has_more() || locked.has_more();
        let has_more = has_more || is_due || locked.is_accepting_held();
        // Datagrams that other shards handed on since this turn began woke this task while it was awake.
        let has_more = has_more || shard.place.as_ref().is_some_and(ShardPlace::has_misrouted);
        let tls_tasks = locked.take_tls_tasks();
        locked.release(&mut self.spare);
        shard.run_tls_tasks(tls_tasks);
        shard.run_drop_tasks(drop_tasks);
        if has_more {
            cx.waker().wake_by_ref();
        }
        Ok(Poll::Pending)
    }

    /// Returns true when nothing is left to do. The shards of an endpoint end together, because the socket of
    /// one may receive datagrams of another.
    fn is_at_end(&mut self, locked: &Locked<'_>) -> bool {
        if locked.stopped.is_some() {
            return true;
        }
        let is_over = locked.is_abandoned && locked.endpoint.connections() == 0;
        let Some(place) = self.shard.place.as_ref().filter(|_| is_over) else {
            return is_over;
        };
        if !std::mem::replace(&mut self.is_over, true) {
            place.on_over();
        }
        place.are_all_over()
    }

    /// Sends what is ready until nothing is left or a batch has to wait for its socket.
    fn transmit(&mut self, locked: &mut Locked<'_>, now: Time, cx: &mut Context<'_>) {
        while self.blocked.poll_resume(locked, now, cx).is_ready() {
            locked.send_rounds(now);
            if !locked.outbox.timing.is_blocked() {
                return locked.after_errors();
            }
        }
    }

    /// Puts a new socket on the same address in the place of one that is broken.
    ///
    /// # Errors
    /// Fails if the socket is of no use any more and cannot be replaced.
    #[cold]
    fn reopen_socket(&mut self, now: Time) -> io::Result<()> {
        let before = self.shard.socket();
        let reopened = before.reopen();
        let mut locked = self.shard.lock();
        if !Arc::ptr_eq(&before, locked.outbox.sockets.newest()) {
            // The application has replaced it meanwhile.
            return Ok(());
        }
        let outbox = &mut locked.outbox;
        let replaced = match reopened {
            Ok(socket) => {
                let is_foreign = outbox.health.has_lost_descriptor();
                outbox.health.on_reopened(now);
                let replaced = outbox.replace_socket(socket);
                if is_foreign {
                    // Its descriptor may belong to another part of the process by now, and must not be closed.
                    std::mem::forget(replaced.clone());
                }
                Some(replaced)
            }
            Err(error) => match outbox
                .health
                .on_not_reopened(now, &error, before.is_of_runtime())
            {
                Outlook::Over(reason) => return Err(io::Error::other(reason)),
                Outlook::Release => Some(outbox.replace_socket(before.placeholder())),
                Outlook::Wait => None,
            },
        };
        locked.after_errors();
        drop(locked);
        if replaced.is_some() {
            // With `replaced`, the receiver is the last owner of the socket.
            self.receiver.drop_replaced();
        }
        Ok(())
    }

    /// Sets the alarm if something is due before it rings. An alarm that rings too early costs less than setting
    /// it for every packet. Returns true if it was due already.
    fn set_alarm(&mut self, locked: &mut Locked<'_>, now: Time, cx: &mut Context<'_>) -> bool {
        if self.alarm.is_elapsed() {
            // It rang while this task was awake. Callers compare with the next one.
            locked.driver.alarm = None;
        }
        let timeout = locked.endpoint.next_timeout().into_iter();
        let own = self.receiver.paused_until().into_iter();
        let own = own.chain(self.blocked.next_check());
        let own = own.chain(locked.outbox.health.next_attempt());
        let own = own.chain(locked.drops.due());
        let Some(next) = timeout.chain(own).min() else {
            return false;
        };
        if locked.driver.alarm.is_some_and(|alarm| alarm <= next) {
            return false;
        }
        locked.driver.alarm = Some(next);
        let deadline = self.shard.clock.instant_of(next, now);
        self.alarm.set(deadline, cx).is_ready()
    }

    /// Ends the shard, and no other one.
    fn stop(&mut self, reason: &str) {
        if let Some(place) = self.shard.place.as_ref().filter(|_| !self.is_over) {
            place.on_failed();
            self.is_over = true;
        }
        let closed = self.shard.lock().stop(reason);
        drop(closed);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.turn(cx) {
            Ok(poll) => poll,
            Err(error) => {
                self.stop(&error.to_string());
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // If the runtime is gone, nothing can be sent to peers, but waiting tasks must still end.
        self.stop("its runtime or last handle was dropped");
        self.shard.lock().end_drops();
    }
}
