//! The number of a shard.

/// The number of a shard among those of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShardId {
    pub number: u16,
    /// The number of all shards.
    pub count: u16,
}

impl ShardId {
    /// Returns true for the only shard of an endpoint.
    pub fn is_alone(self) -> bool {
        self.count == 1
    }
}
