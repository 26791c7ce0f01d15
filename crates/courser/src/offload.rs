//! TLS work on threads that may block.
//!
//! The driver takes the TLS work of connections that offload it from the endpoint after each turn,
//! and gives it to threads of the runtime that may block. Each takes the lock for as long as it
//! takes to hand the result over, and sends what follows from it.

use std::sync::Arc;

use courser_transport::{ConnectionHandle, TlsTask};

use crate::shard::{Locked, Shard};

/// TLS work that runs at a time on one endpoint (limit K91): a quarter of the threads that tokio
/// has for blocking work. Further work waits in order.
pub(crate) const MAX_RUNNING: usize = 128;

/// TLS work that the lock need not be held for.
pub(crate) type Tasks = Vec<(ConnectionHandle, TlsTask)>;

impl Locked<'_> {
    /// Takes as much TLS work as may run.
    #[inline]
    pub(crate) fn take_tls_tasks(&mut self) -> Tasks {
        let mut tasks = Vec::new();
        while self.wants_tls()
            && let Some(task) = self.endpoint.poll_tls_task()
        {
            self.tls_running += 1;
            tasks.push(task);
        }
        tasks
    }
}

impl Shard {
    /// Starts TLS work. The lock must not be held.
    pub(crate) fn start(self: &Arc<Self>, tasks: Tasks) {
        for (handle, task) in tasks {
            let shard = self.clone();
            self.runtime.spawn_blocking(Box::new(move || {
                let result = task.run();
                let mut locked = shard.lock();
                locked.tls_running -= 1;
                let now = shard.now();
                locked.endpoint.finish_tls_task(now, handle, result);
                locked.flush();
                // What waits may run now; connections that are over may let the driver end.
                locked.driver.is_wanted = true;
            }));
        }
    }
}
