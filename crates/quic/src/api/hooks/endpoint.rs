//! Operations on endpoints.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use courser_transport::ConnectionError;

use crate::api::endpoint::Endpoint;

/// Operations on an [`Endpoint`].
#[doc(hidden)]
pub trait EndpointHooks {
    /// Counts `bytes`, which the application holds for its clients, towards the memory budget.
    fn share_memory(&self, bytes: Arc<AtomicU64>);

    /// Returns the number of shards that have stopped because of their sockets, and the reason of the first.
    fn stopped_shards(&self) -> (usize, Option<ConnectionError>);
}

impl EndpointHooks for Endpoint {
    fn share_memory(&self, bytes: Arc<AtomicU64>) {
        let shards = self.shards();
        shards.each(|locked| locked.endpoint.share_memory(bytes.clone()));
    }

    fn stopped_shards(&self) -> (usize, Option<ConnectionError>) {
        let all = self.shards().all().iter();
        let stopped = all.filter_map(|shard| shard.lock().stopped.clone());
        let mut stopped = stopped.peekable();
        let reason = stopped.peek().cloned();
        (stopped.count(), reason)
    }
}
