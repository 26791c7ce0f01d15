//! Several shards of one endpoint, which share what must hold for all of them.

pub mod id;
pub mod outbox;
pub mod place;

pub use self::id::ShardId;

use self::outbox::{Outbox, Stray};
use super::arrived::Arrived;
use super::stats::EndpointStats;

/// Maximum of shards of one endpoint: a byte of each connection ID names the shard (limit K221).
pub const MAX_SHARDS: usize = 256;

/// One shard of an endpoint, and the datagrams that it exchanges with the others.
#[derive(Debug)]
pub struct Shard {
    id: ShardId,
    outbox: Outbox,
    sent: u64,
    received: u64,
    dropped: u64,
}

impl Shard {
    /// Creates a shard that has received nothing.
    pub fn new(id: ShardId) -> Self {
        Self {
            id,
            outbox: Outbox::default(),
            sent: 0,
            received: 0,
            dropped: 0,
        }
    }

    /// Returns the number of the shard.
    #[cfg(test)]
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// Returns false for a datagram that has to be handled here whatever its owner is: there is no other
    /// shard, or another one has handed it on already.
    #[inline]
    pub fn may_hand_on(&self, arrived: Arrived) -> bool {
        !self.id.is_alone() && !arrived.is_stray
    }

    /// Keeps a datagram for another shard. Returns false if that is this one, or none.
    pub fn hand_on(&mut self, to: Option<u16>, arrived: Arrived, datagram: &[u8]) -> bool {
        let other = to.filter(|shard| *shard != self.id.number);
        if let Some(shard) = other {
            self.sent += 1;
            self.outbox.add(shard, arrived, datagram);
        }
        other.is_some()
    }

    /// Removes and returns the next datagrams for another shard.
    pub fn poll(&mut self) -> Option<Stray> {
        self.outbox.poll()
    }

    /// Counts datagrams that another shard has handed on.
    pub fn on_received(&mut self, stray: &Stray) {
        self.received += stray.datagrams() as u64;
    }

    /// Counts datagrams that could not be handed on.
    pub fn on_dropped(&mut self, count: usize) {
        self.dropped += count as u64;
    }

    /// Writes the counters into those of the endpoint.
    pub fn count(&self, stats: &mut EndpointStats) {
        stats.strays_sent = self.sent;
        stats.strays_received = self.received;
        stats.strays_dropped = self.dropped;
    }
}
