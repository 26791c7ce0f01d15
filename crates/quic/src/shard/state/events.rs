//! The events of connections, and what follows from them for tasks and the path.

use std::panic::{AssertUnwindSafe, catch_unwind};

use courser_base::Time;
use courser_transport::{ConnectionHandle, Event, StreamEvent};

use super::{MtuQuery, ShardState};

impl ShardState {
    /// Processes the events of connections that have changed, and queues these connections to send.
    ///
    /// The MTU of an interface is requested when a connection begins to search for larger datagrams. That
    /// costs several system calls, which short connections and forged first packets must not cause.
    pub(crate) fn collect_events(&mut self, now: Time) {
        while let Some(handle) = self.endpoint.next_ready() {
            self.take_events(handle);
            self.endpoint.queue_sender(handle);
        }
        if self.is_closed || self.is_abandoned {
            self.refuse_all(now);
        } else if self.endpoint.has_incoming() {
            // Clients stay in the endpoint, where networks take turns.
            self.accepting.wake_all(&mut self.woken);
        }
        while let Some(query) = self.mtu_queries.pop() {
            let socket = self.outbox.sockets.get(query.socket);
            let mtu = socket.and_then(|socket| socket.interface_mtu(query.peer));
            self.set_interface_mtu(query.connection, mtu);
        }
    }

    /// Passes on the events of a connection, and drops the connection if that panics. Wakes the tasks
    /// that wait for the end of all connections, if no other is left.
    pub(crate) fn take_events(&mut self, handle: ConnectionHandle) {
        // The connection is dropped without further use, and its end needs no part of the entry that may be
        // inconsistent.
        let taken = catch_unwind(AssertUnwindSafe(|| self.poll_events(handle)));
        if let Err(payload) = taken {
            self.endpoint.drop_faulty(handle, payload);
        }
        self.wake_if_idle();
    }

    /// Runs the timers of connections that wait for their turn to send, while none can send.
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
        let Some(entry) = self.entries.get_mut(handle) else {
            // Without a handle, no task waits for its events.
            return;
        };
        let Some(connection) = self.endpoint.connection_mut(handle) else {
            // A panic has ended it.
            return entry.on_end(&mut self.woken);
        };
        while let Some(event) = connection.poll_event() {
            if let Event::InterfaceMtuWanted { peer, socket } = event {
                self.mtu_queries.push(MtuQuery {
                    connection: handle,
                    peer,
                    socket,
                });
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

    /// Has all connections ask for the MTU of their interface again.
    pub(crate) fn refresh_interface_mtus(&mut self) {
        let handles: Vec<_> = self.endpoint.handles().collect();
        for handle in handles {
            if let Some(connection) = self.connection(handle) {
                connection.refresh_interface_mtu();
                self.endpoint.mark_ready(handle);
            }
        }
    }

    /// Sets the MTU of the interface of a connection, if it is known.
    pub(crate) fn set_interface_mtu(&mut self, handle: ConnectionHandle, mtu: Option<u32>) {
        if let (Some(mtu), Some(connection)) = (mtu, self.connection(handle)) {
            connection.set_interface_mtu(mtu);
        }
    }

    /// Wakes the tasks that wait for errors of sockets, and has the driver look after the socket.
    #[inline]
    pub(crate) fn after_errors(&mut self) {
        if self.outbox.health.take_change() {
            self.socket_events.wake_all(&mut self.woken);
            self.driver.call();
        }
    }
}
