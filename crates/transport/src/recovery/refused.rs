//! Packets that were too large for a link of the path.

/// Packets above a size that were sent before a router reported that they do not fit. Their loss
/// is not caused by congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Refused {
    /// Only packets with smaller numbers were too large.
    before: u64,
    /// Only packets with more bytes were too large.
    above: u16,
}

impl Refused {
    /// Describes packets of more than `above` bytes with numbers smaller than `before`.
    pub(super) fn new(before: u64, above: u16) -> Self {
        Self { before, above }
    }

    /// Returns true for a packet that was too large.
    pub(super) fn contains(self, number: u64, size: u16) -> bool {
        number < self.before && size > self.above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_packets_sent_before_the_report_are_refused() {
        let refused = Refused::new(10, 1280);
        assert!(refused.contains(9, 1281));
        assert!(!refused.contains(9, 1280));
        assert!(!refused.contains(10, 1281));
        assert!(!Refused::default().contains(0, u16::MAX));
    }
}
