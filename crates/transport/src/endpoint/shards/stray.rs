//! Datagrams on their way from one shard to another.

use crate::endpoint::arrived::Arrived;

/// Datagrams for another shard of the same endpoint.
///
/// Pass it to [`Endpoint::handle_stray`](crate::Endpoint::handle_stray) of that shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stray {
    shard: u16,
    arrived: Arrived,
    /// Length of each datagram but the last.
    segment_size: usize,
    bytes: Vec<u8>,
}

impl Stray {
    pub(in crate::endpoint) fn new(shard: u16, arrived: Arrived, datagram: &[u8]) -> Self {
        Self {
            shard,
            arrived,
            segment_size: datagram.len().max(1),
            bytes: datagram.to_vec(),
        }
    }

    /// Returns how they arrived, their length and their bytes.
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
