//! Batches of datagrams that are due together, for one system call each.

use bytes::Bytes;
use courser_base::Ecn;
use courser_udp::MAX_BATCH_LEN;

/// Datagrams of one length to one destination with one ECN mark. The last one may be shorter.
#[derive(Debug)]
pub(crate) struct Batch {
    contents: Vec<u8>,
    segment_size: usize,
    count: usize,
    ecn: Ecn,
    client: usize,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            contents: Vec::with_capacity(MAX_BATCH_LEN),
            segment_size: 0,
            count: 0,
            ecn: Ecn::NotEct,
            client: 0,
        }
    }

    /// Adds a datagram for a client, and returns true. Returns false if it does not match the datagrams in the
    /// batch, or if the batch has `limit` of them.
    pub(crate) fn add(&mut self, client: usize, ecn: Ecn, payload: &Bytes, limit: usize) -> bool {
        if self.count == 0 {
            self.client = client;
            self.ecn = ecn;
            self.segment_size = payload.len();
        } else if !self.accepts(client, ecn, payload.len(), limit) {
            return false;
        }
        self.contents.extend_from_slice(payload);
        self.count += 1;
        true
    }

    fn accepts(&self, client: usize, ecn: Ecn, len: usize, limit: usize) -> bool {
        // A shorter datagram ends the batch.
        let is_even = self.contents.len() == self.count * self.segment_size;
        is_even
            && self.client == client
            && self.ecn == ecn
            && len <= self.segment_size
            && len > 0
            && self.count < limit
            && self.contents.len() + len <= MAX_BATCH_LEN
    }

    pub(crate) fn clear(&mut self) {
        self.contents.clear();
        self.count = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn client(&self) -> usize {
        self.client
    }

    pub(crate) fn ecn(&self) -> Ecn {
        self.ecn
    }

    pub(crate) fn contents(&self) -> &[u8] {
        &self.contents
    }

    /// Returns the size of the datagrams, or `None` for a single one.
    pub(crate) fn segment_size(&self) -> Option<usize> {
        (self.count > 1).then_some(self.segment_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(len: usize) -> Bytes {
        vec![1; len].into()
    }

    #[test]
    fn equal_datagrams_share_a_batch_and_a_shorter_one_is_the_last() {
        let mut batch = Batch::new();
        assert!(batch.add(1, Ecn::Ect0, &payload(1200), 64));
        assert_eq!(batch.segment_size(), None);
        assert!(batch.add(1, Ecn::Ect0, &payload(1200), 64));
        assert!(batch.add(1, Ecn::Ect0, &payload(300), 64));
        assert!(!batch.add(1, Ecn::Ect0, &payload(300), 64));
        assert_eq!((batch.count, batch.segment_size()), (3, Some(1200)));
        assert_eq!(batch.contents().len(), 2700);
    }

    #[test]
    fn datagrams_that_differ_start_another_batch() {
        let mut batch = Batch::new();
        assert!(batch.add(1, Ecn::Ect0, &payload(1200), 64));
        assert!(!batch.add(2, Ecn::Ect0, &payload(1200), 64));
        assert!(!batch.add(1, Ecn::Ce, &payload(1200), 64));
        assert!(!batch.add(1, Ecn::Ect0, &payload(1201), 64));
        assert!(!batch.add(1, Ecn::Ect0, &payload(0), 64));
        assert!(!batch.add(1, Ecn::Ect0, &payload(1200), 1));
        batch.clear();
        assert!(batch.add(2, Ecn::Ce, &payload(40_000), 64));
        assert!(!batch.add(2, Ecn::Ce, &payload(40_000), 64));
    }
}
