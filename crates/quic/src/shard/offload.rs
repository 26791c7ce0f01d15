//! TLS work on threads that may block.
//!
//! After each turn the driver takes the TLS tasks of connections that offload them from the
//! endpoint, and passes them to threads of the runtime that may block. Each thread takes the lock
//! only to return the result, and sends the resulting packets.

use std::sync::Arc;

use courser_transport::{ConnectionHandle, TlsTask};

use crate::shard::lock::Shard;
use crate::shard::state::State;

/// TLS tasks that run without the lock.
pub(crate) type Tasks = Vec<(ConnectionHandle, TlsTask)>;

impl State {
    /// Takes as many TLS tasks as may run.
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
    /// Starts TLS tasks. The lock must not be held.
    pub(crate) fn start(self: &Arc<Self>, tasks: Tasks) {
        for (handle, task) in tasks {
            let shard = self.clone();
            self.runtime.spawn_blocking(Box::new(move || {
                let result = task.run();
                let mut locked = shard.lock();
                locked.tls_running -= 1;
                locked.change(|state, now| state.endpoint.finish_tls_task(now, handle, result));
                // Waiting tasks may run now, and connections that are over may let the driver end.
                locked.driver.call();
            }));
        }
    }
}
