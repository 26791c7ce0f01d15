//! The limits of a batch of 1-RTT packets that is being built, and the size of its datagrams.

use super::fill::Content;
use crate::build::transmit::MAX_BATCH;
use crate::path::{MIN_DATAGRAM, Path};
use crate::recovery::{Built, FeatureUse, SentBatch};

/// The 1-RTT packets that may leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BatchPermit {
    /// Maximum of bytes in all packets together.
    pub(super) bytes: u64,
    /// The frames that the first packet may hold.
    pub(super) content: Content,
    /// True if it permits the probes of a timeout.
    pub(super) is_for_probes: bool,
}

impl BatchPermit {
    /// Permits packets of any number and size with the given content.
    pub(super) fn unlimited(content: Content) -> Self {
        Self {
            bytes: u64::MAX,
            content,
            is_for_probes: false,
        }
    }
}

/// The datagrams of a batch so far. All have the same size but the last, which may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    batch_permit: BatchPermit,
    /// The size of all datagrams but the last.
    size: usize,
    /// The size of full datagrams.
    mtu: usize,
    max_segments: usize,
    segments: usize,
    /// Bytes in all datagrams.
    len: usize,
    /// Bytes that count as in flight.
    in_flight: u64,
    last_number: u64,
}

impl Batch {
    /// Begins a batch of at most `max_segments` datagrams.
    #[inline]
    pub(super) fn new(
        batch_permit: BatchPermit,
        mtu: usize,
        features: &FeatureUse,
        max_segments: usize,
    ) -> Self {
        Self {
            batch_permit,
            size: mtu.min(features.max_size),
            mtu,
            max_segments: features.max_segments.min(max_segments),
            segments: 0,
            len: 0,
            in_flight: 0,
            last_number: 0,
        }
    }

    /// Returns the limit on the next datagram, or `None` when the batch is full or nothing more may leave.
    #[inline]
    pub(super) fn next_limit(&self, path: &Path) -> Option<usize> {
        if self.segments >= self.max_segments || self.len + self.size > MAX_BATCH {
            return None;
        }
        let mut limit = path.datagram_limit(self.size);
        if self.segments == 0 {
            // The permit may be for less than a datagram, so that the end of a message can leave.
            limit = limit.min(usize::try_from(self.batch_permit.bytes).unwrap_or(usize::MAX));
        }
        (limit >= MIN_DATAGRAM && self.batch_permit.bytes >= limit as u64).then_some(limit)
    }

    /// Returns the frames that the next packet may hold.
    #[inline]
    pub(super) fn content(&self) -> Content {
        match self.segments {
            0 => self.batch_permit.content,
            _ => Content::Further,
        }
    }

    /// Raises the size of datagrams from that of a probe to that of the path, because a datagram of the
    /// application may not fit into the smaller ones. Returns false if they are that large already, or the batch
    /// has begun.
    pub(super) fn grow(&mut self) -> bool {
        let grows = self.segments == 0 && self.size < self.mtu;
        if grows {
            self.size = self.mtu;
        }
        grows
    }

    /// Counts a datagram, and returns true if another one may follow. `is_probing` is true while probes of a
    /// timeout are due, and `is_uniform` returns true if only datagrams of the application wait.
    #[inline]
    pub(super) fn add(
        &mut self,
        built: &Built,
        is_probing: bool,
        is_uniform: impl FnOnce() -> bool,
    ) -> bool {
        self.segments += 1;
        self.len += built.len;
        self.last_number = built.number;
        self.in_flight += if built.in_flight { built.len as u64 } else { 0 };
        self.batch_permit.bytes = self.batch_permit.bytes.saturating_sub(built.len as u64);
        let is_single = matches!(
            self.batch_permit.content,
            Content::AckOnly | Content::Ping | Content::Probe(_)
        );
        // Packets behind the probes need a permit of their own, because controllers account for a batch only
        // when it is complete.
        if is_single || self.batch_permit.is_for_probes && !is_probing {
            return false;
        }
        if built.len < self.size {
            // Datagrams of an application often have one size, which is not that of full packets. Content
            // that needs full packets gets the next batch.
            if self.segments > 1 || !is_uniform() {
                return false;
            }
            self.size = built.len;
        }
        true
    }

    /// Returns the batch as loss recovery accounts for it.
    #[inline]
    pub(super) fn sent(&self) -> SentBatch {
        SentBatch {
            in_flight: self.in_flight,
            last_number: self.last_number,
            has_full_datagram: self.size == self.mtu && self.len >= self.mtu,
        }
    }

