//! The task that moves datagrams and time.
//!
//! In a turn it receives datagrams, wakes the tasks that wait for their content, lets these run if there are
//! several, and sends what they wrote together with the acknowledgements.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use courser_base::foreign::{self, ForeignWaker};
use courser_base::{FourTuple, Time};
use courser_transport::{
    PacketTooBig, ReceiveMeta, ShardPlace, SocketId, Stray, UnreachableReport,
};
use courser_udp::Received;

use crate::runtime::{Alarm, Current, Socket, Writability};
use crate::shard::health::Outlook;
use crate::shard::lock::{Locked, Shard};
use crate::shard::pause::Pause;
use crate::shard::receive_buffer::ReceiveBuffer;
use crate::shard::socket_event::SocketCall;
use crate::shard::state::ShardState;

/// Drives one shard until its endpoint is gone and its connections are over.
#[derive(Debug)]
pub(crate) struct Driver {
    shard: Arc<Shard>,
    /// The sockets to receive from: earlier ones, and last the one in use.
    sockets: Vec<(SocketId, Arc<Socket>)>,
    /// The version of the list of sockets that it has copied.
    generation: u32,
    alarm: Alarm,
    writability: Writability,
    /// The socket whose writability is watched.
    awaited: SocketId,
    stage: Stage,
    /// The empty list of wakeups of the last turn, kept for its memory.
    spare: Vec<Waker>,
    /// A waker of its task, for callers of the driver.
    waker: Option<ForeignWaker>,
    /// The socket may have more than one turn takes.
    has_more: bool,
    pause: Pause,
    /// Datagrams that other shards have received for this one. Kept for its memory.
    strays: VecDeque<Stray>,
    /// The endpoint has no handles, and the shard no connections.
    is_over: bool,
    /// When connections that cannot send are checked next, while a batch waits for its socket.
    upkeep: Option<Time>,
    /// The socket in use receives nothing any more and waits to be replaced.
    cannot_receive: bool,
    /// Receive calls of the socket in use have failed since the last one that succeeded.
    has_receive_errors: bool,
}

/// The first step of the next poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Receive,
    Transmit,
}

/// The effect of one received buffer on the rest of the turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// The readers should run before more is received.
    Crowded,
    /// It belongs to a storm of clients: its bytes were kept for a client without a connection, it was
    /// answered with a Retry, or clients wait for the application. Or it was dropped unread.
    Arrival,
    /// Anything else.
    Rest,
}

/// Datagrams per turn that do not count as receive calls while clients wait for the application (limit
/// K31). A storm of clients comes in single datagrams, and so do the answers of those that were
/// accepted. While they stay in the socket, others are lost, and peers repeat theirs.
const ARRIVALS_PER_TURN: usize = 256;
/// Time after which a turn ends regardless of [`ARRIVALS_PER_TURN`] (limit K31). A first flight costs ten
/// times what a datagram of a flood costs, and peers with a connection are answered once a turn.
const LONGEST_ARRIVALS: Duration = Duration::from_millis(1);
/// Receive calls per turn (limit K31). Empty and refused ones count, since they cost as much.
const RECEIVES_PER_TURN: usize = 8;
/// Clients that the application may accept in one turn (limit K31), one while the socket has more.
/// Each begins a handshake of some 0.3 ms: thousands of them in a row would keep the driver from its
/// socket for seconds, and connections that are there are served between them.
const ACCEPTS_PER_TURN: usize = 4;
/// Time between two checks of connections that cannot send because a batch waits for its socket (limit
/// K194). Their timers are set when they have sent, which is soon, or never if the socket is broken or
/// a transport accepts nothing.
const BLOCKED_UPKEEP: Duration = Duration::from_millis(100);
/// ICMP messages processed per turn, of each kind. Matches the number that a socket keeps.
const ICMP_MESSAGES_PER_TURN: usize = 64;
/// Number of woken tasks from which on the driver lets them run before it sends. A single task sends its
/// answer itself when it waits again. Yielding to it makes a runtime with several threads wake another
/// thread to continue here, which cost half as much again as the whole round trip of a request.
/// With 50 requests at a time, yielding halved the cost of each.
const YIELD_TO: usize = 2;

