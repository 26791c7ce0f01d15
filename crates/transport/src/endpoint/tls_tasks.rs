//! TLS work that runs outside the endpoint.
//!
//! Resolvers, verifiers and signers of users run inside the handshake and may wait for a network or
//! a disk. With `offload_tls`, a connection moves its TLS session into a [`TlsTask`], which the
//! embedder runs on a thread that may block.

use courser_base::Time;

use super::fault::{internal_fault, message_of};
use super::{ConnectionHandle, Endpoint};
use crate::connection::{TlsResult, TlsTask};

impl Endpoint {
    /// Returns the next TLS task of a connection whose configuration has `offload_tls`, oldest
    /// first. Run it without the endpoint, and pass the result to [`Endpoint::finish_tls_task`].
    ///
    /// There is at most one task per connection. The connection's other work continues meanwhile:
    /// acknowledgements, probes, timeouts.
    pub fn poll_tls_task(&mut self) -> Option<(ConnectionHandle, TlsTask)> {
        self.table.poll_tls_task()
    }

    /// Returns true if [`Endpoint::poll_tls_task`] may return a task.
    #[inline]
    pub fn has_tls_tasks(&self) -> bool {
        self.table.has_tls_tasks()
    }

    /// Accepts the result of a task and continues the handshake. Does nothing if the connection is
    /// over by now.
    pub fn finish_tls_task(&mut self, now: Time, handle: ConnectionHandle, result: TlsResult) {
        self.guard(|endpoint| {
            let Some(connection) = endpoint.connection_mut(handle) else {
                return;
            };
            let result = result.0;
            let result = result.map_err(|payload| internal_fault(&message_of(&*payload)));
            let has_panicked = result.is_err();
            let was_expected = connection.finish_tls_task(now, result);
            endpoint.stats.faults += u64::from(has_panicked && was_expected);
            endpoint.mark_ready(handle);
        });
    }
}
