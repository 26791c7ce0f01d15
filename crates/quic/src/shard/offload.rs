//! TLS work on threads that may block.
//!
//! After each turn the driver takes the TLS tasks of connections that offload them from the
//! endpoint, and passes them to threads of the runtime that may block. Each thread takes the lock
//! only to return the result, and sends the resulting packets.

use courser_transport::{ConnectionHandle, Endpoint, TlsTask};

/// Maximum of TLS tasks that run at a time on one endpoint (limit K91): a quarter of the threads
/// that tokio has for blocking work. Further tasks wait in order. Each shard has its part.
const MAX_RUNNING: usize = 128;

/// TLS tasks that run without the lock.
pub(crate) type TlsTasks = Vec<(ConnectionHandle, TlsTask)>;

/// The TLS tasks of a shard that run on other threads.
#[derive(Debug)]
pub(crate) struct TlsOffload {
    running: usize,
    max: usize,
}

impl TlsOffload {
    /// Creates the part of one of `shards` shards.
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            running: 0,
            max: MAX_RUNNING.div_ceil(shards),
        }
    }

    /// Returns true if a task waits and may run.
    #[inline]
    pub(crate) fn can_start(&self, endpoint: &Endpoint) -> bool {
        endpoint.has_tls_tasks() && self.running < self.max
    }

    /// Takes as many tasks as may run.
    #[inline]
    pub(crate) fn take(&mut self, endpoint: &mut Endpoint) -> TlsTasks {
        let mut tasks = Vec::new();
        while self.can_start(endpoint)
            && let Some(task) = endpoint.poll_tls_task()
        {
            self.running += 1;
            tasks.push(task);
        }
        tasks
    }

    /// Records that a task has ended.
    pub(crate) fn on_done(&mut self) {
        self.running -= 1;
    }
}
