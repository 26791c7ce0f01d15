//! Packet number spaces of a hostile connection.

use std::collections::BTreeMap;

use courser_base::RangeSet;

/// Packet numbers and CRYPTO data of one packet number space, in both directions.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The packet number of the next packet.
    pub(super) next: u64,
    /// The latest [`MAX_RANGES`] ranges of received packet numbers.
    pub(super) received: RangeSet,
    /// An ack-eliciting packet is not acknowledged yet.
    pub(super) ack_is_due: bool,
    /// All bytes of the CRYPTO stream that TLS has written.
    pub(super) crypto_out: Vec<u8>,
    /// Bytes of `crypto_out` that were sent.
    pub(super) crypto_sent: usize,
    crypto_read: u64,
    crypto_pending: BTreeMap<u64, Vec<u8>>,
}

/// The largest number of ranges kept for acknowledgments.
const MAX_RANGES: usize = 64;

impl Numbers {
    /// Records a packet that was opened.
    pub(super) fn on_received(&mut self, number: u64, is_ack_eliciting: bool) {
        self.received.insert_one(number);
        while self.received.len() > MAX_RANGES {
            self.received.pop_first();
        }
        self.ack_is_due |= is_ack_eliciting;
    }

    /// Stores bytes of the CRYPTO stream, and returns those that can be read in order.
    pub(super) fn on_crypto(&mut self, offset: u64, data: &[u8]) -> Vec<u8> {
        let pending = self.crypto_pending.entry(offset).or_default();
        if pending.len() < data.len() {
            *pending = data.to_vec();
        }
        let mut ready = Vec::new();
        while let Some((&offset, _)) = self.crypto_pending.first_key_value()
            && offset <= self.crypto_read
        {
            let data = self.crypto_pending.remove(&offset).unwrap_or_default();
            let known = usize::try_from(self.crypto_read - offset).unwrap_or(usize::MAX);
            let fresh = data.get(known..).unwrap_or_default();
            self.crypto_read += fresh.len() as u64;
            ready.extend_from_slice(fresh);
        }
        ready
    }
}
