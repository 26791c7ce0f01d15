//! Datagrams that have arrived at one shard and belong to another.

use std::collections::VecDeque;

use crate::endpoint::arrived::Arrived;

/// Datagrams for another shard of the same endpoint.
///
/// Pass it to [`Endpoint::handle_misrouted`](crate::Endpoint::handle_misrouted) of that shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MisroutedBatch {
    shard: u16,
    arrived: Arrived,
    /// Length of each datagram but the last.
    segment_size: usize,
    bytes: Vec<u8>,
}

impl MisroutedBatch {
    pub(in crate::endpoint) fn new(shard: u16, arrived: Arrived, datagram: &[u8]) -> Self {
        Self {
            shard,
            arrived,
            segment_size: datagram.len().max(1),
            bytes: datagram.to_vec(),
        }
    }

    /// Returns the metadata, the length of each datagram but the last, and the bytes.
    pub(in crate::endpoint) fn into_parts(self) -> (Arrived, usize, Vec<u8>) {
        (self.arrived, self.segment_size, self.bytes)
    }

    /// Returns the number of the shard.
    pub fn shard(&self) -> usize {
        usize::from(self.shard)
    }

    /// Returns the length of the datagrams together in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if there are no bytes, which never happens.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of datagrams.
    pub fn datagrams(&self) -> usize {
        self.bytes.len().div_ceil(self.segment_size)
    }

    /// Appends a datagram if it continues the batch.
    pub(in crate::endpoint) fn extend(
        &mut self,
        shard: u16,
        arrived: Arrived,
        datagram: &[u8],
    ) -> bool {
        let size = self.segment_size;
        let continues = self.shard == shard
            && self.arrived == arrived
            && self.bytes.len().is_multiple_of(size)
            && datagram.len() <= size;
        if continues {
            self.bytes.extend_from_slice(datagram);
        }
        continues
    }
}

/// The datagrams that a shard has received for others, in batches. It holds those of one receive buffer,
/// because the driver forwards them after each.
#[derive(Debug, Default)]
pub struct Outbox {
    batches: VecDeque<MisroutedBatch>,
}

impl Outbox {
    /// Adds a datagram for a shard.
    pub fn add(&mut self, shard: u16, arrived: Arrived, datagram: &[u8]) {
        let last = self.batches.back_mut();
        if !last.is_some_and(|last| last.extend(shard, arrived, datagram)) {
            self.batches
                .push_back(MisroutedBatch::new(shard, arrived, datagram));
        }
    }

    /// Removes and returns the first batch.
    pub fn poll(&mut self) -> Option<MisroutedBatch> {
        self.batches.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use courser_base::{Ecn, FourTuple, Time};

    use super::*;
    use crate::build::transmit::SocketId;

    fn arrived(port: u16) -> Arrived {
        Arrived {
            now: Time::ZERO,
            path: FourTuple::to(([192, 0, 2, 1], port).into()),
            socket: SocketId::default(),
            ecn: Ecn::NotEct,
            is_handed_on: false,
            is_over_share: false,
        }
    }

    /// Returns the shard, the number of datagrams and the bytes of each batch.
    fn batches(outbox: &mut Outbox) -> Vec<(usize, usize, usize)> {
        std::iter::from_fn(|| outbox.poll())
            .map(|it| (it.shard(), it.datagrams(), it.len()))
            .collect()
    }

    #[test]
    fn datagrams_of_one_size_and_origin_are_one_batch_until_a_shorter_one() {
        let mut outbox = Outbox::default();
        for len in [100, 100, 40, 100] {
            outbox.add(1, arrived(1), &vec![0; len]);
        }
        assert_eq!(batches(&mut outbox), [(1, 3, 240), (1, 1, 100)]);
    }

    #[test]
    fn each_shard_and_each_origin_has_batches_of_its_own() {
        let mut outbox = Outbox::default();
        outbox.add(1, arrived(1), &[0; 100]);
        outbox.add(2, arrived(1), &[0; 100]);
        outbox.add(2, arrived(2), &[0; 100]);
        outbox.add(2, arrived(2), &[0; 200]);
        let each = [(1, 1, 100), (2, 1, 100), (2, 1, 100), (2, 1, 200)];
        assert_eq!(batches(&mut outbox), each);
    }
}