    /// Returns the size of the datagrams if there are several.
    #[inline]
    pub(super) fn segment_size(&self) -> Option<usize> {
        (self.segments > 1).then_some(self.size)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use courser_base::FourTuple;

    use super::*;
    use crate::space::sent::SentFrames;

    const MTU: usize = 1400;

    fn path() -> Path {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 443));
        let mut path = Path::new(FourTuple::to(peer), 0);
        path.on_validated();
        path
    }

    fn built(len: usize) -> Built {
        Built {
            number: 7,
            len,
            frames: SentFrames::default(),
            ack_eliciting: true,
            in_flight: true,
            quic_bit_cleared: false,
            follows_in_batch: false,
        }
    }

    fn batch(bytes: u64, max_size: usize) -> Batch {
        let batch_permit = BatchPermit {
            bytes,
            content: Content::All,
            is_for_probes: false,
        };
        let features = FeatureUse {
            max_size,
            max_segments: usize::MAX,
            ..FeatureUse::NONE
        };
        Batch::new(batch_permit, MTU, &features, 3)
    }

    /// Adds datagrams of the maximum size and returns their lengths.
    fn fill(mut batch: Batch) -> Vec<usize> {
        let path = path();
        std::iter::from_fn(|| {
            let limit = batch.next_limit(&path)?;
            batch.add(&built(limit), false, || false);
            Some(limit)
        })
        .collect()
    }

    #[test]
    fn batch_ends_at_the_limit_of_segments_or_bytes() {
        for (bytes, lens) in [
            (u64::MAX, vec![MTU; 3]),
            (3 * MTU as u64, vec![MTU; 3]),
            (3 * MTU as u64 - 1, vec![MTU; 2]),
            (MTU as u64, vec![MTU]),
            (100, vec![100]),
            (MIN_DATAGRAM as u64 - 1, vec![]),
        ] {
            assert_eq!(fill(batch(bytes, MTU)), lens, "{bytes} bytes");
        }
    }

    #[test]
    fn only_the_first_packet_may_hold_everything() {
        let mut batch = batch(u64::MAX, MTU);
        assert_eq!(batch.content(), Content::All);
        assert!(batch.add(&built(MTU), false, || false));
        assert_eq!(batch.content(), Content::Further);
    }

    #[test]
    fn smaller_size_can_be_raised_only_before_the_first_datagram() {
        let mut batch = batch(u64::MAX, 1200);
        assert_eq!(batch.next_limit(&path()), Some(1200));
        assert!(batch.grow() && !batch.grow());
        assert_eq!(batch.next_limit(&path()), Some(MTU));
        batch.add(&built(MTU), false, || false);
        assert!(!batch.grow());
    }

    #[test]
    fn contents_and_probes_decide_whether_a_datagram_follows() {
        for (content, is_for_probes, is_probing, follows) in [
            (Content::All, false, false, true),
            (Content::AckOnly, false, false, false),
            (Content::Probe(1), false, false, false),
            (Content::All, true, true, true),
            (Content::All, true, false, false),
        ] {
            let mut batch = batch(u64::MAX, MTU);
            batch.batch_permit.content = content;
            batch.batch_permit.is_for_probes = is_for_probes;
            let continues = batch.add(&built(MTU), is_probing, || false);
            assert_eq!(
                continues, follows,
                "{content:?}, {is_for_probes}, {is_probing}"
            );
        }
    }

    #[test]
    fn application_datagrams_of_the_same_size_follow_a_short_first_one() {
        let mut batch = batch(u64::MAX, MTU);
        assert!(batch.add(&built(500), false, || true));
        assert_eq!(batch.next_limit(&path()), Some(500));
        assert_eq!(batch.segment_size(), None);
        assert!(batch.add(&built(500), false, || true));
        assert_eq!(batch.segment_size(), Some(500));
        assert!(!batch.add(&built(499), false, || true), "a shorter one");
        let sent = SentBatch {
            in_flight: 1499,
            last_number: 7,
            has_full_datagram: false,
        };
        assert_eq!(batch.sent(), sent);
    }

    #[test]
    fn nothing_follows_a_short_datagram_while_other_content_waits() {
        assert!(!batch(u64::MAX, MTU).add(&built(500), false, || false));
    }
}
