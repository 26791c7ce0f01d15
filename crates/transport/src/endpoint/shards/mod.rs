//! The shards of one endpoint, and the datagrams that they exchange.

pub mod id;
pub mod outbox;
pub mod place;

pub use self::id::ShardId;

use self::outbox::{MisroutedBatch, Outbox};
use super::arrived::Arrived;
use super::stats::EndpointStats;

/// Maximum of shards of one endpoint, which a byte of each connection ID can name (limit K221).
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

    /// Returns false for a datagram that must be processed here, because there is no other shard or another
    /// one has forwarded it already.
    #[inline]
    pub fn may_forward(&self, arrived: Arrived) -> bool {
        !self.id.is_alone() && !arrived.is_handed_on
    }

    /// Queues a datagram for shard `to`. Returns false if that is this shard or `None`.
    pub fn forward(&mut self, to: Option<u16>, arrived: Arrived, datagram: &[u8]) -> bool {
        let other = to.filter(|shard| *shard != self.id.number);
        if let Some(shard) = other {
            self.sent += 1;
            self.outbox.add(shard, arrived, datagram);
        }
        other.is_some()
    }

    /// Removes and returns the next datagrams for another shard.
    pub fn poll(&mut self) -> Option<MisroutedBatch> {
        self.outbox.poll()
    }

    /// Counts datagrams that another shard has forwarded.
    pub fn on_received(&mut self, batch: &MisroutedBatch) {
        self.received += batch.datagrams() as u64;
    }

    /// Counts datagrams that could not be forwarded.
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

#[cfg(test)]
mod tests {
    use courser_base::{Ecn, FourTuple, Time};

    use super::*;
    use crate::build::transmit::SocketId;

    fn shard(number: u16, count: u16) -> Shard {
        Shard::new(ShardId { number, count })
    }

    fn arrived(is_handed_on: bool) -> Arrived {
        Arrived {
            now: Time::ZERO,
            path: FourTuple::to(([192, 0, 2, 1], 5000).into()),
            socket: SocketId::default(),
            ecn: Ecn::NotEct,
            is_handed_on,
            is_over_share: false,
        }
    }

    #[test]
    fn datagrams_of_other_shards_are_forwarded_and_counted() {
        let mut one = shard(1, 3);
        assert!(!one.forward(None, arrived(false), &[0; 10]), "no owner");
        assert!(!one.forward(Some(1), arrived(false), &[0; 10]), "its own");
        assert!(one.forward(Some(2), arrived(false), &[0; 10]));
        let batch = one.poll().expect("a datagram");
        assert_eq!((batch.shard(), batch.datagrams()), (2, 1));
        assert_eq!(one.poll(), None);
        let mut two = shard(2, 3);
        two.on_received(&batch);
        two.on_dropped(4);
        let mut stats = EndpointStats::default();
        one.count(&mut stats);
        assert_eq!((stats.strays_sent, stats.strays_received), (1, 0));
        two.count(&mut stats);
        assert_eq!((stats.strays_received, stats.strays_dropped), (1, 4));
    }

    #[test]
    fn datagrams_are_forwarded_once_and_only_if_there_are_other_shards() {
        assert!(shard(0, 2).may_forward(arrived(false)));
        assert!(!shard(0, 2).may_forward(arrived(true)));
        assert!(!shard(0, 1).may_forward(arrived(false)));
    }
}
