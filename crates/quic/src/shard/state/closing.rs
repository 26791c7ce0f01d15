//! The end of connections, and of the shard itself.

use std::sync::Arc;

use courser_transport::{ConnectionError, ConnectionHandle, TransportError};
use courser_wire::{TransportErrorCode, VarInt};

use super::ShardState;
use crate::runtime::Socket;
use crate::shard::timing::SendTiming;

impl ShardState {
    /// Ends a connection for the application, and sends its end to the peer.
    pub(crate) fn close(&mut self, handle: ConnectionHandle, code: VarInt, reason: &[u8]) {
        // Data that was written before is sent first.
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
            self.endpoint.mark_ready(handle);
        }
    }

    /// Closes and releases a connection whose last handle is gone.
    pub(crate) fn on_handles_gone(&mut self, handle: ConnectionHandle) {
        if self.end_of(handle).is_none() {
            self.close(handle, VarInt::default(), b"");
        }
        let entry = self.entries.remove(handle);
        if let Some(ended) = entry.and_then(|entry| entry.ended)
            && self.drops.keep_all(*ended, &self.clock)
        {
            self.driver.call();
        }
        self.endpoint.release(handle);
    }

    /// Ends the shard, because nothing can be sent or received any more, and wakes all waiting tasks. Other shards
    /// continue and get later datagrams. Returns the sockets, which the caller drops without the lock.
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
        for entry in self.entries.iter_mut() {
            entry.wakers.wake_all(&mut self.woken);
        }
        self.accepting.wake_all(&mut self.woken);
        self.idle.wake_all(&mut self.woken);
        self.socket_events.wake_all(&mut self.woken);
        self.driver.call();
        self.outbox.sockets.close()
    }
}
