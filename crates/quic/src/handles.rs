//! The state that all handles of an endpoint or of a connection share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

use courser_base::Side;
use courser_transport::ConnectionHandle;

use crate::shard::{Locked, Shard};
use crate::shards::Shards;
use crate::wait::Wait;
use crate::wakers::{List, Topic};

/// The state that all handles of one endpoint share.
#[derive(Debug)]
pub(crate) struct EndpointRef {
    pub(crate) shards: Shards,
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        for shard in self.shards.all() {
            let mut locked = shard.lock();
            locked.is_abandoned = true;
            let now = shard.now();
            locked.refuse_all(now);
            locked.send_now();
            locked.driver.call();
        }
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
}

impl ConnectionRef {
    pub(crate) fn new(
        shard: Arc<Shard>,
        (handle, silence): (ConnectionHandle, Arc<AtomicBool>),
        side: Side,
    ) -> Arc<Self> {
        Arc::new(Self {
            shard,
            handle,
            side,
            silence,
        })
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        self.shard.lock()
    }

    /// Waits until `check` has an answer; asks again whenever something happens to `topic`.
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
        self.lock().on_handles_gone(self.handle);
    }
}