impl Driver {
    pub(crate) fn new(shard: Arc<Shard>) -> Self {
        Self {
            alarm: Alarm::new(&shard.runtime),
            sockets: vec![(SocketId::default(), shard.socket())],
            generation: 0,
            shard,
            writability: Writability::default(),
            awaited: SocketId::default(),
            stage: Stage::Receive,
            spare: Vec::new(),
            waker: None,
            has_more: false,
            pause: Pause::default(),
            strays: VecDeque::new(),
            is_over: false,
            upkeep: None,
            cannot_receive: false,
            has_receive_errors: false,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        if self.stage == Stage::Receive {
            self.handle_strays(cx);
            self.receive(cx);
            self.handle_icmp_messages();
            if self.begin_turn(cx) {
                self.stage = Stage::Transmit;
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
        }
        if std::mem::replace(&mut self.stage, Stage::Receive) == Stage::Transmit {
            // Datagrams that arrived since then woke this task while it was awake. There will be no
            // second wakeup for them.
            let is_paused = self.pause.is_on(self.shard.now());
            let sockets = self
                .sockets
                .iter()
                .rev()
                .skip(usize::from(self.cannot_receive));
            let is_readable = sockets.fold(false, |any, (_, it)| it.is_readable(cx) || any);
            self.has_more |= !is_paused && is_readable;
        }
        self.end_turn(cx)
    }

    /// Processes the datagrams that other shards have received for this one.
    fn handle_strays(&mut self, cx: &Context<'_>) {
        let Some(place) = &self.shard.place else {
            return;
        };
        place.take(cx.waker(), &mut self.strays);
        if self.strays.is_empty() {
            return;
        }
        let now = self.shard.now();
        let mut locked = self.shard.lock();
        for stray in self.strays.drain(..) {
            locked.endpoint.handle_stray(now, stray);
        }
    }

    /// Receives from all sockets, from the one in use first.
    fn receive(&mut self, cx: &mut Context<'_>) {
        let now = self.shard.now();
        if self.pause.is_on(now) {
            return;
        }
        let newest = self.sockets.len() - 1;
        let buffer = &mut ReceiveBuffer::take();
        if !self.cannot_receive {
            self.receive_from(newest, now, cx, buffer);
        }
        for index in (0..newest).rev() {
            self.receive_from(index, now, cx, buffer);
        }
    }

    /// Receives from one socket until it is empty or the turn has received enough.
    fn receive_from(&mut self, index: usize, now: Time, cx: &mut Context<'_>, buffer: &mut [u8]) {
        let (id, socket) = self.sockets[index].clone();
        let (mut errors, mut left, mut arrivals) = (0, RECEIVES_PER_TURN, ARRIVALS_PER_TURN);
        while left > 0 {
            left -= 1;
            match socket.poll_receive(cx, buffer) {
                Poll::Pending => {
                    self.pause.end();
                    self.forget_receive_errors();
                    return;
                }
                Poll::Ready(Ok(received)) => {
                    self.forget_receive_errors();
                    match self.on_received(id, &received, buffer) {
                        Taken::Crowded => break,
                        Taken::Arrival
                            if arrivals > 0 && self.shard.now() - now < LONGEST_ARRIVALS =>
                        {
                            let segment = received.segment_size.max(1);
                            arrivals = arrivals.saturating_sub(received.len.div_ceil(segment));
                            left += 1;
                        }
                        Taken::Arrival | Taken::Rest => {}
                    }
                }
                // An asynchronous error from an earlier send. Loss detection recovers.
                Poll::Ready(Err(error)) => {
                    errors += 1;
                    if self.on_receive_error(index, now, error) {
                        return;
                    }
                }
            }
        }
        self.has_more = true;
        if errors < RECEIVES_PER_TURN {
            self.pause.end();
        } else if self.pause.begin(now) {
            self.has_more = false;
            self.shard.lock().endpoint.on_receive_pause();
        }
    }

    /// Notes a receive call that has not failed.
    #[inline]
    fn forget_receive_errors(&mut self) {
        if std::mem::take(&mut self.has_receive_errors) {
            self.shard.lock().outbox.health.on_received();
        }
    }

    /// Notes a failed receive call. Returns true if the socket receives nothing any more.
    fn on_receive_error(&mut self, index: usize, now: Time, error: io::Error) -> bool {
        let is_over = !courser_udp::is_transient(&error);
        let mut locked = self.shard.lock();
        if index == self.sockets.len() - 1 {
            self.has_receive_errors = true;
            self.cannot_receive |= is_over;
            let health = &mut locked.outbox.health;
            health.on_error(now, SocketCall::Receive, error);
        } else {
            let (id, _) = self.sockets[index];
            let health = &mut locked.outbox.health;
            health.note_error(now, SocketCall::Receive, &error);
            if is_over {
                // Connections that need it run into their timeouts.
                locked.outbox.sockets.give_up(id);
            }
        }
        locked.after_errors();
        is_over
    }

    /// Passes ICMP messages to the endpoint: Packet Too Big, and reports of unreachable destinations.
    fn handle_icmp_messages(&self) {
        let sockets = self.sockets.iter().rev();
        let messages = sockets.flat_map(|(_, socket)| {
            let mut each = std::iter::repeat_with(|| socket.take_packet_too_big());
            std::iter::from_fn(move || each.next().flatten())
        });
        for message in messages.take(ICMP_MESSAGES_PER_TURN) {
            let now = self.shard.now();
            let message = PacketTooBig {
                peer: message.destination,
                mtu: message.mtu,
                quote: message.quote(),
            };
            self.shard.lock().endpoint.on_packet_too_big(now, &message);
        }
        let sockets = self.sockets.iter().rev();
        let reports = sockets.flat_map(|(_, socket)| {
            let mut each = std::iter::repeat_with(|| socket.take_unreachable());
            std::iter::from_fn(move || each.next().flatten())
        });
        for report in reports.take(ICMP_MESSAGES_PER_TURN) {
            let report = UnreachableReport {
                peer: report.destination,
                cause: report.cause,
                quote: report.quote(),
            };
            self.shard.lock().endpoint.on_unreachable(&report);
        }
    }

    /// Passes one received buffer to the endpoint.
    fn on_received(&mut self, socket: SocketId, received: &Received, buffer: &mut [u8]) -> Taken {
        if received.len == 0 || received.truncated {
            return Taken::Rest;
        }
        let meta = ReceiveMeta {
            path: FourTuple {
                peer: received.peer,
                local: received.local,
            },
            ecn: received.ecn,
            segment_size: received.segment_size,
        };
        let now = self.shard.now();
        let mut locked = self.shard.lock();
        let arrivals = locked.endpoint.arrivals();
        locked
            .endpoint
            .handle_datagrams_at(now, socket, &mut buffer[..received.len], &meta);
        if let Some(place) = &self.shard.place {
            place.forward(now, &mut locked.endpoint);
        }
        if locked.endpoint.take_crowded() {
            Taken::Crowded
        } else if locked.endpoint.arrivals() > arrivals || locked.endpoint.has_incoming() {
            Taken::Arrival
        } else {
            Taken::Rest
        }
    }

    /// Runs timers that are due and wakes tasks. Returns true if the driver should let them run before it sends.
    fn begin_turn(&mut self, cx: &Context<'_>) -> bool {
        let now = self.shard.now();
        self.prepare_waker(cx);
        let mut locked = self.shard.lock();
        locked.driver.on_running(&mut self.waker);
        locked.driver.run.end();
        locked.endpoint.on_socket_read(now, self.has_more);
        // Datagrams in the socket come before new handshakes: the queue of waiting clients is longer than that
        // of the socket, and the endpoint detects pressure only there.
        locked.driver.accepts_left = if self.has_more { 1 } else { ACCEPTS_PER_TURN };
        if locked.endpoint.next_timeout().is_some_and(|due| due <= now) {
            locked.endpoint.handle_timeout(now);
        }
        if locked.driver.alarm.is_some_and(|alarm| alarm <= now) {
            locked.driver.alarm = None;
        }
        locked.collect_events(now);
        let opens = locked.woken.len() >= YIELD_TO;
        if opens {
            locked.outbox.timing.open_turn(!self.has_more);
        }
        locked.release(&mut self.spare);
        opens
    }

    /// Clones the waker of its task if callers have used the last one, or if it belongs to another task. Callers
    /// must not clone it under the lock.
    fn prepare_waker(&mut self, cx: &Context<'_>) {
        let is_good = |waker: &ForeignWaker| waker.as_waker().will_wake(cx.waker());
        if !self.waker.as_ref().is_some_and(is_good) {
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
        self.settle_blocked(&mut locked, now);
        locked.sort_ended(None);
        if self.is_at_end(&locked) {
            locked.end_drops();
            return Ok(Poll::Ready(()));
        }
        if locked.endpoint.connections() == 0 {
            locked.outbox.give_back_buffer();
        }
        let drop_tasks = locked.take_drop_tasks(now);
        self.set_alarm(&mut locked, now, cx);
        let ShardState {
            outbox, endpoint, ..
        } = &mut *locked;
        outbox.sockets.close_unused(now, endpoint);
        if let Some(sockets) = outbox.sockets.changed_since(&mut self.generation) {
            self.sockets = sockets;
            self.writability = Writability::default();
            self.cannot_receive = false;
            // The next turn receives there, and is woken by it from then on.
            self.has_more = true;
        }
        let has_more =
            std::mem::take(&mut self.has_more) || locked.has_more() || locked.is_accepting_held();
        // Strays that arrived since this turn began woke this task while it was awake.
        let has_more = has_more || shard.place.as_ref().is_some_and(ShardPlace::has_strays);
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

    fn transmit(&mut self, locked: &mut Locked<'_>, now: Time, cx: &mut Context<'_>) {
        loop {
            while locked.outbox.timing.is_blocked() {
                if locked.outbox.health.is_lost() {
                    return;
                }
                let Some((id, socket)) = locked.outbox.blocked_socket() else {
                    locked.outbox.resume(now);
                    continue;
                };
                if std::mem::replace(&mut self.awaited, id) != id {
                    self.writability = Writability::default();
                }
                match self.writability.poll(&socket, cx) {
                    Poll::Pending => return,
                    Poll::Ready(Ok(())) => {
                        locked.outbox.resume(now);
                    }
                    Poll::Ready(Err(error)) => {
                        // No notification will come, for example for lack of descriptors. The next attempt
                        // is made with the next check of blocked connections.
                        self.writability = Writability::default();
                        locked
                            .outbox
                            .health
                            .note_error(now, SocketCall::Send, &error);
                        if !locked.outbox.resume(now) {
                            return locked.after_errors();
                        }
                    }
                }
            }
            locked.send_rounds(now);
            if !locked.outbox.timing.is_blocked() {
                break;
            }
        }
        locked.after_errors();
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
            // The last owners of the socket before.
            self.sockets.pop();
        }
        Ok(())
    }

    /// Runs the timers of connections that cannot send because a batch waits for its socket.
    fn settle_blocked(&mut self, locked: &mut Locked<'_>, now: Time) {
        if !locked.outbox.timing.is_blocked() {
            self.upkeep = None;
            return;
        }
        if self.upkeep.is_some_and(|due| due <= now) {
            locked.settle_senders(now);
            self.upkeep = None;
        }
        self.upkeep.get_or_insert(now + BLOCKED_UPKEEP);
    }

    /// Sets the alarm if something is due before it rings. An alarm that rings too early costs less than setting
    /// it for every packet.
    fn set_alarm(&mut self, locked: &mut Locked<'_>, now: Time, cx: &mut Context<'_>) {
        if self.alarm.is_elapsed() {
            // It rang while this task was awake. Callers compare with the next one.
            locked.driver.alarm = None;
        }
        let timeout = locked.endpoint.next_timeout().into_iter();
        let own = self.pause.until().into_iter().chain(self.upkeep);
        let own = own.chain(locked.outbox.health.next_attempt());
        let own = own.chain(locked.drops.due());
        let Some(next) = timeout.chain(own).min() else {
            return;
        };
        if locked.driver.alarm.is_none_or(|alarm| next < alarm) {
            locked.driver.alarm = Some(next);
            let deadline = self.shard.clock.instant_of(next, now);
            self.has_more |= self.alarm.set(deadline, cx).is_ready();
        }
    }
}

impl Driver {
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
