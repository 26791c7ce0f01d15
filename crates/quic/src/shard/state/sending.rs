//! The verbs that send.
//!
//! The [timing](crate::shard::timing) decides when bytes are sent. Callers report a write or a change with
//! [`used`], and call [`about_to_wait`] before their task waits. [`send_now`] sends without delay.
//!
//! [`used`]: ShardState::used
//! [`about_to_wait`]: ShardState::about_to_wait
//! [`send_now`]: ShardState::send_now

use courser_base::Time;
use courser_transport::{ConnectionHandle, Transmit};

use super::ShardState;
use crate::shard::timing::INLINE_BYTES;

/// Rounds of sending in one call. Sent packets may lead to more, such as new connection IDs that follow a handshake.
/// The driver sends the rest.
const ROUNDS: usize = 3;
/// Batches that one connection sends before the next one has its turn.
const BATCHES_PER_TURN: usize = 4;
/// Replies without a connection (Retry, refusals, resets) sent in a row: as many as datagrams that need one
/// are received in a turn.
const STATELESS_PER_TURN: usize = 256;

impl ShardState {
    /// Notes a write or a change on a connection. Full batches are sent now, and so are the first of many
    /// changes in a turn of the driver. The rest is sent when the caller waits, or the driver runs.
    pub(crate) fn used(&mut self, handle: ConnectionHandle, written: usize) {
        self.endpoint.mark_ready(handle);
        self.driver.run.on_written(written);
        let entry = self.entry(handle);
        entry.unsent += written;
        entry.uses = entry.uses.saturating_add(1);
        let (is_much, uses) = (entry.unsent >= INLINE_BYTES, entry.uses);
        if !self.outbox.timing.on_used() {
            if self.outbox.timing.is_due_in_turn(uses) {
                self.send_turn(self.clock.now(), handle);
                self.after_sending();
                self.entry(handle).uses = uses;
            }
            return;
        }
        if is_much {
            self.send_full_batches(handle);
        }
        let has_rest = !is_much || self.entry(handle).unsent > 0;
        if has_rest || self.is_alarm_late() {
            self.driver.call();
        }
    }

    /// Sends what the calling task wrote, because the task is about to wait or to do something else.
    ///
    /// Only the first time since the driver's last turn: the task may not wait at all, because it polls this future
    /// beside others that are ready, and then writes more. What is written after that leaves in the driver's turn.
    pub(crate) fn about_to_wait(&mut self) {
        if !self.outbox.timing.is_pending() {
            return;
        }
        if self.driver.take_send() {
            self.send_now();
        } else {
            self.driver.call();
        }
    }

    /// Sends what was written, if the timing permits it. Returns true if there was something to send.
    pub(crate) fn send_pending(&mut self) -> bool {
        let is_pending = self.outbox.timing.is_pending();
        if is_pending {
            self.send_now();
        }
        is_pending
    }

    /// Changes the endpoint itself, and sends the resulting packets.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Self, Time) -> T) -> T {
        let now = self.clock.now();
        let result = change(self, now);
        self.outbox.timing.on_used();
        self.send_pending();
        result
    }

    /// Sends what is ready, even in a turn of the driver, which would send it with more.
    pub(crate) fn send_now(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        self.send_rounds(self.clock.now());
        if self.has_more() || self.is_alarm_late() || self.tls.can_start(&self.endpoint) {
            self.driver.call();
        }
    }

    /// Takes events and sends until nothing is left, the socket is full or enough was done.
    pub(crate) fn send_rounds(&mut self, now: Time) {
        for _ in 0..ROUNDS {
            self.collect_events(now);
            if self.outbox.timing.can_send() {
                self.outbox.timing.on_sent();
                self.send_queued(now);
                self.after_sending();
            }
            if !self.has_more() {
                break;
            }
        }
    }

    /// Returns true if there is more to send than one turn allows.
    pub(crate) fn has_more(&self) -> bool {
        let has_more = self.endpoint.senders() > 0 || self.endpoint.has_replies();
        has_more && self.outbox.timing.can_send()
    }

    /// Sends replies without a connection, and a few batches of each connection that waits for its
    /// turn.
    fn send_queued(&mut self, now: Time) {
        for _ in 0..STATELESS_PER_TURN {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_stateless_transmit(buffer) else {
                break;
            };
            if !self.outbox.send(now, transmit) {
                return;
            }
        }
        for _ in 0..self.endpoint.senders() {
            let Some(handle) = self.endpoint.next_sender() else {
                break;
            };
            if self.send_turn(now, handle) {
                self.endpoint.queue_sender(handle);
            }
            if self.outbox.timing.is_blocked() {
                break;
            }
        }
    }

    /// Sends a few batches of one connection. Returns true if it has more, or may have.
    fn send_turn(&mut self, now: Time, handle: ConnectionHandle) -> bool {
        let mut has_more = true;
        for _ in 0..BATCHES_PER_TURN {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_transmit(now, handle, buffer) else {
                has_more = false;
                self.forget_unsent(handle);
                break;
            };
            if !self.send_of(now, handle, transmit) {
                break;
            }
        }
        // Sent data makes room for writers.
        self.take_events(handle);
        has_more
    }

    /// Sends batches of one connection while there is enough for good ones.
    fn send_full_batches(&mut self, handle: ConnectionHandle) {
        let now = self.clock.now();
        while self.entry(handle).unsent >= INLINE_BYTES && self.outbox.timing.can_send() {
            let buffer = self.outbox.buffer();
            let Some(transmit) = self.endpoint.poll_transmit(now, handle, buffer) else {
                // The rest waits for the peer or for the pacer.
                self.entry(handle).unsent = 0;
                break;
            };
            let entry = self.entry(handle);
            entry.unsent = entry.unsent.saturating_sub(transmit.len);
            self.send_of(now, handle, transmit);
        }
        self.after_sending();
        // Sent data makes room for writers.
        self.take_events(handle);
    }

    /// Sends a batch of a connection. Returns false when the batch is kept.
    #[inline]
    fn send_of(&mut self, now: Time, handle: ConnectionHandle, transmit: Transmit) -> bool {
        let size = transmit.segment_size.unwrap_or(transmit.len);
        let has_left = self.outbox.send(now, transmit);
        if self.outbox.take_too_large()
            && let Some(connection) = self.connection(handle)
        {
            connection.on_too_large(size);
        }
        if self.outbox.take_marks_refused()
            && let Some(connection) = self.connection(handle)
        {
            connection.on_marks_refused();
        }
        if let Some(cause) = self.outbox.take_unreachable() {
            self.endpoint.on_send_refused(handle, cause);
        }
        has_left
    }

    /// Leaves the rest to the driver: a socket that is full or lost, and ICMP messages.
    fn after_sending(&mut self) {
        let outbox = &self.outbox;
        if outbox.timing.is_blocked() || outbox.socket().has_icmp_messages() {
            self.driver.call();
        }
        self.after_errors();
    }
}
