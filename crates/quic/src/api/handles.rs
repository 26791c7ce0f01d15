//! The state that all handles of an endpoint or of a connection share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::task::Poll;

use courser_base::{Side, foreign};
use courser_transport::ConnectionHandle;

use crate::shard::lock::{Locked, Shard};
use crate::shard::shards::Shards;
use crate::shard::wait::Wait;
use crate::shard::wakers::{List, Topic};

/// The state that all handles of one endpoint share.
#[derive(Debug)]
pub(crate) struct EndpointRef {
    pub(crate) shards: Shards,
}

impl EndpointRef {
    /// Ends the endpoint as if its last handle were gone.
    pub(crate) fn end(&self) {
        let shards = self.shards.all();
        if shards.iter().any(|shard| shard.is_held_here()) {
            // A hook has dropped the last handle.
            let shards = shards.to_vec();
            return foreign::run(move || abandon(&shards));
        }
        abandon(shards);
    }
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends the shards of an endpoint whose last handle is gone, when their connections are over.
fn abandon(shards: &[Arc<Shard>]) {
    for shard in shards {
        let mut locked = shard.lock();
        locked.is_abandoned = true;
        let now = shard.now();
        locked.refuse_all(now);
        locked.send_now();
        locked.driver.call();
    }
}

/// The state that all handles of one connection share. Closes it when the last one is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionRef {
    pub(crate) shard: Arc<Shard>,
    pub(crate) handle: ConnectionHandle,
    pub(crate) side: Side,
    /// The path is silent.
    pub(crate) silence: Arc<AtomicBool>,
    /// The number of groups of streams that the application has created.
    pub(crate) groups: AtomicU32,
}

impl ConnectionRef {
    pub(crate) fn new(
        shard: Arc<Shard>,
        handle: ConnectionHandle,
        silence: Arc<AtomicBool>,
        side: Side,
    ) -> Arc<Self> {
        Arc::new(Self {
            shard,
            handle,
            side,
            silence,
            groups: AtomicU32::new(0),
        })
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        self.shard.lock_for(Some(self.handle))
    }

    /// Cleans up after a handle that is dropped. If a hook drops it under the lock, this happens after the
    /// release.
    pub(crate) fn on_drop(
        self: &Arc<Self>,
        clean_up: impl FnOnce(&mut Locked<'_>, ConnectionHandle) + Send + 'static,
    ) {
        if self.shard.is_held_here() {
            let connection = self.clone();
            return foreign::run(move || clean_up(&mut connection.lock(), connection.handle));
        }
        clean_up(&mut self.lock(), self.handle);
    }

    /// Waits until `check` is ready. Calls it again after each event of `topic`.
    pub(crate) async fn wait<T>(
        &self,
        topic: Topic,
        check: impl FnMut(&mut Locked<'_>) -> Poll<T> + Unpin,
    ) -> T {
        Wait::new(&self.shard, List::Connection(self.handle, topic), check).await
    }
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        if self.shard.is_held_here() {
            // A hook has dropped the last handle.
            let (shard, handle) = (self.shard.clone(), self.handle);
            return foreign::run(move || shard.lock_for(Some(handle)).on_handles_gone(handle));
        }
        self.lock().on_handles_gone(self.handle);
    }
}
